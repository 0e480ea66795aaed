"""A recording as a few statistics of its sound: what can stand for an encoder where no weights are to be had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.audio.chroma import compute_chroma
from music_evals.audio.io import Audio, load_audio
from music_evals.audio.spectra import mel_decibels
from music_evals.errors import InvalidAudioError, InvalidInputError
from music_evals.numerics import one_thread

__all__ = ["NAME", "SIZE", "AudioStatistics", "audio_statistics", "make_encoder"]

NAME: Final = "audio-statistics"
"""In the registry of `protocols.MUSIC_ENCODERS`."""

N_CEPSTRAL: Final = 20  # coefficients of the cosine transform, as librosa's default for MFCC
SIZE: Final = 2 * N_CEPSTRAL + 2 * 12 + 2
"""Length of the vector."""

_VERSION = 1  # goes up when the numbers change


def audio_statistics(audio: Audio) -> npt.NDArray[np.float32]:
    """Return means and standard deviations over time of timbre, pitch classes and change, float32, shape (66,).

    They are the first 20 coefficients of the cosine transform of the mel levels (in dB below the loudest), the 12 pitch
    classes of `compute_chroma`, and the mean rise of the mel levels from frame to frame (in dB); of each the mean over
    frames, then of each the standard deviation. Nothing in it was learnt. The recording is at 22,050 Hz as `load_audio`
    gives it; a silent one is an `InvalidAudioError`.
    """
    from scipy.fft import dct

    if audio.silent:
        raise InvalidAudioError("the recording is silent: there is nothing to take statistics of")
    with one_thread():
        levels = mel_decibels(audio).astype(np.float64)  # (128, n_frames)
        cepstral = dct(levels, axis=0, norm="ortho")[:N_CEPSTRAL]
        chroma = compute_chroma(audio).frames.astype(np.float64)  # (12, n_frames)
        rise = np.maximum(np.diff(levels, axis=1, prepend=levels[:, :1]), 0).mean(axis=0, keepdims=True)
    rows = [cepstral, chroma, rise]
    parts = [part.mean(axis=1) for part in rows] + [part.std(axis=1) for part in rows]
    result: npt.NDArray[np.float32] = np.concatenate(parts).astype(np.float32)
    return result


class AudioStatistics:
    """`audio_statistics` in the form of a `protocols.MusicEncoder`."""

    name = NAME
    size = SIZE
    about: Mapping[str, Any] = {"name": NAME, "version": _VERSION}

    def features(self, source: str) -> npt.NDArray[np.float32]:
        """Return the statistics of a recording; raises what `load_audio` and `audio_statistics` raise."""
        return audio_statistics(load_audio(source))


def make_encoder(name: str, *, model: str | None = None, revision: str | None = None, **_: Any) -> AudioStatistics:
    """Return the encoder; it has no weights, so that a model or a revision of one is refused (`InvalidInputError`)."""
    if model is not None or revision is not None:
        raise InvalidInputError(f"{name} has no weights: leave the model and its revision out")
    return AudioStatistics()
