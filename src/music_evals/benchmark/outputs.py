"""The files that a run leaves in its folder, and what it returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.benchmark.records import dump_json, remove_file
from music_evals.files import write_atomically

__all__ = ["RECORDS", "REPORT", "RESULTS", "TABLE", "Outcome", "remove_results", "write_outcome"]

RECORDS, RESULTS, TABLE, REPORT = "records.jsonl", "results.json", "table.md", "report.html"


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What a run found.

    Attributes
    ----------
    results
        The content of results.json.
    found
        The records, as the task reads them.
    files
        What was written, by kind: ``records``, ``results``, ``table``, ``report``, and what else the task writes.
    notes
        What a reader of the results should know.

    """

    results: dict[str, Any]
    found: Any
    files: dict[str, Path]
    notes: list[str]


def remove_results(out: Path, *others: str) -> None:
    """Remove what is made from records, should this run end before its own are written: it tells of another run.

    Raises
    ------
    OutputError
        It cannot be removed.

    """
    for name in (RESULTS, TABLE, REPORT, *others):
        remove_file(out / name)


def write_outcome(
    out: Path,
    results: dict[str, Any],
    found: Any,
    *,
    table: str,
    page: Callable[[], str] | None = None,
    others: Mapping[str, tuple[str, str]] | None = None,
    notes: Sequence[str] = (),
) -> Outcome:
    """Write the files of a run, each whole or not at all.

    Parameters
    ----------
    out
        The folder.
    results, found, notes
        See `Outcome`.
    table
        The tables, as Markdown.
    page
        Makes report.html; None writes none.
    others
        Further texts: kind -> file name and content.

    Raises
    ------
    OutputError
        The folder cannot be written to.

    """
    contents = {"results": (RESULTS, dump_json(results, indent=2) + "\n"), "table": (TABLE, table + "\n")}
    contents |= others or {}
    if page is not None:
        contents["report"] = (REPORT, page())
    for name, content in contents.values():
        write_atomically(out / name, content.encode())
    files = {"records": out / RECORDS, **{kind: out / name for kind, (name, _) in contents.items()}}
    return Outcome(results, found, files, list(notes))
