"""A board: an append-only Parquet dataset of result records, and of what can be shown of their items.

``data/<part>-<hash>.parquet`` holds records, ``details/<part>-<hash>.parquet`` what can be shown. A part is a number
that says in which order they were added; the hash is the start of the SHA-256 of the file. A file is written whole or
not at all, and never again. Details are written first: a run whose records are not there was cut off while it was
added, and its details are not read; adding it again completes it.

Two people may add at once: ids are hashes of contents, and what is there twice is read once.

A folder may come from anybody. It is read without running anything of it, file by file and with bounds; a file that is
not what its name or the schema says is an error and is not skipped.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from music_evals.errors import CorruptRecordsError, FileTooLargeError, NoDataError, OutputError
from music_evals.files import UNSENT, write_atomically
from music_evals.leaderboard.details import Detail, details_of_run
from music_evals.leaderboard.records import TASKS, ResultRecord, id_of, read_run, records_of_run
from music_evals.metrics.catalogue import DIRECTIONS

RESULTS, DETAILS, CARD = "data", "details", "README.md"

MAX_PART_BYTES = 256 * 2**20  # of one file: a full run of 300 items by 12 systems takes less than 1 MiB
MAX_UNFOLDED_BYTES = 2**30  # of one file unpacked: what is small on the disk may unfold to more than the memory
MAX_ROWS = 2**18  # of one file: a full run of 300 items by 12 systems has less than 5000
MAX_VALUES = 2**26  # of one file, over all columns: numbers and texts, those in lists each for itself
# Read at once: no value is larger than its file unpacked, so that many rows of it are not larger than this.
MAX_BATCH_BYTES, MAX_BATCH_ROWS = 2**26, 1024
# Details that a reader keeps; the latest requested run is kept whatever its size.
MAX_KEPT_BYTES, MAX_KEPT_RUNS = 2**28, 16

HASH_DIGITS = 16
_PART = re.compile(rf"(\d{{5,9}})-([0-9a-f]{{{HASH_DIGITS}}})\.parquet")

SCHEMA: Final[Mapping[str, str]] = {
    **dict.fromkeys(("id", "task", "dataset", "config", "split", "revision", "fingerprint"), "string"),
    **dict.fromkeys(("system", "role", "content", "metric", "title", "direction", "kind", "variant"), "string"),
    **dict.fromkeys(("value", "low", "high", "confidence", "floor"), "float64"),
    **dict.fromkeys(("n", "n_defined", "n_failed"), "int64"),
    **dict.fromkeys(("items", "groups", "references"), "list<string>"),
    "values": "list<list<float64>>",
    "reference_values": "list<float64>",
    "unranked": "string",
    **dict.fromkeys(("settings", "extractors", "receipt"), "json"),
    **dict.fromkeys(("run", "source", "date", "submitter"), "string"),
    "targets": "list<string>",
}
"""Column of a `ResultRecord` -> its type; ``json`` is text."""

ADDED: Final = ("targets",)
"""Columns that files of older versions do not have."""

DETAIL_SCHEMA: Final[Mapping[str, str]] = {
    **dict.fromkeys(("run", "item", "system", "kind", "content"), "string"),
    "media": "binary",
}
"""Column of a `Detail` -> its type."""

_CARD_TEXT = """\
---
pretty_name: Leaderboard records
configs:
- config_name: results
  default: true
  data_files: "data/*.parquet"
- config_name: details
  data_files: "details/*.parquet"
---

# Leaderboard records

Made by `music-evals leaderboard add`. Files are added and never changed. Columns of `results`:
`music_evals.leaderboard.records.ResultRecord`; of `details`: `music_evals.leaderboard.details.Detail`.
Tables: `music_evals.leaderboard.build_leaderboard(".")`, or `music-evals leaderboard build`.
"""


class Added(NamedTuple):
    """What came of adding a run: the records that the board did not have, and the number of those that it had."""

    new: tuple[ResultRecord, ...]
    n_known: int


def add_to_board(
    results: str | os.PathLike[str],
    board: str | os.PathLike[str],
    *,
    systems: Sequence[str] | None = None,
    submitter: str = "",
    source: str = "",
    date: str | None = None,
    details: bool = True,
    media: Sequence[str | os.PathLike[str]] = (),
) -> Added:
    """Append the results of a run to a board.

    One new file is written, whole or not at all; what the board has already is not written again.

    Parameters
    ----------
    results
        Folder of a run of `inpainting`, `preserve`, `lyrics`, `describe` or `write-lyrics`.
    board
        Folder of the board; made where it is missing.
    systems
        Names of those to add; None adds all, controls among them.
    submitter, source
        Who adds, and an address of what stands behind it.
    date
        ``YYYY-MM-DD``; None is today.
    details
        Also add what can be shown of single items; records of lyrics quote lines of them.
    media
        Folders with the recordings that were compared, which are added with the details.

    Raises
    ------
    NoDataError, UnreadableFileError, CorruptRecordsError, UnknownNameError, InvalidInputError
        Results that cannot be read, or were changed; systems or a date that do not exist.
    CorruptRecordsError, FileTooLargeError
        A board that cannot be read, or a recording that is too large.
    OutputError
        The board cannot be written to.
    """
    run = read_run(results)
    records = records_of_run(run, source=source, date=date, submitter=submitter, systems=systems)
    new = add_part(board, records, details_of_run(run, records, media) if details else ())
    return Added(new, len(records) - len(new))


def parts(board: str | os.PathLike[str], kind: str = RESULTS) -> list[Path]:
    """Return the files of a board in the order in which they were added; others are not looked at."""
    folder = Path(board) / kind
    paths = [path for path in folder.iterdir() if _PART.fullmatch(path.name)] if folder.is_dir() else []
    return sorted(filter(Path.is_file, paths), key=lambda path: (_number(path), path.name))


def _number(part: Path) -> int:
    return int(part.name.partition("-")[0])


def read_board(board: str | os.PathLike[str]) -> list[ResultRecord]:
    """Read all records of a board, in the order in which they were added, each id once."""
    paths = parts(board)
    if not paths:
        raise NoDataError(f"{Path(board)} holds no records: there is no file of them below {RESULTS}")
    return list(_records(paths))


def _records(files: Iterable[Path]) -> Iterator[ResultRecord]:
    known: set[str] = set()
    for path in files:
        for row in _read(path, SCHEMA):
            try:
                record = _record(row)
            except (TypeError, ValueError, RecursionError) as error:  # a list that is missing, a number that is NaN
                raise CorruptRecordsError(
                    f"{path} holds a record that this version does not write ({error}); take the file away"
                ) from error
            if record.id not in known:
                known.add(record.id)
                yield record


def _record(row: Mapping[str, Any]) -> ResultRecord:
    lists = {key: tuple(row[key]) for key in ("items", "groups", "references", "reference_values")}
    lists["targets"] = tuple(row.get("targets", ()))
    json_columns = {name: json.loads(row[name]) for name, kind in SCHEMA.items() if kind == "json"}
    record = ResultRecord(**{**row, **lists, **json_columns, "values": tuple(map(tuple, row["values"]))})
    optional = (side for side in (record.references, record.reference_values, record.targets) if side)
    if any(len(side) != len(record.items) for side in (record.groups, record.values, *optional)):
        raise ValueError(f"columns of {record.system!r} differ in length")
    known = record.task in TASKS and record.kind in {"mean", "divergence"}
    if not known or record.direction not in DIRECTIONS:
        raise ValueError(f"task, kind or direction of {record.system!r} is unknown")
    if id_of(record) != record.id:
        raise ValueError(f"the id of a record of {record.system!r} is not the hash of its content")
    return record


def add_part(
    board: str | os.PathLike[str], records: Sequence[ResultRecord], details: Sequence[Detail] = ()
) -> tuple[ResultRecord, ...]:
    """Add the records of one run that a board does not have yet, with the details of the run; return them."""
    folder = Path(board)
    known = {record.id for record in _records(parts(folder))}
    new = tuple(record for record in {record.id: record for record in records}.values() if record.id not in known)
    if not new:
        return ()
    try:
        for kind in (RESULTS, DETAILS):
            (folder / kind).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make {folder}: {error.strerror or error}") from error
    if not (folder / CARD).exists():
        write_atomically(folder / CARD, _CARD_TEXT.encode(), parts=UNSENT)
    if details:
        _write(folder / DETAILS, [row._asdict() for row in details], DETAIL_SCHEMA)
    _write(folder / RESULTS, [_row(record) for record in new], SCHEMA)
    return new


def _row(record: ResultRecord) -> dict[str, Any]:
    row = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    packed = (name for name, kind in SCHEMA.items() if kind == "json")
    return row | {name: json.dumps(row[name], ensure_ascii=False, sort_keys=True) for name in packed}


def details_of(board: str | os.PathLike[str], runs: Iterable[str]) -> list[Detail]:
    """Read what can be shown of the items of some runs, no more than the bound on one file for all of them together."""
    wanted = frozenset(runs)
    details = {}
    size = 0
    for row in (row for path in parts(board, DETAILS) for row in _read(path, DETAIL_SCHEMA)):
        if row["run"] not in wanted:
            continue
        detail = Detail(**{**row, "content": row["content"] or "", "media": row["media"] or b""})
        size += _size(detail)
        if size > MAX_UNFOLDED_BYTES:
            raise FileTooLargeError(
                f"{Path(board)}: details of one run take more than {MAX_UNFOLDED_BYTES} bytes; take files of it away"
            )
        details[detail[:4]] = detail
    return list(details.values())


def _size(detail: Detail) -> int:
    return len(detail.content) + len(detail.media)


class DetailReader:
    """What can be shown of the items of a board; a run is read on request, and the latest ones are cached."""

    # What is kept is bound by `MAX_KEPT_BYTES` and `MAX_KEPT_RUNS`. Threads may share a reader.

    def __init__(self, board: str | os.PathLike[str]) -> None:
        self._board = Path(board)
        self._runs: OrderedDict[str, dict[tuple[str, str, str], Detail]] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()

    def get(self, run: str, item: str, system: str, kind: str) -> Detail | None:
        """Return a detail, or None if the board lacks it."""
        with self._lock:
            if run not in self._runs:
                details = details_of(self._board, [run])
                size = sum(map(_size, details))
                while self._runs and (  # the least recently used ones make room
                    len(self._runs) >= MAX_KEPT_RUNS or sum(self._sizes.values()) + size > MAX_KEPT_BYTES
                ):
                    gone, _ = self._runs.popitem(last=False)
                    del self._sizes[gone]
                self._runs[run] = {row[1:4]: row for row in details}
                self._sizes[run] = size
            self._runs.move_to_end(run)
            return self._runs[run].get((item, system, kind))

    def content(self, run: str, item: str, system: str, kind: str) -> dict[str, Any] | None:
        """Return the content of a detail; None if it is missing or not a mapping."""
        detail = self.get(run, item, system, kind)
        try:
            content = None if detail is None else json.loads(detail.content)
        except (ValueError, RecursionError):
            return None
        return content if isinstance(content, dict) else None


def _arrow(schema: Mapping[str, str]) -> Any:
    import pyarrow as pa

    text, number = pa.string(), pa.float64()
    types = {
        "string": text,
        "json": text,
        "binary": pa.binary(),
        "float64": number,
        "int64": pa.int64(),
        "list<string>": pa.list_(text),
        "list<float64>": pa.list_(number),
        "list<list<float64>>": pa.list_(pa.list_(number)),
    }
    return pa.schema([(name, types[kind]) for name, kind in schema.items()])


def _write(folder: Path, rows: Sequence[Mapping[str, Any]], schema: Mapping[str, str]) -> Path:
    """Write one file; one with the same content is not written again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    try:
        table = pa.Table.from_pylist(rows, schema=_arrow(schema))
        _check_bound(folder, table.num_rows, MAX_ROWS, "rows")
        _check_bound(folder, table.nbytes, MAX_UNFOLDED_BYTES, "bytes")
        pq.write_table(table, buffer, compression="zstd", compression_level=19)
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise CorruptRecordsError(
            f"{folder}: records cannot be written as Parquet ({error}); evaluate again"
        ) from error
    data = buffer.getvalue()
    if len(data) > MAX_PART_BYTES:
        raise FileTooLargeError(
            f"{folder}: these results take {len(data)} bytes, at most {MAX_PART_BYTES} fit; leave details out"
        )
    digest = hashlib.sha256(data).hexdigest()[:HASH_DIGITS]
    there = parts(folder.parent, folder.name)
    same = next((path for path in there if path.name.endswith(f"-{digest}.parquet")), None)
    number = _number(there[-1]) + 1 if there else 0
    return same or write_atomically(folder / f"{number:05d}-{digest}.parquet", data, parts=UNSENT)


def _read(path: Path, schema: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file; it is unpacked a few rows at a time, and no further than the bounds."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = _bytes(path)
    remedy = "restore the file from a copy, or take it away"
    match = _PART.fullmatch(path.name)
    if match is None or hashlib.sha256(data).hexdigest()[:HASH_DIGITS] != match[2]:
        raise CorruptRecordsError(f"{path} is damaged: its content does not have the hash of its name; {remedy}")
    wanted = _arrow(schema)
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        # check the size that the file declares, and how many of its rows may be unpacked at once
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        n_bytes = sum(group.total_byte_size for group in groups)
        n_values = sum(group.column(column).num_values for group in groups for column in range(group.num_columns))
        _check_bound(path, n_bytes, MAX_UNFOLDED_BYTES, "bytes")
        _check_bound(path, file.metadata.num_rows, MAX_ROWS, "rows")
        _check_bound(path, n_values, MAX_VALUES, "values")
        n_rows = int(min(max(MAX_BATCH_BYTES // max(n_bytes, 1), 1), MAX_BATCH_ROWS))
        older = _arrow({name: kind for name, kind in schema.items() if name not in ADDED})
        if not (file.schema_arrow.equals(wanted) or file.schema_arrow.equals(older)):
            raise CorruptRecordsError(f"{path} has other columns than a board has ({', '.join(schema)}); {remedy}")
        size = 0
        for batch in file.iter_batches(batch_size=n_rows, use_threads=False):
            size += batch.nbytes
            _check_bound(path, size, MAX_UNFOLDED_BYTES, "bytes")
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        if isinstance(error, CorruptRecordsError | FileTooLargeError):
            raise
        raise CorruptRecordsError(f"{path} cannot be read ({type(error).__name__}: {error}); {remedy}") from error


def _check_bound(path: Path, size: int, most: int, unit: str) -> None:
    if size > most:
        raise FileTooLargeError(f"{path} unfolds to more than {most} {unit}; take it away, or add less at once")


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_PART_BYTES:
            raise FileTooLargeError(f"{path}: more than {MAX_PART_BYTES} bytes; take it away")
        return path.read_bytes()
    except OSError as error:
        raise CorruptRecordsError(f"{path} cannot be read: {error.strerror or error}") from error
