"""One melody out of several voices, for models and data sets that take one note at a time."""

from __future__ import annotations

import dataclasses

import numpy as np

from music_evals.annotations import DRUMS, NoteArray, Score

__all__ = ["LEGATO_QUARTERS", "skyline", "skyline_score", "without_drums"]

LEGATO_QUARTERS = 1 / 6
"""Notes that sound on for less than this into the next, a step of a context, are played legato and count as over."""


def skyline(notes: NoteArray, *, overlap: float = 0) -> NoteArray:
    """Return the highest notes: of all that sound together the highest, as a melody of one note at a time.

    Of notes that start together the highest stays. A note that starts while a higher one sounds is left out, and one
    that is overtaken by a higher one ends there. This is how Uitdenbogerd and Zobel ("Manipulation of music for melody
    matching", ACM Multimedia 1998) extract a melody, the most reliable way of those they compared. It loses melodies
    that lie below their accompaniment.

    Parameters
    ----------
    notes
        Any notes, sorted by onset, shape (n,).
    overlap
        Ticks; a note that sounds on for fewer than these counts as over, so that played legato loses no note.

    Returns
    -------
    NoteArray
        Shape (m,), m <= n, sorted by onset; no two sound at once, all of voice 0.

    Examples
    --------
    A chord of two notes, under whose end a lower note starts:

    >>> from music_evals.symbolic.notes import make_notes
    >>> skyline(make_notes([0, 0, 360, 480], [480, 480, 240, 480], [60, 67, 55, 64]))["pitch"].tolist()
    [67, 64]

    """
    ends = notes["onset_tick"] + notes["duration_tick"]
    highest: list[int] = []
    # of notes that start together the highest comes first, and of one pitch the longest
    order = np.lexsort((-notes["duration_tick"], -notes["pitch"].astype(np.int64), notes["onset_tick"]))
    for index in order.tolist():
        onset = notes["onset_tick"][index]
        if highest and ends[highest[-1]] > onset:
            before = highest[-1]
            over = notes["pitch"][index] > notes["pitch"][before] or ends[before] - onset < overlap
            if notes["onset_tick"][before] == onset or not over:
                continue
            ends[before] = onset
        highest.append(index)
    line: NoteArray = notes[highest].copy()
    line["duration_tick"] = ends[highest] - line["onset_tick"]
    line["voice"] = 0
    return line


def without_drums(score: Score) -> Score:
    """Return a score without the notes of drums, whose pitches are no melody; the voices keep their indices."""
    drums = np.flatnonzero(np.array(score.programs, dtype=np.int64) == DRUMS)
    return dataclasses.replace(score, notes=score.notes[~np.isin(score.notes["voice"], drums)])


def skyline_score(score: Score) -> Score:
    """Return a score of one voice, the skyline of all voices but drums; meter, tempo and key stay."""
    line = skyline(without_drums(score).notes, overlap=score.ticks_per_quarter * LEGATO_QUARTERS)
    return dataclasses.replace(score, notes=line, voices=("skyline",), programs=())
