"""Attention that looks back alone and so far alone, over sequences of any length."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.models._roll_layers import NORM_EPS, EncoderLayer, Sizes

__all__ = ["BackwardEncoder", "BandedAttention"]


class BandedAttention(nn.Module):
    """Attention of several heads to the steps from `band` - 1 back up to the step itself.

    Step i adds q_i · r[i - j] to what it gives step j, as eq. 2 of Lu et al. (ACM MM 2021), one table for all heads.
    Time and memory grow with length times band.
    """

    def __init__(self, width: int, n_heads: int, band: int) -> None:
        super().__init__()
        self.n_heads, self.band = n_heads, band
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        # row d is the term of a step d back
        self.distances = nn.Parameter(torch.randn(band, width // n_heads) * (width // n_heads) ** -0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, length, width) to the same shape."""
        n, length, width = x.shape
        band, heads = min(self.band, length), self.n_heads
        blocks = -(-length // band)
        x = functional.pad(x, (0, 0, 0, blocks * band - length))
        query, key, value = (
            layer(x).view(n, blocks, band, heads, -1).permute(0, 1, 3, 2, 4)
            for layer in (self.query, self.key, self.value)
        )  # (n, blocks, heads, band, width / heads)
        key, value = (torch.cat([_block_before(one), one], dim=3) for one in (key, value))
        # query i of a block and key j of two: how far back it lies
        back = band + torch.arange(band, device=x.device)[:, None] - torch.arange(2 * band, device=x.device)
        seen = (back >= 0) & (back < band)
        seen = seen.expand(blocks, -1, -1).clone()
        seen[0, :, :band] = False  # nothing lies before the first step
        terms = (query @ self.distances[:band].T).gather(-1, back.clamp(0, band - 1).expand(n, blocks, heads, -1, -1))
        mask = (terms * (width // heads) ** -0.5).masked_fill(~seen[:, None], -torch.inf)
        mixed = functional.scaled_dot_product_attention(query, key, value, mask)
        out: Tensor = self.out(mixed.permute(0, 1, 3, 2, 4).reshape(n, blocks * band, width))
        return out[:, :length]


def _block_before(x: Tensor) -> Tensor:
    """Return the blocks (n, blocks, ...) moved by one; zeros before the first."""
    return torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1)


class BackwardEncoder(nn.Module):
    """Layers of attention and a recurrence, each step seeing itself and those before it."""

    def __init__(self, sizes: Sizes, dropout: float) -> None:
        super().__init__()
        width = sizes.width
        self.layers = nn.ModuleList(EncoderLayer(sizes, dropout, BandedAttention) for _ in range(sizes.n_layers))
        self.before = nn.LayerNorm(width, eps=NORM_EPS)
        self.recurrence = nn.GRU(width, width, batch_first=True)
        self.after = nn.LayerNorm(width, eps=NORM_EPS)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, length, width) to the same shape."""
        for layer in self.layers:
            x = layer(x)
        out: Tensor = self.after(self.recurrence(self.before(x))[0])
        return out
