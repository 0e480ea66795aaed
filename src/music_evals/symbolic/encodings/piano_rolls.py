"""Scores as piano rolls of 84 pitches on a grid, and back.

Source: Lu et al., "Actions speak louder than listening" (ACM MM 2021), section 3, and the authors' code. Deviations:
the bar line comes from the score's signatures and pickup (the code counts bars of 4/4 from the first step), and starts
of notes from the notes (in the cells, a note that is struck again is seen by its gap alone).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from music_evals.annotations import (
    LOWEST_PITCH,
    N_ROLL_PITCHES,
    NOTE_DTYPE,
    Arrangement,
    NoteArray,
    PianoRoll,
    Score,
    Tempo,
    TimeSignature,
)
from music_evals.errors import InvalidNotesError, NoDataError, UnknownNameError
from music_evals.symbolic.measures import meter_map
from music_evals.symbolic.notes import make_notes, quantize, sort_notes

__all__ = ["STEPS_PER_QUARTER", "arrange", "arrangement_score", "piano_roll", "roll_notes"]

STEPS_PER_QUARTER: Final = 8
"""Steps of a 32nd note."""

VELOCITIES: Final = (85, 80)  # melody and accompaniment, as the authors' code writes them


def piano_roll(score: Score, *, steps_per_quarter: int = STEPS_PER_QUARTER, gaps: bool = True) -> PianoRoll:
    """Return all voices of a score, put on a grid first (`symbolic.notes.quantize`), as one roll.

    With `gaps` a note whose pitch is struck again in its voice where it ends falls silent one step before, as in the
    authors' rolls; a note of one step keeps it. Another voice may fill the gap. A note outside of A0 to G#7 (MIDI
    21..104) is an `InvalidNotesError`, a score without notes a `NoDataError`.
    """
    return _roll(_on_grid(score, steps_per_quarter), None, gaps=gaps)


def arrange(
    score: Score, melody: int | str, *, steps_per_quarter: int = STEPS_PER_QUARTER, gaps: bool = True
) -> Arrangement:
    """Return one voice of a score, by its index or name, as melody and all others as accompaniment, each a roll.

    Options and errors are those of `piano_roll`. A voice that does not exist is an `UnknownNameError`, one without
    notes a `NoDataError`.
    """
    if isinstance(melody, str):
        if melody not in score.voices:
            raise UnknownNameError("voice", melody, score.voices)
        index = score.voices.index(melody)
    elif not 0 <= melody < len(score.voices):
        raise UnknownNameError("voice", str(melody), [str(index) for index in range(len(score.voices))])
    else:
        index = melody
    on_grid = _on_grid(score, steps_per_quarter)
    if not len(on_grid.voice(index)):
        raise NoDataError(f"voice {melody!r} is to be the melody, but has no notes; name another of {score.voices}")
    others = [voice for voice in range(len(score.voices)) if voice != index]
    return Arrangement(_roll(on_grid, [index], gaps=gaps), _roll(on_grid, others, gaps=gaps))


def roll_notes(roll: PianoRoll, *, velocity: int = 80, voice: int = 0) -> NoteArray:
    """Return the notes of a roll.

    Each starts at an onset, or at the first cell after silence, and lasts until the next start or silence. All have the
    velocity and the voice that are given.
    """
    silent = np.zeros((1, N_ROLL_PITCHES), dtype=np.bool_)
    starts = roll.cells & (roll.onsets | ~np.vstack([silent, roll.cells[:-1]]))
    # a note ends where its pitch falls silent or starts again; the row behind the last step ends all
    ends = np.vstack([starts | ~roll.cells, ~silent])
    column, step = np.nonzero(starts.T)
    durations = [int(np.argmax(ends[at + 1 :, pitch])) + 1 for pitch, at in zip(column, step, strict=True)]
    if not durations:
        return np.zeros(0, dtype=NOTE_DTYPE)
    return make_notes(step, np.array(durations), column + LOWEST_PITCH, velocity, voice)


def arrangement_score(
    arrangement: Arrangement, *, bpm: float = 120.0, time_signatures: Sequence[TimeSignature] = ()
) -> Score:
    """Return an arrangement as a score of two voices, ``"melody"`` and ``"accompaniment"``, on the grid of the rolls.

    Unisons of the two stay apart.

    `bpm` is its tempo, quarters a minute. Signatures have ticks in steps; the rolls have positions in bars, but no
    signatures.
    """
    parts = (arrangement.melody, arrangement.accompaniment)
    notes = [
        roll_notes(roll, velocity=velocity, voice=voice)
        for voice, (roll, velocity) in enumerate(zip(parts, VELOCITIES, strict=True))
    ]
    return Score(
        sort_notes(np.concatenate(notes)),
        arrangement.melody.steps_per_quarter,
        tuple(time_signatures),
        (Tempo(0, bpm),),
        voices=("melody", "accompaniment"),
    )


def _on_grid(score: Score, steps_per_quarter: int) -> Score:
    """Put a score on the grid, and refuse what has no place in a roll."""
    if not len(score.notes):
        raise NoDataError("the score has no notes, so that there is no roll of it")
    outside = (score.notes["pitch"] < LOWEST_PITCH) | (score.notes["pitch"] >= LOWEST_PITCH + N_ROLL_PITCHES)
    if outside.any():
        note = score.notes[int(np.argmax(outside))]
        raise InvalidNotesError(
            f"pitch {note['pitch']} of voice {score.voices[note['voice']]!r} at tick {note['onset_tick']} lies outside "
            f"of A0..G#7 (MIDI {LOWEST_PITCH}..{LOWEST_PITCH + N_ROLL_PITCHES - 1}); transpose it or leave it out"
        )
    return quantize(score, steps_per_quarter)


def _roll(score: Score, voices: Sequence[int] | None, *, gaps: bool) -> PianoRoll:
    """Return some voices, or all, of a score that is on its grid."""
    bars = meter_map(score)
    n = int(max(bars.starts[-1], score.end_tick))
    steps = np.arange(n)
    lengths = np.array([signature.quarters for signature in bars.signatures]) * score.ticks_per_quarter
    if bars.pickup_ticks:
        lengths[0] = lengths[1]  # a pickup is the end of a bar like the next
    notes = score.notes if voices is None else score.notes[np.isin(score.notes["voice"], voices)]
    cells, onsets, offsets = (np.zeros((n, N_ROLL_PITCHES), dtype=np.bool_) for _ in range(3))
    ends = notes["onset_tick"] + notes["duration_tick"]
    if gaps:  # a note longer than a step ends early where its voice strikes its pitch again at its end
        rows = list(zip(notes["voice"].tolist(), notes["pitch"].tolist(), strict=True))
        starts = set(zip(rows, notes["onset_tick"].tolist(), strict=True))
        again = [(row, end) in starts for row, end in zip(rows, ends.tolist(), strict=True)]
        ends = ends - ((notes["duration_tick"] > 1) & np.array(again, dtype=np.bool_))
    for note, end in zip(notes, ends.tolist(), strict=True):
        column = int(note["pitch"]) - LOWEST_PITCH
        cells[note["onset_tick"] : end, column] = True
        onsets[note["onset_tick"], column] = True
        offsets[end : end + 1, column] = True
    return PianoRoll(
        cells,
        onsets,
        offsets & ~cells,  # another voice may hold the pitch
        np.asarray(bars.beat_of(steps) % 1.0),
        np.asarray(bars.position_in_measure(steps) / lengths[bars.measure_of(steps)]),
        score.ticks_per_quarter,
    )
