"""Chords of jazz: their tones, their scales, how a pianist leaves out the root; counted from the tonic."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np


@dataclasses.dataclass(frozen=True)
class Quality:
    """A kind of chord; all tones in semitones above the root."""

    symbol: str  # as written behind the root in a chart
    tones: tuple[int, ...]
    scale: tuple[int, ...]
    guides: tuple[int, int]  # what tells it from others: third, and seventh or sixth
    voicings: tuple[tuple[int, ...], ...]  # pitch classes of the piano, of four notes and of three


QUALITIES: Final = {
    "major": Quality("maj7", (0, 4, 7, 11), (0, 2, 4, 5, 7, 9, 11), (4, 11), ((4, 7, 11, 2), (4, 11, 2))),
    "dominant": Quality("7", (0, 4, 7, 10), (0, 2, 4, 5, 7, 9, 10), (4, 10), ((4, 9, 10, 2), (4, 10, 2))),
    "flat_nine": Quality("7b9", (0, 4, 7, 10), (0, 1, 4, 5, 7, 8, 10), (4, 10), ((4, 8, 10, 1), (4, 10, 1))),
    "lydian": Quality("7#11", (0, 4, 7, 10), (0, 2, 4, 6, 7, 9, 10), (4, 10), ((4, 6, 10, 2), (4, 10, 2))),
    "minor": Quality("m7", (0, 3, 7, 10), (0, 2, 3, 5, 7, 9, 10), (3, 10), ((3, 7, 10, 2), (3, 10, 2))),
    "tonic_minor": Quality("m6", (0, 3, 7, 9), (0, 2, 3, 5, 7, 9, 11), (3, 9), ((3, 7, 9, 2), (3, 9, 2))),
    # these two keep their root: without it they are heard as others
    "half_diminished": Quality("m7b5", (0, 3, 6, 10), (0, 1, 3, 5, 6, 8, 10), (3, 10), ((0, 3, 6, 10), (3, 6, 10))),
    "diminished": Quality("dim7", (0, 3, 6, 9), (0, 2, 3, 5, 6, 8, 9, 11), (3, 9), ((0, 3, 6, 9), (3, 6, 9))),
}

_DEGREES = {"I": 0, "II": 2, "III": 4, "IV": 5, "V": 7, "VI": 9, "VII": 11}
# as they stand behind a degree, in the order of `QUALITIES`
_SUFFIXES = dict(zip(("maj", "7", "7b9", "7#11", "m7", "m6", "ø", "o"), QUALITIES, strict=True))
_NAMES = ("C", "Db", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")


class Chord(NamedTuple):
    """A root and a quality."""

    root: int  # semitones above the tonic, 0..11
    quality: str  # of `QUALITIES`

    @classmethod
    def parse(cls, text: str) -> Chord:
        """Read a Roman numeral with its suffix, such as ``"IIm7"``, ``"bII7#11"`` or ``"VIIø"``."""
        bend = {"b": -1, "#": 1}.get(text[0], 0)
        rest = text[1:] if bend else text
        degree = rest[: len(rest) - len(rest.lstrip("IV"))]
        return cls((_DEGREES[degree] + bend) % 12, _SUFFIXES[rest[len(degree) :]])

    def symbol(self, tonic: int) -> str:
        """Return what a chart in a key says, such as ``"Bb7"``; roots are spelt with flats but for F#."""
        return _NAMES[(self.root + tonic) % 12] + QUALITIES[self.quality].symbol


def pick(rng: np.random.Generator, options: Mapping[str, int]) -> str:
    """Draw one of the options by its weight, from whole numbers alone."""
    draw = int(rng.integers(sum(options.values())))
    for option, weight in options.items():
        draw -= weight
        if draw < 0:
            return option
    raise AssertionError("a draw lies below the sum of the weights")
