"""Scores of predicted cells of piano rolls in one pass: all scores of a set of pieces, with their intervals.

The input are arrays, or pieces and a model that predicts them; what is loaded, and from where, is the affair of the
callers. The maths is in `metrics.cell_prediction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import PianoRoll
from music_evals.errors import InvalidInputError, MusicEvalsError, UnknownNameError, located
from music_evals.metrics.catalogue import CELL_SCORES
from music_evals.metrics.cell_prediction import CellCounts, cell_scores, count_cells
from music_evals.pipelines.intervals import check_groups, check_pairs, report_means
from music_evals.protocols import CellPredictor
from music_evals.stats.intervals import check_confidence

__all__ = ["HIDDEN", "evaluate_cells", "evaluate_predictor", "name_hidden"]

HIDDEN: Final = (0, 8, 32)
"""Steps on either side that are hidden by default: none as published, a quarter note, a bar of 4/4."""

AVERAGES: Final = ("micro", "macro")


def evaluate_cells(
    references: Sequence[npt.ArrayLike],
    estimates: Sequence[npt.ArrayLike],
    *,
    average: str = "micro",
    groups: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    per_item: bool = False,
) -> dict[str, Any]:
    """Score predicted cells of pieces against their true rolls.

    Parameters
    ----------
    references
        True rolls, shape (steps, 84) each, bool or 0 and 1; pieces may differ in length.
    estimates
        Probability that each cell sounds, or a roll, in the same order and of the same shapes.
    average
        ``"micro"``: over the cells of all pieces together (of changing steps, of what sounds, of what is predicted), as
        in the published error rate. ``"macro"``: mean over pieces.
    groups
        Cluster of each piece, shape (n,), for the intervals; None makes each piece its own.
    confidence
        Nominal coverage of the intervals, above 0 and below 1.
    per_item
        True adds the scores of each piece.

    Returns
    -------
    dict
        For each name of `CELL_SCORES`: ``<name>``, ``<name>_ci`` (low, high), ``<name>_n`` pieces, ``<name>_n_defined``
        of them that count and ``<name>_n_clusters``, the effective number of clusters. A micro average is a ratio of
        two sums; its interval is that of the mean of what each piece adds to it, to first order (delta method).
        ``per_item``: one dict a piece.

    Raises
    ------
    PairCountError, NoDataError
        Not as many estimates as references, not one group a piece, or no pieces.
    InvalidInputError
        A pair that cannot be compared; the message names it. A confidence out of range.
    UnknownNameError
        An average that does not exist.

    Warns
    -----
    UndefinedMetricWarning
        A score is NaN because no piece defines it.
    """
    check_confidence(confidence)
    if average not in AVERAGES:
        raise UnknownNameError("average", average, AVERAGES)
    nothing = "there are no pieces to score; give at least one roll and its prediction"
    check_pairs(references, estimates, "estimates", "a piece", nothing)
    clusters = check_groups(groups, len(references))
    counts = [_count(i, *pair) for i, pair in enumerate(zip(references, estimates, strict=True))]
    items = [cell_scores(count) for count in counts]
    columns = np.array([[item[name] for name in CELL_SCORES] for item in items])
    if average == "micro":
        columns = np.stack([_shares(*_parts(name, counts)) for name in CELL_SCORES], axis=1)
    result = report_means([*CELL_SCORES], columns, clusters, confidence)
    if per_item:
        result["per_item"] = items
    return result


def evaluate_predictor(
    rolls: Sequence[PianoRoll],
    predictor: CellPredictor,
    *,
    groups: npt.ArrayLike | None = None,
    hidden: Sequence[int] = HIDDEN,
    average: str = "micro",
    confidence: float = 0.95,
    per_item: bool = False,
) -> dict[str, Any]:
    """Score a model by the cells of whole pieces, each predicted from the true other cells.

    Parameters
    ----------
    rolls
        True pieces.
    predictor
        Any model that predicts cells, or a rule to compare with (`models.baselines`).
    groups
        Cluster of each piece, such as the family of its tune, shape (n,); None makes each piece its own.
    hidden
        Steps on either side of the predicted one that are hidden; each number is a run of its own.
    average, confidence, per_item
        As in `evaluate_cells`.

    Returns
    -------
    dict
        As of `evaluate_cells`; where steps are hidden, the name of a score ends in ``_hidden_<steps>``.

    Raises
    ------
    NoDataError, PairCountError
        No pieces, or not one group a piece.
    InvalidInputError
        A prediction that is not one probability a cell, the message names the piece; an option out of range; or no, or
        repeated, numbers of hidden steps.
    UnknownNameError
        Unknown average.
    """
    if not hidden or len(set(hidden)) < len(hidden) or min(hidden) < 0:
        raise InvalidInputError(f"hidden must be different numbers of steps, each at least 0, got {list(hidden)}")
    result: dict[str, Any] = {}
    items: list[dict[str, float]] = [{} for _ in rolls]
    for steps in hidden:
        scores = evaluate_cells(
            [roll.cells for roll in rolls],
            [predictor.cell_probabilities(roll, hidden=steps) for roll in rolls],
            average=average,
            groups=groups,
            confidence=confidence,
            per_item=True,
        )
        for item, own in zip(items, scores.pop("per_item"), strict=True):
            item.update({name_hidden(name, steps): value for name, value in own.items()})
        for key, value in scores.items():
            name = max((name for name in CELL_SCORES if key.startswith(name)), key=len)
            result[name_hidden(name, steps) + key[len(name) :]] = value
    return result | ({"per_item": items} if per_item else {})


def name_hidden(name: str, steps: int) -> str:
    """Return what a score is called where steps on either side are hidden."""
    return f"{name}_hidden_{steps}" if steps else name


def _count(index: int, reference: npt.ArrayLike, estimate: npt.ArrayLike) -> CellCounts:
    try:
        return count_cells(reference, estimate)
    except MusicEvalsError as error:
        raise located(error, f"piece {index}") from error


def _parts(name: str, counts: Sequence[CellCounts]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return numerators and denominators of a score, piece by piece."""
    of = CellCounts(*np.array(counts, dtype=np.float64).T)  # columns, field by field
    parts: dict[str, tuple[Any, Any]] = {
        "piano_roll_error_rate": (of.wrong, of.cells),
        "change_error_rate": (of.changing_wrong, of.changing_cells),
        "cell_precision": (of.shared, of.predicted),
        "cell_recall": (of.shared, of.sounding),
        "cell_f1": (2 * of.shared, of.sounding + of.predicted),
        "cell_nll": (of.nats, of.cells),
    }
    return parts[name]


def _shares(part: npt.NDArray[np.float64], whole: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return values whose mean is sum(part) / sum(whole), NaN where a piece has no weight: a ratio, linearised."""
    counts = whole > 0
    values = np.full(len(whole), np.nan)
    if counts.any():
        ratio = part.sum() / whole.sum()
        values[counts] = ratio
        if np.isfinite(ratio):
            values[counts] += (part[counts] - ratio * whole[counts]) / whole[counts].mean()
    return values
