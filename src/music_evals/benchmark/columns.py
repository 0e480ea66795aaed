"""Rows of records as columns of a table, and back; and text by numbers, as such columns hold it.

Scores, pairs and remarks have each of their fields in a column of its own; further fields, and rows of other kinds,
stand as JSON text in the column ``json``, with item, system and seed beside it where they have them.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import CorruptRecordsError

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]
Integers = npt.NDArray[np.integer[Any]]

REMEDY = "restore the file from a copy, or start afresh (`overwrite=True`)"

TEXT: Final = (
    "kind", "item", "system", "metric", "variant", "reference", "estimate", "error", "reason",
    "group", "modality", "treatment", "reference_name", "estimate_name", "notes", "music",
)  # fmt: skip
"""Columns of text; ``reference`` and ``estimate`` are hashes of files, ``notes`` a JSON list."""

COLUMNS: Final = (*TEXT, "seed", "n", "value", "json")

_TYPED: Final = frozenset({"score", "pair", "remarks"})
"""Kinds of rows with columns of their own."""

_PLAIN: Final = frozenset((*TEXT, "seed", "n")) - {
    "reference", "estimate", "reference_name", "estimate_name", "notes", "music",
}  # fmt: skip
"""Fields of these that are their columns."""

_BESIDE: Final = {"item": str, "system": str, "music": str, "seed": int}
"""Fields of rows of other kinds that stand beside their JSON where they have these types."""

_SIDES: Final = ("reference", "estimate")

RENAMED: Final = {"entrance": "modality"}  # old name of a field -> its name

_INFINITE: Final = {"inf": math.inf, "-inf": -math.inf}


def dump_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON text without NaN or Infinity: what a value of null means is said by the reader's contract."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(value, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)


@functools.cache
def schema() -> pa.Schema:
    """Return the columns with their types."""
    import pyarrow as pa

    words = [(name, pa.dictionary(pa.int32(), pa.string())) for name in TEXT]
    return pa.schema([*words, ("seed", pa.int64()), ("n", pa.int64()), ("value", pa.float64()), ("json", pa.string())])


def to_table(rows: Iterable[Row]) -> pa.Table:
    """Return rows in columns; raises TypeError where a score, a pair or remarks hold a field of another type."""
    import pyarrow as pa

    columns = list(zip(*(tuple(map(_cells(row).get, COLUMNS)) for row in rows), strict=True)) or [()] * len(COLUMNS)
    arrays = []
    for field, column in zip(schema(), columns, strict=True):
        words = pa.types.is_dictionary(field.type)
        array = pa.array(column, pa.string() if words else field.type)
        arrays.append(array.dictionary_encode() if words else array)
    return pa.Table.from_arrays(arrays, schema=schema())


def _cells(row: Row) -> dict[str, Any]:
    """Return the cells of a row; what has no column of its own is in ``json``."""
    kind, content = row["kind"], row.get("content")
    sides: Any = [content] if content.__class__ is str else content
    are_hashes = content.__class__ is str or (
        sides.__class__ in {list, tuple} and len(sides) == len(_SIDES) and set(map(type, sides)) == {str}
    )
    cells = {"kind": kind, **(dict(zip(_SIDES, sides, strict=False)) if are_hashes else {})}
    if kind not in _TYPED:
        beside = {name: row[name] for name, field_type in _BESIDE.items() if row.get(name).__class__ is field_type}
        return {**cells, **beside, "json": dump_json(row)}
    if content is not None and not are_hashes:
        raise TypeError(f"a row of kind {kind} whose content is {content!r:.80}")
    rest: dict[str, Any] = {}
    for name, value in row.items():  # what has another type than its column is refused by the table
        if name in _PLAIN:
            cells[name] = value
        elif name == "value":
            cells[name] = _INFINITE.get(value, value) if value.__class__ is str else value
        elif name in _SIDES:
            cells |= {name: value["content"], f"{name}_name": value["name"]}
        elif name == "notes":
            cells[name] = dump_json(list(value))
        elif name != "content":
            rest[name] = value
    return cells | ({"json": dump_json(rest)} if rest else {})


def to_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield rows as they were written."""
    names = [name for name in COLUMNS if name == "kind" or table[name].null_count < len(table)]
    for cells in zip(*(table[name].to_pylist() for name in names), strict=True):
        try:
            yield _row({name: cell for name, cell in zip(names, cells, strict=True) if cell is not None})
        except (LookupError, RecursionError, TypeError, ValueError) as error:
            raise CorruptRecordsError(
                f"the records hold rows that this version does not write ({type(error).__name__}: {error}); {REMEDY}"
            ) from error


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row, given its cells that hold anything."""
    kind, text = row["kind"], row.pop("json", None)
    rest: dict[str, Any] = {} if text is None else json.loads(text)
    if kind not in _TYPED or "kind" in rest:
        if rest["kind"] != kind:
            raise ValueError(f"{rest['kind']!r:.80} under the name {kind!r:.80}")
        return renamed(rest)
    contents = {side: row.pop(side) for side in _SIDES if side in row}
    if kind == "pair":
        row |= {side: {"name": row.pop(f"{side}_name"), "content": content} for side, content in contents.items()}
    elif contents:
        row["content"] = list(contents.values()) if len(contents) == len(_SIDES) else contents["reference"]
    if kind == "score" and "error" not in row:
        row.setdefault("value", None)
    if row.get("value") in _INFINITE.values():
        row["value"] = str(row["value"])
    if "notes" in row:
        row["notes"] = json.loads(row["notes"])
    return row | rest


def renamed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of an older version with the names of this one."""
    if row.get("kind") != "pair" or row.keys().isdisjoint(RENAMED):
        return row
    return {RENAMED.get(name, name): value for name, value in row.items()}


def only(table: pa.Table, *kinds: str) -> pa.Table | None:
    """Return the rows of some kinds; None without any."""
    import pyarrow as pa

    kind = table["kind"].unify_dictionaries().combine_chunks()
    wanted = np.array([*(word in kinds for word in kind.dictionary.to_pylist()), False])
    chosen = wanted[kind.indices.to_numpy()]
    return table if chosen.all() else table.filter(pa.array(chosen)) if chosen.any() else None


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
        codes, words = words_of(column if pa.types.is_dictionary(column.type) else column.dictionary_encode())
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


def words_of(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], pa.StringArray]:
    """Return a column of text as places in an array of words, -1 for a null."""
    whole = column.unify_dictionaries().combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    codes: npt.NDArray[np.int32] = whole.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes, whole.dictionary


def match(table: pa.Table, name: str, known: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """Return the number of the text of each row, -1 for unknown text; raises KeyError where a row has none."""
    codes, words = words_of(table[name])
    if (codes < 0).any():
        raise KeyError(name)
    numbers = np.fromiter(map(known.get, words.to_pylist(), itertools.repeat(-1)), np.int64, len(words))
    return numbers[codes]


def text_places(table: pa.Table, name: str, texts: dict[str, int]) -> npt.NDArray[np.int32]:
    """Return a column of text as places in `texts`, to which new ones are added; -1 for a null."""
    codes, words = words_of(table[name])
    places = [texts.setdefault(word, len(texts)) for word in words.to_pylist()]
    return np.array([*places, -1], dtype=np.int32)[codes]
