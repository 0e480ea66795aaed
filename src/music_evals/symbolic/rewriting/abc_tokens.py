"""The music of an ABC tune as tokens that know where they stand in the text, and its notes."""

from __future__ import annotations

import dataclasses
import re
from fractions import Fraction

from music_evals.errors import UnreadableFileError
from music_evals.symbolic.reading.abc_syntax import (
    ACCIDENTALS,
    DECORATION,
    FIELD,
    LENGTH,
    NOTE,
    AbcError,
    Key,
    default_unit,
    note_pitch,
    octave_shift,
    read_key,
    read_length,
    read_meter,
    read_tuplet,
    read_unit,
    voice_name,
)
from music_evals.symbolic.reading.written import to_tick

_TOKENS = re.compile(
    rf"""(?P<comment>%.*)
    |(?P<quoted>"[^"]*")
    |(?P<field>\[[A-Za-z]:[^\]]*\])
    |(?P<ending>\[\d[\d,\-]*)
    |(?P<bar>\.?(?::+\|[\]|:]*|\[\|[\]|:]*|\|[\]|:]*|::+)\d*(?:[,\-]\d+)*)
    |(?P<tie>\.?-)
    |(?P<mine>{DECORATION}|\{{[^}}]*\}}|\.?\(\d(?::\d*){{0,2}}|\.?\(|\)|y{LENGTH}|[.~H-Wh-w`]|\+[^+|]*\+)
    |(?P<note>{NOTE.pattern})
    |(?P<chord>\[[^\]|:]*\]{LENGTH})
    |(?P<rest>[zx]{LENGTH})
    |(?P<rests>[ZX]\d*)
    |(?P<broken>>+|<+)
    |(?P<space>[\s\\$*]+)""",
    re.VERBOSE,
)
# in a chord: a note, a tie after one, a slur, and what is an ornament of its notes
_IN_CHORD = re.compile(rf"({NOTE.pattern})|(\.?-)|(\.?\(|\))|![^!]*!|\+[^+]*\+|[.~H-Wh-w`]|\s+")
# what directs the whole score, and does not belong to one note: where to go on, and how loudly
_MARK = re.compile(
    r"[!+](?i:segno|coda|fine|da(?:capo|coda)|D\.[CS]\.(?:al(?:coda|fine))?|p{1,4}|mp|mf|f{1,4}|s?fz?|fp"
    r"|[<>][()]|(?:cresc|crescendo|dim|diminuendo)[()])[!+]|[SO]"
)


@dataclasses.dataclass
class Event:
    """A note, a chord or a rest."""

    start: int  # in the text
    stop: int
    duration: Fraction  # in quarters
    spelled: tuple[tuple[str, str, int], ...] = ()  # letter, octave marks and alteration of each of its notes
    onset: Fraction = Fraction(0)  # from the start of the measure
    tied: tuple[int, ...] = ()  # those of its pitches that go on
    ties: tuple[tuple[int, int], ...] = ()  # where its ties begin and end in the text

    @property
    def pitches(self) -> tuple[int, ...]:
        """The MIDI number of each of its notes."""
        return tuple(note_pitch(*spelling) for spelling in self.spelled)


@dataclasses.dataclass
class Verbatim:
    """Text between the notes of a measure that stays as it is."""

    text: str
    start: int  # in the text
    before: int  # how many events stand before it
    kind: str  # quoted, field, ending, mark or line


@dataclasses.dataclass
class Measure:
    """The text between two bar lines."""

    unit: Fraction  # the length of a note without a number, in quarters
    fifths: int
    meter: tuple[int, int] | None
    events: list[Event] = dataclasses.field(default_factory=list)
    verbatim: list[Verbatim] = dataclasses.field(default_factory=list)
    slurs: list[str] = dataclasses.field(default_factory=list)
    start: int = -1  # where what belongs to its notes begins in the text
    stop: int = -1
    interrupted: bool = False  # whether another voice was written since it began

    @property
    def length(self) -> Fraction:
        """Length in quarters."""
        return sum((event.duration for event in self.events), Fraction(0))


@dataclasses.dataclass
class Voice:
    """What a voice has stated so far, and its measures."""

    unit: Fraction
    fifths: int
    meter: tuple[int, int] | None
    name: str = ""
    measures: list[Measure] = dataclasses.field(default_factory=list)
    open: Measure | None = None
    accidentals: dict[str, int] = dataclasses.field(default_factory=dict)
    tied: dict[tuple[str, str], int] = dataclasses.field(default_factory=dict)  # alterations that ties carry on
    tuplet: tuple[Fraction, int] = (Fraction(1), 0)  # factor and how many notes it still holds for
    broken: Fraction | None = None  # factor of the next note


@dataclasses.dataclass
class Music:
    """A tune: its voices in the order of their first notes."""

    voices: dict[str, Voice]
    has_words: bool

    def written(self) -> set[tuple[int, int, int]] | None:
        """Return onset and end in ticks and pitch of every note, tied ones each by itself.

        None for voices that have different numbers of measures, of which it is not known how they lie together.
        """
        parts = [voice.measures for voice in self.voices.values()]
        if len({len(measures) for measures in parts}) > 1:
            return None
        notes, start = set(), Fraction(0)
        for measures in zip(*parts, strict=True):
            for event in (event for measure in measures for event in measure.events):
                onset = start + event.onset
                end = max(to_tick(onset + event.duration), to_tick(onset) + 1)
                notes |= {(to_tick(onset), end, pitch) for pitch in event.pitches}
            start += max(measure.length for measure in measures)
        return notes


def key_fifths(text: str) -> int:
    """Return the sharps (positive) or flats of a ``K:`` field."""
    return _fifths(read_key(text), text)


def _fifths(key: Key | None, text: str) -> int:
    if key is None or (key.fifths is None and any(key.alters.values())):
        raise AbcError(f"the key {text.strip()} has accidentals of its own, which are not edited")
    return key.fifths or 0


def read_music(text: str, name: str) -> Music:
    """Read the text of one tune."""
    try:
        return _Reader(text).read()
    except AbcError as error:
        raise UnreadableFileError(f"{name}: cannot be edited safely: {error}") from error


class _Reader:
    """Goes through the text of a tune line by line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._voices: dict[str, Voice] = {}
        self._names: dict[str, str] = {}
        self._header = Voice(Fraction(0), 0, None)
        self._now: Voice | None = None
        self._words = False
        self._in_header = True
        if re.search(r"propagate-accidentals\s+(?:not|octave)", text):
            raise AbcError("accidentals that hold otherwise than the standard has them are not edited")
        if "%%begin" in text:
            raise AbcError("blocks of text within a tune are not edited")

    def read(self) -> Music:
        """Read all of it."""
        position = 0
        for line in self._text.splitlines(keepends=True):
            self._line(line, position)
            position += len(line)
        for voice in self._voices.values():
            self._close(voice)
        voices = {key: voice for key, voice in self._voices.items() if voice.measures}
        return Music(voices, self._words)

    def _line(self, line: str, position: int) -> None:
        match = FIELD.match(line)
        if match or line.startswith(("%", "+:")) or not line.strip() or self._in_header:
            if match:
                self._field(match[1], match[2])
            if self._now is not None and self._now.open is not None:
                self._keep(self._now.open, "line", line, position)
            return
        if self._now is None and not line.startswith("[V:"):
            self._now = self._voice("")
        place = 0
        content = line.rstrip("\r\n")
        while place < len(content):
            token = _TOKENS.match(content, place)
            if token is None:
                raise AbcError(f"{content[place]!r} in the line {content.strip()[:40]!r} is not read here")
            self._token(*_kind(str(token.lastgroup), token[0]), position + place)
            place = token.end()
        if self._now is not None and self._now.open is not None:
            self._keep(self._now.open, "line", line[len(content) :], position + len(content))

    def _field(self, letter: str, value: str) -> None:
        state = self._header if self._now is None else self._now
        before = state.unit, state.meter
        value = value.strip()
        if letter in "wW":
            self._words = self._words or letter == "w"
        elif letter == "L":
            state.unit = read_unit(value)
        elif letter == "M":
            state.meter = read_meter(value)
        elif letter == "K":
            _check_unmoved(value)
            key = read_key(value)
            if key is not None:
                state.fifths = _fifths(key, value)
                state.accidentals.clear()
            self._in_header = False
        elif letter == "V":
            self._switch(value)
        elif letter in "mU" and not self._in_header:
            raise AbcError(f"macros and symbols of its own ({letter}: fields) are not edited")
        if state.open is not None and not state.open.events:
            state.open.unit, state.open.fifths, state.open.meter = state.unit, state.fifths, state.meter
        elif state.open is not None and (state.unit, state.meter) != before:
            raise AbcError(f"{letter}:{value} stands in the middle of a measure; put it at a bar line")

    def _switch(self, value: str) -> None:
        key, name = voice_name(value)
        _check_unmoved(value.strip()[len(key) :])
        if name is not None:
            self._names[key] = name
        if self._in_header:
            return
        left, self._now = self._now, self._voice(key)
        if left is not None and left is not self._now and left.open is not None:
            left.open.interrupted = True

    def _voice(self, key: str) -> Voice:
        if key not in self._voices:
            meter, unit = self._header.meter, self._header.unit
            unit = unit or default_unit(meter)
            name = self._names.get(key, key)
            self._voices[key] = Voice(unit, self._header.fifths, meter, name)
        return self._voices[key]

    def _token(self, kind: str, text: str, start: int) -> None:
        if kind == "field" and text[1] == "V":
            self._switch(text[3:-1])
            return
        if self._now is None:
            self._now = self._voice("")
        voice = self._now
        if kind == "bar":
            self._close(voice)
        elif kind in {"note", "chord", "rest"}:
            self._event(voice, kind, text, start)
        elif kind == "rests":
            self._silent_measure(voice, text, start)
        elif kind == "field":
            if voice.open is not None:
                self._keep(voice.open, "field", text, start)
            self._field(text[1], text[3:-1])
        elif kind in {"mine", "broken", "tie"}:
            self._beside_notes(voice, kind, text, start)
        elif kind != "space" and (voice.open is not None or kind == "quoted"):
            self._keep(self._measure(voice), kind, text, start)

    def _beside_notes(self, voice: Voice, kind: str, text: str, start: int) -> None:
        """Read what belongs to notes: ties, broken rhythms, tuplets, slurs, ornaments."""
        if kind == "tie" and (voice.open is None or not voice.open.events):
            return
        measure = self._measure(voice)
        stop = start + len(text)
        self._mine(measure, start, stop)
        text = text.lstrip(".")
        if kind == "tie":
            event = measure.events[-1]
            event.tied, event.ties = event.pitches, (*event.ties, (start, stop))
            voice.tied = _tied(event)
        elif kind == "broken":
            if not measure.events:
                raise AbcError("a broken rhythm has no note before it")
            short = Fraction(1, 2 ** len(text))
            before, after = (2 - short, short) if text[0] == ">" else (short, 2 - short)
            measure.events[-1].duration *= before
            voice.broken = after
        elif text in {"(", ")"}:
            measure.slurs.append(text)
        elif text.startswith("("):
            voice.tuplet = read_tuplet(text, voice.meter)

    def _measure(self, voice: Voice) -> Measure:
        if voice.open is None:
            voice.open = Measure(voice.unit, voice.fifths, voice.meter)
        return voice.open

    def _mine(self, measure: Measure, start: int, stop: int) -> None:
        if measure.start < 0:
            measure.start = start
        elif measure.interrupted:
            # its span in the text would hold notes of the other voice
            raise AbcError("a measure is interrupted by another voice; write each measure of a voice in one piece")
        measure.stop = stop

    def _keep(self, measure: Measure, kind: str, text: str, start: int) -> None:
        measure.verbatim.append(Verbatim(text, start, len(measure.events), kind))

    def _event(self, voice: Voice, kind: str, text: str, start: int) -> None:
        measure = self._measure(voice)
        event = Event(start, start + len(text), Fraction(0))
        if kind == "rest":
            length = read_length(text[1:])
        elif kind == "note":
            match = NOTE.fullmatch(text)
            assert match is not None  # the token is one
            event.spelled, length = (_spelled(voice, match),), read_length(match[4])
        else:
            length = self._chord(voice, event, text)
        factor, left = voice.tuplet
        if left:
            length *= factor
            voice.tuplet = (factor, left - 1)
        if voice.broken is not None:
            length, voice.broken = length * voice.broken, None
        voice.tied = _tied(event)
        event.duration = length * voice.unit
        measure.events.append(event)
        self._mine(measure, start, start + len(text))

    def _chord(self, voice: Voice, event: Event, text: str) -> Fraction:
        """Read the notes of a chord and what stands between them; return its length, that of its first note."""
        inner, _, after = text[1:].rpartition("]")
        lengths, place = [], 0
        while place < len(inner):
            match = _IN_CHORD.match(inner, place)
            if match is None or (match[6] and not event.pitches):
                raise AbcError(f"the chord {text!r} is not read here; write what is no note or tie before it")
            place = match.end()
            if match[1]:
                note = NOTE.fullmatch(match[1])
                assert note is not None  # it is one
                event.spelled += (_spelled(voice, note),)
                lengths.append(read_length(note[4]))
            elif match[6]:
                first = event.start + 1 + match.start()
                event.tied += event.pitches[-1:]
                event.ties += ((first, first + len(match[6])),)
            elif match[7]:
                self._measure(voice).slurs.append(match[7][-1])
        if not lengths:
            raise AbcError(f"{text!r} is not read here")
        return lengths[0] * read_length(after)

    def _silent_measure(self, voice: Voice, text: str, start: int) -> None:
        if voice.meter is None or text not in {"Z", "Z1", "X", "X1"}:
            raise AbcError(f"{text}, a rest of whole measures, is not edited; write a rest into each of them")
        measure = self._measure(voice)
        measure.events.append(Event(start, start + len(text), Fraction(4 * voice.meter[0], voice.meter[1])))
        self._mine(measure, start, start + len(text))

    def _close(self, voice: Voice) -> None:
        """End a measure, if it has begun."""
        voice.accidentals.clear()
        measure, voice.open = voice.open, None
        if measure is None or not measure.events:
            return
        # what follows the last note belongs to the text between the measures
        onset = Fraction(0)
        for event in measure.events:
            event.onset = onset
            onset += event.duration
        voice.measures.append(measure)


def _kind(kind: str, text: str) -> tuple[str, str]:
    """Return what is to be done with a token, and its text."""
    if kind == "mine" and _MARK.fullmatch(text):
        return "mark", text
    if kind == "comment":
        return "line", text
    if kind == "space" and text.strip():  # where a line breaks on the page, or does not
        return "line", text.strip()
    return kind, text


def _tied(event: Event) -> dict[tuple[str, str], int]:
    """Return how the notes of an event that go on are altered."""
    return {
        spelling[:2]: spelling[2]
        for spelling, pitch in zip(event.spelled, event.pitches, strict=True)
        if pitch in event.tied
    }


def _check_unmoved(value: str) -> None:
    if octave_shift(value):
        raise AbcError(f"{value.strip()!r} moves what sounds, which is not edited")


def _spelled(voice: Voice, note: re.Match[str]) -> tuple[str, str, int]:
    """Return letter, octave marks and alteration of a note; its accidental holds to the end of the measure."""
    name = note[2].upper()
    of_key = (voice.fifths + 6 - "FCGDAEB".index(name)) // 7
    if note[1]:
        voice.accidentals[name] = ACCIDENTALS[note[1]]
    elif name not in voice.accidentals:
        return note[2], note[3], voice.tied.get((note[2], note[3]), of_key)
    return note[2], note[3], voice.accidentals[name]
