"""The scores of a run in one table: a row a pair of an item and a system, a column a metric, read from its records.

Text is held by numbers in the order of the sorted names (`Categorical`), so that what is sorted by number is sorted by
name. Where a system has several seeds, the table holds the mean over them, and beside it the scores of each seed. Rows
that are shown one by one are read from the records when they are needed.

Records come in two forms. Rows ``selection`` and ``pair`` name what each system was scored on (`_from_pairs`); without
them, the header names the systems with their seeds, and each system is scored on every row ``item``
(`_from_items`).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.records import REMEDY, Records, only, reading_rows, rows_in_memory, to_rows, to_table
from music_evals.errors import CorruptRecordsError, InvalidTokensError

if TYPE_CHECKING:
    import pyarrow as pa

    from music_evals.benchmark.task import Task

MOST_LISTED = 10_000
"""Failures, undefined scores and remarks of each kind that results.json lists one by one; the records hold all."""

OUTSIDE = frozenset({"control", "leaking"})
"""Roles that have seen the reference: they are compared with nobody and get no rank."""

NO_PREDICTION = "no prediction of every seed"

NOT_GIVEN = "no prediction was given"
"""Why an item failed that predictions made elsewhere leave out, where that is allowed."""

UNKNOWN = "not recorded"
"""Kernels of scores that an earlier version of this package made."""

ABSENT, SCORED, UNDEFINED, ERROR = range(4)
"""State of a score: there is none, a number, no number because it is undefined, an error."""

Row = Mapping[str, Any]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]
Bins = npt.NDArray[np.int8]
"""Bins of a histogram, shape (..., most) with as many as an item has at most; -1 behind the last of an item."""


class HistogramFeature(NamedTuple):
    """How a feature of which an item has many values, such as the intervals of a melody, becomes a histogram."""

    bins: Callable[[npt.NDArray[np.uint8]], Bins]  # predictions, shape (n, steps) -> bins, shape (n, most)
    size: int  # number of bins


# --- text by numbers


class Categorical(NamedTuple):
    """Text by numbers, in the order of the sorted categories."""

    codes: npt.NDArray[np.int32]  # -1 for a null
    categories: pa.StringArray  # each once, sorted

    @classmethod
    def of(cls, column: pa.ChunkedArray | pa.Array | Sequence[str]) -> Categorical:
        """Return a column of text by numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not isinstance(column, pa.ChunkedArray):
            column = pa.chunked_array([pa.array(column, pa.string()) if isinstance(column, Sequence) else column])
        codes, words = _codes(column if pa.types.is_dictionary(column.type) else column.dictionary_encode())
        used = np.unique(codes[codes >= 0])
        words = words.take(pa.array(used))
        order = pc.array_sort_indices(words).to_numpy()
        ranks = np.full(max(used, default=-1) + 2, -1, dtype=np.int32)
        ranks[used[order]] = np.arange(len(used), dtype=np.int32)
        return cls(ranks[codes], words.take(pa.array(order)))

    def text(self, rows: Integers | slice = slice(None)) -> list[str]:
        """Return the text of some rows."""
        import pyarrow as pa

        text: list[str] = self.categories.take(pa.array(self.codes[rows], mask=self.codes[rows] < 0)).to_pylist()
        return text

    def codes_of(self, words: Sequence[str]) -> npt.NDArray[np.int32]:
        """Return the numbers of words; -1 for those that are not there."""
        import pyarrow as pa
        import pyarrow.compute as pc

        places = pc.index_in(pa.array(words, pa.string()), value_set=self.categories).fill_null(-1)
        codes: npt.NDArray[np.int32] = places.to_numpy(zero_copy_only=False)
        return codes


def _codes(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], pa.StringArray]:
    """Return a column of text as places in an array of words, -1 for a null."""
    whole = column.unify_dictionaries().combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    codes: npt.NDArray[np.int32] = whole.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes, whole.dictionary


def _match(table: pa.Table, name: str, known: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """Return the number of the text of each row, -1 for unknown text; raises KeyError where a row has none."""
    codes, words = _codes(table[name])
    if (codes < 0).any():
        raise KeyError(name)
    numbers = np.fromiter(map(known.get, words.to_pylist(), itertools.repeat(-1)), np.int64, len(words))
    return numbers[codes]


def _text_places(table: pa.Table, name: str, texts: dict[str, int]) -> npt.NDArray[np.int32]:
    """Return a column of text as places in `texts`, to which new ones are added; -1 for a null."""
    codes, words = _codes(table[name])
    places = [texts.setdefault(word, len(texts)) for word in words.to_pylist()]
    return np.array([*places, -1], dtype=np.int32)[codes]


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
            column = _match(table, "metric", {name: place for place, name in enumerate(metrics)})
            chosen = np.flatnonzero((rows >= 0) & (column >= 0))
            keys = rows[chosen] * width + column[chosen]
            error, reason = (_text_places(table, name, texts)[chosen] for name in ("error", "reason"))
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

    def with_outlines(self) -> Mask:
        """Tell for which pairs both files have an outline."""
        import pyarrow as pa

        known, references = self.outlines, self.columns["reference"].categories.to_pylist()
        drawable = np.array([*(content in known for content in references), False])[self.codes("reference")]
        estimates = [content in known for content in self.estimates.take(pa.array(self.rows)).to_pylist()]
        there: Mask = drawable & np.array(estimates, dtype=bool)
        return there

    def group_by(self, names: Mapping[str, str]) -> None:
        """Where pairs are grouped by the hash of their reference, take these names in its place, where there is one."""
        import pyarrow as pa

        groups, references = self.columns["group"], self.columns["reference"]
        words: list[str] = groups.categories.to_pylist()
        own = np.append(references.codes_of(words), -1)[groups.codes]
        codes = np.where((own >= 0) & (own == references.codes), groups.codes + len(words), groups.codes)
        every = pa.array([*words, *(names.get(word, word) for word in words)], pa.string())
        self.columns["group"] = Categorical.of(every.take(pa.array(codes, mask=codes < 0)))

    def music_of(self, contents: Collection[str]) -> dict[str, str]:
        """Return the hash of the music in files, by theirs, for those of the wanted ones that have one."""
        music: dict[str, str | None] = {}
        for table in self.records.batches("outline", text=False):
            columns = (table[name].to_pylist() for name in ("reference", "music"))
            music |= {content: held for content, held in zip(*columns, strict=True) if content in contents}
        return {content: held for content, held in music.items() if held is not None}

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


@reading_rows()
def read_scores(rows: Iterable[Row], task: Task) -> ScoreTable:
    """Read the scores in the records of a run; of two rows for one score the later one counts."""
    records = rows if isinstance(rows, Records) else rows_in_memory(rows)
    header = records[0] if len(records) else {}
    if header.get("kind") != "run":
        raise CorruptRecordsError("the records do not start with their header; restore the file, or start afresh")
    by_item = "systems" in header
    table = (_from_items if by_item else _from_pairs)(records, header, task)
    table.wall_time_sec = float(sum(row["wall_time_sec"] for row in records.of("sitting")))
    task.check_scores(table)
    names = task.shown_metrics(table)
    if not by_item:
        table.header |= {key: [name for name in header[key] if name in names] for key in ("metrics", "companions")}
        table.failures, table.n_failures = _failures_of_pairs(table)
    return table


# --- records whose selections name the pairs


def last_selection(records: Records) -> tuple[int, list[pa.Table]]:
    """Return the number of the row that begins the last selection, and its pairs; -1 and none without one."""
    start = -1
    tables: list[pa.Table] = []
    for table in records.batches("selection", "pair", text=False):
        selections = only(table, "selection")
        if selections is not None:
            start, tables = selections["number"][-1].as_py(), []
            table = table.filter(table["number"].to_numpy() > start)  # noqa: PLW2901
        pairs = only(table, "pair")
        if pairs is not None:
            tables.append(pairs)
    return start, tables


def index_pairs(
    items: Categorical, systems: Categorical, references: Categorical, estimates: pa.Array
) -> Callable[[pa.Table], npt.NDArray[np.int64]]:
    """Return a function that finds the pairs that rows of a table belong to, by item, system and what both files hold.

    It gives the number of the pair of each row, -1 for one that is of none of them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    names = ("item", "system", "reference", "estimate")
    known = [
        {word: place for place, word in enumerate(column.categories.to_pylist())}
        for column in (items, systems, references)
    ]
    own = systems.codes.astype(np.int64) * len(known[0]) + items.codes
    order = np.argsort(own, kind="stable")
    ordered = own[order]

    def rows_of(table: pa.Table) -> npt.NDArray[np.int64]:
        # rows of one pair follow each other: only the first of them is looked up
        first = np.ones(len(table), dtype=bool)
        codes = [_codes(table[name])[0] for name in names]
        first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in codes])
        short = table.select(names).filter(first)
        item, system, reference = (_match(short, name, words) for name, words in zip(names[:3], known, strict=True))
        if short["estimate"].null_count:
            raise KeyError("content")
        rows = np.full(len(short), -1, dtype=np.int64)
        if len(order):
            keys = system * len(known[0]) + item
            nearest = np.minimum(np.searchsorted(ordered, keys), len(order) - 1)
            place = order[nearest]
            same = pc.equal(estimates.take(pa.array(place)), short["estimate"].cast(pa.string()))
            there = same.fill_null(False).to_numpy() & (item >= 0) & (system >= 0)  # noqa: FBT003 (a value)
            there &= (ordered[nearest] == keys) & (reference >= 0) & (references.codes[place] == reference)
            rows[there] = place[there]
        rows_of_all: npt.NDArray[np.int64] = rows[np.cumsum(first) - 1]
        return rows_of_all

    return rows_of


def _from_pairs(records: Records, header: dict[str, Any], task: Task) -> ScoreTable:
    """Read records whose selections name the pairs."""
    import pyarrow as pa

    start, tables = last_selection(records)
    if start < 0:
        raise LookupError("no selection")
    selection = records[start]
    nothing = to_table([]).append_column("number", pa.array([], pa.int64()))
    pairs = pa.concat_tables([table.drop_columns(["json"]) for table in [nothing, *tables]]).unify_dictionaries()
    if pairs["item"].null_count or pairs["system"].null_count:
        raise KeyError("item")
    columns = {
        name: Categorical.of(pairs[name]) for name in ("item", "system", "group", "reference", "modality", "error")
    }
    estimates = pa.concat_arrays([pa.array([], pa.string()), *pairs["estimate"].cast(pa.string()).chunks])
    numbers = pairs["number"].to_numpy()
    del pairs, tables
    named, item, system = list(selection["systems"]), columns["item"], columns["system"]
    # records of before a control had its name may hold a system that was called so
    present = set(system.categories.to_pylist()) - set(named)
    controls = [name for name in task.controls if name in present]
    rows_of = index_pairs(item, system, columns["reference"], estimates)
    metrics = tuple(dict.fromkeys((*header["metrics"], *header["companions"])))
    matrix = ScoreMatrix.read(records, metrics, len(numbers), rows_of, others=("remarks", "explanation"))
    table = ScoreTable(
        header=header | {key: value for key, value in selection.items() if key not in {"kind", "systems"}},
        roles=dict.fromkeys(named, "system") | dict.fromkeys([*selection.get("controls", ()), *controls], "control"),
        records=records,
        columns=columns,
        estimates=estimates,
        matrix=matrix,
        rows=np.arange(len(numbers)),
        pair_of=lambda row: records[int(numbers[row])],
    )
    explained = np.full(len(numbers) + 1, -1)
    for rows, part in matrix.others.pop("explanation", []):
        explained[rows] = part["number"].to_numpy()
    pairs = table.take(np.flatnonzero(explained[:-1] >= 0))
    keys = zip(pairs.text("item"), pairs.text("system"), strict=True)
    table.explanations = RecordedRows(records, dict(zip(keys, explained[pairs.rows].tolist(), strict=True)))
    notes, texts = np.full(len(numbers) + 1, -1), dict[str, int]()
    for rows, part in matrix.others.pop("remarks", []):
        notes[rows] = _text_places(part, "notes", texts)
    notes[:-1][np.isin(system.codes, system.codes_of(controls))] = -1
    order = np.lexsort((system.codes, item.codes))
    pairs, parsed = table.take(order[notes[order] >= 0]), list(map(json.loads, texts))
    remarks = zip(pairs.text("item"), pairs.text("system"), notes[pairs.rows].tolist(), strict=True)
    table.remarks = [{"item": item, "system": system, "notes": parsed[code]} for item, system, code in remarks]
    return table


def _failures_of_pairs(table: ScoreTable) -> tuple[list[dict[str, Any]], Counter[tuple[str | None, str | None]]]:
    """Return the first results that failed, and how many did, by system and metric."""
    # A pair all of whose scores failed for one reason is one failure.
    listed: list[dict[str, Any]] = []
    counts: Counter[tuple[str | None, str | None]] = Counter()
    texts = table.matrix.texts
    for system in table.systems:
        pairs = table.of(system)
        errors, whole = pairs.messages(ERROR, *table.metrics), pairs.failed
        if table.metrics:
            whole = whole | ((errors >= 0).all(axis=1) & (errors == errors[:, :1]).all(axis=1))
        counts[system, None] = int(np.count_nonzero(whole))
        alone = np.count_nonzero(errors[~whole] >= 0, axis=0).tolist()
        counts.update({(system, name): n for name, n in zip(table.metrics, alone, strict=True)})
        chosen = np.flatnonzero(whole | (errors >= 0).any(axis=1))[: MOST_LISTED - len(listed)]
        failed = pairs.take(chosen)
        parts = failed.text("item"), failed.text("error"), whole[chosen].tolist(), errors[chosen].tolist()
        for item, reason, at_once, codes in zip(*parts, strict=True):
            if at_once:
                reasons: dict[str | None, str] = {None: texts[codes[0]] if reason is None else reason}
            else:
                reasons = {name: texts[code] for name, code in zip(table.metrics, codes, strict=True) if code >= 0}
            listed += [{"item": item, "system": system, "metric": name, "error": why} for name, why in reasons.items()]
    return listed[:MOST_LISTED], +counts


# --- records whose header names the systems with their seeds


class SeededScores:
    """The scores of each item with each seed of each system: a row of the matrix for each of these."""

    def __init__(
        self, records: Records, items: Sequence[str], seeds: Mapping[str, Sequence[int]], metrics: Sequence[str],
        *, without_prediction: Collection[str] = (),
    ) -> None:  # fmt: skip
        self.items, self.seeds, self.records = list(items), {name: list(own) for name, own in seeds.items()}, records
        # without a prediction every metric of it fails, for one reason; what needs none has its own
        self.alone = np.array([name in without_prediction for name in metrics], dtype=bool)
        self._known = tuple({name: place for place, name in enumerate(names)} for names in (self.items, self.seeds))
        ends = np.cumsum([len(self.items) * len(own) for own in self.seeds.values()], dtype=np.int64).tolist()
        self.blocks = {
            name: slice(*span) for name, span in zip(self.seeds, itertools.pairwise([0, *ends]), strict=True)
        }
        self.matrix = ScoreMatrix.read(records, metrics, ends[-1] if ends else 0, self._rows_of)
        self.predictions = np.full(len(self.matrix.values), -1, dtype=np.int64)  # number of the row
        for table in records.batches("prediction", text=False):
            self.predictions[self._rows_of(table)] = table["number"].to_numpy()
        # a chunk that is tried again may fail on an item that it had a prediction for
        self.predictions[(self.matrix.states[:, ~self.alone] == ERROR).any(axis=1)] = -1

    def _rows_of(self, table: pa.Table) -> npt.NDArray[np.int64]:
        """Return the row of each score or prediction; raises KeyError or ValueError for what is not scored here."""
        item, system = (_match(table, name, known) for name, known in zip(("item", "system"), self._known, strict=True))
        if (item < 0).any() or (system < 0).any():
            raise KeyError("item or system")
        seed = table["seed"].fill_null(-1).to_numpy()
        rows = np.empty(len(table), dtype=np.int64)
        for place, (name, seeds) in enumerate(self.seeds.items()):
            own = system == place
            values, inverse = np.unique(seed[own], return_inverse=True)
            columns = np.array([seeds.index(value) for value in values.tolist()], dtype=np.int64)
            rows[own] = self.blocks[name].start + item[own] * len(seeds) + columns[inverse]
        return rows

    def are_scored(self, system: str, seed: int, items: range, metrics: Sequence[str]) -> bool:
        """Tell whether all of some scores are there and none of them failed."""
        seeds = self.seeds[system]
        rows = self.blocks[system].start + np.array(items) * len(seeds) + seeds.index(seed)
        columns = [self.matrix.metrics.index(name) for name in metrics]
        return bool(np.isin(self.matrix.states[np.ix_(rows, columns)], (SCORED, UNDEFINED)).all())

    def by_item(self, system: str, cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return cells of a system, shape (items, seeds, ...)."""
        return cells[self.blocks[system]].reshape(len(self.items), len(self.seeds[system]), *cells.shape[1:])

    def bins(self, feature: HistogramFeature) -> dict[str, Bins]:
        """Return the bins of a feature of each system's predictions, shape (seeds, items, most)."""
        rows_of = {number: row for row, number in enumerate(self.predictions.tolist()) if number >= 0}
        parts: list[tuple[list[int], Bins]] = []
        for table in self.records.batches("prediction"):
            numbered = zip(table["number"].to_pylist(), to_rows(table), strict=True)
            middles = {rows_of[number]: row["middle"] for number, row in numbered if number in rows_of}
            if middles:
                try:
                    parts.append((list(middles), feature.bins(np.array(list(middles.values()), dtype=np.uint8))))
                except InvalidTokensError as error:
                    message = f"the records hold a prediction of other tokens: {error}; {REMEDY}"
                    raise CorruptRecordsError(message) from error
        bins = np.full((len(self.predictions), max((part.shape[1] for _, part in parts), default=0)), -1, dtype=np.int8)
        for rows, part in parts:
            bins[rows, : part.shape[1]] = part
        return {name: self.by_item(name, bins).swapaxes(0, 1) for name in self.seeds}

    def failures(self) -> list[dict[str, Any]]:
        """Return what failed, in the order in which it was first recorded."""
        matrix, names = self.matrix, list(self.seeds)
        rows, columns = np.nonzero(matrix.states == ERROR)
        order = np.argsort(matrix.first[rows, columns], kind="stable")
        starts = [block.start for block in self.blocks.values()]
        errors: dict[tuple[str, str, int, str | None], str] = {}
        for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
            name = names[int(np.searchsorted(starts, row, side="right")) - 1]
            item, seed = divmod(row - self.blocks[name].start, len(self.seeds[name]))
            metric = matrix.metrics[column] if self.alone[column] else None
            errors[self.items[item], name, self.seeds[name][seed], metric] = matrix.texts[matrix.messages[row, column]]
        keys = ("item", "system", "seed", "metric", "error")
        return [dict(zip(keys, (*key, error), strict=True)) for key, error in errors.items()]


def _from_items(records: Records, header: dict[str, Any], task: Task) -> ScoreTable:
    """Read records whose header names the systems with their seeds: a pair of each item with each system."""
    numbers, songs, failures = _item_rows(records)
    columns = tuple(dict.fromkeys((*task.scales, *task.divergences.values())))
    seeds = {name: about["seeds"] for name, about in header["systems"].items()}
    runs = SeededScores(records, list(numbers), seeds, columns, without_prediction=task.without_prediction)
    n, worst, texts = len(numbers), task.missing_scores(header), runs.matrix.texts
    lowest = np.array([worst.get(name, np.nan) for name in columns])
    matrix = ScoreMatrix.empty(columns, n * len(seeds))
    matrix.texts, matrix.kernels = texts, runs.matrix.kernels
    by_seed, predictions, failed = {}, {}, []
    for place, name in enumerate(seeds):
        cells = runs.matrix.values, runs.matrix.states, runs.matrix.messages, runs.predictions
        values, states, messages, predictions[name] = (runs.by_item(name, part) for part in cells)
        complete = np.logical_and.reduce(predictions[name] >= 0, axis=1)
        # what was not given has the worst score, where there is one
        missing = messages == (texts.index(NOT_GIVEN) if NOT_GIVEN in texts else -2)
        not_given = ((states == ERROR) & missing).all(axis=1) & ~np.isnan(lowest)
        there = ((states != ABSENT).any(axis=1) & (complete[:, None] | runs.alone)) | not_given
        values = np.where(not_given[:, None], lowest, values)
        means = np.where(there, _means(values), np.nan)
        matrix.values[place * n : place * n + n] = means
        matrix.states[place * n : place * n + n] = np.where(there, np.where(np.isnan(means), UNDEFINED, SCORED), ABSENT)
        by_seed[name] = values.swapaxes(0, 1)
        failed.append(~complete)
    every = {"item": list(numbers) * len(seeds), "system": np.repeat(list(seeds), n).tolist()}
    every |= {"group": songs * len(seeds), "reference": every["item"], "modality": ["item"] * (n * len(seeds))}
    text = {name: Categorical.of(column) for name, column in every.items()}
    without = np.concatenate([*failed, np.empty(0, dtype=bool)])
    text["error"] = Categorical.of([NO_PREDICTION])._replace(codes=np.where(without, 0, -1).astype(np.int32))
    failures += runs.failures()
    return ScoreTable(
        header=header | {"metrics": _shown_metrics(records, runs.matrix, task), "companions": []},
        roles={name: about["role"] for name, about in header["systems"].items()},
        records=records,
        columns=text,
        estimates=text["item"].categories.take(text["item"].codes),
        matrix=matrix,
        rows=np.arange(n * len(seeds)),
        pair_of=lambda row: _pair_of_item(text, row),
        seeds=by_seed,
        feature_bins={metric: runs.bins(feature) for metric, feature in task.histogram_features.items()},
        predictions=predictions,
        item_rows=RecordedRows(records, numbers),
        songs=songs,
        failures=failures[:MOST_LISTED],
        n_failures=Counter((row["system"], row["metric"]) for row in failures),
    )


def _item_rows(records: Records) -> tuple[dict[str, int], list[str], list[dict[str, Any]]]:
    """Return the number of the row of each item, their songs, and the items that could not be read."""
    numbers: dict[str, int] = {}
    songs: dict[str, str] = {}
    broken: list[dict[str, Any]] = []
    for row in records.of("item", numbered=True):
        if "error" in row:
            broken.append({"item": row["item"], "system": None, "seed": None, "metric": None, "error": row["error"]})
        else:
            numbers[row["item"]], songs[row["item"]] = row["number"], row["song"]
    return numbers, list(songs.values()), broken


def _shown_metrics(records: Records, matrix: ScoreMatrix, task: Task) -> list[str]:
    """Return the metrics of a run: those that its last selection asked for, where it has one, and those of all runs."""
    selections = list(records.of("selection"))
    left_out = set(task.on_request).difference(selections[-1]["scores"]) if selections else set()
    recorded = {name for name, states in zip(matrix.metrics, matrix.states.T, strict=True) if (states != ABSENT).any()}
    may_be_absent = {*task.without_prediction, *task.on_request}
    return [name for name in task.scales if name not in left_out and (name not in may_be_absent or name in recorded)]


def _means(values: Floats) -> Floats:
    """Return the means over the seeds that define a score, of values (items, seeds, metrics)."""
    defined = ~np.isnan(values)
    total = np.zeros((len(values), values.shape[2]))
    for seed in range(values.shape[1]):  # one after the other, in the order of the seeds
        total += np.where(defined[:, seed], values[:, seed], 0.0)
    n = np.count_nonzero(defined, axis=1)
    means: Floats = np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
    return means


def _pair_of_item(columns: Mapping[str, Categorical], row: int) -> dict[str, Any]:
    """Return the pair that an item and a system make."""
    pair = {name: column.text(np.array([row]))[0] for name, column in columns.items() if column.codes[row] >= 0}
    return {**pair, "reference": {"name": pair["item"], "content": pair["item"]}}
