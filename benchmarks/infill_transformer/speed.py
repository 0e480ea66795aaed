"""How long the infill transformer takes for the test windows of the chorales, with all cores.

Usage: python -m benchmarks.infill_transformer.speed models/infill_transformer

Prints the seconds of `best`, of five samples, of the rule `lag_vote` on the same windows, and of one candidate for one
gap. Seconds are of this machine; the rule beside them says how fast it is.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.musib.systems import ROOT

from music_evals.annotations import Tokens
from music_evals.benchmark.tasks.inpainting.items import load_items
from music_evals.models.baselines import make_baseline
from music_evals.models.infill_transformer import InfillTransformer
from music_evals.symbolic.noteseq import mask_middle


def seconds(fill: Callable[[], Any]) -> float:
    """Return how long a call takes, after one that warms up."""
    fill()
    began = time.perf_counter()
    fill()
    return time.perf_counter() - began


def filling(model: Any, contexts: Tokens, decoding: str | None = None, samples: int = 1) -> Callable[[], None]:
    """Return a call that fills the windows some times."""

    def fill() -> None:
        if decoding is not None:
            model.decoding = decoding
        for seed in range(samples):
            model.inpaint(contexts, rng=np.random.default_rng(seed))

    return fill


def main(arguments: Sequence[str] | None = None) -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder with config.json and model.safetensors")
    parser.add_argument("--windows", type=int, help="the first ones alone (default: all 308)")
    options = parser.parse_args(arguments)
    data = str(ROOT / "datasets_scripts/jsb_chorales")
    contexts = mask_middle(load_items(data, "musib", "test").contexts[: options.windows])
    model = InfillTransformer.from_pretrained(str(options.model))
    rule = make_baseline("lag_vote", load_items(data, "musib", "train").contexts)
    print(f"{len(contexts)} windows, {torch.get_num_threads()} threads")
    for name, fill in {
        "lag_vote": filling(rule, contexts),
        "best": filling(model, contexts, "best"),
        "five samples": filling(model, contexts, "sample", 5),
        "one candidate, best": filling(model, contexts[:1], "best"),
        "one candidate, sample": filling(model, contexts[:1], "sample"),
    }.items():
        print(f"{name}: {seconds(fill):.2f} s")


if __name__ == "__main__":
    main()
