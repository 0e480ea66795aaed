"""How far a divergence would move with other songs: its clustered bootstrap, and its noise floor.

Contexts of one song are not independent, so whole clusters (songs, source files) are drawn with replacement and never
single items. A resampled histogram carries the sampling noise twice, and a divergence only grows with noise: resampled
values lie above the estimate about as far as the estimate lies above the truth. So their mean says how large the bias
is, and their deviation how wide the interval: with θ̂ the divergence of the data, b and s the mean and the standard
deviation of the resampled ones, it is 2θ̂ - b ± t s. The t is Student's with the degrees of freedom of
`stats.intervals`, and s is enlarged by the root of c / (c - 1) for c clusters, as in any variance of a sample.
`benchmarks/interval_coverage` compares it with the percentile and the basic bootstrap. Beside it stands
`null_divergence`: the value that noise alone gives at this n.

Bins, masses and discarded values
    A divergence is computed from the bin of each item, 0..n_bins-1, or -1 for a value that the histogram discards.
    The `divergence` callable gets masses: counts per bin divided by the number of items, the discarded ones included.
    Without discarded values a mass sums to 1. One that should sum to 1 all the same is normalised by the callable.

References
----------
Davison & Hinkley (1997), Bootstrap Methods and Their Application, 2.2 (bias), 3.8 (clusters).
Field & Welsh (2007), Bootstrapping clustered data, J. R. Stat. Soc. B 69(3).

"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.errors import PairCountError
from music_evals.stats.clusters import (
    BinPairs,
    Divergence,
    Floats,
    Integers,
    bin_counts,
    blocks,
    check_bins,
    check_count,
    check_groups,
    evaluate,
    generator,
    swap_items,
    swap_units,
)
from music_evals.stats.intervals import (
    NO_SPREAD,
    Interval,
    check_confidence,
    effective_clusters,
    student,
    weights_of_clusters,
)


def bootstrap_divergence(
    bins_reference: npt.ArrayLike,
    bins_estimate: npt.ArrayLike,
    groups: npt.ArrayLike | None,
    *,
    n_bins: int,
    divergence: Divergence,
    upper: float = np.inf,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Return a divergence between two histograms with its interval: a clustered bootstrap, corrected for bias.

    Each resample draws clusters with replacement and takes reference and estimate of an item together. The interval
    answers "which true divergence": the estimate itself is biased upwards by noise, so that it may lie outside, and
    both ends are clipped to 0 and `upper`. NaN with fewer than two clusters, and where no resample differs from
    another. What it covers in simulations stands in `stats.intervals.SIMULATED_COVERAGE`.

    Parameters
    ----------
    bins_reference, bins_estimate
        Bin of each item, shape (n,), whole numbers 0..n_bins-1, or -1 for a discarded value.
    groups
        Cluster of each item, shape (n,), whole numbers or strings; None makes each item its own cluster.
    n_bins
        Number of bins.
    divergence
        Takes two arrays of masses of shape (rows, n_bins) and gives values of shape (rows,). A mass is counts over the
        number of items, discarded ones included (see the module docstring).
    upper
        Largest value of `divergence`: ln 2 for Jensen-Shannon in nats.
    confidence
        Nominal coverage, above 0 and below 1.
    n_resamples
        Number of bootstrap resamples.
    seed
        Seed of the generator; equal seeds give equal intervals. Item order plays no part.

    Returns
    -------
    Interval
        In the unit of `divergence`; `n_defined` counts the items with neither side discarded.

    Raises
    ------
    PairCountError
        Reference, estimate and groups differ in number.
    InvalidInputError
        Bins out of range, an option out of range, or a `divergence` that does not give one value a row.
    """
    pairs = _check_bin_pairs(bins_reference, bins_estimate, groups, n_bins)
    check_options(confidence, n_resamples, seed)
    n_items = len(pairs.codes)
    n_defined = int(np.count_nonzero((pairs.first < n_bins) & (pairs.second < n_bins)))
    if not n_items:
        return Interval(np.nan, np.nan, np.nan, 0, 0, 0.0)
    observed = float(evaluate(divergence, *pairs.histograms, n_items)[0])
    if pairs.n_clusters < 2:
        return Interval(observed, np.nan, np.nan, n_items, n_defined, 1.0)
    sides, clusters = (pairs.first, pairs.second), (pairs.codes, pairs.n_clusters)
    draws = resampled_histograms(sides, clusters, n_bins + 1, n_resamples, generator(seed))
    resampled = np.concatenate([evaluate(divergence, p, q, p.sum(axis=1)) for p, q in draws])
    low, high, effective = bias_corrected(observed, resampled, clusters, confidence)
    low, high = np.clip([low, high], 0, upper)
    return Interval(observed, float(low), float(high), n_items, n_defined, effective)


def null_divergence(
    bins_reference: npt.ArrayLike,
    bins_estimate: npt.ArrayLike,
    *,
    n_bins: int,
    divergence: Divergence,
    units: npt.ArrayLike | None = None,
    n_permutations: int = 1000,
    seed: int = 0,
) -> float:
    """Return the noise floor of a divergence: its mean when the two labels are swapped at random.

    Two finite samples of one law never have equal histograms, and a divergence counts that as distance. A divergence
    near this floor is no evidence of a difference. It is a mean: about half of pure noise lies above it, so a value
    somewhat above it is no evidence either. The floor falls as n grows. NaN with no items.

    Parameters
    ----------
    bins_reference, bins_estimate, n_bins, divergence
        As in `bootstrap_divergence`.
    units
        What is swapped together, shape (n,), whole numbers or strings: the clusters, as in `bootstrap_divergence`.
        Items of a song are alike in how they differ, and swapped one by one they would give too low a floor. None
        swaps each row by itself.
    n_permutations
        Number of random relabellings.
    seed
        Seed of the generator. Item order plays no part.

    Returns
    -------
    float
        In the unit of `divergence`, at least 0 for one that is.

    Raises
    ------
    PairCountError
        Reference and estimate differ in number.
    InvalidInputError
        As `bootstrap_divergence`.
    """
    null_draws = null_divergences(
        bins_reference,
        bins_estimate,
        n_bins=n_bins,
        divergence=divergence,
        units=units,
        n_permutations=n_permutations,
        seed=seed,
    )
    return float(null_draws.mean()) if len(null_draws) else float("nan")


def null_divergences(
    bins_reference: npt.ArrayLike,
    bins_estimate: npt.ArrayLike,
    *,
    n_bins: int,
    divergence: Divergence,
    units: npt.ArrayLike | None = None,
    n_permutations: int = 1000,
    seed: int = 0,
) -> Floats:
    """Return the divergences that `null_divergence` is the mean of, one for each random relabelling.

    Their 95th percentile is what a divergence must exceed to be evidence of a difference at the 5 % level.

    Parameters
    ----------
    bins_reference, bins_estimate, n_bins, divergence, units, n_permutations, seed
        As in `null_divergence`.

    Returns
    -------
    numpy.ndarray
        Shape (n_permutations,), or (0,) with no items.

    Raises
    ------
    PairCountError, InvalidInputError
        As in `null_divergence`.
    """
    pairs = _check_bin_pairs(bins_reference, bins_estimate, units, n_bins)
    check_count(n_permutations, "n_permutations")
    n_items = len(pairs.codes)
    if not n_items:
        return np.empty(0)
    swap = swap_items if pairs.n_clusters == n_items else swap_units
    swaps = swap(pairs, n_permutations, generator(seed))
    return np.concatenate([evaluate(divergence, p, q, n_items) for p, q in swaps])


def check_options(confidence: float, n_resamples: int, seed: int, *, least: int = 1) -> None:
    """Hold the options of an interval to their ranges, with at least `least` resamples.

    Raises
    ------
    InvalidInputError
        One of them is of another type or out of range; the message names it.
    """
    check_count(n_resamples, "n_resamples", least=least)
    check_count(seed, "seed", least=0)
    check_confidence(confidence)


def _check_bin_pairs(
    bins_reference: npt.ArrayLike, bins_estimate: npt.ArrayLike, groups: npt.ArrayLike | None, n_bins: int
) -> BinPairs:
    check_count(n_bins, "n_bins")
    reference = check_bins(bins_reference, n_bins, "bins_reference")
    estimate = check_bins(bins_estimate, n_bins, "bins_estimate")
    if len(reference) != len(estimate):
        raise PairCountError(
            f"bins_reference and bins_estimate must pair up, got {len(reference)} and {len(estimate)} items"
        )
    return BinPairs(reference, estimate, *check_groups(groups, len(reference)), n_bins)


def bias_corrected(
    observed: float, resampled: Floats, clusters: tuple[Integers, int], confidence: float
) -> tuple[float, float, float]:
    """Return low, high and the effective number of clusters; NaN with one cluster or without any spread."""
    codes, n_clusters = clusters
    counts = np.bincount(codes, minlength=n_clusters).astype(np.float64)
    effective = float(effective_clusters(counts))
    defined = resampled[~np.isnan(resampled)]
    if n_clusters < 2 or not len(defined) or not defined.std() > NO_SPREAD * max(abs(observed), np.abs(defined).max()):
        return np.nan, np.nan, effective
    # s, enlarged as the variance of a sample of c clusters is
    deviation = defined.std() * math.sqrt(n_clusters / (n_clusters - 1))
    reach = float(student(weights_of_clusters(counts)[-1], confidence)) * deviation
    # the estimate less its bias, which is b - θ̂: 2θ̂ - b
    centre = 2 * observed - defined.mean()
    return float(centre - reach), float(centre + reach), effective


def resampled_histograms(
    sides: Sequence[Integers], clusters: tuple[Integers, int], size: int, n_resamples: int, rng: np.random.Generator
) -> Iterator[Sequence[Floats]]:
    """Yield the histograms of all sides, shape (rows, size) each, of resamples that draw whole clusters."""
    codes, n_clusters = clusters
    if n_clusters < len(codes):
        counts = _stacked_counts(sides, codes, (size, n_clusters))
        for rows in blocks(n_resamples, n_clusters) if n_clusters > 1 else ():
            choices = rng.integers(0, n_clusters, size=(rows, n_clusters))
            # how often each cluster was drawn in each resample, shape (rows, clusters)
            places = choices + np.arange(rows)[:, None] * n_clusters
            times = np.bincount(places.ravel(), minlength=choices.size).reshape(choices.shape)
            yield _weigh(counts, times.astype(np.float64), len(sides))
        return
    # Each item is a cluster. Items with the same bins are alike, so their numbers in a resample are multinomial: the
    # cost goes with the number of different bins, not with the number of items, and the law is the same.
    # one number for each combination of the bins of all sides
    numbers = functools.reduce(lambda number, side: number * size + side, sides)
    _, firsts, frequencies = np.unique(numbers, return_index=True, return_counts=True)
    counts = _stacked_counts([side[firsts] for side in sides], np.arange(len(firsts)), (size, len(firsts)))
    for rows in blocks(n_resamples, max(len(firsts), size)):
        times = rng.multinomial(len(codes), frequencies / len(codes), size=rows)
        yield _weigh(counts, times, len(sides))


def _stacked_counts(sides: Sequence[Integers], units: Integers, shape: tuple[int, int]) -> Any:
    """Return the sparse matrix (sides * bins, units): the histograms of each unit, one above the other."""
    size, n_units = shape
    bins = np.concatenate([number * size + side for number, side in enumerate(sides)])
    return bin_counts(bins, np.tile(units, len(sides)), 1, (len(sides) * size, n_units))


def _weigh(counts: Any, weights: Integers | Floats, n_sides: int) -> list[Floats]:
    """Return the histograms, shape (rows, bins), of units taken `weights` times, shape (rows, units)."""
    stacked = counts @ np.ascontiguousarray(weights.T, dtype=np.float64)
    return [side.T for side in np.split(stacked, n_sides)]
