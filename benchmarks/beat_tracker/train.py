"""Train the beat tracker on rendered mixtures, and write its weights.

First `mixtures.py` renders; then ``python -m benchmarks.beat_tracker.train FOLDER`` trains on what lies in the folder.
A run that is cut short goes on from its last finished epoch.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
import torch
from benchmarks.beat_tracker.network import BeatTracker, Clips, export_weights, train
from tqdm import tqdm

HERE = Path(__file__).resolve().parent
WEIGHTS = HERE.parents[1] / "src" / "music_evals" / "audio" / "weights" / "beat_tracker.safetensors"


def load_clips(folder: Path, split: str) -> Clips:
    """Read the shards of a split."""
    shards = [dict(np.load(path)) for path in sorted(folder.glob(f"{split}_????.npz"))]
    times = {
        kind: [part for shard in shards for part in np.split(shard[kind], np.cumsum(shard[f"n_{kind}"])[:-1])]
        for kind in ("beats", "downbeats")
    }
    return Clips(np.concatenate([shard["levels"] for shard in shards]), times["beats"], times["downbeats"])


def main() -> None:
    """Train, write the history beside this file and the weights into the package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    model = BeatTracker(options.width)
    clips, validation = load_clips(options.folder, "train"), load_clips(options.folder, "validation")
    bar = tqdm(total=options.epochs, unit="epoch")

    def report(row: dict[str, float]) -> None:
        bar.update(int(row["epoch"]) - bar.n)
        bar.write("  ".join(f"{name} {value:.4g}" for name, value in row.items()))

    run = options.folder / f"run_{options.width}_{options.seed}"
    history = train(model, clips, validation, run, n_epochs=options.epochs, seed=options.seed, report=report)
    export_weights(model, options.out)
    with (HERE / "training_log.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(history[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(history)


if __name__ == "__main__":
    main()
