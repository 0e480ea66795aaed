"""Samples as arrays: their shape, channels and rate are checked, and blocks become one mono line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.audio.decoding import Decoded
from music_evals.errors import FileTooLargeError, InvalidAudioError

__all__ = [
    "BLOCK",
    "HIGHEST_RATE",
    "LOWEST_RATE",
    "Mixing",
    "Samples",
    "as_float",
    "bounded",
    "check_format",
    "frames_of",
    "join_channels",
    "resample",
]

LOWEST_RATE, HIGHEST_RATE = 4000, 384_000  # Hz; what recorded music comes at, with room on both sides
BLOCK = 1 << 16  # frames that are decoded at once

Samples = npt.NDArray[np.float32]


def join_channels(blocks: list[npt.NDArray[np.floating[Any]]], channels: int, place: str) -> Samples:
    """Return blocks of frames one after the other, shape (n, channels)."""
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [block.astype(np.float32, copy=False) for block in blocks]
    samples: Samples = np.concatenate([np.zeros((0, channels), np.float32), *parts])
    if not len(samples):
        raise InvalidAudioError(f"{place}holds no samples")
    if not np.isfinite(samples).all():
        raise InvalidAudioError(f"{place}holds samples that are NaN or infinite; repair the recording")
    return samples


def frames_of(array: npt.NDArray[Any], max_channels: int) -> npt.NDArray[Any]:
    """Return samples of shape (n, channels)."""
    if array.ndim == 1:
        return array[:, None]
    few = [size <= max_channels for size in array.shape]
    if array.ndim != 2 or sum(few) != 1:
        raise InvalidAudioError(
            "expected samples of shape (n,), or two dimensions of which one, the channels, is at most "
            f"{max_channels}; got {array.shape}"
        )
    return array.T if few[0] else array


def as_float(block: npt.NDArray[Any]) -> npt.NDArray[np.floating[Any]]:
    """Scale whole numbers by the range of their type; floats stay as they are."""
    if block.dtype.kind == "f":
        return block
    scaled: npt.NDArray[np.float64] = block / -float(np.iinfo(block.dtype).min)
    return scaled


def check_format(rate: int, channels: int, max_channels: int, place: str) -> None:
    """Refuse a sample rate or a number of channels that no recording has; `place` begins the message."""
    if not LOWEST_RATE <= rate <= HIGHEST_RATE or rate != int(rate):
        raise InvalidAudioError(
            f"{place}a sample rate of {rate} Hz; expected a whole number in {LOWEST_RATE}..{HIGHEST_RATE}"
        )
    if not 1 <= channels <= max_channels:
        raise InvalidAudioError(f"{place}{channels} channels; expected 1 to {max_channels}")


def bounded(
    decoded: Decoded, max_frames: float, too_long: Callable[[], FileTooLargeError]
) -> Iterator[npt.NDArray[np.floating[Any]]]:
    """Yield blocks, never more frames than the bound: what the header promised is not trusted."""
    n_frames = 0
    for block in decoded.blocks(BLOCK):
        n_frames += len(block)
        if n_frames > max_frames:
            raise too_long()
        yield block


def mix_down(block: npt.NDArray[np.floating[Any]], place: str) -> Samples:
    """Return the mean of the channels of frames of shape (n, channels)."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = block[:, 0].astype(np.float64)
        for channel in block.T[1:]:
            total += channel  # many times as fast as a mean over so short an axis
        mixed: Samples = (total / block.shape[1]).astype(np.float32)
    if not np.isfinite(mixed).all():
        raise InvalidAudioError(f"{place}holds samples that are NaN or infinite; repair the recording")
    return mixed


class Swing:
    """How far samples lie from their mean, found while they pass: a resampler would make edges of a constant."""

    def __init__(self) -> None:
        self._low, self._high, self._total, self._n = np.inf, -np.inf, 0.0, 0

    def add(self, samples: npt.NDArray[np.floating[Any]]) -> None:
        """Take the next samples into account."""
        if len(samples):
            self._low, self._high = min(self._low, float(samples.min())), max(self._high, float(samples.max()))
            self._total += float(samples.sum(dtype=np.float64))
            self._n += len(samples)

    @property
    def peak(self) -> float:
        """The largest distance of a sample from the mean of all."""
        mean = self._total / self._n if self._n else 0.0
        return max(self._high - mean, mean - self._low)


class Mixing:
    """Blocks of channels on their way to their mean, and whether that is silent where a channel is not."""

    def __init__(self, silence: float) -> None:
        self._silence, self._mean, self._channels = silence, Swing(), [Swing()]

    def mixed(self, blocks: Iterator[npt.NDArray[np.floating[Any]]], place: str) -> Iterator[Samples]:
        """Yield the mean of the channels of blocks of shape (n, channels)."""
        for block in blocks:
            mono = mix_down(block, place)
            self._mean.add(mono)
            # beyond twice that, nothing that follows makes a silence of the mean
            if block.shape[1] > 1 and self._mean.peak < 2 * self._silence:
                self._channels += [Swing() for _ in range(block.shape[1] - len(self._channels))]
                for swing, channel in zip(self._channels, block.T, strict=True):
                    swing.add(channel)
            yield mono

    @property
    def peak(self) -> float:
        """The largest distance of the mean of the channels from its own mean."""
        return self._mean.peak

    @property
    def cancelled(self) -> bool:
        """Whether a channel lies above silence, and the mean of all does not."""
        return self.peak < self._silence <= max(swing.peak for swing in self._channels)


def resample(blocks: Iterator[Samples], rate: int, target: int) -> Samples:
    """Resample block by block; how the blocks are cut does not change a bit of the result."""
    none = np.zeros(0, np.float32)
    if rate == target:
        return np.concatenate([none, *blocks])
    import soxr

    stream = soxr.ResampleStream(rate, target, 1, dtype="float32", quality="HQ")
    parts = [stream.resample_chunk(block, last=False) for block in blocks]
    return np.concatenate([*parts, stream.resample_chunk(none, last=True)])
