"""Key and chords of a score.

Chords: for every beat the written durations of the pitch classes are compared (cosine) with the 24 major and minor
triads. The triad whose root is the lowest note of the beat gets a bonus, because a bass names the chord more surely
than a passing note above it; a Viterbi path through the beats prefers to stay. A beat without a note has none.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Chords, Key, Score
from music_evals.audio._filters import viterbi
from music_evals.audio.chords import CHORD_LABELS, log_softmax, states_to_chords
from music_evals.audio.key import key_correlations
from music_evals.numerics import one_thread
from music_evals.pipelines._score_notes import PitchedNotes, beat_ticks

__all__ = ["score_chords", "score_key"]

TEMPERATURE: Final = 15.0  # of the softmax over triads
BASS_BONUS: Final = 0.15  # of a cosine, for the triad whose root is the lowest note
STAY: Final = 0.2  # probability that a chord lasts for another beat; the other 23 share the rest


def score_key(notes: PitchedNotes) -> Key | None:
    """Return the key whose Aarden-Essen profile fits the durations of the pitch classes best, None if all fit alike."""
    # There is no noise in notes, and so no threshold as for recordings.
    weights = np.zeros(12)
    np.add.at(weights, notes.pitches % 12, notes.offset_ticks - notes.onset_ticks)
    correlations = key_correlations(weights)
    mode, tonic = np.unravel_index(int(correlations.argmax()), correlations.shape)
    if not correlations.any():
        return None
    return Key(int(tonic), ("major", "minor")[mode])


def score_chords(score: Score, notes: PitchedNotes) -> Chords:
    """Return the chords from 0 to the end of the last note; neighbours that are alike are one."""
    ticks = np.unique(np.concatenate([[0.0], beat_ticks(score), [float(score.end_tick)]]))
    weights, basses = _beat_contents(notes, ticks)
    scores = TEMPERATURE * (_triad_cosines(weights) + BASS_BONUS * np.concatenate([basses, basses]))
    path = viterbi(log_softmax(scores), STAY)
    states = np.where(weights.any(axis=0), path, len(CHORD_LABELS))
    return states_to_chords(states, score.seconds(ticks))


def _beat_contents(
    notes: PitchedNotes, ticks: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the share of each beat that a pitch class sounds, and 1 where it is the bass: shape (12, n_beats) each."""
    # The bass of a beat is its lowest note, whenever it sounds in it.
    n_beats = len(ticks) - 1
    first = np.searchsorted(ticks, notes.onset_ticks, side="right") - 1
    last = np.searchsorted(ticks, notes.offset_ticks, side="left") - 1
    classes = notes.pitches % 12
    # the first beat in part, the last in part, those between as a whole
    changes, parts = np.zeros((12, n_beats + 1)), np.zeros((12, n_beats))
    np.add.at(changes, (classes, np.minimum(first + 1, last)), 1)
    np.add.at(changes, (classes, last), -1)
    np.add.at(parts, (classes, first), np.minimum(notes.offset_ticks, ticks[first + 1]) - notes.onset_ticks)
    longer = last > first
    np.add.at(parts, (classes[longer], last[longer]), notes.offset_ticks[longer] - ticks[last[longer]])
    weights = np.cumsum(changes, axis=1)[:, :-1] + parts / np.diff(ticks)
    basses = np.zeros((12, n_beats))
    taken = np.zeros(n_beats, dtype=bool)
    for pitch in np.unique(notes.pitches):
        here = notes.pitches == pitch
        steps = np.zeros(n_beats + 1)
        np.add.at(steps, first[here], 1)
        np.add.at(steps, last[here] + 1, -1)
        sounds = np.cumsum(steps)[:-1] > 0
        basses[pitch % 12, sounds & ~taken] = 1
        taken |= sounds
    return weights, basses


@one_thread()
def _triad_cosines(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return how well each beat fits each triad, shape (24, n_beats), in the order of `CHORD_LABELS`."""
    triads = [np.isin(np.arange(12), steps).astype(float) for steps in ((0, 4, 7), (0, 3, 7))]
    templates = np.stack([np.roll(triad, root) for triad in triads for root in range(12)]) / np.sqrt(3)
    norms = np.linalg.norm(weights, axis=0)
    cosines: npt.NDArray[np.float64] = templates @ (weights / np.where(norms > 0, norms, 1))
    return cosines
