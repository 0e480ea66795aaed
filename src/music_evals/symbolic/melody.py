"""One melody out of several voices, for models and data sets that take one note at a time."""

from __future__ import annotations

import dataclasses
from typing import Final, NamedTuple

import numpy as np

from music_evals.annotations import DRUMS, Key, NoteArray, Score
from music_evals.errors import InvalidInputError, NoDataError

__all__ = ["LEGATO_QUARTERS", "Triad", "harmonise", "skyline", "skyline_score", "without_drums"]

LEGATO_QUARTERS = 1 / 6
"""Notes that sound on for less than this into the next, a step of a context, are played legato and count as over."""


def skyline(notes: NoteArray, *, overlap: float = 0) -> NoteArray:
    """Return the highest notes: of all that sound together the highest, as a melody of one note at a time.

    Of notes that start together the highest stays. A note that starts while a higher one sounds is left out, and one
    that is overtaken by a higher one ends there. This is how Uitdenbogerd and Zobel ("Manipulation of music for melody
    matching", ACM Multimedia 1998) extract a melody, the most reliable way of those they compared. It loses melodies
    that lie below their accompaniment.

    Notes are sorted by onset, shape (n,); a note that sounds on for fewer than `overlap` ticks counts as over, so that
    played legato loses no note. The line has shape (m,), m <= n; no two of its notes sound at once, all are of voice 0.

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


class Triad(NamedTuple):
    """A triad in root position."""

    root: int  # pitch class, 0 = C .. 11 = B
    tones: tuple[int, int, int]  # semitones above the root


# Degree above the tonic, tones above it, and how welcome it is; the minor dominant has its leading note.
_MAJOR, _MINOR, _DIMINISHED = (0, 4, 7), (0, 3, 7), (0, 3, 6)
_TRIADS: Final = {
    "major": ((0, _MAJOR, 3), (5, _MAJOR, 2), (7, _MAJOR, 2), (9, _MINOR, 0), (2, _MINOR, 0), (4, _MINOR, -2)),
    "minor": ((0, _MINOR, 3), (5, _MINOR, 2), (7, _MAJOR, 2), (8, _MAJOR, 0), (3, _MAJOR, 0), (2, _DIMINISHED, -1)),
}
INSIDE, OUTSIDE = 4, -8  # for a quarter of a window's melody, in the chord or not
ON_THE_ROOT = 1  # a window that begins on the root of its chord
STAYS, FROM_DOMINANT_TO_FOURTH = 1, -4
TONIC_AT_THE_ENDS = 12
DOMINANT_BEFORE_THE_LAST = 3


def harmonise(melody: NoteArray, key: Key, window_ticks: int) -> tuple[Triad, ...]:
    """Return a triad for each window of a melody: the row that fits its notes, begins and ends on the tonic.

    Each note counts for the time that it sounds, the first of a window twice. Tonic, fourth and fifth degree are
    preferred, the fourth does not follow the fifth willingly, and the fifth stands before the last tonic where the
    melody allows.

    Parameters
    ----------
    melody
        Notes of one voice, shape (n,); at least one, else it is a `NoDataError`.
    key
        Tonic and mode; a minor key has its major dominant. Other modes are an `InvalidInputError`.
    window_ticks
        Length of a chord in ticks, 1 or more: a beat or half a bar.

    Returns
    -------
    tuple of Triad
        One for each window from tick 0 to the end of the melody.
    """
    if not len(melody):
        raise NoDataError("the melody has no notes; there is nothing to harmonise")
    if key.mode not in _TRIADS or window_ticks < 1:
        raise InvalidInputError(
            f"a melody in {key.mode} with windows of {window_ticks} ticks cannot be harmonised; the mode must be major "
            "or minor and the window 1 tick or more"
        )
    options = _TRIADS[key.mode]
    fit = _fit(melody, key, window_ticks)
    fit[[0, -1], 0] += TONIC_AT_THE_ENDS
    if len(fit) > 1:
        fit[-2, 2] += DOMINANT_BEFORE_THE_LAST
    change = STAYS * np.eye(len(options), dtype=np.int64)
    change[2, 1] = FROM_DOMINANT_TO_FOURTH
    # Viterbi: the best score of a row that ends on each triad, and where it came from
    best, came = fit[0], []
    for scores in fit[1:]:
        ways = best[:, None] + change
        came.append(ways.argmax(axis=0))
        best = ways.max(axis=0) + scores
    path = [int(best.argmax())]
    for sources in reversed(came):
        path.append(int(sources[path[-1]]))
    return tuple(Triad((key.tonic + options[index][0]) % 12, options[index][1]) for index in reversed(path))


def _fit(melody: NoteArray, key: Key, window: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return how well each triad fits each window, shape (n_windows, n_triads), whole numbers."""
    onsets = melody["onset_tick"].astype(np.int64)
    ends = onsets + melody["duration_tick"]
    options = _TRIADS[key.mode]
    fit = np.tile([welcome for _, _, welcome in options], (-(-int(ends.max()) // window), 1)).astype(np.int64)
    for index, scores in enumerate(fit):
        start = index * window
        for onset, end, pitch in zip(onsets, ends, melody["pitch"].astype(np.int64), strict=True):
            shared = min(int(end), start + window) - max(int(onset), start)
            if shared <= 0:
                continue
            quarters = 4 * shared * (2 if onset <= start else 1) // window
            for place, (degree, tones, _) in enumerate(options):
                above = (int(pitch) - key.tonic - degree) % 12
                scores[place] += quarters * (INSIDE if above in tones else OUTSIDE)
                scores[place] += ON_THE_ROOT if above == 0 and onset <= start else 0
    return fit
