"""The notes of the melody, from its fundamental frequency and the onsets in the recording."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from music_evals.annotations import F0Track, Melody
from music_evals.audio.filters import median_filter
from music_evals.audio.io import Audio
from music_evals.audio.melody_net import LOWEST_PITCH, N_PITCHES, melody_activations
from music_evals.audio.spectra import HOP_LENGTH

__all__ = ["notes_from_f0"]

# Chosen by benchmarks/melody_tracker/tune.py, mostly by the Jaccard index of interval patterns.
MEDIAN_SEC = 0.07
MINIMUM_SEC = 0.05
GAP_SEC = 0.08
ATTACK = 0.8

FloatArray = npt.NDArray[np.float64]


def notes_from_f0(
    audio: Audio,
    *,
    f0: F0Track,
    median_sec: float = MEDIAN_SEC,
    minimum_sec: float = MINIMUM_SEC,
    gap_sec: float = GAP_SEC,
    attack: float = ATTACK,
) -> Melody:
    """Return the notes that a track of the fundamental frequency runs through.

    1. Frames are rounded to semitones and smoothed by a running median.
    2. Voiced frames at one pitch in succession are a note; two at one pitch with hardly a gap between them are one.
    3. A note is split where the melody networks find the same pitch struck again.
    4. Notes that are too short are left out.

    Parameters
    ----------
    audio
        The recording of `f0`.
    f0
        At least one frame; unvoiced frames are rests.
    median_sec, minimum_sec, gap_sec
        Length of the running median, of the shortest note, and of the longest gap over which a note goes on.
    attack
        Probability of an onset, 0..1, from which on a note is struck again; above 1 none is.

    Returns
    -------
    Melody
        Whole MIDI pitches; without notes where no frame is voiced.
    """
    hop_sec = float(f0.times_sec[1] - f0.times_sec[0]) if len(f0.times_sec) > 1 else HOP_LENGTH / audio.sample_rate
    pitches = _smooth(f0, median_sec / hop_sec)
    # (first frame, frame after the last, pitch) of every run of one pitch above 0
    edges = np.flatnonzero(np.diff(pitches)) + 1
    bounds = np.concatenate([[0], edges, [len(pitches)]])
    starts, ends = bounds[:-1], bounds[1:]
    # join runs at one pitch with fewer than `gap` frames and no other run between them
    runs = [(int(a), int(b), int(pitches[a])) for a, b in zip(starts, ends, strict=True) if pitches[a] > 0]
    gap = gap_sec / hop_sec
    notes: list[tuple[int, int, int]] = []
    for start, end, pitch in runs:
        if notes and notes[-1][2] == pitch and start - notes[-1][1] < gap:
            notes[-1] = (notes[-1][0], end, pitch)
        else:
            notes.append((start, end, pitch))
    if not notes:
        return Melody(np.zeros((0, 2)), np.zeros(0))
    intervals_sec = np.array([(start, end) for start, end, _ in notes]) * hop_sec
    keys = np.array([pitch for _, _, pitch in notes])
    if attack <= 1:
        intervals_sec, keys = _split(audio, intervals_sec, keys, attack, minimum_sec)
    # half a frame's grace: a note of exactly the shortest length is kept
    is_long = intervals_sec[:, 1] - intervals_sec[:, 0] > minimum_sec - hop_sec / 2
    return Melody(intervals_sec[is_long], keys[is_long].astype(np.float64))


def _smooth(f0: F0Track, n_frames: float) -> npt.NDArray[np.int64]:
    """Return MIDI pitches, 0 where unvoiced, after a running median over about `n_frames`."""
    hertz = np.where(f0.voiced, f0.frequencies_hz, 440.0)
    pitches = np.where(f0.voiced, np.rint(69 + 12 * np.log2(hertz / 440.0)), 0).astype(np.int64)
    size = 2 * round((n_frames - 1) / 2) + 1  # odd
    smoothed: npt.NDArray[np.int64] = median_filter(pitches, size)
    return smoothed


def _split(
    audio: Audio, intervals_sec: FloatArray, keys: npt.NDArray[np.int64], attack: float, minimum_sec: float
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Split notes at the onsets of their own pitch that lie inside of them."""
    onsets = melody_activations(audio).onsets
    hop_sec = HOP_LENGTH / audio.sample_rate
    bounds: list[tuple[float, float]] = []
    pitches: list[int] = []
    for (start, end), key in zip(intervals_sec.tolist(), keys.tolist(), strict=True):
        cuts = [start]
        if 0 <= key - LOWEST_PITCH < N_PITCHES:
            # the frames of local maxima at or above a threshold; of a plateau the first
            values = onsets[key - LOWEST_PITCH]
            before = np.concatenate([[-1.0], values[:-1]])
            after = np.concatenate([values[1:], [-1.0]])
            peaks: list[int] = np.flatnonzero((values >= attack) & (values > before) & (values >= after)).tolist()
            for frame in peaks:
                if frame * hop_sec - cuts[-1] >= minimum_sec and end - frame * hop_sec >= minimum_sec:
                    cuts.append(frame * hop_sec)
        bounds += zip(cuts, [*cuts[1:], end], strict=True)
        pitches += [key] * len(cuts)
    return np.array(bounds), np.array(pitches)
