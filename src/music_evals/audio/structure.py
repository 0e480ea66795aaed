"""Structure frames: vectors of harmony, timbre and rhythm whose self-similarity shows the form of a piece."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import StructureFrames
from music_evals.audio.filters import fold_matrix, pool, standardise
from music_evals.audio.io import Audio
from music_evals.audio.spectra import HOP_LENGTH, constant_q, mel_decibels, shared, tuning

FRAME_SEC: Final = 0.25  # of one structure frame
N_MFCC: Final = 13
N_BANDS: Final = 4
CHROMA_WEIGHT: Final = 0.5
COMPRESSION: Final = 100.0

ROWS: Final = {"chroma": slice(0, 12), "mfcc": slice(12, 12 + N_MFCC), "onsets": slice(12 + N_MFCC, 16 + N_MFCC)}
"""Rows of the feature matrix: pitch classes (weighted by 0.5), MFCC 0..12, and rise of the level in four bands."""

FloatArray = npt.NDArray[np.floating[Any]]


def compute_structure(audio: Audio) -> StructureFrames:
    """Return vectors of harmony, timbre and rhythm, four a second, each row of mean 0 and standard deviation 1.

    Twelve pitch classes on a logarithmic scale (weighted by 0.5), thirteen MFCC, and the rise of the level in four
    bands of eight octaves in all; each the mean over the frames of a quarter of a second. Rows that do not vary are 0.
    """
    # the first spectrogram frame of each structure frame, and the end of the last
    n_spectra = len(audio.samples) // HOP_LENGTH + 1
    n_frames = int(audio.duration_sec / FRAME_SEC) + 1
    starts = np.ceil((np.arange(n_frames) - 0.5) * FRAME_SEC * audio.sample_rate / HOP_LENGTH)
    inside = np.clip(starts, 0, None).astype(np.intp)
    edges = np.append(inside[inside < n_spectra], n_spectra)
    rows = [standardise(pool(part, edges)) for part in spectral_rows(audio)]
    rows[0] *= CHROMA_WEIGHT
    return StructureFrames(np.concatenate(rows).astype(np.float32), FRAME_SEC)


@shared
def spectral_rows(audio: Audio) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return chroma, MFCC and onsets, of shapes (12, n), (13, n) and (4, n), frame t at sample 512 t."""
    from scipy.fft import dct

    magnitudes, levels = constant_q(audio), mel_decibels(audio)
    loud = max(float(np.percentile(magnitudes, 99.5)), float(np.finfo(np.float32).tiny))
    chroma: FloatArray = fold_matrix(tuning(audio)) @ np.log1p(COMPRESSION * magnitudes / loud)
    cepstrum: FloatArray = dct(levels, axis=0, norm="ortho")[:N_MFCC]
    # the rise of the level from frame to frame, in four bands
    rise = np.maximum(0, np.diff(levels, axis=1, prepend=levels[:, :1]))
    return chroma, cepstrum, np.stack([band.mean(axis=0) for band in np.array_split(rise, N_BANDS)])
