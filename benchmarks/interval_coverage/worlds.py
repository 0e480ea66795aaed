"""Worlds whose truth is known, and samples of songs from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from music_evals.annotations import HOLD, MUSIB_LAYOUT
from music_evals.metrics.divergence import FEATURES, feature_rows, histogram_bins
from music_evals.models.baselines import copy_past
from music_evals.pipelines.inpainting import evaluate_inpainting
from music_evals.stats.intervals import Range

DATASET = Path(__file__).resolve().parents[2] / "datasets_scripts" / "jsb_chorales" / "data" / "musib"
SCORES = ("note_f1", "position_score", "rhythm_accuracy")
EQUAL_SIZE = 17
"""Windows of each song where all have as many: about the mean of the test songs."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class World:
    """Clusters drawn from a law, and the true mean over items."""

    name: str
    truth: float
    draw: Callable[[np.random.Generator, int, int], tuple[Floats, Floats]]
    """Generator, clusters and samples -> sums and numbers of items, shape (clusters, samples)."""
    sizes: str
    bounded: bool
    stress: bool = False
    """Holds something so rare that a sample says nothing of it; not counted among what is promised."""
    span: Range = (-np.inf, np.inf)
    unseen: Range | None = None
    """What the interval of the package is given of the score."""


@dataclasses.dataclass(frozen=True)
class Songs:
    """The windows of real songs, scored."""

    names: npt.NDArray[np.str_]
    codes: Integers
    """Song of each window."""
    scores: Mapping[str, Mapping[str, Floats]]
    """System -> score -> values of the windows."""
    bins: Mapping[str, Mapping[str, tuple[Integers, Integers]]]
    """System -> feature -> bins of the true and of the filled middles."""

    @property
    def sizes(self) -> Integers:
        """Windows of each song."""
        return np.bincount(self.codes)


def mode_pitch(contexts: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Fill with the pitch that the context has most often, every quarter."""
    around = np.delete(contexts, np.arange(MUSIB_LAYOUT.n_steps)[MUSIB_LAYOUT.middle], axis=1)
    counts = np.stack([(around == pitch).sum(axis=1) for pitch in range(HOLD)], axis=1)
    filled = np.full((len(contexts), MUSIB_LAYOUT.middle_steps), HOLD, dtype=np.uint8)
    filled[:, :: MUSIB_LAYOUT.steps_per_measure // 4] = counts.argmax(axis=1)[:, None]
    return filled


def load_songs(*splits: str) -> Songs:
    """Score two systems on the songs of some splits."""
    tables = [
        pq.read_table(DATASET / f"{split}-00000-of-00001.parquet", columns=["song", "tokens"]) for split in splits
    ]
    contexts = np.concatenate([np.array(table["tokens"].to_pylist(), dtype=np.uint8) for table in tables])
    names, codes = np.unique(np.concatenate([table["song"].to_pylist() for table in tables]), return_inverse=True)
    scores, bins = {}, {}
    for system, fill in {"copy": copy_past, "mode pitch": mode_pitch}.items():
        middles = fill(contexts)
        rows = evaluate_inpainting(contexts, middles, metrics=SCORES, per_item=True)["per_item"]
        scores[system] = {name: np.array([row[name] for row in rows], dtype=np.float64) for name in SCORES}
        features = feature_rows(contexts, middles, variant="corrected")
        bins[system] = {
            name: (histogram_bins(features[2 * i]), histogram_bins(features[2 * i + 1]))
            for i, name in enumerate(FEATURES)
        }
    return Songs(names, codes, scores, bins)


def sizes_of(kind: str, n_clusters: int, songs: Integers) -> Integers:
    """Return the sizes of clusters: all equal, or those of real songs, whose quantiles stand for other numbers."""
    if kind == "equal":
        return np.full(n_clusters, EQUAL_SIZE)
    places = (np.arange(n_clusters) + 0.5) / n_clusters * len(songs)
    return np.sort(songs)[places.astype(int)]


def _items(rng: np.random.Generator, law: str, means: Floats, size: int) -> Floats:
    """Return sums of `size` items about the means of their clusters."""
    if law == "normal":
        return size * means + np.sqrt(size) * rng.normal(size=means.shape)
    if law == "gamma":
        return rng.gamma(np.maximum(size * means, 1e-12))
    total = np.zeros(means.shape)
    for _ in range(size):  # beta of mean m and variance m (1 - m) / 5
        total += rng.beta(4 * means + 1e-9, 4 * (1 - means) + 1e-9)
    return total


LAWS: dict[str, tuple[str, float, Callable[[np.random.Generator, tuple[int, ...]], Floats]]] = {
    "normal": ("normal", 0.0, lambda rng, shape: rng.normal(size=shape)),
    "gamma": ("gamma", 1.0, lambda rng, shape: rng.exponential(size=shape)),
    "beta, mean .50": ("beta", 0.5, lambda rng, shape: rng.beta(2, 2, size=shape)),
    "beta, mean .15": ("beta", 0.15, lambda rng, shape: rng.beta(0.6, 3.4, size=shape)),
    "beta, mean .03": ("beta", 0.03, lambda rng, shape: rng.beta(0.3, 9.7, size=shape)),
}
"""World -> law of the items, true mean, and the means of clusters. What is true near 0 is true near 1, mirrored."""


def made_up(songs: Integers) -> list[World]:
    """Return the worlds of `LAWS`, with clusters of equal and of real sizes."""

    def world(name: str, kind: str) -> World:
        law, truth, means_of = LAWS[name]

        def draw(rng: np.random.Generator, n_clusters: int, n_samples: int) -> tuple[Floats, Floats]:
            sizes = sizes_of(kind, n_clusters, songs)
            means = means_of(rng, (n_clusters, n_samples))
            sums = np.stack([_items(rng, law, row, int(size)) for row, size in zip(means, sizes, strict=True)])
            return sums, np.broadcast_to(sizes[:, None], sums.shape).astype(np.float64)

        return World(name, truth, draw, kind, bounded=law == "beta")

    return [world(name, kind) for kind in ("equal", "songs") for name in LAWS]


def real(songs: Songs, name: str, scores: Sequence[str] = SCORES, *, stress: bool = False) -> list[World]:
    """Return worlds that draw whole songs out of the real ones; their truth is the mean over all windows."""

    def world(title: str, values: Floats) -> World:
        sums, counts = np.bincount(songs.codes, values), songs.sizes.astype(np.float64)

        def draw(rng: np.random.Generator, n_clusters: int, n_samples: int) -> tuple[Floats, Floats]:
            drawn = rng.integers(0, len(sums), size=(n_clusters, n_samples))
            return sums[drawn], counts[drawn]

        return World(title, float(values.mean()), draw, name, bounded=values.min() >= 0, stress=stress)

    worlds = [
        world(f"{system}, {score.replace('_', ' ')}", values[score])
        for system, values in songs.scores.items()
        for score in scores
    ]
    difference = songs.scores["copy"]["note_f1"] - songs.scores["mode pitch"]["note_f1"]
    return [*worlds, world("difference, note f1", difference)]
