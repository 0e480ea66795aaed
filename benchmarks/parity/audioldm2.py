"""What ZETA and MusicMagus have of AudioLDM 2, beside the code of ZETA's authors: log-mel, latent and sound.

`musicmagus.py` compares the log-mel of MusicMagus in the same way.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import soundfile
import torch
from benchmarks.parity import zeta
from benchmarks.parity.side_by_side import Authors, Recorder
from tests.editing.tiny_audioldm2 import named_pipeline

from music_evals.editing import audioldm2
from music_evals.editing.audioldm2 import HOP, SAMPLE_RATE, AudioLDM2, log_mel

__all__ = ["AUTHORS", "compare_log_mel", "measure", "noisy_chord", "surroundings"]

AUTHORS = Authors("HilaManor/AudioEditingCode", "f324c19")
EDGE = 4  # frames at either end that see what lies beyond it


def measure(checkout: Path, recorder: Recorder) -> None:
    """Compare spectrograms, the latent of one, and what becomes of a latent."""
    model, recording = AudioLDM2(named_pipeline()), noisy_chord(1.0)
    with zeta.their_code(checkout) as (models, _), _their_audio(checkout) as audio, torch.no_grad():
        theirs = zeta.wrapper(models)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "source.wav"
            soundfile.write(path, recording, SAMPLE_RATE, subtype="FLOAT")
            mel = audio.wav_to_fbank(str(path), target_length=102, fn_STFT=theirs.get_fn_STFT())[0]
        recorder.keep(recording=recording)
        compare_log_mel(recorder, recording, mel.numpy())
        mel = mel[:100]  # a multiple of 4, so that neither side pads it
        with mock.patch.object(audioldm2, "log_mel", return_value=mel.numpy()):
            latent = model.encode(recording)
        recorder.stage("latent of one log-mel", latent, theirs.vae_encode(mel[None, None]))
        spectrum = theirs.vae_decode(latent)
        recorder.stage("sound of a latent", model.decode(latent), theirs.decode_to_mel(spectrum)[0])


def compare_log_mel(recorder: Recorder, recording: Any, theirs: Any) -> None:
    """Compare the log-mel of a recording without a mean, as it is and with the recording half a hop later."""
    n_frames = len(recording) // HOP
    recorder.stage(
        "log-mel",
        log_mel(recording)[:n_frames],
        theirs[:n_frames],
        note="our frames sit 5 ms later, where the model and its vocoder were trained to have them",
    )
    later = log_mel(np.concatenate([np.zeros(HOP // 2, np.float32), recording]))
    inner = slice(EDGE, n_frames - EDGE)
    recorder.stage("log-mel, recording 5 ms later", later[inner], theirs[inner], kept=True)


def noisy_chord(seconds: float) -> Any:
    """Return a chord in noise, one channel at 16 kHz without a mean."""
    times = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    noise = np.random.default_rng(0).standard_normal(len(times))
    tones = sum(np.sin(2 * np.pi * hertz * times) for hertz in (220.0, 277.2, 329.6))
    samples = 0.2 * tones + 0.1 * noise
    return (samples - samples.mean()).astype(np.float32)


@contextlib.contextmanager
def surroundings() -> Iterator[None]:
    """Stand in for packages that their code imports, for all that is called of them, and for a GPU."""

    def load(path: str) -> tuple[Any, int]:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
        return torch.from_numpy(samples.T.copy()), rate

    def unchanged(samples: Any, orig_freq: int, new_freq: int) -> Any:
        if orig_freq != new_freq:
            raise ValueError(f"{orig_freq} Hz is not {new_freq} Hz")
        return samples

    torchaudio: Any = types.ModuleType("torchaudio")
    torchaudio.load = load
    torchaudio.functional = types.SimpleNamespace(resample=unchanged)
    torchaudio.transforms = types.SimpleNamespace(
        Resample=lambda before, after: lambda samples: unchanged(samples, before, after)
    )
    packages = {"torchaudio": torchaudio, "openai": types.ModuleType("openai")}
    with mock.patch.dict(sys.modules, packages), mock.patch.object(torch.Tensor, "cuda", lambda self: self):
        yield


@contextlib.contextmanager
def _their_audio(checkout: Path) -> Iterator[Any]:
    """Import what reads audio, without the start of its package, which imports whole other models."""
    package = types.ModuleType("audioldm")
    package.__path__ = [str(checkout / "code" / "audioldm")]
    with surroundings(), mock.patch.dict(sys.modules, {"audioldm": package}):
        yield importlib.import_module("audioldm.audio")
