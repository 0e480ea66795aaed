"""Backends of madmom: chords and beats, in a process of their own.

madmom's code is BSD, its weights are CC BY-NC-SA 4.0: not for commercial use. It expects names that Python and numpy
have removed; they are given back in that process alone.
"""

from __future__ import annotations

import numpy as np

from music_evals.annotations import Beats, Chords
from music_evals.audio.beats import fit_tempo
from music_evals.audio.decoding import ffmpeg_version
from music_evals.audio.io import Audio
from music_evals.audio.optional.process import run_worker
from music_evals.errors import MissingBackendError

SAMPLE_RATE = 44100  # Hz; of madmom's networks


def recognise_chords(audio: Audio) -> Chords:
    """Return the chords by madmom's CNN features and CRF: 24 major and minor chords and no chord.

    madmom is given the recording at its own rate, as a WAV file of 16 bits where these hold it and of floats else, and
    resamples it to 44.1 kHz itself, by ffmpeg and to 16 bits: as it does for the official code, and for a mono file of
    16 bits to the bit. Another resampler moves chords by a frame of 0.1 s.
    """
    own = audio if audio.source_rate is None else audio.at_rate(audio.source_rate)
    if own.sample_rate != SAMPLE_RATE and not ffmpeg_version():
        install = "the packages of your system, such as apt install ffmpeg"
        raise MissingBackendError("ffmpeg", "", "resampling in the chords backend 'madmom_crf'", install=install)
    rows = run_worker("madmom", "chords", own, wav=True)
    intervals = np.array([row[:2] for row in rows], dtype=np.float64).reshape(-1, 2)
    intervals[1:, 0] = intervals[:-1, 1]  # a change is written twice, and rounded twice
    return Chords(intervals, tuple(row[2] for row in rows))


def track_beats(audio: Audio) -> Beats:
    """Return the beats by madmom's recurrent network and dynamic Bayesian network, with the tempo fitted to them."""
    rows = run_worker("madmom", "beats", audio)
    times = np.array(rows, dtype=np.float64)
    return Beats(times, fit_tempo(times))
