"""Toy pieces with melodies, and models of piano rolls that say what a test wants."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from music_evals.annotations import Arrangement, PianoRoll, Score, TimeSignature
from music_evals.symbolic.notes import make_notes


def toy(seed: int) -> Score:
    """Four bars: a tune in quarters over chords in halves."""
    rng = np.random.default_rng(seed)
    tune = [(8 * beat, 8, int(rng.choice([67, 69, 71, 72, 74])), 0) for beat in range(16)]
    chords = [
        (16 * half, 16, 48 + int(root) + step, 1)
        for half, root in enumerate(rng.integers(0, 6, 8))
        for step in (0, 4, 7)
    ]
    onset, duration, pitch, voice = zip(*tune, *chords, strict=True)
    notes = make_notes(onset, duration, pitch, voice=np.array(voice))
    return Score(notes, 8, (TimeSignature(0, 4, 4),), voices=("melody", "piano"))


class Toy:
    """Knows half of the truth, and writes a chord of three random notes."""

    name = "toy"
    style = "bach"
    deterministic = False
    steps_per_quarter = 8
    calls: int = 0

    @classmethod
    def from_pretrained(cls, folder: str) -> Toy:
        return Breaks() if (Path(folder) / "breaks").exists() else cls()

    def cell_probabilities(self, roll: PianoRoll, *, hidden: int = 0) -> np.ndarray:  # noqa: ARG002
        return np.where(roll.cells, 0.75, 0.25)

    def transfer(self, arrangement: Arrangement, *, rng: np.random.Generator) -> Arrangement:
        type(self).calls += 1
        cells = np.zeros_like(arrangement.melody.cells)
        onsets = cells.copy()
        for column in rng.choice(np.arange(15, 35), 3, replace=False):
            cells[:, column] = onsets[0, column] = True
        return Arrangement(arrangement.melody, arrangement.melody.with_notes(cells, onsets, np.zeros_like(cells)))


class Breaks(Toy):
    """Fails on one piece."""

    def transfer(self, arrangement: Arrangement, *, rng: np.random.Generator) -> Arrangement:
        if arrangement.melody.cells[0, 67 - 21]:
            msg = "no G"
            raise RuntimeError(msg)
        return super().transfer(arrangement, rng=rng)
