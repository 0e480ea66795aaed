"""Is system a better than system b on the same items, and by how much? Permutation tests, and intervals beside them.

Under the null hypothesis the two systems are exchangeable, so which output is called a's is arbitrary. Items of one
cluster (song, source file) are not independent: the two systems are swapped in whole clusters. Two-sided p-values:

- exact, #{|T*| >= |T|} / 2^clusters, where the swaps can all be listed;
- otherwise from random swaps, (1 + #{|T*| >= |T|}) / (1 + n_resamples), which counts the data themselves and never
  gives 0 (Phipson & Smyth 2010).

With c clusters no p-value can be under 2 / 2^c, however large the difference: five songs cannot reach 0.05.

The interval of a difference is that of `stats.intervals`, made of the differences of items; that of two divergences is
the clustered bootstrap of `stats.resampling`, with the reference and both systems of an item drawn together. Test and
interval answer different questions, and near the limit they may disagree: the test asks whether the systems could have
been exchanged, the interval how far apart their true scores are. The ends lie within what a difference of two such
scores can be: two scores from 0 to 1 are at most 1 apart.

References
----------
Good (2005), Permutation, Parametric and Bootstrap Tests of Hypotheses, 3. Phipson & Smyth (2010), Permutation P-values
should never be zero, Stat. Appl. Genet. Mol. Biol. 9(1).

"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats.clusters import (
    BinPairs,
    Divergence,
    Floats,
    Integers,
    blocks,
    check_bins,
    check_count,
    check_groups,
    evaluate,
    generator,
    move,
    random_bits,
    swap_items,
    swap_moves,
)
from music_evals.stats.intervals import intervals_of_rows, sums_of_clusters
from music_evals.stats.resampling import bias_corrected, check_options, resampled_histograms
from music_evals.stats.sign_flips import TIE_TOLERANCE, SignFlips

_MOST_DIFFERENCES = 1 << 18  # of pairs and items worked out at once: 2 MB, which stay near the processor


class PairedTest(NamedTuple):
    """A difference between two systems and how often chance alone gives one as large.

    Attributes
    ----------
    difference
        Score of a minus score of b; NaN where nothing can be compared.
    low, high
        Ends of its interval; NaN with fewer than two clusters, and where all of them differ alike.
    p_value
        Two-sided, above 0 and at most 1; NaN where nothing can be compared.
    n
        Items that were compared.
    """

    difference: float
    low: float
    high: float
    p_value: float
    n: int


NOT_COMPARED = PairedTest(np.nan, np.nan, np.nan, np.nan, 0)
"""Nothing can be compared."""


class PairedTests(NamedTuple):
    """The fields of `PairedTest` for many pairs of systems, each of shape (pairs,)."""

    difference: Floats
    low: Floats
    high: Floats
    p_value: Floats
    n: Integers


def paired_mean_test(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    groups: npt.ArrayLike | None,
    *,
    confidence: float = 0.95,
    span: tuple[float, float] = (-np.inf, np.inf),
    n_resamples: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """Test the difference of two means over the same items by swapping the systems in whole clusters.

    Only items where both scores are defined are compared; their number is returned. The statistic is the mean of a - b
    over items; swapping a cluster flips the sign of its sum of differences. Exact for up to 20 clusters that differ
    at all. NaN where no item is defined for both; p and the interval are NaN where a difference is infinite.

    Parameters
    ----------
    a, b
        Scores of the two systems, shape (n,), in the same order of items; NaN is undefined.
    groups
        Cluster of each item, shape (n,), whole numbers or strings; None makes each item its own cluster.
    confidence
        Nominal coverage of the interval, above 0 and below 1.
    span
        Least and largest value that the score can have: the ends of the interval are no further apart from 0.
    n_resamples
        Number of random swaps where they cannot all be listed.
    seed
        Seed of the generator.

    Returns
    -------
    PairedTest
        `difference` in the unit of the scores.

    Raises
    ------
    PairCountError
        Scores and groups differ in number.
    InvalidInputError
        Scores not of shape (n,), or `n_resamples` below 1.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or second.ndim != 1:
        raise InvalidInputError(f"a and b must have shape (n,), got {first.shape} and {second.shape}")
    return paired_mean_tests(
        first[:, None], second[:, None], groups, confidence=confidence, spans=[span], n_resamples=n_resamples, seed=seed
    )[0]


def paired_mean_tests(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    groups: npt.ArrayLike | None,
    *,
    confidence: float = 0.95,
    spans: Sequence[tuple[float, float]] | None = None,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> list[PairedTest]:
    """Return `paired_mean_test` of several metrics of the same items.

    Equal to `paired_mean_test` of each column with the same seed, in less time.

    Parameters
    ----------
    a, b
        Scores of the two systems, shape (n, n_metrics), in the same order of items; NaN is undefined.
    groups, confidence, n_resamples, seed
        As in `paired_mean_test`.
    spans
        As `span` in `paired_mean_test`, one a metric.

    Returns
    -------
    list of PairedTest
        One per column.

    Raises
    ------
    PairCountError
        Scores and groups differ in number.
    InvalidInputError
        Scores not of shape (n, n_metrics), or `n_resamples` below 1.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 2 or second.ndim != 2:
        raise InvalidInputError(f"a and b must have shape (n, n_metrics), got {first.shape} and {second.shape}")
    if first.shape != second.shape:
        raise PairCountError(
            f"a and b must score the same items, got {first.shape} and {second.shape}; align them by item id"
        )
    check_options(confidence, n_resamples, seed)
    clusters, swaps = check_groups(groups, len(first)), SignFlips(n_resamples, seed)
    reaches = [np.inf] * first.shape[1] if spans is None else [high - low for low, high in spans]
    return [
        _mean_test((a, b), clusters, confidence, reach, swaps)
        for a, b, reach in zip(first.T, second.T, reaches, strict=True)
    ]


def _mean_test(
    sides: tuple[Floats, Floats], clusters: tuple[Integers, int], confidence: float, reach: float, swaps: SignFlips
) -> PairedTest:
    """Return the test of one metric, whose two scores are at most `reach` apart."""
    first, second = sides
    defined = ~(np.isnan(first) | np.isnan(second))
    n = int(np.count_nonzero(defined))
    if not n:
        return NOT_COMPARED
    codes, n_clusters = clusters[0][defined], clusters[1]
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, and rightly so
        differences = first[defined] - second[defined]
    ends = intervals_of_rows(differences[None], codes, n_clusters, confidence, (-reach, reach))[:3]
    mean, low, high = (np.nan if np.isnan(end[0]) else float(end[0]) for end in ends)
    if not np.isfinite(differences).all():
        return PairedTest(mean, np.nan, np.nan, np.nan, n)
    (sums,) = sums_of_clusters(differences[None], codes, n_clusters)
    return PairedTest(mean, low, high, swaps.p_value(sums), n)


def paired_tests_of_systems(
    scores: npt.ArrayLike,
    pairs: npt.ArrayLike,
    groups: npt.ArrayLike | None,
    *,
    confidence: float = 0.95,
    span: tuple[float, float] = (-np.inf, np.inf),
    n_resamples: int = 10_000,
    quick: bool = False,
    seed: int = 0,
) -> PairedTests:
    """Return `paired_mean_test` of many pairs of systems, the rows of `scores`, that were evaluated on the same items.

    `scores` is finite and of shape (systems, n), n at least 1; `pairs` holds two rows each, shape (pairs, 2). With
    `quick`, for very many pairs, fewer swaps are listed, and clusters that do not differ are swapped like others.
    """
    values, chosen = np.asarray(scores, dtype=np.float64), np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    check_options(confidence, n_resamples, seed)
    codes, n_clusters = check_groups(groups, values.shape[1])
    reach = span[1] - span[0]
    most = max(1, _MOST_DIFFERENCES // values.shape[1])
    ends, sums = [], []
    for start in range(0, len(chosen), most):
        a, b = chosen[start : start + most].T
        differences = values[a] - values[b]
        ends.append(intervals_of_rows(differences, codes, n_clusters, confidence, (-reach, reach))[:3])
        sums.append(sums_of_clusters(differences, codes, n_clusters))
    means, low, high = (
        (np.concatenate([[], *parts]) for parts in zip(*ends, strict=True)) if ends else [np.empty(0)] * 3
    )
    of_systems = sums_of_clusters(values, codes, n_clusters)
    of_pairs = np.concatenate([np.empty((0, n_clusters)), *sums])
    p_values = SignFlips(n_resamples, seed, quick=quick).p_values(of_systems, of_pairs, chosen)
    return PairedTests(means, low, high, p_values, np.full(len(chosen), values.shape[1]))


def swap_test_divergence(
    bins_reference: npt.ArrayLike,
    bins_a: npt.ArrayLike,
    bins_b: npt.ArrayLike,
    groups: npt.ArrayLike | None,
    *,
    n_bins: int,
    divergence: Divergence,
    term: Divergence | None = None,
    upper: float = np.inf,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    n_bootstrap: int = 1000,
    seed: int = 0,
) -> PairedTest:
    """Test the difference of two systems' divergences from one reference by swapping the systems in whole clusters.

    The statistic is divergence(reference, a) - divergence(reference, b): below 0, a is nearer to the reference. Exact
    where half of all swaps are no more than `n_resamples`. NaN with no items or an undefined divergence.

    Parameters
    ----------
    bins_reference, bins_a, bins_b
        Bin of each item, shape (n,), whole numbers 0..n_bins-1, or -1 for a discarded value.
    groups
        Cluster of each item, shape (n,), whole numbers or strings; None makes each item its own cluster.
    n_bins
        Number of bins.
    divergence
        As in `resampling.bootstrap_divergence`: masses (rows, n_bins), counts over items, to values (rows,).
    term
        Where `divergence` is a sum over bins: what a bin adds, from two arrays of masses of single bins. The swaps are
        then looked up in a table of all counts that a bin can have, with the same p-value in far less time.
    upper
        Largest value of `divergence`, which two are at most apart: ln 2 for Jensen-Shannon in nats.
    confidence
        Nominal coverage of the interval, above 0 and below 1.
    n_resamples
        Number of random swaps where they cannot all be listed.
    n_bootstrap
        Number of resamples behind the interval.
    seed
        Seed of the generator. Item order plays no part.

    Returns
    -------
    PairedTest
        `difference` in the unit of `divergence`; `n` counts all items.

    Raises
    ------
    PairCountError
        Bins and groups differ in number.
    InvalidInputError
        Bins out of range, an option out of range, or a `divergence` that does not give one value a row.
    """
    check_count(n_bins, "n_bins")
    check_count(n_bootstrap, "n_bootstrap")
    check_options(confidence, n_resamples, seed)
    names = ("bins_reference", "bins_a", "bins_b")
    sides = (bins_reference, bins_a, bins_b)
    reference, first, second = (check_bins(bins, n_bins, name) for bins, name in zip(sides, names, strict=True))
    n = len(reference)
    if not n == len(first) == len(second):
        raise PairCountError(
            f"bins must be of the same items, got {n}, {len(first)} and {len(second)}; align them by item id"
        )
    pairs = BinPairs(first, second, *check_groups(groups, n), n_bins)
    if not n:
        return NOT_COMPARED
    target = np.bincount(reference, minlength=n_bins + 1).astype(np.float64)
    to_first, to_second = (_to_target(divergence, target, side, n) for side in pairs.histograms)
    difference = float(to_first[0] - to_second[0])
    if np.isnan(difference):
        return NOT_COMPARED._replace(n=n)
    # a statistic that falls short of the observed one by rounding alone is a tie
    least = abs(difference) - TIE_TOLERANCE * float(max(abs(to_first[0]), abs(to_second[0])))

    def divergence_difference(side_a: Floats, side_b: Floats) -> Floats:
        return _to_target(divergence, target, side_a, n) - _to_target(divergence, target, side_b, n)

    swapped, statistic = (pairs, divergence_difference) if term is None else _in_table(pairs, target, term)
    p_value = _share_of_extremes(swapped, statistic, least, n_resamples, generator(seed))
    # the interval: clusters drawn with replacement, the reference and both systems of an item together
    clusters = (pairs.codes, pairs.n_clusters)
    draws = resampled_histograms((reference, first, second), clusters, n_bins + 1, n_bootstrap, generator(seed))
    resampled = [
        evaluate(divergence, p, side_a, p.sum(axis=1)) - evaluate(divergence, p, side_b, p.sum(axis=1))
        for p, side_a, side_b in draws
    ]
    ends = bias_corrected(difference, np.concatenate([[], *resampled]), clusters, confidence)[:2]
    low, high = np.clip(ends, -upper, upper)
    return PairedTest(difference, float(low), float(high), p_value, n)


def _to_target(divergence: Divergence, target: Floats, counts: Floats, n: int) -> Floats:
    """Return the divergence of each row of counts, shape (rows, n_bins + 1), from one histogram of as many items."""
    return evaluate(divergence, np.broadcast_to(target, counts.shape), counts, n)


def _share_of_extremes(
    pairs: BinPairs, statistic: Divergence, least: float, n_resamples: int, rng: np.random.Generator
) -> float:
    """Return the p-value: how often the statistic of two swapped histograms is at least as large."""
    swaps, exact = _swaps(pairs, n_resamples, rng)
    # A swap with an undefined statistic counts as extreme: it must not make the p-value smaller.
    extreme = np.concatenate([~(np.abs(statistic(side_a, side_b)) < least) for side_a, side_b in swaps])
    count = int(np.count_nonzero(extreme))
    return count / len(extreme) if exact else (1 + count) / (1 + n_resamples)


def _in_table(pairs: BinPairs, target: Floats, term: Divergence) -> tuple[BinPairs, Divergence]:
    """Return the pairs with only the bins that they use, and the statistic of two histograms of these, looked up."""
    n = len(pairs.codes)
    bins, places = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    held = np.bincount(places)  # by both systems together: what one of them does not have, the other has
    # the table has a row for each bin and each count, 0..held, that one system can have there
    starts = np.cumsum(held + 1) - (held + 1)
    of_bin = np.repeat(np.arange(len(bins)), held + 1)
    count = np.arange(len(of_bin)) - starts[of_bin]
    # what a count adds to the divergence; the bin of discarded values adds nothing
    added = np.where(bins < pairs.n_bins, 1.0, 0.0)[of_bin] * term(target[bins[of_bin]] / n, count / n)
    # the term of one system less that of the other, which has the rest of what the bin holds
    table = added - added[starts[of_bin] + held[of_bin] - count]

    def statistic(histogram: Floats, _: Floats) -> Floats:
        values: Floats = table[starts + histogram.astype(np.int64)].sum(axis=1)
        return values

    return pairs._replace(first=places[:n], second=places[n:], n_bins=len(bins) - 1), statistic


def _swaps(pairs: BinPairs, n_resamples: int, rng: np.random.Generator) -> tuple[Iterator[tuple[Floats, Floats]], bool]:
    """Return both histograms, shape (rows, n_bins + 1), after swaps; and whether these are all swaps there are."""
    # only items whose two bins differ move anything; their clusters are what is swapped
    differ = pairs.first != pairs.second
    changed, units = np.unique(pairs.codes[differ], return_inverse=True)
    n_units, size = len(changed), pairs.n_bins + 1
    exact = n_units <= int(n_resamples).bit_length()  # 2^(units - 1) <= n_resamples
    if pairs.n_clusters == len(pairs.codes) and not exact:
        return swap_items(pairs, n_resamples, rng), False
    moves = swap_moves(pairs.first[differ], pairs.second[differ], units, (size, n_units))
    width = max(n_units, size)
    bits = _all_bits(n_units, width) if exact else (random_bits(rng, n, n_units) for n in blocks(n_resamples, width))
    return (move(pairs, moves, block) for block in bits), exact


def _all_bits(n_units: int, width: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield all swaps with the first unit left as it is: swapping everything only changes the sign of the statistic."""
    start = 0
    for rows in blocks(2 ** max(n_units - 1, 0), width):
        # the number of a swap in binary, moved up by one bit: bit 0, the first unit, is never set
        patterns = np.arange(start, start + rows)[:, None] << 1
        yield patterns >> np.arange(n_units) & 1
        start += rows
