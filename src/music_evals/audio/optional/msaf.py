"""Backend of MSAF (MIT): the segments of the official code, in a process of their own.

MSAF 0.1.80 keeps the features of a recording in a file in its working folder and takes them for any other recording of
that name and length. Here every recording has a folder of its own.
"""

from __future__ import annotations

import itertools

import numpy as np

from music_evals.annotations import Segments
from music_evals.audio.chroma import compute_chroma_official
from music_evals.audio.io import Audio
from music_evals.audio.optional.process import run_worker
from music_evals.audio.spectra import HOP_LENGTH


def segment_sf(audio: Audio) -> Segments:
    """Return the segments by MSAF's structural features ("sf") without a labeller: every label is "-1".

    So the adjusted Rand index says nothing of them.

    Boundaries outside the recording are left out; 0 and the end are added, as the official code does.
    """
    rows = run_worker("msaf", "sf", audio)
    inner = [time for time in sorted(set(rows)) if 0 < time < audio.duration_sec]
    bounds = np.array([0.0, *inner, audio.duration_sec])
    return Segments(np.stack([bounds[:-1], bounds[1:]], axis=1), ("-1",) * (len(bounds) - 1))


def segment_sf_labelled(audio: Audio) -> Segments:
    """Return the segments of musecpeval 0.3.0: labels by "scluster", by pitch classes where that finds one alone."""
    times, labels = run_worker("msaf", "sf scluster", audio)
    inner = [time for time in sorted(set(times)) if 0 < time < audio.duration_sec - 1e-3]
    bounds = np.array([0.0, *inner, audio.duration_sec])
    n = len(bounds) - 1
    if len(set(labels)) < 2:
        chroma = compute_chroma_official(audio)
        frames = (bounds * audio.sample_rate / HOP_LENGTH).astype(int)
        parts = [chroma.frames[:, first:last] for first, last in itertools.pairwise(frames)]
        labels = [str(part.mean(axis=1).argmax() if part.size else 0) for part in parts]
    return Segments(np.stack([bounds[:-1], bounds[1:]], axis=1), tuple([*labels, *labels[-1:] * n][:n]))
