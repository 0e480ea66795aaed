"""The gaps of the infill transformer: those that it learns from, of random place and length, and those it is given."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from music_evals.annotations import MASK, MUSIB_LAYOUT, REST, Tokens, check_tokens
from music_evals.errors import ContextLengthError, InvalidInputError
from music_evals.protocols import GapLimits
from music_evals.symbolic.contexts import STEPS_PER_QUARTER as STEPS

__all__ = ["LIMITS", "Gaps", "draw_gaps", "gap_quarters", "masked_stretches", "middle_gaps"]

LIMITS = GapLimits(steps=504, hidden_steps=192, quantum=STEPS)
"""What gaps the network takes."""

_MIDDLE = MUSIB_LAYOUT.middle
_SHORTEST, _LONGEST = 4, 32  # quarters


class Gaps(NamedTuple):
    """Which steps are hidden, and the quarters that hold them: equally many in each row."""

    hidden: Tensor  # (batch, steps), bool
    quarters: Tensor  # (batch, g), int64


def middle_gaps(n: int, n_steps: int) -> Gaps:
    """Hide the middle of the benchmark."""
    hidden = torch.zeros(n, n_steps, dtype=torch.bool)
    hidden[:, _MIDDLE] = True
    return Gaps(hidden, torch.arange(_MIDDLE.start // STEPS, _MIDDLE.stop // STEPS).expand(n, -1))


def draw_gaps(n: int, n_steps: int, varied: float, shown: float) -> Gaps:
    """Hide a gap in each row.

    All gaps of a batch have one length: that of the benchmark's middle, or, for a share `varied` of the batches, 4 to
    32 quarters. The same share of the rows has it anywhere, the others as near to the middle as may be. Of a share
    `shown` of the rows some is shown: the first quarters, as a chain that goes on has them, or single steps or quarters
    anywhere, as a user keeps notes. At least one quarter stays hidden.
    """
    n_quarters, length = n_steps // STEPS, MUSIB_LAYOUT.middle_steps // STEPS
    if torch.rand(()) < varied:
        length = int(torch.randint(_SHORTEST, min(_LONGEST, n_quarters // 2) + 1, ()))
    middle = min(_MIDDLE.start // STEPS, n_quarters - length)
    anywhere = torch.randint(n_quarters - length + 1, (n,))
    starts = torch.where(torch.rand(n) < varied, anywhere, middle)
    quarters = starts[:, None] + torch.arange(length)  # (n, g)
    # some is shown: a prefix, whole quarters, or steps
    order = torch.arange(length).expand(n, -1)
    prefix = order < torch.randint(length, (n, 1))
    whole_quarters = torch.rand(n, length) < torch.rand(n, 1)
    steps = torch.rand(n, length, STEPS) < torch.rand(n, 1, 1)
    ways = torch.stack(
        [prefix[..., None].expand(-1, -1, STEPS), whole_quarters[..., None].expand(-1, -1, STEPS), steps]
    )
    way = torch.multinomial(torch.tensor([0.6, 0.2, 0.2]), n, replacement=True)
    visible = ways[way, torch.arange(n)] & (torch.rand(n) < shown)[:, None, None]
    visible[torch.arange(n), torch.randint(length, (n,))] &= ~visible.all((1, 2))[:, None]
    hidden = torch.zeros(n, n_quarters, STEPS, dtype=torch.bool)
    hidden[torch.arange(n)[:, None], quarters] = ~visible
    return Gaps(hidden.view(n, n_steps), quarters)


def gap_quarters(hidden: Tensor) -> Tensor:
    """Return the quarters of each row with a hidden step, in order, shape (batch, g), -1 where a row has fewer."""
    there = hidden.view(len(hidden), -1, STEPS).any(-1)  # (batch, q)
    n, place = int(there.sum(1).max()), torch.arange(there.shape[1], device=hidden.device)
    ordered = torch.where(there, place, there.shape[1]).sort(1).values[:, :n]
    return torch.where(ordered < there.shape[1], ordered, -1)


def masked_stretches(tokens: npt.ArrayLike, hidden: npt.NDArray[np.bool_]) -> Tokens:
    """Return checked stretches with `MASK` at the hidden steps, whatever stood there."""
    array, mask = np.array(tokens), np.asarray(hidden)
    if array.ndim != 2 or mask.shape != array.shape or mask.dtype != bool:
        raise InvalidInputError(
            f"expected tokens (n, steps) and hidden of the same shape, true where a step is to be filled; got "
            f"{array.shape} and {mask.dtype} {mask.shape}"
        )
    n_steps = array.shape[1]
    if n_steps % LIMITS.quantum or not 0 < n_steps <= LIMITS.steps:
        raise ContextLengthError(
            f"infill_transformer takes stretches of at most {LIMITS.steps} steps, in whole quarters of "
            f"{LIMITS.quantum} steps; got {n_steps}: cut the stretch around the gap"
        )
    places = np.where(mask, np.arange(n_steps), -1).max(axis=1, initial=-1), np.argmax(mask, axis=1)
    longest = int((places[0] - places[1] + 1).max(initial=0))
    if longest > LIMITS.hidden_steps:
        raise ContextLengthError(
            f"infill_transformer fills at most {LIMITS.hidden_steps} steps from the first hidden one to the last; got "
            f"{longest}: fill the gap in parts"
        )
    array[mask] = REST
    masked = check_tokens(array).copy()
    masked[mask] = MASK
    return masked
