"""How far raters agree beyond chance: Krippendorff's alpha of numbers, names and sets of tags, and Cohen's kappa.

All are 1 - disagreement / that by chance: 1 perfect, 0 what chance gives, below 0 systematic disagreement. Alpha takes
any number of raters and missing ratings; kappa takes two raters, each with their own habits.

References
----------
K. Krippendorff: Content Analysis, 2004, 11.3, and "Computing Krippendorff's alpha-reliability", 2011. J. Cohen: "A
coefficient of agreement for nominal scales", Educ. Psychol. Meas. 20, 1960, and "Weighted kappa", Psychol. Bull.
70, 1968. R. Passonneau: "Measuring agreement on set-valued items (MASI)", LREC 2006.

"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from music_evals.errors import PairCountError, UnknownNameError

__all__ = ["cohen_kappa", "krippendorff_alpha", "krippendorff_alpha_of_sets"]

LEVELS = ("interval", "ordinal", "nominal")
WEIGHTS = ("none", "linear", "quadratic")
DISTANCES = ("masi", "jaccard")


def krippendorff_alpha(ratings: npt.ArrayLike, *, level: str = "interval") -> float:
    """Return Krippendorff's alpha: 1 - observed disagreement / disagreement expected by chance.

    Parameters
    ----------
    ratings
        Shape (n_units, n_raters); NaN where a rater did not rate. Units with one rating play no part.
    level
        ``"interval"``: disagreement is the squared difference. ``"ordinal"``: that of the ranks. ``"nominal"``: whether
        two ratings differ.

    Returns
    -------
    float
        At most 1; 0 is chance. NaN where no unit has two ratings, or all ratings are equal: nothing shows whether
        raters could have differed.

    Raises
    ------
    UnknownNameError
        Another level.

    Examples
    --------
    >>> round(krippendorff_alpha([[1, 1], [2, 3], [5, 5]]), 3)
    0.95
    """
    if level not in LEVELS:
        raise UnknownNameError("level", level, LEVELS)
    table = np.asarray(ratings, dtype=np.float64)
    counts = np.count_nonzero(~np.isnan(table), axis=1)
    table = table[counts > 1]
    values, codes = np.unique(table[~np.isnan(table)], return_inverse=True)
    if len(values) < 2:
        return float("nan")
    units = np.nonzero(~np.isnan(table))[0]
    sizes, totals = np.bincount(units).astype(np.float64), np.bincount(codes).astype(np.float64)
    # sums over pairs within each unit, and over all pairs, of what their disagreement is
    if level == "nominal":
        # pairs of a unit that differ: (m² - sum of its squared counts) / 2
        _, first, held = np.unique(units * len(values) + codes, return_index=True, return_counts=True)
        alike = np.bincount(units[first], held**2)
        within, every = (sizes**2 - alike) / 2, (len(codes) ** 2 - (totals**2).sum()) / 2
    else:  # of squared differences: n sum(x²) - (sum x)²
        place = np.cumsum(totals) - totals / 2 if level == "ordinal" else values  # mid-ranks
        x = (place - np.average(place, weights=totals))[codes]
        within = sizes * np.bincount(units, x**2) - np.bincount(units, x) ** 2
        every = len(x) * (x @ x) - x.sum() ** 2
    # in a unit of m ratings each is in m - 1 pairs, so that a pair weighs 1 / (m - 1)
    observed = (within / (sizes - 1)).sum()
    return float(1 - observed * (len(codes) - 1) / every)


def krippendorff_alpha_of_sets(ratings: Sequence[Sequence[Collection[str]]], *, distance: str = "masi") -> float:
    """Return Krippendorff's alpha where a rating is a set, such as the tags that somebody chose.

    Parameters
    ----------
    ratings
        Of each unit the sets of those who rated it; who they are plays no part. Units with one set play none.
    distance
        ``"jaccard"``: 1 - |A and B| / |A or B|. ``"masi"`` (Passonneau 2006): that share is first multiplied by 1 for
        equal sets, 2/3 where one holds the other, 1/3 where they meet, 0 where they do not. Two empty sets are equal.

    Returns
    -------
    float
        At most 1; 0 is chance. NaN where no unit has two sets, or all sets are equal.

    Raises
    ------
    UnknownNameError
        Another distance.

    Examples
    --------
    >>> round(krippendorff_alpha_of_sets([[{"sad"}, {"sad", "slow"}], [{"glad"}, {"glad"}]]), 3)
    0.571
    """
    if distance not in DISTANCES:
        raise UnknownNameError("distance", distance, DISTANCES)
    units = [[frozenset(rating) for rating in unit] for unit in ratings if len(unit) > 1]
    codes = {rating: code for code, rating in enumerate(dict.fromkeys(rating for unit in units for rating in unit))}
    if len(codes) < 2:
        return float("nan")
    apart = _distances(list(codes), distance)
    counts = np.zeros((len(units), len(codes)))
    for row, unit in zip(counts, units, strict=True):
        np.add.at(row, [codes[rating] for rating in unit], 1)
    totals, sizes = counts.sum(axis=0), counts.sum(axis=1)
    # distances of all ordered pairs of a unit, from how often it has each set
    observed = (np.einsum("ui,ij,uj->u", counts, apart, counts) / (sizes - 1)).sum()
    return float(1 - observed * (totals.sum() - 1) / (totals @ apart @ totals))


def _distances(sets: Sequence[frozenset[str]], distance: str) -> npt.NDArray[np.float64]:
    """Return how far each two sets lie apart, shape (n, n)."""
    places = {member: place for place, member in enumerate(sorted(frozenset[str]().union(*sets)))}
    holds = np.zeros((len(sets), len(places)))
    for row, members in zip(holds, sets, strict=True):
        row[[places[member] for member in members]] = 1
    # |A and B| of all pairs of sets, as inner products of their memberships
    shared, sizes = holds @ holds.T, holds.sum(axis=1)
    either = sizes[:, None] + sizes - shared
    share: npt.NDArray[np.float64] = np.divide(shared, either, out=np.ones_like(shared), where=either > 0)
    if distance == "jaccard":
        return np.subtract(1, share)
    within = (shared == np.minimum(sizes[:, None], sizes)) & (shared > 0)  # one holds the other
    # factors of MASI; sets that do not meet share 0 already
    agreement: npt.NDArray[np.float64] = share * np.select([share == 1, within], [1, 2 / 3], 1 / 3)
    return np.subtract(1, agreement)


def cohen_kappa(first: npt.ArrayLike, second: npt.ArrayLike, *, weights: str = "none") -> float:
    """Return Cohen's kappa of two raters: 1 - observed disagreement / that of the same ratings paired at random.

    Parameters
    ----------
    first, second
        Category of each item by either, shape (n,): numbers or texts.
    weights
        What a disagreement counts: ``"none"`` 1, ``"linear"`` and ``"quadratic"`` how many categories lie between, in
        their sorted order among those that were given, and its square.

    Returns
    -------
    float
        At most 1; 0 is chance. NaN without items, and where both gave one and the same category throughout.

    Raises
    ------
    PairCountError
        Not one category of each for every item.
    UnknownNameError
        Other weights.

    Examples
    --------
    >>> round(cohen_kappa(["verse", "verse", "chorus", "chorus"], ["verse", "verse", "chorus", "verse"]), 3)
    0.5
    """
    if weights not in WEIGHTS:
        raise UnknownNameError("weights", weights, WEIGHTS)
    ours, theirs = np.asarray(first), np.asarray(second)
    if ours.ndim != 1 or ours.shape != theirs.shape:
        raise PairCountError(f"both raters must judge the same items, got shapes {ours.shape} and {theirs.shape}")
    values, codes = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    if len(values) < 2:
        return float("nan")
    table = np.zeros((len(values), len(values)))
    np.add.at(table, (codes[: len(ours)], codes[len(ours) :]), 1)
    places = np.arange(len(values))
    between = np.abs(places[:, None] - places)
    cost = {"none": between > 0, "linear": between, "quadratic": between**2}[weights]
    # expected counts of raters who are independent: products of the margins
    by_chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / len(ours)
    return float(1 - (cost * table).sum() / (cost * by_chance).sum())
