"""The benchmark of music context preservation from end to end: settings in, result files out.

pairs -> controls -> runner -> records -> results, tables, report. What is compared, and how, is settled before anything
runs, so that a wrong name costs no time.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.annotations import FEATURES
from music_evals.audio.extraction import receipt
from music_evals.benchmark.inpainting import plots
from music_evals.benchmark.outcome import Outcome, remove_results, write_outcome
from music_evals.benchmark.outputs import RECORDS, check_options
from music_evals.benchmark.preservation.controls import make_controls
from music_evals.benchmark.preservation.pair_datasets import pairs_of_dataset
from music_evals.benchmark.preservation.pairs import Columns, PairSet, pairs_in_folders, pairs_in_manifest
from music_evals.benchmark.preservation.report import SHOWN_PAIRS, render_report
from music_evals.benchmark.preservation.results import PRESERVATION
from music_evals.benchmark.preservation.runner import Judging, Progress, run_pairs
from music_evals.benchmark.results import build_results, collect
from music_evals.benchmark.versions import PACKAGES, package_versions
from music_evals.errors import InvalidInputError, MissingBackendError
from music_evals.pipelines import preservation as pipeline

__all__ = ["AUDIO_PACKAGES", "Outcome", "Settings", "describe_extractors", "run_preservation"]

MOST_WORKERS = 4
"""By default no more processes than this; more must be asked for."""

AUDIO_PACKAGES = ("librosa", "numba", "onnxruntime", "soundfile", "soxr", "mir_eval")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to compare, and how.

    Parameters
    ----------
    out
        Folder for records and results; made where it is missing.
    reference, estimates
        See `pairs.pairs_in_folders`.
    manifest
        See `pairs.pairs_in_manifest`.
    dataset, config, split, revision, renderer
        See `pair_datasets.pairs_of_dataset`.
    reference_column, estimate_column, system_column, group_by
        See `pairs.Columns`. Folders are grouped by ``"file"`` (None) or ``"folder"``.
    limit
        Compare the first items only.
    metrics, companions
        Names with commas; None for all metrics and no companions. ``"all"`` takes all.
    variant
        ``"corrected"``, ``"official"`` or ``"paper"``.
    backends
        Feature -> extractor, where it is not the variant's.
    features
        Folder of the feature store; None keeps features for the length of the run only.
    workers
        Processes; None takes one for each core, and no more than four.
    confidence, n_resamples, seed
        Of intervals and tests; the seed also draws the controls.
    controls
        Add the rows of the same music and of unrelated music.
    overwrite
        Start afresh in `out`.
    report
        Draw report.html, which needs matplotlib.
    timelines
        Pairs to draw in it, the worst of each system to equal shares, and at least one of each; 0 for none.

    Raises
    ------
    InvalidInputError
        Settings that contradict each other, or a number out of range.
    UnknownNameError
        A metric, companion or variant that does not exist.

    """

    out: str | os.PathLike[str]
    reference: str | os.PathLike[str] | None = None
    estimates: Sequence[str] = ()
    manifest: str | os.PathLike[str] | None = None
    dataset: str | None = None
    config: str | None = None
    split: str = "test"
    revision: str | None = None
    reference_column: str = "reference"
    estimate_column: str = "estimate"
    system_column: str = "system"
    renderer: str | None = None
    group_by: str | None = None
    limit: int | None = None
    metrics: str | None = None
    companions: str | None = None
    variant: str = "corrected"
    backends: Mapping[str, str] = dataclasses.field(default_factory=dict)
    features: str | os.PathLike[str] | None = None
    workers: int | None = None
    confidence: float = 0.95
    n_resamples: int = 1000
    seed: int = 0
    controls: bool = True
    overwrite: bool = False
    report: bool = True
    timelines: int = SHOWN_PAIRS

    def __post_init__(self) -> None:
        if sum(given is not None for given in (self.reference, self.manifest, self.dataset)) != 1:
            raise InvalidInputError("give one of --reference (with --estimate), --manifest and --dataset")
        if bool(self.estimates) != (self.reference is not None):
            raise InvalidInputError("--reference and --estimate go together; a manifest or dataset holds both sides")
        of_dataset = {"--config": self.config, "--revision": self.revision, "--renderer": self.renderer}
        given = [option for option, value in of_dataset.items() if value is not None]
        if given and self.dataset is None:
            msg = f"{' and '.join(given)} goes with --dataset; leave it out"
            raise InvalidInputError(msg)
        check_options(self)
        for option, value in {"--seed": self.seed, "--timelines": self.timelines}.items():
            if value < 0:
                msg = f"{option} must be at least 0, got {value}"
                raise InvalidInputError(msg)
        _ = self.measures  # names are checked

    @property
    def measures(self) -> pipeline.Settings:
        """Metrics, companions, variant and backends, checked."""
        companions = _names(self.companions)
        return pipeline.Settings.of(
            metrics=_names(self.metrics),
            companions=True if companions is None and self.companions else companions or (),
            variant=self.variant,
            backends=self.backends,
        )

    @property
    def n_workers(self) -> int:
        """Processes, after the machine had its say."""
        allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return self.workers or min(allowed, MOST_WORKERS)


def _names(text: str | None) -> list[str] | None:
    """Return names with commas as a list; None for nothing and for all."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    return None if names in ([], ["all"]) else names


def run_preservation(
    settings: Settings,
    *,
    progress: Progress | None = None,
    worker: Callable[[str], dict[str, Any]] | None = None,
) -> Outcome:
    """Compare all pairs and write records, results.json, table.md and report.html.

    A run that was killed is taken up where it stood when it is started again with the same settings.

    Parameters
    ----------
    settings
        See `Settings`.
    progress
        Called after each pair.
    worker
        What answers a `preservation_worker.request` in the other processes; None for `preservation_worker.answer`.

    Returns
    -------
    Outcome
        Pairs that failed are in ``results["failures"]``.

    Raises
    ------
    UnknownNameError
        A dataset, config, split, renderer, feature or backend that does not exist.
    NoDataError, PairCountError, UnreadableFileError, InvalidInputError
        Nothing to compare, or pairs that are not clear; see `pairs` and `pair_datasets`.
    MissingBackendError
        A named backend is not installed, or an extractor that comes with the extra ``audio`` and that recordings need;
        or the report is asked for and matplotlib is not installed.
    CorruptRecordsError
        The records in `out` are damaged or belong to another run.
    OutputError
        `out` cannot be written.

    """
    if settings.report:
        plots.check_backend()
    out = Path(settings.out)
    _check_backends(settings)
    if settings.dataset is not None:
        describe_extractors(settings.measures)  # what a dataset holds becomes recordings, which may take long
    with tempfile.TemporaryDirectory(prefix="music_evals_", ignore_cleanup_errors=True) as scratch:
        pairs = _pairs(settings, Path(scratch) / "music", progress)
        if settings.overwrite:
            remove_results(out)
        controls = make_controls(pairs.pairs, seed=settings.seed) if settings.controls else []
        judging = _judging(settings, settings.features or Path(scratch) / "features", worker)
        rows = run_pairs(
            pairs,
            controls,
            out / RECORDS,
            judging,
            receipt=_receipt(settings, pairs),
            workers=settings.n_workers,
            overwrite=settings.overwrite,
            progress=progress,
        )
    found = collect(rows, PRESERVATION)
    results = build_results(
        found,
        PRESERVATION,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        seed=settings.seed,
    )
    page = functools.partial(render_report, results, found, timelines=settings.timelines)
    return write_outcome(out, results, found, page if settings.report else None)


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


def _check_backends(settings: Settings) -> None:
    """Raise for backends that are not there, before anything takes time."""
    measures = settings.measures
    receipt(measures.all_backends, features=[name for name in settings.backends if name in FEATURES])


def _receipt(settings: Settings, pairs: PairSet) -> dict[str, Any]:
    """Return what the numbers depend on, besides the files."""
    measures = settings.measures
    heard = any(pair.entrance == "audio" for pair in pairs.pairs)
    return {
        "dataset": dict(pairs.dataset),
        "variant": settings.variant,
        "metrics": list(measures.metrics),
        "companions": list(measures.companions),
        "extractors": describe_extractors(measures) if heard else {"features": {}},
        "versions": package_versions((*PACKAGES, *AUDIO_PACKAGES)),
    }


def describe_extractors(measures: pipeline.Settings) -> dict[str, Any]:
    """Return decoder, policy and extractors with their versions, for a receipt.

    An optional one of the variant's that is not installed is named: the metrics that need it fail, and the others are
    computed. One that comes with the extra ``audio`` is raised as missing: nearly everything needs it.
    """
    features: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for feature in measures.features:
        try:
            found = receipt(measures.all_backends, features=[feature], policy=measures.audio_policy)
        except MissingBackendError as error:
            if error.extra:
                raise
            features[feature] = {"missing": str(error)}
            continue
        features |= found["features"]
        told |= found
    return {**told, "features": features}


def _judging(
    settings: Settings, store: str | os.PathLike[str], worker: Callable[[str], dict[str, Any]] | None
) -> Judging:
    measures = settings.measures
    judging = Judging(
        measures.metrics,
        measures.companions,
        settings.variant,
        dict(settings.backends),
        str(Path(store).absolute()),
    )
    return judging if worker is None else dataclasses.replace(judging, worker=worker, compiles=False)
