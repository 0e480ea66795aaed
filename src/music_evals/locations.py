"""Where input lies: on this machine, or at a URL that fsspec opens; the only place that parses URLs.

A text with a scheme in front, such as ``s3://bucket/songs/a.wav``, is a URL unless a path of that name exists.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath, PurePosixPath
from typing import Final

from music_evals.errors import InvalidInputError, MusicEvalsError, OutputError, UnreadableFileError, worded
from music_evals.files import check_path, reading
from music_evals.remote import HASH_DIGITS, WEB, Remote, without_secrets

__all__ = [
    "HASH_DIGITS",
    "SCHEMES",
    "Location",
    "Remote",
    "exists",
    "fetched",
    "files_below",
    "fingerprints",
    "folder_of",
    "hash_file",
    "location",
    "read_bytes",
    "resolve",
    "suffix_of",
    "without_suffix",
]

SCHEMES: Final = ("file", "hf", "s3", "gs", "az", "abfs", "http", "https", "memory")
"""What is opened. Others of fsspec open archives, chains of URLs, or shells on other machines."""

MOST_TEXT_BYTES = 2**30
"""Of a manifest or another text at a URL, which is read into memory."""

CONNECTIONS = 16
LISTED_FROM = 20
"""A folder is listed where so many of its files are asked for: one request then tells of a thousand."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]*)://")  # chains too, to be refused
_BLOCK = 1 << 20

_SIGNS: Final = {
    b"RIFF": ".wav",
    b"fLaC": ".flac",
    b"OggS": ".ogg",
    b"ID3": ".mp3",
    b"\xff": ".mp3",
    b"FORM": ".aiff",
    b"MThd": ".mid",
}
"""How a file begins -> its suffix."""

Location = Path | Remote
"""A path on this machine, or a URL."""


def suffix_of(content: bytes, name: str | None = None) -> str:
    """Return the suffix of a file that comes as bytes with a name or without one, as the rows of data sets do."""
    named = Path(name or "").suffix.lower()
    return named or next((suffix for sign, suffix in _SIGNS.items() if content.startswith(sign)), "")


def exists(path: str | os.PathLike[str]) -> bool:
    """Tell whether there is a file or folder of this name on this machine."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long for a path, or with a null byte
        return False


def location(text: str | os.PathLike[str]) -> Location:
    """Return the path or the URL that a text means; a `Path`, or a text that a path exists for, is no URL."""
    scheme = _scheme(text)
    if not scheme or isinstance(text, os.PathLike):
        check_path(os.fspath(text))
        return Path(text)
    shown = without_secrets(text)
    host, _, path = text.partition("://")[2].partition("/")
    if scheme not in SCHEMES or "::" in text:
        raise InvalidInputError(f"{shown} is not opened; expected a path, or a URL of {', '.join(SCHEMES)}")
    # a container of Azure stands where others have their user
    user = host.rpartition("@")[0] if scheme not in {"az", "abfs"} or ":" in host.partition("@")[0] else ""
    if user or re.search(r"[?#]" if scheme in WEB else r"\?[^/?]*=", text):
        raise InvalidInputError(
            f"{shown} came with a user, a query or a fragment, which may hold secrets, and what is given is recorded; "
            "leave it away, and give credentials in the environment, or fetch the file first"
        )
    if scheme != "file":
        return Remote(f"{scheme}://{host}/{path}" if path or text.endswith("/") else f"{scheme}://{host}")
    if host:
        raise InvalidInputError(f"{shown} names another machine; expected file:///path")
    return Path(f"/{path}")


def resolve(folder: Location, text: str) -> Location:
    """Return the location that a manifest in a folder names: a path from there, or a URL."""
    if isinstance(folder, Path):
        return location(text) if _scheme(text) and not exists(folder / text) else folder / text
    if not _scheme(text):
        return folder / text
    place = location(text)
    if isinstance(place, Path) or (place.scheme == "memory" != folder.scheme):
        raise InvalidInputError(f"{text}: a manifest at a URL cannot name files of this machine; give a URL or a path")
    return place


def files_below(folder: Location) -> Iterator[tuple[PurePath, Location]]:
    """Yield all files below a folder in the order of their paths from there, with these."""
    if isinstance(folder, Remote):
        files = {PurePosixPath(name): place for name, place in folder.listing(deep=True).items()}
        yield from sorted(files.items())
        return
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder), path


def read_bytes(place: Location) -> bytes:
    """Return what a file holds; an OSError for a path that cannot be read is left to the caller."""
    return place.read_bytes() if isinstance(place, Path) else b"".join(place.blocks(MOST_TEXT_BYTES))


def without_suffix(name: str) -> str:
    """Return the path or the URL of a file without its suffix."""
    return name.removesuffix(PurePath(name).suffix) if _scheme(name) else str(Path(name).with_suffix(""))


def folder_of(name: str) -> str:
    """Return the path or the URL of the folder that a file lies in."""
    return name.rpartition("/")[0] if _scheme(name) else str(Path(name).parent)


def hash_file(path: Path) -> str:
    """Return the hash of the bytes of a file on this machine."""
    digest = hashlib.sha256()
    with reading(path), path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()[:HASH_DIGITS]


def fingerprints(places: Iterable[Remote]) -> dict[Remote, str | MusicEvalsError]:
    """Return the fingerprint of each file at a URL, or the error that prevents one; nothing is downloaded."""
    folders: dict[Remote, list[Remote]] = {}
    wanted = dict.fromkeys(places)
    for place in wanted:
        folders.setdefault(place.parent, []).append(place)
    for place in {place.scheme: place for place in wanted}.values():
        with contextlib.suppress(MusicEvalsError):  # which each of them will say
            place.forget()  # an earlier run may have cached its answers
    tasks: list[tuple[Remote | None, list[Remote]]] = []
    for folder, inside in folders.items():
        listed = folder.scheme not in WEB and sum(not place.content for place in inside) >= LISTED_FROM
        tasks += [(folder, inside)] if listed else [(None, [place]) for place in inside]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return {place: value for part in pool.map(_fingerprints_in, tasks) for place, value in part.items()}


def _fingerprints_in(task: tuple[Remote | None, list[Remote]]) -> dict[Remote, str | MusicEvalsError]:
    folder, places = task
    try:
        listed = {} if folder is None else {place: place.content for place in folder.listing(deep=False).values()}
    except MusicEvalsError:
        listed = {}  # whoever may read a file need not be allowed to list its folder
    by_place: dict[Remote, str | MusicEvalsError] = {}
    for place in places:
        try:
            by_place[place] = place.content or listed.get(place) or place.fingerprint()
        except MusicEvalsError as error:
            by_place[place] = error
    return by_place


@contextlib.contextmanager
def fetched(path: str, content: str, *, max_bytes: int, folder: Path | None = None) -> Iterator[str]:
    """Yield where a file is on this machine: a path as it is, a URL as a copy that lasts as long as the block."""
    # The fingerprint must still be the one that it had. Errors of the block that name the copy name the URL instead.
    place = location(path)
    if isinstance(place, Path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="music_evals_", dir=folder, ignore_cleanup_errors=True) as scratch:
        copy = Path(scratch) / f"copy{place.suffix}"
        try:
            with copy.open("wb") as file:
                file.writelines(place.blocks(max_bytes))
        except MusicEvalsError:
            raise
        except OSError as error:
            held = copy.parent.parent
            raise OutputError(f"{held}: cannot hold a copy of {place} ({error.strerror}); make room there") from error
        # the hash of what was fetched; where none is known, the fingerprint that the file has by now
        kind = content.partition(":")[0]
        if kind == "url":
            place.forget()
            now = place.fingerprint()
        elif kind == "git":
            data = copy.read_bytes()
            now = "git:" + hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()  # noqa: S324 (git's own)
            del data  # not held while the caller works
        else:
            now = hash_file(copy)
        if now != content:
            raise UnreadableFileError(f"{place}: changed after the run had begun; start the run again")
        try:
            yield str(copy)
        except MusicEvalsError as error:
            raise worded(type(error), str(error).replace(str(copy), place.url), vars(error)) from error


def _scheme(text: str | os.PathLike[str]) -> str:
    """Return the scheme of a URL in lower case; nothing for a path."""
    match = _URL.match(os.fspath(text))
    return match[1].lower() if match is not None and not exists(text) else ""
