"""What bass and piano play over the chords of a piece: a walking line, and voicings without roots in swung rhythms.

Times are in half beats here: an even one is a beat, an odd one the swung off-beat after it. Where that off-beat lies is
the grid's matter (`build`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from music_evals.datasets.swing_synth.chords import QUALITIES, Chord, pick

BASS_RANGE: Final = (28, 55)  # E1 to G3
PIANO_RANGE: Final = (48, 76)  # C3 to E5
HALVES_PER_BAR: Final = 8

FIRST_BASS: Final = 38  # where the line begins, about
FURTHEST_ROOT = 50  # roots stay below, so that the line has room above
WIDEST_STEP = 5  # semitones inside of a chord
WIDEST_ARRIVAL = 7
CENTRE = 61  # of the first voicing; later ones are drawn there gently
THREE_NOTES_IN = 4  # one voicing in so many has three notes
MOST_MOVEMENT = 7  # semitones of three voices in all; else four are played

# Two bars each: (half beat, length in half beats). Strokes end at the next one and where the chord ends.
PATTERNS: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    "charleston": ((0, 2), (3, 1), (8, 2), (11, 1)),
    "charleston_held": ((0, 3), (3, 4), (8, 3), (11, 4)),
    "charleston_ahead": ((0, 2), (3, 1), (7, 3), (11, 1)),
    "reverse_charleston": ((1, 1), (4, 2), (9, 1), (12, 2)),
    "off_beats": ((3, 1), (7, 1), (11, 1), (15, 1)),
    "off_beats_sparse": ((3, 2), (7, 4), (13, 1)),
    "two_and_four": ((2, 1), (6, 1), (10, 1), (14, 1)),
    "held": ((0, 7), (8, 7)),
    "held_ahead": ((0, 6), (7, 7), (15, 3)),
    "answer": ((1, 1), (3, 2), (8, 2), (13, 1), (15, 1)),
    "push": ((0, 1), (5, 1), (7, 2), (11, 1), (15, 1)),
    "late": ((2, 1), (5, 2), (10, 1), (13, 2)),
}


class Span(NamedTuple):
    """A chord in a piece."""

    start: int  # half beats
    end: int
    chord: Chord  # counted from C


class Stroke(NamedTuple):
    """Notes that are struck together."""

    start: int  # half beats
    end: int
    gap: int  # 32nd notes that they end early
    pitches: tuple[int, ...]


def walking_bass(rng: np.random.Generator, spans: Sequence[Span]) -> Iterator[Stroke]:
    """Yield a quarter note a beat; the last span is held.

    The root stands where a chord begins, then come its tones and its scale, then a way to the next root.
    """
    place = _root_near(spans[0].chord.root, FIRST_BASS)
    for span, following in itertools.pairwise(spans):
        goal = _root_near(following.chord.root, place + int(rng.integers(-3, 4)))
        n_beats = (span.end - span.start) // 2
        for beat in range(n_beats):
            if beat:
                place = _walk(rng, span.chord, place, goal, beat=beat, left=n_beats - beat)
            yield Stroke(span.start + 2 * beat, span.start + 2 * beat + 2, int(rng.integers(2)), (place,))
        place = goal
    yield Stroke(spans[-1].start, spans[-1].end, 0, (place,))


def _root_near(root: int, pitch: int) -> int:
    """Return the root in the octave nearest to a pitch, within the range of the bass."""
    places = [place for place in range(BASS_RANGE[0], FURTHEST_ROOT + 1) if place % 12 == root % 12]
    return min(places, key=lambda place: (abs(place - pitch), place))


def _walk(rng: np.random.Generator, chord: Chord, place: int, goal: int, *, beat: int, left: int) -> int:
    """Return the next note of the line; on the last beat (`left` is 1) it leads to the goal."""
    low, high = BASS_RANGE
    if left == 1:
        # from a semitone above or below, from the fifth above or below, or a scale step
        ways = {goal - 1: 4, goal + 1: 4, goal + 7: 1, goal - 5: 2}
        allowed = {way: weight for way, weight in ways.items() if low <= way <= high and way != place}
        near = {way: weight for way, weight in allowed.items() if abs(way - place) <= WIDEST_ARRIVAL}
        return int(pick(rng, {str(way): weight for way, weight in (near or allowed).items()}))
    quality = QUALITIES[chord.quality]
    candidates: dict[str, int] = {}
    for pitch in range(max(low, place - WIDEST_STEP), min(high, place + WIDEST_STEP) + 1):
        tone = (pitch - chord.root) % 12
        # a strong beat has a tone of the chord, and the first of a chord's second bar one of its triad
        fitting = quality.scale if beat % 2 else quality.tones if beat % 4 else quality.tones[:3]
        if pitch == place or tone not in fitting:
            continue
        if abs(pitch - goal) > WIDEST_ARRIVAL + WIDEST_STEP * (left - 2):
            continue
        nearer = abs(pitch - goal) < abs(place - goal)
        candidates[str(pitch)] = (3 if tone in quality.tones else 2) * (3 if nearer else 1)
    if not candidates:  # too far from the goal for any step that the chord has: go there by the nearest of its tones
        tones = [pitch for pitch in range(low, high + 1) if (pitch - chord.root) % 12 in quality.tones]
        return min(
            (pitch for pitch in tones if pitch != place), key=lambda pitch: (abs(2 * pitch - place - goal), pitch)
        )
    return int(pick(rng, candidates))


def next_voicing(chord: Chord, n_notes: int, previous: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Return the voicing of a chord, of 3 or 4 notes, that moves least from the one before, rising MIDI pitches.

    It is in close position. No semitone lies on top or at the bottom, which leaves the two positions that every pianist
    learns (third or seventh below), and a few more of major sevenths.
    """
    classes = QUALITIES[chord.quality].voicings[4 - n_notes]
    voicings: list[tuple[int, ...]] = []
    for lowest in classes:
        above = sorted((tone - lowest) % 12 for tone in classes)
        if 1 in (above[1] - above[0], above[-1] - above[-2]):
            continue
        voicings += [
            tuple(bottom + step for step in above)
            for bottom in range(PIANO_RANGE[0], PIANO_RANGE[1] - above[-1] + 1)
            if (bottom - chord.root - lowest) % 12 == 0
        ]
    return min(voicings, key=lambda notes: (4 * movement(previous, notes) + abs(sum(notes) // n_notes - CENTRE), notes))


def movement(before: tuple[int, ...], after: tuple[int, ...]) -> int:
    """Return the semitones that the voices move in all, without crossing; a note more or less does not count."""
    small, large = sorted((before, after), key=len)
    ways = itertools.combinations(large, len(small))
    return min(sum(abs(note - other) for note, other in zip(small, way, strict=True)) for way in ways)


def comping(rng: np.random.Generator, spans: Sequence[Span]) -> Iterator[Stroke]:
    """Yield the strokes of the piano; one on the off-beat before a chord plays that chord already. The last is held."""
    last = spans[-1]
    starts = [
        (bar * HALVES_PER_BAR + at, length)
        for bar in range(0, last.start // HALVES_PER_BAR, 2)
        for at, length in PATTERNS[pick(rng, dict.fromkeys(PATTERNS, 1))]
        if bar * HALVES_PER_BAR + at < last.start - 1
    ]
    previous: tuple[int, ...] = ()
    sounding: Span | None = None
    for (start, length), (following, _) in itertools.pairwise([*starts, (last.start, 0)]):
        # an off-beat stroke belongs to the beat that it anticipates
        meant = start + 1 if start % 2 else start
        span = next(span for span in spans if span.start <= meant < span.end)
        if span is not sounding:
            n_notes = 3 if int(rng.integers(THREE_NOTES_IN)) == 0 else 4
            voicing = next_voicing(span.chord, n_notes, previous)
            if movement(previous, voicing) > MOST_MOVEMENT:  # three notes have one position only
                voicing = next_voicing(span.chord, 4, previous)
            previous = voicing
            sounding = span
        end = min(start + length, following, span.end)
        # a short stroke may lose one 32nd note, a longer one two
        gap = int(rng.integers(3)) if end - start > 1 else int(rng.integers(2))
        yield Stroke(start, end, gap, previous)
    yield Stroke(last.start, last.end, 0, next_voicing(last.chord, 4, previous))
