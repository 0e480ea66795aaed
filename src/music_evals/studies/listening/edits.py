"""Runs of the verb ``edit`` as the sounds of a listening test: what systems made of the same sources, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.benchmark.records import read_records, records_at
from music_evals.benchmark.tasks.edits.task import OLD_RECORDS, RECORDS
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.studies.pairs import StudyPair, check_pairs

__all__ = ["pairs_of_edits"]

_FORMS = ("task", "source_prompt", "target_prompt", "before", "after", "bars", "confidence")  # how it is worded is free
_DECIDES: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "source": lambda row: row["content"],
    "instruction": lambda row: [row["instruction"][name] for name in _FORMS],
}


def pairs_of_edits(runs: Sequence[str | os.PathLike[str]]) -> tuple[StudyPair, ...]:
    """Return the rows of a listening test: the edits that all runs made of the same sources by the same instructions.

    The runs are folders that ``music-evals edit`` wrote, recordings or scores that were rendered. A system is called by
    its name, or, where two runs have the same one, by the name of the folder. Rows come item by item, in the order of
    the first run, with absolute paths; what failed in one run is in none.

    Raises `NoDataError`: a folder without edits, or no item that all runs have; `InvalidInputError`: scores that were
    not rendered, runs of one name, or an item whose source or instruction differs between runs.
    """
    made = [(Path(run), _edits(Path(run))) for run in runs]
    systems = [next(iter(edits.values()))["system"] for _, edits in made]
    names = [
        system if systems.count(system) == 1 else folder.resolve().name
        for system, (folder, _) in zip(systems, made, strict=True)
    ]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(f"two runs would be called {twice[0]}; rename one of their folders")
    shared = [item for item in made[0][1] if all(item in edits for _, edits in made)]
    if not shared:
        raise NoDataError("the runs have no item in common; let the systems edit the same sources with the same ids")
    pairs = []
    for item in shared:
        first_folder, first = made[0][0], made[0][1][item]
        for name, (folder, edits) in zip(names, made, strict=True):
            row = edits[item]
            differs = [name for name, of in _DECIDES.items() if of(row) != of(first)]
            if differs:
                raise InvalidInputError(
                    f"{folder}: {item} has another {differs[0]} than in {first_folder}; a comparison needs the same"
                )
            pairs.append(
                StudyPair(
                    item_id=item, group=row["group"], system=name, task=row["instruction"]["task"],
                    reference=str((first_folder / first["files"]["reference"]).resolve()),
                    estimate=str((folder / row["files"]["estimate"]).resolve()),
                    estimate_sha256=row["files"]["sha256"], run=folder.resolve().name, run_system=row["system"],
                )
            )  # fmt: skip
    check_pairs(pairs)
    return tuple(pairs)


def _edits(folder: Path) -> dict[str, dict[str, Any]]:
    """Return item -> the last record of what was edited without an error."""
    place = records_at(folder / RECORDS) or records_at(folder / OLD_RECORDS)
    if place is None:
        raise NoDataError(f"{folder} holds no {RECORDS}; name a folder that a run of edits wrote")
    last = {row["item"]: row for row in read_records(place).of("edit")}
    edits = {item: row for item, row in last.items() if "error" not in row}
    if not edits:
        raise NoDataError(f"{folder}: no edit succeeded; run it again")
    written = [item for item, row in edits.items() if Path(row["files"]["estimate"]).suffix != ".flac"]
    if written:
        raise InvalidInputError(f"{folder}: {written[0]} is a score, which is not heard; have it rendered (`render`)")
    return edits
