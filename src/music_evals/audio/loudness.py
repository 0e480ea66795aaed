"""How loud a recording is, by ITU-R BS.1770-4, so that two can be heard at equal loudness.

One channel only: what pages and studies play is mixed down.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["integrated_loudness", "level_gains"]

BLOCK_SEC: Final = 0.4
OVERLAP: Final = 4  # a block starts every 100 ms
OFFSET_LUFS: Final = -0.691  # BS.1770-4, equation 2
ABSOLUTE_GATE_LUFS: Final = -70.0
RELATIVE_GATE_LU: Final = -10.0

Samples = npt.NDArray[np.floating[Any]]


def integrated_loudness(samples: Samples, sample_rate: int) -> float:
    """Return the gated loudness of one channel (ITU-R BS.1770-4, annex 1), in LUFS.

    Samples have shape (n,), full scale 1; the rate is in Hz. NaN for less than 0.4 s, or where all of it is softer than
    -70 LUFS.

    Examples
    --------
    >>> tone = np.sin(2 * np.pi * 997 * np.arange(48000) / 48000)
    >>> round(integrated_loudness(tone, 48000), 1)  # BS.1770: a full-scale sine on one channel
    -3.0
    """
    from scipy.signal import lfilter

    # The two stages of BS.1770-4, annex 1, whose coefficients hold at 48 kHz, designed for any rate. The analogue
    # prototypes behind the tables are those of libebur128 (MIT licence): a high shelf of 4 dB at 1682 Hz and a high
    # pass at 38 Hz.
    k = np.tan(np.pi * 1681.974450955533 / sample_rate)
    q, shelf = 0.7071752369554196, 10 ** (3.999843853973347 / 20)
    band = shelf**0.4996667741545416
    b = np.array([shelf + band * k / q + k * k, 2 * (k * k - shelf), shelf - band * k / q + k * k])
    a = np.array([1 + k / q + k * k, 2 * (k * k - 1), 1 - k / q + k * k])
    shelved = lfilter(b / a[0], a / a[0], np.asarray(samples, dtype=np.float64))
    k, q = np.tan(np.pi * 38.13547087602444 / sample_rate), 0.5003270373238773
    a = np.array([1 + k / q + k * k, 2 * (k * k - 1), 1 - k / q + k * k])
    power = np.square(lfilter([1.0, -2.0, 1.0], a / a[0], shelved))
    block, hop = round(BLOCK_SEC * sample_rate), round(BLOCK_SEC * sample_rate / OVERLAP)
    if len(power) < block:
        return float("nan")
    total = np.concatenate([[0.0], np.cumsum(power)])
    starts = np.arange(0, len(power) - block + 1, hop)
    means = (total[starts + block] - total[starts]) / block
    gated = means[_lufs(means) > ABSOLUTE_GATE_LUFS]
    if not len(gated):
        return float("nan")
    gate = _lufs(np.array(gated.mean())) + RELATIVE_GATE_LU
    return float(_lufs(np.array(gated[_lufs(gated) > gate].mean())))


def level_gains(first_lufs: float, second_lufs: float) -> tuple[float, float]:
    """Return the factors that bring the louder of two down to the softer one.

    Loudness is in LUFS. Both factors are at most 1, so that nothing is clipped. Where a side has no loudness (NaN) both
    are 1.

    Examples
    --------
    >>> [round(gain, 3) for gain in level_gains(-14.0, -20.0)]
    [0.501, 1.0]
    """
    if np.isnan(first_lufs) or np.isnan(second_lufs):
        return 1.0, 1.0
    target = min(first_lufs, second_lufs)
    return float(10 ** ((target - first_lufs) / 20)), float(10 ** ((target - second_lufs) / 20))


def _lufs(power: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return OFFSET_LUFS + 10 * np.log10(np.maximum(power, 1e-20))
