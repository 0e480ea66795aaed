"""Tables as CSV: the one writer, whose cells no spreadsheet computes, and the one reader, which names a broken line."""

from __future__ import annotations

import csv
import io
import math
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from music_evals.errors import UnreadableFileError

# How a cell begins that a spreadsheet computes (owasp.org/www-community/attacks/CSV_Injection), in some in full width.
# Apostrophes before it are of a cell that was guarded already: so `csv_rows` gives back what `csv_text` was given.
_FORMULA: Final = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")  # noqa: RUF001
_NUMBER: Final = r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?"
_PLAIN: Final = re.compile(rf"{_NUMBER}(\.\.{_NUMBER}( \*)?)?")  # or an interval; a spreadsheet takes them as they are


def csv_text(columns: Iterable[str], rows: Iterable[Mapping[str, Any] | Sequence[Any]], *, line_end: str = "\n") -> str:
    """Return a table as CSV."""
    names, lines = list(columns), list[str]()
    writer = csv.writer(SimpleNamespace(write=lines.append))  # under its own line end it quotes both, \r and \n
    for row in (names, *rows):
        writer.writerow(map(_cell, map(row.get, names) if isinstance(row, Mapping) else row))
    return "".join(line.removesuffix("\r\n") + line_end for line in lines)


def csv_rows(text: str, place: object) -> list[dict[str, Any]]:
    """Return the rows of a table by column, without the apostrophes of `csv_text`.

    As of `csv.DictReader`, cells that are missing are None, and those too many stand under the key None.
    """
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)

    def bare(cell: Any) -> Any:
        return cell[1:] if isinstance(cell, str) and cell.startswith("'") and _FORMULA.match(cell) else cell

    try:
        return [{bare(name): bare(cell) for name, cell in row.items()} for row in reader]
    except csv.Error as error:
        where = f"{place}, line {reader.reader.line_num}"
        raise UnreadableFileError(f"{where} is no CSV ({error}); save the table as CSV anew") from error


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, numbers.Number):
        return value
    text = str(value)
    return f"'{text}" if _FORMULA.match(text) and not _PLAIN.fullmatch(text) else text
