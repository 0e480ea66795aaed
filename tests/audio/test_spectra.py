"""Spectra: equal to the last bit to those of librosa, which they replace."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from music_evals.audio import spectra
from music_evals.audio.io import load_audio

librosa = pytest.importorskip("librosa")

RATE = 22050


@pytest.fixture(scope="module")
def recordings(song: np.ndarray) -> dict[str, np.ndarray]:
    """Music, noise, loud and very soft, of lengths around what is cut: octaves, blocks of frames, single frames."""
    rng = np.random.default_rng(7)
    noise = rng.standard_normal(6 * RATE).astype(np.float32)
    return {
        "music": song.astype(np.float32),
        "noise": noise,
        "soft": noise * np.float32(1e-6),
        "one sample": noise[: 2**16 + 1],
        "no frame more": noise[: 2**16 + 511],
        "odd": noise[:100_003],
        "rests": np.concatenate([noise[:30_000], np.zeros(40_000, np.float32), noise[:30_000]]),
    }


NAMES = ["music", "noise", "soft", "one sample", "no frame more", "odd", "rests"]


@pytest.mark.parametrize("name", NAMES)
def test_the_constant_q_transform_is_that_of_librosa(recordings: dict[str, np.ndarray], name: str) -> None:
    samples = recordings[name]
    expected = librosa.cqt(
        samples, sr=RATE, hop_length=512, fmin=librosa.midi_to_hz(24), n_bins=288, bins_per_octave=36, tuning=0.0
    )
    found = spectra._constant_q_magnitudes(
        samples, RATE, hop_length=512, lowest_midi=24, n_octaves=8, bins_per_octave=36
    )
    np.testing.assert_array_equal(found, np.abs(expected))
    assert found.flags.f_contiguous  # as librosa lays it out: products with it are rounded in that order


def test_what_is_short_is_continued_by_silence(recordings: dict[str, np.ndarray]) -> None:
    short = load_audio(recordings["noise"][: 2 * RATE], rate=RATE)
    longer = np.pad(short.samples, (0, 2**16 - len(short.samples)))
    expected = librosa.cqt(
        longer, sr=RATE, hop_length=512, fmin=librosa.midi_to_hz(24), n_bins=288, bins_per_octave=36, tuning=0.0
    )
    np.testing.assert_array_equal(spectra.constant_q(short), np.abs(expected)[:, : 2 * RATE // 512 + 1])


@pytest.mark.parametrize("name", NAMES)
def test_the_power_spectrum_is_that_of_librosa(recordings: dict[str, np.ndarray], name: str) -> None:
    audio = load_audio(recordings[name], rate=RATE)
    expected = np.abs(librosa.stft(audio.samples, n_fft=2048, hop_length=512)) ** 2
    np.testing.assert_array_equal(spectra.power_spectrum(audio), expected)
    assert spectra.power_spectrum(audio).flags.f_contiguous


@pytest.mark.parametrize("rate", [22050, 44100, 16000])
def test_mel_bands_are_those_of_librosa(rate: int) -> None:
    ours = spectra._mel_filters(rate)
    theirs = csr_array(librosa.filters.mel(sr=rate, n_fft=2048, n_mels=128))
    assert ours.dtype == theirs.dtype == np.float32
    np.testing.assert_array_equal(ours.toarray(), theirs.toarray())


@pytest.mark.parametrize("length", [2, 3, 271, 398, 512, 2048])
def test_the_window_is_that_of_scipy(length: int) -> None:
    from scipy.signal import get_window

    np.testing.assert_array_equal(spectra._hann(length), get_window("hann", length))


@pytest.mark.slow
def test_the_default_extractors_import_neither_librosa_nor_numba() -> None:
    """They take half of a second to import, and half of a minute to compile."""
    code = """
import sys
import numpy as np
from music_evals.pipelines.preservation import evaluate_preservation
from music_evals.audio.io import load_audio
rng = np.random.default_rng(0)
audio = load_audio(rng.standard_normal(6 * 22050), rate=22050)
evaluate_preservation([audio], [audio], companions=True)
print(sorted({"librosa", "numba", "llvmlite", "datasets", "torch"} & set(sys.modules)))
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
