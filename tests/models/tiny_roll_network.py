"""A roll network of random weights, small enough for one call a cell, and pieces for it."""

import numpy as np
import torch
from torch import Tensor, nn

from music_evals.annotations import N_ROLL_PITCHES, Arrangement, PianoRoll

WINDOW = 4


class TinyRollNetwork(nn.Module):
    """Each cell from its neighbours within the window, the meta data, and the lower pitches of its step."""

    whole = False

    def __init__(self, seed: int = 0, *, window: int = WINDOW, scale: float = 1.0) -> None:
        super().__init__()
        rng = np.random.default_rng(seed)

        def weights(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.from_numpy(scale * rng.normal(size=shape)), requires_grad=False)

        self.window = window
        self.around = weights(2 * window - 1, N_ROLL_PITCHES, 2 * N_ROLL_PITCHES)
        self.beats = weights(4, 2 * N_ROLL_PITCHES)
        self.below = nn.Parameter(torch.tril(weights(N_ROLL_PITCHES, N_ROLL_PITCHES), -1), requires_grad=False)

    def context(self, cells: Tensor, meta: Tensor, steps: Tensor, *, hidden: int = 0) -> Tensor:
        reach = self.window - 1
        padded = nn.functional.pad(cells.to(self.around.dtype), (0, 0, reach, reach))
        seen = padded[steps[:, None] + torch.arange(2 * reach + 1)]  # (n, 2 window - 1, 84)
        seen[:, max(reach - hidden, 0) : reach + hidden + 1] = 0
        mixed = torch.einsum("nwp,wpc->nc", seen, self.around) + meta[steps] @ self.beats[: meta.shape[1]]
        return torch.tanh(mixed).view(len(steps), N_ROLL_PITCHES, 2)

    def pitch_logits(self, context: Tensor, rows: Tensor) -> Tensor:
        lower = rows.to(self.below.dtype) @ self.below.T
        return 2 * context[..., 0] + lower * context[..., 1] - 1

    def calibrated(self, logits: Tensor) -> Tensor:
        return torch.sigmoid(logits - 0.5)

    def onset_probabilities(self, cells: Tensor, meta: Tensor) -> Tensor:
        return torch.sigmoid(self.context(cells, meta, torch.arange(len(cells)))[..., 1])


def roll(cells: np.ndarray, onsets: np.ndarray | None = None) -> PianoRoll:
    """Return cells as a roll of 4/4 bars; notes start where sound begins."""
    steps = np.arange(len(cells))
    before = np.vstack([np.zeros((1, N_ROLL_PITCHES), dtype=np.bool_), cells[:-1]])
    starts = cells & ~before if onsets is None else onsets
    return PianoRoll(cells, starts, before & ~cells, steps % 8 / 8, steps % 32 / 32)


def piece(n_steps: int, seed: int = 0) -> Arrangement:
    """Return a random melody of one voice over random chords."""
    rng = np.random.default_rng(seed)
    melody = np.zeros((n_steps, N_ROLL_PITCHES), dtype=np.bool_)
    melody[np.arange(n_steps), np.repeat(rng.integers(40, 60, n_steps), 3)[:n_steps]] = True
    return Arrangement(roll(melody), roll(rng.random((n_steps, N_ROLL_PITCHES)) < 0.1))
