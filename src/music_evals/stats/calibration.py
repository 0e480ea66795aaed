"""Where scores lie between two controls: 0 at one, 1 at the other, several metrics in one number, with its interval.

The position of a metric is linear between the means of the two controls of the same corpus,

    p = (mean - mean of the low control) / (mean of the high control - mean of the low control),

so that both controls lie at 0 and 1 exactly, whichever way the metric points, and a reader can work it out from a table
of means. Nothing is clipped: below 0 is less than the low control, above 1 more than the high one. A combination is a
weighted mean of positions.

Why linear in means. The chance to beat a value of a control (the area under the ROC curve) says nothing in the gap
between two controls that are well apart, and there the scores of interest lie: they all are better than every low value
and worse than every high one. Positions of single values between medians are robust, but must be clipped, and then
the low control itself lies above 0.

A metric whose controls overlap has no room to place anything. It is left out where the chance that a value of the high
control is better than one of the low control is below `LEAST_AUC`.

Interval. The jackknife over clusters: all values of a cluster, those of the controls too, are left out at once, so that
the noise of the controls is in it; a value of a control that belongs to two clusters is left out with either. With G
clusters, the squared error is (G - 1) / G times the sum of squared deviations of the G estimates from their mean, and
the ends are those of Student's t with one degree of freedom less than there are clusters among the scores placed.

References
----------
J. W. Tukey, Ann. Math. Statist. 29, 1958; J. Shao, D. Tu: The Jackknife and Bootstrap, 1995, 2.1 (ratios of means, for
which it is consistent); J. A. Hanley, B. J. McNeil, Radiology 143, 1982 (the area).

"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats.clusters import Floats, Integers
from music_evals.stats.discrimination import auc
from music_evals.stats.intervals import NO_SPREAD, Interval, check_confidence, student

__all__ = [
    "LEAST_AUC", "LEAST_VALUES", "Clustered", "Position", "combined_positions", "mean_intervals_of_pairs", "separation",
]  # fmt: skip

LEAST_AUC = 0.75
"""Below this a metric does not tell its controls apart: in one comparison of four it takes one for the other."""

LEAST_VALUES = 2
"""Values that a control must define."""


class Clustered(NamedTuple):
    """Scores of some items, and the clusters that they belong to."""

    values: npt.ArrayLike
    """Shape (n, n_metrics); NaN is undefined."""
    groups: npt.ArrayLike
    """Cluster of each item as a whole number from 0 on, shape (n,); or of both its sides, shape (n, 2)."""


class Position(NamedTuple):
    """Where a combination of metrics lies between two controls.

    Attributes
    ----------
    estimate
        0 at the low control, 1 at the high one; higher is better. NaN where a metric that has a weight has no value, or
        where its controls coincide.
    low, high
        Ends of the interval; NaN with fewer than two clusters among the scores, and where leaving one out leaves a
        metric without a value.
    """

    estimate: float
    low: float
    high: float


def separation(high: npt.ArrayLike, low: npt.ArrayLike, *, lower_is_better: bool = False) -> float:
    """Return the chance that a value of the high control is better than one of the low control, ties counted half.

    Parameters
    ----------
    high, low
        Values of one metric, shapes (n,) and (m,); NaN is left out.
    lower_is_better
        Direction of the metric.

    Returns
    -------
    float
        0..1; 0.5 where the controls are alike. NaN where a control defines fewer than `LEAST_VALUES`.
    """
    sides = [np.asarray(values, dtype=np.float64) for values in (high, low)]
    if min(np.count_nonzero(~np.isnan(values)) for values in sides) < LEAST_VALUES:
        return float("nan")
    return auc(*(sides[::-1] if lower_is_better else sides))


def combined_positions(
    scores: Clustered, high: Clustered, low: Clustered, weights: npt.ArrayLike, *, confidence: float = 0.95
) -> list[Position]:
    """Return the positions of several combinations of metrics; see the module for the definition.

    Parameters
    ----------
    scores
        What is placed.
    high, low
        The controls at 1 and at 0, with the same metrics and the same numbers of clusters.
    weights
        Shape (n_combinations, n_metrics), not negative; each row is divided by its sum. A metric of weight 0 plays no
        part; a row of zeros has no position.
    confidence
        Nominal coverage, above 0 and below 1.

    Returns
    -------
    list of Position
        One a combination. The order of items and the numbers of clusters play no part.

    Raises
    ------
    PairCountError
        Not one cluster, or two, for each item.
    InvalidInputError
        Arrays of other shapes, a negative weight, or a confidence out of range.

    Examples
    --------
    >>> same, unrelated = Clustered([[0.9], [0.7]], [0, 1]), Clustered([[0.1], [0.3]], [[0, 1], [1, 0]])
    >>> found = combined_positions(Clustered([[0.6], [0.4]], [0, 1]), same, unrelated, [[1]])
    >>> round(found[0].estimate, 6)  # (0.5 - 0.2) / (0.8 - 0.2)
    0.5
    """
    check_confidence(confidence)
    rows = np.asarray(weights, dtype=np.float64)
    totals = [_Totals.of(part, rows.shape[-1]) for part in (scores, high, low)]
    if rows.ndim != 2 or (rows < 0).any():
        raise InvalidInputError("weights must have shape (n_combinations, n_metrics) and not be negative")
    names = np.unique(np.concatenate([part.groups.ravel() for part in totals]))
    whole = _combined([part.mean for part in totals], rows)
    without = _combined([part.means_without(names) for part in totals], rows)
    n_placed = len(np.unique(totals[0].groups))
    if n_placed < 2:
        return [Position(float(estimate), np.nan, np.nan) for estimate in whole[0]]
    # jackknife: (G - 1) / G times the squared deviations of the estimates without one cluster
    spread = ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    reach = student(n_placed - 1, confidence) * np.sqrt((len(names) - 1) / len(names) * spread)
    reach = np.where(reach > 0, reach, np.nan)  # clusters that are all alike do not say how far the next may lie
    return [Position(*map(float, (x, x - far, x + far))) for x, far in zip(whole[0], reach, strict=True)]


def mean_intervals_of_pairs(
    pairs: Clustered, *, confidence: float = 0.95, spans: Sequence[tuple[float, float]] | None = None
) -> list[Interval]:
    """Return the mean of each metric over pairs whose two sides belong to clusters, with its interval.

    Pairs that share a side are not independent, whichever side it is: clustered by one side alone, an interval of 95 %
    covers less than 90 % of a score to which each original brings a share (``tests/stats/test_calibration.py``).
    The interval is the jackknife of this module. It errs on the wide side: what is a pair's own is left out twice.

    Parameters
    ----------
    pairs
        Values of shape (n, n_metrics) and the clusters of both sides, shape (n, 2). NaN is undefined.
    confidence
        Nominal coverage, above 0 and below 1.
    spans
        Least and largest value of each metric; the ends are clipped to it.

    Returns
    -------
    list of Interval
        One a metric; `n_clusters` is the number of clusters that a defined pair belongs to. The ends are NaN with fewer
        than three of them, and where leaving one out leaves nothing or changes nothing.

    Raises
    ------
    PairCountError
        Not one cluster, or two, for each item.
    InvalidInputError
        Arrays of other shapes, or a confidence out of range.

    Examples
    --------
    >>> ring = Clustered([[0.1], [0.4], [0.2], [0.5]], [[0, 1], [1, 2], [2, 3], [3, 0]])
    >>> (found,) = mean_intervals_of_pairs(ring)
    >>> print(f"{found.estimate:.2f}, {found.low:.2f} to {found.high:.2f}, {found.n_clusters:.0f} originals")
    0.30, 0.11 to 0.49, 4 originals
    """
    check_confidence(confidence)
    values = np.asarray(pairs.values, dtype=np.float64)
    groups = np.asarray(pairs.groups)
    spans = spans or [(-np.inf, np.inf)] * values.shape[1]
    return [_interval_of_pairs(column, groups, confidence, span) for column, span in zip(values.T, spans, strict=True)]


def _interval_of_pairs(values: Floats, groups: Integers, confidence: float, span: tuple[float, float]) -> Interval:
    defined = ~np.isnan(values)
    column = values[defined]
    part = _Totals.of(Clustered(column[:, None], groups[defined]), 1)
    names = np.unique(part.groups)
    mean, n = float(part.mean[0, 0]), len(names)
    low = high = np.nan
    if n > 2:
        without = part.means_without(names)[:, 0]
        error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
        least, largest = float(column.min()), float(column.max())
        if error > NO_SPREAD * max(abs(least), abs(largest)):
            reach = student(n - 1, confidence) * error
            # a score that leaves its range keeps its own
            ends = np.clip([mean - reach, mean + reach], min(span[0], least), max(span[1], largest))
            low, high = float(ends[0]), float(ends[1])
    return Interval(mean, low, high, len(values), len(column), float(n))


class _Totals(NamedTuple):
    """What is defined of each item, and its clusters in columns."""

    values: Floats
    defined: npt.NDArray[np.bool_]
    groups: Integers

    @classmethod
    def of(cls, part: Clustered, n_metrics: int) -> _Totals:
        values, groups = np.asarray(part.values, dtype=np.float64), np.asarray(part.groups)
        if values.ndim != 2 or values.shape[1] != n_metrics:
            raise InvalidInputError(f"values must have shape (n, {n_metrics}), as the weights, got {values.shape}")
        if groups.ndim not in {1, 2} or len(groups) != len(values):
            raise PairCountError(f"groups must hold a cluster of each of {len(values)} items, got {groups.shape}")
        defined = ~np.isnan(values)
        columns = groups[:, None] if groups.ndim == 1 else groups
        return cls(np.where(defined, values, 0.0), defined, columns.astype(np.int64))

    @property
    def mean(self) -> Floats:
        """Of each metric, shape (1, n_metrics)."""
        return _ratio(self.values.sum(axis=0)[None], self.defined.sum(axis=0)[None])

    def means_without(self, names: Integers) -> Floats:
        """Return the means without each cluster of `names`, which is sorted, shape (clusters, n_metrics)."""
        sums, counts = np.zeros((2, len(names), self.values.shape[1]))
        for side in range(self.groups.shape[1]):
            # an item whose sides are of one cluster is left out once
            counted = np.ones(len(self.groups), bool) if side == 0 else self.groups[:, side] != self.groups[:, 0]
            place = np.searchsorted(names, self.groups[counted, side])
            np.add.at(sums, place, self.values[counted])
            np.add.at(counts, place, self.defined[counted])
        with np.errstate(invalid="ignore"):  # an infinite score has no position
            return _ratio(self.values.sum(axis=0) - sums, self.defined.sum(axis=0) - counts)


def _ratio(sums: Floats, counts: npt.NDArray[np.number]) -> Floats:
    ratio: Floats = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0.5)
    return ratio


def _combined(means: list[Floats], weights: Floats) -> Floats:
    """Return the positions of combinations, shape (rows, n_combinations), from means of shape (rows, n_metrics)."""
    own, high, low = means
    with np.errstate(invalid="ignore", divide="ignore"):
        # p = (mean - low) / (high - low), metric by metric
        places = np.where(high != low, (own - low) / (high - low), np.nan)
        shares = weights / weights.sum(axis=1, keepdims=True)
        # 0 times NaN is NaN: what has no weight is left out before
        parts = np.where(weights[None] > 0, places[:, None] * shares, 0.0).sum(axis=2)
    return np.where((weights.sum(axis=1) > 0) & np.isfinite(parts), parts, np.nan)
