"""The same music in a lesser copy: what everybody would call the same, and no extractor finds equal to the bit.

A metric that is not near its best for such a pair says something of the copy and not of the music.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Score
from music_evals.audio.io import Audio, load_audio
from music_evals.symbolic.midi import read_midi, write_midi

__all__ = ["GAIN", "RATE", "REENCODED_AUDIO", "REENCODED_SCORE", "SNR_DB", "reencode", "rewrite"]

RATE = 16_000  # Hz: nothing above 8 kHz is left
GAIN = 10 ** (-6 / 20)
SNR_DB = 30.0

REENCODED_AUDIO = "6 dB softer, as 16-bit samples at 16 kHz, with pink noise 30 dB below the music"
REENCODED_SCORE = "written as MIDI"

_LOWEST_HZ = 20.0  # of the noise: what lies below is not heard
_LOOP_BITS = 20  # the noise repeats after 2**20 samples, 66 s


def reencode(audio: Audio) -> Audio:
    """Return a recording as it is after a pass through a small file."""
    # It is resampled to `RATE` (soxr HQ), gets pink noise (power falls as 1/f) `SNR_DB` below its own power, is turned
    # down by `GAIN`, and rounded to 16 bits; what then lies over full scale is clipped. The result is decoded under the
    # policy of the original, so that it has its rate again. The noise depends on the content alone: the same at every
    # call.
    policy = dataclasses.replace(audio.policy, sample_rate=RATE, peak_normalise=False)
    small = load_audio(audio.samples, rate=audio.sample_rate, policy=policy).samples
    power = float(np.mean(small.astype(np.float64) ** 2))
    noise = _pink_noise(int(audio.content_hash[:16], 16), len(small))
    softer = GAIN * (small + np.sqrt(power / 10 ** (SNR_DB / 10)) * noise)
    whole = np.iinfo(np.int16)
    rounded = np.clip(np.round(whole.max * softer), whole.min, whole.max).astype(np.int16)
    return load_audio(rounded, rate=RATE, policy=audio.policy)


def _pink_noise(seed: int, n: int) -> npt.NDArray[np.float64]:
    """Return noise at `RATE` of power 1, shape (n,), with equal power in each octave from `_LOWEST_HZ` on."""
    size = 2**_LOOP_BITS
    frequencies_hz = np.fft.rfftfreq(size, 1 / RATE)
    rng = np.random.default_rng(seed)
    spectrum = rng.standard_normal(len(frequencies_hz)) + 1j * rng.standard_normal(len(frequencies_hz))
    audible = frequencies_hz >= _LOWEST_HZ
    spectrum[~audible] = 0
    spectrum[audible] /= np.sqrt(frequencies_hz[audible])
    loop = np.fft.irfft(spectrum, size)
    return np.resize(loop / np.sqrt(np.mean(loop**2)), n)  # a spectrum's inverse goes on where it began


def rewrite(score: Score) -> Score:
    """Return a score as it is after it was written as MIDI."""
    return read_midi(write_midi(score))
