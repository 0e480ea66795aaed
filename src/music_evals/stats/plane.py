"""Systems by two scores at once: an ellipse around each, and those that no other beats in both.

Two scores of one system are drawn from the same sources, so that they go together: where a source is hard, both may be
low. An ellipse says so, and two intervals do not.
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
    """An ellipse about a point.

    Attributes
    ----------
    major, minor
        Half its length and half its width, in the unit of the scores; 0 where nothing varies that way.
    angle_rad
        Of its length, counted from the first score to the second, above -π/2 and at most π/2.
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

    Each score is a weighted sum of means of columns. Clusters are drawn with replacement, all columns of one together.
    The ellipse has the covariance of the resampled scores, enlarged by c / (c - 1) for c clusters, and Hotelling's
    radius: the square root of 2 (c - 1) / (c - 2) times the quantile of F with 2 and c - 2 degrees of freedom. With
    many clusters this is the usual 2.45 standard deviations; with four it is 7.5, as four say little.

    Parameters
    ----------
    values
        What is known of each item, shape (n, n_columns); NaN is undefined and in no mean.
    groups
        Cluster of each item, shape (n,), whole numbers or strings; None makes each item its own cluster.
    weights
        Of the columns in the two scores, shape (2, n_columns).
    confidence
        Nominal coverage, above 0 and below 1.
    n_resamples, seed
        Of the bootstrap. Item order and the names of clusters play no part; with one seed, systems of equal clusters
        are resampled alike.

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

    References
    ----------
    Hotelling (1931), The generalization of Student's ratio, Ann. Math. Statist. 2(3).

    Examples
    --------
    >>> level = [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6]]
    >>> found = bootstrap_ellipse(level, None, [[1, 0], [0, 1]])
    >>> round(found.angle_rad / np.pi, 3), round(found.minor, 3)
    (-0.25, 0.0)
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
        Scores of systems, shape (n, n_scores); higher is better. A system with a NaN is not on the front, and
        keeps nobody from it.

    Returns
    -------
    numpy.ndarray
        Shape (n,). Equal systems are on it together; any increasing function of a score leaves it as it is.

    Raises
    ------
    InvalidInputError
        Points not of shape (n, n_scores).

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
