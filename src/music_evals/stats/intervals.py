"""How far a mean of items would move with other songs: an interval for items that are clustered by source.

Contexts of one song are alike, so songs are the unit. With w_g the share of the items that song g holds and y_g the
mean of its items, the estimate is the mean over items, sum(w_g y_g), and its residuals are r_g = w_g (y_g - estimate).

1. Variance. Where the means of songs have one variance s², E r_g² = w_g² s² (1 - 2 w_g + sum(w²)), so that
   V = sum(r_g² / (1 - 2 w_g + sum(w²))) is unbiased. It is the correction of Bell & McCaffrey (CR2) with songs instead
   of items as what is independent; for songs of one size both are the same.
2. Degrees of freedom. V is a quadratic form in the y_g; Satterthwaite's are (E V)² / (Var V / 2) of normal y_g. For
   songs of one size they are the number of songs less 1; a few long songs make them fewer.
3. Skewness. Scores near an end of their range are skewed, and then t is, too: Hall's monotone cubic
   g(t) = t + a t²/3 + a² t³/27 + a/6, with a = sum(r_g³) / V^(3/2), takes the skewness away. The ends of the interval
   are those t that g sends to the quantiles of Student's t. Deviation from Hall: g is flat at t = -3/a, and its inverse
   infinitely steep where 1 + a (g - a/6) = 0, so that there a hair's breadth of the data would move an end by several
   standard errors. His expansion is for small a, and says nothing of such a one. So a is held to where that number is
   at least `LEAST_CUBE`: at 95 % and many songs to ±0.39, where the far end lies 1.6 times as far as Student's.
4. Songs that the sample lacks, where the caller says between which ends they may score (`unseen`). An error that is
   rare is in few samples, and the others have no spread that tells of it: points 1 to 3 are far too narrow for them.
   If a share s of all songs is of some kind, k effective songs hold none of it with a probability of (1 - s)^k, which
   falls to 1 - confidence at s = 1 - (1 - confidence)^(1/k): about 3 / k at 95 %, the rule of three. So each end lies
   at least where the mean would be if that share of songs scored at that end of what is given, which must come from the
   score and not from the sample.

All of it is arithmetic on the sum and the number of items of each song: nothing is drawn, and there is no seed.
`benchmarks/interval_coverage` compares it with its rivals, and says how often each covers the truth.

References
----------
R. M. Bell, D. F. McCaffrey: "Bias reduction in standard errors for linear regression with multi-stage samples", Survey
Methodology 28(2), 2002; J. E. Pustejovsky, E. Tipton: "Small-sample methods for cluster-robust variance estimation",
J. Bus. Econ. Stat. 36(4), 2018; P. Hall: "On the removal of skewness by transformation", J. R. Stat. Soc. B 54(1),
1992; L. Kish: Survey Sampling, 1965 (effective number); J. A. Hanley, A. Lippman-Hand: "If nothing goes wrong, is
everything all right?", JAMA 249(13), 1983 (rule of three).

"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError
from music_evals.stats.clusters import Floats, Integers, check_count, check_groups

__all__ = [
    "MANY_CLUSTERS", "RARE_DIFFERENCES", "SIMULATED_COVERAGE", "UNEQUAL_COVERAGE", "UNEQUAL_SHARE", "Interval", "Range",
    "SimulatedCoverage", "check_confidence", "check_seed", "effective_clusters", "interval_of_totals",
    "intervals_of_rows", "mean_interval", "mean_intervals", "rare_differences", "simulated_coverage", "student",
    "sums_of_clusters", "weights_of_clusters",
]  # fmt: skip

Range = tuple[float, float]
"""Least and largest value."""

MANY_CLUSTERS = 30
"""From this effective number of clusters on an interval covers about what it promises, unless they are very unequal."""

LEAST_CUBE = 0.2
"""Hall's (1 + a t/3)³ = 1 + a (g - a/6) is held at or above it: there the inverse of g has a slope of 3."""

NO_SPREAD = 1e-12
"""An interval that is narrower than this, relative to the largest value, is rounding."""


class Interval(NamedTuple):
    """An estimate and its confidence interval.

    Attributes
    ----------
    estimate
        The score on the data as they are; NaN where nothing is defined.
    low, high
        Ends of the interval. NaN with fewer than two clusters, and where all clusters are alike and nothing is given
        of those that are unseen: neither says how far another one may lie.
    n
        Items given.
    n_defined
        Items that the score could be computed from.
    n_clusters
        Effective number of clusters, (sum m)² / sum(m²) for clusters of m defined items: their number where they are of
        one size, fewer where a few hold most items. 0 where nothing is defined.
    """

    estimate: float
    low: float
    high: float
    n: int
    n_defined: int
    n_clusters: float


class SimulatedCoverage(NamedTuple):
    """How often nominal 95 % intervals covered the truth, in the worst and the best world.

    The worlds of `UNEQUAL_COVERAGE` stand apart.
    """

    least_clusters: int
    """Effective number of clusters from which on this holds, up to the next row."""
    means: tuple[float, float]
    """Of means, with `unseen` where errors are rare and large, and of differences of means where they are not."""
    divergences: tuple[float, float]
    """Of divergences, and of their differences."""


SIMULATED_COVERAGE: tuple[SimulatedCoverage, ...] = (
    SimulatedCoverage(1, means=(0.72, 1.0), divergences=(0.93, 1.0)),
    SimulatedCoverage(5, means=(0.81, 1.0), divergences=(0.84, 1.0)),
    SimulatedCoverage(10, means=(0.9, 1.0), divergences=(0.9, 1.0)),
    SimulatedCoverage(17, means=(0.92, 1.0), divergences=(0.92, 1.0)),
)
"""From ``benchmarks/interval_coverage/results.csv``, which ``python -m benchmarks.interval_coverage.run`` makes."""

UNEQUAL_SHARE = 2 / 3
"""Where the effective number of clusters is less than this share of their number, their sizes are very unequal."""

UNEQUAL_COVERAGE = 0.77
"""How often intervals of means covered the truth, at worst, where a rare cluster is larger than all others.

A sample that lacks it does not tell of it: up to 120 clusters coverage falls as their number grows. From where
`SIMULATED_COVERAGE` is.
"""

RARE_DIFFERENCES: tuple[tuple[int, float], ...] = ((1, 0.15), (5, 0.12), (10, 0.18), (20, 0.32), (30, 0.43), (60, 0.69))
"""Effective number of clusters from which on, and how often intervals of differences covered the truth, at worst, where
one side alone has errors that are rare and large, in 2 to 20 % of clusters. From where `SIMULATED_COVERAGE` is.

`unseen` is for means: a difference that reckoned with all that both sides may hide would decide nothing.
"""


def simulated_coverage(n_clusters: float) -> SimulatedCoverage | None:
    """Return what was simulated at an effective number of clusters; None below 1 and from `MANY_CLUSTERS` on."""
    if not SIMULATED_COVERAGE[0].least_clusters <= n_clusters < MANY_CLUSTERS:
        return None
    return [row for row in SIMULATED_COVERAGE if row.least_clusters <= n_clusters][-1]


def rare_differences(n_clusters: float) -> float:
    """Return what `RARE_DIFFERENCES` says of an effective number of clusters, which is at least 1."""
    return [coverage for least, coverage in RARE_DIFFERENCES if least <= n_clusters][-1]


def mean_interval(
    values: npt.ArrayLike,
    groups: npt.ArrayLike | None,
    *,
    confidence: float = 0.95,
    span: Range = (-np.inf, np.inf),
    unseen: Range | None = None,
) -> Interval:
    """Return the mean over items with its interval, clustered by groups; see the module for how it is made.

    The mean is over items, so that a long song weighs more than a short one. The interval is NaN where fewer than two
    clusters hold a defined value, where a value is infinite, and where all clusters have the same mean: ten songs that
    all score 0 do not say that the next one does. With `unseen` they say how many others may not.

    Parameters
    ----------
    values
        Score of each item, shape (n,). NaN is undefined: left out of the mean and counted.
    groups
        Cluster of each item, shape (n,), whole numbers or strings; None makes each item its own cluster.
    confidence
        Nominal coverage, above 0 and below 1. What it covers in simulations stands in `SIMULATED_COVERAGE`.
    span
        Least and largest value that the score can have. The ends are clipped to it, which loses no coverage, since the
        true mean lies within.
    unseen
        Least and largest mean of a cluster that the sample may lack, for scores with errors that are rare and large;
        within `span`, and chosen without a look at the values. None reckons with no such cluster.

    Returns
    -------
    Interval
        In the unit of `values`. Item order and the names of clusters play no part.

    Raises
    ------
    PairCountError
        Not one group per value.
    InvalidInputError
        Values not of shape (n,), or a confidence out of range.

    Examples
    --------
    >>> found = mean_interval([0.1, 0.3, 0.2, 0.8, 0.4], ["a", "a", "a", "b", "c"])
    >>> print(f"{found.estimate:.2f}, {found.low:.2f} to {found.high:.2f}, {found.n_clusters:.1f} effective clusters")
    0.36, -1.65 to 2.14, 2.3 effective clusters
    >>> found = mean_interval([1.0] * 20, None, span=(0, 1), unseen=(0, 1))
    >>> print(f"{found.low:.2f} to {found.high:.2f}: one in seven may be wrong, and 20 not tell of it")
    0.86 to 1.00: one in seven may be wrong, and 20 not tell of it
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InvalidInputError(
            f"values must have shape (n,), got {array.shape}; for several metrics at once use mean_intervals"
        )
    return mean_intervals(array[:, None], groups, confidence=confidence, spans=[span], unseen=[unseen])[0]


def mean_intervals(
    values: npt.ArrayLike,
    groups: npt.ArrayLike | None,
    *,
    confidence: float = 0.95,
    spans: Sequence[Range] | None = None,
    unseen: Sequence[Range | None] | None = None,
) -> list[Interval]:
    """Return `mean_interval` of several metrics of the same items.

    Parameters
    ----------
    values
        Scores, shape (n, n_metrics); NaN is undefined.
    groups, confidence
        As in `mean_interval`.
    spans, unseen
        As `span` and `unseen` in `mean_interval`, one a metric.

    Returns
    -------
    list of Interval
        One per column.

    Raises
    ------
    PairCountError
        Not one group per row.
    InvalidInputError
        Values not of shape (n, n_metrics), or a confidence out of range.
    """
    columns = np.asarray(values, dtype=np.float64)
    if columns.ndim != 2:
        raise InvalidInputError(f"values must have shape (n, n_metrics), got {columns.shape}")
    check_confidence(confidence)
    codes, n_clusters = check_groups(groups, len(columns))
    if spans is None:
        spans = [(-np.inf, np.inf)] * columns.shape[1]
    if unseen is None:
        unseen = [None] * columns.shape[1]
    intervals = []
    for column, span, lacking in zip(columns.T, spans, unseen, strict=True):
        defined = ~np.isnan(column)
        n_defined = int(np.count_nonzero(defined))
        ends, effective = [np.array([np.nan])] * 3, 0.0
        if n_defined:
            rows, clusters = (column, codes) if n_defined == len(column) else (column[defined], codes[defined])
            *ends, effective = intervals_of_rows(rows[None], clusters, n_clusters, confidence, span, unseen=lacking)
        mean, low, high = (np.nan if np.isnan(end[0]) else float(end[0]) for end in ends)
        intervals.append(Interval(mean, low, high, len(column), n_defined, effective))
    return intervals


def intervals_of_rows(
    values: Floats,
    codes: Integers,
    n_clusters: int,
    confidence: float,
    span: Range = (-np.inf, np.inf),
    *,
    unseen: Range | None = None,
) -> tuple[Floats, Floats, Floats, float]:
    """Return mean, low and high of each row of defined values, shape (rows, n), and the effective number of clusters.

    n is at least 1, and all rows are of the same items.
    """
    counts = np.bincount(codes, minlength=n_clusters).astype(np.float64)[:, None]
    effective = float(counts.sum() ** 2 / (counts**2).sum())  # as `effective_clusters`
    least, largest = values.min(axis=1), values.max(axis=1)
    with np.errstate(invalid="ignore"):  # the mean of inf and -inf is NaN, and rightly so
        means = values.mean(axis=1)
        # about the mean, so that far from 0 nothing is lost
        sums = sums_of_clusters(values - means[:, None], codes, n_clusters)
        around = None if unseen is None else (unseen[0] - means, unseen[1] - means)
        rounding = NO_SPREAD * np.maximum(np.abs(least), np.abs(largest))
        low, high, _ = interval_of_totals(sums.T, counts, confidence, unseen=around, rounding=rounding)
        # a score that leaves the range of the catalogue keeps its own
        bounds = np.minimum(span[0], least), np.maximum(span[1], largest)
        ends = [np.clip(means + end, *bounds) for end in (low, high)]
    return means, ends[0], ends[1], effective


def sums_of_clusters(values: Floats, codes: Integers, n_clusters: int) -> Floats:
    """Return the sum of each cluster in each row of values, shape (rows, n), as (rows, clusters)."""
    # one count for all rows: row r has the numbers from r * n_clusters on
    places = codes + n_clusters * np.arange(len(values))[:, None]
    sums = np.bincount(places.ravel(), weights=values.ravel(), minlength=n_clusters * len(values))
    return sums.astype(np.float64, copy=False).reshape(len(values), n_clusters)


def interval_of_totals(
    sums: Floats,
    counts: Floats,
    confidence: float,
    *,
    unseen: tuple[Floats | float, Floats | float] | None = None,
    rounding: Floats | float = 0.0,
) -> tuple[Floats, Floats, Floats]:
    """Return low, high and effective number of clusters, shape (columns,), from totals of shape (clusters, columns).

    What is no wider than `rounding` has no spread.
    """
    weights, squares, factors, df = weights_of_clusters(counts)
    means = sums.sum(axis=0) / counts.sum(axis=0)
    # each column in one piece of memory, so that many together are added up as each alone is
    residuals = np.asfortranarray(sums / counts.sum(axis=0) - weights * means)
    with np.errstate(invalid="ignore", divide="ignore"):  # one cluster, or no spread: NaN
        # sqrt(V) and a: points 1 and 3 of the module
        error = np.sqrt((factors * residuals**2).sum(axis=0))
        skewness = (residuals**3).sum(axis=0) / error**3
        reach = student(df, confidence)
        # the largest |a| at which |a| (|t| + |a| / 6) is no more than 1 - LEAST_CUBE
        largest = 2 * (1 - LEAST_CUBE) / (reach + np.sqrt(reach**2 + 2 / 3 * (1 - LEAST_CUBE)))
        held = np.clip(skewness, -largest, largest)
        # the inverse of Hall's transformation: 3 (root - 1) / a, with root³ - 1 = a (t - a/6), where a may be 0
        moved = np.stack([reach, -reach]) - held / 6
        root = np.cbrt(1 + held * moved)
        low, high = means - error * (3 * moved / (root**2 + root + 1))
        low, high = np.where(high - low > rounding, (low, high), np.nan)
        if unseen is not None:  # point 4, where NaN says nothing
            share = np.where(np.count_nonzero(counts, axis=0) > 1, 1 - (1 - confidence) ** squares, np.nan)
            low = np.fmin(low, means + share * np.minimum(unseen[0] - means, 0))
            high = np.fmax(high, means + share * np.maximum(unseen[1] - means, 0))
    return low, high, 1 / squares


def effective_clusters(counts: Floats) -> Floats:
    """Return Kish's effective number of clusters, from their numbers of items along the first axis."""
    total: Floats = counts.sum(axis=0)
    with np.errstate(invalid="ignore"):
        return np.where(total > 0, total**2 / (counts**2).sum(axis=0), 0.0)


def weights_of_clusters(counts: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return, of the items of clusters along the first axis, what the variance is made of.

    That is the share of each cluster, the sum of their squares, what squared residuals are multiplied by, and
    Satterthwaite's degrees of freedom of the variance.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = counts / counts.sum(axis=0)
        squares = (weights**2).sum(axis=0)
        # 1 / (1 - 2 w + sum(w²)), by two terms that are at least 0, so that nothing cancels
        factors = 1 / ((1 - weights) ** 2 + (squares - weights**2))
    # V = sum(d_k r_k²), and C = cov(r) / s² has C_kk = w_k² / d_k and elsewhere C_kl = w_k w_l (sum(w²) - w_k - w_l).
    # So E V = s² sum(w²), and of normal y_k Var V = 2 s⁴ sum(d_k d_l C_kl²), which the powers of w below add up to.
    q = factors * weights**2
    total, first, second = q.sum(axis=0), (q * weights).sum(axis=0), (q * weights**2).sum(axis=0)
    # sum of q_k q_l (sum(w²) - w_k - w_l)² over all pairs, from which those with k = l are taken away
    pairs = squares**2 * total**2 + 2 * total * second + 2 * first**2 - 4 * squares * total * first
    same = (q**2 * (squares - 2 * weights) ** 2).sum(axis=0)
    with np.errstate(invalid="ignore"):
        df: Floats = squares**2 / ((weights**4).sum(axis=0) + pairs - same)
    # rounding may leave the range
    return weights, squares, factors, np.clip(df, 1.0, np.count_nonzero(counts, axis=0) - 1.0)


def student(df: Floats | float, confidence: float) -> Floats:
    """Return how many standard errors the ends of an interval are away."""
    from scipy.special import stdtrit

    reach: Floats = stdtrit(df, (1 + confidence) / 2)
    return reach


def check_confidence(confidence: float) -> None:
    """Hold a nominal coverage to its range.

    Raises
    ------
    InvalidInputError
        It is no number above 0 and below 1.
    """
    if not isinstance(confidence, float | int | np.number) or not 0 < confidence < 1:
        raise InvalidInputError(f"confidence must lie above 0 and below 1, got {confidence!r}; 95 % is 0.95")


def check_seed(seed: int) -> None:
    """Hold a seed to a whole number of at least 0; `InvalidInputError` for another."""
    check_count(seed, "seed", least=0)
