"""What a model of piano-roll cells has to beat: rules that copy a visible step, under the same protocol.

On a grid of 32nd notes nearly every step is the one before, and what changes does so on few steps of the beat. A model
that sees the steps around the one in question can copy; `hidden` takes away the nearest of them.

Conventions
-----------
- With `hidden` steps hidden on either side, a rule copies the nearest visible step: the one hidden + 1 away.
- Before the first step and after the last there is silence, as in the padding of the published model.
- Steps are counted from the start of the roll. A rule of every n-th step takes all music to change on these alone: 4
  steps are an eighth note on the grid of 8 steps a quarter, 2 a sixteenth.
- A rule is sure of itself: its probabilities are 0 and 1, and one wrong cell makes the likelihood of a piece 0.
  `RollBaseline.fitted` gives the same rule the probabilities that its two answers have on training pieces.

Source of the rules: ours. Published numbers to set beside them: Lu et al., "Actions speak louder than listening" (ACM
MM 2021), table 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Cells, PianoRoll
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError

__all__ = ["ROLL_BASELINES", "RollBaseline", "make_roll_baseline"]

Rule = Callable[[Cells, int], Cells]
"""From true cells (steps, 84) and the distance of the nearest visible step to cells of the same shape."""


@dataclasses.dataclass(frozen=True)
class RollBaseline:
    """A rule as a `protocols.CellPredictor`.

    Parameters
    ----------
    name
        System id.
    rule
        What it does.
    silent, sounding
        Probability that a cell sounds where the rule says that it is silent, and where it says that it sounds.

    Raises
    ------
    InvalidInputError
        Probabilities outside of 0..1.

    """

    name: str
    rule: Rule
    silent: float = 0.0
    sounding: float = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.silent <= 1 and 0 <= self.sounding <= 1):
            raise InvalidInputError(f"probabilities must lie in 0..1, got {self.silent} and {self.sounding}")

    def cell_probabilities(self, roll: PianoRoll, *, hidden: int = 0) -> npt.NDArray[np.float64]:
        """Return how likely each cell sounds, shape (steps, 84), 0..1.

        Parameters
        ----------
        roll
            The true roll; in its own step a rule reads nothing.
        hidden
            Steps on either side of the step in question that are hidden, at least 0.

        Raises
        ------
        InvalidInputError
            A negative number of hidden steps.

        """
        return np.where(self._predict(roll, hidden), self.sounding, self.silent)

    def fitted(self, rolls: Iterable[PianoRoll], *, hidden: int = 0) -> Self:
        """Return the same rule with the probabilities that its answers have on training pieces, for likelihoods.

        A cell that the rule says sounds does so in s of n cases, which gives (s + 1) / (n + 2): never 0 nor 1. Where
        that falls below 0.5, the rule no longer predicts that anything sounds; take error rates of the rule as it is.

        Parameters
        ----------
        rolls
            At least one.
        hidden
            As the probabilities will be asked for: what is copied from afar is right less often.

        Raises
        ------
        NoDataError
            No rolls.
        InvalidInputError
            A negative number of hidden steps.

        """
        cases, sounds = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
        for roll in rolls:
            predicted = self._predict(roll, hidden)
            cases += [np.sum(~predicted), np.sum(predicted)]
            sounds += [np.sum(roll.cells & ~predicted), np.sum(roll.cells & predicted)]
        if not cases.any():
            raise NoDataError("a rule is fitted to training pieces; give at least one roll")
        silent, sounding = ((sounds + 1) / (cases + 2)).tolist()
        return dataclasses.replace(self, silent=silent, sounding=sounding)

    def _predict(self, roll: PianoRoll, hidden: int) -> Cells:
        if hidden < 0:
            raise InvalidInputError(f"hidden must be at least 0 steps, got {hidden}")
        return self.rule(roll.cells, hidden + 1)


def make_roll_baseline(name: str) -> RollBaseline:
    """Return a rule by name.

    Raises
    ------
    UnknownNameError
        There is no such rule.

    """
    if name not in ROLL_BASELINES:
        raise UnknownNameError("baseline", name, ROLL_BASELINES)
    return RollBaseline(name, ROLL_BASELINES[name])


def _silence(cells: Cells, _: int) -> Cells:
    return np.zeros_like(cells)


def _copy_previous(cells: Cells, distance: int) -> Cells:
    copied = np.zeros_like(cells)
    copied[distance:] = cells[:-distance]
    return copied


def _copy_next(cells: Cells, distance: int) -> Cells:
    copied = np.zeros_like(cells)
    copied[:-distance] = cells[distance:]
    return copied


def _copy_around(period: int) -> Rule:
    """Return the rule that copies the step after on every n-th step, where notes start, and else the one before."""

    def rule(cells: Cells, distance: int) -> Cells:
        copied = _copy_previous(cells, distance)
        copied[::period] = _copy_next(cells, distance)[::period]
        return copied

    return rule


ROLL_BASELINES: Final[dict[str, Rule]] = {
    "silence": _silence,
    "copy_previous": _copy_previous,
    "copy_next": _copy_next,
    "copy_every_4": _copy_around(4),
    "copy_every_2": _copy_around(2),
}
"""Name -> rule: nothing sounds; the step before; the step after; the two-line rule, which copies the step after on
every fourth (or every second) step and the step before on all others."""
