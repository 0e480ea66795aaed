"""What the leaderboard's page shows, as HTML: the table, the items behind a score, and what can be shown of one item.

Names and details come from whoever added to the board. They are escaped for HTML and for the templates of
`gradio.HTML`, which give braces and dollar signs a meaning of their own.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.benchmark.cells import ARROWS
from music_evals.benchmark.preservation.plots import timeline
from music_evals.errors import MusicEvalsError
from music_evals.leaderboard.board import DetailReader
from music_evals.leaderboard.export import rank_text
from music_evals.leaderboard.records import ResultRecord
from music_evals.symbolic import noteseq
from music_evals.ui.widgets.roll_view import context_notes, figure_html, legend_html, pitch_range, roll_svg
from music_evals.ui.widgets.timeline_view import TIMELINE_STYLE

__all__ = [
    "TABLE_SCRIPT",
    "TABLE_STYLE",
    "ItemScore",
    "about_html",
    "cell_html",
    "item_scores",
    "items_html",
    "music_html",
    "safe",
    "table_html",
    "words_html",
]

SHOWN_ITEMS = 400
UNREADABLE = "What the board holds of this item cannot be drawn."
NOTHING = "The board holds nothing that could be shown of this item."

_TEMPLATE_LETTERS = {ord("$"): "&#36;", ord("{"): "&#123;", ord("}"): "&#125;"}


def safe(text: object) -> str:
    """Return text that is text in HTML, in attributes, and in the templates of `gradio.HTML`."""
    return html.escape(str(text), quote=True).translate(_TEMPLATE_LETTERS)


class ItemScore(NamedTuple):
    """The score of one item.

    Attributes
    ----------
    item, group
        Of the record.
    value
        Mean over seeds; for a divergence the feature of the item. NaN is undefined.
    reference
        Feature of the reference, for a divergence; else NaN.

    """

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
        rows.append(
            ItemScore(
                item,
                group,
                float(np.mean(defined)) if defined else math.nan,
                math.nan if reference is None else reference,
            )
        )
    return sorted(rows, key=lambda row: (math.isnan(_merit(record, row)), _merit(record, row), row.item))


def _merit(record: ResultRecord, row: ItemScore) -> float:
    if record.kind == "divergence":
        return -abs(row.value - row.reference)
    return row.value if record.direction == "higher" else -abs(row.value)


def table_html(table: Mapping[str, Any], *, search: str = "", published: bool = True, outside: bool = True) -> str:
    """Return a table whose headings sort it and whose scores can be opened.

    Parameters
    ----------
    table
        From `leaderboard_tables.make_leaderboard`.
    search
        Words that the name of a system must hold, whatever their case.
    published, outside
        Show the rows of papers, and ours that are in no ranking.

    """
    kinds = {"ranked", *(("published",) if published else ()), *(("unranked",) if outside else ())}
    words = search.casefold().split()
    rows = [
        row for row in table["rows"] if row["kind"] in kinds and all(word in row["label"].casefold() for word in words)
    ]
    head = "".join(
        '<th scope="col" aria-sort="none">'
        f'<button type="button" data-sort="{number}" title="{safe(_heading_note(column))}">'
        f"{safe(column['title'])} {ARROWS[column['direction']]}</button></th>"
        for number, column in enumerate(table["columns"], start=1)
    )
    body = "".join(_row_html(table, row) for row in rows)
    none = "" if rows else "<p>No system of this name.</p>"
    return (
        f'<div class="board" tabindex="0" role="region" aria-label="{safe(table["title"])}"><table><thead><tr>'
        f'<th scope="col" aria-sort="none"><button type="button" data-sort="0">system</button></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{none}"
    )


def _heading_note(column: Mapping[str, Any]) -> str:
    words = {"higher": "higher is better", "lower": "lower is better", "zero": "nearer to 0 is better"}
    differs = f"; {column['differs']}" if column["differs"] else ""
    return f"{column['metric']}: {words[column['direction']]}; {column['n_ranked']} systems are ranked{differs}"


def _row_html(table: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    why = f"<small>{safe(row['why'])}</small>" if row["why"] else ""
    who = f"<small>{safe(row['submitter'])}</small>" if row["submitter"] else ""
    cells = "".join(_score_html(row, column, row["cells"].get(column["id"])) for column in table["columns"])
    label = safe(row["label"])
    return f'<tr class="{safe(row["kind"])}"><th scope="row" data-value="{label}">{label}{who}{why}</th>{cells}</tr>'


def _score_html(row: Mapping[str, Any], column: Mapping[str, Any], cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return "<td></td>"
    rank = rank_text(cell)
    told = f"ranks {rank}" if "-" in rank else f"rank {rank}" if rank else ""
    n = f"n {cell['n_defined']}/{cell['n']}" if cell["n"] and cell["n_defined"] < cell["n"] else ""
    small = "".join(f"<small>{safe(line)}</small>" for line in (told, cell["interval"], n) if line)
    value = "" if cell["value"] is None else safe(repr(cell["value"]))
    shown = safe(cell["shown"])
    if cell["record"]:
        name = safe(f"{row['label']}, {column['title']}: {cell['shown']}, show the items")
        shown = f'<button type="button" data-record="{safe(cell["record"])}" aria-label="{name}">{shown}</button>'
    place = "" if not cell["rank"] else f' data-rank="{int(cell["rank"][0])}"'
    return f'<td data-value="{value}"{place}>{shown}{small}</td>'


def about_html(table: Mapping[str, Any]) -> str:
    """Return what a reader of a table should know: notes, why others stand apart, and what a paper's rows are."""
    points = [safe(note) for note in table["notes"]]
    points += [
        f"Not ranked together with <b>{safe(other['title'])}</b>: {safe('; '.join(other['reasons']))}"
        for other in table["apart"]
    ]
    points += [
        f"{safe(column['title'])} has a column of its own: {safe(column['differs'])}"
        for column in table["columns"]
        if column["differs"]
    ]
    told = f"<ul>{''.join(f'<li>{point}</li>' for point in points)}</ul>" if points else ""
    if not table["published"]:
        return told
    reasons = "".join(
        f"<li><b>{safe(name)}</b>: {safe(reason)}</li>" for name, reason in table["published"]["differences"].items()
    )
    return (
        f"{told}<details><summary>Published rows: {safe(table['published']['source'])}; not re-run. Before you compare "
        f"anything with them</summary><ul>{reasons}</ul></details>"
    )


def cell_html(table: Mapping[str, Any], record: ResultRecord) -> str:
    """Return what stands behind a score: its numbers, and the tests against the other systems."""
    row, column = find_cell(table, record.id)
    cell = row["cells"][column["id"]]
    rank = rank_text(cell)
    of = f"ranks {rank} of {column['n_ranked']}" if rank else f"not ranked: {cell['why'] or row['why']}"
    floor = "" if record.floor is None else f", noise floor {record.floor:.4f}"
    facts = f"{cell['shown']} ({cell['interval'] or 'no interval'}), {of}, n {record.n_defined}/{record.n}{floor}"
    tests = [
        test
        for test in table["tests"]
        if test["column"] == column["id"] and row["label"] in {test["a"], test["b"]} and test["p_holm"] is not None
    ]
    tested = "".join(_test_html(test, row["label"]) for test in tests)
    head = "<tr><th>against</th><th>difference</th><th>p, corrected</th><th>items</th></tr>"
    compared = (
        f"<details><summary>{len(tests)} comparisons</summary><table>{head}{tested}</table></details>" if tests else ""
    )
    return f"<h3>{safe(row['label'])}: {safe(column['title'])}</h3><p>{safe(facts)}</p>{compared}"


def _test_html(test: Mapping[str, Any], label: str) -> str:
    other, sign = (test["b"], 1) if test["a"] == label else (test["a"], -1)
    p_value = f"{test['p_holm']:.4f}"
    shown = f"<b>{p_value}</b>" if test["is_significant"] else p_value
    difference = f"{sign * test['difference']:+.4f}"
    return f"<tr><td>{safe(other)}</td><td>{difference}</td><td>{shown}</td><td>{safe(test['n'])}</td></tr>"


def find_cell(table: Mapping[str, Any], record: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return row and column of a record.

    Raises
    ------
    LookupError
        It is not in this table.

    """
    for row in table["rows"]:
        for column in table["columns"]:
            if row["cells"].get(column["id"], {}).get("record") == record:
                return row, column
    raise LookupError(record)


def items_html(record: ResultRecord, scores: Sequence[ItemScore]) -> str:
    """Return the scores of items as a table, the worst first."""
    divergence = record.kind == "divergence"
    head = "<th>item</th><th>group</th>" + ("<th>feature</th><th>reference</th>" if divergence else "<th>score</th>")
    rows = "".join(
        f"<tr><td>{safe(row.item)}</td><td>{safe(row.group)}</td><td>{_value(row.value)}</td>"
        + (f"<td>{_value(row.reference)}</td>" if divergence else "")
        + "</tr>"
        for row in scores[:SHOWN_ITEMS]
    )
    more = f"<p>and {len(scores) - SHOWN_ITEMS} more</p>" if len(scores) > SHOWN_ITEMS else ""
    return (
        f"<details><summary>All {len(scores)} items, the worst first</summary>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}</details>"
    )


def _value(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.4f}"


def music_html(reader: DetailReader, record: ResultRecord, item: str) -> str:
    """Return piano rolls of an item of inpainting, for `roll_view`; empty where the board has none.

    The true middle is drawn first, then what the system wrote with its first seed.
    """
    if record.task != "inpainting":
        return ""
    context = _tokens(reader.content(record.run, item, "", "context"), MUSIB_LAYOUT.n_steps)
    middle = _tokens(reader.content(record.run, item, record.system, "middle"), MUSIB_LAYOUT.middle_steps)
    if context is None:
        return ""
    wholes = {"The true middle": context}
    if middle is not None:
        wholes[record.system] = context.copy()
        wholes[record.system][MUSIB_LAYOUT.middle] = middle
    notes = {name: context_notes(whole, whole[MUSIB_LAYOUT.middle]) for name, whole in wholes.items()}
    pitches = pitch_range([note for found in notes.values() for note in found])
    figures = [
        _escaped_figure(name, roll_svg(notes[name], label=f"{item}, {name}", pitches=pitches), tokens, f"{item}_{name}")
        for name, tokens in wholes.items()
    ]
    return "\n".join([legend_html(note.kind for found in notes.values() for note in found), *figures])


def _escaped_figure(title: str, svg: str, tokens: Tokens, file_name: str) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in title)
    drawn = figure_html(plain, svg, tokens=tokens, file_name=file_name[:80])
    return drawn.translate(_TEMPLATE_LETTERS)


def _tokens(said: Mapping[str, Any] | None, n: int) -> Tokens | None:
    """Return tokens that a board holds; None where they are none."""
    try:
        found = noteseq.check_tokens(np.array(said["tokens"])) if said else None
    except (KeyError, TypeError, ValueError, OverflowError, MusicEvalsError):
        return None
    return found if found is not None and found.shape == (n,) else None


def words_html(reader: DetailReader, record: ResultRecord, item: str) -> str:
    """Return what else the board holds of an item: timelines, remarks, explanations, tags; or that there is nothing."""
    parts: list[str] = []
    for kind, show in (("pair", _pair_html), ("explanation", _explanation_html), ("tags", _tags_html)):
        said = reader.content(record.run, item, record.system, kind)
        if said is not None:
            try:
                parts.append(show(reader, record, said))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                parts.append(f"<p>{UNREADABLE}</p>")
    return "".join(parts) or f"<p>{NOTHING}</p>"


def _pair_html(reader: DetailReader, record: ResultRecord, said: Mapping[str, Any]) -> str:
    names = "".join(
        f"<li>{side}: {safe(said[side]['name'])}, content <code>{safe(said[side]['content'])}</code></li>"
        for side in ("reference", "estimate")
    )
    remarks = "".join(f"<li>{safe(note)}</li>" for note in said["remarks"])
    outlines = [reader.content(record.run, said[side]["content"], "", "outline") for side in ("reference", "estimate")]
    drawn = ""
    if outlines[0] and outlines[1]:
        svg = timeline(outlines[0], outlines[1], label="Beats, chords, sections and melody of both files")
        drawn = f'<div class="timeline-frame" tabindex="0">{svg.translate(_TEMPLATE_LETTERS)}</div>'
    return f"<ul>{names}{remarks}</ul>{drawn}"


def _explanation_html(_: DetailReader, __: ResultRecord, said: Mapping[str, Any]) -> str:
    return _listed("Where points were lost", said["lines"])


def _tags_html(_: DetailReader, __: ResultRecord, said: Mapping[str, Any]) -> str:
    lines = [
        f"{group}, {dimension}: {', '.join(map(str, tags))}"
        for group, dimensions in said["tags"].items()
        for dimension, tags in dimensions.items()
    ]
    return _listed("Tags that the system gave", lines)


def _listed(title: str, lines: Iterable[object]) -> str:
    return f"<h4>{safe(title)}</h4><ul>{''.join(f'<li>{safe(line)}</li>' for line in lines)}</ul>"


TABLE_STYLE: Final = (
    """
h3, h4 { font-weight: 600; margin: .6rem 0 .2rem; } ul { margin: .3rem 0 .3rem 1.2rem; list-style: disc; }
.board { overflow-x: auto; max-height: 40rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .35rem .7rem; text-align: right; vertical-align: top;
  border-bottom: 1px solid var(--border-color-primary); }
th:first-child, td:first-child { text-align: left; }
.board thead th { position: sticky; top: 0; background: var(--background-fill-primary); z-index: 2; }
.board tbody th { position: sticky; left: 0; background: var(--background-fill-primary); min-width: min(10rem, 27vw);
  max-width: 14rem;  overflow-wrap: anywhere; font-weight: 600; }
small { display: block; color: var(--body-text-color-subdued); font-weight: 400; white-space: nowrap; }
tbody th small { white-space: normal; }
button { font: inherit; color: inherit; background: none; border: none; padding: 0; cursor: pointer;
  text-align: inherit; }
thead button::after { content: " ↕"; color: var(--body-text-color-subdued); }
th[aria-sort="ascending"] button::after { content: " ▲"; } th[aria-sort="descending"] button::after { content: " ▼"; }
td button { text-decoration: underline dotted; } button:hover { color: var(--color-accent); }
:focus-visible { outline: 2px solid var(--color-accent); outline-offset: 2px; }
tr.published, tr.unranked { color: var(--body-text-color-subdued); font-style: italic; }
"""
    + TIMELINE_STYLE
)
"""For the component that shows a table."""

TABLE_SCRIPT: Final = """
element.addEventListener("click", event => {
  const cell = event.target.closest("button[data-record]");
  if (cell) { trigger("click", {record: cell.dataset.record}); return; }
  const button = event.target.closest("button[data-sort]");
  if (!button) return;
  const column = +button.dataset.sort, head = button.closest("th"), body = element.querySelector(".board tbody");
  const falling = head.getAttribute("aria-sort") === "ascending";
  element.querySelectorAll(".board thead th").forEach(other => other.setAttribute("aria-sort", "none"));
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const keyed = [...body.rows].map(row => {
    const text = row.cells[column].dataset.value ?? "";
    return {row, key: column === 0 ? text.toLowerCase() : text === "" ? NaN : +text};
  });
  const compare = (a, b) => column === 0 ? (a.key < b.key ? -1 : a.key > b.key ? 1 : 0) : a.key - b.key;
  const isNone = ({key}) => column !== 0 && Number.isNaN(key);
  keyed.sort((a, b) => isNone(a) || isNone(b) ? isNone(a) - isNone(b) : (falling ? -1 : 1) * compare(a, b));
  body.append(...keyed.map(({row}) => row));
});
"""
"""Sorts by a click on a heading, undefined last; a click on a score asks for its items."""
