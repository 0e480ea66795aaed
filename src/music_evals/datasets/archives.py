"""Score files of a user's archive: read member by member, never unpacked to disk."""

from __future__ import annotations

import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from music_evals.errors import FileTooLargeError, MusicEvalsError, NoDataError, UnreadableFileError
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits
from music_evals.symbolic.reading.mxl import ARCHIVE_ERRORS

MAX_MEMBERS = 200_000
MAX_TOTAL_BYTES = 4 * 2**30


def read_archive(
    path: Path,
    suffixes: frozenset[str],
    *,
    limits: Limits = DEFAULT_LIMITS,
    progress: Callable[[int], object] | None = None,
) -> list[tuple[str, bytes]]:
    """Return name and content of the files of some kinds in a tar or zip archive, sorted by name.

    Nothing is written. Links and devices hold no score and are passed over; a path that leaves the archive, a file or
    a whole that is too large, or too many files refuse the archive: it is not what it should be. Suffixes are in lower
    case; `progress` is called with the number of files read.
    """
    if not path.is_file():
        raise NoDataError(f"{path}: no such file; check the path")
    contents: dict[str, bytes] = {}
    try:
        members = _zip_members if zipfile.is_zipfile(path) else _tar_members
        for name, content in members(path, suffixes, limits):
            if name in contents:
                raise UnreadableFileError(f"{path}: holds {name!r} more than once; it is not clear which one is meant")
            contents[name] = content
            if progress is not None:
                progress(len(contents))
    except MusicEvalsError:
        raise
    except (*ARCHIVE_ERRORS, OSError, lzma.LZMAError, tarfile.TarError) as error:
        raise UnreadableFileError(f"{path}: not an archive that can be read ({error})") from error
    if not contents:
        raise NoDataError(f"{path}: holds no file that ends in {' or '.join(sorted(suffixes))}")
    return sorted(contents.items())


def _tar_members(path: Path, suffixes: frozenset[str], limits: Limits) -> Iterator[tuple[str, bytes]]:
    total = 0
    with tarfile.open(path) as archive:
        for number, member in enumerate(archive):
            total += member.size  # of those too that are passed over: they are unpacked on the way
            _check_member(member.name, number, total, path)
            if member.isfile() and _suffix(member.name) in suffixes:
                file = archive.extractfile(member)
                if file is not None:
                    yield member.name, _bounded(file.read(limits.max_bytes + 1), member.name, path, limits)
        # a packing says only at its very end whether all of it was whole
        while archive.fileobj is not None and (rest := archive.fileobj.read(1 << 20)):
            total += len(rest)
            _check_total(total, path)


def _zip_members(path: Path, suffixes: frozenset[str], limits: Limits) -> Iterator[tuple[str, bytes]]:
    total = 0
    with zipfile.ZipFile(path) as archive:
        for number, member in enumerate(archive.infolist()):
            _check_member(member.filename, number, total, path)
            if not member.is_dir() and _suffix(member.filename) in suffixes:
                with archive.open(member) as file:  # the size in the table of contents may be a lie
                    content = _bounded(file.read(limits.max_bytes + 1), member.filename, path, limits)
                total += len(content)
                yield member.filename, content


def _check_member(name: str, number: int, total: int, path: Path) -> None:
    inside = PurePosixPath(name.replace("\\", "/"))
    if not name:
        raise UnreadableFileError(f"{path}: member {number + 1} has no name; the archive is damaged, pack it anew")
    if inside.is_absolute() or ".." in inside.parts:
        raise UnreadableFileError(f"{path}: holds the path {name!r}, which leaves the archive; it is not used")
    if number >= MAX_MEMBERS:
        raise UnreadableFileError(f"{path}: holds more than {MAX_MEMBERS} files; it is not used")
    _check_total(total, path)


def _check_total(total: int, path: Path) -> None:
    if total > MAX_TOTAL_BYTES:
        raise FileTooLargeError(
            f"{path}: holds more than {MAX_TOTAL_BYTES} bytes", name=path.name, unit="bytes", limit=MAX_TOTAL_BYTES
        )


def _bounded(content: bytes, name: str, path: Path, limits: Limits) -> bytes:
    if len(content) > limits.max_bytes:
        raise FileTooLargeError(
            f"{path}: {name} has more than {limits.max_bytes} bytes (Limits.max_bytes)",
            name=name,
            unit="bytes",
            limit=limits.max_bytes,
        )
    return content


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()
