"""Records of a run: JSON lines that survive a kill.

A record file is a sequence of blocks. A block is some rows and a closing row with their number and checksum; it is
appended in one piece and synchronised to the disk before the next one is worked on. What stands after the last closed
block was being written when the run ended: it is cut off, and that piece of work is done again. A row that cannot be
read inside a closed block is damage, and is never skipped in silence.

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
    Wall time of one sitting; a run that was killed and resumed has several.
selection, pair
    What is compared in the sittings that follow, where that may grow: the systems, then one row a pair, with names and
    hashes of its files, or the reason why there is none. A score is then known by these hashes (`content`), and by no
    seed.
remarks
    What a reader should know of one pair.
explanation
    Where a pair lost points.
outline
    What can be drawn of one file: beats, chords, sections and melody; and a hash of its music, which other tags or
    another container leave as it is.
block
    The closing row.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from music_evals.errors import CorruptRecordsError, MusicEvalsError, OutputError

__all__ = ["RecordFile", "dump_json", "read_records", "reading_rows", "remove_file"]

Row = Mapping[str, Any]
_START = b'{"kind":"run"'


@dataclasses.dataclass(frozen=True)
class _Contents:
    """Closed blocks of a record file, and where the last one ends."""

    rows: list[dict[str, Any]]
    end: int


def read_records(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read every row of every closed block.

    Parameters
    ----------
    path
        A record file.

    Returns
    -------
    list of dict
        In the order of writing, the header first, without closing rows.

    Raises
    ------
    CorruptRecordsError
        A line inside a closed block is damaged, or the file holds no records; the message names the line.
    OutputError
        The file cannot be read.

    """
    path = Path(path)
    with _output_errors(path, "read"):
        data = path.read_bytes()
    contents = _parse(data, path)
    if not contents.rows:
        raise CorruptRecordsError(f"{path} holds no finished block of records; run the command that writes it again")
    return contents.rows


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
    rows
        All rows that are in the file: those that were there, and those that were appended.

    Raises
    ------
    CorruptRecordsError
        The file is damaged or belongs to another run.
    OutputError
        The folder cannot be written to, the disk is full, or another run is writing to the file.

    """

    def __init__(
        self, path: str | os.PathLike[str], header: Row, items: Sequence[Row] = (), *, overwrite: bool = False
    ) -> None:
        self.path = Path(path)
        first = {"kind": "run", **header}
        with _output_errors(self.path, "write"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b", buffering=0)
        try:
            self._lock()
            if overwrite and self.path.is_file():
                with _output_errors(self.path, "write"):
                    self._file.truncate(0)
            self.rows = self._resume(json.loads(dump_json(first)))
            self.resumed = bool(self.rows)
            if not self.resumed:
                self.append([first, *items])
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(
                f"another run is writing to {self.path}; wait for it, or choose another folder (`out`)"
            ) from error
        except OSError as error:
            raise OutputError(
                f"{self.path} cannot be locked against other runs ({error.strerror or error}); choose a folder "
                "(`out`) on a file system that knows locks"
            ) from error

    def _resume(self, header: dict[str, Any]) -> list[dict[str, Any]]:
        with _output_errors(self.path, "read"):
            # a device such as /dev/full has no end to be read
            data = self._read_regular()
        contents = _parse(data, self.path)
        if contents.rows:
            _check_same_run(contents.rows[0], header, self.path)
        if contents.end < len(data):
            with _output_errors(self.path, "write"):
                self._file.truncate(contents.end)
        return contents.rows

    def _read_regular(self) -> bytes:
        if not self.path.is_file():
            return b""
        self._file.seek(0)
        return self._file.read()

    def append(self, rows: Sequence[Row]) -> None:
        """Write one block and synchronise it to the disk."""
        lines = [dump_json(row).encode() + b"\n" for row in rows]
        body = b"".join(lines)
        closing = dump_json({"kind": "block", "rows": len(rows), "crc32": zlib.crc32(body)}).encode() + b"\n"
        with _output_errors(self.path, "write"):
            self._file.seek(0, os.SEEK_END)
            _write_all(self._file.fileno(), body + closing)
            os.fsync(self._file.fileno())
        self.rows += map(json.loads, lines)  # as they will be read from the file, which may hold less than Python

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def dump_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON text without NaN or Infinity: what a value of null means is said by the reader's contract."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(value, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)


def remove_file(path: str | os.PathLike[str]) -> None:
    """Remove a file; one that is not there is no error."""
    with _output_errors(Path(path), "remove"):
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


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


@contextlib.contextmanager
def _output_errors(path: Path, verb: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"cannot {verb} {path}: {reason}; make room or choose another folder (`out`)") from error


def _parse(data: bytes, path: Path) -> _Contents:
    """Read the closed blocks; say which line is damaged."""
    rows: list[dict[str, Any]] = []
    closed, end, position, block_start, first_line = 0, 0, 0, 0, 1
    damaged: int | None = None
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        position += len(line)
        row = _load(line)
        if row is None:
            damaged = damaged or number
            continue
        if row.get("kind") != "block":
            rows.append(row)
            continue
        # a closing row: everything up to it was on the disk once, so what cannot be read now is damage
        body = data[block_start : position - len(line)]
        _check_block(row, body, n_rows=len(rows) - closed, lines=(first_line, number), damaged=damaged, path=path)
        closed, end, block_start, first_line = len(rows), position, position, number + 1
    if not closed and data and not (data.startswith(_START) or _START.startswith(data)):
        raise CorruptRecordsError(
            f"{path} is no record file: line 1 does not start with {_START.decode()}; choose another folder (`out`)"
        )
    return _Contents(rows[:closed], end)


def _load(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _check_block(
    closing: Row, body: bytes, *, n_rows: int, lines: tuple[int, int], damaged: int | None, path: Path
) -> None:
    remedy = "restore the file from a copy, or start afresh (`overwrite=True`)"
    if damaged is not None:
        raise CorruptRecordsError(f"{path}, line {damaged} is damaged: it is not one JSON object; {remedy}")
    if closing.get("rows") != n_rows or closing.get("crc32") != zlib.crc32(body):
        raise CorruptRecordsError(
            f"{path}, lines {lines[0]} to {lines[1]} are damaged: expected {closing.get('rows')} rows with checksum "
            f"{closing.get('crc32')}, got {n_rows} with {zlib.crc32(body)}; {remedy}"
        )


def _check_same_run(found: dict[str, Any], wanted: dict[str, Any], path: Path) -> None:
    old, new = _flatten(found), _flatten(wanted)
    differences = [
        f"{key} was {old.get(key, 'absent')!r} and is now {new.get(key, 'absent')!r}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key) or (key in old) != (key in new)
    ]
    if differences:
        shown = "; ".join(differences[:5]) + (f"; and {len(differences) - 5} more" if len(differences) > 5 else "")
        raise CorruptRecordsError(
            f"{path} belongs to another run: {shown}. Choose another folder (`out`), or start afresh (`overwrite=True`)"
        )


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested dictionaries as one, with dotted keys, so that a difference can be named."""
    if not isinstance(value, dict):
        return {prefix: value}
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        flat.update(_flatten(inner, f"{prefix}.{key}" if prefix else key))
    return flat
