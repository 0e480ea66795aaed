import itertools
import math
import tracemalloc

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats import (
    _clusters,
    bootstrap_divergence,
    bootstrap_mean,
    bootstrap_means,
    null_divergence,
)


def total_variation(p, q):
    return np.abs(p - q).sum(axis=-1) / 2


def jensen_shannon(p, q):
    # scipy gives the distance, the square root of the divergence in nats; rounding may take it below 0 inside the root
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(jensenshannon(p, q, axis=-1)) ** 2


def clustered_normal(rng, n_clusters, correlation=0.5):
    """Draw standard normal items, correlated within clusters of 5 to 15."""
    groups = np.repeat(np.arange(n_clusters), rng.integers(5, 16, n_clusters))
    shared = rng.normal(size=n_clusters)[groups]
    return math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * rng.normal(size=len(groups)), groups


def clustered_bins(rng, n_clusters, shift, n_bins):
    """Bins of a reference and an estimate that lies `shift` higher; both share their cluster's effect."""
    groups = np.repeat(np.arange(n_clusters), rng.integers(5, 30, n_clusters))
    shared = rng.normal(size=n_clusters)[groups]
    pair = [math.sqrt(0.5) * (shared + rng.normal(size=len(groups))) + move for move in (0, shift)]
    return *(np.minimum((scipy.stats.norm.cdf(x) * n_bins).astype(int), n_bins - 1) for x in pair), groups


def true_divergence(shift, n_bins):
    edges = scipy.stats.norm.ppf(np.linspace(0, 1, n_bins + 1))
    p, q = np.diff(scipy.stats.norm.cdf(edges)), np.diff(scipy.stats.norm.cdf(edges - shift))
    return float(jensen_shannon(p[None], q[None])[0])


# Means


def test_mean_is_a_ratio_of_sums():
    # two songs of 3 and 1 items: (0 + 0 + 0 + 1) / 4, not the mean of the songs' means, 1/2
    assert bootstrap_mean([0, 0, 0, 1], ["a", "a", "a", "b"]).estimate == 0.25


def test_undefined_values_are_left_out_and_counted():
    interval = bootstrap_mean([1, np.nan, 0, 1, np.nan], [0, 0, 1, 2, 3])
    assert interval.estimate == pytest.approx(2 / 3, rel=1e-15)
    assert (interval.n, interval.n_defined) == (5, 3)
    assert 0 <= interval.low <= interval.high <= 1


def test_every_resample_of_five_clusters_listed():
    # All 5^5 resamples, item by item, are the bootstrap law that the random resamples come from.
    rng = np.random.default_rng(5)
    songs = [rng.normal(size=size) for size in (1, 4, 2, 7, 3)]
    means = [np.concatenate(drawn).mean() for drawn in itertools.product(songs, repeat=5)]
    interval = bootstrap_mean(
        np.concatenate(songs), np.repeat(np.arange(5), [len(song) for song in songs]), n_resamples=40_000
    )
    # The ends are quantiles; compare their ranks in the law: standard deviation sqrt(0.025 x 0.975 / 40,000) = 0.0008.
    assert np.mean(np.array(means) <= interval.low) == pytest.approx(0.025, abs=0.004)
    assert np.mean(np.array(means) <= interval.high) == pytest.approx(0.975, abs=0.004)


def test_agrees_with_scipy_without_clusters():
    values = np.random.default_rng(2).gamma(2, size=80)
    ours = bootstrap_mean(values, None, n_resamples=20_000, confidence=0.9)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, confidence_level=0.9, random_state=3
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.03 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.03 * width)


def test_clusters_of_one_are_no_clusters():
    values = np.random.default_rng(2).random(30)
    assert bootstrap_mean(values, None) == bootstrap_mean(values, np.arange(30))


def test_copies_of_an_item_in_one_cluster_add_nothing():
    # Ten copies of each item make the unclustered interval narrower; the clustered one stays as it is.
    values = np.random.default_rng(2).random(30)
    once, tenfold = bootstrap_mean(values, np.arange(30)), bootstrap_mean(np.repeat(values, 10), np.arange(300) // 10)
    np.testing.assert_allclose(tenfold[:3], once[:3], rtol=1e-12)
    naive = bootstrap_mean(np.repeat(values, 10), None)
    assert (naive.high - naive.low) < 0.5 * (once.high - once.low)


def test_equal_values_have_no_spread():
    assert bootstrap_mean(np.ones(20), np.arange(20) % 4)[:3] == (1, 1, 1)


@pytest.mark.parametrize(
    ("values", "groups", "estimate"),
    [
        ([0.0, 1.0], ["a", "a"], 0.5),
        ([0.25], None, 0.25),
        ([0.0, np.nan, 1.0], ["a", "b", "a"], 0.5),  # only one cluster holds anything
        ([np.nan, np.nan], ["a", "b"], np.nan),
        ([], None, np.nan),
        ([np.inf, 1.0, 2.0], None, np.inf),
        ([np.inf, -np.inf, 2.0], None, np.nan),
    ],
)
def test_no_interval_where_nothing_can_be_said(values, groups, estimate):
    interval = bootstrap_mean(values, groups)
    assert interval.estimate == pytest.approx(estimate, nan_ok=True)
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert (interval.n, interval.n_defined) == (len(values), np.count_nonzero(~np.isnan(values)))


def test_resamples_without_a_defined_item_are_passed_over():
    # Two of three clusters are defined: 1 resample in 27 holds only the third and has no mean.
    interval = bootstrap_mean([0.0, 1.0, np.nan], None)
    assert interval[:3] == (0.5, 0, 1)


def test_wider_at_higher_confidence():
    values, groups = clustered_normal(np.random.default_rng(0), 20)
    widths = [np.diff(bootstrap_mean(values, groups, confidence=level)[1:3])[0] for level in (0.5, 0.9, 0.99)]
    assert widths == sorted(widths)


def test_many_metrics_equal_one_by_one():
    rng = np.random.default_rng(8)
    values = rng.random((200, 3))
    values[rng.random(values.shape) < 0.3] = np.nan
    values[:, 2] = np.nan
    groups = rng.integers(0, 12, 200)
    together = bootstrap_means(values, groups, seed=4)
    alone = [bootstrap_mean(column, groups, seed=4) for column in values.T]
    np.testing.assert_array_equal(together, alone)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(-5, 5), st.floats(0.1, 10))
def test_follows_shift_and_scale(seed, shift, scale):
    values, groups = clustered_normal(np.random.default_rng(seed), 6)
    plain = np.array(bootstrap_mean(values, groups, n_resamples=50)[:3])
    moved = bootstrap_mean(scale * values + shift, groups, n_resamples=50)[:3]
    np.testing.assert_allclose(moved, scale * plain + shift, rtol=1e-9, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_item_order_and_label_names_play_no_part(seed):
    rng = np.random.default_rng(seed)
    values, groups = clustered_normal(rng, 6)
    order = rng.permutation(len(values))
    names = np.array(["bwv1", "bwv2", "bwv3", "bwv4", "bwv5", "bwv6"])[groups]
    plain = bootstrap_mean(values, groups, n_resamples=50)
    np.testing.assert_allclose(bootstrap_mean(values[order], names[order], n_resamples=50), plain, rtol=1e-9)


def test_the_seed_decides():
    values, groups = clustered_normal(np.random.default_rng(0), 20)
    assert bootstrap_mean(values, groups, seed=1) == bootstrap_mean(values, groups, seed=1)
    assert bootstrap_mean(values, groups, seed=1) != bootstrap_mean(values, groups, seed=2)


def test_block_size_plays_no_part(monkeypatch):
    values, groups = clustered_normal(np.random.default_rng(0), 20)
    bins = np.arange(len(values)) % 7, np.arange(len(values)) % 5

    def results():
        options = {"n_bins": 8, "divergence": total_variation}
        return [
            bootstrap_mean(values, groups),
            bootstrap_divergence(*bins, groups, **options),
            bootstrap_divergence(*bins, None, **options),
            null_divergence(*bins, **options),
        ]

    whole = results()
    monkeypatch.setattr(_clusters, "BLOCK_ENTRIES", 1000)
    assert results() == whole


def test_memory_is_bounded():
    # All weights at once would be 300 x 100,000 x 8 bytes = 240 MB.
    values = np.random.default_rng(0).random(100_000)
    tracemalloc.start()
    bootstrap_mean(values, None, n_resamples=300)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6


def test_inputs_are_not_written_to():
    values, bins, groups = np.array([0.5, np.nan, 1]), np.array([0, -1, 1]), np.array([5, 6, 7])
    for array in (values, bins, groups):
        array.flags.writeable = False
    bootstrap_mean(values, groups)
    bootstrap_divergence(bins, bins, groups, n_bins=2, divergence=total_variation)
    null_divergence(bins, bins, n_bins=2, divergence=total_variation)


@pytest.mark.parametrize(
    ("values", "groups", "options", "error"),
    [
        ([[1.0]], None, {}, InvalidInputError),
        (1.0, None, {}, InvalidInputError),
        ([1.0, 2.0], ["a"], {}, PairCountError),
        ([1.0], None, {"confidence": 95}, InvalidInputError),
        ([1.0], None, {"confidence": 0}, InvalidInputError),
        ([1.0], None, {"n_resamples": 0}, InvalidInputError),
    ],
)
def test_wrong_input_is_a_named_error(values, groups, options, error):
    with pytest.raises(error):
        bootstrap_mean(values, groups, **options)


def test_many_metrics_need_a_table():
    with pytest.raises(InvalidInputError, match="n_metrics"):
        bootstrap_means([1.0, 2.0], None)


def coverage_of_means(n_clusters, n_datasets, *, clustered=True):
    rng = np.random.default_rng(1)
    hits = 0
    for seed in range(n_datasets):
        values, groups = clustered_normal(rng, n_clusters)
        interval = bootstrap_mean(values, groups if clustered else None, seed=seed)
        hits += interval.low <= 0 <= interval.high
    return hits / n_datasets


def test_clustered_interval_covers_about_its_nominal_level():
    # 0.935 expected; binomial standard deviation 0.0123
    assert coverage_of_means(40, 400) == pytest.approx(0.935, abs=0.037)


def test_interval_without_clusters_covers_far_less():
    assert coverage_of_means(40, 200, clustered=False) == pytest.approx(0.56, abs=0.105)


@pytest.mark.slow
@pytest.mark.parametrize(("n_clusters", "covered"), [(5, 0.82), (10, 0.90), (18, 0.92), (40, 0.935), (80, 0.937)])
def test_documented_coverage_of_means(n_clusters, covered):
    error = math.sqrt(covered * (1 - covered) / 2000)
    assert coverage_of_means(n_clusters, 2000) == pytest.approx(covered, abs=3 * error + 0.005)


# Divergences


def test_every_resample_of_five_clusters_listed_for_a_divergence():
    rng = np.random.default_rng(11)
    sizes = [1, 4, 2, 7, 3]
    songs = [rng.integers(0, 4, size=(size, 2)) for size in sizes]

    def distance(pairs):
        return sum(abs(np.mean(pairs[:, 0] == b) - np.mean(pairs[:, 1] == b)) for b in range(4)) / 2

    whole = np.concatenate(songs)
    law = np.array([distance(np.concatenate(drawn)) for drawn in itertools.product(songs, repeat=5)])
    interval = bootstrap_divergence(
        whole[:, 0], whole[:, 1], np.repeat(np.arange(5), sizes), n_bins=4, divergence=total_variation,
        n_resamples=40_000,
    )  # fmt: skip
    assert interval.estimate == pytest.approx(distance(whole), rel=1e-12)
    low, high = np.maximum(2 * distance(whole) - np.quantile(law, [0.975, 0.025]), 0)
    assert interval.low == pytest.approx(low, abs=0.005)
    assert interval.high == pytest.approx(high, abs=0.005)


def test_clusters_of_one_have_the_law_of_resampled_items():
    # The multinomial shortcut against plain resampling of items.
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 5, 60), np.minimum(rng.integers(0, 7, 60), 4)
    drawn = rng.integers(0, 60, size=(20_000, 60))
    p, q = (np.stack([(bins[drawn] == k).mean(axis=1) for k in range(5)], axis=1) for bins in (a, b))
    estimate = total_variation(np.bincount(a, minlength=5) / 60, np.bincount(b, minlength=5) / 60)
    low, high = np.maximum(2 * estimate - np.quantile(total_variation(p, q), [0.975, 0.025]), 0)
    for groups in (None, np.arange(60)):
        interval = bootstrap_divergence(a, b, groups, n_bins=5, divergence=total_variation, n_resamples=20_000)
        assert interval[:3] == pytest.approx((estimate, low, high), abs=0.02)


def test_equal_bins_have_no_divergence():
    bins = np.arange(40) % 9
    interval = bootstrap_divergence(bins, bins, np.arange(40) % 8, n_bins=9, divergence=total_variation)
    assert interval == (0, 0, 0, 40, 40)
    assert null_divergence(bins, bins, n_bins=9, divergence=total_variation) == 0


def test_masses_are_counts_over_items():
    seen = []

    def spy(p, q):
        seen.append((p.copy(), q.copy()))
        return total_variation(p, q)

    # 2 of 4 reference values and 1 of 4 estimates are discarded
    reference, estimate = [0, -1, 2, -1], [1, 1, -1, 0]
    interval = bootstrap_divergence(reference, estimate, [0, 0, 1, 1], n_bins=3, divergence=spy)
    np.testing.assert_array_equal(seen[0][0], [[0.25, 0, 0.25]])
    np.testing.assert_array_equal(seen[0][1], [[0.25, 0.5, 0]])
    assert interval.estimate == 0.375
    assert (interval.n, interval.n_defined) == (4, 1)
    # clusters of 2 items: a resample is 0 and 0, 0 and 1, or 1 and 1, over its own 4 items
    resampled = {tuple(row) for row in np.concatenate([p for p, _ in seen[1:]])}
    assert resampled == {(0.5, 0, 0), (0.25, 0, 0.25), (0, 0, 0.5)}


def test_a_resample_is_divided_by_its_own_items():
    masses = []

    def spy(p, q):
        masses.extend(p.sum(axis=1))
        return total_variation(p, q)

    bins = np.arange(12) % 3
    bootstrap_divergence(bins, bins, [0] * 7 + [1] * 3 + [2] * 2, n_bins=3, divergence=spy, n_resamples=100)
    np.testing.assert_allclose(masses, 1, rtol=1e-12)


def test_never_below_zero():
    rng = np.random.default_rng(0)
    for seed in range(20):
        a, b, groups = clustered_bins(rng, 8, 0, 20)
        interval = bootstrap_divergence(a, b, groups, n_bins=20, divergence=jensen_shannon, n_resamples=100, seed=seed)
        assert 0 <= interval.low <= interval.high


@pytest.mark.parametrize(("reference", "estimate", "groups"), [([0, 1], [1, 1], ["a", "a"]), ([0], [1], None)])
def test_one_cluster_gives_no_interval(reference, estimate, groups):
    interval = bootstrap_divergence(reference, estimate, groups, n_bins=2, divergence=total_variation)
    assert interval.estimate > 0
    assert np.isnan(interval[1:3]).all()


def test_no_items_give_no_divergence():
    interval = bootstrap_divergence([], [], None, n_bins=2, divergence=total_variation)
    assert np.isnan(interval[:3]).all()
    assert interval[3:] == (0, 0)
    assert math.isnan(null_divergence([], [], n_bins=2, divergence=total_variation))


def test_item_order_plays_no_part_in_divergences():
    rng = np.random.default_rng(9)
    a, b, groups = clustered_bins(rng, 10, 0.3, 20)
    order = rng.permutation(len(a))
    options = {"n_bins": 20, "divergence": jensen_shannon}
    for labels, shuffled in ((groups, groups[order]), (None, None)):
        plain = bootstrap_divergence(a, b, labels, **options)
        assert bootstrap_divergence(a[order], b[order], shuffled, **options) == pytest.approx(plain, rel=1e-9)
    assert null_divergence(a[order], b[order], **options) == null_divergence(a, b, **options)


def test_the_seed_decides_for_divergences():
    a, b, groups = clustered_bins(np.random.default_rng(9), 10, 0.3, 20)
    options = {"n_bins": 20, "divergence": jensen_shannon}
    for labels in (groups, None):
        one, same, other = (bootstrap_divergence(a, b, labels, seed=seed, **options) for seed in (1, 1, 2))
        assert one == same
        assert one != other
    assert null_divergence(a, b, seed=1, **options) == null_divergence(a, b, seed=1, **options)
    assert null_divergence(a, b, seed=1, **options) != null_divergence(a, b, seed=2, **options)


@pytest.mark.parametrize(
    ("reference", "estimate", "groups", "options", "error"),
    [
        ([0], [0, 1], None, {}, PairCountError),
        ([0, 1], [0, 1], ["a"], {}, PairCountError),
        ([0, 2], [0, 1], None, {}, InvalidInputError),
        ([0, 1], [0.0, 1.0], None, {}, InvalidInputError),
        ([0, 1], [0, 1], None, {"n_bins": 0}, InvalidInputError),
        ([0, 1], [0, 1], None, {"n_resamples": 0}, InvalidInputError),
        ([0, 1], [0, 1], None, {"confidence": 1}, InvalidInputError),
        ([0, 1], [0, 1], None, {"divergence": lambda p, q: np.abs(p - q).sum()}, InvalidInputError),
    ],
)
def test_wrong_bins_are_a_named_error(reference, estimate, groups, options, error):
    with pytest.raises(error):
        bootstrap_divergence(reference, estimate, groups, **({"n_bins": 2, "divergence": total_variation} | options))


def test_wrong_number_of_permutations_is_a_named_error():
    with pytest.raises(InvalidInputError, match="n_permutations"):
        null_divergence([0], [0], n_bins=2, divergence=total_variation, n_permutations=0)


def coverage_of_divergences(n_clusters, n_bins, shift, n_datasets):
    """Share of basic and of percentile intervals that hold the true divergence."""
    rng = np.random.default_rng(1)
    truth = true_divergence(shift, n_bins)
    basic = percentile = 0
    for seed in range(n_datasets):
        a, b, groups = clustered_bins(rng, n_clusters, shift, n_bins)
        interval = bootstrap_divergence(
            a, b, groups, n_bins=n_bins, divergence=jensen_shannon, n_resamples=400, seed=seed
        )
        basic += interval.low <= truth <= interval.high
        # mirrored about the estimate the basic interval is the percentile one
        percentile += 2 * interval.estimate - interval.high <= truth <= 2 * interval.estimate - interval.low
    return basic / n_datasets, percentile / n_datasets


def test_basic_interval_covers_where_the_percentile_one_cannot():
    # 60 songs against 20 bins: 0.943 and 0.46 expected; standard deviations 0.019 and 0.041
    basic, percentile = coverage_of_divergences(60, 20, 0.5, 150)
    assert 0.88 <= basic <= 0.99
    assert percentile <= 0.6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_clusters", "n_bins", "shift", "least", "most"),
    [
        (18, 100, 0.0, 0.97, 1.0),  # no difference at all: the clip at 0 makes it cautious
        (18, 100, 0.5, 0.96, 1.0),
        (18, 100, 1.0, 0.84, 0.95),  # the worst: 306 items against 100 bins, a strong difference
        (60, 20, 0.5, 0.90, 0.98),
        (200, 100, 0.5, 0.92, 0.995),
    ],
)
def test_documented_coverage_of_divergences(n_clusters, n_bins, shift, least, most):
    basic, percentile = coverage_of_divergences(n_clusters, n_bins, shift, 300)
    assert least <= basic <= most
    if n_bins == 100 and shift:
        assert percentile <= 0.02


# The noise floor


def test_noise_floor_by_hand():
    # one item that differs: swapped or not, the histograms lie apart
    assert null_divergence([0], [1], n_bins=2, divergence=total_variation) == 1
    # two such items: apart when both or none are swapped (1 of 2), equal when one is; standard deviation 0.005
    half = null_divergence([0, 0], [1, 1], n_bins=2, divergence=total_variation, n_permutations=10_000)
    assert half == pytest.approx(0.5, abs=0.02)


def test_noise_floor_with_every_swap_listed():
    reference, estimate = [0, 1, 2, 2, -1, 0, 3, 1], [1, 1, 0, 3, 2, -1, 3, 0]
    values = []
    for swaps in itertools.product([False, True], repeat=8):
        pairs = [(e, r) if swap else (r, e) for r, e, swap in zip(reference, estimate, swaps, strict=True)]
        firsts, seconds = zip(*pairs, strict=True)
        values.append(sum(abs(firsts.count(b) - seconds.count(b)) for b in range(4)) / 8 / 2)
    floor = null_divergence(reference, estimate, n_bins=4, divergence=total_variation, n_permutations=20_000)
    assert floor == pytest.approx(np.mean(values), abs=5 * np.std(values) / math.sqrt(20_000))


def test_noise_floor_of_one_law_is_above_zero_and_falls_with_n():
    rng = np.random.default_rng(0)
    floors, values = [], []
    for n in (50, 500, 5000):
        a, b = rng.integers(0, 20, n), rng.integers(0, 20, n)
        floors.append(null_divergence(a, b, n_bins=20, divergence=jensen_shannon))
        values.append(bootstrap_divergence(a, b, None, n_bins=20, divergence=jensen_shannon, n_resamples=1).estimate)
    assert floors[0] > floors[1] > floors[2] > 0
    # (bins - 1) / (4 n) is the first-order bias of the plug-in divergence between two samples of n
    assert floors[2] == pytest.approx(19 / (4 * 5000), rel=0.1)
    # two samples of one law are as far apart as the floor says
    assert values[1] == pytest.approx(floors[1], rel=1.0)


def test_noise_floor_knows_nothing_of_a_real_difference():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 10, 500), rng.integers(10, 20, 500)
    floor = null_divergence(a, b, n_bins=20, divergence=jensen_shannon)
    assert floor == pytest.approx(19 / (4 * 500), rel=0.3)
    interval = bootstrap_divergence(a, b, None, n_bins=20, divergence=jensen_shannon)
    assert interval.estimate == pytest.approx(math.log(2), rel=1e-9)


def test_an_interval_stays_below_the_largest_value():
    # half of the songs differ wholly: 2 * 0.5 - q reaches beyond 0.6, where this divergence is said to end
    reference, estimate = [0] * 8, [0, 0, 0, 0, 1, 1, 1, 1]
    options = {"n_bins": 2, "divergence": total_variation}
    free = bootstrap_divergence(reference, estimate, None, **options)
    assert free.high > 0.6
    held = bootstrap_divergence(reference, estimate, None, upper=0.6, **options)
    assert held.high == 0.6
    assert (held.estimate, held.low) == (free.estimate, min(free.low, 0.6))
