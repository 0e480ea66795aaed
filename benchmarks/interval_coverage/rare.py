"""Worlds of errors that are rare, large and one-sided: as an extractor makes them that fails on a few recordings.

`measured` draws whole sources out of `benchmarks/preservation_validity/real_scores.csv`; in `made_up` a share of all
clusters fails. Both say what the package reckons with of clusters that a sample lacks.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
from benchmarks.interval_coverage.worlds import Floats, Integers, World, sizes_of

from music_evals.metrics.catalogue import CATALOGUE, PRESERVATION_METRICS, SHOWN_AUXILIARY

SCORES = Path(__file__).resolve().parents[1] / "preservation_validity" / "real_scores.csv"
PRESERVING = ("compressor", "eq", "gain", "loud_noise", "mp3", "noise", "resampling", "reverb")
"""Edits that leave all music as it is: where a score falls, an extractor failed."""
SHARES = (0.02, 0.05, 0.1, 0.2)
"""Of clusters that fail."""
MEASURED = "recordings"
"""Sizes of clusters in the worlds of `measured`."""
NOISE = 0.01
"""Standard deviation of the scores that are right, of the range: what an edit that changes nothing leaves of 0 or 1."""
LAWS: dict[str, tuple[str, float]] = {
    "bounded": ("beat_f_measure", 0.95),
    "26 BPM": ("delta_bpm", 26.0),
    "60 BPM": ("delta_bpm", 60.0),
}
"""World -> the score that it stands for, and how large its errors are: all of the range; as measured on recordings; an
octave of the tempo, which is more than the interval reckons with."""
STRESS = ("60 BPM",)


def made_up(songs: Integers) -> list[World]:
    """Return worlds in which a share of all clusters fails, with clusters of equal and of real sizes."""

    def world(law: str, share: float, kind: str) -> World:
        metric = CATALOGUE[LAWS[law][0]]
        error, scale = LAWS[law][1], NOISE * metric.unseen[1]  # type: ignore[index]
        truth = share * error + (1 - share) * scale * float(np.sqrt(2 / np.pi))

        def draw(rng: np.random.Generator, n_clusters: int, n_samples: int) -> tuple[Floats, Floats]:
            shape = n_clusters, n_samples
            right = scale * np.abs(rng.normal(size=shape))
            wrong = error * rng.uniform(0.95, 1.05, size=shape)
            means = np.where(rng.random(shape) < share, wrong, right)
            counts = np.broadcast_to(sizes_of(kind, n_clusters, songs)[:, None], shape).astype(np.float64)
            # that errors lie above 0 and not below 1 changes nothing but the side
            return means * counts, counts

        return World(
            f"{share:.0%} fail, {law}", truth, draw, kind, bounded=law == "bounded",
            stress=law in STRESS, span=(metric.low, metric.high), unseen=metric.unseen,
        )  # fmt: skip

    return [world(law, share, kind) for kind in ("equal", "songs") for law in LAWS for share in SHARES]


def measured() -> list[World]:
    """Return a world for each score and each edit that preserves all, in which not all sources score the same."""
    with SCORES.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] in PRESERVING]
    names = [name for name in (*PRESERVATION_METRICS, *SHOWN_AUXILIARY) if name in rows[0]]
    values: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for name in names:
            if row[name] not in {"", "nan"}:
                values[name, f"{row['kind']} {row['strength']}"][row["source"]].append(float(row[name]))
    worlds = [_resampled(name, edit, list(sources.values())) for (name, edit), sources in values.items()]
    return [world for world in worlds if world]


def _resampled(name: str, edit: str, sources: list[list[float]]) -> World | None:
    """Return the world that draws whole sources; None where all have the same mean."""
    sums, counts = (np.array([function(held) for held in sources], dtype=np.float64) for function in (sum, len))
    if np.ptp(sums / counts) < 1e-6:
        return None
    metric = CATALOGUE[name]

    def draw(rng: np.random.Generator, n_clusters: int, n_samples: int) -> tuple[Floats, Floats]:
        places = rng.integers(0, len(sums), size=(n_clusters, n_samples))
        return sums[places], counts[places]

    return World(
        f"{name}, {edit}", float(sums.sum() / counts.sum()), draw, MEASURED, bounded=bool(np.isfinite(metric.high)),
        span=(metric.low, metric.high), unseen=metric.unseen,
    )  # fmt: skip
