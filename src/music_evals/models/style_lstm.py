"""The LSTM that BMST is compared with: eight bars on either side of a step, beat by beat.

After Lu and Su, "Transferring the style of homophonic music using recurrent neural networks and autoregressive models"
(ISMIR 2018), as the authors' code of 2018 has it; our own implementation on the grid of BMST, without weights of the
authors. Lu et al. (ACM MM 2021) compare with it and leave its settings open. What differs from that code, on purpose:

- 84 pitches and steps of a 32nd note; a group is a beat, so that 32 groups are eight bars as before;
- the right side is read towards the step, so that its last state is the nearest beat, not the farthest;
- the pitches are those of BMST (`_roll_layers.PitchNetwork`: logits of all in one pass); with ``context=1`` the
  encoders tell a single number a pitch, as in the code;
- every step is learnt from alike; the code takes those of sounding pitches more often, which biases error rates.

It says nothing of starts of notes: those of its transfers are where a pitch begins to sound.
"""

# Annotations stay real objects here: the Hub mixin reads the type of `config` from the signature.
import dataclasses
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.annotations import N_ROLL_PITCHES
from music_evals.errors import InvalidInputError
from music_evals.models._roll_layers import PitchNetwork
from music_evals.models._roll_model import N_META, RollModel, padded
from music_evals.models._saved_network import check_config
from music_evals.models.examples import RollWindows
from music_evals.models.gibbs import GibbsSettings
from music_evals.protocols.settings import check_rules

__all__ = ["StyleLSTM", "StyleLSTMConfig"]

UNKNOWN: Final = 0.5
"""Value of a cell that is not told, between silent and sounding, as in the authors' network of pitches."""

_LEAK: Final = 0.2


@dataclasses.dataclass(frozen=True)
class StyleLSTMConfig:
    """Sizes; those of the authors' code by default.

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
    context
        Numbers a pitch that the encoders tell the network of pitches.
    pitch_width, filters
        Of the network of pitches.
    dropout
        Share of what is dropped, in [0, 1).
    mask_share
        Share of the steps on either side that training hides, in [0, 1). 0, as in the authors' code: it can then not be
        asked with steps hidden.
    steps_per_quarter
        Grid of the rolls.

    Raises
    ------
    InvalidInputError
        A value outside its range.

    """

    model_type: str = "style_lstm"
    style: str = ""
    n_groups: int = 32
    group: int = 8
    width: int = 150
    n_layers: int = 4
    context: int = 1
    pitch_width: int = 16
    filters: int = 64
    dropout: float = 0.3
    mask_share: float = 0.0
    steps_per_quarter: int = 8

    def __post_init__(self) -> None:
        counts = (
            "n_groups", "group", "width", "n_layers", "context", "pitch_width", "filters", "steps_per_quarter",
        )  # fmt: skip
        check_config(self, at_least_one=counts, shares=("dropout", "mask_share"))
        check_rules(self, {"n_layers must be at least 2: the last two are told": self.n_layers >= 2})

    @property
    def window(self) -> int:
        """Steps that are seen on either side."""
        return self.n_groups * self.group


class StyleLSTM(RollModel, tags=["music", "symbolic-music", "style-transfer"]):
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
        self.pitches = PitchNetwork(config.context, config.pitch_width, config.filters, config.dropout)

    # --- what sampling asks for: `models._gibbs_samplers.RollNetwork`

    def context(self, cells: Tensor, meta: Tensor, steps: Tensor, *, hidden: int = 0) -> Tensor:
        """Return what steps see of a roll; see `RollModel.context`. Cells of hidden steps are `UNKNOWN`.

        Raises
        ------
        InvalidInputError
            Steps are hidden, and training has hidden none (`mask_share`).

        """
        if hidden and not self.config.mask_share:
            raise InvalidInputError(
                "this style_lstm was never shown hidden steps; judge it with none hidden, or train it with mask_share"
            )
        window = self.config.window
        around, told = padded(cells, meta, window, self.around.weight.dtype)
        offsets = torch.arange(-window, window + 1, device=steps.device)
        places = steps[:, None] + window + offsets
        seen = around[places].to(told.dtype)
        seen = torch.where((offsets.abs() <= hidden)[:, None], UNKNOWN, seen)
        return self._told(seen, told[places])

    def onset_probabilities(self, cells: Tensor, meta: Tensor) -> Tensor:  # noqa: ARG002 - what a `RollNetwork` takes
        """Return zeros, (steps, 84): it hears no starts, so that a note starts where its pitch begins to sound."""
        return torch.zeros(cells.shape, dtype=self.around.weight.dtype, device=cells.device)

    # --- training

    def training_loss(
        self,
        windows: RollWindows,
        *,
        varied: bool = False,  # noqa: ARG002 - there is one task
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return what training minimises: the mean loss of the cells of the middle steps, shape (n,)."""
        hidden = torch.rand(windows.cells.shape[:2], generator=generator, device=self.device) < self.config.mask_share
        return self._losses(windows, hidden) / N_ROLL_PITCHES

    def validation_losses(self, windows: RollWindows) -> Tensor:
        """Return the negative log-likelihood of the middle steps, nats a step, (n,): nothing is hidden."""
        return self._losses(windows, torch.zeros(windows.cells.shape[:2], dtype=torch.bool, device=self.device))

    def _losses(self, windows: RollWindows, hidden: Tensor) -> Tensor:
        seen = torch.where(hidden[..., None], UNKNOWN, windows.cells.to(windows.meta.dtype))
        context = self._told(seen, windows.meta)
        rows = windows.cells[:, self.config.window]
        return functional.binary_cross_entropy_with_logits(
            self.pitches(context, rows), rows.to(context.dtype), reduction="none"
        ).sum(-1)

    # --- the network

    def _told(self, cells: Tensor, meta: Tensor) -> Tensor:
        """Return what both sides say of the middle of windows (n, 2 window + 1, ...), as (n, 84, context)."""
        window = self.config.window
        x = torch.cat([cells, meta], dim=-1)
        near = torch.cat([self.left(x[:, :window]), self.right(x[:, window + 1 :].flip(1))], dim=-1)
        out: Tensor = functional.leaky_relu(self.around(near), _LEAK).view(len(near), N_ROLL_PITCHES, -1)
        return out


class _Side(nn.Module):
    """One side of a step: groups of steps, read towards it."""

    def __init__(self, config: StyleLSTMConfig) -> None:
        super().__init__()
        self.groups = nn.Linear(config.group * (N_ROLL_PITCHES + N_META), config.width)
        self.layers = nn.ModuleList(
            nn.LSTM(config.width, config.width, batch_first=True) for _ in range(config.n_layers)
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map steps (n, window, 88) to the last states of the last two layers, (n, 2 width)."""
        x = self.groups(self.dropout(x.reshape(len(x), -1, self.groups.in_features)))
        last = []
        for layer in self.layers:
            x = x + functional.leaky_relu(layer(x)[0], _LEAK)
            last.append(x[:, -1])
        out: Tensor = self.dropout(torch.cat([last[-1], last[-2]], dim=-1))
        return out
