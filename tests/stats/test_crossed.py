"""Means of ratings that cross listeners and items: worked by hand, symmetric, and covering as they say."""

from __future__ import annotations

import numpy as np
import pytest

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats.crossed import crossed_difference, crossed_mean


def world(
    rng: np.random.Generator, n_listeners: int, n_items: int, *, spreads: tuple[float, float, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ratings of two systems by every listener on every item, shape (2, listeners, items), true means 0 and 1."""
    of_listener, of_item, left = spreads
    shared = rng.normal(0, of_listener, (1, n_listeners, 1)) + rng.normal(0, of_item, (1, 1, n_items))
    own = rng.normal(0, of_item, (2, 1, n_items)) + rng.normal(0, of_listener, (2, n_listeners, 1))
    values = shared + own + rng.normal(0, left, (2, n_listeners, n_items)) + np.array([0.0, 1.0])[:, None, None]
    who, what = np.meshgrid(np.arange(n_listeners), np.arange(n_items), indexing="ij")
    return values, who.ravel(), what.ravel()


def test_worked_by_hand() -> None:
    # influences (x - 4) / 4: 0, 1/4, -1/4, 0; by listener 1/4 and -1/4: 2 * 2/16 = 1/4, by item the same;
    # by both 4/3 * 2/16 = 1/6; so the variance is 1/4 + 1/4 - 1/6 = 1/3, and df = (1/9) / (1/16 + 1/16) < 1: 1
    found = crossed_mean([4, 5, 3, 4], ["p", "p", "q", "q"], ["a", "b", "a", "b"])
    reach = 12.7062047 / 3**0.5  # t of 1 degree of freedom
    assert found[:3] == pytest.approx((4.0, 4 - reach, 4 + reach))
    assert (found.n, found.n_listeners, found.n_items) == (4, 2, 2)


def test_what_listeners_and_items_share_cancels(rng: np.random.Generator) -> None:
    values, who, what = world(rng, 8, 6, spreads=(0.5, 0.5, 0.3))
    rows = np.concatenate([values[0].ravel(), values[1].ravel()]), np.repeat([True, False], 48)
    people, things = np.tile(who, 2), np.tile(what, 2)
    plain = crossed_difference(*rows, people, things)
    harsh = crossed_difference(rows[0] + 7.0 * people - 3.0 * things, rows[1], people, things)
    assert harsh == pytest.approx(plain)
    turned = crossed_difference(rows[0], ~rows[1], people, things)
    assert turned[:4] == pytest.approx((-plain.estimate, -plain.high, -plain.low, plain.p_value))
    order = rng.permutation(96)
    assert crossed_difference(rows[0][order], rows[1][order], people[order], things[order]) == pytest.approx(plain)


@pytest.mark.parametrize("spreads", [(1.0, 1.0, 1.0), (1.0, 0.0, 1.0), (0.0, 1.0, 1.0), (0.0, 0.0, 1.0)])
def test_intervals_cover(spreads: tuple[float, float, float]) -> None:
    rng = np.random.default_rng(8)
    held = np.zeros(2)
    for _ in range(400):
        values, who, what = world(rng, 12, 8, spreads=spreads)
        mean = crossed_mean(values[0].ravel(), who, what)
        both = np.concatenate([values[1].ravel(), values[0].ravel()])
        first = np.repeat([True, False], 96)
        difference = crossed_difference(both, first, np.tile(who, 2), np.tile(what, 2))
        held += mean.low <= 0 <= mean.high, difference.low <= 1 <= difference.high
    # 400 draws know a coverage of .95 to about .02
    assert np.all(held / 400 >= 0.92)


def test_one_cluster_says_nothing_of_others() -> None:
    found = crossed_mean([4, 5], ["p", "p"], ["a", "b"])
    assert found.estimate == 4.5
    assert np.isnan(found.low)
    assert np.isnan(found.p_value)
    assert np.isnan(crossed_mean([], [], []).estimate)
    assert np.isnan(crossed_difference([1, 2], [True, True], ["p", "q"], ["a", "b"]).estimate)


def test_ratings_that_all_agree_do_not_say_that_the_next_one_does() -> None:
    found = crossed_mean([4, 4, 4, 4], ["p", "p", "q", "q"], ["a", "b", "a", "b"])
    assert found.estimate == 4
    assert np.isnan([found.low, found.high, found.p_value]).all()


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(InvalidInputError, match="finite"):
        crossed_mean([1, np.nan], ["p", "q"], ["a", "b"])
    with pytest.raises(PairCountError):
        crossed_mean([1, 2], ["p"], ["a", "b"])
    with pytest.raises(InvalidInputError, match="confidence"):
        crossed_mean([1, 2], ["p", "q"], ["a", "b"], confidence=95)
