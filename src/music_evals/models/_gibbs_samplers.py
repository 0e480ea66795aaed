"""One sweep of Gibbs sampling over a roll, twice: a naive sampler, kept as the reference, and a fast one.

Source: Lu et al., "Actions speak louder than listening" (ACM MM 2021), section 3.4. Both make the same transition.
What the fast one saves: the context of a step does not depend on its own pitches, so that it is worked out once a
step, not once a pitch; steps that see one snapshot are worked out together; the pitches of a step are found by
repeating one pass over all of them, right for at least one pitch more each time, until nothing changes; and where each
step sees all before it, steps are worked out ahead as if none of the earlier ones changed, and kept up to the first
that would have seen a change.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from music_evals.annotations import N_ROLL_PITCHES, PianoRoll
from music_evals.models._gibbs_schedule import Block, GibbsSettings
from music_evals.numerics import n_threads, one_thread

__all__ = ["Canvas", "Draws", "ExactSampler", "NaiveSampler", "RollNetwork", "Sampler", "SweepCounts", "roll_meta"]


class RollNetwork(Protocol):
    """What sampling asks of a network of cells: a context from the other steps, and pitches from the lowest up.

    Several threads may call it at once.

    Attributes
    ----------
    window
        Steps that are at least so far apart cannot see each other.
    whole
        Whether a call for one step costs as much as one for all of them, so that steps are asked for together.

    """

    window: int
    whole: bool

    def context(self, cells: Tensor, meta: Tensor, steps: Tensor, *, hidden: int = 0) -> Tensor:
        """Return what steps, shape (n,), see of cells (J, 84): (n, 84, c).

        A step's own row is never read, nor are those of `hidden` steps on either side.
        """
        ...

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
    """What cells of a sweep are compared with: tensors of shape (steps, 84).

    Attributes
    ----------
    bounds
        Uniforms, float64; None where cells sound from a probability of 0.5.
    held
        Cells that are left as they are.

    """

    bounds: Tensor | None
    held: Tensor

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

    def refresh(self) -> None:
        """Take the snapshot anew."""
        self.snapshot = self.cells.clone()


@dataclasses.dataclass
class SweepCounts:
    """What a sweep counts.

    Attributes
    ----------
    evaluated, accepted
        Steps that were worked out in blocks where each sees all before it, and those that were kept.
    passes
        Passes over all pitches for these steps.
    closest
        The least distance between a probability and what it was compared with.

    """

    evaluated: int = 0
    accepted: int = 0
    passes: int = 0
    closest: float = float("inf")

    def see(self, distance: Tensor) -> None:
        """Count decisions that were kept."""
        self.closest = min(self.closest, float(distance.min()))


@dataclasses.dataclass(frozen=True)
class Sampler:
    """What both samplers are made of.

    Attributes
    ----------
    network
        What gives the probabilities.
    meta
        Its view of beats and bars.
    settings
        How cells are decided.
    spacing
        Steps so far apart cannot see each other.

    """

    network: RollNetwork
    meta: Tensor
    settings: GibbsSettings
    spacing: int

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
                counts.see(distance[0, pitch])
        if block.sequential:
            n = sum(map(len, block.groups))
            counts.evaluated, counts.accepted = counts.evaluated + n, counts.accepted + n
            counts.passes += n * N_ROLL_PITCHES
        if block.refreshes or block.sequential:
            canvas.refresh()


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
        counts.see(rows.distance)
        if block.refreshes:
            canvas.refresh()

    def _visit_ahead(
        self, groups: Sequence[npt.NDArray[np.intp]], canvas: Canvas, draws: Draws, counts: SweepCounts
    ) -> None:
        """Write groups each of which sees all before it, worked out ahead and kept while none sees a change."""
        canvas.refresh()
        change_rate, first = 0.5, 0
        while first < len(groups):
            ahead = groups[first : first + self._groups_ahead(change_rate, len(groups[first]))]
            steps = torch.from_numpy(np.concatenate(ahead)).to(canvas.cells.device)
            rows = self._rows(steps, canvas, draws, self._sequential_rows)
            changed = (rows.cells != canvas.cells[steps]).any(1).cpu().numpy()
            n_groups, n_steps = _count_valid(ahead, changed, self.network.window)
            valid_steps = steps[:n_steps]
            canvas.cells[valid_steps] = rows.cells[:n_steps]
            canvas.snapshot[valid_steps] = rows.cells[:n_steps]
            counts.see(rows.distance[:n_steps])
            counts.evaluated, counts.accepted = counts.evaluated + len(steps), counts.accepted + n_steps
            counts.passes += int(rows.passes.sum())
            for group in _split(changed[:n_steps], ahead[:n_groups]):
                change_rate = _MEMORY * change_rate + (1 - _MEMORY) * bool(group.any())
            first += n_groups

    def _groups_ahead(self, change_rate: float, group_size: int) -> int:
        """Return how many groups to work out ahead: the number whose kept steps cost least each."""
        numbers = np.arange(1, _MOST_AHEAD + 1)
        changes = min(max(change_rate, 1e-3), 1.0)
        n_valid = (1 - (1 - changes) ** numbers) / changes
        on_cpu = self.meta.device.type == "cpu"
        call_cost = self.settings.call_cost
        if call_cost is None:
            call_cost = 0.0 if on_cpu else _GPU_CALL_COST
        windows = np.ceil(numbers * group_size / (n_threads() if on_cpu else 1))
        if self.network.whole:
            windows = np.ones_like(windows)
        return int(numbers[np.argmax(n_valid / (call_cost + windows))])

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


def _split(values: npt.NDArray[np.bool_], groups: Sequence[npt.NDArray[np.intp]]) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield values of steps group by group."""
    first = 0
    for group in groups:
        yield values[first : first + len(group)]
        first += len(group)


def _count_valid(
    groups: Sequence[npt.NDArray[np.intp]], changed: npt.NDArray[np.bool_], window: int
) -> tuple[int, int]:
    """Return how many of the groups, and of their steps, come before the first that would have seen a change."""
    written = np.empty(0, dtype=np.intp)
    n_steps = 0
    for at, (group, has_changed) in enumerate(zip(groups, _split(changed, groups), strict=True)):
        if len(written) and (np.abs(group[:, None] - written) < window).any():
            return at, n_steps
        written = np.append(written, group[has_changed])
        n_steps += len(group)
    return len(groups), n_steps
