"""The discrepancy study from end to end: settings in, result files out.

songs -> similarities of both groups of annotators -> results.json, table.md, cells.csv and, where it is wanted,
discrepancy.svg in the style of figure 3 of MuChin (Wang et al., IJCAI 2024). It takes seconds: nothing is resumed, and
files of an earlier run are replaced.
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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.annotations import GROUPS
from music_evals.annotations.groupings import GROUPINGS
from music_evals.benchmark.canvas import check_backend
from music_evals.benchmark.discrepancy_plots import plot_study
from music_evals.benchmark.outputs import RESULTS, TABLE, check_options
from music_evals.benchmark.records import dump_json
from music_evals.benchmark.songs import SongSet, read_songs
from music_evals.benchmark.tables import SIGNIFICANCE, align, format_value, markdown_rows, plain
from music_evals.benchmark.versions import package_versions
from music_evals.errors import InvalidInputError, OutputError, UnknownNameError
from music_evals.lyrics.embeddings import CHAR_NGRAMS, DEFAULT_ENCODER, load_encoder
from music_evals.pipelines.discrepancy import (
    ALL,
    DEFAULT_BY,
    FACING,
    LEVELS,
    Cell,
    DiscrepancyStudy,
    study_discrepancy,
)
from music_evals.symbolic.output import write_atomically

__all__ = ["CELLS", "PLOT", "Outcome", "Settings", "markdown_study", "run_discrepancy", "text_study"]

CELLS: Final = "cells.csv"
PLOT: Final = "discrepancy.svg"

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
        Folder for results; made where it is missing.
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
        Draw discrepancy.svg, which needs matplotlib.

    Raises
    ------
    InvalidInputError
        A number out of range.
    UnknownNameError
        A grouping, dimension or level that does not exist.

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
            ("shared dimension", self.chosen_dimensions or (), FACING),
            ("level", (self.level,), LEVELS),
        ):
            for name in names:
                if name not in known:
                    raise UnknownNameError(kind, name, known)

    @property
    def groupings(self) -> tuple[str, ...]:
        """Names of `by`, each once."""
        return tuple(_names(self.by))

    @property
    def chosen_dimensions(self) -> tuple[str, ...] | None:
        """Names of `dimensions`, each once; None for all."""
        names = _names(self.dimensions or "")
        return tuple(names) or None


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
        What was written, by kind: ``results``, ``table``, ``cells``, ``plot``.

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
    ModelUnavailableError, MissingBackendError, BackendError, CorruptCacheError
        The encoder cannot be loaded or failed, or its cache is damaged; or matplotlib is not installed.
    OutputError
        `out` cannot be written.

    """
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
    study = study_discrepancy(
        {song.id: song.tags for song in songs.songs},
        encoder=encoder,
        by=settings.groupings,
        dimensions=settings.chosen_dimensions,
        level=settings.level,
        aggregation=settings.aggregation,
        normalize_by_self=settings.normalize_by_self,
        groups=[song.group for song in songs.songs],
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        n_permutations=settings.n_permutations,
        seed=settings.seed,
    )
    results = _results(study, songs)
    contents = {
        "results": (RESULTS, dump_json(results, indent=2) + "\n"),
        "table": (TABLE, markdown_study(study, results["notes"]) + "\n"),
        "cells": (CELLS, _csv(study)),
    }
    if settings.plot:
        contents["plot"] = (PLOT, plot_study(study))
    return Outcome(results, study, _write(Path(settings.out), contents))


def _results(study: DiscrepancyStudy, songs: SongSet) -> dict[str, Any]:
    told = {song.id: song.tags for song in songs.songs}
    fingerprint = hashlib.sha256(json.dumps(told, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:16]
    found: dict[str, Any] = plain(
        {
            "task": "discrepancy",
            "dataset": {**songs.about, "fingerprint": fingerprint},
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


def text_study(study: DiscrepancyStudy) -> str:
    """Return the similarities as columns of plain text, a table for each grouping, and what differs."""
    head = ["group", "songs", *(FACING[name].english.split()[0] for name in study.dimensions)]
    parts = [f"similarity of professionals and amateurs, {_how(study)}; lower is a larger discrepancy"]
    for grouping in study.groups:
        rows = [_row(study, *key) for key in _keys(study, grouping)]
        lines = [[name, str(cells[0].n), *map(_value, cells)] for name, cells in rows]
        parts += ["", f"by {GROUPINGS[grouping].english.lower()}", align([head, *lines])]
    parts += ["", f"* differs from the other songs, p < {SIGNIFICANCE} after Holm's correction"]
    return "\n".join(parts)


def markdown_study(study: DiscrepancyStudy, notes: Sequence[str]) -> str:
    """Return the similarities with their intervals as Markdown, a table for each grouping, and what differs."""
    parts = ["# Professionals against amateurs", "", f"{_how(study)}. {study.n_songs} songs. {_legend(study)}"]
    head = ["group", "songs", *(FACING[name].english for name in study.dimensions)]
    for grouping in study.groups:
        rows = [_row(study, *key) for key in _keys(study, grouping)]
        lines = [[name, str(cells[0].n), *map(_with_interval, cells)] for name, cells in rows]
        rule = ["---", *["---:"] * (len(head) - 1)]
        parts += ["", f"## By {GROUPINGS[grouping].english.lower()}", "", markdown_rows([head, rule, *lines])]
    parts += ["", "## Groups that differ from the other songs", "", _differences(study)]
    return "\n".join([*parts, "", *(f"- {note}" for note in notes)])


def _how(study: DiscrepancyStudy) -> str:
    settings = study.settings
    compared = "tags" if settings["level"] == "tags" else "all tags of a dimension as one text"
    how = "" if settings["level"] == "joined" else f", {settings['aggregation']}"
    normalized = ", divided by self-similarity" if settings["normalize_by_self"] else ""
    encoder = settings["encoder"]
    revision = f" at {encoder['revision']}" if encoder["revision"] else ""
    return f"{compared}{how}{normalized}, encoder {encoder['name']}{revision}"


def _legend(study: DiscrepancyStudy) -> str:
    return (
        f"Each cell: mean similarity and {study.settings['confidence']:.0%} interval, clustered by song; lower is a "
        "larger discrepancy. In bold: differs from the other songs after Holm's correction."
    )


def _keys(study: DiscrepancyStudy, grouping: str) -> list[tuple[str, str]]:
    return [(ALL, ALL), *((grouping, group) for group in study.groups[grouping])]


def _row(study: DiscrepancyStudy, grouping: str, group: str) -> tuple[str, list[Cell]]:
    return _title(grouping, group), [study.cell(grouping, group, name) for name in study.dimensions]


def _title(grouping: str, group: str) -> str:
    if group == ALL:
        return "All songs"
    return next(found.english for found in GROUPINGS[grouping].groups if found.name == group)


def _value(cell: Cell) -> str:
    return format_value(cell.similarity) + ("*" if cell.p_adjusted < SIGNIFICANCE else " ")


def _with_interval(cell: Cell) -> str:
    value = format_value(cell.similarity)
    marked = f"**{value}**" if cell.p_adjusted < SIGNIFICANCE else value
    return f"{marked} ({format_value(cell.low)}..{format_value(cell.high)})"


def _differences(study: DiscrepancyStudy) -> str:
    found = sorted((cell for cell in study.cells if cell.p_adjusted < SIGNIFICANCE), key=lambda cell: cell.p_adjusted)
    if not found:
        return "None."
    head = ["grouping", "group", "dimension", "songs", "similarity", "difference", "p", "p, Holm"]
    lines = [
        [
            cell.grouping,
            _title(cell.grouping, cell.group),
            FACING[cell.dimension].english,
            str(cell.n_defined),
            format_value(cell.similarity),
            f"{cell.difference:+.3f}",
            f"{cell.p_value:.2g}",
            f"{cell.p_adjusted:.2g}",
        ]
        for cell in found
    ]
    return markdown_rows([head, ["---"] * 3 + ["---:"] * 5, *lines])


def _csv(study: DiscrepancyStudy) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Cell._fields)
    for cell in study.cells:
        writer.writerow("" if isinstance(value, float) and math.isnan(value) else value for value in cell)
    return text.getvalue()


def _write(out: Path, contents: Mapping[str, tuple[str, str]]) -> dict[str, Path]:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{out}: cannot be made ({error.strerror}); name a folder that can be written to"
        raise OutputError(msg) from error
    for name, content in contents.values():
        write_atomically(out / name, content.encode())
    return {kind: out / name for kind, (name, _) in contents.items()}
