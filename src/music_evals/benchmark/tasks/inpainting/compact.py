"""A table of a run in the few columns that a README has room for: values and marks, and one interval a row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from music_evals.benchmark.contents import heading, mark, order
from music_evals.benchmark.formats import markdown_rows
from music_evals.benchmark.tables import MARKDOWN
from music_evals.benchmark.tasks.inpainting.task import HEADINGS

__all__ = ["compact_table"]


def compact_table(
    results: Mapping[str, Any],
    table: Mapping[str, Any],
    *,
    sizes: Mapping[str, str] | None = None,
    without: Collection[str] = (),
) -> str:
    """Return a table of a run as Markdown; what stands outside of the ranking is in italics.

    Parameters
    ----------
    results
        Content of results.json.
    table
        One of its tables, such as that of all windows.
    sizes
        System -> its size in words, for a column beside the names; None leaves that column out.
    without
        Scores to leave out.

    """
    held = {name for cells in table["scores"].values() for name in cells}
    metrics = [name for name in HEADINGS if name in held and name not in without]
    head = [heading(results, name) for name in metrics]
    about = [] if sizes is None else ["size"]
    lines = [["system", *about, *head], ["---", *("---" for _ in about), *("---:" for _ in head)]]
    for system in order(results, table):
        label = f"`{system}`" if system in table["ranking"] else f"*`{system}`*"
        size = [] if sizes is None else [sizes.get(system, "")]
        lines.append([label, *size, *(_cell(results, table, system, name) for name in metrics)])
    return markdown_rows(lines)


def _cell(results: Mapping[str, Any], table: Mapping[str, Any], system: str, metric: str) -> str:
    """Return value and mark, with the interval of the score that ranks and the noise floor of a divergence."""
    cell = table["scores"][system].get(metric)
    if cell is None:
        return ""
    if cell["value"] is None:
        return f"n/a ({cell['n_defined']}/{cell['n']})"
    text = f"{cell['value']:.3f}{MARKDOWN.marks[mark(results, table, system, metric)]}"
    if metric == results["ranked_by"] and cell["low"] is not None:
        return f"{text} ({cell['low']:.3f} to {cell['high']:.3f})"
    return f"{text} (floor {cell['null']:.3f})" if cell.get("null") is not None else text
