"""The discrepancy study from end to end: settings in, result files out.

songs -> similarities of both groups of annotators -> records.jsonl -> results.json, table.md, cells.csv, report.html
and, where it is wanted, discrepancy.svg in the style of figure 3 of MuChin (Wang et al., IJCAI 2024).

The records hold the similarity of each song and dimension, and what decides it: songs, dimensions, level, aggregation,
encoder. Groupings, intervals and tests are made from them, and may be others in the next run of the same folder.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import GROUPS
from music_evals.annotations.groupings import GROUPINGS
from music_evals.benchmark.canvas import check_backend
from music_evals.benchmark.cells import plain
from music_evals.benchmark.outputs import RECORDS, REPORT, RESULTS, TABLE, check_options, write_files
from music_evals.benchmark.records import RecordFile, dump_json, reading_rows, remove_file
from music_evals.benchmark.songs.discrepancy_plots import plot_study
from music_evals.benchmark.songs.discrepancy_tables import markdown_study, render_study, text_study
from music_evals.benchmark.songs.songs import SongSet, read_songs
from music_evals.benchmark.versions import kernel_rows, package_versions
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.lyrics.embeddings import CHAR_NGRAMS, DEFAULT_ENCODER, load_encoder
from music_evals.pipelines.discrepancy import (
    ALL,
    DEFAULT_BY,
    FACING,
    Cell,
    DiscrepancyStudy,
    check_level,
    facing_similarities,
    study_discrepancy,
)
from music_evals.protocols import TextEncoder

__all__ = ["CELLS", "PLOT", "Outcome", "Settings", "markdown_study", "run_discrepancy", "text_study"]

TASK: Final = "discrepancy"

CELLS: Final = "cells.csv"
PLOT: Final = "discrepancy.svg"

Floats = npt.NDArray[np.float64]
Told = Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]
"""Song -> group of annotators -> dimension -> tags."""

FEW_SONGS = 10
"""Groups with fewer songs get a remark."""

PACKAGES = ("music_evals", "numpy", "scipy", "sentence-transformers", "transformers", "torch")

NUMBERS: Mapping[str, tuple[str, int]] = {
    "limit": ("--limit", sys.maxsize),
    "n_resamples": ("--resamples", 1_000_000),
    "n_permutations": ("--permutations", 1_000_000),
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to study, and how.

    Parameters
    ----------
    out
        Folder for records and results; made where it is missing.
    dataset, config, split, revision, limit
        See `songs.read_songs`.
    by, dimensions
        Names with commas out of `annotations.groupings.GROUPINGS` and `pipelines.discrepancy.FACING`; None for all
        dimensions.
    level, aggregation, normalize_by_self
        See `pipelines.discrepancy.study_discrepancy`.
    encoder, encoder_revision, device, cache
        See `lyrics.embeddings.load_encoder`.
    confidence, n_resamples, n_permutations, seed
        Of intervals and tests.
    plot
        Draw discrepancy.svg, which needs matplotlib, and show it in report.html.
    overwrite
        Start afresh in `out`.
    report
        Write report.html.

    Raises
    ------
    InvalidInputError
        A number out of range, or an option that does not go with another.
    UnknownNameError
        A grouping, dimension, level or aggregation that does not exist.

    """

    out: str | os.PathLike[str]
    dataset: str
    config: str | None = None
    split: str = "test"
    revision: str | None = None
    limit: int | None = None
    by: str = ",".join(DEFAULT_BY)
    dimensions: str | None = None
    level: str = "tags"
    aggregation: str = "mean"
    normalize_by_self: bool = False
    encoder: str = DEFAULT_ENCODER
    encoder_revision: str | None = None
    device: str | None = None
    cache: str | os.PathLike[str] | None = None
    confidence: float = 0.95
    n_resamples: int = 1000
    n_permutations: int = 10_000
    seed: int = 0
    plot: bool = True
    overwrite: bool = False
    report: bool = True

    def __post_init__(self) -> None:
        check_options(self, NUMBERS)
        if self.seed < 0:
            msg = f"--seed must be at least 0, got {self.seed}"
            raise InvalidInputError(msg)
        if not self.groupings:
            msg = f"--by is empty; name some of {', '.join(GROUPINGS)}"
            raise InvalidInputError(msg)
        for kind, names, known in (
            ("grouping", self.groupings, GROUPINGS),
            ("shared dimension", self.chosen_dimensions, FACING),
        ):
            for name in names:
                if name not in known:
                    raise UnknownNameError(kind, name, known)
        check_level(self.level, self.aggregation, normalize_by_self=self.normalize_by_self)

    @property
    def groupings(self) -> tuple[str, ...]:
        """Names of `by`, each once."""
        return tuple(_names(self.by))

    @property
    def chosen_dimensions(self) -> tuple[str, ...]:
        """Names of `dimensions`, each once; by default all."""
        return tuple(_names(self.dimensions or "") or FACING)

    @property
    def comparison(self) -> dict[str, Any]:
        """How both sides are compared: keyword arguments of `facing_similarities`."""
        return {
            "dimensions": list(self.chosen_dimensions),
            "level": self.level,
            "aggregation": self.aggregation,
            "normalize_by_self": self.normalize_by_self,
        }


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What a study found.

    Attributes
    ----------
    results
        The content of results.json.
    study
        The study itself.
    files
        What was written, by kind: ``records``, ``results``, ``table``, ``cells``, ``plot``, ``report``.

    """

    results: dict[str, Any]
    study: DiscrepancyStudy
    files: dict[str, Path]


def run_discrepancy(settings: Settings) -> Outcome:
    """Compare professionals and amateurs on the songs of a dataset and write the results.

    Parameters
    ----------
    settings
        See `Settings`.

    Returns
    -------
    Outcome
        Numbers, and where the files are.

    Raises
    ------
    UnknownNameError
        A dataset, config, split or aggregation that does not exist.
    NoDataError, PairCountError, UnreadableFileError, InvalidInputError, InvalidTagsError
        Nothing to study, or rows that are not what they should be; see `songs.read_songs`.
    ModelUnavailableError, MissingBackendError, BackendError
        The encoder cannot be loaded or failed; or matplotlib is not installed.
    CorruptRecordsError
        The records in `out` are damaged or belong to another run.
    OutputError
        `out` cannot be written.

    """
    out = Path(settings.out)
    if settings.plot:
        check_backend()
    songs = read_songs(
        settings.dataset,
        settings.config,
        settings.split,
        revision=settings.revision,
        limit=settings.limit,
        columns=GROUPS,
    )
    encoder = load_encoder(
        settings.encoder, revision=settings.encoder_revision, device=settings.device, cache=settings.cache
    )
    told = {song.id: song.tags for song in songs.songs}
    values = _recorded(settings, songs, told, encoder)
    study = study_discrepancy(
        told,
        encoder=encoder,
        by=settings.groupings,
        similarities=values,
        **settings.comparison,
        groups=[song.group for song in songs.songs],
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        n_permutations=settings.n_permutations,
        seed=settings.seed,
    )
    results = _results(study, songs, told)
    contents = {
        "results": (RESULTS, dump_json(results, indent=2) + "\n"),
        "table": (TABLE, markdown_study(study, results["notes"]) + "\n"),
        "cells": (CELLS, _csv(study)),
    }
    picture = plot_study(study) if settings.plot else ""
    if settings.plot:
        contents["plot"] = (PLOT, picture)
    if settings.report:
        contents["report"] = (REPORT, render_study(study, results, picture))
    return Outcome(results, study, write_files(out, contents))


def _recorded(settings: Settings, songs: SongSet, told: Told, encoder: TextEncoder) -> Floats:
    """Return the similarity of each song and dimension, from the records where it is there; what is new is recorded."""
    out, names = Path(settings.out), settings.chosen_dimensions
    header = {
        "task": TASK,
        "dataset": {**songs.about, "fingerprint": _fingerprint(told)},
        "options": settings.comparison,
        "encoder": {"name": encoder.name, "revision": encoder.revision},
        "versions": package_versions(PACKAGES),
    }
    started = time.monotonic()
    with RecordFile(out / RECORDS, header, overwrite=settings.overwrite) as records:
        for name in (RESULTS, TABLE, CELLS, PLOT, REPORT):  # should this run end early: they tell of another one
            remove_file(out / name)
        scores = [row for row in records.rows if row["kind"] == "score"]
        if not scores:
            values = facing_similarities(told, encoder=encoder, **settings.comparison)
            made = [row for song, line in zip(told, values, strict=True) for row in _rows(song, names, line)]
            records.append(kernel_rows(records.rows) + made)
            records.append([{"kind": "sitting", "wall_time_sec": round(time.monotonic() - started, 3)}])
            return values
    with reading_rows():
        found = {(row["item"], row["metric"]): row["value"] for row in scores}
        table = [[found[song, name] for name in names] for song in told]
        return np.array(table, dtype=np.float64)  # None becomes NaN


def _rows(song: str, names: Sequence[str], values: Floats) -> list[dict[str, Any]]:
    silent = {"value": None, "reason": "a side has no tags"}
    return [
        {"kind": "score", "item": song, "metric": name, "n": 1}
        | (silent if math.isnan(value) else {"value": float(value)})
        for name, value in zip(names, values, strict=True)
    ]


def _fingerprint(told: Told) -> str:
    return hashlib.sha256(json.dumps(told, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:16]


def _results(study: DiscrepancyStudy, songs: SongSet, told: Told) -> dict[str, Any]:
    found: dict[str, Any] = plain(
        {
            "task": TASK,
            "dataset": {**songs.about, "fingerprint": _fingerprint(told)},
            "n_clusters": len({song.group for song in songs.songs}),
            **study.to_dict(),
            "notes": _notes(study),
            "versions": package_versions(PACKAGES),
        }
    )
    return found


def _notes(study: DiscrepancyStudy) -> list[str]:
    """Return what a reader of the numbers should know."""
    notes = []
    if study.settings["encoder"]["name"] == CHAR_NGRAMS:
        notes.append(
            f"the encoder {CHAR_NGRAMS} compares spelling and knows no meaning: it stands in for {DEFAULT_ENCODER}, "
            "and its similarities are not those of the paper's encoder"
        )
    first = study.dimensions[0]
    for grouping, groups in study.groups.items():
        few = [group for group in groups if study.cell(grouping, group, first).n < FEW_SONGS]
        if few:
            notes.append(f"{grouping}: fewer than {FEW_SONGS} songs in {', '.join(few)}")
        if study.n_ungrouped[grouping]:
            notes.append(f"{grouping}: {study.n_ungrouped[grouping]} of {study.n_songs} songs are in no group")
    missing = {cell.dimension: cell.n - cell.n_defined for cell in study.cells if cell.group == ALL}
    told = ", ".join(f"{name} {count}" for name, count in missing.items() if count)
    if told:
        notes.append(f"songs without tags on a side, left out: {told}")
    n_tests = sum(not math.isnan(cell.p_value) for cell in study.cells)
    notes.append(
        f"a group is tested against the songs outside of it; p-values are after Holm's correction over all {n_tests} "
        f"tests, which with {study.settings['n_permutations']} permutations cannot fall below "
        f"{n_tests / (1 + study.settings['n_permutations']):.2g} unless all choices of songs were listed"
    )
    return notes


def _csv(study: DiscrepancyStudy) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Cell._fields)
    for cell in study.cells:
        writer.writerow("" if isinstance(value, float) and math.isnan(value) else value for value in cell)
    return text.getvalue()
