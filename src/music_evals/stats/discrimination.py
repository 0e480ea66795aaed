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
    first, second = (_defined(values) for values in (above, below))
    if not len(first) or not len(second):
        return float("nan")
    ordered = np.sort(second)
    # Mann-Whitney: how many of the second side lie below each value of the first, and how many equal it
    won = np.searchsorted(ordered, first, side="left")
    tied = np.searchsorted(ordered, first, side="right") - won
    return float((won + tied / 2).sum() / (len(first) * len(second)))


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
    first_labels, second_labels = labels[: len(first)], labels[len(first) :]
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(n_resamples):
        weights = np.bincount(rng.integers(0, len(names), len(names)), minlength=len(names))
        values.append(auc(np.repeat(first, weights[first_labels]), np.repeat(second, weights[second_labels])))
    tail = 50 * (1 - confidence)
    known = _defined(values)
    low, high = np.percentile(known, [tail, 100 - tail]) if len(known) else (np.nan, np.nan)
    return auc(first, second), float(low), float(high)


def _defined(values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    defined: FloatArray = array[~np.isnan(array)]
    return defined
