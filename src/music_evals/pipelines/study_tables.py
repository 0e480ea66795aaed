"""The tidy tables of an editing test: its samples, what editors did to them, and what listeners said of them.

One row is one sample, one edit, one listener's rating of one sample. `SAMPLES`, `EDITS` and `LISTENING` say what each
column is. The folder of a study holds ``samples``, ``edits`` and, where there was a listening test, ``listening``, each
as CSV, JSON lines or Parquet. Other columns are left to whoever wrote them, but for ``sim_<style>`` in ``listening``:
how near a listener found the sample to a style, 1 to 5; an empty cell there means that nobody asked.

Whoever writes such tables and whoever reads them takes the columns from here.

References
----------
Lu, Wu, Chiu, Su: "Actions speak louder than listening: evaluating music style transfer based on editing experience",
ACM MM 2021, section 5.

"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.csv_files import csv_rows, csv_text
from music_evals.deprecation import renamed_options
from music_evals.errors import (
    InvalidInputError,
    MusicEvalsError,
    NoDataError,
    PairCountError,
    UnreadableFileError,
    UnsupportedTypeError,
    located,
)
from music_evals.files import check_no_pointer, decode_text, parse_json, reading

__all__ = [
    "EDITS", "LISTENING", "ROLES", "SAMPLES", "SIMILARITY", "TIME_LIMIT_S", "Column", "StudyTables", "Table",
    "located_at", "read_rows", "read_study", "read_table", "rows_of", "samples_of_edits", "study_tables", "table_text",
    "tell_marks",
]  # fmt: skip

Table = dict[str, npt.NDArray[Any]]
"""Columns of equal length by name: text as str, whole and other numbers as float64, yes or no as bool."""

ROLES = ("proposed", "baseline")
"""What a model is in the study: the one that is judged, or the one that it is compared with."""
SIMILARITY = "sim_"
"""How the columns of ``listening`` begin that hold the similarity to a style."""
TIME_LIMIT_S = 1800.0
"""Longest time for one edit, in seconds, unless the study says otherwise: half an hour, section 5.1 of the paper."""


@dataclasses.dataclass(frozen=True)
class Column:
    """What a column of a table holds."""

    name: str  # its heading
    kind: str  # ``"text"``, ``"integer"``, ``"number"`` or ``"flag"`` (true or false, 1 or 0, yes or no)
    meaning: str  # what it says, with its unit
    needed: bool = True  # each row has a value; other columns may be missing, and their cells empty
    low: float = -math.inf  # least and greatest value of a number, both included
    high: float = math.inf


def _rating(name: str, meaning: str) -> Column:
    return Column(name, "integer", f"{meaning}; 1 (not at all) to 5 (very much)", low=1, high=5)


def _count(name: str, meaning: str, *, needed: bool = False) -> Column:
    return Column(name, "integer", meaning, needed=needed, low=0)


SAMPLES = (
    Column("sample_id", "text", "names the sample; each occurs once"),
    Column("piece_id", "text", "the piece that was rearranged"),
    Column("style", "text", "the style that it was to have"),
    Column("model", "text", "who made it"),
    Column("role", "text", "proposed or baseline: each piece and style has one sample of each"),
    Column("midi_sha256", "text", "hash of the MIDI file that editors were given", needed=False),
    _count("n_bars", "its length in bars"),
    _count("n_notes", "its notes"),
    Column("licence", "text", "under which its notes may be published; empty where they may not", needed=False),
)
"""Columns of ``samples``, one row a sample."""

EDITS = (
    Column("sample_id", "text", "a row of `samples`"),
    Column("editor_id", "text", "a random name; an editor edits a sample once"),
    _count("order_index", "how many samples this editor had done before"),
    Column("tool", "text", "the editor software", needed=False),
    Column("time_s", "number", "time from the first note seen or heard to the end, in seconds, above 0", low=0),
    _count("key_presses", "keys pressed in the editor, repeats of a held key left out", needed=True),
    _count("mouse_clicks", "pointer buttons pressed in the editor; a drag is one", needed=True),
    Column("hit_limit", "flag", "the time limit ended it: the time it needed is longer"),
    _rating("EQ1", "easy to edit"),
    _rating("EQ2", "sounds good after the edit"),
    _rating("EQ3", "would help my production"),
    Column("active_time_s", "number", "time without hidden tabs and long idleness, in seconds", needed=False, low=0),
    _count("edit_key_presses", "keys that changed notes"),
    _count("edit_clicks", "clicks that changed notes"),
    _count("n_inserted", "notes inserted"),
    _count("n_deleted", "notes deleted"),
    _count("n_moved", "notes moved"),
    _count("n_resized", "notes resized"),
    _count("n_midi", "notes played on a keyboard"),
    Column("marks", "text", "why it is hard to believe, as `edit_marks` calls it; empty where it is not", needed=False),
)
"""Columns of ``edits``, one row an edit."""

LISTENING = (
    Column("sample_id", "text", "a row of `samples`"),
    Column("listener_id", "text", "a random name; a listener rates a sample once"),
    Column("questionnaire_id", "text", "the block of samples that the listener was given", needed=False),
    _count("order_index", "how many samples this listener had rated before"),
    _rating("LQ1", "sounds good"),
)
"""Columns of ``listening``, one row a rating; columns `SIMILARITY` + style may follow, 1 to 5 or empty."""

_YES, _NO = {"true", "1", "yes"}, {"false", "0", "no"}
_SUFFIXES = (".csv", ".jsonl", ".parquet")


class StudyTables(NamedTuple):
    """The tables of one editing test, checked by themselves and against each other."""

    samples: Table
    edits: Table
    listening: Table | None


def read_study(folder: str | os.PathLike[str]) -> StudyTables:
    """Read the tables of a study from its folder: ``samples``, ``edits`` and, where it is there, ``listening``.

    Raises
    ------
    NoDataError
        No such folder or table, or one without rows.
    UnreadableFileError
        A file that is not what its suffix says, or a table in two files.
    InvalidInputError, PairCountError
        As `study_tables`.
    """
    place = Path(folder)
    if not place.is_dir():
        raise NoDataError(f"{place} is no folder; give the folder of a study")
    candidates = {name: [place / f"{name}{suffix}" for suffix in _SUFFIXES] for name in StudyTables._fields}
    there = {name: [path for path in paths if path.exists()] for name, paths in candidates.items()}
    for name, paths in there.items():
        if len(paths) > 1:
            raise UnreadableFileError(
                f"{place}: {' and '.join(path.name for path in paths)} both hold {name}; keep one"
            )
        if not paths and name != "listening":
            raise NoDataError(f"{place} holds no {name}.csv (nor .jsonl or .parquet); a study needs it")
    return study_tables(there["samples"][0], there["edits"][0], next(iter(there["listening"]), None))


def study_tables(samples: Any, edits: Any, listening: Any = None) -> StudyTables:
    """Read and check the tables of a study, each as `read_table` takes it; rows stay in their order.

    Raises
    ------
    NoDataError
        A table without rows.
    InvalidInputError
        A missing column, an empty cell, a number outside of its range, a role that is neither proposed nor baseline,
        or a sample that `samples` does not have; the message names the row.
    PairCountError
        A sample that occurs twice or was edited by one editor or rated by one listener twice; a piece and style with
        more or less than one proposed and one baseline sample; the message names the row.
    """
    tables = StudyTables(
        read_table(samples, SAMPLES, table_name="samples"),
        read_table(edits, EDITS, table_name="edits"),
        None if listening is None else read_table(listening, LISTENING, table_name="listening"),
    )
    _check_samples(tables.samples)
    known = set(tables.samples["sample_id"].tolist())
    for table_name, table, who in (
        ("edits", tables.edits, "editor_id"),
        ("listening", tables.listening, "listener_id"),
    ):
        if table is not None:
            _check_keys(table_name, table, ("sample_id", who))
            for number, sample in enumerate(table["sample_id"].tolist(), start=1):
                if sample not in known:
                    raise InvalidInputError(
                        f"{table_name}, row {number}: no sample {sample!r} in samples; add its row there"
                    )
    zero = np.flatnonzero(tables.edits["time_s"] == 0)
    if len(zero):
        raise InvalidInputError(f"edits, row {zero[0] + 1}: time_s is 0; an edit takes time, leave this row out")
    return tables


def samples_of_edits(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of ``samples`` that stand in rows of ``edits`` with its needed columns, too: one table for both.

    Raises
    ------
    InvalidInputError
        A column that is missing, or a sample that two rows describe differently; the message names the row.
    """
    names = [column.name for column in SAMPLES if column.needed]
    samples: dict[Any, tuple[int, dict[str, Any]]] = {}
    for number, row in enumerate(rows, start=1):
        missing = [name for name in names if name not in row]
        if missing:
            raise InvalidInputError(
                f"edits, row {number}: no {', no '.join(missing)}; give these columns, or the table samples"
            )
        sample = {name: row[name] for name in names}
        first, known = samples.setdefault(sample["sample_id"], (number, sample))
        if sample != known:
            raise InvalidInputError(
                f"edits, row {number}: sample {sample['sample_id']!r} is {sample}, and {known} in row {first}"
            )
    return [row for _, row in samples.values()]


def _check_samples(samples: Table) -> None:
    """Check roles, and that each piece and style has one sample of each."""
    _check_keys("samples", samples, ("sample_id",))
    _check_keys("samples", samples, ("piece_id", "style", "role"))
    rows: dict[tuple[str, str], dict[str, int]] = {}
    for number, (piece, style, role) in enumerate(_keys(samples, ("piece_id", "style", "role")), start=1):
        if role not in ROLES:
            raise InvalidInputError(f"samples, row {number}: role must be {' or '.join(ROLES)}, got {role!r}")
        rows.setdefault((piece, style), {})[role] = number
    for (piece, style), roles in rows.items():
        for missing in set(ROLES) - set(roles):
            raise PairCountError(
                f"samples, row {next(iter(roles.values()))}: piece {piece!r} in style {style!r} has no {missing} "
                "sample; add it, or leave this one out"
            )


def _keys(table: Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].tolist() for name in names), strict=True)


def _check_keys(table_name: str, table: Table, names: Sequence[str]) -> None:
    first_rows: dict[tuple[Any, ...], int] = {}
    for number, key in enumerate(_keys(table, names), start=1):
        if first_rows.setdefault(key, number) != number:
            cells = ", ".join(f"{name} {value!r}" for name, value in zip(names, key, strict=True))
            raise PairCountError(
                f"{table_name}, row {number}: {cells} stands in row {first_rows[key]} already; keep one"
            )


@renamed_options(what="table_name")
def read_table(source: Any, columns: Sequence[Column], *, table_name: str) -> Table:
    """Read one table and check its cells; an empty cell of a number is NaN, of a text "".

    Parameters
    ----------
    source
        A path (``.csv``, ``.jsonl``, ``.parquet``), a data frame, a `datasets.Dataset`, columns in a dict, or rows, one
        dict each.
    columns
        What it holds: `SAMPLES`, `EDITS` or `LISTENING`.
    table_name
        Name of the table in messages.

    Raises
    ------
    NoDataError
        No rows, or no such file.
    InvalidInputError
        A column is missing, or a cell is wrong; the message names the row.
    UnreadableFileError
        A file that is not what its suffix says.
    UnsupportedTypeError
        Something else than a table.
    """
    rows = rows_of(source, table_name=table_name)
    if not rows:
        raise NoDataError(f"{table_name}: the table has no rows")
    there = list(dict.fromkeys(name for row in rows for name in row))
    missing = [column.name for column in columns if column.needed and column.name not in there]
    if missing:
        raise InvalidInputError(f"{table_name}: no column {', no column '.join(missing)}; it has {', '.join(there)}")
    read = [column for column in columns if column.name in there]
    if columns is LISTENING:
        read += [
            Column(name, "integer", "similarity to a style", needed=False, low=1, high=5)
            for name in there
            if name.startswith(SIMILARITY) and name != SIMILARITY
        ]
    cells: dict[str, list[Any]] = {column.name: [] for column in read}
    for number, row in enumerate(rows, start=1):
        with located_at(f"{table_name}, row {number}"):
            for column in read:
                cells[column.name].append(_cell(column, row.get(column.name)))
    kinds = {"text": np.str_, "integer": np.float64, "number": np.float64, "flag": np.bool_}
    return {column.name: np.array(cells[column.name], dtype=kinds[column.kind]) for column in read}


@contextlib.contextmanager
def located_at(place: object) -> Iterator[None]:
    """Have each error of ours that leaves the block begin with the place that it is about."""
    try:
        yield
    except MusicEvalsError as error:
        raise located(error, str(place)) from error


@renamed_options(what="table_name")
def rows_of(source: Any, *, table_name: str) -> list[Mapping[str, Any]]:
    """Return the rows of a table in any form that `read_table` takes, unchecked; raises as it does."""
    if isinstance(source, str | os.PathLike):
        return list(read_rows(Path(source), table_name=table_name))
    if hasattr(source, "to_pylist"):  # a table of pyarrow
        source = source.to_pylist()
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):  # a data frame
        source = source.to_dict("records")
    elif hasattr(source, "column_names"):  # a datasets.Dataset
        source = list(source)
    if isinstance(source, Mapping):
        lengths = {name: len(values) for name, values in source.items()}
        if len(set(lengths.values())) > 1:
            raise InvalidInputError(f"{table_name}: columns of different lengths, {lengths}")
        source = [dict(zip(source, row, strict=True)) for row in zip(*source.values(), strict=True)]
    if not isinstance(source, list | tuple) or not all(isinstance(row, Mapping) for row in source):
        raise UnsupportedTypeError(
            f"{table_name}: expected a path, a data frame, a Dataset, columns in a dict, or rows; "
            f"got {type(source).__name__}"
        )
    return list(source)


def _cell(column: Column, cell: Any) -> Any:
    """Return the value of a cell, checked as its column says."""
    value = cell.item() if isinstance(cell, np.generic) else cell
    is_empty = value is None or (isinstance(value, str) and not value.strip()) or value != value  # noqa: PLR0124  # NaN
    if is_empty and (column.needed or column.kind == "flag"):
        raise InvalidInputError(f"{column.name} is empty: {column.meaning}")
    if column.kind == "text":
        return "" if is_empty else str(value).strip()
    if column.kind == "flag":
        text = str(value).strip().lower().removesuffix(".0")
        if text not in _YES | _NO:
            raise InvalidInputError(f"{column.name} must be true or false, got {cell!r}")
        return text in _YES
    if is_empty:
        return math.nan
    try:
        number = float("nan" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        number = math.nan
    is_kind = math.isfinite(number) and (column.kind == "number" or number == int(number))
    if not is_kind or not column.low <= number <= column.high:
        kind = "a whole number" if column.kind == "integer" else "a number"
        limits = f" from {column.low:g}" + (f" to {column.high:g}" if math.isfinite(column.high) else " on")
        raise InvalidInputError(f"{column.name} must be {kind}{limits}, got {value!r}: {column.meaning}")
    return number


@renamed_options(what="table_name")
def read_rows(path: Path, *, table_name: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a CSV file, of JSON lines or of a Parquet file, by its suffix.

    Raises
    ------
    NoDataError
        No such file.
    UnreadableFileError
        Another suffix, or a file that is not what its suffix says.
    InvalidInputError
        A row with more or fewer cells than there are columns.
    """
    with reading(path):
        content = path.read_bytes()
    readers = {".csv": _csv_rows, ".jsonl": _json_rows, ".parquet": _parquet_rows}
    if path.suffix.lower() not in readers:
        raise UnreadableFileError(f"{path}: {table_name} are read from {', '.join(readers)}; save them as one of these")
    check_no_pointer(content, path)
    try:
        yield from readers[path.suffix.lower()](content)
    except InvalidInputError as error:
        raise located(error, str(path)) from error
    except (ValueError, OSError) as error:  # what pyarrow and `parse_json` raise is among them
        raise UnreadableFileError(f"{path} is no {path.suffix.lower()[1:].upper()} ({error})") from error


def _csv_rows(content: bytes) -> Iterator[Mapping[str, Any]]:
    for number, row in enumerate(csv_rows(decode_text(content, "its text"), "its text"), 1):
        if None in row or None in row.values():
            raise InvalidInputError(f"row {number} has more or fewer cells than the table has columns")
        yield row


def _json_rows(content: bytes) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(decode_text(content, "its text").split("\n"), start=1):
        if line.strip():
            row = parse_json(line, f"line {number}")
            if not isinstance(row, dict):
                raise InvalidInputError(f"line {number} holds a {type(row).__name__}; expected one object a line")
            yield row


def _parquet_rows(content: bytes) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    yield from parquet.read_table(pa.BufferReader(content)).to_pylist()


def tell_marks(editors: Sequence[str], marks: Sequence[str]) -> list[str]:
    """Return how many edits are marked, and why, by editor; empty if none is."""
    reasons: dict[str, Counter[str]] = {}
    for who, names in zip(editors, marks, strict=True):
        if names:
            reasons.setdefault(who, Counter()).update(names.split())
    lines = [f"{who}: {', '.join(f'{name} {n}' for name, n in counts.items())}" for who, counts in reasons.items()]
    return [f"{sum(map(bool, marks))} of {len(marks)} edits are marked as hard to believe.", *lines] if lines else []


def table_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV, with the columns of all; a cell that a spreadsheet would run gets a quote before it."""
    return csv_text(dict.fromkeys(name for row in rows for name in row), rows)
