"""The elements of a measure of MusicXML with other notes in one voice."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape, quoteattr

from music_evals.annotations import NoteArray
from music_evals.errors import UnreadableFileError
from music_evals.symbolic.contexts import STEPS_PER_QUARTER
from music_evals.symbolic.measures import MeterMap
from music_evals.symbolic.rewriting.note_values import Accidentals, measure_symbols, spell_pitch

_TYPES = {24: "whole", 18: "half.", 12: "half", 9: "quarter.", 6: "quarter", 3: "eighth"}
_TRIPLET_TYPES = {4: "quarter", 3: "eighth.", 2: "eighth", 1: "16th"}
_ACCIDENTALS = {-2: "flat-flat", -1: "flat", 0: "natural", 1: "sharp", 2: "double-sharp"}


class Item(NamedTuple):
    """An element of a measure, and when it happens."""

    element: ET.Element
    start: int  # bytes of the document
    stop: int
    onset: Fraction  # quarters from the start of the measure
    duration: Fraction  # of a note that takes time
    voice: str  # of a note
    pitch: int | None  # sounding
    divisions: Fraction  # from here on
    fifths: int
    transpose: int


class Slurs(NamedTuple):
    """Slurs with one end outside of the measures that are replaced."""

    stops: tuple[str, ...]
    starts: tuple[str, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Gap:
    """What is to be written, and where."""

    voice: str
    notes: NoteArray
    bars: MeterMap
    first: int
    n_measures: int
    encoding: str

    def is_mine(self, item: Item) -> bool:
        """Tell whether an element is a note of the voice."""
        return item.element.tag == "note" and item.voice == self.voice

    def open_slurs(self, items: Sequence[Item]) -> Slurs:
        """Return the slurs that end, and those that start, in these elements alone."""
        stops: list[str] = []
        starts: list[str] = []
        for item in items:
            for slur in item.element.iterfind("notations/slur") if self.is_mine(item) else ():
                number = slur.get("number", "1")
                if slur.get("type") == "start":
                    starts.append(number)
                elif slur.get("type") == "stop" and number in starts:
                    starts.remove(number)
                elif slur.get("type") == "stop":
                    stops.append(number)
        return Slurs(tuple(stops), tuple(starts))


class _Look(NamedTuple):
    """What a note of a voice says besides its pitch and length, as elements."""

    instrument: str
    staff: str


def rewritten_measure(
    gap: Gap, index: int, measures: Sequence[Sequence[Item]], document: bytes, slurs: Slurs
) -> Iterator[tuple[int, int, bytes]]:
    """Yield what is put in place of which bytes, so that a measure, which is not empty, has the notes of the gap."""
    items = measures[index]
    mine = [place for place, item in enumerate(items) if gap.is_mine(item)]
    writer = _Writer(gap, index, measures, document, slurs)
    if not mine:
        # the voice is silent here: it is written after all others, before the bar line at the end
        place = len(items)
        while place and items[place - 1].element.tag == "barline":
            place -= 1
        at = items[place].start if place < len(items) else items[-1].stop
        yield at, at, writer.text(place, place)
        return
    last = mine[0]
    for place in range(mine[0], len(items)):
        if items[place].element.tag in {"backup", "forward"} or (items[place].voice not in {"", gap.voice}):
            break
        last = place if place in mine else last
    yield items[mine[0]].start, items[last].stop, writer.text(mine[0], last + 1)
    for place in (place for place in mine if place > last):
        item = items[place]
        takes_time = item.duration and item.element.find("chord") is None
        text = _timed("forward", item.duration * item.divisions) if takes_time else ""
        yield item.start, item.stop, text.encode(gap.encoding)


def without_ends(
    gap: Gap, measures: Sequence[Sequence[Item]], lengths: Sequence[Fraction], slurs: Slurs, document: bytes
) -> Iterator[tuple[int, int, bytes]]:
    """Yield what is put in place of notes whose ties, or slurs to rests, would lead over an edge of the gap."""
    stop = gap.first + gap.n_measures
    taken: list[tuple[Item, str, str, str]] = []  # a note, and of what is taken away the element, type and number
    for index, kind in ((gap.first - 1, "start"), (stop, "stop")):
        for item in measures[index] if 0 <= index < len(measures) else ():
            at_edge = item.onset + item.duration == lengths[index] if kind == "start" else item.onset == 0
            if gap.is_mine(item) and item.duration and at_edge:
                taken += [(item, tag, kind, "") for tag in ("tie", "tied")]
    if not len(gap.notes):
        before = [item for some in measures[: gap.first] for item in some if gap.is_mine(item)][::-1]
        after = [item for some in measures[stop:] for item in some if gap.is_mine(item)]
        for numbers, items, kind in ((slurs.stops, before, "start"), (slurs.starts, after, "stop")):
            for number in numbers:
                path = f"notations/slur[@type='{kind}']"
                slurred = next(
                    (item for item in items if number in {s.get("number", "1") for s in item.element.iterfind(path)}),
                    None,
                )
                taken += [(slurred, "slur", kind, number)] if slurred is not None else []
    encoding = "latin-1" if gap.encoding == "ascii" else gap.encoding
    for start, end in dict.fromkeys((removal[0].start, removal[0].stop) for removal in taken):
        text = cleaned = document[start:end].decode(encoding)
        for other, tag, kind, number in taken:
            cleaned = _without(cleaned, tag, kind, number) if other.start == start else cleaned
        if cleaned != text:
            yield start, end, cleaned.encode(encoding)


def _without(note: str, tag: str, kind: str, number: str) -> str:
    """Return the text of a note without its empty elements of a type, and of a number if one is given."""

    def replace(match: re.Match[str]) -> str:
        attributes = dict(re.findall(r"""(?<![\w:-])([\w:-]+)\s*=\s*["']([^"']*)["']""", match[1]))
        same = attributes.get("type") == kind and (not number or attributes.get("number", "1") == number)
        return "" if same else match[0]

    return re.sub(rf"(?<!\s)\s*<{tag}(\s[^<>]*?)(?:/>|>\s*</{tag}\s*>)", replace, note)


def _look(gap: Gap, index: int, measures: Sequence[Sequence[Item]]) -> _Look:
    """Return the look of the nearest notes of the voice; a rest names no instrument."""
    near = sorted(range(len(measures)), key=lambda other: abs(other - index))
    mine = [item.element for other in near for item in measures[other] if gap.is_mine(item)]
    instrument = next((note.find("instrument") for note in mine if note.find("pitch") is not None), None)
    name = "" if instrument is None else f"<instrument id={quoteattr(instrument.get('id', ''))}/>"
    staff = ((mine[0].findtext("staff") or "") if mine else "").strip()
    return _Look(name, f"<staff>{escape(staff)}</staff>" if staff else "")


class _Writer:
    """Writes the elements of one measure."""

    def __init__(self, gap: Gap, index: int, measures: Sequence[Sequence[Item]], document: bytes, slurs: Slurs) -> None:
        self._gap, self._items, self._document, self._slurs = gap, measures[index], document, slurs
        self._look = _look(gap, index, measures)
        self._symbols = measure_symbols(gap.notes, gap.bars, index)
        start, stop = gap.bars.span(index, 1)
        self._length = Fraction(stop - start, gap.bars.ticks_per_quarter)
        onsets = gap.notes["onset_tick"]
        inside = (onsets >= start) & (onsets < stop)
        self._has_first = bool(len(onsets) and inside[0])
        self._has_last = bool(len(onsets) and inside[-1])

    def text(self, first: int, stop: int) -> bytes:
        """Return what stands in place of the elements from `first` to `stop`, whatever is not of the voice kept."""
        state = self._items[max(first - 1, 0)] if first == stop else self._items[first]
        old = state.divisions
        if old.denominator != 1:
            raise UnreadableFileError(f"divisions of {old} cannot be edited; save the score anew")
        new = old * (STEPS_PER_QUARTER // math.gcd(int(old), STEPS_PER_QUARTER))
        if all((symbol.steps * old % STEPS_PER_QUARTER) == 0 for symbol in self._symbols):
            new = old
        begins, ends = self._cursor(first, stop)
        others = [item for item in self._items[first:stop] if not self._gap.is_mine(item)]
        parts = [_timed("backup", begins * old)]
        if new != old:
            parts.append(f"<attributes><divisions>{new}</divisions></attributes>")
        position = Fraction(0)
        elements: list[bytes | str] = list(parts)
        accidentals = Accidentals(state.fifths)
        for number, symbol in enumerate(self._symbols):
            while others and others[0].onset <= Fraction(symbol.onset, STEPS_PER_QUARTER):
                elements += self._other(others.pop(0), position, new)
            elements.append(self._note(number, new, accidentals, state.transpose))
            position = Fraction(symbol.onset + symbol.steps, STEPS_PER_QUARTER)
        for item in others:
            elements += self._other(item, position, new)
        if new != old:
            elements.append(f"<attributes><divisions>{old}</divisions></attributes>")
        elements.append(_timed("backup", (self._length - ends) * old))
        encode = functools.partial(str.encode, encoding=self._gap.encoding, errors="xmlcharrefreplace")
        space = self._space(first)
        pieces = [piece if isinstance(piece, bytes) else encode(piece) for piece in elements if piece]
        return space.join(pieces) if first < stop else b"".join(space + piece for piece in pieces)

    def _space(self, first: int) -> bytes:
        """Return the white space between two elements here."""
        if not 0 < first < len(self._items) + 1 or len(self._items) < 2:
            return b""
        place = min(max(first, 1), len(self._items) - 1)
        between = self._document[self._items[place - 1].stop : self._items[place].start]
        return between if not between.replace(b"\0", b"").strip() else b""

    def _cursor(self, first: int, stop: int) -> tuple[Fraction, Fraction]:
        """Return the time before the elements from `first` on, and after those up to `stop`."""
        times = [Fraction(0)]
        for item in self._items:
            kind = item.element.tag
            steps = Fraction((item.element.findtext("duration") or "0").strip()) / item.divisions
            now = times[-1]
            if kind == "backup":
                now -= steps
            elif kind == "forward" or (kind == "note" and item.element.find("chord") is None):
                now += item.duration if kind == "note" else steps
            times.append(now)
        return times[first], times[stop]

    def _other(self, item: Item, position: Fraction, divisions: Fraction) -> list[bytes | str]:
        """Return an element that is kept, at its own time."""
        if item.element.find("divisions") is not None:
            raise UnreadableFileError("divisions change within the measure; save the score anew")
        back = (position - item.onset) * divisions
        element = self._document[item.start : item.stop]
        return [_timed("backup", back), element, _timed("forward", back)]

    def _note(self, number: int, divisions: Fraction, accidentals: Accidentals, transpose: int) -> str:
        symbol = self._symbols[number]
        kind, dot, _ = (_TRIPLET_TYPES if symbol.in_group else _TYPES)[symbol.steps].partition(".")
        parts = ["<note>"]
        accidental = ""
        if symbol.pitch is None:
            parts.append("<rest/>")
        else:
            pitch = spell_pitch(symbol.pitch - transpose, accidentals.fifths)
            alter = f"<alter>{pitch.alter}</alter>" if pitch.alter else ""
            parts.append(f"<pitch><step>{pitch.letter}</step>{alter}<octave>{pitch.octave}</octave></pitch>")
            if not symbol.from_before and accidentals.needed(pitch):
                accidental = f"<accidental>{_ACCIDENTALS[pitch.alter]}</accidental>"
        parts.append(f"<duration>{symbol.steps * divisions / STEPS_PER_QUARTER}</duration>")
        ties = [kind for kind, tied in (("stop", symbol.from_before), ("start", symbol.goes_on)) if tied]
        parts += [f'<tie type="{tie}"/>' for tie in ties]
        parts.append(self._look.instrument if symbol.pitch is not None else "")
        parts += [f"<voice>{escape(self._gap.voice)}</voice><type>{kind}</type>", "<dot/>" if dot else "", accidental]
        if symbol.in_group:
            parts.append(
                "<time-modification><actual-notes>3</actual-notes><normal-notes>2</normal-notes></time-modification>"
            )
        parts.append(self._look.staff)
        notations = [f'<tied type="{tie}"/>' for tie in ties]
        # the ends of slurs that reach over an edge of the gap, at its first and its last note
        pitched = [
            place for place, symbol in enumerate(self._symbols) if symbol.pitch is not None and not symbol.from_before
        ]
        if self._has_first and number == pitched[0]:
            notations += [f'<slur type="stop" number={quoteattr(slur)}/>' for slur in self._slurs.stops]
        if self._has_last and number == pitched[-1]:
            notations += [f'<slur type="start" number={quoteattr(slur)}/>' for slur in self._slurs.starts]
        notations += ['<tuplet type="start"/>'] if symbol.group else []
        notations += ['<tuplet type="stop"/>'] if symbol.ends_group else []
        if notations:
            parts.append(f"<notations>{''.join(notations)}</notations>")
        return "".join([*parts, "</note>"])


def _timed(tag: str, divisions: Fraction) -> str:
    return f"<{tag}><duration>{divisions}</duration></{tag}>" if divisions > 0 else ""
