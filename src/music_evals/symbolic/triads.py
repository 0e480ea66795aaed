"""Triads for a melody: a Viterbi search among the diatonic triads of its key."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from music_evals.annotations import Key, NoteArray
from music_evals.errors import InvalidInputError, NoDataError

__all__ = ["Triad", "harmonise"]


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
        Notes of one voice, shape (n,).
    key
        Tonic and mode; a minor key has its major dominant.
    window_ticks
        Length of a chord in ticks, 1 or more: a beat or half a bar.

    Returns
    -------
    tuple of Triad
        One for each window from tick 0 to the end of the melody.

    Raises
    ------
    NoDataError
        The melody has no notes.
    InvalidInputError
        A mode other than major and minor, or a window that is not positive.

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
