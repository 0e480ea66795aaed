"""Chord progressions of medium swing: forms, phrases that they are put together of, and what may stand for a chord.

All of it is ours: phrases that any textbook of jazz harmony has (cadences, blues, rhythm changes, turnarounds), never a
song. A chord is a root, in semitones above the tonic, and a quality; a bar holds one chord, or two of two beats each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

__all__ = ["QUALITIES", "Chord", "Progression", "compose", "parse_bars"]

BEATS_PER_BAR: Final = 4

QUALITIES: Final[dict[str, tuple[int, ...]]] = {
    "maj7": (0, 4, 7, 11),
    "7": (0, 4, 7, 10),
    "m7": (0, 3, 7, 10),
    "m7b5": (0, 3, 6, 10),
    "m6": (0, 3, 7, 9),
    "dim7": (0, 3, 6, 9),
}
"""Quality -> chord tones, in semitones above the root."""

_DEGREES: Final = {"I": 0, "II": 2, "III": 4, "IV": 5, "V": 7, "VI": 9, "VII": 11}


class Chord(NamedTuple):
    """A chord and how long it lasts."""

    root: int
    """Semitones above the tonic, 0..11."""
    quality: str
    """One of `QUALITIES`."""
    beats: int
    """4 or 2."""

    @property
    def tones(self) -> tuple[int, ...]:
        """Pitch classes above the tonic, from the root up."""
        return tuple((self.root + tone) % 12 for tone in QUALITIES[self.quality])

    def leads_to(self, after: Chord) -> bool:
        """Whether it is a dominant a fifth above, or a semitone above, what comes after."""
        return self.quality == "7" and (self.root - after.root) % 12 in {7, 1}


class Progression(NamedTuple):
    """A chorus of chords."""

    form: str
    minor: bool
    bars: tuple[tuple[Chord, ...], ...]

    @property
    def digest(self) -> str:
        """What two progressions share if and only if their chords are the same in every bar, in any key."""
        text = "|".join(" ".join(f"{chord.root}{chord.quality}" for chord in bar) for bar in self.bars)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def parse_bars(text: str) -> tuple[tuple[Chord, ...], ...]:
    """Read bars such as ``"IIm7 V7 | Imaj7 | bVII7"``: degrees of the major scale, flats or sharps before them."""
    bars = []
    for bar in text.split("|"):
        symbols = bar.split()
        bars.append(tuple(_chord(symbol, BEATS_PER_BAR // len(symbols)) for symbol in symbols))
    return tuple(bars)


def _chord(symbol: str, beats: int) -> Chord:
    """Read one chord, as ``"bVIm7"``."""
    shift = {"b": -1, "#": 1}.get(symbol[0], 0)
    rest = symbol[1:] if shift else symbol
    degree = max((name for name in _DEGREES if rest.startswith(name)), key=len)
    quality = rest[len(degree) :]
    if quality not in QUALITIES:
        raise ValueError(f"{symbol} has no quality of {', '.join(QUALITIES)}")
    return Chord((_DEGREES[degree] + shift) % 12, quality, beats)


# Choruses of blues, twelve bars each.
_BLUES = (
    "I7 | IV7 | I7 | I7 | IV7 | IV7 | I7 | VI7 | IIm7 | V7 | I7 VI7 | IIm7 V7",
    "I7 | IV7 | I7 | Vm7 I7 | IV7 | #IVdim7 | I7 | IIIm7 VI7 | IIm7 | V7 | I7 VI7 | IIm7 V7",
    "I7 | IV7 #IVdim7 | I7 | Vm7 I7 | IV7 | #IVdim7 | I7 | VI7 | II7 | V7 | I7 VI7 | II7 V7",
    "Imaj7 | VIIm7b5 III7 | VIm7 II7 | Vm7 I7 | IV7 | IVm7 bVII7 | IIIm7 | bIIIm7 bVI7 | IIm7 | V7 | Imaj7 | IIm7 V7",
    "I7 | I7 | I7 | I7 | IV7 | IV7 | I7 | I7 | V7 | IV7 | I7 | V7",
)
_MINOR_BLUES = (
    "Im7 | Im7 | Im7 | I7 | IVm7 | IVm7 | Im7 | Im7 | bVI7 | V7 | Im7 | IIm7b5 V7",
    "Im6 | IVm7 | Im6 | Vm7b5 I7 | IVm7 | IVm7 | Im6 | Im6 | IIm7b5 | V7 | Im6 | IIm7b5 V7",
    "Im7 | IIm7b5 V7 | Im7 | I7 | IVm7 | bVII7 | Im7 | VIm7b5 | bVI7 | V7 | Im7 bVI7 | IIm7b5 V7",
)

# Eight bars that leave home and come back, or stay open at the end.
_OPENINGS = (
    "Imaj7 VI7 | IIm7 V7 | IIIm7 VI7 | IIm7 V7 | Imaj7 I7 | IVmaj7 #IVdim7 | IIIm7 VI7 | IIm7 V7",
    "Imaj7 | Imaj7 | II7 | II7 | IIm7 | V7 | Imaj7 | IIm7 V7",
    "IIm7 | V7 | Imaj7 | Imaj7 | IIm7 | V7 | Imaj7 | VI7",
    "Imaj7 | IVmaj7 | IIIm7 | VI7 | IIm7 | V7 | IIIm7 VI7 | IIm7 V7",
    "Imaj7 | VIm7 | IIm7 | V7 | IIIm7 | VIm7 | IIm7 | V7",
    "Imaj7 | bVII7 | Imaj7 | VI7 | IIm7 | IVm6 | Imaj7 VI7 | IIm7 V7",
    "Imaj7 | VII7 | bVII7 | VI7 | IIm7 | V7 | IIIm7 VI7 | IIm7 V7",
    "VIm7 | IIm7 | V7 | Imaj7 | IVmaj7 | VIIm7b5 III7 | VIm7 | VI7",
    "Imaj7 | #Idim7 | IIm7 | #IIdim7 | IIIm7 | VI7 | IIm7 | V7",
)
_MINOR_OPENINGS = (
    "Im7 | IIm7b5 V7 | Im7 | Im7 | IVm7 | bVII7 | bIIImaj7 | IIm7b5 V7",
    "Im6 | Im6 | IIm7b5 | V7 | Im6 | VI7 | IIm7b5 | V7",
    "IVm7 | bVII7 | bIIImaj7 | bVImaj7 | IIm7b5 | V7 | Im6 | I7",
    "Im7 | bVI7 | V7 | Im7 | IVm7 | Im7 | bVI7 | V7",
)
_CLOSINGS = (
    "Imaj7 | I7 | IVmaj7 | IVm6 | IIIm7 VI7 | IIm7 V7 | Imaj7 | Imaj7",
    "Imaj7 VI7 | IIm7 V7 | IIIm7 VI7 | IIm7 V7 | Imaj7 I7 | IVmaj7 IVm6 | Imaj7 V7 | Imaj7",
    "IIm7 | V7 | IIIm7 | VI7 | IIm7 | V7 | Imaj7 | Imaj7",
    "IVmaj7 | #IVdim7 | Imaj7 | VI7 | II7 | IIm7 V7 | Imaj7 | Imaj7",
)
_MINOR_CLOSINGS = (
    "IVm7 | bVII7 | Im7 | bVI7 | IIm7b5 | V7 | Im6 | Im6",
    "Im7 | I7 | IVm7 | bVII7 | bVI7 | V7 | Im6 | Im6",
)
_BRIDGES = (
    "III7 | III7 | VI7 | VI7 | II7 | II7 | V7 | V7",
    "VIIm7 | III7 | IIIm7 | VI7 | VIm7 | II7 | IIm7 | V7",
    "Vm7 | I7 | IVmaj7 | IVmaj7 | VIm7 | II7 | IIm7 | V7",
    "IVmaj7 | IVmaj7 | Imaj7 | Imaj7 | VIm7 | II7 | IIm7 | V7",
    "IVm7 | bVII7 | bIIImaj7 | bIIImaj7 | bIIIm7 | bVI7 | bIImaj7 | V7",
)
_MINOR_BRIDGES = (
    "Vm7b5 | I7 | IVm7 | IVm7 | IVm7 | bVII7 | bIIImaj7 | V7",
    "bIIImaj7 | bIIImaj7 | bVII7 | bIIImaj7 | bVImaj7 | bVImaj7 | IIm7b5 | V7",
)

_FORMS: Final = (("blues", 24), ("minor blues", 8), ("AABA", 36), ("ABAC", 18), ("16 bars", 14))
"""Form and weight; sections of AABA and ABAC have eight bars."""

_IN_MINOR: Final = 25  # songs in minor among those that are no blues, of 100
_SUBSTITUTED: Final = 12  # dominants that give way to the one a tritone off, of 100, where they lead on
_PREPARED: Final = 10  # bars of one chord whose second half leads to the next, of 100


def compose(rng: np.random.Generator) -> Progression:
    """Return a progression.

    Integers alone are drawn, so that equal generators give equal progressions on every machine.
    """
    form = _FORMS[_weighted([weight for _, weight in _FORMS], rng)][0]
    if form.endswith("blues"):
        minor = form == "minor blues"
        bars = parse_bars(_one_of(_MINOR_BLUES if minor else _BLUES, rng))
    else:
        minor = bool(rng.integers(100) < _IN_MINOR)
        openings, bridges, closings = (
            (_MINOR_OPENINGS, _MINOR_BRIDGES, _MINOR_CLOSINGS) if minor else (_OPENINGS, _BRIDGES, _CLOSINGS)
        )
        first, second = (_varied(_one_of(openings, rng), rng) for _ in range(2))
        bridge, closing = _varied(_one_of(bridges, rng), rng), _varied(_one_of(closings, rng), rng)
        bars = {
            "AABA": (*first, *first, *bridge, *first),
            "ABAC": (*first, *second, *first, *closing),
            "16 bars": (*first, *closing),
        }[form]
    if form.endswith("blues"):
        bars = _vary(bars, rng)
    return Progression(form, minor, bars)


def _varied(text: str, rng: np.random.Generator) -> tuple[tuple[Chord, ...], ...]:
    return _vary(parse_bars(text), rng)


def _vary(bars: Sequence[tuple[Chord, ...]], rng: np.random.Generator) -> tuple[tuple[Chord, ...], ...]:
    """Return bars with some chords prepared by their dominants, and some dominants a tritone off."""
    varied = list(bars)
    for index in range(len(varied) - 1):
        bar, target = varied[index], varied[index + 1][0]
        if len(bar) == 1 and not bar[0].leads_to(target) and bar[0] != target and rng.integers(100) < _PREPARED:
            half = BEATS_PER_BAR // 2
            varied[index] = (bar[0]._replace(beats=half), Chord((target.root + 7) % 12, "7", half))
    for index in range(len(varied) - 1):
        last, target = varied[index][-1], varied[index + 1][0]
        if last.leads_to(target) and (last.root - target.root) % 12 == 7 and rng.integers(100) < _SUBSTITUTED:
            varied[index] = (*varied[index][:-1], last._replace(root=(last.root + 6) % 12))
    return tuple(varied)


def _one_of(choices: Sequence[str], rng: np.random.Generator) -> str:
    return choices[int(rng.integers(len(choices)))]


def _weighted(weights: Sequence[int], rng: np.random.Generator) -> int:
    """Return an index by whole weights."""
    return int(np.searchsorted(np.cumsum(weights), rng.integers(sum(weights)), side="right"))
