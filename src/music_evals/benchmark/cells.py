"""Numbers as text: cells, aligned columns, Markdown rows, and values that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = [
    "ARROWS",
    "SIGNIFICANCE",
    "align",
    "counted",
    "format_interval",
    "format_value",
    "markdown_name",
    "markdown_rows",
    "plain",
]

SIGNIFICANCE = 0.05
"""Corrected p-values below it are marked."""

ARROWS = {"higher": "↑", "lower": "↓", "zero": "→0"}
"""Direction -> its arrow where the page is Unicode."""


def plain(value: Any) -> Any:
    """Replace what JSON cannot hold: NaN by None, the infinities by "inf" and "-inf"."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(float(value))
    return value


def format_value(value: float | str | None) -> str:
    """Return a score with three decimals; ``n/a`` for an undefined one."""
    if value is None or value != value:  # noqa: PLR0124 (NaN is not itself)
        return "n/a"
    return value if isinstance(value, str) else f"{round(value, 3) + 0.0:.3f}"  # never -0.000


def format_interval(cell: Mapping[str, Any]) -> str:
    """Return ``low..high``, empty where there is no interval."""
    if cell["low"] is None or cell["high"] is None:
        return ""
    return f"{format_value(cell['low'])}..{format_value(cell['high'])}"


def counted(n: int, plural: str) -> str:
    """Return a number and what it counts: ``1 text``, ``2 texts``."""
    return f"{n} {plural.removesuffix('s') if n == 1 else plural}"


def align(lines: Sequence[Sequence[str]]) -> str:
    """Lay rows of cells out in columns, the first to the left and the others to the right."""
    widths = [max(len(row[column]) for row in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in lines
    )


def markdown_name(name: str) -> str:
    """Return a name as code in a cell: nothing in it may end the cell, the line or the code."""
    return "`" + " ".join(name.split()).replace("|", r"\|").replace("`", "'") + "`"


def markdown_rows(lines: Iterable[Sequence[str]]) -> str:
    """Return rows of cells as the rows of a Markdown table, the head and its rule among them."""
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)
