"""Form that an edit preserved: sections and self-similarity of a reference and an estimate.

Conventions
-----------
- The reference is the original recording (or score), the estimate the edited one.
- Sections follow one another from 0 s on; sections of one label are repetitions. Upper and lower case are different
  labels.
- The span of the reference counts: what the estimate has after it is left out.
- Undefined scores are NaN, with an `UndefinedMetricWarning` that says why.

Metrics: `segment_ari`, `boundary_f_measure`; beside them `ssm_correlation`, which needs no segmentation.

Variants
--------
``corrected`` is ours, ``official`` the authors' code stage by stage. The paper leaves window, trimming and shift open
and gives 0..1 as the range of an index that goes from -1 to 1; ``paper`` equals ``corrected``.

====================  ===============================================  ============================================
Case                  ``corrected``, ``paper``                         ``official``
====================  ===============================================  ============================================
shift in time         none                                             the estimate is first moved by the first of
                                                                       -2.00, -1.98, .., 2.00 s that gives the best
                                                                       boundary F-measure, and both are cut to
                                                                       where they overlap
no inner boundary     `boundary_f_measure` NaN                         0
on either side
spans differ after    does not arise                                   `segment_ari` missing: NaN. It is missing
that                                                                   after every shift above 0
====================  ===============================================  ============================================

Identical sections thus score an index below 1 under ``official``: with sections of 10 s the first best shift is -0.5 s.
``musecpeval-0.3`` takes the median of the best shifts, and both sides start where they overlap.

References
----------
Vishe et al.: "MuseCPBench", structure metrics. Official code:
github.com/Yashvishe13/Music-context-preservation-benchmark, ``cp_metrics/structural_form.py`` at 9df5a46.
L. Hubert, P. Arabie: "Comparing partitions", Journal of Classification 2, 1985. D. Turnbull et al.: "A supervised
approach for detecting boundaries in music", ISMIR 2007 (windows of 0.5 and 3 s).

"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Segments, StructureFrames
from music_evals.metrics.arrays import MUSECPEVAL, PRESERVATION_VARIANTS, check_variant, undefined
from music_evals.numerics import one_thread

__all__ = ["boundary_f_measure", "segment_ari", "segment_pairwise_f", "ssm_correlation"]

FloatArray = npt.NDArray[np.float64]

FRAME_SEC: Final = 0.1
"""Frames on which labels are compared: mir_eval's default."""

WINDOW_SEC: Final = 0.5
"""Tolerance of a boundary: Turnbull et al. 2007; 3 s is the other customary one."""

OFFICIAL_SHIFTS_SEC: Final = (-2.0, 2.0 + 1e-12, 0.02)
"""Start, stop and step of `numpy.arange` over the shifts that the authors try."""

SMOOTH_SEC: Final = 1.0
MIN_LAG_SEC: Final = 2.0

# The label of what a shorter estimate leaves open, and of nothing else: ours are numbers.
_MISSING = "missing"
# Rows of the self-similarity matrix that are made at once.
_ROWS: Final = 256
# Similarities that differ by no more than rounding.
_EQUAL: Final = 1e-9
# Shorter pieces of an interval are dropped by the authors when they cut.
_OFFICIAL_MIN_SEC: Final = 1e-10


def segment_ari(reference: Segments, estimate: Segments, *, variant: str = "corrected") -> float:
    """Agreement on which moments belong to the same section: the adjusted Rand index of frames of 0.1 s.

    In [-1, 1] (in practice hardly below 0), 0 is chance, higher is better, names of labels do not matter. Symmetric
    where both sides are equally long. 1 where both have a single label, 0 where one side has. Where the estimate ends
    before the reference, the rest is a section of its own. 0 where the estimate has no sections, undefined (NaN) where
    the reference has none or is shorter than one frame.

    Parameters
    ----------
    reference, estimate
        Sections with labels.
    variant
        ``"official"``, ``"musecpeval-0.3"``: the index after the shift that suits the boundaries best; see the top of
        this module.

    Returns
    -------
    float
        Adjusted Rand index.

    Raises
    ------
    UnknownNameError
        An unknown variant.

    Examples
    --------
    >>> reference = Segments(np.array([[0.0, 10.0], [10.0, 20.0], [20.0, 30.0]]), ("A", "B", "A"))
    >>> segment_ari(reference, Segments(reference.intervals_sec, ("verse", "chorus", "verse")))
    1.0
    >>> segment_ari(reference, Segments(np.array([[0.0, 30.0]]), ("A",)))
    0.0
    """
    check_variant(variant, PRESERVATION_VARIANTS)
    name = "segment_ari"
    if variant == "official":
        return _official_ari(reference, estimate, name)
    if variant == MUSECPEVAL:
        return _release_score("ari", reference, estimate, name)
    if not reference.labels or reference.intervals_sec[-1, 1] < FRAME_SEC:
        return undefined(name, "the reference has no sections of at least one frame")
    if not estimate.labels:
        return 0.0
    from mir_eval.segment import ari

    end = float(reference.intervals_sec[-1, 1])
    intervals, labels = crop_to(estimate.intervals_sec, _numbered(estimate.labels), 0.0, end)
    if intervals[-1, 1] < end:
        intervals, labels = np.vstack([intervals, [intervals[-1, 1], end]]), [*labels, _MISSING]
    return float(ari(reference.intervals_sec, _numbered(reference.labels), intervals, labels, frame_size=FRAME_SEC))


def _numbered(labels: tuple[str, ...]) -> list[str]:
    """Return labels that stay apart where mir_eval compares without case."""
    numbers = {label: str(i) for i, label in enumerate(dict.fromkeys(labels))}
    return [numbers[label] for label in labels]


def segment_pairwise_f(reference: Segments, estimate: Segments, *, variant: str = MUSECPEVAL) -> float:
    """F-measure of the pairs of moments that lie in sections of one label (Levy, Sandler 2008).

    ``musecpeval-0.3`` only. In [0, 1], higher is better; shift, parameters and errors are those of `segment_ari`.
    """
    check_variant(variant, (MUSECPEVAL,))
    return _release_score("pairwise", reference, estimate, "segment_pairwise_f")


def boundary_f_measure(
    reference: Segments, estimate: Segments, *, window_sec: float = WINDOW_SEC, variant: str = "corrected"
) -> float:
    """F-measure of the boundaries between sections, start and end left aside.

    2 hits / (boundaries of the reference + boundaries of the estimate), hits within the window, each boundary in one
    hit at most. In [0, 1], higher is better, symmetric where both sides are equally long. Boundaries of the estimate at
    or after the end of the reference do not count. 0 where one side has no inner boundary; undefined (NaN) where
    neither has.

    Parameters
    ----------
    reference, estimate
        Sections.
    window_sec
        Largest distance of a hit, the limit included.
    variant
        ``"official"``: the best value over shifts of the estimate of -2 to 2 s; 0 where there is no boundary.

    Returns
    -------
    float
        F-measure.

    Raises
    ------
    UnknownNameError
        An unknown variant.

    Examples
    --------
    >>> reference = Segments(np.array([[0.0, 10.0], [10.0, 20.0], [20.0, 30.0]]), ("A", "B", "A"))
    >>> boundary_f_measure(reference, Segments(np.array([[0.0, 10.4], [10.4, 30.0]]), ("A", "B")))  # one of two
    0.6666666666666666
    """
    check_variant(variant)
    if variant == "official":
        return max(0.0, _official_shift(*_edges(reference, estimate), window_sec)[0])
    end = float(reference.intervals_sec[-1, 1]) if reference.labels else 0.0
    first = reference.intervals_sec
    second = crop_to(estimate.intervals_sec, estimate.labels, 0.0, end)[0]
    if len(first) < 2 and len(second) < 2:
        return undefined("boundary_f_measure", "neither side has a boundary between sections")
    return _detection(first, second, window_sec)


def _detection(reference: FloatArray, estimate: FloatArray, window_sec: float) -> float:
    if len(reference) < 2 or len(estimate) < 2:
        return 0.0
    from mir_eval.segment import detection

    return float(detection(reference, estimate, window=window_sec, trim=True)[2])


def ssm_correlation(
    reference: StructureFrames,
    estimate: StructureFrames,
    *,
    tempo_ratio: float = 1.0,
    smooth_sec: float = SMOOTH_SEC,
    min_lag_sec: float = MIN_LAG_SEC,
    variant: str = "corrected",
) -> float:
    """Correlation of the self-similarity of two recordings: does the same come back at the same time.

    Features are smoothed over 1 s and brought to length 1; their inner products make a self-similarity matrix for each
    side; Pearson's correlation is taken over all pairs of moments more than 2 s apart. In [-1, 1], higher is better,
    exactly 1 for identical frames, near 0 for unrelated music and for sections in another order. It needs no
    segmentation and does not see a change that is the same everywhere (key, timbre). Symmetric at equal hops and
    tempi. The longer side is cut. 0 where only the estimate is uniform; undefined (NaN) where the reference is, or
    where no two moments lie far enough apart.

    Parameters
    ----------
    reference, estimate
        Features of the same kind.
    tempo_ratio
        Tempo of the estimate over that of the reference: the estimate is read at that speed, interpolated linearly.
        1 compares second by second.
    smooth_sec
        Length of the moving mean.
    min_lag_sec
        Moments nearer than this are similar in any music.
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

    References
    ----------
    J. Foote: "Visualizing music and audio using self-similarity", ACM Multimedia 1999.
    """
    check_variant(variant)
    name = "ssm_correlation"
    first, second = (frames.frames.astype(np.float64) for frames in (reference, estimate))
    step = reference.hop_sec / (tempo_ratio * estimate.hop_sec)  # frames of the estimate to one of the reference
    if step != 1:
        n = int(np.floor((second.shape[1] - 1) / step)) + 1 if second.shape[1] else 0
        # between the two frames around each position, linearly
        positions = np.minimum(np.arange(n) * step, second.shape[1] - 1)
        below = positions.astype(np.int64)
        above = np.minimum(below + 1, second.shape[1] - 1)
        second = second[:, below] + (positions - below) * (second[:, above] - second[:, below])
    n = min(first.shape[1], second.shape[1])  # as far as both go, on the reference's grid
    first, second = first[:, :n], second[:, :n]
    # the first lag in frames that is more than `min_lag_sec`
    lag = int(np.floor(min_lag_sec / reference.hop_sec)) + 1
    if first.shape[1] <= lag + 1:
        return undefined(name, f"there are no two pairs of moments more than {min_lag_sec:g} s apart")
    width = max(1, round(smooth_sec / reference.hop_sec))
    return _similarity_correlation(_smooth_units(first, width), _smooth_units(second, width), lag, name)


def _similarity_correlation(first: FloatArray, second: FloatArray, lag: int, name: str) -> float:
    n = first.shape[1] - lag
    pairs = n * (n + 1) // 2
    xx = yy = xy = 0.0
    # two passes, for means and for sums of squares: neither matrix is ever held whole
    with one_thread():
        means = [sum(float(row.sum()) for row in _products(side, lag)) for side in (first, second)]
        x_mean, y_mean = (total / pairs for total in means)
        for products in zip(_products(first, lag), _products(second, lag), strict=True):
            x, y = products[0] - x_mean, products[1] - y_mean
            xx, yy, xy = xx + float(np.dot(x, x)), yy + float(np.dot(y, y)), xy + float(np.dot(x, y))
    # a standard deviation of no more than _EQUAL is rounding
    if xx <= pairs * _EQUAL**2:
        return undefined(name, "all moments of the reference are equally similar", stacklevel=4)
    if yy <= pairs * _EQUAL**2:
        return 0.0
    return float(np.clip(xy / np.sqrt(xx * yy), -1.0, 1.0))


def _smooth_units(frames: FloatArray, width: int) -> FloatArray:
    """Return moving means of frames, of length 1 where they are not all 0, shape (n_features, n)."""
    from scipy.ndimage import uniform_filter1d

    smooth: FloatArray = uniform_filter1d(frames, width, axis=1, mode="nearest")
    norms = np.linalg.norm(smooth, axis=0)
    return smooth / np.where(norms == 0, 1, norms)


def _products(units: FloatArray, lag: int) -> Iterator[FloatArray]:
    """Yield the inner products of all pairs of frames at least `lag` apart, a block of rows at a time, shape (n,)."""
    for start in range(0, units.shape[1] - lag, _ROWS):
        block = units[:, start : min(start + _ROWS, units.shape[1] - lag)].T @ units[:, start + lag :]
        # row r from column r on: frames at least `lag` apart, each pair once
        yield block[np.triu_indices(len(block), m=block.shape[1])]


# The authors' code.


def _official_ari(reference: Segments, estimate: Segments, name: str) -> float:
    first, second = _edges(reference, estimate)
    second = second + _official_shift(first, second, WINDOW_SEC)[1]
    overlap = _overlap(first, second)
    if overlap is None:
        return undefined(name, "the shifted estimate does not overlap the reference", stacklevel=4)
    if not np.allclose(overlap[0], 0.0):  # mir_eval refuses sections that do not start at 0
        return undefined(name, "the best shift moves the estimate later, and the spans differ", stacklevel=4)
    from mir_eval.segment import ari

    intervals, label_indices = _cut(first, overlap)
    others, other_label_indices = _cut(second, overlap)
    # A sliver that is left out at an end, by the rounding of the shift, would give the sides unequal numbers of frames.
    for cut in (intervals, others):
        cut[0, 0], cut[-1, 1] = overlap
    labels = [reference.labels[i] for i in label_indices]
    return float(
        ari(intervals, labels, others, [estimate.labels[i] for i in other_label_indices], frame_size=FRAME_SEC)
    )


def _release_score(measure: str, reference: Segments, estimate: Segments, name: str) -> float:
    """Return what the release makes of sections where they overlap, from 0 on, by a measure of mir_eval."""
    from mir_eval import segment

    first, second = _edges(reference, estimate)
    shift_scores = list(_shift_scores(first, second, WINDOW_SEC, from_zero=True))
    best = max((score for score, _ in shift_scores), default=0.0)
    # the median of the shifts that are equally good, but for rounding
    second = second + (
        np.median([shift for score, shift in shift_scores if score >= best - 1e-12]) if best > 0 else 0.0
    )
    overlap = _overlap(first, second)
    if overlap is None:
        return undefined(name, "the sides do not overlap", stacklevel=4)
    cuts = zip((_cut(first, overlap), _cut(second, overlap)), (reference, estimate), strict=True)
    sides = [
        (intervals - overlap[0], [side.labels[i] for i in label_indices]) for (intervals, label_indices), side in cuts
    ]
    score = getattr(segment, measure)(*sides[0], *sides[1])
    return float(score[2] if measure == "pairwise" else score)


def _edges(reference: Segments, estimate: Segments) -> tuple[FloatArray, FloatArray]:
    return np.unique(reference.intervals_sec), np.unique(estimate.intervals_sec)


def _official_shift(reference: FloatArray, estimate: FloatArray, window_sec: float) -> tuple[float, float]:
    """Return the best F-measure (-1 where nothing overlaps) and the first shift in seconds that reaches it."""
    return max(
        _shift_scores(reference, estimate, window_sec),
        key=lambda score_and_shift: score_and_shift[0],
        default=(-1.0, 0.0),
    )


def _shift_scores(
    reference: FloatArray, estimate: FloatArray, window_sec: float, *, from_zero: bool = False
) -> Iterator[tuple[float, float]]:
    """Yield the F-measure of the boundaries after each shift at which the sides overlap, and the shift in seconds."""
    for delta in np.arange(*OFFICIAL_SHIFTS_SEC):
        overlap = _overlap(reference, estimate + delta)
        if overlap is not None:
            start = overlap[0] if from_zero else 0.0
            first, second = (_cut(side, overlap)[0] - start for side in (reference, estimate + delta))
            yield _detection(first, second, window_sec), float(delta)


def _overlap(reference: FloatArray, estimate: FloatArray) -> tuple[float, float] | None:
    """Return start and end of what two rows of boundaries share from 0 s on."""
    if not len(reference) or not len(estimate):
        return None
    start, end = max(0.0, reference[0], estimate[0]), min(reference[-1], estimate[-1])
    return (float(start), float(end)) if end - start > _OFFICIAL_MIN_SEC else None


def _cut(edges: FloatArray, span: tuple[float, float]) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Return the intervals between boundaries within a span, and which of them are left."""
    starts, ends = np.maximum(edges[:-1], span[0]), np.minimum(edges[1:], span[1])
    label_indices = np.flatnonzero(ends - starts > _OFFICIAL_MIN_SEC)
    return np.stack([starts[label_indices], ends[label_indices]], axis=1), label_indices


def crop_to(
    intervals_sec: FloatArray, labels: Sequence[str], start_sec: float, end_sec: float
) -> tuple[FloatArray, list[str]]:
    """Return what lies between two times; intervals that only touch them are dropped, nothing is added."""
    # `mir_eval.util.adjust_intervals` keeps an interval of no length where one starts exactly at the end.
    inside = (intervals_sec[:, 0] < end_sec) & (intervals_sec[:, 1] > start_sec)
    labels_inside = [label for label, keep in zip(labels, inside, strict=True) if keep]
    return np.clip(intervals_sec[inside], start_sec, end_sec), labels_inside
