"""Rows of records in columns: what a Parquet shard holds, and what everything that reads many rows works on.

A table has one row for each row of the records. Scores, pairs and remarks have each of their fields in a column of its
own. Rows of other kinds, and those whose fields have other types, stand as JSON text in the column ``json``, with item,
system and seed beside it where they have them; a file's hash is its ``reference``.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import CorruptRecordsError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ABSENT",
    "COLUMNS",
    "ERROR",
    "SCORED",
    "TYPED",
    "UNDEFINED",
    "WORDS",
    "Batch",
    "ScoreBatch",
    "coded",
    "codes_of",
    "dump_json",
    "pair_table",
    "places",
    "score_batch",
    "to_rows",
    "to_table",
]

Row = Mapping[str, Any]
Integers = npt.NDArray[np.integer[Any]]

WORDS = (
    "kind", "item", "system", "metric", "variant", "reference", "estimate", "error", "reason",
    "group", "entrance", "treatment", "reference_name", "estimate_name", "notes", "music",
)  # fmt: skip
"""Columns of text; ``notes`` is a JSON list."""

COLUMNS = (*WORDS, "seed", "n", "value", "json")

ABSENT, SCORED, UNDEFINED, ERROR = range(4)
"""What there is of a score: nothing, a number, no number because it is undefined, an error."""

_SCORE = frozenset({"kind", "item", "system", "seed", "content", "metric", "variant", "value", "reason", "error", "n"})
_PAIR = frozenset({"kind", "item", "system", "group", "entrance", "reference", "estimate", "treatment"})
_FAILED_PAIR = frozenset({"kind", "item", "system", "error"})
_REMARKS = frozenset({"kind", "item", "system", "content", "notes"})
_SIDE = frozenset({"name", "content"})

_INFINITE = {"inf": math.inf, "-inf": -math.inf}
_FOREIGN = "the records hold rows that this version does not write; restore them from a copy"
_EXACT = 2**53  # beyond, a float is no longer every whole number

Cells = tuple[Any, ...]
"""One cell for each of `COLUMNS`."""


def dump_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON text without NaN or Infinity: what a value of null means is said by the reader's contract."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(value, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)


class Batch(NamedTuple):
    """Some rows of records, in the order of writing."""

    table: pa.Table
    numbers: npt.NDArray[np.int64]  # of the rows, among all rows of the records

    def where(self, kind: str) -> npt.NDArray[np.bool_]:
        """Tell which rows are of a kind."""
        codes, words = codes_of(self.table, "kind")
        found: npt.NDArray[np.bool_] = np.equal(codes, words.index(kind) if kind in words else len(words))
        return found

    def only(self, kind: str) -> Batch | None:
        """Return the rows of a kind; None where there are none."""
        chosen = self.where(kind)
        if chosen.all():
            return self
        return Batch(self.table.filter(chosen), self.numbers[chosen]) if chosen.any() else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as it was written."""
        return to_rows(self.table)


def codes_of(table: pa.Table, name: str) -> tuple[npt.NDArray[np.int32], list[str]]:
    """Return a column of text as places in a list of words, -1 where there is none."""
    codes, words = coded(table, name)
    return codes, words.to_pylist()


def coded(table: pa.Table, name: str) -> tuple[npt.NDArray[np.int32], pa.StringArray]:
    """Return a column of text as places in an array of words, -1 where there is none."""
    column = table[name].unify_dictionaries().combine_chunks() if table[name].num_chunks != 1 else table[name].chunk(0)
    codes: npt.NDArray[np.int32] = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes, column.dictionary


@functools.cache
def schema() -> pa.Schema:
    """Return the columns with their types."""
    import pyarrow as pa

    words = [(name, pa.dictionary(pa.int32(), pa.string())) for name in WORDS]
    return pa.schema([*words, ("seed", pa.int64()), ("n", pa.int64()), ("value", pa.float64()), ("json", pa.string())])


def to_table(rows: Iterable[Row]) -> pa.Table:
    """Return rows in columns."""
    import pyarrow as pa

    columns = list(zip(*map(_cells, rows), strict=True)) or [()] * len(COLUMNS)
    arrays = []
    for field, column in zip(schema(), columns, strict=True):
        words = pa.types.is_dictionary(field.type)
        array = pa.array(column, pa.string() if words else field.type)
        arrays.append(array.dictionary_encode() if words else array)
    return pa.Table.from_arrays(arrays, schema=schema())


def _cells(row: Row) -> Cells:
    kind = row["kind"]
    if kind == "score":
        cells = _score_cells(row) if row.keys() <= _SCORE else None
    elif kind == "pair":
        cells = _pair_cells(row)
    elif kind == "remarks":
        cells = _remarks_cells(row) if row.keys() == _REMARKS else None
    else:
        cells = None
    return cells or _other_cells(row)


def _score_cells(row: Row) -> Cells | None:
    """Return the cells of a score, or None where a field has another type."""
    item, system, metric, variant = (row.get(name) for name in ("item", "system", "metric", "variant"))
    value, error, reason, seed, n = (row.get(name) for name in ("value", "error", "reason", "seed", "n"))
    if value.__class__ is str:
        value = _INFINITE.get(value, value)
    sides = _sides(row)
    if (
        sides is None
        or not (item.__class__ is system.__class__ is metric.__class__ is str)
        or not all(word is None or word.__class__ is str for word in (variant, error, reason))
        or not (value is None or value.__class__ is float or (value.__class__ is int and abs(value) <= _EXACT))
        or not all(number is None or number.__class__ is int for number in (seed, n))
        or ("error" in row) == ("value" in row)
        or any(row[name] is None for name in ("variant", "error", "reason", "seed", "n") if name in row)
    ):
        return None
    return (
        "score", item, system, metric, variant, *sides, error, reason,
        None, None, None, None, None, None, None, seed, n, value, None,
    )  # fmt: skip


def _pair_cells(row: Row) -> Cells | None:
    keys = row.keys()
    if keys == _FAILED_PAIR:
        item, system, error = row["item"], row["system"], row["error"]
        if not item.__class__ is system.__class__ is error.__class__ is str:
            return None
        return ("pair", item, system, None, None, None, None, error, *[None] * (len(COLUMNS) - 8))
    if keys != _PAIR or not all(row[side].__class__ is dict and row[side].keys() == _SIDE for side in _SIDES):
        return None
    reference, estimate = (row[side] for side in _SIDES)
    words = (
        row["item"], row["system"], row["group"], row["entrance"], row["treatment"],
        reference["name"], reference["content"], estimate["name"], estimate["content"],
    )  # fmt: skip
    if not all(word.__class__ is str for word in words):
        return None
    item, system, group, entrance, treatment, reference_name, original, estimate_name, edit = words
    return (
        "pair", item, system, None, None, original, edit, None, None, group, entrance, treatment,
        reference_name, estimate_name, *[None] * (len(COLUMNS) - 14),
    )  # fmt: skip


_SIDES = ("reference", "estimate")


def _remarks_cells(row: Row) -> Cells | None:
    item, system, notes, sides = row["item"], row["system"], row["notes"], _sides(row)
    if not (item.__class__ is system.__class__ is str and notes.__class__ is list and sides is not None):
        return None
    if not all(note.__class__ is str for note in notes):
        return None
    return ("remarks", item, system, None, None, *sides, *[None] * 7, dump_json(notes), *[None] * 5)


def _other_cells(row: Row) -> Cells:
    """Return a row as JSON text, with what tells it from others of its kind."""
    found = {name: row[name] for name in ("item", "system", "music") if row.get(name).__class__ is str}
    if row.get("seed").__class__ is int and abs(row["seed"]) <= _EXACT:
        found["seed"] = row["seed"]
    sides = _sides(row)
    if row.get("content").__class__ is str:
        found["reference"] = row["content"]
    elif sides is not None:
        found |= {side: content for side, content in zip(_SIDES, sides, strict=True) if content is not None}
    found |= {"kind": str(row["kind"]), "json": dump_json(row)}
    return tuple(map(found.get, COLUMNS))


def _sides(row: Row) -> tuple[str | None, str | None] | None:
    """Return the hashes of both sides, two times None where there are none, or None for something else."""
    content = row.get("content")
    if content is None:
        return None if "content" in row else (None, None)
    if content.__class__ not in {list, tuple} or len(content) != 2:
        return None
    reference, estimate = content
    return (reference, estimate) if reference.__class__ is estimate.__class__ is str else None


def to_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield rows as they were written."""
    columns = [table[name].to_pylist() for name in COLUMNS]
    for cells in zip(*columns, strict=True):
        row = dict(zip(COLUMNS, cells, strict=True))
        text = row["json"]
        try:
            made = json.loads(text) if text is not None else TYPED[row["kind"]](row)
            same = made["kind"] == row["kind"]
        except (LookupError, RecursionError, TypeError, ValueError) as error:
            raise CorruptRecordsError(f"{_FOREIGN} ({type(error).__name__}: {error})") from error
        if not same:
            raise CorruptRecordsError(f"{_FOREIGN}: {made['kind']!r:.80} under the name {row['kind']!r:.80}")
        yield made


def _score_row(cells: dict[str, Any]) -> dict[str, Any]:
    row = {name: cells[name] for name in ("kind", "item", "system")}
    row |= _given(cells, "seed") | _content(cells) | {"metric": cells["metric"]} | _given(cells, "variant")
    if cells["error"] is not None:
        row["error"] = cells["error"]
    else:
        value = cells["value"]
        row["value"] = str(value) if value is not None and math.isinf(value) else value
    return row | _given(cells, "reason", "n")


def _pair_row(cells: dict[str, Any]) -> dict[str, Any]:
    if cells["error"] is not None:
        return {name: cells[name] for name in ("kind", "item", "system", "error")}
    row = {name: cells[name] for name in ("kind", "item", "system", "group", "entrance")}
    row |= {side: {"name": cells[f"{side}_name"], "content": cells[side]} for side in _SIDES}
    return row | {"treatment": cells["treatment"]}


def _remarks_row(cells: dict[str, Any]) -> dict[str, Any]:
    row = {name: cells[name] for name in ("kind", "item", "system")}
    return row | {"content": [cells[side] for side in _SIDES], "notes": json.loads(cells["notes"])}


TYPED: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "score": _score_row, "pair": _pair_row, "remarks": _remarks_row,
}  # fmt: skip
"""Kind that has columns of its own -> how its rows are put together again."""


def _given(cells: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: cells[name] for name in names if cells[name] is not None}


def _content(cells: dict[str, Any]) -> dict[str, Any]:
    return {} if cells["reference"] is None else {"content": [cells[side] for side in _SIDES]}


class ScoreBatch(NamedTuple):
    """Scores in the order of writing; text as places in lists of words, -1 where there is none."""

    numbers: npt.NDArray[np.int64]  # of the rows
    item: tuple[Integers, list[str]]
    system: tuple[Integers, list[str]]
    metric: tuple[Integers, list[str]]
    reference: tuple[Integers, list[str]]
    estimate: tuple[Integers, pa.StringArray]
    seed: npt.NDArray[np.float64]  # NaN where there is none
    state: npt.NDArray[np.int8]  # `SCORED`, `UNDEFINED` or `ERROR`
    value: npt.NDArray[np.float64]  # NaN where there is none
    message: tuple[Integers, list[str]]  # the error, or why a score is undefined


def score_batch(batch: Batch) -> ScoreBatch:
    """Return the scores of a batch that holds nothing else; raises as for a dictionary where one lacks a field."""
    table = batch.table
    if table["json"].null_count < len(table):
        table = to_table([_checked(row) for row in batch.rows()])
    error, reason = codes_of(table, "error"), codes_of(table, "reason")
    value = table["value"].to_numpy()  # a null is NaN
    state = np.where(error[0] >= 0, ERROR, np.where(np.isnan(value), UNDEFINED, SCORED)).astype(np.int8)
    message = np.where(error[0] >= 0, error[0], np.where(reason[0] >= 0, reason[0] + len(error[1]), -1))
    item, system, metric, reference = (codes_of(table, name) for name in ("item", "system", "metric", "reference"))
    seed = table["seed"].to_numpy().astype(np.float64)
    why = message, error[1] + reason[1]
    estimate = coded(table, "estimate")
    return ScoreBatch(batch.numbers, item, system, metric, reference, estimate, seed, state, value, why)


def _checked(row: Row) -> dict[str, Any]:
    """Return a score with fields of the known names and types; raises where that is not to be had."""
    found = {name: row[name] for name in ("kind", "item", "system", "metric")}
    found |= {name: row[name] for name in ("content", "seed", "variant", "reason", "n") if row.get(name) is not None}
    if "error" in row:
        found["error"] = row["error"]
    else:
        found["value"] = None if row["value"] is None else float(row["value"])
    if _score_cells(found) is None:
        raise TypeError(f"a score with fields of other types: {dict(itertools.islice(row.items(), 6))}")
    return found


def pair_table(batch: Batch) -> pa.Table:
    """Return the pairs of a batch that holds nothing else; raises as for a dictionary where one lacks a field."""
    table = batch.table
    if table["json"].null_count == len(table):
        return table
    return to_table([_checked_pair(row) for row in batch.rows()])


def _checked_pair(row: Row) -> dict[str, Any]:
    """Return a pair with fields of the known names and types; older ones have no treatment."""
    found = {name: row[name] for name in ("kind", "item", "system")}
    if "error" in row:
        found["error"] = row["error"]
    else:
        found |= {name: row[name] for name in ("group", "entrance")} | {"treatment": row.get("treatment", "")}
        found |= {side: {name: row[side][name] for name in _SIDE} for side in _SIDES}
    if _pair_cells(found) is None:
        raise TypeError(f"a pair with fields of other types: {dict(itertools.islice(row.items(), 6))}")
    return found


def places(words: Sequence[str], known: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """Return the place of each word, -1 for an unknown one; a place of -1 in the result of indexing stays -1."""
    found = np.full(len(words) + 1, -1, dtype=np.int64)
    found[:-1] = np.fromiter(map(known.get, words, itertools.repeat(-1)), np.int64, len(words))
    return found
