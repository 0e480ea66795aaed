"""The editing test: a style transfer is evaluated by how much work editors have with it.

Conventions
-----------
- A *load* is what an edit cost: seconds, key presses or mouse clicks, at least 0; lower is better. `LOADS` names them.
- A *question* is answered 1 (not at all) to 5 (very much); higher is better. Editors answer `EDITOR_QUESTIONS`,
  listeners `LISTENER_QUESTION`.
- Several editors repair one *sample*, the rearrangement of a piece in a style by a model; their loads and answers are
  averaged. A *pair* is the sample of the model that is evaluated and that of the baseline, of one piece and style.

References
----------
Lu, Wu, Chiu, Su: "Actions speak louder than listening: evaluating music style transfer based on editing experience",
ACM Multimedia 2021, arXiv:2110.12855, section 5, tables 2 to 4.

"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.metrics.arrays import FloatArray

__all__ = [
    "EDITOR_QUESTIONS",
    "LISTENER_QUESTION",
    "LOADS",
    "STAR_LEVELS",
    "GroupMeans",
    "Moments",
    "effort_ratio",
    "group_means",
    "moments",
    "stars",
]

LOADS: Final = {"time": "time_s", "keyboard": "key_presses", "mouse": "mouse_clicks"}
"""Load -> the column of an edit that it stands in; seconds, presses and clicks."""
EDITOR_QUESTIONS: Final = ("EQ1", "EQ2", "EQ3")
"""Easy to edit; sounds good after my editing; can benefit my production."""
LISTENER_QUESTION: Final = "LQ1"
"""Does it sound good?"""
STAR_LEVELS: Final = ((0.005, "**"), (0.05, "*"))
"""Below which p-value a cell of table 4 has which stars, the stricter level first."""


class GroupMeans(NamedTuple):
    """Means of the values of each group, such as the edits of a sample."""

    mean: FloatArray
    """Shape (groups,); NaN where a group has no value."""
    n: npt.NDArray[np.int64]
    """Values of each group that are not NaN."""


class Moments(NamedTuple):
    """Mean and standard deviation of values, NaN left out."""

    mean: float
    sd: float
    """With n - 1 in the denominator; NaN for fewer than two values."""
    n: int


def group_means(values: npt.ArrayLike, codes: npt.ArrayLike, n_groups: int) -> GroupMeans:
    """Average values by group.

    Parameters
    ----------
    values
        Shape (n,); NaN is left out.
    codes
        Group of each value, 0..n_groups-1.
    n_groups
        How many groups there are.

    Raises
    ------
    PairCountError
        Not one group a value.

    Examples
    --------
    >>> group_means([4, 2, 5], [0, 0, 1], 3).mean.tolist()
    [3.0, 5.0, nan]
    """
    given, groups = np.asarray(values, dtype=np.float64), np.asarray(codes, dtype=np.int64)
    if given.ndim != 1 or given.shape != groups.shape:
        raise PairCountError(f"expected one group a value, got the shapes {given.shape} and {groups.shape}")
    defined = ~np.isnan(given)
    counts = np.bincount(groups[defined], minlength=n_groups)
    sums = np.bincount(groups[defined], given[defined], minlength=n_groups)
    return GroupMeans(np.divide(sums, counts, out=np.full(n_groups, np.nan), where=counts > 0), counts)


def moments(values: npt.ArrayLike) -> Moments:
    """Return mean, standard deviation and number of the values that are not NaN; NaN where there are too few.

    Examples
    --------
    >>> moments([1.0, 3.0, float("nan")])
    Moments(mean=2.0, sd=1.4142135623730951, n=2)
    """
    given = np.asarray(values, dtype=np.float64)
    given = given[~np.isnan(given)]
    mean = float(given.mean()) if len(given) else np.nan
    return Moments(mean, float(given.std(ddof=1)) if len(given) > 1 else np.nan, len(given))


def effort_ratio(baseline: npt.ArrayLike, proposed: npt.ArrayLike, *, epsilon: float = 0.0) -> FloatArray:
    """Return how much work the proposed model's samples make, of what the baseline's make: proposed / baseline.

    Below 1 favours the proposed model; range 0 to infinity, lower is better. NaN where a side is NaN.

    Parameters
    ----------
    baseline, proposed
        Mean load of each pair's samples, shape (pairs,), in one unit.
    epsilon
        Added to both sides. With 0, the default, a load of 0 is refused: its ratio is undefined, and neither has a
        ratio of 0 a logarithm.

    Returns
    -------
    numpy.ndarray
        Shape (pairs,).

    Raises
    ------
    PairCountError
        Sides of different length.
    InvalidInputError
        A load below 0, or one of 0 where epsilon is 0; the message says the pair. An epsilon below 0.

    References
    ----------
    Section 5.1 of the paper, "performance ratio". It leaves open whether means or single edits are divided; we divide
    means.

    Examples
    --------
    >>> effort_ratio([600.0, 900.0], [300.0, 990.0]).tolist()
    [0.5, 1.1]
    """
    below, above = np.asarray(baseline, dtype=np.float64), np.asarray(proposed, dtype=np.float64)
    if below.ndim != 1 or below.shape != above.shape:
        raise PairCountError(f"loads must pair up, got the shapes {below.shape} and {above.shape}")
    if not epsilon >= 0:
        raise InvalidInputError(f"epsilon must be at least 0, got {epsilon}")
    for side, loads in (("baseline", below), ("proposed", above)):
        wrong = np.flatnonzero((loads < 0) | (loads + epsilon == 0))
        if len(wrong):
            raise InvalidInputError(
                f"pair {wrong[0] + 1}: the {side} load is {loads[wrong[0]]:g}; a ratio needs loads above 0. Leave the "
                "pair out, or give an epsilon that is added to both sides"
            )
    return np.asarray((above + epsilon) / (below + epsilon), dtype=np.float64)


def stars(p_values: npt.ArrayLike) -> list[str]:
    """Return the stars of table 4: ** below .005, * below .05, else nothing; none for NaN.

    Parameters
    ----------
    p_values
        Shape (n,), not adjusted: the paper stars each cell by itself.

    Examples
    --------
    >>> stars([0.001, 0.02, 0.2])
    ['**', '*', '']
    """
    given = np.atleast_1d(np.asarray(p_values, dtype=np.float64))
    return [next((sign for level, sign in STAR_LEVELS if p < level), "") for p in given.tolist()]
