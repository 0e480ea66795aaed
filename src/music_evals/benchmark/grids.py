"""What both forms of records have in common: scores by row and column, their messages, and what made them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.batches import ABSENT, ScoreBatch
from music_evals.benchmark.records import Records
from music_evals.benchmark.versions import kernels_of

__all__ = ["MOST_LISTED", "Grid", "Integers", "Row", "Sittings", "Texts", "last_of_each"]

MOST_LISTED = 10_000
"""Failures, undefined scores and remarks of each kind that results.json lists one by one; the records hold all."""

Row = Mapping[str, Any]
Integers = npt.NDArray[np.integer[Any]]


def last_of_each(keys: Integers) -> npt.NDArray[np.bool_]:
    """Tell which of some keys is the last of its kind."""
    if (keys[1:] > keys[:-1]).all():
        return np.ones(len(keys), dtype=bool)
    order = np.argsort(keys, kind="stable")
    last = np.ones(len(keys), dtype=bool)
    last[order[:-1]] = keys[order[1:]] != keys[order[:-1]]
    return last


class Texts:
    """Messages, each once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def places(self, message: tuple[Integers, list[str]]) -> npt.NDArray[np.int32]:
        """Return the places of messages, -1 where there is none."""
        codes, words = message
        known = [self._places.setdefault(word, len(self._places)) for word in words]
        return np.array([*known, -1], dtype=np.int32)[codes]

    def place(self, message: str) -> int:
        """Return the place of a message; -2, which no score has, for one that is not there."""
        return self._places.get(message, -2)

    @property
    def all(self) -> list[str]:
        """All of them, in the order of their places."""
        return list(self._places)


class Grid(NamedTuple):
    """Scores by row and column."""

    values: npt.NDArray[np.float64]
    states: npt.NDArray[np.int8]
    messages: npt.NDArray[np.int32]

    @classmethod
    def empty(cls, *shape: int) -> Grid:
        """Return a grid without any score."""
        return cls(np.full(shape, np.nan), np.full(shape, ABSENT, dtype=np.int8), np.full(shape, -1, dtype=np.int32))

    def put(self, keys: Integers, scores: ScoreBatch, messages: npt.NDArray[np.int32]) -> None:
        """Put scores in their places; those with a key of -1 belong nowhere."""
        chosen = np.flatnonzero(keys >= 0)
        chosen = chosen[last_of_each(keys[chosen])]
        for held, new in ((self.values, scores.value), (self.states, scores.state), (self.messages, messages)):
            held.reshape(-1)[keys[chosen]] = new[chosen]


class Sittings:
    """What made the scores: wall time, and the kernels of which there are scores."""

    def __init__(self, records: Records) -> None:
        self.wall_time_sec = float(sum(row["wall_time_sec"] for row in records.of("sitting")))
        self._kernels: list[Row] = []
        numbers: list[int] = []
        for batch in records.batches("kernels"):
            self._kernels += batch.rows()
            numbers += batch.numbers.tolist()
        self._starts = np.array(numbers, dtype=np.int64)
        self._scored: set[int] = set()

    def saw(self, scores: ScoreBatch) -> None:
        """Note which kernels were the last to be named before some scores."""
        self._scored.update(np.unique(np.searchsorted(self._starts, scores.numbers)).tolist())

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels that made scores."""
        score = {"kind": "score"}
        rows: list[Row] = [score] if 0 in self._scored else []
        for place, row in enumerate(self._kernels, start=1):
            rows += [row, score] if place in self._scored else [row]
        return tuple(kernels_of(rows))
