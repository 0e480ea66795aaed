"""Statistics of a recording: librosa's cepstral coefficients, a known pitch, and what must not matter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from music_evals.audio.io import load_audio
from music_evals.audio.spectra import mel_decibels
from music_evals.audio.statistics import N_CEPSTRAL, SIZE, audio_statistics, make_encoder
from music_evals.errors import InvalidAudioError, InvalidInputError
from music_evals.protocols import MUSIC_ENCODERS, MusicEncoder, load_plugin

RATE = 22050


def _tone(pitch: int, seconds: float = 3.0) -> np.ndarray:
    """Return a decaying tone that is struck twice a second."""
    time = np.arange(int(seconds * RATE)) / RATE
    return 0.5 * np.sin(2 * np.pi * 440 * 2 ** ((pitch - 69) / 12) * time) * np.exp(-6 * (time % 0.5))


def test_cepstral_means_are_those_of_librosa() -> None:
    librosa = pytest.importorskip("librosa")
    audio = load_audio(_tone(60) + 0.01 * np.random.default_rng(0).standard_normal(3 * RATE), rate=RATE)
    oracle = librosa.feature.mfcc(S=mel_decibels(audio).astype(np.float64), n_mfcc=N_CEPSTRAL)
    found = audio_statistics(audio)
    half = SIZE // 2
    np.testing.assert_allclose(found[:N_CEPSTRAL], oracle.mean(axis=1), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found[half : half + N_CEPSTRAL], oracle.std(axis=1), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("pitch", [60, 69, 74])
def test_the_pitch_that_sounds_is_the_strongest(pitch: int) -> None:
    chroma = audio_statistics(load_audio(_tone(pitch), rate=RATE))[N_CEPSTRAL : N_CEPSTRAL + 12]
    assert int(chroma.argmax()) == pitch % 12


def test_the_level_of_a_recording_does_not_matter() -> None:
    loud, soft = (audio_statistics(load_audio(gain * _tone(64), rate=RATE)) for gain in (1.0, 0.125))
    np.testing.assert_allclose(loud, soft, rtol=1e-4, atol=1e-3)


def test_silence_has_no_statistics() -> None:
    with pytest.raises(InvalidAudioError, match="silent"):
        audio_statistics(load_audio(np.zeros(RATE), rate=RATE))


def test_it_is_an_encoder_without_weights(tmp_path: Path) -> None:
    import soundfile

    encoder = load_plugin(MUSIC_ENCODERS, "audio-statistics", "music encoder")("audio-statistics", device="cpu")
    assert isinstance(encoder, MusicEncoder)
    soundfile.write(tmp_path / "a.wav", _tone(60), RATE)
    vector = encoder.features(str(tmp_path / "a.wav"))
    assert (vector.shape, vector.dtype) == ((SIZE,), np.float32)
    with pytest.raises(InvalidInputError, match="no weights"):
        make_encoder("audio-statistics", model="other")
