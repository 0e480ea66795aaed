"""Notes as structured arrays, and their quantisation without a tempo."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import NOTE_DTYPE, NoteArray, Score
from music_evals.errors import InvalidInputError, InvalidNotesError, PolyphonyError

__all__ = ["check_monophonic", "make_notes", "moved_changes", "quantize", "rescale_tick", "sort_notes"]


def make_notes(
    onset_tick: npt.ArrayLike,
    duration_tick: npt.ArrayLike,
    pitch: npt.ArrayLike,
    velocity: npt.ArrayLike = 64,
    voice: npt.ArrayLike = 0,
) -> NoteArray:
    """Build a sorted note array from columns.

    Parameters
    ----------
    onset_tick, duration_tick
        Integers, shape (n,), in ticks of one grid; onsets >= 0, durations >= 1.
    pitch
        MIDI numbers, shape (n,), 0..127.
    velocity, voice
        Shape (n,) or one number for all notes; velocity 1..127, voice >= 0.

    Returns
    -------
    NoteArray
        Shape (n,), sorted by onset, voice, pitch.

    Raises
    ------
    InvalidNotesError
        Columns of different length, not whole numbers, or outside their range.
    """
    ranges = {
        "onset_tick": (onset_tick, 0, 2**62),
        "duration_tick": (duration_tick, 1, 2**62),
        "pitch": (pitch, 0, 127),
        "velocity": (velocity, 1, 127),
        "voice": (voice, 0, 2**15 - 1),
    }
    n = np.size(onset_tick)
    notes = np.zeros(n, dtype=NOTE_DTYPE)
    for name, (values, low, high) in ranges.items():
        column = np.atleast_1d(np.asarray(values))
        if column.size and not np.issubdtype(column.dtype, np.integer):
            raise InvalidNotesError(f"{name} must hold whole numbers, got {column.dtype}")
        if column.size not in {1, n}:
            raise InvalidNotesError(f"{name} has {column.size} values for {n} notes")
        if column.size and (column.min() < low or column.max() > high):
            raise InvalidNotesError(f"{name} must lie in {low}..{high}, got {column.min()}..{column.max()}")
        notes[name] = column
    return sort_notes(notes)


def sort_notes(notes: NoteArray) -> NoteArray:
    """Return the notes sorted by onset, voice, pitch."""
    return notes[np.lexsort((notes["pitch"], notes["voice"], notes["onset_tick"]))]


def check_monophonic(notes: NoteArray) -> None:
    """Raise `PolyphonyError` where a note starts before the one before it has ended; it names the first such pair."""
    ends = notes["onset_tick"] + notes["duration_tick"]
    overlaps = np.flatnonzero(ends[:-1] > notes["onset_tick"][1:])
    if overlaps.size:
        first, second = notes[overlaps[0]], notes[overlaps[0] + 1]
        raise PolyphonyError(
            f"one voice is needed, but pitch {second['pitch']} starts at tick {second['onset_tick']} while pitch "
            f"{first['pitch']} sounds until tick {ends[overlaps[0]]}; split the voices or keep one of them"
        )


def rescale_tick(tick: npt.ArrayLike, from_tpq: int, to_tpq: int) -> npt.NDArray[np.int64]:
    """Move ticks, whole numbers >= 0 of any shape, from one grid to another, rounding half up."""
    # floor(tick * ratio + 1 / 2), in whole numbers
    ratio = Fraction(to_tpq, from_tpq)
    ticks = np.asarray(tick, dtype=np.int64)
    return (2 * ticks * ratio.numerator + ratio.denominator) // (2 * ratio.denominator)


def quantize(score: Score, ticks_per_quarter: int) -> Score:
    """Put a score on another grid, in symbolic time: no tempo is read.

    Onsets and ends are rounded half up to the new grid; a note keeps at least one tick. Notes that were apart stay in
    order; two short notes may come to start together.
    """
    if ticks_per_quarter < 1:
        raise InvalidInputError(f"ticks_per_quarter must be at least 1, got {ticks_per_quarter}")

    def move(tick: npt.ArrayLike) -> npt.NDArray[np.int64]:
        return rescale_tick(tick, score.ticks_per_quarter, ticks_per_quarter)

    # onsets and ends are rounded, not durations: notes that followed each other still do
    notes = score.notes.copy()
    notes["onset_tick"] = move(score.notes["onset_tick"])
    ends = move(score.notes["onset_tick"] + score.notes["duration_tick"])
    notes["duration_tick"] = np.maximum(ends - notes["onset_tick"], 1)
    changes = moved_changes(score, lambda tick: int(move(tick)))
    return dataclasses.replace(score, notes=sort_notes(notes), ticks_per_quarter=ticks_per_quarter, **changes)


def moved_changes(score: Score, move: Callable[[int], int]) -> dict[str, Any]:
    """Return the signatures and tempi of a score at other ticks, under the names of its fields."""
    names = ("time_signatures", "tempos", "key_signatures")
    return {
        name: tuple(dataclasses.replace(change, tick=move(change.tick)) for change in getattr(score, name))
        for name in names
    }
