"""How notes on a grid of six steps a quarter are written on a page: values, dots, ties, triplets, names of pitches."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from music_evals.annotations import NoteArray
from music_evals.errors import InvalidInputError
from music_evals.symbolic.contexts import STEPS_PER_QUARTER
from music_evals.symbolic.measures import MeterMap

_PLAIN = (24, 18, 12, 9, 6, 3)  # whole, dotted half, half, dotted quarter, quarter, eighth
_IN_TRIPLET = (4, 3, 2, 1)  # quarter, dotted eighth, eighth, sixteenth, all of them three in the time of two


class Written(NamedTuple):
    """One symbol: a note or a rest of one value."""

    onset: int
    """Steps from the start of the measure."""
    steps: int
    """How long it sounds."""
    pitch: int | None
    """MIDI number; None is a rest."""
    from_before: bool = False
    """Whether it is tied to the symbol before."""
    goes_on: bool = False
    """Whether it is tied to the symbol after."""
    group: int = 0
    """Symbols in the group of triplets that begins here, 0 where none does."""
    in_group: bool = False
    """Whether it is part of a triplet: three in the time of two."""
    ends_group: bool = False


def whole_steps(ticks: int, ticks_per_quarter: int) -> int:
    """Return ticks in steps; raise where they are no whole number of them."""
    steps, rest = divmod(ticks * STEPS_PER_QUARTER, ticks_per_quarter)
    if rest:
        raise InvalidInputError(
            f"{ticks / ticks_per_quarter:g} quarters are no whole number of steps, of which a quarter has "
            f"{STEPS_PER_QUARTER}: notes and measures that are written lie on that grid"
        )
    return steps


def measure_symbols(
    notes: NoteArray, bars: MeterMap, index: int, *, ticks: int | None = None, cuts: Collection[int] = ()
) -> list[Written]:
    """Return the symbols of a measure of a score, of another length where `ticks` says so; see `write_measure`."""
    (start, stop), per_quarter = bars.span(index, 1), bars.ticks_per_quarter
    onsets, ends = notes["onset_tick"], notes["onset_tick"] + notes["duration_tick"]
    inside = (onsets < stop) & (ends > start)
    edges = [[whole_steps(tick - start, per_quarter) for tick in at[inside].tolist()] for at in (onsets, ends)]
    rows = list(zip(*edges, notes["pitch"][inside].tolist(), strict=True))
    return write_measure(rows, whole_steps(stop - start if ticks is None else ticks, per_quarter), cuts=cuts)


def write_measure(
    notes: Sequence[tuple[int, int, int]], n_steps: int, *, cuts: Collection[int] = (), begins: bool = True
) -> list[Written]:
    """Return the symbols of one measure."""
    spans = list(_spans(notes, n_steps))
    edges = {edge for low, high, _ in spans for edge in (low, high)} | set(cuts)
    # no symbol reaches over the edges of a beat that is written in triplets
    beats = [beat for beat in range(-(-n_steps // STEPS_PER_QUARTER)) if _beat_is_triplet(beat, edges)]
    marks = sorted({*(min(at * STEPS_PER_QUARTER, n_steps) for beat in beats for at in (beat, beat + 1)), *cuts})
    symbols: list[Written] = []
    for low, high, note in spans:
        inner = marks[bisect.bisect_right(marks, low) : bisect.bisect_left(marks, high)]
        for start, stop in itertools.pairwise([low, *inner, high]):
            beat = start // STEPS_PER_QUARTER
            triplet = stop <= min((beat + 1) * STEPS_PER_QUARTER, n_steps) and _beat_is_triplet(beat, edges)
            for onset, steps in _values(start, stop, _IN_TRIPLET if triplet else _PLAIN):
                first, last = onset == low, onset + steps == high
                symbols.append(
                    Written(
                        onset,
                        steps,
                        None if note is None else note[2],
                        note is not None and (not first or (note[0] < 0 and begins)),
                        note is not None and (not last or note[1] > n_steps),
                        in_group=triplet,
                    )
                )
    return _grouped(symbols)


def _spans(
    notes: Sequence[tuple[int, int, int]], n_steps: int
) -> Iterator[tuple[int, int, tuple[int, int, int] | None]]:
    """Yield notes and the rests between them, within the measure."""
    position = 0
    for note in notes:
        low, high = max(note[0], 0), min(note[1], n_steps)
        if low > position:
            yield position, low, None
        yield low, high, note
        position = high
    if position < n_steps:
        yield position, n_steps, None


def _beat_is_triplet(beat: int, edges: Collection[int]) -> bool:
    start = beat * STEPS_PER_QUARTER
    return any(start + step in edges for step in (1, 2, 4, 5))


def _values(start: int, stop: int, values: Sequence[int]) -> Iterator[tuple[int, int]]:
    while start < stop:
        steps = next(value for value in values if value <= stop - start)
        yield start, steps
        start += steps


def _grouped(symbols: Sequence[Written]) -> list[Written]:
    """Mark where groups of triplets begin and end: one a beat."""
    done: list[Written] = []
    for (beat, triplet), members in itertools.groupby(
        symbols, key=lambda symbol: (symbol.onset // STEPS_PER_QUARTER if symbol.in_group else -1, symbol.in_group)
    ):
        group = list(members)
        if triplet and beat >= 0:
            group[0] = group[0]._replace(group=len(group))
            group[-1] = group[-1]._replace(ends_group=True)
        done += group
    return done


class Pitch(NamedTuple):
    """A pitch as it is written."""

    letter: str
    """C..B."""
    alter: int
    """Semitones: 1 sharp, -1 flat."""
    octave: int
    """4 is that of middle C."""


_FIFTHS = "FCGDAEB"
_SEMITONES = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}


def spell_pitch(pitch: int, fifths: int = 0) -> Pitch:
    """Name a pitch as a key has it: the seven of the key, then the nearest on the circle of fifths."""
    # places on the circle of fifths, C being 1: those of a key are fifths .. fifths + 6
    place = next(place for place in range(fifths - 2, fifths + 10) if 7 * (place - 1) % 12 == pitch % 12)
    letter, alter = _FIFTHS[place % 7], place // 7
    return Pitch(letter, alter, (pitch - alter - _SEMITONES[letter]) // 12 - 1)


@dataclasses.dataclass
class Accidentals:
    """Which accidentals are in force in a measure, by letter and octave; what an octave has counts for all of them."""

    fifths: int = 0
    written: dict[tuple[str, int], int] = dataclasses.field(default_factory=dict)

    def of_key(self, letter: str) -> int:
        """Return what the key does to a letter, in semitones."""
        return (self.fifths + 6 - _FIFTHS.index(letter)) // 7

    def needed(self, pitch: Pitch) -> bool:
        """Tell whether a note has to be written with its accidental, and remember it if it has."""
        key = self.of_key(pitch.letter)
        others = {alter for (letter, _), alter in self.written.items() if letter == pitch.letter}
        if pitch.alter == key and others <= {key}:
            return False
        if self.written.get((pitch.letter, pitch.octave)) == pitch.alter and others == {pitch.alter}:
            return False
        self.written[pitch.letter, pitch.octave] = pitch.alter
        return True
