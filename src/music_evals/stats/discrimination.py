"""How well a score tells two kinds of items apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["auc", "clustered_auc"]

FloatArray = npt.NDArray[np.float64]


def auc(above: npt.ArrayLike, below: npt.ArrayLike) -> float:
    """Return P(a value of `above` exceeds a value of `below`), ties counted one half: the area under the ROC curve.

    0.5 is chance, 1 a perfect separation, 0 a perfect one the wrong way round. NaN where either side is empty.

    Parameters
    ----------
    above, below
        Scores, shapes (n,) and (m,). NaN values are left out.

    Examples
    --------
    >>> auc([2, 3], [1, 2])  # of four pairs three are won and one is a tie
    0.875

    References
    ----------
    Hanley and McNeil, Radiology 1982: the area equals the Mann-Whitney statistic over n m.
    """
    sides = [np.asarray(values, dtype=np.float64) for values in (above, below)]
    first, second = (side[~np.isnan(side)] for side in sides)
    if not len(first) or not len(second):
        return float("nan")
    return float(_wins(first, second).sum() / (len(first) * len(second)))


def clustered_auc(
    above: npt.ArrayLike,
    below: npt.ArrayLike,
    above_groups: npt.ArrayLike,
    below_groups: npt.ArrayLike,
    *,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Return `auc` and its percentile interval, resampled by groups: (estimate, low, high).

    Parameters
    ----------
    above, below
        Scores, shapes (n,) and (m,).
    above_groups, below_groups
        The group of each score, such as its source piece. A resample draws whole groups, for both sides at once.
    n_resamples, confidence, seed
        Of the bootstrap.
    """
    first, second = (np.asarray(values, dtype=np.float64) for values in (above, below))
    names, labels = np.unique(np.concatenate([above_groups, below_groups]), return_inverse=True)
    n, left, right = len(names), ~np.isnan(first), ~np.isnan(second)
    upper, lower = labels[: len(first)][left], labels[len(first) :][right]
    # of each group below (row) with each above (column): the pairs of scores that are won
    won = np.array([np.bincount(upper, _wins(first[left], second[right][lower == code]), n) for code in range(n)])
    rng = np.random.default_rng(seed)
    weights = np.array([np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(n_resamples)])
    pairs = weights @ np.bincount(upper, minlength=n) * (weights @ np.bincount(lower, minlength=n))
    values = ((weights @ won.reshape(n, n)) * weights).sum(axis=1)[pairs > 0] / pairs[pairs > 0]
    tail = 50 * (1 - confidence)
    low, high = np.percentile(values, [tail, 100 - tail]) if len(values) else (np.nan, np.nan)
    return auc(first, second), float(low), float(high)


def _wins(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return how many of the second side lie below each value of the first, as Mann and Whitney; ties are halves."""
    ordered = np.sort(second)
    below = np.searchsorted(ordered, first, side="left")
    won: FloatArray = below + (np.searchsorted(ordered, first, side="right") - below) / 2
    return won
