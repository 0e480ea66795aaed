"""The files that a benchmark of `score_results` leaves in its folder, and what it returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from music_evals.benchmark.outputs import REPORT, RESULTS, TABLE, write_files
from music_evals.benchmark.records import dump_json, remove_file
from music_evals.benchmark.results import Found
from music_evals.benchmark.tables import cautions, markdown_report

__all__ = ["NOTHING_EXTRA", "Extra", "Outcome", "remove_results", "write_outcome"]


@dataclasses.dataclass(frozen=True)
class Extra:
    """What a benchmark tells beside its scores.

    Parameters
    ----------
    results
        Further keys of results.json.
    markdown
        A section at the end of table.md.
    html
        Sections of report.html.
    notes
        What a reader should know, beside what the scores tell.

    """

    results: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    markdown: str = ""
    html: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


NOTHING_EXTRA: Final = Extra()


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


def write_outcome(
    out: Path,
    results: dict[str, Any],
    found: Found,
    page: Callable[[], str] | None,
    *,
    extra: Extra = NOTHING_EXTRA,
) -> Outcome:
    """Write results.json, table.md and, where there is a page, report.html, each of them once.

    Raises
    ------
    OutputError
        The folder cannot be written to.

    """
    results = {**results, **extra.results}
    table = "\n\n".join(filter(None, (markdown_report(results), extra.markdown)))
    contents = {"results": (RESULTS, dump_json(results, indent=2) + "\n"), "table": (TABLE, table + "\n")}
    if page is not None:
        contents["report"] = (REPORT, page())
    return Outcome(results, found, write_files(out, contents), [*cautions(results), *extra.notes])
