"""What Gibbs sampling asks of a network that says how likely each cell of a piano roll sounds."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from music_evals.annotations import PianoRoll

__all__ = ["RollNetwork", "roll_meta"]


class RollNetwork(Protocol):
    """A network of the cells of a step: a context from the other steps, and the pitches from the lowest up.

    Several threads may call it at once.

    Attributes
    ----------
    window
        Steps that are at least so far apart cannot see each other.
    whole
        Whether a call for one step costs as much as one for all of them, so that steps are asked for together.

    """

    window: int
    whole: bool

    def context(self, cells: Tensor, meta: Tensor, steps: Tensor, *, hidden: int = 0) -> Tensor:
        """Return what steps, shape (n,), see of cells (J, 84): (n, 84, c).

        A step's own row is never read, nor are those of `hidden` steps on either side.
        """
        ...

    def pitch_logits(self, context: Tensor, rows: Tensor) -> Tensor:
        """Return logits, (n, 84); that of pitch p depends on ``rows[:, :p]`` alone."""
        ...

    def calibrated(self, logits: Tensor) -> Tensor:
        """Return logits as probabilities."""
        ...

    def onset_probabilities(self, cells: Tensor, meta: Tensor) -> Tensor:
        """Return eq. 6, how likely a note starts in each cell, (J, 84)."""
        ...


def roll_meta(network: RollNetwork, roll: PianoRoll) -> Tensor:
    """Return what a network knows of each step besides its cells, (J, 2): positions in beat and bar, from 0 to 1."""
    module: object = network
    like = next(module.parameters()) if isinstance(module, nn.Module) else torch.empty(0)
    return torch.from_numpy(np.stack([roll.beat_phase, roll.bar_phase], axis=1)).to(like)
