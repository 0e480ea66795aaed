"""Pairs and their scores in columns: text by numbers, the table of all systems, and the pairs of one of them.

A row of the table is a pair of a system; the rows of a system stand together. Items, groups and hashes are numbered in
the order of their sorted names, so that what is sorted by number is sorted by name.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.batches import ABSENT
from music_evals.benchmark.listed import Bins
from music_evals.benchmark.records import Records

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Floats", "Integers", "Mask", "Pairs", "Row", "Table", "Words"]


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
