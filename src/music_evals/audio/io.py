"""Recordings: decoded once, mixed down, resampled and peak-normalised.

Every extractor takes an `Audio`. What was done to the file on the way is its `AudioPolicy`, which goes into every
result's receipt: scores are comparable only under one policy.

A file is read whole or not at all: one that was cut, or whose header claims another length than it has, is refused
(`audio.containers` says what each format allows to be checked). WAV, FLAC, Ogg (Vorbis, Opus), MP3 and AIFF are read
everywhere; MP4 (m4a), AAC and WebM where the command ffmpeg or the package torchcodec is installed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import io
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from music_evals.audio.decoding import OPENERS, Decoded
from music_evals.audio.recordings import AUDIO_SUFFIXES, recordings
from music_evals.audio.samples import (
    BLOCK,
    HIGHEST_RATE,
    LOWEST_RATE,
    Mixing,
    Samples,
    as_float,
    bounded,
    check_format,
    frames_of,
    join_channels,
    resample,
)
from music_evals.errors import FileTooLargeError, InvalidAudioError, InvalidInputError, UnreadableFileError
from music_evals.files import check_no_pointer_in, reading

__all__ = [
    "AUDIO_SUFFIXES", "DECODERS", "DEFAULT_AUDIO_LIMITS", "DEFAULT_POLICY", "SAMPLE_RATE", "Audio", "AudioLimits",
    "AudioPolicy", "check_header", "encode_flac", "load_audio", "load_channels", "recordings",
]  # fmt: skip

Value = TypeVar("Value")


class Memo:
    """Values worked out once each, by whichever thread comes first; another process starts anew."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._locks: dict[str, threading.RLock] = {}
        self._lock = threading.Lock()

    def get(self, key: str, compute: Callable[[], Value]) -> Value:
        with self._lock:
            lock = self._locks.setdefault(key, threading.RLock())
        with lock:
            if key not in self._values:
                self._values[key] = compute()
            return cast("Value", self._values[key])

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


SAMPLE_RATE = 22050  # Hz; the rate that librosa, the official code and basic-pitch work at

DECODERS = tuple(OPENERS)
"""Decoders by name: soundfile reads WAV, FLAC, Ogg, MP3 and AIFF; ffmpeg (the command, optional) these and MP4, AAC,
WebM and Matroska; torchcodec (optional) these and CAF, Wave64, AU and ASF."""


@dataclasses.dataclass(frozen=True)
class AudioPolicy:
    """What is done to every recording before a feature is extracted.

    Parameters
    ----------
    sample_rate
        Target rate in Hz, 4,000 to 384,000.
    peak_normalise
        Scale the loudest sample to 1. Silence stays as it is.
    silence_dbfs
        A recording whose peak lies below this, before it is normalised, is silent: none of its features is defined.
        So is one that keeps as near to its mean, such as a constant offset and nothing else.
    decoder
        One of `DECODERS`. What ``"soundfile"`` does not read, MP4, AAC and WebM, goes to ffmpeg where it is installed,
        else to torchcodec; nothing else depends on what is installed.

    Raises
    ------
    InvalidInputError
        A rate out of range, or a decoder that does not exist.
    """

    sample_rate: int = SAMPLE_RATE
    peak_normalise: bool = True
    silence_dbfs: float = -60.0
    decoder: str = "soundfile"

    def __post_init__(self) -> None:
        if not LOWEST_RATE <= self.sample_rate <= HIGHEST_RATE:
            raise InvalidInputError(f"sample_rate must lie in {LOWEST_RATE}..{HIGHEST_RATE} Hz, got {self.sample_rate}")
        if self.decoder not in DECODERS:
            raise InvalidInputError(f"decoder must be one of {', '.join(DECODERS)}, got {self.decoder!r}")

    @property
    def silence(self) -> float:
        """The amplitude below which a recording is silent."""
        return float(10 ** (self.silence_dbfs / 20))


DEFAULT_POLICY = AudioPolicy()
"""How recordings are decoded for all variants but the official one."""


@dataclasses.dataclass(frozen=True)
class AudioLimits:
    """The largest recording that is read.

    Parameters
    ----------
    max_sec
        Length in seconds. The default, half an hour, holds any movement that is edited as one piece; its samples take
        160 MB.
    max_bytes
        Size of the file.
    max_channels
        Channels; 16 is third-order Ambisonics.

    Raises
    ------
    InvalidInputError
        A bound that is not positive.
    """

    max_sec: float = 1800.0
    max_bytes: int = 2 * 2**30
    max_channels: int = 16

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if not getattr(self, field.name) > 0:
                raise InvalidInputError(f"{field.name} must be positive, got {getattr(self, field.name)}")


DEFAULT_AUDIO_LIMITS = AudioLimits()
"""Limits where none are given."""


@dataclasses.dataclass(frozen=True, eq=False)
class Audio:
    """One recording, ready for extraction.

    Parameters
    ----------
    samples
        float32, mono, shape (n,), within -1..1 where they were normalised; must not be written to.
    sample_rate, policy
        In Hz; how the samples came about.
    silent
        True if the recording was silent before it was normalised, or no farther from its mean than silence.
    reload
        Loads the same source under another policy; None where there is no source but the samples.
    read_by
        Name and version of the decoder, where it is another than the policy's: ``"ffmpeg 7.1"``.
    source_rate
        Rate of the file or array in Hz; None where there is no source.
    cancelled
        True if the recording is silent in the mean of its channels alone, as where they are in opposite phase.

    Raises
    ------
    InvalidAudioError
        Samples that are not finite, none at all, not float32, or of another shape.
    """

    samples: Samples
    sample_rate: int = SAMPLE_RATE
    policy: AudioPolicy = DEFAULT_POLICY
    silent: bool = False
    reload: Callable[..., Audio] | None = dataclasses.field(default=None, repr=False)
    read_by: str = ""
    source_rate: int | None = None
    cancelled: bool = False
    _memo: Memo = dataclasses.field(default_factory=Memo, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.samples.ndim != 1 or self.samples.dtype != np.float32 or not len(self.samples):
            raise InvalidAudioError(
                f"expected float32 samples of shape (n,), got {self.samples.dtype} of shape {self.samples.shape}"
            )
        if not np.isfinite(self.samples).all():
            raise InvalidAudioError("the samples hold NaN or infinite values")

    @property
    def duration_sec(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.sample_rate

    def share(self, key: str, compute: Callable[[], Value]) -> Value:
        """Return what several extractors need, such as a spectrogram: worked out at the first call, then kept.

        Threads that ask for one key at the same time wait for the first of them.
        """
        return self._memo.get(key, compute)

    @property
    def content_hash(self) -> str:
        """SHA-256 of samples and rate: the identity of the recording in the feature store."""
        return self.share("content_hash", self._hash)

    def _hash(self) -> str:
        digest = hashlib.sha256(f"{self.sample_rate}:{self.silent}:".encode())
        digest.update(np.ascontiguousarray(self.samples).data)
        return digest.hexdigest()

    def at_rate(self, rate: int) -> Audio:
        """Return the recording at another sample rate, decoded again from its source: nothing is lost on the way.

        Samples without a source are resampled as they are.
        """
        if rate == self.sample_rate:
            return self
        return self.share(f"rate {rate}", lambda: self._at_rate(rate))

    def _at_rate(self, rate: int) -> Audio:
        policy = dataclasses.replace(self.policy, sample_rate=rate)
        if self.reload is not None:
            return self.reload(policy=policy)
        samples = resample(iter([self.samples]), self.sample_rate, rate)
        return dataclasses.replace(self, samples=samples, sample_rate=rate, policy=policy)


def load_audio(
    source: str | os.PathLike[str] | npt.ArrayLike,
    *,
    rate: int | None = None,
    policy: AudioPolicy = DEFAULT_POLICY,
    limits: AudioLimits = DEFAULT_AUDIO_LIMITS,
) -> Audio:
    """Decode a recording once: mean of the channels, resampled (soxr HQ), its peak scaled to 1.

    Parameters
    ----------
    source
        A file, or samples with their `rate`: shape (n,), (channels, n) or (n, channels), of which exactly one may be
        within `limits.max_channels`; int16, int32, float32 or float64. Whole numbers are scaled by their type's range.
    rate
        Sample rate of an array in Hz. A file brings its own.
    policy
        What is done to the samples.
    limits
        The largest recording that is read. The header is checked before anything is decoded.

    Returns
    -------
    Audio
        A recording whose peak, or farthest sample from the mean, lies below `policy.silence_dbfs` is marked `silent`
        and not scaled.

    Raises
    ------
    NoDataError
        There is no such file.
    UnreadableFileError
        A folder, no audio, refused by the system, damaged, cut, of another length than its header claims, or of a
        format that needs ffmpeg or torchcodec.
    FileTooLargeError
        Over `limits.max_sec` or `limits.max_bytes`.
    InvalidAudioError
        NaN or infinite samples, none at all, a sample rate outside 4..384 kHz, too many channels, or an array whose
        type or shape says nothing clear.
    InvalidInputError
        A file with a `rate`.
    MissingBackendError
        The policy names an optional decoder that is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> tone = np.sin(2 * np.pi * 440 * np.arange(44100) / 44100) / 4
    >>> audio = load_audio(tone, rate=44100)
    >>> audio.duration_sec, float(np.abs(audio.samples).max())
    (1.0, 1.0)
    """
    if isinstance(source, str | os.PathLike):
        if rate is not None:
            raise InvalidInputError(f"{source}: a file brings its own sample rate; leave rate away")
        return _load_file(Path(source), policy, limits)
    return _load_array(np.asarray(source), rate, policy, limits)


def load_channels(
    source: str | os.PathLike[str] | npt.ArrayLike,
    *,
    rate: int | None = None,
    decoder: str = "soundfile",
    limits: AudioLimits = DEFAULT_AUDIO_LIMITS,
) -> tuple[Samples, int]:
    """Decode a recording as it is: every channel, its own sample rate, its own level.

    For what must hear stereo, or must measure the level; everything else takes `load_audio`.

    Parameters
    ----------
    source, rate, limits
        As in `load_audio`.
    decoder
        One of `DECODERS`.

    Returns
    -------
    samples : numpy.ndarray
        float32, shape (n, channels).
    rate : int
        In Hz.

    Raises
    ------
    MusicEvalsError
        As `load_audio`.

    Examples
    --------
    >>> import numpy as np
    >>> samples, rate = load_channels(np.zeros((2, 8000)), rate=8000)
    >>> samples.shape, rate
    ((8000, 2), 8000)
    """
    policy = AudioPolicy(decoder=decoder)
    if isinstance(source, str | os.PathLike):
        if rate is not None:
            raise InvalidInputError(f"{source}: a file brings its own sample rate; leave rate away")
        path, place = Path(source), f"{source}: "
        with _opened(path, policy, limits) as decoded:
            blocks = list(bounded(decoded, limits.max_sec * decoded.rate, functools.partial(_too_long, path, limits)))
            return join_channels(blocks, decoded.channels, place), decoded.rate
    frames, rate = _checked_array(np.asarray(source), rate, limits)
    return join_channels([as_float(frames)], frames.shape[1], ""), rate


def check_header(
    path: str | os.PathLike[str], *, policy: AudioPolicy = DEFAULT_POLICY, limits: AudioLimits = DEFAULT_AUDIO_LIMITS
) -> int:
    """Raise what `load_audio` raises of a file before it decodes it: a quick look at whether it may be read at all.

    A header that claims less than the file holds, or no length, passes here; the file is checked when it is decoded.

    Returns
    -------
    int
        The sample rate of the file in Hz.

    Raises
    ------
    MusicEvalsError
        As `load_audio`, of a file.
    """
    with _opened(Path(path), policy, limits) as decoded:
        return decoded.rate


def encode_flac(samples: npt.NDArray[np.floating[Any]], sample_rate: int) -> bytes:
    """Encode samples as a FLAC file of 16 bits, which every browser decodes.

    Parameters
    ----------
    samples
        Shape (n,) or (n, channels), full scale 1; what lies beyond -1..1 is clipped.
    sample_rate
        In Hz.

    Returns
    -------
    bytes
        The file: no tags, and equal bytes for equal samples.
    """
    import soundfile

    stream = io.BytesIO()
    soundfile.write(stream, np.clip(samples, -1.0, 1.0), sample_rate, format="FLAC", subtype="PCM_16")
    return stream.getvalue()


@contextlib.contextmanager
def _opened(path: Path, policy: AudioPolicy, limits: AudioLimits) -> Iterator[Decoded]:
    _check_file(path, limits)
    with OPENERS[policy.decoder](path) as decoded:
        check_format(decoded.rate, decoded.channels, limits.max_channels, f"{path}: ")
        if decoded.n_frames is not None and decoded.n_frames > limits.max_sec * decoded.rate:
            raise _too_long(path, limits, decoded.n_frames / decoded.rate)
        yield decoded


def _too_long(path: Path, limits: AudioLimits, found_sec: float | None = None) -> FileTooLargeError:
    msg = f"{path}: more than {limits.max_sec:g} s (AudioLimits.max_sec)"
    return FileTooLargeError(msg, name=path.name, unit="seconds", limit=limits.max_sec, size=found_sec)


def _load_file(path: Path, policy: AudioPolicy, limits: AudioLimits) -> Audio:
    with _opened(path, policy, limits) as decoded:
        mixing = Mixing(policy.silence)
        blocks = bounded(decoded, limits.max_sec * decoded.rate, functools.partial(_too_long, path, limits))
        samples = resample(mixing.mixed(blocks, f"{path}: "), decoded.rate, policy.sample_rate)
    audio = _finish(samples, mixing, policy, functools.partial(load_audio, path, limits=limits), f"{path}: ")
    return dataclasses.replace(audio, read_by=decoded.read_by, source_rate=decoded.rate)


def _check_file(path: Path, limits: AudioLimits) -> None:
    """Raise unless a path is a file that may be opened; a pipe or device would never end."""
    with reading(path):
        about = path.stat()
        if stat.S_ISREG(about.st_mode):
            check_no_pointer_in(path)
    if not stat.S_ISREG(about.st_mode):
        raise UnreadableFileError(
            f"{path}: {'a folder' if stat.S_ISDIR(about.st_mode) else 'a pipe or device'}, not a file"
        )
    if about.st_size > limits.max_bytes:
        raise FileTooLargeError(
            f"{path}: more than {limits.max_bytes} bytes (AudioLimits.max_bytes)",
            name=path.name,
            unit="bytes",
            limit=limits.max_bytes,
            size=about.st_size,
        )


def _load_array(array: npt.NDArray[Any], rate: int | None, policy: AudioPolicy, limits: AudioLimits) -> Audio:
    frames, rate = _checked_array(array, rate, limits)
    blocks = (as_float(frames[start : start + BLOCK]) for start in range(0, len(frames), BLOCK))
    mixing = Mixing(policy.silence)
    mono = np.concatenate([np.zeros(0, np.float32), *mixing.mixed(blocks, "")])
    samples = resample(iter([mono]), rate, policy.sample_rate)
    audio = _finish(samples, mixing, policy, functools.partial(load_audio, mono, rate=rate, limits=limits), "")
    return dataclasses.replace(audio, source_rate=rate)


def _checked_array(array: npt.NDArray[Any], rate: int | None, limits: AudioLimits) -> tuple[npt.NDArray[Any], int]:
    """Return samples of shape (n, channels) and their rate."""
    if rate is None:
        raise InvalidAudioError("an array says nothing of its sample rate; pass rate=... in Hz")
    if array.dtype not in {np.dtype(kind) for kind in (np.int16, np.int32, np.float32, np.float64)}:
        raise InvalidAudioError(
            f"expected int16, int32, float32 or float64 samples, got {array.dtype}; convert them to floats in -1..1"
        )
    frames = frames_of(array, limits.max_channels)
    check_format(rate, frames.shape[1], limits.max_channels, "")
    if len(frames) > limits.max_sec * rate:
        duration_sec = len(frames) / rate
        raise FileTooLargeError(
            f"the array lasts {duration_sec:.0f} s, more than {limits.max_sec:g} (AudioLimits.max_sec)",
            unit="seconds",
            limit=limits.max_sec,
            size=duration_sec,
        )
    return frames, rate


def _finish(samples: Samples, mixing: Mixing, policy: AudioPolicy, reload: Callable[..., Audio], place: str) -> Audio:
    if not len(samples):
        raise InvalidAudioError(f"{place}holds no samples")
    peak = np.abs(samples).max()
    silent = bool(min(peak, mixing.peak) < policy.silence)
    if policy.peak_normalise and not silent:
        samples = samples / peak
    return Audio(samples, policy.sample_rate, policy, silent, reload, cancelled=mixing.cancelled)
