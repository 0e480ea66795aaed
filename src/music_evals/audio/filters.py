"""Numerics that several extractors share: folding into pitch classes, pooling, and filters along time."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from music_evals.audio.spectra import BINS_PER_OCTAVE, CQT_MIDI, N_BINS

FloatArray = npt.NDArray[np.floating[Any]]
Number = TypeVar("Number", bound=np.generic)

NOTE_WIDTH: Final = 0.5  # semitones: a partial counts for the note that it is nearest to


def bin_pitches() -> npt.NDArray[np.float64]:
    """Return the centres of the constant-Q bins as MIDI pitches, shape (288,)."""
    pitches: npt.NDArray[np.float64] = CQT_MIDI + np.arange(N_BINS) * 12 / BINS_PER_OCTAVE
    return pitches


def fold_matrix(tuning: float, weights: npt.NDArray[np.float64] | None = None) -> npt.NDArray[np.float32]:
    """Return the matrix that folds constant-Q bins into pitch classes, shape (12, 288)."""
    distance = (bin_pitches() - tuning - np.arange(12)[:, None] + 6) % 12 - 6
    near = np.maximum(0, 1 - np.abs(distance) / NOTE_WIDTH)  # a triangle: no step where the tuning crosses a bin
    fold: npt.NDArray[np.float32] = (near if weights is None else near * weights).astype(np.float32)
    return fold


def moving_average(frames: FloatArray, length: int) -> FloatArray:
    """Return the centred mean over `length` frames, shape as given; at the ends over the frames that there are."""
    n_frames = frames.shape[-1]
    total = np.concatenate([np.zeros((*frames.shape[:-1], 1)), np.cumsum(frames, axis=-1, dtype=np.float64)], axis=-1)
    starts = np.clip(np.arange(n_frames) - length // 2, 0, None)
    ends = np.clip(np.arange(n_frames) - length // 2 + length, None, n_frames)
    mean: FloatArray = (total[..., ends] - total[..., starts]) / (ends - starts)
    return mean


def median_filter(frames: npt.NDArray[Number], length: int) -> npt.NDArray[Number]:
    """Return the centred median over `length` frames (odd), shape as given; the ends are repeated outwards."""
    padded = np.pad(frames, [(0, 0)] * (frames.ndim - 1) + [(length // 2, length // 2)], mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, length, axis=-1)
    middle: npt.NDArray[Number] = np.partition(windows, length // 2, axis=-1)[..., length // 2]
    return middle


def pool(frames: FloatArray, edges: npt.NDArray[np.intp]) -> FloatArray:
    """Return the means of frames between edges, shape (..., len(edges) - 1); each part must hold a frame."""
    sums = np.add.reduceat(frames[..., : edges[-1]], edges[:-1], axis=-1)
    means: FloatArray = sums / np.diff(edges)
    return means


def standardise(rows: FloatArray) -> FloatArray:
    """Return rows of mean 0 and standard deviation 1, shape as given; a row that does not vary becomes 0."""
    centred = rows - rows.mean(axis=-1, keepdims=True)
    spread = centred.std(axis=-1, keepdims=True)
    steady = spread <= 1e-6 * np.abs(rows).max(axis=-1, keepdims=True)  # rounding is no variation
    scaled: FloatArray = np.where(steady, 0.0, centred / np.where(steady, 1.0, spread))
    return scaled


def unit_columns(vectors: FloatArray) -> FloatArray:
    """Return columns of length 1, shape as given; a column of zeros stays."""
    norms = np.linalg.norm(vectors, axis=0)
    scaled: FloatArray = vectors / np.where(norms > 0, norms, 1)
    return scaled


def viterbi(log_likelihood: FloatArray, stay: float) -> npt.NDArray[np.intp]:
    """Return the likeliest path through states that all change into one another alike, shape (n_frames,)."""
    n_states, n_frames = log_likelihood.shape
    keep, change = np.log(stay), np.log((1 - stay) / (n_states - 1))
    likelihood = np.ascontiguousarray(log_likelihood.T, np.float64)
    # whoever comes from elsewhere comes from the best: no table of all pairs is needed
    score = np.empty_like(likelihood)
    score[0] = likelihood[0]
    for before, after, likely in zip(score[:-1], score[1:], likelihood[1:], strict=True):
        np.add(before, keep, out=after)
        np.maximum(after, before.item(before.argmax()) + change, out=after)
        np.add(after, likely, out=after)
    best = score.argmax(axis=1)
    moved = score[np.arange(n_frames), best] + change
    stays = score + keep >= moved[:, None]
    path = np.empty(n_frames, np.intp)
    path[-1] = best[-1]
    for t in range(n_frames - 1, 0, -1):
        path[t - 1] = path[t] if stays[t - 1, path[t]] else best[t - 1]
    return path
