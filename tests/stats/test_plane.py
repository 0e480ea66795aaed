"""Two scores at once: who is beaten by nobody, and how far both may move together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats.plane import NO_ELLIPSE, bootstrap_ellipse, pareto_front

BOTH = np.eye(2)
points = arrays.arrays(np.float64, st.tuples(st.integers(1, 8), st.just(2)), elements=st.integers(-4, 4).map(float))


def test_who_is_on_the_front() -> None:
    """By hand: b is beaten by a (0.5 against 0.4, equal preservation); the ends and equals are not beaten."""
    held = {
        "lazy": (0, 1),
        "a": (0.5, 0.5),
        "b": (0.4, 0.5),
        "twin": (0.5, 0.5),
        "bold": (1, -0.2),
        "none": (np.nan, 2),
    }
    on_front = pareto_front(list(held.values()))
    assert [name for name, is_on in zip(held, on_front, strict=True) if is_on] == ["lazy", "a", "twin", "bold"]
    assert pareto_front(np.empty((0, 2))).shape == (0,)
    with pytest.raises(InvalidInputError):
        pareto_front([1.0, 2.0])


@given(points)
def test_the_front_is_what_nothing_dominates(table: np.ndarray) -> None:
    on_front = pareto_front(table)
    assert on_front.any()
    for place, row in enumerate(table):
        beaten = any((other >= row).all() and (other > row).any() for other in table)
        assert on_front[place] == (not beaten)


@given(points, st.randoms(use_true_random=False))
def test_the_front_knows_no_order_and_no_unit(table: np.ndarray, random: object) -> None:
    """A system that is beaten may come or go, and each score may be stretched."""
    on_front = pareto_front(table)
    order = np.random.default_rng(0).permutation(len(table))
    assert (pareto_front(table[order]) == on_front[order]).all()
    assert (pareto_front(np.column_stack([table[:, 0] ** 3, np.exp(table[:, 1])])) == on_front).all()
    beaten = table.min(axis=0) - 1
    assert pareto_front(np.vstack([table, beaten])).tolist() == [*on_front.tolist(), False]


def test_an_ellipse_has_the_covariance_of_the_means() -> None:
    """Of 400 independent items: standard errors 2 / 20 and 1 / 20, at the known angle, times 2.45."""
    rng = np.random.default_rng(1)
    turn = np.pi / 6
    rotate = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    values = (rng.standard_normal((400, 2)) * [2.0, 1.0]) @ rotate.T
    found = bootstrap_ellipse(values, None, BOTH, n_resamples=2000)
    assert found.major == pytest.approx(2.45 * 0.1, rel=0.1)
    assert found.minor == pytest.approx(2.45 * 0.05, rel=0.1)
    assert found.angle_rad == pytest.approx(turn, abs=0.08)


def test_clusters_are_drawn_whole() -> None:
    """Ten copies of an item in its cluster say no more than the item; four are few."""
    values = np.array([[0.1, 0.4], [0.3, 0.1], [0.2, 0.9], [0.8, 0.5]])
    once = bootstrap_ellipse(values, ["a", "b", "c", "d"], BOTH)
    often = bootstrap_ellipse(np.repeat(values, 10, axis=0), np.repeat(["a", "b", "c", "d"], 10), BOTH)
    assert once == pytest.approx(often)
    renamed = bootstrap_ellipse(values[::-1], [4, 3, 2, 1], BOTH)
    assert once == pytest.approx(renamed)
    # standard errors of four values by hand (std with ddof 1 / 2), enlarged by Hotelling: sqrt(2 * 3 / 2 * F(2, 2))
    wide = np.sqrt(3 * 19.0)
    alone = bootstrap_ellipse(values[:, :1] * [[1.0, 0.0]], None, BOTH, n_resamples=20_000)
    assert alone.major == pytest.approx(wide * values[:, 0].std(ddof=1) / 2, rel=0.03)
    assert alone.minor == pytest.approx(0, abs=1e-9)
    assert alone.angle_rad == pytest.approx(0)


def test_weights_make_a_score_of_several_columns() -> None:
    rng = np.random.default_rng(2)
    values = rng.random((12, 3))
    together = np.column_stack([values[:, 0], values[:, 1:] @ [0.25, 0.75]])
    weights = [[1, 0, 0], [0, 0.25, 0.75]]
    assert bootstrap_ellipse(values, None, weights) == pytest.approx(bootstrap_ellipse(together, None, BOTH))
    values[:, 0], unused = np.nan, bootstrap_ellipse(values, None, [[0, 1, 0], [0, 0, 1]])
    assert unused.major > 0


def test_few_clusters_have_no_ellipse() -> None:
    values = [[0.1, 0.4], [0.3, 0.1], [0.2, 0.9]]
    assert bootstrap_ellipse(values, ["a", "b", "b"], BOTH) is NO_ELLIPSE
    assert bootstrap_ellipse([[np.nan, np.nan]] * 5, None, BOTH) is NO_ELLIPSE
    with pytest.raises(InvalidInputError):
        bootstrap_ellipse(values, None, [[1, 0, 0], [0, 1, 0]])
    with pytest.raises(PairCountError):
        bootstrap_ellipse(values, ["a"], BOTH)


@pytest.mark.parametrize(("n", "least"), [(6, 0.9), (20, 0.92)])
def test_the_truth_lies_in_it(n: int, least: float) -> None:
    """Skewed scores that go together, near the ends of their range."""
    rng = np.random.default_rng(3)
    truth = np.array([2 / 8, 6 / 8])
    held = 0
    for seed in range(400):
        x = rng.beta(2, 6, n)
        values = np.column_stack([x, 1 - (x + rng.beta(2, 6, n)) / 2])
        found = bootstrap_ellipse(values, None, BOTH, n_resamples=300, seed=seed)
        off = truth - values.mean(axis=0)
        along = np.array([np.cos(found.angle_rad), np.sin(found.angle_rad)])
        across = np.array([-along[1], along[0]])
        held += (off @ along / found.major) ** 2 + (off @ across / found.minor) ** 2 <= 1
    assert held / 400 >= least
