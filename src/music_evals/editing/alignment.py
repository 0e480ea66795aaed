"""Rate, length and loudness of an edit, brought to those of its source in one place and logged.

No editing system keeps them by itself: models work at their own rate, pad to whole frames and normalise the peak. What
is scored must not depend on that, and whoever reads a score must be able to see what was done.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import EditRequest
from music_evals.audio.loudness import integrated_loudness
from music_evals.errors import BackendError

__all__ = ["PEAK", "align", "first_channel", "loudness_of"]

PEAK = 0.99
"""No sample lies higher after the level was matched: what is written as whole numbers is not clipped."""

Samples = npt.NDArray[np.float32]


def loudness_of(audio: Samples, sample_rate: int) -> float:
    """Return the loudness of the mean of the channels in LUFS (`audio.loudness`); NaN for silence."""
    return integrated_loudness(audio.mean(axis=0, dtype=np.float64), sample_rate)


def align(
    source: Samples, sample_rate: int, edited: Samples, edited_rate: int, *, keeps_time: bool = True
) -> tuple[Samples, dict[str, Any]]:
    """Return an edit at the rate, length and loudness of its source, and what was done to it.

    Both are of shape (channels, n_samples), rates are in Hz, and the samples that come back are float32. With
    `keeps_time` the end is cut or padded to the length of the source. The log has ``sample_rate`` and ``seconds``
    before and after, ``cut_sec`` or ``padded_sec`` at the end, ``source_lufs``, ``edit_lufs`` (before), ``gain_db``,
    and ``peak_limited`` where the gain was lowered so that the peak stays at `PEAK`. A loudness of None is that of
    silence; then the gain is 0 dB. Raises `BackendError` where the edit has no samples, or some that are not finite.
    """
    if edited.ndim != 2 or not edited.size or not np.isfinite(edited).all():
        raise BackendError(
            f"the system returned samples of shape {edited.shape} that are empty or not finite; nothing can be scored"
        )
    samples = edited.astype(np.float32, copy=False)
    if edited_rate != sample_rate:
        import soxr

        resampled = soxr.resample(samples.T, edited_rate, sample_rate, quality="HQ").T
        samples = np.ascontiguousarray(resampled, dtype=np.float32)
    log: dict[str, Any] = {
        "sample_rate": [edited_rate, sample_rate],
        "seconds": [edited.shape[1] / edited_rate, samples.shape[1] / sample_rate],
    }
    n = source.shape[1]
    if keeps_time and samples.shape[1] != n:
        off = samples.shape[1] - n
        log["cut_sec" if off > 0 else "padded_sec"] = abs(off) / sample_rate
        samples = samples[:, :n] if off > 0 else np.pad(samples, ((0, 0), (0, -off)))
        log["seconds"][1] = n / sample_rate
    gain, about = _gain(source, samples, sample_rate)
    return (samples * np.float32(gain)).astype(np.float32, copy=False), log | about


def first_channel(request: EditRequest, sample_rate: int) -> Samples:
    """Return the first channel of a request's source at the sample rate of a model, shape (n,)."""
    import soxr

    assert request.audio is not None and request.sample_rate is not None  # noqa: PT018 (a request is checked)
    return np.asarray(soxr.resample(request.audio[0], request.sample_rate, sample_rate, quality="HQ"), dtype=np.float32)


def _gain(source: Samples, samples: Samples, sample_rate: int) -> tuple[float, dict[str, Any]]:
    """Return the factor that matches the loudness, and what is logged of it."""
    source_lufs, edit_lufs = loudness_of(source, sample_rate), loudness_of(samples, sample_rate)
    about: dict[str, Any] = {
        "source_lufs": None if np.isnan(source_lufs) else round(source_lufs, 3),
        "edit_lufs": None if np.isnan(edit_lufs) else round(edit_lufs, 3),
    }
    if np.isnan(source_lufs) or np.isnan(edit_lufs):
        return 1.0, about | {"gain_db": 0.0, "peak_limited": False}
    gain = 1.0
    for _ in range(2):  # at another level other blocks pass the absolute gate: the second round sees them
        gain *= float(10 ** ((source_lufs - loudness_of(samples * np.float32(gain), sample_rate)) / 20))
    peak = float(np.abs(samples).max())
    most = max(PEAK, float(np.abs(source).max())) / peak  # a source may lie higher: then so may the edit
    limited = gain > most
    gain = min(gain, most)
    return gain, about | {"gain_db": round(20 * float(np.log10(gain)), 3), "peak_limited": limited}
