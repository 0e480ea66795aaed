"""Chord labels in Harte syntax as pitch classes, and back: what pieces and edits of `known_edits` calculate with."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping

from music_evals.annotations import Key

NAMES = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")

QUALITIES: dict[str, tuple[int, ...]] = {
    "maj": (0, 4, 7), "min": (0, 3, 7), "dim": (0, 3, 6), "aug": (0, 4, 8), "sus4": (0, 5, 7), "sus2": (0, 2, 7),
    "7": (0, 4, 7, 10), "maj7": (0, 4, 7, 11), "min7": (0, 3, 7, 10), "minmaj7": (0, 3, 7, 11),
    "hdim7": (0, 3, 6, 10), "dim7": (0, 3, 6, 9),
}  # fmt: skip
"""Harte shorthand -> semitones above the root, root first."""

NO_TRIAD = "X"
"""The label where the sounding notes make none of `QUALITIES`."""

_MAJOR = (0, 2, 4, 5, 7, 9, 11)
_MINOR = (0, 2, 3, 5, 7, 8, 10)
_ROMAN = {"I": 0, "II": 2, "III": 4, "IV": 5, "V": 7, "VI": 9, "VII": 11}


@functools.cache
def parse_chord(label: str) -> tuple[int, str]:
    """Return root (0 = C) and quality of a label of ours, e.g. ``"Eb:min7"``; not for `NO_TRIAD`."""
    name, _, quality = label.partition(":")
    return NAMES.index(name), quality


def chord_label(root: int, quality: str) -> str:
    """Return the label of a root (any octave) and a quality of `QUALITIES`."""
    return f"{NAMES[root % 12]}:{quality}"


@functools.cache
def chord_pitch_classes(label: str) -> tuple[int, ...]:
    """Return the pitch classes of a chord, root first; none for `NO_TRIAD`."""
    if label == NO_TRIAD:
        return ()
    root, quality = parse_chord(label)
    return tuple((root + step) % 12 for step in QUALITIES[quality])


def transpose_label(label: str, semitones: int) -> str:
    """Move a chord by semitones."""
    if label == NO_TRIAD:
        return label
    root, quality = parse_chord(label)
    return chord_label(root + semitones, quality)


def relabel(label: str, moved: Mapping[int, int]) -> str:
    """Return the chord whose pitch classes are those of `label`, each replaced as `moved` says, or `NO_TRIAD`."""
    if label == NO_TRIAD:
        return label
    root, *others = (moved.get(pc, pc) for pc in chord_pitch_classes(label))
    steps = tuple(sorted({0, *((pc - root) % 12 for pc in others)}))
    for quality, template in QUALITIES.items():
        if template == steps:
            return chord_label(root, quality)
    return NO_TRIAD


def from_roman(numeral: str, tonic: int) -> str:
    """Return the label of a degree: ``"V7"``, ``"ii"``, ``"bVI"``, ``"viio"``, ``"iiø"``, ``"Imaj7"``."""
    # Degrees are those of the major scale on `tonic` with flats written out. Lower case is minor.
    flat = numeral.startswith("b")
    body = numeral[flat:]
    letters = body[: len(body) - len(body.lstrip("IViv"))]
    suffix = body[len(letters) :]
    small = letters.islower()
    quality = {
        "": "min" if small else "maj",
        "7": "min7" if small else "7",
        "maj7": "maj7",
        "o": "dim",
        "ø": "hdim7",
        "sus": "sus4",
    }[suffix]
    return chord_label(tonic + _ROMAN[letters.upper()] - flat, quality)


def scale_of(key: Key, sounding: Collection[int] = ()) -> tuple[int, ...]:
    """Return the seven pitch classes of a key (natural minor), bent towards the chord that sounds."""
    # A chord tone that is not in the scale takes the place of the scale's note a semitone beside it, as the leading
    # tone does over the dominant of a minor key.
    scale = [(key.tonic + step) % 12 for step in (_MAJOR if key.mode == "major" else _MINOR)]
    for pc in sounding:
        if pc in scale:
            continue
        for neighbour in ((pc - 1) % 12, (pc + 1) % 12):
            if neighbour in scale and neighbour not in sounding:
                scale[scale.index(neighbour)] = pc
                break
    return tuple(scale)
