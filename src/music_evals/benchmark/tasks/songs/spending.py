"""A ceiling on what writing may cost: what the next answers could cost at most is set aside before they are asked for.

The most that an answer can cost is its limit of tokens at the price of writing, and one token for each byte of the
prompt, with `OVERHEAD` for the template around it, at the price of reading: a tokenizer of bytes never makes more. What
is known to have been used takes the place of that when the answer is there. An answer that was lost, or that does not
tell its tokens, counts with the most.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from music_evals.benchmark.tasks.songs.writing_log import Prices
from music_evals.errors import CostCeilingError, InvalidInputError
from music_evals.protocols import Written

__all__ = ["OVERHEAD", "Budget", "Metered"]

OVERHEAD: Final = 64
"""Tokens that a chat template may add to a prompt."""


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
