"""Layers of the networks of piano rolls: attention that knows distances, and pitches from the lowest up.

Source: Lu et al., "Actions speak louder than listening" (ACM MM 2021), sections 3.2 and 3.3; the causal network over
pitches follows WaveNet's gates (van den Oord et al., 2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.annotations import N_ROLL_PITCHES

__all__ = [
    "BackwardEncoder",
    "BandedAttention",
    "Encoder",
    "EncoderLayer",
    "PitchNetwork",
    "ScalarPitchNetwork",
    "Sizes",
    "focal_truth",
    "sinusoids",
]

NORM_EPS = 1e-6
PITCH_BITS = 7


def sinusoids(n: int, width: int) -> Tensor:
    """Return codes of n positions, shape (n, width): all sines, then all cosines, of falling frequency."""
    half = width // 2
    rates = torch.exp(-math.log(10_000.0) * torch.arange(half, dtype=torch.float64) / half)
    angles = torch.arange(n, dtype=torch.float64)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1).to(torch.get_default_dtype())


def focal_truth(p: Tensor, alpha: float, gamma: float = 2.0) -> Tensor:
    """Return the probability q for which focal loss is least at output p; it is no probability itself.

    FL = -alpha y (1 - p)^gamma ln p - (1 - alpha) (1 - y) p^gamma ln(1 - p); setting the derivative of its mean over
    y ~ Bernoulli(q) to 0 gives q = (1 - alpha) A(1 - p) / (alpha A(p) + (1 - alpha) A(1 - p)) with
    A(p) = (1 - p)^gamma / p - gamma (1 - p)^(gamma - 1) ln p.

    Parameters
    ----------
    p
        Outputs of the network, any shape, 0..1.
    alpha
        Weight of what sounds, above 0 and below 1.
    gamma
        How much easy cells are played down.

    """
    p = p.clamp(1e-8, 1 - 1e-8)

    def slope(x: Tensor, rest: Tensor) -> Tensor:
        return rest**gamma / x - gamma * rest ** (gamma - 1) * x.log()

    quiet, loud = (1 - alpha) * slope(1 - p, p), alpha * slope(p, 1 - p)
    return quiet / (loud + quiet)


class RelativeAttention(nn.Module):
    """Attention of several heads with a learnt term for how far back a position lies; one table for all heads.

    Position i adds q_i · r[i - j] to what it gives position j <= i, and nothing to those after it (eq. 2).
    """

    def __init__(self, width: int, n_heads: int, length: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        # row m is the term of a position that lies length - 1 - m steps back
        self.distances = nn.Parameter(torch.randn(length, width // n_heads) * (width // n_heads) ** -0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, length, width) to the same shape."""
        n, length, width = x.shape
        query, key, value = (
            layer(x).view(n, length, self.n_heads, -1).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )  # (n, heads, length, width / heads)
        mask = skewed(query @ self.distances.T)  # (n, heads, length, length)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, mask * (width // self.n_heads) ** -0.5)
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(n, length, width))
        return out


def skewed(terms: Tensor) -> Tensor:
    """Return terms (..., i, m) of queries and rows of the table as (..., i, j): row n - 1 - (i - j), 0 for j > i."""
    n = terms.shape[-1]
    padded = nn.functional.pad(terms, (1, 0)).reshape(*terms.shape[:-2], n + 1, n)
    return padded[..., 1:, :].tril()


class EncoderLayer(nn.Module):
    """Attention and two linear layers, each after a normalisation and beside what goes past it."""

    def __init__(
        self, sizes: Sizes, dropout: float, attention: Callable[[int, int, int], nn.Module] = RelativeAttention
    ) -> None:
        super().__init__()
        width, inner = sizes.width, sizes.inner
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=NORM_EPS) for _ in range(2))
        self.attention = attention(width, sizes.n_heads, sizes.length)
        self.feed_forward = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, length, width) to the same shape."""
        x = x + self.dropout(self.attention(self.norms[0](x)))
        out: Tensor = x + self.dropout(self.feed_forward(self.norms[1](x)))
        return out


class Sizes(NamedTuple):
    """Of an encoder."""

    width: int
    n_heads: int
    inner: int
    n_layers: int
    length: int
    """Steps that attention reads."""


class Encoder(nn.Module):
    """One side of a step: layers of attention, then recurrence both ways.

    Parameters
    ----------
    sizes
        Of the layers of attention; recurrence has their width.
    dropout
        Share that is dropped after attention and after the linear layers.
    near
        Which step is asked for when not all are: -1 the last, 0 the first.

    """

    def __init__(self, sizes: Sizes, dropout: float, *, near: int) -> None:
        super().__init__()
        width = sizes.width
        self.near = near
        self.layers = nn.ModuleList(EncoderLayer(sizes, dropout) for _ in range(sizes.n_layers))
        self.before = nn.LayerNorm(width, eps=NORM_EPS)
        self.forwards, self.backwards = (nn.GRU(width, width, batch_first=True) for _ in range(2))
        self.after = nn.LayerNorm(2 * width, eps=NORM_EPS)

    def attended(self, x: Tensor) -> Tensor:
        """Return what the layers make of (n, length, width), the same shape."""
        for layer in self.layers:
            x = layer(x)
        out: Tensor = self.before(x)
        return out

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, length, width) to (n, length, 2 width)."""
        x = self.attended(x)
        both = torch.cat([self.forwards(x)[0], self.backwards(x.flip(1))[0].flip(1)], dim=-1)
        out: Tensor = self.after(both)
        return out

    def nearest(self, x: Tensor) -> Tensor:
        """Return the step `near` of `forward`, (n, 2 width): of one direction of the recurrence a single step."""
        x = self.attended(x)
        whole, single = x, x[:, self.near][:, None]
        forward, backward = (whole, single) if self.near == -1 else (single, whole)
        both = torch.cat([self.forwards(forward)[1][0], self.backwards(backward.flip(1))[1][0]], dim=-1)
        out: Tensor = self.after(both)
        return out


class Gates(nn.Module):
    """One layer over pitches: a product of two gates of a pitch and one below it, and of the context in the first."""

    def __init__(self, width: int, filters: int, dilation: int, context: int = 0) -> None:
        super().__init__()
        self.dilation = dilation
        self.gates = nn.Conv1d(width, 2 * filters, 2, dilation=dilation)
        self.context = nn.Conv1d(context, 2 * filters, 2) if context else None
        self.residual = nn.Conv1d(filters, width, 1)
        self.skip = nn.Conv1d(filters, width, 1)

    def forward(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return what goes to the next layer and what goes past all, each (n, width, pitches)."""
        z = self.gates(nn.functional.pad(x, (self.dilation, 0)))
        if self.context is not None and context is not None:
            z = z + self.context(nn.functional.pad(context, (1, 0)))
        first, second = z.chunk(2, dim=1)
        z = first.tanh() * second.sigmoid()
        return self.residual(z), self.skip(z)


class _Pitches(nn.Module):
    """What the two networks of pitches share: codes of the pitches, unless without `code`, and dilated gates."""

    n_values: int
    bits: Tensor

    def __init__(self, context: int, width: int, filters: int, dropout: float, *, code: bool = True) -> None:
        super().__init__()
        dilations = [2**power for power in range(PITCH_BITS)]
        self.embedding = nn.Conv1d(self.n_values + (PITCH_BITS if code else 0), width, 1)
        self.layers = nn.ModuleList(
            Gates(width, filters, dilation, context if number == 0 else 0) for number, dilation in enumerate(dilations)
        )
        self.dropout = nn.Dropout(dropout)
        self.squeeze = nn.Conv1d(width, 4, 1)
        # most significant bit first; the lowest pitch, A0, is 0000000
        places = torch.arange(PITCH_BITS - 1, -1, -1) if code else torch.arange(0)
        bits = torch.arange(N_ROLL_PITCHES)[None] >> places[:, None]
        self.register_buffer("bits", (bits & 1).to(torch.get_default_dtype()), persistent=False)

    def features(self, values: Tensor, context: Tensor) -> Tensor:
        """Return (n, 4, pitches) of one-hot values (n, n_values, pitches) and contexts (n, pitches, c)."""
        bits = self.bits.to(values.dtype).expand(len(values), -1, -1)
        x = self.embedding(torch.cat([values, bits], dim=1))
        total = torch.zeros_like(x)
        around = context.transpose(1, 2)
        for layer in self.layers:
            residual, skip = layer(x, around)
            x, total = x + self.dropout(residual), total + skip
        out: Tensor = self.squeeze(total.relu()).relu()
        return out


class PitchNetwork(_Pitches):
    """Logits of all pitches of a step in one pass, each given the true or drawn values of those below it.

    The published network gives one pitch a pass (`ScalarPitchNetwork`). The row moves up by one pitch instead, so that
    the same factorisation (eq. 3) needs no class for what is not known yet.
    """

    n_values = 2

    def __init__(self, context: int, width: int, filters: int, dropout: float, *, code: bool = True) -> None:
        super().__init__(context, width, filters, dropout, code=code)
        self.out = nn.Conv1d(4, 1, 1)

    def forward(self, context: Tensor, rows: Tensor) -> Tensor:
        """Return logits (n, pitches) of contexts (n, pitches, c) and rows (n, pitches), True where a pitch sounds."""
        below = nn.functional.pad(rows.to(context.dtype), (1, -1))  # the value of the pitch below, silent below A0
        out: Tensor = self.out(self.features(torch.stack([1 - below, below], dim=1), context))[:, 0]
        return out


class ScalarPitchNetwork(_Pitches):
    """The published network: the logit of the lowest pitch that is not known yet, one a pass."""

    n_values = 3

    def __init__(self, context: int, width: int, filters: int, dropout: float) -> None:
        super().__init__(context, width, filters, dropout)
        self.out = nn.Linear(4 * N_ROLL_PITCHES, 1)

    def forward(self, context: Tensor, rows: Tensor, pitches: Tensor) -> Tensor:
        """Return logits (n,) of the pitches (n,), columns of the rows, of which those below are read."""
        known = torch.arange(N_ROLL_PITCHES, device=rows.device) < pitches[:, None]
        values = torch.stack([known & ~rows, known & rows, ~known], dim=1).to(context.dtype)
        out: Tensor = self.out(self.features(values, context).flatten(1))[:, 0]
        return out

    def every(self, context: Tensor, rows: Tensor) -> Tensor:
        """Return the logits of all pitches (n, pitches): as many passes as there are pitches."""
        columns = [
            self(context, rows, torch.full((len(rows),), pitch, device=rows.device)) for pitch in range(N_ROLL_PITCHES)
        ]
        return torch.stack(columns, dim=1)


class BandedAttention(RelativeAttention):
    """Attention of several heads to the steps from `band` - 1 back up to the step itself.

    Step i adds q_i · r[i - j] to what it gives step j, as eq. 2 of Lu et al. (ACM MM 2021), one table for all heads.
    Row d of the table is the term of a step d back. Time and memory grow with length times band.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, length, width) to the same shape."""
        n, length, width = x.shape
        band, heads = min(len(self.distances), length), self.n_heads
        blocks = -(-length // band)
        x = functional.pad(x, (0, 0, 0, blocks * band - length))
        query, key, value = (
            layer(x).view(n, blocks, band, heads, -1).permute(0, 1, 3, 2, 4)
            for layer in (self.query, self.key, self.value)
        )  # (n, blocks, heads, band, width / heads)
        key, value = (torch.cat([_block_before(block), block], dim=3) for block in (key, value))
        # query i of a block and key j of two: how far back it lies
        back = band + torch.arange(band, device=x.device)[:, None] - torch.arange(2 * band, device=x.device)
        in_band = (back >= 0) & (back < band)
        in_band = in_band.expand(blocks, -1, -1).clone()
        in_band[0, :, :band] = False  # nothing lies before the first step
        terms = (query @ self.distances[:band].T).gather(-1, back.clamp(0, band - 1).expand(n, blocks, heads, -1, -1))
        mask = (terms * (width // heads) ** -0.5).masked_fill(~in_band[:, None], -torch.inf)
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
