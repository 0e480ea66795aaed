"""Files written whole or not at all, and where those are kept that can be made again."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from music_evals.errors import OutputError

__all__ = ["CACHE_VARIABLE", "cache_folder", "write_atomically"]

CACHE_VARIABLE = "MUSIC_EVALS_CACHE"


def cache_folder(name: str) -> Path:
    """Return ``$MUSIC_EVALS_CACHE/<name>``, or ``~/.cache/music_evals/<name>``; it may not exist."""
    root = os.environ.get(CACHE_VARIABLE)
    return (Path(root) if root else Path.home() / ".cache" / "music_evals") / name


def write_atomically(path: str | os.PathLike[str], content: bytes, *, parents: bool = False) -> Path:
    """Write a file beside its place and, once it is on the disk, move it there; return its path.

    Parameters
    ----------
    path, content
        The file, and all that it will hold.
    parents
        Make its folder, and those above, where they are missing.

    Raises
    ------
    OutputError
        The folder is missing, cannot be made, is full or not writable. No part of a file is left behind, and a file
        that was there is kept.

    """
    target = Path(path)
    if parents:
        _make_folder(target.parent)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        with part.open("r+b") as file:
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        msg = f"{target}: cannot be written ({error.strerror}); check that the folder exists and has room"
        raise OutputError(msg) from error
    return target


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{folder}: cannot be made ({error.strerror}); choose another folder, one that can be written to"
        raise OutputError(msg) from error
