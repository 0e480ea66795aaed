"""From records to columns: what was judged, and what each score of it is; of two rows for one score the later counts.

Records come in two forms. Rows ``selection`` and ``pair`` name what each system was judged on; where there are none,
the header names the systems with their seeds, and every row ``item`` is judged for each of them.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.batches import (
    ABSENT,
    ERROR,
    SCORED,
    UNDEFINED,
    Batch,
    ScoreBatch,
    coded,
    codes_of,
    pair_table,
    places,
    score_batch,
    to_table,
)
from music_evals.benchmark.found import Found, ItemRows, Outlines, PairRows, Pairs, Remarks, Table, Words
from music_evals.benchmark.listed import Bins, Listed, read_listed
from music_evals.benchmark.records import MemoryRecords, Records, reading_rows
from music_evals.benchmark.versions import kernels_of
from music_evals.errors import CorruptRecordsError

if TYPE_CHECKING:
    import pyarrow as pa

    from music_evals.benchmark.results import ScoreTask

__all__ = ["MOST_LISTED", "PairIndex", "SeededScores", "collect", "last_of_each", "last_selection"]

MOST_LISTED = 10_000
"""Failures, undefined scores and remarks of each kind that results.json lists one by one; the records hold all."""

NO_PREDICTION = "no prediction of every seed"

Row = Mapping[str, Any]
Integers = npt.NDArray[np.integer[Any]]


@reading_rows()
def collect(rows: Iterable[Row], task: ScoreTask) -> Found:
    """Read the records of a run; of two rows for one score the later one counts.

    Raises
    ------
    CorruptRecordsError
        The first row is no header, or rows have an unknown form.

    """
    records = rows if isinstance(rows, Records) else MemoryRecords(rows)
    header = records[0] if len(records) else {}
    if header.get("kind") != "run":
        raise CorruptRecordsError("the records do not start with their header; restore the file, or start afresh")
    of_items = "systems" in header
    found = (_of_items if of_items else _of_pairs)(records, header, task)
    task.finish(found)
    names = task.shown(found)
    shown = {key: [name for name in found.header[key] if name in names] for key in ("metrics", "companions")}
    if of_items:
        return found
    found = dataclasses.replace(found, header=found.header | shown)
    return dataclasses.replace(found, failures=_failures_of_pairs(found), n_failures=_n_failures_of_pairs(found))


# --- what both forms have in common


def last_of_each(keys: Integers) -> npt.NDArray[np.bool_]:
    """Tell which of some keys is the last of its kind."""
    if (keys[1:] > keys[:-1]).all():
        return np.ones(len(keys), dtype=bool)
    order = np.argsort(keys, kind="stable")
    last = np.ones(len(keys), dtype=bool)
    last[order[:-1]] = keys[order[1:]] != keys[order[:-1]]
    return last


class _Texts:
    """Messages, each once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def places(self, message: tuple[Integers, list[str]]) -> npt.NDArray[np.int32]:
        """Return the places of messages, -1 where there is none."""
        codes, words = message
        known = [self._places.setdefault(word, len(self._places)) for word in words]
        return np.array([*known, -1], dtype=np.int32)[codes]

    @property
    def all(self) -> list[str]:
        return list(self._places)


class _Grid(NamedTuple):
    """Scores by row and column."""

    values: npt.NDArray[np.float64]
    states: npt.NDArray[np.int8]
    messages: npt.NDArray[np.int32]

    @classmethod
    def empty(cls, *shape: int) -> _Grid:
        return cls(np.full(shape, np.nan), np.full(shape, ABSENT, dtype=np.int8), np.full(shape, -1, dtype=np.int32))

    def put(self, keys: Integers, scores: ScoreBatch, messages: npt.NDArray[np.int32]) -> None:
        """Put scores in their places; those with a key of -1 belong nowhere."""
        chosen = np.flatnonzero(keys >= 0)
        chosen = chosen[last_of_each(keys[chosen])]
        for held, new in ((self.values, scores.value), (self.states, scores.state), (self.messages, messages)):
            held.reshape(-1)[keys[chosen]] = new[chosen]


class _Sittings:
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


# --- records whose selections name the pairs


def last_selection(records: Records) -> tuple[int, list[Batch]]:
    """Return the number of the row that begins the last selection, and its pairs; -1 and none without one."""
    start = -1
    batches: list[Batch] = []
    for batch in records.batches("selection", "pair", text=False):
        selections = np.flatnonzero(batch.where("selection"))
        kept = batch.where("pair")
        if len(selections):
            start = int(batch.numbers[selections[-1]])
            batches.clear()
            kept[: selections[-1]] = False
        if kept.any():
            batches.append(Batch(batch.table.filter(kept), batch.numbers[kept]))
    return start, batches


class PairIndex:
    """Finds the pairs that scores belong to, by item, system and what both files hold."""

    def __init__(self, items: Words, systems: Words, originals: Words, edits: pa.Array) -> None:
        self._known = [
            {word: place for place, word in enumerate(column.words.to_pylist())}
            for column in (items, systems, originals)
        ]
        keys = self._keys(items.codes, systems.codes)
        self._order = np.argsort(keys, kind="stable")
        self._keys_sorted = keys[self._order]
        self._original = originals.codes
        self._edits = edits

    def _keys(self, items: Integers, systems: Integers) -> npt.NDArray[np.int64]:
        keys = systems.astype(np.int64) * len(self._known[0]) + items
        known: npt.NDArray[np.int64] = np.where((items < 0) | (systems < 0), -1, keys)
        return known

    def places(self, rows: ScoreBatch | Batch) -> npt.NDArray[np.int64]:
        """Return the place of the pair of each row; -1 for one that is of none of these pairs."""
        import pyarrow as pa
        import pyarrow.compute as pc

        columns: list[tuple[Integers, list[str]]]
        written: tuple[Integers, pa.StringArray]
        if isinstance(rows, Batch):
            columns = [*(codes_of(rows.table, name) for name in ("item", "system", "reference"))]
            written = coded(rows.table, "estimate")
        else:
            columns, written = [rows.item, rows.system, rows.reference], rows.estimate
        edit, edits = written
        codes = [*(column for column, _ in columns), edit]
        if any((column < 0).any() for column in codes):
            names = ("item", "system", "content", "content")
            raise KeyError(next(name for name, column in zip(names, codes, strict=True) if (column < 0).any()))
        # rows of one pair follow each other: only the first of them is looked up
        first = np.ones(len(codes[0]), dtype=bool)
        first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in codes])
        items, systems, originals = (
            places(words, held)[column[first]] for (column, words), held in zip(columns, self._known, strict=True)
        )
        keys = self._keys(items, systems)
        nearest = np.minimum(np.searchsorted(self._keys_sorted, keys), len(self._order) - 1)
        there = (keys >= 0) & (originals >= 0)
        found = np.full(len(keys), -1, dtype=np.int64)
        if len(self._order) and there.any():
            place = self._order[nearest]
            same = pc.equal(self._edits.take(pa.array(place)), edits.take(pa.array(edit[first])))
            there &= (self._keys_sorted[nearest] == keys) & (self._original[place] == originals)
            there &= same.fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003 (a value)
            found[there] = place[there]
        places_of_rows: npt.NDArray[np.int64] = found[np.cumsum(first) - 1]
        return places_of_rows


def _of_pairs(records: Records, header: dict[str, Any], task: ScoreTask) -> Found:
    """Read records whose selections name the pairs."""
    import pyarrow as pa

    start, batches = last_selection(records)
    if start < 0:
        raise LookupError("no selection")
    systems = list(records[start]["systems"])
    wanted = ["item", "system", "group", "reference", "entrance", "error", "estimate"]
    parts = [pair_table(batch).select(wanted) for batch in batches] or [to_table([]).select(wanted)]
    numbers = np.concatenate([*(batch.numbers for batch in batches), np.empty(0, np.int64)])
    del batches
    edits = pa.concat_arrays([part["estimate"].cast(pa.string()).combine_chunks() for part in parts])
    whole = pa.concat_tables([part.drop_columns(["estimate"]) for part in parts]).unify_dictionaries()
    del parts
    found_systems, order, slices = _by_system(whole)
    if (order[1:] < order[:-1]).any():
        whole, numbers, edits = whole.take(pa.array(order)), numbers[order], edits.take(pa.array(order))
    # records of before a control had its name may hold a system that was called so
    controls = [name for name in task.controls if name in slices and name not in systems]
    columns = tuple(dict.fromkeys((*header["metrics"], *header["companions"])))
    grid = _Grid.empty(len(whole), len(columns))
    items, groups, originals, entrances, errors = (
        Words.of(whole[name]) for name in ("item", "group", "reference", "entrance", "error")
    )
    table = Table(
        records,
        items,
        groups,
        originals,
        entrances,
        errors,
        numbers,
        slices,
        columns,
        *grid,
        (),
        {},
        functools.partial(_pair_of, records, numbers),
    )
    del whole
    index = PairIndex(items, found_systems, originals, edits)
    made = _Made(records, index, columns, grid)
    table.texts = made.texts.all
    return Found(
        header=header,
        roles=dict.fromkeys(systems, "system") | dict.fromkeys(controls, "control"),
        pairs={name: Pairs(table, name, np.arange(rows.start, rows.stop)) for name, rows in slices.items()},
        table=table,
        records=records,
        remarks=Remarks(table, made.remarks, made.notes.all, without=controls),
        outlines=Outlines(records),
        explanations=PairRows(table, made.explanations, functools.partial(_pair_of, records, made.explanations)),
        wall_time_sec=made.sittings.wall_time_sec,
        kernels=made.sittings.kernels,
    )


def _by_system(pairs: pa.Table) -> tuple[Words, Integers, dict[str, slice]]:
    """Return the system of each pair in a new order, the order, and the rows of each system in it."""
    systems = Words.of(pairs["system"])
    found, first = np.unique(systems.codes, return_index=True)
    rank = np.zeros(len(found), dtype=np.int64)
    rank[found[np.argsort(first)]] = np.arange(len(found))
    order = np.argsort(rank[systems.codes], kind="stable")
    sorted_systems = systems.take(order)
    ends = np.cumsum(np.bincount(rank[systems.codes], minlength=len(found)))
    names = sorted_systems.text(ends - 1)
    slices = {
        name: slice(start, end) for name, start, end in zip(names, [0, *ends[:-1].tolist()], ends.tolist(), strict=True)
    }
    return sorted_systems, order, slices


def _pair_of(records: Records, numbers: npt.NDArray[np.int64], row: int) -> dict[str, Any]:
    """Return a pair as it was recorded."""
    return records[int(numbers[row])]


class _Made:
    """What came of the pairs: scores, remarks, explanations."""

    def __init__(self, records: Records, index: PairIndex, columns: Sequence[str], grid: _Grid) -> None:
        n = len(grid.values)
        self.texts, self.notes = _Texts(), _Texts()
        self.sittings = _Sittings(records)
        self.remarks = np.full(n, -1, dtype=np.int32)
        self.explanations = np.full(n, -1, dtype=np.int64)
        known = {name: place for place, name in enumerate(columns)}
        for batch in records.batches("score", "remarks", "explanation", text=False):
            if (rows := batch.only("score")) is not None:
                scores = score_batch(rows)
                self.sittings.saw(scores)
                row, column = index.places(scores), places(scores.metric[1], known)[scores.metric[0]]
                keys = np.where((row < 0) | (column < 0), -1, row * len(columns) + column)
                grid.put(keys, scores, self.texts.places(scores.message))
            if (rows := batch.only("remarks")) is not None:
                told, kept = _latest(index, rows)
                self.remarks[told] = self.notes.places(_notes(rows))[kept]
            if (rows := batch.only("explanation")) is not None:
                told, kept = _latest(index, rows)
                self.explanations[told] = rows.numbers[kept]


def _latest(index: PairIndex, batch: Batch) -> tuple[Integers, Integers]:
    """Return pairs that something is told of, each once, and the row of the batch that tells it last."""
    row = index.places(batch)
    kept = np.flatnonzero(row >= 0)
    kept = kept[last_of_each(row[kept])]
    return row[kept], kept


def _notes(batch: Batch) -> tuple[Integers, list[str]]:
    """Return remarks, each a list as JSON text."""
    codes, words = codes_of(batch.table, "notes")
    if (codes >= 0).all():
        return codes, words
    texts = [json.dumps(list(row["notes"])) for row in batch.rows()]
    return np.arange(len(texts)), texts


def _failed(found: Found, pairs: Pairs) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return the error of each score, shape (n, scores), -1 for none; and which pairs failed as a whole."""
    # A pair all of whose scores failed for one reason is one failure.
    n = len(found.names)
    states = np.array([pairs.states(name) for name in found.names]).reshape(n, len(pairs)).T
    messages = np.array([pairs.messages(name) for name in found.names]).reshape(n, len(pairs)).T
    errors = np.where(states == ERROR, messages, -1)
    whole = (errors >= 0).all(axis=1) & (errors == errors[:, :1]).all(axis=1) if n else np.zeros(len(pairs), bool)
    return errors, pairs.failed | whole


def _failures_of_pairs(found: Found) -> list[dict[str, Any]]:
    """Return the first results that failed."""
    table = found.table
    listed: list[dict[str, Any]] = []
    for system in found.systems:
        pairs = found.of(system)
        errors, whole = _failed(found, pairs)
        chosen = np.flatnonzero(whole | (errors >= 0).any(axis=1))[: MOST_LISTED - len(listed)]
        rows = pairs.rows[chosen]
        reasons = [
            table.errors.words[code].as_py() if code >= 0 else None for code in table.errors.codes[rows].tolist()
        ]
        told = (table.items.text(rows), reasons, whole[chosen].tolist(), errors[chosen].tolist())
        for item, reason, at_once, messages in zip(*told, strict=True):
            why: dict[str | None, str] = {}
            if at_once:
                why[None] = table.texts[messages[0]] if reason is None else reason
            else:
                why |= {name: table.texts[code] for name, code in zip(found.names, messages, strict=True) if code >= 0}
            listed += [{"item": item, "system": system, "metric": name, "error": text} for name, text in why.items()]
    return listed[:MOST_LISTED]


def _n_failures_of_pairs(found: Found) -> Counter[tuple[str | None, str | None]]:
    """Return how many results failed, by system and score."""
    n: Counter[tuple[str | None, str | None]] = Counter()
    for system in found.systems:
        errors, whole = _failed(found, found.of(system))
        alone = np.count_nonzero(errors[~whole] >= 0, axis=0).tolist()
        n[system, None] = int(np.count_nonzero(whole))
        n.update({(system, name): count for name, count in zip(found.names, alone, strict=True)})
    return +n


# --- records whose header names the systems


def _of_items(records: Records, header: dict[str, Any], task: ScoreTask) -> Found:
    """Read records whose header names the systems with their seeds: each is judged on every item."""
    items, songs, broken = _items(records)
    seeds = {name: list(held["seeds"]) for name, held in header["systems"].items()}
    columns = dict.fromkeys((*task.scales, *task.divergences.values()))
    made = SeededScores(records, list(items), seeds, list(columns), alone=task.without_prediction)
    table = _table_of_items(records, items, songs, made)
    table.listed = {
        (name, system): bins for name, listed in task.listed.items() for system, bins in made.listed(listed).items()
    }
    may_be_absent = {*task.without_prediction, *task.on_request}
    metrics = [name for name in task.scales if name not in may_be_absent or made.has(name)]
    failed = [*broken, *made.failures()]
    failures = [dict(zip(("item", "system", "seed", "metric", "error"), row, strict=True)) for row in failed]
    return Found(
        header=header | {"metrics": metrics, "companions": []},
        roles={name: held["role"] for name, held in header["systems"].items()},
        pairs={name: Pairs(table, name, np.arange(rows.start, rows.stop)) for name, rows in table.systems.items()},
        table=table,
        records=records,
        outlines=Outlines(records),
        explanations=PairRows(table, np.full(len(table.values), -1), lambda row: row),
        remarks=Remarks(table, np.full(len(table.values), -1, dtype=np.int32), (), without=()),
        failures=failures[:MOST_LISTED],
        n_failures=Counter((system, metric) for _, system, _, metric, _ in failed),
        items=ItemRows(records, items),
        songs=songs,
        predictions=_Predictions(table, made),
        wall_time_sec=made.sittings.wall_time_sec,
        kernels=made.sittings.kernels,
    )


Failure = tuple[str, str | None, int | None, str | None, str]
"""Item, system, seed, metric and error."""


def _items(records: Records) -> tuple[dict[str, int], list[str], list[Failure]]:
    """Return the number of the row of each item, their songs, and the items that could not be read."""
    numbers: dict[str, int] = {}
    songs: dict[str, str] = {}
    broken: list[Failure] = []
    for batch in records.batches("item"):
        for number, row in zip(batch.numbers.tolist(), batch.rows(), strict=True):
            if "error" in row:
                broken.append((row["item"], None, None, None, row["error"]))
            else:
                numbers[row["item"]], songs[row["item"]] = number, row["song"]
    return numbers, list(songs.values()), broken


class SeededScores:
    """What came of each item with each seed of each system: a row of the grid for each of these."""

    def __init__(
        self,
        records: Records,
        items: Sequence[str],
        seeds: Mapping[str, Sequence[int]],
        columns: Sequence[str],
        *,
        alone: Collection[str] = (),
    ) -> None:
        self.items, self.seeds, self.columns, self._records = items, seeds, tuple(columns), records
        self.texts, self.sittings = _Texts(), _Sittings(records)
        # without a prediction every metric of it fails, for one reason; what needs none has its own
        self._alone = np.array([name in alone for name in self.columns])
        self._places = {item: place for place, item in enumerate(items)}
        self._starts = np.cumsum([0, *(len(items) * len(held) for held in seeds.values())])
        n_rows = int(self._starts[-1])
        self._grid = _Grid.empty(n_rows, len(self.columns))
        self._first = np.full(n_rows * len(self.columns), -1, dtype=np.int64)  # number of the first row of a score
        self._predictions = np.full(n_rows, -1, dtype=np.int64)  # number of the row
        known = {name: place for place, name in enumerate(self.columns)}
        for batch in records.batches("prediction", text=False):
            rows = self._rows(codes_of(batch.table, "item"), codes_of(batch.table, "system"), _seeds_of(batch))
            last = last_of_each(rows)
            self._predictions[rows[last]] = batch.numbers[last]
        for batch in records.batches("score", text=False):
            scores = score_batch(batch)
            self.sittings.saw(scores)
            rows = self._rows(scores.item, scores.system, scores.seed)
            column = places(scores.metric[1], known)[scores.metric[0]]
            keys = np.where(column < 0, -1, rows * len(self.columns) + column)
            self._grid.put(keys, scores, self.texts.places(scores.message))
            new, first = np.unique(keys, return_index=True)
            fresh = (new >= 0) & (self._first[new] < 0)
            self._first[new[fresh]] = scores.numbers[first[fresh]]
        # a chunk that is tried again may fail on an item that it had a prediction for
        self._predictions[(self._grid.states[:, ~self._alone] == ERROR).any(axis=1)] = -1

    def _rows(
        self, item: tuple[Integers, list[str]], system: tuple[Integers, list[str]], seeds: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int64]:
        """Return the row of the grid of each score or prediction; raises as a dictionary for what is not judged."""
        systems = {name: place for place, name in enumerate(self.seeds)}
        found = [places(words, held)[codes] for (codes, words), held in ((item, self._places), (system, systems))]
        for known, (codes, words) in zip(found, (item, system), strict=True):
            if (known < 0).any():
                raise KeyError((*words, None)[codes[np.flatnonzero(known < 0)[0]]])
        rows = np.empty(len(seeds), dtype=np.int64)
        for place, held in enumerate(self.seeds.values()):
            own = found[1] == place
            order = np.argsort(held, kind="stable")
            which = np.searchsorted(np.array(held, dtype=np.float64), seeds[own], sorter=order)
            if (which >= len(held)).any() or (np.array(held)[order[which]] != seeds[own]).any():
                raise KeyError("seed")
            rows[own] = self._starts[place] + found[0][own] * len(held) + order[which]
        return rows

    def good(self, system: str, seed: int, items: range, columns: Sequence[str]) -> bool:
        """Tell whether all of some scores are there and none of them failed."""
        place = list(self.seeds).index(system)
        n_seeds = len(self.seeds[system])
        rows = self._starts[place] + np.array(items) * n_seeds + list(self.seeds[system]).index(seed)
        states = self._grid.states[np.ix_(rows, [self.columns.index(name) for name in columns])]
        return bool(((states == SCORED) | (states == UNDEFINED)).all())

    def has(self, name: str) -> bool:
        """Tell whether any system has a score."""
        return bool((self._grid.states[:, self.columns.index(name)] != ABSENT).any())

    def of(self, place: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Return values (items, seeds, columns) of a system, whether they are there, and predictions (items, seeds)."""
        rows = slice(int(self._starts[place]), int(self._starts[place + 1]))
        shape = (len(self.items), len(list(self.seeds.values())[place]))
        values = self._grid.values[rows].reshape(*shape, len(self.columns))
        states = self._grid.states[rows].reshape(*shape, len(self.columns))
        predictions = self._predictions[rows].reshape(shape)
        complete = np.logical_and.reduce(predictions >= 0, axis=1)
        there = np.logical_or.reduce(states != ABSENT, axis=1) & (complete[:, None] | self._alone)
        return values, there, predictions

    def listed(self, listed: Listed) -> dict[str, Bins]:
        """Return what is listed of the predictions of each system, shape (seeds, items, most)."""
        every = read_listed(self._records, self._predictions, listed)
        parts = np.split(every, self._starts[1:-1])
        return {
            name: part.reshape(len(self.items), len(held), every.shape[1]).swapaxes(0, 1)
            for (name, held), part in zip(self.seeds.items(), parts, strict=True)
        }

    def failures(self) -> Iterator[Failure]:
        """Yield what failed, in the order in which it was first recorded."""
        rows, columns = np.nonzero(self._grid.states == ERROR)
        order = np.argsort(self._first[rows * len(self.columns) + columns], kind="stable")
        names = list(self.seeds)
        found: dict[tuple[str, str, int, str | None], str] = {}
        for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
            place = int(np.searchsorted(self._starts, row, side="right")) - 1
            seeds = self.seeds[names[place]]
            item, seed = divmod(row - int(self._starts[place]), len(seeds))
            metric = self.columns[column] if self._alone[column] else None
            error = self.texts.all[self._grid.messages[row, column]]
            found[self.items[item], names[place], seeds[seed], metric] = error
        yield from ((*who, error) for who, error in found.items())


def _seeds_of(batch: Batch) -> npt.NDArray[np.float64]:
    return np.asarray(batch.table["seed"].to_numpy(), dtype=np.float64)


def _table_of_items(records: Records, items: Mapping[str, int], songs: Sequence[str], made: SeededScores) -> Table:
    """Return a pair of each item with each system; it has an error unless there is a prediction of every seed."""
    import pyarrow as pa

    n, names = len(items), list(made.seeds)
    parts = [made.of(place) for place in range(len(names))]
    grid = _Grid.empty(n * len(names), len(made.columns))
    failed = np.zeros(len(grid.values), dtype=bool)
    for place, (values, there, predictions) in enumerate(parts):
        rows = slice(place * n, place * n + n)
        means = _means(values)
        grid.values[rows] = np.where(there, means, np.nan)
        grid.states[rows] = np.where(there, np.where(np.isnan(means), UNDEFINED, SCORED), ABSENT)
        failed[rows] = (predictions < 0).any(axis=1)
    every = np.tile(np.arange(n), len(names))
    words, groups, entrances = (Words.of(pa.array(column, pa.string())) for column in (list(items), songs, ["item"]))
    errors = Words.of(pa.array([NO_PREDICTION], pa.string()))
    return Table(
        records,
        words.take(every),
        groups.take(every),
        words.take(every),
        entrances.take(np.zeros(len(every), dtype=np.int64)),
        errors._replace(codes=np.where(failed, 0, -1).astype(np.int32)),
        np.tile(np.fromiter(items.values(), np.int64, n), len(names)),
        {name: slice(place * n, place * n + n) for place, name in enumerate(names)},
        made.columns,
        *grid,
        made.texts.all,
        {name: part[0].swapaxes(0, 1) for name, part in zip(names, parts, strict=True)},
        functools.partial(_pair_of_item, list(items), songs, names, failed),
    )


def _means(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the means over the seeds that define a score, of values (items, seeds, columns)."""
    defined = ~np.isnan(values)
    total = np.zeros((len(values), values.shape[2]))
    for seed in range(values.shape[1]):  # one after the other, in the order of the seeds
        total += np.where(defined[:, seed], values[:, seed], 0.0)
    n = np.count_nonzero(defined, axis=1)
    means = np.full(total.shape, np.nan)
    np.divide(total, n, out=means, where=n > 0)
    return means


def _pair_of_item(
    items: Sequence[str], songs: Sequence[str], systems: Sequence[str], failed: npt.NDArray[np.bool_], row: int
) -> dict[str, Any]:
    """Return the pair that an item and a system make."""
    system, place = divmod(row, len(items))
    side = {"name": items[place], "content": items[place]}
    pair = {"item": items[place], "system": systems[system], "group": songs[place], "entrance": "item"}
    return pair | {"reference": side} | ({"error": NO_PREDICTION} if failed[row] else {})


class _Predictions(Mapping[tuple[str, str], list[Any]]):
    """What each system wrote for each item with each of its seeds; None where there is none."""

    def __init__(self, table: Table, made: SeededScores) -> None:
        self._table = table
        self._numbers = {name: made.of(place)[2] for place, name in enumerate(made.seeds)}

    def __getitem__(self, key: tuple[str, str]) -> list[Any]:
        row = self._table.row_of(*key)
        if row < 0:
            raise KeyError(key)
        numbers = self._numbers[key[1]][row - self._table.systems[key[1]].start].tolist()
        rows = iter(self._table.records.read(number for number in numbers if number >= 0))
        return [next(rows)["middle"] if number >= 0 else None for number in numbers]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for system, rows in self._table.systems.items():
            yield from ((item, system) for item in self._table.items.text(rows))

    def __len__(self) -> int:
        return len(self._table.values)
