"""Train the melody network: render mixtures, train, export. See README.md beside this file.

::

    python -m benchmarks.melody_tracker.train features --cache CACHE --first 0 --count 2000
    python -m benchmarks.melody_tracker.train fit --cache CACHE --out RUN
    python -m benchmarks.melody_tracker.train export --out RUN
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from benchmarks.melody_tracker.network import (
    LOWEST_PITCH,
    N_PITCHES,
    UNVOICED,
    MelodyTracker,
    Predictions,
    Targets,
    augment,
    export_onnx,
    inconsistency,
    make_targets,
    tracking_loss,
)
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from music_evals.audio.io import Audio
from music_evals.audio.melody_net import levels
from music_evals.audio.spectra import HOP_LENGTH, constant_q
from music_evals.files import written_whole

HOP_SEC = HOP_LENGTH / 22050
WEIGHTS = Path(__file__).resolve().parents[2] / "src" / "music_evals" / "audio" / "weights"

SEED = 7
DATA_SEED = 21  # of the mixtures
CROP = 512  # frames, 11.9 s
BATCH = 4  # mixtures; each is heard in two recordings
CONSISTENCY = 0.3  # weight of what two recordings of one performance are heard apart
STEPS = 9000
EPOCH = 300  # steps between validations
PEAK_RATE = 2e-3
WARMUP = 100  # steps
WEIGHT_DECAY = 0.01
AVERAGING = 0.998  # of the weights that are validated and exported
PATIENCE = 8  # epochs
VALIDATION = 80  # mixtures


class Clip(NamedTuple):
    """Recordings of a mixture, levels (2, 288, n_frames), the notes of its melody, and its pitch in each frame.

    `sounding` has the MIDI pitch of a melody that was performed, NaN where none sounds, shape (n_frames,); it is None
    where the melody keeps to the pitches of its notes.
    """

    levels: np.ndarray
    intervals_sec: np.ndarray
    pitches: np.ndarray
    sounding: np.ndarray | None


def compute_features(cache: Path, indices: range, tunes: Path) -> None:
    """Render mixtures and keep what the network hears of them; those that are there already are left alone.

    Every second has a melody that is performed. Each is recorded twice: in another room, through another codec.
    """
    from benchmarks.extractor_training.mixtures import LEADS, SAMPLE_RATE, make_mixture
    from benchmarks.extractor_training.recording import degrade

    cache.mkdir(parents=True, exist_ok=True)
    for index in tqdm(indices, desc="features"):
        path = cache / f"{index:06d}.npz"
        if path.exists():
            continue
        lead = LEADS[index % 2]
        mixture = make_mixture(index, lead=lead, seed=DATA_SEED, cache=tunes, is_raw=True)
        if not mixture.samples.any():
            continue  # nothing plays: there is no level to go by
        rng = np.random.default_rng([DATA_SEED, index, 1])
        takes = [degrade(mixture.samples, SAMPLE_RATE, rng) for _ in range(2)]
        heard = np.stack([levels(constant_q(Audio(take / max(float(np.abs(take).max()), 1e-9)))) for take in takes])
        arrays = {
            "levels": heard.astype(np.float16),
            "intervals": mixture.melody.intervals_sec,
            "pitches": mixture.melody.pitches,
        }
        if mixture.f0 is not None:
            with np.errstate(divide="ignore"):
                pitch = 69 + 12 * np.log2(mixture.f0.frequencies_hz / 440)
            arrays["sounding"] = np.where(np.isfinite(pitch), pitch, np.nan)[: heard.shape[2]]
        _write_whole(path, lambda file, arrays=arrays: np.savez(file, **arrays))


def _write_whole(path: Path, write: Any) -> None:
    """Write a file under another name first: it is there whole or not at all."""
    with written_whole(path) as part, part.open("wb") as file:
        write(file)


def read_clip(path: Path) -> Clip:
    """Read what `compute_features` wrote."""
    with np.load(path) as arrays:
        sounding = arrays.get("sounding")
        return Clip(arrays["levels"], arrays["intervals"], arrays["pitches"], sounding)


def crop(clip: Clip, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut an excerpt, play it faster or slower, and vary its sound; return levels (2, 288, CROP), classes, onsets."""
    speed = float(np.exp(rng.uniform(-0.2, 0.2))) if rng.random() < 0.6 else 1.0
    spare = clip.levels.shape[2] - CROP * speed
    start = rng.uniform(0, spare) if spare > 0 else 0.0
    frames = start + speed * np.arange(CROP)
    heard = _resample(clip.levels, frames)
    intervals = (clip.intervals_sec - start * HOP_SEC) / speed
    inside = (intervals[:, 1] > 0) & (intervals[:, 0] < CROP * HOP_SEC)
    intervals, pitches = intervals[inside], clip.pitches[inside]
    low, high = (int(pitches.min()), int(pitches.max())) if len(pitches) else (LOWEST_PITCH, LOWEST_PITCH)
    heard, semitones = augment(heard, lowest=low, highest=high, rng=rng)
    sounding = None
    if clip.sounding is not None:
        near = np.rint(frames).astype(int)
        read = clip.sounding[np.minimum(near, len(clip.sounding) - 1)]
        sounding = np.where(near < len(clip.sounding), read, np.nan) + semitones
    classes, onsets = make_targets(intervals, pitches + semitones, CROP, HOP_SEC, sounding)
    return heard, classes, onsets


def _resample(values: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Read frames between frames; silence beyond the end."""
    padded = np.pad(values, ((0, 0), (0, 0), (0, max(0, math.ceil(positions[-1]) + 2 - values.shape[2]))))
    left = positions.astype(int)
    share = (positions - left).astype(np.float32)
    return padded[..., left].astype(np.float32) * (1 - share) + padded[..., left + 1].astype(np.float32) * share


def batches(paths: list[Path], steps: range) -> Iterator[tuple[Tensor, Targets]]:
    """Yield the batch of each step, the second recordings behind the first; it depends on seed and step alone."""
    for step in steps:
        rng = np.random.default_rng([SEED, step])
        clips = [read_clip(paths[i]) for i in rng.integers(0, len(paths), BATCH)]
        parts = [crop(clip, rng) for clip in clips]
        heard, classes, onsets = (torch.from_numpy(np.stack(part)) for part in zip(*parts, strict=True))
        both = heard.transpose(0, 1).flatten(0, 1)
        yield both, Targets(classes.repeat(2, 1), onsets.repeat(2, 1, 1))


class Run:
    """A training run: network, its moving average, optimiser, history and checkpoint."""

    def __init__(self, out: Path, steps: int) -> None:
        torch.manual_seed(SEED)
        self.out, self.steps, self.step = out, steps, 0
        # with channels last a step takes a fifth less time on the processors tried
        self.network = MelodyTracker().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.average = AveragedModel(self.network, multi_avg_fn=get_ema_multi_avg_fn(AVERAGING), use_buffers=True)
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=PEAK_RATE, weight_decay=WEIGHT_DECAY)
        self.history: list[dict[str, float]] = []
        out.mkdir(parents=True, exist_ok=True)
        if (out / "checkpoint.safetensors").exists():
            self._restore()

    def train(self, paths: list[Path], last: int) -> float:
        """Train up to a step; return the mean loss."""
        self.network.train()
        total, first = 0.0, self.step
        bar = tqdm(batches(paths, range(first, last)), total=last - first, desc=f"step {first}", mininterval=10)
        for heard, targets in bar:
            for group in self.optimizer.param_groups:
                group["lr"] = self._rate()
            predictions = self.network(heard)
            one, other = (Predictions(*part) for part in zip(*(said.chunk(2) for said in predictions), strict=True))
            loss = tracking_loss(predictions, targets) + CONSISTENCY * inconsistency(one, other)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            self.optimizer.step()
            self.average.update_parameters(self.network)
            self.step += 1
            total += float(loss.detach())
            bar.set_postfix(loss=f"{total / (self.step - first):.3f}", refresh=False)
        return total / max(1, last - first)

    def _rate(self) -> float:
        if self.step < WARMUP:
            return PEAK_RATE * (self.step + 1) / WARMUP
        return PEAK_RATE * (1 + math.cos(math.pi * (self.step - WARMUP) / max(1, self.steps - WARMUP))) / 2 + 1e-6

    def validate(self, clips: list[Clip]) -> dict[str, float]:
        """Return loss and frame accuracies of the averaged network on whole mixtures."""
        self.average.eval()
        loss, pitch, found, voiced, rests, right = 0.0, 0, 0, 0, 0, 0
        with torch.no_grad():
            for clip in clips:
                n = clip.levels.shape[2] // 4 * 4
                sounding = None if clip.sounding is None else clip.sounding[:n]
                classes, onsets = make_targets(clip.intervals_sec, clip.pitches, n, HOP_SEC, sounding)
                truth = Targets(torch.from_numpy(classes)[None], torch.from_numpy(onsets)[None])
                said = self.average(torch.from_numpy(clip.levels[:1, :, :n].astype(np.float32)))
                loss += float(tracking_loss(said, truth)) / len(clips)
                scores = said.classes[0].float().numpy()
                sounding, silent = (classes >= 0) & (classes < N_PITCHES), classes == UNVOICED
                pitch += int((scores[:N_PITCHES].argmax(axis=0) == classes)[sounding].sum())
                found += int((scores.argmax(axis=0) != UNVOICED)[sounding].sum())
                right += int((scores.argmax(axis=0) == UNVOICED)[silent].sum())
                voiced, rests = voiced + int(sounding.sum()), rests + int(silent.sum())
        return {
            "loss": loss,
            "raw_pitch_accuracy": pitch / voiced,
            "voicing_recall": found / voiced,
            "rests_found": right / max(1, rests),
        }

    def save(self) -> None:
        """Write the checkpoint, whole or not at all; keep the best average beside it."""
        tensors = {f"model.{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {f"average.{name}": value for name, value in self.average.state_dict().items()}
        for index, values in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": value for name, value in values.items()}
        state = json.dumps({"step": self.step, "history": self.history})
        data = save({name: value.clone().contiguous() for name, value in tensors.items()}, metadata={"state": state})
        # before the checkpoint: a run that is killed between them does an epoch again, and loses nothing
        if self.history[-1]["loss"] == min(row["loss"] for row in self.history):
            best = save({name: value.clone().contiguous() for name, value in self.average.module.state_dict().items()})
            _write_whole(self.out / "best.safetensors", lambda file: file.write(best))
        _write_whole(self.out / "checkpoint.safetensors", lambda file: file.write(data))
        with (self.out / "log.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(self.history[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.history)

    def _restore(self) -> None:
        with safe_open(self.out / "checkpoint.safetensors", framework="pt") as file:
            state = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        self.step, self.history = state["step"], state["history"]
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "average": {}, "optimizer": {}}
        for name, value in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = value
        self.network.load_state_dict(parts["model"])
        self.average.load_state_dict(parts["average"])
        values = self.optimizer.state_dict()
        for name, value in parts["optimizer"].items():
            index, _, key = name.partition(".")
            values["state"].setdefault(int(index), {})[key] = value
        self.optimizer.load_state_dict(values)


def fit(cache: Path, out: Path, steps: int) -> None:
    """Train until `steps`, or until the validation loss has not fallen for `PATIENCE` epochs."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    validation = [read_clip(path) for path in sorted((cache / "validation").glob("*.npz"))[:VALIDATION]]
    run = Run(out, steps)
    while run.step < steps:
        started = time.monotonic()
        paths = sorted((cache / "train").glob("*.npz"))  # features may still be growing
        train_loss = run.train(paths, min(steps, run.step + EPOCH))
        row = {"step": run.step, "clips": len(paths), "train_loss": train_loss, **run.validate(validation)}
        run.history.append({**row, "seconds": round(time.monotonic() - started, 1)})
        run.save()
        print(json.dumps(run.history[-1]), flush=True)
        losses = [entry["loss"] for entry in run.history]
        if len(losses) - losses.index(min(losses)) > PATIENCE:
            break


def export(out: Path, folder: Path) -> None:
    """Write the best weights as ONNX, and a receipt beside them."""
    from safetensors.torch import load_file

    network = MelodyTracker()
    network.load_state_dict(load_file(out / "best.safetensors"))
    path = folder / "melody_performed.onnx"
    part = path.with_suffix(".part")
    export_onnx(network, part)
    part.replace(path)
    with safe_open(out / "checkpoint.safetensors", framework="pt") as file:
        history = json.loads(file.metadata()["state"])["history"]
    receipt = {
        "recipe": "benchmarks/melody_tracker/train.py",
        "seed": SEED,
        "batch": BATCH,
        "crop_frames": CROP,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "best": min(history, key=lambda row: row["loss"]),
        "last_step": history[-1]["step"],
        "seconds": round(sum(row["seconds"] for row in history)),
        "torch": torch.__version__,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    path.with_suffix(".json").write_text(json.dumps(receipt, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Run one of the three steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=["features", "fit", "export"])
    parser.add_argument("--cache", type=Path, help="folder of the features")
    parser.add_argument("--part", choices=["train", "validation"], default="train")
    parser.add_argument("--out", type=Path, help="folder of the run")
    parser.add_argument("--weights", type=Path, default=WEIGHTS, help="where export writes")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    if options.step == "features":
        compute_features(
            options.cache / options.part, range(options.first, options.first + options.count), options.cache
        )
    elif options.step == "fit":
        fit(options.cache, options.out, options.steps)
    else:
        export(options.out, options.weights)


if __name__ == "__main__":
    main()
