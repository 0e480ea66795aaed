"""Recordings in a folder, found by their names."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from music_evals.errors import NoDataError, PairCountError
from music_evals.files import item_name

AUDIO_SUFFIXES: Final = frozenset(
    {
        *(".wav", ".wave", ".w64", ".rf64", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".aif", ".aiff", ".aifc", ".au"),
        *(".m4a", ".mp4", ".aac", ".webm", ".mka", ".wma"),
    }
)
"""What is taken for a recording in a folder. Some cannot be decoded: they fail by name, and are not passed over."""


def recordings(folder: Path, wanted: Collection[str], suffixes: Collection[str] = AUDIO_SUFFIXES) -> dict[str, Path]:
    """Return song -> its recording."""
    if not folder.is_dir():
        raise NoDataError(f"{folder}: no such folder of recordings; check the path")
    songs = {item_name(song): song for song in wanted}
    path_of_song: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        song = songs.get(item_name(path.stem))
        if song is None or path.suffix.lower() not in suffixes or path.name[0] == "." or not path.is_file():
            continue
        if song in path_of_song:
            names = " and ".join(str(file.relative_to(folder)) for file in (path_of_song[song], path))
            raise PairCountError(f"{folder}: {names} are both recordings of {song!r}; keep one")
        path_of_song[song] = path
    return path_of_song
