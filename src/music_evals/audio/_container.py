"""What every walk through a container needs: what it finds, how it fails, what may follow the end."""

from __future__ import annotations

import dataclasses
import os
from typing import IO

__all__ = ["CONVERT", "COPY", "Container", "ContradictionError", "Mended", "check_tail", "only_zeros"]


@dataclasses.dataclass(frozen=True)
class Container:
    """What a container claims."""

    format: str  # ``"WAV"``, ``"AIFF"``, ``"FLAC"``, ``"OGG"``, ``"MP3"``, ``"MP4"``, ``"AAC"`` or ``"MATROSKA"``
    n_frames: int | None = None  # samples a channel, or None where the container does not count them
    slack: int = 0  # by how many more or fewer an honest file may decode
    md5: bytes = b""  # FLAC: digest of the samples; empty if missing
    sample_bytes: int = 0  # FLAC: bytes of one sample in that digest
    mends: tuple[tuple[int, bytes], ...] = ()  # WAV, AIFF: where the header should say something else, and what
    end: int | None = None  # WAV, AIFF: where the file should end; None where it does


class Mended:
    """A file with the header that it should have, and without what follows its end."""

    def __init__(self, file: IO[bytes], container: Container) -> None:
        self._file, self._mends, self._at = file, container.mends, 0
        self._end = os.fstat(file.fileno()).st_size if container.end is None else container.end

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._end)[whence]
        return self._at

    def read(self, n_bytes: int = -1) -> bytes:
        start, left = self._at, max(self._end - self._at, 0)
        self._file.seek(start)
        content = bytearray(self._file.read(left if n_bytes < 0 else min(n_bytes, left)))
        for at, new in self._mends:
            for place, byte in enumerate(new, at - start):
                if 0 <= place < len(content):
                    content[place] = byte
        self._at += len(content)
        return bytes(content)


COPY = "get a whole copy"
CONVERT = "convert it to WAV or FLAC if it is audio of another kind"


class ContradictionError(Exception):
    """A container does not hold what it claims."""

    def __init__(self, reason: str, remedy: str = COPY) -> None:
        super().__init__(reason)
        self.remedy = remedy


def only_zeros(file: IO[bytes], start: int) -> bool:
    """Tell whether a file holds nothing but zeros from here on."""
    file.seek(start)
    return not any(any(block) for block in iter(lambda: file.read(1 << 16), b""))


_TAGS = (b"TAG", b"APETAGEX", b"LYRICSBEGIN", b"ID3")  # what may follow the last frame


def check_tail(tail: bytes, start: int, kind: str) -> None:
    """Raise unless what follows the last frame is a tag, or zeros."""
    if not tail.startswith(_TAGS) and any(tail):
        raise ContradictionError(f"no {kind} frame at byte {start}, where the next should be")
