"""Edits of recordings as pure functions of samples: level, noise, filter, lead-in, cut, stretching, speed.

Each takes mono samples, shape (n,), and returns new float32 samples; `apply` runs a list of operations as the rows of
`known_edits` hold them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.errors import UnknownNameError

__all__ = ["OPERATIONS", "apply", "cut", "gain", "lowpass", "noise", "offset", "stretch", "varispeed"]

Samples = npt.NDArray[np.float32]

_WINDOW_SEC = 0.12
_SEARCH_SEC = 0.02
_DRIFT_COST = 0.2  # of a correlation of 1, at the rim of the search: else it would always stay behind


def apply(samples: Samples, sample_rate: int, operations: Sequence[Mapping[str, Any]]) -> Samples:
    """Run operations one after the other."""
    for operation in operations:
        options = dict(operation)
        name = options.pop("op")
        if name not in OPERATIONS:
            raise UnknownNameError("audio edit", name, OPERATIONS)
        samples = OPERATIONS[name](samples, sample_rate, **options)
    return samples


def gain(samples: Samples, sample_rate: int, *, db: float) -> Samples:  # noqa: ARG001 - one signature for all
    """Change the level by `db` decibels."""
    return (samples * np.float32(10 ** (db / 20))).astype(np.float32)


def noise(samples: Samples, sample_rate: int, *, snr_db: float, seed: int) -> Samples:  # noqa: ARG001
    """Add pink noise (power falls as 1/f) whose power lies `snr_db` below that of the samples."""
    white = np.random.default_rng(seed).standard_normal(len(samples))
    spectrum = np.fft.rfft(white)
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    spectrum[0] = 0
    pink = np.fft.irfft(spectrum, len(samples))
    power = float(np.mean(samples.astype(np.float64) ** 2))
    pink *= math.sqrt(power / 10 ** (snr_db / 10) / float(np.mean(pink**2)))
    return (samples + pink).astype(np.float32)


def lowpass(samples: Samples, sample_rate: int, *, hz: float) -> Samples:
    """Cut off what lies above `hz`: Butterworth of order 8, run forward and backward, so that nothing is delayed."""
    from scipy.signal import butter, sosfiltfilt

    return np.asarray(sosfiltfilt(butter(8, hz, fs=sample_rate, output="sos"), samples), dtype=np.float32)


def offset(samples: Samples, sample_rate: int, *, seconds: float) -> Samples:
    """Put silence before the beginning."""
    return np.concatenate([np.zeros(round(seconds * sample_rate), dtype=np.float32), samples])


def cut(samples: Samples, sample_rate: int, *, share: float) -> Samples:  # noqa: ARG001
    """Cut a share of the recording off at its end."""
    return samples[: round(len(samples) * (1 - share))].copy()


def varispeed(samples: Samples, sample_rate: int, *, semitones: int) -> Samples:  # noqa: ARG001
    """Run the recording faster by so many semitones, pitch and tempo together."""
    import soxr

    ratio = Fraction(2 ** (semitones / 12)).limit_denominator(10_000)
    return np.asarray(soxr.resample(samples, ratio.numerator, ratio.denominator, quality="VHQ"), dtype=np.float32)


def stretch(samples: Samples, sample_rate: int, *, factor: float) -> Samples:
    """Run the recording faster by a factor at constant pitch, by overlap and add of similar waveforms (WSOLA)."""
    # Windows of 120 ms are laid down every 60 ms. Each is taken from where it belongs in the source, or from up to 20
    # ms beside, where it continues best what was laid down before it: no time is off by more than that.
    # Source: W. Verhelst and M. Roelands, "An overlap-add technique based on waveform similarity (WSOLA) for high
    # quality time-scale modification of speech", ICASSP 1993.
    from scipy.signal import correlate

    hop = round(_WINDOW_SEC * sample_rate / 2)
    reach = round(_SEARCH_SEC * sample_rate)
    n_out = round(len(samples) / factor)
    window = np.hanning(2 * hop + 1)[:-1].astype(np.float32)
    padded = np.concatenate([np.zeros(hop + reach, np.float32), samples, np.zeros(4 * hop + reach, np.float32)])
    out = np.zeros(n_out + 4 * hop, dtype=np.float32)
    follow = padded[reach : reach + 2 * hop]
    for index in range(n_out // hop + 2):
        ideal = reach + round(index * hop * factor)
        if ideal + 2 * hop + reach > len(padded):
            break
        around = padded[ideal - reach : ideal + 2 * hop + reach]
        # where a stretch of it correlates best with what follows, the nearer the better
        products = correlate(around, follow, mode="valid")
        energy = np.concatenate([[0.0], np.cumsum(around.astype(np.float64) ** 2)])
        norms = np.sqrt(np.maximum(energy[len(follow) :] - energy[: -len(follow)], 1e-9))
        away = np.linspace(-1, 1, len(products)) ** 2
        likeness = products / (norms * np.linalg.norm(follow) + 1e-9) - _DRIFT_COST * away
        best = ideal - reach + int(np.argmax(likeness))
        out[index * hop : index * hop + 2 * hop] += window * padded[best : best + 2 * hop]
        follow = padded[best + hop : best + 3 * hop]
        if len(follow) < 2 * hop:
            break
    return out[hop : hop + n_out]


OPERATIONS: dict[str, Callable[..., Samples]] = {
    "gain": gain, "noise": noise, "lowpass": lowpass, "offset": offset, "cut": cut,
    "varispeed": varispeed, "stretch": stretch,
}  # fmt: skip
"""Name -> function of samples, rate and options."""
