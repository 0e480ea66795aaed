"""Timbre: spectral shapes, frame by frame."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from music_evals.annotations import BandFrames, TimbreFrames
from music_evals.audio.io import Audio
from music_evals.audio.spectra import BINS_PER_OCTAVE, DYNAMIC_RANGE_DB, HOP_LENGTH, N_BINS, N_FFT, constant_q, opening
from music_evals.compiling import compiled_by_numba

FRAMES_PER_STEP: Final = 4  # of the constant-Q transform: 93 ms, for bands are compared whenever they sound
BAND_REACH: Final = 7  # semitones from the centre of a band to its edges: wider than the gaps between partials


@compiled_by_numba
def compute_mfcc(audio: Audio) -> TimbreFrames:
    """Return MFCC 1..12 of the first minute with first and second differences, as musecpeval 0.3.0; shape (36, n)."""
    from librosa.feature import delta, mfcc

    shapes = mfcc(y=opening(audio), sr=audio.sample_rate, n_mfcc=13, hop_length=HOP_LENGTH, n_fft=N_FFT)[1:]
    frames = np.vstack([shapes, delta(shapes), delta(shapes, order=2)])
    return TimbreFrames(frames, HOP_LENGTH / audio.sample_rate)


def compute_bands(audio: Audio) -> BandFrames:
    """Return the levels of 96 bands from C1 on, a semitone apart, and by how much tones stand out of each.

    Levels are in dB below the loudest frame, at least -80. A band weighs the power of the constant-Q transform by one
    period of a raised cosine that ends 7 semitones below and above its centre.
    """
    power = np.square(constant_q(audio)[:, ::FRAMES_PER_STEP].astype(np.float64))
    weights = _band_weights()
    loudest = max(float((weights @ power).sum(axis=0).max(initial=0.0)), float(np.finfo(np.float32).tiny))
    # the floor is added before either mean is taken: what is as soft as the floor is flat
    power = power / loudest + 10 ** (-DYNAMIC_RANGE_DB / 10)
    levels = 10 * np.log10(weights @ power)
    prominence = levels - weights @ (10 * np.log10(power))
    frames = np.concatenate([levels, prominence]).astype(np.float32)
    return BandFrames(frames, FRAMES_PER_STEP * HOP_LENGTH / audio.sample_rate)


@functools.cache
def _band_weights() -> Any:
    """Return the weights of the bins of the constant-Q transform in each band, sparse, of sum 1; shape (96, 288)."""
    from scipy.sparse import csr_array

    bins_per_semitone = BINS_PER_OCTAVE // 12
    centres = np.arange(0, N_BINS, bins_per_semitone)
    away = np.abs(np.arange(N_BINS) - centres[:, None]) / (bins_per_semitone * BAND_REACH)
    weights = np.where(away < 1, 0.5 + 0.5 * np.cos(np.pi * away), 0.0)
    # a dense product would depend on the number of threads, in its last bits
    return csr_array(weights / weights.sum(axis=1, keepdims=True))
