"""Records of a run: one row for each thing that was read, made or scored, in Parquet shards that survive a kill.

A run has one folder of records, and one process writes to it. It gathers rows and writes them as a shard when they are
many, when they have waited for some seconds, or at once where they hold what a system made: a kill costs some seconds
of scoring and no output. When a session ends, its small shards are merged. A shard is written whole or not at all, and
is called ``<number>-<start of the SHA-256 of its bytes>.parquet``, or ``<first>-<last>-<...>.parquet`` where it holds
the rows of several numbers: one that does not hold what its name says is damage, as is a number that is missing or
there twice. Anything else in the folder is left alone.

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
    Wall time of one session; a run that was killed and resumed has several.
selection, pair
    What is compared in the sessions that follow, where that may grow: the systems, and what results depend on and
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

How rows become columns is in `columns`. Older versions wrote JSON lines (`_read_json_lines`) and called the modality of
a pair its entrance; their runs are read as they are, and become shards when they are resumed.
"""

from __future__ import annotations

import bisect
import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import re
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from music_evals.benchmark.columns import REMEDY, RENAMED, Row, dump_json, only, renamed, schema, to_rows, to_table
from music_evals.errors import CorruptRecordsError, MusicEvalsError, OtherRunError, OutputError
from music_evals.files import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa

SHARD_ROWS = 50_000
"""Rows after which a shard is written, and that are read and held at once: some 4,500 pairs with eleven scores."""

SHARD_SECONDS = 30.0
"""How long rows wait for others: what a kill may cost."""

MANY_SHARDS = 64
"""Shards of earlier sessions; fewer are left as they are when this session's are merged: others may read them."""

OUTPUTS: Final = frozenset({"prediction", "edit", "generation", "preparation"})
"""Kinds of rows that hold, or name, what a system made: they do not wait."""

_NAME: Final = re.compile(r"(\d{5,})(?:-(\d{5,}))?-([0-9a-f]{16})\.parquet")
_LOCK: Final = ".lock"
_KINDS: Final = b"kinds"  # in the metadata of a shard: the kinds of its rows
_DIGITS: Final = 16  # of a digest
_START: Final = b'{"kind":"run"'
_CLOSING: Final = b'{"kind":"block"'


# --- reading


class _Part(NamedTuple):
    """Rows that are read together."""

    n_rows: int
    kinds: frozenset[str]
    source: Path | pa.Table  # a shard whose bytes were checked against its name, or rows in memory
    span: tuple[int, int] = (0, 0)  # first and last number of the shard


class Records(Sequence[dict[str, Any]]):
    """The rows of a run, in the order of writing.

    What reads many rows takes `batches`. As a sequence they are dictionaries, which are read when they are needed.
    """

    def __init__(self, path: Path, parts: Iterable[_Part]) -> None:
        self.path, self.parts = path, list(parts)
        self.kinds = frozenset[str]().union(*(part.kinds for part in self.parts))
        self._starts = [0, *itertools.accumulate(part.n_rows for part in self.parts)]
        self._last: tuple[int, Any] = (-1, None)  # a part and its rows, for what is read one by one

    def batches(self, *kinds: str, text: bool = True) -> Iterator[pa.Table]:
        """Yield the rows of some kinds, of all where none is given, with a column of their ``number``.

        Without `text` their JSON is left out where it lies in shards.
        """
        import pyarrow as pa

        for part, start in zip(self.parts, self._starts, strict=False):
            if kinds and part.kinds.isdisjoint(kinds):
                continue
            table = read_part(part, text=text)
            table = table.append_column("number", pa.array(np.arange(start, start + part.n_rows)))
            chosen = table if not kinds or part.kinds <= set(kinds) else only(table, *kinds)
            if chosen is not None:
                yield chosen

    def of(self, *kinds: str, numbered: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the rows of some kinds as dictionaries, on request with their ``number``."""
        for table in self.batches(*kinds):
            for number, row in zip(table["number"].to_pylist(), to_rows(table), strict=True):
                yield row | {"number": number} if numbered else row

    def read(self, numbers: Iterable[int]) -> list[dict[str, Any]]:
        """Return the rows of these numbers, in this order."""
        wanted = list(map(int, numbers))
        rows: dict[int, dict[str, Any]] = {}
        for part, group in itertools.groupby(sorted(set(wanted)), lambda n: bisect.bisect_right(self._starts, n) - 1):
            if self._last[0] != part:
                self._last = (part, read_part(self.parts[part]))
            own = list(group)
            table = self._last[1].take([number - self._starts[part] for number in own])
            rows |= zip(own, to_rows(table), strict=True)
        return [rows[number] for number in wanted]

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.of()

    def __getitem__(self, place: Any) -> Any:
        numbers = range(len(self))[place]
        return self.read(numbers) if isinstance(numbers, range) else self.read([numbers])[0]


def read_part(part: _Part, *, text: bool = True) -> pa.Table:
    """Return the rows of a part; without `text` the column of JSON of a shard is empty."""
    if not isinstance(part.source, Path):
        return part.source
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [name for name in schema().names if text or name != "json"]
    with output_errors(part.source, "read"):
        content = part.source.read_bytes()
    with _reading_shard(part.source):
        file = pq.ParquetFile(pa.BufferReader(content))
        old = {RENAMED.get(name, name): name for name in file.schema_arrow.names}
        table = file.read(columns=[old.get(name, name) for name in names])
        table = table.rename_columns([RENAMED.get(name, name) for name in table.column_names]).select(names)
        table.validate(full=True)  # places outside of a dictionary, text that is not UTF-8
        if len(table) != part.n_rows or not table.schema.equals(pa.schema([schema().field(name) for name in names])):
            raise ValueError("it has other columns or rows than it says")
    return table if text else table.append_column("json", pa.nulls(len(table), pa.string()))


def rows_in_memory(rows: Iterable[Row], path: Path = Path("memory")) -> Records:
    """Return rows as records."""
    held = [renamed(dict(row)) for row in rows]
    chunks = [held[start : start + SHARD_ROWS] for start in range(0, len(held), SHARD_ROWS)]
    return Records(path, [_Part(len(own), frozenset(row["kind"] for row in own), to_table(own)) for own in chunks])


def records_at(path: str | os.PathLike[str]) -> Path | None:
    """Return where the records of a run are, its folder or the file of an older version; None without any."""
    folder, lines = Path(path).with_suffix(""), Path(path).with_suffix(".jsonl")
    return lines if lines.exists() else folder if _shards_in(folder) else None


def read_records(path: str | os.PathLike[str]) -> Records:
    """Open the records of a run, a folder or an older version's file of JSON lines, and check that they are whole."""
    path = Path(path)
    records = Records(path, _open_shards(path)) if path.is_dir() else _read_json_lines(path)
    if not len(records):
        raise CorruptRecordsError(f"{path} holds no finished block of records; run the command that writes it again")
    return records


def _read_json_lines(path: Path) -> Records:
    """Read a run of an older version: blocks of JSON lines, each closed by a row with their number and checksum.

    What stands after the last closed block was being written when the run ended, and counts for nothing.
    """
    rows: list[Row] = []
    block: list[bytes] = []
    head = b""
    with output_errors(path, "read"), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            head = head or line[: len(_START)]
            if not (line.startswith(_CLOSING) and line.endswith(b"\n")):
                block.append(line)
                continue
            # everything up to a closing row was on the disk once, so what cannot be read now is damage
            first, checksum = number - len(block), zlib.crc32(b"".join(block))
            for place, text in enumerate([*block, line], start=first):
                try:
                    row = json.loads(text)
                except (ValueError, RecursionError):
                    row = None
                if not isinstance(row, dict):
                    raise CorruptRecordsError(f"{path}, line {place} is damaged: it is not one JSON object; {REMEDY}")
                rows.append(row)
            closing = rows.pop()
            if (closing.get("rows"), closing.get("crc32")) != (len(block), checksum):
                raise CorruptRecordsError(
                    f"{path}, lines {first} to {number} are damaged: expected {closing.get('rows')} rows with checksum "
                    f"{closing.get('crc32')}, got {len(block)} with {checksum}; {REMEDY}"
                )
            block = []
    if not rows and not (head.startswith(_START) or _START.startswith(head)):
        raise CorruptRecordsError(
            f"{path} is no record file: line 1 does not start with {_START.decode()}; choose another folder (`out`)"
        )
    with reading_rows():
        return rows_in_memory(rows, path)


def _shards_in(folder: Path) -> list[tuple[int, int, str]]:
    """Return first number, last number and name of the shards in a folder, each before those that it holds."""
    if not folder.is_dir():
        return []
    with output_errors(folder, "read"):
        matches = [match for name in os.listdir(folder) if (match := _NAME.fullmatch(name))]  # noqa: PTH208
    shards = [(int(match[1]), int(match[2] or match[1]), match[0]) for match in matches]
    return sorted(shards, key=lambda shard: (shard[0], -shard[1], shard[2]))


def _open_shards(folder: Path) -> list[_Part]:
    """Return the shards that count, each held to the digest in its name: all but those that were merged into others."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    shards: list[tuple[int, int, str]] = [(-1, -1, "")]
    for first, last, name in _shards_in(folder):
        begin, end, before = shards[-1]
        if first > end + 1:
            raise CorruptRecordsError(f"{folder}: shard {end + 1:05} is missing, {name} is there; {REMEDY}")
        if first == end + 1:
            shards.append((first, last, name))
        elif last > end or (begin, end) == (first, last):
            raise CorruptRecordsError(f"{folder}: {before} and {name} have one number; {REMEDY}")
    parts = []
    for first, last, name in shards[1:]:
        with output_errors(folder / name, "read"):
            content = (folder / name).read_bytes()
        if hashlib.sha256(content).hexdigest()[:_DIGITS] != Path(name).stem.rpartition("-")[2]:
            raise CorruptRecordsError(f"{folder / name} is damaged: it does not hold what its name says; {REMEDY}")
        with _reading_shard(folder / name):
            about = pq.read_metadata(pa.BufferReader(content))
            kinds = frozenset(json.loads((about.metadata or {})[_KINDS]))
        parts.append(_Part(about.num_rows, kinds, folder / name, (first, last)))
    return parts


@contextlib.contextmanager
def _reading_shard(path: Path) -> Iterator[None]:
    """Turn what broken Parquet leads to, its reader's own errors among it, into `CorruptRecordsError`."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, ArithmeticError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        raise CorruptRecordsError(
            f"{path} is no shard of records, or damaged ({type(error).__name__}: {error}); {REMEDY}"
        ) from error


# --- writing


class RecordStore(contextlib.AbstractContextManager["RecordStore"]):
    """The records of a run, open for appending.

    Opening reads what is there: damage raises, and a header that differs from `header` raises, since numbers of two
    different runs must not be mixed: it is the ``run`` row without its kind. `items` are written together with it.
    While it is open the folder is locked (``flock``): a second run in it is refused, and so changes nothing. The lock
    ends with the process, however that ends.
    """

    def __init__(
        self, path: str | os.PathLike[str], header: Row, items: Iterable[Row] = (), *, overwrite: bool = False
    ) -> None:
        self.path, old = Path(path).with_suffix(""), Path(path).with_suffix(".jsonl")
        if old.exists() and _shards_in(self.path) and not overwrite:
            raise CorruptRecordsError(
                f"{old} and {self.path} are both there; a run has one of them: move the other away, or start afresh "
                "(`overwrite=True`)"
            )
        first = {"kind": "run", **header}
        self._waiting: list[Row] = []
        self._since = time.monotonic()
        self._parts: list[_Part] = []
        with output_errors(self.path, "write"):
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = (self.path / _LOCK).open("ab")
        try:
            # the lock keeps other runs from writing for as long as the file is open
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OutputError(
                    f"another run is writing to {self.path}; wait for it, or choose another folder (`out`)"
                ) from error
            except OSError as error:
                raise OutputError(
                    f"{self.path} cannot be locked against other runs ({error.strerror or error}); choose a folder "
                    "(`out`) on a file system that knows locks"
                ) from error
            there = {name for _, _, name in _shards_in(self.path)}
            records = Records(self.path, [] if overwrite else _open_shards(self.path))
            if old.exists() and not overwrite:
                records = _read_json_lines(old)
            self.resumed = bool(records.parts)
            if self.resumed:
                check_same_run(records[0], json.loads(dump_json(first)), records.path)
            self._parts = [part for part in records.parts if isinstance(part.source, Path)]
            self._n_kept = len(self._parts) if len(self._parts) < MANY_SHARDS else 0
            self._remove(there - {part.source.name for part in self._parts})
            for part in records.parts[len(self._parts) :]:  # of an older version
                self._parts.append(self._write(read_part(part)))
            if old.exists():
                remove_file(old)
            if not self.resumed:
                self.append([first, *items])
                self.flush()
        except BaseException:
            self._lock.close()
            raise

    def _remove(self, names: Collection[str]) -> None:
        """Remove shards, and what a writer left that was killed."""
        for _, _, name in reversed(_shards_in(self.path)):  # a run that is killed here leaves no gap
            if name in names:
                remove_file(self.path / name)
        for part in self.path.glob(".*.parquet.*.part"):
            remove_file(part)

    @property
    def rows(self) -> Records:
        """All rows of the run; those that waited are written."""
        self.flush()
        return Records(self.path, self._parts)

    def append(self, rows: Iterable[Row]) -> None:
        """Take rows: those of `OUTPUTS` are then on the disk, others when they are many or have waited long."""
        made = False
        for row in rows:
            if not self._waiting:
                self._since = time.monotonic()
            made = made or row["kind"] in OUTPUTS
            self._waiting.append(row)
            if len(self._waiting) >= SHARD_ROWS:
                self.flush()
        if made or (self._waiting and time.monotonic() - self._since >= SHARD_SECONDS):
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait as a shard."""
        if self._waiting:
            self._parts.append(self._write(to_table(self._waiting)))
            self._waiting = []

    def _write(self, table: pa.Table, span: tuple[int, int] | None = None) -> _Part:
        """Write a shard that has a number, or several; by default the next one."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        kinds = sorted(table["kind"].unique().to_pylist())
        sink = pa.BufferOutputStream()
        words = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
        with pq.ParquetWriter(sink, table.schema, compression="zstd", use_dictionary=words) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({_KINDS: dump_json(kinds)})
        content = sink.getvalue().to_pybytes()
        if span is None:
            span = (self._parts[-1].span[1] + 1 if self._parts else 0,) * 2
        number = "-".join(f"{place:05}" for place in dict.fromkeys(span))
        name = f"{number}-{hashlib.sha256(content).hexdigest()[:_DIGITS]}.parquet"
        return _Part(len(table), frozenset(kinds), write_atomically(self.path / name, content), span)

    def compact(self) -> None:
        """Merge small shards of this session that follow each other; the rows stay as they are."""
        import pyarrow as pa

        self.flush()
        groups: list[list[_Part]] = []
        for part in self._parts[self._n_kept :]:
            if groups and sum(held.n_rows for held in groups[-1]) + part.n_rows <= SHARD_ROWS:
                groups[-1].append(part)
            else:
                groups.append([part])
        del self._parts[self._n_kept :]
        for group in groups:
            if len(group) > 1:
                table = pa.concat_tables(map(read_part, group)).unify_dictionaries().combine_chunks()
                self._parts.append(self._write(table, (group[0].span[0], group[-1].span[1])))
                self._remove({Path(part.source).name for part in group})
            else:
                self._parts += group

    def __exit__(self, *_: object) -> None:
        """Write what waits, and let others write."""
        try:
            self.flush()
        finally:
            self._lock.close()


def remove_records(path: str | os.PathLike[str]) -> None:
    """Remove the records of a run, and their folder where it holds nothing else."""
    folder = Path(path).with_suffix("")
    for _, _, name in _shards_in(folder):
        remove_file(folder / name)
    remove_file(folder.with_suffix(".jsonl"))
    if folder.is_dir():
        remove_file(folder / _LOCK)
        with contextlib.suppress(OSError):
            folder.rmdir()


def remove_file(path: str | os.PathLike[str]) -> None:
    """Remove a file; one that is not there is no error."""
    with output_errors(Path(path), "remove"):
        Path(path).unlink(missing_ok=True)


# --- errors


@contextlib.contextmanager
def reading_rows() -> Iterator[None]:
    """Turn what wrong rows lead to into `CorruptRecordsError`: fields that are missing, or of another type or size."""
    # A checksum says that a shard is what was written, not that it was written by this package.
    try:
        yield
    except MusicEvalsError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CorruptRecordsError(
            f"the records hold rows that this version does not write ({type(error).__name__}: {error}); {REMEDY}"
        ) from error


@contextlib.contextmanager
def output_errors(path: Path, verb: str) -> Iterator[None]:
    """Turn errors of the file system into `OutputError`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"cannot {verb} {path}: {reason}; make room or choose another folder (`out`)") from error


def check_same_run(old: dict[str, Any], new: dict[str, Any], path: Path) -> None:
    """Raise where the headers of two runs differ: with the settings and data that do, else with the rest."""
    before, now = _flatten(old), _flatten(new)
    differences = [
        f"{key} was {before.get(key, 'absent')!r} and is now {now.get(key, 'absent')!r}"
        for key in sorted(before | now, key=lambda key: ("." in key, key))
        if before.get(key) != now.get(key) or (key in before) != (key in now)
    ]
    # what was chosen: settings and data; most of the rest follows from it
    chosen = [line for line in differences if "." not in line.partition(" ")[0] or line.startswith("dataset.")]
    if differences := chosen or differences:
        shown = "; ".join(differences[:5]) + (f"; and {len(differences) - 5} more" if len(differences) > 5 else "")
        raise OtherRunError(
            f"{path} belongs to another run: {shown}. Choose another folder (`out`), or start afresh (`overwrite=True`)"
        )


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested dictionaries as one, with dotted keys, so that a difference can be named."""
    if not isinstance(value, dict):
        return {prefix: value}
    parts = (_flatten(inner, f"{prefix}.{key}" if prefix else key) for key, inner in value.items())
    return {name: held for part in parts for name, held in part.items()}
