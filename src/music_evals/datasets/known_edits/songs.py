"""The twelve programmatic pieces of `known_edits`: forms and harmonies from `songs.yaml`, melodies grown from a seed.

Each song has two or three kinds of section that differ in harmony, accompaniment and drums. A section's melody is grown
once from motifs, so that sections of one label are the same music.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Mapping, Sequence

from music_evals.annotations import Key
from music_evals.datasets.known_edits.arranging import Plan, Texture, arrange, nearest, spread
from music_evals.datasets.known_edits.harmony import NAMES, chord_pitch_classes, from_roman, scale_of
from music_evals.datasets.known_edits.pieces import TPQ, Note, Piece, Span, beat_of
from music_evals.yaml_files import packaged_yaml

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
    (2, 4): (((2, 2), (1, 1, 2), (3, 1), (2, 1, 1), (1, 1, 1, 1), (-1, 1, 1, 1)), ((2, -2), (1, 1, -2), (3, -1))),
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


@functools.cache
def songs() -> dict[str, Song]:
    """Return what `songs.yaml` says, by id."""
    reported = packaged_yaml("music_evals.datasets.known_edits", "songs.yaml")
    by_name = {}
    for name, song in reported["songs"].items():
        blocks = {}
        for label, block in song["blocks"].items():
            texture = {key: value for key, value in block.items() if key != "chords"}
            if isinstance(texture.get("drums"), str):
                texture["drums"] = reported["drums"][texture["drums"]]  # a rhythm that several songs share
            blocks[label] = Block(block["chords"], Texture(**texture))
        by_name[name] = Song(**(song | {"meter": tuple(song["meter"]), "blocks": blocks}))
    return by_name


def compose(name: str) -> Piece:
    """Return one of the `songs` as a piece; the same at every call."""
    song = songs()[name]
    key = Key(NAMES.index(song.tonic), song.mode)
    numerator, denominator = song.meter
    bar = 4 * TPQ * numerator // denominator
    material = {}  # length, chords and melody of each kind of section
    for label, block in song.blocks.items():
        harmony = [span._replace(label=from_roman(span.label, key.tonic)) for span in spread(block.chords, 0, bar)]
        n_bars = block.chords.count("|") + 1
        grown = grow_melody(harmony, n_bars, song.meter, key, random.Random(f"{name}/{label}"))
        material[label] = n_bars * bar, harmony, grown
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
