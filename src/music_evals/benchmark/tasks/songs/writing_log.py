"""What it took to write: seconds, tokens and cost of every text, and their sums."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from music_evals.benchmark.formats import Section, align, markdown_name, markdown_rows, render
from music_evals.csv_files import csv_text
from music_evals.errors import InvalidInputError

__all__ = ["COLUMNS", "Prices", "html_section", "log_csv", "log_rows", "markdown_section", "text_section", "totals"]

COLUMNS = ("system", "seed", "item", "seconds", "prompt_tokens", "completion_tokens", "cost", "cut_off", "error")

Row = Mapping[str, Any]


class Prices(NamedTuple):
    """What a million tokens cost, in the currency of the bill; None where that is not known."""

    read: float | None = None
    written: float | None = None

    def cost(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """Return what a text cost; None without both prices and both numbers of tokens.

        Examples
        --------
        >>> Prices(2.0, 10.0).cost(1500, 300)
        0.006

        """
        if self.read is None or self.written is None or prompt_tokens is None or completion_tokens is None:
            return None
        return (self.read * prompt_tokens + self.written * completion_tokens) / 1e6

    def check(self) -> None:
        """Raise for a price that is not a number of at least 0."""
        if (self.read is None) != (self.written is None):
            raise InvalidInputError(
                "a price of what is read and one of what is written go together; a free direction has a price of 0"
            )
        for value in self:
            if value is not None and not 0 <= value < math.inf:
                raise InvalidInputError(f"a price must be at least 0 and finite, got {value}")


def log_rows(generations: Iterable[Row], prices: Mapping[str, Prices]) -> list[dict[str, Any]]:
    """Return one row a generation, with the names of `COLUMNS`."""
    return [
        {
            "system": row["system"],
            "seed": row["seed"],
            "item": row["item"],
            "seconds": row["seconds"],
            "prompt_tokens": row.get("prompt_tokens"),
            "completion_tokens": row.get("completion_tokens"),
            "cost": prices[row["system"]].cost(row.get("prompt_tokens"), row.get("completion_tokens")),
            "cut_off": row.get("cut_off"),
            "error": row.get("error"),
        }
        for row in generations
    ]


def log_csv(rows: Iterable[Row]) -> str:
    """Return the log as CSV; what is not known is an empty field."""
    return csv_text(COLUMNS, rows)


def totals(rows: Sequence[Row], attempts: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """Return system -> what it took: seconds of all attempts; tokens and cost of texts where they are known."""
    seconds: dict[str, float] = {}
    for row in attempts:
        seconds[row["system"]] = seconds.get(row["system"], 0.0) + row["seconds"]
    by_system: dict[str, dict[str, Any]] = {}
    for system in dict.fromkeys(row["system"] for row in rows):
        own = [row for row in rows if row["system"] == system]
        read, written, cost = (_known(own, name) for name in ("prompt_tokens", "completion_tokens", "cost"))
        by_system[system] = {
            "n_texts": sum(row["error"] is None for row in own),
            "n_failed": sum(row["error"] is not None for row in own),
            "n_cut_off": sum(row["cut_off"] is True for row in own),
            "seconds": seconds[system],
            "prompt_tokens": sum(read) if read else None,
            "completion_tokens": sum(written) if written else None,
            "n_with_tokens": len(written),
            "cost": math.fsum(cost) if cost else None,
            "n_with_cost": len(cost),
        }
    return by_system


def _known(rows: Iterable[Row], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


_HEAD = ("system", "texts", "failed", "cut off", "seconds", "tokens read", "tokens written", "cost")
_INTRO = (
    "Seconds are those of all requests, one after the other; cut off are texts that ended at the limit of tokens, "
    "where the model says so. Tokens and cost are summed where the model tells them; the cost is that of the texts, "
    "by the prices given."
)


def _cells(sums: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    return [
        [
            system,
            str(row["n_texts"]),
            str(row["n_failed"]),
            str(row["n_cut_off"]),
            f"{row['seconds']:.1f}",
            *(_counted(row, name) for name in ("prompt_tokens", "completion_tokens")),
            "n/a" if row["cost"] is None else f"{row['cost']:.4f}{_part(row, 'n_with_cost')}",
        ]
        for system, row in sums.items()
    ]


def _counted(row: Mapping[str, Any], name: str) -> str:
    return "n/a" if row[name] is None else f"{row[name]}{_part(row, 'n_with_tokens')}"


def _part(row: Mapping[str, Any], name: str) -> str:
    """Return how many texts a sum is over, where not all are in it."""
    return f" (of {row[name]})" if row[name] < row["n_texts"] else ""


def text_section(sums: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the sums for a terminal."""
    return f"What it took\n{align([list(_HEAD), *_cells(sums)])}"


def markdown_section(sums: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the sums in Markdown."""
    rows = [[markdown_name(cells[0]), *cells[1:]] for cells in _cells(sums)]
    table = markdown_rows([list(_HEAD), ["---", *("---:" for _ in _HEAD[1:])], *rows])
    return f"### What it took\n\n{_INTRO}\n\n{table}"


def html_section(sums: Mapping[str, Mapping[str, Any]]) -> Section:
    """Return the sums for a page."""
    rows = _cells(sums)
    page = render("music_evals.benchmark.tasks.songs", "took.html", intro=_INTRO, head=_HEAD, rows=rows)
    return Section("What it took", 200 + 45 * len(rows), page)
