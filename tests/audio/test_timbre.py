"""Bands of recordings, on sounds whose spectrum is known."""

from __future__ import annotations

import numpy as np
import pytest

from music_evals.audio.extraction import extract
from music_evals.audio.io import load_audio
from music_evals.audio.timbre import compute_bands

RATE = 22050
SECONDS = np.arange(3 * RATE) / RATE
A4 = 45  # the band of A4 among those from C1 on
MIDDLE = slice(8, -8)  # frames away from the ends


def frames_of(samples: np.ndarray) -> np.ndarray:
    return compute_bands(load_audio(samples.astype(np.float32), rate=RATE)).frames


def test_a_tone_lies_in_its_band_and_stands_out() -> None:
    frames = frames_of(np.sin(2 * np.pi * 440 * SECONDS))
    assert frames.shape == (192, len(SECONDS) // 2048 + 1)
    levels, prominence = np.split(frames[:, MIDDLE], 2)
    assert set(levels.argmax(axis=0)) == {A4}
    # a raised cosine falls to one half at half of its reach
    fall = levels[A4] - levels[A4 + 4]
    assert fall == pytest.approx(10 * np.log10(2 / (1 + np.cos(np.pi * 4 / 7))), abs=1.0)
    assert prominence[A4].min() > 20


def test_noise_does_not_stand_out(rng: np.random.Generator) -> None:
    levels, prominence = np.split(frames_of(rng.normal(0, 0.1, len(SECONDS)))[:, MIDDLE], 2)
    assert 1 < np.median(prominence[40:]) < 4
    # the constant-Q transform is scaled so that white noise is as loud at all pitches
    assert np.median(levels[80]) == pytest.approx(np.median(levels[56]), abs=1)


def test_ranges_and_gain(rng: np.random.Generator) -> None:
    samples = rng.normal(0, 0.1, len(SECONDS)) * np.linspace(0, 1, len(SECONDS))
    frames = frames_of(samples)
    assert frames.dtype == np.float32
    assert frames[:96].max() <= 0
    assert frames[:96].min() >= -80.001
    assert frames[96:].min() >= -1e-4
    np.testing.assert_allclose(frames_of(samples / 8), frames, atol=1e-3)


def test_silence_is_undefined() -> None:
    features = extract(load_audio(np.zeros(3 * RATE, np.float32), rate=RATE), ["bands"])
    assert features.bands is None
    assert "bands" in features.undefined
