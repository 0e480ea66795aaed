"""How well the cells of a piano roll are predicted, each from what sounds around it.

Conventions
-----------
- A piece is its true cells, shape (steps, 84), bool, and how likely each sounds, the same shape, 0..1; a binary roll is
  a prediction that is certain.
- A cell is predicted to sound from `THRESHOLD` on.
- A *change step* is one whose cells differ from those of the step before it; before the first all is silent.
- `count_cells` counts a piece. Counts of several pieces add up (`CellCounts.__add__`), which gives the average over all
  cells that the paper's table is read as; the mean of scores of pieces is another number.

What a prediction was told decides what its score means. On a fine grid most cells are those of the step before: silence
is right on 95 % of the cells of chorales, and a copy of the nearest steps on all but some hundredths of a percent.
Compare with the rows of `music_evals.models.roll_baselines`, at change steps, or with the neighbours hidden.

References
----------
C.-T. Lu, Y.-L. Wu, I.-T. Chiu, L. Su: "Actions speak louder than listening", ACM Multimedia 2021, table 1. The average
over cells is our reading: the text gives no formula, and the authors' code has no evaluation.

"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import N_ROLL_PITCHES
from music_evals.errors import InvalidInputError, PairCountError
from music_evals.metrics._undefined import undefined
from music_evals.metrics.arrays import FloatArray

__all__ = [
    "THRESHOLD",
    "CellCounts",
    "cell_f1",
    "cell_nll",
    "cell_precision",
    "cell_recall",
    "change_error_rate",
    "change_steps",
    "count_cells",
    "piano_roll_error_rate",
]

THRESHOLD: Final = 0.5
"""From this probability on a cell is predicted to sound; the paper's."""

_Bools = npt.NDArray[np.bool_]


class CellCounts(NamedTuple):
    """What the scores of a piece are made of, in cells."""

    cells: int
    wrong: int
    change_cells: int
    """Cells of change steps."""
    change_wrong: int
    sounding: int
    """Cells that sound in truth."""
    predicted: int
    """Cells that are predicted to sound."""
    hits: int
    """Cells that do both."""

    def __add__(self, other: object) -> CellCounts:
        """Return the counts of two pieces together."""
        if not isinstance(other, CellCounts):
            return NotImplemented
        return CellCounts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def piano_roll_error_rate(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> float:
    """Share of cells that are predicted wrongly.

    Mean over steps t and pitches p of [q(t, p) >= .5] != S(t, p). In [0, 1], lower is better; silence scores the share
    of cells that sound.

    Parameters
    ----------
    reference
        True cells S, shape (steps, 84), bool or 0 and 1.
    estimate
        How likely each sounds, q, the same shape, 0..1.

    Raises
    ------
    InvalidInputError
        Another shape, no step, values outside of 0..1, or true cells that are neither 0 nor 1.
    PairCountError
        Both differ in steps.

    Examples
    --------
    >>> truth = np.zeros((10, 84), dtype=bool)
    >>> truth[:, 40] = True
    >>> round(piano_roll_error_rate(truth, np.zeros((10, 84))), 4)  # 1 of 84
    0.0119

    """
    counts = count_cells(reference, estimate)
    return counts.wrong / counts.cells


def change_error_rate(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> float:
    """`piano_roll_error_rate` at change steps alone.

    In [0, 1], lower is better. Undefined (NaN) where all is silent, for then nothing changes. Input and errors are
    those of `piano_roll_error_rate`. Not in the paper.
    """
    counts = count_cells(reference, estimate)
    return _ratio("change_error_rate", counts.change_wrong, counts.change_cells, "the roll never changes")


def cell_precision(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> float:
    """Share of the cells predicted to sound that do.

    In [0, 1], higher is better. Undefined (NaN) where none is predicted to. Input and errors are those of
    `piano_roll_error_rate`. Not in the paper.
    """
    counts = count_cells(reference, estimate)
    return _ratio("cell_precision", counts.hits, counts.predicted, "no cell is predicted to sound")


def cell_recall(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> float:
    """Share of the sounding cells that are predicted to.

    In [0, 1], higher is better. Undefined (NaN) where none sounds. Input and errors are those of
    `piano_roll_error_rate`. Not in the paper.
    """
    counts = count_cells(reference, estimate)
    return _ratio("cell_recall", counts.hits, counts.sounding, "no cell sounds")


def cell_f1(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> float:
    """F1 of the sounding cells: 2 hits / (sounding + predicted).

    In [0, 1], higher is better; silence scores 0. Undefined (NaN) where nothing sounds and nothing is predicted to.
    Input and errors are those of `piano_roll_error_rate`. Not in the paper.
    """
    counts = count_cells(reference, estimate)
    return _ratio("cell_f1", 2 * counts.hits, counts.sounding + counts.predicted, "nothing sounds on either side")


def cell_nll(reference: npt.ArrayLike, estimate: npt.ArrayLike, *, clip: float | None = None) -> float:
    """Mean negative log-likelihood of the true cells, in nats a cell.

    In [0, inf), lower is better; times 84 it is nats a step. Infinite where a cell that was held for certain is wrong,
    so that copies and other binary rolls have no finite value but in perfect cases. Give calibrated probabilities: what
    a network gives that was trained with a focal loss is none.

    Parameters
    ----------
    reference, estimate
        As in `piano_roll_error_rate`.
    clip
        Probabilities are moved into ``clip`` to ``1 - clip`` first, above 0 and below .5. None leaves them as they are.
        Values of different `clip` are not comparable.

    Raises
    ------
    InvalidInputError, PairCountError
        As `piano_roll_error_rate`; also a `clip` out of range.

    Examples
    --------
    >>> truth = np.zeros((1, 84), dtype=bool)
    >>> round(cell_nll(truth, np.full((1, 84), 0.5)), 4)  # ln 2
    0.6931

    """
    if clip is not None and not 0 < clip < 0.5:
        raise InvalidInputError(f"clip must lie above 0 and below .5, or be None, got {clip}")
    truth, likely = _check(reference, estimate)
    if clip is not None:
        likely = np.clip(likely, clip, 1 - clip)
    with np.errstate(divide="ignore"):  # a certainty that is wrong: infinite
        logarithms = np.where(truth, np.log(likely), np.log1p(-likely))
    return float(-logarithms.mean()) + 0.0  # + 0.0 turns -0 into 0


def count_cells(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> CellCounts:
    """Return the counts that all scores but `cell_nll` are made of; input and errors as in `piano_roll_error_rate`."""
    truth, likely = _check(reference, estimate)
    predicted = likely >= THRESHOLD
    wrong, changes = predicted != truth, change_steps(truth)
    return CellCounts(
        truth.size,
        int(wrong.sum()),
        int(changes.sum()) * N_ROLL_PITCHES,
        int(wrong[changes].sum()),
        int(truth.sum()),
        int(predicted.sum()),
        int((truth & predicted).sum()),
    )


def change_steps(cells: _Bools) -> _Bools:
    """Return which steps differ from the one before, shape (steps,); before the first all is silent."""
    before = np.vstack([np.zeros_like(cells[:1]), cells[:-1]])
    changed: _Bools = (cells != before).any(axis=1)
    return changed


def _check(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> tuple[_Bools, FloatArray]:
    """Return true cells and probabilities of one shape, (steps, 84)."""
    truth, likely = np.asarray(reference, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    for name, values in (("reference", truth), ("estimate", likely)):
        if values.ndim != 2 or values.shape[1] != N_ROLL_PITCHES or not len(values):
            raise InvalidInputError(
                f"{name} must be cells of shape (steps, {N_ROLL_PITCHES}) with a step at least, got {values.shape}"
            )
        outside = ~((values >= 0) & (values <= 1))
        if outside.any():
            raise InvalidInputError(
                f"{name} must lie in 0..1, got {values[outside][0]}; give probabilities, not logits or velocities"
            )
    if len(truth) != len(likely):
        raise PairCountError(f"reference has {len(truth)} steps and estimate {len(likely)}; put both on one grid")
    between = (truth > 0) & (truth < 1)
    if between.any():
        raise InvalidInputError(f"the true cells must be 0 or 1, got {truth[between][0]}; reference comes first")
    return truth == 1, likely


def _ratio(name: str, part: int, whole: int, why: str) -> float:
    return part / whole if whole else undefined(name, why, stacklevel=4)
