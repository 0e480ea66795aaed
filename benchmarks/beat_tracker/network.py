"""The network that hears beats: layers, targets, augmentation, training, and export of its weights.

A temporal convolutional network after Davies and Böck ("Temporal convolutional networks for musical audio beat
tracking", EUSIPCO 2019): a front end over a few frames, then residual layers whose taps lie 1, 2, 4, ... frames apart.

Deviations: levels of semitone bands and their rises instead of a spectrogram with two-dimensional convolutions, so that
inference needs matrix products only; 43 frames a second instead of 100; downbeats are learned beside beats.

Data and evaluation: README.md beside this file. Inference needs no PyTorch: ``audio.beats``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from music_evals.errors import CorruptRecordsError
from music_evals.files import write_atomically

__all__ = ["BeatTracker", "Clips", "augment", "beat_loss", "export_weights", "make_targets", "train"]

N_BANDS = 84
FLUX_LAG = 2  # frames, as in audio.beats
FRAME_RATE_HZ = 22050 / 512
WIDE_FRAMES = 2.0  # a target falls from 1 at the beat to 0 this far from it
MOST_STRETCH = 0.18  # of a clip in training, up and down
MOST_BANDS = 4  # semitones of transposition in training
LEARNING_RATE, WEIGHT_DECAY, MAX_NORM = 2e-3, 1e-4, 1.0


class Clips(NamedTuple):
    """Training clips of one length: levels (n, frames, bands), and the beats and downbeats of each in seconds."""

    levels: npt.NDArray[np.float16]
    beats: list[npt.NDArray[np.float64]]
    downbeats: list[npt.NDArray[np.float64]]


class _Block(nn.Module):
    """A residual layer: five taps, `dilation` frames apart."""

    def __init__(self, width: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.dilated = nn.Conv1d(width, width, 5, padding=2 * dilation, dilation=dilation)
        self.dropout = nn.Dropout1d(dropout)
        self.mixed = nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        mixed: Tensor = x + self.mixed(self.dropout(functional.elu(self.dilated(x))))
        return mixed


class BeatTracker(nn.Module):
    """The network.

    Parameters
    ----------
    width
        Channels of the residual layers.
    n_layers
        Residual layers; the last one's taps lie 2 ** (n_layers - 1) frames apart.
    dropout
        Share of channels that are left out in training.

    """

    def __init__(self, width: int = 32, n_layers: int = 10, dropout: float = 0.1) -> None:
        super().__init__()
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(2 * N_BANDS))
        self.register_buffer("scale", torch.ones(2 * N_BANDS))
        self.front = nn.ModuleList([nn.Conv1d(2 * N_BANDS, width, 5, padding=2), nn.Conv1d(width, width, 5, padding=2)])
        self.blocks = nn.ModuleList([_Block(width, 2**layer, dropout) for layer in range(n_layers)])
        self.head = nn.Conv1d(width, 2, 1)
        nn.init.constant_(self.head.bias, -3.0)  # type: ignore[arg-type]  # few frames are beats

    def join(self, levels: Tensor) -> Tensor:
        """Return the levels and their rises, (batch, frames, 2 * bands)."""
        rises = functional.pad((levels[:, FLUX_LAG:] - levels[:, :-FLUX_LAG]).clamp(min=0), (0, 0, FLUX_LAG, 0))
        return torch.cat([levels, rises], dim=2)

    def forward(self, levels: Tensor) -> Tensor:
        """Return the log-odds of beat and downbeat, (batch, 2, frames), from levels (batch, frames, bands)."""
        x = ((self.join(levels) - self.mean) / self.scale).transpose(1, 2)  # (batch, 2 * bands, frames)
        for layer in self.front:
            x = functional.elu(layer(x))  # (batch, width, frames)
        for block in self.blocks:
            x = block(x)
        odds: Tensor = self.head(functional.elu(x))
        return odds


def make_targets(times_sec: npt.NDArray[np.float64], n_frames: int) -> npt.NDArray[np.float32]:
    """Return 1 at each time, falling linearly to 0 two frames away from it, shape (n_frames,)."""
    targets = np.zeros(n_frames, dtype=np.float32)
    position = times_sec * FRAME_RATE_HZ
    for offset in range(-2, 4):
        frame = np.floor(position).astype(np.int64) + offset
        height = np.maximum(1 - np.abs(frame - position) / WIDE_FRAMES, 0).astype(np.float32)
        inside = (frame >= 0) & (frame < n_frames)
        np.maximum.at(targets, frame[inside], height[inside])
    return targets


def beat_loss(odds: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy of both outputs, (batch, 2, frames) each; downbeats count a third."""
    losses = functional.binary_cross_entropy_with_logits(odds, targets, reduction="none").mean(dim=(0, 2))
    total: Tensor = losses[0] + losses[1] / 3
    return total


def augment(levels: npt.NDArray[np.float32], rng: np.random.Generator) -> tuple[npt.NDArray[np.float32], float]:
    """Return a clip transposed, equalised and stretched at random, and the factor on its times; the length stays."""
    n_frames, n_bands = levels.shape
    shift = int(rng.integers(-MOST_BANDS, MOST_BANDS + 1))
    levels = np.roll(levels, shift, axis=1)
    if shift:
        levels[:, slice(0, shift) if shift > 0 else slice(shift, None)] = 0
    knots = rng.normal(0, 0.04, 6)
    curve = np.interp(np.arange(n_bands), np.linspace(0, n_bands - 1, 6), knots)
    levels = np.clip(levels + np.where(levels > 0, curve, 0), 0, 1)
    factor = float(1 + rng.uniform(-MOST_STRETCH, MOST_STRETCH)) if rng.random() < 0.6 else 1.0
    source = np.arange(n_frames) / factor
    low = np.minimum(source.astype(np.int64), n_frames - 2)
    share = (source - low)[:, None]
    stretched = levels[low] * (1 - share) + levels[low + 1] * share
    stretched[source > n_frames - 1] = 0
    return stretched.astype(np.float32), factor


def _batch(clips: Clips, rows: npt.NDArray[np.int64], rng: np.random.Generator | None) -> tuple[Tensor, Tensor]:
    """Return levels and targets of some clips, varied at random if there is a generator."""
    levels, targets = [], []
    n_frames = clips.levels.shape[1]
    for row in rows.tolist():
        level, factor = clips.levels[row].astype(np.float32), 1.0
        if rng is not None:
            level, factor = augment(level, rng)
        levels.append(level)
        targets.append([make_targets(times[row] * factor, n_frames) for times in (clips.beats, clips.downbeats)])
    return torch.from_numpy(np.stack(levels)), torch.from_numpy(np.array(targets))


def _standardise(model: BeatTracker, clips: Clips) -> None:
    """Set the mean and scale of every input from at most 200 clips."""
    levels = torch.from_numpy(clips.levels[:200].astype(np.float32))
    joined = model.join(levels).reshape(-1, 2 * N_BANDS)
    model.mean.copy_(joined.mean(dim=0))
    model.scale.copy_(joined.std(dim=0) + 1e-2)


def validation_loss(model: BeatTracker, clips: Clips, batch_size: int = 20) -> float:
    """Return the mean loss over clips as they are."""
    model.eval()
    losses = []
    with torch.no_grad():
        for start in range(0, len(clips.levels), batch_size):
            rows = np.arange(start, min(start + batch_size, len(clips.levels)))
            levels, targets = _batch(clips, rows, None)
            losses.append(float(beat_loss(model(levels), targets)) * len(rows))
    return sum(losses) / len(clips.levels)


def train(
    model: BeatTracker,
    clips: Clips,
    validation: Clips,
    folder: Path,
    *,
    n_epochs: int = 30,
    batch_size: int = 10,
    patience: int = 6,
    seed: int = 0,
    report: Callable[[dict[str, float]], None] = lambda _: None,
) -> list[dict[str, float]]:
    """Train until the epochs are over or the validation loss has not fallen for `patience` of them.

    After every epoch the state is written to ``checkpoint.safetensors`` in the folder, whole or not at all; a run that
    finds one goes on from there. What is random in an epoch depends on the seed and the epoch alone. The learning rate
    rises over the first 200 steps and falls to nothing as a half cosine. The model is left with its best weights.

    Parameters
    ----------
    model
        As it is made; its inputs are standardised here.
    clips, validation
        Disjoint.
    folder
        Of the checkpoint.
    n_epochs, batch_size, patience, seed
        Of the training.
    report
        Called with each epoch's row of the history.

    Returns
    -------
    list
        One row an epoch: epoch, training loss, validation loss, seconds.

    Raises
    ------
    CorruptRecordsError
        The checkpoint cannot be read.

    """
    folder.mkdir(parents=True, exist_ok=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    _standardise(model, clips)
    history, best = _restore(folder / "checkpoint.safetensors", model, optimizer)
    n_steps = n_epochs * -(-len(clips.levels) // batch_size)
    while len(history) < n_epochs and len(history) - _best_epoch(history) < patience:
        started, epoch = time.monotonic(), len(history)
        torch.manual_seed(1000 * seed + epoch)
        rng = np.random.default_rng([seed, epoch])
        train_loss = _train_epoch(model, optimizer, clips, batch_size, epoch, n_steps, rng)
        loss = validation_loss(model, validation)
        row = {"epoch": epoch + 1, "train_loss": train_loss, "validation_loss": loss}
        history.append(row | {"seconds": round(time.monotonic() - started, 1)})
        if _best_epoch(history) == len(history):
            best = {name: value.clone() for name, value in model.state_dict().items()}
        _keep(folder / "checkpoint.safetensors", model, optimizer, history, best)
        report(history[-1])
    model.load_state_dict(best)
    model.eval()
    return history


def _best_epoch(history: list[dict[str, float]]) -> int:
    return 1 + int(np.argmin([row["validation_loss"] for row in history])) if history else 0


def _train_epoch(  # noqa: PLR0917 - one caller, which has all of it
    model: BeatTracker,
    optimizer: torch.optim.Optimizer,
    clips: Clips,
    batch_size: int,
    epoch: int,
    n_steps: int,
    rng: np.random.Generator,
) -> float:
    model.train()
    order = rng.permutation(len(clips.levels))
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    total = 0.0
    for index, rows in enumerate(batches):
        step = epoch * len(batches) + index
        rate = LEARNING_RATE * min(1.0, (step + 1) / 200) * 0.5 * (1 + np.cos(np.pi * step / n_steps))
        for group in optimizer.param_groups:
            group["lr"] = rate
        levels, targets = _batch(clips, rows, rng)
        loss = beat_loss(model(levels), targets)
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        total += float(loss.detach()) * len(rows)
    return total / len(order)


def _keep(
    path: Path,
    model: BeatTracker,
    optimizer: torch.optim.Optimizer,
    history: list[dict[str, float]],
    best: dict[str, Tensor],
) -> None:
    from safetensors.torch import save

    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.items()}
    for index, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in values.items()}
    copies = {name: value.detach().clone().contiguous() for name, value in tensors.items()}
    write_atomically(path, save(copies, metadata={"history": json.dumps(history)}))


def _restore(
    path: Path, model: BeatTracker, optimizer: torch.optim.Optimizer
) -> tuple[list[dict[str, float]], dict[str, Tensor]]:
    """Return the history and the best weights of a checkpoint, whose state the model and optimizer are given."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        return [], {}
    try:
        with safe_open(path, framework="pt") as file:
            history = json.loads(file.metadata()["history"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        msg = f"{path} is damaged ({error}); delete it to start again"
        raise CorruptRecordsError(msg) from error

    def section(prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}

    model.load_state_dict(section("model."))
    values = optimizer.state_dict()
    for key, tensor in section("optimizer.").items():
        index, _, name = key.partition(".")
        values["state"].setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict(values)
    return history, section("best.")


def export_weights(model: BeatTracker, path: Path) -> None:
    """Write the weights in half precision, for `audio.beats`."""
    from safetensors.torch import save

    path.parent.mkdir(parents=True, exist_ok=True)
    halves = {name: value.detach().to(torch.float16).contiguous() for name, value in model.state_dict().items()}
    path.write_bytes(save(halves))
