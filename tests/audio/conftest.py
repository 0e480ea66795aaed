"""Synthetic sounds that the tests of the audio room share."""

from __future__ import annotations

import numpy as np
import pytest

RATE = 22050


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


@pytest.fixture(scope="session")
def song() -> np.ndarray:
    """16 s of `triads` at 22,050 Hz."""
    return triads(16)
