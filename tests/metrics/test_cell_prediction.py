"""Metrics of predicted cells: worked cases, and what holds for all rolls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from music_evals.errors import InvalidInputError, NoDataError, UndefinedMetricWarning
from music_evals.metrics.cell_prediction import (
    CellCounts,
    cell_f1,
    cell_nll,
    cell_precision,
    cell_recall,
    cell_scores,
    change_error_rate,
    count_cells,
    piano_roll_error_rate,
)

N = 84
rolls = st.integers(1, 6).flatmap(lambda steps: arrays.arrays(np.bool_, (steps, N), elements=st.booleans()))
pairs = st.integers(1, 6).flatmap(
    lambda steps: st.tuples(
        arrays.arrays(np.bool_, (steps, N)), arrays.arrays(np.float64, (steps, N), elements=st.floats(0, 1))
    )
)


def cells(*steps: tuple[int, ...]) -> np.ndarray:
    """A roll from the columns that sound at each step."""
    roll = np.zeros((len(steps), N), dtype=np.bool_)
    for step, columns in enumerate(steps):
        roll[step, list(columns)] = True
    return roll


def test_by_hand() -> None:
    # the chord changes at steps 0 and 2; one cell too many at step 1, one missing at 2
    truth, given_ = cells((10, 20), (10, 20), (10, 21), (10, 21)), cells((10, 20), (10, 20, 30), (10,), (10, 21))
    assert piano_roll_error_rate(truth, given_) == 2 / (4 * N)
    assert change_error_rate(truth, given_) == 1 / (2 * N)
    assert cell_precision(truth, given_) == 7 / 8
    assert cell_recall(truth, given_) == 7 / 8
    assert cell_f1(truth, given_) == 2 * 7 / (8 + 8)
    assert cell_nll(truth, given_) == math.inf


def test_the_threshold_belongs_to_what_sounds() -> None:
    truth, half = cells((3,)), np.full((1, N), 0.5)
    assert piano_roll_error_rate(truth, half) == (N - 1) / N
    assert piano_roll_error_rate(truth, half - 1e-9) == 1 / N


def test_nll_by_hand() -> None:
    # 3/4 for the cell that sounds, 1/8 for each of 83 that do not
    probabilities = np.where(cells((3,)), 3 / 4, 1 / 8)
    assert cell_nll(cells((3,)), probabilities) == pytest.approx(-(math.log(3 / 4) + 83 * math.log(7 / 8)) / N)


def test_silence_at_the_start_is_no_change() -> None:
    assert count_cells(cells((), (5,), (5,)), np.zeros((3, N))).changing_cells == N
    assert count_cells(cells((5,), (5,), ()), np.zeros((3, N))).changing_cells == 2 * N


@pytest.mark.parametrize(
    ("metric", "truth", "estimate", "why"),
    [
        (change_error_rate, cells((), ()), cells((4,), ()), "no step differs"),
        (cell_precision, cells((4,)), cells(()), "predicted"),
        (cell_recall, cells(()), cells((4,)), "reference sounds"),
    ],
)
def test_undefined(metric: Any, truth: np.ndarray, estimate: np.ndarray, why: str) -> None:
    with pytest.warns(UndefinedMetricWarning, match=f"{metric.__name__} is undefined: .*{why}") as caught:
        assert math.isnan(metric(truth, estimate))
    assert caught[0].filename == __file__


def test_two_silences_agree() -> None:
    assert cell_f1(cells(()), cells(())) == 1.0
    assert cell_f1(cells(()), cells((1,))) == 0.0


@given(pairs)
def test_bounds(pair: tuple[np.ndarray, np.ndarray]) -> None:
    scores = cell_scores(count_cells(*pair))
    assert all(0 <= value <= 1 for name, value in scores.items() if name != "cell_nll" and not math.isnan(value))
    assert scores["cell_nll"] >= 0


@given(rolls)
def test_the_truth_is_perfect(roll: np.ndarray) -> None:
    scores = cell_scores(count_cells(roll, roll))
    assert (scores["piano_roll_error_rate"], scores["cell_nll"], scores["cell_f1"]) == (0, 0, 1)
    assert scores["change_error_rate"] == 0 or not roll.any()


@given(pairs)
def test_the_complement_is_wrong_where_the_prediction_is_right(pair: tuple[np.ndarray, np.ndarray]) -> None:
    truth, probabilities = pair
    given_ = probabilities >= 0.5
    assert piano_roll_error_rate(truth, given_) + piano_roll_error_rate(truth, ~given_) == pytest.approx(1)
    assert piano_roll_error_rate(~truth, ~given_) == piano_roll_error_rate(truth, given_)


@given(pairs)
def test_symmetry_and_nll_of_the_mirror(pair: tuple[np.ndarray, np.ndarray]) -> None:
    truth, probabilities = pair
    given_ = probabilities >= 0.5
    assert piano_roll_error_rate(truth, given_) == piano_roll_error_rate(given_, truth)
    assert cell_f1(truth, given_) == cell_f1(given_, truth)
    # in sixteenths, which 1 - q holds exactly
    coarse = np.round(probabilities * 16) / 16
    assert cell_nll(~truth, 1 - coarse) == pytest.approx(cell_nll(truth, coarse))


@given(pairs, st.permutations(range(N)))
def test_the_order_of_pitches_does_not_matter(pair: tuple[np.ndarray, np.ndarray], order: list[int]) -> None:
    first, second = (cell_scores(count_cells(*(side[:, some] for side in pair))) for some in (order, range(N)))
    assert first == pytest.approx(second, nan_ok=True)


@given(pairs)
def test_one_more_error_never_helps(pair: tuple[np.ndarray, np.ndarray]) -> None:
    truth, probabilities = pair
    given_ = probabilities >= 0.5
    right = np.argwhere(given_ == truth)
    if len(right):
        step, column = right[0]
        worse = given_.copy()
        worse[step, column] ^= True
        assert piano_roll_error_rate(truth, worse) > piano_roll_error_rate(truth, given_)
        assert cell_f1(truth, worse) <= cell_f1(truth, given_)


def test_counts_add_up_over_pieces() -> None:
    """Pieces that begin and end in silence, so that no change lies between them."""
    truths, estimates = [cells((), (5,), ()), cells((), (7, 9), (8,), ())], [np.full((n, N), 0.25) for n in (3, 4)]
    each = [count_cells(*pair) for pair in zip(truths, estimates, strict=True)]
    whole = count_cells(np.vstack(truths), np.vstack(estimates))
    assert CellCounts(*(sum(values) for values in zip(*each, strict=True))) == pytest.approx(whole)


@pytest.mark.parametrize(
    ("reference", "estimate", "error", "message"),
    [
        (np.zeros((2, 88)), np.zeros((2, 88)), InvalidInputError, r"reference must be a roll.*\(steps, 84\)"),
        (np.zeros((2, N)), np.zeros((3, N)), InvalidInputError, "2 steps, estimate 3"),
        (np.zeros((2, N)), np.full((2, N), 1.5), InvalidInputError, "from 0 to 1, got 1.5"),
        (np.zeros((2, N)), np.full((2, N), np.nan), InvalidInputError, "got nan"),
        (np.full((2, N), 0.5), np.zeros((2, N)), InvalidInputError, "reference must hold True and False"),
        (np.full((2, N), "x"), np.zeros((2, N)), InvalidInputError, "roll of numbers"),
        (np.zeros((0, N)), np.zeros((0, N)), NoDataError, "no steps"),
    ],
)
def test_bad_input(reference: Any, estimate: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        piano_roll_error_rate(reference, estimate)
