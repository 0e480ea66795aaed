"""Agreement of listeners with each other, and of scores with them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import spearmanr

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats.agreement import RatingTable, agreement, leave_one_out

X = np.nan


def test_leave_one_out_is_spearmans() -> None:
    table = np.array([[1.0, 2, 1], [2, 1, 3], [3, 4, 2], [4, 3, X]])
    expected = [
        spearmanr(table[rows, own], np.nanmean(np.delete(table, own, axis=1), axis=1)[rows])[0]
        for own, rows in ((0, slice(4)), (1, slice(4)), (2, slice(3)))
    ]
    assert leave_one_out(table) == pytest.approx(np.mean(expected))
    assert np.isnan(leave_one_out(table[:2]))


def crossed(rng: np.random.Generator, n_items: int, n_systems: int, n_listeners: int) -> tuple[RatingTable, np.ndarray]:
    """Return ratings of everything by everybody, and how good each stimulus is."""
    good = rng.normal(0, 1, (n_items, n_systems)) + 0.4 * np.arange(n_systems)
    ratings = good[:, :, None] + rng.normal(0, 0.5, n_items)[:, None, None] + rng.normal(0, 1, n_listeners)
    ratings = (ratings + rng.normal(0, 1, ratings.shape)).reshape(-1, n_listeners)
    stimuli, listeners = np.nonzero(np.ones(ratings.shape))
    items, systems = np.repeat(np.arange(n_items), n_systems), np.tile(np.arange(n_systems), n_items)
    return RatingTable(ratings[stimuli, listeners], stimuli, listeners, items=items, systems=systems), good.ravel()


def test_estimates_are_those_of_the_data(rng: np.random.Generator) -> None:
    table, good = crossed(rng, 10, 4, 5)
    score = np.round(good + rng.normal(0, 1, len(good)), 1)
    (found,) = agreement(table, score[:, None], n_resamples=50)
    means = table.matrix.mean(axis=1)
    assert found.stimuli.estimate == pytest.approx(spearmanr(score, means)[0])
    of_systems = [[one[table.systems == k].mean() for k in range(4)] for one in (score, means)]
    assert found.systems.estimate == pytest.approx(spearmanr(*of_systems)[0])
    won = []
    for item, listener in itertools.product(range(10), range(5)):
        for a, b in itertools.combinations(np.flatnonzero(table.items == item), 2):
            won.append(
                (1 + np.sign(score[a] - score[b]) * np.sign(table.matrix[a, listener] - table.matrix[b, listener])) / 2
            )
    assert found.preferences.estimate == pytest.approx(np.mean(won))
    assert (found.stimuli.n, found.systems.n, found.preferences.n) == (40, 4, 300)
    assert found.stimuli.low < found.stimuli.estimate < found.stimuli.high
    assert found.preferences.low < found.preferences.estimate < found.preferences.high
    assert np.isnan(found.systems.p_value)


def test_perfect_opposite_and_constant_scores(rng: np.random.Generator) -> None:
    table, _ = crossed(rng, 8, 3, 1)
    best = table.matrix[:, 0]
    perfect, opposite, constant, nothing = agreement(
        table, np.column_stack([best, -best, np.ones(24), np.full(24, X)]), n_resamples=20
    )
    assert (perfect.stimuli.estimate, perfect.preferences.estimate) == pytest.approx((1, 1))
    assert (opposite.stimuli.estimate, opposite.preferences.estimate) == pytest.approx((-1, 0))
    assert np.isnan(constant.stimuli.estimate)
    assert constant.preferences.estimate == 0.5  # ties are half
    assert np.isnan(nothing.stimuli.estimate)
    assert nothing.preferences.n == nothing.stimuli.n == nothing.systems.n == 0
    assert np.isnan(perfect.preferences.low)  # one listener says nothing of another


def test_harsh_listeners_play_no_part_in_preferences(rng: np.random.Generator) -> None:
    """Half of the listeners are harsh and heard the better system alone with the worst: means mislead, they do not."""
    systems = np.array([0, 1, 2] * 6)
    items = np.repeat(np.arange(6), 3)
    ratings, stimuli, listeners = [], [], []
    for listener in range(6):
        for stimulus in np.flatnonzero(systems != (0 if listener % 2 else 2)):
            ratings.append(systems[stimulus] + (-5 if listener % 2 else 5))
            stimuli.append(stimulus)
            listeners.append(listener)
    table = RatingTable(ratings, stimuli, listeners, items=items, systems=systems)
    (found,) = agreement(table, systems[:, None].astype(float), n_resamples=20)
    assert found.preferences.estimate == 1
    assert found.stimuli.estimate < 0


def test_undefined_stimuli_are_left_out(rng: np.random.Generator) -> None:
    table, good = crossed(rng, 6, 3, 4)
    score = np.where(np.arange(18) % 4 == 0, X, good)
    (found,) = agreement(table, score[:, None], n_resamples=20)
    kept = ~np.isnan(score)
    assert found.stimuli.n == kept.sum()
    assert found.stimuli.estimate == pytest.approx(spearmanr(score[kept], table.matrix.mean(axis=1)[kept])[0])


def test_draws_do_not_depend_on_the_order_of_ratings(rng: np.random.Generator) -> None:
    table, good = crossed(rng, 6, 3, 4)
    order = rng.permutation(len(table.ratings))
    turned = RatingTable(
        table.ratings[order], table.stimuli[order], table.listeners[order], items=table.items, systems=table.systems
    )
    first, second = (agreement(one, good[:, None], n_resamples=30, seed=3)[0] for one in (table, turned))
    for one, other in zip(first, second, strict=True):
        assert tuple(other) == pytest.approx(tuple(one), nan_ok=True)


@pytest.mark.parametrize(("draws", "least"), [(20, 0.8), pytest.param(60, 0.87, marks=pytest.mark.slow)])
def test_intervals_hold_what_they_promise(draws: int, least: float) -> None:
    """No agreement at all, items and listeners that lean: 95 % intervals hold 0 and one half, 5 % of the tests err."""
    rng, held = np.random.default_rng(5), []
    for _ in range(draws):
        table, _ = crossed(rng, 12, 3, 8)
        score = np.repeat(rng.normal(0, 1, 12), 3) + rng.normal(0, 1, 36)  # of the items alone, and noise
        (found,) = agreement(table, score[:, None], n_resamples=100)
        held.append(
            [
                found.stimuli.low <= 0 <= found.stimuli.high,
                found.preferences.low <= 0.5 <= found.preferences.high,
                found.stimuli.p_value > 0.05,
                found.preferences.p_value > 0.05,
            ]
        )
    assert (np.mean(held, axis=0) >= least).all()  # less what so few draws take: 0.95 - 3 sd


def test_wrong_input() -> None:
    def table(**changes: object) -> RatingTable:
        given_ = {"ratings": [1, 2], "stimuli": [0, 1], "listeners": ["a", "a"], "items": [0, 0], "systems": [0, 1]}
        return RatingTable(**{**given_, **changes})  # type: ignore[arg-type]

    with pytest.raises(PairCountError):
        table(stimuli=[0])
    with pytest.raises(PairCountError):
        table(stimuli=[1, 1])
    with pytest.raises(InvalidInputError, match="finite"):
        table(ratings=[1, np.inf])
    with pytest.raises(InvalidInputError, match=r"0\.\.1"):
        table(stimuli=[0, 2])
    with pytest.raises(InvalidInputError, match="shape"):
        agreement(table(), [1.0, 2.0])
    with pytest.raises(InvalidInputError, match="infinite"):
        agreement(table(), [[1.0], [np.inf]])
    with pytest.raises(InvalidInputError, match="n_resamples"):
        agreement(table(), [[1.0], [2.0]], n_resamples=0)
