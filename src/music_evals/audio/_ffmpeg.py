"""The command ffmpeg as a decoder: what soundfile does not read, where it is installed.

It gets one file, whose container was walked before (`audio._containers`), and the name of the one demuxer that may read
it: nothing is guessed from the content, so that no playlist makes it open other files, and no protocol but that of
local files is open to it. A file whose header has to be mended comes as its standard input, and no other protocol is
open then. No shell is involved, and it ends after `TIMEOUT_SEC` at the latest.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from music_evals.audio._container import Container, Mended
from music_evals.errors import UnreadableFileError

__all__ = ["FFmpegStream", "ffmpeg_version", "open_ffmpeg"]

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
        process = stack.enter_context(_running(_command(path, container), mended, messages))
        yield FFmpegStream(process, messages, path, container)


def _command(path: Path, container: Container) -> list[str]:
    protocol, name = ("pipe", "pipe:0") if container.mends else ("file", f"file:{path.absolute()}")
    source = ["-protocol_whitelist", protocol, "-f", _DEMUXERS[container.format], "-i", name]
    floats = ["-map", "0:a:0", "-map_metadata", "-1", "-c:a", "pcm_f32be", "-f", "au", "pipe:1"]
    return ["ffmpeg", "-nostdin", "-hide_banner", "-v", "error", "-xerror", "-threads", "1", *source, *floats]


@contextlib.contextmanager
def _running(command: list[str], content: IO[bytes] | None, messages: IO[bytes]) -> Iterator[_Process]:
    stdin = subprocess.DEVNULL if content is None else content
    with subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=messages) as popen:  # noqa: S603
        process = _Process(popen)
        try:
            yield process
        finally:
            process.kill()  # where nobody read on to the end


class _Process:
    """The running command, which is killed when its time is over."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self.late = False
        self._timer = threading.Timer(TIMEOUT_SEC, self._end)
        self._timer.daemon = True
        self._timer.start()

    def read(self, n_bytes: int) -> bytes:
        if self._popen.stdout is None:
            return b""
        return self._popen.stdout.read(n_bytes)

    def wait(self) -> int:
        return self._popen.wait()

    def kill(self) -> None:
        self._timer.cancel()
        self._popen.kill()

    def _end(self) -> None:
        self.late = True
        self._popen.kill()


class FFmpegStream:
    """Samples as the command writes them: an AU stream of floats, which states rate and channels."""

    def __init__(self, process: _Process, messages: IO[bytes], path: Path, container: Container) -> None:
        self._process, self._messages, self._path, self._container = process, messages, path, container
        head = process.read(_AU_HEADER.size)
        if len(head) < _AU_HEADER.size:
            self._check_end()
            raise UnreadableFileError(f"{path}: ffmpeg found no audio in it")
        magic, start, _, coding, self.rate, self.channels = _AU_HEADER.unpack(head)
        if magic != b".snd" or coding != _AU_FLOAT or start < len(head):
            raise UnreadableFileError(f"{path}: ffmpeg wrote no AU header; convert the file to WAV or FLAC")
        process.read(start - len(head))
        self.n_frames = container.n_frames
        self.read_by = f"ffmpeg {ffmpeg_version()}"

    def blocks(self, size: int) -> Iterator[npt.NDArray[np.floating[Any]]]:
        """Yield samples of shape (<= size, channels) up to the end."""
        n_frames = 0
        while content := self._process.read(4 * self.channels * size):
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
        if self._process.late:
            raise UnreadableFileError(f"{self._path}: ffmpeg did not decode it within {TIMEOUT_SEC:g} s")
        if status:
            self._messages.seek(0)
            lines = self._messages.read(100_000).decode(errors="replace").strip().splitlines() or ["no message"]
            if any("matches no streams" in line for line in lines):
                raise UnreadableFileError(f"{self._path}: holds no audio track; get a copy with its sound")
            raise UnreadableFileError(f"{self._path}: cannot be decoded by ffmpeg ({lines[0]}); get a whole copy")
