"""Accompaniments for the pieces of `known_edits`: chords held, broken or in rhythm, bass lines and drum patterns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from music_evals.annotations import DRUMS, Key
from music_evals.datasets.known_edits.harmony import chord_pitch_classes
from music_evals.datasets.known_edits.pieces import TPQ, Note, Part, Piece, Span, articulate, merge_spans, tidy

DRUM_KEYS = {"kick": 36, "snare": 38, "rim": 37, "clap": 39, "hat": 42, "open": 46, "ride": 51, "crash": 49, "tom": 45}
"""Names of the patterns -> keys of the General MIDI drum kit."""

_COMP_VELOCITY, _PAD_VELOCITY, _BASS_VELOCITY, _DRUM_VELOCITY = 64, 52, 82, 66
_ARPEGGIO = (0, 1, 2, 1)


@dataclasses.dataclass(frozen=True)
class Texture:
    """How a section is accompanied."""

    # ``"held"``, ``"broken"``, ``""`` for none, or a rhythm: one letter a sixteenth of the bar, ``x`` short, ``o`` an
    # eighth, others silent.
    comp: str = "held"
    # ``"held"``, ``"walk"``, ``""`` for none, or a rhythm as above; ``5`` in a rhythm is an eighth on the fifth.
    bass: str = "held"
    # Instrument of `DRUM_KEYS` -> rhythm, one letter a sixteenth.
    drums: Mapping[str, str] = dataclasses.field(default_factory=dict)
    pad: bool = False  # whether a second instrument holds the chords


@dataclasses.dataclass(frozen=True)
class Plan:
    """All of a piece but its melody and chords."""

    programs: Mapping[str, int]  # role or name of a part -> program: melody, chords, bass, pad
    textures: Mapping[str, Texture]  # label of a section -> its accompaniment
    register: int = 57  # MIDI pitch around which chords lie


def nearest(pitch_class: int, around: int) -> int:
    """Return the pitch of a pitch class that is nearest to `around`, the lower of two."""
    return around - 6 + (pitch_class - (around - 6)) % 12


def voicing(label: str, around: int) -> list[int]:
    """Return a chord in close position around a pitch, lowest first; empty for no triad."""
    return sorted(nearest(pc, around) for pc in chord_pitch_classes(label))


def spread(chords: str, first: int, bar: int) -> list[Span]:
    """Return the chords of bars from a tick on; ``|`` parts bars, and those of one bar share it alike."""
    spans = []
    for index, labels in enumerate(text.split() for text in chords.split("|")):
        width = bar // len(labels)
        starts = (first + index * bar + place * width for place in range(len(labels)))
        spans += [Span(start, start + width, label) for start, label in zip(starts, labels, strict=True)]
    return spans


def arpeggio(pitches: Sequence[int], start: int, end: int, velocity: int) -> Iterator[Note]:
    """Yield eighths up and down a chord from `start` to `end`."""
    step = TPQ // 2
    for index, onset in enumerate(range(start, end, step)):
        pitch = pitches[_ARPEGGIO[index % 4] % len(pitches)]
        yield Note(onset, min(step, end - onset), pitch, velocity)


def drum_bar(pattern: Mapping[str, str], start: int, end: int) -> Iterator[Note]:
    """Yield the hits of one bar; a rhythm shorter than the bar is repeated."""
    step = TPQ // 4
    for name, rhythm in pattern.items():
        for index, onset in enumerate(range(start, end, step)):
            if rhythm[index % len(rhythm)] != ".":
                velocity = _DRUM_VELOCITY - (14 if name in {"hat", "ride"} else 0)
                yield Note(onset, step, DRUM_KEYS[name], velocity)


def arrange(
    name: str,
    melody: Sequence[Note],
    chords: Sequence[Span],
    sections: Sequence[Span],
    plan: Plan,
    *,
    bars: Sequence[int],
    meter: tuple[int, int],
    mspq: int,
    key: Key,
) -> Piece:
    """Put an accompaniment under a melody."""
    end = sections[-1].end
    blank = Piece(name, (), tuple(bars), end, meter, mspq, key, merge_spans(chords), tuple(sections))
    made: dict[str, list[Note]] = {"chords": [], "pad": [], "bass": [], "drums": []}
    for start, stop in blank.bar_spans():
        texture = plan.textures[next(s.label for s in sections if s.start <= start < s.end)]
        if stop == end:  # whatever sounds or is left out before, the piece ends with its last bar
            texture = dataclasses.replace(texture, comp="held", bass="held")
        inside = [
            Span(max(span.start, start), min(span.end, stop), span.label)
            for span in blank.chords
            if span.start < stop and span.end > start
        ]
        made["chords"] += _comp(texture.comp, inside, start, stop, plan.register)
        made["bass"] += _bass(texture.bass, inside, start, stop)
        if texture.drums:
            made["drums"] += drum_bar(texture.drums, start, stop)
        if texture.pad:
            pad = _comp("held", inside, start, stop, plan.register + 7)
            made["pad"] += [note._replace(velocity=_PAD_VELOCITY) for note in pad]
    parts = [Part("melody", "melody", plan.programs["melody"], tuple(articulate(melody, mspq)))]
    for role, notes in made.items():
        if notes:
            program = DRUMS if role == "drums" else plan.programs[role]
            parts.append(Part(role, "voice" if role == "pad" else role, program, tidy(notes)))
    return dataclasses.replace(blank, parts=tuple(parts))


def _hits(rhythm: str, start: int, stop: int) -> Iterator[tuple[int, int, str]]:
    """Yield onset, duration and letter of the hits of a bar."""
    step = TPQ // 4
    for index, onset in enumerate(range(start, stop, step)):
        letter = rhythm[index % len(rhythm)]
        if letter in "xo5":
            yield onset, min(step if letter == "x" else 2 * step, stop - onset), letter


def _label_at(inside: Sequence[Span], tick: int) -> str:
    return next(span.label for span in inside if span.start <= tick < span.end)


def _comp(style: str, inside: Sequence[Span], start: int, stop: int, around: int) -> Iterator[Note]:
    if style == "held":
        for span in inside:
            for pitch in voicing(span.label, around):
                yield Note(span.start, span.end - span.start, pitch, _COMP_VELOCITY)
    elif style == "broken":
        for span in inside:
            yield from arpeggio(voicing(span.label, around), span.start, span.end, _COMP_VELOCITY)
    elif style:
        for onset, duration, _ in _hits(style, start, stop):
            for pitch in voicing(_label_at(inside, onset), around):
                yield Note(onset, duration, pitch, _COMP_VELOCITY)


def _bass(style: str, inside: Sequence[Span], start: int, stop: int) -> Iterator[Note]:
    if style == "held":
        for span in inside:
            yield Note(span.start, span.end - span.start, _bass_pitch(span.label, 0), _BASS_VELOCITY)
    elif style == "walk":
        for span in inside:
            n_tones = len(chord_pitch_classes(span.label))
            for index, onset in enumerate(range(span.start, span.end, TPQ)):
                pitch = _bass_pitch(span.label, (0, 1, 2, 1)[index % 4] % n_tones)
                yield Note(onset, min(TPQ, span.end - onset), pitch, _BASS_VELOCITY)
    elif style:
        for onset, duration, letter in _hits(style, start, stop):
            tone = 2 if letter == "5" else 0
            yield Note(onset, duration, _bass_pitch(_label_at(inside, onset), tone), _BASS_VELOCITY)


def _bass_pitch(label: str, tone: int) -> int:
    tones = chord_pitch_classes(label)
    root = nearest(tones[0], 40)
    return root + (tones[tone] - tones[0]) % 12
