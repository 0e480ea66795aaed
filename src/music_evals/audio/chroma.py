"""Chroma: how strongly each of the twelve pitch classes sounds, frame by frame."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Chroma
from music_evals.audio.filters import bin_pitches, fold_matrix
from music_evals.audio.io import Audio
from music_evals.audio.spectra import HOP_LENGTH, constant_q, opening, shared, sounding_frames, tuning
from music_evals.compiling import compiled_by_numba

__all__ = ["accompaniment_chroma", "compute_chroma", "compute_chroma_official", "compute_contour", "smoothed_chroma"]

COMPRESSION: Final = 100.0
LOUD_PERCENTILE: Final = 99.5
CENTRE_MIDI: Final = 60.0  # middle C: between bass and melody
WIDTH_SEMITONES: Final = 15.0
SMOOTHED_FRAMES: Final = 9  # this and the next of musecpeval 0.3.0
CONTOUR_HOP: Final = 1600  # samples; 0.1 s at 16 kHz


def compute_chroma(audio: Audio) -> Chroma:
    """Fold the constant-Q spectrogram into pitch classes, around the recording's own tuning.

    Its shape is (12, n_frames), 512 samples a frame; the strongest pitch class of a frame is 1, and a silent frame
    (60 dB below the loudest) all 0.
    """
    above = tuning(audio)
    chroma = fold_matrix(above) @ constant_q(audio)
    strongest = chroma.max(axis=0)
    sounds = sounding_frames(audio) & (strongest > 0)
    scale = np.where(sounds, 1 / np.where(sounds, strongest, 1), 0)
    return Chroma((chroma * scale).astype(np.float32), HOP_LENGTH / audio.sample_rate, above)


@shared
def accompaniment_chroma(audio: Audio) -> npt.NDArray[np.float32]:
    """Return the chroma that key and chords are read from, shape (12, n_frames), >= 0, on the frames of `constant_q`.

    Magnitudes on a logarithmic scale, so that soft notes of a chord count almost as the loud ones; a bell over pitch
    that leans to the middle of the range; folded into pitch classes around the recording's own tuning.
    """
    magnitudes = constant_q(audio)
    # every other frame is enough to know what is loud in the music, however much silence is around it
    sounding = magnitudes[:, ::2][:, sounding_frames(audio)[::2]]
    loud = float(np.percentile(sounding, LOUD_PERCENTILE)) if sounding.size else 0.0
    loud = max(loud, float(np.finfo(np.float32).tiny))
    bell = np.exp(-0.5 * ((bin_pitches() - CENTRE_MIDI) / WIDTH_SEMITONES) ** 2)
    chroma: npt.NDArray[np.float32] = fold_matrix(tuning(audio), bell) @ np.log1p(COMPRESSION * (magnitudes / loud))
    return chroma


@compiled_by_numba
def compute_chroma_official(audio: Audio) -> Chroma:
    """Return the chroma of the official code of MuseCPBench: librosa's `chroma_cqt` with a hop of 512 samples.

    Frames are scaled to a maximum of 1; a silent one is all 0.
    """
    import librosa

    chroma = librosa.feature.chroma_cqt(y=audio.samples, sr=audio.sample_rate, hop_length=HOP_LENGTH)
    return Chroma(np.asarray(chroma, np.float32), HOP_LENGTH / audio.sample_rate)


@shared
def smoothed_chroma(audio: Audio) -> Chroma:
    """Return the chroma of musecpeval 0.3.0: the official one, each pitch class a moving mean over 9 frames."""
    official = compute_chroma_official(audio)
    kernel = np.ones(SMOOTHED_FRAMES) / SMOOTHED_FRAMES
    return Chroma(np.stack([np.convolve(row, kernel, "same") for row in official.frames]), official.hop_sec)


@compiled_by_numba
def compute_contour(audio: Audio) -> Chroma:
    """Return the chroma that musecpeval 0.3.0 reads melodies off: of the first minute at 16 kHz, frames of length 1."""
    import librosa

    chroma = librosa.feature.chroma_cqt(y=opening(audio), sr=audio.sample_rate, hop_length=CONTOUR_HOP, norm=2)
    return Chroma(chroma, CONTOUR_HOP / audio.sample_rate)
