"""What the infill transformer learns to fill: gaps of random place and length, of which a part may be shown."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from music_evals.annotations import MUSIB_LAYOUT

__all__ = ["Gaps", "draw_gaps", "gap_quarters", "middle_gaps"]

_STEPS = 6  # of a quarter
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
    return Gaps(hidden, torch.arange(_MIDDLE.start // _STEPS, _MIDDLE.stop // _STEPS).expand(n, -1))


def draw_gaps(n: int, n_steps: int, varied: float, shown: float) -> Gaps:
    """Hide a gap in each row.

    All gaps of a batch have one length: that of the benchmark's middle, or, for a share `varied` of the batches, 4 to
    32 quarters. The same share of the rows has it anywhere, the others as near to the middle as may be. Of a share
    `shown` of the rows some is shown: the first quarters, as a chain that goes on has them, or single steps or quarters
    anywhere, as a user keeps notes. At least one quarter stays hidden.
    """
    n_quarters, length = n_steps // _STEPS, MUSIB_LAYOUT.middle_steps // _STEPS
    if torch.rand(()) < varied:
        length = int(torch.randint(_SHORTEST, min(_LONGEST, n_quarters // 2) + 1, ()))
    middle = min(_MIDDLE.start // _STEPS, n_quarters - length)
    anywhere = torch.randint(n_quarters - length + 1, (n,))
    starts = torch.where(torch.rand(n) < varied, anywhere, middle)
    quarters = starts[:, None] + torch.arange(length)  # (n, g)
    # some is shown: a prefix, whole quarters, or steps
    order = torch.arange(length).expand(n, -1)
    prefix = order < torch.randint(length, (n, 1))
    kept = torch.rand(n, length) < torch.rand(n, 1)
    steps = torch.rand(n, length, _STEPS) < torch.rand(n, 1, 1)
    ways = torch.stack([prefix[..., None].expand(-1, -1, _STEPS), kept[..., None].expand(-1, -1, _STEPS), steps])
    way = torch.multinomial(torch.tensor([0.6, 0.2, 0.2]), n, replacement=True)
    seen = ways[way, torch.arange(n)] & (torch.rand(n) < shown)[:, None, None]
    seen[torch.arange(n), torch.randint(length, (n,))] &= ~seen.all((1, 2))[:, None]
    hidden = torch.zeros(n, n_quarters, _STEPS, dtype=torch.bool)
    hidden[torch.arange(n)[:, None], quarters] = ~seen
    return Gaps(hidden.view(n, n_steps), quarters)


def gap_quarters(hidden: Tensor) -> Tensor:
    """Return the quarters of each row with a hidden step, in order, shape (batch, g), -1 where a row has fewer."""
    there = hidden.view(len(hidden), -1, _STEPS).any(-1)  # (batch, q)
    n, place = int(there.sum(1).max()), torch.arange(there.shape[1], device=hidden.device)
    ordered = torch.where(there, place, there.shape[1]).sort(1).values[:, :n]
    return torch.where(ordered < there.shape[1], ordered, -1)
