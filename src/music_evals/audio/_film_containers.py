"""Containers that libsndfile does not read: MP4, AAC in ADTS frames, WebM and Matroska."""

from __future__ import annotations

import struct
from typing import IO

from music_evals.audio._container import Container, ContradictionError, check_tail, only_zeros

__all__ = ["aac_frame_bytes", "walk_aac", "walk_matroska", "walk_mp4"]

_MAX_BOXES = 10_000  # a hostile file may consist of nothing else
_MAX_ELEMENTS = 500_000  # half an hour of WebM out of a browser holds 90,000 blocks of 20 ms


def walk_mp4(file: IO[bytes], n_bytes: int) -> Container:
    """Walk the boxes of an MP4 file (ISO/IEC 14496-12, 4.2); fragments are boxes too."""
    start = 0
    found: set[bytes] = set()
    for _ in range(_MAX_BOXES):
        if start + 8 > n_bytes:
            break
        file.seek(start)
        size, name = struct.unpack(">I4s", file.read(8))
        if not all(0x20 <= byte < 0x7F for byte in name):
            if found and only_zeros(file, start):
                break
            raise ContradictionError(f"no MP4 box at byte {start}, where the next should be")
        if size == 1:
            size = int(struct.unpack(">Q", file.read(8))[0])
        elif size == 0:  # the last box, as far as the file goes
            size = n_bytes - start
        if size < 8 or start + size > n_bytes:
            raise ContradictionError(f"its box {name.decode()!r} claims {size} bytes, {n_bytes - start} are there")
        found.add(name)
        start += size
    else:
        raise ContradictionError(f"more than {_MAX_BOXES} boxes")
    if not {b"moov", b"mdat"} <= found:
        raise ContradictionError("an MP4 file without a moov and an mdat box")
    return Container("MP4")


def walk_aac(file: IO[bytes], start: int, n_bytes: int) -> Container:
    """Walk ADTS frames; a file that was cut exactly between two of them cannot be told from a shorter one."""
    while start < n_bytes:
        file.seek(start)
        size = aac_frame_bytes(head := file.read(12))
        if not size:
            check_tail(head, start, "AAC")
            break
        start += size
    if start > n_bytes:
        raise ContradictionError("its last AAC frame is cut")
    return Container("AAC")


def aac_frame_bytes(head: bytes) -> int:
    """Return the size of the ADTS frame with this header (ISO/IEC 13818-7, 6.2); 0 if it is none."""
    if len(head) < 7 or head[0] != 0xFF or head[1] & 0xF6 != 0xF0 or head[2] >> 2 & 0xF > 12:
        return 0
    size = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5
    return size if size >= 7 else 0


_MASTERS = {0x18538067, 0x1F43B675}  # Segment and Cluster, whose size may be unknown


def walk_matroska(file: IO[bytes], start: int, n_bytes: int) -> Container:
    """Walk the elements of a WebM or Matroska file; one that a browser recorded states no length of the whole."""
    n_elements = 0
    while start < n_bytes:
        file.seek(start)
        head = file.read(12)
        name, used = _ebml_number(head, marked=True)
        size, more = _ebml_number(head[used:], marked=False)
        if not used or not more:
            if n_elements and only_zeros(file, start):
                break
            raise ContradictionError(f"no WebM element at byte {start}, or one that is cut")
        n_elements += 1
        if n_elements > _MAX_ELEMENTS:
            raise ContradictionError(f"more than {_MAX_ELEMENTS} elements")
        start += used + more
        unknown = size == (1 << 7 * more) - 1
        if not unknown and start + size > n_bytes:
            raise ContradictionError(f"its element {name:X} claims {size} bytes, {n_bytes - start} are there")
        if unknown and name not in _MASTERS:
            raise ContradictionError(f"its element {name:X} states no size")
        start += 0 if unknown else size  # the elements in one of unknown size are walked as if they followed it
    return Container("MATROSKA")


def _ebml_number(content: bytes, *, marked: bool) -> tuple[int, int]:
    """Return a number of EBML (RFC 8794, section 4), with its marker bit or without, and its bytes; 0 if it is none."""
    n = 9 - content[0].bit_length() if content and content[0] else 0
    if not n or len(content) < n:
        return 0, 0
    number = int.from_bytes(content[:n], "big")
    return (number if marked else number & (1 << 7 * n) - 1), n
