"""The discrepancy study from end to end: settings in, result files out.

The records hold the similarity of each song and dimension, and what decides it: songs, dimensions, level, aggregation,
encoder. Groupings, intervals and tests are made from them, and may be others in the next run of the same folder.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import GROUPS
from music_evals.benchmark.engines import Failed, Unit
from music_evals.benchmark.formats import check_backend, plain
from music_evals.benchmark.records import reading_rows
from music_evals.benchmark.rows import score_or_reason
from music_evals.benchmark.run import RECORDS, Job, Outcome, Progress, Row, record, remove_results, write_outcome
from music_evals.benchmark.run import Settings as RunSettings
from music_evals.benchmark.task import Task
from music_evals.benchmark.tasks.songs.discrepancy_report import markdown_study, plot_study, render_study, text_study
from music_evals.benchmark.tasks.songs.songs import EncoderSettings, read_songs
from music_evals.csv_files import csv_text
from music_evals.errors import BackendError, InvalidInputError, UnknownNameError
from music_evals.lyrics.embeddings import CHAR_NGRAMS, DEFAULT_ENCODER, load_encoder
from music_evals.lyrics.tag_groups import GROUPINGS
from music_evals.numerics import package_versions
from music_evals.options import option, with_commas
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

__all__ = ["CELLS", "DISCREPANCY", "PLOT", "Discrepancy", "Settings", "markdown_study", "text_study"]

CELLS: Final = "cells.csv"
PLOT: Final = "discrepancy.svg"

Floats = npt.NDArray[np.float64]
Descriptions = Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]]
"""Song -> group of annotators -> dimension -> tags."""

FEW_SONGS = 10
"""Groups with fewer songs get a remark."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(EncoderSettings, RunSettings):
    """What to study, and how; the options of the verb ``discrepancy`` by their keywords.

    The study is one unit of work, for one process.

    Parameters
    ----------
    by, dimensions
        Names with commas out of `lyrics.tag_groups.GROUPINGS` and `pipelines.discrepancy.FACING`.
    level, aggregation, normalize_by_self
        See `pipelines.discrepancy.study_discrepancy`.
    encoder, encoder_revision, device, cache
        See `lyrics.embeddings.load_encoder`.
    plot
        Draw discrepancy.svg, which needs matplotlib, and show it in report.html.

    Raises
    ------
    InvalidInputError
        A number out of range, or an option that does not go with another.
    UnknownNameError
        A grouping, dimension, level or aggregation that does not exist.
    """

    by: str = option(
        ",".join(DEFAULT_BY),
        "groupings, with commas: genre, emotion, purpose, culture, audience (default: %(default)s)",
        metavar="NAMES",
    )
    dimensions: str | None = option(None, "shared dimensions, with commas (default: all ten)", metavar="NAMES")
    level: str = option("tags", "tags (default), or joined: all tags of a dimension as one text")
    n_permutations: int = option(10_000, "of each test (default: %(default)s)", flag="--permutations", group="run")
    plot: bool = True

    GROUPS: ClassVar = {**RunSettings.GROUPS, "data": "which songs"}
    TEXTS: ClassVar = {"n_resamples": None}

    BOUNDS: ClassVar = {**RunSettings.BOUNDS, "n_permutations": (1, 1_000_000)}
    PATHS = ("out", "cache")

    def __post_init__(self) -> None:
        if self.dataset is None:
            raise InvalidInputError("give `dataset`: the study compares what people said of its songs")
        super().__post_init__()
        if not self.groupings:
            raise InvalidInputError(f"`by` is empty; name some of {', '.join(GROUPINGS)}")
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
        return tuple(dict.fromkeys(with_commas(self.by)))

    @property
    def chosen_dimensions(self) -> tuple[str, ...]:
        """Names of `dimensions`, each once; by default all."""
        return tuple(dict.fromkeys(with_commas(self.dimensions))) or tuple(FACING)

    @property
    def comparison(self) -> dict[str, Any]:
        """How both sides are compared: keyword arguments of `facing_similarities`."""
        return {
            "dimensions": list(self.chosen_dimensions),
            "level": self.level,
            "aggregation": self.aggregation,
            "normalize_by_self": self.normalize_by_self,
        }


class Discrepancy(Task):
    """Where professionals and amateurs describe the same songs differently: a study, whose results are its own."""

    name = "discrepancy"
    settings = Settings
    packages = ("music_evals", "numpy", "scipy", "sentence-transformers", "transformers", "torch")

    def run(self, settings: Settings, *, progress: Progress | None = None) -> Outcome:
        """Compare professionals and amateurs on the songs of a dataset and write the results."""
        out = Path(settings.out)
        if settings.plot:
            check_backend()
        songs = read_songs(
            str(settings.dataset),
            settings.config,
            settings.split,
            revision=settings.revision,
            limit=settings.limit,
            columns=GROUPS,
        )
        encoder = load_encoder(
            settings.encoder, revision=settings.encoder_revision, device=settings.device, cache=settings.cache
        )
        reported = {song.id: song.tags for song in songs.songs}
        text = json.dumps(reported, ensure_ascii=False, sort_keys=True)
        dataset = {**songs.about, "fingerprint": hashlib.sha256(text.encode()).hexdigest()[:16]}
        versions = package_versions(self.packages)
        header = {
            "task": self.name,
            "dataset": dataset,
            "options": settings.comparison,
            "encoder": {"name": encoder.name, "revision": encoder.revision},
            "versions": versions,
        }
        job = _Similarities(settings, header, reported, encoder)
        rows = record(job, out / RECORDS, settings, progress=progress)
        # other groupings may be asked for with the same records: what was made of them tells of another run
        remove_results(out, CELLS, PLOT)
        study = study_discrepancy(
            reported,
            encoder=encoder,
            by=settings.groupings,
            similarities=job.values(rows),
            **settings.comparison,
            groups=[song.group for song in songs.songs],
            confidence=settings.confidence,
            n_permutations=settings.n_permutations,
            seed=settings.seed,
        )
        about = {"task": self.name, "dataset": dataset, "n_clusters": len({song.group for song in songs.songs})}
        results: dict[str, Any] = plain(about | study.to_dict() | {"notes": _notes(study), "versions": versions})
        picture = plot_study(study) if settings.plot else ""
        others = {"cells": (CELLS, csv_text(Cell._fields, study.cells))}
        others |= {"plot": (PLOT, picture)} if settings.plot else {}
        return write_outcome(
            out,
            results,
            study,
            table=markdown_study(study, results["notes"]),
            page=functools.partial(render_study, study, results, picture) if settings.report else None,
            others=others,
            notes=results["notes"],
        )


DISCREPANCY: Final = Discrepancy()
"""The task."""


class _Similarities(Job):
    """The similarity of each song and dimension; all tags are encoded together, so it is one unit of work."""

    size = 1

    def __init__(self, settings: Settings, header: Row, descriptions: Descriptions, encoder: TextEncoder) -> None:
        self._descriptions, self._settings, self.header = descriptions, settings, header
        self.work = functools.partial(facing_similarities, encoder=encoder, **settings.comparison)

    def left(self, rows: Sequence[Row]) -> list[Unit]:
        there = any(row["kind"] == "score" for row in rows)
        return [] if there else [Unit(self._descriptions, "similarities")]

    def rows(self, unit: Unit, answer: Floats | Failed) -> list[Row]:  # noqa: ARG002
        if isinstance(answer, Failed):
            raise BackendError(answer.reason)
        return [
            {"kind": "score", "item": song, "metric": name, "n": 1, **score_or_reason(value, "a side has no tags")}
            for song, values in zip(self._descriptions, answer, strict=True)
            for name, value in zip(self._settings.chosen_dimensions, values, strict=True)
        ]

    def values(self, rows: Sequence[Row]) -> Floats:
        """Return the recorded similarities, shape (songs, dimensions); NaN where they are undefined."""
        with reading_rows():
            recorded = {(row["item"], row["metric"]): row["value"] for row in rows if row["kind"] == "score"}
            table = [[recorded[song, name] for name in self._settings.chosen_dimensions] for song in self._descriptions]
            return np.array(table, dtype=np.float64)  # None becomes NaN


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
    reported = ", ".join(f"{name} {count}" for name, count in missing.items() if count)
    if reported:
        notes.append(f"songs without tags on a side, left out: {reported}")
    n_tests = sum(not math.isnan(cell.p_value) for cell in study.cells)
    notes.append(
        f"a group is tested against the songs outside of it; p-values are after Holm's correction over all {n_tests} "
        f"tests, which with {study.settings['n_permutations']} permutations cannot fall below "
        f"{n_tests / (1 + study.settings['n_permutations']):.2g} unless all choices of songs were listed"
    )
    return notes
