"""Whether edits did what they were asked: structured targets, measured on pairs of recordings or of scores.

What `pipelines.preservation` is for what should stay, this is for what should change. Unchanged music has success 0.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from music_evals.annotations import EditTarget, Features, Score, targets_of
from music_evals.audio.io import Audio
from music_evals.audio.loudness import integrated_loudness
from music_evals.audio.metre import beats_of_a_bar
from music_evals.audio.store import FeatureStore
from music_evals.audio.tempo_levels import share_level
from music_evals.errors import InvalidInputError, MusicEvalsError, UndefinedMetricWarning, located
from music_evals.metrics import edit_success as metrics
from music_evals.metrics.edit_success import Change
from music_evals.pipelines.intervals import check_groups, check_pairs, mean_of_defined, report_means
from music_evals.pipelines.preservation_features import Settings, Source, SourceLoader, SourceValue
from music_evals.stats.intervals import check_confidence
from music_evals.symbolic.measures import meter_map

__all__ = [
    "Measured", "TargetScore", "clusters_of", "evaluate_edit_success", "features_for", "load_sides", "measured",
    "score_targets", "share_done", "success_of", "unrelated",
]  # fmt: skip

Loaded = TypeVar("Loaded")

SUCCESS: Final = "edit_success"
DONE: Final = "edit_done"
UNRELATED_EDITS: Final = 10
"""Edits of other music that each target is tried on, for chance."""

_FEATURES: Final[Mapping[str, tuple[str, ...]]] = {
    "tempo": ("beats",),
    "transpose": ("chroma",),
    "key": ("key",),
    "metre": ("beats", "chroma"),
    "chords": ("chords",),
}
"""Kind of target -> the features that it compares."""


class TargetScore(NamedTuple):
    """What became of one target."""

    success: float
    """Share of the change that is there, 0 to 1; NaN where it cannot be measured."""
    verdict: str
    """One of `metrics.edit_success.VERDICTS`."""
    change: Change
    reason: str = ""
    """Why it cannot be measured."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        about = {"success": self.success, "verdict": self.verdict}
        return about | {**self.change._asdict(), "reason": self.reason}


@dataclasses.dataclass(frozen=True)
class Measured:
    """One side of a pair, as far as its targets need it."""

    features: Features
    modality: str
    content: str
    lufs: float = float("nan")
    bar_beats: float = float("nan")
    programs: frozenset[int] = frozenset()
    unknown: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Kind of target -> why this side cannot tell of it."""

    def lacks(self, kind: str) -> str:
        """Return why this side has nothing that a kind of target compares; empty where it has."""
        missing = [self.features.undefined[name] for name in _FEATURES.get(kind, ()) if name in self.features.undefined]
        return self.unknown.get(kind, "") or next(iter(missing), "")


def features_for(targets: Iterable[EditTarget]) -> tuple[str, ...]:
    """Return the features that targets compare."""
    return tuple(sorted({name for target in targets for name in _FEATURES.get(target.kind, ())}))


def measured(value: Audio | Score, source: Source, kinds: Collection[str]) -> Measured:
    """Return what kinds of target need of a recording or score besides its features."""
    features, unknown = source.features, {}
    lufs = bar_beats = float("nan")
    programs: frozenset[int] = frozenset()
    if isinstance(value, Score):
        unknown["loudness"] = "a score has no loudness; compare recordings"
        programs = frozenset(value.programs[voice] for voice in np.unique(value.notes["voice"]) if value.programs)
        bars = meter_map(value)
        ticks: collections.Counter[int] = collections.Counter()
        for signature, length in zip(bars.signatures, bars.lengths, strict=True):
            ticks[signature.numerator] += int(length)
        # the upper number of the signature that most of the score is in
        bar_beats = float(ticks.most_common(1)[0][0]) if ticks else float("nan")
    else:
        unheard = "instruments are not heard in recordings; compare scores"
        unknown |= dict.fromkeys(("instrument_added", "instrument_removed"), unheard)
        if "metre" in kinds and features.beats is not None and features.chroma is not None:
            bar_beats = beats_of_a_bar(features.beats, features.chroma)
        if "loudness" in kinds:
            lufs = _loudness(value, unknown)
    return Measured(features, source.modality, source.content, lufs, bar_beats, programs, unknown)


def _loudness(audio: Audio, unknown: dict[str, str]) -> float:
    """Return the loudness of a recording at the level of its file, in LUFS."""
    if audio.policy.peak_normalise and audio.reload is None:
        unknown["loudness"] = "the recording was scaled when it was loaded; give its file, for the level it had"
        return float("nan")
    if audio.policy.peak_normalise and audio.reload is not None:
        audio = audio.reload(policy=dataclasses.replace(audio.policy, peak_normalise=False))
    return integrated_loudness(audio.samples, audio.sample_rate)


def score_targets(reference: Measured, estimate: Measured, targets: Sequence[EditTarget]) -> dict[str, TargetScore]:
    """Return what became of each target of one pair, by its kind."""
    scores = {}
    for target in targets:
        nowhere = Change(float("nan"), float("nan"))
        if reason := reference.lacks(target.kind) or estimate.unknown.get(target.kind, ""):
            scores[target.kind] = TargetScore(float("nan"), "cannot be told", nowhere, reason)
        elif reason := estimate.lacks(target.kind) or ("nothing sounds" if estimate.features.silent else ""):
            # what is not there has not reached anything, a silence of the right length neither
            scores[target.kind] = TargetScore(0.0, "not done", nowhere, f"estimate: {reason}")
        else:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UndefinedMetricWarning)
                change = _change(reference, estimate, target)
            undefined = (warning for warning in caught if issubclass(warning.category, UndefinedMetricWarning))
            reason = "; ".join(str(warning.message) for warning in undefined)
            is_read = reference.modality == "symbolic" and target.kind not in metrics.ANALYSED
            verdict = metrics.verdict(change, metrics.SCORE_BAND if is_read else metrics.ERROR_BANDS[target.kind])
            scores[target.kind] = TargetScore(metrics.success(change), verdict, change, reason)
    return scores


def _change(reference: Measured, estimate: Measured, target: EditTarget) -> Change:
    first, second = reference.features, estimate.features
    match target.kind:
        case "tempo":
            assert first.beats is not None
            assert second.beats is not None
            return metrics.tempo_change(*share_level(first.beats, second.beats), target)
        case "length":
            return metrics.length_change(first.duration_sec, second.duration_sec, target)
        case "loudness":
            return metrics.loudness_change(reference.lufs, estimate.lufs, target)
        case "metre":
            return metrics.metre_change(reference.bar_beats, estimate.bar_beats, target)
        case "instrument_added" | "instrument_removed":
            return metrics.instrument_change(reference.programs, estimate.programs, target)
    functions: Mapping[str, Any] = {
        "transpose": metrics.transpose_change, "key": metrics.key_change, "chords": metrics.chords_change,
    }  # fmt: skip
    [name] = _FEATURES[target.kind]
    change: Change = functions[target.kind](getattr(first, name), getattr(second, name), target)
    return change


def evaluate_edit_success(
    references: Iterable[SourceValue],
    predictions: Iterable[SourceValue],
    targets: Iterable[Mapping[str, Any] | str],
    *,
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    per_item: bool = False,
    store: FeatureStore | str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Measure how much of what was asked of edits is there.

    Parameters
    ----------
    references, predictions
        As in `evaluate_preservation`: the originals and the edited music.
    targets
        What was asked of each, as `annotations.targets_of` reads it: ``{"tempo": "1.2x", "key": "A minor"}``.
    groups
        Cluster of each pair, shape (n,); None makes the edits of one original a cluster.
    confidence
        Nominal coverage of the intervals, above 0 and below 1.
    per_item
        True adds what became of each target.
    store
        Feature store, or the folder of one. Does not change a number.

    Returns
    -------
    dict
        ``edit_success``, the mean over pairs of the mean success of their targets, 0 to 1, higher is better; 0 for the
        original unchanged. ``edit_done``, the same of the share of targets that are done, of those that can be told.
        Both with ``_ci``, ``_n``, ``_n_defined`` and ``_n_clusters``. ``edit_success_chance``: the success of edits of
        other music, up to 10 for each pair, NaN where there is one group. ``by_kind``: kind of target ->
        ``edit_success``, ``chance`` and the number of each verdict. ``per_item``: kind -> success, verdict,
        requested, measured and reason, a dict a pair.

    Raises
    ------
    PairCountError, NoDataError
        References, predictions, targets and groups differ in number, or are empty.
    InvalidInputError, UnknownNameError, UnsupportedTypeError
        Targets that are none, pairs without a target, a recording beside a score, or a source of another type.
    UnreadableFileError, FileTooLargeError, InvalidAudioError
        What is wrong with a file; names its place.
    MissingBackendError, BackendError
        An extractor needs a package that is not installed, or failed.

    Warns
    -----
    UndefinedMetricWarning
        A score is NaN because no pair defines it.
    """
    check_confidence(confidence)
    originals, edits = list(references), list(predictions)
    requests = [targets_of(values) for values in targets]
    check_pairs(originals, edits, "predictions", "a pair", "there are no pairs; give at least one")
    check_pairs(originals, requests, "targets", "a pair", "")
    for index, wanted in enumerate(requests):
        if not wanted:
            raise InvalidInputError(f"targets[{index}]: nothing was asked of this pair; leave it out")
    opened = store if store is None or isinstance(store, FeatureStore) else FeatureStore(store)
    every = tuple(itertools.chain.from_iterable(requests))
    kinds = {target.kind for target in every}
    settings = dataclasses.replace(Settings.of(metrics=[], store=opened), features=features_for(every))
    with SourceLoader(settings) as loader:
        sides = load_sides(originals, edits, lambda source: _loaded(loader, source, kinds))
    clusters = clusters_of(groups, [side.content for side in sides[0]])
    rows, others = [], []
    for index, (reference, estimate, wanted) in enumerate(zip(*sides, requests, strict=True)):
        if reference.modality != estimate.modality:
            raise InvalidInputError(f"pair {index}: a recording beside a score; compare two of a kind")
        rows.append(score_targets(reference, estimate, wanted))
        apart = [place for place in unrelated(clusters, index) if sides[1][place].modality == reference.modality]
        others.append([score_targets(reference, sides[1][place], wanted) for place in apart])
    columns = np.array([[success_of(row), share_done(row)] for row in rows])
    result = report_means([SUCCESS, DONE], columns, clusters, confidence)
    result[f"{SUCCESS}_chance"] = mean_of_defined(
        [mean_of_defined([success_of(row) for row in tried]) for tried in others]
    )
    result["by_kind"] = _by_kind(rows, others)
    if per_item:
        result["per_item"] = [
            {SUCCESS: success, DONE: done, "targets": {kind: score.to_dict() for kind, score in row.items()}}
            for row, (success, done) in zip(rows, columns.tolist(), strict=True)
        ]
    return result


def clusters_of(groups: npt.ArrayLike | None, contents: Sequence[str]) -> npt.NDArray[Any]:
    """Return the cluster of each pair: its group, or without groups what its original holds."""
    labels = check_groups(groups, len(contents))
    return np.array(contents) if labels is None else labels


def unrelated(clusters: npt.NDArray[Any], index: int) -> list[int]:
    """Return places of edits of other music than that of one place, at most `UNRELATED_EDITS`."""
    places = [(index + step) % len(clusters) for step in range(1, len(clusters))]
    return [place for place in places if clusters[place] != clusters[index]][:UNRELATED_EDITS]


def load_sides(
    references: Sequence[Any], predictions: Sequence[Any], load: Callable[[Any], Loaded]
) -> list[list[Loaded]]:
    """Return what `load` makes of the sources of both sides; one that stands in several pairs is loaded once."""
    loaded: dict[object, Loaded] = {}
    sides = []
    for name, sources in (("references", references), ("predictions", predictions)):
        keys = [os.fspath(source) if isinstance(source, str | os.PathLike) else id(source) for source in sources]
        for index, (key, source) in enumerate(zip(keys, sources, strict=True)):
            try:
                loaded[key] = loaded[key] if key in loaded else load(source)
            except MusicEvalsError as error:
                raise located(error, f"{name}[{index}]") from error
        sides.append([loaded[key] for key in keys])
    return sides


def _loaded(loader: SourceLoader, source: SourceValue, kinds: Collection[str]) -> Measured:
    value, features = loader.load_music(source)
    for failure in features.failures.values():
        raise failure
    return measured(value, features, kinds)


def success_of(row: Mapping[str, TargetScore]) -> float:
    """Return the mean success of the targets of a pair; NaN where none is measured."""
    return mean_of_defined([score.success for score in row.values()])


def share_done(row: Mapping[str, TargetScore]) -> float:
    """Return the share of the targets of a pair that are done, of those that can be told; NaN where none can."""
    verdicts = [score.verdict for score in row.values() if score.verdict != "cannot be told"]
    return verdicts.count("done") / len(verdicts) if verdicts else float("nan")


def _by_kind(
    rows: Sequence[Mapping[str, TargetScore]], others: Sequence[Sequence[Mapping[str, TargetScore]]]
) -> dict[str, dict[str, Any]]:
    """Return the scores of each kind of target, those that were asked first before the others."""
    summary = {}
    for kind in dict.fromkeys(kind for row in rows for kind in row):
        scores = [row[kind] for row in rows if kind in row]
        chance = [row[kind].success for tried in others for row in tried if kind in row]
        verdicts = collections.Counter(score.verdict for score in scores)
        counts = {name.replace(" ", "_"): verdicts[name] for name in metrics.VERDICTS}
        means = {SUCCESS: mean_of_defined([score.success for score in scores]), "chance": mean_of_defined(chance)}
        summary[kind] = means | counts
    return summary
