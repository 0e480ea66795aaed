"""Scores of systems as text: the same content for a terminal and in Markdown, for any benchmark of `score_results`.

What is told is put together once, as blocks; a style says how names, marks and controls look.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from music_evals.benchmark.cells import (
    ARROWS,
    SIGNIFICANCE,
    align,
    counted,
    format_interval,
    format_value,
    markdown_name,
    markdown_rows,
)
from music_evals.benchmark.manifests import some

__all__ = [
    "FEW_GROUPS",
    "cautions",
    "cell_note",
    "heading",
    "legend",
    "markdown_report",
    "significant",
    "summary",
    "tables",
    "text_report",
    "undefined_systems",
]

FEW_GROUPS = 10
"""From fewer groups than this an interval is noticeably too narrow; see `stats.bootstrap_mean`."""

LISTED = 50
"""Failures in table.md, and kinds of remarks; results.json holds all."""

MOST_REASONS = 3
"""Why a score is undefined, in a note."""

MOST_COLUMNS = 7
"""Scores of one facet that are more than this are told in several tables of nearly equal widths."""

MOST_CHARACTERS = 100
"""A table for a terminal has its intervals beside the values, unless it gets wider than this: then below them."""


class _Cell(NamedTuple):
    value: str
    best: bool = False
    spread: str = ""
    """Interval or standard deviation."""
    note: str = ""


class _Row(NamedTuple):
    name: str
    role: str
    """``"system"``, ``"control"`` or ``"published"``."""
    cells: tuple[_Cell, ...]


class _Block(NamedTuple):
    """A table, or points, below a title."""

    title: str
    head: tuple[str, ...] = ()
    rows: tuple[_Row, ...] = ()
    points: tuple[str, ...] = ()


class _Style(NamedTuple):
    name: Callable[[str], str]
    text: Callable[[str], str]
    best: str
    control: str


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    """Return a sentence of ours with names in it: none of them may become a link, a tag or code."""
    return re.sub(r"([\\`<\[|])", r"\\\1", _one_line(text))


_TEXT = _Style(_one_line, _one_line, "*", "in brackets")
_MARKDOWN = _Style(markdown_name, _escaped, "★", 'marked "(control)"')


def tables(results: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return title -> columns of the tables: the metrics of each facet, and in a table of their own its companions."""
    found: dict[str, list[str]] = {}
    for name, scale in results["scales"].items():
        title = scale["facet"].capitalize() + (", companions" if scale["companion"] else "")
        found.setdefault(title, []).append(name)
    order = list(dict.fromkeys(title.partition(",")[0] for title in found))
    by_facet = sorted(found.items(), key=lambda row: order.index(row[0].partition(",")[0]))
    return {part: columns for title, names in by_facet for part, columns in _parts(title, names)}


def _parts(title: str, names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    n_parts = -(-len(names) // MOST_COLUMNS)
    width = -(-len(names) // n_parts)
    for part in range(n_parts):
        shown = f"{title}, {part + 1} of {n_parts}" if n_parts > 1 else title
        yield shown, list(names[part * width : (part + 1) * width])


def heading(results: Mapping[str, Any], name: str) -> str:
    """Return title and direction of a metric."""
    scale = results["scales"][name]
    return f"{scale['title']} {ARROWS[scale['direction']]}"


def cell_note(cell: Mapping[str, Any]) -> str:
    """Return how many pairs count, where not all do."""
    failed = f", {cell['n_failed']} failed" if cell["n_failed"] else ""
    return f"n {cell['n_defined']}/{cell['n']}{failed}" if cell["n_defined"] < cell["n"] else ""


def summary(results: Mapping[str, Any], name: Callable[[str], str] = str) -> str:
    """Return what was compared, one line for the dataset and one for each system, its `name` written so."""
    dataset = results["dataset"]
    place = " ".join(str(dataset[key]) for key in ("id", "config", "split") if dataset[key])
    systems = [
        f"{name(system)}: {counted(about['n_pairs'], results['wording']['items'])}, "
        f"{counted(about['n_groups'], 'groups')}"
        for system, about in results["systems"].items()
        if about["role"] == "system"
    ]
    return "\n".join([f"{place}, {results['wording']['how']}", *systems])


def legend(results: Mapping[str, Any], *, best: str = "*", control: str = "in brackets") -> str:
    """Return how the tables are read, where `best` marks the best system and controls are shown as `control` says."""
    confidence = f"{100 * results['intervals']['confidence']:g} %"
    text = (
        f"With each score: its {confidence} interval, clustered by group. ↑ higher, ↓ lower, →0 nearer to 0 is better."
    )
    if results["best"]:
        text += (
            f" {best} best: defined for as many of the items that all systems share as any other, and none is better "
            "on the items that both define."
        )
    if any(about["role"] == "control" for about in results["systems"].values()):
        text += f" Rows {control} are controls. {results['wording']['controls']}"
    return text


def cautions(results: Mapping[str, Any]) -> list[str]:
    """Return what a reader of these results should know before using them, a sentence each."""
    return [
        *results["wording"].get("on_remarks", ()),
        *_on_undefined(results),
        *_on_systems(results),
        *_on_groups(results),
        *results["wording"]["on_controls"],
        *_on_remarks(results),
    ]


def undefined_systems(results: Mapping[str, Any]) -> list[str]:
    """Return the systems without a single score that is defined."""
    return [
        system
        for system, about in results["systems"].items()
        if about["role"] == "system" and not any(cell["n_defined"] for cell in results["scores"][system].values())
    ]


def _on_undefined(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield why, for each system, scores that none of its items defines are undefined, with the reasons counted."""
    items = results["wording"]["items"]
    found: dict[tuple[str, str], Counter[str]] = {}
    for row in results["undefined"]:
        found.setdefault((row["system"], row["metric"]), Counter())[row["reason"]] += 1
    told: dict[tuple[str, str], list[str]] = {}
    for (system, metric), reasons in found.items():
        if results["systems"][system]["role"] == "system" and not results["scores"][system][metric]["n_defined"]:
            why = "; ".join(f"{reason} ({counted(n, items)})" for reason, n in reasons.most_common(MOST_REASONS))
            told.setdefault((system, why), []).append(results["scales"][metric]["title"])
    for (system, why), titles in told.items():
        every = " (nothing at all is defined)" if system in undefined_systems(results) else ""
        yield f"{system} has no {some(list(dict.fromkeys(titles)))}{every}: {why}"


def _on_systems(results: Mapping[str, Any]) -> Iterator[str]:
    judged = [name for name, about in results["systems"].items() if about["role"] == "system"]
    if len(judged) < 2:
        return
    if not results["n_shared"]:
        tested = "" if results["comparisons"] else " or tested"
        yield f"there is no item that all systems share: nothing is marked best{tested}"
        return
    differing = [
        results["scales"][name]["title"]
        for name in results["scales"]
        if len({results["scores"][system][name]["n_defined"] for system in judged}) > 1
    ]
    if differing:
        yield (
            "the systems define different numbers of items, so that their means are over different items: "
            + ("all scores" if len(differing) == len(results["scales"]) else "; ".join(differing))
        )


def _on_groups(results: Mapping[str, Any]) -> Iterator[str]:
    least = {
        system: [cell["n_groups"] for cell in cells.values() if cell["n_defined"]]
        for system, cells in results["scores"].items()
    }
    few = {name: min(n for n in counts if n > 1) for name, counts in least.items() if any(n > 1 for n in counts)}
    shown = [f"{name} ({n})" for name, n in few.items() if n < FEW_GROUPS]
    if shown:
        yield (
            f"intervals from fewer than {FEW_GROUPS} groups are too narrow (simulated, a nominal 95 % covers 82 % with "
            f"5 groups, 90 % with 10): {some(shown)}"
        )
    alone = [name for name, counts in least.items() if 1 in counts]
    if alone:
        yield f"one group says nothing of a second, so a score that only one defines has no interval: {some(alone)}"


def _on_remarks(results: Mapping[str, Any]) -> Iterator[str]:
    if results["notes"]:
        what = "{items} with remarks, such as {remarks}".format(**results["wording"])
        yield f"{what}: {len(results['notes'])}; results.json has them all"


def significant(results: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tests whose corrected p-value is small."""
    return [test for test in results["comparisons"] if test["p_holm"] is not None and test["p_holm"] < SIGNIFICANCE]


def _blocks(results: Mapping[str, Any], style: _Style, *, published: bool) -> Iterator[_Block]:
    """Yield all that is told, but what failed."""
    for title, names in tables(results).items():
        rows = tuple(
            _Row(
                system,
                about["role"],
                tuple(
                    _scored(results["scores"][system][name], system in results["best"].get(name, ())) for name in names
                ),
            )
            for system, about in results["systems"].items()
        )
        yield _Block(title, tuple(heading(results, name) for name in names), rows)
    yield _Block("How to read this", points=(legend(results, best=style.best, control=style.control),))
    yield _Block("Notes", points=tuple(map(style.text, cautions(results))))
    yield _differences(results, style)
    if published:
        yield from _published(results)
    yield _remarks(results, style)


def _scored(cell: Mapping[str, Any], best: bool) -> _Cell:  # noqa: FBT001
    return _Cell(format_value(cell["value"]), best, format_interval(cell), cell_note(cell))


def _differences(results: Mapping[str, Any], style: _Style) -> _Block:
    if not results["comparisons"]:
        return _Block("")
    found = [
        f"{results['scales'][test['metric']]['title']}: {style.name(test['a'])} - {style.name(test['b'])} = "
        f"{test['difference']:+.3f}, p = {test['p_holm']:.4f}, n = {test['n']}"
        for test in significant(results)
    ]
    title = f"Differences with p < {SIGNIFICANCE}, paired by item, swapped by group, Holm-corrected over all "
    return _Block(f"{title}{len(results['comparisons'])} tests", points=tuple(found or ["none"]))


def _published(results: Mapping[str, Any]) -> Iterator[_Block]:
    """Yield the published table as the other tables are: the metrics of a facet in columns, systems in rows."""
    table, spread = results["published"]["table"], results["published"].get("spread", {})
    shown = False
    for title, names in tables(results).items():
        printed = [name for name in names if any(name in row for row in table.values())]
        if printed:
            shown = True
            rows = tuple(
                _Row(system, "published", tuple(_printed(row, spread.get(system, {}), name) for name in printed))
                for system, row in table.items()
            )
            yield _Block(f"{title}, published", tuple(heading(results, name) for name in printed), rows)
    if shown:
        yield _Block(results["published"]["source"], points=tuple(results["published"]["differences"].values()))


def _printed(row: Mapping[str, float], spread: Mapping[str, float], name: str) -> _Cell:
    return _Cell(format_value(row.get(name)), spread=f"sd {format_value(spread[name])}" if name in spread else "")


def _remarks(results: Mapping[str, Any], style: _Style) -> _Block:
    counts = Counter(note for row in results["notes"] for note in row["notes"])
    points = [
        f"{style.name(note)} ({results['wording']['items']}: {count})"
        for note, count in sorted(counts.items(), key=lambda found: -found[1])
    ]
    return _Block("Remarks", points=_first(points))


def _failures(results: Mapping[str, Any], style: _Style) -> _Block:
    points = [
        f"{style.name(row['item'])}, {style.name(row['system'])}, {row['metric'] or 'all scores'}: "
        + style.name(row["error"])
        for row in results["failures"]
    ]
    return _Block("Failures", points=_first(points))


def _first(points: Sequence[str]) -> tuple[str, ...]:
    more = [f"and {len(points) - LISTED} more in results.json"] if len(points) > LISTED else []
    return (*points[:LISTED], *more)


def text_report(results: Mapping[str, Any], *, published: bool = False) -> str:
    """Return all tables as text for a terminal, one for each facet, then what differs; failures are listed apart.

    Parameters
    ----------
    results
        The content of results.json.
    published
        Add the published results of others, which `markdown_report` always has.

    """
    parts = [summary(results, _TEXT.name)]
    for block in _blocks(results, _TEXT, published=published):
        if block.rows:
            parts.append(f"{block.title}\n{_text_table(block)}")
        elif block.points:
            parts.append("\n".join([f"{block.title}:", *(f"- {point}" for point in block.points)]))
    if not published and any(block.rows for block in _published(results)):
        parts.append("Published results of others are in table.md.")
    return "\n\n".join(parts)


def _text_table(block: _Block) -> str:
    """Return a table with its intervals beside the values, or below them where that gets too wide."""
    columns = zip(*(row.cells for row in block.rows), strict=True)
    widths = [max(len(cell.spread) for cell in column) for column in columns]
    beside, below = (
        align([["", *block.head], *(line for row in block.rows for line in _text_lines(row, places))])
        for places in (widths, None)
    )
    return beside if max(map(len, beside.splitlines())) <= MOST_CHARACTERS else below


def _text_lines(row: _Row, widths: Sequence[int] | None) -> Iterator[list[str]]:
    """Yield the values of a row, with the spreads beside them in columns of these widths or on a line of their own."""
    name = _TEXT.name(row.name)
    values = [f"{cell.value}{_TEXT.best if cell.best else ' '}" for cell in row.cells]
    spreads, notes = [cell.spread for cell in row.cells], [cell.note for cell in row.cells]
    if widths is not None:
        values = [f"{value} {spread:>{width}}" for value, spread, width in zip(values, spreads, widths, strict=True)]
    yield [f"({name})" if row.role == "control" else name, *values]
    below = [notes] if widths is not None else [spreads, notes]
    yield from (["", *line] for line in below if any(line))


def markdown_report(results: Mapping[str, Any]) -> str:
    """Return what `text_report` tells as Markdown, with the published results of others and the failures."""
    parts = [summary(results, _MARKDOWN.name).replace("\n", "; ")]
    for block in (*_blocks(results, _MARKDOWN, published=True), _failures(results, _MARKDOWN)):
        if block.rows:
            rule = ["---", *("---:" for _ in block.head)]
            rows = [[_markdown_label(row), *map(_markdown_cell, row.cells)] for row in block.rows]
            parts += [f"### {block.title}", markdown_rows([["system", *block.head], rule, *rows])]
        elif block.points:
            parts += [f"### {block.title}", "\n".join(f"- {point}" for point in block.points)]
    return "\n\n".join(parts)


def _markdown_label(row: _Row) -> str:
    return _MARKDOWN.name(row.name) + ("" if row.role == "system" else f" ({row.role})")


def _markdown_cell(cell: _Cell) -> str:
    value = f"{cell.value} {_MARKDOWN.best}" if cell.best else cell.value
    notes = "; ".join(filter(None, (cell.spread, cell.note)))
    return f"{value} ({notes})" if notes else value
