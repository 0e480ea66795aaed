"""A tune in a file whose measures can be replaced, everything else staying as it is.

`open_tune` reads MIDI, MusicXML and ABC in the written order: repeats are not played out, and a measure is one that is
printed. `Tune.replaced` gives the same file with other notes in some measures of one voice.

Measures have the numbers that a score prints: the first full one is 1, a pickup before it is 0, and the two halves of a
measure around a repeat sign have one number. MusicXML states its own numbers, which are taken as they are. ``#5`` is
the fifth measure of the file, whatever its number.
"""

from __future__ import annotations

import abc
import dataclasses
import os
import re
from collections.abc import Collection, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from music_evals.annotations import DRUMS, NoteArray, Score, TimeSignature
from music_evals.errors import InvalidInputError, NoDataError, PolyphonyError, UnknownNameError, UnreadableFileError
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from music_evals.symbolic.measures import MeterMap

__all__ = ["TUNE_SUFFIXES", "Tune", "check_agreement", "check_edit", "measure_numbers", "open_tune", "second_halves"]

TUNE_SUFFIXES = (".mid", ".midi", ".rmi", ".musicxml", ".xml", ".mxl", ".abc")
"""Files that `open_tune` reads, in lower case."""


@dataclasses.dataclass(frozen=True, eq=False)
class Tune(abc.ABC):
    """A tune in a file.

    Parameters
    ----------
    name
        The file, for messages.
    suffix
        Its suffix in lower case: the format in which `replaced` answers.
    score
        Its notes in the written order, tied notes as one; each voice is one that can be edited.
    bars
        Its measures.
    numbers
        What each measure is called; see the top of this module.
    remarks
        What a user should know before it is edited, a sentence each.

    """

    name: str
    suffix: str
    score: Score
    bars: MeterMap
    numbers: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @abc.abstractmethod
    def replaced(self, voice: int, first: int, n_measures: int, notes: NoteArray) -> bytes:
        """Return the file with other notes in some measures of one voice.

        Parameters
        ----------
        voice
            Index of the voice in `score`.
        first, n_measures
            Index of the first measure in `bars`, from 0, and how many.
        notes
            What these measures are to hold, one note at a time, in ticks of `score`; none sounds out of them.

        Raises
        ------
        InvalidInputError
            Notes outside of the measures, or two at once.
        UnreadableFileError
            What stands there cannot be edited without touching something else. The result is read again, and compared
            with what it was: other voices, all notes outside of the measures, and the bar lines.

        """

    def voice(self, name: str | int | None = None) -> int:
        """Return the index of a voice by its name or number; None takes the only one.

        Raises
        ------
        NoDataError
            The tune has no notes.
        PolyphonyError
            None was named, and several have notes; the message lists them.
        UnknownNameError
            There is no such voice.
        InvalidInputError
            Several voices have this name, or it is a drum kit, also where that is the only voice.

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

        A number of several measures side by side, such as the halves around a repeat sign, names all of them.

        Raises
        ------
        InvalidInputError
            Not of this form, backwards, or not in the tune, or the number of measures in several places; the message
            says which there are.

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


def check_agreement(edited: Collection[tuple[int, int, int]], score: Score, name: str) -> None:
    """Raise where the reading of a file that is edited differs from the one that is scored.

    Parameters
    ----------
    edited
        Onset and end in ticks and pitch of every written note, tied ones each by itself.
    score
        The same notes, by the reader whose notes are scored.
    name
        The file, for messages.

    Raises
    ------
    UnreadableFileError
        A note that only one of the two readings has; the message says where the first stands.

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
    """Compare a tune with what was read again after measures were replaced.

    Parameters
    ----------
    before, after
        The tune, and the file that is to be returned.
    places
        What each voice is in the file, before and after: one without notes may be no voice any more.
    voice, first, n_measures, notes
        As `Tune.replaced`.

    Raises
    ------
    UnreadableFileError
        A bar line has moved, a note outside of the measures is another now, or those in them are not as given.

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


def open_tune(
    path: str | os.PathLike[str], *, tune: int | None = None, meter: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> Tune:
    r"""Read a MIDI, MusicXML or ABC file so that some of its measures can be replaced.

    Parameters
    ----------
    path
        A file that ends in one of `TUNE_SUFFIXES`.
    tune
        The number of the ``X:`` field, where an ABC file holds several tunes.
    meter
        Such as ``3/4``: the meter of a MIDI file that states none. It is refused where the file has one.
    limits
        Bounds on bytes, length and notes. The file is checked by the reader of its format before it is edited.

    Raises
    ------
    UnknownNameError
        Another suffix.
    NoDataError
        There is no such file, or it states no measures; the message says what to do.
    InvalidInputError
        Several tunes and none chosen, or an invalid meter, or one that is not needed.
    UnreadableFileError, FileTooLargeError
        As the readers of `symbolic.files`; or what the file holds cannot be edited safely.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "scale.abc")
    ...     _ = path.write_text("X:1\nM:4/4\nL:1/4\nK:C\nCDEF|GABc|\n")
    ...     tune = open_tune(path)
    >>> first, n = tune.measures("2")
    >>> tune.numbers, tune.replaced(0, first, n, tune.score.notes[:0]).decode().splitlines()[-1]
    (('1', '2'), 'CDEF|z4|')

    """
    from music_evals.symbolic.rewriting import abc, midi, musicxml

    suffix = Path(path).suffix.lower()
    if suffix not in TUNE_SUFFIXES:
        raise UnknownNameError("kind of score file", suffix or str(path), TUNE_SUFFIXES)
    if tune is not None and suffix != ".abc":
        raise InvalidInputError(
            f"`tune` chooses a tune of an ABC file, and {os.fspath(path)} is no ABC file; leave it out"
        )
    if suffix in {".mid", ".midi", ".rmi"}:
        return midi.open_midi(path, meter=None if meter is None else read_meter(meter), limits=limits)
    if meter is not None:
        raise InvalidInputError(
            f"`meter` is for MIDI files that state none, and {os.fspath(path)} is a score, which states its own; leave "
            "it out"
        )
    if suffix == ".abc":
        return abc.open_abc(path, tune=tune, limits=limits)
    return musicxml.open_musicxml(path, limits=limits)


def read_meter(text: str) -> TimeSignature:
    """Read a meter such as ``3/4``."""
    match = re.fullmatch(r"\s*(\d{1,2})\s*/\s*(\d{1,2})\s*", text)
    if match is None:
        raise InvalidInputError(f"`meter` is given such as 3/4, got {text!r}")
    return TimeSignature(0, int(match[1]), int(match[2]))
