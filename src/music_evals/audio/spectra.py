"""Spectrograms that several extractors need: worked out once a recording and kept with it."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.audio._constant_q import BLOCK, constant_q_magnitudes, hann
from music_evals.audio.io import Audio

__all__ = [
    "BINS_PER_OCTAVE",
    "CQT_MIDI",
    "HOP_LENGTH",
    "N_BINS",
    "N_FFT",
    "constant_q",
    "frame_levels",
    "mel_decibels",
    "power_spectrum",
    "sounding_frames",
    "tuning",
]

HOP_LENGTH = 512  # samples; 23.2 ms at 22,050 Hz
BINS_PER_OCTAVE = 36  # three a semitone
N_OCTAVES = 8
N_BINS = BINS_PER_OCTAVE * N_OCTAVES  # 288, C1 to B8
CQT_MIDI = 24  # C1, 32.7 Hz: the centre of bin 0
SHORTEST_SAMPLES: Final = 1 << 16  # 3 s; what is shorter is continued by silence
N_FFT = 2048  # samples; 92.9 ms
N_MELS = 128
DYNAMIC_RANGE_DB: Final = 80.0  # below the loudest
SILENCE: Final = 1e-3  # -60 dB below the loudest frame; the same bound as that of a silent recording

TUNING_BINS: Final = slice(36, 216)  # C2..B6, where a partial is narrower than a semitone and strong
TUNING_FLOOR: Final = 0.1  # peaks below this share of their frame's loudest are left out

Spectrogram = npt.NDArray[np.float32]


def constant_q(audio: Audio) -> Spectrogram:
    """Return the magnitudes of the constant-Q transform, shape (288, n_frames), eight octaves from C1.

    Bin b is centred at MIDI pitch 24 + b / 3, frame t at sample 512 t.
    """
    return audio.share("constant_q", lambda: _constant_q(audio))


def _constant_q(audio: Audio) -> Spectrogram:
    # the lowest octave is worked out on every 128th sample, and its filters must find enough of them
    missing = max(0, SHORTEST_SAMPLES - len(audio.samples))
    magnitudes = constant_q_magnitudes(
        np.pad(audio.samples, (0, missing)),
        audio.sample_rate,
        hop_length=HOP_LENGTH,
        lowest_midi=CQT_MIDI,
        n_octaves=N_OCTAVES,
        bins_per_octave=BINS_PER_OCTAVE,
    )
    return magnitudes[:, : len(audio.samples) // HOP_LENGTH + 1]


def power_spectrum(audio: Audio) -> Spectrogram:
    """Return the power spectrogram, shape (1025, n_frames); Hann window of 2048 samples, hop 512, centred frames."""
    return audio.share("power_spectrum", lambda: _power_spectrum(audio))


def _power_spectrum(audio: Audio) -> Spectrogram:
    from scipy.fft import rfft

    # The numbers of ``librosa.stft``: transformed in double precision, then rounded; rows belong to frames.
    n_frames = len(audio.samples) // HOP_LENGTH + 1
    padded = np.pad(audio.samples, N_FFT // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP_LENGTH]
    window = hann(N_FFT)
    power = np.empty((n_frames, N_FFT // 2 + 1), np.float32)
    for start in range(0, n_frames, BLOCK):
        spectra = rfft(window * frames[start : start + BLOCK], axis=1, overwrite_x=True)
        np.square(np.abs(spectra.astype(np.complex64)), out=power[start : start + BLOCK])
    return power.T


def mel_decibels(audio: Audio) -> Spectrogram:
    """Return the levels of 128 mel bands up to half the sample rate, shape (128, n_frames).

    In dB below the loudest, -80..0, on the frames of `power_spectrum`. All 0 where nothing sounds.
    """
    return audio.share("mel_decibels", lambda: _mel_decibels(audio))


def _mel_decibels(audio: Audio) -> Spectrogram:
    # most weights are zero; and a dense product would depend on the number of threads, in its last bits
    bands = _mel_filters(audio.sample_rate) @ power_spectrum(audio)
    loudest = float(bands.max(initial=0.0))
    if loudest == 0:
        return np.zeros_like(bands)
    floor = loudest * 10 ** (-DYNAMIC_RANGE_DB / 10)
    levels: Spectrogram = 10 * np.log10(np.maximum(bands, floor) / loudest)
    return levels


@functools.cache
def _mel_filters(rate: int) -> Any:
    """Return triangular filters of equal area on the mel scale, sparse, shape (128, 1025).

    The scale and the numbers are those of ``librosa.filters.mel``, after M. Slaney's "Auditory toolbox", 1998: linear
    up to 1 kHz, 27 steps to a factor of 6.4 above.
    """
    from scipy.sparse import csr_array

    linear_hz, corner_hz, log_step = 200.0 / 3, 1000.0, np.log(6.4) / 27
    corner = corner_hz / linear_hz
    top = corner + np.log(rate / 2 / corner_hz) / log_step
    mels = np.linspace(0.0, top, N_MELS + 2)
    edges = linear_hz * mels
    above = mels >= corner
    edges[above] = corner_hz * np.exp(log_step * (mels[above] - corner))
    ramps = edges[:, None] - np.fft.rfftfreq(N_FFT, 1 / rate)
    widths = np.diff(edges)[:, None]
    triangles = np.maximum(0, np.minimum(-ramps[:-2] / widths[:-1], ramps[2:] / widths[1:])).astype(np.float32)
    triangles *= 2.0 / (edges[2:] - edges[:-2])[:, None]
    return csr_array(triangles)


def frame_levels(audio: Audio) -> npt.NDArray[np.float64]:
    """Return the root mean square of the samples around each frame, shape (n_frames,), on the frames of `constant_q`.

    Frame t covers the 2048 samples around sample 512 t; beyond the ends there is silence.
    """
    return audio.share("frame_levels", lambda: _frame_levels(audio))


def _frame_levels(audio: Audio) -> npt.NDArray[np.float64]:
    energy = np.concatenate([[0.0], np.cumsum(audio.samples.astype(np.float64) ** 2)])
    centres = np.arange(len(audio.samples) // HOP_LENGTH + 1) * HOP_LENGTH
    starts, ends = (np.clip(centres + half, 0, len(audio.samples)) for half in (-N_FFT // 2, N_FFT // 2))
    levels: npt.NDArray[np.float64] = np.sqrt(np.maximum(energy[ends] - energy[starts], 0) / N_FFT)
    return levels


def sounding_frames(audio: Audio) -> npt.NDArray[np.bool_]:
    """Return which frames of `constant_q` sound: those less than 60 dB below the loudest, shape (n_frames,)."""
    levels = frame_levels(audio)
    sounds: npt.NDArray[np.bool_] = levels > SILENCE * levels.max(initial=0.0)
    return sounds


def tuning(audio: Audio) -> float:
    """Return how far the recording is tuned above A4 = 440 Hz, in semitones, -0.5..0.5; 0 where nothing sounds.

    The circular mean of the distances of all spectral peaks from equal temperament, weighted by magnitude.
    """
    return audio.share("tuning", lambda: _tuning(constant_q(audio)))


def _tuning(magnitudes: Spectrogram) -> float:
    bins = magnitudes[TUNING_BINS]
    left, middle, right = bins[:-2], bins[1:-1], bins[2:]
    peaks = (middle > left) & (middle >= right) & (middle > TUNING_FLOOR * bins.max(axis=0))
    if not peaks.any():
        return 0.0
    # the vertex of the parabola through a peak and its two neighbours, in bins from the peak
    below, at, above = (part[peaks].astype(np.float64) for part in (left, middle, right))
    shift = 0.5 * (below - above) / np.minimum(below - 2 * at + above, -1e-12)
    position = np.nonzero(peaks)[0] + 1 + TUNING_BINS.start + shift
    turns = position * 12 / BINS_PER_OCTAVE  # semitones from C1, a note
    return float(np.angle(np.sum(at * np.exp(2j * np.pi * turns))) / (2 * np.pi))
