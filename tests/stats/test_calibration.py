"""Positions between two controls, and means over pairs of two sides, with their jackknife."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats.calibration import Clustered, combined_positions, mean_intervals_of_pairs, separation
from music_evals.stats.intervals import mean_interval, student

SAME = Clustered([[0.9, 1.0], [0.7, 3.0], [0.8, 2.0]], [0, 1, 2])
UNRELATED = Clustered([[0.1, 21.0], [0.3, 23.0], [0.2, 22.0]], [[0, 1], [1, 2], [2, 0]])


def test_a_position_is_that_of_the_means() -> None:
    """(0.5 - 0.2) / (0.8 - 0.2) = 0.5; (12 - 22) / (2 - 22) = 0.5 although less is better; controls lie at the ends."""
    scores = Clustered([[0.6, 10.0], [0.4, 14.0]], [0, 1])
    both = combined_positions(scores, SAME, UNRELATED, [[1, 0], [0, 3], [1, 1], [0, 0]])
    assert [one.estimate for one in both] == pytest.approx([0.5, 0.5, 0.5, np.nan], nan_ok=True)
    (top,) = combined_positions(SAME, SAME, UNRELATED, [[2, 1]])
    (bottom,) = combined_positions(Clustered(UNRELATED.values, [0, 1, 2]), SAME, UNRELATED, [[2, 1]])
    assert (top.estimate, bottom.estimate) == pytest.approx((1, 0))


def test_nothing_is_clipped() -> None:
    (found,) = combined_positions(Clustered([[1.4, 0], [1.4, 0]], [0, 1]), SAME, UNRELATED, [[1, 0]])
    assert found.estimate == pytest.approx(2)


def test_the_interval_is_the_jackknife_worked_out_by_hand() -> None:
    """Cluster by cluster, with every value that belongs to it, a value of two clusters with either."""
    values = {0: [0.6, 0.5], 1: [0.4], 2: [0.7]}
    scores = Clustered(
        [[v, 0.0] for row in values.values() for v in row], [g for g, row in values.items() for _ in row]
    )
    (found,) = combined_positions(scores, SAME, UNRELATED, [[1, 0]], confidence=0.9)
    same, other = {0: 0.9, 1: 0.7, 2: 0.8}, {(0, 1): 0.1, (1, 2): 0.3, (2, 0): 0.2}
    left = []
    for gone in range(3):
        own = np.mean([v for g, row in values.items() if g != gone for v in row])
        high = np.mean([v for g, v in same.items() if g != gone])
        low = np.mean([v for both, v in other.items() if gone not in both])
        left.append((own - low) / (high - low))
    reach = student(2, 0.9) * np.sqrt(2 / 3 * np.sum((np.array(left) - np.mean(left)) ** 2))
    assert (found.low, found.high) == pytest.approx((found.estimate - reach, found.estimate + reach))


@pytest.mark.parametrize("gone", [np.nan, np.inf])
def test_what_has_no_value_has_no_position(gone: float) -> None:
    undefined = Clustered([[gone, 1.0], [gone, 2.0]], [0, 1])
    first, second = combined_positions(undefined, SAME, UNRELATED, [[1, 1], [0, 1]])
    assert np.isnan(first).all()
    assert np.isfinite(second.estimate)


def test_nothing_has_no_position() -> None:
    (found,) = combined_positions(Clustered(np.empty((0, 2)), np.empty(0, int)), SAME, UNRELATED, [[1, 1]])
    assert np.isnan(found).all()


def test_controls_that_coincide_place_nothing() -> None:
    (found,) = combined_positions(Clustered([[0.5, 0], [0.4, 0]], [0, 1]), SAME, SAME, [[1, 0]])
    assert np.isnan(found).all()


def test_one_cluster_and_clusters_that_are_alike_have_no_interval() -> None:
    for groups in ([0, 0], [4, 4]):
        (found,) = combined_positions(Clustered([[0.6, 0], [0.4, 0]], groups), SAME, UNRELATED, [[1, 0]])
        assert found.estimate == pytest.approx(0.5)
        assert np.isnan(found[1:]).all()
    flat = Clustered([[1.0, 0]] * 3, [0, 1, 2]), Clustered([[0.0, 0]] * 3, [[0, 1], [1, 2], [2, 0]])
    (found,) = combined_positions(Clustered([[0.3, 0]] * 3, [0, 1, 2]), *flat, [[1, 0]])
    assert found.estimate == pytest.approx(0.3)
    assert np.isnan(found[1:]).all()


@given(values=arrays.arrays(float, (5, 2), elements=st.floats(-1, 1)), seed=st.integers(0, 99), scale=st.floats(0.1, 9))
def test_order_names_and_units_play_no_part(values: Any, seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    order = rng.permutation(5)
    groups = np.array([0, 1, 2, 2, 1])
    names = np.array([7, 3, 11])  # of the clusters
    (first,) = combined_positions(Clustered(values, groups), SAME, UNRELATED, [[1, 2]])
    same, unrelated = (
        Clustered(1 - scale * np.array(part.values), names[np.array(part.groups)]) for part in (SAME, UNRELATED)
    )
    (second,) = combined_positions(
        Clustered(1 - scale * values[order], names[groups[order]]), same, unrelated, [[1, 2]]
    )
    assert second == pytest.approx(first, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize(("n", "least"), [(8, 0.9), (25, 0.92)])
def test_the_interval_holds_what_it_promises(n: int, least: float) -> None:
    """Songs that are hard for all, two edits of each; coverage of 95 % in 300 draws, less what chance takes."""
    rng, held = np.random.default_rng(1), 0
    truth = (0.6 - 0.35) / (0.85 - 0.35)
    for _ in range(300):
        song, other, groups = rng.normal(0, 0.05, n), np.roll(np.arange(n), 1), np.repeat(np.arange(n), 2)
        same = 0.85 + song + rng.normal(0, 0.05, n)
        unrelated = 0.35 + (song + song[other]) / 2 + rng.normal(0, 0.1, n)
        own = 0.6 + song[groups] + rng.normal(0, 0.1, n)[groups] + rng.normal(0, 0.05, 2 * n)
        (found,) = combined_positions(
            Clustered(own[:, None], groups),
            Clustered(same[:, None], np.arange(n)),
            Clustered(unrelated[:, None], np.column_stack([np.arange(n), other])),
            [[1]],
        )
        held += found.low <= truth <= found.high
    assert held / 300 >= least


def test_separation() -> None:
    assert separation([0.9, 0.8, np.nan], [0.1, 0.85]) == 0.75
    assert separation([1.0, 2.0], [3.0, 1.5], lower_is_better=True) == 0.75
    assert separation([1.0, 1.0], [1.0, 1.0]) == 0.5
    assert np.isnan(separation([1.0, np.nan], [0.0, 0.1]))


def test_wrong_input() -> None:
    with pytest.raises(InvalidInputError, match="shape"):
        combined_positions(Clustered([[1.0]], [0]), SAME, UNRELATED, [[1, 1]])
    with pytest.raises(InvalidInputError, match="not be negative"):
        combined_positions(SAME, SAME, UNRELATED, [[-1, 1]])
    with pytest.raises(PairCountError):
        combined_positions(Clustered(SAME.values, [0, 1]), SAME, UNRELATED, [[1, 1]])
    with pytest.raises(InvalidInputError, match="confidence"):
        combined_positions(SAME, SAME, UNRELATED, [[1, 1]], confidence=95)


@pytest.mark.parametrize(("n", "own", "least"), [(10, 1.0, 0.93), (40, 1.0, 0.94), (40, 0.0, 0.95)])
def test_a_mean_over_pairs_is_covered_where_originals_stand_in_two(n: int, own: float, least: float) -> None:
    rng = np.random.default_rng(3)
    one = np.arange(n)
    other = (one + 1) % n
    held = {"sides": 0, "one side": 0}
    for _ in range(600):
        share = own * rng.standard_normal(n)
        values = share[one] + share[other] + rng.standard_normal(n) * (1 - own)
        (both,) = mean_intervals_of_pairs(Clustered(values[:, None], np.column_stack([one, other])))
        single = mean_interval(values, one)
        held["sides"] += both.low <= 0 <= both.high
        held["one side"] += single.low <= 0 <= single.high
    assert held["sides"] / 600 >= least
    if own:
        assert held["one side"] / 600 < 0.9


def test_a_mean_over_pairs_counts_and_clips() -> None:
    sides = np.array([[0, 1], [1, 2], [2, 0], [3, 3]])
    values = np.array([[0.9, 0.1, np.nan], [0.8, 0.2, np.nan], [1.0, np.nan, np.nan], [0.1, np.nan, 0.5]])
    high, two, one = mean_intervals_of_pairs(Clustered(values, sides), spans=[(0, 1)] * 3)
    assert (high.estimate, high.n, high.n_defined, high.n_clusters) == (pytest.approx(0.7), 4, 4, 4)
    assert 0 <= high.low < high.estimate < high.high == 1
    # three originals, of which one stands in both pairs: without it nothing is left
    assert (two.estimate, two.n_defined, two.n_clusters) == (pytest.approx(0.15), 2, 3)
    assert math.isnan(two.low)
    assert (one.estimate, one.n_clusters) == (0.5, 1)
    assert math.isnan(one.high)
    moved = mean_intervals_of_pairs(Clustered(values[::-1], sides[::-1, ::-1] + 7), spans=[(0, 1)] * 3)
    np.testing.assert_allclose(np.array(moved), np.array([high, two, one]))


def test_pairs_that_all_score_the_same_have_no_interval() -> None:
    ring = [[place, (place + 1) % 7] for place in range(7)]
    (found,) = mean_intervals_of_pairs(Clustered([[0.1]] * 7, ring))
    assert (found.estimate, math.isnan(found.low), math.isnan(found.high)) == (pytest.approx(0.1), True, True)
