"""Gibbs sampling of piano rolls: another accompaniment under a melody, sweep by sweep.

Source: Lu et al., "Actions speak louder than listening" (ACM MM 2021), section 3.4 and eq. 5 and 6, and the authors'
code. A network says how likely each cell of a roll sounds, given all cells around it; cells are drawn anew again and
again until the roll is of one piece. The conditionals need not come from one joint distribution, so that "exact" means
the paper's transition, not a known limit.

Deviations: cells are drawn, from calibrated probabilities (the code compares them with 0.5, which is ``mode=
"threshold"``), and the melody is kept in every update (``melody="code"`` for the code's way). Starts that the network
predicts on silent cells are ignored. Neighbours of a step may be hidden at first (`GibbsSettings.hidden_max`); the
paper does not do that, nor do our models by default: `benchmarks/style_fidelity` says what becomes of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Self

import numpy as np
import torch
from torch import nn

from music_evals.annotations import N_ROLL_PITCHES, Arrangement, Cells
from music_evals.errors import InvalidInputError, OtherResultsError, UnreadableFileError
from music_evals.files import written_whole
from music_evals.models.layers.gibbs import (
    Canvas,
    Draws,
    ExactSampler,
    GibbsSettings,
    NaiveSampler,
    RollNetwork,
    SweepCounts,
    plan_sweep,
    roll_meta,
    sweep_uniforms,
)
from music_evals.numerics import one_thread

__all__ = ["GibbsSettings", "GibbsState", "Sweep", "arrangement_of", "gibbs_sweeps", "transfer"]

_SAMPLERS: Final[Mapping[str, type[ExactSampler | NaiveSampler]]] = {"exact": ExactSampler, "naive": NaiveSampler}


@dataclasses.dataclass(frozen=True, eq=False)
class GibbsState:
    """All that sampling goes on from, between two sweeps.

    Random numbers are addressed by seed, sweep, step and pitch, so that no state of a generator is in it.

    Parameters
    ----------
    settings, seed
        Of the run.
    sweeps_done
        Sweeps so far.
    since_refresh
        Steps written since the snapshot was taken.
    cells, snapshot
        The roll, and what contexts were last read from, shape (steps, 84).
    piece
        Digest of the arrangement that the run began with.
    """

    settings: GibbsSettings
    seed: int
    sweeps_done: int
    since_refresh: int
    cells: Cells
    snapshot: Cells
    piece: str

    @classmethod
    def begin(cls, arrangement: Arrangement, settings: GibbsSettings, seed: int) -> Self:
        """Return the state before the first sweep."""
        cells, digest = arrangement.merged.cells, hashlib.sha256()
        for roll in (arrangement.melody, arrangement.accompaniment):
            for array in (roll.cells, roll.onsets, roll.beat_phase, roll.bar_phase):
                digest.update(np.ascontiguousarray(array).tobytes())
        return cls(settings, seed, 0, 0, cells, cells, digest.hexdigest())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as ``.npz``, whole or not at all; the name must end so. Raises `OutputError`."""
        about = {
            "settings": dataclasses.asdict(self.settings),
            "seed": self.seed,
            "sweeps_done": self.sweeps_done,
            "since_refresh": self.since_refresh,
            "piece": self.piece,
        }
        with written_whole(path) as part, part.open("wb") as file:
            np.savez_compressed(file, about=np.array(json.dumps(about)), cells=self.cells, snapshot=self.snapshot)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; raises `UnreadableFileError` where it is no such file, or damaged."""
        try:
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                about = json.loads(str(arrays["about"]))
                cells, snapshot = arrays["cells"], arrays["snapshot"]
            about["settings"] = GibbsSettings(**about["settings"])
            state = cls(**about, cells=cells, snapshot=snapshot)
        except OSError as error:
            raise UnreadableFileError(f"{path} cannot be read: {error.strerror or error}; begin anew") from error
        except (ValueError, LookupError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise UnreadableFileError(f"{path} holds no state of a run ({error}); begin anew") from error
        if cells.dtype != np.bool_ or cells.shape != snapshot.shape or cells.shape[1:] != (N_ROLL_PITCHES,):
            raise UnreadableFileError(f"{path} holds no state of a run: rolls of shape {cells.shape}; begin anew")
        return state


@dataclasses.dataclass(frozen=True, eq=False)
class Sweep:
    """What a sweep leaves.

    Parameters
    ----------
    index
        From 0.
    state
        What the next sweep starts from; its `cells` are the roll.
    density
        Share of cells that sound.
    n_changed
        Cells that differ from the sweep before.
    accepted
        Of the steps that were worked out where each sees all before it, the share that was kept; NaN for a sweep
        without.
    passes
        Mean passes over the pitches of such a step; 84 for the naive sampler.
    closest
        How close a probability lay to what it was compared with, at the closest. Samplers whose last bits differ by
        less give the same roll.
    """

    index: int
    state: GibbsState
    density: float
    n_changed: int
    accepted: float
    passes: float
    closest: float

    @property
    def cells(self) -> Cells:
        """The roll after the sweep, shape (steps, 84)."""
        return self.state.cells


def gibbs_sweeps(
    network: RollNetwork,
    arrangement: Arrangement,
    settings: GibbsSettings,
    seed: int,
    *,
    start: GibbsState | None = None,
) -> Iterator[Sweep]:
    """Sample another accompaniment, and return an iterator of the sweeps that are left.

    Equal seeds give equal rolls, also where a run is stopped after any sweep and goes on from its state.

    Parameters
    ----------
    network
        What it is sampled from.
    arrangement
        Melody and first accompaniment, at least one step.
    settings
        How.
    seed
        At least 0.
    start
        The state of an earlier sweep of the same run. None: from the first.

    Raises
    ------
    InvalidInputError
        The arrangement has no steps, the seed is negative, or steps that see each other are to be visited together.
    OtherResultsError
        `start` is of another piece, seed or setting.
    """
    if not len(arrangement):
        raise InvalidInputError("the arrangement has no steps; expected at least one")
    if seed < 0:
        raise InvalidInputError(f"the seed must be at least 0, got {seed}")
    if settings.spacing is not None and settings.spacing < network.window:
        raise InvalidInputError(
            f"spacing {settings.spacing} is below the network's window of {network.window} steps: steps that are "
            f"visited together would see each other; give {network.window} or more, or None"
        )
    spacing = settings.spacing or network.window
    begin = GibbsState.begin(arrangement, settings, seed)
    if start is not None:
        for field in ("piece", "seed", "settings"):
            if getattr(start, field) != getattr(begin, field):
                raise OtherResultsError(f"the state is of a run with another {field}; begin anew, or give what it had")
    return _sweeps(network, arrangement, spacing, start or begin)


def transfer(
    network: RollNetwork, arrangement: Arrangement, rng: np.random.Generator, settings: GibbsSettings
) -> Arrangement:
    """Return the melody over another accompaniment, after all sweeps of `gibbs_sweeps`; `rng` gives the seed."""
    cells = arrangement.merged.cells
    for sweep in gibbs_sweeps(network, arrangement, settings, int(rng.integers(2**63))):
        cells = sweep.cells
    return arrangement_of(network, cells, arrangement, settings)


def arrangement_of(
    network: RollNetwork, cells: Cells, arrangement: Arrangement, settings: GibbsSettings
) -> Arrangement:
    """Return a sampled roll as the given melody, with its own starts, and the rest as accompaniment.

    A note of the accompaniment starts where a pitch begins to sound, or where it sounds on and the network predicts a
    start (eq. 6). The cell before falls silent, as in the rolls that networks learn from, but for notes of one step.

    The cells are those of a sweep, shape (steps, 84); those of another shape than the arrangement raise
    `InvalidInputError`. Of the settings the threshold counts, and whether the accompaniment may strike pitches that the
    melody holds.
    """
    melody = arrangement.melody
    if cells.shape != melody.cells.shape:
        raise InvalidInputError(f"expected cells of shape {melody.cells.shape}, got {cells.shape}")
    meta = roll_meta(network, melody)
    with working(network), torch.inference_mode(), one_thread():
        onset_probabilities = network.onset_probabilities(torch.tensor(cells, device=meta.device), meta).cpu().numpy()
    strikes = (onset_probabilities > settings.onset_threshold) & cells
    own = cells & ~melody.cells
    if settings.restrike_melody:
        held = strikes & melody.cells & ~melody.onsets
        for step in range(1, len(cells)):  # what sounds on from there
            held[step] |= held[step - 1] & cells[step]
        own |= held
    silent = np.zeros((1, N_ROLL_PITCHES), dtype=np.bool_)
    onsets = own & (strikes | ~np.vstack([silent, own[:-1]]))
    gaps = np.vstack([onsets[1:], silent]) & ~onsets
    own = own & ~gaps
    offsets = np.vstack([silent, own[:-1]]) & ~own
    return Arrangement(melody, melody.with_notes(own, onsets, offsets))


def _sweeps(network: RollNetwork, arrangement: Arrangement, spacing: int, state: GibbsState) -> Iterator[Sweep]:
    settings = state.settings
    meta = roll_meta(network, arrangement.melody)
    sampler = _SAMPLERS[settings.sampler](network, meta, settings, spacing)
    melody = torch.tensor(arrangement.melody.cells, device=meta.device)
    for index in range(state.sweeps_done, settings.sweeps):
        plan = plan_sweep(
            settings, len(arrangement), spacing, seed=state.seed, sweep=index, since_refresh=state.since_refresh
        )
        canvas = Canvas(*(torch.tensor(cells, device=meta.device) for cells in (state.cells, state.snapshot)))
        bounds = None
        if settings.mode == "sample":
            bounds = torch.from_numpy(sweep_uniforms(len(melody), state.seed, index)).to(melody.device)
        held = melody if settings.holds_melody(index) else torch.zeros_like(melody)
        draws, counts = Draws(bounds, held), SweepCounts()
        with working(network), torch.inference_mode(), one_thread():
            if settings.imposes_melody(index):
                canvas.snapshot |= melody
                if plan.blocks[0].sequential:
                    canvas.cells |= melody
            for block in plan.blocks:
                sampler.visit(block, canvas, draws, counts)
        cells, snapshot = canvas.cells.cpu().numpy(), canvas.snapshot.cpu().numpy()
        n_changed = int((cells != state.cells).sum())
        state = dataclasses.replace(
            state, sweeps_done=index + 1, since_refresh=plan.since_refresh, cells=cells, snapshot=snapshot
        )
        accepted, passes = (
            number / counts.evaluated if counts.evaluated else float("nan")
            for number in (counts.accepted, counts.passes)
        )
        yield Sweep(index, state, float(cells.mean()), n_changed, accepted, passes, counts.closest)


@contextlib.contextmanager
def working(network: RollNetwork) -> Iterator[None]:
    """Switch dropout off meanwhile."""
    module: object = network
    was_training = isinstance(module, nn.Module) and module.training
    if isinstance(module, nn.Module):
        module.eval()
    try:
        yield
    finally:
        if isinstance(module, nn.Module):
            module.train(was_training)
