"""Another accompaniment under the melody of one's own piece: from a score to a model's rolls and back.

The model is handed in (`protocols.StyleTransfer`); command line, Space and Python call this alike.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np

from music_evals.annotations import DRUMS, Arrangement, NoteArray, Score
from music_evals.errors import InvalidInputError, NoDataError, PolyphonyError, UnknownNameError
from music_evals.symbolic.melody import skyline
from music_evals.symbolic.notes import check_monophonic, quantize, sort_notes
from music_evals.symbolic.piano_rolls import arrange, arrangement_score

__all__ = ["HIGHEST", "MELODY_NAMES", "METERS", "Prepared", "prepare", "rearranged_score"]

HIGHEST: Final = "highest"
"""In place of a voice: the highest notes of all voices are the melody, all others accompaniment."""

MELODY_NAMES: Final = ("melody", "soprano", "vocal", "vocals", "voice", "voices", "lead", "singer", "song", "canto")
"""First words of the names of voices that are taken for a melody where none is named."""

METERS: Final = ((4, 4), (2, 2), (2, 4), (3, 4))
"""Metres that are not refused: nearly all music that the shipped models have learnt from is in 4/4, some in 3/4."""

_LEGATO_QUARTERS: Final = 1 / 8
_MELODY = "melody"


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """A piece as a model takes it.

    Parameters
    ----------
    score
        On the model's grid, voice 0 the melody under its name ``"melody"``, then all others.
    arrangement
        The same as rolls.
    voice
        Name of the voice that is the melody, or `HIGHEST`.
    remarks
        What was left out or changed, in words.

    """

    score: Score
    arrangement: Arrangement
    voice: str
    remarks: tuple[str, ...]


def prepare(
    score: Score, *, melody: int | str | None = None, steps_per_quarter: int = 8, any_meter: bool = False
) -> Prepared:
    """Make melody and accompaniment of a score.

    Parameters
    ----------
    score
        Any score; drums are left out.
    melody
        Name or number, from 1, of the voice that is kept, or `HIGHEST`. None: the only voice whose name begins with one
        of `MELODY_NAMES`, or the only voice, if it has one note at a time; then the accompaniment begins as silence.
    steps_per_quarter
        Grid of the model.
    any_meter
        True takes metres outside of `METERS` too; the model is told places in the bar as shares of it.

    Raises
    ------
    NoDataError
        There are no notes but drums, or the melody has none.
    UnknownNameError, InvalidInputError
        There is no such voice; or none is named and none can be told to be the melody.
    InvalidInputError
        Another metre, unless `any_meter`.
    InvalidNotesError
        A note outside of A0 to G#7.

    """
    pitched, remarks = _without_drums(score)
    _check_meters(score, any_meter=any_meter)
    if melody == HIGHEST:
        chosen, voice = _highest_apart(pitched), HIGHEST
    else:
        index = _melody_voice(pitched, melody)
        chosen, voice = _melody_first(pitched, index), pitched.voices[index]
    grid = quantize(chosen, steps_per_quarter)
    moved = _n_off_grid(chosen, steps_per_quarter)
    if moved:
        remarks.append(
            f"{moved} of {len(chosen.notes)} notes were moved to the grid of {steps_per_quarter} steps a quarter"
        )
    if len(grid.voices) == 1 or not (grid.notes["voice"] > 0).any():
        remarks.append("there is a melody alone: its accompaniment begins as silence")
    return Prepared(grid, arrange(grid, 0, steps_per_quarter=steps_per_quarter), voice, tuple(remarks))


def rearranged_score(prepared: Prepared, arrangement: Arrangement) -> Score:
    """Return a transfer as a score: the melody's own notes over the new accompaniment.

    Tempi, metres and keys are those of the piece; the voices are ``"melody"`` and ``"accompaniment"``, both pianos.

    Raises
    ------
    InvalidInputError
        The arrangement is of another length than the piece.

    """
    if len(arrangement) != len(prepared.arrangement):
        raise InvalidInputError(
            f"the transfer has {len(arrangement)} steps, the piece {len(prepared.arrangement)}: it is of another one"
        )
    source = prepared.score
    made = arrangement_score(arrangement)
    under = made.notes[made.notes["voice"] == 1]
    return dataclasses.replace(
        made,
        notes=sort_notes(np.concatenate([source.voice(0), under])),
        time_signatures=source.time_signatures,
        tempos=source.tempos or made.tempos,
        key_signatures=source.key_signatures,
    )


def _without_drums(score: Score) -> tuple[Score, list[str]]:
    """Return a score without its drums, and a remark where there were some."""
    kept = [index for index in range(len(score.voices)) if not (score.programs and score.programs[index] == DRUMS)]
    pitched = _select(score, kept)
    if not len(pitched.notes):
        raise NoDataError("the piece has no notes with a pitch; give one with a melody")
    left_out = len(score.notes) - len(pitched.notes)
    return pitched, [f"{left_out} notes of drums were left out"] if left_out else []


def _select(score: Score, voices: Sequence[int]) -> Score:
    """Return some voices of a score, in this order."""
    place = np.full(max(len(score.voices), 1), -1)
    place[list(voices)] = np.arange(len(voices))
    notes = score.notes[place[score.notes["voice"]] >= 0].copy()
    notes["voice"] = place[notes["voice"]]
    programs = tuple(score.programs[voice] for voice in voices) if score.programs else ()
    return dataclasses.replace(
        score, notes=sort_notes(notes), voices=tuple(score.voices[voice] for voice in voices), programs=programs
    )


def _check_meters(score: Score, *, any_meter: bool) -> None:
    """Raise for a metre that models hardly know."""
    others = [one for one in score.time_signatures if (one.numerator, one.denominator) not in METERS]
    # a short bar before the first whole one is how a pickup is written
    if score.time_signatures and others[:1] == [score.time_signatures[0]] and len(score.time_signatures) > 1:
        first, second = score.time_signatures[:2]
        if first.quarters < second.quarters and second.tick == round(first.quarters * score.ticks_per_quarter):
            others = others[1:]
    if others and not any_meter:
        known = ", ".join(f"{numerator}/{denominator}" for numerator, denominator in METERS)
        raise InvalidInputError(
            f"the piece is in {others[0].numerator}/{others[0].denominator} at tick {others[0].tick}; models have "
            f"learnt from music in 4/4, some in 3/4. Give a piece in {known}, or ask for it all the same with "
            "`any_meter=True`"
        )


def _melody_voice(score: Score, melody: int | str | None) -> int:
    """Return the index of the voice that is the melody."""
    voices = score.voices
    sounding = [index for index in range(len(voices)) if len(score.voice(index))]
    listed = ", ".join(f"{index + 1} ({voices[index] or 'no name'})" for index in sounding)
    if melody is None:
        named = [index for index in sounding if _first_word(voices[index]) in MELODY_NAMES]
        if len(named) == 1:
            return named[0]
        if len(sounding) == 1 and _one_at_a_time(score.voice(sounding[0])):
            return sounding[0]
        raise InvalidInputError(
            f"no melody can be told among the voices {listed}: say which one is it as `melody`, by name or number, or "
            f"take the highest notes of all, as {HIGHEST!r}"
        )
    numbers = {str(index + 1): index for index in range(len(voices))}
    names = {name.casefold(): index for index, name in enumerate(voices)}
    index = numbers.get(str(melody), names.get(str(melody).casefold(), -1))
    if index < 0:
        raise UnknownNameError("voice", str(melody), [*voices, *numbers, HIGHEST])
    if index not in sounding:
        raise NoDataError(f"voice {melody!r} has no notes; these have some: {listed}")
    return index


def _first_word(name: str) -> str:
    return name.strip().casefold().replace("_", " ").replace("-", " ").partition(" ")[0]


def _one_at_a_time(notes: NoteArray) -> bool:
    try:
        check_monophonic(notes)
    except PolyphonyError:
        return False
    return True


def _melody_first(score: Score, index: int) -> Score:
    others = [voice for voice in range(len(score.voices)) if voice != index]
    chosen = _select(score, [index, *others])
    return dataclasses.replace(chosen, voices=(_MELODY, *chosen.voices[1:]))


def _highest_apart(score: Score) -> Score:
    """Return the highest notes as voice 0, and all others as voice 1."""
    line = skyline(score.notes, overlap=score.ticks_per_quarter * _LEGATO_QUARTERS)
    taken = {(int(note["onset_tick"]), int(note["pitch"])) for note in line}
    keys = zip(score.notes["onset_tick"].tolist(), score.notes["pitch"].tolist(), strict=True)
    below = score.notes[[key not in taken for key in keys]].copy()
    below["voice"] = 1
    return dataclasses.replace(
        score, notes=sort_notes(np.concatenate([line, below])), voices=(_MELODY, "accompaniment"), programs=()
    )


def _n_off_grid(score: Score, steps_per_quarter: int) -> int:
    """Return how many notes do not start on the grid."""
    return int(np.count_nonzero(score.notes["onset_tick"] * steps_per_quarter % score.ticks_per_quarter))
