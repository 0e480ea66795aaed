"""Scores of systems as tables: the same content for a terminal, in Markdown and on a page, for any benchmark.

What is reported is put together once, as blocks; a style says how names, marks and controls look.
"""

from __future__ import annotations

import functools
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from music_evals.benchmark.contents import (
    caveats,
    columns,
    comparisons,
    failures,
    grouped_remarks,
    heading,
    holds_zero,
    is_significant,
    mark,
    n_failures,
    of_few,
    order,
    significant,
    table_of,
    tables,
    unlisted,
    views,
)
from music_evals.benchmark.formats import (
    OUTSIDE_INTERVAL,
    SIGNIFICANCE,
    WHY_OUTSIDE_INTERVAL,
    align,
    counted,
    coverage_note,
    format_difference,
    format_interval,
    format_value,
    is_outside_interval,
    markdown_name,
    markdown_rows,
)
from music_evals.benchmark.results import WHOLE
from music_evals.benchmark.score_table import OUTSIDE

PLANE_AXES = ("success", "preservation")
"""Of a system of ``plane`` in results, across and up."""

LISTED = 50
"""Failures in table.md, and kinds of remarks; results.json holds more."""

MOST_CHARACTERS = 100
"""A table for a terminal has its intervals beside the values, unless it gets wider than this: then below them."""


class Cell(NamedTuple):
    """A score as it is shown."""

    value: str
    mark: str = ""
    """``"best"``; or how it stands to the best baseline: ``"better"``, ``"worse"``, ``"baseline"`` for that itself."""
    spread: str = ""
    """Interval or standard deviation."""
    note: str = ""
    hint: str = ""
    """What a page tells on demand."""


class Row(NamedTuple):
    """A system and its scores."""

    name: str
    role: str
    """That of the system, or ``"published"``."""
    cells: tuple[Cell, ...]
    note: str = ""


class Block(NamedTuple):
    """A table, or points, below a title."""

    title: str
    head: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    points: tuple[str, ...] = ()
    caption: str = ""


class Style(NamedTuple):
    """How a kind of text writes names, sentences and marks."""

    name: Callable[[str], str]
    text: Callable[[str], str]
    marks: Mapping[str, str]
    control: str
    """How rows that are compared with nobody look."""


def _one_line(text: str) -> str:
    return " ".join(text.split())


_SIGNS = {"": "", "better": "+", "worse": "-", "baseline": "="}
TEXT = Style(_one_line, _one_line, {"best": "*", **_SIGNS}, "in brackets")
# no name in a sentence of ours may become a link, a tag or code
_ESCAPE = functools.partial(re.sub, r"([\\`<\[|])", r"\\\1")
MARKDOWN = Style(markdown_name, lambda text: _ESCAPE(_one_line(text)), {"best": "★", **_SIGNS}, 'marked "(control)"')
PAGE = Style(str, str, {"": "", "best": "★", "better": "▲", "worse": "▼", "baseline": "="}, "in grey")


def cell_note(cell: Mapping[str, Any]) -> str:
    """Return what belongs beside a score: the noise floor of a divergence, the items that count where not all do.

    ``only`` stands before their number where so few define the score that its mean may say little of the others.
    """
    floor = f"floor {format_value(cell['null'])}" if "null" in cell else ""
    failed = f", {cell['n_failed']} failed" if cell["n_failed"] else ""
    only = "only " if of_few(cell) else ""
    counts = f"{only}n {cell['n_defined']}/{cell['n']}{failed}" if cell["n_defined"] < cell["n"] else ""
    return ", ".join(filter(None, [floor, counts]))


def summary(results: Mapping[str, Any], name: Callable[[str], str] = str) -> str:
    """Return what was compared, one line for the dataset and one for each system, its `name` written so."""
    dataset, wording = results["dataset"], results["wording"]
    place = " ".join(str(dataset[key]) for key in ("id", "config", "split") if dataset[key])
    systems = [
        f"{name(system)}: {counted(about['n_pairs'], wording['items'])}, "
        f"{counted(about['n_groups'], wording['groups'])}"
        for system, about in results["systems"].items()
        if about["role"] == "system"
    ]
    return "\n".join([f"{place}, {wording['how']}", *systems])


def legend(results: Mapping[str, Any], style: Style = TEXT) -> str:
    """Return how the tables are read."""
    wording, intervals, marks = results["wording"], results["intervals"], style.marks
    directions = {scale["direction"] for scale in results["scales"].values()}
    divergences = any("null" in cell for cells in table_of(results)["scores"].values() for cell in cells.values())
    reported = [
        f"With each score: its {100 * intervals['confidence']:g} % interval, clustered by {intervals['clusters']}"
        + ("; the noise floor of a divergence." if divergences else "."),
        "↑ higher, ↓ lower, →0 nearer to 0 is better.",
        *(["≈ is compared with the reference's own."] if "none" in directions else []),
    ]
    if results.get("best"):
        reported.append(
            f"{marks['best']} best: defined for as many of the items that all systems share as any other, and none is "
            "better on the items that both define."
        )
    if results.get("ranked_by"):
        reported.append(
            f"Ranked by {results['scales'][results['ranked_by']]['title']}; who failed on items comes last."
        )
    if results.get("best_baseline"):
        reported.append(
            f"{marks['better']} better, {marks['worse']} worse than the best baseline of that score "
            f"({marks['baseline']}); paired test by {intervals['clusters']}, Holm-corrected p < {SIGNIFICANCE}. "
            f"{_chosen(results, style)}"
        )
    if any(is_significant(test) and holds_zero(test) for test in comparisons(results)):
        cluster = intervals["clusters"]
        reported.append(
            "Test and interval disagree on a difference whose p is small and whose interval holds 0: the test asks "
            f"whether the two could have been exchanged, {cluster} by {cluster}, the interval how large the "
            "difference is. Take such a difference for likely, not for shown."
        )
    reported.append(wording["explained"])
    every = [cell for _, table in views(results) for cells in table["scores"].values() for cell in cells.values()]
    held = [(cell.get("n_clusters", 0), cell["n_groups"]) for cell in every if cell["low"] is not None]
    compared = {test["metric"] for test in comparisons(results)}
    if few := coverage_note(held, wording["groups"], divergences=divergences, compared=compared):
        reported.append(f"{few[0].upper()}{few[1:]}.")
    if any(map(is_outside_interval, every)):
        reported.append(f"{OUTSIDE_INTERVAL} {WHY_OUTSIDE_INTERVAL}")
    roles = {about["role"] for about in results["systems"].values()}
    if "leaking" in roles:
        reported.append("Leaking systems have seen the reference and are compared with nothing.")
    if "control" in roles:
        reported.append(f"Rows {style.control} are controls. {wording['controls']}")
    return " ".join(filter(None, reported))


def _chosen(results: Mapping[str, Any], style: Style) -> str:
    """Name the best baselines: they were chosen on other items, and need not be the best in the table."""
    titles: dict[str, list[str]] = {}
    for metric, name in results["best_baseline"].items():
        titles.setdefault(name, []).append(results["scales"][metric]["title"])
    chosen = "; ".join(f"{style.name(name)} for {', '.join(metrics)}" for name, metrics in titles.items())
    return f"Best on the validation split, which need not be so here: {chosen}."


def blocks(results: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the tables of scores."""
    for view, table in views(results):
        caption = ""
        if "ranking" in table:
            ranked_by, wording = results["scales"][results["ranked_by"]]["title"], results["wording"]
            counts = f"{counted(table['n_items'], wording['items'])}, {counted(table['n_songs'], wording['groups'])}"
            caption = f"{counts}, ranked by {ranked_by}"
        for title, names in tables(results).items():
            yield _scores(results, table, names, ", ".join(filter(None, [title, view])), caption)
            caption = ""  # it stands above the first of them


def part_blocks(results: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the score that ranks in one table: systems in rows, parts of the items in columns."""
    parts = results.get("parts", {})
    if not parts:
        return
    items = results["wording"]["items"]
    rows = tuple(
        Row(
            system,
            results["systems"][system]["role"],
            tuple(
                Cell(format_value(cell["value"]), spread=format_interval(cell), note=cell_note(cell))
                for cell in (part["scores"][system] for part in parts.values())
            ),
        )
        for system in order(results, table_of(results))
    )
    title = f"{results['scales'][results['ranked_by']]['title']} of parts of the {items}"
    yield Block(title, tuple(f"{name} ({part['n_items']})" for name, part in parts.items()), rows)


def plane_block(results: Mapping[str, Any]) -> Block:
    """Return success and preservation of each system, of results that have a plane, and how it stands to controls."""
    plane, wording = results["plane"], results["wording"]
    verdicts = {(test["system"], test["control"], test["axis"]): test["verdict"] for test in plane["tests"]}
    controls = list(dict.fromkeys(control for _, control, _ in verdicts))
    rows = []
    for name in (name for name in order(results, table_of(results)) if name in plane["systems"]):
        point = plane["systems"][name]
        cells = [Cell(format_value(cell["value"]), "", format_interval(cell)) for cell in map(point.get, PLANE_AXES)]
        is_ranked = point["role"] not in OUTSIDE
        cells += [Cell(("yes" if point["front"] else "no") if is_ranked else ""), Cell(str(point["n"]))]
        cells += [
            Cell(verdicts.get((name, control, "success"), ""), "", verdicts.get((name, control, "preservation"), ""))
            for control in controls
        ]
        rows.append(Row(name, point["role"], tuple(cells)))
    caption = (
        f"Over the {wording['items']} whose success is measured. Preservation is the mean of "
        f"{', '.join(plane['facets'])}, without the scores that an edit was asked to change. On the front: beaten by "
        "no other in both, and its success is told from that of the music unchanged. Against a control, success and "
        f"below it preservation: paired by {wording['groups'].removesuffix('s')}, p < {SIGNIFICANCE} by Holm over "
        f"all {len(plane['tests'])}; undecided where test and interval disagree"
    )
    head = ("Success ↑", "Preservation ↑", "On the front", wording["items"], *(f"Against {name}" for name in controls))
    return Block("Success and preservation", head, tuple(rows), caption=caption)


def facet_blocks(results: Mapping[str, Any]) -> Iterator[Block]:
    """Yield what sums the scores up, where the task has it: the plane, then one score a facet, systems in rows."""
    if "plane" in results:
        yield plane_block(results)
    if "facets" not in results:
        return
    facets, head = results["facets"], []
    for facet, names in facets["metrics"].items():
        n, of = len(names["used"]), len(names["used"]) + len(names["left_out"])
        head.append(f"{facet.capitalize()} ↑" + (f" ({n} of {of})" if n < of else ""))
    others = facets.get("others")
    if others:
        head.append(f"All but {' and '.join(others['intended'])} ↑")
    rows = []
    for system in (name for name in order(results, table_of(results)) if name in facets["scores"]):
        cells = facets["scores"][system]
        held = [*cells.values(), *([others["scores"][system]] if others else [])]
        shown = (Cell(format_value(cell["value"]), "", format_interval(cell), without_value(cell)) for cell in held)
        rows.append(Row(system, results["systems"][system]["role"], tuple(shown)))
    made = "; ".join(
        f"{facet} of {', '.join(results['scales'][name]['title'] for name in names['used']) or 'none'}"
        for facet, names in facets["metrics"].items()
    )
    caption = (
        f"0 is unrelated music, 1 the same music of this run. Means of metrics ({made}), each placed between the means "
        "of both controls and not cut off: the same music is a lesser copy, so that edits may lie above 1 (or below 0)"
    )
    yield Block("By facet, between the controls", tuple(head), tuple(rows), caption=caption)


def without_value(cell: Mapping[str, Any]) -> str:
    """Return the share of a facet that has no value, where there is one."""
    return f"undefined {100 * cell['undefined']:.0f} %" if cell["undefined"] else ""


def _scores(
    results: Mapping[str, Any], table: Mapping[str, Any], names: Sequence[str], title: str = "", caption: str = ""
) -> Block:
    rows = []
    for system in order(results, table):
        cells, about = table["scores"][system], results["systems"][system]
        if cells.keys().isdisjoint(names):
            continue
        # beside the name of a system that failed on some items: [5/6 scored]
        n, n_scored = cells[names[0]]["n"], cells[names[0]].get("n_scored", cells[names[0]]["n"])
        notes = [about.get("note", ""), f"[{n_scored}/{n} scored]" if n_scored < n else ""]
        shown = tuple(_cell(results, table, system, name) for name in names)
        rows.append(Row(system, about["role"], shown, " ".join(filter(None, notes))))
    return Block(title, tuple(heading(results, name) for name in names), tuple(rows), caption=caption)


def _cell(results: Mapping[str, Any], table: Mapping[str, Any], system: str, name: str) -> Cell:
    cell = table["scores"][system].get(name)
    if cell is None:
        return Cell("")
    kind = mark(results, table, system, name)
    hints = [f"between seeds ±{cell['seed_std']:.3f}"] if cell.get("seed_std") is not None else []
    if test := cell.get("test"):
        hints.append(
            f"{test['against']}: difference {format_difference(test)}, p {format_value(test['p_value'])}, corrected "
            f"{format_value(test['p_holm'])}, n {test['n']}"
        )
    return Cell(format_value(cell["value"]), kind, format_interval(cell), cell_note(cell), "; ".join(hints))


def _explanations(results: Mapping[str, Any], style: Style) -> Iterator[Block]:
    """Yield what belongs below the tables of scores, in a text."""
    yield Block("How to read this", points=(legend(results, style),))
    yield Block("Notes", points=tuple(map(style.text, caveats(results))))
    if results.get("comparisons"):
        points = [
            f"{results['scales'][test['metric']]['title']}: {style.name(test['a'])} - {style.name(test['b'])} = "
            f"{format_difference(test)}, p = {test['p_holm']:.4f}, n = {test['n']}"
            for test in significant(results)
        ]
        points = points or ["none"]
        # intervals that leave out 0 although the corrected test finds nothing
        tests = [test for test in comparisons(results) if test["low"] is not None and not is_significant(test)]
        if n := sum(test["low"] > 0 or test["high"] < 0 for test in tests):
            points.append(
                f"{counted(n, 'further differences')} with an interval that leaves out 0: intervals are not corrected "
                "for the number of tests, and few groups allow no small p; results.json has all"
            )
        title = f"Differences with p < {SIGNIFICANCE}, paired by item, swapped by group, Holm-corrected over all "
        yield Block(f"{title}{len(results['comparisons'])} tests", points=tuple(points))
    if results.get("best_baseline"):
        yield _against_baselines(results)


def _against_baselines(results: Mapping[str, Any]) -> Block:
    """Return a table of the differences from the best baseline of each score."""
    table = table_of(results)
    names = [name for name in columns(table) if name in results["best_baseline"]]
    rows = []
    for system in table["ranking"]:
        cells = []
        for name in names:
            kind = mark(results, table, system, name) if name in table["scores"][system] else ""
            test = table["scores"][system].get(name, {}).get("test")
            if not test or test["difference"] is None:
                cells.append(Cell("", kind))
                continue
            interval = format_interval({**test, "value": test["difference"]})
            cells.append(Cell(f"{test['difference']:+.3f}", kind, interval, f"p {format_value(test['p_holm'])}"))
        rows.append(Row(system, results["systems"][system]["role"], tuple(cells)))
    title = "Difference from the best baseline of each score, with its interval, and the corrected p"
    return Block(title, tuple(heading(results, name) for name in names), tuple(rows))


def published_blocks(results: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the published table as the other tables are: the metrics of a facet in columns, systems in rows."""
    published = results["published"]
    shown = False
    for title, names in tables(results).items():
        printed = [name for name in names if any(name in row for row in published["table"].values())]
        if not printed:
            continue
        shown, rows = True, []
        for system in published["table"]:
            sides = [published.get(side, {}).get(system, {}) for side in ("table", "spread", "marks")]
            cells = []
            for value, spread, note in ([side.get(name) for side in sides] for name in printed):
                deviation = "" if spread is None else f"sd {format_value(spread)}"
                cells.append(Cell(format_value(value), spread=deviation, note=note or ""))
            rows.append(Row(system, "published", tuple(cells)))
        yield Block(f"{title}, published", tuple(heading(results, name) for name in printed), tuple(rows))
    if shown:
        yield Block(published["source"], points=tuple(published["differences"].values()))


def _remarks(results: Mapping[str, Any], style: Style) -> Block:
    counts = Counter(note for row in results["notes"] for note in row["notes"])
    counts.update({row["note"]: row["n"] for row in unlisted(results, "notes")})
    points = [
        f"{style.name(note)}{f' and {more} others of this kind' if more else ''} "
        f"({results['wording']['items']}: {count})"
        for note, more, count in grouped_remarks(counts)
    ]
    return Block("Remarks", points=_first(points))


def _failures(results: Mapping[str, Any], style: Style) -> Block:
    points = [
        f"{', '.join(filter(None, [style.name(item), style.name(system), seed, metric]))}: {style.name(error)}"
        for item, system, seed, metric, error in failures(results)
    ]
    return Block("Failures", points=_first(points, n_failures(results)))


def _first(points: Sequence[str], n: int | None = None) -> tuple[str, ...]:
    more = (n or len(points)) - LISTED
    where = "results.json" if n in {None, len(points)} else "the records"
    return (*points[:LISTED], *([f"and {more} more in {where}"] if more > 0 else []))


def text_report(results: Mapping[str, Any], *, published: bool = False) -> str:
    """Return all tables as text for a terminal, one for each facet, then what differs; failures are listed apart."""
    tables = map(text_table, (*facet_blocks(results), *blocks(results)))
    return "\n\n".join([summary(results, TEXT.name), *tables, details_text(results, published=published)])


def details_text(results: Mapping[str, Any], *, published: bool = False) -> str:
    """Return as text for a terminal what stands below the tables of scores."""
    theirs = list(published_blocks(results))
    shown = [*_explanations(results, TEXT), *(theirs if published else ()), _remarks(results, TEXT)]
    parts = []
    for block in shown:
        if block.rows:
            parts.append(text_table(block))
        elif block.points:
            parts.append("\n".join([f"{block.title}:", *(f"- {point}" for point in block.points)]))
    if theirs and not published:
        parts.append("Published results of others are in table.md.")
    return "\n\n".join(parts)


def text_table(block: Block) -> str:
    """Return a table below its title, with its intervals beside the values, or below them where that gets too wide."""
    spreads = zip(*(row.cells for row in block.rows), strict=True)
    widths = [max(len(cell.spread) for cell in column) for column in spreads]
    beside, below = (
        align([["", *block.head], *(line for row in block.rows for line in _text_lines(row, places))])
        for places in (widths, None)
    )
    table = beside if max(map(len, beside.splitlines())) <= MOST_CHARACTERS else below
    return "\n".join(filter(None, [block.title, textwrap.fill(block.caption, MOST_CHARACTERS), table]))


def _text_lines(row: Row, widths: Sequence[int] | None) -> Iterator[list[str]]:
    """Yield the values of a row, with the spreads beside them in columns of these widths or on a line of their own."""
    name = TEXT.name(row.name)
    values = [f"{cell.value}{TEXT.marks[cell.mark] or ' '}" for cell in row.cells]
    spreads, notes = [cell.spread for cell in row.cells], [cell.note for cell in row.cells]
    if widths is not None:
        values = [f"{value} {spread:>{width}}" for value, spread, width in zip(values, spreads, widths, strict=True)]
    label = f"({name})" if row.role == "control" else f"{name} (leaking)" if row.role == "leaking" else name
    yield [" ".join(filter(None, [label, row.note])), *values]
    below = [notes] if widths is not None else [spreads, notes]
    yield from (["", *line] for line in below if any(line))


def markdown_report(results: Mapping[str, Any]) -> str:
    """Return what `text_report` tells as Markdown, with the published results of others and the failures."""
    parts = [summary(results, MARKDOWN.name).replace("\n", "; ")]
    for block in (
        *facet_blocks(results),
        *blocks(results),
        *part_blocks(results),
        *_explanations(results, MARKDOWN),
        *published_blocks(results),
        _remarks(results, MARKDOWN),
        _failures(results, MARKDOWN),
    ):
        if block.rows:
            parts += filter(None, [f"### {block.title}", block.caption, markdown_block(block)])
        elif block.points:
            parts += [f"### {block.title}", "\n".join(f"- {point}" for point in block.points)]
    return "\n\n".join(parts)


def markdown_table(results: Mapping[str, Any], view: str = WHOLE, systems: Collection[str] | None = None) -> str:
    """Return all scores in one table as Markdown: value, mark and interval in each cell."""
    table = results["tables"][view] if "tables" in results else results
    block = _scores(results, table, columns(table))
    rows = tuple(row for row in block.rows if systems is None or row.name in systems)
    return markdown_block(block._replace(rows=rows))


def markdown_block(block: Block) -> str:
    """Return the rows of a block as a Markdown table."""
    rule = ["---", *("---:" for _ in block.head)]
    rows = []
    for row in block.rows:
        role = f"({row.role})" if row.role in {*OUTSIDE, "published"} else ""
        cells = [" ".join(filter(None, [MARKDOWN.name(row.name), role, row.note]))]
        for cell in row.cells:
            value = f"{cell.value} {MARKDOWN.marks[cell.mark]}".rstrip()
            notes = "; ".join(filter(None, (cell.spread, cell.note)))
            cells.append(f"{value} ({notes})" if notes else value)
        rows.append(cells)
    return markdown_rows([["system", *block.head], rule, *rows])
