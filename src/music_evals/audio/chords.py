"""Chords: a hidden Markov model of the 24 major and minor triads on a chroma that leans to the accompaniment."""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import NO_CHORD, Chords
from music_evals.audio.chroma import accompaniment_chroma
from music_evals.audio.filters import median_filter, viterbi
from music_evals.audio.io import Audio
from music_evals.audio.spectra import HOP_LENGTH, sounding_frames, tuning

__all__ = ["CHORD_LABELS", "log_softmax", "recognise_chords", "states_to_chords"]

_NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
CHORD_LABELS: Final = tuple(f"{name}:{quality}" for quality in ("maj", "min") for name in _NAMES)
"""The 24 triads in Harte syntax, major before minor, each from C up."""

DECIMATION: Final = 2  # frames of the constant-Q transform a frame of the model: 46 ms
MEDIAN_FRAMES: Final = 5
HARMONIC_DECAY: Final = 0.6
HARMONICS: Final = 4
TEMPERATURE: Final = 20.0
STAY: Final = 0.98


def recognise_chords(audio: Audio) -> Chords:
    """Recognise major and minor triads; where nothing sounds the label is `NO_CHORD`.

    Steps: chroma on a logarithmic scale that leans to the accompaniment (`accompaniment_chroma`); median over time;
    cosine with a template of each triad, whose notes bring four harmonics; softmax; Viterbi path. The chords reach from
    0 to the end of the recording; equal neighbours are one chord.
    """
    chroma = median_filter(accompaniment_chroma(audio)[:, ::DECIMATION], MEDIAN_FRAMES)
    # a unit vector for each label, shape (24, 12)
    note = np.zeros(12)
    for harmonic in range(1, HARMONICS + 1):
        note[round(12 * np.log2(harmonic)) % 12] += HARMONIC_DECAY ** (harmonic - 1)
    triads = [np.sum([np.roll(note, step) for step in steps], axis=0) for steps in ((0, 4, 7), (0, 3, 7))]
    rows = np.stack([np.roll(triad, root) for triad in triads for root in range(12)])
    unit: npt.NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    # how well each frame fits each triad, shape (24, n_frames)
    norms = np.linalg.norm(chroma, axis=0)
    cosines: npt.NDArray[np.float64] = unit @ chroma / np.where(norms > 0, norms, 1)
    path = viterbi(log_softmax(TEMPERATURE * cosines), STAY)
    sounds = sounding_frames(audio)[: len(path) * DECIMATION : DECIMATION]
    states = np.where(sounds, path, len(CHORD_LABELS))
    # frame t is centred at t hops: it reaches half a hop to either side
    starts_sec = np.maximum((np.arange(len(states)) - 0.5) * (DECIMATION * HOP_LENGTH / audio.sample_rate), 0)
    inside = starts_sec < audio.duration_sec
    chords = states_to_chords(states[inside], np.append(starts_sec[inside], audio.duration_sec))
    return dataclasses.replace(chords, tuning=tuning(audio))


def log_softmax(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the logarithm of the softmax of each column, the shape of `scores`; these are small numbers."""
    log_probabilities: npt.NDArray[np.float64] = scores - np.log(np.exp(scores).sum(axis=0))
    return log_probabilities


def states_to_chords(states: npt.NDArray[np.intp], edges_sec: npt.NDArray[np.float64]) -> Chords:
    """Return chords from the state of each stretch of time; equal neighbours become one.

    States are indices in `CHORD_LABELS`, or their number for no chord, shape (n,); edges are where the stretches begin,
    and where the last one ends, shape (n + 1,).
    """
    labels = [*CHORD_LABELS, NO_CHORD]
    starts = np.flatnonzero(np.diff(states, prepend=-1))
    edges_sec = np.append(edges_sec[starts], edges_sec[-1])
    return Chords(np.stack([edges_sec[:-1], edges_sec[1:]], axis=1), tuple(labels[state] for state in states[starts]))
