"""The benchmark of score inpainting from end to end: settings in, result files out.

tasks -> systems -> runner -> records -> aggregate -> results, report. What is judged, and by whom, is settled before
anything runs, so that a wrong name costs no time.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from music_evals.annotations import Tokens
from music_evals.benchmark.canvas import check_backend
from music_evals.benchmark.outputs import RECORDS, VALIDATION, Outcome, remove_results, write_outcome
from music_evals.benchmark.records import remove_records
from music_evals.benchmark.results import build_results
from music_evals.benchmark.run import Progress, record
from music_evals.benchmark.run import Settings as RunSettings
from music_evals.benchmark.scores import ScoreTable, read_scores
from music_evals.benchmark.sources import split_names
from music_evals.benchmark.tables import markdown_report
from music_evals.benchmark.tasks.inpainting.items import TRAIN_CONFIGS, ItemSet, load_items
from music_evals.benchmark.tasks.inpainting.prediction_cache import PredictionCache
from music_evals.benchmark.tasks.inpainting.predictions import load_pairs, load_predictions
from music_evals.benchmark.tasks.inpainting.report import render_report
from music_evals.benchmark.tasks.inpainting.results import INPAINTING, OFFICIAL
from music_evals.benchmark.tasks.inpainting.runner import InpaintingJob, extension_names
from music_evals.benchmark.tasks.inpainting.systems import System, baseline_names, baseline_system, load_model
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.files import Store
from music_evals.metrics.arrays import check_variant
from music_evals.protocols import CONTROL
from music_evals.symbolic.contexts import Measures, check_measures

__all__ = ["PROTOCOLS", "Outcome", "Settings", "run_inpainting"]

PROTOCOLS = (OFFICIAL,)
"""Published conditions that can be asked for by name."""

OFFICIAL_CONFIG = "musib_official"
CARDS = "model_card*.md"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    """Data, systems and options of a run.

    Parameters
    ----------
    out, dataset, config, split, revision, limit, engine, workers, ray_address, confidence, n_resamples, seed,
    overwrite, report
        See `run.Settings` and `load.load_items`. With a limit the best baselines are chosen on the whole validation
        split all the same. The report needs matplotlib.
    pairs
        Folder or manifest of score files in place of a dataset; see `predictions.load_pairs`.
    voice, highest
        Of pairs with several voices or chords: the voice that is judged, by its name or its number from 1, as a text;
        or the highest notes, of this voice or of all but drums. See `symbolic.contexts.pick_voice`.
    measures
        Of pairs: ``"notated"`` (None) refuses files whose bars do not all last four quarters, as in 3/4; ``"fixed"``
        counts four quarters from their start, wherever the bar lines are. See `symbolic.items.read_tokens`.
    predictions
        Path or URL of JSON lines of predictions for the dataset; see `predictions.load_predictions`.
    allow_missing
        True takes predictions or pairs for part of the items: an item without a prediction is a failure, which is
        listed, scores 0 at note F1 and position, and ranks its system below all that were scored on more items. It has
        no other score, and there its system is not said to be better than the best baseline. Else it is refused.
    models
        Names, folders or Hub ids, with ``:DECODING`` after them where it is to be one's own; see `systems.load_model`.
    decoding, temperature
        Passed to the models.
    cache
        Folder that keeps what models answer, for other runs too; machines may share it. Changes no number.
    baselines
        ``"all"``, ``"none"`` or names with commas, the control ``"best_lag"`` among them; the reference control always
        runs.
    n_seeds
        Seeds 0..n-1 for systems that use randomness.
    extensions
        Scores to add: ``"all"``, ``"none"`` or names with commas out of `INPAINTING_EXTENSIONS`. The divergence of
        intervals and the rate of repeated notes always stand beside note F1.
    variant
        Variant of the metrics; None is ``"corrected"``, or what the protocol asks for.
    protocol
        One of `PROTOCOLS`, or None.

    Raises
    ------
    InvalidInputError
        Settings that contradict each other, or a number out of range.
    UnknownNameError
        A variant, a protocol or a way to lay measures that does not exist.

    """

    pairs: str | os.PathLike[str] | None = None
    voice: str | None = None
    highest: bool = False
    measures: Measures | None = None
    predictions: str | os.PathLike[str] | None = None
    allow_missing: bool = False
    models: Sequence[str | os.PathLike[str]] = ()
    decoding: str | None = None
    temperature: float | None = None
    cache: str | os.PathLike[str] | None = None
    baselines: str = "all"
    n_seeds: int = 5
    extensions: str = "none"
    variant: str | None = None
    protocol: str | None = None

    BOUNDS: ClassVar = {**RunSettings.BOUNDS, "n_seeds": (1, 1000)}

    def __post_init__(self) -> None:
        self._one_of("dataset", "pairs")
        self._goes_with("dataset", "predictions", "limit")  # pairs hold their predictions, and are named one by one
        self._goes_with("predictions" if self.pairs is None else "pairs", "allow_missing")
        self._goes_with("pairs", "voice", "highest", "measures")
        self._goes_with("models", "decoding", "temperature", "cache")
        self._local("pairs")
        self._local("cache")
        super().__post_init__()
        extension_names(self.extensions)
        if self.variant is not None:
            check_variant(self.variant)
        if self.measures is not None:
            check_measures(self.measures)
        if self.protocol not in {None, *PROTOCOLS}:
            raise UnknownNameError("protocol", str(self.protocol), PROTOCOLS)
        if self.protocol == OFFICIAL and (
            self.pairs is not None or self.config not in {None, OFFICIAL_CONFIG} or self.variant not in {None, OFFICIAL}
        ):
            raise InvalidInputError(
                f"`protocol` {OFFICIAL} judges a dataset's config {OFFICIAL_CONFIG} with variant {OFFICIAL}; leave out "
                "what differs, or leave out `protocol`"
            )

    @property
    def scored_config(self) -> str | None:
        """The config that the protocol asks for."""
        return OFFICIAL_CONFIG if self.protocol == OFFICIAL else self.config

    @property
    def scored_variant(self) -> str:
        """The variant that the protocol asks for."""
        return self.variant or (OFFICIAL if self.protocol == OFFICIAL else "corrected")


def run_inpainting(settings: Settings, *, progress: Progress | None = None) -> Outcome:
    """Judge the systems and write records, results.json, table.md and report.html."""
    # A run that was killed is taken up where it stood when it is started again with the same settings.
    if settings.report:
        check_backend()
    items, systems = _judged(settings)
    # everything else is read from the same commit as what is judged
    settings = dataclasses.replace(settings, revision=items.revision)
    baselines, notes = _baselines(settings)
    validation_items = _validation_items(settings, baselines)
    systems = [*systems, *baselines, baseline_system(CONTROL, None)]
    out = Path(settings.out)
    if settings.overwrite:
        remove_results(out, *(path.name for path in out.glob(CARDS)))
        remove_records(out / VALIDATION)

    cache = None if settings.cache is None else PredictionCache(Store(Path(settings.cache).absolute()))
    if cache is not None:
        cache.store.try_out()

    def scored(items: ItemSet, systems: Sequence[System], name: str) -> ScoreTable:
        options = {option: getattr(settings, option) for option in ("limit", "decoding", "temperature")}
        fixed = settings.measures if settings.measures == "fixed" else None
        taken = {"voice": settings.voice, "highest": settings.highest, "measures": fixed}
        options |= {option: value for option, value in taken.items() if value}  # older records do not have them
        seeds = range(settings.n_seeds)
        extensions = extension_names(settings.extensions)
        job = InpaintingJob(
            items, systems, settings.scored_variant, seeds, settings.protocol, options, cache, extensions
        )
        return read_scores(record(job, out / name, settings, progress=progress), INPAINTING)

    score_table = scored(items, systems, RECORDS)
    validation = None
    if validation_items is not None:
        competing = [system for system in baselines if system.role == "baseline"]
        validation = scored(validation_items, [*competing, systems[-1]], VALIDATION)
    results = build_results(
        score_table,
        INPAINTING,
        validation,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        seed=settings.seed,
    )
    return write_outcome(
        out,
        results,
        score_table,
        table=markdown_report(results),
        page=functools.partial(render_report, results, score_table) if settings.report else None,
        notes=notes,
    )


def _judged(settings: Settings) -> tuple[ItemSet, list[System]]:
    """Return the items and the systems that are no baselines."""
    models = [
        load_model(name, decoding=settings.decoding, temperature=settings.temperature) for name in settings.models
    ]
    if settings.pairs is not None:
        items, predicted = load_pairs(
            settings.pairs,
            allow_missing=settings.allow_missing,
            voice=settings.voice,
            highest=settings.highest,
            measures=settings.measures or "notated",
        )
        return items, [predicted, *models]
    whole = load_items(str(settings.dataset), settings.scored_config, settings.split, revision=settings.revision)
    items = whole.head(settings.limit)
    if settings.predictions is None:
        return items, models
    predicted_by = load_predictions(
        settings.predictions, items, known=whole.item_ids, allow_missing=settings.allow_missing
    )
    return items, [*predicted_by, *models]


def _baselines(settings: Settings) -> tuple[list[System], list[str]]:
    """Return the baselines, and a note where some of ``"all"`` cannot be fitted."""
    names = baseline_names(settings.baselines)
    train = _train_contexts(settings) if names else None
    systems, left_out = [], []
    for name in names:
        try:
            systems.append(baseline_system(name, train))
        except NoDataError:
            if settings.baselines != "all":
                raise
            left_out.append(name)
    notes = [f"no train split to fit on: baselines left out: {', '.join(left_out)}"] if left_out else []
    return systems, notes


def _train_contexts(settings: Settings) -> Tokens | None:
    if settings.dataset is None:
        return None
    config = TRAIN_CONFIGS.get(settings.scored_config or "", settings.scored_config)
    if "train" not in split_names(settings.dataset, config, revision=settings.revision):
        return None
    return load_items(settings.dataset, config, "train", revision=settings.revision).contexts


def _validation_items(settings: Settings, baselines: Sequence[System]) -> ItemSet | None:
    """Return what the best baselines are chosen on, or None where there is no such split."""
    if settings.dataset is None or all(system.role == "control" for system in baselines):
        return None
    if "validation" not in split_names(settings.dataset, settings.scored_config, revision=settings.revision):
        return None
    return load_items(settings.dataset, settings.scored_config, "validation", revision=settings.revision)
