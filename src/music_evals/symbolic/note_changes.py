"""Changes between two versions of a piece, computed from their notes alone: note by note and cell by cell.

Notes of a voice are matched so that as little as possible has changed. A match costs nothing where all is the same,
and 1 where one of onset, duration and pitch is another, at most `REACH_QUARTERS` away; so does a note that goes or
comes. Thus a note that was moved costs half of one that was deleted and drawn elsewhere. Two matches of equal cost are
told apart by their distance.

References
----------
Inserted and deleted cells on the grid of 32nd notes are those of figure 5 of Lu, Wu, Chiu, Su: "Actions speak louder
than listening", ACM MM 2021. The kinds of changes of notes are ours.

"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Score
from music_evals.errors import InvalidInputError
from music_evals.symbolic.notes import rescale_tick

__all__ = ["CELLS_PER_QUARTER", "REACH_QUARTERS", "NoteChanges", "note_changes"]

CELLS_PER_QUARTER = 8
"""The grid of cells: 32nd notes."""
REACH_QUARTERS = 4
"""A note that lies farther away in time is another one."""
_FAR = 1e-6
"""Cost of a quarter note between two onsets: it decides only between equal costs."""

_Notes = npt.NDArray[np.int64]


class NoteChanges(NamedTuple):
    """What lies between an original and its edit.

    Attributes
    ----------
    n_original, n_edited
        Notes of both.
    n_same
        Notes that did not change.
    n_moved, n_resized, n_repitched
        Notes of which the onset alone, the duration alone, or the pitch alone is another.
    n_inserted, n_deleted
        Notes without a match.
    cells_inserted, cells_deleted
        Cells of pitch and 32nd note that sound in the edit alone, and in the original alone.
    distance
        Changes of notes of all kinds for each original note, from 0 (the same) on, lower is closer; NaN where the
        original has no notes.
    """

    n_original: int
    n_edited: int
    n_same: int
    n_moved: int
    n_resized: int
    n_repitched: int
    n_inserted: int
    n_deleted: int
    cells_inserted: int
    cells_deleted: int
    distance: float


def note_changes(original: Score, edited: Score) -> NoteChanges:
    """Compare two versions of a piece.

    They have the same voices, in the same order, else it is an `InvalidInputError`; velocities do not count, and ticks
    may be of other sizes. The changes are those over all voices.

    Examples
    --------
    >>> from music_evals.symbolic.notes import make_notes
    >>> before = Score(make_notes([0, 8], [8, 8], [60, 64]), 8)
    >>> after = Score(make_notes([0, 8, 16], [8, 4, 8], [60, 64, 67]), 8)
    >>> changes = note_changes(before, after)
    >>> changes.n_same, changes.n_resized, changes.n_inserted, changes.distance
    (1, 1, 1, 1.0)
    """
    if original.voices != edited.voices:
        raise InvalidInputError(f"the original has the voices {original.voices}, the edit {edited.voices}")
    ticks = int(np.lcm(original.ticks_per_quarter, edited.ticks_per_quarter))
    n_voices = max(len(original.voices), 1)
    kinds = np.zeros(6, dtype=np.int64)
    for voice in range(n_voices):
        kinds += _voice_changes(_columns(original, voice, ticks), _columns(edited, voice, ticks), ticks)
    before, after = _cells(original), _cells(edited)
    same, moved, resized, repitched, inserted, deleted = map(int, kinds)
    changed = moved + resized + repitched + inserted + deleted
    return NoteChanges(
        len(original.notes), len(edited.notes), same, moved, resized, repitched, inserted, deleted,
        len(after - before), len(before - after),
        changed / len(original.notes) if len(original.notes) else float("nan"),
    )  # fmt: skip


def _columns(score: Score, voice: int, ticks: int) -> _Notes:
    """Return onset, duration and pitch of the notes of a voice, shape (n, 3)."""
    notes = score.notes[score.notes["voice"] == voice]
    scale = ticks // score.ticks_per_quarter
    columns: _Notes = np.stack(
        [notes["onset_tick"] * scale, notes["duration_tick"] * scale, notes["pitch"]], axis=1
    ).astype(np.int64)
    return columns


def _voice_changes(before: _Notes, after: _Notes, ticks: int) -> npt.NDArray[np.int64]:
    """Count same, moved, resized, repitched, inserted and deleted notes."""
    from scipy.optimize import linear_sum_assignment

    # take out what is in both, as often as it is in both
    distinct, codes = np.unique(np.concatenate([before, after]), axis=0, return_inverse=True)
    codes = codes.reshape(-1)
    counts = [np.bincount(part, minlength=len(distinct)) for part in (codes[: len(before)], codes[len(before) :])]
    shared = np.minimum(*counts)
    before, after = (np.repeat(distinct, count - shared, axis=0) for count in counts)
    # one of three differs; more is a deletion and an insertion
    differs = before[:, None, :] != after[None, :, :]
    quarters = np.abs(before[:, None, 0] - after[None, :, 0]) / ticks
    is_match = (differs.sum(axis=2) == 1) & (quarters <= REACH_QUARTERS)
    n, m = len(before), len(after)
    # rows and columns of their own for notes that go and come, so that nothing has to be matched
    cost = np.full((n + m, n + m), 2.0)
    cost[:n, :m] = np.where(is_match, 1.0 + _FAR * quarters, 3.0)
    cost[n:, m:] = 0.0
    cost[:n, m:] = 1.0
    cost[n:, :m] = 1.0
    rows, columns = linear_sum_assignment(cost)
    matched = (rows < n) & (columns < m)
    kinds = differs[rows[matched], columns[matched]].sum(axis=0)
    n_matched = int(matched.sum())
    return np.array([int(shared.sum()), *kinds.tolist(), m - n_matched, n - n_matched])


def _cells(score: Score) -> set[tuple[int, int]]:
    """Return the cells that sound; a note has at least one."""
    notes = score.notes
    starts = rescale_tick(notes["onset_tick"], score.ticks_per_quarter, CELLS_PER_QUARTER)
    ends = rescale_tick(notes["onset_tick"] + notes["duration_tick"], score.ticks_per_quarter, CELLS_PER_QUARTER)
    return {
        (step, int(pitch))
        for start, end, pitch in zip(starts.tolist(), ends.tolist(), notes["pitch"].tolist(), strict=True)
        for step in range(start, max(end, start + 1))
    }
