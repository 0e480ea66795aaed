"""Chroma and sections of a score: the algorithm of the recordings on frames that are counted instead of heard.

Three kinds of rows: the notes that sound in each of twelve pitch classes; those that sound in each of eleven octaves,
in the place of timbre; and those that start, of drums and in three registers.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DRUMS, Chroma, Score, Segments, StructureFrames
from music_evals.audio._filters import pool, standardise
from music_evals.audio.io import SAMPLE_RATE
from music_evals.audio.segments import POOLED_FRAMES, form_of
from music_evals.audio.spectra import HOP_LENGTH
from music_evals.audio.structure import CHROMA_WEIGHT, FRAME_SEC
from music_evals.pipelines._score_notes import PitchedNotes

__all__ = ["HOP_SEC", "frame_of", "score_chroma", "score_segments", "score_structure"]

HOP_SEC: Final = HOP_LENGTH / SAMPLE_RATE  # of chroma and f0: the grid of the recordings, 23.2 ms
N_OCTAVES: Final = 11  # of the MIDI range
REGISTER_STARTS: Final = (48, 72)  # C3 and C5 part low, middle and high notes

FloatArray = npt.NDArray[np.float64]


def frame_of(times_sec: FloatArray, n_frames: int) -> npt.NDArray[np.int64]:
    """Return the first frame of `HOP_SEC` that is not before each time, at most `n_frames`; shape (n,)."""
    return np.minimum(np.ceil(times_sec / HOP_SEC - 1e-9).astype(np.int64), n_frames)


def score_chroma(notes: PitchedNotes, duration_sec: float) -> Chroma:
    """Count the notes of each pitch class that sound at each frame."""
    return Chroma(_sounding(notes, notes.pitches % 12, 12, duration_sec), HOP_SEC)


def score_structure(score: Score, notes: PitchedNotes, duration_sec: float) -> StructureFrames:
    """Return frames four a second, each row of mean 0 and standard deviation 1, pitch classes at half their weight."""
    centres = np.rint(np.arange(int(np.ceil(duration_sec / HOP_SEC))) * HOP_SEC / FRAME_SEC)
    edges = np.append(np.flatnonzero(np.diff(centres, prepend=-1)), len(centres))
    rows = [standardise(pool(block, edges)) for block in _blocks(score, notes, duration_sec)]
    rows[0] *= CHROMA_WEIGHT
    return StructureFrames(np.concatenate(rows).astype(np.float32), FRAME_SEC)


def score_segments(score: Score, notes: PitchedNotes, duration_sec: float) -> Segments:
    """Return the sections that the segmenter of recordings finds."""
    n_frames = int(np.ceil(duration_sec / HOP_SEC))
    edges = np.append(np.arange(0, n_frames - POOLED_FRAMES, POOLED_FRAMES), n_frames)
    blocks = [pool(block, edges) for block in _blocks(score, notes, duration_sec)]
    first = score.notes["onset_tick"].min()
    start_sec = float(score.seconds(first))
    hop_sec = POOLED_FRAMES * HOP_SEC
    return form_of(blocks, hop_sec, start_sec=start_sec, end_sec=duration_sec, duration_sec=duration_sec)


def _blocks(score: Score, notes: PitchedNotes, duration_sec: float) -> list[FloatArray]:
    """Return pitch classes, octaves and onsets, shape (rows, n_frames) each."""
    return [
        np.log1p(_sounding(notes, notes.pitches % 12, 12, duration_sec)),
        np.log1p(_sounding(notes, notes.pitches // 12, N_OCTAVES, duration_sec)),
        _onset_counts(score, notes, duration_sec),
    ]


def _sounding(notes: PitchedNotes, rows: npt.NDArray[np.int64], n_rows: int, duration_sec: float) -> FloatArray:
    """Count the notes of each row that sound at each frame, shape (n_rows, n_frames): a note lasts at least a frame."""
    n_frames = int(np.ceil(duration_sec / HOP_SEC))
    changes = np.zeros((n_rows, n_frames + 1))
    first = np.minimum(frame_of(notes.onsets_sec, n_frames), n_frames - 1)
    np.add.at(changes, (rows, first), 1)
    np.add.at(changes, (rows, np.maximum(frame_of(notes.offsets_sec, n_frames), first + 1)), -1)
    return np.cumsum(changes, axis=1)[:, :n_frames]


def _onset_counts(score: Score, notes: PitchedNotes, duration_sec: float) -> FloatArray:
    """Count the notes that start at each frame: drums, low, middle and high; shape (4, n_frames)."""
    n_frames = int(np.ceil(duration_sec / HOP_SEC))
    drums = score.notes[np.isin(score.notes["voice"], np.flatnonzero(np.array(score.programs) == DRUMS))]
    drums_sec = score.seconds(drums["onset_tick"])
    registers = 1 + np.searchsorted(REGISTER_STARTS, notes.pitches, "right")
    rows = np.concatenate([np.zeros(len(drums), np.int64), registers])
    times_sec = np.concatenate([drums_sec, notes.onsets_sec])
    counts = np.zeros((2 + len(REGISTER_STARTS), n_frames))
    np.add.at(counts, (rows, np.minimum(frame_of(times_sec, n_frames), n_frames - 1)), 1)
    return counts
