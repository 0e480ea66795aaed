"""What a split lets a model see of its test: how many test middles have a copy in train, exact or near."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from music_evals.datasets.near_copies import NEAR, near_train
from music_evals.datasets.tune_files import split_families
from music_evals.datasets.tunes import Training, Tune
from music_evals.datasets.windows import cut_windows, middle_keys

__all__ = ["leaked_shares", "split_leakage"]


def leaked_shares(tunes: Sequence[Tune], splits: Sequence[str], *, split: str = "test") -> dict[str, float]:
    """Return the shares of windows of a split whose middle has a copy anywhere in the tunes of train.

    Returns
    -------
    dict
        ``windows``: how many there are. ``exact``: as the column ``seen_in_train``, the same notes and lengths up to a
        transposition. ``near``: as the column ``near_train``, from `near_copies.NEAR` on.

    """
    train = Training.of([tune for tune, where in zip(tunes, splits, strict=True) if where == "train"])
    judged = [cut_windows(tune.tokens) for tune, where in zip(tunes, splits, strict=True) if where == split]
    if not judged:
        return {"windows": 0}
    windows = np.concatenate(judged)
    exact = np.mean([key in train.keys for key in middle_keys(windows)])
    near = np.mean(near_train(windows, train.passages) >= NEAR)
    return {"windows": len(windows), "exact": float(exact), "near": float(near)}


def split_leakage(tunes: Sequence[Tune], families: Sequence[object], *, seed: int = 42) -> dict[str, dict[str, float]]:
    """Compare a split by family with one that draws tunes at random, from the same seed."""
    by_family, by_tune = split_families(families, seed=seed), split_families(range(len(tunes)), seed=seed)
    return {"by_family": leaked_shares(tunes, by_family), "by_tune": leaked_shares(tunes, by_tune)}
