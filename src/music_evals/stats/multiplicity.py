"""Several tests at once: p-values and verdicts that stay honest when many systems or metrics are compared.

References
----------
Holm (1979), A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6(2), 65-70; Benjamini &
Hochberg (1995), Controlling the false discovery rate, J. R. Stat. Soc. B 57(1), 289-300.

"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError

ERROR_RATE: Final = 0.05
"""Of all the intervals of a hypothesis together: of k parts each has a confidence of 1 - 0.05 / k (Bonferroni)."""


def holm(p_values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Holm's step-down adjusted p-values.

    The i-th smallest of m p-values is multiplied by m - i + 1; a result is never under that of a smaller p-value, and
    never over 1. Rejecting where the result is at most alpha keeps the chance of one or more false rejections in the
    family at most alpha, whatever the dependence between the tests. A NaN is a test that could not be made: it stays
    NaN and does not count in m.

    Parameters
    ----------
    p_values
        One family of tests, any shape, values 0..1 or NaN.

    Returns
    -------
    numpy.ndarray
        Adjusted p-values, same shape and order, 0..1 or NaN.

    Raises
    ------
    InvalidInputError
        A value outside 0..1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    given, order = _ordered(p_values)
    flat = given.ravel()
    # step down: factors m, m - 1, .., 1, then the running maximum from the smallest p-value on
    factors = np.arange(len(order), 0, -1)
    adjusted = np.full(flat.shape, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * flat[order]), 1)
    return adjusted.reshape(given.shape)


def benjamini_hochberg(p_values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Benjamini and Hochberg's step-up adjusted p-values.

    The i-th smallest of m p-values is multiplied by m / i; a result is never over that of a larger p-value. Rejecting
    where the result is at most alpha keeps the expected share of false rejections among all at most alpha, for tests
    that are independent or go together. A NaN is a test that could not be made: it stays NaN and does not count in m.

    Parameters
    ----------
    p_values
        One family of tests, any shape, values 0..1 or NaN.

    Returns
    -------
    numpy.ndarray
        Adjusted p-values, same shape and order, 0..1 or NaN.

    Raises
    ------
    InvalidInputError
        A value outside 0..1.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    given, order = _ordered(p_values)
    flat = given.ravel()
    # step up: factors m / i, then the running minimum from the largest p-value down
    factors = len(order) / np.arange(1, len(order) + 1)
    adjusted = np.full(flat.shape, np.nan)
    adjusted[order] = np.minimum.accumulate((factors * flat[order])[::-1])[::-1]
    return adjusted.reshape(given.shape)


def verdict(intervals: Sequence[tuple[float | None, float | None]], *, every: bool) -> str:
    """Return what intervals of differences, claimed to be above 0, say of a hypothesis; ends of None are unknown."""
    # Where all must hold it is supported when every interval lies above 0, and contradicted when one lies below. Where
    # one is enough it is supported when one lies above, and contradicted when all lie below.
    if not intervals:
        return "untested"
    above = [low is not None and low > 0 for low, _ in intervals]
    below = [high is not None and high < 0 for _, high in intervals]
    if every:
        return "contradicted" if any(below) else "supported" if all(above) else "undecided"
    return "supported" if any(above) else "contradicted" if all(below) else "undecided"


def _ordered(p_values: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """Return checked p-values, and the places of those that are defined, the smallest first."""
    given = np.asarray(p_values, dtype=np.float64)
    wrong = given[(given < 0) | (given > 1)]
    if len(wrong):
        raise InvalidInputError(f"p-values must lie in 0..1, got {wrong[0]}")
    flat = given.ravel()
    defined = np.flatnonzero(~np.isnan(flat))
    return given, defined[np.argsort(flat[defined], kind="stable")]
