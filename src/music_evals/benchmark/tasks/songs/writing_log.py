"""What it took to write: seconds, tokens and cost of every text, their sums, and a ceiling of the cost.

The ceiling: what the next answers could cost at most is set aside before they are asked for. The most that an answer
can cost is its limit of tokens at the price of writing, and one token for each byte of the prompt, with `OVERHEAD` for
the template around it, at the price of reading: a tokenizer of bytes never makes more. What is known to have been used
takes the place of that when the answer is there. An answer that was lost, or that does not tell its tokens, counts with
the most.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from music_evals.benchmark.formats import Section, align, markdown_name, markdown_rows, render
from music_evals.errors import CostCeilingError, InvalidInputError
from music_evals.protocols import Written

OVERHEAD: Final = 64
"""Tokens that a chat template may add to a prompt."""

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


class Budget:
    """What may still be spent; several threads may ask at once."""

    def __init__(self, ceiling: float) -> None:
        if not 0 < ceiling < float("inf"):
            raise InvalidInputError(f"the ceiling of the cost must be above 0 and finite, got {ceiling}")
        self.ceiling = ceiling
        self.spent = 0.0  # with what is set aside
        self._lock = threading.Lock()

    def reserve(self, most: float) -> None:
        """Set aside what is about to be spent, or raise `CostCeilingError`."""
        with self._lock:
            if self.spent + most > self.ceiling:
                raise CostCeilingError(
                    f"stopped before the ceiling of {self.ceiling:g}: {self.spent:.4f} may be spent already, and the "
                    f"next answers could cost up to {most:.4f}; what was answered is kept: raise the ceiling and give "
                    "the same command again"
                )
            self.spent += most

    def settle(self, reserved: float, cost: float) -> None:
        """Put what was spent in the place of what was set aside."""
        with self._lock:
            self.spent += cost - reserved


class Metered:
    """A writer whose answers are paid for out of a budget; all else is the writer's own."""

    def __init__(self, writer: Any, prices: Prices, budget: Budget) -> None:
        if prices.read is None or prices.written is None:
            raise InvalidInputError(
                f"a ceiling of the cost needs the prices of {writer.name}; a free one has the prices 0 and 0"
            )
        if writer.max_new_tokens is None:
            raise InvalidInputError(f"a ceiling of the cost needs a limit of tokens for {writer.name}: `max_tokens`")
        self._writer, self._prices, self._budget = writer, prices, budget

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    def write(self, prompts: Sequence[str], *, seed: int) -> list[Written]:
        """Return one answer a prompt; what could cost too much is not asked for: `CostCeilingError`."""
        self.reserve(prompts)
        written: list[Written] = self._writer.write(prompts, seed=seed)
        for prompt, answer in zip(prompts, written, strict=True):
            self._budget.settle(self.most(prompt), self._cost(prompt, answer._asdict()))
        return written

    def reserve(self, prompts: Sequence[str]) -> None:
        """Set aside what the answers to these prompts can cost at most."""
        self._budget.reserve(sum(map(self.most, prompts)))

    def most(self, prompt: str) -> float:
        """Return the most that the answer to a prompt can cost."""
        cost = self._prices.cost(len(prompt.encode()) + OVERHEAD, self._writer.max_new_tokens)
        assert cost is not None  # both prices are known
        return cost

    def count(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Count answers that are there already, good ones and lost ones."""
        for row in rows:
            self._budget.settle(0.0, self._cost(row["prompt"], row))

    def _cost(self, prompt: str, row: Mapping[str, Any]) -> float:
        known = self._prices.cost(row.get("prompt_tokens"), row.get("completion_tokens"))
        return self.most(prompt) if known is None else known


def log_rows(generations: Iterable[Row], prices: Mapping[str, Prices]) -> list[dict[str, Any]]:
    """Return one row a generation, with the names of `COLUMNS`; what is not known is None."""
    rows = []
    for row in generations:
        cost = prices[row["system"]].cost(row.get("prompt_tokens"), row.get("completion_tokens"))
        rows.append({name: cost if name == "cost" else row.get(name) for name in COLUMNS})
    return rows


def totals(rows: Sequence[Row], attempts: Iterable[Row]) -> dict[str, dict[str, Any]]:
    """Return system -> what it took: seconds of all attempts; tokens and cost of texts where they are known."""
    seconds: dict[str, float] = {}
    for row in attempts:
        seconds[row["system"]] = seconds.get(row["system"], 0.0) + row["seconds"]
    by_system: dict[str, dict[str, Any]] = {}
    for system in dict.fromkeys(row["system"] for row in rows):
        own = [row for row in rows if row["system"] == system]
        names = ("prompt_tokens", "completion_tokens", "cost")
        read, written, cost = ([row[name] for row in own if row[name] is not None] for name in names)
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


_HEAD = ("system", "texts", "failed", "cut off", "seconds", "tokens read", "tokens written", "cost")
_INTRO = (
    "Seconds are those of all requests, one after the other; cut off are texts that ended at the limit of tokens, "
    "where the model says so. Tokens and cost are summed where the model tells them; the cost is that of the texts, "
    "by the prices given."
)


def _cells(sums: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    lines = []
    for system, row in sums.items():
        line = [system, *(str(row[name]) for name in ("n_texts", "n_failed", "n_cut_off")), f"{row['seconds']:.1f}"]
        for name in ("prompt_tokens", "completion_tokens", "cost"):
            n, digits = (row["n_with_cost"], ".4f") if name == "cost" else (row["n_with_tokens"], "d")
            part = f" (of {n})" if n < row["n_texts"] else ""  # where not all texts are in a sum
            line.append("n/a" if row[name] is None else f"{row[name]:{digits}}{part}")
        lines.append(line)
    return lines


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
