"""Edits of `known_edits` that write new notes: textures, other chords, ornaments, other melodies."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence

from music_evals.annotations import Key
from music_evals.datasets.known_edits.arranging import arpeggio, nearest
from music_evals.datasets.known_edits.harmony import QUALITIES, chord_label, chord_pitch_classes, scale_of
from music_evals.datasets.known_edits.pieces import TPQ, Note, Part, Piece, Span, merge_spans

__all__ = ["broken_or_held", "ornamented", "reharmonised", "replaced", "silenced", "substitutes"]

Bars = Sequence[tuple[int, int]]


def broken_or_held(part: Part, piece: Piece, bars: Bars) -> Part:
    """Break the chords of a part into eighths where two notes start at once, else hold them, in some bars."""
    # Works chord by chord within each bar; the pitches stay.
    kept = [note for note in part.notes if not any(start <= note.onset < end for start, end in bars)]
    made: list[Note] = []
    for start, end in bars:
        for chord in piece.chords:
            low, high = max(start, chord.start), min(end, chord.end)
            inside = [note for note in part.notes if low <= note.onset < high]
            if inside:
                made += _other_texture(inside, low, high)
    return part.with_notes([*kept, *made])


def _other_texture(notes: Sequence[Note], start: int, end: int) -> Iterator[Note]:
    pitches = sorted({note.pitch for note in notes})
    velocity = notes[0].velocity
    if len({note.onset for note in notes}) < len(notes):
        yield from arpeggio(pitches, start, end, velocity)
    else:
        yield from (Note(start, end - start, pitch, velocity) for pitch in pitches)


def reharmonised(piece: Piece, share: float, rng: random.Random) -> Piece:
    """Replace a share of the chords by other triads of the key, and the accompaniment with them."""
    # Each chord tone moves to the tone of the new chord in its place (root, third, fifth; a seventh to the root), any
    # other note to the nearest tone.
    n_chosen = max(1, round(share * len(piece.chords)))
    chosen = set(rng.sample(range(len(piece.chords)), n_chosen))
    new = [
        chord._replace(label=rng.choice(substitutes(piece, chord)[:2])) if index in chosen else chord
        for index, chord in enumerate(piece.chords)
    ]

    def follow(part: Part) -> Part:
        return part.with_notes(_follow(note, piece.chords, new) for note in part.notes)

    return dataclasses.replace(piece.map_parts(follow, ["chords", "voice", "bass"]), chords=merge_spans(new))


def substitutes(piece: Piece, chord: Span) -> list[str]:
    """Return the triads of the key on other roots, those first that hold most of the melody above the chord."""
    sounding = [
        (note.pitch % 12, min(note.end, chord.end) - max(note.onset, chord.start))
        for note in piece.melody.notes
        if note.onset < chord.end and note.end > chord.start
    ]
    root = chord_pitch_classes(chord.label)[0]
    others = [label for label in _diatonic(piece.key) if chord_pitch_classes(label)[0] != root]

    def held(label: str) -> int:
        return sum(ticks for pitch_class, ticks in sounding if pitch_class in chord_pitch_classes(label))

    return sorted(others, key=held, reverse=True)


def _diatonic(key: Key) -> list[str]:
    """Return the major and minor triads on the degrees of the scale; a minor key has both dominants."""
    scale = scale_of(key)
    labels = []
    for degree in range(7):
        root, third, fifth = (scale[(degree + step) % 7] for step in (0, 2, 4))
        steps = (0, (third - root) % 12, (fifth - root) % 12)
        labels += [chord_label(root, quality) for quality in ("maj", "min") if QUALITIES[quality] == steps]
    return labels + ([chord_label(key.tonic + 7, "maj")] if key.mode == "minor" else [])


def _follow(note: Note, old: Sequence[Span], new: Sequence[Span]) -> Note:
    index = next(i for i, chord in enumerate(old) if chord.start <= note.onset < chord.end)
    if new[index].label == old[index].label:
        return note
    before, after = chord_pitch_classes(old[index].label), chord_pitch_classes(new[index].label)
    if note.pitch % 12 in before:
        place = before.index(note.pitch % 12)
        return note._replace(pitch=nearest(after[place if place < len(after) else 0], note.pitch))
    return note._replace(pitch=min((nearest(tone, note.pitch) for tone in after), key=lambda p: abs(p - note.pitch)))


def ornamented(part: Part, piece: Piece, share: float, rng: random.Random) -> Part:
    """Put a turn, a trill or passing notes in the place of a share of the longer notes: quarters and longer."""
    # An ornament fills exactly the time of its note and begins on it.
    long = [index for index, note in enumerate(part.notes) if note.duration >= TPQ * 3 // 4]
    chosen = set(rng.sample(long, max(1, round(share * len(long)))))
    notes: list[Note] = []
    for index, note in enumerate(part.notes):
        if index not in chosen:
            notes.append(note)
            continue
        following = part.notes[index + 1].pitch if index + 1 < len(part.notes) else note.pitch
        scale = scale_of(piece.key, chord_pitch_classes(piece.chord_at(note.onset)))
        notes += _divide(note, _ornament(note.pitch, following, scale, rng))
    return part.with_notes(notes)


def _ornament(pitch: int, following: int, scale: Sequence[int], rng: random.Random) -> list[int]:
    upper = next(p for p in range(pitch + 1, pitch + 4) if p % 12 in scale)
    lower = next(p for p in range(pitch - 1, pitch - 4, -1) if p % 12 in scale)
    choice = rng.choice(("turn", "trill", "passing"))
    if choice == "turn":
        return [pitch, upper, pitch, lower]
    if choice == "trill":
        return [pitch, upper, pitch, upper]
    step = 1 if following >= pitch else -1
    passing = [p for p in range(pitch + step, pitch + 9 * step, step) if p % 12 in scale]
    return [pitch, *passing[:2], passing[0]]


def _divide(note: Note, pitches: Sequence[int]) -> Iterator[Note]:
    edges = [note.onset + note.duration * i // len(pitches) for i in range(len(pitches) + 1)]
    for start, end, pitch in zip(edges[:-1], edges[1:], pitches, strict=True):
        yield Note(start, end - start, pitch, note.velocity)


def replaced(part: Part, piece: Piece, bars: Bars, rng: random.Random) -> Part:
    """Give the notes that start in some bars other pitches: chord tones first in the bar, notes of the scale after."""
    low, high = min(n.pitch for n in part.notes), max(n.pitch for n in part.notes)
    notes: list[Note] = []
    pitch = part.notes[0].pitch
    for note in part.notes:
        bar = next((bar for bar in bars if bar[0] <= note.onset < bar[1]), None)
        if bar is not None:
            tones = chord_pitch_classes(piece.chord_at(note.onset))
            strong = note.onset == bar[0] or note.duration >= 2 * TPQ
            wanted = tones if strong and tones else scale_of(piece.key, tones)
            near = [p for p in range(low - 2, high + 3) if p % 12 in wanted and abs(p - pitch) <= 7]
            pitch = rng.choice([p for p in near if p not in {note.pitch, pitch}] or [pitch])
        else:
            pitch = note.pitch
        notes.append(note._replace(pitch=pitch))
    return part.with_notes(notes)


def silenced(part: Part, bars: Bars) -> Part:
    """Leave out what sounds in some bars; a note held into one of them ends at its bar line."""
    notes = []
    for note in part.notes:
        if any(start <= note.onset < end for start, end in bars):
            continue
        ends = [start for start, _ in bars if note.onset < start < note.end]
        notes.append(note._replace(duration=min([note.end, *ends]) - note.onset))
    return part.with_notes(notes)
