"""Values of music on a grid of time steps and pitches: piano rolls, and a melody over its accompaniment.

A roll has 84 pitches, A0 to G#7 (MIDI 21..104), as in Lu et al., "Actions speak louder than listening" (ACM MM 2021).
Shapes that do not agree, and values that break the rules of their parameters, raise `InvalidInputError`.
"""

from __future__ import annotations

import dataclasses
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError

LOWEST_PITCH: Final = 21
"""MIDI number of the first column of a roll, A0."""

N_ROLL_PITCHES: Final = 84
"""Columns of a roll: A0 to G#7, MIDI 21..104."""

Cells = npt.NDArray[np.bool_]
"""Cells of a roll, shape (steps, 84)."""


@dataclasses.dataclass(frozen=True, eq=False)
class PianoRoll:
    """Which pitches sound at each step, where notes start and end, and where the step lies in its beat and bar.

    Arrays are not copied and must not be written to.

    Parameters
    ----------
    cells
        True while a pitch sounds, shape (steps, 84).
    onsets
        True where a note starts, the same shape; all of them sound. They come from notes: of the same pitch struck
        twice without a pause, the cells alone do not tell.
    offsets
        True at the first step after a note, the same shape; a note that lasts to the last step has none.
    beat_phase, bar_phase
        Position of each step in its beat and in its bar, shape (steps,), 0 <= phase < 1.
    steps_per_quarter
        The grid; 8 is a step of a 32nd note.
    """

    cells: Cells
    onsets: Cells
    offsets: Cells
    beat_phase: npt.NDArray[np.float64]
    bar_phase: npt.NDArray[np.float64]
    steps_per_quarter: int = 8

    def __post_init__(self) -> None:
        shape = (len(self.cells), N_ROLL_PITCHES)
        for name in ("cells", "onsets", "offsets"):
            array = getattr(self, name)
            if array.dtype != np.bool_ or array.shape != shape:
                raise InvalidInputError(f"{name} must be bool of shape {shape}, got {array.dtype} {array.shape}")
        for name in ("beat_phase", "bar_phase"):
            phase = getattr(self, name)
            if phase.shape != shape[:1] or not ((phase >= 0) & (phase < 1)).all():
                raise InvalidInputError(f"{name} must hold {shape[0]} numbers from 0 to below 1, shape {phase.shape}")
        if (self.onsets & ~self.cells).any():
            step, column = np.argwhere(self.onsets & ~self.cells)[0]
            raise InvalidInputError(f"pitch {column + LOWEST_PITCH} starts at step {step} but does not sound there")
        if self.steps_per_quarter < 1:
            raise InvalidInputError(f"steps_per_quarter must be at least 1, got {self.steps_per_quarter}")

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.cells)

    def with_notes(self, cells: Cells, onsets: Cells, offsets: Cells) -> Self:
        """Return other notes on the same grid."""
        return dataclasses.replace(self, cells=cells, onsets=onsets, offsets=offsets)

    def same_grid(self, other: PianoRoll) -> bool:
        """Return whether two rolls have the same steps, beats and bars."""
        return (
            self.steps_per_quarter == other.steps_per_quarter
            and np.array_equal(self.beat_phase, other.beat_phase)
            and np.array_equal(self.bar_phase, other.bar_phase)
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Arrangement:
    """A melody over an accompaniment, on one grid."""

    melody: PianoRoll
    accompaniment: PianoRoll

    def __post_init__(self) -> None:
        if not self.melody.same_grid(self.accompaniment):
            raise InvalidInputError(
                f"melody ({len(self.melody)} steps) and accompaniment ({len(self.accompaniment)}) must share one grid"
            )

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.melody)

    @property
    def merged(self) -> PianoRoll:
        """Both as one roll: unisons collapse, and a pitch that either goes on with has no offset."""
        first, second = self.melody, self.accompaniment
        cells = first.cells | second.cells
        offsets = (first.offsets | second.offsets) & ~cells
        return first.with_notes(cells, first.onsets | second.onsets, offsets)
