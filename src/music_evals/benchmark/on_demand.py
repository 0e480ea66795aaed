"""What is drawn or listed one by one, read from the records when it is asked for: rows of pairs, remarks, outlines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.batches import pair_table
from music_evals.benchmark.columns import Mask, Pairs, Row, Table
from music_evals.benchmark.records import Records

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ItemRows", "Outlines", "PairRows", "Remarks"]

_AT_ONCE = 10_000


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
