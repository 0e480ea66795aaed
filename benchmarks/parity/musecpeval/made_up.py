"""Music and sections of our own making, which the package and we are both given; tests/golden keeps what it gave."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["PAIRS", "SEED", "random_sections", "write_pairs"]

RATE = 22050
SEED = 20261127
SCALE = (0, 2, 4, 5, 7, 9, 11)
PAIRS = ("transposed, with noise", "slower, with a rest", "another tune", "nothing")
"""What each estimate is, beside the tune of its reference."""

FloatArray = npt.NDArray[np.float64]


def tune(rng: np.random.Generator, seconds: float, *, step_sec: float = 0.25, transposed: int = 0) -> FloatArray:
    """Return a melody over chords and a click on every second step, 16 bits' worth of mono samples."""
    time = np.arange(int(seconds * RATE)) / RATE
    sound = np.zeros(len(time))
    for number in range(int(seconds / step_sec)):
        at = int(number * step_sec * RATE)
        degree = int(rng.integers(0, 14))
        root = (0, 5, 7, 9)[number // 8 % 4]
        pitches = [72 + SCALE[degree % 7] + 12 * (degree // 7), *(48 + root + third for third in (0, 4, 7))]
        part = time[at : at + int(step_sec * RATE)] - time[at]
        for pitch, level in zip(pitches, (0.3, 0.08, 0.08, 0.08), strict=True):
            phase = 2 * np.pi * 440 * 2 ** ((pitch + transposed - 69) / 12) * part
            sound[at : at + len(part)] += level * np.exp(-3 * part) * (np.sin(phase) + 0.4 * np.sin(2 * phase))
        if number % 2 == 0:
            sound[at : at + len(part)] += 0.2 * np.exp(-60 * part) * np.sin(2 * np.pi * 1500 * part)
    return sound


def write_pairs(folder: Path) -> list[tuple[str, str]]:
    """Write the recordings as WAV of 16 bits and return the pairs of `PAIRS`."""
    import soundfile

    def written(name: str, samples: FloatArray) -> str:
        whole = np.clip(np.round(samples * 2**15), -(2**15), 2**15 - 1).astype(np.int16)
        soundfile.write(folder / f"{name}.wav", whole, RATE, subtype="PCM_16")
        return str(folder / f"{name}.wav")

    def fresh() -> np.random.Generator:
        return np.random.default_rng(SEED)

    noise = 0.02 * fresh().standard_normal(int(12 * RATE))
    rest = tune(fresh(), 14, step_sec=0.29)
    rest[int(6 * RATE) : int(7.5 * RATE)] = 0
    original = written("original", tune(fresh(), 12))
    return [
        (original, written("transposed", tune(fresh(), 12, transposed=3) + noise)),
        (original, written("slower", rest)),
        (original, written("another", tune(np.random.default_rng(SEED + 1), 12))),
        (original, written("nothing", np.zeros(int(12 * RATE)))),
    ]


def random_sections(count: int = 24) -> list[Sequence[Any]]:
    """Return rows of [boundaries, labels, boundaries, labels]: shifted, renamed, cut and unrelated sections."""
    rng = np.random.default_rng(SEED)
    cases: list[Sequence[Any]] = []
    for number in range(count):
        first, labels = _sections(rng)
        if number % 2:
            second, others = _sections(rng)
        else:
            moved = np.asarray(first[1:-1]) + rng.uniform(-1.5, 1.5)
            end = first[-1] + float(rng.choice([0.0, 3.0, -2.0]))
            kept = moved[(moved > 0) & (moved < end)]
            second = [0.0, *np.round(kept, 3).tolist(), end]
            others = labels[: len(second) - 1]
        cases.append([first, labels, second, others])
    return cases


def _sections(rng: np.random.Generator) -> tuple[list[float], list[str]]:
    end = float(np.round(rng.uniform(20, 60), 2))
    inner = np.unique(np.round(rng.uniform(1, end - 1, int(rng.integers(1, 8))), 2))
    bounds = [0.0, *inner.tolist(), end]
    return bounds, [str(label) for label in rng.integers(0, 3, len(bounds) - 1)]
