"""Records of a run, in files that survive a kill.

There are two forms of the same rows. A run in one place writes JSON lines, as told here; one that is spread over many
machines writes Parquet shards (`shards`). A run stays in the form that it was begun in. Both are read as `Records`, in
batches of columns (`batches`), so that the memory that it takes does not grow with the number of rows.

A record file of JSON lines is a sequence of blocks. A block is some rows and a closing row with their number and
checksum; it is appended in one piece and synchronised to the disk before the next one is worked on. What stands after
the last closed block was being written when the run ended: it is cut off, and that piece of work is done again. A row
that cannot be read inside a closed block is damage, and is never skipped in silence.

Rows, by their ``kind``:

run
    Once, the header: dataset, systems, seeds, options, package versions, content hashes.
item
    One item: its id, its song and its tokens, so that scores can be computed again and scores drawn.
prediction
    What one system wrote for one item with one seed.
score
    One (item, metric): item id, system id, seed, metric, variant, value or error, n. A value of null is undefined.
kernels
    The processor kernels that make the scores after it; a run that is resumed on another kind of machine has several.
sitting
    Wall time of one; a run that was killed and resumed has several.
selection, pair
    What is compared in the sittings that follow, where that may grow: the systems, and what results depend on and
    scores do not; then a row a pair, with names and hashes of its files, or why there is none. A score is then known by
    these hashes (`content`), and by no seed. Where the header names the systems, a selection holds the scores that were
    asked for beside those of every run.
remarks, explanation
    What a reader should know of one pair, and where it lost points.
outline
    What can be drawn of one file: beats, chords, sections and melody; and a hash of its music, which other tags or
    another container leave as it is.
edit
    What an editing system made of one source: key, seed, files with their hashes, what was done to length and loudness,
    or an error.
block
    The closing row.
"""

from __future__ import annotations

import abc
import bisect
import contextlib
import fcntl
import itertools
import json
import os
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, overload

import numpy as np

from music_evals.benchmark.batches import Batch, dump_json, to_table
from music_evals.benchmark.headers import check_same_run
from music_evals.errors import CorruptRecordsError, MusicEvalsError, OutputError

__all__ = [
    "REMEDY",
    "MemoryRecords",
    "RecordFile",
    "Records",
    "dump_json",
    "lock",
    "output_errors",
    "read_records",
    "reading_rows",
    "remove_file",
]

Row = Mapping[str, Any]

REMEDY = "restore the file from a copy, or start afresh (`overwrite=True`)"

BATCH_ROWS = 50_000
"""Rows that are read and held at once, and the bytes of their lines, but for a block that has more."""
BATCH_BYTES = 1 << 24

_START = b'{"kind":"run"'
_CLOSING = b'{"kind":"block"'


class Records(Sequence[dict[str, Any]]):
    """The rows of a run that stand in files, in the order of writing.

    What reads many rows takes `batches`. As a sequence they are dictionaries, which are read when they are asked for.
    """

    path: Path

    @property
    @abc.abstractmethod
    def starts(self) -> Sequence[int]:
        """Number of the first row of each part, and at last the number of all rows."""

    @abc.abstractmethod
    def table(self, part: int, kinds: Collection[str] | None, *, text: bool) -> Batch | None:
        """Return the rows of some kinds (None: of all) that a part holds; None where it holds none of them."""

    @abc.abstractmethod
    def take(self, part: int, places: Sequence[int]) -> list[dict[str, Any]]:
        """Return some rows of a part."""

    def batches(self, *kinds: str, text: bool = True) -> Iterator[Batch]:
        """Yield the rows of some kinds, of all where none is given; without `text` no more JSON than must be read."""
        for part in range(len(self.starts) - 1):
            batch = self.table(part, set(kinds) or None, text=text)
            if batch is not None:
                yield batch

    def of(self, *kinds: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of some kinds as dictionaries."""
        for batch in self.batches(*kinds):
            yield from batch.rows()

    def read(self, numbers: Iterable[int]) -> list[dict[str, Any]]:
        """Return the rows of these numbers, in this order."""
        wanted = list(map(int, numbers))
        found: dict[int, dict[str, Any]] = {}
        for part, asked in itertools.groupby(sorted(set(wanted)), lambda n: bisect.bisect_right(self.starts, n) - 1):
            held = list(asked)
            found |= zip(held, self.take(part, [number - self.starts[part] for number in held]), strict=True)
        return [found[number] for number in wanted]

    def __len__(self) -> int:
        return self.starts[-1]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for part, (start, end) in enumerate(itertools.pairwise(self.starts)):
            yield from self.take(part, range(end - start))

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        numbers = range(len(self))[place]
        return self.read(numbers) if isinstance(numbers, range) else self.read([numbers])[0]


class MemoryRecords(Records):
    """Rows that are in memory already."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.path = Path("memory")
        self._rows = [dict(row) for row in rows]

    @property
    def starts(self) -> Sequence[int]:  # noqa: D102 (as in `Records`)
        return [*range(0, len(self._rows), BATCH_ROWS), len(self._rows)]

    def table(self, part: int, kinds: Collection[str] | None, *, text: bool = True) -> Batch | None:  # noqa: ARG002, D102
        start, end = self.starts[part : part + 2]
        return _batch(((n, self._rows[n]) for n in range(start, end)), kinds)

    def take(self, part: int, places: Sequence[int]) -> list[dict[str, Any]]:  # noqa: D102
        return [self._rows[self.starts[part] + place] for place in places]


def _batch(rows: Iterable[tuple[int, Row]], kinds: Collection[str] | None) -> Batch | None:
    chosen = [(number, row) for number, row in rows if kinds is None or row["kind"] in kinds]
    if not chosen:
        return None
    numbers, kept = zip(*chosen, strict=True)
    return Batch(to_table(kept), np.array(numbers, dtype=np.int64))


class _Part(NamedTuple):
    """Closed blocks that are read together."""

    start: int  # number of the first row
    n_rows: int
    offset: int  # in bytes
    end: int
    first_line: int
    n_lines: int


class _Lines(Records):
    """Closed blocks of JSON lines, as a file holds them at some time."""

    def __init__(self, path: Path, parts: Sequence[_Part]) -> None:
        self.path = path
        self._parts = list(parts)
        self._held: tuple[int, list[tuple[int, bytes]]] = (-1, [])  # a part and its lines, for what is read one by one

    @property
    def starts(self) -> Sequence[int]:
        return [*(part.start for part in self._parts), sum(part.n_rows for part in self._parts)]

    def table(self, part: int, kinds: Collection[str] | None, *, text: bool = True) -> Batch | None:  # noqa: ARG002
        start = self._parts[part].start
        lines = enumerate(self._lines(part), start)
        known = None if kinds is None else tuple(b'{"kind":"%b"' % kind.encode() for kind in kinds)
        # a row begins with its kind; one that does not is looked into
        read = (
            (number, self._load(line))
            for number, line in lines
            if known is None or line[1].startswith(known) or not line[1].startswith(b'{"kind":"')
        )
        return _batch(read, kinds)

    def take(self, part: int, places: Sequence[int]) -> list[dict[str, Any]]:
        if self._held[0] != part:
            self._held = (part, list(self._lines(part)))
        return [self._load(self._held[1][place]) for place in places]

    def _lines(self, part: int) -> Iterator[tuple[int, bytes]]:
        """Yield the rows of a part, each with the number of its line."""
        held = self._parts[part]
        with output_errors(self.path, "read"), self.path.open("rb") as file:
            file.seek(held.offset)
            data = file.read(held.end - held.offset).split(b"\n")[:-1]
        lines = [(n, line) for n, line in enumerate(data, held.first_line) if not line.startswith(_CLOSING)]
        if len(lines) != held.n_rows:
            raise CorruptRecordsError(f"{self.path} was changed while it was read; read it again")
        yield from lines

    def _load(self, line: tuple[int, bytes]) -> dict[str, Any]:
        row = _load(line[1])
        if row is None:
            raise _damaged(self.path, line[0])
        return row


def read_records(path: str | os.PathLike[str]) -> Records:
    """Open the records of a run for reading, and check that they are what was written.

    Parameters
    ----------
    path
        A record file, or a folder of shards.

    Returns
    -------
    Records
        Every row of every closed block or shard, in the order of writing, the header first.

    Raises
    ------
    CorruptRecordsError
        A line inside a closed block, or a shard, is damaged, or there are no records; the message names the place.
    OutputError
        The file cannot be read.

    """
    path = Path(path)
    if path.is_dir():
        from music_evals.benchmark.shards import read_shards

        records: Records = read_shards(path)
    else:
        with output_errors(path, "read"), path.open("rb") as file:
            records = _Lines(path, _scan(file, path))
    if not len(records):
        raise CorruptRecordsError(f"{path} holds no finished block of records; run the command that writes it again")
    return records


class RecordFile:
    """A record file that is open for appending.

    Opening reads what is there: a torn end is cut off, damage raises, and a header that differs from `header` raises,
    since numbers of two different runs must not be mixed. While it is open the file is locked (``flock``): a second run
    in the same folder is refused, and so changes nothing. The lock ends with the process, however that ends.

    Parameters
    ----------
    path
        The file; made together with its folder where it is missing.
    header
        The ``run`` row without its kind. Every value of it must be equal for a run to be resumed.
    items
        Rows that are written together with the header.
    overwrite
        Start afresh, whatever the file holds.

    Attributes
    ----------
    resumed
        Whether there were rows at opening.

    Raises
    ------
    CorruptRecordsError
        The file is damaged or belongs to another run.
    OutputError
        The folder cannot be written to, the disk is full, or another run is writing to the file.

    """

    def __init__(
        self, path: str | os.PathLike[str], header: Row, items: Iterable[Row] = (), *, overwrite: bool = False
    ) -> None:
        self.path = Path(path)
        first = {"kind": "run", **header}
        with output_errors(self.path, "write"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b", buffering=0)
        try:
            lock(self._file, self.path)
            if overwrite and self.path.is_file():
                with output_errors(self.path, "write"):
                    self._file.truncate(0)
            self._parts = self._resume(json.loads(dump_json(first)))
            self.resumed = bool(self._parts)
            if not self.resumed:
                self.append([first, *items])
        except BaseException:
            self._file.close()
            raise

    @property
    def rows(self) -> Records:
        """All rows that are in the file now: those that were there, and those that were appended."""
        return _Lines(self.path, self._parts)

    def _resume(self, header: dict[str, Any]) -> list[_Part]:
        # a device such as /dev/full has no end to be read
        if not self.path.is_file():
            return []
        with output_errors(self.path, "read"):
            size = self._file.seek(0, os.SEEK_END)
            with self.path.open("rb") as file:
                parts = _scan(file, self.path)
        if parts:
            check_same_run(_Lines(self.path, parts)[0], header, self.path)
        end = parts[-1].end if parts else 0
        if end < size:
            with output_errors(self.path, "write"):
                self._file.truncate(end)
        return parts

    def append(self, rows: Iterable[Row]) -> None:
        """Write one block and synchronise it to the disk; none for no rows."""
        lines = [dump_json(row).encode() + b"\n" for row in rows]
        if not lines:
            return
        body = b"".join(lines)
        closing = dump_json({"kind": "block", "rows": len(lines), "crc32": zlib.crc32(body)}).encode() + b"\n"
        with output_errors(self.path, "write"):
            self._file.seek(0, os.SEEK_END)
            _write_all(self._file.fileno(), body + closing)
            os.fsync(self._file.fileno())
        _add(self._parts, len(lines), len(body) + len(closing))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def remove_file(path: str | os.PathLike[str]) -> None:
    """Remove a file; one that is not there is no error."""
    with output_errors(Path(path), "remove"):
        Path(path).unlink(missing_ok=True)


@contextlib.contextmanager
def reading_rows() -> Iterator[None]:
    """Turn what wrong rows lead to into `CorruptRecordsError`: fields that are missing, or of another type or size."""
    # A checksum says that a block is what was written, not that it was written by this package.
    try:
        yield
    except MusicEvalsError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CorruptRecordsError(
            f"the records hold rows that this version does not write ({type(error).__name__}: {error}); restore the "
            "file from a copy, or start afresh (`overwrite=True`)"
        ) from error


@contextlib.contextmanager
def output_errors(path: Path, verb: str) -> Iterator[None]:
    """Turn errors of the file system into `OutputError`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"cannot {verb} {path}: {reason}; make room or choose another folder (`out`)") from error


def lock(file: IO[bytes], path: Path) -> None:
    """Keep other runs from writing to the records at `path` for as long as `file` is open."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise OutputError(f"another run is writing to {path}; wait for it, or choose another folder (`out`)") from error
    except OSError as error:
        raise OutputError(
            f"{path} cannot be locked against other runs ({error.strerror or error}); choose a folder (`out`) on a "
            "file system that knows locks"
        ) from error


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _add(parts: list[_Part], n_rows: int, n_bytes: int) -> None:
    """Add a closed block to the last part, or as a new one where that gets too large."""
    last = parts[-1] if parts else _Part(0, 0, 0, 0, 1, 0)
    end = last.end + n_bytes
    if parts and last.n_rows + n_rows <= BATCH_ROWS and end - last.offset <= BATCH_BYTES:
        parts[-1] = last._replace(n_rows=last.n_rows + n_rows, end=end, n_lines=last.n_lines + n_rows + 1)
    else:
        line = last.first_line + last.n_lines
        parts.append(_Part(last.start + last.n_rows, n_rows, last.end, end, line, n_rows + 1))


def _scan(file: IO[bytes], path: Path) -> list[_Part]:
    """Find the closed blocks and hold each to its checksum; say which line is damaged."""
    parts: list[_Part] = []
    head = b""
    n_rows = crc = n_bytes = 0  # of the block at hand
    for number, line in enumerate(file, start=1):
        head = head or line[: len(_START)]
        n_bytes += len(line)
        closing = _load(line) if line.startswith(_CLOSING) and line.endswith(b"\n") else None
        if closing is None:
            n_rows, crc = n_rows + 1, zlib.crc32(line, crc)
            continue
        # everything up to a closing row was on the disk once, so what cannot be read now is damage
        if closing.get("rows") != n_rows or closing.get("crc32") != crc:
            raise _damage(path, (parts[-1].end if parts else 0, n_bytes), number, closing, (n_rows, crc))
        _add(parts, n_rows, n_bytes)
        n_rows = crc = n_bytes = 0
    if not parts and head and not (head.startswith(_START) or _START.startswith(head)):
        raise CorruptRecordsError(
            f"{path} is no record file: line 1 does not start with {_START.decode()}; choose another folder (`out`)"
        )
    return parts


def _load(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _damage(path: Path, where: tuple[int, int], last: int, closing: Row, found: tuple[int, int]) -> CorruptRecordsError:
    """Return the error for a block that is not what was written: its first line that is no row, or all of them."""
    start, n_bytes = where
    first = last - found[0]
    with path.open("rb") as file:
        file.seek(start)
        for number, line in enumerate(file.read(n_bytes).split(b"\n")[:-1], first):
            if _load(line) is None:
                return _damaged(path, number)
    return CorruptRecordsError(
        f"{path}, lines {first} to {last} are damaged: expected {closing.get('rows')} rows with checksum "
        f"{closing.get('crc32')}, got {found[0]} with {found[1]}; {REMEDY}"
    )


def _damaged(path: Path, line: int) -> CorruptRecordsError:
    return CorruptRecordsError(f"{path}, line {line} is damaged: it is not one JSON object; {REMEDY}")
