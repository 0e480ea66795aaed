"""The edits of `known_edits`: a piece, a kind and a strength in, another piece and operations on its recording out.

Every choice is drawn from a seed made of piece, kind and strength. What a kind means is said in `edits.yaml`; what it
leaves alone is checked there too, by `labels.holds`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from music_evals.annotations import DRUMS, Key
from music_evals.datasets.known_edits.arranging import arpeggio, drum_bar, nearest
from music_evals.datasets.known_edits.harmony import (
    QUALITIES,
    chord_label,
    chord_pitch_classes,
    relabel,
    scale_of,
    transpose_label,
)
from music_evals.datasets.known_edits.pieces import TPQ, Note, Part, Piece, Span, merge_spans, splice
from music_evals.datasets.programs import BENCHMARK_PROGRAMS, FAMILIES, programs_of

Operations = list[dict[str, Any]]

_MELODIC_FAMILIES = ("organ", "strings", "ensemble", "brass", "reed", "pipe", "synth_lead")
_CHORD_FAMILIES = ("piano", "organ", "guitar", "ensemble", "synth_pad")
_BEATS = {
    2: {"kick": "x...x...", "snare": "..x...x.", "hat": "x.x.x.x."},
    3: {"kick": "x...........", "snare": "....x...x...", "hat": "x.x.x.x.x.x."},
    4: {"kick": "x.....x.x.......", "snare": "....x.......x...", "hat": "x.x.x.x.x.x.x.x."},
    6: {"kick": "x.....x.....", "snare": "......x.....", "hat": "x.x.x.x.x.x."},
}
"""Numerator of the meter -> a beat on the drums, one letter a sixteenth."""

_RUBATO_BARS = 4
_MAX_MOVE_SEC = 0.045


@dataclasses.dataclass(frozen=True)
class Edited:
    """What an edit made of a piece."""

    piece: Piece  # the music afterwards; the piece itself where only the recording is edited
    operations: tuple[Mapping[str, Any], ...]  # what is done to the recording of `piece`, for `audio_edits.apply`
    instruction: str  # what was done, in an English sentence


def apply_edit(piece: Piece, kind: str, strength: float) -> Edited:
    """Apply one of `EDITS` to a piece that offers what it needs; the same at every call."""
    seed = f"{piece.name}/{kind}/{strength:g}"
    result, operations, instruction = EDITS[kind](piece, strength, random.Random(seed))
    return Edited(result, tuple(operations), instruction)


_Result = tuple[Piece, Operations, str]


def _share(strength: float) -> str:
    return {0.25: "a quarter", 0.5: "half", 0.75: "three quarters", 1.0: "all"}[strength]


def _velocity(piece: Piece, strength: float, rng: random.Random) -> _Result:
    def change(note: Note) -> Note:
        factor = 1 + strength * rng.uniform(-1, 1)
        return note._replace(velocity=max(1, min(127, round(note.velocity * factor))))

    result = piece.map_parts(lambda part: part.with_notes(change(note) for note in part.notes))
    return result, [], f"Vary the loudness of the single notes at random by up to {strength:.0%}."


def _texture(piece: Piece, strength: float, rng: random.Random) -> _Result:
    """Break the chords of a part into eighths where two notes start at once, else hold them, in some bars."""
    bars = list(piece.bar_spans())
    chosen = bars if strength == 2 else sorted(rng.sample(bars, len(bars) // 2))

    def broken_or_held(part: Part) -> Part:
        made = [note for note in part.notes if not any(start <= note.onset < end for start, end in chosen)]
        # chord by chord within each bar; the pitches stay
        for (start, end), chord in itertools.product(chosen, piece.chords):
            low, high = max(start, chord.start), min(end, chord.end)
            inside = [note for note in part.notes if low <= note.onset < high]
            if not inside:
                continue
            pitches, velocity = sorted({note.pitch for note in inside}), inside[0].velocity
            if len({note.onset for note in inside}) < len(inside):
                made += arpeggio(pitches, low, high, velocity)
            else:
                made += [Note(low, high - low, pitch, velocity) for pitch in pitches]
        return part.with_notes(made)

    which = "everywhere" if strength == 2 else "in half of the bars"
    sentence = f"Break up the accompanying chords that are held, and hold those that are broken up, {which}."
    return piece.map_parts(broken_or_held, ["chords"]), [], sentence


def _timbre(piece: Piece, strength: float, rng: random.Random) -> _Result:
    roles = {1: ["melody"], 2: ["chords", "voice", "bass"], 3: ["melody", "chords", "voice", "bass"]}[int(strength)]
    result = piece.map_parts(lambda part: dataclasses.replace(part, program=_other_program(part, rng)), roles)
    who = {1: "the melody", 2: "the accompaniment", 3: "everything but the drums"}[int(strength)]
    return result, [], f"Play {who} on other instruments."


def _other_program(part: Part, rng: random.Random) -> int:
    """Choose a program of another family; a bass may stay a bass."""
    families = {"bass": ("bass",), "chords": _CHORD_FAMILIES}.get(part.role, _MELODIC_FAMILIES)
    candidates = [program for family in families for program in programs_of(family, BENCHMARK_PROGRAMS)]
    own = next((members for members in FAMILIES.values() if part.program in members), range(0))
    forbidden = {part.program} if part.role == "bass" else {part.program, *own}
    return rng.choice([program for program in candidates if program not in forbidden])


def _drums_added(piece: Piece, _: float, __: random.Random) -> _Result:
    pattern = _BEATS[piece.meter[0]]
    bars = [(start, end) for start, end in piece.bar_spans() if end - start == piece.bar]
    notes = [note for start, end in bars for note in drum_bar(pattern, start, end)]
    drums = Part("drums", "drums", DRUMS, ()).with_notes(notes)
    return dataclasses.replace(piece, parts=(*piece.parts, drums)), [], "Add a beat on the drums."


def _microtiming(piece: Piece, strength: float, rng: random.Random) -> _Result:
    ticks_per_sec = TPQ * 1e6 / piece.mspq

    def loosen(part: Part) -> Part:
        moved = []
        for note in part.notes:
            seconds = max(-_MAX_MOVE_SEC, min(_MAX_MOVE_SEC, rng.gauss(0, strength / 1000)))
            move = round(seconds * ticks_per_sec)
            limit = note.duration // 3
            onset = max(0, note.onset + max(-limit, min(limit, move)))
            moved.append(note._replace(onset=onset, duration=max(1, note.end - onset)))
        if part.role == "melody":  # a note ends where the next begins, where it would sound into it
            ends = [*(following.onset for following in moved[1:]), math.inf]
            moved = [
                note._replace(duration=int(min(note.end, end)) - note.onset)
                for note, end in zip(moved, ends, strict=True)
            ]
        return part.with_notes(moved)

    return piece.map_parts(loosen), [], f"Play less exactly: notes come up to {3 * strength:g} ms early or late."


def _transpose(piece: Piece, strength: float, _: random.Random) -> _Result:
    n = int(strength)
    result = dataclasses.replace(
        _repitched(piece, lambda pitch: pitch + n),
        key=Key((piece.key.tonic + n) % 12, piece.key.mode),
        chords=tuple(chord._replace(label=transpose_label(chord.label, n)) for chord in piece.chords),
    )
    return result, [], f"Transpose the music up by {n} semitone{'s' * (n > 1)}."


def _repitched(
    piece: Piece, change: Callable[[int], int], roles: Sequence[str] = ("melody", "chords", "voice", "bass")
) -> Piece:
    return piece.map_parts(
        lambda part: part.with_notes(note._replace(pitch=change(note.pitch)) for note in part.notes), roles
    )


def _mode(piece: Piece, _: float, __: random.Random) -> _Result:
    to_minor = piece.key.mode == "major"
    degrees = {4: 3, 9: 8, 11: 10} if to_minor else {3: 4, 8: 9, 10: 11}
    tonic = piece.key.tonic
    moved = {(tonic + a) % 12: (tonic + b) % 12 for a, b in degrees.items()}
    step = -1 if to_minor else 1
    result = dataclasses.replace(
        _repitched(piece, lambda pitch: pitch + step * (pitch % 12 in moved)),
        key=Key(tonic, "minor" if to_minor else "major"),
        chords=merge_spans(chord._replace(label=relabel(chord.label, moved)) for chord in piece.chords),
    )
    return result, [], f"Turn the piece from {piece.key.mode} to {result.key.mode} on the same tonic."


def _tempo(piece: Piece, strength: float, _: random.Random) -> _Result:
    faster = f"Play {strength - 1:.0%} faster." if strength > 1 else f"Play {1 - strength:.0%} slower."
    return dataclasses.replace(piece, mspq=round(piece.mspq / strength)), [], faster


def _stretch(piece: Piece, strength: float, _: random.Random) -> _Result:
    way = "Speed the recording up" if strength > 1 else "Slow the recording down"
    operation = {"op": "stretch", "factor": float(strength)}
    return piece, [operation], f"{way} by {abs(strength - 1):.0%} without changing its pitch."


def _varispeed(piece: Piece, strength: float, _: random.Random) -> _Result:
    semitones = f"{strength:g} semitone{'s' * (strength > 1)}"
    operation = {"op": "varispeed", "semitones": int(strength)}
    return (piece, [operation], f"Run the recording faster, so that pitch rises by {semitones} and tempo with it.")


def _rubato(piece: Piece, strength: float, _: random.Random) -> _Result:
    """Let the tempo swing; the phase is the one with which the claims on sections are true, where there is one."""
    starts = [section.start for section in piece.sections]

    def misfit(swung: Piece) -> float:
        """Return how far the greatest move of a section is from 30 ms at depth 0.05, from 90 ms at depth 0.15."""
        move = float(abs(swung.seconds(starts) - piece.seconds(starts)).max())
        return abs(move - strength * 0.6)

    anchors = range(0, _RUBATO_BARS * piece.bar, piece.beat // 2)
    swung = (dataclasses.replace(piece, tempos=_swing(piece, strength, anchor)) for anchor in anchors)
    return min(swung, key=misfit), [], f"Let the tempo swing by {strength:.0%} within every four bars."


def _swing(piece: Piece, depth: float, anchor: int) -> tuple[tuple[int, int], ...]:
    """Return a tempo map: one sine of tempo every four bars from a tick on; each four bars last as long as before."""
    period, step = _RUBATO_BARS * piece.bar, piece.beat // 2
    n_steps = period // step
    slowness = [1 / (1 + depth * math.sin(2 * math.pi * (i + 0.5) / n_steps)) for i in range(n_steps)]
    mean = sum(slowness) / n_steps
    tempos = [(0, piece.mspq)]
    start = anchor
    while start + period <= piece.end:
        tempos += [(start + i * step, round(piece.mspq * value / mean)) for i, value in enumerate(slowness)]
        start += period
    if start < piece.end - piece.bar:  # a change behind the last note would make a MIDI file longer than its music
        tempos.append((start, piece.mspq))
    return tuple(dict(tempos).items())


def _meter(piece: Piece, _: float, __: random.Random) -> _Result:
    spans = [(a, b - piece.beat if b - a == piece.bar else b) for a, b in piece.bar_spans()]
    numerator, denominator = piece.meter
    fewer = numerator - piece.beat * denominator // (4 * TPQ)
    result = dataclasses.replace(splice(piece, spans), meter=(fewer, denominator))
    meters = f"{numerator}/{denominator} becomes {fewer}/{denominator}"
    return result, [], f"Leave out the last beat of every bar, so that {meters}."


def _ordered(piece: Piece, sections: Sequence[Span]) -> Piece:
    return splice(piece, [(section.start, section.end) for section in sections])


def _sections_reordered(piece: Piece, strength: float, _: random.Random) -> _Result:
    sections = piece.sections
    if strength == 1:
        return _ordered(piece, (*sections[1:], sections[0])), [], "Move the first section to the end."
    return _ordered(piece, sections[::-1]), [], "Play the sections in reverse order."


def _melody_octave(piece: Piece, strength: float, _: random.Random) -> _Result:
    result = _repitched(piece, lambda pitch: pitch + 12 * int(strength), ["melody"])
    return result, [], f"Play the melody an octave {'higher' if strength > 0 else 'lower'}."


def _bars_of_melody(piece: Piece, share: float, rng: random.Random) -> list[tuple[int, int]]:
    """Draw a share of the bars in which the melody starts a note."""
    onsets = [note.onset for note in piece.melody.notes]
    bars = [(a, b) for a, b in piece.bar_spans() if any(a <= onset < b for onset in onsets)]
    return sorted(rng.sample(bars, max(1, round(share * len(bars)))))


def _melody_removed(piece: Piece, strength: float, rng: random.Random) -> _Result:
    bars = _bars_of_melody(piece, strength, rng)
    result = piece.map_parts(lambda part: _silenced(part, bars), ["melody"])
    return result, [], "Take out the melody." if strength == 1 else "Take out the melody in half of the bars."


def _reharmonised(piece: Piece, share: float, rng: random.Random) -> _Result:
    """Replace a share of the chords by other triads of the key, and the accompaniment with them."""
    # Each chord tone moves to the tone of the new chord in its place (root, third, fifth; a seventh to the root), any
    # other note to the nearest tone.
    n_chosen = max(1, round(share * len(piece.chords)))
    chosen = set(rng.sample(range(len(piece.chords)), n_chosen))
    new = [
        chord._replace(label=rng.choice(_substitutes(piece, chord)[:2])) if index in chosen else chord
        for index, chord in enumerate(piece.chords)
    ]

    def follow(note: Note) -> Note:
        index = next(i for i, chord in enumerate(piece.chords) if chord.start <= note.onset < chord.end)
        if new[index].label == piece.chords[index].label:
            return note
        before, after = chord_pitch_classes(piece.chords[index].label), chord_pitch_classes(new[index].label)
        if note.pitch % 12 in before:
            place = before.index(note.pitch % 12)
            return note._replace(pitch=nearest(after[place if place < len(after) else 0], note.pitch))
        pitches = (nearest(tone, note.pitch) for tone in after)
        return note._replace(pitch=min(pitches, key=lambda pitch: abs(pitch - note.pitch)))

    followed = piece.map_parts(lambda part: part.with_notes(map(follow, part.notes)), ["chords", "voice", "bass"])
    result = dataclasses.replace(followed, chords=merge_spans(new))
    return result, [], f"Keep the melody and the key, but replace {_share(share)} of the chords."


def _substitutes(piece: Piece, chord: Span) -> list[str]:
    """Return the triads of the key on other roots, those first that hold most of the melody above the chord."""
    sounding = [
        (note.pitch % 12, min(note.end, chord.end) - max(note.onset, chord.start))
        for note in piece.melody.notes
        if note.onset < chord.end and note.end > chord.start
    ]
    # the major and minor triads on the degrees of the scale; a minor key has both dominants
    key, labels = piece.key, []
    scale = scale_of(key)
    for degree in range(7):
        root, third, fifth = (scale[(degree + step) % 7] for step in (0, 2, 4))
        steps = (0, (third - root) % 12, (fifth - root) % 12)
        labels += [chord_label(root, quality) for quality in ("maj", "min") if QUALITIES[quality] == steps]
    if key.mode == "minor":
        labels.append(chord_label(key.tonic + 7, "maj"))
    own = chord_pitch_classes(chord.label)[0]
    others = [label for label in labels if chord_pitch_classes(label)[0] != own]

    def held(label: str) -> int:
        return sum(ticks for pitch_class, ticks in sounding if pitch_class in chord_pitch_classes(label))

    return sorted(others, key=held, reverse=True)


def _melody_ornamented(piece: Piece, share: float, rng: random.Random) -> _Result:
    """Put a turn, a trill or passing notes in the place of a share of the longer notes: quarters and longer."""

    def ornamented(part: Part) -> Part:
        long = [index for index, note in enumerate(part.notes) if note.duration >= TPQ * 3 // 4]
        chosen = set(rng.sample(long, max(1, round(share * len(long)))))
        notes: list[Note] = []
        for index, note in enumerate(part.notes):
            if index not in chosen:
                notes.append(note)
                continue
            following = part.notes[index + 1].pitch if index + 1 < len(part.notes) else note.pitch
            scale = scale_of(piece.key, chord_pitch_classes(piece.chord_at(note.onset)))
            pitches = _ornament(note.pitch, following, scale, rng)
            # an ornament fills exactly the time of its note and begins on it
            edges = [note.onset + note.duration * i // len(pitches) for i in range(len(pitches) + 1)]
            for (start, end), pitch in zip(itertools.pairwise(edges), pitches, strict=True):
                notes.append(Note(start, end - start, pitch, note.velocity))
        return part.with_notes(notes)

    sentence = f"Ornament {_share(share)} of the longer melody notes with turns, trills and passing notes."
    return piece.map_parts(ornamented, ["melody"]), [], sentence


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


def _melody_replaced(piece: Piece, strength: float, rng: random.Random) -> _Result:
    """Give the notes that start in some bars other pitches: chord tones first in the bar, notes of the scale after."""
    bars, melody = _bars_of_melody(piece, strength, rng), piece.melody.notes
    low, high = min(note.pitch for note in melody), max(note.pitch for note in melody)
    notes: list[Note] = []
    pitch = melody[0].pitch
    for note in melody:
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
    where = "throughout" if strength == 1 else "in half of the bars"
    sentence = f"Replace the melody by another one on the same chords and in the same rhythm {where}."
    return piece.map_parts(lambda part: part.with_notes(notes), ["melody"]), [], sentence


def _silenced(part: Part, bars: Sequence[tuple[int, int]]) -> Part:
    """Leave out what sounds in some bars; a note held into one of them ends at its bar line."""
    notes = []
    for note in part.notes:
        if not any(start <= note.onset < end for start, end in bars):
            ends = [start for start, _ in bars if note.onset < start < note.end]
            notes.append(note._replace(duration=min([note.end, *ends]) - note.onset))
    return part.with_notes(notes)


EDITS: dict[str, Callable[[Piece, float, random.Random], _Result]] = {
    "gain": lambda piece, db, _: (piece, [{"op": "gain", "db": float(db)}], f"Make the recording {-db:g} dB quieter."),
    "velocity": _velocity, "texture": _texture, "timbre": _timbre,
    "drums_removed": lambda piece, *_: (
        piece.map_parts(lambda part: part.with_notes(()), ["drums"]), [], "Take out the drums.",
    ),
    "drums_added": _drums_added, "microtiming": _microtiming,
    "noise": lambda piece, db, rng: (
        piece, [{"op": "noise", "snr_db": float(db), "seed": rng.randrange(2**31)}],
        f"Add pink noise at a signal-to-noise ratio of {db:g} dB.",
    ),
    "lowpass": lambda piece, hz, _: (
        piece, [{"op": "lowpass", "hz": float(hz)}], f"Cut off everything above {hz:g} Hz.",
    ),
    "transpose": _transpose, "mode": _mode, "reharmonised": _reharmonised,
    "tempo": _tempo, "stretch": _stretch, "varispeed": _varispeed, "rubato": _rubato,
    "offset": lambda piece, seconds, _: (
        piece, [{"op": "offset", "seconds": float(seconds)}], f"Put {seconds:g} s of silence before the beginning.",
    ),
    "meter": _meter,
    "cut": lambda piece, share, _: (
        piece, [{"op": "cut", "share": float(share)}], f"Cut {_share(share)} of the recording off at its end.",
    ),
    "sections_reordered": _sections_reordered,
    "section_repeated": lambda piece, *_: (
        _ordered(piece, (piece.sections[0], *piece.sections)), [], "Play the first section twice.",
    ),
    "section_dropped": lambda piece, *_: (
        _ordered(piece, (piece.sections[0], *piece.sections[2:])), [], "Leave out the second section.",
    ),
    "melody_octave": _melody_octave, "melody_ornamented": _melody_ornamented,
    "melody_replaced": _melody_replaced, "melody_removed": _melody_removed,
}  # fmt: skip
"""Kind -> function of piece, strength and random numbers."""
