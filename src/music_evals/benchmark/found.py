"""What was found in the records of a run: who was judged, their pairs and scores in columns, what failed.

Scores are held in `columns`; what is drawn or listed one by one is read by `on_demand`.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.batches import UNDEFINED
from music_evals.benchmark.columns import Floats, Integers, Pairs, Row, Table, Words
from music_evals.benchmark.on_demand import Outlines, PairRows, Remarks
from music_evals.benchmark.records import Records

__all__ = ["OUTSIDE", "Found"]

OUTSIDE = frozenset({"control", "leaking"})
"""Roles that have seen the reference: they are compared with nobody and get no rank."""


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """The records of a run, those of its last selection."""

    header: dict[str, Any]  # the run row, with ``metrics`` and ``companions``, and what the selection adds to it
    # System -> ``"system"``, ``"model"``, ``"baseline"``, ``"leaking"`` or ``"control"``, in the order of the tables.
    roles: dict[str, str]
    pairs: Mapping[str, Pairs]  # system -> its pairs, those too that could not be judged
    table: Table
    records: Records
    outlines: Outlines  # hash of a file -> what can be drawn of it
    explanations: PairRows  # where points were lost
    remarks: Remarks  # those on pairs of systems that are no controls
    # The first failed results: item, system, metric (None for all), error; where there are seeds, the seed. And how
    # many there are in all, by system and metric.
    failures: Sequence[dict[str, Any]] = ()
    n_failures: Mapping[tuple[str | None, str | None], int] = dataclasses.field(default_factory=dict)
    items: Mapping[str, Row] = dataclasses.field(default_factory=dict)  # item -> its row, where items are recorded
    songs: Sequence[str] = ()  # the group of each of `items`
    # (item, system) -> what it wrote with each of its seeds, where that is recorded.
    predictions: Mapping[tuple[str, str], list[Any]] = dataclasses.field(default_factory=dict)
    wall_time_sec: float = 0.0  # of all sittings together
    kernels: tuple[str, ...] = ()  # those that made the scores; see `versions.kernels_of`

    @property
    def systems(self) -> tuple[str, ...]:
        """All systems, in the order of the tables."""
        return tuple(self.roles)

    @property
    def controls(self) -> tuple[str, ...]:
        """Those of the systems that are controls."""
        return tuple(name for name, role in self.roles.items() if role == "control")

    @property
    def judged(self) -> list[str]:
        """Those of the systems that are compared and ranked."""
        return [name for name, role in self.roles.items() if role not in OUTSIDE]

    @property
    def names(self) -> tuple[str, ...]:
        """Metrics and auxiliary metrics."""
        return (*self.header["metrics"], *self.header["companions"])

    def of(self, system: str) -> Pairs:
        """Return the pairs of a system; none where it has none."""
        return self.pairs.get(system, Pairs(self.table, system, np.empty(0, dtype=np.int64)))

    def value(self, item: str, system: str, metric: str) -> float:
        """Return a score; NaN where it is undefined or failed."""
        row = self.table.row_of(item, system)
        if row < 0 or metric not in self.table.names:
            return math.nan
        return float(self.table.values[row, self.table.names.index(metric)])

    def values(self, items: Sequence[str], system: str, metric: str) -> Floats:
        """Return the score of each item, the mean over its seeds, shape (n,)."""
        return self._values(self.table.rows_of(items, system), system, metric)

    def beside(self, pairs: Pairs, system: str, metric: str) -> Floats:
        """Return the scores of another system on the items of some pairs, shape (n,)."""
        return self._values(self.table.rows_by_number(pairs.items, system), system, metric)

    def of_items(self, pairs: Pairs, system: str) -> Pairs:
        """Return the pairs of another system on the items of some pairs, all of which it has."""
        return Pairs(self.table, system, self.table.rows_by_number(pairs.items, system))

    def _values(self, rows: Integers, system: str, metric: str) -> Floats:
        if not len(self.table.values):
            return np.full(len(rows), np.nan)
        found: Floats = np.where(rows >= 0, Pairs(self.table, system, rows).values(metric)[:, 0], np.nan)
        return found

    def by_seed(self, items: Sequence[str], system: str, metric: str) -> Floats:
        """Return the scores of each seed, shape (seeds, n); no row where none of the items has it."""
        rows = self.table.rows_of(items, system)
        there = Pairs(self.table, system, rows[rows >= 0]).by_seed(metric)
        found = np.full((len(there), len(items)), np.nan)
        found[:, rows >= 0] = there
        return found

    def readable(self, system: str, *, failed: bool = False) -> Pairs:
        """Return the pairs that were judged, by item; with `failed` those too that were not."""
        pairs = self.of(system)
        return (pairs if failed else pairs.take(~pairs.failed)).by_item()

    def only(self, items: Collection[str]) -> Found:
        """Return the records of some items."""
        wanted = np.zeros(len(self.table.items.words) + 1, dtype=bool)
        wanted[self.table.items.codes_of(list(items))] = True
        wanted[-1] = False
        kept = {system: pairs.take(wanted[pairs.items]) for system, pairs in self.pairs.items()}
        return dataclasses.replace(self, pairs=kept)

    def undefined(self, most: int) -> list[dict[str, Any]]:
        """Return the first scores that are undefined for a reason: item, system, metric, reason."""
        found: list[dict[str, Any]] = []
        for system in self.systems:
            pairs, reasons = self._reasons(system)
            places, columns = (axis[: most - len(found)] for axis in np.nonzero(reasons >= 0))
            told = (self.table.items.text(pairs.rows[places]), columns.tolist(), reasons[places, columns].tolist())
            found += [
                {"item": item, "system": system, "metric": self.names[column], "reason": self.table.texts[code]}
                for item, column, code in zip(*told, strict=True)
            ]
        return found

    def n_undefined(self) -> Counter[tuple[str, str, str]]:
        """Return how many scores are undefined, by system, metric and reason."""
        found: Counter[tuple[str, str, str]] = Counter()
        for system in self.systems:
            _, reasons = self._reasons(system)
            for column, name in enumerate(self.names):
                codes, counts = np.unique(reasons[:, column], return_counts=True)
                told = zip(codes.tolist(), counts.tolist(), strict=True)
                found.update({(system, name, self.table.texts[code]): n for code, n in told if code >= 0})
        return found

    def _reasons(self, system: str) -> tuple[Pairs, npt.NDArray[np.int32]]:
        """Return the pairs of a system, and why their scores are undefined, shape (n, scores); -1 elsewhere."""
        pairs = self.of(system)
        states = np.array([pairs.states(name) for name in self.names]).reshape(len(self.names), len(pairs)).T
        messages = np.array([pairs.messages(name) for name in self.names]).reshape(len(self.names), len(pairs)).T
        return pairs, np.where(states == UNDEFINED, messages, -1)

    def group_by(self, names: Mapping[str, str]) -> None:
        """Where pairs are grouped by the hash of their original, take these names in its place, where there is one."""
        import pyarrow as pa

        table = self.table
        originals = table.originals.codes_of(table.groups.words.to_pylist())
        own = np.append(originals, -1)[table.groups.codes]
        renamed = (own >= 0) & (own == table.originals.codes)
        words: list[str] = table.groups.words.to_pylist()
        codes = np.where(renamed, table.groups.codes + len(words), table.groups.codes)
        every = pa.array([*words, *(names.get(word, word) for word in words)])
        table.groups = Words.of(every.take(pa.array(codes, mask=codes < 0)))
