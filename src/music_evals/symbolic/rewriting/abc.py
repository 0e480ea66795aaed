"""ABC files edited in their text.

Where notes are replaced, only the text from the first to the last note of each measure changes, and a tie that would
lead into the first of them. Chord symbols, inline fields, comments and line breaks between the notes stay, each at its
time on the grid: a note is tied where one stands in the midst of it. So do dynamics and signs such as segno and D.S.
Ornaments, slurs within the measures and grace notes go with their notes.
"""

from __future__ import annotations

import codecs
import dataclasses
import os
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from music_evals.annotations import NoteArray, Score, TimeSignature
from music_evals.errors import InvalidInputError, NoDataError, UnreadableFileError
from music_evals.symbolic.contexts import STEPS_PER_QUARTER
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits, check_end, check_n_notes, read_bytes
from music_evals.symbolic.measures import MeterMap
from music_evals.symbolic.notation import TICKS_PER_QUARTER, from_abc
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.reading.abc_syntax import AbcError, decode_abc, file_head, tune_end, tune_starts
from music_evals.symbolic.reading.written import to_tick
from music_evals.symbolic.rewriting.abc_tokens import Measure, Music, Verbatim, Voice, key_fifths, read_music
from music_evals.symbolic.rewriting.note_values import Accidentals, Written, measure_symbols, spell_pitch, whole_steps
from music_evals.symbolic.rewriting.tune import Tune, measure_numbers

_SIGNS = {-2: "__", -1: "_", 0: "=", 1: "^", 2: "^^"}


@dataclasses.dataclass(frozen=True, eq=False)
class AbcTune(Tune):
    """A tune of an ABC file; see `Tune`."""

    text: str = ""  # of the tune, after the head of the file that holds for it
    before: str = ""  # what stands before it in the file
    head: str = ""
    after: str = ""
    codec: str = "utf-8"
    parts: tuple[Voice, ...] = ()

    def replaced(self, voice: int, first: int, n_measures: int, notes: NoteArray) -> bytes:
        """Return the file with other notes in some measures of one voice; see `Tune.replaced`."""
        self.check_replacement(first, n_measures, notes)
        measures = self.parts[voice].measures
        gap = range(first, first + n_measures)
        closing, opening = _open_slurs(measures[first : gap.stop])
        edits = [(*tie, "") for tie in (measures[first - 1].events[-1].ties if first else ())]
        for index in gap:
            slurs = closing if index == first else 0, opening if index == gap.stop - 1 else 0
            measure = measures[index]
            verbatim = [
                (_step(measure, item), item) for item in measure.verbatim if measure.start <= item.start < measure.stop
            ]
            cuts = {step for step, item in verbatim if item.kind != "line"}
            symbols = measure_symbols(notes, self.bars, index, ticks=to_tick(measure.length), cuts=cuts)
            missing = int(self.bars.lengths[1]) - self.bars.pickup_ticks if self.bars.pickup_ticks and not index else 0
            lead = whole_steps(missing, TICKS_PER_QUARTER)
            edits.append((measures[index].start, measures[index].stop, _text(symbols, verbatim, measure, lead, slurs)))
        text = self.text
        for low, high, new in sorted(edits, reverse=True):
            text = text[:low] + new + text[high:]
        self._check_result(text, voice, gap, notes)
        text = self.before + text.removeprefix(self.head) + self.after
        bom = codecs.BOM_UTF8 if self.codec == "utf-8-sig" else b""
        return bom + text.encode(self.codec.removesuffix("-sig"))

    def _check_result(self, text: str, voice: int, gap: range, notes: NoteArray) -> None:
        """Read the edited tune and compare: the notes in the gap are the new ones, all others are as they were."""
        parts = tuple(read_music(text, self.name).voices.values())
        same = len(parts) == len(self.parts)
        for index, (part, old) in enumerate(zip(parts, self.parts, strict=False)):
            edited = gap if index == voice else range(0)
            same = same and _outside(part, edited) == _outside(old, edited)
        if same:
            rows = {(onset, onset + length, pitch) for onset, length, pitch, *_ in _rows(parts[voice], 0, self.bars)}
            start, stop = self.bars.span(gap.start, len(gap))
            ends = notes["onset_tick"] + notes["duration_tick"]
            new = set(zip(notes["onset_tick"].tolist(), ends.tolist(), notes["pitch"].tolist(), strict=True))
            same = {row for row in rows if start <= row[0] < stop} == new
        if not same:
            raise UnreadableFileError(
                f"{self.name}: cannot be edited safely: with other notes in the measures "
                f"{self.numbers[gap.start]} to {self.numbers[gap.stop - 1]} something else would be read differently"
            )


def open_abc(path: str | os.PathLike[str], *, tune: int | None = None, limits: Limits = DEFAULT_LIMITS) -> AbcTune:
    """Read a tune of an ABC file so that some of its measures can be replaced."""
    name = os.fspath(path)
    content = read_bytes(Path(path), limits)
    text, codec = decode_abc(content)
    low, high, head = _region(text, tune, name)
    before, text, after = text[:low], head + text[low:high], text[high:]
    music = read_music(text, name)
    parts = tuple(music.voices.values())
    for part in parts:  # the reader lays out every quarter of a note
        check_end(
            to_tick(sum((measure.length for measure in part.measures), Fraction(0))), TICKS_PER_QUARTER, limits, name
        )
    read = from_abc(text, name=name, expand_repeats=False, merge_ties=False, limits=limits)
    if not parts:
        raise NoDataError(f"{name}: has no measures; there is nothing to fill")
    if len({len(part.measures) for part in parts}) > 1:
        raise UnreadableFileError(f"{name}: its voices have different numbers of measures; complete them first")
    starts, signatures = [0], []
    for index, first in enumerate(parts[0].measures):
        if first.meter is None:
            raise NoDataError(f"{name}: states no meter (M: field): there is no telling how much is to be filled")
        signatures.append(TimeSignature(starts[-1], *first.meter))
        starts.append(starts[-1] + max(to_tick(part.measures[index].length) for part in parts))
    bars = MeterMap(np.array(starts), tuple(signatures), TICKS_PER_QUARTER)
    rows = [row for index, part in enumerate(parts) for row in _rows(part, index, bars)]
    check_n_notes(len(rows), limits, name)
    score = Score(
        make_notes(*np.array(rows, dtype=np.int64).reshape(-1, 5).T),
        TICKS_PER_QUARTER,
        read.time_signatures,
        read.tempos,
        read.key_signatures,
        tuple(part.name for part in parts),
    )
    remarks = tuple(_remarks(music, after))
    return AbcTune(name, ".abc", score, bars, measure_numbers(bars), remarks, text, before, head, after, codec, parts)


def _remarks(music: Music, after: str) -> Iterator[str]:
    """Yield what a user should know of a tune, and of what stands after it in the file."""
    if re.search(r"^(?![A-Za-z]:|%).*\|", re.split(r"^X:", after, maxsplit=1, flags=re.MULTILINE)[0], re.MULTILINE):
        yield "an empty line ends the tune; what stands after it is not read, though it looks like music"
    if music.has_words:
        yield "the words under the notes (w:) are given to them one by one, and are not moved with other notes"


def _region(text: str, tune: int | None, name: str) -> tuple[int, int, str]:
    """Return where a tune begins and ends in the text, and which lines of the head of the file hold for it."""
    tunes = tune_starts(text)
    # the index of the tune with a number; None takes the only one
    numbers = [number for number, _ in tunes]
    if tune is None and len(numbers) > 1:
        raise InvalidInputError(
            f"{name}: holds {len(numbers)} tunes ({numbers[0]}..{numbers[-1]}); choose one with tune="
        )
    matches = [index for index, number in enumerate(numbers) if number == tune]
    if tune is not None and not matches:
        known = ", ".join(str(number) for number in numbers[:10] if number is not None)
        raise InvalidInputError(f"{name}: holds no tune {tune}; it holds {known or 'none with a number'}")
    if len(matches) > 1:
        raise InvalidInputError(
            f"{name}: {len(matches)} tunes have the number {tune}; give each a number of its own in its X: field"
        )
    index = matches[0] if tune is not None else 0
    start = tunes[index][1] if tunes else 0
    try:
        return start, tune_end(text, start), file_head(text)
    except AbcError as error:
        raise UnreadableFileError(f"{name}: not an ABC file ({error})") from error


def _rows(part: Voice, index: int, bars: MeterMap) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield onset, duration, pitch, velocity and voice of the notes of a voice, tied ones as one."""
    tied: dict[int, tuple[int, int]] = {}  # pitch -> onset and end of a note that goes on
    for measure, start in zip(part.measures, bars.starts[:-1].tolist(), strict=True):
        for event in measure.events:
            onset = start + to_tick(event.onset)
            end = start + to_tick(event.onset + event.duration)
            held = {pitch: row for pitch, row in tied.items() if row[1] == onset and pitch in event.pitches}
            for pitch in tied.keys() - held.keys():
                yield tied[pitch][0], tied[pitch][1] - tied[pitch][0], pitch, 64, index
            tied = {}
            for pitch in event.pitches:
                first = held[pitch][0] if pitch in held else onset
                if pitch in event.tied:
                    tied[pitch] = (first, end)
                else:
                    yield first, max(end - first, 1), pitch, 64, index
    for pitch, (first, end) in tied.items():
        yield first, end - first, pitch, 64, index


def _outside(part: Voice, gap: range) -> list[object]:
    """Return what is read of a voice outside of a gap; a tie into the gap does not count."""
    return [
        None
        if index in gap
        else (
            measure.unit,
            measure.fifths,
            measure.meter,
            [
                (event.duration, event.pitches, () if index + 1 in gap and event is measure.events[-1] else event.tied)
                for event in measure.events
            ],
            [(item.text, item.before, item.kind) for item in measure.verbatim],
        )
        for index, measure in enumerate(part.measures)
    ]


def _open_slurs(measures: Sequence[Measure]) -> tuple[int, int]:
    """Return how many slurs end in these measures alone, and how many start."""
    closing = opening = 0
    for sign in (sign for measure in measures for sign in measure.slurs):
        if sign == "(":
            opening += 1
        elif opening:
            opening -= 1
        else:
            closing += 1
    return closing, opening


def _step(measure: Measure, item: Verbatim) -> int:
    """Return when something stands in its measure, in steps: between two of them at the nearest."""
    events = measure.events
    onset = events[item.before].onset if item.before < len(events) else measure.length
    return round(onset * STEPS_PER_QUARTER)


def _text(
    symbols: Sequence[Written],
    verbatim: Sequence[tuple[int, Verbatim]],
    measure: Measure,
    lead: int,
    slurs: tuple[int, int],
) -> str:
    """Return the text of a measure: the symbols, what is kept between them, and slurs over an edge of the gap.

    `lead` is what a pickup lacks, in steps.
    """
    closing, opening = slurs
    waiting = list(verbatim)
    # the steps that one beam holds together: spaces in the text break beams
    upper, lower = measure.meter or (4, 4)
    quarters = Fraction(1)
    if upper % 3 == 0 and (upper > 3 or lower > 4):  # three of its units, as the dotted quarter in 6/8
        quarters = Fraction(12, lower)
    elif (upper, lower) == (4, 4) or lower == 2:
        quarters = Fraction(2)
    beam = quarters * STEPS_PER_QUARTER
    accidentals, altered = Accidentals(measure.fifths), set[str]()
    pieces: list[str] = []
    for before, symbol in zip([None, *symbols], symbols, strict=False):
        parted = before is not None and not _beamed(before, symbol, lead, beam)
        if parted and not pieces[-1].endswith((" ", "\n")):
            pieces.append(" ")
        while waiting and waiting[0][0] <= symbol.onset:
            item = waiting.pop(0)[1]
            pieces.append(item.text)
            key_field = re.search(r"(?:^|\[)K:([^\]\n]*)", item.text) if item.kind != "quoted" else None
            if key_field:
                accidentals, altered = Accidentals(key_fifths(key_field[1])), set()
        text = _symbol(symbol, accidentals, altered, measure.unit)
        pieces.append("(" * opening * (symbol is symbols[-1]) + text + ")" * closing * (symbol is symbols[0]))
    return "".join([*pieces, *(item.text for _, item in waiting)])


def _beamed(before: Written, symbol: Written, lead: int, beam: Fraction) -> bool:
    """Tell whether no space stands between two symbols; on beats they are apart where they have no common beam."""
    onset = lead + symbol.onset
    if onset % beam == 0:
        return False
    plain = all(
        note.pitch is not None and note.steps < STEPS_PER_QUARTER and not note.in_group for note in (before, symbol)
    )
    return plain or beam != 2 * STEPS_PER_QUARTER or onset % STEPS_PER_QUARTER != 0


def _symbol(symbol: Written, accidentals: Accidentals, altered: set[str], unit: Fraction) -> str:
    group = "" if not symbol.group else "(3" if symbol.group == 3 else f"(3:2:{symbol.group}"
    value = Fraction(symbol.steps, STEPS_PER_QUARTER) / unit * (Fraction(3, 2) if symbol.in_group else 1)
    length = (str(value.numerator) if value.numerator > 1 else "") + (
        f"/{value.denominator}" if value.denominator > 1 else ""
    )
    if symbol.pitch is None:
        return f"{group}z{length}"
    pitch = spell_pitch(symbol.pitch, accidentals.fifths)
    # readers differ in how long an accidental holds: each is written that would be needed under one of them
    sign = ""
    if pitch.alter != accidentals.of_key(pitch.letter) or pitch.letter in altered:
        sign = _SIGNS[pitch.alter]
        altered.add(pitch.letter)
    letter = pitch.letter if pitch.octave < 5 else pitch.letter.lower()
    octaves = "," * max(4 - pitch.octave, 0) + "'" * max(pitch.octave - 5, 0)
    return f"{group}{sign}{letter}{octaves}{length}{'-' if symbol.goes_on else ''}"
