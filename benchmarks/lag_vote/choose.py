"""Choose the constants of the baseline ``lag_vote`` on the validation split, by mean `note_f1`.

Usage: python benchmarks/lag_vote/choose.py

Writes results.csv beside itself, best setting first, and says whether the best one is the default of
`music_evals.models.layers.lag_votes.Votes`. The test split is never read.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import itertools
from pathlib import Path

import numpy as np
from datasets import load_dataset
from tqdm import tqdm

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.metrics.inpainting import note_f1, position_score
from music_evals.models.layers.lag_votes import LAG_VOTE, Votes, decode_expected_f1, lag_marginals

ROOT = Path(__file__).resolve().parents[2]
GRID = {
    "kernel_steps": (36.0, 72.0, 144.0),
    "sharpness": (6.0, 8.0, 10.0, 15.0, 30.0),
    "shrinkage": (0.125, 0.25, 0.5, 1.0, 2.0),
    "farthest_quarters": (24, 32, 39),
}


def settings() -> list[Votes]:
    """Return every combination of the grid."""
    return [Votes(**dict(zip(GRID, values, strict=True))) for values in itertools.product(*GRID.values())]


def score(contexts: Tokens, votes: Votes) -> dict[str, float]:
    """Return the mean scores of one setting."""
    middles = decode_expected_f1(lag_marginals(contexts, votes))
    truth = contexts[:, MUSIB_LAYOUT.middle]
    return {
        "note_f1": float(np.mean(note_f1(truth, middles))),
        "position_score": float(np.mean(position_score(truth, middles))),
    }


def validation_contexts() -> Tokens:
    """Return the validation windows of `musib`, shape (232, 384)."""
    dataset = load_dataset(str(ROOT / "datasets_scripts" / "jsb_chorales"), "musib", split="validation")
    return np.stack(dataset.with_format("numpy")[:]["tokens"]).astype(np.uint8)


def main() -> None:
    """Score every setting, write the table, name the best."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results.csv"))
    options = parser.parse_args()
    contexts = validation_contexts()
    rows = [(votes, score(contexts, votes)) for votes in tqdm(settings())]
    rows.sort(key=lambda row: -row[1]["note_f1"])  # stable: of equals the first of the grid
    with options.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*GRID, "note_f1", "position_score"])
        for votes, scores in rows:
            writer.writerow([*dataclasses.astuple(votes), *(f"{value:.4f}" for value in scores.values())])
    best, scores = rows[0]
    print(f"best of {len(rows)}: {best}, note F1 {scores['note_f1']:.3f}, position {scores['position_score']:.3f}")
    print("it is the default" if best == LAG_VOTE else f"the default is {LAG_VOTE}")


if __name__ == "__main__":
    main()
