"""Recordings as the encoders take them: loudness-normalised, in one or two channels, at the encoder's rate.

What all encoders of music have in common stands here too: recordings in, one vector each out.
"""

from __future__ import annotations

import abc
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.audio.io import load_channels
from music_evals.errors import InvalidAudioError, MusicEvalsError, UnsupportedTypeError, importing, located
from music_evals.files import reading

Samples = npt.NDArray[np.float32]

Source = str | os.PathLike[str] | bytes | Mapping[str, Any]
"""A file, the bytes of one, or a row of a data set: ``{"bytes", "path"}`` or ``{"array", "sampling_rate"}``."""

LOUDNESS: Final = -12.0
"""LUFS that every recording is brought to (`und_eval/dataset.py` of the released code)."""

_BLOCK_SEC = 0.4  # the shortest recording that has a loudness (ITU-R BS.1770-4)
_MOST_CHANNELS = 5  # that BS.1770 weighs


def content_hash(source: Source) -> str:
    """Return the SHA-256 of a recording: of the file's bytes, or of samples and rate."""
    given = _given(source)
    if given.array is not None:
        about = f"{given.array.dtype.str}:{given.array.shape}:{given.rate}:"
        return hashlib.sha256(about.encode() + np.ascontiguousarray(given.array).tobytes()).hexdigest()
    if given.content is not None:
        return hashlib.sha256(given.content).hexdigest()
    with reading(given.path), Path(given.path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def prepare(
    source: Source, *, rate: int, channels: int, loudness: float | None, resample: bool, max_seconds: float | None
) -> Samples:
    """Return the samples for an encoder."""
    # Loudness is measured over all channels at the recording's own rate; then the channels are mixed or doubled, and
    # the result is resampled (soxr HQ; the released code resamples with torchaudio, which differs by rounding and in
    # the last kilohertz below half the rate).
    given = _given(source)
    place = given.path or "the recording"
    frames, own_rate = _decode(given, place)  # (n, channels)
    if loudness is not None:
        with importing("models", "bringing recordings to one loudness"):
            import pyloudnorm
        if len(frames) < _BLOCK_SEC * own_rate or frames.shape[1] > _MOST_CHANNELS:
            raise InvalidAudioError(
                f"{place}: {len(frames) / own_rate:.2f} s in {frames.shape[1]} channels; loudness is defined from "
                f"{_BLOCK_SEC} s on, for up to {_MOST_CHANNELS} channels; leave it out, or pass loudness=None"
            )
        own = pyloudnorm.Meter(own_rate).integrated_loudness(frames)
        if not np.isfinite(own):
            raise InvalidAudioError(
                f"{place}: silent, its loudness is not defined; leave it out, or pass loudness=None"
            )
        frames = frames * np.float32(10 ** ((loudness - own) / 20))
    if channels == 1:
        frames = frames.mean(axis=1, keepdims=True)
    elif frames.shape[1] > channels:
        raise InvalidAudioError(f"{place}: {frames.shape[1]} channels, the encoder takes {channels}; mix it down first")
    elif frames.shape[1] != channels:
        frames = np.repeat(frames, channels, axis=1)
    if resample and own_rate != rate:
        import soxr

        frames = soxr.resample(frames, own_rate, rate, quality="HQ").astype(np.float32)
    if max_seconds is not None:
        frames = frames[: int(max_seconds * rate)]
    return np.ascontiguousarray(frames.T)


class _Given(NamedTuple):
    """A source, taken apart: one of the three holds the sound; the path may be a name only."""

    path: str = ""
    content: bytes | None = None
    array: npt.NDArray[Any] | None = None
    rate: int = 0


def _given(source: Source) -> _Given:
    if isinstance(source, str | os.PathLike):
        return _Given(os.fspath(source))
    if isinstance(source, bytes):
        return _Given(content=source)
    if isinstance(source, Mapping):
        path = source.get("path") or ""
        if source.get("array") is not None and source.get("sampling_rate"):
            return _Given(path, array=np.asarray(source["array"]), rate=source["sampling_rate"])
        if source.get("bytes") is not None or path:
            return _Given(path, source.get("bytes"))
    raise UnsupportedTypeError(
        f"expected a path, bytes, {{'bytes', 'path'}} or {{'array', 'sampling_rate'}}, got {type(source).__name__}; "
        'read a data set with cast_column("audio", Audio(decode=False))'
    )


def _decode(given: _Given, place: str) -> tuple[Samples, int]:
    if given.array is not None:
        return load_channels(given.array, rate=given.rate)
    if given.content is None:
        return load_channels(given.path)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"audio{Path(given.path).suffix}"
        path.write_bytes(given.content)
        try:
            return load_channels(path)
        except MusicEvalsError as error:
            raise located(error, place) from error


Feature = npt.NDArray[np.float32]
"""A vector, shape (size,)."""


class Extraction(abc.ABC):
    """What turns a recording into one vector."""

    name: str  # one of `encoders.music.ENCODERS`
    size: int  # length of the vector
    about: Mapping[str, Any]  # all that decides the numbers besides the recording, for records and keys

    @abc.abstractmethod
    def features(self, source: Source) -> Feature:
        """Return float32, shape (size,)."""

    def extract(
        self, sources: Iterable[tuple[str, Source]], *, progress: bool = False, total: int | None = None
    ) -> Iterator[tuple[str, Feature]]:
        """Yield (id, feature) of each (id, recording), one after the other: nothing is held back."""
        from tqdm import tqdm

        for name, source in tqdm(sources, desc="features", unit="song", total=total, disable=not progress):
            try:
                feature = self.features(source)
            except MusicEvalsError as error:
                raise located(error, name) from error
            yield name, feature
