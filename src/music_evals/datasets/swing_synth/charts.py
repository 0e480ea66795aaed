"""Chord charts from a small weighted grammar: blues, minor blues, AABA, ABAC and sixteen bars.

The building blocks are those that every textbook of jazz harmony lists: the tonic, ii-V-I, secondary dominants, the
backdoor, passing diminished chords, turnarounds, the bridge of rhythm changes. No chart is that of a song.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Final

import numpy as np

from music_evals.datasets.swing_synth.chords import Chord, pick

Bar = tuple[Chord, ...]

FORMS: Final = {"blues": 12, "minor_blues": 12, "AABA": 32, "ABAC": 32, "sixteen": 16}
"""Form -> bars of a chorus."""

FORM_WEIGHTS: Final = {"blues": 3, "minor_blues": 2, "AABA": 6, "ABAC": 5, "sixteen": 4}
MINOR_IN = 4  # one song in so many is minor; the blues says so itself
TRITONE_IN, SPLIT_IN = 7, 5  # one dominant in so many becomes its tritone substitute, or ii-V
DARK_IN = 2  # one dominant in so many that leads to a minor chord has a flat ninth

# Bars are apart by |, chords in a bar by spaces; the number is the weight.
_BLUES: Final[tuple[dict[str, int], ...]] = (
    {"I7 | IV7 | I7": 4, "I7 | I7 | I7": 2, "I7 | IV7 #IVo | I7": 1, "I7 | VIIø III7b9 | VIm7 II7": 1},
    {"I7": 3, "Vm7 I7": 4, "I7 bV7#11": 1},
    {"IV7 | IV7": 3, "IV7 | #IVo": 3, "IV7 | IVm7 bVII7": 1},
    {"I7 | VI7": 3, "I7 | IIIm7 VI7b9": 3, "I7 | I7": 2, "IIIm7 | bIIIm7": 1},
    {"IIm7 | V7": 6, "V7 | IV7": 2, "II7 | V7": 1, "IIm7 | bII7#11": 1},
    {"I7 VI7 | IIm7 V7": 5, "I7 | V7": 2, "I7 IV7 | I7 V7": 2, "I7 bIII7 | bVImaj bII7#11": 1},
)
_MINOR_BLUES: Final[tuple[dict[str, int], ...]] = (
    {"Im6 | Im6 | Im6": 2, "Im6 | IVm7 | Im6": 3, "Im6 | IIø V7b9 | Im6": 3},
    {"I7b9": 2, "Vm7 I7b9": 2, "Im6": 2},
    {"IVm7 | IVm7": 3, "IVm7 | bVII7": 1},
    {"Im6 | Im6": 3, "Im6 | VIø": 1, "Im6 | bIIImaj": 1},
    {"bVI7#11 | V7b9": 3, "IIø | V7b9": 4, "bVI7#11 | IIø V7b9": 1},
    {"Im6 | IIø V7b9": 4, "Im6 VIø | IIø V7b9": 2, "Im6 | V7b9": 1},
)
_OPENINGS: Final = {
    "Imaj VI7 | IIm7 V7 | Imaj VI7 | IIm7 V7": 3,
    "Imaj VI7 | IIm7 V7 | IIIm7 VI7 | IIm7 V7": 3,
    "Imaj #Io | IIm7 #IIo | IIIm7 VI7 | IIm7 V7": 1,
    "IIm7 | V7 | Imaj | Imaj": 3,
    "IIm7 | V7 | Imaj | VI7": 3,
    "IIm7 V7 | Imaj | IIm7 V7 | Imaj": 1,
    "Imaj | VI7 | IIm7 | V7": 3,
    "Imaj | Imaj | II7 | II7": 2,
    "Imaj | VIIø III7b9 | VIm7 | Vm7 I7": 2,
    "Imaj | Vm7 I7 | IVmaj | IVm7 bVII7": 2,
    "Imaj | I7 | IVmaj | IVm6": 2,
    "Imaj | IVmaj | IIIm7 | VI7": 2,
    "Imaj | #Io | IIm7 | V7": 2,
    "VIm7 | II7 | IIm7 | V7": 1,
}
_MIDDLES: Final = {
    "IIm7 | V7": 6,
    "IIIm7 VI7 | IIm7 V7": 4,
    "II7 | IIm7 V7": 2,
    "IVmaj bVII7 | IIm7 V7": 2,
    "IVmaj #IVo | IIIm7 VI7": 1,
    "VI7 | IIm7 V7": 2,
}
_TURNAROUNDS: Final = {
    "Imaj VI7 | IIm7 V7": 5,
    "IIIm7 VI7 | IIm7 V7": 3,
    "Imaj bIII7 | bVImaj bII7#11": 1,
    "Imaj #Io | IIm7 V7": 2,
    "Imaj | IIm7 V7": 3,
}
_BRIDGES: Final = {
    "III7 | III7 | VI7 | VI7 | II7 | II7 | V7 | V7": 5,
    "VIIm7 | III7 | IIIm7 | VI7 | VIm7 | II7 | IIm7 | V7": 3,
    "Vm7 | I7 | IVmaj | IVmaj | VIm7 | II7 | IIm7 | V7": 4,
    "IVmaj | IVm6 | IIIm7 | VI7 | II7 | II7 | IIm7 | V7": 2,
    "IVm7 | bVII7 | bIIImaj | bIIImaj | IIIm7 | VI7 | IIm7 | V7": 2,
    "IIIm7 | VI7 | IImaj | IImaj | IIm7 | V7 | IIIm7 VI7 | IIm7 V7": 2,
    "VIm7 | III7b9 | VIm7 | VIm7 | II7 | II7 | IIm7 | V7": 2,
}
_HALF_CLOSES: Final = {"II7 | IIm7 V7": 3, "IIm7 | V7": 3, "bVI7#11 | V7": 1, "VIm7 II7 | IIm7 V7": 2}
_MINOR_OPENINGS: Final = {
    "Im6 | IIø V7b9 | Im6 | IIø V7b9": 3,
    "Im6 | IVm7 | IIø | V7b9": 2,
    "Im6 | I7b9 | IVm7 | bVII7": 2,
    "IVm7 | bVII7 | bIIImaj | bVImaj": 3,
    "Im6 | VIø | IIø | V7b9": 2,
    "IIø | V7b9 | Im6 | Im6": 3,
    "Im6 | Im6 | bVI7#11 | V7b9": 1,
}
_MINOR_MIDDLES: Final = {"IIø | V7b9": 5, "bVI7#11 | V7b9": 2, "IVm7 | IIø V7b9": 2}
_MINOR_TURNAROUNDS: Final = {"Im6 | IIø V7b9": 4, "Im6 VIø | IIø V7b9": 3, "Im6 bVI7#11 | IIø V7b9": 1}
_MINOR_BRIDGES: Final = {
    "IVm7 | bVII7 | bIIImaj | bIIImaj | IIø | V7b9 | Im6 | V7b9": 3,
    "Vm7 | I7b9 | IVm7 | IVm7 | IVm7 | bVII7 | bIIImaj | IIø V7b9": 3,
    "bVImaj | bVImaj | IVm7 | bVII7 | bIIImaj | VIø | IIø | V7b9": 2,
}
_MINOR_HALF_CLOSES: Final = {"IIø | V7b9": 3, "bVI7#11 | V7b9": 2}


@dataclasses.dataclass(frozen=True)
class Chart:
    """The chords of a chorus, counted from the tonic; the chords of a bar share it equally."""

    form: str  # of `FORMS`
    minor: bool
    bars: tuple[Bar, ...]

    @property
    def family(self) -> str:
        """Digest of form and chords; the same in any key."""
        text = ",".join([self.form, *(" ".join(f"{root}:{quality}" for root, quality in bar) for bar in self.bars)])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def text(self, tonic: int) -> str:
        """Return the chart as written in a key (0 = C), bars apart by ``|``."""
        return " | ".join(" ".join(chord.symbol(tonic) for chord in bar) for bar in self.bars)


def draw_chart(rng: np.random.Generator) -> Chart:
    """Draw a form and its chords."""
    form = pick(rng, FORM_WEIGHTS)
    if form == "blues":
        return Chart(form, minor=False, bars=_vary(rng, [bar for part in _BLUES for bar in _draw(rng, part)]))
    if form == "minor_blues":
        return Chart(form, minor=True, bars=_vary(rng, [bar for part in _MINOR_BLUES for bar in _draw(rng, part)]))
    minor = int(rng.integers(MINOR_IN)) == 0
    opening = _draw(rng, _MINOR_OPENINGS if minor else _OPENINGS)
    middle = _draw(rng, _MINOR_MIDDLES if minor else _MIDDLES)
    turnaround = _draw(rng, _MINOR_TURNAROUNDS if minor else _TURNAROUNDS)
    half_close = _draw(rng, _MINOR_HALF_CLOSES if minor else _HALF_CLOSES)
    bridge = _draw(rng, _MINOR_BRIDGES if minor else _BRIDGES)
    other = _draw(rng, _MINOR_MIDDLES if minor else _MIDDLES)
    tonic: Bar = (Chord.parse("Im6" if minor else "Imaj"),)
    close = [tonic, tonic]
    if form == "AABA":
        sections = [opening, middle, turnaround, opening, middle, close, bridge, opening, middle, close]
    elif form == "ABAC":
        start = bridge[:4]
        sections = [opening, middle, turnaround, start, other, half_close, opening, middle, turnaround]
        sections += [start, other, close]
    else:
        sections = [opening, middle, half_close, opening, other, close]
    return Chart(form, minor=minor, bars=_vary(rng, [bar for section in sections for bar in section]))


def _draw(rng: np.random.Generator, options: dict[str, int]) -> list[Bar]:
    return [tuple(Chord.parse(word) for word in bar.split()) for bar in pick(rng, options).split("|")]


def _vary(rng: np.random.Generator, bars: list[Bar]) -> tuple[Bar, ...]:
    """Replace dominants that fall a fifth by tritone substitutes, ii-V, or the same with a flat ninth.

    What is drawn for a bar holds wherever it comes again before the same chord, so that sections stay alike.
    """
    varied: list[Bar] = []
    choices: dict[tuple[Bar, Chord], list[bool]] = {}
    for index, bar in enumerate(bars):
        following = bars[(index + 1) % len(bars)][0]
        last, before = bar[-1], bar[:-1]
        if (bar, following) not in choices:
            choices[bar, following] = [int(rng.integers(n)) == 0 for n in (TRITONE_IN, SPLIT_IN, DARK_IN)]
        if last.quality in {"dominant", "flat_nine"} and following.root == (last.root + 5) % 12:
            tritone, split, dark = choices[bar, following]
            to_minor = following.quality in {"minor", "tonic_minor", "half_diminished"}
            two = Chord((last.root + 7) % 12, "half_diminished" if last.quality == "flat_nine" else "minor")
            # its ii is there already, or a substitute leads to it alone
            prepared = bool(varied) and (varied[-1][-1].root == two.root or varied[-1][-1].quality == "lydian")
            if index and split and not before and not prepared:
                before = (two,)
            elif tritone:
                last = Chord((last.root + 6) % 12, "lydian")
            if dark and to_minor and last.quality == "dominant":
                last = Chord(last.root, "flat_nine")
        varied.append((*before, last))
    return tuple(varied)
