"""The melody of a score: the voice that says so, else the upper line of all voices that have a pitch.

The upper line (skyline) is that of Uitdenbogerd and Zobel (ACM Multimedia 1999): where notes start, the highest of them
goes on the line, to its end or to the next note of the line. Two deviations, for lines over an accompaniment: a note
that starts below a sounding note of the line does not cut it, and a note that lies more than a fifth below the middle
of the line around it is accompaniment in a rest of the melody, and left out.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DRUMS, Melody, Score
from music_evals.pipelines._score_notes import PitchedNotes

__all__ = ["melody_voice", "score_melody"]

# A voice that says it carries the melody, the surest name first: "MELODY (flute)", "Lead vocals", "Singstimme".
# Words, in any case; not a melodica, melodic toms, a leader, tuned percussion or singing bowls.
_NAMES: Final = (
    r"melod(?!ica|ic tom)",
    r"lead(?!er|ing)",
    r"vocal",
    r"vox(?![a-z])",
    r"soprano",
    r"tunes?(?![a-z])",
    r"solo",
    r"sing(?:ers?|ing(?! bowl)|stimmen?)?(?![a-z])",
)

# Chosen on the tuning half of `known_edits`: from 5 to 12 semitones and 4 s to the whole piece the best.
FAR_BELOW_SEMITONES: Final = 7
AROUND_SEC: Final = 4.0

FloatArray = npt.NDArray[np.float64]


def melody_voice(score: Score) -> int | None:
    """Return the voice whose name says that it is the melody, None where none does."""
    # Names with a word that starts with "melod", "lead", "vocal", "soprano" or "solo", or that is "vox", "tune" or
    # "sing", with the forms of the last two, in the order of `_NAMES`; then the first voice. Voices of drums and voices
    # without notes do not count.
    drums = set(np.flatnonzero(np.array(score.programs) == DRUMS).tolist())
    sounding = [index for index in np.unique(score.notes["voice"]).tolist() if index not in drums]
    for name in _NAMES:
        for index in sounding:
            if re.search(rf"(?<![a-z]){name}", score.voices[index], re.IGNORECASE):
                return int(index)
    return None


def score_melody(score: Score, notes: PitchedNotes) -> Melody:
    """Return the notes of the melody, one after the other."""
    voice = melody_voice(score)
    if voice is not None:
        return _upper_line(notes.only(voice))
    line = _upper_line(notes)
    if len(line.pitches) == len(notes.pitches):
        return line  # one voice alone: nothing can be its accompaniment
    kept = _near_the_middle(line)
    return Melody(line.intervals_sec[kept], line.pitches[kept])


def _upper_line(notes: PitchedNotes) -> Melody:
    # of those that start together the highest comes first, and of the same pitch the longest
    order = np.lexsort((-notes.offsets_sec, -notes.pitches, notes.onsets_sec))
    line: list[list[float]] = []
    columns = (notes.onsets_sec[order], notes.offsets_sec[order], notes.pitches[order])
    for onset, offset, pitch in zip(*(column.tolist() for column in columns), strict=True):
        if line and onset < line[-1][1]:
            if onset == line[-1][0] or pitch < line[-1][2]:
                continue
            line[-1][1] = onset
        line.append([onset, offset, pitch])
    rows = np.array(line, dtype=np.float64).reshape(-1, 3)
    return Melody(rows[:, :2], rows[:, 2])


def _near_the_middle(line: Melody) -> npt.NDArray[np.bool_]:
    """Tell which notes are not far below the median pitch, by duration, of the notes around them; shape (n,)."""
    onsets = line.intervals_sec[:, 0]
    durations = np.diff(line.intervals_sec, axis=1)[:, 0]
    starts = np.searchsorted(onsets, onsets - AROUND_SEC, side="left")
    stops = np.searchsorted(onsets, onsets + AROUND_SEC, side="right")
    middles = [
        _median(line.pitches[start:stop], durations[start:stop]) for start, stop in zip(starts, stops, strict=True)
    ]
    kept: npt.NDArray[np.bool_] = line.pitches >= np.array(middles) - FAR_BELOW_SEMITONES
    return kept


def _median(values: FloatArray, weights: FloatArray) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])
