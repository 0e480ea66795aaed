"""The benchmark of music context preservation from end to end: settings in, result files out.

By default the interval is clustered by the music of the originals: pairs whose originals hold the same music are one
group, as the records tell. The controls are the same music played back otherwise, and unrelated music.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import FACETS, FEATURES, targets_of
from music_evals.audio.extraction import receipt
from music_evals.audio.store import FeatureStore
from music_evals.benchmark.formats import check_backend
from music_evals.benchmark.published import published_preservation
from music_evals.benchmark.records import Records
from music_evals.benchmark.rows import PairJob, Scorer
from music_evals.benchmark.run import RECORDS, WORKERS, Outcome, Progress, record, remove_results
from music_evals.benchmark.run import Settings as RunSettings
from music_evals.benchmark.score_table import ScoreTable, outlines_in
from music_evals.benchmark.task import Task
from music_evals.benchmark.tasks.preservation.controls import MOST_PAIRS, make_controls, traits_of
from music_evals.benchmark.tasks.preservation.facets import both_groups, describe_controls, facets, on_shared
from music_evals.benchmark.tasks.preservation.pairs import (
    CEILING,
    CONTROLS,
    UNRELATED,
    Columns,
    Pair,
    PairSet,
    pairs_in_folders,
    pairs_in_manifest,
    pairs_of_dataset,
)
from music_evals.benchmark.tasks.preservation.plane import plane_of
from music_evals.benchmark.tasks.preservation.players import PLACES, Players
from music_evals.benchmark.tasks.preservation.report import SHOWN_PAIRS, render_report
from music_evals.benchmark.tasks.preservation.worker import REENCODED_AUDIO, REENCODED_SCORE, PairScorer
from music_evals.errors import InvalidInputError, MissingBackendError, UnknownNameError
from music_evals.files import scratch_folder
from music_evals.metrics.catalogue import (
    AUXILIARY,
    PRESERVATION_METRICS,
    RELEASE_SCORES,
    RELEASES,
    SHOWN_AUXILIARY,
    SUCCESS_SCORES,
)
from music_evals.numerics import PACKAGES, n_cores
from music_evals.options import option, with_commas
from music_evals.pipelines import preservation as pipeline
from music_evals.pipelines.edit_success import SUCCESS, features_for

__all__ = ["AUDIO_PACKAGES", "PRESERVATION", "Outcome", "Preservation", "Settings", "describe_extractors"]

MOST_WORKERS = 4
"""By default no more processes than this; more must be asked for."""


AUDIO_PACKAGES = ("librosa", "numba", "onnxruntime", "soundfile", "soxr", "mir_eval")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    """What to compare, and how; the options of the verb ``preserve`` by their keywords.

    Originals and edits are paths or URLs, see `pairs.pairs_in_folders` and `pairs.pairs_in_manifest`, or rows of a
    dataset, see `pairs.pairs_of_dataset`. By default as many processes as there are cores, and no more than four. The
    report needs matplotlib.

    Parameters
    ----------
    reference_column, estimate_column, system_column, group_by
        See `pairs.Columns`. Folders are grouped by ``"file"`` (None) or ``"folder"``.
    metrics, companions
        Names with commas; ``"all"`` takes all. Metrics of None are all, auxiliary metrics of None those of
        `catalogue.SHOWN_AUXILIARY` beside all metrics, and none beside chosen ones; ``"none"`` leaves them out.
    features
        Folder of the feature store, which machines may share; None keeps features for the length of the run only.
    intended
        It needs the controls. Changes no score: a run that is done may be resumed with other facets.
    timelines
        To equal shares of the systems, and at least one of each; 0 for none.

    Raises
    ------
    InvalidInputError
        Settings that contradict each other, or a number out of range.
    UnknownNameError
        A metric, auxiliary metric, variant or place of audio that does not exist.
    """

    reference: str | os.PathLike[str] | None = option(
        None, "folder of originals, or one file; here or at a URL", group="data", metavar="PATH"
    )
    estimates: Sequence[str | os.PathLike[str]] = option(
        (),
        "folder of edits with the same relative paths, or one file; may be given again for other systems",
        flag="--estimate",
        group="data",
        metavar="[NAME=]PATH",
    )
    manifest: str | os.PathLike[str] | None = option(
        None,
        "CSV or JSONL with the columns reference, estimate and, where wanted, id, group, system and targets (such as "
        "tempo=1.2x; key=A minor: what was asked, and is measured beside); it and its cells may be URLs",
        group="data",
        metavar="FILE",
    )
    renderer: str | None = option(None, "additive (default) or fluidsynth, for datasets that hold scores", group="data")
    reference_column: str = option("reference", "(default: %(default)s)", group="data", metavar="NAME")
    estimate_column: str = option("estimate", "(default: %(default)s)", group="data", metavar="NAME")
    system_column: str = option(
        "system", "(default: %(default)s; for datasets of scores kind)", group="data", metavar="NAME"
    )
    group_by: str | None = option(
        None,
        "clusters of the intervals: file (each original, by what it holds; default), folder, or a column",
        group="data",
        metavar="WHAT",
    )
    metrics: str | None = option(None, "names or facets with commas (default: all of the variant)", metavar="NAMES")
    companions: str | None = option(
        None,
        "auxiliary metrics: all, none, or names with commas (default: four with all eleven, none with others)",
        metavar="NAMES",
        label="All auxiliary metrics of the eleven scores",
    )
    variant: str = option("corrected", "corrected (default), official, paper, or musecpeval-0.3")
    backends: Mapping[str, str] = option(
        {}, "another extractor of a feature; may be given again", flag="--backend", metavar="FEATURE=NAME"
    )
    features: str | os.PathLike[str] | None = option(
        None, "keep extracted features here, for other runs and machines too", metavar="DIR"
    )
    controls: bool = option(True, "leave out the rows of the same music and of unrelated music", group="data")
    intended: str | None = option(
        None,
        "facets that the edits are meant to change, with commas (harmony, rhythm, structure, melody): the results also "
        "have one score over the others, so that a change that was wanted is no damage",
        metavar="FACETS",
    )
    timelines: int = option(
        SHOWN_PAIRS, "pairs to draw in report.html, the worst of each system (default: %(default)s)", group="output"
    )
    audio: str = option(
        "beside",
        "where the music of these pairs lies, for the players of report.html: beside (in the folder report_audio, the "
        "default), embedded (in the page) or none",
        group="output",
        metavar="PLACE",
    )

    GROUPS: ClassVar = {
        **RunSettings.GROUPS, "data": "what is compared (one of --reference, --manifest and --dataset)"
    }  # fmt: skip
    TEXTS: ClassVar = {
        "dataset": "a name (see list), a folder or a Hub id with two audio columns",
        "limit": "compare the first N items only: originals of a folder, ids of a manifest, each with the edits of all "
        "systems, or rows of a dataset",
        "workers": WORKERS.format("number of cores, at most 4"),
        "seed": "of intervals, tests and controls (default: %(default)s)",
        "report": None,  # its own options, as a page with figures
    }

    BOUNDS: ClassVar = {**RunSettings.BOUNDS, "timelines": (0, sys.maxsize)}
    ONE_OF = ("reference", "manifest", "dataset")
    GO_WITH: ClassVar = {"dataset": ("config", "revision", "renderer")}
    PATHS = ("out", "features")

    def __post_init__(self) -> None:
        if bool(self.estimates) != (self.reference is not None):
            raise InvalidInputError("`reference` and `estimates` go together; a manifest or dataset holds both sides")
        super().__post_init__()
        _ = self.measures  # names are checked
        _ = self.intended_facets
        if self.audio not in PLACES:
            raise UnknownNameError("place of audio", self.audio, PLACES)

    @property
    def intended_facets(self) -> list[str]:
        """The facets that are meant to change, checked, in the order of `annotations.FACETS`."""
        names = with_commas(self.intended)
        for name in names:
            if name not in FACETS:
                raise UnknownNameError("facet", name, FACETS)
        if names and not self.controls:
            raise InvalidInputError("`intended` needs the two controls, between which facets are placed; leave them in")
        if set(names) == set(FACETS):
            raise InvalidInputError("`intended` names all facets: none is left that an edit should preserve")
        return [name for name in FACETS if name in names]

    @property
    def measures(self) -> pipeline.Settings:
        """Metrics, auxiliary metrics, variant and backends, checked."""
        chosen = map(with_commas, (self.metrics, self.companions))
        metrics, named = (None if names in ([], ["all"]) else names for names in chosen)  # None for nothing and for all
        auxiliary: Sequence[str] | bool = True if named is None else named  # True is all
        if self.companions is None and metrics is None and self.variant not in RELEASES:
            auxiliary = SHOWN_AUXILIARY
        elif not self.companions or named == ["none"]:
            auxiliary = ()
        return pipeline.Settings.of(metrics=metrics, companions=auxiliary, variant=self.variant, backends=self.backends)


class Preservation(Task):
    """What edits preserved of originals: pairs, and the controls beside them."""

    name = "preservation"
    settings = Settings
    title = "What the edits preserved"
    scales: ClassVar = {**PRESERVATION_METRICS, **RELEASE_SCORES, **AUXILIARY, **SUCCESS_SCORES}
    auxiliary: ClassVar = {**AUXILIARY, **SUCCESS_SCORES}
    across = SUCCESS
    packages = (*PACKAGES, *AUDIO_PACKAGES)
    controls = CONTROLS
    controls_explained = (
        f"{CEILING}: each original against a copy of itself, {REENCODED_AUDIO} (scores: {REENCODED_SCORE}), which is "
        f"as near as extractors find the same music. {UNRELATED}: originals of different groups, chosen so that key "
        "and tempo differ where the corpus allows it, which is what chance gives."
    )

    def run(self, settings: Settings, *, progress: Progress | None = None, scorer: Scorer | None = None) -> Outcome:
        """Compare all pairs and write records, results.json, table.md and report.html."""
        if settings.report:
            check_backend()
        out, measures = Path(settings.out), settings.measures
        # raises for a named backend that is not there, before anything takes time
        receipt(measures.all_backends, features=[name for name in settings.backends if name in FEATURES])
        if settings.dataset is not None:
            describe_extractors(measures)  # what a dataset holds becomes recordings, which may take long
        with scratch_folder() as scratch:
            pairs = _pairs(settings, scratch / "music", progress)
            if settings.overwrite:
                remove_results(out)
            store = FeatureStore(Path(settings.features or scratch / "features").absolute())
            store.try_out()
            requests = {pair.targets for pair in pairs.pairs}
            targets = {target for text in requests if text for target in targets_of(text)}
            if targets:
                features = dict.fromkeys((*measures.features, *features_for(targets)))
                measures = dataclasses.replace(measures, features=tuple(features))
            success = tuple(SUCCESS_SCORES) if targets else ()
            stored = dataclasses.replace(measures, store=store)
            has_audio = any(pair.modality == "audio" for pair in pairs.pairs)
            extractors = describe_extractors(measures) if has_audio else {"features": {}}
            more = {"companions": [*measures.companions, *success], "extractors": extractors}
            header = self.header(pairs.dataset, settings.variant, measures.metrics, **more)
            job = PairJob(
                header=header,
                about=({"intended": settings.intended_facets} if settings.intended_facets else {})
                | ({"controls": list(pairs.controls)} if pairs.controls else {}),
                pair_set=pairs,
                controls=(),
                scores=(*measures.scores, *success),
                variant=settings.variant,
                scorer=scorer or PairScorer(stored, frozenset(target.kind for target in targets)),
                engine="local",  # an extractor may die of a recording
                workers=min(n_cores(), MOST_WORKERS),
            )
            rows = _record(job, pairs.pairs, settings, progress)
            store.try_out()  # it may be full by now
            # recordings of a dataset lie in the scratch folder: the report is made while they are there
            files = (file for pair in pairs.pairs for file in (pair.reference, pair.estimate))
            players = Players(settings.audio, out, {file.content: file.path for file in files})
            page = functools.partial(render_report, timelines=settings.timelines, players=players)
            outcome = self.write(rows, settings, page)
        if players.folder is not None:
            outcome.files["audio"] = players.folder
        return outcome

    def check_scores(self, scores: ScoreTable) -> None:
        """Where pairs are grouped by the file of their original, take what it holds: other tags make no other music."""
        groups, music = set(scores.columns["group"].categories.to_pylist()), dict[str, str | None]()
        for table in scores.records.batches("outline", text=False):
            columns = (table[name].to_pylist() for name in ("reference", "music"))
            music |= {content: held for content, held in zip(*columns, strict=True) if content in groups}
        scores.group_by({content: held for content, held in music.items() if held is not None})

    def paired_groups(self, scores: ScoreTable, system: str) -> npt.NDArray[np.int64] | None:
        """Return the originals of both sides of unrelated pairs; an edit is of no group but its original's."""
        return both_groups(scores) if system == UNRELATED and CEILING in scores.controls else None

    def describe_run(self, header: Mapping[str, Any]) -> str:
        """Name the variant."""
        return f"variant {header['variant']}"

    def describe_systems(self, scores: ScoreTable) -> Mapping[str, Mapping[str, Any]]:
        """Describe the controls."""
        return describe_controls(scores)

    def facet_scores(self, scores: ScoreTable, *, confidence: float) -> Mapping[str, Any]:
        """Place each facet between the two controls."""
        return facets(scores, confidence=confidence)

    def plane(self, scores: ScoreTable, **resampling: Any) -> Mapping[str, Any]:
        """Place each system by success and preservation."""
        return plane_of(scores, **resampling)

    def published_scores(self, header: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tables of papers that have these metrics."""
        return published_preservation(header["metrics"])

    def control_notes(self, systems: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        """Say where the row of unrelated music is missing, or rests on few originals."""
        if CEILING in systems and UNRELATED not in systems:
            yield "all originals are of one group: there is no row of unrelated music to compare with"
        if UNRELATED in systems and systems[UNRELATED]["n_pairs"] == 2:
            yield f"the two pairs of {UNRELATED} share originals, and do not say how far those of others may lie"
        yield from on_shared(systems.get(UNRELATED, {}))


PRESERVATION: Final = Preservation()
"""The task."""


def _record(job: PairJob, pairs: Sequence[Pair], settings: Settings, progress: Progress | None) -> Records:
    """Score the pairs, then the controls: unrelated pairs depend on key and tempo of the originals."""
    path = Path(settings.out) / RECORDS
    if not settings.controls:
        return record(job, path, settings, progress=progress)
    # nearly the number of controls, for the progress; originals of one group have no unrelated music
    kinds = len(CONTROLS) if len({pair.group for pair in pairs}) > 1 else 1
    n_later = kinds * min(len({pair.reference.content for pair in pairs}), MOST_PAIRS)

    def begun(done: int, total: int, label: str) -> None:
        if progress is not None:
            progress(done, total + n_later, label)

    outlines = outlines_in(record(dataclasses.replace(job, later=CONTROLS), path, settings, progress=begun))
    controls = make_controls(pairs, lambda content: traits_of(outlines.get(content)), seed=settings.seed)
    resumed = dataclasses.replace(settings, overwrite=False)
    return record(dataclasses.replace(job, controls=controls), path, resumed, progress=progress)


def _pairs(settings: Settings, scratch: Path, progress: Progress | None) -> PairSet:
    if settings.reference is not None:
        return pairs_in_folders(
            settings.reference, settings.estimates, group_by=settings.group_by, limit=settings.limit
        )
    columns = Columns(settings.reference_column, settings.estimate_column, settings.system_column, settings.group_by)
    if settings.manifest is not None:
        return pairs_in_manifest(settings.manifest, columns, limit=settings.limit)
    return pairs_of_dataset(
        str(settings.dataset),
        settings.config,
        settings.split,
        columns,
        revision=settings.revision,
        renderer=settings.renderer,
        folder=scratch,
        limit=settings.limit,
        progress=progress,
    )


def describe_extractors(measures: pipeline.Settings) -> dict[str, Any]:
    """Return decoder, policy and extractors with their versions, for a receipt."""
    # An optional one of the variant's that is not installed is named: the metrics that need it fail, and the others are
    # computed. One that comes with the extra ``audio`` is raised as missing: nearly everything needs it.
    features: dict[str, Any] = {}
    reported: dict[str, Any] = {}
    for feature in measures.features:
        try:
            extractor = receipt(measures.all_backends, features=[feature], policy=measures.audio_policy)
        except MissingBackendError as error:
            if error.extra:
                raise
            features[feature] = {"missing": str(error)}
            continue
        features |= extractor["features"]
        reported |= extractor
    return {**reported, "features": features}
