"""What the benchmark may know of a system that writes piano rolls, and those that ship with the package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Arrangement, Cells, PianoRoll


@runtime_checkable
class StyleTransfer(Protocol):
    """A model that rewrites the accompaniment under a melody in the style that it has learnt."""

    @property
    def name(self) -> str:
        """System id in records and tables."""
        ...

    @property
    def style(self) -> str:
        """What it was trained on, such as ``"bach"``."""
        ...

    @property
    def deterministic(self) -> bool:
        """True when `transfer` does not use `rng`: one seed is enough."""
        ...

    @property
    def steps_per_quarter(self) -> int:
        """Grid of the rolls that it takes."""
        ...

    def transfer(self, arrangement: Arrangement, *, rng: np.random.Generator) -> Arrangement:
        """Return the same melody on the same grid over another accompaniment."""
        ...


class TransferState(Protocol):
    """All that a style transfer goes on from, between two sweeps."""

    @property
    def sweeps_done(self) -> int:
        """Sweeps so far."""
        ...

    @property
    def cells(self) -> Cells:
        """The roll of melody and accompaniment, shape (steps, 84)."""
        ...

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file that ends in ``.npz``, whole or not at all."""
        ...


class TransferSweep(Protocol):
    """What a sweep of a style transfer leaves."""

    @property
    def state(self) -> TransferState:
        """What the next sweep starts from."""
        ...


@runtime_checkable
class SweptTransfer(StyleTransfer, Protocol):
    """A style transfer that goes through a piece several times, and can be watched, stopped and resumed in between."""

    @property
    def n_sweeps(self) -> int:
        """Sweeps of `transfer`."""
        ...

    def sweeps(
        self, arrangement: Arrangement, *, seed: int, n_sweeps: int | None = None, start: Any = None
    ) -> Iterator[TransferSweep]:
        """Return the sweeps that are left, equal in the end to `transfer` where that draws the same seed.

        Parameters
        ----------
        arrangement
            Melody and first accompaniment.
        seed
            At least 0; `transfer` takes ``rng.integers(2**63)``.
        n_sweeps
            Sweeps in all; None: those of `transfer`.
        start
            State of an earlier sweep of the same run; one of another piece, seed or setting is refused
            (`OtherResultsError`). None: from the first.
        """
        ...

    def arranged(self, cells: Cells, arrangement: Arrangement) -> Arrangement:
        """Return the roll of a sweep as the given melody over the rest."""
        ...

    def read_state(self, path: str | os.PathLike[str]) -> TransferState:
        """Return what `TransferState.save` wrote; raises `UnreadableFileError` for anything else."""
        ...


@runtime_checkable
class CellPredictor(Protocol):
    """A model that says how likely each cell of a roll sounds, given all others but those above it in its step."""

    def cell_probabilities(self, roll: PianoRoll, *, hidden: int = 0) -> npt.NDArray[np.float64]:
        """Return how likely each cell sounds, shape (steps, 84), 0..1, calibrated.

        Each sees what sounds before and after its step and, in its own step, at all lower pitches: the truth, never
        what the model itself says.

        Parameters
        ----------
        roll
            The true roll.
        hidden
            Steps on either side of the step in question that are hidden.
        """
        ...


ROLL_BASELINES: dict[str, str] = dict.fromkeys(
    ("silence", "copy_previous", "copy_next", "copy_every_4", "copy_every_2"),
    "music_evals.models.baselines:make_roll_baseline",
)
"""Trivial row of cell prediction -> ``module:function``; the function takes the name and returns a `CellPredictor`."""

STYLE_TRANSFERS: dict[str, str] = {
    "bmst": "music_evals.models.bmst:BMST",
    "full_sequence": "music_evals.models.full_sequence:FullSequence",
    "style_lstm": "music_evals.models.style_lstm:StyleLSTM",
}
"""Model type -> ``module:class`` of every `StyleTransfer` with weights; each has `from_pretrained(folder)`."""
