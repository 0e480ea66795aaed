"""Decoders behind one face: blocks of samples out of a file that is whole."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from music_evals.audio._container import Container, Mended
from music_evals.audio._containers import is_checked, read_container
from music_evals.audio._ffmpeg import ffmpeg_version, open_ffmpeg
from music_evals.errors import MissingBackendError, UnreadableFileError

__all__ = ["OPENERS", "READABLE", "Decoded", "decoder_versions"]

Block = npt.NDArray[np.floating[Any]]
_FORMATS = {"WAV": {"WAV", "WAVEX", "RF64"}, "FLAC": {"FLAC"}, "OGG": {"OGG"}, "MP3": {"MP3"}, "AIFF": {"AIFF"}}
_OTHERS = {"MP4": "MP4 (m4a)", "AAC": "AAC", "MATROSKA": "WebM or Matroska"}  # in the words of errors and cards
READABLE = f"{', '.join(_FORMATS)}; {', '.join(_OTHERS.values())} where ffmpeg or torchcodec is installed"
"""What can be read by default, in the words of every card and page."""


class Decoded(Protocol):
    """A file whose header was read."""

    rate: int
    channels: int
    n_frames: int | None  # None where the container does not say
    read_by: str  # name and version of the decoder where it is not the one that was asked for

    def blocks(self, size: int) -> Iterator[Block]:
        """Yield samples of shape (<= size, channels) up to the end; raise if that is not where it should be."""
        ...


@contextlib.contextmanager
def _open_soundfile(path: Path) -> Iterator[Decoded]:
    import soundfile

    class Forward(soundfile.SoundFile):  # type: ignore[misc]
        """Read on without a seek: soundfile seeks after each block, and libsndfile then mutes a part of an MP3 file."""

        def seekable(self) -> bool:
            return False

    container = read_container(path)
    if container.format not in _FORMATS:
        with _open_other(path, container) as decoded:
            yield decoded
        return
    try:
        with path.open("rb") as raw, Forward(Mended(raw, container) if _is_off(container) else path) as file:
            if file.format not in _FORMATS[container.format]:
                raise UnreadableFileError(
                    f"{path}: starts as {container.format} and is read as {file.format}; convert it to WAV or FLAC"
                )
            if file.format != "MP3" and container.n_frames not in {None, file.frames}:
                raise UnreadableFileError(
                    f"{path}: its header claims {container.n_frames} frames, {file.frames} are there; get a whole copy"
                )
            yield _SoundFile(file, path, container)
    except soundfile.LibsndfileError as error:
        raise UnreadableFileError(
            f"{path}: {container.format} audio that cannot be decoded ({error.error_string}); get a whole copy"
        ) from error


def _is_off(container: Container) -> bool:
    """Tell whether libsndfile would believe a header that is wrong, or take what follows the audio for a part of it."""
    return bool(container.mends) or container.end is not None


@contextlib.contextmanager
def _open_other(path: Path, container: Container) -> Iterator[Decoded]:
    """Open what soundfile does not read: by ffmpeg, else by torchcodec, always in this order."""
    if ffmpeg_version():
        with open_ffmpeg(path, container) as decoded:
            yield decoded
        return
    try:
        decoder = _torchcodec_decoder()
    except MissingBackendError as error:
        raise UnreadableFileError(
            f"{path}: {_OTHERS[container.format]} audio, which soundfile does not read, and neither the command ffmpeg "
            "nor the package torchcodec runs here; install FFmpeg (its command is enough), or convert the file to WAV "
            "or FLAC"
        ) from error
    version = importlib.metadata.version("torchcodec")
    yield _TorchCodec(_torchcodec_opened(decoder, path), path, container, f"torchcodec {version}")


@contextlib.contextmanager
def _open_ffmpeg(path: Path) -> Iterator[Decoded]:
    _ffmpeg_or_error()
    with open_ffmpeg(path, read_container(path)) as decoded:
        decoded.read_by = ""
        yield decoded


def _ffmpeg_or_error() -> str:
    """Return the version of ffmpeg."""
    if not (version := ffmpeg_version()):
        install = "the packages of your system, such as apt install ffmpeg"
        raise MissingBackendError("ffmpeg", "", "the decoder 'ffmpeg'", install=install)
    return version


class _SoundFile:
    read_by = ""

    def __init__(self, file: Any, path: Path, container: Container) -> None:
        self.rate, self.channels = file.samplerate, file.channels
        self.n_frames = file.frames if container.n_frames is None else container.n_frames
        self._file, self._path, self._container = file, path, container

    def blocks(self, size: int) -> Iterator[Block]:
        md5 = hashlib.md5(usedforsecurity=False)
        signed = bool(self._container.md5 and self._container.sample_bytes)
        n_frames = 0
        while len(block := self._file.read(size, dtype="int32" if signed else "float32", always_2d=True)):
            n_frames += len(block)
            if signed:
                md5.update(_flac_bytes(block, self._container.sample_bytes))
                block = block.astype(np.float32) * np.float32(2**-31)
            yield block
        if abs(n_frames - self.n_frames) > self._container.slack:
            raise UnreadableFileError(
                f"{self._path}: its header claims {self.n_frames} frames, {n_frames} were decoded; get a whole copy"
            )
        if signed and md5.digest() != self._container.md5:
            raise UnreadableFileError(
                f"{self._path}: its samples do not have the checksum that its FLAC header states; get a whole copy"
            )


def _flac_bytes(block: npt.NDArray[np.int32], sample_bytes: int) -> bytes:
    """Return samples as FLAC's checksum takes them: signed, little-endian, in as few bytes as they need."""
    samples = block.astype("<i4", order="C")
    if sample_bytes == 2:
        return samples.view("<i2")[:, 1::2].tobytes()
    octets = samples.view(np.uint8).reshape(-1, 4)
    return octets[:, 4 - sample_bytes :].tobytes()


_TORCHCODEC_SLACK_SEC = 0.1  # FFmpeg counts padding of AAC, Opus and MP3 on one side only


@contextlib.contextmanager
def _open_torchcodec(path: Path) -> Iterator[Decoded]:
    decoder = _torchcodec_decoder()
    container = read_container(path) if is_checked(path) else None
    yield _TorchCodec(_torchcodec_opened(decoder, path), path, container)


def _torchcodec_decoder() -> Any:
    """Return the class that decodes."""
    try:
        from torchcodec.decoders import AudioDecoder  # type: ignore[import-not-found,unused-ignore]
    except (ImportError, OSError, RuntimeError) as error:  # the last two where it does not find FFmpeg
        install = (
            "pip install torchcodec (for PyTorch without CUDA: 'torchcodec<0.14'), and FFmpeg with its shared libraries"
        )
        raise MissingBackendError("torchcodec", "", "the decoder 'torchcodec'", install=install) from error
    return AudioDecoder


def _torchcodec_opened(decoder: Any, path: Path) -> Any:
    try:
        return decoder(path)
    except (RuntimeError, ValueError) as error:
        raise UnreadableFileError(f"{path}: cannot be opened by torchcodec ({' '.join(str(error).split())})") from error


class _TorchCodec:
    """Decodes everything at once: FFmpeg reaches the end of some files only that way."""

    def __init__(self, decoder: Any, path: Path, container: Container | None, read_by: str = "") -> None:
        about = decoder.metadata
        self.rate, self.channels, self.read_by = about.sample_rate, about.num_channels, read_by
        self.n_frames: int | None = None
        if about.duration_seconds_from_header:
            self.n_frames = round(about.duration_seconds_from_header * self.rate)
        elif container is None:
            raise UnreadableFileError(
                f"{path}: states no length, so that a cut could not be seen; convert it to WAV or FLAC"
            )
        self._decoder, self._path = decoder, path

    def blocks(self, size: int) -> Iterator[Block]:
        try:
            samples: Block = self._decoder.get_all_samples().data.numpy().T
        except RuntimeError as error:
            raise UnreadableFileError(
                f"{self._path}: cannot be decoded by torchcodec ({' '.join(str(error).split())}); get a whole copy"
            ) from error
        if self.n_frames is not None and abs(len(samples) - self.n_frames) > _TORCHCODEC_SLACK_SEC * self.rate:
            raise UnreadableFileError(
                f"{self._path}: its header claims {self.n_frames} frames, {len(samples)} were decoded; get a whole copy"
            )
        yield from (samples[start : start + size] for start in range(0, len(samples), size))


OPENERS: dict[str, Callable[[Path], contextlib.AbstractContextManager[Decoded]]] = {
    "soundfile": _open_soundfile,
    "ffmpeg": _open_ffmpeg,
    "torchcodec": _open_torchcodec,
}
"""Decoder by name -> opens a file with it."""


def decoder_versions(decoder: str) -> dict[str, str]:
    """Return the versions of what decodes and resamples."""
    versions = {"soxr": importlib.metadata.version("soxr")}
    if decoder == "soundfile":
        import soundfile

        return versions | {"soundfile": soundfile.__version__, "libsndfile": soundfile.__libsndfile_version__}
    if decoder == "ffmpeg":
        return versions | {"ffmpeg": _ffmpeg_or_error()}
    try:
        return versions | {decoder: importlib.metadata.version(decoder)}
    except importlib.metadata.PackageNotFoundError:
        raise MissingBackendError(decoder, "", f"the decoder {decoder!r}", install=f"pip install {decoder}") from None
