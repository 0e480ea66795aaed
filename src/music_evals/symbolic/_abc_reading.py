"""The music of an ABC tune as tokens that know where they stand in the text, and its notes."""

from __future__ import annotations

import dataclasses
import re
from fractions import Fraction

from music_evals.errors import UnreadableFileError
from music_evals.symbolic._abc_voices import voice_name

__all__ = ["Event", "Measure", "Music", "Voice", "key_fifths", "read_music"]

_LETTERS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
_FIFTHS = "FCGDAEB"
_ACCIDENTALS = {"^^": 2, "^": 1, "=": 0, "_": -1, "__": -2}
_MODES = {
    "": 0,
    "maj": 0,
    "ion": 0,
    "m": -3,
    "min": -3,
    "aeo": -3,
    "mix": -1,
    "dor": -2,
    "phr": -4,
    "lyd": 1,
    "loc": -5,
}
_LENGTH = r"\d*(?:/+\d*)?"

_TOKENS = re.compile(
    rf"""(?P<comment>%.*)
    |(?P<quoted>"[^"]*")
    |(?P<field>\[[A-Za-z]:[^\]]*\])
    |(?P<ending>\[\d[\d,\-]*)
    |(?P<bar>\.?(?::+\|[\]|:]*|\[\|[\]|:]*|\|[\]|:]*|::+)\d*(?:[,\-]\d+)*)
    |(?P<tie>\.?-)
    |(?P<mine>![^!]*!|\{{[^}}]*\}}|\.?\(\d(?::\d*){{0,2}}|\.?\(|\)|y{_LENGTH}|[.~H-Wh-w`]|\+[^+|]*\+)
    |(?P<note>(?:\^\^?|__?|=)?[A-Ga-g][,']*{_LENGTH})
    |(?P<chord>\[[^\]|:]*\]{_LENGTH})
    |(?P<rest>[zx]{_LENGTH})
    |(?P<rests>[ZX]\d*)
    |(?P<broken>>+|<+)
    |(?P<space>[\s\\$*]+)""",
    re.VERBOSE,
)
_NOTE = re.compile(rf"(\^\^?|__?|=)?([A-Ga-g])([,']*)({_LENGTH})")
# in a chord: a note, a tie after one, a slur, and what is an ornament of its notes
_IN_CHORD = re.compile(rf"({_NOTE.pattern})|(\.?-)|(\.?\(|\))|![^!]*!|\+[^+]*\+|[.~H-Wh-w`]|\s+")
# what directs the whole score, and does not belong to one note: where to go on, and how loudly
_MARK = re.compile(
    r"[!+](?i:segno|coda|fine|da(?:capo|coda)|D\.[CS]\.(?:al(?:coda|fine))?|p{1,4}|mp|mf|f{1,4}|s?fz?|fp"
    r"|[<>][()]|(?:cresc|crescendo|dim|diminuendo)[()])[!+]|[SO]"
)
_FIELD = re.compile(r"([A-Za-z]):([^%\n]*)")


@dataclasses.dataclass
class Event:
    """A note, a chord or a rest."""

    start: int  # in the text
    stop: int
    duration: Fraction  # in quarters
    pitches: tuple[int, ...] = ()
    onset: Fraction = Fraction(0)  # from the start of the measure
    tied: tuple[int, ...] = ()  # those of its pitches that go on
    ties: tuple[tuple[int, int], ...] = ()  # where its ties begin and end in the text


@dataclasses.dataclass
class Kept:
    """What stands between the notes of a measure and stays."""

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
    kept: list[Kept] = dataclasses.field(default_factory=list)
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
    propagates: bool = False  # whether an accidental holds to the end of the measure
    measures: list[Measure] = dataclasses.field(default_factory=list)
    open: Measure | None = None
    accidentals: dict[str, int] = dataclasses.field(default_factory=dict)
    tuplet: tuple[Fraction, int] = (Fraction(1), 0)  # factor and how many notes it still holds for
    broken: Fraction | None = None  # factor of the next note


@dataclasses.dataclass
class Music:
    """A tune: its voices in the order in which they are first heard."""

    voices: dict[str, Voice]
    has_words: bool


def key_fifths(text: str) -> int:
    """Return the sharps (positive) or flats of a ``K:`` field.

    Raises
    ------
    ValueError
        A key that is not read here, as one with accidentals of its own.

    """
    text = text.strip()
    if text.startswith("HP"):
        raise ValueError(f"the key {text} of the pipes is not edited")
    found = re.match(r"([A-G])([#b]?)\s*([A-Za-z]*)", text)
    if found is None or text.lower().startswith("none") or re.match(r"clef", text):
        return 0
    mode = found[3].lower()[:3] if found[3].lower() != "m" else "m"
    if re.search(r"\bexp\b|\s[\^_=]", text):
        raise ValueError(f"the key {text} has accidentals of its own, which are not edited")
    tonic = _FIFTHS.index(found[1]) - 1 + 7 * ((found[2] == "#") - (found[2] == "b"))
    return tonic + _MODES.get(mode, 0)


def read_music(text: str, name: str) -> Music:
    """Read the text of one tune.

    Raises
    ------
    UnreadableFileError
        Something that is not read here, so that the tune cannot be edited safely.

    """
    try:
        return _Reader(text).read()
    except ValueError as error:
        raise UnreadableFileError(f"{name}: cannot be edited safely: {error}") from error
    except ZeroDivisionError as error:
        raise UnreadableFileError(f"{name}: cannot be edited safely: a length in it is divided by 0") from error


class _Reader:
    """Goes through the text of a tune line by line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._voices: dict[str, Voice] = {}
        self._names: dict[str, str] = {}
        self._header = Voice(Fraction(0), 0, None)
        self._now: Voice | None = None
        self._words = False
        # as the reader: accidentals hold to the end of the measure from version 2.1 of the standard on
        version = re.search(r"^%abc-(\d+)\.(\d+)", text, re.MULTILINE)
        self._propagates = version is not None and (int(version[1]), int(version[2])) >= (2, 1)
        self._in_header = True

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
        found = _FIELD.match(line)
        if found or line.startswith(("%", "+:")) or not line.strip() or self._in_header:
            if found:
                self._field(found[1], found[2])
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
                raise ValueError(f"{content[place]!r} in the line {content.strip()[:40]!r} is not read here")
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
            state.unit = 4 * Fraction(value.replace(" ", ""))
        elif letter == "M":
            state.meter = _meter(value)
        elif letter == "K":
            state.fifths = key_fifths(value)
            state.accidentals.clear()
            self._in_header = False
        elif letter == "V":
            self._switch(value)
        elif letter in "mU" and not self._in_header:
            raise ValueError(f"macros and symbols of its own ({letter}: fields) are not edited")
        if state.open is not None and not state.open.events:
            state.open.unit, state.open.fifths, state.open.meter = state.unit, state.fifths, state.meter
        elif state.open is not None and (state.unit, state.meter) != before:
            raise ValueError(f"{letter}:{value} stands in the middle of a measure; put it at a bar line")

    def _switch(self, value: str) -> None:
        key, name = voice_name(value)
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
            if not unit:
                unit = Fraction(1, 4) if meter and Fraction(*meter) < Fraction(3, 4) else Fraction(1, 2)
            name = self._names.get(key, key)
            self._voices[key] = Voice(unit, self._header.fifths, meter, name, self._propagates)
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
            self._inline(voice, text, start)
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
        elif kind == "broken":
            self._break(measure, voice, text)
        elif text in {"(", ")"}:
            measure.slurs.append(text)
        elif text.startswith("("):
            voice.tuplet = _tuplet(text, voice.meter)

    def _measure(self, voice: Voice) -> Measure:
        if voice.open is None:
            voice.open = Measure(voice.unit, voice.fifths, voice.meter)
        return voice.open

    def _mine(self, measure: Measure, start: int, stop: int) -> None:
        if measure.start < 0:
            measure.start = start
        elif measure.interrupted:
            # its span in the text would hold notes of the other voice
            raise ValueError("a measure is interrupted by another voice; write each measure of a voice in one piece")
        measure.stop = stop

    def _keep(self, measure: Measure, kind: str, text: str, start: int) -> None:
        measure.kept.append(Kept(text, start, len(measure.events), kind))

    def _inline(self, voice: Voice, text: str, start: int) -> None:
        if voice.open is not None:
            self._keep(voice.open, "field", text, start)
        self._field(text[1], text[3:-1])

    def _event(self, voice: Voice, kind: str, text: str, start: int) -> None:
        measure = self._measure(voice)
        event = Event(start, start + len(text), Fraction(0))
        if kind == "rest":
            length = _length(text[1:])
        elif kind == "note":
            found = _NOTE.fullmatch(text)
            assert found is not None  # the token is one
            event.pitches, length = (_pitch(voice, found),), _length(found[4])
        else:
            length = self._chord(voice, event, text)
        factor, left = voice.tuplet
        if left:
            length *= factor
            voice.tuplet = (factor, left - 1)
        if voice.broken is not None:
            length, voice.broken = length * voice.broken, None
        event.duration = length * voice.unit
        measure.events.append(event)
        self._mine(measure, start, start + len(text))

    def _chord(self, voice: Voice, event: Event, text: str) -> Fraction:
        """Read the notes of a chord and what stands between them; return its length, that of its first note."""
        inner, _, after = text[1:].rpartition("]")
        lengths, place = [], 0
        while place < len(inner):
            found = _IN_CHORD.match(inner, place)
            if found is None or (found[6] and not event.pitches):
                raise ValueError(f"the chord {text!r} is not read here; write what is no note or tie before it")
            place = found.end()
            if found[1]:
                note = _NOTE.fullmatch(found[1])
                assert note is not None  # it is one
                event.pitches += (_pitch(voice, note),)
                lengths.append(_length(note[4]))
            elif found[6]:
                first = event.start + 1 + found.start()
                event.tied += event.pitches[-1:]
                event.ties += ((first, first + len(found[6])),)
            elif found[7]:
                self._measure(voice).slurs.append(found[7][-1])
        if not lengths:
            raise ValueError(f"{text!r} is not read here")
        return lengths[0] * _length(after)

    def _silent_measure(self, voice: Voice, text: str, start: int) -> None:
        if voice.meter is None or text not in {"Z", "Z1", "X", "X1"}:
            raise ValueError(f"{text}, a rest of whole measures, is not edited; write a rest into each of them")
        measure = self._measure(voice)
        measure.events.append(Event(start, start + len(text), Fraction(4 * voice.meter[0], voice.meter[1])))
        self._mine(measure, start, start + len(text))

    def _break(self, measure: Measure, voice: Voice, text: str) -> None:
        if not measure.events:
            raise ValueError("a broken rhythm has no note before it")
        short = Fraction(1, 2 ** len(text))
        before, after = (2 - short, short) if text[0] == ">" else (short, 2 - short)
        measure.events[-1].duration *= before
        voice.broken = after

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


def _meter(value: str) -> tuple[int, int] | None:
    value = {"C": "4/4", "C|": "2/2"}.get(value, value)
    found = re.fullmatch(r"\(?([\d+\s]+)\)?\s*/\s*(\d+)", value)
    return (sum(map(int, found[1].split("+"))), int(found[2])) if found else None


def _length(text: str) -> Fraction:
    if not text:
        return Fraction(1)
    upper, slash, lower = text.partition("/")
    if not slash:
        return Fraction(int(upper))
    halvings = 1 + lower.count("/")
    lower = lower.strip("/")
    return Fraction(int(upper or 1), int(lower) if lower else 2**halvings)


def _tuplet(text: str, meter: tuple[int, int] | None) -> tuple[Fraction, int]:
    numbers = [int(part) if part else 0 for part in text[1:].split(":")]
    p, q, r = [*numbers, 0, 0][:3]
    compound = meter is not None and meter[0] % 3 == 0 and meter[0] > 3
    q = q or {2: 3, 3: 2, 4: 3, 6: 2, 8: 3}.get(p, 3 if compound else 2)
    return Fraction(q, p), r or p


def _pitch(voice: Voice, note: re.Match[str]) -> int:
    accidental, letter, octaves = note[1], note[2], note[3]
    name = letter.upper()
    of_key = (voice.fifths + 6 - _FIFTHS.index(name)) // 7
    alter = _ACCIDENTALS[accidental] if accidental else voice.accidentals.get(name, of_key)
    if voice.propagates:
        voice.accidentals[name] = alter
    octave = (5 if letter.islower() else 4) + octaves.count("'") - octaves.count(",")
    return 12 * (octave + 1) + _LETTERS[name] + alter
