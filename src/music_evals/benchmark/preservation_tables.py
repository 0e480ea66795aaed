"""Results of the preservation benchmark as text: a table for each facet, in a terminal or in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from music_evals.benchmark.pairs import CEILING, UNRELATED
from music_evals.benchmark.tables import (
    ARROWS,
    SIGNIFICANCE,
    align,
    format_interval,
    format_value,
    markdown_name,
    markdown_rows,
)

__all__ = [
    "CONTROLS_EXPLAINED",
    "cell_note",
    "heading",
    "legend",
    "markdown_report",
    "significant",
    "summary",
    "tables",
    "text_report",
]

CONTROLS_EXPLAINED = (
    f"{CEILING}: each original against itself, 6 dB softer with 16-bit samples (scores: written as MIDI), which is the "
    f"best that an edit can reach. {UNRELATED}: originals of different groups, which is what chance gives."
)


def tables(results: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return title -> columns of the tables: the metrics of each facet, and in a table of their own its companions."""
    found: dict[str, list[str]] = {}
    for name, scale in results["scales"].items():
        title = scale["facet"].capitalize() + (", companions" if scale["companion"] else "")
        found.setdefault(title, []).append(name)
    order = list(dict.fromkeys(title.partition(",")[0] for title in found))
    return dict(sorted(found.items(), key=lambda row: order.index(row[0].partition(",")[0])))


def heading(results: Mapping[str, Any], name: str) -> str:
    """Return title and direction of a metric."""
    scale = results["scales"][name]
    return f"{scale['title']} {ARROWS[scale['direction']]}"


def cell_note(cell: Mapping[str, Any]) -> str:
    """Return how many pairs count, where not all do."""
    failed = f", {cell['n_failed']} failed" if cell["n_failed"] else ""
    return f"n {cell['n_defined']}/{cell['n']}{failed}" if cell["n_defined"] < cell["n"] else ""


def text_report(results: Mapping[str, Any]) -> str:
    """Return all tables as text for a terminal, one for each facet, then what differs between systems."""
    parts = [summary(results)]
    for title, names in tables(results).items():
        lines = [["", *(heading(results, name) for name in names)]]
        for system, about in results["systems"].items():
            cells = [results["scores"][system][name] for name in names]
            label = f"({system})" if about["role"] == "control" else system
            marked = [_marked(results, system, name, cell) for name, cell in zip(names, cells, strict=True)]
            below = [[format_interval(cell) for cell in cells], [cell_note(cell) for cell in cells]]
            lines += [[label, *marked], *(["", *line] for line in below if any(line))]
        parts.append(f"{title}\n{align(lines)}")
    parts += [legend(results), *_differences(results), _published_text(results)]
    return "\n\n".join(filter(None, parts))


def summary(results: Mapping[str, Any]) -> str:
    """Return what was compared, one line for the dataset and one for each system."""
    dataset = results["dataset"]
    place = " ".join(str(dataset[key]) for key in ("id", "config", "split") if dataset[key])
    systems = [
        f"{name}: {about['n_pairs']} pairs, {about['n_groups']} groups"
        for name, about in results["systems"].items()
        if about["role"] == "system"
    ]
    return "\n".join([f"{place}, variant {results['variant']}", *systems])


def _marked(results: Mapping[str, Any], system: str, name: str, cell: Mapping[str, Any]) -> str:
    return f"{format_value(cell['value'])}{'*' if results['best'].get(name) == system else ' '}"


def legend(results: Mapping[str, Any], *, best: str = "*", control: str = "in brackets") -> str:
    """Return how the tables are read, where `best` marks the best system and controls are shown as `control` says."""
    confidence = f"{100 * results['intervals']['confidence']:g} %"
    text = (
        f"Below each score its {confidence} interval, clustered by group. ↑ higher, ↓ lower, →0 nearer to 0 is better."
    )
    if results["best"]:
        text += f" {best} best of the systems that failed least."
    if any(about["role"] == "control" for about in results["systems"].values()):
        text += f" Rows {control} are controls. {CONTROLS_EXPLAINED}"
    return text


def significant(results: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tests whose corrected p-value is small."""
    return [test for test in results["comparisons"] if test["p_holm"] is not None and test["p_holm"] < SIGNIFICANCE]


def _differences(results: Mapping[str, Any]) -> list[str]:
    if not results["comparisons"]:
        return []
    found = [
        f"- {results['scales'][test['metric']]['title']}: {test['a']} - {test['b']} = {test['difference']:+.3f}, "
        f"p = {test['p_holm']:.4f}, n = {test['n']}"
        for test in significant(results)
    ]
    head = f"Differences with p < {SIGNIFICANCE}, paired by item, swapped by group, Holm-corrected over all "
    return ["\n".join([f"{head}{len(results['comparisons'])} tests:", *(found or ["- none"])])]


def _published_text(results: Mapping[str, Any]) -> str:
    published = results["published"]
    names = [name for name in results["scales"] if any(name in row for row in published["table"].values())]
    if not names:
        return ""
    lines = [["", *published["table"]]]
    lines += [[name, *(format_value(row[name]) for row in published["table"].values())] for name in names]
    return f"Published ({published['source']}):\n{align(lines)}\n{published['differences']['systems']}"


def markdown_report(results: Mapping[str, Any]) -> str:
    """Return all tables as Markdown, one for each facet."""
    parts = [summary(results).replace("\n", "; ")]
    for title, names in tables(results).items():
        lines = [["system", *(heading(results, name) for name in names)], ["---", *("---:" for _ in names)]]
        for system, about in results["systems"].items():
            label = markdown_name(system) + (" (control)" if about["role"] == "control" else "")
            lines.append([label, *(_markdown_cell(results, system, name) for name in names)])
        parts += [f"### {title}", markdown_rows(lines)]
    return "\n\n".join([*parts, legend(results, best="★", control="so called")])


def _markdown_cell(results: Mapping[str, Any], system: str, name: str) -> str:
    cell = results["scores"][system][name]
    value = format_value(cell["value"]) + (" ★" if results["best"].get(name) == system else "")
    beside = "; ".join(filter(None, [format_interval(cell), cell_note(cell)]))
    return f"{value} ({beside})" if beside else value
