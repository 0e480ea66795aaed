"""What an edit preserved of its original: the metrics of music context preservation, in one pass over pairs.

Every evaluate module and the benchmark runner come through here, so that they give equal numbers. A pair is two
recordings, or two scores: the music before and after an edit. Each becomes `Features` (beats, key, chords ...), and the
metrics compare those.

A metric that the pair does not define is NaN with a reason; a backend that is missing or fails is an error, and never
a number.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import BandFrames, Beats, Chords, Chroma, F0Track, Features, Melody, Score
from music_evals.audio.io import SAMPLE_RATE, Audio, AudioPolicy
from music_evals.audio.spectra import HOP_LENGTH
from music_evals.audio.store import FeatureStore
from music_evals.audio.tempo_levels import share_level, share_phase
from music_evals.deprecation import module_getattr
from music_evals.errors import (
    InvalidInputError,
    MusicEvalsError,
    NotComparableError,
    UndefinedMetricWarning,
    UnknownNameError,
    UnsupportedTypeError,
    located,
)
from music_evals.metrics.arrays import MUSECPEVAL, OF_AUTHORS
from music_evals.metrics.catalogue import AUXILIARY, PRESERVATION_METRICS, metric_of
from music_evals.metrics.rhythm import information_gain_of_chance
from music_evals.pipelines.intervals import check_groups, check_pairs, report_means
from music_evals.pipelines.preservation_features import (
    FACETS,
    OFFICIAL_BACKENDS,
    OFFICIAL_POLICY,
    Settings,
    Source,
    SourceLoader,
    SourceValue,
    load_features,
    measure,
    modality,
)
from music_evals.stats.intervals import check_confidence

__all__ = [
    "AUXILIARY", "FACETS", "OFFICIAL_BACKENDS", "OFFICIAL_POLICY", "PRESERVATION_METRICS", "PairScores", "Settings",
    "Source", "SourceLoader", "Value", "compare", "evaluate_preservation", "load_features", "modality", "score_pair",
]  # fmt: skip

LENGTH_TOLERANCE: Final = 0.05  # lengths that differ by more are remarked on
SURE_SECTIONS_SEC: Final = 60.0  # on shorter music no segmenter is good; a remark says so
FEW_BEATS: Final = 30  # of fewer, those at random have an information gain above 0.2
ON_FAILURE = ("raise", "record")


class Value(NamedTuple):
    """A score of one pair."""

    value: float
    """NaN where the pair does not define it."""
    reason: str = ""
    """Why it is NaN, in words; empty where it is defined."""


class PairScores(NamedTuple):
    """All scores of one pair."""

    values: Mapping[str, Value]
    """Scores in the order of the settings, those that failed left out."""
    failures: Mapping[str, MusicEvalsError]
    """Score -> why it could not be computed: a backend that is missing or failed, or the official code cannot."""
    notes: tuple[str, ...]
    """What a reader should know of the pair, in words."""


def compare(
    reference: Features,
    estimate: Features,
    *,
    metrics: Iterable[str] | None = None,
    companions: Iterable[str] | bool = (),
    variant: str = "corrected",
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Value]:
    """Compare the features of one pair.

    Parameters
    ----------
    reference, estimate
        Features of the original and of the edited music, from `load_features`, or annotations made by hand. A feature
        may be missing only if `Features.undefined` says why.
    metrics
        Names out of `PRESERVATION_METRICS` or of the release, or facets; None for all.
    companions
        Names of auxiliary metrics, out of `AUXILIARY`; True for all of the metrics' facets.
    variant
        One of `metrics.arrays.PRESERVATION_VARIANTS`: the formula. Which extractors made the features is up to whoever
        made them.
    options
        Metric -> keyword arguments of its function in `music_evals.metrics`, such as
        ``{"beat_f_measure": {"min_beat_time_sec": 5.0}}``. Not `variant` and `end_sec`, nor what makes a metric an
        auxiliary one, such as `align` of ``beat_f_measure_aligned``.

    Returns
    -------
    dict
        Name -> `Value`. A feature that is undefined on either side makes NaN with the reason
        (``"reference: no key ..."``); what a metric makes of features that are there but empty is up to the metric: no
        beats on one side is an F measure of 0. An estimate in which nothing sounds has no beats, no chords, no melody
        and no pitch class, so that it scores as low as can be beside a reference that has some; it has no key, no tempo
        and no form, and what compares those is NaN.

    Raises
    ------
    UnknownNameError
        A metric, auxiliary metric or variant that does not exist, options of a metric that is not computed, or an
        option that it does not have.
    InvalidInputError
        A feature is neither there nor said to be undefined, or an option is out of range.
    NotComparableError
        The official code cannot compare the pair.
    """
    settings = Settings.of(metrics=metrics, companions=companions, variant=variant, options=options)
    reference, estimate, _ = _at_one_level(reference, estimate, settings)
    return {name: _value(name, reference, estimate, settings) for name in settings.scores}


def score_pair(reference: Source, estimate: Source, settings: Settings) -> PairScores:
    """Compare two loaded sources.

    Raises
    ------
    InvalidInputError
        A recording beside a score, or annotations that break their own rules.
    """
    if reference.modality != estimate.modality:
        raise InvalidInputError(
            f"the reference is {reference.modality}, the prediction {estimate.modality}; compare two "
            "recordings, or two scores"
        )
    failures: dict[str, MusicEvalsError] = {}
    for name, features in settings.compared.items():
        for feature in features:
            error = reference.failures.get(feature) or estimate.failures.get(feature)
            if error is not None:
                failures[name] = error
    values: dict[str, Value] = {}
    first, second, recounted = _at_one_level(reference.features, estimate.features, settings)
    for name in settings.scores:
        if name in failures:
            continue
        try:
            values[name] = _value(name, first, second, settings)
        except NotComparableError as error:
            failures[name] = error
    return PairScores(values, failures, (*_notes(reference, estimate, settings), *recounted))


def evaluate_preservation(
    references: Iterable[SourceValue],
    predictions: Iterable[SourceValue],
    *,
    metrics: Iterable[str] | None = None,
    companions: Iterable[str] | bool = (),
    variant: str = "corrected",
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    per_item: bool = False,
    backends: Mapping[str, str] | None = None,
    store: FeatureStore | str | os.PathLike[str] | None = None,
    policy: AudioPolicy | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    failures: str = "raise",
) -> dict[str, Any]:
    """Score edited music against its originals, all metrics in one pass.

    Parameters
    ----------
    references
        The originals: paths of audio or score files, `Audio` or `Score` values. The suffix of a path decides
        (`modality`). One that stands in several pairs is analysed once.
    predictions
        The edited music in the same order, each of the kind of its reference.
    metrics
        Names out of `PRESERVATION_METRICS`, `AUXILIARY` or `RELEASES`, or facets; None for all of the variant.
    companions
        Auxiliary metrics by name, out of `AUXILIARY`; True for all of the metrics' facets.
    variant
        ``"corrected"`` (default); ``"official"``, the formulas and extractors of the official code; ``"paper"``, the
        formulas of the text on our extractors; ``"musecpeval-0.3"``, the authors' package. Scores have no extractors:
        there the variants are formulas alone.
    groups
        Cluster of each pair for the intervals, shape (n,); None makes the edits of one original a cluster, known by
        what the files hold.
    confidence
        Nominal coverage of the intervals, above 0 and below 1.
    per_item
        True adds the scores of each pair.
    backends
        Feature -> extractor, where it is not the variant's.
    store
        Feature store, or the folder of one: nothing is extracted twice from one run to the next. Does not change a
        number.
    policy
        How recordings are decoded; None for the variant's policy.
    options
        Metric -> keyword arguments of its function, as in `compare`.
    failures
        ``"raise"``: the first source that cannot be read, or backend that is missing or fails, ends it all.
        ``"record"``: it makes NaN, and is reported in ``per_item``.

    Returns
    -------
    dict
        For each name: ``<name>``, the mean over the pairs that define it, ``<name>_ci`` (low, high), a clustered
        interval (`stats.intervals`), ``<name>_n`` pairs, ``<name>_n_defined`` of them that count, and
        ``<name>_n_clusters``, the effective number of clusters. ``per_item``: a list of one dict a pair: its scores by
        name, ``reasons`` (score -> why it is NaN), ``errors`` (score -> what failed), ``notes`` (assumptions and doubts
        in words) and ``entrance``.

    Raises
    ------
    PairCountError, NoDataError
        References, predictions and groups differ in number, or are empty.
    UnknownNameError
        A metric, auxiliary metric, variant, feature, backend, option or way with failures that does not exist.
    UnsupportedTypeError
        A source of another type.
    InvalidInputError
        A recording beside a score, or an option out of range.
    NoDataError, UnreadableFileError, FileTooLargeError, InvalidAudioError
        What is wrong with a file; names its place.
    MissingBackendError, BackendError
        A backend needs a package that is not installed, or failed. ``official`` needs several: leave out the metrics
        that need a package that you do not have.

    Warns
    -----
    UndefinedMetricWarning
        A score is NaN because no pair defines it.
    """
    check_confidence(confidence)
    if failures not in ON_FAILURE:
        raise UnknownNameError("way with failures", failures, ON_FAILURE)
    settings = Settings.of(
        metrics=metrics, companions=companions, variant=variant,
        backends=backends, store=store, policy=policy, options=options,
    )  # fmt: skip
    pairs = _pair_up(references, predictions)
    clusters = None if groups is None else check_groups(groups, len(pairs))
    rows = list(_score_pairs(settings, pairs, keep_going=failures == "record"))
    if clusters is None:
        clusters = np.array([row.cluster for row in rows])
    columns = np.array([[row.scores[name] for name in settings.scores] for row in rows])
    result = report_means(settings.scores, columns, clusters, confidence)
    if per_item:
        result["per_item"] = [row.reported() for row in rows]
    return result


class _Row(NamedTuple):
    """What is known of one pair."""

    scores: Mapping[str, float]
    reasons: Mapping[str, str]
    errors: Mapping[str, str]
    notes: tuple[str, ...]
    modality: str
    cluster: str

    def reported(self) -> dict[str, Any]:
        """Return the pair's entry in ``per_item``."""
        about = {"reasons": self.reasons, "errors": self.errors, "notes": list(self.notes), "entrance": self.modality}
        return {**self.scores, **about}


def _score_pairs(
    settings: Settings, pairs: Sequence[tuple[SourceValue, SourceValue]], *, keep_going: bool
) -> Iterator[_Row]:
    """Score pairs one after the other; a source is kept until the last pair that it stands in."""
    # what tells a source from the others of one run
    identities = [
        [f"value {id(side)}" if isinstance(side, Audio | Score) else f"file {Path(side).absolute()}" for side in pair]
        for pair in pairs
    ]
    waiting = collections.Counter(key for keys in identities for key in keys)
    loaded: dict[str, Source | MusicEvalsError] = {}
    with SourceLoader(settings) as loader:
        for index, (pair, keys) in enumerate(zip(pairs, identities, strict=True)):
            new = {key: source for key, source in zip(keys, pair, strict=True) if key not in loaded}
            loaded |= zip(new, loader.load_all(list(new.values())), strict=True)
            reference, estimate = (loaded[key] for key in keys)
            waiting.subtract(keys)
            for key in set(keys):
                if not waiting[key]:
                    del loaded[key]
            scored, place = PairScores({}, {}, ()), f"pair {index}"
            try:
                if isinstance(reference, MusicEvalsError):
                    place = f"references[{index}]"
                    raise reference
                if isinstance(estimate, MusicEvalsError):
                    place = f"predictions[{index}]"
                    raise estimate
                scored = score_pair(reference, estimate, settings)
                if scored.failures and not keep_going:
                    raise next(iter(scored.failures.values()))
                failures = scored.failures
            except MusicEvalsError as error:
                if not keep_going:
                    raise located(error, place) from error
                failures = dict.fromkeys(settings.scores, located(error, place))
            values = {name: scored.values.get(name, Value(float("nan"))) for name in settings.scores}
            yield _Row(
                {name: value.value for name, value in values.items()},
                {name: value.reason for name, value in values.items() if value.reason},
                {name: f"{type(error).__name__}: {error}" for name, error in failures.items()},
                scored.notes,
                modality(pair[0]),
                # what a file holds that cannot be read is not known
                keys[0] if isinstance(reference, MusicEvalsError) else reference.content,
            )


def _pair_up(
    references: Iterable[SourceValue], predictions: Iterable[SourceValue]
) -> list[tuple[SourceValue, SourceValue]]:
    sides = {"references": references, "predictions": predictions}
    for name, side in sides.items():
        if isinstance(side, str | bytes | os.PathLike | Mapping | Audio | Score):
            raise UnsupportedTypeError(
                f"{name} must be a list of sources, got {type(side).__name__}; put a single one into a list"
            )
    first, second = list(references), list(predictions)
    nothing = "there are no pairs to score; give at least one reference and its prediction"
    check_pairs(first, second, "predictions", "a pair", nothing)
    for name, side in {"references": first, "predictions": second}.items():
        for index, source in enumerate(side):
            try:
                modality(source)
            except UnsupportedTypeError as error:
                raise located(error, f"{name}[{index}]") from error
    return list(zip(first, second, strict=True))


def _at_one_level(
    reference: Features, estimate: Features, settings: Settings
) -> tuple[Features, Features, tuple[str, ...]]:
    """Return features with the beats of both sides at one level and phase, if `corrected`, and remarks on it."""
    if settings.variant != "corrected" or reference.beats is None or estimate.beats is None:
        return reference, estimate, ()
    notes = []
    old = reference.beats, estimate.beats
    at_level = share_level(*old)
    new = share_phase(*at_level)
    for side, before, after in zip(("reference", "prediction"), old, at_level, strict=True):
        if after is not before:
            notes.append(
                f"{side}: beats counted at {after.bpm:.0f} a minute, not {before.bpm:.0f}: the onsets of both "
                "recordings say by how much one is faster, and the tempi that were found contradict them"
            )
    for side, before, after in zip(("reference", "prediction"), at_level, new, strict=True):
        if after is not before:
            notes.append(f"{side}: beats counted where those of the other side are: the evidence for both is equal")
    first, second = dataclasses.replace(reference, beats=new[0]), dataclasses.replace(estimate, beats=new[1])
    return first, second, tuple(notes)


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "beats": Beats(np.zeros(0)),
        "chords": Chords(np.zeros((0, 2)), ()),
        "chroma": Chroma(np.zeros((12, 1), np.float32), HOP_LENGTH / SAMPLE_RATE),
        "contour": Chroma(np.zeros((12, 1), np.float32), 0.1),
        "f0": F0Track(np.zeros(1), np.zeros(1)),
        "melody": Melody(np.zeros((0, 2)), np.zeros(0)),
        "bands": BandFrames(np.zeros((192, 0)), 0.1),
    }
)
"""Features of silent music. It has no key, no sections and no form."""

_FILLED: Final = {("estimate", "corrected"), ("estimate", "paper"), ("estimate", MUSECPEVAL), ("reference", MUSECPEVAL)}


def _value(name: str, reference: Features, estimate: Features, settings: Settings) -> Value:
    compared = []
    for feature in settings.compared[name]:
        for side, features in (("reference", reference), ("estimate", estimate)):
            annotation = getattr(features, feature)
            if (side, settings.variant) in _FILLED and features.silent and annotation is None:
                annotation = _NOTHING.get(feature)  # a system that falls silent does not leave the mean
            if annotation is None and feature in features.undefined:
                return Value(float("nan"), f"{side}: {features.undefined[feature]}")
            if annotation is None:
                raise InvalidInputError(
                    f"{name} needs {feature}, which the {side} lacks; load it, or say in `undefined` why it has none"
                )
            compared.append(annotation)
    function, arguments = measure(name, settings.variant, reference.duration_sec)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndefinedMetricWarning)
        value = float(function(*compared, **{**arguments, **settings.options.get(name, {})}))
    reasons = [str(reported.message) for reported in caught if issubclass(reported.category, UndefinedMetricWarning)]
    for reported in caught:
        if not issubclass(reported.category, UndefinedMetricWarning):
            warnings.warn_explicit(reported.message, reported.category, reported.filename, reported.lineno)
    if not np.isnan(value):
        return Value(value)
    return Value(value, "; ".join(reason.partition(" is undefined: ")[2] or reason for reason in reasons))


def _notes(reference: Source, estimate: Source, settings: Settings) -> tuple[str, ...]:
    both = [note for note in reference.notes if note in estimate.notes]
    notes = [f"both: {note}" for note in both]
    for side, source in (("reference", reference), ("prediction", estimate)):
        notes += [f"{side}: {note}" for note in source.notes if note not in both]
    if estimate.features.silent and not reference.features.silent and settings.variant not in OF_AUTHORS:
        notes.append("prediction: nothing sounds, which counts as the lowest score wherever the reference has content")
    first, second = reference.features.duration_sec, estimate.features.duration_sec
    if abs(first - second) > LENGTH_TOLERANCE * max(first, second):
        notes.append(
            f"lengths differ by more than {LENGTH_TOLERANCE:.0%}: {first:.1f} s and {second:.1f} s; beats, chords, "
            "sections and voicing are judged on the span of the reference, key, tempo, chroma and motifs as a whole"
        )
    beats = [side.features.beats for side in (reference, estimate)]
    n_beats = max(0 if side is None else len(side.times_sec) for side in beats)
    if "information_gain" in settings.scores and 2 <= n_beats < FEW_BEATS:
        chance = information_gain_of_chance(n_beats)
        notes.append(f"{n_beats} beats: at random they would have an information gain of about {chance:.2f}")
    sections = any(metric_of(name).facet == "structure" for name in settings.scores)
    if sections and min(first, second) < SURE_SECTIONS_SEC:
        notes.append(f"shorter than {SURE_SECTIONS_SEC:g} s: sections are uncertain")
    return tuple(notes)


if not TYPE_CHECKING:
    __getattr__ = module_getattr(
        __name__, {"COMPANIONS": "AUXILIARY", "Judgement": "PairScores", "entrance": "modality", "judge": "score_pair"}
    )
