"""Timbre: spectral shapes, frame by frame."""

from __future__ import annotations

import numpy as np

from music_evals.annotations import TimbreFrames
from music_evals.audio.io import Audio
from music_evals.audio.spectra import HOP_LENGTH, N_FFT, opening
from music_evals.compiling import compiled_by_numba


@compiled_by_numba
def compute_mfcc(audio: Audio) -> TimbreFrames:
    """Return MFCC 1..12 of the first minute with first and second differences, as musecpeval 0.3.0; shape (36, n)."""
    from librosa.feature import delta, mfcc

    shapes = mfcc(y=opening(audio), sr=audio.sample_rate, n_mfcc=13, hop_length=HOP_LENGTH, n_fft=N_FFT)[1:]
    frames = np.vstack([shapes, delta(shapes), delta(shapes, order=2)])
    return TimbreFrames(frames, HOP_LENGTH / audio.sample_rate)
