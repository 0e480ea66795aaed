"""`pairs.csv`: what a listening study plays, one row for each item and system, and the key to its blind files.

The form is that of the manifests of ``music-evals preserve``, with more columns: a table with `reference` and
`estimate` alone is one too. Paths start at the folder of the table. An empty cell says that something is not known.

item_id, group, system
    What was changed, filled or transferred; the cluster that its intervals take it in (its song); and who did it. Each
    pair of item and system occurs once. The system `REFERENCE` is the hidden reference: the original, unlabelled.
task
    Such as ``inpainting``.
reference, estimate
    The file that is played as the original, and the one that is rated.
reference_sha256, estimate_sha256
    Hashes of the files.
seconds
    How long the estimate plays.
start_sec, end_sec
    The part of it that the system made, where the rest is the original's.
reference_lufs, estimate_lufs, gain_db
    Loudness of the files as they lie there (ITU-R BS.1770-4), and by how much the estimate was turned up for it.
same_as
    The system of the same item that comes first in the table and sounds exactly the same.
licence, source
    Under what terms the music may be played, and where it comes from.
run, run_system, run_seed
    The results that the estimate is taken from, by the name of their folder, and what they call it.
sample_id
    The row of an editing test's table of samples (`pipelines.study_tables`) that the estimate is.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from music_evals.csv_files import csv_rows, csv_text
from music_evals.errors import InvalidInputError, NoDataError, PairCountError, UnreadableFileError
from music_evals.files import decode_text, reading, write_atomically
from music_evals.pipelines.study_tables import located_at

__all__ = ["COLUMNS", "REFERENCE", "StudyPair", "check_pairs", "pairs_text", "read_pairs", "write_pairs"]

REFERENCE = "reference"
"""System of the hidden reference."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StudyPair:
    """One row of `pairs.csv`; the module says what each column is.

    Texts have no control characters, and the five that are required are not empty. Seconds are not negative, a start
    has an end behind it, loudness is in LUFS and the gain in dB; None where something is not known.

    Raises `InvalidInputError`: text, a number or a span that is not as said.
    """

    item_id: str
    group: str
    system: str
    task: str = ""
    reference: str
    estimate: str
    reference_sha256: str = ""
    estimate_sha256: str = ""
    seconds: float | None = None
    start_sec: float | None = None
    end_sec: float | None = None
    reference_lufs: float | None = None
    estimate_lufs: float | None = None
    gain_db: float | None = None
    same_as: str = ""
    licence: str = ""
    source: str = ""
    run: str = ""
    run_system: str = ""
    run_seed: int | None = None
    sample_id: str = ""

    def __post_init__(self) -> None:
        for name in COLUMNS:
            value = getattr(self, name)
            if isinstance(value, str):
                if name in _NEEDED and not value.strip():
                    raise InvalidInputError(f"{name} is empty")
                wrong = next((letter for letter in value if unicodedata.category(letter) in {"Cc", "Cs"}), None)
                if wrong is not None:
                    raise InvalidInputError(f"{name} holds the control character {wrong!r}: {value!r}; take it out")
            elif value is not None and not math.isfinite(value):
                raise InvalidInputError(f"{name} must be a finite number, got {value}")
        for name in ("seconds", "start_sec"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InvalidInputError(f"{name} must not be negative, got {value}")
        if (self.start_sec is None) != (self.end_sec is None):
            raise InvalidInputError("start_sec and end_sec go together; give both or neither")
        latest = math.inf if self.seconds is None else self.seconds
        if self.start_sec is not None and self.end_sec is not None and not self.start_sec < self.end_sec <= latest:
            raise InvalidInputError(
                f"expected start_sec < end_sec <= seconds, got {self.start_sec}, {self.end_sec} and {self.seconds}"
            )


COLUMNS = tuple(field.name for field in dataclasses.fields(StudyPair))
"""Columns of `pairs.csv`, in their order."""

_TYPES = {field.name: str(field.type).removesuffix(" | None") for field in dataclasses.fields(StudyPair)}
_NEEDED = ("item_id", "group", "system", "reference", "estimate")


def check_pairs(pairs: Sequence[StudyPair]) -> None:
    """Check what holds between the rows of a table.

    Raises `NoDataError`: no pairs; `PairCountError`: an item and system twice; the message names the row;
    `InvalidInputError`: an item with two groups, or two originals; or a `same_as` that names no earlier row of its
    item.
    """
    if not pairs:
        raise NoDataError("no pairs; a study needs one at least")
    first: dict[str, StudyPair] = {}
    keys: set[tuple[str, str]] = set()
    for number, pair in enumerate(pairs, start=1):
        where = f"row {number}"
        if (pair.item_id, pair.system) in keys:
            raise PairCountError(f"{where}: item {pair.item_id!r} of system {pair.system!r} occurs twice; keep one")
        if pair.same_as and (pair.item_id, pair.same_as) not in keys:
            raise InvalidInputError(f"{where}: same_as names {pair.same_as!r}, which is no earlier row of this item")
        keys.add((pair.item_id, pair.system))
        known = first.setdefault(pair.item_id, pair)
        for name in ("group", "reference"):
            if getattr(pair, name) != getattr(known, name):
                raise InvalidInputError(
                    f"{where}: item {pair.item_id!r} has the {name} {getattr(pair, name)!r}, and "
                    f"{getattr(known, name)!r} in a row above; an item has one"
                )


def pairs_text(pairs: Sequence[StudyPair]) -> str:
    """Return the text of `pairs.csv`, checked as `check_pairs` does; numbers read back to the same number."""
    check_pairs(pairs)
    return csv_text(COLUMNS, ([getattr(pair, name) for name in COLUMNS] for pair in pairs))


def write_pairs(path: str | os.PathLike[str], pairs: Sequence[StudyPair]) -> Path:
    """Write `pairs.csv`, checked as `check_pairs` does, whole or not at all, and return its path.

    Its folder must be there; `OutputError` where it cannot be written.
    """
    return write_atomically(path, pairs_text(pairs).encode())


def read_pairs(path: str | os.PathLike[str], *, check_files: bool = True) -> tuple[StudyPair, ...]:
    """Read a table of pairs, CSV in UTF-8: ours, or one with `reference` and `estimate` alone.

    Where columns are missing, an item is named by the path of its reference (without its suffix), a group by that of
    the reference, and a system by the file's stem; `id` stands for `item_id`, as in manifests of edits. Other columns
    are left to whoever wrote them. `check_files` looks at the files: they are there, and have the hashes of the table
    where it has some.

    Raises `NoDataError` without such a file, or rows; `UnreadableFileError` for no CSV in UTF-8, or a file of a row
    that is missing, or is another one than its hash says; `InvalidInputError` where a column is missing, or a cell is
    wrong (the message names the row); `PairCountError` for an item and system twice.
    """
    place = Path(path)
    pairs = []
    for number, row in enumerate(_rows(place), start=1):
        with located_at(f"{place}, row {number}"):
            pairs.append(_pair(row, place.stem))
    with located_at(place):
        check_pairs(pairs)
    hashes: dict[str, str] = {}
    for number, pair in enumerate(pairs if check_files else (), start=1):
        for side in ("reference", "estimate"):
            name, expected = getattr(pair, side), getattr(pair, f"{side}_sha256")
            where = f"{place}, row {number}: the {side} {name}"
            if name not in hashes:
                hashes[name] = _hash(place.parent / name, where)
            if expected and hashes[name] != expected:
                raise UnreadableFileError(f"{where} is another file than the table says; build the study again")
    return tuple(pairs)


def _rows(path: Path) -> Sequence[Mapping[str, str | None]]:
    with reading(path):
        content = path.read_bytes()
    rows = csv_rows(decode_text(content, path), path)
    there = [name for name in rows[0] if name is not None] if rows else []
    missing = [name for name in ("reference", "estimate") if name not in there and (rows or not content.strip())]
    if missing:
        raise InvalidInputError(f"{path}: no column {' and no column '.join(missing)}; it has {', '.join(there)}")
    return rows


def _pair(row: Mapping[str, str | None], stem: str) -> StudyPair:
    if None in row or None in row.values():
        raise InvalidInputError("more or fewer cells than the table has columns")
    cells = {name: cell or "" for name, cell in row.items()}
    values = {name: _value(name, cells[name]) for name in COLUMNS if cells.get(name)}
    reference = cells["reference"]
    item = str(Path(reference).with_suffix("")) if Path(reference).name else reference
    known = {"item_id": item, "group": reference, "system": stem, "reference": reference, "estimate": ""} | values
    if cells.get("id"):
        known["item_id"] = cells["id"]
    return StudyPair(**known)  # type: ignore[arg-type]  # `_value` made each what its column says


def _value(name: str, cell: str) -> str | float:
    if _TYPES[name] == "str":
        return cell
    try:
        return int(cell) if _TYPES[name] == "int" else float(cell)
    except ValueError:
        kind = "a whole number" if _TYPES[name] == "int" else "a number"
        raise InvalidInputError(f"{name} must be {kind}, got {cell!r}") from None


def _hash(path: Path, where: str) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:  # ValueError: a null byte in its name
        raise UnreadableFileError(
            f"{where} cannot be read ({getattr(error, 'strerror', None) or error}); check the path"
        ) from error
