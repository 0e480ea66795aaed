"""The benchmark of score inpainting from end to end: settings in, result files out.

Every system with a prediction is tested against the best baseline of each score, which is chosen on the validation
split; note F1 ranks. `inpainting_nll` is not compared between models: what it counts differs from model to model.

Note F1 rewards monotone output: the commonest pitch at every beat finds many notes. The divergence of melodic intervals
and the rate of repeated notes see it, and stand beside note F1 in every table.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.benchmark.formats import check_backend
from music_evals.benchmark.inputs import split_names
from music_evals.benchmark.published import published_section
from music_evals.benchmark.records import remove_records
from music_evals.benchmark.results import WHOLE
from music_evals.benchmark.run import (
    RECORDS,
    VALIDATION,
    WORKERS,
    ExtraOutputs,
    Outcome,
    Progress,
    record,
    remove_results,
)
from music_evals.benchmark.run import Settings as RunSettings
from music_evals.benchmark.score_table import HistogramFeature, ScoreTable
from music_evals.benchmark.task import Task
from music_evals.benchmark.tasks.inpainting.items import TRAIN_CONFIGS, ItemSet, load_items
from music_evals.benchmark.tasks.inpainting.predictions import load_pairs, load_predictions
from music_evals.benchmark.tasks.inpainting.report import render_report
from music_evals.benchmark.tasks.inpainting.runner import (
    COMPANION,
    EXTENSIONS,
    HEADINGS,
    INTERVALS,
    NLL,
    RANKING,
    InpaintingJob,
    extension_names,
)
from music_evals.benchmark.tasks.inpainting.systems import System, baseline_system, chosen_names, load_model
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.files import Store
from music_evals.metrics.arrays import check_variant
from music_evals.metrics.catalogue import metric_of
from music_evals.metrics.melodic_intervals import INTERVAL_BINS, interval_bins
from music_evals.options import option
from music_evals.pipelines.inpainting import FEATURES
from music_evals.protocols import BASELINES, CONTROL, CONTROLS, NEAR_COPY
from music_evals.symbolic.contexts import Measures, check_measures

__all__ = ["FLOOR", "HEADINGS", "INPAINTING", "OFFICIAL", "PROTOCOLS", "SUBSETS", "Inpainting", "Outcome", "Settings"]

OFFICIAL = "official"
PROTOCOLS = (OFFICIAL,)
"""Published conditions that can be asked for by name."""

PUBLISHED_ON = "jsb_chorales"
"""The data set of the published table: its name, the last part of its folder or of its Hub id."""

SUBSETS = {WHOLE: "all windows", "unseen": "windows whose middle does not occur in the training split"}

MONOTONE = (
    "Note F1 rewards monotone output, such as the commonest pitch at every beat: read it beside the divergence of "
    "melodic intervals, and the rate of repeated notes beside that of the reference."
)
NEAR, REPEATS = "near copies of training", "repeats in context"

SPLITS: Final[Mapping[str, tuple[Callable[[Any], bool], str, str]]] = {
    "seen_in_train": (bool, "", "unseen"),
    "near_train": (lambda value: value >= NEAR_COPY, NEAR, "no near copies"),
    "repeats_in_context": (lambda value: value >= NEAR_COPY, REPEATS, "does not repeat"),
}
"""Column of the items -> what divides them in two parts, and the names of both; no name, no part."""

MOST_VOICES = 8
"""Where a data set has more voices, there is no part for each: they are names of instruments or files."""

FLOOR = (
    "The noise floor is what a divergence is on average when reference and prediction are swapped at random, song by "
    "song; about half of pure noise lies above it."
)

OFFICIAL_CONFIG = "musib_official"
CARDS = "model_card*.md"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    """Data, systems and options of a run; the options of the verb ``inpainting`` by their keywords.

    The report needs matplotlib.

    Parameters
    ----------
    dataset, config, split, revision, limit
        See `items.load_items`. With a limit the best baselines are chosen on the whole validation split all the same.
    pairs
        In place of a dataset; see `predictions.load_pairs`.
    voice, highest, measures
        Of pairs; see `symbolic.contexts.pick_voice` and `symbolic.encodings.items.read_tokens`.
    predictions
        For the dataset; see `predictions.load_predictions`.
    allow_missing
        True takes predictions or pairs for part of the items: an item without a prediction is a failure, which is
        listed, scores 0 at note F1 and position, and ranks its system below all that were scored on more items. It has
        no other score, and there its system is not said to be better than the best baseline. Else it is refused.
    models, decoding, temperature
        See `systems.load_model`.
    cache
        Machines may share it. Changes no number.
    baselines
        The control ``"best_lag"`` is among them; the reference control always runs.
    n_seeds
        Seeds 0..n-1 for systems that use randomness.
    variant
        None is ``"corrected"``, or what the protocol asks for.

    Raises
    ------
    InvalidInputError
        Settings that contradict each other, or a number out of range.
    UnknownNameError
        A variant, a protocol or a way to lay measures that does not exist.
    """

    pairs: str | os.PathLike[str] | None = option(
        None, "folder or manifest (CSV, JSONL) of reference and prediction files", group="data", metavar="PATH"
    )
    voice: str | None = option(
        None, "of --pairs: name or number of the voice, where several have notes", group="data", metavar="NAME"
    )
    highest: bool = option(
        False,
        "of --pairs: score the highest notes, of the --voice or of all but drums, where several sound at once",
        group="data",
    )
    measures: Measures | None = option(
        None,
        "of --pairs: as on the page, where files in another meter than 4/4 fail by name (the default), or four "
        "quarters each from the start, wherever the bar lines are",
        group="data",
        choices=("notated", "fixed"),
    )
    predictions: str | os.PathLike[str] | None = option(
        None, 'JSON lines {"item_id": ..., "middle": [96 tokens]}, or their URL', group="who", metavar="FILE"
    )
    allow_missing: bool = option(
        False,
        "take --predictions or --pairs for part of the items; the others count as failed: they are listed, score 0 at "
        "note F1 and position, and rank the system below all that were scored on more",
        group="who",
    )
    models: Sequence[str | os.PathLike[str]] = option(
        (),
        "a name (see list), a folder or a Hub id[@revision], and :DECODING after it to evaluate one that is not its "
        "default; may be given again",
        flag="--model",
        group="who",
    )
    decoding: str | None = option(
        None,
        "decoding of the models; one that reads the true middle is labelled as leaking",
        group="who",
        label="How notes are chosen",
    )
    temperature: float | None = option(None, "temperature of the models", group="who")
    cache: str | os.PathLike[str] | None = option(
        None, "keep what models answer here, for other runs and machines too", group="who", metavar="DIR"
    )
    baselines: str = option("all", "all, none, or names with commas (default: %(default)s)", group="who")
    n_seeds: int = option(5, "seeds (default: %(default)s)", flag="--seeds", group="who")
    extensions: str = option(
        "none",
        "further scores, consonance_pitch_accuracy and self_replication_rate: all, none, or names with commas "
        "(default: %(default)s; interval divergence and repeated notes are always shown)",
        metavar="NAMES",
    )
    variant: str | None = option(None, "corrected (default), official or paper")
    protocol: str | None = option(None, "official: the published conditions, beside the published table")

    GROUPS: ClassVar = {
        "data": "the data (one of --dataset and --pairs)", "who": "what is evaluated", "how": "how", "run": "how",
        "output": "where it goes",
    }  # fmt: skip
    TEXTS: ClassVar = {
        "dataset": "a name (see list), a folder or a Hub id",
        "limit": "evaluate the first N items only; best baselines are still chosen on all of validation",
        "workers": WORKERS.format("number of cores, at most 4, for networks on many items, else 1"),
        "seed": None,  # the seeds of --seeds
        "report": None,  # its own options, as a page with figures
    }

    BOUNDS: ClassVar = {**RunSettings.BOUNDS, "n_seeds": (1, 1000)}
    ONE_OF = ("dataset", "pairs")
    GO_WITH: ClassVar = {
        "dataset": ("config", "revision", "predictions", "limit"),  # pairs hold predictions, and are named one by one
        "pairs": ("voice", "highest", "measures"),
        "models": ("decoding", "temperature", "cache"),
    }
    PATHS = ("out", "pairs", "cache")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.allow_missing and not self.pairs and not self.predictions:
            raise InvalidInputError("`allow_missing` goes with `predictions`; give that too, or leave it out")
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


class Inpainting(Task):
    """Middles of melodies filled in by models and by rules, against the best rule for each score."""

    name = "inpainting"
    settings = Settings
    title = "Score inpainting"
    scales: ClassVar = {  # grouped as the tables group them
        name: dataclasses.replace(
            metric_of(name), facet="likelihood" if name == NLL else "divergences" if name in FEATURES else "notes"
        )
        for name in HEADINGS
    }
    controls = CONTROLS
    controls_explained = (
        "reference: the true middle. best_lag: of the stretches of its own context the one that has the best note F1 "
        "with the true middle, so that no copy can do better."
    )
    explained = f"{MONOTONE} {FLOOR}"
    items, groups = "windows", "songs"
    divergences = FEATURES
    histogram_features: ClassVar = {INTERVALS: HistogramFeature(interval_bins, INTERVAL_BINS)}
    on_request = (COMPANION, *EXTENSIONS)
    without_prediction = (NLL,)
    ranked_by = RANKING
    view_titles = SUBSETS

    def run(self, settings: Settings, *, progress: Progress | None = None) -> Outcome:
        """Judge the systems and write records, results.json, table.md and report.html."""
        if settings.report:
            check_backend()
        items, systems = _judged(settings)
        # everything else is read from the same commit as what is judged
        settings = dataclasses.replace(settings, revision=items.revision)
        baselines, notes = _baselines(settings)
        competing = [system for system in baselines if system.role == "baseline"]
        validation_items = _split(settings, settings.scored_config, "validation") if competing else None
        systems = [*systems, *baselines, baseline_system(CONTROL, None)]
        out = Path(settings.out)
        if settings.overwrite:
            remove_results(out, *(path.name for path in out.glob(CARDS)))
            remove_records(out / VALIDATION)
        cache = None if settings.cache is None else Store(Path(settings.cache).absolute())
        if cache is not None:
            cache.try_out()
        options = {name: getattr(settings, name) for name in ("limit", "decoding", "temperature")}
        fixed = settings.measures if settings.measures == "fixed" else None
        taken = {"voice": settings.voice, "highest": settings.highest, "measures": fixed}
        options |= {name: value for name, value in taken.items() if value}  # older records do not have them
        seeds, extensions = range(settings.n_seeds), extension_names(settings.extensions)
        job = InpaintingJob(
            items, systems, settings.scored_variant, seeds, settings.protocol, options, cache, extensions
        )
        rows, validation = record(job, out / RECORDS, settings, progress=progress), None
        if validation_items is not None:
            job = dataclasses.replace(job, judged=validation_items, systems=[*competing, systems[-1]])
            validation = record(job, out / VALIDATION, settings, progress=progress)
        return self.write(rows, settings, render_report, validation=validation, extra=ExtraOutputs(notes=notes))

    def check_scores(self, scores: ScoreTable) -> None:
        """Raise for tokens of another number or size: they would be drawn."""
        for row in scores.records.of("item", "prediction"):
            if row["kind"] == "prediction":
                np.array(row["middle"], dtype=np.uint8).reshape(MUSIB_LAYOUT.middle_steps)
            elif "error" not in row:
                np.array(row["tokens"], dtype=np.uint8).reshape(MUSIB_LAYOUT.n_steps)

    def missing_scores(self, header: Mapping[str, Any]) -> dict[str, float]:
        """Return what an empty prediction scores where it is defined: at the official accuracies, but not at ours."""
        accuracies = ("pitch_accuracy", "rhythm_accuracy") if header["variant"] == OFFICIAL else ()
        return dict.fromkeys((RANKING, "position_score", *accuracies), 0.0)

    def describe_run(self, header: Mapping[str, Any]) -> str:
        """Name the variant and the protocol."""
        protocol = f", protocol {header['protocol']}" if header.get("protocol") else ""
        return f"variant {header['variant']}{protocol}"

    def published_scores(self, header: Mapping[str, Any]) -> dict[str, Any]:
        """Return table 3 of MUSIB where the run is under its conditions and on its data; nothing elsewhere."""
        if header.get("protocol") == OFFICIAL and Path(header["dataset"]["id"]).name == PUBLISHED_ON:
            return published_section()
        return super().published_scores(header)

    def views(self, scores: ScoreTable) -> dict[str, set[str]]:
        """Return all windows, and those whose middle was not seen in training where that is known and not all were."""
        in_train = {item: row["seen_in_train"] for item, row in scores.item_rows.items()}
        views = {WHOLE: set(in_train)}
        if None not in in_train.values() and not all(in_train.values()):
            views["unseen"] = {item for item, known in in_train.items() if not known}
        return views

    def parts(self, scores: ScoreTable) -> dict[str, set[str]]:
        """Return the windows of each part that gets the score that ranks; none where nothing divides them."""
        columns = (*SPLITS, "voice")
        # records of before a column was known do not have it
        known = {item: [row.get(column) for column in columns] for item, row in scores.item_rows.items()}
        by_column = {column: {item: row[n] for item, row in known.items()} for n, column in enumerate(columns)}
        whole = {column: values for column, values in by_column.items() if None not in values.values()}
        parts: dict[str, set[str]] = {}
        for column, (divides, with_it, without) in SPLITS.items():
            values = whole.get(column, {})
            held = {item for item, value in values.items() if divides(value)}
            if 0 < len(held) < len(values):
                parts |= {with_it: held, without: values.keys() - held}
        voices = whole.get("voice", {})
        names = list(dict.fromkeys(voices.values()))
        if 1 < len(names) <= MOST_VOICES:
            parts |= {f"voice {name}": {item for item, voice in voices.items() if voice == name} for name in names}
        parts.pop("", None)
        return {WHOLE: set(known), **parts} if parts else {}

    def caveats(self, results: Mapping[str, Any]) -> Sequence[str]:  # noqa: ARG002
        """Return nothing: table.md and the report have them."""
        return ()

    def part_notes(self, parts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        """Yield the share of near copies: such windows can be answered from memory."""
        if NEAR in parts:
            near, n = parts[NEAR]["n_items"], parts[WHOLE]["n_items"]
            yield (
                f"{near} of {n} windows ({near / n:.0%}) are near copies of a training passage, up to transposition: "
                "the report and table.md have note F1 with and without them"
            )


INPAINTING: Final = Inpainting()
"""The task."""


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
    # the reference control is none of them, it always runs
    known = [name for name in BASELINES if name != CONTROL]
    names = chosen_names(settings.baselines, known, "baseline")
    config = TRAIN_CONFIGS.get(settings.scored_config or "", settings.scored_config)
    train = _split(settings, config, "train") if names else None
    systems, left_out = [], []
    for name in names:
        try:
            systems.append(baseline_system(name, None if train is None else train.contexts))
        except NoDataError:
            if settings.baselines != "all":
                raise
            left_out.append(name)
    notes = [f"no train split to fit on: baselines left out: {', '.join(left_out)}"] if left_out else []
    return systems, notes


def _split(settings: Settings, config: str | None, split: str) -> ItemSet | None:
    """Return another split of the dataset, or None where there is none."""
    if settings.dataset is None or split not in split_names(settings.dataset, config, revision=settings.revision):
        return None
    return load_items(settings.dataset, config, split, revision=settings.revision)
