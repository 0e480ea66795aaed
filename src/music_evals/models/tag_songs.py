"""Songs for a tagger: rows of caimd, each with its recording."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.audio.io import AUDIO_SUFFIXES, recordings
from music_evals.errors import NoDataError, UnknownNameError
from music_evals.models._encoder_audio import Source
from music_evals.models._song_rows import beside, check_ids, song_rows
from music_evals.models.music_encoders import ENCODERS
from music_evals.models.precomputed import FEATURES_SUFFIX
from music_evals.models.tag_recipe import TaggerData

__all__ = ["Song", "Sources", "load_songs"]


class Song(NamedTuple):
    """A row and how its recording is had: a column of audio is read when it is needed, not before."""

    id: str
    row: Mapping[str, Any]
    read: Callable[[], Source]


class Sources(Sized, Iterable[tuple[str, Source]]):
    """Ids and recordings of songs, for `_encoder_audio.Extraction.extract`.

    Parameters
    ----------
    songs
        As from `load_songs`.

    """

    def __init__(self, songs: Sequence[Song]) -> None:
        self._songs = songs

    def __len__(self) -> int:
        return len(self._songs)

    def __iter__(self) -> Iterator[tuple[str, Source]]:
        return ((song.id, song.read()) for song in self._songs)


def load_songs(data: TaggerData, split: str, folder: Path) -> list[Song]:
    """Return the usable songs of a split, in its order.

    Parameters
    ----------
    data
        What the recipe says.
    split
        Name of the split.
    folder
        Of the recipe.

    Raises
    ------
    NoDataError
        No such dataset or split, no song, or a song without recording where `data.missing` is ``"error"``.
    UnreadableFileError, InvalidInputError, UnknownNameError
        Rows or recordings that are not as they should be.

    """
    rows = song_rows(data.dataset, data.config, split, folder)
    words, readers = _apart(rows, data.audio_column) if data.audio_column else (list(rows), _files(rows, data, folder))
    check_ids([str(row.get("id")) for row in words], f"{data.dataset}, {split}")
    pairs = list(zip(words, readers, strict=True))
    songs = [Song(str(row["id"]), row, read) for row, read in pairs if read is not None]
    missing = [str(row["id"]) for row, read in pairs if read is None]
    if missing and data.missing == "error":
        raise NoDataError(
            f"{len(missing)} of {len(pairs)} songs have no recording in {data.audio or data.audio_column}, the first "
            f"is {missing[0]!r}; add it, or let data.missing be 'skip'"
        )
    if not songs:
        raise NoDataError(
            f"split {split!r} of {data.dataset} has no song with a recording in {data.audio or data.audio_column}"
        )
    return songs


def _apart(rows: Any, column: str) -> tuple[list[Mapping[str, Any]], list[Callable[[], Source] | None]]:
    """Return rows without their recordings, and how each recording is read."""
    readers: list[Callable[[], Source] | None]
    if isinstance(rows, list):
        recordings_of_rows = [row.get(column) for row in rows]
        readers = [
            None if recordings_of_rows[i] is None else functools.partial(recordings_of_rows.__getitem__, i)
            for i in range(len(recordings_of_rows))
        ]
        return rows, readers
    if column not in rows.features:
        raise UnknownNameError("column", column, rows.features)
    sounds = rows.select_columns([column])
    lacking = sounds.data.column(column).is_null().to_pylist()
    readers = [None if lacks else functools.partial(_cell, sounds, i, column) for i, lacks in enumerate(lacking)]
    return list(rows.remove_columns([column])), readers


def _cell(rows: Any, index: int, column: str) -> Source:
    source: Source = rows[index][column]
    return source


def _files(rows: Any, data: TaggerData, folder: Path) -> list[Callable[[], Source] | None]:
    place = beside(folder, str(data.audio))
    if not place.is_dir():
        raise NoDataError(f"there is no folder {data.audio}; let data.audio say where the recordings are")
    precomputed = _is_precomputed(str(data.encoder.get("name")))
    suffixes = (FEATURES_SUFFIX,) if precomputed else AUDIO_SUFFIXES
    path_of_song = recordings(place, [str(row.get("id")) for row in rows], suffixes)
    paths = [path_of_song.get(str(row.get("id"))) for row in rows]
    return [None if path is None else functools.partial(Path, path) for path in paths]


def _is_precomputed(encoder: str) -> bool:
    return encoder in ENCODERS and ENCODERS[encoder].kind == "precomputed"
