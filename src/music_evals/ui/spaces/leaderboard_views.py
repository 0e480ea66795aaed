"""What the leaderboard's page shows, as HTML: the table, the items behind a score, and what can be shown of one item.

Names and details come from whoever added to the board. They are escaped for HTML by the templates, and here for the
templates of `gradio.HTML`, which give braces and dollar signs a meaning of their own.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.benchmark.formats import ARROWS, render
from music_evals.benchmark.tasks.preservation.plots import timeline
from music_evals.errors import MusicEvalsError
from music_evals.leaderboard.board import DetailReader
from music_evals.leaderboard.details import SIDES
from music_evals.leaderboard.export import mean_rank, plane_html, rank_words, remarks_on
from music_evals.leaderboard.records import DIVERGENCE, ResultRecord
from music_evals.pipelines.gaps.diff import diff_notes
from music_evals.symbolic import noteseq
from music_evals.ui.assets import script, style
from music_evals.ui.widgets import roll_view
from music_evals.ui.widgets.bars import DIRECTIONS
from music_evals.ui.widgets.roll_view import summary
from music_evals.ui.widgets.timeline_view import TIMELINE_STYLE

SHOWN_ITEMS = 400
UNREADABLE = "What the board holds of this item cannot be drawn."
NOTHING = "The board holds nothing that could be shown of this item."


_TEMPLATE_LETTERS = {ord("$"): "&#36;", ord("{"): "&#123;", ord("}"): "&#125;"}

TABLE_STYLE: Final = style("leaderboard") + TIMELINE_STYLE
"""For the components that show a table, and what is behind its scores."""

TABLE_SCRIPT: Final = script("leaderboard", start="leaderboard")
"""For the component that shows a table: headings sort it, undefined last; a click on a score asks for its items."""


def safe(text: object) -> str:
    """Return text that is text in HTML, in attributes, and in the templates of `gradio.HTML`."""
    return html.escape(str(text), quote=True).translate(_TEMPLATE_LETTERS)


def _filled(part: str, **values: Any) -> str:
    """Fill in one of our templates; nothing in it means anything to the templates of `gradio.HTML`."""
    return render("music_evals.ui", f"leaderboard_{part}.html", **values).translate(_TEMPLATE_LETTERS)


class ItemScore(NamedTuple):
    """Mean over the seeds of an item, or for a divergence its feature and that of the reference; NaN is undefined."""

    item: str
    group: str
    value: float
    reference: float


def item_scores(record: ResultRecord) -> list[ItemScore]:
    """Return the scores of all items, the worst first, undefined ones last."""
    rows = []
    for place, (item, group, seeds) in enumerate(zip(record.items, record.groups, record.values, strict=True)):
        defined = [value for value in seeds if value is not None]
        reference = record.reference_values[place] if record.reference_values else None
        mean = float(np.mean(defined)) if defined else math.nan
        rows.append(ItemScore(item, group, mean, math.nan if reference is None else reference))

    def merit(row: ItemScore) -> float:
        if record.kind == DIVERGENCE:
            return -abs(row.value - row.reference)
        return row.value if record.direction == "higher" else -abs(row.value)

    return sorted(rows, key=lambda row: (math.isnan(merit(row)), merit(row), row.item))


def table_html(table: Mapping[str, Any], *, search: str = "", outside: bool = True) -> str:
    """Return a table whose headings sort it and whose scores can be opened."""
    kinds = {"ranked", "published", *(("control", "unranked") if outside else ())}
    words = search.casefold().split()
    columns = table["columns"]
    heads = []
    for column in columns:
        note = f"{column['metric']}: {DIRECTIONS[column['direction']]}; {column['n_ranked']} have a rank"
        note += f"; {column['differs']}" if column["differs"] else ""
        heads.append({"title": column["title"], "arrow": ARROWS[column["direction"]], "note": note})
    rows = [
        (row, mean_rank(row), [_score(column, row["cells"].get(column["id"])) for column in columns])
        for row in table["rows"]
        if row["kind"] in kinds and all(word in row["label"].casefold() for word in words)
    ]
    return _filled("table", title=table["title"], columns=heads, rows=rows)


def _score(column: Mapping[str, Any], cell: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    n = f"n {cell['n_defined']}/{cell['n']}" if cell["n"] and cell["n_defined"] < cell["n"] else ""
    filled = f"{cell['filled']} left out, counted as a control" if cell.get("filled") else ""
    lines = (rank_words(cell), cell["mark"], cell["interval"], n, filled)
    # the best first, or the lowest if no row has a place
    first = cell["place"] if column["n_ranked"] else cell["value"]
    key = "" if first is None else repr(first)
    return {"key": key, "record": cell["record"], "title": column["title"], "shown": cell["shown"], "lines": lines}


def about_html(table: Mapping[str, Any]) -> str:
    """Return what a reader of a table should know: plane, notes, why others stand apart, what a paper's rows are."""
    return _filled("about", picture=plane_html(table), remarks=list(remarks_on(table)), published=table["published"])


def _difference(test: Mapping[str, Any], sign: int) -> str:
    """Return a difference with its interval, as seen from the first or from the second system."""
    ends = sorted(sign * test[key] for key in ("low", "high") if test[key] is not None)
    interval = f" ({ends[0]:+.4f} to {ends[1]:+.4f})" if ends else ""
    return f"{sign * test['difference']:+.4f}{interval}"


def score_html(table: Mapping[str, Any], record: ResultRecord, scores: Sequence[ItemScore]) -> str:
    """Return what stands behind a score: its numbers, the tests against the other systems, and its items."""
    row, column = find_cell(table, record.id)
    cell, label = row["cells"][column["id"]], row["label"]
    rank = rank_words(cell)
    of = f"{rank} of {column['n_ranked']}" if rank else f"not ranked: {cell['why'] or row['why']}"
    floor = "" if record.floor is None else f", noise floor {record.floor:.4f}"
    tests = [
        {
            "other": test["b"] if test["a"] == label else test["a"],
            "difference": _difference(test, 1 if test["a"] == label else -1),
            "p_value": f"{test['p_holm']:.4f}",
            "is_significant": test["is_significant"],
            "n": test["n"],
        }
        for test in table["tests"]
        if test["column"] == column["id"] and label in {test["a"], test["b"]} and test["p_holm"] is not None
    ]
    heads = ("feature", "reference") if record.kind == DIVERGENCE else ("score",)
    return _filled(
        "score",
        label=label,
        title=column["title"],
        facts=f"{cell['shown']} ({cell['interval'] or 'no interval'}), {of}, n {record.n_defined}/{record.n}{floor}",
        tests=tests,
        heads=("item", "group", *heads),
        items=[
            (score.item, score.group, *map(_value, (score.value, score.reference)[: len(heads)]))
            for score in scores[:SHOWN_ITEMS]
        ],
        n_items=len(scores),
    )


def _value(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.4f}"


def find_cell(table: Mapping[str, Any], record: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return row and column of a record; a `LookupError` where it is not in this table."""
    for row in table["rows"]:
        for column in table["columns"]:
            if row["cells"].get(column["id"], {}).get("record") == record:
                return row, column
    raise LookupError(record)


def music_html(reader: DetailReader, record: ResultRecord, item: str) -> str:
    """Return piano rolls of an item of inpainting, for `roll_view`; empty where the board has none."""
    if record.task != "inpainting":
        return ""
    context = _tokens(reader.content(record.run, item, "", "context"), MUSIB_LAYOUT.n_steps)
    middle = _tokens(reader.content(record.run, item, record.system, "middle"), MUSIB_LAYOUT.middle_steps)
    if context is None:
        return ""
    truth = context[MUSIB_LAYOUT.middle]
    rolls: list[tuple[str, Tokens, list[roll_view.RollNote], str]] = [
        ("The true middle", context, roll_view.context_notes(context, truth, kind="true"), "")
    ]
    if middle is not None:
        whole = context.copy()
        whole[MUSIB_LAYOUT.middle] = middle
        diff = diff_notes(truth, middle)
        name = "".join(letter if letter.isprintable() else " " for letter in record.system)
        rolls.append((name, whole, roll_view.diff_roll(context, middle, diff), summary(diff)))
    notes = [note for _, _, roll, _ in rolls for note in roll]
    figures = [roll_view.legend_html(note.kind for note in notes)]
    for title, tokens, roll, remark in rolls:
        svg = roll_view.roll_svg(roll, label=f"{item}, {title}", pitches=roll_view.pitch_range(notes))
        figures.append(roll_view.figure_html(title, svg, tokens=tokens, file_name=f"{item}_{title}"[:80], note=remark))
    return "\n".join(figures).translate(_TEMPLATE_LETTERS)


def _tokens(content: Mapping[str, Any] | None, n: int) -> Tokens | None:
    """Return tokens that a board holds; None if missing or invalid."""
    try:
        tokens = noteseq.check_tokens(np.array(content["tokens"])) if content else None
    except (KeyError, TypeError, ValueError, OverflowError, MusicEvalsError):
        return None
    return tokens if tokens is not None and tokens.shape == (n,) else None


class _Block(NamedTuple):
    """Something to read of an item: a title, lines, and a picture that is HTML of ours."""

    title: str
    lines: Sequence[str]
    picture: str = ""


def words_html(reader: DetailReader, record: ResultRecord, item: str) -> str:
    """Return what else the board holds of an item: timelines, remarks, explanations, tags; or that there is nothing."""
    kinds: dict[str, Callable[[DetailReader, ResultRecord, Mapping[str, Any]], _Block]] = {
        "pair": _pair,
        "explanation": lambda _, __, content: _Block("Where points were lost", list(map(str, content["lines"]))),
        "tags": lambda _, __, content: _Block(
            "Tags that the system gave",
            [
                f"{group}, {dimension}: {', '.join(map(str, tags))}"
                for group, dimensions in content["tags"].items()
                for dimension, tags in dimensions.items()
            ],
        ),
    }
    blocks = []
    for kind, read in kinds.items():
        content = reader.content(record.run, item, record.system, kind)
        if content is not None:
            try:
                blocks.append(read(reader, record, content))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                blocks.append(_Block("", [UNREADABLE]))
    return _filled("item", blocks=blocks or [_Block("", [NOTHING])])


def _pair(reader: DetailReader, record: ResultRecord, content: Mapping[str, Any]) -> _Block:
    from markupsafe import Markup

    lines = [f"{side}: {content[side]['name']}, content {content[side]['content']}" for side in SIDES]
    outlines = [reader.content(record.run, content[side]["content"], "", "outline") for side in SIDES]
    picture = ""
    if outlines[0] and outlines[1]:
        svg = timeline(outlines[0], outlines[1], label="Beats, chords, sections and melody of both files")
        picture = Markup(svg)  # noqa: S704  (names in it are escaped where it is drawn)
    return _Block("", [*lines, *map(str, content["remarks"])], picture)
