"""The network that follows the melody of a mixture: layers, loss, augmentation and export to ONNX.

It reads the levels of a constant-Q transform of 36 bins an octave and says, for every frame, which of 61 semitones the
melody is at, whether it rests, and whether a note of it begins. Three parts, in the order of the data:

- **local**: the partials of a pitch are stacked as channels (Bittner et al., "Deep salience representations for F0
  estimation in polyphonic music", ISMIR 2017), so that one filter serves all pitches; full frame rate.
- **context**: a quarter of the frame rate; dilated over three seconds and wide in pitch. Who leads is a matter of
  context: a first guess of the melody is pooled into a vector of how the lead sounds, over the whole excerpt and around
  each frame, and every pitch is compared with it.
- **fine**: both together, at the full frame rate again.

Training and evaluation: README.md beside this file. Inference needs no PyTorch: ``audio.melody_net``.
"""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = [
    "HOP_REDUCTION",
    "LOWEST_PITCH",
    "N_PITCHES",
    "UNVOICED",
    "MelodyTracker",
    "Predictions",
    "Targets",
    "augment",
    "export_onnx",
    "inconsistency",
    "make_targets",
    "tracking_loss",
]

LOWEST_PITCH = 36  # MIDI, C2
N_PITCHES = 61  # up to C7
UNVOICED = N_PITCHES  # the class after the last pitch
BINS_PER_SEMITONE = 3
LOWEST_BIN_PITCH = 24  # MIDI pitch of bin 0
N_BINS = 288
HARMONICS = (0.5, 1, 2, 3, 4, 5, 6, 8)  # times the fundamental; the half gives octave errors away
ONSET_WEIGHT = 3.0  # of a frame with an onset in the loss, which is rare; taken back where probabilities are wanted
NEAR = 0.7  # semitones around a note that a voice may move and still be heard as it: most vibrato, no glide
RARE = -6.0  # logit of an onset before training: one in four hundred pitches and frames
REST_WIDTH = 32  # channels of the branch that says whether there is a melody
HOP_REDUCTION = 4  # frames of the input a frame of the context


class Targets(NamedTuple):
    """What the network should say of excerpts: classes (batch, time) 0..61, onsets (batch, 61, time) in 0..1."""

    classes: Tensor
    onsets: Tensor


class Predictions(NamedTuple):
    """Logits: classes (batch, 62, time), onsets (batch, 61, time), first guess (batch, 62, time // 4)."""

    classes: Tensor
    onsets: Tensor
    guess: Tensor


class _Conv(nn.Module):
    """Convolution over (pitch, time), batch normalisation, ReLU; keeps the size but for a stride in time."""

    def __init__(
        self, n_in: int, n_out: int, kernel: tuple[int, int], *, stride: int = 1, dilation: int = 1, groups: int = 1
    ) -> None:
        super().__init__()
        padding = (kernel[0] // 2, kernel[1] // 2 * dilation)
        self.conv = nn.Conv2d(n_in, n_out, kernel, (1, stride), padding, (1, dilation), groups, bias=False)
        self.norm = nn.BatchNorm2d(n_out)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.norm(self.conv(x)))


class _Block(nn.Module):
    """A residual step of the context: wide in pitch, dilated in time."""

    def __init__(self, width: int, dilation: int, reach: int) -> None:
        super().__init__()
        self.across = _Conv(width, width, (2 * reach + 1, 1), groups=width)
        self.along = _Conv(width, width, (3, 3), dilation=dilation)

    def forward(self, x: Tensor) -> Tensor:
        mixed: Tensor = x + self.along(x + self.across(x))
        return mixed


class _Lead(nn.Module):
    """Compares every pitch with how the lead sounds, by a first guess of where it is."""

    def __init__(self, width: int, window: int) -> None:
        super().__init__()
        self.guess = _Voicing(width)
        self.query = nn.Sequential(nn.Conv2d(2 * width, width, 1), nn.ReLU(), nn.Conv2d(width, width, 1))
        self.mix = nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 1))
        self.window = window

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        guess = self.guess(x)  # (batch, 62, time)
        weights = torch.softmax(guess.float(), dim=1)[:, None, :N_PITCHES]  # (batch, 1, 61, time)
        # how the lead sounds in each frame, as often as there is one
        sound = (weights * x).sum(dim=2, keepdim=True)  # (batch, width, 1, time)
        share = weights.sum(dim=2, keepdim=True)
        smooth = nn.AvgPool2d((1, self.window), 1, (0, self.window // 2), count_include_pad=False)
        near = smooth(sound) / (smooth(share) + 0.01)
        whole = sound.mean(dim=3, keepdim=True) / (share.mean(dim=3, keepdim=True) + 0.01)
        query = self.query(torch.cat([near, whole.expand_as(near)], dim=1))
        return x + self.mix(x * query), guess


class _Voicing(nn.Module):
    """Logits of the pitches and of their absence, (batch, 62, time), from (batch, width, 61, time).

    Whether there is a melody is a matter of all pitches, of the likeliest one, and of what was heard around: its branch
    sees their mean, their maximum and how the likeliest sounds, over as many frames as its dilations reach.
    """

    def __init__(self, width: int, dilations: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.pitch = nn.Conv2d(width, 1, 1)
        self.first = nn.Conv1d(3 * width, REST_WIDTH, 5, padding=2)
        self.along = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm1d(REST_WIDTH), nn.Conv1d(REST_WIDTH, REST_WIDTH, 3, padding=d, dilation=d), nn.ReLU()
            )
            for d in dilations
        )
        self.last = nn.Conv1d(REST_WIDTH, 1, 5, padding=2)

    def forward(self, x: Tensor) -> Tensor:
        pitch = self.pitch(x)  # (batch, 1, 61, time)
        likeliest = (torch.softmax(pitch.float(), dim=2) * x).sum(dim=2)
        rest = functional.relu(self.first(torch.cat([x.mean(dim=2), x.amax(dim=2), likeliest], dim=1)))
        for step in self.along:
            rest = rest + step(rest)
        return torch.cat([pitch[:, 0], self.last(rest)], dim=1)


class MelodyTracker(nn.Module):
    """The network.

    Parameters
    ----------
    local_width, width
        Channels at full frame rate, and of the context.
    dilations
        Of the blocks before and after the comparison with the lead, in frames of the context.
    reach
        Semitones up and down that a block sees.
    window
        Frames of the context over which the sound of the lead is pooled around each frame; odd.
    rest_dilations
        Of the branch that says whether there is a melody, in frames.

    """

    def __init__(
        self,
        *,
        local_width: int = 16,
        width: int = 48,
        dilations: tuple[tuple[int, ...], tuple[int, ...]] = ((1, 2, 4, 8), (1, 2, 4, 8)),
        reach: int = 14,
        window: int = 65,
        rest_dilations: tuple[int, ...] = (1, 2, 4, 8, 16),
    ) -> None:
        super().__init__()
        self.register_buffer("partials", _partials(), persistent=False)
        n_partials = BINS_PER_SEMITONE * len(HARMONICS)
        self.local = nn.Sequential(_Conv(n_partials, local_width, (1, 3)), _Conv(local_width, local_width, (3, 3)))
        self.down = _Conv(n_partials, width, (3, 5), stride=HOP_REDUCTION)
        self.before = nn.Sequential(*(_Block(width, dilation, reach) for dilation in dilations[0]))
        self.lead = _Lead(width, window)
        self.after = nn.Sequential(*(_Block(width, dilation, reach) for dilation in dilations[1]))
        self.up = nn.Conv2d(width, local_width, 1)
        self.fine = nn.Sequential(_Conv(local_width, local_width, (3, 3)), _Conv(local_width, local_width, (1, 5)))
        self.voicing = _Voicing(local_width, rest_dilations)
        self.onset = nn.Conv2d(local_width, 1, (1, 3), padding=(0, 1))
        nn.init.constant_(self.onset.bias, RARE)  # type: ignore[arg-type]

    def forward(self, levels: Tensor) -> Predictions:
        """Return logits for levels (batch, 288, time); time must be a multiple of `HOP_REDUCTION`."""
        partials: Tensor = self.partials  # type: ignore[assignment]
        padded = functional.pad(levels, (0, 0, 0, int(_partials().max()) + 1 - N_BINS))
        x = padded[:, partials.flatten()].reshape(len(levels), *partials.shape, -1)  # (batch, 24, 61, time)
        local = self.local(x)  # (batch, local_width, 61, time)
        x = self.before(self.down(x))  # (batch, width, 61, time / 4)
        x, guess = self.lead(x)
        x = self.up(self.after(x))
        x = functional.interpolate(x, scale_factor=(1.0, float(HOP_REDUCTION)), mode="nearest")
        x = self.fine(local + x)
        return Predictions(self.voicing(x), self.onset(x)[:, 0], guess)


def _partials() -> Tensor:
    """Return the bins of the partials of each pitch, shape (24, 61); those above the last bin read silence."""
    rows = [
        [
            BINS_PER_SEMITONE * (pitch - LOWEST_BIN_PITCH) + side + round(36 * math.log2(harmonic))
            for pitch in range(LOWEST_PITCH, LOWEST_PITCH + N_PITCHES)
        ]
        for harmonic in HARMONICS
        for side in (-1, 0, 1)
    ]
    return torch.tensor(rows).clamp(min=0)  # a third of a semitone below the first bin is read as the first


def tracking_loss(
    predictions: Predictions,
    targets: Targets,
    *,
    onset_weight: float = 0.5,
    guess_weight: float = 0.2,
    voicing_weight: float = 0.5,
) -> Tensor:
    """Return the mean loss of a batch: nats a frame of the classes, plus the other terms by their weights.

    An onset's cross-entropy is summed over pitches, so that it too is in nats a frame. The voicing is judged once more
    by itself, whatever the pitch.
    """
    said = predictions.classes.float()
    classes = functional.cross_entropy(said, targets.classes)
    onsets = functional.binary_cross_entropy_with_logits(
        predictions.onsets.float(), targets.onsets, reduction="none", pos_weight=torch.tensor(ONSET_WEIGHT)
    )
    guess = functional.cross_entropy(predictions.guess.float(), targets.classes[:, ::HOP_REDUCTION])
    known = targets.classes >= 0
    voiced = said[:, :N_PITCHES].logsumexp(dim=1) - said[:, UNVOICED]
    voicing = functional.binary_cross_entropy_with_logits(voiced[known], (targets.classes != UNVOICED).float()[known])
    return classes + onset_weight * onsets.sum(dim=1).mean() + guess_weight * guess + voicing_weight * voicing


def inconsistency(one: Predictions, other: Predictions) -> Tensor:
    """Return how far apart two recordings of the same music are heard: nats a frame, by both directions of KL."""
    p, q = (said.classes.float().log_softmax(dim=1) for said in (one, other))
    apart = functional.kl_div(p, q, reduction="none", log_target=True)
    apart = apart + functional.kl_div(q, p, reduction="none", log_target=True)
    return 0.5 * apart.sum(dim=1).mean()


FloatArray = npt.NDArray[np.float64]
Levels = npt.NDArray[np.float32]


def make_targets(
    intervals_sec: FloatArray, pitches: FloatArray, n_frames: int, hop_sec: float, sounding: FloatArray | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return what the network should say of a melody: classes (n_frames,) and onsets (61, n_frames).

    Frame t is centred at ``t * hop_sec``. A note outside the pitches of the network is left out of the loss (-100). An
    onset is a hat of three frames, as an exact frame cannot be heard; that of a note before the first frame is none.

    Parameters
    ----------
    intervals_sec
        Onset and offset of each note, shape (n, 2).
    pitches
        MIDI numbers, shape (n,).
    n_frames, hop_sec
        The grid.
    sounding
        The pitch of each frame, shape (n_frames,), NaN where none sounds, of a melody that does not keep to the pitches
        of its notes. A frame is of its note as long as it is within `NEAR` semitones, else of the nearest semitone.

    """
    classes = np.full(n_frames, UNVOICED, dtype=np.int64)
    onsets = np.zeros((N_PITCHES, n_frames), dtype=np.float32)
    silent = np.zeros(n_frames, dtype=bool) if sounding is None else np.isnan(sounding)
    for (start, end), pitch in zip(intervals_sec / hop_sec, np.rint(pitches).astype(int) - LOWEST_PITCH, strict=True):
        first, last = max(0, math.ceil(start)), max(0, math.ceil(end))
        if silent[first:last].all():
            continue  # so short that nothing of it sounds
        inside = 0 <= pitch < N_PITCHES
        classes[first:last] = pitch if inside else -100
        if inside:
            frames = np.arange(max(0, math.floor(start) - 1), min(n_frames, math.floor(start) + 3))
            onsets[pitch, frames] = np.maximum(onsets[pitch, frames], 1 - np.abs(frames - start) / 1.5)
    if sounding is not None:
        place = np.where(silent, 0.0, sounding) - LOWEST_PITCH
        nearest = np.rint(place).astype(np.int64)
        nearest = np.where((nearest >= 0) & (nearest < N_PITCHES), nearest, -100)
        is_of_note = (classes >= 0) & (classes < N_PITCHES) & (np.abs(place - classes) <= NEAR)
        classes = np.where(silent, UNVOICED, np.where(is_of_note, classes, nearest))
    return classes, onsets


def augment(recordings: Levels, *, lowest: int, highest: int, rng: np.random.Generator) -> tuple[Levels, int]:
    """Vary recordings of one performance: transposed alike; each louder or softer, by another loudspeaker, in noise.

    Parameters
    ----------
    recordings
        Shape (n, 288, n_frames); 1 = the reference level, 0 = 80 dB below it.
    lowest, highest
        Range of the melody in MIDI pitches; it stays within the pitches of the network.
    rng
        The source of randomness.

    Returns
    -------
    tuple
        New levels, and by how many semitones they were moved up. One in two is a third of a semitone off, too.

    """
    down = min(5, max(0, lowest - LOWEST_PITCH))
    up = min(5, max(0, LOWEST_PITCH + N_PITCHES - 1 - highest))
    semitones = int(rng.integers(-down, up, endpoint=True))
    bins_up = BINS_PER_SEMITONE * semitones + int(rng.choice((-1, 0, 0, 1)))
    moved = np.roll(recordings, bins_up, axis=1)
    moved[:, slice(0, bins_up) if bins_up > 0 else slice(N_BINS + bins_up, N_BINS)] = 0
    return np.stack([_heard_again(levels, rng) for levels in moved]), semitones


def _heard_again(levels: Levels, rng: np.random.Generator) -> Levels:
    """Return levels of one recording with another equaliser, and half of the time with noise."""
    bins = np.linspace(0, 1, N_BINS, dtype=np.float32)[:, None]
    decibels = np.float32(rng.uniform(-6, 6)) + np.float32(rng.uniform(-12, 12)) * (bins - 0.4)
    for waves in (1, 2, 4):
        decibels += rng.normal(0, 1.5) * np.cos(2 * np.pi * (waves * bins + rng.random()))
    varied: Levels = (levels + decibels / 80).astype(np.float32)
    if rng.random() < 0.5:
        varied = _add_noise(varied, rng)
    return np.clip(varied, 0, 1.3)


def _add_noise(levels: Levels, rng: np.random.Generator) -> Levels:
    """Add noise of a random level and slope, in power."""
    slope = rng.uniform(-40, 20) * (np.linspace(0, 1, N_BINS)[:, None] - 0.5)
    power = 10 ** ((rng.uniform(-65, -25) + slope) / 10) * rng.standard_exponential(levels.shape, dtype=np.float32)
    total: Levels = (1 + np.log10(10 ** (8 * (levels - 1)) + power) / 8).astype(np.float32)
    return total


def export_onnx(network: MelodyTracker, path: Path) -> None:
    """Write the network for onnxruntime: input ``levels`` (1, 288, time), outputs ``classes`` and ``onsets``.

    The first guess serves training only and is left out of the file. Onsets weigh `ONSET_WEIGHT` times too much in the
    loss; the logits in the file make up for it, so that they are those of probabilities.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, about itself
        torch.onnx.export(
            _Exported(network).eval(),
            (torch.zeros(1, N_BINS, 64),),
            str(path),
            input_names=["levels"],
            output_names=["classes", "onsets"],
            dynamic_axes={name: {2: "time"} for name in ("levels", "classes", "onsets")},
            opset_version=17,
            dynamo=False,  # the newer exporter needs onnxscript
        )


class _Exported(nn.Module):
    """The network as a file holds it: two outputs, as a plain tuple."""

    def __init__(self, network: MelodyTracker) -> None:
        super().__init__()
        self.network = network

    def forward(self, levels: Tensor) -> tuple[Tensor, Tensor]:
        predictions = self.network(levels)
        return predictions.classes, predictions.onsets - math.log(ONSET_WEIGHT)
