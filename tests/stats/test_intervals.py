import math

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats import mean_interval, mean_intervals, paired_mean_test
from music_evals.stats.intervals import (
    LEAST_CUBE,
    MANY_CLUSTERS,
    RARE_DIFFERENCES,
    SIMULATED_COVERAGE,
    interval_of_totals,
    rare_differences,
    simulated_coverage,
    weights_of_clusters,
)

SIZES = [3, 1, 7, 2, 12, 4]


def clustered(rng, sizes, *, skewed=False):
    """Items that are alike within clusters."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    shared = (rng.exponential if skewed else rng.normal)(size=len(sizes))[groups]
    return shared + rng.normal(size=len(groups)), groups


def by_matrices(values, groups):
    """Mean, variance, degrees of freedom and skewness from matrices over clusters, as the module defines them."""
    names, counts = np.unique(groups, return_counts=True)
    weights = counts / counts.sum()
    means = np.array([values[groups == name].mean() for name in names])
    residual = np.diag(weights) @ (np.eye(len(names)) - np.outer(np.ones(len(names)), weights))
    covariance = residual @ residual.T  # of the residuals where the means of clusters have variance 1
    factors = weights**2 / np.diag(covariance)
    form = residual.T @ np.diag(factors) @ residual
    assert np.trace(form) == pytest.approx((weights**2).sum(), rel=1e-12)  # unbiased: this is the mean's variance
    variance = means @ form @ means
    skewness = ((residual @ means) ** 3).sum() / variance**1.5
    return values.mean(), variance, np.trace(form) ** 2 / np.trace(form @ form), skewness


def transformed(t, skewness):
    """Apply Hall's transformation forwards."""
    return t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6


@pytest.mark.parametrize("sizes", [SIZES, [5] * 8, [40, 2], [1] * 10])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_closed_form_is_the_matrix_form(sizes, confidence):
    values, groups = clustered(np.random.default_rng(3), sizes, skewed=True)
    mean, variance, df, skewness = by_matrices(values, groups)
    found = mean_interval(values, groups, confidence=confidence)
    assert found.estimate == pytest.approx(mean, rel=1e-12)
    reach = scipy.stats.t.ppf((1 + confidence) / 2, df)
    largest = max(np.roots([1 / 6, reach, LEAST_CUBE - 1]))  # there 1 - a (t + a/6) is the least that it may be
    skewness = np.clip(skewness, -largest, largest)
    ends = [(mean - end) / math.sqrt(variance) for end in (found.high, found.low)]
    np.testing.assert_allclose([transformed(t, skewness) for t in ends], [-reach, reach], rtol=1e-8)


def test_clusters_of_one_size_have_the_variance_of_bell_and_mccaffrey():
    # their CR2 from its definition: residuals of each cluster times (I - H_gg)^(-1/2), on items
    values, groups = clustered(np.random.default_rng(4), [5] * 6)
    n, design = len(values), np.ones((len(values), 1))
    hat = design @ design.T / n
    residuals = values - values.mean()
    variance = 0.0
    columns = []
    for group in range(6):
        inside = groups == group
        adjusted = scipy.linalg.fractional_matrix_power(np.eye(5) - hat[np.ix_(inside, inside)], -0.5)
        variance += (adjusted @ residuals[inside]).sum() ** 2 / n**2
        columns.append((np.eye(n) - hat)[:, inside] @ adjusted @ np.ones(5) / n)
    gram = np.array(columns) @ np.array(columns).T
    _, ours, df, _ = by_matrices(values, groups)
    assert ours == pytest.approx(variance, rel=1e-10)
    assert df == pytest.approx(np.trace(gram) ** 2 / (gram**2).sum(), rel=1e-10)
    assert df == pytest.approx(5, rel=1e-10)


def test_symmetric_items_without_clusters_have_the_interval_of_student():
    values = np.random.default_rng(2).normal(size=15)
    values = np.concatenate([values, -values]) + 3
    found = mean_interval(values, None, confidence=0.9)
    expected = scipy.stats.t.interval(0.9, 29, values.mean(), scipy.stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-12)
    assert found.n_clusters == 30


def test_a_long_tail_moves_the_interval_towards_it():
    values = np.random.default_rng(1).exponential(size=40)
    found = mean_interval(values, None)
    assert found.high - found.estimate > 1.1 * (found.estimate - found.low)


@pytest.mark.slow
@settings(max_examples=10)  # of 501 intervals each
@given(st.integers(0, 10**6), st.integers(10, 60), st.sampled_from([0.5, 0.8, 0.95, 0.99375]), st.booleans())
def test_a_small_change_of_one_score_makes_a_small_change_of_the_ends(seed, n, confidence, upwards):
    # one score goes through its whole range, and so does the skewness: nowhere does an end jump
    values = np.random.default_rng(seed).beta(0.5, 2, size=n)
    ends = []
    for last in np.linspace(0, 1, 501):
        values[-1] = last
        ends.append(mean_interval(values if upwards else 1 - values, None, confidence=confidence)[1:3])
    steps = np.abs(np.diff(ends, axis=0))
    assert steps.max() < 40 * 0.002 / n  # the mean itself moves by 0.002 / n


def test_an_outlier_does_not_let_the_interval_contradict_the_test():
    # 135 songs say -0.3 and one, ten times as long, +0.3
    values = np.concatenate([np.random.default_rng(1).normal(-0.3, 0.02, size=135), np.full(10, 0.3)])
    found = paired_mean_test(values, np.zeros(145), np.concatenate([np.arange(135), np.full(10, 135)]))
    assert found.p_value < 0.001
    assert found.high < 0


@pytest.mark.parametrize(
    ("groups", "n_clusters"),
    [
        (["a"] * 4, 1),
        (["a", "a", "b", "b"], 2),
        (["a", "a", "a", "b"], 16 / 10),  # (3 + 1)² / (3² + 1²)
        (None, 4),
    ],
)
def test_effective_number_of_clusters(groups, n_clusters):
    assert mean_interval([0.1, 0.4, 0.2, 0.9], groups).n_clusters == pytest.approx(n_clusters, rel=1e-12)


def test_undefined_items_count_nowhere():
    values, groups = [1, np.nan, 0, 1, np.nan, 0.5], [0, 0, 1, 2, 3, 2]
    found = mean_interval(values, groups)
    assert (found.n, found.n_defined) == (6, 4)
    assert found[:3] == pytest.approx(mean_interval([1, 0, 1, 0.5], [0, 1, 2, 2])[:3], rel=1e-12)
    assert found.n_clusters == 16 / 6


def test_the_mean_is_over_items():
    assert mean_interval([0, 0, 0, 1], ["a", "a", "a", "b"]).estimate == 0.25


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
        ([0.0] * 30, None, 0.0),  # no note was right in 30 songs: how far from 0 the next one is, nobody knows
        ([0.1] * 7, [0, 0, 1, 1, 1, 2, 2], 0.1),  # sums that differ by rounding alone
        ([0.0, 1.0, 1.0, 0.0], [0, 0, 1, 1], 0.5),  # the songs are alike
    ],
)
def test_no_interval_where_nothing_can_be_said(values, groups, estimate):
    found = mean_interval(values, groups)
    assert found.estimate == pytest.approx(estimate, nan_ok=True)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert (found.n, found.n_defined) == (len(values), np.count_nonzero(~np.isnan(values)))


def test_ends_stay_within_what_a_score_can_be():
    values = [0.0, 0.0, 0.1, 0.9]
    free, held = mean_interval(values, None), mean_interval(values, None, span=(0, 1))
    assert free.low < 0
    assert free.high > 1
    assert held[:3] == (0.25, 0, 1)
    # what leaves its range is not cut off
    assert mean_interval([0.5, 1.5, 1.2, 0.9], None, span=(0, 1)).high > 1.2


def test_songs_that_all_score_the_same_say_how_many_others_may_not():
    # (1 - s)^20 = 0.05 at s = 0.1391: where more than that share fails, fewer than 5 % of samples of 20 hold no failure
    found = mean_interval([1.0] * 20, None, span=(0, 1), unseen=(0, 1))
    assert found[:3] == pytest.approx((1, 0.8609, 1), abs=1e-4)
    found = mean_interval([0.0] * 20, None, span=(0, math.inf), unseen=(0, 24.4))
    assert found[:3] == pytest.approx((0, 0, 3.394), abs=1e-3)
    # windows of a song are one song, and two songs of which one is long are hardly more
    assert mean_interval([1.0] * 20, [0] * 10 + [1] * 10, unseen=(0, 1)).low == pytest.approx(0.05**0.5, rel=1e-9)
    assert mean_interval([1.0] * 20, [0] * 19 + [1], unseen=(0, 1)).low == pytest.approx(0.05**0.905, rel=1e-9)


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5], [math.inf, 0.5, 0.4]])
def test_what_a_sample_lacks_needs_two_songs_and_finite_scores(values):
    found = mean_interval(values, [0] * len(values) if len(values) == 2 else None, unseen=(0, 1))
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_one_error_among_many_is_as_wide_as_its_spread_says():
    values = np.array([0.0] * 19 + [1.0])
    assert mean_interval(values, None, span=(0, 1), unseen=(0, 1)) == mean_interval(values, None, span=(0, 1))


@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 9), min_size=2, max_size=30),
    st.floats(0.5, 0.99),
    st.sampled_from([0.001, 0.05, 1.0]),
)
def test_what_a_sample_lacks_widens_the_interval_within_the_span(seed, sizes, confidence, spread):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    values = np.clip(rng.random() + spread * rng.normal(size=len(sizes))[groups], 0, 1)
    options = {"span": (0, 1), "confidence": confidence}
    alone, ours = (mean_interval(values, groups, unseen=unseen, **options) for unseen in (None, (0, 1)))
    assert 0 <= ours.low <= ours.estimate + 1e-12
    assert ours.estimate - 1e-12 <= ours.high <= 1
    assert not ours.low > alone.low
    assert not ours.high < alone.high
    # where a share s may score anything, the ends are s apart
    assert ours.high - ours.low >= 1 - (1 - confidence) ** (1 / ours.n_clusters) - 1e-12
    wider = mean_interval(values, groups, unseen=(0, 1), span=(0, 1), confidence=(1 + confidence) / 2)
    assert wider.low <= ours.low + 1e-12
    assert wider.high >= ours.high - 1e-12
    # mirrored, moved and scaled with the span, whatever the order of the items and the names of the clusters
    order = rng.permutation(len(values))
    moved = mean_interval(
        7 - 3 * values[order], [f"song {-code}" for code in groups[order]], span=(4, 7), unseen=(4, 7),
        confidence=confidence,
    )  # fmt: skip
    np.testing.assert_allclose(moved[:3], [7 - 3 * end for end in (ours.estimate, ours.high, ours.low)], atol=1e-6)


def test_copies_of_items_in_their_clusters_hide_no_less():
    values, groups = np.array([1, 0.99, 1, 0.98, 1.0]), np.arange(5)
    once = mean_interval(values, groups, span=(0, 1), unseen=(0, 1))
    tenfold = mean_interval(np.repeat(values, 10), np.repeat(groups, 10), span=(0, 1), unseen=(0, 1))
    np.testing.assert_allclose(tenfold[:3], once[:3], rtol=1e-12)


@given(st.integers(0, 10**6), st.lists(st.integers(1, 30), min_size=2, max_size=12), st.floats(-5, 5))
def test_follows_shift_scale_and_mirror_and_holds_the_estimate(seed, sizes, shift):
    values, groups = clustered(np.random.default_rng(seed), sizes, skewed=seed % 2 == 0)
    plain = mean_interval(values, groups)
    assert plain.low <= plain.estimate <= plain.high
    for scale in (3.5, -0.5):
        moved = mean_interval(scale * values + shift, groups)
        ends = sorted([scale * plain.low + shift, scale * plain.high + shift])
        np.testing.assert_allclose(moved[:3], [scale * plain.estimate + shift, *ends], rtol=1e-7, atol=1e-7)
    df = float(weights_of_clusters(np.array(sizes, dtype=float))[-1])
    assert 1 <= df <= len(sizes) - 1
    assert plain.n_clusters <= len(sizes) + 1e-9


@given(st.integers(0, 10**6))
def test_item_order_and_label_names_play_no_part(seed):
    rng = np.random.default_rng(seed)
    values, groups = clustered(rng, SIZES)
    order = rng.permutation(len(values))
    names = np.array(["bwv1", "bwv2", "bwv3", "bwv4", "bwv5", "bwv6"])[::-1][groups]
    plain = mean_interval(values, groups)
    np.testing.assert_allclose(mean_interval(values[order], names[order]), plain, rtol=1e-9)


def test_copies_of_an_item_in_one_cluster_add_nothing():
    values = np.random.default_rng(2).random(30)
    once, tenfold = mean_interval(values, None), mean_interval(np.repeat(values, 10), np.arange(300) // 10)
    np.testing.assert_allclose(tenfold[:3], once[:3], rtol=1e-12)
    naive = mean_interval(np.repeat(values, 10), None)
    assert (naive.high - naive.low) < 0.5 * (once.high - once.low)


def test_wider_at_higher_confidence():
    values, groups = clustered(np.random.default_rng(0), SIZES, skewed=True)
    widths = [np.diff(mean_interval(values, groups, confidence=level)[1:3])[0] for level in (0.5, 0.9, 0.99)]
    assert widths == sorted(widths)


def test_many_metrics_equal_one_by_one():
    rng = np.random.default_rng(8)
    values = rng.random((200, 3))
    values[rng.random(values.shape) < 0.3] = np.nan
    values[:, 2] = np.nan
    groups = rng.integers(0, 12, 200)
    together = mean_intervals(values, groups)
    np.testing.assert_array_equal(together, [mean_interval(column, groups) for column in values.T])
    unseen = [(0, 1), None, (0, 2)]
    together = mean_intervals(values, groups, unseen=unseen)
    alone = [mean_interval(column, groups, unseen=ends) for column, ends in zip(values.T, unseen, strict=True)]
    np.testing.assert_array_equal(together, alone)


def test_totals_of_many_samples_equal_one_by_one():
    rng = np.random.default_rng(9)
    samples = [clustered(rng, SIZES) for _ in range(4)]
    sums = np.stack([np.bincount(groups, values) for values, groups in samples], axis=1)
    counts = np.broadcast_to(np.array(SIZES, dtype=float)[:, None], sums.shape)
    low, high, n_clusters = interval_of_totals(sums, counts, 0.95)
    for place, (values, groups) in enumerate(samples):
        found = mean_interval(values, groups)
        assert (low[place], high[place], n_clusters[place]) == pytest.approx((*found[1:3], found[5]), rel=1e-9)


def test_inputs_are_not_written_to():
    values, groups = np.array([0.5, np.nan, 1]), np.array([5, 6, 7])
    for array in (values, groups):
        array.flags.writeable = False
    mean_interval(values, groups)


@pytest.mark.parametrize(
    ("values", "groups", "options", "error"),
    [
        ([[1.0]], None, {}, InvalidInputError),
        (1.0, None, {}, InvalidInputError),
        ([1.0, 2.0], ["a"], {}, PairCountError),
        ([1.0], None, {"confidence": 95}, InvalidInputError),
        ([1.0], None, {"confidence": 0}, InvalidInputError),
    ],
)
def test_wrong_input_is_a_named_error(values, groups, options, error):
    with pytest.raises(error):
        mean_interval(values, groups, **options)


def test_many_metrics_need_a_table():
    with pytest.raises(InvalidInputError, match="n_metrics"):
        mean_intervals([1.0, 2.0], None)


def test_coverage_of_differences_with_rare_errors_is_known_from_one_cluster_on():
    for (least, coverage), (below, _) in zip(RARE_DIFFERENCES, [*RARE_DIFFERENCES[1:], (10**6, 0)], strict=True):
        assert rare_differences(least) == rare_differences(below - 0.1) == coverage


def test_coverage_is_known_below_many_clusters():
    assert simulated_coverage(MANY_CLUSTERS) is None
    assert simulated_coverage(0.9) is None
    starts = [row.least_clusters for row in SIMULATED_COVERAGE]
    assert starts == sorted(starts)
    for row in SIMULATED_COVERAGE:
        assert simulated_coverage(row.least_clusters) == simulated_coverage(row.least_clusters + 0.5) == row
