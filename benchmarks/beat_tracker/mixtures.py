"""Render the mixtures that the beat tracker is trained on, and keep their features and beats in a folder.

Run it in as many processes as there are cores, each with its own --part; they share nothing but the folder.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np
from benchmarks.extractor_training.mixtures import make_mixture
from tqdm import tqdm

from music_evals.audio.beats import beat_features
from music_evals.audio.io import Audio
from music_evals.files import write_atomically

SEEDS = {"train": 11, "validation": 12, "test": 13}  # of make_mixture: no two splits share a mixture
SHARD = 40  # mixtures in a file


def render_shard(split: str, number: int, folder: Path) -> None:
    """Write levels, beats, downbeats and what they are of, as one file; nothing if it is there already."""
    path = folder / f"{split}_{number:04d}.npz"
    if path.exists():
        return
    levels, beats, downbeats, drums, renderers, sources = [], [], [], [], [], []
    for index in range(number * SHARD, (number + 1) * SHARD):
        renderer = "additive" if index % 4 else "fluidsynth"
        mixture = make_mixture(index, renderer=renderer, seed=SEEDS[split], cache=folder)
        levels.append(beat_features(Audio(mixture.samples)).astype(np.float16))
        beats.append(mixture.beats.times_sec)
        downbeats.append(mixture.downbeats_sec)
        drums.append(mixture.has_drums)
        renderers.append(renderer)
        sources.append(mixture.source)
    buffer = io.BytesIO()
    np.savez(
        buffer,
        levels=np.stack(levels),
        beats=np.concatenate(beats),
        n_beats=[len(times) for times in beats],
        downbeats=np.concatenate(downbeats),
        n_downbeats=[len(times) for times in downbeats],
        drums=drums,
        renderers=renderers,
        sources=sources,
    )
    write_atomically(path, buffer.getvalue())


def main() -> None:
    """Render every shard of this part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=int, default=20, help="shards of 40 mixtures for training")
    parser.add_argument("--validation", type=int, default=3)
    parser.add_argument("--test", type=int, default=3)
    parser.add_argument("--part", default="0/1", help="this process's part of the work, as in 0/2 and 1/2")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    shards = [
        (split, number)
        for number in range(max(options.train, options.validation, options.test))
        for split in SEEDS
        if number < getattr(options, split)
    ]
    part, n_parts = (int(number) for number in options.part.split("/"))
    for split, number in tqdm(shards[part::n_parts], unit="shard"):
        render_shard(split, number, options.folder)


if __name__ == "__main__":
    main()
