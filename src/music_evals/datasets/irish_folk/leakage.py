"""What a split lets a model see of its test: how many test middles have a copy in train, exact or near."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT, REST
from music_evals.datasets.families import ANY_OFFSET, BAR_LINES, OVERLAP, OVERLAP_ANYWHERE, link, pair_overlaps
from music_evals.datasets.near_copies import NEAR, near_train
from music_evals.datasets.tune_files import split_families
from music_evals.datasets.tunes import Training, Tune, cut_windows, middle_keys

# Words that say what kind of tune it is, or that are left out as often as not.
_KINDS = {
    "a", "an", "the", "reel", "reels", "strathspey", "hornpipe", "jig", "clog", "march", "fling", "highland",
    "favorite", "quick", "step", "setting", "st", "nd",  # codespell:ignore
}  # fmt: skip


def leaked_shares(tunes: Sequence[Tune], splits: Sequence[str], *, split: str = "test") -> dict[str, float]:
    """Return the shares of windows of a split whose middle has a copy anywhere in the tunes of train.

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


def split_leakage(tunes: Sequence[Tune], splits: Sequence[str], *, seed: int = 42) -> dict[str, dict[str, float]]:
    """Compare splits that keep families together with those that a seed draws tune by tune."""
    by_tune = split_families(range(len(tunes)), seed=seed)
    return {"by_family": leaked_shares(tunes, splits), "by_tune": leaked_shares(tunes, by_tune)}


def same_titles(tunes: Sequence[Tune]) -> set[tuple[int, int]]:
    """Return the pairs of tunes that have one title, apart from case, order of words and the kind of tune."""
    by_title: dict[str, list[int]] = defaultdict(list)
    for index, tune in enumerate(tunes):
        words = re.findall(r"[a-z]+", tune.title.partition(" -- ")[0].lower().replace("'", ""))
        if title := " ".join(sorted(set(words) - _KINDS)):
            by_title[title].append(index)
    return {pair for members in by_title.values() for pair in itertools.combinations(members, 2)}


def title_check(overlaps: Mapping[tuple[int, int], float], titled: Iterable[tuple[int, int]]) -> dict[str, int]:
    """Count pairs with one title by their overlap: where the gap lies, a threshold parts settings from namesakes."""
    shares = [overlaps.get(pair, 0.0) for pair in titled]
    edges = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.1)
    return {
        f"{low:.1f} to {min(high, 1):.1f}": sum(low <= share < high for share in shares)
        for low, high in itertools.pairwise(edges)
    }


def pickup_check(
    tunes: Sequence[Tune], overlaps: Mapping[tuple[int, int], float], *, seed: int = 42
) -> list[dict[str, Any]]:
    """Return how families change if measures are counted from the first sound, as in MIDI files without bars.

    Tunes are read from their first bar line on, and are put behind their pickups again; `overlaps` come from
    `pair_overlaps` with `BAR_LINES`. For each way to find families: ``threshold``, ``families``, ``largest``,
    ``settings_parted`` of ``settings``, the pairs found without pickups that are no family with them, and what the
    split leaks (`leaked_shares`).
    """
    measure = MUSIB_LAYOUT.steps_per_measure
    moved = []
    for tune in tunes:
        pickup = np.full(round(tune.pickup_quarters * measure / 4), REST, dtype=np.uint8)
        tokens = np.concatenate([pickup, tune.tokens])
        moved.append(dataclasses.replace(tune, tokens=tokens[: len(tokens) // measure * measure]))
    settings = {pair for pair, share in overlaps.items() if share >= OVERLAP}
    rows = []
    for name, offsets, thresholds in (
        ("bar lines", BAR_LINES, (OVERLAP,)),
        ("any offset", ANY_OFFSET, (OVERLAP, OVERLAP_ANYWHERE)),
    ):
        pickup_overlaps = pair_overlaps([tune.tokens for tune in moved], offsets=offsets)
        for threshold in thresholds:
            families = link(len(moved), pickup_overlaps, threshold)
            rows.append(
                {
                    "compared": name,
                    "threshold": threshold,
                    "families": len(set(families)),
                    "largest": max(Counter(families).values(), default=0),
                    "settings": len(settings),
                    "settings_parted": sum(families[first] != families[second] for first, second in settings),
                    **leaked_shares(moved, split_families(families, seed=seed)),
                }
            )
    return rows


def threshold_table(
    tunes: Sequence[Tune], overlaps: Mapping[tuple[int, int], float], thresholds: Iterable[float], *, seed: int = 42
) -> list[dict[str, Any]]:
    """Say for each threshold how many families there are, how large, and what their split lets a model see."""
    rows = []
    for threshold in thresholds:
        families = link(len(tunes), overlaps, threshold)
        sizes = Counter(families)
        shares = leaked_shares(tunes, split_families(families, seed=seed))
        rows.append({"threshold": threshold, "families": len(sizes), "largest": max(sizes.values()), **shares})
    return rows
