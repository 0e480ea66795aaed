"""What the tunes of all formats have: measures whose notes are replaced, and the check of what came of it."""

from __future__ import annotations

import abc
import dataclasses
import re
from collections.abc import Hashable, Sequence

import numpy as np

from music_evals.annotations import DRUMS, NoteArray, Score
from music_evals.errors import InvalidInputError, NoDataError, PolyphonyError, UnknownNameError, UnreadableFileError
from music_evals.symbolic.measures import MeterMap


@dataclasses.dataclass(frozen=True, eq=False)
class Tune(abc.ABC):
    """A tune in a file."""

    name: str  # the file, for messages
    suffix: str  # in lower case: the format in which `replaced` answers
    score: Score  # its notes in the written order, tied notes as one; each voice is one that can be edited
    bars: MeterMap
    numbers: tuple[str, ...]  # what each measure is called; see the top of this module
    remarks: tuple[str, ...] = ()  # what a user should know before it is edited, a sentence each

    @abc.abstractmethod
    def replaced(self, voice: int, first: int, n_measures: int, notes: NoteArray) -> bytes:
        """Return the file with other notes in some measures of one voice, from the measure `first` of `bars` on.

        The notes come one at a time, in ticks of `score`, and none sounds out of the measures; others raise
        `InvalidInputError`. `UnreadableFileError` says that what stands there cannot be edited without touching
        something else. The result is read again, and compared with what it was: other voices, all notes outside of the
        measures, and the bar lines.
        """

    def voice(self, name: str | int | None = None) -> int:
        """Return the index of a voice by its name or number; None takes the only one that has notes.

        Where several have, `PolyphonyError` lists them. A drum kit is refused, also as the only voice, and so is a name
        that several voices have (`InvalidInputError`).
        """
        sounding = np.unique(self.score.notes["voice"]).tolist()
        if not sounding:
            raise NoDataError(f"{self.name}: holds no notes; there is nothing to go on from")
        listed = ", ".join(f"{index + 1} {self.score.voices[index]!r}" for index in sounding)
        if name is None and len(sounding) > 1:
            raise PolyphonyError(
                f"{self.name}: {len(sounding)} voices have notes ({listed}); name one with `voice`, by number or name"
            )
        wanted = str(name)
        matches = sounding if name is None else [n for n, known in enumerate(self.score.voices) if known == wanted]
        if len(matches) > 1:
            numbers = " and ".join(str(index + 1) for index in matches)
            raise InvalidInputError(
                f"{self.name}: {len(matches)} voices are called {wanted!r}; name one by its number, {numbers}"
            )
        if not matches and wanted.isdecimal() and 1 <= int(wanted) <= len(self.score.voices):
            matches = [int(wanted) - 1]
        if not matches:
            raise UnknownNameError("voice", wanted, [str(index + 1) for index in sounding], f"voices are {listed}")
        if self.score.programs and self.score.programs[matches[0]] == DRUMS:
            kit = f"voice {matches[0] + 1} {self.score.voices[matches[0]]!r}"
            raise InvalidInputError(f"{self.name}: {kit} is a drum kit, which has no melody; the voices are {listed}")
        return matches[0]

    def measures(self, text: str) -> tuple[int, int]:
        """Return index and number of measures that are named such as ``7-10`` or ``7``, or by their places, ``#7-#10``.

        A number of several measures side by side, such as the halves around a repeat sign, names all of them. One that
        is not in the tune, or in several places, is refused; the message says which there are.
        """
        match = re.fullmatch(r"\s*(#?\w+)\s*(?:[-:]\s*(#?\w+)\s*)?", text)
        if match is None:
            raise InvalidInputError(f"`measures` are given as FIRST-LAST, such as 7-10, got {text!r}")
        if not self.numbers:
            raise NoDataError(f"{self.name}: has no measures; there is nothing to fill")
        start, stop = self._named(match[1]).start, self._named(match[2] or match[1]).stop
        if stop <= start:
            raise InvalidInputError(f"`measures` {text} end before they start; give FIRST-LAST, such as 7-10")
        return start, stop - start

    def _named(self, name: str) -> range:
        """Return the measures that a number or a place names."""
        n = len(self.numbers)
        if name.startswith("#"):
            if not name[1:].isdecimal() or not 1 <= int(name[1:]) <= n:
                raise InvalidInputError(f"{self.name} has no measure {name}; by their places they are #1 to #{n}")
            return range(int(name[1:]) - 1, int(name[1:]))
        places = [place for place, number in enumerate(self.numbers) if number == name]
        if not places:
            raise InvalidInputError(
                f"{self.name} has no measure {name}; it has {self.numbers[0]} to {self.numbers[-1]}"
                + (", 0 being the pickup" if self.numbers[0] == "0" else "")
            )
        if places[-1] - places[0] >= len(places):
            listed = ", ".join(f"#{place + 1}" for place in places)
            raise InvalidInputError(
                f"{self.name}: {len(places)} measures have the number {name}; give `measures` by their places in the "
                f"file, #1 to #{n}: these are {listed}"
            )
        return range(places[0], places[-1] + 1)

    def check_replacement(self, first: int, n_measures: int, notes: NoteArray) -> tuple[int, int]:
        """Return the ticks of some measures, or raise where notes do not fit into them, or two sound at once."""
        start, stop = self.bars.span(first, n_measures)
        ends = notes["onset_tick"] + notes["duration_tick"]
        if len(notes) and (notes["onset_tick"].min() < start or ends.max() > stop):
            raise InvalidInputError(f"notes must lie within ticks {start}..{stop}, the measures that they are put into")
        if (ends[:-1] > notes["onset_tick"][1:]).any():
            raise InvalidInputError("notes that are put into a voice must sound one at a time, and these overlap")
        return start, stop


def check_edit(
    before: Tune,
    after: Tune,
    places: tuple[Sequence[Hashable], Sequence[Hashable]],
    *,
    voice: int,
    first: int,
    n_measures: int,
    notes: NoteArray,
) -> None:
    """Compare a tune with what was read again after measures were replaced, as by `Tune.replaced`.

    `places` are what each voice is in the file, before and after: one without notes may be no voice any more.
    `UnreadableFileError` says that a bar line has moved, that a note outside of the measures is another now, or that
    those in them are not as given.
    """
    start, stop = before.bars.span(first, n_measures)
    expected, actual = (
        {place: _rows(tune, place, known) for place in set(places[0])}
        for tune, known in zip((before, after), places, strict=True)
    )
    mine = places[0][voice]
    outside = [row for row in expected[mine] if row[1] <= start or row[0] >= stop]
    outside += [(onset, start, pitch) for onset, end, pitch in expected[mine] if onset < start < end]
    outside += [(stop, end, pitch) for onset, end, pitch in expected[mine] if onset < stop < end]
    onsets = notes["onset_tick"]
    inside = zip(onsets.tolist(), (onsets + notes["duration_tick"]).tolist(), notes["pitch"].tolist(), strict=True)
    expected[mine] = sorted([*outside, *inside])
    lines, others = before.bars.starts, after.bars.starts
    moved = not np.array_equal(lines[: len(others)], others)
    wrong = [row for place in expected for row in set(expected[place]) ^ set(actual[place])]
    if moved or wrong or expected != actual or set(places[1]) - set(places[0]):
        at = f" {min(wrong)[0] / before.bars.ticks_per_quarter:g} quarters after the beginning" if wrong else ""
        raise UnreadableFileError(
            f"{before.name}: the measures cannot be replaced safely: something else would change{at}; choose other "
            "measures, or save the score anew"
        )


def _rows(tune: Tune, place: Hashable, places: Sequence[Hashable]) -> list[tuple[int, int, int]]:
    """Return onset, end and pitch of the notes of a voice."""
    notes = tune.score.voice(places.index(place)) if place in places else tune.score.notes[:0]
    ends = notes["onset_tick"] + notes["duration_tick"]
    return sorted(zip(notes["onset_tick"].tolist(), ends.tolist(), notes["pitch"].tolist(), strict=True))


def measure_numbers(bars: MeterMap) -> tuple[str, ...]:
    """Return what the measures of a score are called: from 1, or from 0 where the first is a pickup.

    The two halves of a measure have one number; see `second_halves`.
    """
    number, numbers = 0 if bars.pickup_ticks else 1, []
    for index, is_second in enumerate(second_halves(bars)):
        number += bool(index) and not is_second
        numbers.append(str(number))
    return tuple(numbers)


def second_halves(bars: MeterMap) -> tuple[bool, ...]:
    """Tell which measures are the second half of one that is cut in two, such as by a repeat sign.

    Such a measure and the one before it make up one measure of their signature.
    """
    full = [round(signature.quarters * bars.ticks_per_quarter) for signature in bars.signatures]
    is_second_half = [False] * bars.n_measures
    for index in range(2 if bars.pickup_ticks else 1, bars.n_measures):  # a pickup is no first half
        both = int(bars.starts[index + 1] - bars.starts[index - 1])
        is_second_half[index] = not is_second_half[index - 1] and full[index - 1] == full[index] == both
    return tuple(is_second_half)
