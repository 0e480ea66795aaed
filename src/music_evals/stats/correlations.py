"""How two columns go together, with intervals that know clusters, and the t test of a mean.

Rows of one piece are alike, and an interval that takes them for independent is too short. `correlation` therefore gives
two: Fisher's z, as papers print it, and a jackknife of z over whole clusters with Student's t of one degree of freedom
less than there are clusters. ``tests/stats/test_correlations.py`` simulates how often both cover the truth.

References
----------
R. A. Fisher: "On the 'probable error' of a coefficient of correlation deduced from a small sample", Metron 1, 1921; B.
Efron, C. Stein: "The jackknife estimate of variance", Ann. Statist. 9(3), 1981.

"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats.clusters import Floats, check_groups
from music_evals.stats.intervals import check_confidence, student

__all__ = [
    "Correlation", "adjusted_correlation", "correlation", "fisher_interval", "jackknife_interval", "mean_test",
    "p_of_correlation",
]  # fmt: skip


class Correlation(NamedTuple):
    """Pearson's r of the rows in which both columns have a value."""

    r: float
    """-1 to 1; NaN with fewer than three rows, and where a column does not vary."""
    n: int
    """Rows that count."""
    p: float
    """Of the two-sided t test of r against 0; it takes the rows for independent."""
    low: float
    """Fisher's interval; NaN with fewer than four rows."""
    high: float
    clustered_low: float
    """Interval clustered by group; NaN with fewer than three groups."""
    clustered_high: float
    n_clusters: int
    """Groups with a row that counts."""


def p_of_correlation(r: npt.ArrayLike, n: npt.ArrayLike) -> Floats:
    """Return the two-sided p-value of Pearson's r from n rows, by t = r sqrt((n - 2) / (1 - r²)) of n - 2 degrees.

    Parameters
    ----------
    r
        -1 to 1 or NaN, any shape.
    n
        Rows behind each, a number or of the same shape; fewer than three give NaN.

    Raises
    ------
    InvalidInputError
        An r outside of -1 to 1.

    Examples
    --------
    >>> p_of_correlation([0.58, 0.57], 12).round(3).tolist()
    [0.048, 0.053]
    """
    from scipy.special import stdtr

    given, rows = np.broadcast_arrays(np.asarray(r, dtype=np.float64), np.asarray(n, dtype=np.float64))
    if np.any(np.abs(given) > 1):
        raise InvalidInputError(f"a correlation lies in -1 to 1, got {given[np.abs(given) > 1].flat[0]}")
    df = np.where(rows > 2, rows - 2, np.nan)
    # r of 1 or -1 has an infinite t, and p = 0
    with np.errstate(divide="ignore"):
        t = np.abs(given) * np.sqrt(df / (1 - given**2))
    return np.asarray(2 * stdtr(df, -t), dtype=np.float64)


def fisher_interval(r: float, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return Fisher's interval of Pearson's r: tanh(atanh r ± z / sqrt(n - 3)).

    Parameters
    ----------
    r
        -1 to 1, or NaN.
    n
        Rows behind it, taken for independent; fewer than four give NaN, as does NaN.
    confidence
        Nominal coverage, above 0 and below 1.

    Examples
    --------
    >>> [round(end, 2) for end in fisher_interval(-0.58, 12)]
    [-0.87, -0.01]
    """
    from scipy.special import ndtri

    check_confidence(confidence)
    if n < 4 or math.isnan(r):
        return math.nan, math.nan
    if abs(r) == 1:
        return r, r
    # atanh(r) is about normal, with the standard error 1 / sqrt(n - 3) whatever r is
    half = float(ndtri((1 + confidence) / 2)) / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def jackknife_interval(estimate: float, without: npt.ArrayLike, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval from what an estimate becomes when each cluster is left out in turn.

    The variance is (G - 1)/G times the sum of squares about the mean of the G values, which is on the safe side (Efron
    & Stein); the ends lie Student's t of G - 1 degrees of freedom away.

    Parameters
    ----------
    estimate
        Of all clusters.
    without
        Of all but one, shape (G,).
    confidence
        Nominal coverage, above 0 and below 1.

    Returns
    -------
    tuple of float
        Low and high end; NaN with fewer than three clusters, and where a value is not finite.
    """
    check_confidence(confidence)
    values = np.asarray(without, dtype=np.float64)
    count = len(values)
    if count < 3 or not (math.isfinite(estimate) and np.all(np.isfinite(values))):
        return math.nan, math.nan
    half = float(student(count - 1.0, confidence)) * math.sqrt(
        (count - 1) / count * np.sum((values - values.mean()) ** 2)
    )
    return estimate - half, estimate + half


def correlation(
    x: npt.ArrayLike, y: npt.ArrayLike, groups: npt.ArrayLike | None = None, *, confidence: float = 0.95
) -> Correlation:
    """Return Pearson's r of two columns with its p-value and both intervals.

    Parameters
    ----------
    x, y
        Shape (n,); a row with a NaN in one of them does not count.
    groups
        Cluster of each row, whole numbers or strings; None makes each row its own.
    confidence
        Nominal coverage of the intervals.

    Returns
    -------
    Correlation
        The order of the rows plays no part.

    Raises
    ------
    PairCountError
        Columns or groups of different length.

    Examples
    --------
    >>> found = correlation([1, 2, 3, 4, 5], [2, 1, 4, 3, 5])
    >>> round(found.r, 2), found.n, round(found.p, 3)
    (0.8, 5, 0.104)
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise PairCountError(f"columns must pair up, got the shapes {first.shape} and {second.shape}")
    codes, _ = check_groups(groups, len(first))
    both = np.isfinite(first) & np.isfinite(second)
    first, second = first[both], second[both]
    clusters, codes = np.unique(codes[both], return_inverse=True)
    r, n = _pearson(first, second), len(first)
    low, high = fisher_interval(r, n, confidence=confidence)
    without = [_pearson(first[codes != code], second[codes != code]) for code in range(len(clusters))]
    # the jackknife is of atanh(r), which is infinite where r is 1 or -1
    is_inside = abs(r) < 1 and all(abs(value) < 1 for value in without)
    ends = (
        jackknife_interval(math.atanh(r), np.arctanh(without), confidence=confidence) if is_inside else (math.nan,) * 2
    )
    return Correlation(
        r, n, float(p_of_correlation(r, n)), low, high, math.tanh(ends[0]), math.tanh(ends[1]), len(clusters)
    )


def adjusted_correlation(
    x: npt.ArrayLike, y: npt.ArrayLike, groups: Sequence[Sequence[str]], *, ranks: bool = False
) -> float:
    """Return the correlation of two columns after the means of groups are removed.

    Parameters
    ----------
    x, y
        Shape (n,); rows with NaN in either are left out.
    groups
        Columns of group names, each of length n, whose effects are removed as a sum (least squares); none for the plain
        correlation.
    ranks
        Take ranks first: Spearman's.

    Returns
    -------
    float
        From -1 to 1; NaN where fewer than three rows or nothing of a column is left.

    Examples
    --------
    >>> adjusted_correlation([1, 2, 11, 12], [2, 1, 12, 11], [["a", "a", "b", "b"]])
    -1.0
    """
    columns = np.asarray([x, y], dtype=np.float64)
    defined = ~np.isnan(columns).any(axis=0)
    columns = columns[:, defined]
    if columns.shape[1] < 3:
        return math.nan
    if ranks:
        from scipy.stats import rankdata

        columns = rankdata(columns, axis=1)
    # a constant and an indicator of each name of a group: collinear, which `lstsq` allows
    fixed = [np.ones(columns.shape[1])]
    for names in groups:
        defined_names = np.asarray(names)[defined]
        fixed += [(defined_names == name).astype(np.float64) for name in np.unique(defined_names)]
    design = np.stack(fixed, axis=1)
    left = columns.T - design @ np.linalg.lstsq(design, columns.T, rcond=None)[0]
    sizes = np.sqrt((left**2).sum(axis=0))
    # rounding is no variation
    if (sizes <= 1e-9 * np.sqrt((columns.T**2).sum(axis=0))).any():
        return math.nan
    return float(np.clip(left[:, 0] @ left[:, 1] / sizes.prod(), -1, 1))


def mean_test(values: npt.ArrayLike) -> float:
    """Return the two-sided p-value of Student's t test that the mean of independent values is 0.

    Parameters
    ----------
    values
        Shape (n,), NaN left out; fewer than two, or values that are all alike, give NaN.

    Examples
    --------
    >>> round(mean_test([0.1, 0.3, 0.2]), 3)
    0.074
    """
    from scipy.special import stdtr

    given = np.asarray(values, dtype=np.float64)
    given = given[~np.isnan(given)]
    if len(given) < 2 or np.ptp(given) <= 1e-12 * float(np.abs(given).max()):
        return math.nan
    t = float(given.mean() / given.std(ddof=1)) * math.sqrt(len(given))
    return 2 * float(stdtr(len(given) - 1, -abs(t)))


def _pearson(x: Floats, y: Floats) -> float:
    """Return r; NaN with fewer than three rows, and where a column varies by no more than rounding."""
    if len(x) < 3:
        return math.nan
    dx, dy = x - x.mean(), y - y.mean()
    spreads = math.sqrt(float(dx @ dx)), math.sqrt(float(dy @ dy))
    scales = (float(np.abs(column).max()) * math.sqrt(len(x)) for column in (x, y))
    if any(spread <= 1e-12 * scale for spread, scale in zip(spreads, scales, strict=True)):
        return math.nan
    return float(np.clip(float(dx @ dy) / (spreads[0] * spreads[1]), -1, 1))
