"""The leaderboard from end to end: results of runs into a board, a board into tables.

`add_results` appends what a run found to a board; `build_leaderboard` makes the tables. A board is a folder of Parquet
files that are never changed (`leaderboard_board`), so that it can be a dataset repository on the Hub.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.benchmark.records import dump_json
from music_evals.errors import OutputError
from music_evals.files import write_atomically
from music_evals.leaderboard.board import add_part, read_board
from music_evals.leaderboard.details import details_of_run
from music_evals.leaderboard.export import csv_table, html_page, latex_table
from music_evals.leaderboard.form import has_form
from music_evals.leaderboard.ranks import Progress
from music_evals.leaderboard.records import ResultRecord, read_run, records_of_run
from music_evals.leaderboard.tables import make_leaderboard, records_digest

__all__ = [
    "TABLES",
    "Added",
    "add_results",
    "build_leaderboard",
    "keep_tables",
    "load_leaderboard",
    "write_leaderboard",
]

TABLES = "leaderboard.json"
"""All tables, beside the data of a board and in the folder that `write_leaderboard` writes to."""

MAX_TABLES_BYTES = 64 * 2**20
"""Of a file of tables that is read: those of 16 systems and 141 records take 130 kB."""


@dataclasses.dataclass(frozen=True)
class Added:
    """What came of adding a run.

    Attributes
    ----------
    new
        Records that the board did not have.
    n_known
        Records that it had.

    """

    new: tuple[ResultRecord, ...]
    n_known: int


def add_results(
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
        Also add what can be shown of single items; records of lyrics tell lines of them.
    media
        Folders with the recordings that were compared, which are added with the details.

    Raises
    ------
    NoDataError, UnreadableFileError, CorruptRecordsError, UnknownNameError, InvalidInputError
        Results that cannot be read; see `leaderboard_records`.
    CorruptRecordsError, FileTooLargeError
        A board that cannot be read, or a recording that is too large.
    OutputError
        The board cannot be written to.

    """
    run = read_run(results)
    records = records_of_run(run, source=source, date=date, submitter=submitter, systems=systems)
    shown = details_of_run(run, records, media) if details else []
    new = add_part(board, records, shown)
    return Added(new, len(records) - len(new))


def build_leaderboard(board: str | os.PathLike[str], *, progress: Progress | None = None) -> dict[str, Any]:
    """Return all tables of a board; see `leaderboard_tables.make_leaderboard`.

    Raises
    ------
    NoDataError, CorruptRecordsError, FileTooLargeError
        See `leaderboard_board.read_board`.

    """
    return make_leaderboard(read_board(board), progress=progress)


def load_leaderboard(
    board: str | os.PathLike[str], records: Sequence[ResultRecord], *, progress: Progress | None = None
) -> dict[str, Any]:
    """Return the tables that lie beside the data of a board, or make them where there are none of these records.

    The file is used where it says that it is of these records, in this order, and has the form of tables
    (`leaderboard_form.has_form`). Ranks and p-values in it are taken as they are: for a folder of somebody else, use
    `build_leaderboard`, which reads records alone.

    Parameters
    ----------
    board
        Its folder, which you or somebody you trust made.
    records
        From `read_board`.
    progress
        Called after each test.

    """
    content = _kept(Path(board) / TABLES)
    if isinstance(content, dict) and content.get("records") == records_digest(records) and has_form(content, records):
        return content
    return make_leaderboard(records, progress=progress)


def _kept(path: Path) -> object:
    try:
        return json.loads(path.read_bytes()) if path.stat().st_size <= MAX_TABLES_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None


def keep_tables(leaderboard: Mapping[str, Any], board: str | os.PathLike[str]) -> Path:
    """Write all tables beside the data of a board, where `load_leaderboard` finds them; return the file.

    Raises
    ------
    OutputError
        The folder cannot be written to.

    """
    return write_atomically(Path(board) / TABLES, f"{dump_json(leaderboard)}\n".encode("utf-8", "replace"))


def write_leaderboard(leaderboard: Mapping[str, Any], out: str | os.PathLike[str]) -> dict[str, Path]:
    """Write leaderboard.json, index.html and each table as CSV and LaTeX; return the files by kind or name.

    Raises
    ------
    OutputError
        The folder cannot be made or written to.

    """
    folder = Path(out)
    try:
        (folder / "tables").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"cannot make {folder}: {error.strerror or error}; choose another folder with --out"
        raise OutputError(msg) from error
    contents = {
        "page": ("index.html", html_page(leaderboard)),
        "tables": (TABLES, dump_json(leaderboard, indent=1) + "\n"),
    }
    for table in leaderboard["tables"]:
        contents[f"{table['id']}, CSV"] = (f"tables/{table['id']}.csv", csv_table(table))
        contents[f"{table['id']}, LaTeX"] = (f"tables/{table['id']}.tex", latex_table(table))
    for name, text in contents.values():
        write_atomically(folder / name, text.encode("utf-8", "replace"))
    return {kind: folder / name for kind, (name, _) in contents.items()}
