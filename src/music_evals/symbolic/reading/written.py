"""Written music: measures as they stand on the page, the order in which they are played, and their notes as a score.

The readers of ABC and MusicXML make a `WrittenScore` of a file; what follows is the same for both.

Order of playing
----------------
- A passage that ends with a repeat sign is played again from its start sign; without one from the latest double bar,
  from the end of the latest repeat, or from the beginning (ABC 2.1, section 4.8). A start sign is forgotten where
  another one follows, and after the last ending of its passage.
- An ending is played in the passes that its bracket names. The last pass of a passage with endings is the last that any
  of them names; where a single ending is repeated, it is the one after, which leaves the ending out.
- Each da capo and dal segno is followed once. After the jump repeats are not taken, of endings the last is played, and
  the music stops at *fine* or goes on at the coda, whose repeats are taken.

So each measure is played as often as the signs say, and the work grows with the length of what is played alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from music_evals.annotations import KeySignature, Score, Tempo, TimeSignature
from music_evals.errors import UnreadableFileError
from music_evals.symbolic.limits import Limits, check_end, check_n_notes
from music_evals.symbolic.measures import drop_repeated_signatures
from music_evals.symbolic.midi import drop_repeated
from music_evals.symbolic.notes import make_notes

TICKS_PER_QUARTER = 10080
"""Ticks a quarter: 2^5 * 3^2 * 5 * 7, so that common tuplets fall on ticks."""

MAX_FIFTHS = 7  # of the keys that a `Score` names


class WrittenNote(NamedTuple):
    """A note as it is written: tied ones each by itself."""

    onset: Fraction  # in quarters from the bar line
    duration: Fraction  # in quarters
    pitch: int
    voice: int  # index in the names of the score
    line: str = ""  # ties join notes of one line, such as a ``<voice>`` of MusicXML; see `WrittenScore.tie_groups`
    goes_on: bool = False  # whether a tie starts at it
    is_tied: bool = True  # whether a tie may end at it
    velocity: int = 64


class Jump(NamedTuple):
    """Where the music goes on after a measure."""

    segno: str | None  # name of the segno; None is the beginning
    coda: bool  # whether it leaves for the coda; else it ends at fine, or at the end


@dataclasses.dataclass
class WrittenMeasure:
    """A measure of all voices."""

    name: str  # what messages call it
    length: Fraction  # in quarters
    meter: tuple[int, int] | None
    notes: list[WrittenNote] = dataclasses.field(default_factory=list)
    keys: list[tuple[Fraction, int, bool]] = dataclasses.field(default_factory=list)  # onset, fifths, minor
    tempos: list[tuple[Fraction, float]] = dataclasses.field(default_factory=list)  # onset, quarters a minute
    starts_section: bool = False  # whether it follows a double bar
    starts_repeat: bool = False
    ends_repeat: int = 0  # how often the passage that ends here is played; 0: it is not repeated
    ending: frozenset[int] = frozenset()  # passes of the ending that begins here
    ends_ending: bool = False  # whether the ending that it belongs to ends with it
    segno: str | None = None  # name of the sign at its start
    coda: bool = False  # whether the coda begins here
    to_coda: bool = False  # whether the music leaves for the coda after it
    fine: bool = False  # whether the music ends after it, once it has jumped
    jump: Jump | None = None


@dataclasses.dataclass
class WrittenScore:
    """What a file holds, in the order of the page."""

    measures: list[WrittenMeasure]
    voices: list[str]
    programs: tuple[int, ...] = ()
    parts: list[tuple[int, int]] | None = None  # ranges of measures in the order of playing, where the file states one
    tie_groups: tuple[int, ...] = ()  # of each voice, such as the staves of a piano: ties may lead from one to another
    tie_gap: int = 0  # ticks that may lie between the notes of a tie, where a file states both of its ends
    contradiction: str = ""  # why its repeats cannot be played, where the reader of the file has seen that


def to_score(written: WrittenScore, name: str, limits: Limits, *, expand_repeats: bool, merge_ties: bool) -> Score:
    """Return the notes of written music on a grid of 10080 ticks a quarter."""
    measures = written.measures
    order = play_order(written, name, limits) if expand_repeats else list(range(len(measures)))
    check_n_notes(sum(len(measures[index].notes) for index in order), limits, name)
    end = sum((measures[index].length for index in order), Fraction(0))
    check_end(to_tick(end), TICKS_PER_QUARTER, limits, name)
    starts = _starts(measures, order)
    groups = written.tie_groups or tuple(range(len(written.voices)))
    rows = (
        _merged_rows(measures, order, starts, groups, written.tie_gap) if merge_ties else _rows(measures, order, starts)
    )
    keys, tempos = [], []
    for index, start in zip(order, starts, strict=False):
        measure = measures[index]
        keys += [KeySignature(to_tick(start + at), n, minor) for at, n, minor in measure.keys if abs(n) <= MAX_FIFTHS]
        tempos += [Tempo(to_tick(start + at), bpm) for at, bpm in measure.tempos]
    return Score(
        make_notes(*np.array(rows, dtype=np.int64).reshape(-1, 5).T),
        TICKS_PER_QUARTER,
        drop_repeated_signatures(list(_signatures(measures, order, starts)), TICKS_PER_QUARTER),
        drop_repeated(tempos),
        drop_repeated(keys),
        tuple(written.voices),
        written.programs,
    )


def play_order(written: WrittenScore, name: str, limits: Limits) -> list[int]:
    """Return the index of each measure in the order of playing; see the top of this module."""
    if written.contradiction:
        raise _repeat_error(name, written.contradiction)
    ranges = written.parts or [(0, len(written.measures))]
    order: list[int] = []
    for start, stop in ranges:
        order += _Player(written.measures, start, stop, name, limits).play()
        check_n_notes(len(order), limits, name)
    return order


def _repeat_error(name: str, reason: str) -> UnreadableFileError:
    return UnreadableFileError(
        f"{name}: its repeats cannot be played out ({reason}); read the written order with expand_repeats=False"
    )


class _Player:
    """Goes through measures as a musician does."""

    def __init__(self, measures: Sequence[WrittenMeasure], start: int, stop: int, name: str, limits: Limits) -> None:
        self._measures = measures
        self._start, self._stop = start, stop
        self._name = name
        self._limits = limits
        self._ends, self._last_pass = _endings(measures, start, stop)
        self._after_endings = frozenset(self._ends.values())
        self._order: list[int] = []
        self._played = Fraction(0)  # quarters
        self._jump: Jump | None = None  # after which the music goes on without repeats
        self._followed: set[int] = set()  # measures with a jump that has been followed
        self._leave(start)

    def _leave(self, place: int) -> None:
        """Begin a passage that has no start sign yet."""
        self._passage, self._number, self._has_sign = place, 1, False

    def play(self) -> list[int]:
        """Return the order of the measures."""
        place: int | None = self._start
        went_back = False
        while place is not None and place < self._stop:
            measure = self._measures[place]
            if not went_back:
                self._enter(place)
            # whether an ending begins that is for other passes
            ending = self._measures[place].ending
            wanted = self._number if self._jump is None else self._last_pass.get(place, 1)
            if bool(ending) and wanted not in ending:
                place, went_back = self._ends[place], False
                if place < self._stop and not self._measures[place].ending:
                    self._leave(place)
                continue
            self._order.append(place)
            self._played += self._measures[place].length
            check_n_notes(len(self._order), self._limits, self._name)
            check_end(to_tick(self._played), TICKS_PER_QUARTER, self._limits, self._name)
            following = self._after(place, measure)
            went_back = following is not None and following <= place
            place = following
        missing = sorted(set(range(self._start, self._stop)) - set(self._order))
        if missing and not self._followed:
            name = self._measures[missing[0]].name
            raise _repeat_error(self._name, f"measure {name} is in none of the passes that are played")
        return self._order

    def _enter(self, place: int) -> None:
        """Begin a passage at a start sign, or at a double bar where no start sign is open."""
        measure = self._measures[place]
        if measure.starts_repeat:
            self._passage, self._number, self._has_sign = place, 1, True
        elif measure.starts_section and not self._has_sign:
            self._leave(place)

    def _after(self, place: int, measure: WrittenMeasure) -> int | None:
        """Return where the music goes on, None where it ends."""
        if self._jump is not None:
            if measure.fine and not self._jump.coda:
                return None
            if measure.to_coda and self._jump.coda:
                self._jump = None
                self._leave(coda := self._sought("coda", place))
                return coda
        else:
            # back to the start of the passage while passes are left, else on and out of it
            last_pass = self._last_pass.get(place, measure.ends_repeat)
            if measure.ends_repeat and self._number < last_pass:
                self._number += 1
                return self._passage
            if measure.ends_repeat or (self._number == last_pass and place + 1 in self._after_endings):
                self._leave(place + 1)
        if measure.jump is not None and place not in self._followed:
            self._followed.add(place)
            self._jump = measure.jump
            return self._start if measure.jump.segno is None else self._sought("segno", place)
        return place + 1

    def _sought(self, sign: str, place: int) -> int:
        """Return the measure with a sign: the coda behind this place, or the segno of that name, or else the first."""
        if sign == "coda":
            places = [index for index in range(place + 1, self._stop) if self._measures[index].coda]
        else:
            jump = self._measures[place].jump
            places = [index for index in range(self._start, self._stop) if self._measures[index].segno is not None]
            places.sort(key=lambda index: jump is not None and self._measures[index].segno != jump.segno)
        if not places:
            name = self._measures[place].name
            raise _repeat_error(self._name, f"measure {name} leads to a {sign} that is not there")
        return places[0]


def _endings(measures: Sequence[WrittenMeasure], start: int, stop: int) -> tuple[dict[int, int], dict[int, int]]:
    """Return where the ending that begins in a measure ends, and the last pass of the passage of each in an ending."""
    ends: dict[int, int] = {}
    groups: list[list[int]] = []  # first measures of endings that follow each other
    place = start
    while place < stop:
        if not measures[place].ending:
            place += 1
            continue
        end = place + 1
        # an ending ends between two measures where its bracket or a repeat does, or where something else begins
        while end < stop and not (
            measures[end - 1].ends_ending
            or measures[end - 1].ends_repeat > 0
            or measures[end].ending
            or measures[end].starts_repeat
            or measures[end].starts_section
        ):
            end += 1
        ends[place] = end
        if groups and ends[groups[-1][-1]] == place and 1 not in measures[place].ending:
            groups[-1].append(place)
        else:
            groups.append([place])
        place = end
    last_pass: dict[int, int] = {}
    for group in groups:
        inside = range(group[0], ends[group[-1]])
        last = max(
            *(max(measures[index].ending) for index in group), *(measures[index].ends_repeat for index in inside)
        )
        if len(group) == 1 and measures[inside[-1]].ends_repeat:
            # what is played again leaves the only ending out
            last = max(last, max(measures[group[0]].ending) + 1)
        last_pass.update(dict.fromkeys(inside, last))
    return ends, last_pass


def _starts(measures: Sequence[WrittenMeasure], order: Sequence[int]) -> list[Fraction]:
    """Return where each measure starts that is played, in quarters, and the end of the last."""
    starts = [Fraction(0)]
    for index in order:
        starts.append(starts[-1] + measures[index].length)
    return starts


def _rows(
    measures: Sequence[WrittenMeasure], order: Sequence[int], starts: Sequence[Fraction]
) -> list[tuple[int, int, int, int, int]]:
    """Return onset, duration, pitch, velocity and voice of each written note."""
    rows = []
    for index, start in zip(order, starts, strict=False):
        for note in measures[index].notes:
            onset = to_tick(start + note.onset)
            end = to_tick(start + note.onset + note.duration)
            rows.append((onset, max(end - onset, 1), note.pitch, note.velocity, note.voice))
    return rows


def _merged_rows(
    measures: Sequence[WrittenMeasure],
    order: Sequence[int],
    starts: Sequence[Fraction],
    groups: Sequence[int],
    gap: int,
) -> list[tuple[int, int, int, int, int]]:
    """Return the rows of notes with tied ones as one: those of one pitch and line, each starting where one ends."""
    rows: list[tuple[int, int, int, int, int]] = []
    ties: dict[tuple[int, int], list[_Tie]] = {}  # that have started, by group and pitch
    begun: dict[tuple[str, int], tuple[int, int]] = {}  # the last two onsets of each line
    for index, start in zip(order, starts, strict=False):
        for note in sorted(measures[index].notes):
            onset = to_tick(start + note.onset)
            end = max(to_tick(start + note.onset + note.duration), onset + 1)
            line = (note.line, note.voice)
            before, last = begun.get(line, (-1, -1))
            begun[line] = (last, onset) if onset > last else (before, last)
            started = [tie for tie in ties.get((groups[note.voice], note.pitch), ()) if tie.end >= onset - gap]
            # a tie ends at the note: its own note ends there, or nearby with no other note of its line between
            reaching = [
                tie
                for tie in started
                for before, last in [begun[tie.line]]
                if note.is_tied
                and tie.end <= onset + gap
                and (tie.end >= onset or (last if last < onset else before) < tie.end)
            ]
            if reaching:
                # a tie may lead into another line or voice where its own has nothing to go on from
                tie = min(reaching, key=lambda tie: (tie.line != line, abs(tie.end - onset)))
                started.remove(tie)
                row, first = tie.row, rows[tie.row]
                rows[row] = (first[0], end - first[0], *first[2:])
            else:
                row = len(rows)
                rows.append((onset, end - onset, note.pitch, note.velocity, note.voice))
            if note.goes_on:
                started.append(_Tie(end, line, row))
            ties[groups[note.voice], note.pitch] = started
    return rows


class _Tie(NamedTuple):
    """A tie that has started."""

    end: int  # of its note, in ticks
    line: tuple[str, int]
    row: int


def _signatures(
    measures: Sequence[WrittenMeasure], order: Sequence[int], starts: Sequence[Fraction]
) -> Iterator[TimeSignature]:
    """Yield the signature of every measure, at its start."""
    # A measure that only completes the one before (the two halves around a repeat sign) is none of its own.
    meter = None
    start = Fraction(0)
    for number, index in enumerate(order):
        measure, begin, end = measures[index], starts[number], starts[number + 1]
        same = meter is not None and measure.meter == meter
        meter = measure.meter
        if meter is None:
            continue
        # what follows the first measure completes nothing: that one is a pickup
        if same and number > 1 and begin > start and end == start + Fraction(4 * meter[0], meter[1]):
            continue
        start = begin
        yield TimeSignature(to_tick(start), *meter)


def to_tick(quarters: Fraction) -> int:
    """Return the nearest tick of `TICKS_PER_QUARTER`, of two the even one."""
    ticks, rest = divmod(quarters.numerator * TICKS_PER_QUARTER, quarters.denominator)
    return ticks if not rest else round(quarters * TICKS_PER_QUARTER)


def check_agreement(edited: Collection[tuple[int, int, int]], score: Score, name: str) -> None:
    """Raise `UnreadableFileError` where the reading of a file that is edited differs from the one that is scored.

    `edited` has onset and end in ticks and pitch of every written note, tied ones each by itself; the score has the
    same notes, by the reader whose notes are scored. The message says where the first note stands that one of them
    lacks.
    """
    onsets = score.notes["onset_tick"]
    ends = onsets + score.notes["duration_tick"]
    notes = set(zip(onsets.tolist(), ends.tolist(), score.notes["pitch"].tolist(), strict=True))
    if notes != set(edited):
        onset, end, pitch = min(notes ^ set(edited))
        raise UnreadableFileError(
            f"{name}: is read in two ways: whether a note of pitch {pitch} sounds from "
            f"{onset / score.ticks_per_quarter:g} to {end / score.ticks_per_quarter:g} quarters after the beginning; "
            "save the score anew, with complete measures"
        )
