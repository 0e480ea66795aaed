"""Files written whole or not at all, the cache folder, and the one store for what can be worked out again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from music_evals.errors import OutputError

__all__ = ["CACHE_VARIABLE", "Store", "cache_folder", "folder_written_whole", "write_atomically", "written_whole"]

LOGGER = logging.getLogger(__name__)

CACHE_VARIABLE = "MUSIC_EVALS_CACHE"

STALE_SEC = 86_400.0
"""A part of a file that nobody has written to for so long is of a writer that was killed."""


def cache_folder(name: str) -> Path:
    """Return ``$MUSIC_EVALS_CACHE/<name>``, or ``~/.cache/music_evals/<name>``; it may not exist."""
    root = os.environ.get(CACHE_VARIABLE)
    return (Path(root) if root else Path.home() / ".cache" / "music_evals") / name


@contextlib.contextmanager
def written_whole(path: str | os.PathLike[str], *, parents: bool = False, sync: bool = True) -> Iterator[Path]:
    """Yield the place for a new file beside `path`; when the block ends well, the file is moved to `path`.

    Any number of processes and machines may write the same file at once: one of them wins, whole.

    Parameters
    ----------
    path
        The file.
    parents
        Make its folder, and those above, where they are missing.
    sync
        Wait until it is on the disk. A file that is checked when it is read, as in `Store`, can do without.

    Raises
    ------
    OutputError
        The folder is missing, cannot be made, is full or not writable. No part of a file is left behind, and a file
        that was there is kept.

    """
    target = Path(path)
    if parents:
        _make_folder(target.parent)
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        yield part
        if sync:
            with part.open("r+b") as file:
                os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        raise OutputError(
            f"{target}: cannot be written ({error.strerror}); check that the folder exists and has room"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: bytes, *, parents: bool = False, sync: bool = True) -> Path:
    """Write a file whole or not at all, as `written_whole`; return its path."""
    with written_whole(path, parents=parents, sync=sync) as part:
        part.write_bytes(content)
    return Path(path)


@contextlib.contextmanager
def folder_written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new folder beside `path`; when the block ends well, it takes the place of what was there.

    Parameters
    ----------
    path
        Where the folder goes; what stands there goes with it, so that the caller checks it first.

    Raises
    ------
    OutputError
        It cannot be written; a folder that was there is kept as it was.

    """
    target = Path(path)
    part, old = (target.with_name(f".{target.name}.{uuid.uuid4().hex}.{what}") for what in ("part", "old"))
    try:
        part.mkdir(parents=True)
        yield part
        if target.exists():
            target.replace(old)
        part.replace(target)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            f"{target}: cannot be written ({error.strerror}); check that the folder above exists and has room"
        ) from error
    finally:
        if old.exists() and not target.exists():  # the second move failed
            old.replace(target)
        for folder in (part, old):
            shutil.rmtree(folder, ignore_errors=True)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be made ({error.strerror}); choose another folder, one that can be written to"
        ) from error


class Store:
    """Bytes by key in files: what was worked out once is read the next time.

    A file holds one entry: a line with its key and a checksum, then the bytes. Any number of processes may share the
    folder, on one machine or on several: nothing is locked, an entry is moved into its place whole, and of several
    writers of one entry one wins. An entry that is damaged, or that stands for another key, counts as missing: a
    warning is logged, and the next `put` replaces it. With a store or without one, the numbers are the same.

    Parameters
    ----------
    folder
        Where the entries lie, as ``<2 digits>/<digest>.entry``. It is made with the first of them.

    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._tidied = False

    def path(self, key: Mapping[str, Any]) -> Path:
        """Return where the entry of a key lies; a key is all that the bytes depend on, as plain values."""
        digest = hashlib.sha256(_key_text(key)).hexdigest()
        return self.folder / digest[:2] / f"{digest}.entry"

    def get(self, key: Mapping[str, Any]) -> bytes | None:
        """Return what is stored under a key, or None."""
        path = self.path(key)
        try:
            entry = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            LOGGER.warning("%s: cannot be read (%s); the entry is worked out again", path, error.strerror)
            return None
        head, _, content = entry.partition(b"\n")
        if head != _head(key, content):
            LOGGER.warning("%s: damaged, or of another key; the entry is worked out again", path)
            return None
        return content

    def put(self, key: Mapping[str, Any], content: bytes) -> None:
        """Store bytes under a key, in place of those that were there.

        Raises
        ------
        OutputError
            The folder cannot be written to, or is full. Nothing is left behind.

        """
        path = self.path(key)
        try:
            # not synchronised: an entry that a power cut leaves empty is damaged, and damage is found when it is read
            write_atomically(path, _head(key, content) + b"\n" + content, parents=True, sync=False)
        except OutputError:
            # shared file systems refuse to replace what somebody reads, or report a move that was made as failed
            if self.get(key) is None:
                raise
        if not self._tidied:  # in one folder of 256: with every process it is another one
            self._tidied = True
            self._remove_stale(path.parent.glob(_PARTS))

    def size(self) -> int:
        """Return the bytes of all entries."""
        total = 0
        for path in self.folder.glob(f"??/{_ENTRIES}"):
            with contextlib.suppress(FileNotFoundError):  # somebody clears the store
                total += path.stat().st_size
        return total

    def clear(self) -> None:
        """Remove every entry, and what writers left that were killed; other files and the folder stay."""
        for path in self.folder.glob(f"??/{_ENTRIES}"):
            path.unlink(missing_ok=True)
        self._remove_stale(self.folder.glob(f"??/{_PARTS}"))

    def _remove_stale(self, parts: Iterable[Path]) -> None:
        """Remove parts of entries that nobody writes any more, by the clock of the file system and not by our own."""
        try:
            with tempfile.TemporaryFile(dir=self.folder) as new:
                now = os.fstat(new.fileno()).st_mtime
        except OSError:  # nothing is lost by leaving them
            return
        for part in parts:
            with contextlib.suppress(OSError):  # it was moved into its place in the meantime
                if now - part.stat().st_mtime > STALE_SEC:
                    part.unlink(missing_ok=True)


_ENTRIES, _PARTS = "*.entry", ".*.entry.*.part"


def _key_text(key: Mapping[str, Any]) -> bytes:
    return json.dumps(key, sort_keys=True).encode()  # ASCII: half of a surrogate pair in a text is kept as it is


def _head(key: Mapping[str, Any], content: bytes) -> bytes:
    return b'{"key":%b,"sha256":"%b"}' % (_key_text(key), hashlib.sha256(content).hexdigest().encode())
