"""The files that a benchmark of `score_results` leaves in its folder, and what it returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from music_evals.benchmark.outputs import REPORT, RESULTS, TABLE, write_files
from music_evals.benchmark.records import dump_json, remove_file
from music_evals.benchmark.score_results import Found
from music_evals.benchmark.score_tables import cautions, markdown_report

__all__ = ["Outcome", "remove_results", "write_outcome"]


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What a benchmark found.

    Attributes
    ----------
    results
        The content of results.json.
    found
        The records.
    files
        What was written, by kind: ``records``, ``results``, ``table``, ``report``.
    notes
        What a reader of the results should know.

    """

    results: dict[str, Any]
    found: Found
    files: dict[str, Path]
    notes: list[str]


def remove_results(out: Path) -> None:
    """Remove what is made from records, should this run end before its own are written: they tell of another run.

    Raises
    ------
    OutputError
        They cannot be removed.

    """
    for name in (RESULTS, TABLE, REPORT):
        remove_file(out / name)


def write_outcome(out: Path, results: dict[str, Any], found: Found, page: Callable[[], str] | None) -> Outcome:
    """Write results.json, table.md and, where there is a page, report.html.

    Raises
    ------
    OutputError
        The folder cannot be written to.

    """
    contents = {
        "results": (RESULTS, dump_json(results, indent=2) + "\n"),
        "table": (TABLE, markdown_report(results) + "\n"),
    }
    if page is not None:
        contents["report"] = (REPORT, page())
    return Outcome(results, found, write_files(out, contents), cautions(results))
