"""Models of a style judged in memory: how well they predict the cells of pieces that they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import N_ROLL_PITCHES, PianoRoll
from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, UnknownNameError, located
from music_evals.metrics.cell_prediction import CellCounts, cell_nll, count_cells
from music_evals.pipelines.intervals import check_groups, interval_of_rates, intervals_of_means, report
from music_evals.protocols import CellPredictor
from music_evals.stats.intervals import check_confidence

__all__ = ["CELL_SCORES", "PUBLISHED_HIDDEN", "evaluate_cell_prediction"]

CELL_SCORES: Final = (
    "piano_roll_error_rate", "change_error_rate", "cell_precision", "cell_recall", "cell_f1", "cell_nll"
)  # fmt: skip
"""Scores of a prediction, in the order of results."""

PUBLISHED_HIDDEN: Final = (0, 8, 32)
"""Steps on either side that are hidden by default: none as published, a quarter note, a bar."""

AVERAGES: Final = ("micro", "macro")


def evaluate_cell_prediction(
    rolls: Sequence[PianoRoll],
    predictor: CellPredictor,
    *,
    groups: npt.ArrayLike | None = None,
    hidden: Sequence[int] = PUBLISHED_HIDDEN,
    clip: float | None = None,
    average: str = "micro",
    confidence: float = 0.95,
    per_item: bool = False,
) -> dict[str, Any]:
    """Judge a model by the cells of whole pieces, each predicted from the true others.

    Parameters
    ----------
    rolls
        True pieces.
    predictor
        Any model that predicts cells, or a row to compare with (`models.roll_baselines`).
    groups
        Cluster of each piece, such as the family of its tune, shape (n,); None makes each piece its own.
    hidden
        Steps on either side of the predicted one that are not told, each a run of its own.
    clip
        As in `metrics.cell_prediction.cell_nll`; None leaves probabilities as they are.
    average
        ``"micro"``: over the cells of all pieces together, as the paper's table is read (each score by its own
        denominator). ``"macro"``: mean over pieces.
    confidence
        Nominal coverage of the intervals, above 0 and below 1.
    per_item
        True adds the scores of each piece.

    Returns
    -------
    dict
        For each score of `CELL_SCORES`: ``<name>``, ``<name>_ci`` (low, high), ``<name>_n`` pieces,
        ``<name>_n_defined`` of them that count and ``<name>_n_clusters``. Where steps are hidden, ``<name>`` ends in
        ``_hidden_<steps>``. ``cell_nll`` is in nats a cell; infinite, with an interval of NaN, where a certainty was
        wrong. ``per_item``: a list of one dict a piece.

    Raises
    ------
    NoDataError, PairCountError
        No pieces, or not one group a piece.
    InvalidInputError
        A prediction that is not one probability a cell, the message names the piece; an option out of range; or no, or
        repeated, numbers of hidden steps.
    UnknownNameError
        Unknown average.

    Warns
    -----
    UndefinedMetricWarning
        A score is NaN because no piece defines it.

    """
    check_confidence(confidence)
    if average not in AVERAGES:
        raise UnknownNameError("average", average, AVERAGES)
    if not rolls:
        raise NoDataError("there are no pieces to predict; give at least one roll")
    if not hidden or len(set(hidden)) < len(hidden) or min(hidden) < 0:
        raise InvalidInputError(f"hidden must be different numbers of steps, each at least 0, got {list(hidden)}")
    clusters = check_groups(groups, len(rolls))
    result: dict[str, Any] = {}
    items: list[dict[str, float]] = [{} for _ in rolls]
    for steps in hidden:
        suffix = f"_hidden_{steps}" if steps else ""
        counts, nll = _predict(rolls, predictor, steps, clip)
        for name, (part, whole) in _fractions(counts, nll).items():
            values = np.divide(part, whole, out=np.full(len(rolls), np.nan), where=whole > 0)
            if average == "micro":
                interval = interval_of_rates(name, values, whole, clusters, confidence)
            else:
                [interval] = intervals_of_means([name], values[:, None], clusters, confidence)
            result |= report(name + suffix, interval)
            for item, value in zip(items, values.tolist(), strict=True):
                item[name + suffix] = value
    return result | ({"per_item": items} if per_item else {})


def _predict(
    rolls: Sequence[PianoRoll], predictor: CellPredictor, hidden: int, clip: float | None
) -> tuple[list[CellCounts], list[float]]:
    """Return counts and likelihood of each piece."""
    counts, nll = [], []
    for index, roll in enumerate(rolls):
        likely = predictor.cell_probabilities(roll, hidden=hidden)
        try:
            counts.append(count_cells(roll.cells, likely))
            nll.append(cell_nll(roll.cells, likely, clip=clip))
        except MusicEvalsError as error:
            raise located(error, f"rolls[{index}]") from error
    return counts, nll


_Fraction = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]


def _fractions(counts: Sequence[CellCounts], nll: Sequence[float]) -> dict[str, _Fraction]:
    """Return numerator and denominator of each score, by piece; of what all cells share, in steps."""
    total = CellCounts(*np.array(counts, dtype=np.int64).T)
    steps, change_steps = (np.asarray(cells) // N_ROLL_PITCHES for cells in (total.cells, total.change_cells))
    found = {
        "piano_roll_error_rate": (np.asarray(total.wrong) / N_ROLL_PITCHES, steps),
        "change_error_rate": (np.asarray(total.change_wrong) / N_ROLL_PITCHES, change_steps),
        "cell_precision": (np.asarray(total.hits), np.asarray(total.predicted)),
        "cell_recall": (np.asarray(total.hits), np.asarray(total.sounding)),
        "cell_f1": (2 * np.asarray(total.hits), np.asarray(total.sounding + total.predicted)),
        "cell_nll": (np.array(nll) * steps, steps),
    }
    return {name: found[name] for name in CELL_SCORES}
