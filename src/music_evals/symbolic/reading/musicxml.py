"""MusicXML documents, as the standard has them (W3C MusicXML 4.0), to written music.

Time
----
A note, a rest, ``<forward>`` and ``<backup>`` move the place by their ``<duration>``; a note of a chord starts where
the note before it starts. Grace notes have no time and are left out. Cue notes are silent but take time, and so does
unpitched percussion, which is left out; notes that are not printed sound. A measure is as long as its longest part,
and all parts begin the next one together; in a pickup or half of a measure (``implicit``) parts without notes give way.
Rests alone make no measure longer than its time signature says, since some programs write a rest of another length into
a silent measure; an empty measure is as long as its time signature. Parts are aligned by the places of their measures,
and one with fewer measures is silent at the end.

Pitch
-----
Written pitches are moved by ``<transpose>``; ``<double>`` adds the other octave. Quarter tones are rounded to the
nearest key of the piano, those right between two keys to the even MIDI number.

Voices
------
Each staff of a part is a voice. Ties join notes of one pitch in one ``<voice>``. They are read from ``<tie>``, the
element for sound, or from ``<tied>`` where a note has no ``<tie>``.

Order of playing
----------------
Repeats, endings and jumps are gathered from all parts. A jump is read from the attributes of ``<sound>``; without
these from the signs and from words such as "D.C. al Fine". Marks that contradict each other leave the written order
readable, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple
from xml.etree import ElementTree as ET

from music_evals.errors import UnreadableFileError
from music_evals.symbolic.limits import Limits, check_n_notes
from music_evals.symbolic.reading.musicxml_playing import PlayingMarks
from music_evals.symbolic.reading.written import TICKS_PER_QUARTER, WrittenMeasure, WrittenNote, WrittenScore

__all__ = ["document_root", "parse_musicxml", "parse_xml"]

STEPS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
BEAT_UNITS = {  # in quarters
    "maxima": Fraction(32), "long": Fraction(16), "breve": Fraction(8), "whole": Fraction(4), "half": Fraction(2),
    "quarter": Fraction(1), "eighth": Fraction(1, 2), "16th": Fraction(1, 4), "32nd": Fraction(1, 8),
    "64th": Fraction(1, 16), "128th": Fraction(1, 32), "256th": Fraction(1, 64),
}  # fmt: skip
MAX_BEATS = 1024  # above and below in a time signature; the standard names no bound, and longer ones are damage
# the decimal numbers of XML, without the exponents that Python would take and that could fill the memory
DECIMAL = re.compile(r"[+-]?(?:\d{1,12}(?:\.\d{0,30})?|\.\d{1,30})")
TIE_GAP = 2 * TICKS_PER_QUARTER  # between the stated ends of a tie: durations are rounded, or fall short of their bar
FORTE = Fraction(90, 100)  # MIDI velocity of one percent of the standard's default forte
"""What the attribute ``dynamics`` of a note counts in."""


class _Transposition(NamedTuple):
    """What is added to written pitches, in semitones; two values where the part is doubled."""

    semitones: tuple[int, ...] = (0,)
    fifths: int = 0  # and to the key


def parse_musicxml(document: bytes, name: str, limits: Limits) -> WrittenScore:
    """Read a MusicXML document, partwise or timewise, as it is written.

    The XML may be in any encoding that it declares; the name is that of the file, for messages. Each staff of each part
    is a voice of its own.

    Raises
    ------
    UnreadableFileError
        Not a MusicXML document, or damaged; the message names part, measure and note.
    FileTooLargeError
        Over the bound on notes.
    """
    root = document_root(document, name)
    check_n_notes(sum(1 for _ in root.iter("pitch")), limits, name)
    parts = _parts(root)
    names: dict[str | None, str] = {}
    for score_part in root.iter("score-part"):
        texts = (score_part.findtext("part-name"), score_part.findtext("score-instrument/instrument-name"))
        names[score_part.get("id")] = next(filter(None, (" ".join((text or "").split()) for text in texts)), "")
    longest = max((measures for _, measures in parts), key=len, default=[])
    score = WrittenScore(
        [WrittenMeasure(number or f"#{place + 1}", Fraction(0), None) for place, (number, _) in enumerate(longest)], []
    )
    marks = PlayingMarks(score.measures)
    groups: list[int] = []
    silent: dict[int, Fraction] = {}
    for index, (part, measures) in enumerate(parts):
        # the staves on which notes or rests stand, in order
        stated = {_staff(note) for _, measure in measures for note in measure.iterfind("note")}
        staves = sorted(stated, key=lambda staff: (len(staff), staff)) or ["1"]
        reader = _PartReader(name, names.get(part) or part, staves, score, marks, silent)
        score.voices += [names.get(part, "")] * len(staves)
        groups += [index] * len(staves)
        reader.read([element for _, element in measures])
    marks.finish()
    score.tie_groups, score.tie_gap = tuple(groups), TIE_GAP
    score.contradiction = marks.contradictions[0] if marks.contradictions else ""
    # empty measures are as long as their rests or signatures; keys and tempi stand in order of time
    for index, measure in enumerate(score.measures):
        measure.length = measure.length or silent.get(index, Fraction(0))
        if not measure.length and measure.meter is not None:
            measure.length = Fraction(4 * measure.meter[0], measure.meter[1])
        measure.keys.sort(key=lambda key: key[0])
        measure.tempos.sort(key=lambda tempo: tempo[0])
    return score


def document_root(document: bytes, name: str) -> ET.Element:
    """Parse a MusicXML document; raise `UnreadableFileError` where it is not well-formed, or of another kind."""
    try:
        root = parse_xml(document)
    except (ET.ParseError, LookupError, ValueError) as error:  # the last two: encodings that Python does not know
        raise UnreadableFileError(f"{name}: cannot be read as a score (not well-formed XML: {error})") from error
    if root.tag not in {"score-partwise", "score-timewise"}:
        raise UnreadableFileError(
            f"{name}: cannot be read as a score (expected <score-partwise> or <score-timewise>, got <{root.tag}>)"
        )
    return root


def parse_xml(content: bytes) -> ET.Element:
    """Parse XML that declares no entities: none are needed, and nested ones can fill the memory."""
    if b"<!ENTITY" in content.replace(b"\0", b""):  # without the zero bytes UTF-16 reads as ASCII
        raise ValueError("the document declares XML entities")
    return ET.fromstring(content)  # noqa: S314  # entities are refused above


def _parts(root: ET.Element) -> list[tuple[str, list[tuple[str, ET.Element]]]]:
    """Return the identifier of each part, and number and content of its measures."""
    if root.tag == "score-partwise":
        return [
            (part.get("id", ""), [(measure.get("number", ""), measure) for measure in part.iterfind("measure")])
            for part in root.iterfind("part")
        ]
    measures = [
        (measure.get("number", ""), {part.get("id", ""): part for part in measure.iterfind("part")})
        for measure in root.iterfind("measure")
    ]
    names = dict.fromkeys(part for _, parts in measures for part in parts)
    empty = ET.Element("part")
    return [(part, [(number, parts.get(part, empty)) for number, parts in measures]) for part in names]


def _staff(note: ET.Element) -> str:
    return note.findtext("staff", "1").strip()


class _PartReader:
    """Reads the measures of one part into a score."""

    def __init__(  # noqa: PLR0917  # private: one call
        self,
        file: str,
        part: str,
        staves: Sequence[str],
        score: WrittenScore,
        marks: PlayingMarks,
        silent: dict[int, Fraction],
    ) -> None:
        self._silent = silent  # lengths that parts without notes give to pickups and halves
        self._file, self._part, self._staves = file, part, staves
        self._measures, self._marks = score.measures, marks
        self._first_voice = len(score.voices)
        self._divisions = Fraction(1)  # of a quarter
        self._durations: dict[str, Fraction] = {}  # in quarters, by their text
        self._meter: tuple[int, int] | None = None  # at the beginning of the measure
        self._next_meter: tuple[int, int] | None = None
        self._transpositions: dict[str, _Transposition] = {}
        self._index = 0  # of the measure
        self._n_notes = 0  # read in this measure
        self._cursor = Fraction(0)  # in quarters from the bar line
        self._reach = self._rest_reach = Fraction(0)  # of notes, and of rests
        self._onset: Fraction | None = None  # of the last note, where a note of its chord starts
        self._line = "1"  # of the last note
        self._handlers = {
            "attributes": self._read_attributes,
            "backup": self._move,
            "forward": self._move,
            "note": self._read_note,
            "direction": self._read_direction,
            "sound": self._read_tempo,
        }

    def read(self, measures: Sequence[ET.Element]) -> None:
        """Read measures in their order."""
        self._marks.has_open_ending = False
        for self._index, measure in enumerate(measures):
            self._read_measure(measure)

    def _read_measure(self, measure: ET.Element) -> None:
        self._n_notes = 0
        self._cursor = self._reach = self._rest_reach = Fraction(0)
        self._onset = None
        self._meter = self._next_meter
        marks: list[tuple[Fraction, ET.Element]] = []
        for element in measure:
            if element.tag in self._handlers:
                self._handlers[element.tag](element)
            if element.tag in {"barline", "direction", "sound"}:
                marks.append((self._cursor, element))
        end = max(self._reach, self._rest_reach)
        for cursor, element in marks:
            self._marks.read(self._index, element, is_at_end=0 < cursor >= end)
        written = self._measures[self._index]
        if self._meter is not None:
            self._rest_reach = min(self._rest_reach, Fraction(4 * self._meter[0], self._meter[1]))
        if measure.get("implicit") == "yes" and not self._reach:
            self._silent[self._index] = max(self._silent.get(self._index, Fraction(0)), self._rest_reach)
        else:
            written.length = max(written.length, self._reach, self._rest_reach)
        written.meter = written.meter or self._meter

    def _read_attributes(self, attributes: ET.Element) -> None:
        if (divisions := attributes.find("divisions")) is not None:
            self._divisions = self._number(divisions.text, "divisions")
            if self._divisions <= 0:
                raise self._error(f"divisions of {self._divisions}; expected more than 0")
            self._durations.clear()
        for transpose in attributes.iterfind("transpose"):
            octaves = self._whole(transpose.findtext("octave-change", "0"), "octave-change")
            chromatic = self._number(transpose.findtext("chromatic", "0"), "chromatic")
            if chromatic.denominator != 1:
                raise self._error(f"a transposition by {float(chromatic)} semitones; expected whole ones")
            semitones = [int(chromatic) + 12 * octaves]
            if (double := transpose.find("double")) is not None:
                semitones.append(semitones[0] + (12 if double.get("above") == "yes" else -12))
            # as many steps of the scale as are stated, or as make the key simplest
            diatonic = self._whole(transpose.findtext("diatonic", str(round(chromatic * 7 / 12))), "diatonic")
            # places on the line of fifths: a fifth has 7 semitones and 4 steps, 7 * 7 - 12 * 4 = 1
            fifths = 7 * int(chromatic) - 12 * diatonic
            number = transpose.get("number")
            for staff in self._staves if number is None else [number.strip()]:
                self._transpositions[staff] = _Transposition(tuple(semitones), fifths)
        if self._first_voice == 0:
            self._read_key(attributes)
        if (time := attributes.find("time")) is not None:
            self._next_meter = self._time_signature(time)
            if not self._cursor:  # one within a measure is that of the next measure
                self._meter = self._next_meter

    def _read_key(self, attributes: ET.Element) -> None:
        """Read a key of the first part as it sounds; one of accidentals of its own has no name."""
        if attributes.find("key/fifths") is not None:
            fifths = self._whole(attributes.findtext("key/fifths"), "fifths")
            fifths += self._transpositions.get(self._staves[0], _Transposition()).fifths
            is_minor = attributes.findtext("key/mode", "").strip() == "minor"
            self._measures[self._index].keys.append((self._cursor, fifths, is_minor))

    def _time_signature(self, time: ET.Element) -> tuple[int, int] | None:
        """Return the beats of a time signature and their unit; several are added, such as 2/4 + 3/8 to 7/8."""
        if time.find("senza-misura") is not None:
            return None
        pairs = list(zip(time.iterfind("beats"), time.iterfind("beat-type"), strict=False))
        if not pairs:
            raise self._error("a time signature without beats; expected such as 4/4")
        total, unit = Fraction(0), 1
        for beats, kind in pairs:
            upper = [self._whole(part, "beats") for part in (beats.text or "").split("+")]
            lower = self._whole(kind.text, "beat-type")
            if min(upper) < 1 or sum(upper) > MAX_BEATS or not 1 <= lower <= MAX_BEATS or lower & (lower - 1):
                raise self._error(f"the time signature {beats.text}/{kind.text} is invalid; expected one such as 4/4")
            total, unit = total + Fraction(sum(upper), lower), max(unit, lower)
        return int(total * unit), unit

    def _move(self, element: ET.Element) -> None:
        if element.tag == "forward":
            self._cursor += self._duration(element)
            self._rest_reach = max(self._rest_reach, self._cursor)
        else:  # durations that an exporter has rounded may lead a little beyond the bar line
            self._cursor = max(self._cursor - self._duration(element), Fraction(0))

    def _read_note(self, note: ET.Element) -> None:
        self._n_notes += 1
        if note.find("grace") is not None:
            return
        duration = self._duration(note)
        if note.find("chord") is None:
            self._onset = self._cursor
            self._line = "1"
            self._cursor += duration
        elif self._onset is None:
            raise self._error("it belongs to a chord, and no note stands before it")
        self._line = note.findtext("voice", self._line).strip()  # some programs name it in the first of a chord alone
        if note.find("rest") is not None:
            self._rest_reach = max(self._rest_reach, self._onset + duration)
            return
        self._reach = max(self._reach, self._onset + duration)
        pitch = note.find("pitch")
        if pitch is None and note.find("unpitched") is None:
            raise self._error("<note> has no <pitch>; expected one, or <rest/> or <unpitched/>")
        if pitch is None or note.find("cue") is not None or not duration:
            return
        staff = _staff(note)
        voice = self._first_voice + self._staves.index(staff)
        # whether a tie starts at a note, and whether one ends
        kinds = {tie.get("type") for tie in note.iterfind("tie")}
        kinds = kinds or {tied.get("type") for tied in note.iterfind("notations/tied")}
        goes_on, is_tied = (not kinds.isdisjoint({"start", "continue"}), not kinds.isdisjoint({"stop", "continue"}))
        velocity = self._velocity(note)
        for semitones in self._transpositions.get(staff, _Transposition()).semitones:
            step = pitch.findtext("step", "").strip()
            if step not in STEPS:
                raise self._error(f"the step {step!r}; expected one of A to G")
            octave = self._whole(pitch.findtext("octave"), "octave")
            alter = pitch.findtext("alter", "0")
            number = 12 * (octave + 1) + STEPS[step] + semitones
            number = number if alter == "0" else round(number + self._number(alter, "alter"))
            if not 0 <= number <= 127:
                raise self._error(f"the MIDI pitch of {step}{octave} is {number}; expected 0..127")
            self._measures[self._index].notes.append(
                WrittenNote(self._onset, duration, number, voice, self._line, goes_on, is_tied, velocity)
            )

    def _velocity(self, note: ET.Element) -> int:
        """Return the MIDI velocity; 64 where a note states none."""
        if (dynamics := note.get("dynamics")) is None:
            return 64
        return min(max(round(self._number(dynamics, "dynamics") * FORTE), 1), 127)

    def _read_direction(self, direction: ET.Element) -> None:
        """Read the tempo of a direction: as it sounds, or else as it is printed."""
        offset = direction.find("offset")
        moves = offset is not None and offset.get("sound") == "yes"
        moved = self._number(offset.text, "offset") / self._divisions if offset is not None and moves else Fraction(0)
        sounds = [sound for sound in direction.iterfind("sound") if sound.get("tempo") is not None]
        for sound in sounds:
            self._read_tempo(sound, moved)
        if sounds:
            return
        for metronome in direction.iterfind("direction-type/metronome"):
            units = [element for element in metronome if element.tag == "beat-unit"]
            per_minute = metronome.findtext("per-minute", "").strip()
            # two units are the relation of two tempi; text such as "ca. 60" is for readers
            if len(units) == 1 and DECIMAL.fullmatch(per_minute):
                unit = BEAT_UNITS.get((units[0].text or "").strip())
                if unit is None:
                    raise self._error(f"the beat unit {units[0].text!r} of a metronome mark is unknown")
                dots = len(metronome.findall("beat-unit-dot"))
                # n dots make a unit 2 - 1 / 2^n times as long
                self._add_tempo(Fraction(per_minute) * unit * (2 - Fraction(1, 2**dots)), moved)

    def _read_tempo(self, sound: ET.Element, moved: Fraction = Fraction(0)) -> None:
        """Read the tempo of a ``<sound>``, which is in quarters."""
        if (tempo := sound.get("tempo")) is None:
            return
        if (offset := sound.find("offset")) is not None:
            moved = self._number(offset.text, "offset") / self._divisions
        self._add_tempo(self._number(tempo, "tempo"), moved)

    def _add_tempo(self, bpm: Fraction, moved: Fraction) -> None:
        if bpm > 0:  # 0 asks the listener for one
            self._measures[self._index].tempos.append((max(self._cursor + moved, Fraction(0)), float(bpm)))

    def _duration(self, element: ET.Element) -> Fraction:
        """Return the length of an element in quarters."""
        duration = element.find("duration")
        if duration is None:
            raise self._error(f"<{element.tag}> has no <duration>; expected one, or <grace/>")
        text = duration.text or ""
        if text not in self._durations:
            length = self._number(text, "duration")
            if length < 0:
                raise self._error(f"a duration of {text}; expected at least 0")
            self._durations[text] = length / self._divisions
        return self._durations[text]

    def _whole(self, text: str | None, quantity: str) -> int:
        number = self._number(text, quantity)
        if number.denominator != 1:
            raise self._error(f"{quantity} of {text!r}; expected a whole number")
        return number.numerator

    def _number(self, text: str | None, quantity: str) -> Fraction:
        text = (text or "").strip()
        if not DECIMAL.fullmatch(text):
            raise self._error(f"{quantity} of {text[:40]!r}; expected a number")
        return Fraction(text)

    def _error(self, reason: str) -> UnreadableFileError:
        place = f"part {self._part!r}, measure {self._measures[self._index].name}"
        if self._n_notes:
            place += f", note {self._n_notes}"
        return UnreadableFileError(f"{self._file}: cannot be read as a score ({place}: {reason}); export it anew")
