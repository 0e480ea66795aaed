"""Spectrograms that several extractors need: worked out once a recording and kept with it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from music_evals.audio.io import Audio

__all__ = ["BINS_PER_OCTAVE", "CQT_MIDI", "HOP_LENGTH", "N_BINS", "N_FFT", "constant_q", "power_spectrum"]

HOP_LENGTH = 512  # samples; 23.2 ms at 22,050 Hz
BINS_PER_OCTAVE = 36
N_OCTAVES = 8
N_BINS = BINS_PER_OCTAVE * N_OCTAVES
CQT_MIDI = 24  # C1, 32.7 Hz: the centre of bin 0
N_FFT = 2048

Spectrogram = npt.NDArray[np.float32]


def constant_q(audio: Audio) -> Spectrogram:
    """Return the magnitudes of the constant-Q transform, shape (288, n_frames), eight octaves from C1.

    Bin b is centred at MIDI pitch 24 + b / 3, frame t at sample 512 t.
    """
    return audio.share("constant_q", lambda: _constant_q(audio))


def _constant_q(audio: Audio) -> Spectrogram:
    import librosa

    spectrum = librosa.cqt(
        audio.samples,
        sr=audio.sample_rate,
        hop_length=HOP_LENGTH,
        fmin=librosa.midi_to_hz(CQT_MIDI),
        n_bins=N_BINS,
        bins_per_octave=BINS_PER_OCTAVE,
        tuning=0.0,
    )
    magnitudes: Spectrogram = np.abs(spectrum).astype(np.float32)
    return magnitudes


def power_spectrum(audio: Audio) -> Spectrogram:
    """Return the power spectrogram, shape (1025, n_frames); Hann window of 2048 samples, hop 512, centred frames."""
    return audio.share("power_spectrum", lambda: _power_spectrum(audio))


def _power_spectrum(audio: Audio) -> Spectrogram:
    import librosa

    spectrum = librosa.stft(audio.samples, n_fft=N_FFT, hop_length=HOP_LENGTH)
    power: Spectrogram = (np.abs(spectrum) ** 2).astype(np.float32)
    return power
