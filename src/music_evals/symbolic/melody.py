"""One line out of several notes at once: the skyline, for models and data sets that take a melody."""

from __future__ import annotations

import dataclasses

import numpy as np

from music_evals.annotations import DRUMS, NoteArray, Score

__all__ = ["skyline", "skyline_score"]


def skyline(notes: NoteArray) -> NoteArray:
    """Return the highest note wherever notes start, each to its end or to the next note of the line.

    The skyline of Uitdenbogerd and Zobel (ACM Multimedia 1999), with one deviation: a note that starts below a sounding
    note of the line does not cut it, so that an accompaniment under a long note is left out.

    Parameters
    ----------
    notes
        Shape (n,), any number of voices.

    Returns
    -------
    NoteArray
        Shape (m,), m <= n, one note at a time, all of voice 0.

    Examples
    --------
    >>> from music_evals.symbolic.notes import make_notes
    >>> chord_and_bass = make_notes([0, 0, 4, 8], [8, 8, 4, 4], [72, 64, 48, 74])
    >>> skyline(chord_and_bass)["pitch"].tolist()
    [72, 74]

    """
    # of notes that start together the highest comes first, and of one pitch the longest
    order = np.lexsort((-notes["duration_tick"], -notes["pitch"].astype(np.int64), notes["onset_tick"]))
    kept: list[int] = []
    ends: list[int] = []
    columns = (notes["onset_tick"], notes["duration_tick"], notes["pitch"])
    for index, onset, duration, pitch in zip(
        order.tolist(), *(column[order].tolist() for column in columns), strict=True
    ):
        if kept and onset < ends[-1]:
            last = notes[kept[-1]]
            if onset == last["onset_tick"] or pitch < last["pitch"]:
                continue
            ends[-1] = onset
        kept.append(index)
        ends.append(onset + duration)
    line = notes[kept].copy()
    line["duration_tick"] = np.array(ends, dtype=np.int64) - line["onset_tick"]
    line["voice"] = 0
    return line


def skyline_score(score: Score) -> Score:
    """Return a score of one voice, the skyline of all voices but drums; meter, tempo and key stay."""
    drums = np.flatnonzero(np.array(score.programs) == DRUMS) if score.programs else np.empty(0, dtype=np.int64)
    pitched = score.notes[~np.isin(score.notes["voice"], drums)]
    return dataclasses.replace(score, notes=skyline(pitched), voices=("skyline",), programs=())
