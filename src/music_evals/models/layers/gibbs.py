"""What a sweep of Gibbs sampling visits when, and two samplers of it: a naive one, the reference, and a fast one.

Source: Lu et al., "Actions speak louder than listening" (ACM MM 2021), section 3.4 and eq. 5, and the authors' code.
The order of visits has a generator of its own, and uniforms are addressed by sweep, step and pitch: no sampler can use
other numbers than another, whatever it works out first. Both samplers make the same transition.
What the fast one saves: the context of a step does not depend on its own pitches, so that it is worked out once a
step, not once a pitch; steps that see one snapshot are worked out together; the pitches of a step are found by
repeating one pass over all of them, right for at least one pitch more each time, until nothing changes; and where each
step sees all before it, steps are worked out ahead as if none of the earlier ones changed, and kept up to the first
that would have seen a change.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from music_evals.annotations import N_ROLL_PITCHES, PianoRoll
from music_evals.errors import UnknownNameError
from music_evals.numerics import n_threads, one_thread
from music_evals.protocols.settings import check_rules, check_types

_ORDER, _UNIFORMS = 0, 1  # the two streams of a seed

_CHOICES: Final = {"mode": ("sample", "threshold"), "melody": ("clamp", "code"), "sampler": ("exact", "naive")}


_IMPOSED: Final = 0.9  # share of sweeps, from the first, that begin with the melody imposed (the authors' code)
_FROZEN: Final = 0.8  # share of sweeps after which the code leaves cells of the melody as they are


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
        counts = ("sweeps", "spacing", "windows_at_once")
        rules = {
            f"{name} must be at least 1": getattr(self, name) is None or getattr(self, name) >= 1 for name in counts
        }
        rules |= {f"{name} must be above 0": getattr(self, name) > 0 for name in ("eta", "temperature")}
        rules |= {
            f"alpha_min must lie in 0..alpha_max ({self.alpha_max})": 0 <= self.alpha_min <= self.alpha_max,
            "alpha_max must be at most 1": self.alpha_max <= 1,
            "hidden_max must be at least 0": self.hidden_max >= 0,
            "call_cost must be a number of windows, at least 0": (
                self.call_cost is None or 0 <= self.call_cost < np.inf
            ),
        }
        check_rules(self, rules)

    def imposes_melody(self, sweep: int) -> bool:
        """Return whether a sweep (from 0) begins with the melody."""
        return self.melody == "clamp" or sweep < _IMPOSED * self.sweeps

    def holds_melody(self, sweep: int) -> bool:
        """Return whether updates of a sweep (from 0) leave cells of the melody as they are."""
        return self.melody == "clamp" or sweep > _FROZEN * self.sweeps


class Block(NamedTuple):
    """Groups of steps in the order of their visits."""

    groups: tuple[npt.NDArray[np.intp], ...]  # the steps of one group cannot see each other
    sequential: bool  # whether each group sees all that was written before; else all see one snapshot
    refreshes: bool  # whether the snapshot is taken anew afterwards
    hidden: int = 0  # steps on either side of each step that are hidden


class Plan(NamedTuple):
    """The blocks of a sweep, and how many steps were written since the last snapshot when it ends."""

    blocks: tuple[Block, ...]
    since_refresh: int


def step_groups(n_steps: int, spacing: int, seed: int, sweep: int) -> list[npt.NDArray[np.intp]]:
    """Return all steps in random order, each with those at multiples of the spacing from it."""
    order = np.random.default_rng((seed, _ORDER, sweep)).permutation(n_steps)
    # groups come in the order in which the permutation first meets one of their steps
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
        # eq. 5: the share of the annealed visits, of all sweeps, that are behind
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


# --- samplers


class RollNetwork(Protocol):
    """What sampling asks of a network of cells: a context from the other steps, and pitches from the lowest up.

    Several threads may call it at once.
    """

    window: int  # steps that are at least so far apart cannot see each other
    whole: bool  # whether a call for one step costs as much as one for all of them, so that steps come together

    def context(self, cells: Tensor, meta: Tensor, steps: Tensor, *, hidden: int = 0) -> Tensor:
        """Return what steps, shape (n,), see of cells (J, 84): (n, 84, c); never their own rows, nor hidden ones."""

    def pitch_logits(self, context: Tensor, rows: Tensor) -> Tensor:
        """Return logits, (n, 84); that of pitch p depends on ``rows[:, :p]`` alone."""
        ...

    def calibrated(self, logits: Tensor) -> Tensor:
        """Return logits as probabilities."""
        ...

    def onset_probabilities(self, cells: Tensor, meta: Tensor) -> Tensor:
        """Return eq. 6, how likely a note starts in each cell, (J, 84)."""
        ...


def roll_meta(network: RollNetwork, roll: PianoRoll) -> Tensor:
    """Return what a network knows of each step besides its cells, (J, 2): positions in beat and bar, from 0 to 1."""
    module: object = network
    like = next(module.parameters()) if isinstance(module, nn.Module) else torch.empty(0)
    return torch.from_numpy(np.stack([roll.beat_phase, roll.bar_phase], axis=1)).to(like)


_GPU_WINDOWS, _GPU_CALL_COST = 64, 16.0
_MOST_AHEAD = 256  # groups that are worked out ahead at most
_MEMORY = 0.9  # weight of the past in how often groups change


@dataclasses.dataclass(frozen=True)
class Draws:
    """What cells of a sweep are compared with: tensors of shape (steps, 84)."""

    bounds: Tensor | None  # uniforms, float64; None where cells sound from a probability of 0.5
    held: Tensor  # cells that are left as they are

    def at(self, steps: Tensor) -> Draws:
        """Return those of some steps."""
        return Draws(None if self.bounds is None else self.bounds[steps], self.held[steps])

    def decide(self, probabilities: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return new rows, and how close each probability lay to what it was compared with (infinite where held)."""
        probabilities = probabilities.double()
        if self.bounds is None:
            sounds, distance = probabilities >= 0.5, (probabilities - 0.5).abs()
        else:
            sounds, distance = self.bounds < probabilities, (probabilities - self.bounds).abs()
        return torch.where(self.held, rows, sounds), distance.masked_fill(self.held, torch.inf)


@dataclasses.dataclass
class Canvas:
    """The cells that are written, and the snapshot that contexts are read from: bool tensors of shape (steps, 84)."""

    cells: Tensor
    snapshot: Tensor


@dataclasses.dataclass
class SweepCounts:
    """What a sweep counts."""

    evaluated: int = 0  # steps that were worked out in blocks where each sees all before it
    accepted: int = 0  # those of them that were kept
    passes: int = 0  # over all pitches, for these steps
    closest: float = float("inf")  # the least distance between a probability and what it was compared with


@dataclasses.dataclass(frozen=True)
class Sampler:
    """What both samplers are made of."""

    network: RollNetwork
    meta: Tensor  # the network's view of beats and bars
    settings: GibbsSettings
    spacing: int  # steps so far apart cannot see each other

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return what cells are decided by."""
        if not self.settings.calibrate:
            return torch.sigmoid(logits / self.settings.temperature)
        probabilities = self.network.calibrated(logits)
        if self.settings.temperature == 1 or self.settings.mode == "threshold":
            return probabilities
        return torch.sigmoid(torch.logit(probabilities.double()) / self.settings.temperature)


class NaiveSampler(Sampler):
    """The reference: one cell after the other, each by a call of the whole network."""

    def visit(self, block: Block, canvas: Canvas, draws: Draws, counts: SweepCounts) -> None:
        """Write the steps of a block."""
        if block.sequential:
            canvas.snapshot = canvas.cells  # one array: each cell sees all before it
        for step in np.concatenate(block.groups).tolist():
            at = torch.tensor([step], device=canvas.cells.device)
            for pitch in range(N_ROLL_PITCHES):
                context = self.network.context(canvas.snapshot, self.meta, at, hidden=block.hidden)
                logits = self.network.pitch_logits(context, canvas.snapshot[at])
                rows, distance = draws.at(at).decide(self.probabilities(logits), canvas.cells[at])
                canvas.cells[step, pitch] = rows[0, pitch]
                counts.closest = min(counts.closest, float(distance[0, pitch]))
        if block.sequential:
            n = sum(map(len, block.groups))
            counts.evaluated, counts.accepted = counts.evaluated + n, counts.accepted + n
            counts.passes += n * N_ROLL_PITCHES
        if block.refreshes or block.sequential:
            canvas.snapshot = canvas.cells.clone()


class Rows(NamedTuple):
    """New rows of some steps, bool (n, 84), how close each decision was, and the passes a row took, (n,)."""

    cells: Tensor
    distance: Tensor
    passes: Tensor


@dataclasses.dataclass(frozen=True)
class ExactSampler(Sampler):
    """The fast sampler of the same transition."""

    def visit(self, block: Block, canvas: Canvas, draws: Draws, counts: SweepCounts) -> None:
        """Write the steps of a block."""
        if block.sequential:
            self._visit_ahead(block.groups, canvas, draws, counts)
            return
        steps = torch.from_numpy(np.concatenate(block.groups)).to(canvas.cells.device)
        rows = self._rows(steps, canvas, draws, functools.partial(self._snapshot_rows, hidden=block.hidden))
        canvas.cells[steps] = rows.cells
        counts.closest = min(counts.closest, float(rows.distance.min()))
        if block.refreshes:
            canvas.snapshot = canvas.cells.clone()

    def _visit_ahead(
        self, groups: Sequence[npt.NDArray[np.intp]], canvas: Canvas, draws: Draws, counts: SweepCounts
    ) -> None:
        """Write groups each of which sees all before it, worked out ahead and kept while none sees a change."""
        canvas.snapshot = canvas.cells.clone()
        on_cpu = self.meta.device.type == "cpu"
        call_cost = self.settings.call_cost
        if call_cost is None:
            call_cost = 0.0 if on_cpu else _GPU_CALL_COST
        numbers = np.arange(1, _MOST_AHEAD + 1)
        change_rate, first = 0.5, 0
        while first < len(groups):
            # as many groups ahead as make the steps that are likely to be kept cost least each
            changes = min(max(change_rate, 1e-3), 1.0)
            # of n groups that change with probability p each, (1 - (1 - p)^n) / p are expected to be kept
            n_kept = (1 - (1 - changes) ** numbers) / changes
            windows = np.ceil(numbers * len(groups[first]) / (n_threads() if on_cpu else 1))
            if self.network.whole:
                windows = np.ones_like(windows)
            ahead = groups[first : first + int(numbers[np.argmax(n_kept / (call_cost + windows))])]
            steps = torch.from_numpy(np.concatenate(ahead)).to(canvas.cells.device)
            rows = self._rows(steps, canvas, draws, self._sequential_rows)
            changed = (rows.cells != canvas.cells[steps]).any(1).cpu().numpy()
            n_groups, n_steps = _count_valid(ahead, changed, self.network.window)
            valid_steps = steps[:n_steps]
            canvas.cells[valid_steps] = rows.cells[:n_steps]
            canvas.snapshot[valid_steps] = rows.cells[:n_steps]
            counts.closest = min(counts.closest, float(rows.distance[:n_steps].min()))
            counts.evaluated, counts.accepted = counts.evaluated + len(steps), counts.accepted + n_steps
            counts.passes += int(rows.passes.sum())
            for group in np.split(changed[:n_steps], np.cumsum([len(group) for group in ahead[:n_groups]])[:-1]):
                change_rate = _MEMORY * change_rate + (1 - _MEMORY) * bool(group.any())
            first += n_groups

    def _rows(self, steps: Tensor, canvas: Canvas, draws: Draws, find: Callable[[Tensor, Canvas, Draws], Rows]) -> Rows:
        """Return new rows of some steps that see one snapshot."""
        on_cpu = self.meta.device.type == "cpu"
        at_once = self.settings.windows_at_once or (1 if on_cpu else _GPU_WINDOWS)
        if self.network.whole:
            at_once = len(steps)

        def alone(part: Tensor) -> Rows:
            with torch.inference_mode(), one_thread():
                return find(part, canvas, draws.at(part))

        parts = torch.split(steps, at_once)
        workers = min(n_threads(), len(parts)) if on_cpu else 1
        if workers < 2:
            rows = [alone(part) for part in parts]
        else:
            with ThreadPoolExecutor(workers) as pool:
                rows = list(pool.map(alone, parts))
        return Rows(*(torch.cat(column) for column in zip(*rows, strict=True)))

    def _snapshot_rows(self, steps: Tensor, canvas: Canvas, draws: Draws, *, hidden: int) -> Rows:
        """Decide all pitches from the snapshot, the lower ones of the same step too."""
        context = self.network.context(canvas.snapshot, self.meta, steps, hidden=hidden)
        logits = self.network.pitch_logits(context, canvas.snapshot[steps])
        cells, distance = draws.decide(self.probabilities(logits), canvas.cells[steps])
        return Rows(cells, distance, torch.ones_like(steps))

    def _sequential_rows(self, steps: Tensor, canvas: Canvas, draws: Draws) -> Rows:
        """Decide pitches from the lowest up, each seeing those below it.

        A whole pass is repeated until it changes nothing: after the nth the lowest n pitches are final.
        """
        context = self.network.context(canvas.snapshot, self.meta, steps)
        old = canvas.cells[steps]
        cells, distance = old.clone(), torch.full(old.shape, torch.inf, dtype=torch.float64, device=old.device)
        passes = torch.zeros(len(old), dtype=torch.int64, device=old.device)
        open_rows = torch.arange(len(old), device=old.device)
        # as many passes as pitches settle all of them; one more sees that nothing changes
        for _ in range(N_ROLL_PITCHES + 1):
            logits = self.network.pitch_logits(context[open_rows], cells[open_rows])
            decided, distance[open_rows] = draws.at(open_rows).decide(self.probabilities(logits), old[open_rows])
            changed = (decided != cells[open_rows]).any(1)
            cells[open_rows] = decided
            passes[open_rows] += 1
            open_rows = open_rows[changed]
            if not len(open_rows):
                break
        return Rows(cells, distance, passes)


def _count_valid(
    groups: Sequence[npt.NDArray[np.intp]], changed: npt.NDArray[np.bool_], window: int
) -> tuple[int, int]:
    """Return how many of the groups, and of their steps, come before the first that would have seen a change."""
    written = np.empty(0, dtype=np.intp)
    n_steps = 0
    changes = np.split(changed, np.cumsum([len(group) for group in groups])[:-1])
    for at, (group, has_changed) in enumerate(zip(groups, changes, strict=True)):
        if len(written) and (np.abs(group[:, None] - written) < window).any():
            return at, n_steps
        written = np.append(written, group[has_changed])
        n_steps += len(group)
    return len(groups), n_steps
