"""What a file's container says about its length, read without decoding it.

libsndfile reads what is left of a cut WAV, AIFF, Ogg or MP3 file, counts what is there where the header claims more or
less, leaves damaged Ogg pages and MP3 frames out and compares no checksum of FLAC, all without a word; what soundfile
shows of a file is already mended (tests hold it to each of these). So each container is walked here first, and a file
that holds less than it claims, or more, is refused:

- WAV (RIFF, RF64) and AIFF: the audio chunk must lie in the file, and what follows it must be chunks too, up to where
  the header says that all ends; what lies beyond, and zeros anywhere, are no concern of the audio. A WAV file that was
  written into a pipe states no bytes of audio, or about 2 or 4 GiB of it (`_UNSTATED_SIZES`), and is read as far as it
  goes: a cut cannot be seen.
- Ogg: one stream whose pages follow one another, have the right checksum, and end with a last page.
- MP3: frame after frame up to the end, the last one whole, as many as a Xing, Info or VBRI header counts. An MP3 file
  without such a header that was cut exactly between two frames cannot be distinguished from a shorter one.
- FLAC: states its length and the MD5 of its samples, which are compared with what was decoded.
- MP4 (m4a), AAC in ADTS frames, WebM and Matroska, which libsndfile does not read: boxes, frames or elements follow one
  another, and the last one is whole. What states no length is read as far as it goes, as a WAV file is.
"""

from __future__ import annotations

import dataclasses
import os
import struct
import zlib
from pathlib import Path
from typing import IO

from music_evals.errors import UnreadableFileError


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
        """Return the place in the file."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place in the file as it should be."""
        self._at = offset + (0, self._at, self._end)[whence]
        return self._at

    def read(self, n_bytes: int = -1) -> bytes:
        """Read on, with the bytes that the header should have."""
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


def read_container(path: Path) -> Container:
    """Return what the container of a file claims."""
    try:
        with path.open("rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size)
    except (ContradictionError, struct.error) as error:
        reason = "its header is cut" if isinstance(error, struct.error) else str(error)
        raise UnreadableFileError(f"{path}: {reason}; {getattr(error, 'remedy', COPY)}") from error


class _UnstatedError(ContradictionError):
    """A container does not say how long it is, as when it was written into a pipe."""

    def __init__(self) -> None:
        super().__init__(
            "its header states no length, so that a cut could not be seen", "write it to a file, not a pipe"
        )


_UNCHECKED = (b"caff", b"riff", b".snd", b"\x30\x26\xb2\x75")  # CAF, Wave64, AU, ASF


def is_checked(path: Path) -> bool:
    """Tell whether `read_container` walks a file; False for a few kinds of audio that it does not know."""
    with path.open("rb") as file:
        magic, start = _start(file)
    if not (kind := _format(magic, start)) and not magic.startswith(_UNCHECKED):
        # text, as playlists are, would make a decoder open other files
        raise UnreadableFileError(f"{path}: starts as no kind of audio; {CONVERT}")
    return bool(kind)


def _read(file: IO[bytes], n_bytes: int) -> Container:
    magic, start = _start(file)
    match _format(magic, start):
        case "WAV":
            return _wav(file, start + 12, n_bytes, ">" if magic[:4] == b"RIFX" else "<")
        case "AIFF":
            return _aiff(file, start + 12, n_bytes, compressed=magic[8:] == b"AIFC")
        case "FLAC":
            file.seek(start + 18)  # after the marker, the block's header, block and frame sizes
            packed, md5 = struct.unpack(">Q16s", file.read(24))
            bits = (packed >> 36 & 0x1F) + 1
            n_frames = packed & (1 << 36) - 1
            if not n_frames:
                raise _UnstatedError
            return Container(
                "FLAC", n_frames, md5=md5 if any(md5) else b"", sample_bytes=bits // 8 if bits % 8 == 0 else 0
            )
        case "OGG":
            return _ogg(file, start, n_bytes)
        case "MP3":
            return _mp3(file, start, n_bytes)
        case "MP4":
            return _walk_mp4(file, n_bytes)
        case "AAC":
            return _walk_aac(file, start, n_bytes)
        case "MATROSKA":
            return _walk_matroska(file, start, n_bytes)
    problem = "no WAV, FLAC, Ogg, MP3, AIFF, MP4, AAC or WebM audio, whatever its name says" if magic else "empty"
    raise ContradictionError(problem, CONVERT)


def _start(file: IO[bytes]) -> tuple[bytes, int]:
    """Return the first bytes after the ID3v2 tags, and where they stand."""
    start = 0
    while True:
        file.seek(start)
        magic = file.read(12)
        if magic[:3] != b"ID3" or len(magic) < 10:
            return magic, start
        size = magic[6] << 21 | magic[7] << 14 | magic[8] << 7 | magic[9]  # seven bits a byte
        start += 10 + size + (10 if magic[5] & 0x10 else 0)


def _format(magic: bytes, start: int) -> str:
    if magic[:4] in {b"RIFF", b"RIFX", b"RF64"} and magic[8:] == b"WAVE":
        return "WAV"
    if magic[:4] == b"FORM" and magic[8:] in {b"AIFF", b"AIFC"}:
        return "AIFF"
    if magic[:4] in _FIRST_BYTES:
        return _FIRST_BYTES[magic[:4]]
    if magic[4:8] == b"ftyp":
        return "MP4"
    if _aac_frame_bytes(magic):
        return "AAC"
    return "MP3" if start or _mp3_header(magic[:4]) else ""


_FIRST_BYTES = {b"fLaC": "FLAC", b"OggS": "OGG", b"\x1aE\xdf\xa3": "MATROSKA"}


# --- WAV and AIFF ----------------------------------------------------------------------------------------------------

_UNSTATED = 0xFFFFFFFF
# What writes into a pipe states the most that it can. Up to 2 GiB: sox 0x7FFFF000 less what is no whole frame, arecord
# 0x7FFFFF00, LAME 0x7FFFFFFF; up to 4 GiB: ffmpeg 0xFFFFFFFF, others that less the bytes of a header.
_UNSTATED_SIZES = (range(0x7FFFF000 - 63, 0x80000001), range(0xFFFFFF00, 0x100000000))
_MAX_CHUNKS = 10_000  # a hostile file may consist of nothing else


def _chunks(file: IO[bytes], start: int, n_bytes: int, order: str) -> tuple[dict[bytes, tuple[int, int]], int]:
    """Return start and size of the first chunk of each name, the audio's within the file, and where all end."""
    chunks: dict[bytes, tuple[int, int]] = {}
    end = _form_end(file, start, order)
    long = None  # size of the audio chunk, where a 64-bit header states it
    audio = False
    n_chunks = 0
    while start + 8 <= n_bytes and not (audio and start >= end):
        file.seek(start)
        name, size = struct.unpack(f"{order}4sI", file.read(8))
        if not all(0x20 <= byte < 0x7F for byte in name):
            if audio and only_zeros(file, start):
                break
            raise ContradictionError(f"{n_bytes - start} bytes follow the last chunk that its header accounts for")
        if name == b"ds64":
            long = int(struct.unpack("<8xQ", file.read(16))[0])
        start += 8
        if name in {b"data", b"SSND"} and not audio:
            audio = True
            size = _audio_size(file, name, long if size == _UNSTATED and long is not None else size, start, n_bytes)
        chunks.setdefault(name, (start, size))
        n_chunks += 1
        if n_chunks > _MAX_CHUNKS:
            raise ContradictionError(f"more than {_MAX_CHUNKS} chunks")
        start += size
        file.seek(start)
        if size % 2 and file.read(1) == b"\0":  # padded to an even size; some writers forget it
            start += 1
    file.seek(start)
    if file.read(4) in {b"RIFF", b"RIFX", b"RF64"}:
        raise ContradictionError("several WAV files one after the other", "split them")
    return chunks, start


def _form_end(file: IO[bytes], start: int, order: str) -> int:
    """Return where the header says that all chunks end; beyond any file where it does not say."""
    file.seek(start - 8)
    size = int(struct.unpack(f"{order}I", file.read(4))[0])
    return start - 4 + size if 0 < size < _UNSTATED else 1 << 64


def _audio_size(file: IO[bytes], name: bytes, size: int, start: int, n_bytes: int) -> int:
    there = n_bytes - start
    unstated = size in {_UNSTATED, 2**64 - 1} or (size > there and any(size in sizes for sizes in _UNSTATED_SIZES))
    if unstated or (size == 0 and there and not _chunk_follows(file, start, there)):
        if name == b"SSND":
            raise _UnstatedError
        return there  # written into a pipe
    if size > there:
        raise ContradictionError(f"its header claims {size} bytes of audio, {there} are there")
    return size


def _chunk_follows(file: IO[bytes], start: int, there: int) -> bool:
    """Tell whether what follows an audio chunk of no bytes is a chunk, and not the audio itself."""
    file.seek(start)
    name, size = struct.unpack("<4sI", file.read(8).ljust(8, b"\0"))
    return all(0x20 <= byte < 0x7F for byte in name) and size + 8 <= there


def _wav(file: IO[bytes], start: int, n_bytes: int, order: str) -> Container:
    chunks, end = _chunks(file, start, n_bytes, order)
    if b"fmt " not in chunks or b"data" not in chunks:
        raise ContradictionError("a WAV file without a fmt and a data chunk")
    file.seek(chunks[b"fmt "][0])
    tag, block_align = struct.unpack(f"{order}H10xH", file.read(14))
    plain = tag in {1, 3, 0xFFFE} and block_align  # whole numbers, floats, extensible
    n_frames = chunks[b"data"][1] // block_align if plain else None
    mends = _wav_mends(file, start, chunks, order, frame_bytes=block_align if plain else 1)
    return Container("WAV", n_frames, mends=mends, end=end if end < n_bytes else None)


def _wav_mends(
    file: IO[bytes], start: int, chunks: dict[bytes, tuple[int, int]], order: str, *, frame_bytes: int
) -> tuple[tuple[int, bytes], ...]:
    """Return what the header of a file from a pipe should say, for decoders that believe it: whole frames."""
    at, size = chunks[b"data"]
    file.seek(at - 4)
    stated = int(struct.unpack(f"{order}I", file.read(4))[0])
    if b"ds64" in chunks:
        place = chunks[b"ds64"][0]
        file.seek(place + 8)
        if struct.unpack("<Q", file.read(8))[0] == size:
            return ()
        size -= size % frame_bytes
        return (place, struct.pack("<2Q", at + size - 8, size)), (at - 4, b"\xff" * 4)
    if stated == size or at + size > _UNSTATED:
        return ()
    size -= size % frame_bytes
    return (start - 8, struct.pack(f"{order}I", at + size - 8)), (at - 4, struct.pack(f"{order}I", size))


_PLAIN_AIFF = {b"NONE", b"sowt", b"twos", b"raw ", b"in24", b"in32", b"fl32", b"FL32", b"fl64", b"FL64"}


def _aiff(file: IO[bytes], start: int, n_bytes: int, *, compressed: bool) -> Container:
    chunks, end = _chunks(file, start, n_bytes, ">")
    if b"COMM" not in chunks or b"SSND" not in chunks:
        raise ContradictionError("an AIFF file without a COMM and an SSND chunk")
    file.seek(chunks[b"COMM"][0] + 2)
    n_frames = int(struct.unpack(">I", file.read(4))[0])
    coding = file.read(16)[12:] if compressed else b"NONE"
    return Container("AIFF", n_frames if coding in _PLAIN_AIFF else None, end=end if end < n_bytes else None)


# --- FLAC ------------------------------------------------------------------------------------------------------------


# --- Ogg -------------------------------------------------------------------------------------------------------------

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def _ogg(file: IO[bytes], start: int, n_bytes: int) -> Container:
    serial, page, last = None, 0, False
    file.seek(start)
    while (position := file.tell()) < n_bytes:
        if last:
            raise ContradictionError("several Ogg streams one after the other", "split them")
        content = _ogg_page(file, position)
        flags, number, sequence = struct.unpack("<5xB8xII", content[:22])
        if serial not in {None, number}:
            raise ContradictionError("several Ogg streams in one another", "extract the one that is meant")
        if sequence != page:
            raise ContradictionError(f"Ogg page {page} is missing")
        serial, page, last = number, page + 1, bool(flags & 4)
    if not last:
        raise ContradictionError("its last Ogg page is missing")
    return Container("OGG")


def _ogg_page(file: IO[bytes], position: int) -> bytes:
    """Return a page that is whole and whose checksum is right."""
    head = file.read(27)
    if head[:4] != b"OggS":
        raise ContradictionError(f"no Ogg page at byte {position}")
    sizes = file.read(head[26] if len(head) == 27 else 0)
    body = file.read(sum(sizes))
    if len(head) < 27 or len(sizes) < head[26] or len(body) < sum(sizes):
        raise ContradictionError(f"the Ogg page at byte {position} is cut")
    content = head[:22] + bytes(4) + head[26:] + sizes + body
    # the CRC of RFC 3533: polynomial 0x04C11DB7, first bit first, which is zlib's on mirrored bytes
    mirrored = zlib.crc32(content.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    if int(f"{mirrored:032b}"[::-1], 2) != struct.unpack("<I", head[22:26])[0]:
        raise ContradictionError(f"the Ogg page at byte {position} is damaged")
    return content


# --- MP3 -------------------------------------------------------------------------------------------------------------

# kbit/s by index, ISO/IEC 11172-3 and 13818-3, layer III; index 0 (free format) and 15 are not read
_BITRATES = {
    1: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0),
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0),
}
_RATES = (44100, 48000, 32000, 0)
_SLACK = 5  # frames; encoders put delay and padding around the music, decoders take it away


@dataclasses.dataclass(frozen=True)
class _Mp3Frame:
    n_bytes: int
    n_samples: int
    rate: int
    count_at: int  # where a Xing header would stand in the frame


def _mp3_header(head: bytes) -> _Mp3Frame | None:
    """Read the header of a layer III frame; None if invalid."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE6 != 0xE2 or head[1] & 0x18 == 0x08:
        return None
    first = head[1] & 0x18 == 0x18  # MPEG 1; else 2, or 2.5 at a quarter of its rates
    bitrate = _BITRATES[1 if first else 2][head[2] >> 4]
    rate = _RATES[head[2] >> 2 & 3] // (1 if first else 2 if head[1] & 0x10 else 4)
    if not bitrate or not rate:
        return None
    n_samples = 1152 if first else 576
    mono = head[3] >> 6 == 3
    side = (17 if mono else 32) if first else (9 if mono else 17)
    return _Mp3Frame(n_samples * bitrate * 125 // rate + (head[2] >> 1 & 1), n_samples, rate, 4 + side)


def _mp3(file: IO[bytes], start: int, n_bytes: int) -> Container:
    start = _skip_zeros(file, start)
    first, counted, n_frames = None, None, 0
    while start < n_bytes:
        file.seek(start)
        frame = _mp3_header(head := file.read(4))
        if frame is None:
            check_tail(head + file.read(8), start, "MP3")
            break
        content = head + file.read(frame.n_bytes - 4)
        if len(content) < frame.n_bytes:
            raise ContradictionError("its last MP3 frame is cut")
        if first is None:
            first, counted = frame, _mp3_count(content, frame)
        if frame.rate != first.rate:
            raise ContradictionError(
                f"its sample rate changes from {first.rate} to {frame.rate} Hz at byte {start}", "split it there"
            )
        n_frames += 1
        start += frame.n_bytes
    if first is None:
        raise ContradictionError("no MP3 frame where the first should be")
    if counted is not None and n_frames - 1 not in counted:
        raise ContradictionError(f"its header counts {counted.stop - 1} MP3 frames, {n_frames - 1} are there")
    return Container("MP3", n_frames * first.n_samples, slack=_SLACK * first.n_samples)


def _skip_zeros(file: IO[bytes], start: int) -> int:
    file.seek(start)
    while block := file.read(1 << 16):
        rest = block.lstrip(b"\0")
        if rest:
            return start + len(block) - len(rest)
        start += len(block)
    return start


def _mp3_count(content: bytes, frame: _Mp3Frame) -> range | None:
    """Return how many frames may follow the first one, or None if it does not count them."""
    # LAME and FFmpeg do not count the frame that holds the count; of other encoders that is not known.
    own = 0 if b"LAME" in content or b"Lav" in content else 1
    xing = content[frame.count_at : frame.count_at + 12]
    vbri = content[36:54]
    if xing[:4] in {b"Xing", b"Info"} and len(xing) == 12 and xing[7] & 1:
        count = int.from_bytes(xing[8:], "big")
    elif vbri[:4] == b"VBRI" and len(vbri) == 18:
        count = int.from_bytes(vbri[14:], "big")
    else:
        return None
    return range(count - own, count + 1)


# Containers that libsndfile does not read: MP4, AAC in ADTS frames, WebM and Matroska.


_MAX_BOXES = 10_000  # a hostile file may consist of nothing else
_MAX_ELEMENTS = 500_000  # half an hour of WebM out of a browser holds 90,000 blocks of 20 ms


def _walk_mp4(file: IO[bytes], n_bytes: int) -> Container:
    """Walk the boxes of an MP4 file (ISO/IEC 14496-12, 4.2); fragments are boxes too."""
    start = 0
    boxes: set[bytes] = set()
    for _ in range(_MAX_BOXES):
        if start + 8 > n_bytes:
            break
        file.seek(start)
        size, name = struct.unpack(">I4s", file.read(8))
        if not all(0x20 <= byte < 0x7F for byte in name):
            if boxes and only_zeros(file, start):
                break
            raise ContradictionError(f"no MP4 box at byte {start}, where the next should be")
        if size == 1:
            size = int(struct.unpack(">Q", file.read(8))[0])
        elif size == 0:  # the last box, as far as the file goes
            size = n_bytes - start
        if size < 8 or start + size > n_bytes:
            raise ContradictionError(f"its box {name.decode()!r} claims {size} bytes, {n_bytes - start} are there")
        boxes.add(name)
        start += size
    else:
        raise ContradictionError(f"more than {_MAX_BOXES} boxes")
    if not {b"moov", b"mdat"} <= boxes:
        raise ContradictionError("an MP4 file without a moov and an mdat box")
    return Container("MP4")


def _walk_aac(file: IO[bytes], start: int, n_bytes: int) -> Container:
    """Walk ADTS frames; a file that was cut exactly between two of them cannot be told from a shorter one."""
    while start < n_bytes:
        file.seek(start)
        size = _aac_frame_bytes(head := file.read(12))
        if not size:
            check_tail(head, start, "AAC")
            break
        start += size
    if start > n_bytes:
        raise ContradictionError("its last AAC frame is cut")
    return Container("AAC")


def _aac_frame_bytes(head: bytes) -> int:
    """Return the size of the ADTS frame with this header (ISO/IEC 13818-7, 6.2); 0 if invalid."""
    if len(head) < 7 or head[0] != 0xFF or head[1] & 0xF6 != 0xF0 or head[2] >> 2 & 0xF > 12:
        return 0
    size = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5
    return size if size >= 7 else 0


_MASTERS = {0x18538067, 0x1F43B675}  # Segment and Cluster, whose size may be unknown


def _walk_matroska(file: IO[bytes], start: int, n_bytes: int) -> Container:
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
    """Return a number of EBML (RFC 8794, section 4), with its marker bit or without, and its bytes; 0 if invalid."""
    n = 9 - content[0].bit_length() if content and content[0] else 0
    if not n or len(content) < n:
        return 0, 0
    number = int.from_bytes(content[:n], "big")
    return (number if marked else number & (1 << 7 * n) - 1), n
