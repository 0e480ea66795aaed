"""Do the items of a group score otherwise than the rest? Permutation tests that deal the labels out anew.

Under the null hypothesis a label says nothing about the score, so which items carry it is arbitrary. Items of one
cluster (song, source file) are not independent: a label belongs to whole clusters and moves with them. Two-sided
p-values, as in `paired`: exact where all choices of clusters can be listed; otherwise (1 + #{|T*| >= |T|}) / (1 +
n_resamples). With k of c clusters labelled no p-value is under 1 / (c over k).

The null is that the scores have one distribution inside and outside. Groups of very different size whose scores
scatter differently can be found different though their means are equal.

References
----------
Good (2005), Permutation, Parametric and Bootstrap Tests of Hypotheses, 3.2. Phipson & Smyth (2010), Permutation
P-values should never be zero, Stat. Appl. Genet. Mol. Biol. 9(1).

"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats.clusters import Floats, Integers, blocks, check_count, check_groups, generator

__all__ = ["LabelTest", "label_mean_tests"]

TIE_TOLERANCE = 1e-10
"""Statistics that differ by less, relative to the largest score, differ by rounding and are counted as equal."""


class LabelTest(NamedTuple):
    """How the items with a label differ from those without.

    Attributes
    ----------
    difference
        Mean with the label minus mean without; NaN where either has no defined item.
    p_value
        Two-sided, above 0 and at most 1; NaN where the difference is.
    n_inside, n_outside
        Defined items with the label and without it.
    """

    difference: float
    p_value: float
    n_inside: int
    n_outside: int


def label_mean_tests(
    values: npt.ArrayLike,
    labels: npt.ArrayLike,
    groups: npt.ArrayLike | None,
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> list[LabelTest]:
    """Test for each of several labels whether the mean of the items that carry it differs from that of the others.

    All labels are tested with the same random orders of the clusters. The p-values are not corrected for their number:
    see `multiplicity.holm`.

    Parameters
    ----------
    values
        Score of each item, shape (n,); NaN is undefined and left out.
    labels
        Which item carries which label, shape (n, n_labels), true or false; an item may carry several or none.
    groups
        Cluster of each item, shape (n,), whole numbers or strings; None makes each item its own cluster.
    n_resamples
        Number of random orders where the choices of clusters cannot all be listed.
    seed
        Seed of the generator. With `groups`, item order plays no part.

    Returns
    -------
    list of LabelTest
        One a label; `difference` in the unit of the scores.

    Raises
    ------
    PairCountError
        Values, labels and groups differ in number.
    InvalidInputError
        Arrays of other shapes, an infinite value, a label that only some items of a cluster carry, or an option out of
        range.
    """
    scores, carried = np.asarray(values, dtype=np.float64), np.asarray(labels, dtype=bool)
    if scores.ndim != 1 or carried.ndim != 2:
        raise InvalidInputError(
            f"values must have shape (n,) and labels (n, n_labels), got {scores.shape} and {carried.shape}"
        )
    if len(scores) != len(carried):
        raise PairCountError(f"values and labels must be of the same items, got {len(scores)} and {len(carried)}")
    if np.isinf(scores).any():
        raise InvalidInputError("values must be finite or NaN, got an infinite one; a mean of it says nothing")
    check_count(n_resamples, "n_resamples")
    rng = generator(seed)
    codes, n_clusters = check_groups(groups, len(scores))
    members = _cluster_labels(carried, codes, n_clusters)
    defined = ~np.isnan(scores)
    sums = np.bincount(codes[defined], weights=scores[defined], minlength=n_clusters)
    counts = np.bincount(codes[defined], minlength=n_clusters).astype(np.float64)
    has_items = counts > 0
    clusters = _Clusters(np.asarray(sums[has_items], dtype=np.float64), counts[has_items])
    return clusters.tests(members[has_items].T, n_resamples, rng)


def _cluster_labels(carried: npt.NDArray[np.bool_], codes: Integers, n_clusters: int) -> npt.NDArray[np.bool_]:
    """Return which cluster carries which label, shape (n_clusters, n_labels)."""
    members = np.zeros((n_clusters, carried.shape[1]), dtype=bool)
    members[codes] = carried
    mixed = np.flatnonzero((members[codes] != carried).any(axis=1))
    if len(mixed):
        raise InvalidInputError(
            f"a label must belong to whole clusters, but items like {mixed[0]} do not carry what their cluster does"
        )
    return members


class _Clusters:
    """Sum and number of the defined values of each cluster, shape (n_clusters,) each."""

    def __init__(self, sums: Floats, counts: Floats) -> None:
        self._sums, self._counts = sums, counts
        self._tolerance = TIE_TOLERANCE * float(np.abs(sums / counts).max(initial=0.0))

    def tests(self, labels: npt.NDArray[np.bool_], n_resamples: int, rng: np.random.Generator) -> list[LabelTest]:
        """Test each label, shape (n_labels, n_clusters)."""
        sizes = labels.sum(axis=1)
        observed = [self._observed(inside) for inside in labels]
        # c over k choices: where they are few all are listed, else some are drawn
        listed = [math.comb(len(self._sums), int(k)) <= n_resamples for k in sizes]
        sampled = [place for place, difference in enumerate(observed) if not (np.isnan(difference) or listed[place])]
        p_values = np.full(len(labels), np.nan)
        least = np.abs(observed) - self._tolerance
        if sampled:
            extreme = self._extreme(sizes[sampled], least[sampled], n_resamples, rng)
            p_values[sampled] = (1 + extreme) / (1 + n_resamples)
        for place, difference in enumerate(observed):
            if listed[place] and not np.isnan(difference):
                # exact: the labels as they are belong to the choices, so that p is never 0
                p_values[place] = np.mean(np.abs(self._choices(int(sizes[place]))) >= least[place])
        inside = [int(self._counts[label].sum()) for label in labels]
        n_all = int(self._counts.sum())
        rows = zip(observed, p_values, inside, strict=True)
        return [LabelTest(float(difference), float(p), n, n_all - n) for difference, p, n in rows]

    def _observed(self, inside: npt.NDArray[np.bool_]) -> float:
        if inside.all() or not inside.any():
            return float("nan")
        return float(self._differences(self._sums[inside].sum(), self._counts[inside].sum()))

    def _differences(self, sums: Any, counts: Any) -> Any:
        """Return the mean of a part minus that of the rest, from its sums and counts."""
        return sums / counts - (self._sums.sum() - sums) / (self._counts.sum() - counts)

    def _choices(self, k: int) -> Floats:
        """Return the difference for every choice of k clusters."""
        places = np.array(list(itertools.combinations(range(len(self._sums)), k)), dtype=np.int64)
        differences: Floats = self._differences(self._sums[places].sum(axis=1), self._counts[places].sum(axis=1))
        return differences

    def _extreme(self, sizes: Integers, least: Floats, n_resamples: int, rng: np.random.Generator) -> Integers:
        """Count the random orders whose first k clusters, for each k of `sizes`, are as far from the rest."""
        extreme = np.zeros(len(sizes), dtype=np.int64)
        for rows in blocks(n_resamples, len(self._sums)):
            # the first k clusters of a random order, for all k at once by running sums
            order = np.argsort(rng.random((rows, len(self._sums))), axis=1)
            sums, counts = (np.cumsum(values[order], axis=1)[:, sizes - 1] for values in (self._sums, self._counts))
            extreme += np.count_nonzero(np.abs(self._differences(sums, counts)) >= least, axis=0)
        return extreme
