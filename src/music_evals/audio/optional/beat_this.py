"""Backend of beat_this (MIT): beats by a transformer. It runs on PyTorch, which it brings along."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from music_evals.annotations import Beats
from music_evals.audio.beats import fit_tempo
from music_evals.audio.io import Audio
from music_evals.errors import MissingBackendError

CHECKPOINT_VARIABLE = "MUSIC_EVALS_BEAT_THIS_CHECKPOINT"
INSTALL = (
    f"pip install beat-this, and let {CHECKPOINT_VARIABLE} name the checkpoint (final0.ckpt) that you have fetched"
)


def track_beats(audio: Audio) -> Beats:
    """Return the beats by Beat This! (Foscarin et al., ISMIR 2024), with the tempo fitted to them.

    Its weights are not in its package and are not fetched here: ``MUSIC_EVALS_BEAT_THIS_CHECKPOINT`` names the file. It
    is a pickle, which beat_this reads with weights only.
    """
    checkpoint = find_checkpoint()
    from beat_this.inference import Audio2Beats

    times, _ = Audio2Beats(checkpoint_path=str(checkpoint), device="cpu", dbn=False)(audio.samples, audio.sample_rate)
    times = np.asarray(times, dtype=np.float64)
    return Beats(times, fit_tempo(times))


def find_checkpoint() -> Path:
    """Return the file of weights that ``MUSIC_EVALS_BEAT_THIS_CHECKPOINT`` names."""
    checkpoint = Path(os.environ.get(CHECKPOINT_VARIABLE, ""))
    if not checkpoint.is_file():
        raise MissingBackendError("beat-this", "", "the beats backend 'beat_this'", install=INSTALL)
    return checkpoint
