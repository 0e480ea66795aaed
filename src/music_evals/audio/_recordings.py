"""Recordings in a folder, found by their names."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from music_evals.errors import NoDataError, PairCountError

__all__ = ["AUDIO_SUFFIXES", "recordings"]

AUDIO_SUFFIXES: Final = frozenset(
    {
        *(".wav", ".wave", ".w64", ".rf64", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".aif", ".aiff", ".aifc", ".au"),
        *(".m4a", ".mp4", ".aac", ".wma"),
    }
)
"""What is taken for a recording in a folder. Some cannot be decoded: they fail by name, and are not passed over."""


def recordings(folder: Path, wanted: Collection[str], suffixes: Collection[str] = AUDIO_SUFFIXES) -> dict[str, Path]:
    """Return song -> its recording.

    Parameters
    ----------
    folder
        Searched with its sub-folders for files called ``<id><suffix>``; hidden files are passed over.
    wanted
        Ids of the songs. Other files do not matter.
    suffixes
        In lower case; those of files may be in either.

    Returns
    -------
    dict
        Songs that have one; it may be empty.

    Raises
    ------
    NoDataError
        No such folder.
    PairCountError
        Two recordings of one song; both are named.

    """
    if not folder.is_dir():
        msg = f"{folder}: no such folder of recordings; check the path"
        raise NoDataError(msg)
    songs = set(wanted)
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.stem not in songs or path.suffix.lower() not in suffixes or path.name[0] == "." or not path.is_file():
            continue
        if path.stem in found:
            names = " and ".join(str(file.relative_to(folder)) for file in (found[path.stem], path))
            msg = f"{folder}: {names} are both recordings of {path.stem!r}; keep one"
            raise PairCountError(msg)
        found[path.stem] = path
    return found
