"""What all networks of piano rolls share: rolls that are transferred, evaluated and learnt from."""

# Annotations stay real objects here: the Hub mixin reads the types of a class that inherits from it.
import abc
import dataclasses
import os
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.annotations import N_ROLL_PITCHES, Arrangement, Cells, PianoRoll
from music_evals.errors import InvalidInputError
from music_evals.models._gibbs_samplers import roll_meta
from music_evals.models._saved_network import SavedNetwork
from music_evals.models.examples import RollWindows
from music_evals.models.gibbs import GibbsSettings, GibbsState, Sweep, arrangement_of, gibbs_sweeps, transfer, working
from music_evals.numerics import one_thread

__all__ = ["N_META", "RollModel", "padded"]

N_META: Final = 4
"""Features of a step besides its cells: padding before, padding after, positions in beat and bar."""

_STEPS_AT_ONCE: Final = 64


class RollModel(SavedNetwork):
    """Base of the networks of rolls: `protocols.SweptTransfer` and `protocols.CellPredictor`.

    A subclass has a constructor of its own and is a `_gibbs_samplers.RollNetwork`. Its config has `style`, `window`
    (steps on either side of an example that is learnt from) and `steps_per_quarter`.

    Attributes
    ----------
    sampling
        How `transfer` samples.

    """

    deterministic = False
    stages: ClassVar[tuple[str, ...]] = ()
    whole = False
    sampling: GibbsSettings
    pitches: nn.Module
    training_step: int = 0

    @abc.abstractmethod
    def context(self, cells: Tensor, meta: Tensor, steps: Tensor, *, hidden: int = 0) -> Tensor:
        """Return what steps see of a roll: (n, 84, context). Their own rows are never read.

        Parameters
        ----------
        cells
            Shape (steps, 84), bool.
        meta
            Positions in beat and bar, (steps, 2), 0..1.
        steps
            Which, (n,).
        hidden
            Steps on either side that are not seen either.

        """

    @abc.abstractmethod
    def training_loss(
        self, windows: RollWindows, *, varied: bool = False, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return what training minimises, shape (n,).

        Parameters
        ----------
        windows
            What is learnt from.
        varied
            Changes nothing: there is one task.
        generator
            Draws what is hidden, and what else is drawn; by default that of PyTorch.

        """

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
        """Return the same melody over another accompaniment; see `models.gibbs.transfer`.

        Raises
        ------
        InvalidInputError
            The arrangement has no steps, or another grid.

        """
        self._check_grid(arrangement.melody)
        return transfer(self._network(), arrangement, rng, self.sampling)

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
        return gibbs_sweeps(self._network(), arrangement, settings, seed, start=start)

    def arranged(self, cells: Cells, arrangement: Arrangement) -> Arrangement:
        """Return the roll of a sweep over the given melody; see `models.gibbs.arrangement_of`."""
        return arrangement_of(self._network(), cells, arrangement, self.sampling)

    def read_state(self, path: str | os.PathLike[str]) -> GibbsState:
        """Return what ``Sweep.state.save`` wrote; raises `UnreadableFileError`."""
        return GibbsState.load(path)

    def cell_probabilities(self, roll: PianoRoll, *, hidden: int = 0) -> npt.NDArray[np.float64]:
        """Return how likely each cell sounds, (steps, 84); see `protocols.CellPredictor`.

        Raises
        ------
        InvalidInputError
            `hidden` is negative or hides the whole window, or the roll has another grid.

        """
        self._check_grid(roll)
        if not 0 <= hidden < self.config.window:
            raise InvalidInputError(f"hidden must lie in 0..{self.config.window - 1}, got {hidden}")
        network = self._network()
        cells, meta = torch.from_numpy(roll.cells).to(self.device), roll_meta(network, roll)
        probabilities = [np.empty((0, N_ROLL_PITCHES))]
        at_once = len(roll) if self.whole and not hidden else _STEPS_AT_ONCE
        parts = torch.split(torch.arange(len(roll), device=self.device), at_once) if len(roll) else ()
        with working(network), torch.inference_mode(), one_thread():
            for steps in parts:
                context = network.context(cells, meta, steps, hidden=hidden)
                likely = network.calibrated(network.pitch_logits(context, cells[steps]))
                probabilities.append(likely.double().cpu().numpy())
        return np.concatenate(probabilities)

    def calibrated(self, logits: Tensor) -> Tensor:
        """Return logits as probabilities."""
        return logits.sigmoid()

    def _network(self) -> Any:
        """Return itself: a subclass has the methods of a `RollNetwork`."""
        return self

    def _check_grid(self, roll: PianoRoll) -> None:
        if roll.steps_per_quarter != self.config.steps_per_quarter:
            raise InvalidInputError(
                f"the roll has {roll.steps_per_quarter} steps a quarter, the model {self.config.steps_per_quarter}; "
                "make it on that grid (symbolic.encodings.piano_rolls)"
            )


def padded(cells: Tensor, meta: Tensor, n: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return cells (J, 84) and the features of their steps, (J, 4), with n silent steps on either side.

    Parameters
    ----------
    cells, meta
        Cells, and positions in beat and bar (J, 2), 0..1.
    n
        Steps of padding.
    dtype
        Of the features.

    """
    places = torch.arange(len(cells) + 2 * n, device=cells.device)
    flags = torch.stack([places < n, places >= n + len(cells)], dim=1).to(dtype)
    step_features = torch.cat([flags, functional.pad(meta.to(dtype), (0, 0, n, n))], dim=1)
    return functional.pad(cells, (0, 0, n, n)), step_features
