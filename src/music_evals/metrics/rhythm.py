"""Rhythm that an edit preserved: tempo and beats of a reference and an estimate.

Conventions
-----------
- The reference is the original recording (or score), the estimate the edited one.
- Beat times are seconds; tempi are beats a minute, as the source of the beats states them.
- Undefined scores are NaN, with an `UndefinedMetricWarning` that says why.

Metrics: `delta_bpm`, `beat_f_measure`, `information_gain`; beside them `tempo_log2` and `tempo_octave`, which tell a
change of tempo from one of metrical level, `beat_offset_sec`, by which ``align="offset"`` moves the estimate, and
`swing_ratio`, which hears what beats do not show.

Variants
--------
``corrected`` is ours, ``official`` the authors' code stage by stage. The paper's text settles none of the cases below,
so ``paper`` equals ``corrected`` throughout; pipelines count both recordings of a pair at one metrical level and, where
the evidence is equal, at one phase, for ``corrected`` alone (`audio.tempo_levels`).

========================  ==============================================  ==========================================
Case                      ``corrected``, ``paper``                        ``official``
========================  ==============================================  ==========================================
beats before 5 s          count                                           dropped on both sides first, unless
                                                                          `min_beat_time_sec` says otherwise
no beats on either side   NaN                                             0
no beats on one side      0                                               0
fewer than two beats      information gain NaN if on both sides, else 0   information gain 0
no tempo                  NaN                                             counts as 0, librosa's value for silence
========================  ==============================================  ==========================================

References
----------
Vishe et al.: "MuseCPBench", rhythm metrics. Official code:
github.com/Yashvishe13/Music-context-preservation-benchmark, ``cp_metrics/rhythm_meter.py`` at 9df5a46.
M. Davies, N. Degara, M. Plumbley: "Evaluation methods for musical audio beat tracking algorithms", report
C4DM-TR-09-06, 2009; "Measuring the performance of beat tracking algorithms using a beat error histogram", IEEE Signal
Processing Letters 18(3), 2011.

"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Beats
from music_evals.errors import UnknownNameError
from music_evals.metrics.arrays import MUSECPEVAL, OF_AUTHORS, PRESERVATION_VARIANTS, check_variant, undefined

__all__ = [
    "ALIGNMENTS",
    "beat_f_measure",
    "beat_offset_sec",
    "delta_bpm",
    "information_gain",
    "information_gain_of_chance",
    "swing_ratio",
    "tempo_log2",
    "tempo_octave",
]

FloatArray = npt.NDArray[np.float64]

ALIGNMENTS: Final = ("none", "offset")
"""Whether the beats of the estimate are moved in time, all by one offset, before they are compared."""

TOLERANCE_SEC: Final = 0.07
"""Half width of the window of a hit: Davies et al. 2009, and mir_eval's default."""

BINS: Final = 41
"""Bins of the histogram of beat errors: Davies et al. 2011, and mir_eval's default."""

OFFICIAL_MIN_BEAT_TIME_SEC: Final = 5.0
"""Where `mir_eval.beat.evaluate`, which the authors call, starts to listen."""

SWING_OCTAVES: Final = 1.5
"""The largest change of swing that is looked for: as from even notes to 2.8 : 1."""

LEAST_BEATS: Final = 9
"""Beats below which nothing is said of what lies between them."""

# Chosen on renders of the tuning half of `known_edits` and on the development recordings: places within the beat at
# which onsets are compared, less the beat itself and its echo; how much better than without a change of swing, and how
# well, they must correlate for the change to count in full.
_BETWEEN_BEATS: Final = (0.15, 0.88)
_FULL_GAIN, _FULL_CORRELATION = 0.3, 0.5
_PLACES: Final = 97

_NO_BEATS = "neither side has a beat"


def delta_bpm(reference: Beats, estimate: Beats, *, variant: str = "corrected") -> float:
    """Difference of the tempi in beats a minute, without sign.

    In [0, inf), lower is better, symmetric. No octave is forgiven: 60 against 120 is 60; `tempo_log2` and
    `tempo_octave` take that apart. Undefined (NaN) where a side has no tempo.

    Parameters
    ----------
    reference, estimate
        Beats with a tempo.
    variant
        ``"official"``: a missing tempo counts as 0. ``"musecpeval-0.3"``: the least difference to the tempo of the
        estimate, its double and its half, which is not symmetric; 0 where a side has no tempo.

    Returns
    -------
    float
        Beats a minute.

    Raises
    ------
    UnknownNameError
        An unknown variant.
    """
    check_variant(variant, PRESERVATION_VARIANTS)
    tempi = (reference.bpm, estimate.bpm)
    if variant == MUSECPEVAL:
        return 0.0 if np.isnan(tempi).any() else min(abs(tempi[0] - tempi[1] * factor) for factor in (1.0, 2.0, 0.5))
    if variant == "official":
        tempi = (0.0 if np.isnan(reference.bpm) else reference.bpm, 0.0 if np.isnan(estimate.bpm) else estimate.bpm)
    if np.isnan(tempi).any():
        return undefined("delta_bpm", _without_tempo(reference))
    return abs(tempi[0] - tempi[1])


def tempo_log2(reference: Beats, estimate: Beats, *, variant: str = "corrected") -> float:
    """Change of the tempo in octaves, the whole octaves taken away.

    log2(estimate / reference) minus the nearest whole number, in [-0.5, 0.5]: 0 is best, above 0 the estimate is
    faster. It changes its sign when the sides change places. A beat that is counted in halves or doubles leaves it
    alone: `tempo_octave` holds what was taken away. Undefined (NaN) where a side has no tempo. Not in the paper;
    parameters and errors are those of `delta_bpm`.
    """
    change = _log2_change("tempo_log2", reference, estimate, variant)
    return float(change - np.rint(change))


def tempo_octave(reference: Beats, estimate: Beats, *, variant: str = "corrected") -> float:
    """Whole octaves of tempo between reference and estimate: 1 where the estimate counts twice as many beats.

    The nearest whole number to log2(estimate / reference); 0 is best, the sign changes with the sides. Undefined (NaN)
    where a side has no tempo. Not in the paper; parameters and errors are those of `delta_bpm`.
    """
    return float(np.rint(_log2_change("tempo_octave", reference, estimate, variant))) + 0.0  # no negative zero


def _log2_change(name: str, reference: Beats, estimate: Beats, variant: str) -> float:
    check_variant(variant)
    # a difference of logarithms, not the logarithm of a ratio: exactly 0 for equal tempi, exactly odd
    change = float(np.log2(estimate.bpm) - np.log2(reference.bpm))
    return undefined(name, _without_tempo(reference), stacklevel=4) if np.isnan(change) else change


def _without_tempo(reference: Beats) -> str:
    return f"the {'reference' if np.isnan(reference.bpm) else 'estimate'} has no tempo"


def beat_f_measure(
    reference: Beats,
    estimate: Beats,
    *,
    tolerance_sec: float = TOLERANCE_SEC,
    min_beat_time_sec: float | None = None,
    end_sec: float = float("inf"),
    align: str = "none",
    variant: str = "corrected",
) -> float:
    """F-measure of the beats: hits within a tolerance, each beat in one hit at most.

    2 hits / (beats of the reference + beats of the estimate), with the largest possible number of hits. In [0, 1],
    higher is better, symmetric without alignment. 0 where one side has no beats; undefined (NaN) where neither has.

    Parameters
    ----------
    reference, estimate
        Beats.
    tolerance_sec
        Largest distance of a hit, the limit included.
    min_beat_time_sec
        Beats before it are left out on both sides. None: 0, and 5 s under the variants of the authors.
    end_sec
        Beats from there on are left out on both sides: the end of the reference, where the estimate goes on.
    align
        ``"offset"`` first takes `beat_offset_sec` away from the estimate, where that gives more hits.
    variant
        ``"official"``, ``"musecpeval-0.3"``: 0 where neither side has a beat, and the other default of
        `min_beat_time_sec`.

    Returns
    -------
    float
        F-measure.

    Raises
    ------
    UnknownNameError
        An unknown variant or alignment.

    Examples
    --------
    >>> reference = Beats(np.array([0.0, 0.5, 1.0, 1.5]))
    >>> beat_f_measure(reference, Beats(np.array([0.05, 0.55, 1.5])))  # three of four hit
    0.8571428571428571
    >>> beat_f_measure(reference, Beats(np.array([0.25, 0.75, 1.25, 1.75])), align="offset")
    1.0
    """
    span = min_beat_time_sec, end_sec
    first, second = _compared(reference.times_sec, estimate.times_sec, align, tolerance_sec, span, variant=variant)
    if not len(first) and not len(second):
        return 0.0 if variant in OF_AUTHORS else undefined("beat_f_measure", _NO_BEATS)
    return _f_measure(first, second, tolerance_sec)


def information_gain(
    reference: Beats,
    estimate: Beats,
    *,
    tolerance_sec: float = TOLERANCE_SEC,
    min_beat_time_sec: float | None = None,
    end_sec: float = float("inf"),
    align: str = "none",
    variant: str = "corrected",
) -> float:
    """How far the histogram of beat errors is from uniform: 1 where all errors fall into one bin.

    The error of a beat is its distance to the nearest beat of the other side, in shares of the interval there. With H
    the entropy in bits of their histogram over 41 bins, (log2(41) - H) / log2(41), for the direction of the two that
    has the larger H. In [0, 1], higher is better, symmetric without alignment. A constant offset of a part of a beat
    costs little, unsteadiness much. 0 where one side has fewer than two beats; undefined (NaN) where both have.

    Parameters
    ----------
    reference, estimate
        Beats.
    tolerance_sec
        Used by ``align="offset"`` only.
    min_beat_time_sec, end_sec, align, variant
        As in `beat_f_measure`.

    Returns
    -------
    float
        Information gain.

    Raises
    ------
    UnknownNameError
        An unknown variant or alignment.

    Notes
    -----
    `mir_eval.beat.information_gain`, whose treatment of a beat before the first of the other side we keep: its error is
    measured against the length of the whole track and comes out near 0.
    """
    span = min_beat_time_sec, end_sec
    first, second = _compared(reference.times_sec, estimate.times_sec, align, tolerance_sec, span, variant=variant)
    few = [len(times) < 2 for times in (first, second)]
    if all(few) and variant not in OF_AUTHORS:
        return undefined("information_gain", "neither side has two beats")
    if any(few):
        return 0.0
    from mir_eval.beat import information_gain as gain

    score = float(gain(first, second, bins=BINS))
    return score if variant in OF_AUTHORS else max(0.0, score)  # a uniform histogram may come out at -1e-16


def information_gain_of_chance(n_beats: int) -> float:
    """Return the `information_gain` that beats have on average if their errors fall anywhere.

    With n errors in K = 41 bins alike, the number in a bin is binomial, and the expectation of the entropy in bits is
    -K sum_k P(k) (k / n) log2(k / n). In [0, 1]: 0.82 for two beats, 0.54 for six, 0.10 for sixty. Below two beats NaN.
    """
    if n_beats < 2:
        return float("nan")
    from scipy.stats import binom

    counts = np.arange(1, n_beats + 1)
    entropy = -BINS * float(np.sum(binom.pmf(counts, n_beats, 1 / BINS) * counts / n_beats * np.log2(counts / n_beats)))
    return 1 - entropy / float(np.log2(BINS))


def beat_offset_sec(
    reference: Beats, estimate: Beats, *, tolerance_sec: float = TOLERANCE_SEC, variant: str = "corrected"
) -> float:
    """How much later the beats of the estimate come, at most one beat.

    Of all differences between a beat of the estimate and one of the reference, within the reference's median beat
    interval, the median of those in the window of twice the tolerance that holds most of them, or what is nearest to it
    and makes hits of them all; of equal windows the one nearest to 0. Seconds; 0 is best; exactly 0 for identical beats
    that are further apart than the window. Undefined (NaN) where the reference has fewer than two beats or no beat of
    the estimate comes so near.

    Parameters
    ----------
    reference, estimate
        Beats.
    tolerance_sec
        Half the width of the window.
    variant
        Checked only: neither paper nor code has it.

    Returns
    -------
    float
        Offset in seconds, above 0 where the estimate is late.

    Raises
    ------
    UnknownNameError
        An unknown variant.
    """
    check_variant(variant)
    offset = _offset(reference.times_sec, estimate.times_sec, tolerance_sec)
    if offset is None:
        return undefined("beat_offset_sec", "the reference has fewer than two beats, or the estimate none near them")
    return offset


def swing_ratio(reference: Beats, estimate: Beats, *, variant: str = "corrected") -> float:
    """How much more or less the estimate swings, in octaves of the ratio of the two parts of a beat.

    Even eighths divide the beat 1 : 1, swing 2 : 1: an octave. A place p within the beat has the ratio p / (1 - p), and
    swing multiplies it. With f and g how strong the onsets of the sides are at each place, on average over the beats,
    x is the change of swing, -1.5 to 1.5 octaves, for which f(p) correlates best with g at the place whose ratio is
    2^x times that of p; of equal ones the smallest. It counts in full where the correlation r(x) is at least 0.5 and
    better than without a change, r(0), by at least 0.3, and less in proportion where it is not, so that music with
    nothing between its beats is not said to swing. In [0, 1.5], lower is better, 0 for identical recordings. The beat
    is the unit: sixteenths that swing, and single notes that are moved, are hardly heard.

    Undefined (NaN) where a side has fewer than nine beats, or beats without `Beats.onsets`: other trackers keep none.

    Parameters
    ----------
    reference, estimate
        Beats with onsets.
    variant
        Checked only: neither paper nor code has it.

    Returns
    -------
    float
        Octaves, without sign.

    Raises
    ------
    UnknownNameError
        An unknown variant.

    Notes
    -----
    Onsets are compared as square roots, less their least value, so that a loud drum is not all that counts.
    """
    check_variant(variant)
    for side, beats in (("reference", reference), ("estimate", estimate)):
        if len(beats.times_sec) < LEAST_BEATS:
            return undefined("swing_ratio", f"the {side} has fewer than {LEAST_BEATS} beats")
        if not len(beats.onsets):
            return undefined("swing_ratio", f"the beats of the {side} come without onsets")
    places = np.arange(_PLACES) / (_PLACES - 1)
    inner = places[(places >= _BETWEEN_BEATS[0]) & (places <= _BETWEEN_BEATS[1])]
    changes = np.linspace(-SWING_OCTAVES, SWING_OCTAVES, 61)
    # the place of the same moment in an estimate that swings more by each change, shape (changes, places)
    ratios = np.exp2(changes)[:, None] * (inner / (1 - inner))
    profile = np.interp(ratios / (1 + ratios), places, _onset_profile(estimate, places))
    first, second = (
        values - values.mean(axis=-1, keepdims=True)
        for values in (np.interp(inner, places, _onset_profile(reference, places)), profile)
    )
    # Pearson's correlation with each row, 0 where a side does not vary
    norms = np.sqrt((first @ first) * (second**2).sum(axis=1))
    correlations = np.divide(second @ first, norms, out=np.zeros(len(norms)), where=norms > 1e-12)
    best = int(np.lexsort((np.abs(changes), -np.round(correlations, 6)))[0])
    gain = correlations[best] - correlations[len(changes) // 2]
    certainty = np.clip(gain / _FULL_GAIN, 0, 1) * np.clip(correlations[best] / _FULL_CORRELATION, 0, 1)
    return float(abs(changes[best]) * certainty)


def _onset_profile(beats: Beats, places: FloatArray) -> FloatArray:
    """Return how strong onsets are at places within the beat, 0..1, on average: square roots above the least."""
    starts, lengths = beats.times_sec[:-1, None], np.diff(beats.times_sec)[:, None]
    frames = (starts + places * lengths) * beats.onset_rate_hz
    means = np.interp(frames, np.arange(len(beats.onsets)), beats.onsets).mean(axis=0)
    profile: FloatArray = np.sqrt(means - means.min())
    return profile


def _compared(
    reference: FloatArray,
    estimate: FloatArray,
    align: str,
    tolerance_sec: float,
    span: tuple[float | None, float],
    *,
    variant: str,
) -> tuple[FloatArray, FloatArray]:
    """Return the beats of both within the span, those of the estimate moved first if that gives more hits."""
    check_variant(variant, PRESERVATION_VARIANTS)
    if align not in ALIGNMENTS:
        raise UnknownNameError("alignment", align, ALIGNMENTS)
    start, end = span
    if start is None:
        start = OFFICIAL_MIN_BEAT_TIME_SEC if variant in OF_AUTHORS else 0.0
    offset = _offset(reference, estimate, tolerance_sec) if align == "offset" else None
    sides = [reference, estimate] if offset is None else [reference, estimate, estimate - offset]
    first, second, *moved = (times[(times >= start) & (times < end)] for times in sides)
    if moved and _f_measure(first, moved[0], tolerance_sec) > _f_measure(first, second, tolerance_sec):
        return first, moved[0]
    return first, second


def _f_measure(reference: FloatArray, estimate: FloatArray, tolerance_sec: float) -> float:
    if not len(reference) or not len(estimate):
        return 0.0
    from mir_eval.beat import f_measure

    return float(f_measure(reference, estimate, f_measure_threshold=tolerance_sec))


def _offset(reference: FloatArray, estimate: FloatArray, tolerance_sec: float) -> float | None:
    if len(reference) < 2 or not len(estimate):
        return None
    beat_sec = float(np.median(np.diff(reference)))
    starts = np.searchsorted(reference, estimate - beat_sec, side="left")
    near = np.searchsorted(reference, estimate + beat_sec, side="right") - starts  # beats of the reference near each
    if not near.any():
        return None
    # all pairs of near beats in one array: the nth beat of the reference near each of the estimate
    nth = np.arange(near.sum()) - np.repeat(np.cumsum(near) - near, near)
    differences = np.sort(np.repeat(estimate, near) - reference[np.repeat(starts, near) + nth])
    # a window of twice the tolerance begins at each difference; how many it holds
    ends = np.searchsorted(differences, differences + 2 * tolerance_sec, side="right")
    counts = ends - np.arange(len(differences))
    windows = [differences[i : ends[i]] for i in np.flatnonzero(counts == counts.max())]
    # the median, or as near to it as leaves the whole window within the tolerance
    offsets = [float(np.clip(np.median(w), w[-1] - tolerance_sec, w[0] + tolerance_sec)) for w in windows]
    return min(offsets, key=abs) + 0.0  # no negative zero
