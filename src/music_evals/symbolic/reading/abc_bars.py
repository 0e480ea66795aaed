"""The bars of an ABC tune while it is read: what a voice has stated, its notes, and all voices side by side."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from fractions import Fraction

from music_evals.symbolic.reading.abc_syntax import AbcError, Key
from music_evals.symbolic.reading.written import WrittenMeasure, WrittenNote


@dataclasses.dataclass
class Event:
    """Notes that start together, or a rest."""

    duration: Fraction  # in quarters
    pitches: list[int]
    spelled: list[tuple[str, str, int]]  # letter, octave marks and alteration of each
    layer: int  # 0, or which overlay of the bar it belongs to
    goes_on: set[int] = dataclasses.field(default_factory=set)  # those of its notes that a tie starts at


@dataclasses.dataclass
class Bar:
    """A bar of one voice, or what stands before the one that is to come."""

    measure: WrittenMeasure
    events: list[Event] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class VoiceState:
    """What a voice has stated so far, and its bars."""

    unit: Fraction
    key: Key
    meter: tuple[int, int] | None
    shift: int = 0  # semitones
    bars: list[Bar] = dataclasses.field(default_factory=list)
    # the one that is being read
    bar: Bar = dataclasses.field(default_factory=lambda: Bar(WrittenMeasure("", Fraction(0), None)))
    layer: int = 0
    cursor: Fraction = Fraction(0)  # how far the bar that is being read reaches, in quarters
    accidentals: dict[str, int] = dataclasses.field(default_factory=dict)
    tied: dict[tuple[str, str], int] = dataclasses.field(default_factory=dict)  # alterations that ties carry on
    last: Event | None = None
    tuplet: tuple[Fraction, int] = (Fraction(1), 0)  # factor, and how many notes it still holds for
    broken: Fraction | None = None  # factor of the next note
    after_bar: bool = False  # whether nothing but spaces stands between here and the last bar line


def written_bar(bar: Bar, voice: int) -> WrittenMeasure:
    """Return a bar of a voice as a measure."""
    cursors: dict[int, Fraction] = {}
    measure = bar.measure
    for event in bar.events:
        onset = cursors.get(event.layer, Fraction(0))
        cursors[event.layer] = onset + event.duration
        measure.notes += [
            WrittenNote(onset, event.duration, pitch, voice, str(event.layer), goes_on=place in event.goes_on)
            for place, pitch in enumerate(event.pitches)
        ]
    measure.length = cursors[0]
    if max(cursors.values()) > measure.length:
        raise AbcError("an overlay & is longer than the bar that it is laid over")
    return measure


def side_by_side(parts: Sequence[Sequence[WrittenMeasure]], names: Sequence[str]) -> list[WrittenMeasure]:
    """Lay the bars of voices beside each other; a voice with fewer of them is silent at the end."""
    measures: list[WrittenMeasure] = []
    for number in range(max(map(len, parts), default=0)):
        bars = [(name, part[number]) for name, part in zip(names, parts, strict=True) if number < len(part)]
        first = bars[0][1]
        first.name = str(number + 1)
        for name, bar in bars[1:]:
            if bar.length != first.length:
                raise AbcError(
                    f"bar {number + 1} lasts {float(first.length):g} quarters in the voice {bars[0][0]!r} and "
                    f"{float(bar.length):g} in {name!r}; complete it"
                )
            first.notes += bar.notes
            first.starts_section |= bar.starts_section
            first.starts_repeat |= bar.starts_repeat
            first.ends_repeat = max(first.ends_repeat, bar.ends_repeat)
            first.ending |= bar.ending
        measures.append(first)
    for before, after in itertools.pairwise(measures):
        before.ends_ending = after.starts_section
    return measures
