"""Songs for a tagger: rows of caimd, each with its recording."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, NamedTuple

from music_evals.audio.io import AUDIO_SUFFIXES, recordings
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError, UnreadableFileError
from music_evals.models._encoder_audio import Source
from music_evals.models.music_encoders import ENCODERS
from music_evals.models.precomputed import FEATURES_SUFFIX
from music_evals.models.tag_recipe import TaggerData
from music_evals.windows import DATASETS, find_window

__all__ = ["Song", "Sources", "load_songs"]


class Song(NamedTuple):
    """A row and how its recording is had: a column of audio is read when it is needed, not before."""

    id: str
    row: Mapping[str, Any]
    read: Callable[[], Source]


class Sources(Sized, Iterable[tuple[str, Source]]):
    """Ids and recordings of songs, for `_extraction.Extractor.extract`.

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
    place = _place(folder, data.dataset)
    rows = _json_lines(place) if place.is_file() else _load(data, split, place)
    words, readers = _apart(rows, data.audio_column) if data.audio_column else (list(rows), _files(rows, data, folder))
    _check_ids([str(row.get("id")) for row in words], f"{data.dataset}, {split}")
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


def _check_ids(ids: Sequence[str], place: str) -> None:
    if len(set(ids)) != len(ids) or "None" in ids:
        twice = next((name for name, count in Counter(ids).items() if count > 1), "None")
        raise InvalidInputError(
            f"{place}: every row needs an id of its own, got {twice!r} more than once or none at all"
        )


def _place(folder: Path, name: str) -> Path:
    return folder / name if (folder / name).exists() else Path(name)


def _json_lines(path: Path) -> list[Mapping[str, Any]]:
    try:
        # not splitlines: a text may hold U+2028 and other characters that it takes for ends of lines
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableFileError(f"{path}: not JSON lines in UTF-8 ({error})") from error
    if not all(isinstance(row, dict) for row in rows):
        raise UnreadableFileError(f"{path}: every line must be a JSON object, one song each")
    return rows


def _load(data: TaggerData, split: str, place: Path) -> Any:
    import datasets

    name = str(place) if place.exists() else find_window(data.dataset, DATASETS, "dataset")[0]
    try:
        rows = datasets.load_dataset(name, data.config, split=split)
    except (FileNotFoundError, ValueError, ConnectionError) as error:
        raise NoDataError(f"cannot load split {split!r} of {data.dataset} (config {data.config}): {error}") from error
    for column, kind in rows.features.items():
        if isinstance(kind, datasets.Audio):  # we decode, and only what is needed
            rows = rows.cast_column(column, datasets.Audio(decode=False))
    return rows


def _apart(rows: Any, column: str) -> tuple[list[Mapping[str, Any]], list[Callable[[], Source] | None]]:
    """Return rows without their recordings, and how each recording is read."""
    readers: list[Callable[[], Source] | None]
    if isinstance(rows, list):
        given = [row.get(column) for row in rows]
        readers = [None if given[i] is None else functools.partial(given.__getitem__, i) for i in range(len(given))]
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
    place = _place(folder, str(data.audio))
    if not place.is_dir():
        raise NoDataError(f"there is no folder {data.audio}; let data.audio say where the recordings are")
    precomputed = _is_precomputed(str(data.encoder.get("name")))
    suffixes = (FEATURES_SUFFIX,) if precomputed else AUDIO_SUFFIXES
    found = recordings(place, [str(row.get("id")) for row in rows], suffixes)
    paths = [found.get(str(row.get("id"))) for row in rows]
    return [None if path is None else functools.partial(Path, path) for path in paths]


def _is_precomputed(encoder: str) -> bool:
    return encoder in ENCODERS and ENCODERS[encoder].kind == "precomputed"
