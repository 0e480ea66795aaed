"""Whether an edit did what it was asked: a measured change beside the one that was asked for.

Each kind of target has a distance that can be measured on a pair: octaves of tempo, semitones, steps between keys,
octaves of length, decibels. A `Change` holds the change that was requested and the one that was measured, in that unit;
`success` grades it, and `verdict` weighs it against the error of the extractors.

Conventions
-----------
- The reference is the original, the estimate the edited music.
- A change of 0 is the original unchanged: its success is 0 whatever was asked.
- An estimate without what is compared (a tempo, a chord, a loudness, a length, an instrument) went nowhere: its change
  is 0.
- What cannot be measured is NaN, with an `UndefinedMetricWarning` that says why.

Our own; no paper measures whether structured targets were reached. Steps on the circle of fifths are those of
`metrics.harmony.circle_of_fifths_distance`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Beats, Chords, Chroma, EditTarget, Key
from music_evals.metrics.arrays import undefined
from music_evals.metrics.harmony import circle_of_fifths_distance
from music_evals.metrics.tuning import moved_label, over_readings, shared_readings

__all__ = [
    "ANALYSED", "ERROR_BANDS", "MEANT_TO_CHANGE", "SCORE_BAND", "VERDICTS", "Change", "chords_change",
    "instrument_change", "key_change", "length_change", "loudness_change", "metre_change", "success", "tempo_change",
    "transpose_change", "verdict",
]  # fmt: skip

VERDICTS: Final = ("done", "not done", "cannot be told")
"""What `verdict` may say."""

ERROR_BANDS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "tempo": 0.05,
        "transpose": 0.5,
        "key": 1.0,
        "metre": 1.0,
        "chords": 0.55,
        "instrument_added": 0.5,
        "instrument_removed": 0.5,
        "length": 0.02,
        "loudness": 0.5,
    }
)
"""Kind of target -> by how much the change that is measured in recordings may miss the true one, in its unit: octaves,
semitones, steps between keys, 1 for another metre, share of a progression, 1 for an instrument, octaves, dB. Of the
edits on the tuning half of `benchmarks/preservation_validity/success.py` 19 in 20 lie within it (of transpositions 93
in 100 on one renderer). With the band of the metre nothing can be told: it is heard wrong too often."""

_HARMONY: Final = frozenset({"circle_of_fifths_distance", "major_minor_score", "chroma_dtw_similarity"})
_MELODY: Final = frozenset({"motif_jaccard", "motif_recall", "melody_contour_accuracy"})
_TIMES: Final = frozenset(
    {"major_minor_score", "beat_f_measure", "information_gain", "segment_ari", "boundary_f_measure", "ssm_correlation"}
    | {"voicing_recall", "melody_contour_accuracy"}
)

MEANT_TO_CHANGE: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "tempo": _TIMES | {"delta_bpm"},
        "transpose": _HARMONY,
        "key": _HARMONY | _MELODY,  # another mode has other intervals
        "metre": _TIMES | _MELODY,
        "chords": frozenset({"major_minor_score", "chroma_dtw_similarity"}),
        "instrument_added": frozenset({"timbre_similarity"}),
        "instrument_removed": frozenset({"timbre_similarity"}),
        "length": _TIMES | _MELODY | {"chroma_dtw_similarity"},
        "loudness": frozenset(),
    }
)
"""Kind of target -> the scores of preservation that fall where it is reached and all else stays: what each sees of a
recording is among what such an edit changes, as `datasets.known_edits` declares of its kinds. They say nothing of
damage. Those of no facet are not named."""

ANALYSED: Final = ("key", "chords")
"""What is analysed from the notes of scores, with the error of recordings; all else is read off them."""
SCORE_BAND: Final = 0.01
"""The error of what is read off scores: files round times."""

MODE_STEPS: Final = 1.0
"""What another mode adds to the steps between two keys: parallel keys are farther apart than relative ones."""

FloatArray = npt.NDArray[np.float64]


class Change(NamedTuple):
    """The change that was requested of one pair, and the one that is there."""

    requested: float
    """Distance from the original to the target; not 0."""
    measured: float
    """How far the edit went that way; below 0 the other way, above `requested` too far."""


def success(change: Change) -> float:
    """Share of the change that was asked for which is there: 1 - |measured - requested| / |requested|, at least 0.

    In [0, 1], higher is better; 1 for exactly what was asked, 0 for the original unchanged, for twice the change and
    for the other way. NaN where the change is.
    """
    if np.isnan(change.measured) or np.isnan(change.requested):
        return float("nan")
    return max(0.0, 1.0 - abs(change.measured - change.requested) / abs(change.requested))


def verdict(change: Change, band: float) -> str:
    """Weigh a change against the error of what measured it.

    ``"done"``: within `band` of what was asked. ``"not done"``: farther from it than that. ``"cannot be told"``:
    within `band` of both what was asked and of no change at all, or not measured.
    """
    if np.isnan(change.measured) or np.isnan(change.requested):
        return "cannot be told"
    if abs(change.measured - change.requested) > band:
        return "not done"
    return "cannot be told" if abs(change.measured) <= band else "done"


def tempo_change(reference: Beats, estimate: Beats, target: EditTarget) -> Change:
    """Change of the tempo in octaves, log2 of the ratio; no octave is forgiven.

    Undefined (NaN) where the original has no tempo, or the one that is asked for.
    """
    if np.isnan(reference.bpm):
        return _unknown("tempo_change", "the original has no tempo")
    requested = target.amount if target.unit == "x" else target.amount / reference.bpm
    return _change("tempo_change", np.log2(requested), np.nan_to_num(np.log2(estimate.bpm / reference.bpm)))


def length_change(reference_sec: float, estimate_sec: float, target: EditTarget) -> Change:
    """Change of the length in octaves, log2 of the ratio; undefined where the original has no length, or that."""
    if reference_sec <= 0:
        return _unknown("length_change", "the original has no length")
    requested = target.amount if target.unit == "x" else target.amount / reference_sec
    return _change(
        "length_change", np.log2(requested), np.log2(estimate_sec / reference_sec) if estimate_sec > 0 else 0.0
    )


def loudness_change(reference_lufs: float, estimate_lufs: float, target: EditTarget) -> Change:
    """Change of the integrated loudness (`audio.loudness`) in dB; undefined where the original has none, or that."""
    if np.isnan(reference_lufs):
        return _unknown("loudness_change", "the original has no loudness")
    requested = target.amount if target.unit == "dB" else target.amount - reference_lufs
    return _change("loudness_change", requested, np.nan_to_num(estimate_lufs - reference_lufs))


def transpose_change(reference: Chroma, estimate: Chroma, target: EditTarget) -> Change:
    """Change of the pitch in semitones: the rotation by which the mean chroma of both correlate best.

    A rotation tells semitones up to whole octaves, so that 7 up are 5 down. Undefined (NaN) for whole octaves, which
    leave the pitch classes as they are, and where no pitch class of the original stands out.
    """
    if target.amount % 12 == 0:
        return _unknown("transpose_change", "whole octaves leave the pitch classes as they are")
    means = [
        side.frames.mean(axis=1, dtype=np.float64) if side.frames.shape[1] else np.zeros(12)
        for side in (reference, estimate)
    ]
    first, second = (mean - mean.mean() for mean in means)
    if not first.any():
        return _unknown("transpose_change", "no pitch class of the original stands out")
    correlations = [float(np.roll(first, step) @ second) for step in range(12)]
    readings = shared_readings(reference.tuning, estimate.tuning)
    turned = int(np.argmax(correlations)) + sum(weight * steps for steps, weight in readings)
    requested, measured = (6 - (6 - steps) % 12 for steps in (target.amount, turned))  # -6 to 6
    missed = 6 - (6 - measured + requested) % 12
    return Change(requested, requested + missed if measured else 0.0)


def key_change(reference: Key, estimate: Key, target: EditTarget) -> Change:
    """Return the steps on the way from the key of the original to the one that is asked for.

    The distance of two keys is their steps on the circle of fifths, 0 to 6, relative keys being one place, and 1 more
    where the modes differ. What is asked for is meant in the tuning of the original. Undefined (NaN) where that is in
    the key that is asked for.
    """
    wanted = dataclasses.replace(target.key, tuning=reference.tuning)
    requested = _key_distance(wanted, reference)
    return _change("key_change", requested, requested - _key_distance(wanted, estimate))


def _key_distance(first: Key, second: Key) -> float:
    return 6 * circle_of_fifths_distance(first, second) + MODE_STEPS * (first.mode != second.mode)


def metre_change(reference_beats: float, estimate_beats: float, target: EditTarget) -> Change:
    """Return 1 where the bars of the edit have the beats that are asked for, else 0.

    Undefined (NaN) where those of the original have them too, or are not known (NaN).
    """
    if np.isnan(reference_beats):
        return _unknown("metre_change", "how many beats a bar of the original has is not known")
    requested = float(reference_beats != target.amount)
    return _change("metre_change", requested, float(estimate_beats == target.amount))


def chords_change(reference: Chords, estimate: Chords, target: EditTarget) -> Change:
    """How much nearer to a progression the chords came, of how far from it they were.

    The likeness of a row of chords to a progression is 1 less the edit distance between the row, in which repetitions
    and stretches without a chord are left out, and the progression, repeated to its length from whichever chord on is
    nearest, over that length. Undefined (NaN) where the original is that progression, or has no chord.
    """
    before = _likeness(reference.labels, target.chords, 0)
    after = over_readings(reference, estimate, lambda moved: _likeness(estimate.labels, target.chords, moved))
    if np.isnan(before):
        return _unknown("chords_change", "the original has no chord")
    return _change("chords_change", 1 - before, np.nan_to_num(after - before))


def _likeness(labels: Sequence[str], progression: Sequence[str], moved: int) -> float:
    row = [moved_label(label, moved) for label, _ in itertools.groupby(label for label in labels if ":" in label)]
    if not row:
        return float("nan")
    repeated = list(itertools.islice(itertools.cycle(progression), len(row) + len(progression)))
    distances = [_edit_distance(row, repeated[start : start + len(row)]) for start in range(len(progression))]
    return 1 - min(distances) / len(row)


def _edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the least number of insertions, deletions and replacements (Levenshtein)."""
    above = list(range(len(second) + 1))
    for i, label in enumerate(first, start=1):
        row = [i]
        for j, other in enumerate(second, start=1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (label != other)))
        above = row
    return above[-1]


def instrument_change(reference: Collection[int], estimate: Collection[int], target: EditTarget) -> Change:
    """Return 1 where an instrument came or went as was asked, else 0.

    Sides are the programs of General MIDI that play a note; an edit in which none plays reached nothing. Undefined
    (NaN) where those of the original are not known, it had the instrument that is to be added, or had not the one that
    is to be removed.
    """
    if not reference:
        return _unknown("instrument_change", "the original names no instruments")
    had, has = (any(program in target.programs for program in side) for side in (reference, estimate))
    is_wanted = target.kind == "instrument_added"
    return _change("instrument_change", float(had != is_wanted), float(bool(estimate) and has == is_wanted))


def _change(name: str, requested: float, measured: float) -> Change:
    return Change(float(requested), float(measured)) if requested else _unknown(name, "the original is as is asked for")


def _unknown(name: str, why: str) -> Change:
    undefined(name, why, stacklevel=4)
    return Change(float("nan"), float("nan"))
