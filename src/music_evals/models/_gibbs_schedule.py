"""Which steps Gibbs sampling visits when, from which snapshot, and the random numbers that it compares with.

Source: Lu et al., "Actions speak louder than listening" (ACM MM 2021), section 3.4 and eq. 5, and the authors' code.
The order of visits has a generator of its own, and uniforms are addressed by sweep, step and pitch: no sampler can use
other numbers than another, whatever it works out first.
"""

from __future__ import annotations

import dataclasses
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import N_ROLL_PITCHES
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.protocols.settings import check_types

__all__ = ["Block", "GibbsSettings", "Plan", "plan_sweep", "step_groups", "sweep_uniforms", "validate_spacing"]

_ORDER, _UNIFORMS = 0, 1  # the two streams of a seed

_IMPOSED: Final = 0.9  # share of sweeps, from the first, that begin with the melody imposed (the authors' code)
_FROZEN: Final = 0.8  # share of sweeps after which the code leaves cells of the melody as they are

_CHOICES: Final = {"mode": ("sample", "threshold"), "melody": ("clamp", "code"), "sampler": ("exact", "naive")}


@dataclasses.dataclass(frozen=True)
class GibbsSettings:
    """How a roll is sampled.

    Parameters
    ----------
    sweeps
        N, visits of every step.
    alpha_max, alpha_min, eta
        Eq. 5: share of the steps that are rewritten from one frozen snapshot, at the start, at the end, and the share
        of all visits after which the end is reached. Where it is 0, each step sees all that was written before. 0.6
        of `eta` stands in the authors' code alone.
    hidden_max
        Steps on either side of a step that are hidden as well when sampling begins; fewer with the share of eq. 5,
        none at its end. 0 is what was published. A network that copies its neighbours leaves more of a piece as it is
        the fewer are hidden, and knows less of the melody the more are.
    mode
        ``"sample"`` draws each cell; ``"threshold"`` lets it sound from a probability of 0.5, as the authors' code
        does: chance is then in the order of visits alone.
    temperature
        Of drawn cells: their log-odds are divided by it.
    calibrate
        Whether the network's outputs are first mapped to probabilities; those of a network trained with focal loss are
        none, and drawing from them floods the roll.
    melody
        ``"clamp"`` keeps the melody in every update; ``"code"`` does what the authors' code does: it imposes the melody
        as a sweep begins, but for the last tenth of sweeps, loses it at the first new snapshot, and leaves its cells as
        they are in the last fifth.
    spacing
        Steps so far apart cannot see each other and are visited together. None: the window of the network, below which
        it must not lie.
    onset_threshold
        Eq. 6: from which product of the two sides' outputs on a sounding cell starts a note.
    restrike_melody
        Whether the accompaniment may strike a pitch that the melody holds, if the network predicts a start there; else
        all cells of the melody are the melody's alone.
    sampler
        ``"exact"`` is fast; ``"naive"`` is the reference, one network call a cell. Both make the same transition.
    windows_at_once
        Steps in one call of the network. None: 1 on a CPU, where threads share the calls out, 64 elsewhere. With 1,
        both samplers call the network with equal shapes, so that their numbers are equal to the last bit; with more,
        last bits of a product of matrices may differ, and with them, seldom, a cell whose probability lies that close
        to what it is compared with (`Sweep.closest`).
    call_cost
        What a call costs besides its windows, in windows: the larger, the more steps the exact sampler works out ahead.
        None: 0 on a CPU, where a core does one window at a time, 16 elsewhere.

    Raises
    ------
    InvalidInputError
        A number outside of its range.
    UnknownNameError
        A choice that does not exist.

    """

    sweeps: int = 15
    alpha_max: float = 0.6
    alpha_min: float = 0.0
    eta: float = 0.6
    hidden_max: int = 0
    mode: Literal["sample", "threshold"] = "sample"
    temperature: float = 1.0
    calibrate: bool = True
    melody: Literal["clamp", "code"] = "clamp"
    spacing: int | None = None
    onset_threshold: float = 0.05
    restrike_melody: bool = False
    sampler: Literal["exact", "naive"] = "exact"
    windows_at_once: int | None = None
    call_cost: float | None = None

    def __post_init__(self) -> None:
        check_types(self)
        for field, known in _CHOICES.items():
            if getattr(self, field) not in known:
                raise UnknownNameError(field, str(getattr(self, field)), known)
        if not 0 <= self.alpha_min <= self.alpha_max <= 1:
            raise InvalidInputError(
                f"expected 0 <= alpha_min <= alpha_max <= 1, got {self.alpha_min} and {self.alpha_max}"
            )
        for field in ("eta", "temperature"):
            if not getattr(self, field) > 0:
                raise InvalidInputError(f"{field} must be above 0, got {getattr(self, field)}")
        for field in ("sweeps", "spacing", "windows_at_once"):
            if getattr(self, field) is not None and getattr(self, field) < 1:
                raise InvalidInputError(f"{field} must be at least 1, got {getattr(self, field)}")
        if self.hidden_max < 0:
            raise InvalidInputError(f"hidden_max must be at least 0, got {self.hidden_max}")
        if self.call_cost is not None and not 0 <= self.call_cost < np.inf:
            raise InvalidInputError(f"call_cost must be a number of windows, at least 0, got {self.call_cost}")

    def imposes_melody(self, sweep: int) -> bool:
        """Return whether a sweep (from 0) begins with the melody."""
        return self.melody == "clamp" or sweep < _IMPOSED * self.sweeps

    def holds_melody(self, sweep: int) -> bool:
        """Return whether updates of a sweep (from 0) leave cells of the melody as they are."""
        return self.melody == "clamp" or sweep > _FROZEN * self.sweeps


class Block(NamedTuple):
    """Groups of steps in the order of their visits.

    Attributes
    ----------
    groups
        Arrays of steps; those of one group cannot see each other.
    sequential
        Whether each group sees all that was written before; else all see one snapshot.
    refreshes
        Whether the snapshot is taken anew afterwards.
    hidden
        Steps on either side of each step that are hidden.

    """

    groups: tuple[npt.NDArray[np.intp], ...]
    sequential: bool
    refreshes: bool
    hidden: int = 0


class Plan(NamedTuple):
    """The blocks of a sweep, and how many steps were written since the last snapshot when it ends."""

    blocks: tuple[Block, ...]
    since_refresh: int


def validate_spacing(settings: GibbsSettings, window: int) -> int:
    """Return how far apart steps are visited together. Raises `InvalidInputError` where they could see each other."""
    if settings.spacing is not None and settings.spacing < window:
        raise InvalidInputError(
            f"spacing {settings.spacing} is below the network's window of {window} steps: steps that are visited "
            f"together would see each other; give {window} or more, or None"
        )
    return settings.spacing or window


def step_groups(n_steps: int, spacing: int, seed: int, sweep: int) -> list[npt.NDArray[np.intp]]:
    """Return all steps in random order, each with those at multiples of the spacing from it."""
    order = np.random.default_rng((seed, _ORDER, sweep)).permutation(n_steps)
    phases, first = np.unique(order % spacing, return_index=True)
    return [np.arange(phase, n_steps, spacing) for phase in phases[np.argsort(first)]]


def sweep_uniforms(n_steps: int, seed: int, sweep: int) -> npt.NDArray[np.float64]:
    """Return the numbers that the cells of a sweep are compared with, shape (steps, 84), 0 <= u < 1."""
    return np.random.default_rng((seed, _UNIFORMS, sweep)).random((n_steps, N_ROLL_PITCHES))


def plan_sweep(
    settings: GibbsSettings, n_steps: int, spacing: int, *, seed: int, sweep: int, since_refresh: int
) -> Plan:
    """Return what a sweep (from 0) visits, given the steps written since the last snapshot."""
    blocks: list[Block] = []
    waiting: list[npt.NDArray[np.intp]] = []
    visited, hidden = sweep * n_steps, 0
    groups = step_groups(n_steps, spacing, seed, sweep)
    for at, group in enumerate(groups):
        done = visited / (settings.eta * settings.sweeps * n_steps)
        block_share = _annealed(settings.alpha_max, settings.alpha_min, done)
        if block_share <= 0:
            if waiting:
                blocks.append(Block(tuple(waiting), sequential=False, refreshes=False, hidden=hidden))
            return Plan((*blocks, Block(tuple(groups[at:]), sequential=True, refreshes=False)), 0)
        if not waiting:  # a block hides as much as at its start
            hidden = round(_annealed(settings.hidden_max, 0, done))
        waiting.append(group)
        visited += len(group)
        since_refresh += len(group)
        if since_refresh / n_steps > block_share:
            blocks.append(Block(tuple(waiting), sequential=False, refreshes=True, hidden=hidden))
            waiting, since_refresh = [], 0
    if waiting:
        blocks.append(Block(tuple(waiting), sequential=False, refreshes=False, hidden=hidden))
    return Plan(tuple(blocks), since_refresh)


def _annealed(most: float, least: float, done: float) -> float:
    """Return eq. 5, what is left between two values after some share of the annealed visits."""
    if done >= 1:  # not 1e-17: at the end it is the least, not nearly so
        return least
    return most - done * (most - least)
