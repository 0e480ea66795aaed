"""Harmony that an edit preserved: key, chords and pitch classes of a reference and an estimate.

Conventions
-----------
- The reference is the original recording (or score), the estimate the edited one.
- Pitch classes are 0 = C .. 11 = B, chord labels follow Harte, times are seconds: see `music_evals.annotations`.
- Undefined scores are NaN, with an `UndefinedMetricWarning` that says why.

Metrics: `circle_of_fifths_distance`, `major_minor_score`, `chroma_dtw_similarity`; beside them `same_mode`, which sees
the mode that the first folds away, and `chroma_dtw_centred`, which warps less and tells opposite from unrelated.

Variants
--------
``corrected`` is ours, ``official`` the authors' code stage by stage. The paper's text settles none of the cases below,
so ``paper`` equals ``corrected``, but for the frames of `chroma_dtw_similarity`, which the paper compares as they are
(`clear_frames` has what ``corrected`` compares since definition 2), and for the tuning, which is shared by both sides
since definition 3.

=====================  =========================================  =============================================
Case                   ``corrected``, ``paper``                   ``official``
=====================  =========================================  =============================================
no chord on both       left out of `major_minor_score`            counts as agreement
sides
nothing to compare     `major_minor_score` NaN                    0
frames compared        `clear_frames`; ``paper``: all 43 a        all, as they are
                       second, as they are
silent frames          a pitch class of their own: alike only     cost NaN; the frames are then compared one by
                       to silent frames                           one without warping, and one silent pair among
                                                                  them makes the score NaN
sides tuned apart      `metrics.tuning`; ``paper``: as the       each side in its own tuning
                       official code
=====================  =========================================  =============================================

References
----------
Vishe et al.: "MuseCPBench", harmony metrics. Official code:
github.com/Yashvishe13/Music-context-preservation-benchmark, ``cp_metrics/harmony_tonality.py`` at 9df5a46. Package:
`musecpeval` 0.3.0, github.com/Yashvishe13/MuseCPEval at 0121201.

"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import NO_CHORD, Chords, Chroma, Key
from music_evals.errors import InvalidAnnotationError, NotComparableError
from music_evals.metrics.arrays import MUSECPEVAL, PRESERVATION_VARIANTS, check_variant, cosine_of_means, undefined
from music_evals.metrics.dtw import alignment_cost, path_costs, silence_apart, warping_path
from music_evals.metrics.structure import crop_to
from music_evals.metrics.tuning import moved_label, over_readings

__all__ = [
    "chroma_dtw_centred",
    "chroma_dtw_similarity",
    "circle_of_fifths_distance",
    "clear_frames",
    "major_minor_score",
    "mean_chroma_cosine",
    "same_mode",
]

FloatArray = npt.NDArray[np.float64]

FRAMES_PER_MEAN: Final = 8
"""Frames that both chroma alignments average: 0.19 s at 43 frames a second."""

CLEAR: Final = 0.2
"""Length of a centred frame, over that of the frame, from which its pitch classes count in full."""
# On real recordings, means of 8 frames: 0.3 and more in all but a tenth of any music, 0.07 to 0.10 in white noise.

BAND: Final = 0.1
"""Share of the length by which `chroma_dtw_centred` may warp."""

MAX_FRAMES: Final = 2**14
"""Frames of the longer side above which `chroma_dtw_similarity` averages more: some 4 s of computation."""

# A chroma frame whose deviation from its mean is below this share of its norm has no pitch class that stands out.
_FLAT: Final = 1e-6
# Correlations of mean chroma closer than this are equal, and the smaller shift is taken.
_SAME: Final = 1e-9
# What the authors add to each norm.
_OFFICIAL_EPSILON: Final = 1e-8
_OFFICIAL_MAX_PAIRS: Final = 2**30


def circle_of_fifths_distance(reference: Key, estimate: Key, *, variant: str = "corrected") -> float:
    """Distance of two keys on the circle of fifths, over the largest possible one.

    Each key becomes its relative major (C major and A minor are one place); the number of fifths between the two, the
    short way round, is divided by 6. In {0, 1/6, .., 1}, lower is better, 0 for the same signature, 1 for a tritone
    apart, symmetric, unchanged where both are transposed. Between two of these where the sides are tuned apart
    (`metrics.tuning`). It cannot see a change between relative keys: `same_mode` does. Never undefined: a recording
    without a key has no `Key`.

    Parameters
    ----------
    reference, estimate
        The keys.
    variant
        One of `PRESERVATION_VARIANTS`: all but ``"corrected"`` leave each side in its own tuning.

    Returns
    -------
    float
        Distance.

    Raises
    ------
    UnknownNameError
        An unknown variant.

    Examples
    --------
    >>> circle_of_fifths_distance(Key(0, "major"), Key(9, "minor"))
    0.0
    >>> circle_of_fifths_distance(Key(0, "major"), Key(6, "major"))
    1.0
    """
    check_variant(variant, PRESERVATION_VARIANTS)
    first, second = (key.tonic + 3 * (key.mode == "minor") for key in (reference, estimate))  # the relative majors
    # a fifth is 7 semitones, and 7 * 7 = 1 modulo 12: times 7 turns semitones into steps on the circle, here -6 to 5
    return over_readings(reference, estimate, lambda up: abs((7 * (second - first + up) + 6) % 12 - 6) / 6, variant)


def same_mode(reference: Key, estimate: Key, *, variant: str = "corrected") -> float:
    """Whether both keys are major or both are minor.

    1 or 0, higher is better, symmetric. It says nothing about the tonic. Not in the paper; parameters and errors are
    those of `circle_of_fifths_distance`.
    """
    check_variant(variant)
    return float(reference.mode == estimate.mode)


def major_minor_score(reference: Chords, estimate: Chords, *, variant: str = "corrected") -> float:
    """Share of the reference's time during which the estimate has the same major or minor chord.

    The `majmin` comparison of mir_eval: root and the pitches up to the fifth must agree, so C:7 counts as C:maj.
    Stretches whose reference chord is neither major, minor nor "no chord" (dim, aug, sus, X) are left out; in the
    estimate such chords are wrong. The span of the reference counts: the estimate is cut there, and "no chord" where
    it ends early. In [0, 1], higher is better, not symmetric. Stretches where both have no chord are left out;
    undefined (NaN) where that leaves nothing.

    Parameters
    ----------
    reference, estimate
        Chords with labels in Harte syntax.
    variant
        ``"official"``: "no chord" on both sides is agreement, and 0 where nothing can be compared.

    Returns
    -------
    float
        Share of time.

    Raises
    ------
    InvalidAnnotationError
        A label that mir_eval cannot read.
    UnknownNameError
        An unknown variant.

    References
    ----------
    C. Raffel et al.: "mir_eval: a transparent implementation of common MIR metrics", ISMIR 2014; J. Pauwels and
    G. Peeters: "Evaluating automatically estimated chord sequences", ICASSP 2013.

    Examples
    --------
    >>> reference = Chords(np.array([[0.0, 2.0], [2.0, 4.0]]), ("C:maj", "A:min"))
    >>> estimate = Chords(np.array([[0.0, 3.0], [3.0, 4.0]]), ("C:maj", "A:min"))
    >>> major_minor_score(reference, estimate)
    0.75
    """
    check_variant(variant)
    if not reference.labels or (variant == "official" and not estimate.labels):
        side = "estimate" if reference.labels else "reference"
        return undefined("major_minor_score", f"the {side} has no chords")
    # the reference's span, cut at every change of either side
    start, end = reference.intervals_sec[0, 0], reference.intervals_sec[-1, 1]
    intervals, labels = crop_to(estimate.intervals_sec, estimate.labels, start, end)
    edges = np.unique(np.concatenate([reference.intervals_sec.ravel(), intervals.ravel()]))
    starts, durations = edges[:-1], np.diff(edges)
    # the interval of either side that each piece lies in, by the last start that is not after it
    places = np.searchsorted(reference.intervals_sec[:, 0], starts, side="right") - 1
    others = np.searchsorted(intervals[:, 0], starts, side="right") - 1
    covered = starts < np.append(intervals[:, 1], -np.inf)[others]  # at -1: before the first
    first = [reference.labels[i] for i in places]
    second = [labels[i] if inside else NO_CHORD for i, inside in zip(others, covered, strict=True)]
    return over_readings(reference, estimate, lambda up: _share_of_time(durations, first, second, up, variant), variant)


def _share_of_time(
    durations: FloatArray, first: Sequence[str], second: Sequence[str], moved: int, variant: str
) -> float:
    """Return the share of time that counts in which both have one major or minor chord, the second's moved up."""
    name, second = "major_minor_score", [moved_label(label, moved) for label in second]
    # 1 where the chords agree, 0 where not, -1 where the reference is outside of major, minor and none
    from mir_eval.chord import InvalidChordException, majmin

    try:
        agreement: FloatArray = majmin(first, second)
    except InvalidChordException as error:
        raise InvalidAnnotationError(
            f"a chord label is not in Harte syntax: {error}; write C:maj, A:min, N for no chord"
        ) from error
    counts = agreement >= 0
    if variant == "official":
        # their code normalises each duration, then adds up
        total = float(durations[counts].sum())
        return float(np.sum(agreement[counts] * (durations[counts] / total))) if counts.any() else 0.0
    silent = np.array([a == b == NO_CHORD for a, b in zip(first, second, strict=True)])
    counts &= ~silent
    if not counts.any():
        return undefined(name, "the reference has no major or minor chord and the estimate has none there either")
    return float(np.sum(agreement[counts] * durations[counts]) / np.sum(durations[counts]))


def chroma_dtw_similarity(reference: Chroma, estimate: Chroma, *, variant: str = "corrected") -> float:
    """Mean similarity of pitch classes along the cheapest alignment in time.

    The frames are those of `clear_frames`; cost 1 - cosine, dynamic time warping without constraint, mean of the cosine
    over the pairs of the path, at least 0. In [0, 1]; higher is better; symmetric; exactly 1 for identical frames.
    Unrelated music scores 0.2 to 0.3, and noise no more.

    A silent frame (all zero) counts as a pitch class of its own: similarity 1 to a silent frame, 0 to a sounding one.
    It costs what it should, a rest where there was none, and leaves a rest in both alone. Undefined (NaN) where the
    reference has no sounding frame; 0 where only the estimate has none.

    Parameters
    ----------
    reference, estimate
        Chroma on grids of the same hop.
    variant
        ``"paper"``: all frames as they are; unrelated music scores about 0.7 to 0.8, white noise more. ``"official"``:
        those, with the authors' cost (norms plus 1e-8, cosine of scipy) and librosa's path; a silent frame anywhere
        makes librosa refuse, and the frames are compared one by one up to the shorter length. ``"musecpeval-0.3"``: as
        ``"official"``, but a silent frame has similarity 0 to every other, and two silent recordings score 0.

    Returns
    -------
    float
        Similarity.

    Raises
    ------
    NotComparableError
        Variants of the authors only: recordings too long for them, more than 2**30 pairs of frames (13 min each).
    UnknownNameError
        An unknown variant.

    Notes
    -----
    Of several alignments with the same cost the shortest counts, which makes the mean independent of the order in
    which steps are tried; the authors take librosa's order. Time is quadratic in the length, memory linear (official:
    one byte a pair of frames). Where a side has more than 16384 frames left (paper: 6 min; else 51 min), both are first
    averaged over as few more as bring the longer one below that.

    Definition 2. In definition 1, ``paper`` now, each frame was compared as it is. Chroma is not negative, so that any
    two frames share their mean: white noise scored 0.84 against real music, unrelated music 0.75.
    """
    check_variant(variant, PRESERVATION_VARIANTS)
    if variant == "official":
        return _official_dtw(reference.frames.T, estimate.frames.T)
    if variant == MUSECPEVAL:
        return _official_dtw(*(_official_units(side.frames.T) for side in (reference, estimate)), apart=True)
    name = "chroma_dtw_similarity"
    if not reference.frames.any():
        return undefined(name, "the reference has no sounding frame")
    if not estimate.frames.any():
        return 0.0
    longest = max(reference.frames.shape[1], estimate.frames.shape[1])
    # frames of a mean: as few as bring the longer side down to MAX_FRAMES
    if variant == "paper":
        n = -(-longest // MAX_FRAMES)
        first, second = (_unit_frames(_means(chroma, n)) for chroma in (reference, estimate))
    else:
        n = FRAMES_PER_MEAN * -(-longest // (FRAMES_PER_MEAN * MAX_FRAMES))
        first, second = (clear_frames(chroma, n) for chroma in (reference, estimate))
    return over_readings(reference, estimate, lambda up: max(0.0, _moved_similarity(first, second, up)), variant)


def mean_chroma_cosine(reference: Chroma, estimate: Chroma, *, variant: str = MUSECPEVAL) -> float:
    """Cosine of the mean frames, each of length 1: which pitch classes sound, whenever they do.

    ``musecpeval-0.3`` only. In [0, 1], higher is better, symmetric; 0 where a side is silent. Most music scores high.
    Parameters and errors are those of `circle_of_fifths_distance`, of chroma.
    """
    check_variant(variant, (MUSECPEVAL,))
    return cosine_of_means(*(_official_units(side.frames.T) for side in (reference, estimate)))


def clear_frames(chroma: Chroma, n: int = FRAMES_PER_MEAN) -> FloatArray:
    """Return what `chroma_dtw_similarity` compares: which pitch classes stand out, and how clearly.

    Frames are averaged n by n. Of a mean x, c = x minus its mean over the 12 pitch classes says which stand out, and
    q = |c| / |x| how clearly. With g = min(1, q / 0.2) the result is (g c / |c|, sqrt(1 - g^2), 0): the cosine of two
    clear frames is the correlation of their pitch classes, and what has none, as noise, is unlike what has some. A
    silent mean is (0, .., 0, 1).

    Parameters
    ----------
    chroma
        Chroma.
    n
        Frames of a mean.

    Returns
    -------
    ndarray of float64, shape (n_frames / n rounded up, 14)
        Vectors of length 1.
    """
    means = _means(chroma, n)
    centred = _centred(means)
    lengths, norms = np.linalg.norm(centred, axis=1), np.linalg.norm(means, axis=1)
    silent = norms == 0
    clear = np.minimum(1.0, lengths / (CLEAR * np.where(silent, 1.0, norms)))
    # g c / |c|, which with sqrt(1 - g²) has length 1
    directions = centred * (clear / np.where(lengths == 0, 1.0, lengths))[:, None]
    frames: FloatArray = np.column_stack([directions, np.where(silent, 0.0, np.sqrt(1.0 - clear**2)), silent])
    return frames


def chroma_dtw_centred(
    reference: Chroma, estimate: Chroma, *, transposition_invariant: bool = False, variant: str = "corrected"
) -> float:
    """Mean correlation of chroma frames along the cheapest alignment in time.

    Means of 8 frames, minus their mean over the 12 pitch classes, so that cosine becomes correlation; dynamic time
    warping within 10 % of the length; mean over the path, clipped to [-1, 1]. Higher is better; symmetric; exactly 1
    for identical frames. Unrelated music scores about 0.4. Frames in which no pitch class stands out (silence, noise)
    are alike to one another and uncorrelated with the others. Undefined (NaN) where the reference has no other frame;
    0 where only the estimate has none.

    Parameters
    ----------
    reference, estimate
        Chroma on grids of the same hop.
    transposition_invariant
        True rotates the estimate by the number of semitones at which the mean chroma of both correlate best.
    variant
        Checked only: neither paper nor code has it.

    Returns
    -------
    float
        Correlation.

    Raises
    ------
    UnknownNameError
        An unknown variant.
    """
    check_variant(variant)
    name = "chroma_dtw_centred_transposed" if transposition_invariant else "chroma_dtw_centred"
    first, second = (_centred(_means(chroma, FRAMES_PER_MEAN)) for chroma in (reference, estimate))
    if not first.any():
        return undefined(name, "no pitch class stands out in any frame of the reference")
    if not second.any():
        return 0.0
    similarity = functools.partial(_moved_similarity, _unit_frames(first), _unit_frames(second), band=BAND)
    if transposition_invariant:
        value = similarity(_best_rotation(first.mean(axis=0), second.mean(axis=0)))
    else:
        value = over_readings(reference, estimate, similarity, variant)
    return float(np.clip(value, -1.0, 1.0))


def _moved_similarity(first: FloatArray, second: FloatArray, moved: int, *, band: float | None = None) -> float:
    """Return the mean cosine along the cheapest alignment of unit vectors, the second's pitch classes moved up."""
    if moved % 12:
        second = np.column_stack([np.roll(second[:, :12], moved, axis=1), second[:, 12:]])
    # half the squared distance of unit vectors is 1 - cosine
    cost, length = alignment_cost(first, second, metric="sqeuclidean", band=band)
    return 1.0 - 0.5 * cost / length


def _unit_frames(frames: FloatArray) -> FloatArray:
    """Return frames of length 1, shape (n, d + 1); those that are all zero become the last unit vector."""
    # Half the squared distance of unit vectors is 1 - cosine, and exactly 0 for equal ones.
    norms = np.linalg.norm(frames, axis=1)
    silent = norms == 0
    units: FloatArray = np.column_stack([frames / np.where(silent, 1, norms)[:, None], silent])
    return units


def _means(chroma: Chroma, n: int) -> FloatArray:
    """Return means of n frames, the last of what is left, shape (n_frames / n, 12)."""
    frames = chroma.frames.T.astype(np.float64)
    if n == 1 or not len(frames):
        return frames
    starts = np.arange(0, len(frames), n)
    sums: FloatArray = np.add.reduceat(frames, starts, axis=0)
    return sums / np.diff(np.append(starts, len(frames)))[:, None]


def _centred(frames: FloatArray) -> FloatArray:
    """Return frames with mean 0 over the pitch classes, all 0 where no pitch class stands out."""
    centred: FloatArray = frames - frames.mean(axis=1, keepdims=True)
    flat = np.linalg.norm(centred, axis=1) <= _FLAT * np.linalg.norm(frames, axis=1)
    centred[flat] = 0
    return centred


def _best_rotation(reference: FloatArray, estimate: FloatArray) -> int:
    """Return the semitones, 0 first and small ones before large, by which rolling the estimate correlates best."""
    scale = np.linalg.norm(reference) * np.linalg.norm(estimate)
    best, shift = -np.inf, 0
    for candidate in sorted(range(-5, 7), key=abs):
        product = float(np.dot(reference, np.roll(estimate, candidate)))
        # of shifts that are equal but for rounding the smallest stays
        if product > best + _SAME * scale:
            best, shift = product, candidate
    return shift


def _official_units(frames: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return frames / (np.linalg.norm(frames, axis=1, keepdims=True) + _OFFICIAL_EPSILON)  # type: ignore[no-any-return]


def _official_dtw(reference: npt.NDArray[Any], estimate: npt.NDArray[Any], *, apart: bool = False) -> float:
    """Return what the authors' DTW gives for frames of shape (n, 12); `apart` has silent frames cost 1."""
    first, second = _official_units(reference), _official_units(estimate)
    if not len(first) or not len(second):
        return 0.0
    if len(first) * len(second) > _OFFICIAL_MAX_PAIRS:
        raise NotComparableError(
            f"the official DTW of {len(first)} and {len(second)} frames needs more than 1 GB for its path; cut the "
            'recordings or use variant="corrected"'
        )
    if apart:
        first, second = silence_apart(first, second)
    if not first.any(axis=1).all() or not second.any(axis=1).all():  # a cost is NaN: librosa refuses, no warping
        n = min(len(first), len(second))
        path = np.stack([np.arange(n)] * 2, axis=1)
    else:
        path = warping_path(first, second, metric="cosine")
    score = float(np.mean(1.0 - path_costs(first, second, path, metric="cosine")))
    return undefined("chroma_dtw_similarity", "a frame is silent", stacklevel=4) if np.isnan(score) else score
