"""What a network that predicts the cells of a piano roll has to beat: silence, copies of the nearest steps, a prior.

Each is a `protocols.CellPredictor`. With `hidden` steps on either side, the nearest steps that are told are those
``hidden + 1`` away; beyond the ends of a piece all is silent.

The two copy rules know nothing of music but that notes start on the beat or on an even part of it. Just there a copy of
the step before is wrong and one of the step after is right. On chorales in 32nd notes they are wrong in some hundredths
of a percent of the cells, which is less than any published network.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from music_evals.annotations import N_ROLL_PITCHES, Cells, PianoRoll
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.protocols import CONTROL

__all__ = ["ROLL_BASELINES", "RollBaseline", "copy_previous", "copy_rule", "corpus_prior", "make_roll_baseline"]

Floats = npt.NDArray[np.float64]

Predict = Callable[[PianoRoll, int], Floats]
"""From a roll and the number of hidden steps to the probabilities of its cells."""


@dataclasses.dataclass(frozen=True, eq=False)
class RollBaseline:
    """A baseline as a `protocols.CellPredictor`.

    Parameters
    ----------
    name
        System id.
    predict
        What it does.
    sees_reference
        Whether it is told the cell that it predicts: a control.

    """

    name: str
    predict: Predict
    sees_reference: bool = False

    def cell_probabilities(self, roll: PianoRoll, *, hidden: int = 0) -> Floats:
        """Return how likely each cell sounds, shape (steps, 84), 0..1.

        Raises
        ------
        InvalidInputError
            `hidden` is negative.

        """
        if hidden < 0:
            raise InvalidInputError(f"hidden is a number of steps, at least 0, got {hidden}")
        return self.predict(roll, hidden)


def copy_previous(roll: PianoRoll, hidden: int = 0) -> Floats:
    """Return the last step that is told before each, shape (steps, 84)."""
    return _shifted(roll.cells, hidden + 1).astype(np.float64)


def copy_rule(roll: PianoRoll, hidden: int = 0, *, parts: int = 2) -> Floats:
    """Return the next step that is told at each even part of a quarter, and the last one elsewhere, (steps, 84).

    Parameters
    ----------
    roll
        Any roll whose grid has `parts` in a quarter; parts are counted from its first step.
    hidden
        Steps on either side that are not told.
    parts
        Parts of a quarter: 2 is each 4th step of a grid of 8, 4 each 2nd.

    Raises
    ------
    InvalidInputError
        The grid cannot be parted so.

    """
    if roll.steps_per_quarter % parts:
        raise InvalidInputError(f"a grid of {roll.steps_per_quarter} steps a quarter has no {parts} equal parts")
    at_part = np.arange(len(roll)) % (roll.steps_per_quarter // parts) == 0
    following, previous = _shifted(roll.cells, -hidden - 1), _shifted(roll.cells, hidden + 1)
    return np.where(at_part[:, None], following, previous).astype(np.float64)


def corpus_prior(rolls: Sequence[PianoRoll]) -> Predict:
    """Return what gives each pitch how often it sounds in training pieces at that position in the beat.

    Half a cell is added on either side, so that nothing is certain. Positions are the steps of a beat's phase, as many
    as the grid has in a quarter.

    Raises
    ------
    NoDataError
        There are no pieces.
    InvalidInputError
        They, or a roll to be predicted, have another grid than the first.

    """
    if not rolls:
        raise NoDataError("the prior is fitted on training pieces, and there are none; pass train_rolls")
    grid = rolls[0].steps_per_quarter
    sounding, steps = np.zeros((grid, N_ROLL_PITCHES)), np.zeros(grid)
    for roll in rolls:
        positions = _positions(roll, grid)
        np.add.at(sounding, positions, roll.cells)
        np.add.at(steps, positions, 1)
    table = (sounding + 0.5) / (steps[:, None] + 1)
    return lambda roll, _hidden: table[_positions(roll, grid)]


def _positions(roll: PianoRoll, grid: int) -> npt.NDArray[np.int64]:
    """Return the position of each step in its beat, in 0..grid - 1."""
    if roll.steps_per_quarter != grid:
        raise InvalidInputError(f"the prior knows grids of {grid} steps a quarter, got {roll.steps_per_quarter}")
    return np.floor(roll.beat_phase * grid + 1e-6).astype(np.int64)  # phases are rounded thirds of a beat and the like


def _shifted(cells: Cells, steps: int) -> Cells:
    """Return cells later by some steps, or earlier by negative ones; what comes in is silent."""
    moved = np.zeros_like(cells)
    if abs(steps) < len(cells):
        if steps > 0:
            moved[steps:] = cells[:-steps]
        else:
            moved[:steps] = cells[-steps:]
    return moved


def _plain(predict: Predict) -> Callable[[Sequence[PianoRoll]], Predict]:
    return lambda _train_rolls: predict


ROLL_BASELINES: dict[str, Callable[[Sequence[PianoRoll]], Predict]] = {
    "silence": _plain(lambda roll, _hidden: np.zeros(roll.cells.shape)),
    "copy_previous": _plain(copy_previous),
    "copy_by_eighths": _plain(copy_rule),
    "copy_by_sixteenths": _plain(lambda roll, hidden: copy_rule(roll, hidden, parts=4)),
    "corpus_prior": corpus_prior,
    CONTROL: _plain(lambda roll, _hidden: roll.cells.astype(np.float64)),
}
"""Name -> maker of what it does from training pieces (which only the prior needs)."""


def make_roll_baseline(name: str, train_rolls: Sequence[PianoRoll] = ()) -> RollBaseline:
    """Build a baseline.

    Parameters
    ----------
    name
        A key of `ROLL_BASELINES`.
    train_rolls
        Pieces of the train split; only ``"corpus_prior"`` needs them.

    Raises
    ------
    UnknownNameError
        No such baseline; the message offers the nearest.
    NoDataError
        The baseline is fitted on pieces and there are none.

    """
    if name not in ROLL_BASELINES:
        raise UnknownNameError("baseline", name, ROLL_BASELINES)
    return RollBaseline(name, ROLL_BASELINES[name](train_rolls), sees_reference=name == CONTROL)
