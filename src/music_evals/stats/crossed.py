"""Means of ratings that cross listeners and items, with intervals for other listeners and other items at once.

Each of n ratings adds an influence to an estimate, such as (x - mean) / n. Summed within listeners, within items and
within both, their squares estimate three variances; the variance of the estimate is the first plus the second less the
third, and at least the larger of the first two. Each sum over G clusters is multiplied by G / (G - 1). The ends lie
Student's t away, with Satterthwaite's degrees of freedom and at least those of the fewer clusters. Coverage is
simulated in ``tests/stats/test_crossed.py`` and, through whole listening tests, in ``benchmarks/listening_study``.

References
----------
A. C. Cameron, J. B. Gelbach, D. L. Miller: "Robust inference with multiway clustering", J. Bus. Econ. Stat. 29(2),
2011.

"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats.clusters import Floats, check_groups
from music_evals.stats.intervals import check_confidence, student

__all__ = ["Crossed", "crossed_difference", "crossed_estimate", "crossed_mean"]


class Crossed(NamedTuple):
    """A mean, or a difference of two, of ratings that cross listeners and items."""

    estimate: float
    """NaN without ratings."""
    low: float
    """Ends of the interval; NaN with fewer than two listeners or two items, and where nothing varies: ratings that all
    agree do not say that the next one does."""
    high: float
    p_value: float
    """Two-sided, against `nothing`; NaN where there is no interval."""
    n: int
    n_listeners: int
    n_items: int


def crossed_mean(
    values: npt.ArrayLike,
    listeners: npt.ArrayLike,
    items: npt.ArrayLike,
    *,
    nothing: float = 0.0,
    confidence: float = 0.95,
) -> Crossed:
    """Return the mean of ratings.

    Parameters
    ----------
    values
        Shape (n,), finite.
    listeners, items
        Who rated and what, shape (n,), whole numbers or strings. Items of one song may be one cluster.
    nothing
        What the p-value is against, such as one half for shares of preferences.
    confidence
        Nominal coverage of the interval, above 0 and below 1.

    Returns
    -------
    Crossed
        The order of the ratings plays no part.

    Raises
    ------
    PairCountError
        Arrays of different lengths.
    InvalidInputError
        A value that is not finite, or an option out of range.

    Examples
    --------
    >>> found = crossed_mean([4, 5, 3, 4], ["p", "p", "q", "q"], ["a", "b", "a", "b"])
    >>> found.estimate, found.n_listeners, found.n_items
    (4.0, 2, 2)
    """
    ratings = _checked(values)
    mean = float(ratings.mean()) if len(ratings) else float("nan")
    # derivative of the mean with respect to the weight of a rating
    influences = (ratings - mean) / max(len(ratings), 1)
    return crossed_estimate(mean, influences, listeners, items, nothing=nothing, confidence=confidence)


def crossed_difference(
    values: npt.ArrayLike,
    is_first: npt.ArrayLike,
    listeners: npt.ArrayLike,
    items: npt.ArrayLike,
    *,
    confidence: float = 0.95,
) -> Crossed:
    """Return the mean of the first ratings less that of the others; what listeners and items share cancels.

    Parameters
    ----------
    values
        Shape (n,), finite, of both.
    is_first
        Which they are, shape (n,), True or False.
    listeners, items, confidence
        As of `crossed_mean`.

    Returns
    -------
    Crossed
        NaN where one of the two has no ratings.

    Raises
    ------
    PairCountError
        Arrays of different lengths.
    InvalidInputError
        A value that is not finite, or an option out of range.
    """
    ratings, first = _checked(values), np.asarray(is_first, dtype=bool)
    if first.shape != ratings.shape:
        raise PairCountError(f"values and is_first must be as many, got shapes {ratings.shape} and {first.shape}")
    # influences on the first mean, less those on the second
    influences, difference = np.zeros(len(ratings)), 0.0
    for sign, side in ((1, first), (-1, ~first)):
        count = np.count_nonzero(side)
        mean = float(ratings[side].mean()) if count else float("nan")
        influences[side] = sign * (ratings[side] - mean) / max(count, 1)
        difference += sign * mean
    return crossed_estimate(difference, influences, listeners, items, confidence=confidence)


def _checked(values: npt.ArrayLike) -> Floats:
    ratings = np.asarray(values, dtype=np.float64)
    if ratings.ndim != 1 or not np.isfinite(ratings).all():
        raise InvalidInputError(f"expected finite values of shape (n,), got shape {ratings.shape}, or NaN among them")
    return ratings


def crossed_estimate(
    estimate: float,
    influences: npt.ArrayLike,
    listeners: npt.ArrayLike,
    items: npt.ArrayLike,
    *,
    nothing: float = 0.0,
    confidence: float = 0.95,
) -> Crossed:
    """Return an estimate with its interval, from what each rating adds to it.

    Parameters
    ----------
    estimate
        Any that is, but for small terms, a sum over ratings.
    influences
        By how much each rating moves it away from what is expected, shape (n,).
    listeners, items, nothing, confidence
        As of `crossed_mean`.

    Raises
    ------
    PairCountError
        Arrays of different lengths.
    InvalidInputError
        An influence that is not finite while the estimate is, or an option out of range.
    """
    from scipy.special import stdtr

    check_confidence(confidence)
    moved = np.asarray(influences, dtype=np.float64)
    (listener_codes, n_listeners), (item_codes, n_items) = (
        check_groups(labels, len(moved)) for labels in (listeners, items)
    )
    n, nan = len(moved), float("nan")
    if np.isnan(estimate) or min(n_listeners, n_items) < 2:
        return Crossed(estimate, nan, nan, nan, n, n_listeners, n_items)
    moved = _checked(moved)
    # Cameron, Gelbach & Miller: V = V_listeners + V_items - V_both, which may come out too small
    by_listener, by_item = _variance(moved, listener_codes), _variance(moved, item_codes)
    by_both = _variance(moved, listener_codes * n_items + item_codes)
    variance = max(by_listener + by_item - by_both, by_listener, by_item)
    if not variance > 0:
        return Crossed(estimate, nan, nan, nan, n, n_listeners, n_items)
    least = min(n_listeners, n_items) - 1
    # Satterthwaite: V² / sum(V_k² / df_k), and at least what the fewer clusters leave
    df = max(least, variance**2 / (by_listener**2 / (n_listeners - 1) + by_item**2 / (n_items - 1)))
    reach = float(student(float(df), confidence)) * variance**0.5
    # two-sided, of Student's t
    p_value = float(2 * stdtr(df, -abs((estimate - nothing) / variance**0.5)))
    return Crossed(estimate, estimate - reach, estimate + reach, p_value, n, n_listeners, n_items)


def _variance(influences: Floats, clusters: npt.NDArray[np.int64]) -> float:
    sums = np.bincount(clusters, influences)
    # G: not every listener rated every item, so that some codes of both have no rating
    count = len(np.unique(clusters))
    return float(count / (count - 1) * (sums**2).sum())
