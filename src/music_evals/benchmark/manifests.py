"""Lists of files that strangers write: CSV with a head line, or JSON lines. Read whole and checked before use."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.errors import NoDataError, UnreadableFileError

__all__ = ["json_lines", "manifest_rows", "read_text", "shown_types", "some"]

SHOWN = 5


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file.

    Raises
    ------
    NoDataError
        No such file.
    UnreadableFileError
        It cannot be read, or is no UTF-8 text.

    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        msg = f"{path}: no such file; check the path"
        raise NoDataError(msg) from None
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read ({error})"
        raise UnreadableFileError(msg) from error


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of each line that is not empty.

    Raises
    ------
    NoDataError, UnreadableFileError
        As `read_text`; also a line that is no JSON object.

    """
    # a text may hold other characters that str.splitlines takes for ends of lines
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            json.dumps(row, ensure_ascii=False).encode()  # half a surrogate pair is no text, and fits no record
        except (ValueError, RecursionError) as error:  # nested thousands deep is JSON that Python cannot read
            msg = f"{path}, line {number} is not JSON ({error}); expected one object a line"
            raise UnreadableFileError(msg) from error
        if not isinstance(row, dict):
            msg = f"{path}, line {number} holds a {type(row).__name__}; expected one object a line"
            raise UnreadableFileError(msg)
        yield number, row


def manifest_rows(path: Path) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a manifest: CSV by its suffix, JSON lines otherwise.

    Raises
    ------
    NoDataError, UnreadableFileError
        As `json_lines`.

    """
    if path.suffix.lower() == ".csv":
        return list(csv.DictReader(io.StringIO(read_text(path), newline="")))
    return [row for _, row in json_lines(path)]


def shown_types(row: Mapping[str, Any]) -> str:
    """Return the columns of a row and the types of what they hold, for a message."""
    return "{" + ", ".join(f"{key}: {type(value).__name__}" for key, value in row.items()) + "}"


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
