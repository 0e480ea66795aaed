"""The twelve programmatic pieces of `known_edits`: forms and harmonies written down, melodies grown from a seed.

Each song has two or three kinds of section that differ in harmony, accompaniment and drums. A section's melody is grown
once from motifs, so that sections of one label are the same music.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence

from music_evals.annotations import Key
from music_evals.datasets.known_edits.arranging import Plan, Texture, arrange, nearest
from music_evals.datasets.known_edits.harmony import NAMES, chord_pitch_classes, from_roman, scale_of
from music_evals.datasets.known_edits.pieces import TPQ, Note, Piece, Span, beat_of

__all__ = ["SONGS", "Block", "Song", "compose", "grow_melody"]

# Rhythms of a bar in eighths; negative is a rest. The last ones of a row close a phrase.
_CELLS: dict[tuple[int, int], tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]] = {
    (4, 4): (
        ((2, 2, 2, 2), (3, 1, 2, 2), (2, 1, 1, 4), (1, 1, 2, 3, -1), (-1, 1, 2, 2, 2), (3, 3, 2), (2, 2, 1, 1, 2)),
        ((4, -4), (2, 2, 2, -2), (6, -2), (3, 1, 2, -2)),
    ),
    (3, 4): (
        ((2, 2, 2), (4, 2), (3, 1, 2), (2, 1, 1, 2), (1, 1, 2, 2), (-2, 2, 2), (2, 4)),
        ((4, -2), (2, 2, -2), (3, -3)),
    ),
    (6, 8): (
        ((2, 1, 2, 1), (1, 1, 1, 2, 1), (3, 1, 1, 1), (1, 1, 1, 1, 1, 1), (2, 1, 3), (1, 1, 1, 3)),
        ((3, -3), (2, 1, 2, -1), (1, 1, 1, -3)),
    ),
    (2, 4): (
        ((2, 2), (1, 1, 2), (3, 1), (2, 1, 1), (1, 1, 1, 1), (-1, 1, 1, 1)),
        ((2, -2), (1, 1, -2), (3, -1)),
    ),
}


@dataclasses.dataclass(frozen=True)
class Block:
    """A kind of section: its chords, bars apart by ``|``, and how it is accompanied."""

    chords: str
    texture: Texture


@dataclasses.dataclass(frozen=True)
class Song:
    """A song: `form` is one letter a section, each a key of `blocks`."""

    tonic: str
    mode: str
    meter: tuple[int, int]
    bpm: float
    form: str
    blocks: Mapping[str, Block]
    programs: Mapping[str, int]
    register: int = 57


_ROCK = {"kick": "x.....x.x.x.....", "snare": "....x.......x...", "hat": "x.x.x.x.x.x.x.x."}
_ROCK_B = {"kick": "x.x...x...x.x...", "snare": "....x.......x..x", "ride": "x...x...x...x..."}
_BACKBEAT = {"kick": "x.......x.x.....", "snare": "....x.......x...", "hat": "x.x.x.x.x.x.x.x."}
_FOUR = {"kick": "x...x...x...x...", "clap": "....x.......x...", "open": "..x...x...x...x."}
_FOUR_HAT = {**_FOUR, "hat": "xxxxxxxxxxxxxxxx"}
_BOSSA = {"kick": "x..xx..xx..xx..x", "rim": "x..x..x...x..x..", "hat": "x.x.x.x.x.x.x.x."}
_FUNK = {"kick": "x..x..x...x..x..", "snare": "....x..x.x..x...", "hat": "xxxxxxxxxxxxxxxx"}
_MARCH = {"kick": "x...x...", "snare": "..x.x.xx"}
_JIG = {"kick": "x.....x.....", "hat": "x.x.x.x.x.x."}
_SHUFFLE = {"kick": "x.......x.......", "snare": "....x.......x...", "ride": "x..xx..xx..xx..x"}

SONGS: dict[str, Song] = {
    "song_rock": Song("E", "major", (4, 4), 132, "AABAC", {
        "A": Block("I|IV|I|V", Texture("o.o.o.o.o.o.o.o.", "o.o.o.o.o.o.o.o.", _ROCK)),
        "B": Block("vi|IV|ii|V|vi|IV", Texture("held", "o...o...o...o...", _ROCK_B, pad=True)),
        "C": Block("IV|V|vi|I", Texture("o...o...o...o...", "o.x.o.x.o.x.o.x.", _FOUR)),
    }, {"melody": 30, "chords": 28, "bass": 34, "pad": 16}, 54),
    "song_waltz": Song("A", "minor", (3, 4), 150, "ABAC", {
        "A": Block("i|i|iv|iv|V7|V7|i|i", Texture("....o...o...", "o...........")),
        "B": Block("bIII|bVII|bVI|bIII|iv|i|V7|i", Texture("broken", "held", pad=True)),
        "C": Block("iv|bVII|bIII|bVI|V7|i", Texture("held", "o...5...5...")),
    }, {"melody": 64, "chords": 20, "bass": 32, "pad": 48}),
    "song_ballad": Song("Eb", "major", (4, 4), 66, "ABC", {
        "A": Block("I|vi|IV|V", Texture("broken", "held")),
        "B": Block("IV V|iii vi|ii|V7", Texture("held", "o...o...5...o...", pad=True)),
        "C": Block("vi|IV|I", Texture("o...o...o...o...", "held", pad=True)),
    }, {"melody": 68, "chords": 0, "bass": 32, "pad": 48}),
    "song_bossa": Song("D", "minor", (4, 4), 124, "AABC", {
        "A": Block("i7|i7|iv7|V7", Texture("x..x..x...x..x..", "o.....5.o.....5.", _BOSSA)),
        "B": Block("bVImaj7|bVII7|bIIImaj7|bVImaj7|iiø|V7", Texture("held", "o.......5.......", _BACKBEAT, pad=True)),
        "C": Block("iv7|bVII7|bIIImaj7|V7", Texture("broken", "o.....5.o.....5.", _BOSSA)),
    }, {"melody": 66, "chords": 24, "bass": 32, "pad": 4}),
    "song_disco": Song("F", "minor", (4, 4), 118, "ABAC", {
        "A": Block("i|bVI|bIII|bVII", Texture("..o...o...o...o.", "x.x.x.x.x.x.x.x.", _FOUR)),
        "B": Block("iv|iv|i|V", Texture("held", "o...o...o...o...", _BACKBEAT, pad=True)),
        "C": Block("bVI|bVII|i|i|bVI|bVII", Texture("broken", "x...x.x.x...x.x.", _FOUR_HAT)),
    }, {"melody": 62, "chords": 26, "bass": 38, "pad": 50}),
    "song_synth": Song("C#", "minor", (4, 4), 100, "ABAC", {
        "A": Block("i|bVI|iv|bVII", Texture("broken", "x.x.x.x.x.x.x.x.", _FOUR)),
        "B": Block("bIII|bVII|iv|V", Texture("held", "held", {"hat": "x...x...x...x..."}, pad=True)),
        "C": Block("bVI|bVI|bVII|i", Texture("x..x..x.x..x..x.", "o...o...o...o...", _ROCK)),
    }, {"melody": 80, "chords": 90, "bass": 38, "pad": 94}),
    "song_pop": Song("G", "major", (4, 4), 108, "AABC", {
        "A": Block("I|V|vi|IV", Texture("broken", "o...o.x.o...o.x.", _BACKBEAT)),
        "B": Block("IV|I|V|vi|IV|V", Texture("o...o...o...o...", "x.x.x.x.x.x.x.x.", _ROCK, pad=True)),
        "C": Block("ii|vi|IV|I", Texture("held", "held", {"kick": "x.......x.......", "rim": "....x.......x..."})),
    }, {"melody": 74, "chords": 2, "bass": 34, "pad": 52}),
    "song_jig": Song("D", "major", (6, 8), 116, "AABC", {
        "A": Block("I|I|IV|V|I|I|V|I", Texture("o...o.o...o.", "o.....o.....", _JIG)),
        "B": Block("V|I|V|I|IV|I|V|V", Texture("broken", "o.....5.....", {"kick": "x...x.x...x."})),
        "C": Block("vi|vi|IV|IV|I|V|vi|vi|V|I", Texture("held", "held", {"ride": "x...x.x...x."}, pad=True)),
    }, {"melody": 78, "chords": 46, "bass": 32, "pad": 20}),
    "song_funk": Song("G", "minor", (4, 4), 104, "ABAC", {
        "A": Block("i7|i7|IV7|i7", Texture("..x..x....x..x..", "x..x..o.....x.x.", _FUNK)),
        "B": Block("bVImaj7|bVII|i7|V7", Texture("held", "o...o...o...o...", _BACKBEAT, pad=True)),
        "C": Block("iv7|bVII|bIIImaj7|V7", Texture("x.x...x.x.x...x.", "o.x.o.x.o.x.o.x.", _ROCK_B)),
    }, {"melody": 64, "chords": 4, "bass": 36, "pad": 16}),
    "song_march": Song("Bb", "major", (2, 4), 112, "AABC", {
        "A": Block("I|I|V7|V7|V7|V7|I|I", Texture("..o...o.", "o...5...", _MARCH)),
        "B": Block("vi|vi|iii|iii|IV|I|V7|V7", Texture("held", "o...o...", {"snare": "xxx.x.x."})),
        "C": Block("IV|IV|I|I|ii|V7|I|IV|V7|I", Texture("broken", "held", {"kick": "x...x...", "crash": "x......."})),
    }, {"melody": 56, "chords": 60, "bass": 58, "pad": 70}),
    "song_blues": Song("A", "major", (4, 4), 150, "CAB", {
        "A": Block("I7|I7|I7|I7|IV7|IV7|I7|I7|V7|IV7|I7|V7", Texture("..o...o...o...o.", "walk", _SHUFFLE)),
        "B": Block("I7|IV7|I7|I7|IV7|IV7|I7|I7|ii7|V7|I7|I7", Texture("held", "x.x.x.x.x.x.x.x.", _BACKBEAT)),
        "C": Block("V7|IV7", Texture("broken", "held", {"ride": "x...x...x...x..."})),
    }, {"melody": 22, "chords": 18, "bass": 32}),
    "song_minuet": Song("C", "major", (3, 4), 132, "AABC", {
        "A": Block("I|V|I|IV|ii|V7|I|I", Texture("held", "o...o...o...")),
        "B": Block("V|V|vi|vi|II7|V|II7|V", Texture("broken", "held")),
        "C": Block("i|iv|bVI|iv|V7|i", Texture("....o...o...", "held", pad=True)),
    }, {"melody": 40, "chords": 6, "bass": 42, "pad": 44}),
}  # fmt: skip
"""Id -> song."""


def compose(name: str) -> Piece:
    """Return one of the `SONGS` as a piece; the same at every call."""
    song = SONGS[name]
    key = Key(NAMES.index(song.tonic), song.mode)
    numerator, denominator = song.meter
    bar = 4 * TPQ * numerator // denominator
    material = {label: _block(name, label, block, key, song.meter) for label, block in song.blocks.items()}
    melody: list[Note] = []
    chords: list[Span] = []
    sections: list[Span] = []
    at = 0
    for label in song.form:
        length, harmony, notes = material[label]
        melody += [note._replace(onset=at + note.onset) for note in notes]
        chords += [Span(at + span.start, at + span.end, span.label) for span in harmony]
        sections.append(Span(at, at + length, label))
        at += length
    return arrange(
        name,
        melody,
        chords,
        sections,
        Plan(song.programs, {label: block.texture for label, block in song.blocks.items()}, song.register),
        bars=range(0, at, bar),
        meter=song.meter,
        mspq=round(6e7 / song.bpm * TPQ / beat_of(song.meter)),
        key=key,
    )


def _block(name: str, label: str, block: Block, key: Key, meter: tuple[int, int]) -> tuple[int, list[Span], list[Note]]:
    """Return length, chords and melody of a kind of section."""
    bar = 4 * TPQ * meter[0] // meter[1]
    harmony: list[Span] = []
    bars = block.chords.split("|")
    for index, text in enumerate(bars):
        numerals = text.split()
        width = bar // len(numerals)
        for place, numeral in enumerate(numerals):
            start = index * bar + place * width
            harmony.append(Span(start, start + width, from_roman(numeral, key.tonic)))
    rng = random.Random(f"{name}/{label}")
    return len(bars) * bar, harmony, grow_melody(harmony, len(bars), meter, key, rng)


def grow_melody(
    harmony: Sequence[Span], n_bars: int, meter: tuple[int, int], key: Key, rng: random.Random
) -> list[Note]:
    """Grow a melody over chords: two motifs in turn, each phrase closed by a rest."""
    open_cells, closing = _CELLS[meter]
    motifs = [(cell, _contour(rng, len(cell))) for cell in rng.sample(open_cells, 3)]
    endings = [(cell, _contour(rng, len(cell))) for cell in rng.sample(closing, 2)]
    bar = 4 * TPQ * meter[0] // meter[1]
    notes: list[Note] = []
    pitch = 72 + rng.randrange(-3, 4)
    for index in range(n_bars):
        last = index % 4 == 3 or index == n_bars - 1
        cell, contour = endings[index // 4 % 2] if last else motifs[(0, 1, 2)[index % 4]]
        onset = index * bar
        for place, (eighths, step) in enumerate(zip(cell, contour, strict=True)):
            duration = abs(eighths) * TPQ // 2
            if eighths > 0:
                chord = next(span for span in harmony if span.start <= onset < span.end).label
                strong = place == 0 or duration >= 2 * TPQ
                pitch = _next_pitch(pitch, step, chord, key, strong=strong, rng=rng)
                notes.append(Note(onset, duration, pitch, 92 if strong else 84))
            onset += duration
    return notes


def _contour(rng: random.Random, n_notes: int) -> list[int]:
    return [rng.choice((-3, -2, -1, -1, 1, 1, 2, 3)) for _ in range(n_notes)]


def _next_pitch(pitch: int, step: int, chord: str, key: Key, *, strong: bool, rng: random.Random) -> int:
    """Move by scale steps; strong notes land on the chord. Outside G4..C6 the line turns back."""
    tones = chord_pitch_classes(chord)
    scale = scale_of(key, tones)
    step = abs(step) if pitch < 67 else -abs(step) if pitch > 81 else step
    ladder = [p for p in range(60, 91) if p % 12 in scale]
    place = min(range(len(ladder)), key=lambda i: abs(ladder[i] - pitch))
    moved = ladder[max(0, min(len(ladder) - 1, place + step))]
    if strong:
        candidates = sorted({nearest(tone, moved) for tone in tones}, key=lambda p: abs(p - moved))
        moved = candidates[1] if candidates[0] == pitch and rng.random() < 0.7 else candidates[0]
    return moved
