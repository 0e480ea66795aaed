"""Predicted cells of many pieces: averages, intervals, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from music_evals.annotations import PianoRoll, Score
from music_evals.errors import InvalidInputError, NoDataError, PairCountError, UndefinedMetricWarning, UnknownNameError
from music_evals.metrics.catalogue import CELL_SCORES
from music_evals.metrics.cell_prediction import cell_scores, count_cells
from music_evals.models.baselines import make_roll_baseline
from music_evals.pipelines.style_transfer.cell_prediction import evaluate_cells, evaluate_predictor
from music_evals.symbolic.encodings.piano_rolls import piano_roll
from music_evals.symbolic.notes import make_notes

N = 84


def pieces(rng: np.random.Generator, n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Pieces of different length that begin and end in silence, so that put end to end nothing else changes."""
    truths, estimates = [], []
    for _ in range(n):
        truth = rng.random((int(rng.integers(6, 30)), N)) < 0.1
        truth[[0, -1]] = False
        truths.append(truth)
        estimates.append(np.clip(truth + rng.normal(0, 0.3, truth.shape), 0.01, 0.99))
    return truths, estimates


def test_micro_is_the_score_of_all_pieces_end_to_end(rng: np.random.Generator) -> None:
    truths, estimates = pieces(rng, 5)
    whole = cell_scores(count_cells(np.vstack(truths), np.vstack(estimates)))
    found = evaluate_cells(truths, estimates)
    assert {name: found[name] for name in CELL_SCORES} == pytest.approx(whole)
    assert all(found[f"{name}_ci"][0] < found[name] < found[f"{name}_ci"][1] for name in CELL_SCORES)


def test_macro_is_the_mean_over_pieces(rng: np.random.Generator) -> None:
    truths, estimates = pieces(rng, 4)
    found = evaluate_cells(truths, estimates, average="macro", per_item=True)
    for name in CELL_SCORES:
        assert found[name] == pytest.approx(np.mean([row[name] for row in found["per_item"]]))


def test_by_hand() -> None:
    """One cell of 84 wrong in the short piece, none of 168 in the long one."""
    one, two = np.zeros((1, N), dtype=bool), np.zeros((2, N), dtype=bool)
    one[0, 3] = two[:, 4] = True
    inputs = ([one, two], [np.zeros((1, N)), two])
    assert evaluate_cells(*inputs)["piano_roll_error_rate"] == pytest.approx(1 / 252)
    assert evaluate_cells(*inputs, average="macro")["piano_roll_error_rate"] == pytest.approx(1 / 168)
    assert evaluate_cells(*inputs)["cell_recall"] == pytest.approx(2 / 3)
    assert evaluate_cells(*inputs)["cell_precision_n_defined"] == 1  # nothing is predicted in the first piece
    assert evaluate_cells(*inputs)["cell_nll"] == math.inf


def test_the_interval_of_a_ratio_holds_the_truth(rng: np.random.Generator) -> None:
    """Forty times 25 pieces whose cells are wrong in one of ten: about 95 % of the intervals hold that."""
    held = 0
    for _ in range(40):
        truths = [np.zeros((int(rng.integers(1, 12)), N), dtype=bool) for _ in range(25)]
        for truth in truths:
            truth[:, 40] = True
        estimates = [truth ^ (rng.random(truth.shape) < 0.1) for truth in truths]
        low, high = evaluate_cells(truths, estimates, average="micro")["piano_roll_error_rate_ci"]
        held += low <= 0.1 <= high
    assert held >= 33  # at 95 % fewer are there in one case of a thousand


def test_undefined(rng: np.random.Generator) -> None:
    silent = [np.zeros((4, N), dtype=bool)] * 2
    with pytest.warns(UndefinedMetricWarning, match="none of the 2 items"):
        found = evaluate_cells(silent, [rng.random((4, N)) / 4] * 2)
    assert math.isnan(found["cell_recall"])
    assert found["piano_roll_error_rate"] == 0


@pytest.mark.parametrize(
    ("references", "estimates", "options", "error", "message"),
    [
        ([], [], {}, NoDataError, "no pieces"),
        ([np.zeros((2, N))], [], {}, PairCountError, "1 references and 0 estimates"),
        ([np.zeros((2, N))] * 2, [np.zeros((2, N)), np.zeros((3, N))], {}, InvalidInputError, "piece 1: .*3"),
        ([np.zeros((2, N))], [np.zeros((2, N))], {"average": "mcro"}, UnknownNameError, "did you mean"),
        ([np.zeros((2, N))], [np.zeros((2, N))], {"groups": ["a", "b"]}, PairCountError, "one label an item"),
    ],
)
def test_bad_input(references: Any, estimates: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        evaluate_cells(references, estimates, **options)


@pytest.fixture
def rolls() -> list[PianoRoll]:
    """One bar of two notes, two bars of four, one of a chord."""
    scores = (
        make_notes([0, 8], [8, 8], [60, 62]),
        make_notes([0, 8, 16, 40], [8, 8, 24, 24], [60, 64, 67, 72]),
        make_notes([0, 0], [32, 32], [48, 55]),
    )
    return [piano_roll(Score(notes, 8)) for notes in scores]


def test_a_predictor_is_judged_with_its_neighbours_hidden_too(rolls: list[PianoRoll]) -> None:
    copy = make_roll_baseline("copy_previous").fitted(rolls)
    found = evaluate_predictor(rolls, copy, hidden=(0, 8), per_item=True)
    for steps, suffix in ((0, ""), (8, "_hidden_8")):
        estimates = [copy.cell_probabilities(roll, hidden=steps) for roll in rolls]
        alone = evaluate_cells([roll.cells for roll in rolls], estimates, per_item=True)
        for name in CELL_SCORES:
            assert found[name + suffix] == alone[name]
            assert found[f"{name}{suffix}_ci"] == alone[f"{name}_ci"]
            assert [item[name + suffix] for item in found["per_item"]] == [item[name] for item in alone["per_item"]]
    assert found["piano_roll_error_rate_hidden_8"] > found["piano_roll_error_rate"]
    # a cell for each start that is missed and each end that is not heard: 1 + 2 + 1, 1 + 2 + 2 + 2 and 2 of 128 steps
    assert found["piano_roll_error_rate"] == pytest.approx((4 + 7 + 2) / 128 / N)


@pytest.mark.parametrize("hidden", [[], [-1], [8, 8]])
def test_hidden_steps_that_mean_nothing(rolls: list[PianoRoll], hidden: list[int]) -> None:
    with pytest.raises(InvalidInputError, match="hidden"):
        evaluate_predictor(rolls, make_roll_baseline("silence"), hidden=hidden)


def test_a_prediction_that_is_too_short_names_its_piece(rolls: list[PianoRoll]) -> None:
    class Broken:
        def cell_probabilities(self, roll: PianoRoll, *, hidden: int = 0) -> np.ndarray:  # noqa: ARG002
            return np.zeros((len(roll) - (len(roll) > 32), N))

    with pytest.raises(InvalidInputError, match="piece 1"):
        evaluate_predictor(rolls, Broken())
    with pytest.raises(NoDataError):
        evaluate_predictor([], Broken())
