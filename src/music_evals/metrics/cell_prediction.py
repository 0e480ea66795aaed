"""Metrics of models that say which cells of a piano roll sound.

Conventions
-----------
- A roll is a bool array of shape (steps, 84), True while a pitch sounds; see `annotations.PianoRoll`. Predictions are
  probabilities of the same shape, 0..1, or a roll of their own. A cell is predicted to sound from 0.5 on.
- All cells count alike, so that the mean over the pieces of a set is weighted by their length: `count_cells` gives the
  sums that add up over pieces, `cell_scores` what follows from them.
- A *change* is a step whose cells are not those of the step before. The first step has none before it, and is a change
  where anything sounds.

Metrics: `piano_roll_error_rate` (as published), `change_error_rate`, `cell_precision`, `cell_recall`, `cell_f1` (errors
beside what sounds, not beside all cells), `cell_nll` (probabilities).

On a fine grid nearly every step repeats its neighbour, and nearly every cell is silent: silence has an error rate of
some 4.5 % on four-part chorales, the step before 1.0 %, and a rule of two lines 0.02 %. Never read an error rate
without these rows (`models.baselines`) beside it.

References
----------
Lu, Wu, Chiu, Su: "Actions speak louder than listening: evaluating music style transfer based on editing experience",
ACM Multimedia 2021, arXiv:2110.12855, section 4 and table 1 (error rate). The other metrics are ours.

"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import N_ROLL_PITCHES, Cells
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.metrics.arrays import FloatArray, undefined

__all__ = [
    "THRESHOLD",
    "CellCounts",
    "cell_f1",
    "cell_nll",
    "cell_precision",
    "cell_recall",
    "cell_scores",
    "change_error_rate",
    "count_cells",
    "piano_roll_error_rate",
]

THRESHOLD: Final = 0.5
"""From this probability on a cell is predicted to sound (section 4 of the paper)."""

_NO_CHANGE = "no step differs from the one before"
_NONE_PREDICTED = "no cell is predicted to sound"
_NONE_SOUNDS = "no cell of the reference sounds"


class CellCounts(NamedTuple):
    """What the scores of a roll are made of; the counts of several pieces add up, field by field."""

    cells: int
    """All cells."""
    wrong: int
    """Cells whose prediction is not the truth."""
    changing_cells: int
    """Cells of the steps that are changes."""
    changing_wrong: int
    """Wrong cells among these."""
    sounding: int
    """Cells that sound in the reference."""
    predicted: int
    """Cells that are predicted to sound."""
    shared: int
    """Cells that sound and are predicted to."""
    nats: float
    """Negative log-likelihood of all cells; infinite where one that was held for impossible happens."""


def count_cells(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> CellCounts:
    """Return the counts that all metrics of cells are made of; input and errors as in `piano_roll_error_rate`."""
    truth, probabilities = _check_rolls(reference, estimate)
    given = probabilities >= THRESHOLD
    wrong = given != truth
    # the steps that are not the one before; before the first there is silence
    changing = np.concatenate([truth[:1].any(axis=1), (truth[1:] != truth[:-1]).any(axis=1)])
    # how likely each cell was held for what it is
    of_truth = np.where(truth, probabilities, 1.0 - probabilities)
    with np.errstate(divide="ignore"):
        nats = float(-np.log(of_truth).sum()) + 0.0  # + 0.0 turns -0 into 0
    return CellCounts(
        truth.size,
        int(wrong.sum()),
        int(changing.sum()) * N_ROLL_PITCHES,
        int(wrong[changing].sum()),
        int(truth.sum()),
        int(given.sum()),
        int((given & truth).sum()),
        nats,
    )


def cell_scores(counts: CellCounts) -> dict[str, float]:
    """Return the six metrics by name, NaN where one is undefined, from the counts of one piece or of many."""
    return {
        "piano_roll_error_rate": counts.wrong / counts.cells,
        "change_error_rate": _ratio(counts.changing_wrong, counts.changing_cells, np.nan),
        "cell_precision": _ratio(counts.shared, counts.predicted, np.nan),
        "cell_recall": _ratio(counts.shared, counts.sounding, np.nan),
        "cell_f1": _ratio(2 * counts.shared, counts.sounding + counts.predicted, 1.0),
        "cell_nll": counts.nats / counts.cells,
    }


def piano_roll_error_rate(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> float:
    """Share of the cells whose prediction, sounding from a probability of 0.5 on, is not the truth.

    mean over steps t and pitches p of [ (q(t, p) >= 0.5) != S(t, p) ]. In [0, 1], lower is better; symmetric between
    two rolls. Defined for every roll of at least one step.

    Parameters
    ----------
    reference
        The true roll, shape (steps, 84), bool or 0 and 1.
    estimate
        Probability that each cell sounds, the same shape, 0..1; or a roll.

    Raises
    ------
    InvalidInputError
        Other shapes, a reference with other values than 0 and 1, or probabilities outside of 0..1.
    NoDataError
        Rolls without steps.

    Notes
    -----
    "Error rate" of table 1. That it is a mean over all cells of all pieces is our reading: the authors' script is not
    published. As a share of *all* cells it is small for any sparse guess; see the top of this module.

    Examples
    --------
    >>> import numpy as np
    >>> roll = np.zeros((4, 84), dtype=bool)
    >>> roll[:, 39] = True  # middle C through four steps
    >>> f"{piano_roll_error_rate(roll, np.zeros((4, 84))):.4f}"  # silence: one of 84 pitches
    '0.0119'
    """
    return cell_scores(count_cells(reference, estimate))["piano_roll_error_rate"]


def change_error_rate(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> float:
    """Error rate at the steps where the reference changes: S(t) != S(t - 1).

    In [0, 1], lower is better. Undefined (NaN) where the reference never changes, as in silence. What copies the step
    before is wrong at each of these; what copies the step after is not. Parameters and errors are those of
    `piano_roll_error_rate`. Not in the paper.
    """
    return _defined("change_error_rate", reference, estimate, _NO_CHANGE)


def cell_precision(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> float:
    """Share of the cells predicted to sound that do.

    In [0, 1], higher is better. Undefined (NaN) where none is predicted to sound. Parameters and errors are those of
    `piano_roll_error_rate`. Not in the paper.
    """
    return _defined("cell_precision", reference, estimate, _NONE_PREDICTED)


def cell_recall(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> float:
    """Share of the sounding cells that are predicted to.

    In [0, 1], higher is better. Undefined (NaN) where none sounds. Parameters and errors are those of
    `piano_roll_error_rate`. Not in the paper.
    """
    return _defined("cell_recall", reference, estimate, _NONE_SOUNDS)


def cell_f1(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> float:
    """F1 of the sounding cells: 2 |R & E| / (|R| + |E|), R those of the reference and E those predicted.

    In [0, 1], higher is better, symmetric between two rolls. Where neither side sounds it is 1: nothing was there, and
    nothing was predicted. Parameters and errors are those of `piano_roll_error_rate`. Not in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> roll = np.eye(3, 84, dtype=bool)
    >>> cell_f1(roll, roll[[0, 0, 2]])  # two of three cells are right on either side
    0.6666666666666666
    """
    return cell_scores(count_cells(reference, estimate))["cell_f1"]


def cell_nll(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> float:
    """Mean negative log-likelihood of the true cells, in nats a cell.

    -mean of S ln q + (1 - S) ln (1 - q). In [0, inf), lower is better; infinite where a cell happens that was held for
    impossible, as it does for any roll in place of probabilities that is not the truth. The probabilities must be
    calibrated: what a network trained with the focal loss gives is none, before it is mapped back. Defined for every
    roll of at least one step. Parameters and errors are those of `piano_roll_error_rate`. Not in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> round(cell_nll(np.zeros((1, 84)), np.full((1, 84), 0.5)), 4)  # ln 2
    0.6931
    """
    return cell_scores(count_cells(reference, estimate))["cell_nll"]


def _defined(name: str, reference: npt.ArrayLike, estimate: npt.ArrayLike, why: str) -> float:
    value = cell_scores(count_cells(reference, estimate))[name]
    return undefined(name, why, stacklevel=4) if np.isnan(value) else value


def _ratio(part: int, whole: int, empty: float) -> float:
    return part / whole if whole else float(empty)


def _check_rolls(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> tuple[Cells, FloatArray]:
    """Return the true cells and the probabilities, both of shape (steps, 84)."""
    truth, probabilities = np.asarray(reference), np.asarray(estimate)
    for name, array in (("reference", truth), ("estimate", probabilities)):
        if array.ndim != 2 or array.shape[1] != N_ROLL_PITCHES or array.dtype.kind not in "biuf":
            raise InvalidInputError(
                f"{name} must be a roll of numbers, shape (steps, {N_ROLL_PITCHES}), got {array.dtype} {array.shape}"
            )
    if truth.shape != probabilities.shape:
        raise InvalidInputError(f"reference has {len(truth)} steps, estimate {len(probabilities)}; give equally many")
    if not len(truth):
        raise NoDataError("the rolls have no steps; give at least one")
    if not np.isin(truth, (0, 1)).all():
        raise InvalidInputError("reference must hold True and False, or 1 and 0: what truly sounds is no probability")
    values = probabilities.astype(np.float64)
    outside = ~((values >= 0) & (values <= 1))
    if outside.any():
        raise InvalidInputError(f"estimate must hold probabilities from 0 to 1, got {values[outside][0]}")
    return truth.astype(np.bool_), values
