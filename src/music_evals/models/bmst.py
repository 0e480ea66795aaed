"""BMST: a bidirectional transformer that rewrites an accompaniment in the style that it has learnt.

Lu, Wu, Chiu, Su, "Actions speak louder than listening" (ACM MM 2021), section 3. Two encoders read 256 steps on either
side of a step, and a causal network draws its pitches from the lowest up (eq. 3); Gibbs sampling (`models.gibbs`) goes
through a piece until all steps fit each other. Our own implementation: no weights of the authors are used.

The published network has 3,424,661 parameters (``pitch_head="scalar"``). Defaults differ from it on purpose:

- ``pitch_head="causal"``: logits of all 84 pitches in one pass, by the same factorisation; 84 times as many targets;
- ``mirrored=True``: the right side is read towards the step, as the left is; published, its relative attention says
  nothing of the steps after the one in question;
- ``loss="bce"``: outputs are probabilities; those of focal loss are not, and `calibrated` maps them to probabilities;
- positions in the bar come with the roll, from the score (`symbolic.encodings.piano_rolls`).
"""

# Annotations stay real objects here: the Hub mixin reads the types of a class that inherits from it.
import dataclasses
import math
from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.annotations import N_ROLL_PITCHES
from music_evals.errors import UnknownNameError
from music_evals.models.gibbs import GibbsSettings
from music_evals.models.layers import rolls
from music_evals.models.layers.saving import fill_sizes
from music_evals.models.training.data import RollWindows
from music_evals.protocols.settings import check_rules

__all__ = ["BMST", "BMSTConfig"]

SIZES: Final[Mapping[str, Mapping[str, int]]] = {
    "paper": {"window": 256, "embedding": 86, "n_layers": 4, "n_heads": 4, "inner": 256},
    "small": {"window": 64, "embedding": 60, "n_layers": 2, "n_heads": 4, "inner": 192},
}

_CLASSES: Final = N_ROLL_PITCHES + 2  # silent, each pitch, hidden
_CHOICES: Final = {"loss": ("bce", "focal"), "pitch_head": ("causal", "scalar")}


@dataclasses.dataclass(frozen=True)
class BMSTConfig(rolls.RollConfig):
    """Sizes and readings.

    A value outside its range raises `InvalidInputError`, a name that does not exist `UnknownNameError`.

    Parameters
    ----------
    model_type
        Always ``"bmst"``; tells a reader of config.json which class to load.
    style
        What it is trained on, such as ``"bach"``.
    size
        ``"paper"`` or ``"small"``: what the next five are where they are 0.
    window
        Steps that are seen on either side.
    embedding
        Width of a step before its metadata; attention is twice as wide as both together.
    n_layers, n_heads, inner
        Of each encoder, and the width inside of its feed-forward layers.
    context
        Numbers a pitch that the encoders tell the network of pitches.
    pitch_width, filters
        Of the network of pitches.
    dropout, mask_share
        Shares, in [0, 1): of what is dropped, and of the steps on either side that training hides and asks for.
    loss, focal_alpha, focal_gamma
        ``"bce"``, or ``"focal"`` with the weight of what sounds (paper .25, the authors' code .6) and its exponent.
    pitch_weight
        Lambda, weight of the pitches' loss beside those of the two sides.
    pitch_head
        ``"causal"`` or ``"scalar"``.
    mirrored
        Whether the right side is read towards the step.
    steps_per_quarter
        Grid of the rolls.
    """

    model_type: str = "bmst"
    size: str = "paper"
    window: int = 0
    embedding: int = 0
    n_layers: int = 0
    n_heads: int = 0
    inner: int = 0
    loss: str = "bce"
    focal_alpha: float = 0.25
    focal_gamma: float = 2.0
    pitch_weight: float = 0.5
    pitch_head: str = "causal"
    mirrored: bool = True

    def __post_init__(self) -> None:
        fill_sizes(self, SIZES)
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise UnknownNameError(name, str(getattr(self, name)), known)
        self._check(*SIZES["paper"])
        rules = {
            "focal_alpha must lie between 0 and 1": 0 < self.focal_alpha < 1,
            "embedding must be even, for the sines and cosines of positions": self.embedding % 2 == 0,
            f"n_heads must divide the width, {self.width}": self.width % self.n_heads == 0,
        }
        check_rules(self, rules)

    @property
    def width(self) -> int:
        """Width of attention: what a step is, and the code of its position."""
        return 2 * (self.embedding + rolls.N_META)


def focal_truth(p: Tensor, alpha: float, gamma: float = 2.0) -> Tensor:
    """Return the probability q, in 0..1, for which focal loss is least at output p; p is no probability itself.

    FL = -alpha y (1 - p)^gamma ln p - (1 - alpha) (1 - y) p^gamma ln(1 - p); setting the derivative of its mean over
    y ~ Bernoulli(q) to 0 gives q = (1 - alpha) A(1 - p) / (alpha A(p) + (1 - alpha) A(1 - p)) with
    A(p) = (1 - p)^gamma / p - gamma (1 - p)^(gamma - 1) ln p.
    """
    p = p.clamp(1e-8, 1 - 1e-8)

    def slope(x: Tensor, rest: Tensor) -> Tensor:
        return rest**gamma / x - gamma * rest ** (gamma - 1) * x.log()

    quiet, loud = (1 - alpha) * slope(1 - p, p), alpha * slope(p, 1 - p)
    return quiet / (loud + quiet)


class ScalarPitchNetwork(rolls.Pitches):
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


class BMST(rolls.RollModel, tags=["music", "symbolic-music", "style-transfer"]):
    """The network; see `BMSTConfig` for its settings, `protocols.StyleTransfer` and `protocols.CellPredictor`.

    Parameters
    ----------
    config
        By default the published sizes.
    sampling
        How `transfer` samples; by default `models.gibbs.GibbsSettings`.
    """

    config_class = BMSTConfig
    code: Tensor

    def __init__(self, config: BMSTConfig | None = None, *, sampling: GibbsSettings | None = None) -> None:
        super().__init__(config)
        config = self.config
        self.sampling = GibbsSettings() if sampling is None else sampling
        self.window = config.window + 1  # steps so far apart cannot see each other
        width, length = config.width, config.window + 1
        self.cells = nn.Linear(_CLASSES, config.embedding)
        self.steps = nn.Linear(config.embedding, config.embedding)
        self.dropout = nn.Dropout(config.dropout)
        # codes of the positions, (steps, width / 2): all sines, then all cosines, of falling frequency
        half = width // 4
        rates = torch.exp(-math.log(10_000.0) * torch.arange(half, dtype=torch.float64) / half)
        angles = torch.arange(2 * config.window + 1, dtype=torch.float64)[:, None] * rates
        code = torch.cat([angles.sin(), angles.cos()], dim=1).to(torch.get_default_dtype())
        self.register_buffer("code", code, persistent=False)
        sizes = rolls.Sizes(width, config.n_heads, config.inner, config.n_layers, length)
        self.left = rolls.Encoder(sizes, config.dropout, near=-1)
        self.right = rolls.Encoder(sizes, config.dropout, near=-1 if config.mirrored else 0)
        self.heads = nn.Linear(2 * width, rolls.HEADS * N_ROLL_PITCHES)
        self.around = nn.Linear(4 * width, N_ROLL_PITCHES * config.context)
        kind = rolls.PitchNetwork if config.pitch_head == "causal" else ScalarPitchNetwork
        self.pitches = kind(config.context, config.pitch_width, config.filters, config.dropout)

    # --- what sampling asks for: `layers.gibbs.RollNetwork`

    def context(self, cells: Tensor, meta: Tensor, steps: Tensor, *, hidden: int = 0) -> Tensor:
        """Return what steps see of a roll; see `RollModel.context`."""
        left, right = self._around(cells, meta, steps, hidden)
        near = torch.cat([self.left.nearest(left), self.right.nearest(right)], dim=-1)
        return self._for_pitches(near)

    def pitch_logits(self, context: Tensor, rows: Tensor) -> Tensor:
        """Return logits, (n, 84), of contexts (n, 84, context); that of pitch p depends on ``rows[:, :p]`` alone."""
        if isinstance(self.pitches, ScalarPitchNetwork):  # as many passes as there are pitches
            every = (torch.full((len(rows),), pitch, device=rows.device) for pitch in range(N_ROLL_PITCHES))
            return torch.stack([self.pitches(context, rows, pitches) for pitches in every], dim=1)
        return super().pitch_logits(context, rows)

    def calibrated(self, logits: Tensor) -> Tensor:
        """Return logits as probabilities."""
        p = logits.sigmoid()
        return p if self.config.loss == "bce" else focal_truth(p, self.config.focal_alpha, self.config.focal_gamma)

    def onset_probabilities(self, cells: Tensor, meta: Tensor) -> Tensor:
        """Return how likely a note starts in each cell, (steps, 84): the product of what both sides say (eq. 6)."""
        probabilities = [cells.new_empty((0, N_ROLL_PITCHES), dtype=self.code.dtype)]
        for steps in torch.split(torch.arange(len(cells), device=cells.device), rolls.STEPS_AT_ONCE):
            sides = self._around(cells, meta, steps, 0)
            side_probabilities = [
                self.heads(side.nearest(x)).view(-1, rolls.HEADS, N_ROLL_PITCHES)[:, rolls.ONSET].sigmoid()
                for side, x in zip((self.left, self.right), sides, strict=True)
            ]
            probabilities.append(side_probabilities[0] * side_probabilities[1])
        return torch.cat(probabilities)

    # --- training

    def training_loss(
        self,
        windows: RollWindows,
        *,
        varied: bool = False,  # noqa: ARG002 - there is one task
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return what training minimises, shape (n,): both sides at hidden steps, and the pitches of the middle one."""
        window, n = self.config.window, len(windows.cells)
        share = int(self.config.mask_share * window)
        order = torch.rand(2, n, window, generator=generator, device=self.device).argsort(-1)
        # the hidden steps of each side, and the middle one with both
        aside = functional.pad(order < share, (0, 1), value=True)  # (2, n, window + 1)
        hidden = torch.cat([aside[0], aside[1, :, :-1].flip(1)], dim=1)
        sides = self._sides(self._embed(windows.cells, hidden), windows.meta)
        truth = torch.stack([windows.cells, windows.onsets, windows.offsets], dim=2).flatten(2)  # (n, steps, 252)
        losses, near = [], []
        for number, (encoder, x) in enumerate(zip((self.left, self.right), sides, strict=True)):
            states = encoder(x)
            near.append(states[:, encoder.near])
            own = truth[:, : window + 1] if number == 0 else truth[:, window:].flip(1)
            if number == 1 and not self.config.mirrored:
                states = states.flip(1)  # the middle step is the last of both from here on
            step_losses = self._cell_loss(self.heads(states), own).mean(-1) * aside[number]
            losses.append(step_losses.sum(1) / (share + 1))
        rows = windows.cells[:, window]
        context = self._for_pitches(torch.cat(near, dim=-1))
        if isinstance(self.pitches, ScalarPitchNetwork):
            pitches = torch.randint(N_ROLL_PITCHES, (len(rows),), generator=generator, device=self.device)
            of_pitches = self._cell_loss(self.pitches(context, rows, pitches), rows.gather(1, pitches[:, None])[:, 0])
        else:
            of_pitches = self._cell_loss(self.pitches(context, rows), rows).mean(-1)
        loss: Tensor = losses[0] + losses[1] + self.config.pitch_weight * of_pitches
        return loss

    def validation_losses(self, windows: RollWindows) -> Tensor:
        """Return the negative log-likelihood of the middle steps, nats a step, (n,): nothing else is hidden."""
        middle = torch.zeros(windows.cells.shape[:2], dtype=torch.bool, device=self.device)
        middle[:, self.config.window] = True
        left, right = self._sides(self._embed(windows.cells, middle), windows.meta)
        near = torch.cat([self.left.nearest(left), self.right.nearest(right)], dim=-1)
        rows = windows.cells[:, self.config.window]
        likely = self.calibrated(self.pitch_logits(self._for_pitches(near), rows))
        return functional.binary_cross_entropy(likely, rows.to(likely.dtype), reduction="none").sum(-1)

    def _cell_loss(self, logits: Tensor, truth: Tensor) -> Tensor:
        """Return the loss of each cell."""
        truth = truth.to(logits.dtype)
        plain = functional.binary_cross_entropy_with_logits(logits, truth, reduction="none")
        if self.config.loss == "bce":
            return plain
        wrong = torch.where(truth > 0, 1 - logits.sigmoid(), logits.sigmoid())
        alpha = self.config.focal_alpha
        weighted: Tensor = torch.where(truth > 0, alpha, 1 - alpha) * wrong**self.config.focal_gamma * plain
        return weighted

    # --- the network

    def _embed(self, cells: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Return cells (..., 84) as steps (..., embedding): the sum over pitches of the vectors of their classes."""
        silent, sounding, masked = torch.split(self.cells.weight.T, [1, N_ROLL_PITCHES, 1])
        x = cells.to(silent.dtype) @ (sounding - silent) + N_ROLL_PITCHES * (silent[0] + self.cells.bias)
        if hidden is not None:
            x = torch.where(hidden[..., None], self._hidden(masked), x)
        out: Tensor = self.steps(self.dropout(x))
        return out

    def _hidden(self, masked: Tensor) -> Tensor:
        vector: Tensor = N_ROLL_PITCHES * (masked[0] + self.cells.bias)
        return vector

    def _around(self, cells: Tensor, meta: Tensor, steps: Tensor, hidden: int) -> tuple[Tensor, Tensor]:
        """Return both sides of some steps of a roll."""
        window = self.config.window
        around, about = rolls.padded(cells, meta, window, self.code.dtype)
        # every step of the roll is embedded once; a hidden one is the same everywhere
        embedded, masked = self._embed(around), self.steps(self._hidden(self.cells.weight.T[-1:]))
        offsets = torch.arange(-window, window + 1, device=cells.device)
        places = steps[:, None] + window + offsets
        x = torch.where((offsets.abs() <= hidden)[:, None], masked, embedded[places])
        return self._sides(x, about[places])

    def _sides(self, embedded: Tensor, meta: Tensor) -> tuple[Tensor, Tensor]:
        """Return what both encoders read, each (n, window + 1, width), of steps around a middle one."""
        x = torch.cat([embedded, meta], dim=-1) * math.sqrt(embedded.shape[-1] + rolls.N_META)
        x = torch.cat([x, self.code.expand(len(x), -1, -1)], dim=-1)
        left, right = x[:, : self.config.window + 1], x[:, self.config.window :]
        return left, right.flip(1) if self.config.mirrored else right
