"""Chords and beats of a source, for editing systems that take them as input (MusiConGen).

They are extracted by other means than those of the metrics: a system that gets the chords and beats of the metrics
would be scored on its input. Beats are librosa's, where the metrics' come from a network; the chord of a beat is the
triad that its chroma is nearest to, where the metrics' come from a hidden Markov model; the two share the chroma.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Chords, EditConditions
from music_evals.audio.chroma import accompaniment_chroma
from music_evals.audio.extraction import extract
from music_evals.audio.io import Audio
from music_evals.audio.spectra import HOP_LENGTH
from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidAudioError, InvalidInputError

__all__ = ["BEATS_BACKEND", "CHORD_LABELS", "extract_conditions"]

BEATS_BACKEND: Final = "librosa"
"""Backend of `audio.extraction` of the beats; that of the metrics is another one."""

_ROOTS: Final = ("C", "Db", "D", "Eb", "E", "F", "Gb", "G", "Ab", "A", "Bb", "B")
_TRIADS: Final = {"maj": (0, 4, 7), "min": (0, 3, 7)}
CHORD_LABELS: Final = tuple(f"{root}:{kind}" for kind in _TRIADS for root in _ROOTS)
"""What the chord of a beat may be, in Harte syntax, or ``"N"`` where nothing sounds."""


def extract_conditions(audio: Audio, *, beats_per_bar: int = 4) -> EditConditions:
    """Return chords, beats and downbeats of a recording.

    Parameters
    ----------
    audio
        At least 2 s long.
    beats_per_bar
        Of the bars that are counted; the first downbeat is that of the first `beats_per_bar` beats from which on chords
        change most often.

    Returns
    -------
    EditConditions
        Chords cover the recording from 0 to its end; they change on beats only.

    Raises
    ------
    InvalidAudioError
        No beats are found: silence, or less than 2 s.
    InvalidInputError
        Bars of less than one beat.
    MissingBackendError
        librosa is not installed.
    """
    if beats_per_bar < 1:
        raise InvalidInputError(f"a bar has at least one beat, got {beats_per_bar}")
    features = extract(audio, features=["beats"], backends={"beats": BEATS_BACKEND})
    beats = features.beats
    if beats is None or not len(beats.times_sec):
        why = features.undefined.get("beats", "none found")
        raise InvalidAudioError(f"no beats, which the editing system needs ({why}); leave this source out")
    chroma = accompaniment_chroma(audio)  # (12, n_frames)
    inside = beats.times_sec[(beats.times_sec > 0) & (beats.times_sec < audio.duration_sec)]
    edges = np.array([0.0, *inside, audio.duration_sec])
    frames = np.clip(np.round(edges * audio.sample_rate / HOP_LENGTH).astype(int), 0, chroma.shape[1])
    labels = [_nearest_triad(chroma[:, a:b]) for a, b in itertools.pairwise(frames)]
    # a chord goes on until another one sounds
    starts = [0, *(n for n in range(1, len(labels)) if labels[n] != labels[n - 1])]
    times = [*edges[starts], audio.duration_sec]
    chords = Chords(np.array([times[:-1], times[1:]]).T, tuple(labels[n] for n in starts))
    # the first downbeat is that of the beats from which on chords change most often
    changes = np.isin(beats.times_sec, chords.intervals_sec[1:, 0])
    phases = range(min(beats_per_bar, len(changes)))
    counts = [np.count_nonzero(changes[phase::beats_per_bar]) for phase in phases]
    return EditConditions(chords, beats, beats.times_sec[int(np.argmax(counts)) :: beats_per_bar])


def _nearest_triad(chroma: npt.NDArray[np.floating]) -> str:
    """Return the label of the triad whose pitch classes stand out most from the others."""
    mean = chroma.mean(axis=1) if chroma.shape[1] else np.zeros(12)
    if not mean.any():
        return "N"
    centred = mean - mean.mean()
    strengths = [np.roll(centred, -root)[list(steps)].sum() for steps in _TRIADS.values() for root in range(12)]
    return CHORD_LABELS[int(np.argmax(strengths))]


if not TYPE_CHECKING:
    __getattr__ = module_getattr(__name__, {"hear_conditions": "extract_conditions"})
