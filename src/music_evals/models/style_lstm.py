"""The LSTM that BMST is compared with: eight bars on either side of a step, beat by beat.

After Lu and Su, "Transferring the style of homophonic music using recurrent neural networks and autoregressive models"
(ISMIR 2018), as the authors' code of 2018 has it; our own implementation on the grid of BMST, without weights of the
authors. Lu et al. (ACM MM 2021) compare with it and leave its settings open. What differs from that code, on purpose:

- 84 pitches and steps of a 32nd note; a group is a beat, so that 32 groups are eight bars as before;
- the right side is read towards the step, so that its last state is the nearest beat, not the farthest;
- the pitches are those of BMST (`layers.rolls.PitchNetwork`: logits of all in one pass); with ``context=1`` the
  encoders tell a single number a pitch, as in the code;
- every step is learnt from alike; the code takes those of sounding pitches more often, which biases error rates.

BMST differs from it in three things, and each can be switched on alone, for the comparison of section 3.3: attention in
place of the LSTMs (``encoder="attention"``), hidden steps that are asked for, with their starts and ends
(``step_heads=True``), and a code of each pitch (``pitch_code=True``, our default; without it only distances distinguish
pitches, as in 2018). Without `step_heads` it says nothing of starts of notes: those of its transfers are
where a pitch begins to sound.
"""

# Annotations stay real objects here: the Hub mixin reads the type of `config` from the signature.
import dataclasses
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.annotations import N_ROLL_PITCHES
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.models.gibbs import GibbsSettings
from music_evals.models.layers import rolls
from music_evals.models.training.data import RollWindows
from music_evals.protocols.settings import check_rules

__all__ = ["StyleLSTM", "StyleLSTMConfig"]

UNKNOWN: Final = 0.5
"""Value of a hidden cell, between silent and sounding, as in the authors' network of pitches."""

_LEAK: Final = 0.2
_ENCODERS: Final = ("lstm", "attention")
_PITCH_WEIGHT: Final = 0.5  # of the pitches' loss beside those of the two sides, as in BMST

# What a side says group by group, (n, groups, 2 width), and of the nearest, some dropped in training, (n, 2 width).
_SideOutputs = tuple[Tensor, Tensor]


@dataclasses.dataclass(frozen=True)
class StyleLSTMConfig(rolls.RollConfig):
    """Sizes; those of the authors' code by default.

    A value outside its range raises `InvalidInputError`, a name that does not exist `UnknownNameError`.

    Parameters
    ----------
    model_type
        Always ``"style_lstm"``; tells a reader of config.json which class to load.
    style
        What it is trained on, such as ``"bach"``.
    n_groups, group
        Groups on either side, and steps of each.
    width, n_layers
        Of each side's recurrence.
    encoder, n_heads, inner
        ``"lstm"``, or ``"attention"``: layers of attention and a recurrence over the groups, as BMST has them over the
        steps, with so many heads and that width inside of the feed-forward layers.
    context
        Numbers a pitch that the encoders tell the network of pitches.
    pitch_width, filters
        Of the network of pitches.
    dropout
        Share of what is dropped, in [0, 1).
    mask_share
        Share of the steps on either side that training hides, in [0, 1). 0, as in the authors' code: it can then not be
        asked with steps hidden.
    step_heads
        Whether training asks both sides for the hidden steps and the middle one: which cells sound, start, have ended.
    pitch_code
        Whether the network of pitches knows which pitch it is at, in 7 bits.
    steps_per_quarter
        Grid of the rolls.
    """

    model_type: str = "style_lstm"
    n_groups: int = 32
    group: int = 8
    width: int = 150
    n_layers: int = 4
    encoder: str = "lstm"
    n_heads: int = 5
    inner: int = 256
    context: int = dataclasses.field(default=1, kw_only=True)
    mask_share: float = dataclasses.field(default=0.0, kw_only=True)
    step_heads: bool = False
    pitch_code: bool = True

    def __post_init__(self) -> None:
        self._check("n_groups", "group", "width", "n_layers", "n_heads", "inner")
        if self.encoder not in _ENCODERS:
            raise UnknownNameError("encoder", self.encoder, _ENCODERS)
        rules = {
            "n_layers must be at least 2: the last two are told": self.n_layers >= 2,
            f"n_heads must divide the width, {self.width}": self.encoder == "lstm" or self.width % self.n_heads == 0,
            "mask_share must be above 0 for step_heads": not self.step_heads or self.mask_share > 0,
        }
        check_rules(self, rules)

    @property
    def window(self) -> int:
        """Steps that are seen on either side."""
        return self.n_groups * self.group


class StyleLSTM(rolls.RollModel, tags=["music", "symbolic-music", "style-transfer"]):
    """The network; see `StyleLSTMConfig` for its settings, `protocols.StyleTransfer` and `protocols.CellPredictor`.

    Parameters
    ----------
    config
        By default the sizes of the authors' code.
    sampling
        How `transfer` samples; by default `models.gibbs.GibbsSettings`.
    """

    config_class = StyleLSTMConfig

    def __init__(self, config: StyleLSTMConfig | None = None, *, sampling: GibbsSettings | None = None) -> None:
        super().__init__(config)
        config = self.config
        self.sampling = GibbsSettings() if sampling is None else sampling
        self.window = config.window + 1  # steps so far apart cannot see each other
        self.left, self.right = (_Side(config) for _ in range(2))
        self.around = nn.Linear(4 * config.width, N_ROLL_PITCHES * config.context)
        cells = rolls.HEADS * N_ROLL_PITCHES
        # one each for the steps of a group and for the middle step, shared by both sides
        self.heads = nn.Linear(2 * config.width, config.group * cells) if config.step_heads else None
        self.middle = nn.Linear(2 * config.width, cells) if config.step_heads else None
        sizes = (config.context, config.pitch_width, config.filters, config.dropout)
        self.pitches = rolls.PitchNetwork(*sizes, code=config.pitch_code)

    # --- what sampling asks for: `layers.gibbs.RollNetwork`

    def context(self, cells: Tensor, meta: Tensor, steps: Tensor, *, hidden: int = 0) -> Tensor:
        """Return what steps see of a roll; see `RollModel.context`. Cells of hidden steps are `UNKNOWN`.

        Raises
        ------
        InvalidInputError
            Steps are hidden, and training hid none (`mask_share`).
        """
        if hidden and not self.config.mask_share:
            raise InvalidInputError(
                "this style_lstm never saw hidden steps; evaluate it with hidden=0, or train it with mask_share"
            )
        window_cells, features = self._windows(cells, meta, steps, hidden)
        return self._of_middle(self._sides(window_cells, features))

    def onset_probabilities(self, cells: Tensor, meta: Tensor) -> Tensor:
        """Return how likely a note starts in each cell, (steps, 84): the product of what both sides say (eq. 6).

        Zeros without `step_heads`: it predicts no starts, so that a note starts where its pitch begins to sound.
        """
        probabilities = torch.zeros(cells.shape, dtype=self.around.weight.dtype, device=cells.device)
        if self.middle is None:
            return probabilities
        for steps in torch.split(torch.arange(len(cells), device=cells.device), rolls.STEPS_AT_ONCE):
            sides = self._sides(*self._windows(cells, meta, steps, 0))
            side_logits = [
                self.middle(groups[:, -1]).view(-1, rolls.HEADS, N_ROLL_PITCHES)[:, rolls.ONSET] for groups, _ in sides
            ]
            probabilities[steps] = side_logits[0].sigmoid() * side_logits[1].sigmoid()
        return probabilities

    # --- training

    def training_loss(
        self,
        windows: RollWindows,
        *,
        varied: bool = False,  # noqa: ARG002 - there is one task
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return what training minimises, shape (n,): the mean loss of the cells of the middle steps.

        With `step_heads` that of the cells of hidden steps, and of the middle one, on both sides is added.
        """
        hidden = torch.rand(windows.cells.shape[:2], generator=generator, device=self.device) < self.config.mask_share
        sides, pitches = self._losses(windows, hidden)
        if self.heads is None or self.middle is None:
            return pitches / N_ROLL_PITCHES
        window, n = self.config.window, len(hidden)
        truth = torch.stack([windows.cells, windows.onsets, windows.offsets], dim=2).flatten(2).to(pitches.dtype)
        counted = hidden.index_fill(1, torch.tensor([window], device=self.device), value=True)  # the middle is always
        loss: Tensor = _PITCH_WEIGHT * pitches / N_ROLL_PITCHES
        for number, (groups, _) in enumerate(sides):
            # both sides lead to the middle step, which is their last
            own, where = (x[:, : window + 1] if number == 0 else x[:, window:].flip(1) for x in (truth, counted))
            logits = torch.cat([self.heads(groups).view(n, window, -1), self.middle(groups[:, -1:])], dim=1)
            each = functional.binary_cross_entropy_with_logits(logits, own, reduction="none").mean(-1)
            loss = loss + (each * where).sum(1) / where.sum(1)
        return loss

    def validation_losses(self, windows: RollWindows) -> Tensor:
        """Return the negative log-likelihood of the middle steps, nats a step, (n,): nothing is hidden."""
        return self._losses(windows, torch.zeros(windows.cells.shape[:2], dtype=torch.bool, device=self.device))[1]

    def _losses(self, windows: RollWindows, hidden: Tensor) -> tuple[list[_SideOutputs], Tensor]:
        """Return what both sides say, and the loss of the pitches of the middle steps, (n,)."""
        sides = self._sides(torch.where(hidden[..., None], UNKNOWN, windows.cells.to(windows.meta.dtype)), windows.meta)
        context, rows = self._of_middle(sides), windows.cells[:, self.config.window]
        cells = functional.binary_cross_entropy_with_logits(
            self.pitches(context, rows), rows.to(context.dtype), reduction="none"
        )
        return sides, cells.sum(-1)

    # --- the network

    def _windows(self, cells: Tensor, meta: Tensor, steps: Tensor, hidden: int) -> tuple[Tensor, Tensor]:
        """Return the cells around some steps of a roll, hidden ones `UNKNOWN`, and their features."""
        window = self.config.window
        around, features = rolls.padded(cells, meta, window, self.around.weight.dtype)
        offsets = torch.arange(-window, window + 1, device=steps.device)
        places = steps[:, None] + window + offsets
        window_cells = around[places].to(features.dtype)
        return torch.where((offsets.abs() <= hidden)[:, None], UNKNOWN, window_cells), features[places]

    def _sides(self, cells: Tensor, meta: Tensor) -> list[_SideOutputs]:
        """Return what both sides say of windows (n, 2 window + 1, ...)."""
        window = self.config.window
        x = torch.cat([cells, meta], dim=-1)
        return [self.left(x[:, :window]), self.right(x[:, window + 1 :].flip(1))]

    def _of_middle(self, sides: list[_SideOutputs]) -> Tensor:
        """Return what both sides say of the middle, as (n, 84, context)."""
        near = torch.cat([nearest for _, nearest in sides], dim=-1)
        out: Tensor = functional.leaky_relu(self.around(near), _LEAK).view(len(near), N_ROLL_PITCHES, -1)
        return out


class _Side(nn.Module):
    """One side of a step: groups of steps, read towards it."""

    def __init__(self, config: StyleLSTMConfig) -> None:
        super().__init__()
        self.groups = nn.Linear(config.group * (N_ROLL_PITCHES + rolls.N_META), config.width)
        self.dropout = nn.Dropout(config.dropout)
        sizes = rolls.Sizes(config.width, config.n_heads, config.inner, config.n_layers, config.n_groups)
        self.layers = (
            nn.ModuleList(nn.LSTM(config.width, config.width, batch_first=True) for _ in range(config.n_layers))
            if config.encoder == "lstm"
            else rolls.Encoder(sizes, config.dropout, near=-1)
        )

    def forward(self, x: Tensor) -> _SideOutputs:
        """Map steps (n, window, 88) to the states of the last two layers, or to what attention makes of the groups."""
        x = self.groups(self.dropout(x.reshape(len(x), -1, self.groups.in_features)))
        if isinstance(self.layers, rolls.Encoder):
            states = self.layers(x)
            return states, self.dropout(states[:, -1])
        last: list[Tensor] = []
        near: list[Tensor] = []
        for layer in self.layers:
            x = x + functional.leaky_relu(layer(x)[0], _LEAK)
            last, near = [x, *last[:1]], [x[:, -1], *near[:1]]
        return torch.cat(last, dim=-1), self.dropout(torch.cat(near, dim=-1))
