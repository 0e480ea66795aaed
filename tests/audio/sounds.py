"""Synthetic sounds that the tests of the audio room share."""

from __future__ import annotations

import numpy as np

from music_evals.audio.io import Audio

RATE = 22050


def partials(midi: float, seconds: float, *, n_harmonics: int = 5, falloff: float = 0.5) -> np.ndarray:
    """A steady tone: each harmonic is `falloff` times as strong as the one below."""
    time = np.arange(round(seconds * RATE)) / RATE
    frequency = 440 * 2 ** ((midi - 69) / 12)
    return sum(falloff**h * np.sin(2 * np.pi * (h + 1) * frequency * time) for h in range(n_harmonics))


def tone(midi: float, seconds: float, **options: float) -> np.ndarray:
    """The same under a fade of 10 ms at both ends."""
    time = np.arange(round(seconds * RATE)) / RATE
    return partials(midi, seconds, **options) * np.minimum(1, np.minimum(time, time[::-1]) / 0.01)


def audio(wave: np.ndarray, gain: float = 1.0) -> Audio:
    """The wave at a peak of `gain`."""
    return Audio((gain * wave / np.abs(wave).max()).astype(np.float32))


def triads(seconds: float, *, rate: int = RATE, bpm: float = 120.0) -> np.ndarray:
    """C, F, G and C major, four beats each and then again, with a click on every beat; float64 within -1..1."""
    time = np.arange(round(seconds * rate)) / rate
    beat = time * bpm / 60
    sound = np.zeros_like(time)
    for step, root in enumerate((60, 65, 67, 60)):
        held = (beat // 4).astype(int) % 4 == step
        for pitch in (root - 12, root, root + 4, root + 7):
            sound += held * np.sin(2 * np.pi * 440 * 2 ** ((pitch - 69) / 12) * time)
    phase = (beat % 1) * 60 / bpm
    return sound / 8 + 0.4 * np.exp(-80 * phase) * np.sin(2 * np.pi * 1500 * phase)
