"""Melody that an edit preserved: voicing, pitch and motifs of a reference and an estimate.

Conventions
-----------
- The reference is the original recording (or score), the estimate the edited one.
- A frequency above 0 Hz is a voiced frame; 0 and below is unvoiced, a negative one with its absolute value as a guess
  of the pitch, which the pitch accuracies read.
- Frames are compared on the time grid of the reference: the estimate's pitch is interpolated linearly in cents, its
  voicing holds until the next frame, and outside of its span it is unvoiced.
- Undefined scores are NaN, with an `UndefinedMetricWarning` that says why.

Metrics: `voicing_recall`, `motif_jaccard`, `motif_recall`; beside them `voicing_false_alarm`, `raw_pitch_accuracy`,
`raw_chroma_accuracy`, `overall_accuracy`, without which voicing recall says little: it is blind to pitch, and about
0.9 for melodies that have nothing to do with one another. `melody_contour_accuracy` follows a melody through a
transposition and a change of tempo, `interval_lcs` through notes that were left out or put in.

Variants
--------
``corrected`` is ours, ``official`` the authors' code stage by stage. The paper calls voicing recall "how often the
melody is correctly predicted" while it defines voicing only, and motifs "melodic interval patterns". ``paper`` takes
these by the letter, every interval as it is; ``corrected`` takes them modulo the octave and skips notes that are struck
again, and is the same otherwise.

========================  ========================================  ================================================
Case                      ``corrected``; ``paper`` where it says    ``official``
========================  ========================================  ================================================
different frames          the estimate is put on the reference's    `NotComparableError` unless equally many
no voiced frame in the    NaN                                       recall 1, pitch accuracies 0
reference
no unvoiced frame there   false alarm NaN                           0
pitch tolerance           50 cents                                  50 Hz: their code passes Hz where cents belong
motifs                    multisets of 3 intervals between notes,   sets of 3 steps between frames of 1/20 s,
                          1 to 11 semitones upwards; ``paper``: as  silence being a pitch of 1e-8 Hz
                          they are, repetitions 0
motifs of input           `Melody`                                  `F0Track`
no motif in the           recall NaN; Jaccard NaN if the estimate   0
reference                 has none either, else 0
identical motifs          1                                         0.99999..: sizes plus 1e-8
========================  ========================================  ================================================

``musecpeval-0.3``: sets of intervals between pitch classes that are the strongest for two frames or more; the recall is
1 where neither side has a motif, 0 where only the estimate has.

References
----------
Vishe et al.: "MuseCPBench", melody metrics. Official code:
github.com/Yashvishe13/Music-context-preservation-benchmark, ``cp_metrics/melody_motifs.py`` at 9df5a46.
J. Salamon, E. Gómez, D. Ellis, G. Richard: "Melody extraction from polyphonic music signals", IEEE Signal Processing
Magazine 31(2), 2014 (the measures of frames).
M. Mongeau, D. Sankoff: "Comparison of musical sequences", Computers and the Humanities 24, 1990 (melodies compared in
their order, note by note, whatever their key).
H. Hyyrö: "Bit-parallel LCS-length computation revisited", AWOCA 2004.

"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Chroma, F0Track, Melody
from music_evals.errors import NotComparableError, UnsupportedTypeError
from music_evals.metrics.arrays import MUSECPEVAL, check_variant, undefined
from music_evals.metrics.dtw import path_costs, silence_apart, warping_path
from music_evals.metrics.motifs import OFFICIAL_EPSILON, chroma_patterns, frame_patterns, intervals, note_patterns

__all__ = [
    "contour_dtw_similarity",
    "interval_lcs",
    "melody_contour_accuracy",
    "motif_jaccard",
    "motif_recall",
    "overall_accuracy",
    "raw_chroma_accuracy",
    "raw_pitch_accuracy",
    "voicing_false_alarm",
    "voicing_recall",
]

FloatArray = npt.NDArray[np.float64]
Tune = Melody | F0Track | Chroma  # of which motifs are made: by `corrected` and `paper`, `official`, `musecpeval-0.3`

TOLERANCE_CENTS: Final = 50.0
"""Half a semitone: Salamon et al. 2014, and mir_eval's default."""

# Times of the same frame in two recordings may differ by rounding.
_ROUNDING_SEC: Final = 1e-6

# Differences of pitch that are equal but for rounding.
_ROUNDING_CENTS: Final = 1e-6

_UNVOICED = "the reference has no voiced frame"


class _Grid(NamedTuple):
    """Voicing (0 or 1) and pitch (cents; Hz under ``official``) of both sides, frame by frame of the reference."""

    voiced: FloatArray
    pitch: FloatArray
    estimate_voiced: FloatArray
    estimate_pitch: FloatArray


def voicing_recall(reference: F0Track, estimate: F0Track, *, variant: str = "corrected") -> float:
    """Share of the reference's voiced frames that are voiced in the estimate.

    In [0, 1], higher is better, not symmetric. No pitch is compared: read it beside `voicing_false_alarm` and
    `raw_pitch_accuracy`. 0 where only the estimate has no voiced frame, undefined (NaN) where the reference has none.

    Parameters
    ----------
    reference, estimate
        Frequencies in Hz over time.
    variant
        ``"official"``: frame by frame without regard to times, 1 where the reference has no voiced frame.

    Returns
    -------
    float
        Share of frames.

    Raises
    ------
    NotComparableError
        ``official`` only: tracks of different length, at which the authors' code fails.
    UnknownNameError
        An unknown variant.

    Examples
    --------
    >>> times_sec = np.arange(4) * 0.01
    >>> reference = F0Track(times_sec, np.array([0.0, 440.0, 440.0, 440.0]))
    >>> voicing_recall(reference, F0Track(times_sec, np.array([220.0, 220.0, 220.0, 0.0])))
    0.6666666666666666
    """
    grid = _grid("voicing_recall", reference, estimate, variant)
    if grid is None:
        return undefined("voicing_recall", _UNVOICED)
    from mir_eval.melody import voicing_recall as recall

    return float(recall(grid.voiced, grid.estimate_voiced))


def voicing_false_alarm(reference: F0Track, estimate: F0Track, *, variant: str = "corrected") -> float:
    """Share of the reference's unvoiced frames that are voiced in the estimate.

    In [0, 1], lower is better, not symmetric. Undefined (NaN) where the reference has no unvoiced frame, or no voiced
    one. Parameters and errors are those of `voicing_recall`.
    """
    grid = _grid("voicing_false_alarm", reference, estimate, variant)
    if grid is None:
        return undefined("voicing_false_alarm", _UNVOICED)
    if variant != "official" and grid.voiced.all():
        return undefined("voicing_false_alarm", "the reference has no unvoiced frame")
    from mir_eval.melody import voicing_false_alarm as false_alarm

    return float(false_alarm(grid.voiced, grid.estimate_voiced))


def raw_pitch_accuracy(reference: F0Track, estimate: F0Track, *, variant: str = "corrected") -> float:
    """Share of the reference's voiced frames whose pitch the estimate has within 50 cents, voiced there or not.

    In [0, 1], higher is better, not symmetric. Undefined (NaN) where the reference has no voiced frame. Parameters and
    errors are those of `voicing_recall`; ``official`` compares within 50 Hz.
    """
    from mir_eval.melody import raw_pitch_accuracy as accuracy

    return _pitch_metric("raw_pitch_accuracy", accuracy, reference, estimate, variant)


def raw_chroma_accuracy(reference: F0Track, estimate: F0Track, *, variant: str = "corrected") -> float:
    """Like `raw_pitch_accuracy`, with octaves ignored; never below it."""
    from mir_eval.melody import raw_chroma_accuracy as accuracy

    return _pitch_metric("raw_chroma_accuracy", accuracy, reference, estimate, variant)


def overall_accuracy(reference: F0Track, estimate: F0Track, *, variant: str = "corrected") -> float:
    """Share of all frames that are right: unvoiced in both, or voiced in both with the same pitch within 50 cents.

    In [0, 1], higher is better, not symmetric. Undefined (NaN) where the reference has no voiced frame. Parameters and
    errors are those of `voicing_recall`; ``official`` compares within 50 Hz.
    """
    from mir_eval.melody import overall_accuracy as accuracy

    return _pitch_metric("overall_accuracy", accuracy, reference, estimate, variant)


def _pitch_metric(
    name: str, accuracy: Callable[..., Any], reference: F0Track, estimate: F0Track, variant: str
) -> float:
    grid = _grid(name, reference, estimate, variant)
    if grid is None:
        return undefined(name, _UNVOICED, stacklevel=4)
    with warnings.catch_warnings():
        # mir_eval warns where a side has no voiced frame; the value that it then returns is the one we state
        warnings.filterwarnings("ignore", module="mir_eval")
        return float(accuracy(*grid, cent_tolerance=TOLERANCE_CENTS))


def _grid(name: str, reference: F0Track, estimate: F0Track, variant: str) -> _Grid | None:
    """Return both sides frame by frame, or None where the reference has no voiced frame to be found again."""
    check_variant(variant)
    if variant == "official":
        n, m = len(reference.times_sec), len(estimate.times_sec)
        if n != m:
            raise NotComparableError(
                f"{name}: the official code cannot compare tracks of {n} and {m} frames (mir_eval stops with a "
                'ValueError); cut the recordings to one length or use variant="corrected"'
            )
        # theirs hands over Hz where mir_eval expects cents
        sides = [
            (side.voiced.astype(np.float64), np.maximum(side.frequencies_hz, 0.0)) for side in (reference, estimate)
        ]
        return _Grid(*sides[0], *sides[1])
    if not reference.voiced.any():
        return None
    if not len(estimate.times_sec):
        nothing = np.zeros(len(reference.times_sec))
        estimate = F0Track(reference.times_sec, nothing)
    from mir_eval.melody import to_cent_voicing

    # An unvoiced frame one hop before and after, where the grid reaches beyond: without them mir_eval would hold the
    # first and the last frame up to the ends of the grid.
    grid_sec, times_sec, frequencies_hz = reference.times_sec, estimate.times_sec, estimate.frequencies_hz
    hops_sec = np.diff(times_sec if len(times_sec) > 1 else grid_sec)
    hop_sec = float(np.median(hops_sec)) if len(hops_sec) else 1.0
    if len(times_sec) == 1 or grid_sec[-1] > times_sec[-1] + _ROUNDING_SEC:
        times_sec, frequencies_hz = np.append(times_sec, times_sec[-1] + hop_sec), np.append(frequencies_hz, 0.0)
    if grid_sec[0] <= times_sec[0] - hop_sec:
        times_sec = np.insert(times_sec, 0, times_sec[0] - hop_sec)
        frequencies_hz = np.insert(frequencies_hz, 0, 0.0)
    return _Grid(*to_cent_voicing(grid_sec, reference.frequencies_hz, times_sec, frequencies_hz))


def melody_contour_accuracy(reference: F0Track, estimate: F0Track, *, variant: str = "corrected") -> float:
    """Share of the reference's voiced frames whose pitch class the estimate has, after a transposition and a stretch.

    Frames of the reference are looked up in the estimate, at the nearest frame, under two linear maps of time: second
    by second, and end to end, by the ratio of the lengths of both tracks. Under each map the differences of pitch,
    octaves folded away, are counted within the window of 100 cents that holds most of them: that is the best
    transposition, of any size. The better map counts. Voicing is not scored: a frame of the estimate that is unvoiced
    counts by its guess, if it has one.

    In [0, 1], higher is better, not symmetric; exactly 1 for a melody against itself, transposed, or slowed down by a
    whole number. At any other steady tempo from twice as fast on, a frame at the end of a note may fall on its
    neighbour, one a note at most (scores of 0.98 and more for notes of 0.45 s). 0 where the estimate has no pitch,
    undefined (NaN) where the reference has no voiced frame. Not in the paper.

    Parameters
    ----------
    reference, estimate
        Frequencies in Hz over time.
    variant
        Checked only: neither paper nor code has it.

    Returns
    -------
    float
        Share of frames.

    Raises
    ------
    UnknownNameError
        An unknown variant.

    Examples
    --------
    >>> reference = F0Track(np.arange(4) * 0.1, np.array([220.0, 220.0, 330.0, 0.0]))
    >>> estimate = F0Track(np.arange(8) * 0.1, np.repeat([440.0, 440.0, 660.0, 0.0], 2))  # twice as slow
    >>> melody_contour_accuracy(reference, estimate)
    1.0
    """
    check_variant(variant)
    if not reference.voiced.any():
        return undefined("melody_contour_accuracy", _UNVOICED)
    if not len(estimate.times_sec):
        return 0.0
    times_sec, pitches = reference.times_sec[reference.voiced], reference.frequencies_hz[reference.voiced]
    stretch = _length_sec(estimate) / _length_sec(reference)
    # a frame is the nearest between the middles of the gaps on its two sides; beyond the track there is no pitch
    middles = (estimate.times_sec[1:] + estimate.times_sec[:-1]) / 2
    most = 0
    for there_sec in (times_sec, times_sec * stretch):
        nearest = np.searchsorted(middles, there_sec + _ROUNDING_SEC, side="right")
        guesses = np.abs(estimate.frequencies_hz[nearest])
        most = max(most, _agreeing(pitches, np.where(there_sec < _length_sec(estimate), guesses, 0.0)))
    return most / len(pitches)


def _length_sec(track: F0Track) -> float:
    """Return the end of the last frame."""
    times_sec = track.times_sec
    hop_sec = float(np.median(np.diff(times_sec))) if len(times_sec) > 1 else 1.0
    return float(times_sec[-1]) + hop_sec


def _agreeing(reference_hz: FloatArray, estimate_hz: FloatArray) -> int:
    """Return how many pairs share their difference of pitch class with the most others, within 50 cents."""
    pitched = estimate_hz > 0
    if not pitched.any():
        return 0
    cents = np.sort(1200 * np.log2(estimate_hz[pitched] / reference_hz[pitched]) % 1200)
    circle = np.concatenate([cents, cents + 1200])  # a window may reach over the octave
    # a window of 100 cents begins at each difference; the fullest is the best transposition
    ends = np.searchsorted(circle, cents + 2 * TOLERANCE_CENTS + _ROUNDING_CENTS, side="right")
    return int(np.max(ends - np.arange(len(cents))))


def interval_lcs(reference: Melody, estimate: Melody, *, variant: str = "corrected") -> float:
    """Share of the melodic intervals that reference and estimate have in common in the same order.

    With L the length of the longest common subsequence of both rows of intervals between consecutive notes, in whole
    semitones, 2 L / (n_R + n_E). Unlike motifs it needs no unbroken rows of right notes, and unlike them it sees a new
    order. In [0, 1], higher is better, symmetric; 1 for equal rows only; unchanged by transposition, tempo and note
    lengths. 0 where one side has fewer than two notes; undefined (NaN) where both have. Not in the paper.

    Parameters
    ----------
    reference, estimate
        Notes.
    variant
        Checked only: neither paper nor code has it.

    Returns
    -------
    float
        Share of intervals.

    Raises
    ------
    UnknownNameError
        An unknown variant.

    Examples
    --------
    >>> intervals_sec = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [3.0, 4.0]])
    >>> reference = Melody(intervals_sec, np.array([60.0, 62.0, 64.0, 65.0]))  # 2 2 1
    >>> interval_lcs(reference, Melody(intervals_sec, np.array([67.0, 69.0, 70.0, 67.0])))  # 2 1 -3
    0.6666666666666666
    """
    check_variant(variant)
    first, second = (intervals(melody) for melody in (reference, estimate))
    if not first and not second:
        return undefined("interval_lcs", "neither side has two notes")
    # the longest common subsequence by Hyyrö's rows of bits: a whole number is a row
    places: dict[int, int] = {}
    for place, value in enumerate(first):
        places[value] = places.get(value, 0) | 1 << place
    whole = (1 << len(first)) - 1
    row = whole  # a 0 where the length grows by one
    for value in second:
        # Hyyrö: V <- (V + (V & M)) | (V & ~M), with M the places of the value
        met = row & places.get(value, 0)
        row = (row + met | row - met) & whole
    return 2 * (len(first) - row.bit_count()) / (len(first) + len(second))


def motif_jaccard(
    reference: Melody | F0Track, estimate: Melody | F0Track, *, n: int = 3, variant: str = "corrected"
) -> float:
    """Share of melodic motifs that reference and estimate have in common.

    A motif is a row of n intervals between consecutive notes, in semitones modulo the octave (1..11, upwards); a note
    that is struck again, in whatever octave, is the same note. It takes n + 1 notes. With c how often each occurs,
    J = sum(min(c_R, c_E)) / sum(max(c_R, c_E)). In [0, 1], higher is better, symmetric; unchanged by transposition,
    tempo, note lengths, and the octave of any note. 0 where one side has no motif; undefined (NaN) where neither has.

    Definition 3. Up to definition 2 intervals were taken as they are, repetitions too, as ``paper`` does still: on
    recordings whether a note is struck again and in which octave it sounds is what an extractor gets wrong first.

    Parameters
    ----------
    reference, estimate
        Notes; under ``official`` frequencies over time.
    n
        Intervals of a motif, at least 1.
    variant
        ``"paper"``: intervals as they are; ``"official"``: sets of steps between frames; see the top of this module.

    Returns
    -------
    float
        Jaccard index.

    Raises
    ------
    UnsupportedTypeError
        A melody under ``official``, or frequencies otherwise.
    UnknownNameError
        An unknown variant.

    Examples
    --------
    >>> intervals_sec = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [3.0, 4.0], [4.0, 5.0]])
    >>> reference = Melody(intervals_sec, np.array([60.0, 62.0, 64.0, 65.0, 67.0]))  # 2 2 1, 2 1 2
    >>> estimate = Melody(intervals_sec, np.array([67.0, 69.0, 71.0, 72.0, 71.0]))  # 2 2 1, 2 1 11
    >>> motif_jaccard(reference, estimate)
    0.3333333333333333
    """
    counts = _motif_counts(reference, estimate, n, variant)
    if variant == "official":
        return counts.shared / (counts.either + OFFICIAL_EPSILON) if counts.reference else 0.0
    return counts.shared / counts.either if counts.either else undefined("motif_jaccard", "neither side has a motif")


def motif_recall(reference: Tune, estimate: Tune, *, n: int = 3, variant: str = "corrected") -> float:
    """Share of the reference's melodic motifs that the estimate has.

    sum(min(c_R, c_E)) / sum(c_R) over the motifs of `motif_jaccard`. In [0, 1], higher is better, not symmetric, never
    below the Jaccard index. 0 where only the estimate has no motif; undefined (NaN) where the reference has none.
    Parameters and errors are those of `motif_jaccard`; ``"musecpeval-0.3"`` takes chroma.
    """
    if variant == MUSECPEVAL:
        a, b = chroma_patterns(reference, n), chroma_patterns(estimate, n)
        return len(a & b) / len(a) if a else float(not b)
    counts = _motif_counts(reference, estimate, n, variant)
    if variant == "official":
        return counts.shared / (counts.reference + OFFICIAL_EPSILON)
    if not counts.reference:
        return undefined("motif_recall", f"the reference has no motif, which takes {n + 1} different notes in a row")
    return counts.shared / counts.reference


class _MotifCounts(NamedTuple):
    shared: int
    either: int
    reference: int


def _motif_counts(reference: object, estimate: object, n: int, variant: str) -> _MotifCounts:
    check_variant(variant)
    if variant == "official":
        if isinstance(reference, F0Track) and isinstance(estimate, F0Track):
            a, b = frame_patterns(reference, n), frame_patterns(estimate, n)
            return _MotifCounts(len(a & b), len(a | b), len(a))
        raise UnsupportedTypeError("official motifs are made of F0Track, not of notes; give the f0 of both sides")
    if isinstance(reference, Melody) and isinstance(estimate, Melody):
        c, d = (note_patterns(side, n, folded=variant == "corrected") for side in (reference, estimate))
        # multisets: & takes the smaller of two counts, | the larger
        return _MotifCounts((c & d).total(), (c | d).total(), c.total())
    raise UnsupportedTypeError('motifs are made of Melody, notes; for the F0Track of both sides use variant="official"')


def contour_dtw_similarity(reference: Chroma, estimate: Chroma, *, variant: str = MUSECPEVAL) -> float:
    """Mean similarity of the changes from frame to frame along the cheapest alignment in time; ``musecpeval-0.3`` only.

    Cosine of the differences of frames, dynamic time warping, mean of 1 - cost over the path, clipped to [0, 1]; of the
    12 rotations of the estimate the best. A frame without a change is unlike any other (cost 1). Higher is better,
    unchanged by transposition. 0 where a side has fewer than 4 frames. Errors are those of `motif_recall`.
    """
    check_variant(variant, (MUSECPEVAL,))
    first, second = (np.diff(side.frames, axis=1).T for side in (reference, estimate))
    if min(len(first), len(second)) < 3:
        return 0.0
    return max(_contour_similarity(first, np.roll(second, shift, axis=1)) for shift in range(12))


def _contour_similarity(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> float:
    first, second = silence_apart(second, first)  # exchanged: of equal steps the package takes (1, 0) before (0, 1)
    path = warping_path(first, second, metric="cosine")
    costs = path_costs(first, second, path, metric="cosine")
    # summed in the order of the path, as accumulated costs are
    return float(np.clip(1.0 - np.cumsum(costs)[-1] / len(path), 0.0, 1.0))
