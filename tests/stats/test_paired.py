import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats import (
    clusters,
    mean_interval,
    paired_mean_test,
    paired_mean_tests,
    sign_flips,
    swap_test_divergence,
)
from music_evals.stats.clusters import random_bits
from music_evals.stats.intervals import weights_of_clusters
from music_evals.stats.paired import paired_tests_of_systems


def total_variation(p, q):
    return np.abs(p - q).sum(axis=-1) / 2


def clustered_pair(rng, n_clusters, difference=0.0):
    """Scores of two systems whose difference is correlated within clusters."""
    groups = np.repeat(np.arange(n_clusters), rng.integers(5, 16, n_clusters))
    song = rng.normal(size=n_clusters)[groups]
    noise = rng.normal(size=len(groups))
    return difference + song + noise, rng.normal(size=len(groups)) - song, groups


def clustered_bins(rng, n_clusters, difference=0.0, n_bins=10):
    """Bins of a reference and of two systems; a lies `difference` further from the reference."""
    groups = np.repeat(np.arange(n_clusters), rng.integers(5, 16, n_clusters))
    songs = rng.normal(size=(3, n_clusters))[:, groups]
    values = songs + rng.normal(size=songs.shape) + np.array([0, difference, 0])[:, None]
    return *np.clip(np.floor(values + n_bins / 2).astype(int), 0, n_bins - 1), groups


def without_interval(result):
    """Return what the test says, without the interval."""
    return result.difference, result.p_value, result.n


# Means


@pytest.mark.parametrize(
    ("a", "b", "groups", "difference", "p_value"),
    [
        # three songs, all +1: only all signs kept or all flipped are as extreme, 2 of 8
        ([1, 1, 1], [0, 0, 0], None, 1, 0.25),
        # 5 songs, all the same way: 2 / 2^5 is the least that five can give
        ([2, 3, 4, 5, 6], [1, 1, 1, 1, 1], None, 3, 0.0625),
        # sums of songs 3 and -1: totals +-2 and +-4, all at least 2
        ([1, 1, 1, 0], [0, 0, 0, 1], ["a", "a", "a", "b"], 0.5, 1),
        # sums 3, 1: totals +-4, +-2; two of four
        ([1, 1, 1, 1], [0, 0, 0, 0], ["a", "a", "a", "b"], 1, 0.5),
        ([1, 2], [0, 0], ["a", "a"], 1.5, 1),  # one song says nothing
        ([1, 2], [1, 2], None, 0, 1),
    ],
)
def test_by_hand(a, b, groups, difference, p_value):
    assert without_interval(paired_mean_test(a, b, groups)) == (difference, p_value, len(a))


def test_only_items_defined_for_both_are_compared():
    a, b = [1, np.nan, 1, 1, 5], [0, 0, 0, 0, np.nan]
    assert without_interval(paired_mean_test(a, b, None)) == (1, 0.25, 3)
    assert without_interval(paired_mean_test(a, b, ["x", "x", "x", "y", "z"])) == (1, 0.5, 3)


def test_nothing_to_compare_is_undefined():
    for a, b in (([np.nan, 1], [1, np.nan]), ([], [])):
        result = paired_mean_test(a, b, None)
        assert np.isnan(result[:4]).all()
        assert result.n == 0


def test_infinite_difference_has_no_p_value():
    result = paired_mean_test([np.inf, 1], [0, 1], None)
    assert (result.difference, result.n) == (np.inf, 2)
    assert np.isnan(result[1:4]).all()
    assert math.isnan(paired_mean_test([np.inf, 1], [np.inf, 1], None).difference)


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_scipy_where_all_swaps_are_listed(seed):
    a, b, groups = clustered_pair(np.random.default_rng(seed), 9)
    sums = [np.bincount(groups, weights=scores) for scores in (a, b)]
    theirs = scipy.stats.permutation_test(
        sums, lambda x, y: (x - y).sum(), permutation_type="samples", n_resamples=np.inf
    )
    assert paired_mean_test(a, b, groups).p_value == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize("difference", [0.0, 0.4, 0.8])
def test_random_swaps_agree_with_all_swaps(monkeypatch, difference):
    a, b, groups = clustered_pair(np.random.default_rng(3), 16, difference)
    exact = paired_mean_test(a, b, groups).p_value
    monkeypatch.setattr(sign_flips, "EXACT_MEAN_CLUSTERS", 0)
    error = math.sqrt(exact * (1 - exact) / 20_000)
    assert paired_mean_test(a, b, groups, n_resamples=20_000).p_value == pytest.approx(exact, abs=4 * error + 1e-4)


def test_random_swaps_never_give_zero():
    assert paired_mean_test(np.ones(50), np.zeros(50), None, n_resamples=99).p_value == 0.01


def test_ties_are_ties_in_floating_point():
    # 0.1 + 0.2 - 0.3 is not 0 in binary; in truth the total is 0 and every swap is as extreme.
    assert paired_mean_test([0.1, 0.2, 0.0], [0.0, 0.0, 0.3], None).p_value == 1
    # sums 0.1, 0.2, 0.3: the total 0.6 against (0.1 + 0.2) + 0.3 = 0.6000000000000001
    assert paired_mean_test([0.3, 0.2, 0.1], [0, 0, 0], None).p_value == 0.25
    many = np.random.default_rng(0).permutation(np.repeat([0.1, 0.2, -0.3], 20))
    assert paired_mean_test(many, np.zeros(60), None, n_resamples=200).p_value == 1


@given(st.integers(0, 10**6), st.integers(3, 24))
def test_symmetric_and_blind_to_item_order(seed, n_clusters):
    rng = np.random.default_rng(seed)
    a, b, groups = clustered_pair(rng, n_clusters)
    order = rng.permutation(len(a))
    plain = paired_mean_test(a, b, groups, n_resamples=100)
    swapped = paired_mean_test(b, a, groups, n_resamples=100)
    mirrored = (-plain.difference, -plain.high, -plain.low, plain.p_value, plain.n)
    assert swapped == pytest.approx(mirrored, rel=1e-9)
    assert paired_mean_test(a[order], b[order], groups[order], n_resamples=100) == pytest.approx(plain, rel=1e-9)


def test_the_interval_is_that_of_the_differences_of_items():
    rng = np.random.default_rng(5)
    a, b, groups = clustered_pair(rng, 12, 0.5)
    a[:3], b[7] = np.nan, np.nan
    for confidence in (0.9, 0.95):
        found, expected = (
            paired_mean_test(a, b, groups, confidence=confidence),
            mean_interval(a - b, groups, confidence=confidence),
        )
        assert (found.difference, found.low, found.high) == pytest.approx(expected[:3], rel=1e-12)


def test_ends_stay_within_what_a_difference_of_scores_can_be():
    a, b = np.array([[1.0, 0.9, 0.1], [0.6, 0.4, 0.1]]), np.array([[0.0, 0.1, 0.9], [0.5, 0.5, 0.4]])
    free = [paired_mean_test(one, other, None) for one, other in zip(a, b, strict=True)]
    held = paired_mean_tests(a.T, b.T, None, spans=[(0, 1), (-2, 5)])
    assert free[0].low < -1
    assert free[0].high > 1
    assert held == [free[0]._replace(low=-1, high=1), free[1]]  # seven apart is more than the second reaches
    assert held[0] == paired_mean_test(a[0], b[0], None, span=(0, 1))


def test_ends_stay_within_what_a_difference_of_divergences_can_be():
    bins = ([0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0])
    free, held = (
        swap_test_divergence(*bins, ["a", "b", "c", "d"], n_bins=2, divergence=total_variation, upper=upper)
        for upper in (np.inf, 1)
    )
    assert free.low < -1
    assert held == free._replace(low=-1, high=1)


def test_one_cluster_has_no_interval():
    assert np.isnan(paired_mean_test([1, 2], [0, 0], ["a", "a"])[1:3]).all()
    result = swap_test_divergence([0, 0], [0, 1], [1, 1], ["a", "a"], n_bins=2, divergence=total_variation)
    assert np.isnan(result[1:3]).all()


def test_the_interval_of_divergences_follows_every_resample_listed():
    rng = np.random.default_rng(11)
    sizes = [1, 4, 2, 7, 3]
    songs = [rng.integers(0, 4, size=(size, 3)) for size in sizes]

    def difference(rows):
        shares = [np.bincount(side, minlength=4) / len(rows) for side in rows.T]
        return float(total_variation(shares[0], shares[1]) - total_variation(shares[0], shares[2]))

    whole = np.concatenate(songs)
    law = np.array([difference(np.concatenate(drawn)) for drawn in itertools.product(songs, repeat=5)])
    found = swap_test_divergence(
        *whole.T, np.repeat(np.arange(5), sizes), n_bins=4, divergence=total_variation, n_bootstrap=20_000
    )
    reach = (
        scipy.stats.t.ppf(0.975, weights_of_clusters(np.array(sizes, dtype=float))[-1]) * law.std() * math.sqrt(5 / 4)
    )
    centre = 2 * difference(whole) - law.mean()
    assert found.difference == pytest.approx(difference(whole), rel=1e-12)
    assert (found.low, found.high) == pytest.approx((centre - reach, centre + reach), abs=0.015)


def test_the_seed_decides():
    a, b, groups = clustered_pair(np.random.default_rng(2), 30)
    assert paired_mean_test(a, b, groups, seed=1) == paired_mean_test(a, b, groups, seed=1)
    assert paired_mean_test(a, b, groups, seed=1) != paired_mean_test(a, b, groups, seed=2)


@pytest.mark.slow
def test_false_alarms_come_at_the_nominal_rate_only_with_clusters():
    rng = np.random.default_rng(0)
    clustered, naive = [], []
    for seed in range(400):
        a, b, groups = clustered_pair(rng, 24)
        clustered.append(paired_mean_test(a, b, groups, n_resamples=200, seed=seed).p_value <= 0.05)
        naive.append(paired_mean_test(a, b, None, n_resamples=200, seed=seed).p_value <= 0.05)
    # binomial standard deviation 0.011
    assert 0.02 <= np.mean(clustered) <= 0.085
    assert np.mean(naive) > 0.3


def test_a_real_difference_is_found():
    rng = np.random.default_rng(0)
    found = [paired_mean_test(*clustered_pair(rng, 24, 2.0), n_resamples=400).p_value <= 0.05 for _ in range(50)]
    assert np.mean(found) > 0.9


@pytest.mark.parametrize(
    ("a", "b", "groups", "options", "error"),
    [
        ([1.0], [1.0, 2.0], None, {}, PairCountError),
        ([1.0, 2.0], [1.0, 2.0], ["a"], {}, PairCountError),
        ([[1.0]], [[1.0]], None, {}, InvalidInputError),
        ([1.0], [1.0], None, {"n_resamples": 0}, InvalidInputError),
    ],
)
def test_wrong_scores_are_a_named_error(a, b, groups, options, error):
    with pytest.raises(error):
        paired_mean_test(a, b, groups, **options)


# Divergences


def test_divergence_by_hand():
    # Three songs, the reference always 0; a is right everywhere, b nowhere: divergences 0 and 1.
    # Of the 8 swaps only none and all keep them that far apart.
    result = swap_test_divergence([0, 0, 0], [0, 0, 0], [1, 1, 1], None, n_bins=2, divergence=total_variation)
    assert without_interval(result) == (-1, 0.25, 3)


def brute_force_p_value(reference, a, b, groups, n_bins):
    def distance(bins):
        return sum(abs(reference.count(k) - bins.count(k)) for k in range(n_bins)) / 2 / len(reference)

    songs = sorted(set(groups))
    observed = abs(distance(a) - distance(b))
    extreme = 0
    for swaps in itertools.product([False, True], repeat=len(songs)):
        swapped = dict(zip(songs, swaps, strict=True))
        pairs = [(y, x) if swapped[song] else (x, y) for x, y, song in zip(a, b, groups, strict=True)]
        one, other = (list(side) for side in zip(*pairs, strict=True))
        extreme += abs(distance(one) - distance(other)) >= observed - 1e-9
    return extreme / 2 ** len(songs)


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_every_swap_listed_item_by_item(seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(7), rng.integers(1, 5, 7))
    reference, a, b = rng.integers(-1, 4, size=(3, len(groups)))
    result = swap_test_divergence(reference, a, b, groups, n_bins=4, divergence=total_variation)
    expected = brute_force_p_value(reference.tolist(), a.tolist(), b.tolist(), groups.tolist(), 4)
    assert result.p_value == pytest.approx(expected, abs=1e-12)
    assert result.n == len(groups)


@pytest.mark.parametrize("clustered", [True, False])
def test_random_swaps_agree_with_all_swaps_for_divergences(clustered):
    # 13 units: 2^12 = 4,096 swaps are listed, or 4,095 drawn. Without clusters the draw takes the binomial shortcut.
    rng = np.random.default_rng(6)
    sizes = rng.integers(2, 6, 13) if clustered else np.ones(13, dtype=int)
    groups = np.repeat(np.arange(13), sizes)
    reference, a = rng.integers(0, 6, size=(2, len(groups)))
    b = (a + rng.integers(1, 3, len(groups))) % 6
    options = {"n_bins": 6, "divergence": lambda p, q: ((p - q) ** 2).sum(axis=-1)}
    exact = swap_test_divergence(reference, a, b, groups, n_resamples=4096, **options).p_value
    drawn = [
        swap_test_divergence(reference, a, b, groups, n_resamples=4095, seed=seed, **options).p_value
        for seed in range(5)
    ]
    assert 0.02 < exact < 0.98
    assert len(set(drawn)) > 1
    assert np.mean(drawn) == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / (5 * 4095)) + 3e-4)


@pytest.mark.parametrize("clustered", [True, False])
@pytest.mark.parametrize("n_clusters", [6, 20])  # all swaps are listed, and drawn
def test_swaps_that_are_looked_up_give_every_digit(clustered, n_clusters):
    rng = np.random.default_rng(n_clusters)
    reference, a, b, groups = clustered_bins(rng, n_clusters, 1.0)
    a[:2], b[5], reference[9] = -1, -1, -1
    options = {"n_bins": 12, "divergence": total_variation, "n_resamples": 2000}  # bins 10 and 11 are never used
    bins = (reference, a, b, groups if clustered else None)
    worked_out = swap_test_divergence(*bins, **options)
    assert swap_test_divergence(*bins, **options, term=lambda p, q: np.abs(p - q) / 2) == worked_out
    assert worked_out.p_value < 1
    # and it is really the table that decides
    assert swap_test_divergence(*bins, **options, term=lambda p, _: 0 * p).p_value < worked_out.p_value


def test_equal_systems_do_not_differ():
    bins = np.arange(60) % 7
    for groups in (None, bins):
        result = swap_test_divergence(bins, bins, bins, groups, n_bins=7, divergence=total_variation)
        assert without_interval(result) == (0, 1, 60)
        assert np.isnan([result.low, result.high]).all()


def test_no_items_are_undefined():
    result = swap_test_divergence([], [], [], None, n_bins=7, divergence=total_variation)
    assert np.isnan(result[:4]).all()
    assert result.n == 0


def test_undefined_divergence_is_no_evidence():
    def never_for_bin_1(p, q):
        return np.where(q[:, 1] > 0, np.nan, total_variation(p, q))

    undefined = swap_test_divergence([0, 0], [0, 0], [1, 1], None, n_bins=3, divergence=never_for_bin_1)
    assert np.isnan(undefined[:4]).all()

    # the data are defined, every mixed swap is not: it counts as extreme, so all 4 swaps of 2 songs do
    def never_for_mixtures(p, q):
        return np.where((q > 0).sum(axis=1) > 1, np.nan, total_variation(p, q))

    assert swap_test_divergence([0, 0], [0, 0], [1, 1], None, n_bins=2, divergence=never_for_mixtures).p_value == 1


def test_symmetric_and_blind_to_item_order_for_divergences():
    rng = np.random.default_rng(1)
    reference, a, b, groups = clustered_bins(rng, 25, 1.0)
    order = rng.permutation(len(a))
    options = {"n_bins": 10, "divergence": total_variation, "n_resamples": 300}
    for labels, shuffled in ((groups, groups[order]), (None, None)):
        plain = swap_test_divergence(reference, a, b, labels, **options)
        swapped = swap_test_divergence(reference, b, a, labels, **options)
        assert swapped.difference == pytest.approx(-plain.difference, rel=1e-9)
        assert swapped.p_value == pytest.approx(plain.p_value, abs=0.1)
        again = swap_test_divergence(reference[order], a[order], b[order], shuffled, **options)
        assert again == pytest.approx(plain, rel=1e-9)


def test_the_seed_and_not_the_block_decides_for_divergences(monkeypatch):
    bins_and_groups = clustered_bins(np.random.default_rng(1), 25, 0.5)
    options = {"n_bins": 10, "divergence": total_variation, "n_resamples": 300}
    one, other = (swap_test_divergence(*bins_and_groups, seed=seed, **options) for seed in (1, 2))
    monkeypatch.setattr(clusters, "BLOCK_ENTRIES", 1000)
    assert swap_test_divergence(*bins_and_groups, seed=1, **options) == one
    assert one != other
    few = [bins[:60] for bins in bins_and_groups]
    blocked = swap_test_divergence(*few, **options)
    monkeypatch.undo()
    assert swap_test_divergence(*few, **options) == blocked


@pytest.mark.slow
def test_false_alarms_for_divergences_come_at_the_nominal_rate():
    rng = np.random.default_rng(0)
    rejected = [
        swap_test_divergence(
            *clustered_bins(rng, 24), n_bins=10, divergence=total_variation, n_resamples=199, seed=seed
        ).p_value
        <= 0.05
        for seed in range(400)
    ]
    assert 0.02 <= np.mean(rejected) <= 0.085


def test_a_really_worse_system_is_found():
    rng = np.random.default_rng(0)
    results = [
        swap_test_divergence(*clustered_bins(rng, 24, 2.0), n_bins=10, divergence=total_variation, n_resamples=199)
        for _ in range(40)
    ]
    assert np.mean([result.p_value <= 0.05 and result.difference > 0 for result in results]) > 0.9


@pytest.mark.parametrize(
    ("bins", "groups", "options", "error"),
    [
        (([0, 1], [0, 1], [0]), None, {}, PairCountError),
        (([0], [0, 1], [0, 1]), None, {}, PairCountError),
        (([0, 1], [0, 1], [0, 1]), ["a"], {}, PairCountError),
        (([0, 1], [0, 1], [0, 9]), None, {}, InvalidInputError),
        (([0, 1], [0, 1], [0, 1]), None, {"n_resamples": 0}, InvalidInputError),
        (([0, 1], [0, 1], [0, 1]), None, {"n_bins": 0}, InvalidInputError),
        (([0, 1], [0, 1], [1, 1]), None, {"divergence": lambda p, q: p[0, 0] + q[0, 0]}, InvalidInputError),
    ],
)
def test_wrong_bins_are_a_named_error(bins, groups, options, error):
    with pytest.raises(error):
        swap_test_divergence(*bins, groups, **({"n_bins": 2, "divergence": total_variation} | options))


def test_several_metrics_are_each_tested_as_alone():
    rng = np.random.default_rng(4)
    groups = rng.integers(0, 150, 600)
    a, b = rng.normal(0, 1, (2, 600, 4))
    a[rng.random(a.shape) < 0.1] = np.nan
    a[:, 1] = b[:, 1]  # nothing differs
    a[groups >= 15, 2] = b[groups >= 15, 2]  # few clusters differ: all swaps are listed
    a[groups % 7 == 0, 3] = np.nan  # fewer clusters than the others have
    alone = [paired_mean_test(*column, groups, n_resamples=3000, seed=2) for column in zip(a.T, b.T, strict=True)]
    together = paired_mean_tests(a, b, groups, n_resamples=3000, seed=2)
    assert together == alone
    assert [test.p_value for test in together][1] == 1
    with pytest.raises(PairCountError):
        paired_mean_tests(a, b[:, :2], groups)
    with pytest.raises(InvalidInputError, match="n_metrics"):
        paired_mean_tests(a[:, 0], b[:, 0], groups)


@pytest.mark.parametrize("most_bytes", [1, 100, 1 << 25])
def test_signs_are_summed_as_if_one_by_one(most_bytes, monkeypatch):
    """The signs are those of `random_bits`, eight of which are looked up at once, in blocks that change nothing."""
    monkeypatch.setattr(sign_flips, "MOST_BYTES", most_bytes)
    rng = np.random.default_rng(9)
    for n_clusters in (21, 24, 61, 131):
        sums = rng.normal(0.1, 1, n_clusters)
        keep = random_bits(np.random.default_rng(3), 1000, n_clusters).astype(bool)
        totals = np.where(keep, sums, -sums).sum(axis=1)
        extreme = np.count_nonzero(np.abs(totals) >= abs(sums.sum()) - 1e-9)
        test = paired_mean_test(sums, np.zeros(n_clusters), None, n_resamples=1000, seed=3)
        assert test.p_value == (1 + extreme) / 1001


@pytest.mark.parametrize("kind", ["smooth", "tied", "nearly equal"])
def test_systems_together_are_tested_as_each_pair_alone(kind):
    """The same numbers to the last bit: clusters that are listed or drawn, ties, and differences near rounding."""
    rng = np.random.default_rng(8)
    for n in (1, 2, 14, 19, 40):
        scores = rng.normal(size=(6, n)) if kind == "smooth" else rng.integers(0, 3, (6, n)) / 2
        scores = 1 + 1e-8 * scores if kind == "nearly equal" else scores
        groups = [f"song {number}" for number in rng.integers(0, n, n)] if n < 19 else None
        pairs = list(itertools.combinations(range(6), 2))
        options = {"span": (-1, 1), "n_resamples": 999, "seed": 3}
        together = paired_tests_of_systems(scores, pairs, groups, **options)
        alone = [paired_mean_test(scores[a], scores[b], groups, **options) for a, b in pairs]
        np.testing.assert_array_equal(np.array(together).T, np.array(alone))
        flips = sign_flips.SignFlips(999, 3, quick=True)
        quick = paired_tests_of_systems(scores, pairs, None, n_resamples=999, seed=3, quick=True).p_value
        assert quick.tolist() == [flips.p_value(scores[a] - scores[b]) for a, b in pairs]
