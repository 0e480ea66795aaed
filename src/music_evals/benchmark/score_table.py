"""The scores of a run in one table: a row a pair of an item and a system, a column a metric.

Text is held by numbers in the order of the sorted names (`columns.Categorical`), so that what is sorted by number is
sorted by name. Where a system has several seeds, the table holds the mean over them, and beside it the scores of each
seed. Rows that are shown one by one are read from the records when they are needed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.columns import Categorical, Integers, match, only, text_places
from music_evals.benchmark.records import Records

if TYPE_CHECKING:
    import pyarrow as pa

MOST_LISTED = 10_000
"""Failures, undefined scores and remarks of each kind that results.json lists one by one; the records hold all."""

OUTSIDE = frozenset({"control", "leaking"})
"""Roles that have seen the reference: they are compared with nobody and get no rank."""

UNKNOWN = "not recorded"
"""Kernels of scores that an earlier version of this package made."""

ABSENT, SCORED, UNDEFINED, ERROR = range(4)
"""State of a score: there is none, a number, no number because it is undefined, an error."""

Row = Mapping[str, Any]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Bins = npt.NDArray[np.int8]
"""Bins of a histogram, shape (..., most) with as many as an item has at most; -1 behind the last of an item."""


class HistogramFeature(NamedTuple):
    """How a feature of which an item has many values, such as the intervals of a melody, becomes a histogram."""

    bins: Callable[[npt.NDArray[np.uint8]], Bins]  # predictions, shape (n, steps) -> bins, shape (n, most)
    size: int  # number of bins


# --- scores by row and metric


@dataclasses.dataclass(eq=False)
class ScoreMatrix:
    """Scores by row and metric, their messages, and the kernels that made them; of two for one the later one counts."""

    metrics: tuple[str, ...]
    values: Floats
    states: npt.NDArray[np.int8]
    messages: npt.NDArray[np.int32]  # errors and reasons, as places in `texts`; -1 for none
    first: npt.NDArray[np.int64]  # number of the first row of the records for a score
    texts: list[str] = dataclasses.field(default_factory=list)
    kernels: tuple[str, ...] = ()  # in the order of the sessions
    others: dict[str, list[tuple[Integers, pa.Table]]] = dataclasses.field(default_factory=dict)

    @classmethod
    def empty(cls, metrics: Sequence[str], n_rows: int) -> ScoreMatrix:
        """Return a matrix without any score."""
        shape = n_rows, len(metrics)
        states, messages = np.full(shape, ABSENT, dtype=np.int8), np.full(shape, -1, dtype=np.int32)
        return cls(tuple(metrics), np.full(shape, np.nan), states, messages, np.full(shape, -1, dtype=np.int64))

    @classmethod
    def read(
        cls,
        records: Records,
        metrics: Sequence[str],
        n_rows: int,
        rows_of: Callable[[pa.Table], Integers],
        others: Collection[str] = (),
    ) -> ScoreMatrix:
        """Read the scores of records; `rows_of` gives the rows that those of a table belong to, -1 for none.

        Rows of `others`, which are kinds, are held with the rows that they belong to.
        """
        matrix, texts, width = cls.empty(metrics, n_rows), dict[str, int](), len(metrics)
        values, states, messages, first = (
            cells.reshape(-1) for cells in (matrix.values, matrix.states, matrix.messages, matrix.first)
        )
        named = [(row["number"], str(row["kernels"])) for row in records.of("kernels", numbered=True)]
        starts, kernels = [number for number, _ in named], [UNKNOWN, *(name for _, name in named)]
        used: set[int] = set()
        for batch in records.batches("score", *others, text=False):
            for kind in others:
                if (part := only(batch, kind)) is not None:
                    matrix.others.setdefault(kind, []).append((rows_of(part), part))
            table = only(batch, "score")
            if table is None:
                continue
            numbers, rows = table["number"].to_numpy(), rows_of(table)
            used.update(np.unique(np.searchsorted(starts, numbers)).tolist())
            column = match(table, "metric", {name: place for place, name in enumerate(metrics)})
            chosen = np.flatnonzero((rows >= 0) & (column >= 0))
            keys = rows[chosen] * width + column[chosen]
            error, reason = (text_places(table, name, texts)[chosen] for name in ("error", "reason"))
            value = table["value"].to_numpy()[chosen]  # a null is NaN
            values[keys] = value  # of equal keys the last one is put last
            states[keys] = np.where(error >= 0, ERROR, np.where(np.isnan(value), UNDEFINED, SCORED))
            messages[keys] = np.where(error >= 0, error, reason)
            fresh = np.flatnonzero(first[keys] < 0)[::-1]
            first[keys[fresh]] = numbers[chosen[fresh]]
        matrix.texts = list(texts)
        matrix.kernels = tuple(dict.fromkeys(kernels[place] for place in sorted(used)))
        return matrix


# --- the table


class RecordedRows(Mapping[Any, dict[str, Any]]):
    """Rows of the records by a key, read when they are needed."""

    def __init__(self, records: Records, numbers: Mapping[Any, int]) -> None:
        self._records, self._numbers = records, numbers

    def __getitem__(self, key: Any) -> dict[str, Any]:
        row: dict[str, Any] = self._records[self._numbers[key]]
        return row

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def __iter__(self) -> Iterator[Any]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def outlines_in(records: Records) -> RecordedRows:
    """Return what can be drawn of files, by the hash of a file; of two outlines the later one counts."""
    numbers: dict[str, int] = {}
    for table in records.batches("outline", text=False):
        numbers |= zip(table["reference"].to_pylist(), table["number"].to_pylist(), strict=True)
    return RecordedRows(records, numbers)


@dataclasses.dataclass(eq=False)
class ScoreTable(Sequence[Row]):
    """The scores of a run, those of its last selection, or of some of its pairs.

    A row is a pair of an item and a system. Of a pair that could not be scored only the item is known. As a sequence:
    one dictionary a pair, made when it is needed.
    """

    header: dict[str, Any]  # the run row, with ``metrics`` and ``companions``, and what the selection adds
    # System -> ``"system"``, ``"model"``, ``"baseline"``, ``"leaking"`` or ``"control"``, in the order of the tables.
    roles: dict[str, str]
    records: Records
    # Text of all pairs: ``item``, ``system``, ``group``, ``reference`` (its hash), ``modality``, and ``error``, which
    # says why a pair could not be scored.
    columns: dict[str, Categorical]
    estimates: pa.StringArray  # hash of the estimate of all pairs
    matrix: ScoreMatrix  # scores of all pairs, the mean over seeds where there are several
    rows: Integers  # the pairs that are looked at; -1 for one that is not there
    pair_of: Callable[[int], dict[str, Any]]  # row -> the pair as a dictionary
    # System -> the scores of each seed, shape (seeds, items, metrics), and score -> the bins of what is listed of each
    # prediction, shape (seeds, items, most), where each system is scored on every item, see `HistogramFeature`.
    seeds: Mapping[str, Floats] = dataclasses.field(default_factory=dict)
    feature_bins: Mapping[str, Mapping[str, Bins]] = dataclasses.field(default_factory=dict)
    predictions: Mapping[str, Integers] = dataclasses.field(default_factory=dict)  # numbers, shape (items, seeds)
    item_rows: Mapping[str, Row] = dataclasses.field(default_factory=dict)  # item -> its row, where items are recorded
    songs: Sequence[str] = ()  # the group of each of `item_rows`
    # The remarks on pairs of systems that are no controls, by item and system: ``item``, ``system``, ``notes``.
    remarks: Sequence[Row] = ()
    explanations: Mapping[tuple[str, str], Any] = dataclasses.field(default_factory=dict)  # item, system -> lost points
    # The first failed results: item, system, metric (None for all), error; where there are seeds, the seed. And how
    # many there are in all, by system and metric.
    failures: Sequence[dict[str, Any]] = ()
    n_failures: Mapping[tuple[str | None, str | None], int] = dataclasses.field(default_factory=dict)
    wall_time_sec: float = 0.0  # of all sessions together

    @functools.cached_property
    def outlines(self) -> RecordedRows:
        """What can be drawn of files, by the hash of a file."""
        return outlines_in(self.records)

    @property
    def systems(self) -> tuple[str, ...]:
        """All systems, in the order of the tables."""
        return tuple(self.roles)

    @property
    def controls(self) -> tuple[str, ...]:
        """Those of the systems that are controls."""
        return tuple(name for name, role in self.roles.items() if role == "control")

    @property
    def compared(self) -> list[str]:
        """Those of the systems that are compared and ranked."""
        return [name for name, role in self.roles.items() if role not in OUTSIDE]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Main and auxiliary metrics."""
        return (*self.header["metrics"], *self.header["companions"])

    @property
    def failed(self) -> Mask:
        """Which pairs could not be scored."""
        return self.codes("error") >= 0

    def codes(self, column: str) -> npt.NDArray[np.int32]:
        """Return the numbers of the text in a column; -1 for a null."""
        return self.columns[column].codes[self.rows]

    def text(self, column: str) -> list[str]:
        """Return the text in a column."""
        return self.columns[column].text(self.rows)

    def take(self, chosen: Integers | Mask | slice) -> ScoreTable:
        """Return some pairs."""
        return dataclasses.replace(self, rows=self.rows[chosen])

    def of(self, system: str) -> ScoreTable:
        """Return the pairs of a system, those too that could not be scored."""
        (code,) = self.columns["system"].codes_of([system])
        return self.take((self.codes("system") == code) & (code >= 0))

    def scored(self, system: str, *, failed: bool = False) -> ScoreTable:
        """Return the pairs of a system that could be scored, by item; with `failed` those too that could not."""
        pairs = self.of(system)
        pairs = pairs if failed else pairs.take(~pairs.failed)
        return pairs.take(np.argsort(pairs.codes("item"), kind="stable"))

    def only(self, items: Collection[str]) -> ScoreTable:
        """Return the pairs of some items."""
        return self.take(np.isin(self.codes("item"), self.columns["item"].codes_of(list(items))))

    def paired(self, a: str, b: str, *, failed: bool = False) -> tuple[ScoreTable, ScoreTable]:
        """Return the pairs of two systems that are of the same item and reference, in one order; see `scored`."""
        first, second = self.scored(a, failed=failed), self.scored(b, failed=failed)
        if not len(second):
            return first.take(slice(0, 0)), second
        place = np.minimum(np.searchsorted(second.codes("item"), first.codes("item")), len(second) - 1)
        second = second.take(place)
        same = np.logical_and.reduce([first.codes(name) == second.codes(name) for name in ("item", "reference")])
        return first.take(same), second.take(same)

    def at(self, items: Sequence[str] | Integers, system: str) -> ScoreTable:
        """Return the pair of a system, out of all, for each item, by name or number; row -1 if missing."""
        numbers = items if isinstance(items, np.ndarray) else self.columns["item"].codes_of(items)
        every = dataclasses.replace(self, rows=np.arange(len(self.matrix.values))).of(system)
        own = every.codes("item")
        if not len(own):
            return dataclasses.replace(self, rows=np.full(len(numbers), -1))
        order = np.argsort(own, kind="stable")
        place = order[np.minimum(np.searchsorted(own, numbers, sorter=order), len(own) - 1)]
        rows = np.where((own[place] == numbers) & (numbers >= 0), every.rows[place], -1)
        return dataclasses.replace(self, rows=rows)

    def cells(self, cells: npt.NDArray[Any], names: Sequence[str], missing: float) -> npt.NDArray[Any]:
        """Return values, states or messages of the matrix, shape (n, names); `missing` if not recorded."""
        known = {name: place for place, name in enumerate(self.matrix.metrics)}
        columns = np.array([known.get(name, -1) for name in names], dtype=np.int64)
        there, known_columns = self.rows >= 0, columns >= 0
        if there.all() and known_columns.all():
            whole: npt.NDArray[Any] = cells[np.ix_(self.rows, columns)]
            return whole
        chosen = np.full((len(self.rows), len(names)), missing, dtype=cells.dtype)
        chosen[np.ix_(there, known_columns)] = cells[np.ix_(self.rows[there], columns[known_columns])]
        return chosen

    def values(self, *names: str) -> Floats:
        """Return scores, shape (n, names); NaN where they are undefined or failed."""
        return self.cells(self.matrix.values, names, np.nan)

    def states(self, *names: str) -> npt.NDArray[np.int8]:
        """Return the states of scores, shape (n, names)."""
        return self.cells(self.matrix.states, names, ABSENT)

    def messages(self, state: int, *names: str) -> npt.NDArray[np.int32]:
        """Return the messages of scores of a state, as places in the texts of the matrix, shape (n, names); else -1."""
        return np.where(self.states(*names) == state, self.cells(self.matrix.messages, names, -1), -1)

    def by_seed(self, name: str) -> Floats:
        """Return the scores of each seed of one system, shape (seeds, n); no row where none of the pairs has it."""
        recorded = self.states(name)[:, 0] != ABSENT
        if not (self.seeds and recorded.any()):
            return np.empty((0, len(self.rows)))
        system = self.take(recorded).text("system")[0]
        values = self.seeds[system][:, :, self.matrix.metrics.index(name)]
        return np.where(recorded, values[:, self.rows % values.shape[1]], np.nan)

    def bins(self, name: str, system: str) -> Bins:
        """Return the bins of the histogram feature of a score, for pairs of one system, shape (seeds, n, most)."""
        bins = self.feature_bins[name][system]
        return bins[:, self.rows % max(bins.shape[1], 1)]

    def value(self, item: str, system: str, metric: str) -> float:
        """Return a score; NaN where it is undefined or failed."""
        return float(self.at([item], system).values(metric)[0, 0])

    def prediction(self, item: str, system: str) -> list[Any]:
        """Return what a system wrote for an item with each of its seeds, where that is recorded; None for nothing."""
        (row,) = self.at([item], system).rows
        if row < 0 or system not in self.predictions:
            return []
        numbers = self.predictions[system][row % len(self.predictions[system])].tolist()
        return [self.records[number]["middle"] if number >= 0 else None for number in numbers]

    def group_by(self, names: Mapping[str, str]) -> None:
        """Where pairs are grouped by the hash of their reference, take these names in its place, where there is one."""
        import pyarrow as pa

        groups, references = self.columns["group"], self.columns["reference"]
        words: list[str] = groups.categories.to_pylist()
        own = np.append(references.codes_of(words), -1)[groups.codes]
        codes = np.where((own >= 0) & (own == references.codes), groups.codes + len(words), groups.codes)
        every = pa.array([*words, *(names.get(word, word) for word in words)], pa.string())
        self.columns["group"] = Categorical.of(every.take(pa.array(codes, mask=codes < 0)))

    def undefined(self) -> tuple[list[dict[str, Any]], Counter[tuple[str, str, str]]]:
        """Return the first scores that are undefined for a reason, and how many are, by system, metric and reason."""
        listed: list[dict[str, Any]] = []
        counts: Counter[tuple[str, str, str]] = Counter()
        texts = self.matrix.texts
        for system in self.systems:
            pairs = self.of(system)
            reasons = pairs.messages(UNDEFINED, *self.metrics)
            places, columns = (axis[: MOST_LISTED - len(listed)] for axis in np.nonzero(reasons >= 0))
            items, codes = pairs.take(places).text("item"), reasons[places, columns].tolist()
            for item, column, code in zip(items, columns.tolist(), codes, strict=True):
                listed.append({"item": item, "system": system, "metric": self.metrics[column], "reason": texts[code]})
            for name, own in zip(self.metrics, reasons.T, strict=True):
                n = np.bincount(own[own >= 0], minlength=len(texts)).tolist()
                counts.update({(system, name, text): k for text, k in zip(texts, n, strict=True) if k})
        return listed, counts

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        return self.take(place) if isinstance(place, slice) else self.pair_of(int(self.rows[place]))
