"""MusicGen with a melody (Copet et al., 2023, section 2.3): a description, and the strongest pitch class over time.

Deviations from the authors' code: no stems are separated first, so that the pitch class is that of the whole mixture.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import EditRequest
from music_evals.editing.alignment import first_channel
from music_evals.editing.musicgen import MusicGen

__all__ = ["MusicGenMelody", "strongest_pitch_class"]

SYSTEMS = {"musicgen_melody": "MusicGenMelody"}

WEIGHTS: Final = "facebook/musicgen-melody"
N_FFT: Final = 16384  # of the authors' code, at 32 kHz
HOP: Final = 4096


class MusicGenMelody(MusicGen):
    """Makes music for a description along the melody of the source; parameters are those of `MusicGen`."""

    _name, _title, _where = "musicgen_melody", "MusicGen, with the melody of the source", WEIGHTS
    _kind = "MusicgenMelodyForConditionalGeneration"

    def _conditions(self, request: EditRequest) -> dict[str, Any]:
        import torch

        model, rate = self._model.model, self._model.sample_rate
        chroma = strongest_pitch_class(first_channel(request, rate), rate, model.config.num_chroma)
        return {"input_features": torch.from_numpy(chroma)[None].to(model.device, model.dtype)}


def strongest_pitch_class(
    samples: npt.NDArray[np.float32], sample_rate: int, n_chroma: int = 12
) -> npt.NDArray[np.float32]:
    """Return a 1 at the strongest pitch class of each frame of one channel, shape (1 + n // 4096, `n_chroma`), C first.

    A channel (n,) that is shorter than a window of 16,384 samples is padded on both sides; the rate is in Hz.
    """
    import torch
    from transformers.audio_utils import chroma_filter_bank

    filters = chroma_filter_bank(N_FFT, n_chroma, sample_rate, tuning=0.0)  # (classes, bins)
    wave = torch.from_numpy(samples)
    short = max(N_FFT - len(wave), 0)
    wave = torch.nn.functional.pad(wave, (short // 2, short - short // 2))
    spectrum = torch.stft(wave, N_FFT, HOP, window=torch.hann_window(N_FFT), return_complex=True)
    power = spectrum.abs().square()
    strongest = (torch.from_numpy(filters).float()[:, : len(power)] @ power).argmax(dim=0)
    chroma: npt.NDArray[np.float32] = torch.nn.functional.one_hot(strongest, n_chroma).float().numpy()
    return chroma
