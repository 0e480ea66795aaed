"""Systems by two scores at once: an ellipse around each, and those that no other beats in both.

Both scores of a system are drawn from the same sources and go together, which an ellipse says and two intervals do not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError
from music_evals.stats.clusters import Floats, blocks, check_groups, generator
from music_evals.stats.resampling import check_options

__all__ = ["NO_ELLIPSE", "Ellipse", "bootstrap_ellipse", "pareto_front"]


class Ellipse(NamedTuple):
    """Half the length and half the width of an ellipse, in the unit of the scores, and the angle of its length.

    The angle is counted from the first score to the second, above -π/2 and at most π/2.
    """

    major: float
    minor: float
    angle_rad: float


NO_ELLIPSE = Ellipse(math.nan, math.nan, math.nan)
"""Of fewer than three clusters, or where nothing is defined."""


def bootstrap_ellipse(
    values: npt.ArrayLike,
    groups: npt.ArrayLike | None,
    weights: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Ellipse:
    """Return the ellipse that holds two scores of a system, by a bootstrap over clusters.

    Clusters are drawn with replacement, all columns of one together. The ellipse has the covariance of the resampled
    scores, enlarged by c / (c - 1) for c clusters, and Hotelling's (1931) radius: the root of 2 (c - 1) / (c - 2) times
    the quantile of F with 2 and c - 2 degrees of freedom; 2.45 with many clusters, 7.5 with four, which say little.

    Parameters
    ----------
    values
        What is known of each item, shape (n, n_columns); NaN is undefined and in no mean.
    groups
        Cluster of each item, shape (n,), whole numbers or strings; None makes each item its own cluster.
    weights
        Of the means of the columns in the two scores, shape (2, n_columns).
    confidence, n_resamples, seed
        Nominal coverage, and of the bootstrap. Item order and the names of clusters play no part.

    Returns
    -------
    Ellipse
        `NO_ELLIPSE` with fewer than three clusters.

    Raises
    ------
    PairCountError
        Not one group an item.
    InvalidInputError
        Arrays of other shapes, or an option out of range.
    """
    from scipy import stats

    check_options(confidence, n_resamples, seed)
    table, shares = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if table.ndim != 2 or shares.shape != (2, table.shape[1]):
        raise InvalidInputError(
            f"expected values (n, columns) and weights (2, columns), got {table.shape}, {shares.shape}"
        )
    codes, _ = check_groups(groups, len(table))
    defined = ~np.isnan(table) & shares.any(axis=0)
    there = defined.any(axis=1)
    names, codes = np.unique(codes[there], return_inverse=True)
    n, table, defined = len(names), table[there], defined[there]
    if n < 3:
        return NO_ELLIPSE
    sums, counts = np.zeros((2, n, table.shape[1]))
    np.add.at(sums, codes, np.where(defined, table, 0.0))
    np.add.at(counts, codes, defined)
    # means of the columns in each resample, shape (resamples, columns)
    rng, resampled = generator(seed), list[tuple[Floats, Floats]]()
    for rows in blocks(n_resamples, n):
        times = rng.multinomial(n, np.full(n, 1 / n), size=rows).astype(np.float64)
        resampled.append((times @ sums, times @ counts))
    totals, held = map(np.concatenate, zip(*resampled, strict=True))
    means = np.divide(totals, held, out=np.full(held.shape, np.nan), where=held > 0)
    parts = np.where(shares[:, None] != 0, shares[:, None] * means, 0.0)
    points: Floats = parts.sum(axis=2)
    points = points[:, ~np.isnan(points).any(axis=0)]
    if points.shape[1] < 2:
        return NO_ELLIPSE
    variances, directions = np.linalg.eigh(np.cov(points) * n / (n - 1))
    radius = math.sqrt(2 * (n - 1) / (n - 2) * float(stats.f.ppf(confidence, 2, n - 2)))
    minor, major = radius * np.sqrt(np.maximum(variances, 0.0))
    x, y = directions[:, 1] * (1.0 if directions[0, 1] > 0 else -1.0)
    return Ellipse(float(major), float(minor), math.atan2(y, x))


def pareto_front(points: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Tell for each system whether none is as good in every score and better in one.

    Parameters
    ----------
    points
        Scores of systems, shape (n, n_scores); higher is better. One with a NaN is not on the front and beats nobody.

    Returns
    -------
    numpy.ndarray
        Shape (n,). Equal systems are on it together.

    Raises
    ------
    InvalidInputError
        Points of another shape.

    Examples
    --------
    >>> pareto_front([[0.0, 1.0], [0.5, 0.5], [0.4, 0.5], [1.0, 0.0]]).tolist()
    [True, True, False, True]
    """
    table = np.asarray(points, dtype=np.float64)
    if table.ndim != 2:
        raise InvalidInputError(f"points must have shape (n, n_scores), got {table.shape}")
    defined = ~np.isnan(table).any(axis=1)
    first, second = table[:, None], table[None]
    # which of the first is beaten by which of the second; a comparison with NaN is false
    is_beaten = np.logical_and.reduce(second >= first, axis=2) & np.logical_or.reduce(second > first, axis=2)
    front: npt.NDArray[np.bool_] = defined & ~np.logical_or.reduce(is_beaten, axis=1)
    return front
