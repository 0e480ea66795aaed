"""Scores of predicted cells: cases worked by hand, and laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from music_evals.errors import InvalidInputError, PairCountError, UndefinedMetricWarning
from music_evals.metrics.cell_prediction import (
    CellCounts,
    cell_f1,
    cell_nll,
    cell_precision,
    cell_recall,
    change_error_rate,
    change_steps,
    count_cells,
    piano_roll_error_rate,
)

CELLS = hnp.arrays(np.bool_, st.tuples(st.integers(1, 12), st.just(84)))


@pytest.fixture
def truth() -> np.ndarray:
    """Four steps: pitch 40 at all, pitch 50 at the last two. It changes at steps 0 and 2."""
    cells = np.zeros((4, 84), dtype=bool)
    cells[:, 40] = True
    cells[2:, 50] = True
    return cells


@pytest.fixture
def estimate(truth: np.ndarray) -> np.ndarray:
    """Pitch 50 comes a step late, pitch 60 sounds at step 1: 5 of 6 cells found, 6 predicted, 2 of 336 wrong."""
    likely = truth.astype(float)
    likely[2, 50] = 0.4
    likely[1, 60] = 0.5
    return likely


def test_worked_case(truth: np.ndarray, estimate: np.ndarray) -> None:
    assert change_steps(truth).tolist() == [True, False, True, False]
    assert count_cells(truth, estimate) == CellCounts(336, 2, 168, 1, 6, 6, 5)
    assert piano_roll_error_rate(truth, estimate) == 2 / 336
    assert change_error_rate(truth, estimate) == 1 / 168
    assert cell_precision(truth, estimate) == cell_recall(truth, estimate) == cell_f1(truth, estimate) == 5 / 6
    # ln .4 of the late note and ln .5 of the wrong one; all others are certain and right
    assert cell_nll(truth, estimate) == pytest.approx((-math.log(0.4) - math.log(0.5)) / 336)


def test_a_certainty_that_is_wrong_is_infinite_unless_clipped(truth: np.ndarray) -> None:
    assert cell_nll(truth, np.zeros((4, 84))) == math.inf
    # 6 of 336 cells cost ln 100, the others ln (1 / .99)
    expected = (6 * math.log(100) + 330 * math.log(1 / 0.99)) / 336
    assert cell_nll(truth, np.zeros((4, 84)), clip=0.01) == pytest.approx(expected)
    with pytest.raises(InvalidInputError, match="clip"):
        cell_nll(truth, truth, clip=0.5)


def test_what_has_no_value_is_nan_and_says_why() -> None:
    silent = np.zeros((3, 84), dtype=bool)
    assert piano_roll_error_rate(silent, silent) == 0
    assert cell_nll(silent, silent) == 0
    for score, why in (
        (change_error_rate, "never changes"),
        (cell_precision, "is predicted"),
        (cell_recall, "no cell sounds"),
        (cell_f1, "either side"),
    ):
        with pytest.warns(UndefinedMetricWarning, match=f"{score.__name__}.*{why}") as caught:
            assert math.isnan(score(silent, silent))
        assert caught[0].filename == __file__


@given(CELLS)
def test_the_truth_is_perfect_and_its_opposite_all_wrong(cells: np.ndarray) -> None:
    assert piano_roll_error_rate(cells, cells) == 0
    assert piano_roll_error_rate(cells, ~cells) == 1
    assert cell_nll(cells, cells) == 0
    assert count_cells(cells, cells).hits == cells.sum()


@given(CELLS, st.data())
def test_one_more_wrong_cell_never_scores_better(cells: np.ndarray, data: st.DataObject) -> None:
    likely = data.draw(hnp.arrays(np.float64, cells.shape, elements=st.floats(0, 1), fill=st.floats(0, 1)))
    worse = likely.copy()
    at = data.draw(st.integers(0, len(cells) - 1)), data.draw(st.integers(0, 83))
    worse[at] = 1.0 - cells[at]
    assert count_cells(cells, worse).wrong >= count_cells(cells, likely).wrong
    assert cell_nll(cells, worse) == math.inf


@given(CELLS, CELLS)
def test_counts_of_pieces_add_up(first: np.ndarray, second: np.ndarray) -> None:
    total = count_cells(first, ~first) + count_cells(second, second)
    assert (total.cells, total.wrong) == (first.size + second.size, first.size)
    assert total.hits == second.sum()


def test_wrong_input_is_named() -> None:
    cells = np.zeros((4, 84))
    with pytest.raises(InvalidInputError, match=r"\(4, 88\)"):
        piano_roll_error_rate(np.zeros((4, 88)), cells)
    with pytest.raises(InvalidInputError, match="a step at least"):
        piano_roll_error_rate(cells[:0], cells[:0])
    with pytest.raises(InvalidInputError, match=r"64\.0; give probabilities"):
        piano_roll_error_rate(cells, cells + 64)
    with pytest.raises(InvalidInputError, match="reference comes first"):
        piano_roll_error_rate(cells + 0.3, cells)
    with pytest.raises(PairCountError, match="4 steps and estimate 3"):
        piano_roll_error_rate(cells, cells[:3])
