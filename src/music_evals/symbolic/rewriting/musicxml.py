"""MusicXML files edited element by element.

A voice is a ``<voice>`` of a part. Where notes of a voice are replaced, only its ``<note>`` elements in those measures
change; all other bytes of the document stay. Directions, harmonies and whatever else stands between the notes keep
their bytes and their time. Two things are written besides: a change of ``<divisions>`` around notes that the divisions
of the document cannot hold, and ties that would lead into the measures or out of them are taken away from the notes
beside them, as are slurs where nothing but rests is put in. An .mxl file is packed again: its other
entries keep their content.
"""

from __future__ import annotations

import dataclasses
import io
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET
from xml.parsers import expat

import numpy as np

from music_evals.annotations import NoteArray, Score, TimeSignature
from music_evals.errors import NoDataError, UnreadableFileError
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits, check_n_notes, read_bytes
from music_evals.symbolic.measures import MeterMap
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.reading.musicxml import document_root, parse_musicxml
from music_evals.symbolic.reading.mxl import musicxml_document
from music_evals.symbolic.reading.written import TICKS_PER_QUARTER, check_agreement, to_score, to_tick
from music_evals.symbolic.rewriting.musicxml_elements import Gap, Item, rewritten_measure, without_ends
from music_evals.symbolic.rewriting.tune import Tune, check_edit


class _Measure(NamedTuple):
    """One measure of one part."""

    items: tuple[Item, ...]
    length: Fraction  # in quarters, as far as its notes reach, and its rests within the time signature
    number: str
    meter: tuple[int, int] | None
    gives_way: bool  # whether it is a pickup or half of a measure in which the part is silent


class _Part(NamedTuple):
    name: str
    measures: tuple[_Measure, ...]


class _Sound(NamedTuple):
    """A written note, before ties are merged."""

    onset: int
    end: int
    pitch: int
    tied: bool  # to the note before
    goes_on: bool


@dataclasses.dataclass(frozen=True, eq=False)
class MusicXMLTune(Tune):
    """A MusicXML file; see `Tune`."""

    content: bytes = b""
    document: bytes = b""
    parts: tuple[_Part, ...] = ()
    places: tuple[tuple[int, str], ...] = ()

    def replaced(self, voice: int, first: int, n_measures: int, notes: NoteArray) -> bytes:
        """Return the file with other notes in some measures of one voice; see `Tune.replaced`."""
        self.check_replacement(first, n_measures, notes)
        part, name = self.places[voice]
        measures = self.parts[part].measures
        # what is not ASCII is written as a reference
        encoding = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(self.document[:2], "ascii")
        gap = Gap(name, notes, self.bars, first, n_measures, encoding)
        items = [measure.items for measure in measures]
        for index in range(first, first + n_measures):
            if not items[index]:
                raise UnreadableFileError(
                    f"{self.name}: measure {self.numbers[index]} of {self.parts[part].name!r} is empty; put a rest "
                    "into it and save the score anew"
                )
        edits: list[tuple[int, int, bytes]] = []
        slurs = gap.open_slurs([item for some in items[first : first + n_measures] for item in some])
        for index in range(first, first + n_measures):
            edits += rewritten_measure(gap, index, items, self.document, slurs)
        edits += without_ends(gap, items, [measure.length for measure in measures], slurs, self.document)
        document = self.document
        for start, stop, text in sorted(edits, reverse=True):
            document = document[:start] + text + document[stop:]
        # read a document again, and raise where it is not what it should be
        parts, bars, places, sounds = _read_notes(document, self.name)
        score = dataclasses.replace(self.score, notes=_notes(sounds), voices=tuple(_names(parts, places)) or ("",))
        numbers = tuple(measure.number for measure in parts[0].measures)
        after = MusicXMLTune(self.name, self.suffix, score, bars, numbers, (), document, document, parts, places)
        known = (self.places, places)
        check_edit(self, after, known, voice=voice, first=first, n_measures=n_measures, notes=notes)
        if self.suffix != ".mxl" and self.content == self.document:
            return document
        packed = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(self.content)) as old, zipfile.ZipFile(packed, "w") as new:
            for entry in old.infolist():
                content = old.read(entry)
                new.writestr(entry, document if content == self.document else content)
        return packed.getvalue()


def open_musicxml(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> MusicXMLTune:
    """Read a MusicXML file, plain or compressed, so that some of its measures can be replaced."""
    name = os.fspath(path)
    content = read_bytes(Path(path), limits)
    document = musicxml_document(content, limits, name)
    written = parse_musicxml(document, name, limits)
    read = to_score(written, name, limits, expand_repeats=False, merge_ties=False)
    parts, bars, places, sounds = _read_notes(document, name)
    check_agreement(_rows(sounds), read, name)
    notes = _notes(sounds)
    check_n_notes(len(notes), limits, name)
    score = Score(
        notes,
        TICKS_PER_QUARTER,
        read.time_signatures,
        read.tempos,
        read.key_signatures,
        tuple(_names(parts, places)) or ("",),
    )
    numbers = tuple(measure.number for measure in parts[0].measures)
    suffix = Path(path).suffix.lower()
    return MusicXMLTune(name, suffix, score, bars, numbers, (), content, document, parts, places)


def editable_notes(document: bytes, name: str) -> list[tuple[int, int, int]] | None:
    """Return onset tick, end tick and pitch of every written note of a document; None where it cannot be edited."""
    try:
        *_, sounds = _read_notes(document, name, has_places=False)
    except (NoDataError, UnreadableFileError):
        return None
    return _rows(sounds)


def _rows(sounds: Sequence[Sequence[_Sound]]) -> list[tuple[int, int, int]]:
    return [(sound.onset, max(sound.end, sound.onset + 1), sound.pitch) for some in sounds for sound in some]


def _read_notes(
    document: bytes, name: str, *, has_places: bool = True
) -> tuple[tuple[_Part, ...], MeterMap, tuple[tuple[int, str], ...], list[list[_Sound]]]:
    """Return parts, measures, voices, and the written notes of each voice; for an edit, elements have places."""
    root = document_root(document, name)
    if root.tag != "score-partwise":
        raise UnreadableFileError(f"{name}: its measures cannot be edited (<{root.tag}>); save it as <score-partwise>")
    try:
        parts = tuple(_parts(root, iter(_spans(document)) if has_places else None))
    except (ArithmeticError, AttributeError, LookupError, ValueError) as error:
        raise UnreadableFileError(f"{name}: its measures cannot be edited ({error})") from error
    if not parts or not parts[0].measures:
        raise NoDataError(f"{name}: has no measures; there is nothing to fill")
    if len({len(part.measures) for part in parts}) > 1:
        raise UnreadableFileError(f"{name}: its parts have different numbers of measures; complete them first")
    # the measures; each is as long as the longest part makes it, an empty one as its signature says
    starts, signatures = [Fraction(0)], []
    for index, first in enumerate(parts[0].measures):
        if first.meter is None:
            raise NoDataError(
                f"{name}: measure {first.number} has no time signature: there is no telling how much is to be filled"
            )
        measures = [part.measures[index] for part in parts]
        counted = [measure for measure in measures if not measure.gives_way] or measures
        length = max(measure.length for measure in counted) or Fraction(4 * first.meter[0], first.meter[1])
        signatures.append(TimeSignature(to_tick(starts[-1]), *first.meter))
        starts.append(starts[-1] + length)
    bars = MeterMap(np.array([to_tick(start) for start in starts]), tuple(signatures), TICKS_PER_QUARTER)
    places = tuple(
        dict.fromkeys(
            (n, item.voice)
            for n, part in enumerate(parts)
            for measure in part.measures
            for item in measure.items
            if item.pitch is not None
        )
    )
    return parts, bars, places, [list(_sounds(parts[number], voice, bars)) for number, voice in places]


def _notes(sounds: Sequence[Sequence[_Sound]]) -> NoteArray:
    """Return the notes of all voices, tied ones as one."""
    rows = [
        (sound.onset, max(sound.end - sound.onset, 1), sound.pitch, 64, index)
        for index, some in enumerate(sounds)
        for sound in _merged(some)
    ]
    return make_notes(*np.array(rows, dtype=np.int64).reshape(-1, 5).T)


def _parts(root: ET.Element, spans: Iterator[list[tuple[int, int]]] | None) -> Iterator[_Part]:
    """Read parts and measures; `spans` are the places of the elements of each measure in the document."""
    names = {
        part.get("id"): " ".join((part.findtext("part-name") or "").split())
        for part in root.iterfind("part-list/score-part")
    }
    for part in root.iterfind("part"):
        state = _State()
        measures = [
            _read_measure(measure, [(0, 0)] * len(measure) if spans is None else next(spans), state)
            for measure in part.iterfind("measure")
        ]
        yield _Part(names.get(part.get("id"), ""), tuple(measures))


def _spans(document: bytes) -> list[list[tuple[int, int]]]:
    """Return of every measure where its elements begin and end."""
    parser = expat.ParserCreate()
    spans: list[list[tuple[int, int]]] = []
    stack: list[str] = []
    ended = False  # the end of an element is where the next thing begins

    def close(*_: object) -> None:
        nonlocal ended
        if ended:
            spans[-1][-1] = (spans[-1][-1][0], parser.CurrentByteIndex)
            ended = False

    def start(tag: str, _: Mapping[str, str]) -> None:
        close()
        if stack == ["score-partwise", "part"] and tag == "measure":
            spans.append([])
        elif stack == ["score-partwise", "part", "measure"]:
            spans[-1].append((parser.CurrentByteIndex, 0))
        stack.append(tag)

    def end(_: str) -> None:
        nonlocal ended
        close()
        stack.pop()
        if stack == ["score-partwise", "part", "measure"]:
            ended = True

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = parser.CommentHandler = parser.ProcessingInstructionHandler = close
    parser.DefaultHandler = close
    parser.Parse(document, True)  # noqa: FBT003
    return spans


@dataclasses.dataclass
class _State:
    """What a part has stated so far."""

    divisions: Fraction = Fraction(1)
    fifths: int = 0
    transposes: dict[str, int] = dataclasses.field(default_factory=dict)  # of a staff; "" is every other
    meter: tuple[int, int] | None = None

    def read(self, attributes: ET.Element) -> None:
        """Read an ``<attributes>`` element."""
        self.divisions = Fraction((attributes.findtext("divisions") or str(self.divisions)).strip())
        self.fifths = int(attributes.findtext("key/fifths") or self.fifths)
        for transpose in attributes.iterfind("transpose"):
            if transpose.find("double") is not None:
                raise ValueError("a part that sounds in two octaves")
            if (staff := transpose.get("number", "")) == "":
                self.transposes.clear()
            octaves = int(transpose.findtext("octave-change") or 0)
            self.transposes[staff] = int(float(transpose.findtext("chromatic") or 0)) + 12 * octaves
        if (time := attributes.find("time")) is None:
            return
        beats = [beat.text or "" for beat in time.iterfind("beats")]
        units = [int(unit.text or "") for unit in time.iterfind("beat-type")]
        whole = sum(Fraction(sum(map(int, beat.split("+"))), unit) for beat, unit in zip(beats, units, strict=True))
        self.meter = (int(whole * max(units)), max(units)) if units else None

    def transpose(self, note: ET.Element) -> int:
        """Return the semitones between the written and the sounding pitch of a note."""
        return self.transposes.get((note.findtext("staff") or "1").strip(), self.transposes.get("", 0))


_STEPS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}


def _read_measure(measure: ET.Element, spans: Sequence[tuple[int, int]], state: _State) -> _Measure:
    items: list[Item] = []
    cursor = end = rests_end = onset = Fraction(0)
    meter, line = state.meter, "1"
    for element, (start, stop) in zip(measure, spans, strict=True):
        duration = Fraction((element.findtext("duration") or "0").strip()) / state.divisions
        is_note = element.tag == "note"
        sounds = is_note and element.find("grace") is None
        transpose = state.transpose(element) if is_note else 0
        pitch, at = None, cursor
        if element.tag == "attributes":
            state.read(element)
            meter = meter if cursor else state.meter  # within a measure it is that of the next one
        elif element.tag == "backup":
            cursor = max(cursor - duration, Fraction(0))
        elif element.tag == "forward":
            cursor += duration
        elif sounds:
            at = onset = onset if element.find("chord") is not None else cursor
            cursor += 0 if element.find("chord") is not None else duration
            pitch = _pitch(element, transpose)
        if is_note:
            alone = element.find("chord") is None
            line = (element.findtext("voice") or ("1" if alone else line)).strip()
        voice = line if is_note else ""
        if sounds and element.find("rest") is None:
            end = max(end, at + duration)
        else:
            rests_end = max(rests_end, cursor)
        length = duration if sounds else Fraction(0)
        items.append(Item(element, start, stop, at, length, voice, pitch, state.divisions, state.fifths, transpose))
    full = rests_end if meter is None else Fraction(4 * meter[0], meter[1])
    gives_way = measure.get("implicit") == "yes" and not end
    return _Measure(tuple(items), max(end, min(rests_end, full)), measure.get("number", ""), meter, gives_way)


def _pitch(note: ET.Element, transpose: int) -> int | None:
    """Return the sounding pitch of a note that has one and is no cue."""
    pitch = note.find("pitch")
    if pitch is None or note.find("cue") is not None:
        return None
    step, octave = (pitch.findtext("step") or "").strip(), int(pitch.findtext("octave") or 0)
    return round(12 * (octave + 1) + _STEPS[step] + Fraction((pitch.findtext("alter") or "0").strip()) + transpose)


def _sounds(part: _Part, voice: str, bars: MeterMap) -> Iterator[_Sound]:
    for measure, start in zip(part.measures, bars.starts[:-1].tolist(), strict=True):
        for item in measure.items:
            if item.pitch is not None and item.voice == voice and item.duration:
                kinds = {tie.get("type") for tie in item.element.iterfind("tie")}
                kinds = kinds or {tied.get("type") for tied in item.element.iterfind("notations/tied")}
                onset = start + to_tick(item.onset)
                end = start + to_tick(item.onset + item.duration)
                yield _Sound(onset, end, item.pitch, "stop" in kinds, "start" in kinds)


def _merged(sounds: Sequence[_Sound]) -> list[_Sound]:
    """Make one note of tied ones."""
    waiting: dict[tuple[int, int], int] = {}  # (end, pitch) of a note that goes on -> its place
    notes: list[_Sound] = []
    for sound in sorted(sounds):
        place = waiting.pop((sound.onset, sound.pitch), None) if sound.tied else None
        if place is None:
            place = len(notes)
            notes.append(sound)
        else:
            notes[place] = notes[place]._replace(end=sound.end)
        if sound.goes_on:
            waiting[sound.end, sound.pitch] = place
    return notes


def _names(parts: Sequence[_Part], places: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Yield the name of each voice: that of its part, with its number where the part has several."""
    for number, voice in places:
        alone = sum(other == number for other, _ in places) == 1
        yield parts[number].name if alone else f"{parts[number].name} voice {voice}".strip()
