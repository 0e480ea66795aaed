import itertools
import math
import tracemalloc

import numpy as np
import pytest
import scipy.stats
from scipy.spatial.distance import jensenshannon

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats import bootstrap_divergence, clusters, null_divergence, null_divergences
from music_evals.stats.intervals import weights_of_clusters


def total_variation(p, q):
    return np.abs(p - q).sum(axis=-1) / 2


def jensen_shannon(p, q):
    # scipy gives the distance, the square root of the divergence in nats; rounding may take it below 0 inside the root
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(jensenshannon(p, q, axis=-1)) ** 2


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


def test_block_size_plays_no_part(monkeypatch):
    groups = np.repeat(np.arange(20), np.random.default_rng(0).integers(5, 16, 20))
    bins = np.arange(len(groups)) % 7, np.arange(len(groups)) % 5

    def results():
        options = {"n_bins": 8, "divergence": total_variation}
        return [
            bootstrap_divergence(*bins, groups, **options),
            bootstrap_divergence(*bins, None, **options),
            null_divergence(*bins, **options),
        ]

    whole = results()
    monkeypatch.setattr(clusters, "BLOCK_ENTRIES", 1000)
    assert results() == whole


@pytest.mark.slow
def test_memory_is_bounded():
    # All weights at once would be 300 x 100,000 x 8 bytes = 240 MB.
    bins = np.random.default_rng(0).integers(0, 5, (2, 200_000))
    tracemalloc.start()
    bootstrap_divergence(*bins, np.arange(200_000) // 2, n_bins=5, divergence=total_variation, n_resamples=300)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6


def test_inputs_are_not_written_to():
    bins, groups = np.array([0, -1, 1]), np.array([5, 6, 7])
    for array in (bins, groups):
        array.flags.writeable = False
    bootstrap_divergence(bins, bins, groups, n_bins=2, divergence=total_variation)
    null_divergence(bins, bins, n_bins=2, divergence=total_variation)


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
    reach = (
        scipy.stats.t.ppf(0.975, weights_of_clusters(np.array(sizes, dtype=float))[-1]) * law.std() * math.sqrt(5 / 4)
    )
    centre = 2 * distance(whole) - law.mean()
    assert interval.low == pytest.approx(max(0, centre - reach), abs=0.01)
    assert interval.high == pytest.approx(centre + reach, abs=0.01)
    assert interval.n_clusters == pytest.approx(17**2 / (1 + 16 + 4 + 49 + 9), rel=1e-12)


def test_clusters_of_one_have_the_law_of_resampled_items():
    # The multinomial shortcut against plain resampling of items.
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 5, 60), np.minimum(rng.integers(0, 7, 60), 4)
    drawn = rng.integers(0, 60, size=(20_000, 60))
    p, q = (np.stack([(bins[drawn] == k).mean(axis=1) for k in range(5)], axis=1) for bins in (a, b))
    estimate = total_variation(np.bincount(a, minlength=5) / 60, np.bincount(b, minlength=5) / 60)
    law = total_variation(p, q)
    reach = scipy.stats.t.ppf(0.975, 59) * law.std() * math.sqrt(60 / 59)
    low, high = np.maximum(2 * estimate - law.mean() + np.array([-reach, reach]), 0)
    for groups in (None, np.arange(60)):
        interval = bootstrap_divergence(a, b, groups, n_bins=5, divergence=total_variation, n_resamples=20_000)
        assert interval[:3] == pytest.approx((estimate, low, high), abs=0.01)


def test_equal_bins_have_no_divergence():
    bins = np.arange(40) % 9
    interval = bootstrap_divergence(bins, bins, np.arange(40) % 8, n_bins=9, divergence=total_variation)
    assert interval == pytest.approx((0, np.nan, np.nan, 40, 40, 8), nan_ok=True)  # the songs are alike: no interval
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
    assert interval[3:] == (0, 0, 0)
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
    """Share of the intervals that hold the true divergence, and of those that do not hold their own estimate."""
    rng = np.random.default_rng(1)
    truth = true_divergence(shift, n_bins)
    hits = beside = 0
    for seed in range(n_datasets):
        a, b, groups = clustered_bins(rng, n_clusters, shift, n_bins)
        interval = bootstrap_divergence(
            a, b, groups, n_bins=n_bins, divergence=jensen_shannon, n_resamples=400, seed=seed
        )
        hits += interval.low <= truth <= interval.high
        beside += not interval.low <= interval.estimate <= interval.high
    return hits / n_datasets, beside / n_datasets


def test_the_interval_covers_where_noise_makes_the_estimate_too_large():
    covered, beside = coverage_of_divergences(60, 20, 0.5, 150)  # 60 songs against 20 bins
    assert 0.90 <= covered <= 1
    assert beside <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_clusters", "n_bins", "shift", "least"),
    [
        (18, 100, 0.0, 0.97),  # no difference at all: the clip at 0 makes it cautious
        (18, 100, 0.5, 0.96),
        (18, 100, 1.0, 0.90),  # the worst, 0.907 measured: 306 items against 100 bins, a strong difference
        (60, 20, 0.5, 0.92),
        (200, 100, 0.5, 0.92),
    ],
)
def test_coverage_of_divergences(n_clusters, n_bins, shift, least):
    assert coverage_of_divergences(n_clusters, n_bins, shift, 300)[0] >= least


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
    # half of the songs differ wholly: the interval reaches beyond 0.6, where this divergence is said to end
    reference, estimate = [0] * 8, [0, 0, 0, 0, 1, 1, 1, 1]
    options = {"n_bins": 2, "divergence": total_variation}
    free = bootstrap_divergence(reference, estimate, None, **options)
    assert free.high > 0.6
    held = bootstrap_divergence(reference, estimate, None, upper=0.6, **options)
    assert held.high == 0.6
    assert (held.estimate, held.low) == (free.estimate, min(free.low, 0.6))


def test_the_floor_is_the_mean_of_the_relabellings() -> None:
    rng = np.random.default_rng(0)
    a, b, units = rng.integers(0, 4, 40), rng.integers(0, 4, 40), np.repeat(np.arange(10), 4)
    options = {"n_bins": 4, "divergence": total_variation, "units": units, "n_permutations": 300, "seed": 1}
    drawn = null_divergences(a, b, **options)
    assert drawn.shape == (300,)
    assert null_divergence(a, b, **options) == drawn.mean()
    assert null_divergences([], [], n_bins=2, divergence=total_variation).shape == (0,)


def test_one_law_exceeds_the_95th_percentile_of_relabellings_one_time_in_twenty() -> None:
    rng = np.random.default_rng(0)
    above = []
    for trial in range(300):
        a, b = rng.integers(0, 4, (2, 60))
        drawn = null_divergences(a, b, n_bins=4, divergence=total_variation, n_permutations=200, seed=trial)
        masses = [np.bincount(bins, minlength=4) / 60 for bins in (a, b)]
        above.append(total_variation(*masses) > np.quantile(drawn, 0.95))
    assert np.mean(above) < 0.08
