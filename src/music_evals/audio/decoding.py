"""Decoders behind one face: blocks of samples out of a file that is whole."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from music_evals.audio.containers import Container, Mended, is_checked, read_container
from music_evals.errors import MissingBackendError, UnreadableFileError

TIMEOUT_SEC = 120.0  # half an hour of AAC takes five seconds to decode; a machine may be busy
VERSION_TIMEOUT_SEC = 20.0

_DEMUXERS: Final = {
    "WAV": "wav",
    "AIFF": "aiff",
    "FLAC": "flac",
    "OGG": "ogg",
    "MP3": "mp3",
    "MP4": "mov",
    "AAC": "aac",
    "MATROSKA": "matroska",
}
_AU_HEADER = struct.Struct(">4s5I")  # magic, where the samples begin, their bytes, coding, rate, channels
_AU_FLOAT = 6


@functools.cache
def ffmpeg_version() -> str:
    """Return the version of the command ffmpeg; empty where it is not installed, or does not run."""
    command = shutil.which("ffmpeg")
    if command is None:
        return ""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(  # noqa: S603 - a fixed command
            [command, "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_SEC, check=False
        )
        words = done.stdout.split()
        if done.returncode == 0 and words[:2] == ["ffmpeg", "version"]:
            return words[2]
    return ""


@contextlib.contextmanager
def open_ffmpeg(path: Path, container: Container) -> Iterator[FFmpegStream]:
    """Decode the first audio track of a file, whose container was walked, by the command."""
    with contextlib.ExitStack() as stack:
        messages = stack.enter_context(tempfile.TemporaryFile())
        mended = None
        if container.mends:  # it would take a header that claims more than there is for a cut
            mended = stack.enter_context(tempfile.TemporaryFile())
            with path.open("rb") as file:
                shutil.copyfileobj(Mended(file, container), mended)
            mended.seek(0)
        # The demuxer is named and nothing guessed from the content, so that no playlist makes it open other files; no
        # protocol is open but that of local files, or of its standard input. No shell is involved.
        protocol, name = ("pipe", "pipe:0") if container.mends else ("file", f"file:{path.absolute()}")
        source = ["-protocol_whitelist", protocol, "-f", _DEMUXERS[container.format], "-i", name]
        floats = ["-map", "0:a:0", "-map_metadata", "-1", "-c:a", "pcm_f32be", "-f", "au", "pipe:1"]
        command = ["ffmpeg", "-nostdin", "-hide_banner", "-v", "error", "-xerror", "-threads", "1", *source, *floats]
        stdin = subprocess.DEVNULL if mended is None else mended
        process = stack.enter_context(
            subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=messages)  # noqa: S603
        )
        stack.callback(process.kill)  # where nobody read on to the end
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(TIMEOUT_SEC, end)
        timer.daemon = True
        timer.start()
        stack.callback(timer.cancel)
        yield FFmpegStream(process, late, messages, path, container)


class FFmpegStream:
    """Samples as the command writes them: an AU stream of floats, which states rate and channels."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        late: threading.Event,
        messages: IO[bytes],
        path: Path,
        claims: Container,
    ) -> None:
        assert process.stdout is not None  # it is a pipe
        self._process, self._late, self._samples = process, late, process.stdout
        self._messages, self._path, self._container = messages, path, claims
        head = self._samples.read(_AU_HEADER.size)
        if len(head) < _AU_HEADER.size:
            self._check_end()
            raise UnreadableFileError(f"{path}: ffmpeg found no audio in it")
        magic, start, _, coding, self.rate, self.channels = _AU_HEADER.unpack(head)
        if magic != b".snd" or coding != _AU_FLOAT or start < len(head):
            raise UnreadableFileError(f"{path}: ffmpeg wrote no AU header; convert the file to WAV or FLAC")
        self._samples.read(start - len(head))
        self.n_frames = claims.n_frames
        self.read_by = f"ffmpeg {ffmpeg_version()}"

    def blocks(self, size: int) -> Iterator[npt.NDArray[np.floating[Any]]]:
        """Yield samples of shape (<= size, channels) up to the end."""
        n_frames = 0
        while content := self._samples.read(4 * self.channels * size):
            block = np.frombuffer(content[: len(content) // (4 * self.channels) * 4 * self.channels], ">f4")
            n_frames += len(block) // self.channels
            yield block.reshape(-1, self.channels).astype(np.float32)
        self._check_end()
        if self.n_frames is not None and abs(n_frames - self.n_frames) > self._container.slack:
            raise UnreadableFileError(
                f"{self._path}: its header claims {self.n_frames} frames, {n_frames} were decoded; get a whole copy"
            )

    def _check_end(self) -> None:
        status = self._process.wait()
        if self._late.is_set():
            raise UnreadableFileError(f"{self._path}: ffmpeg did not decode it within {TIMEOUT_SEC:g} s")
        if status:
            self._messages.seek(0)
            lines = self._messages.read(100_000).decode(errors="replace").strip().splitlines() or ["no message"]
            if any("matches no streams" in line for line in lines):
                raise UnreadableFileError(f"{self._path}: holds no audio track; get a copy with its sound")
            raise UnreadableFileError(f"{self._path}: cannot be decoded by ffmpeg ({lines[0]}); get a whole copy")


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
        # libsndfile would believe a header that is wrong, or take what follows the audio for a part of it
        with (
            path.open("rb") as raw,
            Forward(Mended(raw, container) if container.mends or container.end is not None else path) as file,
        ):
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
