"""A bass that walks and a piano that comps: notes in eighths of a swung bar.

Positions are counted in eighths, eight a bar; where an odd one lies within its beat is the affair of the grid
(`build.ticks`). Integers alone are drawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from music_evals.datasets.swing_synth.progressions import QUALITIES, Chord

__all__ = ["BASS_RANGE", "PIANO_RANGE", "VOICINGS", "Hit", "comp", "walk"]

EIGHTHS_PER_BAR: Final = 8
BASS_RANGE: Final = (28, 55)
PIANO_RANGE: Final = (48, 76)

VOICINGS: Final[dict[str, tuple[tuple[int, ...], ...]]] = {
    "maj7": ((4, 7, 11, 14), (4, 9, 11, 14), (4, 11, 14)),
    "7": ((4, 9, 10, 14), (4, 10, 14), (4, 8, 10, 13)),
    "m7": ((3, 7, 10, 14), (3, 10, 14), (3, 7, 10, 17)),
    "m7b5": ((3, 6, 10, 12), (3, 6, 10)),
    "m6": ((3, 7, 9, 14), (3, 9, 14)),
    "dim7": ((0, 3, 6, 9), (3, 6, 9)),
}
"""Quality -> rootless voicings, semitones above the root: third and seventh (or sixth) with ninths and thirteenths; the
last of ``"7"`` is altered and leads to minor."""

# Two bars each: where the piano strikes, in eighths, and how many it holds.
_COMPING: Final = (
    ((0, 3), (3, 2), (8, 3), (11, 2)),  # Charleston
    ((3, 3), (7, 3), (11, 3), (15, 1)),  # anticipations
    ((1, 1), (5, 1), (9, 1), (13, 2)),
    ((2, 1), (6, 1), (10, 1), (14, 1)),  # two and four
    ((0, 6), (7, 1), (8, 6)),
    ((1, 2), (4, 3), (9, 2), (12, 3)),
    ((3, 4), (8, 2), (13, 3)),
    ((0, 1), (3, 1), (6, 2), (11, 4)),
    ((0, 8), (8, 3), (11, 4)),
)
_DROPPED: Final = 8  # strikes that are left out, of 100
_SHORTER: Final = 30  # strikes that are held an eighth less, of 100
_WIDEST: Final = 9  # leap of the bass towards a root, in semitones
_SKIPS: Final = 7  # beats of the bass with an eighth note put in, of 100


class Hit(NamedTuple):
    """Pitches that start together."""

    start: int
    """In eighths from the beginning."""
    length: int
    """In eighths."""
    pitches: tuple[int, ...]
    """MIDI numbers."""


class _Span(NamedTuple):
    """A chord in its place."""

    start: int  # in eighths
    end: int
    root: int  # pitch class
    quality: str


def spans(bars: Sequence[Sequence[Chord]], tonic: int) -> list[_Span]:
    """Return the chords of bars in a key, one after the other."""
    found, at = [], 0
    for bar in bars:
        for chord in bar:
            found.append(_Span(at, at + 2 * chord.beats, (tonic + chord.root) % 12, chord.quality))
            at += 2 * chord.beats
    return found


def walk(bars: Sequence[Sequence[Chord]], tonic: int, rng: np.random.Generator) -> list[Hit]:
    """Return a bass in quarter notes under some bars in a key.

    It plays the root where a chord begins, chord tones and steps of the scale between, and comes to the next root by a
    semitone, a step of the chord or its fifth. The last bar is its root, held.
    """
    chords = spans(bars, tonic)
    final = EIGHTHS_PER_BAR * (len(bars) - 1)
    low, high = BASS_RANGE
    pitch = _nearest(chords[0].root, 40, low, high)
    line: list[Hit] = []
    for index, chord in enumerate(chords):
        beats = range(chord.start, min(chord.end, final), 2)
        following = chords[index + 1] if index + 1 < len(chords) else chord
        for beat in beats:
            if beat == chord.start:
                pitch = _nearest(chord.root, pitch, low, high)
            elif beat == chord.end - 2:
                pitch = _approach(pitch, following, rng)
            else:
                pitch = _step(pitch, chord, rng)
            line.append(Hit(beat, 2, (pitch,)))
            if rng.integers(100) < _SKIPS:
                line[-1] = Hit(beat, 1, (pitch,))
                line.append(Hit(beat + 1, 1, (pitch,)))
    last = next(chord for chord in chords if chord.end > final)
    line.append(Hit(final, EIGHTHS_PER_BAR, (_nearest(last.root, min(pitch, 40), low, high),)))
    return line


def comp(bars: Sequence[Sequence[Chord]], tonic: int, rng: np.random.Generator) -> list[Hit]:
    """Return chords of a piano over some bars in a key.

    Strikes follow patterns of two bars, of which a player keeps three at hand. One right before a chord is of that
    chord already. Each voicing lies as near as can be to the one before. The last bar is one chord, held.
    """
    chords = spans(bars, tonic)
    at_hand = rng.permutation(len(_COMPING))[:3]
    final = EIGHTHS_PER_BAR * (len(bars) - 1)
    voicing: tuple[int, ...] = ()
    hits: list[Hit] = []
    for start in range(0, final, 2 * EIGHTHS_PER_BAR):
        for offset, held in _COMPING[int(at_hand[int(rng.integers(3))])]:
            place = start + offset
            shorter = int(rng.integers(100)) < _SHORTER
            if place >= final or int(rng.integers(100)) < _DROPPED:
                continue
            # an off-beat before a chord belongs to it
            chord = _chord_at(chords, min(place + 1, final) if place % 2 else place)
            voicing = _voiced(chord, _next_of(chords, chord), voicing, rng)
            length = min(max(1, held - shorter), final - place)
            hits.append(Hit(place, length, voicing))
    chord = _chord_at(chords, final)
    hits.append(Hit(final, EIGHTHS_PER_BAR, _voiced(chord, chord, voicing, rng)))
    # a chord ends where the next begins
    return [
        hit._replace(length=min(hit.length, after.start - hit.start)) for hit, after in itertools.pairwise(hits)
    ] + hits[-1:]


def _chord_at(chords: Sequence[_Span], place: int) -> _Span:
    return next(chord for chord in chords if chord.start <= place < chord.end)


def _next_of(chords: Sequence[_Span], chord: _Span) -> _Span:
    index = chords.index(chord)
    return chords[min(index + 1, len(chords) - 1)]


def _voiced(chord: _Span, following: _Span, before: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
    """Return the voicing of a chord that moves least from the one before."""
    to_minor = following.quality in {"m7", "m6", "m7b5"} and (chord.root - following.root) % 12 == 7
    shapes = VOICINGS[chord.quality]
    if chord.quality == "7":
        shapes = shapes[-1:] if to_minor else shapes[:-1]
    shape = shapes[int(rng.integers(len(shapes)))]
    low, high = PIANO_RANGE
    best: tuple[int, ...] = ()
    cost = np.inf
    for turn in range(len(shape)):
        turned = sorted((tone - shape[turn]) % 12 for tone in shape)
        for lowest in range(low, high + 1):
            if (lowest - chord.root - shape[turn]) % 12:
                continue
            pitches = tuple(lowest + tone for tone in turned)
            if pitches[-1] > high:
                continue
            moved = abs(sum(pitches) / len(pitches) - (sum(before) / len(before) if before else 61))
            moved += sum(min(abs(pitch - other) for other in before) for pitch in pitches) if before else 0
            moved += abs(sum(pitches) / len(pitches) - 61) / 4  # and stays in the middle
            if moved < cost:
                best, cost = pitches, moved
    return best


def _approach(pitch: int, following: _Span, rng: np.random.Generator) -> int:
    """Return a pitch that leads to the root of the next chord."""
    low, high = BASS_RANGE
    drift = int(rng.integers(-5, 6))  # a line goes up and down the neck
    target = _nearest(following.root, pitch + drift, low, high)
    ways = (target - 1, target + 1, target - 1, target + 2, target + 7, target - 5)
    near = [way for way in ways if low <= way <= high and way != pitch and abs(way - pitch) <= _WIDEST]
    return near[int(rng.integers(len(near)))] if near else _nearest(following.root + 7, pitch, low, high)


def _step(pitch: int, chord: _Span, rng: np.random.Generator) -> int:
    """Return the next pitch of a line inside of a chord: mostly its tones, a few steps of the scale between."""
    low, high = BASS_RANGE
    tones = {(chord.root + tone) % 12 for tone in QUALITIES[chord.quality]}
    if rng.integers(4) == 0:
        tones |= {(chord.root + 2) % 12, (chord.root + 9) % 12}
    upwards = bool(rng.integers(2)) if low + 5 < pitch < high - 5 else pitch <= low + 5
    reach = range(pitch + 1, min(high, pitch + 7) + 1) if upwards else range(pitch - 1, max(low, pitch - 7) - 1, -1)
    near = [other for other in reach if other % 12 in tones]
    return near[int(rng.integers(min(2, len(near))))] if near else pitch


def _nearest(pitch_class: int, pitch: int, low: int, high: int) -> int:
    """Return the pitch of a class that lies nearest to another within a range; the lower of two as near."""
    inside = [other for other in range(low, high + 1) if (other - pitch_class) % 12 == 0]
    return min(inside, key=lambda other: (abs(other - pitch), other))
