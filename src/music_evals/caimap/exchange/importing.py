"""Songs into a study, all rows or none: a table and a folder of recordings, or a data set of annotated ones.

What could not be annotated or exported later is refused here, with row and reason, before anybody works on it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from music_evals.caimap.domain.structure import MAX_LINE, MAX_LINES, MAX_THEME, pre_annotated
from music_evals.caimap.domain.values import FinishedSong, Song
from music_evals.caimap.exchange.prepared import Automatic, filled
from music_evals.caimap.exchange.rows import finished_of
from music_evals.datasets.caimd.schema import load_rows
from music_evals.datasets.caimd.writing import check_about
from music_evals.errors import InvalidInputError, MusicEvalsError, NoDataError, UnreadableFileError
from music_evals.files import check_path, decode_text, parse_json, written_whole
from music_evals.lyrics.patterns import LEAST_CHINESE, chinese_share

__all__ = ["SongTable", "keep_recordings", "read_finished", "read_songs"]

_TEXTS: Final = ("title", "genre", "album", "theme", "licence")
_COLUMNS: Final = frozenset({"id", "lines", "audio", "artist", "cluster", "rhymes", *_TEXTS})
_NAME: Final = "prepared"  # column: what a song is called in what `music-evals prepare` wrote
_BREAKS: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})  # categories of Unicode: controls, halves of pairs, line breaks
_ENDING: Final = re.compile(r"\.[a-z0-9]{1,8}")
_BLOCK: Final = 2**20  # bytes that are copied at once

MAX_ROWS: Final = 100_000
"""Songs of a table."""


class SongTable(NamedTuple):
    """What a table holds.

    The `audio` of a song is the name in the folder of the recordings, until `keep_recordings` has copied them.
    """

    songs: list[Song]
    not_sampled: list[str]  # ids of songs that the preparation did not draw, and that are left out for it


def read_songs(
    table: str | os.PathLike[str],
    audio: str | os.PathLike[str],
    *,
    licence: str = "",
    prepared: Mapping[str, Automatic] | None = None,
) -> SongTable:
    """Read the songs of a study, with the length of each recording as it was decoded.

    The table is JSON Lines: ``id``, ``lines`` (phrases) and ``audio`` (a file of the folder `audio`) each; perhaps
    ``title``, ``artist`` (list), ``genre``, ``album``, ``cluster``, ``rhymes`` (one mark a line), ``theme`` and
    ``licence``; `licence` counts where a row names none. Null is as if the column were not there. `prepared` is what
    programs found (`prepared.read_prepared`), by the id of a song or, where that is not its name there, by the column
    ``prepared``: it fills the columns ``lines``, ``rhymes``, ``cluster`` and ``theme`` where a row leaves them out, and
    says so in `Song.automatic`.

    Raises `InvalidInputError` where a row breaks a rule (its number and the reason; nothing was imported),
    `NoDataError` without a row, or one in the sample, and `UnreadableFileError` where the table cannot be read.
    """
    rows = list(_rows(table))
    if not rows:
        raise NoDataError(f"{table} holds no songs; give one a line, as JSON")
    if len(rows) > MAX_ROWS:
        raise InvalidInputError(f"{table} holds {len(rows)} songs; at most {MAX_ROWS} are taken at once")
    if prepared is not None:
        _check_names([row for _, row in rows], prepared)
    songs: list[Song] = []
    not_sampled: list[str] = []
    ids: set[str] = set()
    for number, row in rows:
        try:
            automatic = None if prepared is None else prepared[_name(row)]
            name = _id(row)
            if name in ids:
                raise InvalidInputError(f"the id {name!r} is that of an earlier row; each song has one of its own")
            ids.add(name)
            if automatic is not None and automatic.sampled is False:
                not_sampled.append(name)
            else:
                songs.append(_song(row, Path(audio), licence, automatic))
        except MusicEvalsError as error:
            raise InvalidInputError(f"row {number}: {error}; nothing was imported") from error
    if not songs:
        raise NoDataError(f"none of the {len(not_sampled)} songs of {table} is in the sample of the preparation")
    return SongTable(songs, not_sampled)


def keep_recordings(
    songs: Sequence[Song], source: str | os.PathLike[str], target: str | os.PathLike[str]
) -> list[Song]:
    """Copy recordings into the folder of a study, each under the hash of its content: none takes another's place.

    Returns the songs of `read_songs` with the names of the copies; raises `OutputError` where the folder cannot be
    written to.
    """
    return [dataclasses.replace(song, audio=_copy_recording(Path(source, song.audio), Path(target))) for song in songs]


def _copy_recording(recording: Path, folder: Path) -> str:
    with recording.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    ending = recording.suffix.lower()
    name = digest + (ending if _ENDING.fullmatch(ending) else "")
    if not (folder / name).exists():  # written whole: what is there under its hash is that recording
        with written_whole(folder / name, parents=True) as part, recording.open("rb") as file, part.open("wb") as copy:
            copied = hashlib.sha256()
            while block := file.read(_BLOCK):
                copied.update(block)
                copy.write(block)
            if copied.hexdigest() != digest:
                raise InvalidInputError(f"{recording} changes while it is read; nothing was imported")
    return name


def read_finished(dataset: str | os.PathLike[str], config: str, split: str, *, licence: str) -> list[FinishedSong]:
    """Read songs that were annotated elsewhere, from a data set with the columns of CaiMD.

    Data set, config and split are those of `datasets.caimd.schema.load_rows`: a name, a folder such as one that an
    export wrote, or an id on the Hub. The licence is of their recordings and lyrics, which the columns do not hold.

    Raises `InvalidInputError` without a licence, or where a row breaks a rule (its number and the reason; nothing was
    imported), `NoDataError` without a row, and `UnknownNameError` without such a data set, config or split.
    """
    licence = _text("licence", licence)
    if not licence:
        raise InvalidInputError("say under which licence the recordings and lyrics of these songs are")
    finished = []
    for number, row in enumerate(load_rows(config, split, dataset=dataset), 1):
        try:
            finished.append(finished_of(row, licence=licence))
            check_about(row)
        except MusicEvalsError as error:
            raise InvalidInputError(f"row {number}, {row.get('id')!r}: {error}; nothing was imported") from error
    if not finished:
        raise NoDataError(f"{dataset}: there are no songs in {config}/{split}")
    return finished


def _rows(table: str | os.PathLike[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows of a table with their numbers."""
    try:
        content = Path(table).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null byte in its name
        raise UnreadableFileError(f"{table}: cannot be read ({error}); check the path") from error
    for number, line in enumerate(decode_text(content, table).split("\n"), 1):  # splitlines would cut texts
        if not line.strip():
            continue
        try:
            row = parse_json(line, f"{table}, line {number}")
        except UnreadableFileError as error:
            raise InvalidInputError(f"row {number}: {error}; nothing was imported") from error
        if not isinstance(row, dict):
            raise InvalidInputError(f"row {number}: of the wrong type, expected {{...}}; nothing was imported")
        yield number, {name: value for name, value in row.items() if value is not None}


def _name(row: Mapping[str, Any]) -> Any:
    return row.get(_NAME, row.get("id"))


def _check_names(rows: Sequence[Mapping[str, Any]], prepared: Mapping[str, Automatic]) -> None:
    """Refuse rows that were not prepared, or were prepared as one song."""
    names = [_name(row) for row in rows]
    unknown = [name for name in names if not isinstance(name, str) or name not in prepared]
    if unknown:
        raise InvalidInputError(
            f"{len(unknown)} of {len(names)} songs were not prepared: {', '.join(map(repr, unknown[:5]))}"
            f"{' ...' if len(unknown) > 5 else ''}; prepared were {', '.join(map(repr, sorted(prepared)[:5]))}"
            f"{' ...' if len(prepared) > 5 else ''}. Say in the column `{_NAME}` what a song is called there. "
            "Nothing was imported"
        )
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise InvalidInputError(f"two songs are called {twice!r} in what was prepared; nothing was imported")


def _id(row: Mapping[str, Any]) -> str:
    name = row.get("id")
    if not isinstance(name, str):
        raise InvalidInputError(f"id must be a text, got {name!r:.80}")
    return name


def _song(row: Mapping[str, Any], audio: Path, licence: str, prepared: Automatic | None) -> Song:
    """Return the song of a row, which can be annotated and exported."""
    unknown = sorted(set(row) - _COLUMNS - ({_NAME} if prepared is not None else set()))
    if unknown:
        raise InvalidInputError(
            f"unknown columns: {', '.join(map(repr, unknown))}; known are {', '.join(sorted(_COLUMNS))}"
        )
    automatic: tuple[tuple[str, str], ...] = ()
    if prepared is not None:
        row, automatic = filled(row, prepared)
    texts: dict[str, Any] = {column: _text(column, row.get(column, "")) for column in _TEXTS}
    texts["licence"] = texts["licence"] or _text("licence", licence)
    if not texts["licence"]:
        raise InvalidInputError("licence is missing: say under which the recording and the lyrics are")
    artist = tuple(_text("artist", name) for name in _list("artist", row.get("artist", [])))
    check_about({**texts, "id": _id(row), "artist": artist})
    duration_sec = _duration(_recording(row, audio))
    timed = () if prepared is None else prepared.timed_lyrics
    late = [line for line in timed if not 0 <= line.start <= duration_sec]
    if late:
        raise InvalidInputError(
            f"the recording has {duration_sec:.2f} s, and {late[0].text!r} begins at {late[0].start:.2f} s; these are "
            "the lyrics of another one"
        )
    lines = _list("lines", row.get("lines"))
    if len(lines) > MAX_LINES:
        raise InvalidInputError(f"lines must be at most {MAX_LINES}, got {len(lines)}")
    read = tuple(_text(f"line {number}", line, MAX_LINE) for number, line in enumerate(lines, 1))
    share = chinese_share("\n".join(read))
    if any(read) and share < LEAST_CHINESE:
        raise InvalidInputError(
            f"its lyrics are not Chinese: {share:.0%} of the letters are, and {LEAST_CHINESE:.0%} must be; lyrics in "
            "other languages cannot be annotated here"
        )
    song = Song(
        id=_id(row),
        lines=read,
        duration_sec=duration_sec,
        audio=row["audio"],
        artist=artist,
        cluster=_cluster(row.get("cluster")),
        rhymes=_marks(row.get("rhymes", [])),
        timed_lyrics=timed,
        automatic=automatic,
        **texts,
    )
    pre_annotated(song)  # what the editor begins with
    return song


def _text(column: str, value: Any, most: int = MAX_THEME) -> str:
    """Return a text of one line, without spaces around it."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{column} must be a text, got {value!r:.80}")
    wrong = next((char for char in value if unicodedata.category(char) in _BREAKS), "")
    if wrong:
        raise InvalidInputError(f"{column} holds a line break or control character (U+{ord(wrong):04X}); take it out")
    if len(value) > most:
        raise InvalidInputError(f"{column} has {len(value)} characters, at most {most} are taken")
    return value.strip()


def _list(column: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInputError(f"{column} must be a list, got {value!r:.80}")
    return value


def _cluster(value: Any) -> int | None:
    if value is not None and type(value) is not int:
        raise InvalidInputError(f"cluster must be a whole number, got {value!r:.80}")
    return value


def _marks(value: Any) -> tuple[bool, ...]:
    wrong = [mark for mark in _list("rhymes", value) if not isinstance(mark, bool)]
    if wrong:
        raise InvalidInputError(f"rhymes must be true or false, one a line, got {wrong[0]!r:.80}")
    return tuple(value)


def _recording(row: Mapping[str, Any], audio: Path) -> Path:
    name = row.get("audio")
    if not isinstance(name, str):
        raise InvalidInputError(f"audio must be the name of a file, got {name!r:.80}")
    check_path(name, "there is no recording")
    path = (audio / name).resolve()
    if not path.is_relative_to(audio.resolve()) or not path.is_file():
        raise InvalidInputError(f"there is no recording {name!r} in the folder")
    return path


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
