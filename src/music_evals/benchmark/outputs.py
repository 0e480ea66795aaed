"""The files that a run leaves in its folder, and what it returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from music_evals.benchmark.records import dump_json, records_at, remove_file
from music_evals.deprecation import warn_renamed
from music_evals.files import write_atomically

__all__ = [
    "NO_EXTRA_OUTPUTS",
    "RECORDS",
    "REPORT",
    "RESULTS",
    "TABLE",
    "VALIDATION",
    "ExtraOutputs",
    "Outcome",
    "remove_results",
    "write_outcome",
]

RECORDS, RESULTS, TABLE, REPORT = "records", "results.json", "table.md", "report.html"
VALIDATION = "validation_records"
"""Records of the baselines on what the best of them are chosen on."""


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What a run gives back.

    Attributes
    ----------
    results
        The content of results.json.
    scores
        The records, as the task reads them.
    files
        What was written, by kind: ``records``, ``results``, ``table``, ``report``, and what else the task writes.
    notes
        What a reader of the results should know.

    """

    results: dict[str, Any]
    scores: Any
    files: dict[str, Path]
    notes: list[str]

    @property
    def found(self) -> Any:
        """The old name of ``scores``."""
        warn_renamed("Outcome.found", "scores")
        return self.scores


def remove_results(out: Path, *others: str) -> None:
    """Remove what is made from records, should this run end before its own are written: it tells of another run."""
    for name in (RESULTS, TABLE, REPORT, *others):
        remove_file(out / name)


class ExtraOutputs(NamedTuple):
    """What a task shows and writes besides the scores."""

    results: Mapping[str, Any] = MappingProxyType({})
    """Further keys of results.json."""
    markdown: str = ""
    """A section at the end of table.md."""
    notes: Sequence[str] = ()
    files: Mapping[str, tuple[str, str]] = MappingProxyType({})
    """Kind -> file name and content."""


NO_EXTRA_OUTPUTS: Final = ExtraOutputs()


def write_outcome(
    out: Path,
    results: dict[str, Any],
    scores: Any,
    *,
    table: str,
    page: Callable[[], str] | None = None,
    others: Mapping[str, tuple[str, str]] | None = None,
    notes: Sequence[str] = (),
) -> Outcome:
    """Write the files of a run, each whole or not at all."""
    contents = {"results": (RESULTS, dump_json(results, indent=2) + "\n"), "table": (TABLE, table + "\n")}
    contents |= others or {}
    if page is not None:
        contents["report"] = (REPORT, page())
    for name, content in contents.values():
        write_atomically(out / name, content.encode())
    files = {"records": records_at(out / RECORDS) or out / RECORDS}
    files |= {kind: out / name for kind, (name, _) in contents.items()}
    return Outcome(results, scores, files, list(notes))
