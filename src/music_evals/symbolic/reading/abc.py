"""The notes of an ABC tune as it is written, by the ABC standard 2.1.

What is read is the written music: ornaments, grace notes, swing (``R:hornpipe``), fermatas, staccato, chord symbols and
``%%MIDI`` lines change no note. An accidental holds to the end of its bar, in all octaves (section 11.3, unless
``propagate-accidentals`` says otherwise), and on a note that is tied over the bar line.

Where the standard is silent
----------------------------
- The jumps ``!D.C.!``, ``!D.S.!`` and their like are signs on the page; nothing is played for them.
- The notes of a chord all last as long as its first, which the standard says of the chord (section 4.17).
- Voices are laid side by side bar by bar. A repeat sign or an ending in one voice holds for all.
- ``K:HP`` and ``K:Hp`` sound with F sharp and C sharp.

Macros (``m:``), microtones and overlays of several bars are refused by name, as is every sign that is in no section of
the standard.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from fractions import Fraction

from music_evals.errors import UnreadableFileError
from music_evals.symbolic.limits import Limits, check_end, check_n_notes
from music_evals.symbolic.reading.abc_bars import Bar, Event, VoiceState, side_by_side, written_bar
from music_evals.symbolic.reading.abc_syntax import (
    ACCIDENTALS,
    DECORATION,
    FIELD,
    LENGTH,
    NOTE,
    AbcError,
    Key,
    TuneLine,
    default_unit,
    note_pitch,
    octave_shift,
    read_key,
    read_length,
    read_meter,
    read_part_order,
    read_tempo,
    read_tuplet,
    read_unit,
    signature_alters,
    tune_lines,
    voice_name,
)
from music_evals.symbolic.reading.written import TICKS_PER_QUARTER, WrittenMeasure, WrittenScore

__all__ = ["parse_abc"]

MAX_PASSES = 100  # of one passage
MAX_PITCH = 127

_TOKENS = re.compile(
    rf"""(?P<quoted>"[^"]*")
    |(?P<field>\[[A-Za-z]:[^\]]*\])
    |(?P<bar>\.?(?=[|\[\]]|:+[|\[\]:])(?:[|:\]]|\[(?=[|:\]]))+)
    |(?P<ending>\[\d+(?:[,-]\d+)*)
    |(?P<skipped>\{{[^}}]*\}}|{DECORATION}|\+(?![A-Ga-g]+\+)[A-Za-z][A-Za-z.]+\+|\.?\((?!\d)|\)|y{LENGTH}
        |[~.H-Wh-w`$*;?@\#\\]|!(?=[^!]*(?:\||$))|=(?:20)?\s*$|\s+)
    |(?P<tuplet>\.?\(\d+(?::\d*){{0,2}})
    |(?P<tie>\.?-)
    |(?P<note>{NOTE.pattern})
    |(?P<chord>\[[^\]|]*\]{LENGTH})
    |(?P<rest>[zx]{LENGTH})
    |(?P<rests>[ZX]\d*)
    |(?P<broken>>+|<+)
    |(?P<overlay>&)""",
    re.VERBOSE,
)
_AFTER_BAR = re.compile(r"\s*\[?(?P<passes>\d+(?:[,-]\d+)*)\.?|\s*(?P<repeat>:+)(?![|\[\]:])")  # after a bar line
_IN_CHORD = re.compile(
    rf"(?P<note>{NOTE.pattern})|(?P<tie>\.?-)|\"[^\"]*\"|\.?\(|\)|![^!]*!|\+[A-Za-z.]+\+|[.~H-Wh-w`]|\s+"
)


def parse_abc(text: str, name: str, limits: Limits) -> WrittenScore:
    """Read the text of one tune, its header included; it ends with the first empty line after its ``K:`` field.

    Raises `UnreadableFileError` where what stands there is not ABC 2.1, with the line and the sign, and
    `FileTooLargeError` over a bound on length or notes. The name is what messages call the tune.
    """
    reader = _Reader(name, limits)
    lines = tune_lines(text)
    if not any(line.text.startswith("K:") for line in lines):
        raise UnreadableFileError(f"{name}: not an ABC file (no K: field, which ends the header of every tune)")
    for line in lines:
        if reader.ended:
            break
        try:
            reader.read(line)
        except AbcError as error:
            raise UnreadableFileError(f"{name}: line {line.number}: {error}; write it as ABC 2.1 does") from error
    try:
        return reader.score()
    except AbcError as error:
        raise UnreadableFileError(f"{name}: {error}") from error


class _Reader:
    """Goes through a tune line by line."""

    def __init__(self, name: str, limits: Limits) -> None:
        self.ended = False
        self._name = name
        self._limits = limits
        self._in_header = True
        self._unit: Fraction | None = None
        self._meter: tuple[int, int] | None = None
        self._key = Key(signature_alters(0), None)
        self._shift = 0
        self._tempo: str | None = None
        self._part_order = ""
        self._labels: list[tuple[str, int]] = []  # parts and their first bars
        self._propagation = "pitch"
        self._fields: dict[str, str] = {}  # what the header says of each voice
        self._names: dict[str, str] = {}
        self._voices: dict[str, VoiceState] = {}
        self._now: VoiceState | None = None
        self._n_notes = 0

    def read(self, line: TuneLine) -> None:
        """Read one line."""
        text = line.text
        field = FIELD.match(text)
        if field:
            self._field(field[1], field[2].strip())
        elif self._in_header:
            return
        elif not text.strip():
            self.ended = line.ends_tune
        else:
            self._music(text)

    def score(self) -> WrittenScore:
        """Return what was read, once all lines are."""
        for voice in self._voices.values():
            self._close(voice)
        sounding = {key: voice for key, voice in self._voices.items() if voice.bars}
        voices = list(sounding.values())
        parts = [[written_bar(bar, index) for bar in voice.bars] for index, voice in enumerate(voices)]
        measures = side_by_side(parts, list(sounding))
        score = WrittenScore(measures, [self._names.get(key, key) for key in sounding] or [""])
        if self._part_order:
            score.parts = self._parts(len(measures))
        return score

    def _parts(self, n_measures: int) -> list[tuple[int, int]] | None:
        """Return the measures of each part in the order that the header states."""
        if not self._labels:
            return None  # the field of the header speaks of parts that the tune does not mark
        ranges: dict[str, tuple[int, int]] = {}
        # a part reaches to the next label; of several with one letter the first counts
        for (letter, start), (_, stop) in itertools.pairwise([*self._labels, ("", n_measures)]):
            ranges.setdefault(letter, (start, stop))
        missing = sorted(set(self._part_order) - ranges.keys())
        if missing:
            raise AbcError(f"its P: field names the part {missing[0]}, which is not there")
        first = self._labels[0][1]
        return [(0, first)] * (first > 0) + [ranges[letter] for letter in self._part_order]

    # --- fields

    def _field(self, letter: str, value: str) -> None:
        if letter == "m":
            raise AbcError(f"the macro {value!r} is not played out; write its notes")
        if letter == "I":
            words = value.replace(":", " ").split()
            if words[:1] == ["propagate-accidentals"] and len(words) > 1:
                if words[1] not in {"not", "octave", "pitch"}:
                    raise AbcError(f"propagate-accidentals {words[1]!r} is none of not, octave, pitch")
                self._propagation = words[1]
        elif letter == "V":
            self._switch(value)
        elif letter == "P" and not self._in_header:
            self._begin_part(value)
        elif self._now is None:  # before the music it holds for all voices
            self._header_field(letter, value)
        elif letter in "KLMQ":
            self._body_field(self._now, letter, value)

    def _header_field(self, letter: str, value: str) -> None:
        if letter == "L" and value != "auto":
            self._unit = read_unit(value)
        elif letter == "M":
            self._meter = read_meter(value)
        elif letter == "Q":
            self._tempo = value
        elif letter == "P":
            self._part_order = read_part_order(value)
        elif letter == "K":
            self._key = read_key(value) or self._key
            self._shift = octave_shift(value) or 0
            self._in_header = False

    def _body_field(self, voice: VoiceState, letter: str, value: str) -> None:
        if letter == "K":
            key = read_key(value)
            if key is not None:
                voice.key = key
                voice.accidentals.clear()
                self._state_key(voice)
            shift = octave_shift(value)
            voice.shift = voice.shift if shift is None else shift
        elif letter == "L":
            voice.unit = read_unit(value)
        elif letter == "M":
            voice.meter = read_meter(value)
            if not voice.bar.events:
                voice.bar.measure.meter = voice.meter
        elif letter == "Q":
            self._state_tempo(voice, value)

    def _begin_part(self, value: str) -> None:
        """Begin a part, which a letter names; other words are remarks."""
        if re.fullmatch(r"[A-Za-z](?:\.|\s.*)?", value):
            if self._now is not None:
                self._close(self._now)
            self._labels.append((value[0], 0 if self._now is None else len(self._now.bars)))

    def _state_key(self, voice: VoiceState) -> None:
        if voice.key.fifths is not None:
            voice.bar.measure.keys.append((voice.cursor, voice.key.fifths, voice.key.is_minor))

    def _state_tempo(self, voice: VoiceState, value: str) -> None:
        bpm = read_tempo(value, voice.unit)
        if bpm is not None:
            voice.bar.measure.tempos.append((voice.cursor, bpm))

    def _switch(self, value: str) -> None:
        key, name = voice_name(value)
        if name is not None:
            self._names[key] = name
        own = value.strip()[len(key) :]
        if self._in_header:
            self._fields[key] = own
            return
        self._now = self._voice(key)
        shift = octave_shift(own)
        self._now.shift = self._now.shift if shift is None else shift

    def _voice(self, key: str) -> VoiceState:
        if key not in self._voices:
            shift = octave_shift(self._fields.get(key, ""))
            self._voices[key] = voice = VoiceState(
                self._unit or default_unit(self._meter), self._key, self._meter, self._shift if shift is None else shift
            )
            self._state_key(voice)
            if self._tempo is not None:
                self._state_tempo(voice, self._tempo)
        return self._voices[key]

    # --- music

    def _music(self, text: str) -> None:
        place = 0
        while place < len(text):
            if self._now is not None and self._now.after_bar and (more := _AFTER_BAR.match(text, place)):
                if more["repeat"] == ":":
                    self._now.bar.measure.starts_repeat = True
                elif more["repeat"]:
                    self._bar(self._now, more["repeat"])
                else:
                    self._ending(self._now, more["passes"])
                place = more.end()
                continue
            token = _TOKENS.match(text, place)
            if token is None:
                raise AbcError(f"{text[place]!r} in {text[max(place - 20, 0) : place + 20].strip()!r} is no sign")
            self._token(str(token.lastgroup), token[0])
            place = token.end()

    def _token(self, kind: str, text: str) -> None:
        if kind == "skipped":
            return
        if kind == "field":
            self._field(text[1], text[3:-1].strip())
            return
        if self._now is None:
            self._now = self._voice("")
        voice = self._now
        if kind == "bar":
            self._bar(voice, text.lstrip("."))
        elif kind == "ending":
            self._ending(voice, text[1:])
        else:
            voice.after_bar = False
            self._sign(voice, kind, text)

    def _sign(self, voice: VoiceState, kind: str, text: str) -> None:
        """Read a note, a rest, or what changes the notes beside it."""
        if kind == "note":
            note = NOTE.fullmatch(text)
            assert note is not None  # the token is one
            self._event(voice, [note], read_length(note[4]))
        elif kind == "chord":
            self._chord(voice, text)
        elif kind == "rest":
            self._event(voice, [], read_length(text[1:]))
        elif kind == "rests":
            self._rest_measures(voice, text)
        elif kind == "tie":
            self._tie(voice, range(len(voice.last.pitches)) if voice.last else ())
        elif kind == "broken":
            self._break(voice, text)
        elif kind == "overlay":
            self._overlay(voice)
        elif kind == "tuplet":
            if voice.tuplet[1]:
                raise AbcError(f"the tuplet {text!r} begins before the one before it is complete")
            voice.tuplet = read_tuplet(text.lstrip("."), voice.meter)

    def _event(self, voice: VoiceState, notes: Sequence[re.Match[str]], length: Fraction) -> Event:
        """Add notes that start together, or a rest; all of them last as long as the first."""
        factor, left = voice.tuplet
        if left:
            length *= factor
            voice.tuplet = (factor, left - 1)
        if voice.broken is not None:
            length, voice.broken = length * voice.broken, None
        spelled = [(note[2], note[3], self._alter(voice, note)) for note in notes]
        pitches = [note_pitch(*spelling) + voice.shift for spelling in spelled]
        if pitches and not 0 <= min(pitches) <= max(pitches) <= MAX_PITCH:
            raise AbcError(f"the note {notes[0][0]!r} lies beyond the pitches 0..{MAX_PITCH} of MIDI")
        event = Event(length * voice.unit, pitches, spelled, voice.layer)
        self._add(voice, event)
        voice.tied = {}
        self._n_notes += len(pitches)
        check_n_notes(self._n_notes, self._limits, self._name)
        check_end(round(event.duration * TICKS_PER_QUARTER), TICKS_PER_QUARTER, self._limits, self._name)
        return event

    def _add(self, voice: VoiceState, event: Event) -> None:
        if not voice.bar.events:
            voice.bar.measure.meter = voice.meter
        voice.bar.events.append(event)
        voice.cursor += event.duration
        voice.last = event

    def _alter(self, voice: VoiceState, note: re.Match[str]) -> int:
        """Return the alteration of a note, by its own accidental, a tie, the bar or the key, and let it hold."""
        letter = note[2].upper()
        # what an accidental holds for: its letter in all octaves, or this one alone
        place = letter if self._propagation == "pitch" else f"{letter}{note_pitch(note[2], note[3], 0)}"
        if note[1]:
            if self._propagation != "not":
                voice.accidentals[place] = ACCIDENTALS[note[1]]
            return ACCIDENTALS[note[1]]
        if place in voice.accidentals:
            return voice.accidentals[place]
        # a tie takes its alteration over the bar line; without one the key decides
        return voice.tied.get((note[2], note[3]), voice.key.alters[letter])

    def _chord(self, voice: VoiceState, text: str) -> None:
        inner, _, after = text[1:].rpartition("]")
        notes: list[re.Match[str]] = []
        ties: list[int] = []
        place = 0
        while place < len(inner):
            token = _IN_CHORD.match(inner, place)
            if token is None or (token["tie"] and not notes):
                raise AbcError(f"{inner[place]!r} in the chord {text!r} is no note")
            if token["tie"]:
                ties.append(len(notes) - 1)
            elif token["note"]:
                note = NOTE.fullmatch(token[0])
                assert note is not None  # it is one
                notes.append(note)
            place = token.end()
        if not notes:
            raise AbcError(f"the chord {text!r} has no note")
        self._event(voice, notes, read_length(notes[0][4]) * read_length(after))
        self._tie(voice, ties)

    def _tie(self, voice: VoiceState, places: Sequence[int]) -> None:
        """Let notes of the last event go on, with their alterations."""
        event = voice.last
        if event is None:
            return  # it starts nowhere
        event.goes_on.update(places)
        voice.tied |= {event.spelled[place][:2]: event.spelled[place][2] for place in places}

    def _break(self, voice: VoiceState, text: str) -> None:
        if voice.last is None:
            raise AbcError(f"the broken rhythm {text!r} has no note before it")
        # the shorter note has 1/2, 1/4, .. of its length, the other what that leaves of two
        short = Fraction(1, 2 ** len(text))
        before, after = (2 - short, short) if text[0] == ">" else (short, 2 - short)
        if voice.bar.events:  # else it stands before the bar line
            voice.cursor += voice.last.duration * (before - 1)
        voice.last.duration *= before
        voice.broken = after

    def _rest_measures(self, voice: VoiceState, text: str) -> None:
        """Read ``Z4``: rests of whole bars, each a bar of its own."""
        if voice.meter is None:
            raise AbcError(f"{text!r}, a rest of whole bars, stands where there is no meter")
        count, length = int(text[1:] or 1), Fraction(4 * voice.meter[0], voice.meter[1])
        check_end(round(count * length * TICKS_PER_QUARTER), TICKS_PER_QUARTER, self._limits, self._name)
        for number in range(count):
            if number:
                self._close(voice)
            self._add(voice, Event(length, [], [], voice.layer))

    def _overlay(self, voice: VoiceState) -> None:
        """Go back to the start of the bar."""
        if not voice.bar.events:
            raise AbcError("an overlay & has nothing before it in its bar; overlays of several bars are not read")
        voice.layer, voice.cursor = voice.layer + 1, Fraction(0)
        voice.accidentals.clear()
        voice.tied, voice.last, voice.broken, voice.tuplet = {}, None, None, (Fraction(1), 0)

    # --- bar lines

    def _bar(self, voice: VoiceState, text: str) -> None:
        """Read a bar line of any shape: the dots on its sides, and whether it is a double one (section 4.8)."""
        self._close(voice)
        measure = voice.bar.measure
        lines = text.replace("[|]", "").strip(":")  # what cannot be seen is no double bar
        # dots before a line end a repeat, also where another line stands before them, as in [|]:|
        ending = [len(dots[0]) for dots in re.finditer(":+", text) if text[dots.end() : dots.end() + 1]]
        starting = len(text) - len(text.rstrip(":"))
        if not text.strip(":"):  # :: for :|:
            ending, starting = [len(text) // 2], len(text) // 2
        if ending and voice.bars:
            voice.bars[-1].measure.ends_repeat = min(max(ending) + 1, MAX_PASSES)
        measure.starts_repeat |= starting > 0
        measure.starts_section |= len(lines) > 1
        voice.after_bar = True

    def _ending(self, voice: VoiceState, text: str) -> None:
        """Read the passes of an ending: ``1``, ``1,3``, ``1-3``."""
        self._close(voice)
        passes: set[int] = set()
        for item in text.split(","):
            low, _, high = item.partition("-")
            if not 1 <= int(low) <= int(high or low) <= MAX_PASSES:
                raise AbcError(f"the ending {text!r} is for no pass from 1 to {MAX_PASSES}")
            passes.update(range(int(low), int(high or low) + 1))
        voice.bar.measure.ending = frozenset(passes)
        voice.bar.measure.starts_section = False  # a double bar before an ending parts no passage from it
        voice.after_bar = False

    def _close(self, voice: VoiceState) -> None:
        """End the bar that is being read, if it has begun."""
        voice.accidentals.clear()
        voice.layer, voice.cursor = 0, Fraction(0)
        if not voice.bar.events:
            return
        voice.bars.append(voice.bar)
        voice.bar = Bar(WrittenMeasure("", Fraction(0), None))
