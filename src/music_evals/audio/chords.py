"""Chords: a hidden Markov model of the 24 major and minor triads on a chroma that leans to the accompaniment."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Chords
from music_evals.audio._filters import median_filter, viterbi
from music_evals.audio.chroma import accompaniment_chroma
from music_evals.audio.io import Audio
from music_evals.audio.spectra import HOP_LENGTH, frame_levels

__all__ = ["CHORD_LABELS", "recognise_chords"]

_NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
CHORD_LABELS: Final = tuple(f"{name}:{quality}" for quality in ("maj", "min") for name in _NAMES)

DECIMATION: Final = 2  # frames of the constant-Q transform a frame of the model: 46 ms
MEDIAN_FRAMES: Final = 5
HARMONIC_DECAY: Final = 0.6
HARMONICS: Final = 4
TEMPERATURE: Final = 20.0
STAY: Final = 0.98
SILENCE: Final = 1e-3  # -60 dB below the loudest frame


def recognise_chords(audio: Audio) -> Chords:
    """Recognise major and minor triads; where nothing sounds the label is ``"N"``.

    Steps: chroma on a logarithmic scale that leans to the accompaniment (`accompaniment_chroma`); median over time;
    cosine with a template of each triad, whose notes bring four harmonics; softmax; Viterbi path.

    Parameters
    ----------
    audio
        The recording.

    Returns
    -------
    Chords
        From 0 to the end of the recording; equal neighbours are one chord.

    """
    chroma = median_filter(accompaniment_chroma(audio)[:, ::DECIMATION], MEDIAN_FRAMES)
    path = viterbi(_log_likelihood(chroma), STAY)
    levels = frame_levels(audio)
    sounds = (levels > SILENCE * levels.max())[: len(path) * DECIMATION : DECIMATION]
    states = np.where(sounds, path, len(CHORD_LABELS))
    return _merge(states, DECIMATION * HOP_LENGTH / audio.sample_rate, audio.duration_sec)


def _templates() -> npt.NDArray[np.float64]:
    """Return a unit vector for each label, shape (24, 12)."""
    note = np.zeros(12)
    for harmonic in range(1, HARMONICS + 1):
        note[round(12 * np.log2(harmonic)) % 12] += HARMONIC_DECAY ** (harmonic - 1)
    triads = [np.sum([np.roll(note, step) for step in steps], axis=0) for steps in ((0, 4, 7), (0, 3, 7))]
    rows = np.stack([np.roll(triad, root) for triad in triads for root in range(12)])
    unit: npt.NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _log_likelihood(chroma: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    norms = np.linalg.norm(chroma, axis=0)
    cosine = _templates() @ chroma / np.where(norms > 0, norms, 1)
    scores = TEMPERATURE * cosine
    likelihood: npt.NDArray[np.float64] = scores - np.log(np.exp(scores).sum(axis=0))
    return likelihood


def _merge(states: npt.NDArray[np.intp], hop_sec: float, duration_sec: float) -> Chords:
    labels = [*CHORD_LABELS, "N"]
    starts = np.flatnonzero(np.diff(states, prepend=-1))
    # frame t is centred at t hop_sec: it reaches half a frame to either side
    times = np.maximum((starts - 0.5) * hop_sec, 0)
    starts, times = starts[times < duration_sec], times[times < duration_sec]
    intervals_sec = np.stack([times, np.append(times[1:], duration_sec)], axis=1)
    return Chords(intervals_sec, tuple(labels[state] for state in states[starts]))
