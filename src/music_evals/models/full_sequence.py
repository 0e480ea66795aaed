"""A network that reads a whole piece once from each end and says of every step what sounds there.

A faster relative of BMST (`models.bmst`; Lu, Wu, Chiu, Su, "Actions speak louder than listening", ACM MM 2021), our
own: BMST reads 256 steps on either side anew for each step, this one the whole piece once for all. It is another model,
with other probabilities, and is to be evaluated as such. What differs:

- attention looks back alone, `band` steps far, and recurrence is in the direction of reading; a step sees the one
  before it, never itself;
- no code of absolute positions; the distance of two steps is all that attention knows;
- one pass gives contexts of all steps, and all of a stretch are learnt from at once;
- sampling rewrites at least one in 32 steps from one snapshot, as all steps cost as much as one
  (``GibbsSettings(alpha_min=1 / 32)``).
"""

# Annotations stay real objects here: the Hub mixin reads the types of a class that inherits from it.
import dataclasses
from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.annotations import N_ROLL_PITCHES
from music_evals.models.gibbs import GibbsSettings
from music_evals.models.layers import rolls
from music_evals.models.layers.saving import fill_sizes
from music_evals.models.training.data import RollWindows
from music_evals.protocols.settings import check_rules

__all__ = ["FullSequence", "FullSequenceConfig"]

SIZES: Final[Mapping[str, Mapping[str, int]]] = {
    "base": {"window": 192, "band": 256, "width": 180, "n_layers": 4, "n_heads": 4, "inner": 256},
    "small": {"window": 96, "band": 128, "width": 128, "n_layers": 2, "n_heads": 4, "inner": 192},
}

_PADDING: Final = 32  # silent steps on either side of a piece
_STRETCHES_AT_ONCE: Final = 64
_UNSEEN: Final = 2**31  # no two steps are so far apart


@dataclasses.dataclass(frozen=True)
class FullSequenceConfig(rolls.RollConfig):
    """Sizes.

    A value outside its range raises `InvalidInputError`, a name that does not exist `UnknownNameError`.

    Parameters
    ----------
    model_type
        Always ``"full_sequence"``; tells a reader of config.json which class to load.
    style
        What it is trained on, such as ``"bach"``.
    size
        ``"base"`` or ``"small"``: what the next six are where they are 0.
    window
        Half of a stretch that is learnt from, in steps; a piece may have any length.
    band
        Steps that a layer of attention looks back.
    width, n_layers, n_heads, inner
        Of each encoder, and the width inside of its feed-forward layers.
    context
        Numbers a pitch that the encoders tell the network of pitches.
    pitch_width, filters
        Of the network of pitches.
    dropout
        Share of what is dropped, in [0, 1).
    mask_share
        Largest share of the steps of a stretch that training hides, in [0, 1); each stretch draws its own below it.
    pitch_steps
        Steps of a stretch that the network of pitches learns from, drawn anew for each.
    pitch_weight
        Weight of the pitches' loss beside those of the two sides.
    steps_per_quarter
        Grid of the rolls.
    """

    model_type: str = "full_sequence"
    size: str = "base"
    window: int = 0
    band: int = 0
    width: int = 0
    n_layers: int = 0
    n_heads: int = 0
    inner: int = 0
    dropout: float = dataclasses.field(default=0.1, kw_only=True)
    pitch_steps: int = 64
    pitch_weight: float = 0.5

    def __post_init__(self) -> None:
        fill_sizes(self, SIZES)
        self._check(*SIZES["base"], "pitch_steps")
        check_rules(self, {f"n_heads must divide the width, {self.width}": self.width % self.n_heads == 0})


class BandedAttention(rolls.RelativeAttention):
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
        # each block beside the one before it; zeros before the first
        key, value = (
            torch.cat([torch.cat([torch.zeros_like(blocks_[:, :1]), blocks_[:, :-1]], dim=1), blocks_], dim=3)
            for blocks_ in (key, value)
        )
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


class BackwardEncoder(nn.Module):
    """Layers of attention and a recurrence, each step seeing itself and those before it."""

    def __init__(self, sizes: rolls.Sizes, dropout: float) -> None:
        super().__init__()
        width = sizes.width
        self.layers = nn.ModuleList(rolls.EncoderLayer(sizes, dropout, BandedAttention) for _ in range(sizes.n_layers))
        self.before = nn.LayerNorm(width, eps=rolls.NORM_EPS)
        self.recurrence = nn.GRU(width, width, batch_first=True)
        self.after = nn.LayerNorm(width, eps=rolls.NORM_EPS)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, length, width) to the same shape."""
        for layer in self.layers:
            x = layer(x)
        out: Tensor = self.after(self.recurrence(self.before(x))[0])
        return out


class FullSequence(rolls.RollModel, tags=["music", "symbolic-music", "style-transfer"]):
    """The network; see `FullSequenceConfig` for its settings, `protocols.StyleTransfer` and `protocols.CellPredictor`.

    Parameters
    ----------
    config
        By default the sizes ``"base"``.
    sampling
        How `transfer` samples; by default at least one in 32 steps from one snapshot.
    """

    config_class = FullSequenceConfig
    whole = True
    window = _UNSEEN

    def __init__(self, config: FullSequenceConfig | None = None, *, sampling: GibbsSettings | None = None) -> None:
        super().__init__(config)
        config = self.config
        self.sampling = GibbsSettings(alpha_min=1 / 32) if sampling is None else sampling
        width = config.width
        self.cells = nn.Linear(N_ROLL_PITCHES, width)
        self.hidden = nn.Parameter(torch.zeros(width))  # in place of the cells of a hidden step
        self.meta = nn.Linear(rolls.N_META, width)
        self.dropout = nn.Dropout(config.dropout)
        sizes = rolls.Sizes(width, config.n_heads, config.inner, config.n_layers, config.band)
        self.left, self.right = (BackwardEncoder(sizes, config.dropout) for _ in range(2))
        self.heads = nn.Linear(width, rolls.HEADS * N_ROLL_PITCHES)
        self.around = nn.Linear(2 * width, N_ROLL_PITCHES * config.context)
        self.pitches = rolls.PitchNetwork(config.context, config.pitch_width, config.filters, config.dropout)

    # --- what sampling asks for: `layers.gibbs.RollNetwork`

    def context(self, cells: Tensor, meta: Tensor, steps: Tensor, *, hidden: int = 0) -> Tensor:
        """Return what steps see of a roll; see `RollModel.context`. With steps hidden a stretch is read once a step."""
        dtype = self.meta.weight.dtype
        if not hidden:
            around, features = rolls.padded(cells, meta, _PADDING, dtype)
            return self._for_pitches(self._read(around[None], features[None])[0, steps + _PADDING])
        window = self.config.window
        around, features = rolls.padded(cells, meta, window, dtype)
        offsets = torch.arange(-window, window + 1, device=steps.device)
        out_of_sight = offsets.abs() <= hidden
        near = []
        for some in torch.split(steps, _STRETCHES_AT_ONCE):
            places = some[:, None] + window + offsets
            near.append(self._read(around[places], features[places], out_of_sight.expand(len(some), -1))[:, window])
        return self._for_pitches(torch.cat(near))

    def onset_probabilities(self, cells: Tensor, meta: Tensor) -> Tensor:
        """Return how likely a note starts in each cell, (steps, 84): the product of what both sides say (eq. 6)."""
        around, features = rolls.padded(cells, meta, _PADDING, self.meta.weight.dtype)
        sides = self._read(around[None], features[None])[0, _PADDING : _PADDING + len(cells)].chunk(2, dim=-1)
        side_probabilities = [
            self.heads(side).view(-1, rolls.HEADS, N_ROLL_PITCHES)[:, rolls.ONSET].sigmoid() for side in sides
        ]
        likely: Tensor = side_probabilities[0] * side_probabilities[1]
        return likely

    # --- training

    def training_loss(
        self,
        windows: RollWindows,
        *,
        varied: bool = False,  # noqa: ARG002 - there is one task
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return what training minimises, shape (n,): both sides at all steps, and the pitches of some."""
        n, length = windows.cells.shape[:2]
        share = self.config.mask_share * torch.rand(n, 1, generator=generator, device=self.device)
        hidden = torch.rand(n, length, generator=generator, device=self.device) < share
        near = self._read(windows.cells, windows.meta, hidden)
        truth = torch.stack([windows.cells, windows.onsets, windows.offsets], dim=2).flatten(2).to(near.dtype)
        loss = near.new_zeros(n)
        inside = _inside(windows)
        for side in near.chunk(2, dim=-1):
            wrong = functional.binary_cross_entropy_with_logits(self.heads(side), truth, reduction="none").mean(-1)
            loss = loss + _mean(wrong, inside)
        # steps inside of the piece first, at random
        order = torch.rand(n, length, generator=generator, device=self.device) + (~inside)
        steps = order.argsort(1)[:, : self.config.pitch_steps]
        loss += self.config.pitch_weight * self._pitch_losses(near, windows, steps, inside) / N_ROLL_PITCHES
        return loss

    def validation_losses(self, windows: RollWindows) -> Tensor:
        """Return the negative log-likelihood of the steps of each stretch, nats a step, (n,): none is hidden."""
        near = self._read(windows.cells, windows.meta)
        every = torch.arange(windows.cells.shape[1], device=self.device).expand(len(near), -1)
        return self._pitch_losses(near, windows, every, _inside(windows))

    def _pitch_losses(self, near: Tensor, windows: RollWindows, steps: Tensor, inside: Tensor) -> Tensor:
        """Return the mean loss of the rows of some steps (n, k) of each stretch, nats a step, (n,)."""
        at = steps[..., None]
        context = self._for_pitches(near.gather(1, at.expand(-1, -1, near.shape[-1])).flatten(0, 1))
        rows = windows.cells.gather(1, at.expand(-1, -1, N_ROLL_PITCHES)).flatten(0, 1)
        wrong = functional.binary_cross_entropy_with_logits(
            self.pitches(context, rows), rows.to(context.dtype), reduction="none"
        ).sum(-1)
        return _mean(wrong.view(steps.shape), inside.gather(1, steps))

    # --- the network

    def _read(self, cells: Tensor, meta: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Return what both sides say of each step of (n, length, 84), all others seen: (n, length, 2 width)."""
        x = self.cells(cells.to(self.hidden.dtype))
        if hidden is not None:
            x = torch.where(hidden[..., None], self.hidden, x)
        edge = self.hidden.expand(len(x), 1, -1)  # what lies beyond is not known
        positions = self.meta(meta)
        left = self.left(self.dropout(torch.cat([edge, x[:, :-1]], dim=1) + positions))
        right = self.right(self.dropout(torch.cat([x[:, 1:], edge], dim=1) + positions).flip(1)).flip(1)
        return torch.cat([left, right], dim=-1)


def _inside(windows: RollWindows) -> Tensor:
    """Return which steps of stretches lie in their piece, (n, steps)."""
    return ~windows.meta[..., :2].bool().any(-1)


def _mean(losses: Tensor, counted: Tensor) -> Tensor:
    """Return the mean over the steps that count, (n,); 0 if none does."""
    return (losses * counted).sum(1) / counted.sum(1).clamp(min=1)
