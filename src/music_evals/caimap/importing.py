"""Songs into a study, all rows or none: a table and a folder of recordings, or a data set of annotated ones."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from music_evals.caimap.rows import finished_of
from music_evals.caimap.structure import MAX_LINES
from music_evals.caimap.values import FinishedSong, Song
from music_evals.datasets.caimd.schema import load_rows
from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, UnreadableFileError

__all__ = ["read_finished", "read_songs"]

_TEXTS: Final = ("title", "genre", "album", "theme", "licence")
MAX_ROWS: Final = 100_000
"""Songs of a table."""


def read_songs(table: str | os.PathLike[str], audio: str | os.PathLike[str]) -> list[Song]:
    """Read the songs of a study.

    Parameters
    ----------
    table
        JSON Lines: ``id``, ``lines`` (phrases) and ``audio`` (a file of the folder) each; perhaps ``title``, ``artist``
        (list), ``genre``, ``album``, ``cluster``, ``rhymes`` (one mark a line), ``theme`` and ``licence``.
    audio
        Folder of the recordings.

    Returns
    -------
    list of Song
        With the length of each recording as it was decoded.

    Raises
    ------
    InvalidInputError
        A row breaks a rule: its number and the reason. Nothing was imported.
    NoDataError
        There is no row.
    UnreadableFileError
        The table cannot be read.

    """
    try:
        rows = Path(table).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFileError(f"{table}: cannot be read as UTF-8 ({error})") from error
    songs = [_song(line, number, Path(audio)) for number, line in enumerate(rows, 1) if line.strip()]
    if not songs:
        raise NoDataError(f"{table} holds no songs; give one a line, as JSON")
    if len(songs) > MAX_ROWS:
        raise InvalidInputError(f"{table} holds {len(songs)} songs; at most {MAX_ROWS} are taken at once")
    return songs


def read_finished(dataset: str | os.PathLike[str], config: str, split: str, *, licence: str) -> list[FinishedSong]:
    """Read songs that were annotated elsewhere, from a data set with the columns of CaiMD.

    Parameters
    ----------
    dataset, config, split
        As of `datasets.caimd.schema.load_rows`: a name, a folder such as one that an export wrote, or an id on the Hub.
    licence
        Of their recordings and lyrics, which the columns do not hold.

    Raises
    ------
    InvalidInputError
        A row breaks a rule: its number and the reason. Nothing was imported.
    UnknownNameError
        There is no such data set, config or split.

    """
    return [_finished(row, number, licence) for number, row in enumerate(load_rows(config, split, dataset=dataset), 1)]


def _finished(row: Mapping[str, Any], number: int, licence: str) -> FinishedSong:
    try:
        return finished_of(row, licence=licence)
    except MusicEvalsError as error:
        raise InvalidInputError(f"row {number}, {row.get('id')!r}: {error}; nothing was imported") from error


def _song(line: str, number: int, audio: Path) -> Song:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"row {number}: no JSON ({error}); nothing was imported") from error
    try:
        return _checked(row, audio)
    except (KeyError, TypeError) as error:
        raise InvalidInputError(
            f"row {number}: {error} is missing or of the wrong type; nothing was imported"
        ) from error
    except MusicEvalsError as error:
        raise InvalidInputError(f"row {number}: {error}; nothing was imported") from error


def _checked(row: Mapping[str, Any], audio: Path) -> Song:
    lines = row["lines"]
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines) or len(lines) > MAX_LINES:
        raise InvalidInputError(f"lines must be a list of at most {MAX_LINES} texts")
    name = str(row["audio"])
    path = (audio / name).resolve()
    if not path.is_relative_to(audio.resolve()) or not path.is_file():
        raise InvalidInputError(f"there is no recording {name!r} in the folder")
    texts: dict[str, Any] = {field: str(row.get(field, "")) for field in _TEXTS}
    cluster = row.get("cluster")
    return Song(
        id=str(row["id"]),
        lines=tuple(lines),
        duration_sec=_duration(path),
        audio=name,
        artist=tuple(map(str, row.get("artist", ()))),
        cluster=None if cluster is None else int(cluster),
        rhymes=tuple(map(bool, row.get("rhymes", ()))),
        **texts,
    )


def _duration(path: Path) -> float:
    """Return the seconds of a recording, which must decode to its end."""
    import soundfile

    count = 0
    try:
        with soundfile.SoundFile(path) as opened:
            for block in opened.blocks(blocksize=2**18, dtype="float32"):
                count += len(block)
            rate = opened.samplerate
    except (soundfile.SoundFileError, RuntimeError) as error:
        raise InvalidInputError(f"{path.name} does not decode ({error})") from error
    seconds = float(count / rate)
    if not (math.isfinite(seconds) and seconds > 0):
        raise InvalidInputError(f"{path.name} holds no sound")
    return seconds
