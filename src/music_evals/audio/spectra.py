"""Spectrograms that several extractors need: worked out once a recording and kept with it."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

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

TUNING_BINS: Final = slice(36, 216)  # C2..B6, where a partial is narrower than a semitone and strong
TUNING_FLOOR: Final = 0.1  # peaks below this share of their frame's loudest are left out

Spectrogram = npt.NDArray[np.float32]


def constant_q(audio: Audio) -> Spectrogram:
    """Return the magnitudes of the constant-Q transform, shape (288, n_frames), eight octaves from C1.

    Bin b is centred at MIDI pitch 24 + b / 3, frame t at sample 512 t.
    """
    return audio.share("constant_q", lambda: _constant_q(audio))


def _constant_q(audio: Audio) -> Spectrogram:
    import librosa

    # the lowest octave is worked out on every 128th sample, and its filters must find enough of them
    missing = max(0, SHORTEST_SAMPLES - len(audio.samples))
    spectrum = librosa.cqt(
        np.pad(audio.samples, (0, missing)),
        sr=audio.sample_rate,
        hop_length=HOP_LENGTH,
        fmin=librosa.midi_to_hz(CQT_MIDI),
        n_bins=N_BINS,
        bins_per_octave=BINS_PER_OCTAVE,
        tuning=0.0,
    )
    n_frames = len(audio.samples) // HOP_LENGTH + 1
    magnitudes: Spectrogram = np.abs(spectrum[:, :n_frames]).astype(np.float32)
    return magnitudes


def power_spectrum(audio: Audio) -> Spectrogram:
    """Return the power spectrogram, shape (1025, n_frames); Hann window of 2048 samples, hop 512, centred frames."""
    return audio.share("power_spectrum", lambda: _power_spectrum(audio))


def _power_spectrum(audio: Audio) -> Spectrogram:
    import librosa

    spectrum = librosa.stft(audio.samples, n_fft=N_FFT, hop_length=HOP_LENGTH)
    power: Spectrogram = (np.abs(spectrum) ** 2).astype(np.float32)
    return power


def mel_decibels(audio: Audio) -> Spectrogram:
    """Return the levels of 128 mel bands up to half the sample rate, shape (128, n_frames).

    In dB below the loudest, -80..0, on the frames of `power_spectrum`. All 0 where nothing sounds.
    """
    return audio.share("mel_decibels", lambda: _mel_decibels(audio))


def _mel_decibels(audio: Audio) -> Spectrogram:
    from librosa.filters import mel
    from scipy.sparse import csr_array

    # most weights are zero; and a dense product would depend on the number of threads, in its last bits
    bands = csr_array(mel(sr=audio.sample_rate, n_fft=N_FFT, n_mels=N_MELS)) @ power_spectrum(audio)
    loudest = float(bands.max(initial=0.0))
    if loudest == 0:
        return np.zeros_like(bands)
    floor = loudest * 10 ** (-DYNAMIC_RANGE_DB / 10)
    levels: Spectrogram = 10 * np.log10(np.maximum(bands, floor) / loudest)
    return levels


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
