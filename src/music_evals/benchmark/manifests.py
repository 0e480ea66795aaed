"""What users hand over: manifests (CSV or JSON lines), folders of files, and names of systems; checked before use.

Each may lie on this machine or at a URL; see `locations`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from music_evals import files
from music_evals.csv_files import csv_rows
from music_evals.errors import InvalidInputError, NoDataError, PairCountError
from music_evals.files import item_name
from music_evals.locations import HASH_DIGITS, Location, exists, files_below, hash_file, location, read_bytes

__all__ = [
    "HASH_DIGITS",
    "check_systems",
    "files_of",
    "hash_file",
    "json_lines",
    "manifest_rows",
    "named_path",
    "read_text",
    "shown_types",
    "some",
]

SHOWN = 5


def read_text(path: Location) -> str:
    """Return the text of a UTF-8 file."""
    with files.reading(path):
        content = read_bytes(path)
    return files.decode_text(content, path).replace("\r\n", "\n").replace("\r", "\n")


def json_lines(path: Location) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of each line that is not empty."""
    yield from files.json_lines(read_text(path), path)


def manifest_rows(path: Location) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a manifest: CSV by its suffix, JSON lines otherwise."""
    if path.suffix.lower() == ".csv":
        return csv_rows(read_text(path), path)
    return [row for _, row in json_lines(path)]


def shown_types(row: Mapping[str, Any]) -> str:
    """Return the columns of a row and the types of what they hold, for a message."""
    return "{" + ", ".join(f"{key}: {type(value).__name__}" for key, value in row.items()) + "}"


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def named_path(text: str | os.PathLike[str], setting: str) -> tuple[str, Location]:
    """Return system and place of ``NAME=PATH`` or ``PATH``; what exists, a `Path` or a URL is never cut."""
    given = os.fspath(text)
    name, equals, path = given.partition("=")
    if not equals or "://" in name or isinstance(text, os.PathLike) or exists(given):
        place = location(text)
        whole = place.resolve()
        name, path = whole.stem if whole.is_file() else whole.name, given
    else:
        place = location(path)
    if not name.strip() or not path:
        raise InvalidInputError(f"`{setting}` takes PATH or NAME=PATH, got {given!r}")
    return name, place


def files_of(path: Location, suffixes: Collection[str], lack: str) -> dict[str, tuple[Location, str]]:
    """Return item -> (place, name) of one file, or of all files of a kind in a folder, hidden ones apart."""
    if path.is_file():
        return {item_name(path.stem): (path, path.name)}
    if not path.is_dir():
        raise NoDataError(f"{path}: no such file or folder; check the path")
    files_by_item: dict[str, tuple[Location, str]] = {}
    for name, file in files_below(path):
        if file.suffix.lower() not in suffixes or name.name[0] == ".":
            continue
        item = item_name(name.with_suffix(""))
        if item in files_by_item:
            other = files_by_item[item][1]
            same = item_name(other) == item_name(name)
            how = "differ in Unicode normalisation (NFC, NFD) alone" if same else "differ in their suffix alone"
            raise PairCountError(f"{path}: {other} and {name} {how} and are both {item!r}; keep one")
        files_by_item[item] = file, str(name)
    if not files_by_item:
        raise NoDataError(f"{path} holds {lack}")
    return files_by_item


def check_systems(names: Sequence[str], controls: Sequence[str], setting: str) -> None:
    """Check the names of systems."""
    wrong = [name for name, count in Counter(names).items() if count > 1 or not name.strip() or name in controls]
    if wrong:
        taken = f", none of them {' or '.join(controls)}" if controls else ""
        raise InvalidInputError(
            f"systems need different names{taken}; got {', '.join(map(repr, wrong))}. Name each, as in `{setting}` "
            "NAME=PATH"
        )
