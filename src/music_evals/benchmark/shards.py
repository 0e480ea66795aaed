"""Records in Parquet shards: what a run writes that is spread over many machines.

One process writes, the one that hands out the work. It gathers rows and writes them as a shard when they are many, or
when they have waited for some seconds; what is in no shard when the process ends is done again. A shard is written
whole or not at all, and is called ``<number>-<start of the SHA-256 of its bytes>.parquet``: one that does not hold what
its name says is damage, as is a number that is missing or there twice. Anything else in the folder is left alone.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from music_evals.benchmark.batches import COLUMNS, TYPED, WORDS, Batch, schema, to_rows, to_table
from music_evals.benchmark.headers import check_same_run
from music_evals.benchmark.records import (
    REMEDY,
    RecordFile,
    Records,
    dump_json,
    lock,
    output_errors,
    remove_file,
)
from music_evals.errors import CorruptRecordsError
from music_evals.files import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FOLDER_LOCK", "ShardFolder", "folder_of", "open_records", "read_shards", "records_at"]

SHARD_ROWS = 50_000
"""Rows after which a shard is written: some 4,500 pairs with eleven scores."""

SHARD_SECONDS = 30.0
"""How long rows wait for others: what a kill may cost."""

FOLDER_LOCK = ".lock"

_NAME = re.compile(r"(\d{5,})-([0-9a-f]{16})\.parquet")
_KINDS: Final = b"kinds"  # in the metadata of a shard: how many rows it has of each kind
_IN_TEXT: Final = b"in_text"  # and what `_Shard` says

Row = dict[str, Any]


def folder_of(path: Path) -> Path:
    """Return the folder of shards that stands for a record file."""
    return path.with_suffix("")


def records_at(path: Path) -> Path | None:
    """Return where the records of a run are, its record file or its folder of shards; None where there are none."""
    if path.exists():
        return path
    folder = folder_of(path)
    return folder if _names(folder) else None


def open_records(
    path: Path,
    header: Mapping[str, Any],
    items: Iterable[Mapping[str, Any]] = (),
    *,
    overwrite: bool = False,
    shards: bool = False,
) -> RecordFile | ShardFolder:
    """Open the records of a run for appending, in the form that they have; those of a new run as `shards` says."""
    folder, in_folder = folder_of(path), shards
    if path.exists() and _names(folder) and not overwrite:
        raise CorruptRecordsError(
            f"{path} and {folder} are both there; a run has one of them: move the other away, or start afresh "
            "(`overwrite=True`)"
        )
    if overwrite:
        _discard(path if shards else folder)
    elif (there := records_at(path)) is not None:
        in_folder = there == folder
    if in_folder:
        return ShardFolder(folder, header, items, overwrite=overwrite)
    return RecordFile(path, header, items, overwrite=overwrite)


def _discard(path: Path) -> None:
    """Remove the records of a run in the form that the new one does not have, unless it is being written to."""
    if not path.exists():
        return
    with output_errors(path, "remove"), (path / FOLDER_LOCK if path.is_dir() else path).open("ab") as file:
        lock(file, path)
        if path.is_dir():
            _remove_shards(path)
        else:
            remove_file(path)


class _Shard(NamedTuple):
    """A shard that was found to hold what its name says."""

    path: Path
    n_rows: int
    kinds: frozenset[str]
    in_text: frozenset[str]  # kinds with columns of their own of which some rows stand as text all the same


class Shards(Records):
    """Rows of the shards that a folder holds at some time."""

    def __init__(self, path: Path, shards: Sequence[_Shard]) -> None:
        self.path = path
        self._shards = list(shards)
        self._starts = np.cumsum([0, *(shard.n_rows for shard in shards)]).tolist()
        self._held: tuple[int, Any] = (-1, None)  # a shard and its rows, for what is read one by one

    @property
    def starts(self) -> Sequence[int]:
        starts: list[int] = self._starts
        return starts

    def table(self, part: int, kinds: Collection[str] | None, *, text: bool = True) -> Batch | None:
        shard = self._shards[part]
        if kinds is not None and shard.kinds.isdisjoint(kinds):
            return None
        text = text or not shard.in_text.isdisjoint(kinds or shard.kinds)
        batch = Batch(_read(shard, text=text), np.arange(self._starts[part], self._starts[part + 1]))
        if kinds is None or shard.kinds <= set(kinds):
            return batch
        chosen = np.logical_or.reduce([batch.where(kind) for kind in kinds])
        return Batch(batch.table.filter(chosen), batch.numbers[chosen])

    def take(self, part: int, places: Sequence[int]) -> list[Row]:
        if self._held[0] != part:
            self._held = (part, _read(self._shards[part], text=True))
        table = self._held[1]
        return list(to_rows(table if len(places) == len(table) else table.take(list(places))))


def read_shards(folder: Path) -> Shards:
    """Open the shards of a folder, each held to the digest in its name."""
    return Shards(folder, _check_all(folder))


def _names(folder: Path) -> list[str]:
    """Return the names of the shards in a folder, in their order; none where there is no such folder."""
    if not folder.is_dir():
        return []
    with output_errors(folder, "read"):
        return sorted((name for name in os.listdir(folder) if _NAME.fullmatch(name)), key=_number)  # noqa: PTH208


def _number(name: str) -> tuple[int, str]:
    return int(name.partition("-")[0]), name


def _check_all(folder: Path) -> list[_Shard]:
    names = _names(folder)
    for place, name in enumerate(names):
        found = _number(name)[0]
        if found > place:
            raise CorruptRecordsError(f"{folder}: shard {place:05} is missing, {name} is there; {REMEDY}")
        if found < place:
            raise CorruptRecordsError(f"{folder}: {names[place - 1]} and {name} have one number; {REMEDY}")
    return [_check(folder / name) for name in names]


@contextlib.contextmanager
def _named_damage(path: Path) -> Iterator[None]:
    """Turn what broken Parquet leads to, its reader's own errors among it, into `CorruptRecordsError`."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, ArithmeticError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        raise CorruptRecordsError(
            f"{path} is no shard of records, or damaged ({type(error).__name__}: {error}); {REMEDY}"
        ) from error


def _check(path: Path) -> _Shard:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with output_errors(path, "read"):
        content = path.read_bytes()
    if _digest(content) != path.stem.partition("-")[2]:
        raise CorruptRecordsError(f"{path} is damaged: it does not hold what its name says; {REMEDY}")
    with _named_damage(path):
        about = pq.read_metadata(pa.BufferReader(content))
        kinds, in_text = (json.loads((about.metadata or {})[key]) for key in (_KINDS, _IN_TEXT))
        return _Shard(path, about.num_rows, frozenset(kinds), frozenset(in_text))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _read(shard: _Shard, *, text: bool) -> pa.Table:
    """Return the columns of a shard; without `text` its column of JSON is empty."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [name for name in COLUMNS if text or name != "json"]
    with output_errors(shard.path, "read"):
        content = shard.path.read_bytes()
    with _named_damage(shard.path):
        table = pq.ParquetFile(pa.BufferReader(content)).read(columns=names).select(names)
        table.validate(full=True)  # places outside of a dictionary, text that is not UTF-8
    if len(table) != shard.n_rows or not table.schema.equals(pa.schema([schema().field(name) for name in names])):
        raise CorruptRecordsError(f"{shard.path} has other columns or rows than it says; {REMEDY}")
    return table if text else table.append_column("json", pa.nulls(len(table), pa.string()))


def _remove_shards(folder: Path) -> None:
    """Remove the shards of a folder, and what a writer left that was killed."""
    for name in reversed(_names(folder)):  # a run that is killed here leaves the first ones, and no gap
        remove_file(folder / name)
    for part in folder.glob(".*.parquet.*.part"):
        remove_file(part)


class ShardFolder:
    """A folder of shards that is open for appending, as `RecordFile` is a file.

    Parameters
    ----------
    folder
        The folder; made where it is missing.
    header, items, overwrite
        As of a `RecordFile`.

    Attributes
    ----------
    resumed
        Whether there were shards at opening.
    n_written
        Rows that are in shards, and so on the disk.

    """

    def __init__(
        self,
        folder: Path,
        header: Mapping[str, Any],
        items: Iterable[Mapping[str, Any]] = (),
        *,
        overwrite: bool = False,
    ) -> None:
        self.path = folder
        first = {"kind": "run", **header}
        with output_errors(folder, "write"):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / FOLDER_LOCK).open("ab")
        self._waiting: list[Mapping[str, Any]] = []
        self._since = time.monotonic()
        try:
            lock(self._lock, folder)
            if overwrite:
                _remove_shards(folder)
            self._shards = _check_all(folder)
            self.resumed = bool(self._shards)
            if self.resumed:
                check_same_run(Shards(folder, self._shards)[0], json.loads(dump_json(first)), folder)
            else:
                self.append([first, *items])
                self.flush()
        except BaseException:
            self._lock.close()
            raise

    @property
    def rows(self) -> Records:
        """All rows of the run; those that waited are written."""
        self.flush()
        return Shards(self.path, self._shards)

    @property
    def n_written(self) -> int:
        """Rows that are in shards."""
        return sum(shard.n_rows for shard in self._shards)

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take rows, which are on the disk after the next `flush`, or when they are many or have waited long."""
        for row in rows:
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting.append(row)
            if len(self._waiting) >= SHARD_ROWS:
                self.flush()
        if self._waiting and time.monotonic() - self._since >= SHARD_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait as a shard."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self._waiting:
            return
        table = to_table(self._waiting)
        kinds = collections.Counter(table["kind"].to_pylist())
        in_text = set(TYPED) & set(table.filter(table["json"].is_valid())["kind"].to_pylist())
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, table.schema, compression="zstd", use_dictionary=list(WORDS)) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({_KINDS: dump_json(kinds), _IN_TEXT: dump_json(sorted(in_text))})
        content = sink.getvalue().to_pybytes()
        name = f"{len(self._shards):05}-{_digest(content)}.parquet"
        path = write_atomically(self.path / name, content)
        self._shards.append(_Shard(path, len(table), frozenset(kinds), frozenset(in_text)))
        self._waiting = []

    def close(self) -> None:
        """Write what waits, and let others write."""
        try:
            self.flush()
        finally:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
