"""What was found in the records of a run: pairs and their scores in columns.

A row of the table is a pair of a system; the rows of a system stand together. Items, groups and hashes are numbered in
the order of their sorted names, so that what is sorted by number is sorted by name. What is drawn or listed one by one
(explanations, outlines, predictions, whole rows) is read from the records when it is asked for.
"""

from __future__ import annotations

import bisect
import dataclasses
import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.batches import ABSENT, UNDEFINED, pair_table
from music_evals.benchmark.listed import Bins
from music_evals.benchmark.records import Records

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["OUTSIDE", "Found", "Outlines", "PairRows", "Pairs", "Remarks", "Table", "Words"]

_AT_ONCE = 10_000

OUTSIDE = frozenset({"control", "leaking"})
"""Roles that have seen the reference: they are compared with nobody and get no rank."""

Row = Mapping[str, Any]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]


class Words(NamedTuple):
    """Text by numbers, in the order of the sorted words."""

    codes: npt.NDArray[np.int32]  # -1 where there is none
    words: pa.StringArray  # each once, sorted

    @classmethod
    def of(cls, column: pa.ChunkedArray | pa.Array) -> Words:
        """Return a column of text by numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        chunks = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        if not pa.types.is_dictionary(chunks.type):
            chunks = chunks.dictionary_encode()
        found = chunks.unify_dictionaries().combine_chunks()
        codes = found.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        used = np.unique(codes[codes >= 0])
        words = found.dictionary.take(pa.array(used))
        order = pc.array_sort_indices(words).to_numpy()
        ranks = np.full(len(found.dictionary) + 1, -1, dtype=np.int32)
        ranks[used[order]] = np.arange(len(used), dtype=np.int32)
        return cls(ranks[codes], words.take(pa.array(order)))

    def take(self, rows: Integers) -> Words:
        """Return the text of some rows, numbered as before."""
        return self._replace(codes=self.codes[rows])

    def text(self, rows: Integers | slice = slice(None)) -> list[str]:
        """Return the text of some rows, which have one."""
        import pyarrow as pa

        found: list[str] = self.words.take(pa.array(self.codes[rows], mask=self.codes[rows] < 0)).to_pylist()
        return found

    def code(self, word: str) -> int:
        """Return the number of a word; -1 for one that is not there."""
        place = bisect.bisect_left(range(len(self.words)), word, key=lambda n: self.words[n].as_py())
        return place if place < len(self.words) and self.words[place].as_py() == word else -1

    def codes_of(self, words: Sequence[str]) -> npt.NDArray[np.int32]:
        """Return the numbers of words; -1 for those that are not there."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.index_in(pa.array(words, pa.string()), value_set=self.words).fill_null(-1)
        codes: npt.NDArray[np.int32] = found.to_numpy(zero_copy_only=False)
        return codes


@dataclasses.dataclass(eq=False)
class Table:
    """The pairs of all systems, one row each, and what each score of them is."""

    records: Records
    # Of each row: its item, its group, the hash of its original, and where it came in. Of a pair that could not be
    # judged only the item is known.
    items: Words
    groups: Words
    originals: Words
    entrances: Words
    errors: Words  # why a pair could not be judged
    numbers: npt.NDArray[np.int64]  # of the rows of the records that name the pairs
    systems: Mapping[str, slice]  # system -> its rows
    names: tuple[str, ...]  # scores, the columns of what follows
    values: Floats  # shape (rows, scores); the mean over seeds where there are several
    states: npt.NDArray[np.int8]  # what there is of a score, see `batches`
    messages: npt.NDArray[np.int32]  # errors and reasons, as places in `texts`; -1 for none
    texts: Sequence[str]
    # System -> the scores of each seed, shape (seeds, its rows, scores); nothing where there are no seeds.
    seeds: Mapping[str, Floats]
    make: Callable[[int], dict[str, Any]]  # row of the table -> the pair as a dictionary
    # Score and system -> the bins of what is listed of each prediction, shape (seeds, its rows, most); see `listed`.
    listed: Mapping[tuple[str, str], Bins] = dataclasses.field(default_factory=dict)

    def system_of(self, row: int) -> str:
        """Return the system of a row."""
        return next(name for name, rows in self.systems.items() if rows.start <= row < rows.stop)

    def row_of(self, item: str, system: str) -> int:
        """Return the row of a pair; -1 for one that is not there."""
        rows = self.systems.get(system, slice(0, 0))
        number = self.items.code(item)
        places = np.flatnonzero(self.items.codes[rows] == number) if number >= 0 else np.empty(0, dtype=np.int64)
        return rows.start + int(places[0]) if len(places) else -1

    def rows_of(self, items: Sequence[str], system: str) -> Integers:
        """Return the row of each item; -1 where it is not there."""
        return self.rows_by_number(self.items.codes_of(items), system)

    def rows_by_number(self, items: Integers, system: str) -> Integers:
        """Return the row of each item, given by its number; -1 where it is not there."""
        rows = self.systems.get(system, slice(0, 0))
        own = self.items.codes[rows]
        if not len(own):
            return np.full(len(items), -1)
        order = np.argsort(own, kind="stable")
        places = order[np.minimum(np.searchsorted(own, items, sorter=order), len(own) - 1)]
        return np.where((own[places] == items) & (items >= 0), places + rows.start, -1)


class Pairs(Sequence[Row]):
    """Some pairs of one system, in columns. As a sequence: one dictionary a pair, made when it is asked for."""

    def __init__(self, table: Table, system: str, rows: Integers) -> None:
        self.table, self.system, self.rows = table, system, rows

    @property
    def items(self) -> npt.NDArray[np.int32]:
        """Number of each item."""
        return self.table.items.codes[self.rows]

    @property
    def groups(self) -> npt.NDArray[np.int32]:
        """Number of each group; -1 of a pair that could not be judged."""
        return self.table.groups.codes[self.rows]

    @property
    def originals(self) -> npt.NDArray[np.int32]:
        """Number of each original; -1 of a pair that could not be judged."""
        return self.table.originals.codes[self.rows]

    @property
    def failed(self) -> Mask:
        """Which pairs could not be judged."""
        return self.table.errors.codes[self.rows] >= 0

    def take(self, chosen: Integers | Mask) -> Pairs:
        """Return some of them."""
        return Pairs(self.table, self.system, self.rows[chosen])

    def by_item(self) -> Pairs:
        """Return them sorted by item."""
        items = self.items
        return self if (items[1:] >= items[:-1]).all() else self.take(np.argsort(items, kind="stable"))

    def values(self, *names: str) -> Floats:
        """Return scores, shape (n, names); NaN where they are undefined or failed."""
        columns = [self.table.names.index(name) if name in self.table.names else -1 for name in names]
        if -1 not in columns:
            chosen: Floats = self.table.values[np.ix_(self.rows, np.array(columns, dtype=np.int64))]
            return chosen
        found = np.full((len(self.rows), len(names)), np.nan)
        for place, column in enumerate(columns):
            if column >= 0:
                found[:, place] = self.table.values[self.rows, column]
        return found

    def states(self, name: str) -> npt.NDArray[np.int8]:
        """Return what there is of a score of each pair."""
        found = np.full(len(self.rows), ABSENT, dtype=np.int8)
        if name in self.table.names:
            found[:] = self.table.states[self.rows, self.table.names.index(name)]
        return found

    def messages(self, name: str) -> npt.NDArray[np.int32]:
        """Return the error or reason of a score of each pair, as places in `Table.texts`; -1 for none."""
        found = np.full(len(self.rows), -1, dtype=np.int32)
        if name in self.table.names:
            found[:] = self.table.messages[self.rows, self.table.names.index(name)]
        return found

    def by_seed(self, name: str) -> Floats:
        """Return the scores of each seed, shape (seeds, n); no row where none of the pairs has it."""
        if self.system not in self.table.seeds or not (self.states(name) != ABSENT).any():
            return np.empty((0, len(self.rows)))
        by_seed = self.table.seeds[self.system][:, :, self.table.names.index(name)]
        found = by_seed[:, self.rows - self.table.systems[self.system].start]
        return np.where(self.states(name) == ABSENT, np.nan, found)

    def listed(self, name: str) -> Bins:
        """Return the bins of what is listed for a score, shape (seeds, n, most)."""
        return self.table.listed[name, self.system][:, self.rows - self.table.systems[self.system].start]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> Pairs: ...

    def __getitem__(self, place: int | slice) -> Row | Pairs:
        if isinstance(place, slice):
            return Pairs(self.table, self.system, self.rows[place])
        return self.table.make(int(self.rows[place]))


class PairRows(Mapping[tuple[str, str], Any]):
    """What was recorded of pairs, by item and system, read when it is asked for."""

    def __init__(self, table: Table, numbers: npt.NDArray[np.int64], make: Callable[[int], Any]) -> None:
        self._table, self._make = table, make
        self.numbers = numbers  # of the row of each pair of the table; -1 where there is none

    def there(self, pairs: Pairs) -> Mask:
        """Tell for which pairs there is something."""
        return self.numbers[pairs.rows] >= 0

    def __getitem__(self, key: tuple[str, str]) -> Any:
        row = self._table.row_of(*key)
        if row < 0 or self.numbers[row] < 0:
            raise KeyError(key)
        return self._make(row)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for system, rows in self._table.systems.items():
            places = rows.start + np.flatnonzero(self.numbers[rows] >= 0)
            yield from ((item, system) for item in self._table.items.text(places))

    def __len__(self) -> int:
        return int(np.count_nonzero(self.numbers >= 0))


class Remarks(Sequence[Row]):
    """The remarks on pairs, sorted by item and system: ``item``, ``system``, ``notes``."""

    def __init__(self, table: Table, codes: npt.NDArray[np.int32], texts: Sequence[str], *, without: Collection[str]):
        self._table, self._codes, self._texts = table, codes, texts
        self._known: dict[int, list[str]] = {}
        systems = sorted(table.systems)
        system = np.zeros(len(codes), dtype=np.int32)
        shown = codes >= 0
        for place, name in enumerate(systems):
            system[table.systems[name]] = place
            if name in without:
                shown[table.systems[name]] = False
        order = np.lexsort((system, table.items.codes))
        self._rows = order[shown[order]]

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | list[Row]:
        if not isinstance(place, slice):
            return self[place : place + 1 or None][0]
        rows = self._rows[place]
        told = (self._table.items.text(rows), map(self._table.system_of, rows.tolist()), self._codes[rows].tolist())
        return [
            {"item": item, "system": system, "notes": self._notes(code)}
            for item, system, code in zip(*told, strict=True)
        ]

    def __iter__(self) -> Iterator[Row]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self[start : start + _AT_ONCE]

    def counts(self) -> Counter[str]:
        """Return how many pairs have each remark."""
        found: Counter[str] = Counter()
        codes, counts = np.unique(self._codes[self._rows], return_counts=True)
        for code, n in zip(codes.tolist(), counts.tolist(), strict=True):
            for note in self._notes(code):
                found[note] += n
        return found

    def _notes(self, code: int) -> list[str]:
        if code not in self._known:  # the same remarks are made again and again
            self._known[code] = json.loads(self._texts[code])
        return self._known[code]


class Outlines(Mapping[str, Row]):
    """What can be drawn of files, by the hash of a file; found when it is first asked for, and read one by one."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._index: tuple[pa.StringArray, npt.NDArray[np.int64]] | None = None

    def music(self, wanted: Collection[str]) -> dict[str, str]:
        """Return the hash of the music in files, for those of the wanted ones that have one."""
        found: dict[str, str | None] = {}
        for batch in self._records.batches("outline", text=False):
            columns = (batch.table[name].to_pylist() for name in ("reference", "music"))
            found |= {content: music for content, music in zip(*columns, strict=True) if content in wanted}
        return {content: music for content, music in found.items() if music is not None}

    def places(self, contents: pa.Array | Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the number of the row of each file; -1 for one that has no outline."""
        import pyarrow as pa
        import pyarrow.compute as pc

        known, numbers = self._known()
        place = pc.index_in(pa.array(contents, pa.string()), value_set=known).fill_null(len(known))
        found: npt.NDArray[np.int64] = numbers[place.to_numpy(zero_copy_only=False)]
        return found

    def of_both(self, pairs: Pairs) -> Mask:
        """Tell for which pairs both files have an outline."""
        import pyarrow as pa

        table = pairs.table
        originals = np.append(self.places(table.originals.words), -1)[pairs.originals]
        numbers, edits = [np.empty(0, np.int64)], [pa.array([], pa.string())]
        for batch in self._records.batches("pair", text=False):
            numbers.append(batch.numbers)
            edits.append(pair_table(batch)["estimate"].cast(pa.string()).combine_chunks())
        row = np.searchsorted(np.concatenate(numbers), table.numbers[pairs.rows])
        return (originals >= 0) & (self.places(pa.concat_arrays(edits).take(pa.array(row))) >= 0)

    def _known(self) -> tuple[pa.StringArray, npt.NDArray[np.int64]]:
        """Return the files, the last written first, with the numbers of their rows; of no file it is -1."""
        import pyarrow as pa

        if self._index is None:
            words, rows = [pa.array([], pa.string())], [np.empty(0, np.int64)]
            for batch in self._records.batches("outline", text=False):
                words.append(batch.table["reference"].cast(pa.string()).combine_chunks())
                rows.append(batch.numbers)
            contents, numbers = pa.concat_arrays(words), np.concatenate(rows)
            self._index = contents.take(pa.array(np.arange(len(contents))[::-1])), np.append(numbers[::-1], -1)
        return self._index

    def __getitem__(self, content: str) -> Row:
        (number,) = self.places([content])
        if number < 0:
            raise KeyError(content)
        return self._records.read([number])[0]

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys(self._known()[0].to_pylist())

    def __len__(self) -> int:
        return len(set(self._known()[0].to_pylist()))


class ItemRows(Mapping[str, Row]):
    """The rows of items, in their order, read when they are asked for."""

    def __init__(self, records: Records, numbers: Mapping[str, int]) -> None:
        self._records, self._numbers = records, numbers

    def __getitem__(self, item: str) -> Row:
        return self._records.read([self._numbers[item]])[0]

    def __iter__(self) -> Iterator[str]:
        yield from self._numbers

    def __len__(self) -> int:
        return len(self._numbers)


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """The records of a run, those of its last selection."""

    header: dict[str, Any]  # the run row, with ``metrics`` and ``companions``
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
        """Metrics and companions."""
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
