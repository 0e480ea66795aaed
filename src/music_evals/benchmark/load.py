"""Results that were written before, read back: made again from their records, and held to them."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_evals.benchmark.records import Records, read_records, reading_rows, records_at
from music_evals.benchmark.results import build_results
from music_evals.benchmark.run import RECORDS, RESULTS, VALIDATION, load_task, task_places
from music_evals.benchmark.score_table import ScoreTable
from music_evals.benchmark.scores import read_scores
from music_evals.deprecation import warn_renamed
from music_evals.errors import ChangedResultsError, NoDataError, UnknownNameError, UnreadableFileError

if TYPE_CHECKING:
    from music_evals.benchmark.task import Task

__all__ = ["LoadedResults", "find_task", "load_results"]

PRESENTATION = frozenset({"wording", "scales", "published", "metrics"})
"""Parts of the results that say how numbers are reported; they are taken from this version and not compared."""

SAME = 1e-9
"""Numbers that differ by less, relatively, are equal: kinds of processors differ in the last bits."""

Row = Mapping[str, Any]

MOST_RESAMPLES = 1_000_000

UNTOLD = "preservation"
"""Task of records without one: they are older than the other tasks."""


@dataclasses.dataclass(frozen=True, eq=False)
class LoadedResults:
    """The results of a run, as its records give them."""

    folder: Path  # where the files of the run lie
    task: str  # name of its task
    results: dict[str, Any]  # what results.json holds, made from the records
    scores: ScoreTable  # the records in the form that results are made from
    records: Records  # the rows themselves

    @property
    def found(self) -> ScoreTable:
        """The old name of ``scores``."""
        warn_renamed("LoadedResults.found", "scores")
        return self.scores


def load_results(folder: str | os.PathLike[str]) -> LoadedResults:
    """Read the results of a run, and check every number of results.json against its records.

    Parameters
    ----------
    folder
        Of the run, or its results.json.

    Returns
    -------
    LoadedResults
        Made from the records alone, with the intervals that results.json asks for.

    Raises
    ------
    NoDataError
        One of the files is not there.
    UnreadableFileError
        results.json holds no results.
    CorruptRecordsError
        The records are damaged, or hold rows that this version does not know.
    ChangedResultsError
        A value of results.json is not what the records give; the message names it.
    UnknownNameError
        Records of a task that is not known, or has no such results.
    """
    path = Path(folder)
    if path.name == RESULTS and not path.is_dir():
        path = path.parent
    _check_there(path, RESULTS, (path / RESULTS).is_file())
    _check_there(path, RECORDS, records_at(path / RECORDS) is not None)
    try:
        stored = json.loads((path / RESULTS).read_bytes())
    except (ValueError, RecursionError) as error:
        raise UnreadableFileError(
            f"{path / RESULTS} is no JSON: {error}; run again in this folder, which makes it from {RECORDS}"
        ) from error
    if not isinstance(stored, dict) or not {"dataset", "systems", "intervals"} <= set(stored):
        raise UnreadableFileError(f"{path / RESULTS} holds no results of `music-evals`; give the folder of a run")
    if stored.get("best_baseline_chosen_on"):
        _check_there(path, VALIDATION, records_at(path / VALIDATION) is not None)
    records = read_records(records_at(path / RECORDS) or path)
    task = find_task(str(records[0].get("task", UNTOLD)))
    scores = read_scores(records, task)
    chosen_on = records_at(path / VALIDATION)
    validation = None if chosen_on is None else read_scores(read_records(chosen_on), task)
    with reading_rows():
        built = build_results(scores, task, validation, **_intervals(stored, path / RESULTS))
    built |= {key: stored[key] for key in task.extra_keys if key in stored}
    # what this version adds, and whole parts that it does not know, are no differences
    for key in (key for key in stored if key in built and key not in PRESENTATION):
        for difference in _compare(stored[key], built[key], key):
            raise ChangedResultsError(
                f"{path / RESULTS} was changed, or made by another version: {difference}; run again in "
                "this folder, or in another one where it is refused"
            )
    return LoadedResults(path, task.name, built, scores, records)


def _check_there(folder: Path, name: str, is_there: bool) -> None:  # noqa: FBT001
    if not is_there:
        raise NoDataError(
            f"{folder / name} is not there; give the folder of a run with all its files: results are checked against "
            f"their records. Where only {RESULTS} is missing, the run makes it again"
        )


def find_task(name: str) -> Task:
    """Return a task by its name in the records; one whose results are made of the records alone."""
    kind = "task with results"
    task = load_task(name, kind)
    if not task.scales:
        raise UnknownNameError(kind, name, [other for other in task_places() if load_task(other).scales])
    return task


def _intervals(stored: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return how intervals were made: the one thing that the results say and the records do not."""
    reported = stored["intervals"]
    names = ("confidence", "n_resamples", "seed")
    values: list[Any] = [reported.get(name) if isinstance(reported, dict) else None for name in names]
    whole = all(isinstance(number, int) and not isinstance(number, bool) for number in values[1:])
    if (
        not (whole and isinstance(values[0], float) and 0 < values[0] < 1)
        or not 1 <= values[1] <= MOST_RESAMPLES
        or values[2] < 0
    ):
        raise UnreadableFileError(
            f"{path} does not say how its intervals were made, got {reported!r}; run again in this folder"
        )
    return dict(zip(names, values, strict=True))


def _compare(stored: Any, built: Any, place: str) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(built, dict):
        for key, value in stored.items():
            where = f"{place}.{key}"
            if key in built:
                yield from _compare(value, built[key], where)
            else:
                yield f"{where} is {_short(value)} in {RESULTS} and not in {RECORDS}"
    elif isinstance(stored, list) and isinstance(built, list) and len(stored) == len(built):
        for number, (value, other) in enumerate(zip(stored, built, strict=True)):
            yield from _compare(value, other, f"{place}.{number}")
    else:
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (stored, built))
        equal = math.isclose(stored, built, rel_tol=SAME, abs_tol=1e-12) if numbers else stored == built
        if not (equal and (numbers or type(stored) is type(built))):
            yield f"{place} is {_short(stored)} in {RESULTS} and {_short(built)} in {RECORDS}"


def _short(value: Any) -> str:
    """Return a value for a message: a number or text as it is, of a collection its size."""
    if isinstance(value, Mapping):
        return f"an object of {len(value)}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"a list of {len(value)}"
    return repr(value) if len(repr(value)) < 60 else f"{repr(value)[:60]}..."
