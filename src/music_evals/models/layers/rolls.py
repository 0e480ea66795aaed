"""What the networks of piano rolls share: attention that knows distances, pitches from the lowest up, and the model.

Source of the layers: Lu et al., "Actions speak louder than listening" (ACM MM 2021), sections 3.2 and 3.3; the causal
network over pitches follows WaveNet's gates (van den Oord et al., 2016).
"""

# Annotations stay real objects here: the Hub mixin reads the types of a class that inherits from it.
import abc
import dataclasses
import os
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.annotations import N_ROLL_PITCHES, Arrangement, Cells, PianoRoll
from music_evals.errors import InvalidInputError
from music_evals.models.gibbs import GibbsSettings, GibbsState, Sweep, arrangement_of, gibbs_sweeps, transfer, working
from music_evals.models.layers.gibbs import roll_meta
from music_evals.models.layers.saving import SavedNetwork, check_config
from music_evals.numerics import one_thread

N_META: Final = 4
"""Features of a step besides its cells: padding before, padding after, positions in beat and bar."""

STEPS_AT_ONCE: Final = 64
HEADS, ONSET = 3, 1  # whether a cell sounds, starts, has just ended
NORM_EPS = 1e-6
PITCH_BITS = 7


@dataclasses.dataclass(frozen=True)
class RollConfig:
    """What the configs of all networks of rolls have; each documents its settings.

    A value outside its range raises `InvalidInputError`, a name that does not exist `UnknownNameError`.
    """

    model_type: str = ""
    style: str = ""
    _: dataclasses.KW_ONLY
    context: int = 10
    pitch_width: int = 16
    filters: int = 64
    dropout: float = 0.3
    mask_share: float = 0.3
    steps_per_quarter: int = 8

    def _check(self, *counts: str) -> None:
        """Check types, counts and shares."""
        counts = (*counts, "context", "pitch_width", "filters", "steps_per_quarter")
        check_config(self, at_least_one=counts, shares=("dropout", "mask_share"))


class Sizes(NamedTuple):
    """Of an encoder."""

    width: int
    n_heads: int
    inner: int
    n_layers: int
    length: int
    """Steps that attention reads."""


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
        # scaled as q * k is, to which attention adds the term afterwards
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, mask * (width // self.n_heads) ** -0.5)
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(n, length, width))
        return out


def skewed(terms: Tensor) -> Tensor:
    """Return terms (..., i, m) of queries and rows of the table as (..., i, j): row n - 1 - (i - j), 0 for j > i."""
    n = terms.shape[-1]
    # skewing (Huang et al., Music Transformer, 2018): a column of zeros more, read in rows of n, moves row i to the
    # left by n - 1 - i
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


class Encoder(nn.Module):
    """One side of a step: layers of attention, then recurrence both ways, of the width of the layers.

    `near` says which step is asked for when not all are: -1 the last, 0 the first.
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
        # the direction that begins at the step asked for has run one step there; the other has run all
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
        # padded below alone: a pitch sees itself and the one `dilation` below, never one above
        z = self.gates(nn.functional.pad(x, (self.dilation, 0)))
        if self.context is not None and context is not None:
            z = z + self.context(nn.functional.pad(context, (1, 0)))
        first, second = z.chunk(2, dim=1)
        z = first.tanh() * second.sigmoid()
        return self.residual(z), self.skip(z)


class Pitches(nn.Module):
    """What the two networks of pitches share: codes of the pitches, unless without `code`, and dilated gates."""

    n_values: int
    bits: Tensor

    def __init__(self, context: int, width: int, filters: int, dropout: float, *, code: bool = True) -> None:
        super().__init__()
        # 1, 2, .., 64: together the layers see 127 pitches down, more than there are
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


class PitchNetwork(Pitches):
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


class RollModel(SavedNetwork):
    """Base of the networks of rolls: `protocols.SweptTransfer` and `protocols.CellPredictor`.

    A subclass is a `layers.gibbs.RollNetwork`, and has a constructor of its own and `training_loss(windows)`. Its
    config has `style`, `window` (steps on either side of an example that is learnt from) and `steps_per_quarter`;
    `sampling` is how `transfer` samples, and its layers `dropout` and `around` turn what both sides say into what the
    network of pitches is given (`StyleLSTM` has a way of its own).
    """

    deterministic = False
    stages: ClassVar[tuple[str, ...]] = ()
    whole: bool = False
    window: int
    sampling: GibbsSettings
    pitches: nn.Module
    around: nn.Linear
    dropout: nn.Dropout
    training_step: int = 0

    @abc.abstractmethod
    def context(self, cells: Tensor, meta: Tensor, steps: Tensor, *, hidden: int = 0) -> Tensor:
        """Return what steps see of a roll: (n, 84, context). Their own rows are never read."""

    @abc.abstractmethod
    def onset_probabilities(self, cells: Tensor, meta: Tensor) -> Tensor:
        """Return eq. 6, how likely a note starts in each cell, (steps, 84)."""

    def pitch_logits(self, context: Tensor, rows: Tensor) -> Tensor:
        """Return logits, (n, 84), of contexts (n, 84, context); that of pitch p depends on ``rows[:, :p]`` alone."""
        logits: Tensor = self.pitches(context, rows)
        return logits

    @property
    def name(self) -> str:
        """System id."""
        return str(self.config.model_type) + (f":{self.config.style}" if self.config.style else "")

    @property
    def style(self) -> str:
        """What it was trained on."""
        return str(self.config.style)

    @property
    def steps_per_quarter(self) -> int:
        """Grid of the rolls that it takes."""
        return int(self.config.steps_per_quarter)

    def transfer(self, arrangement: Arrangement, *, rng: np.random.Generator) -> Arrangement:
        """Return the same melody over another accompaniment; see `models.gibbs.transfer`."""
        self._check_grid(arrangement.melody)
        return transfer(self, arrangement, rng, self.sampling)

    @property
    def n_sweeps(self) -> int:
        """Sweeps of `transfer`."""
        return self.sampling.sweeps

    def sweeps(
        self, arrangement: Arrangement, *, seed: int, n_sweeps: int | None = None, start: Any = None
    ) -> Iterator[Sweep]:
        """Return the sweeps that are left; see `models.gibbs.gibbs_sweeps` and `protocols.SweptTransfer`."""
        self._check_grid(arrangement.melody)
        settings = dataclasses.replace(self.sampling, sweeps=self.n_sweeps if n_sweeps is None else n_sweeps)
        return gibbs_sweeps(self, arrangement, settings, seed, start=start)

    def arranged(self, cells: Cells, arrangement: Arrangement) -> Arrangement:
        """Return the roll of a sweep over the given melody; see `models.gibbs.arrangement_of`."""
        return arrangement_of(self, cells, arrangement, self.sampling)

    def read_state(self, path: str | os.PathLike[str]) -> GibbsState:
        """Return what ``Sweep.state.save`` wrote; raises `UnreadableFileError`."""
        return GibbsState.load(path)

    def cell_probabilities(self, roll: PianoRoll, *, hidden: int = 0) -> npt.NDArray[np.float64]:
        """Return how likely each cell sounds, (steps, 84); see `protocols.CellPredictor`."""
        self._check_grid(roll)
        if not 0 <= hidden < self.config.window:
            raise InvalidInputError(f"hidden must lie in 0..{self.config.window - 1}, got {hidden}")
        cells, meta = torch.from_numpy(roll.cells).to(self.device), roll_meta(self, roll)
        probabilities = [np.empty((0, N_ROLL_PITCHES))]
        at_once = len(roll) if self.whole and not hidden else STEPS_AT_ONCE
        parts = torch.split(torch.arange(len(roll), device=self.device), at_once) if len(roll) else ()
        with working(self), torch.inference_mode(), one_thread():
            for steps in parts:
                context = self.context(cells, meta, steps, hidden=hidden)
                likely = self.calibrated(self.pitch_logits(context, cells[steps]))
                probabilities.append(likely.double().cpu().numpy())
        return np.concatenate(probabilities)

    def calibrated(self, logits: Tensor) -> Tensor:
        """Return logits as probabilities."""
        return logits.sigmoid()

    def _for_pitches(self, near: Tensor) -> Tensor:
        """Return what both sides say of their step, (n, width of both), as (n, 84, context)."""
        out: Tensor = self.around(self.dropout(near)).view(len(near), N_ROLL_PITCHES, -1)
        return out

    def _check_grid(self, roll: PianoRoll) -> None:
        if roll.steps_per_quarter != self.config.steps_per_quarter:
            raise InvalidInputError(
                f"the roll has {roll.steps_per_quarter} steps a quarter, the model {self.config.steps_per_quarter}; "
                "make it on that grid (symbolic.encodings.piano_rolls)"
            )


def padded(cells: Tensor, meta: Tensor, n: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return cells (J, 84) and the features of their steps, (J, 4), with n silent steps on either side."""
    places = torch.arange(len(cells) + 2 * n, device=cells.device)
    flags = torch.stack([places < n, places >= n + len(cells)], dim=1).to(dtype)
    step_features = torch.cat([flags, functional.pad(meta.to(dtype), (0, 0, n, n))], dim=1)
    return functional.pad(cells, (0, 0, n, n)), step_features
