"""Models of a style judged in memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from music_evals.annotations import PianoRoll, Score
from music_evals.errors import InvalidInputError, NoDataError, PairCountError, UndefinedMetricWarning, UnknownNameError
from music_evals.metrics import cell_prediction
from music_evals.metrics.cell_prediction import CellCounts, count_cells
from music_evals.pipelines.style_transfer import CELL_SCORES, evaluate_cell_prediction
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.piano_rolls import piano_roll


class Previous:
    """Holds the nearest step told before for likely, and all else for unlikely."""

    def cell_probabilities(self, roll: PianoRoll, *, hidden: int = 0) -> np.ndarray:
        moved = np.vstack([np.zeros((hidden + 1, 84)), roll.cells])[: len(roll)]
        return np.where(moved > 0, 0.9, 0.01)


class Truth:
    """Is told everything."""

    def cell_probabilities(self, roll: PianoRoll, *, hidden: int = 0) -> np.ndarray:  # noqa: ARG002
        return roll.cells.astype(float)


class Broken:
    """Gives a step too few for all pieces but those of a bar."""

    def cell_probabilities(self, roll: PianoRoll, *, hidden: int = 0) -> np.ndarray:  # noqa: ARG002
        return np.zeros((len(roll) - (len(roll) > 32), 84))


@pytest.fixture
def rolls() -> list[PianoRoll]:
    """One bar of two notes, two bars of four, one of a chord."""
    scores = (
        make_notes([0, 8], [8, 8], [60, 62]),
        make_notes([0, 8, 16, 40], [8, 8, 24, 24], [60, 64, 67, 72]),
        make_notes([0, 0], [32, 32], [48, 55]),
    )
    return [piano_roll(Score(notes, 8)) for notes in scores]


def test_scores_of_a_piece_are_those_of_the_metrics(rolls: list[PianoRoll]) -> None:
    result = evaluate_cell_prediction(rolls, Previous(), hidden=(0, 8), per_item=True)
    for roll, item in zip(rolls, result["per_item"], strict=True):
        for steps, suffix in ((0, ""), (8, "_hidden_8")):
            likely = Previous().cell_probabilities(roll, hidden=steps)
            for name in CELL_SCORES:
                assert item[name + suffix] == pytest.approx(getattr(cell_prediction, name)(roll.cells, likely))


def test_micro_is_over_all_cells_and_macro_over_pieces(rolls: list[PianoRoll]) -> None:
    counts = CellCounts(0, 0, 0, 0, 0, 0, 0)
    for roll in rolls:
        counts += count_cells(roll.cells, Previous().cell_probabilities(roll))
    micro = evaluate_cell_prediction(rolls, Previous(), hidden=[0])
    assert micro["piano_roll_error_rate"] == pytest.approx(counts.wrong / counts.cells)
    assert micro["change_error_rate"] == pytest.approx(counts.change_wrong / counts.change_cells)
    assert micro["cell_f1"] == pytest.approx(2 * counts.hits / (counts.sounding + counts.predicted))
    # a cell for each start that is missed and each end that is not heard: 1 + 2 + 1, 1 + 2 + 2 + 2 and 2
    assert counts.wrong == 4 + 7 + 2
    macro = evaluate_cell_prediction(rolls, Previous(), hidden=[0], average="macro")
    assert macro["piano_roll_error_rate"] == pytest.approx((4 / 32 + 7 / 64 + 2 / 32) / 3 / 84)


def test_intervals_are_clustered(rolls: list[PianoRoll]) -> None:
    apart = evaluate_cell_prediction(rolls, Previous(), hidden=[0])
    together = evaluate_cell_prediction(rolls, Previous(), hidden=[0], groups=["a", "a", "b"])
    assert apart["piano_roll_error_rate"] == together["piano_roll_error_rate"]
    # 32, 64 and 32 steps: (sum m)² / sum(m²)
    assert apart["piano_roll_error_rate_n_clusters"] == pytest.approx(128**2 / (32**2 + 64**2 + 32**2))
    assert together["piano_roll_error_rate_n_clusters"] == pytest.approx(128**2 / (96**2 + 32**2))
    low, high = apart["piano_roll_error_rate_ci"]
    assert low < apart["piano_roll_error_rate"] < high
    assert together["piano_roll_error_rate_n"] == 3


def test_the_truth_is_perfect(rolls: list[PianoRoll]) -> None:
    result = evaluate_cell_prediction(rolls, Truth())
    for suffix in ("", "_hidden_8", "_hidden_32"):
        found = [result[name + suffix] for name in CELL_SCORES]
        assert found == [0, 0, 1, 1, 1, 0]


def test_a_wrong_certainty_is_infinite_and_clip_tames_it(rolls: list[PianoRoll]) -> None:
    class Silence:
        def cell_probabilities(self, roll: PianoRoll, *, hidden: int = 0) -> np.ndarray:  # noqa: ARG002
            return np.zeros(roll.cells.shape)

    with pytest.warns(UndefinedMetricWarning, match="cell_precision"):
        result = evaluate_cell_prediction(rolls, Silence(), hidden=[0])
    assert result["cell_nll"] == math.inf
    assert np.isnan(result["cell_nll_ci"]).all()
    assert (result["cell_f1"], result["cell_recall"], result["cell_precision_n_defined"]) == (0, 0, 0)
    with pytest.warns(UndefinedMetricWarning, match="cell_precision"):
        assert evaluate_cell_prediction(rolls, Silence(), hidden=[0], clip=1e-3)["cell_nll"] < 1


def test_errors_say_what_to_do(rolls: list[PianoRoll]) -> None:
    with pytest.raises(NoDataError, match="at least one roll"):
        evaluate_cell_prediction([], Truth())
    with pytest.raises(PairCountError, match="one label an item"):
        evaluate_cell_prediction(rolls, Truth(), groups=["a"])
    with pytest.raises(PairCountError, match=r"rolls\[1\].*64 steps and estimate 63"):
        evaluate_cell_prediction(rolls, Broken())
    with pytest.raises(UnknownNameError, match="micro"):
        evaluate_cell_prediction(rolls, Truth(), average="mikro")
    for wrong in ([], [-1], [8, 8]):
        with pytest.raises(InvalidInputError, match="hidden"):
            evaluate_cell_prediction(rolls, Truth(), hidden=wrong)
    with pytest.raises(InvalidInputError, match="clip"):
        evaluate_cell_prediction(rolls, Truth(), clip=2)
