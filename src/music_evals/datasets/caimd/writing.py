"""Rows of CaiMD as the files of the release: a folder a song with its seven files, and the id maps beside them.

The inverse of `release`: what is written here is read by `build.build_release` without a special case. The maps hold
the ids of the published questions and our own wording of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.datasets.caimd.release import DESCRIPTION_FILES, MAPS, OVERLAPS
from music_evals.datasets.caimd.schema import CLEAR, UNCLEAR, song_texts
from music_evals.errors import InvalidInputError
from music_evals.files import write_atomically

__all__ = ["check_about", "release_files", "write_release"]

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OPTIONS: Final = {"clear": ("0", CLEAR), "unclear": ("1", UNCLEAR), True: ("2", "是"), False: ("3", "否")}
"""Answer to a closed question -> its id and its wording."""


def write_release(rows: Sequence[Mapping[str, Any]], folder: Path) -> Path:
    """Write songs, rows of `schema.features`, as the release holds them, and return the folder.

    Raises
    ------
    InvalidInputError
        An id that is no name of a folder in the release, or text that its files cannot hold.
    OutputError
        The folder cannot be written to.
    """
    contents = {Path(row["id"], name): text for row in rows for name, text in release_files(row).items()}
    parts = {
        _full(digits): dimension.chinese
        for table in DIMENSIONS.values()
        for dimension in table.values()
        for digits in dimension.question_ids
    }
    questions = {group: f"description of the song, {group}" for group in DIMENSIONS}
    maps = (questions, parts, dict(_OPTIONS.values()))
    contents |= {Path(name): json.dumps(table, ensure_ascii=False) for name, table in zip(MAPS, maps, strict=True)}
    # without it a copy whose songs are not called as those of the first release is refused
    contents[Path(OVERLAPS[0])] = ""
    for path, text in contents.items():
        write_atomically(folder / path, text.encode(), parents=True)
    return folder


def check_about(row: Mapping[str, Any]) -> None:
    """Refuse a song whose ``id``, ``title``, ``artist``, ``genre`` or ``album`` the release cannot hold."""
    if not _ID.fullmatch(row["id"]):
        raise InvalidInputError(
            f"the id {row['id']!r} cannot be that of a song in the release: letters, digits, _ and -, at most 64"
        )
    texts = [(name, row[name] or "") for name in ("title", "genre", "album")]
    for name, value in [*texts, *(("artist", artist) for artist in row["artist"])]:
        if set("\r\n") & set(value):
            raise InvalidInputError(f"song {row['id']!r}: its {name} holds a line break, which the release cannot")
    for artist in row["artist"]:
        if set(",/") & set(artist) or not artist.strip():
            raise InvalidInputError(
                f"song {row['id']!r}: {artist!r} cannot be an artist in the release, where , and / separate names; "
                "write the name without them"
            )


def release_files(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the seven files of a song, name -> text; raises `InvalidInputError` as `write_release`."""
    check_about(row)
    words, patterns = song_texts(row)
    meta = {"name": row["title"], "singer": ",".join(row["artist"]), "genre": row["genre"], "album": row["album"]}
    tokens = {  # a hyphen has no place in a mark
        _time(line["start"]): f"<|ss_{line['section'].replace('-', '_')}|>{line['text']}"
        for line in row["timed_sections"]
    }
    if len(tokens) != len(row["timed_sections"]):
        raise InvalidInputError(f"song {row['id']!r}: two lines begin at one time, which the release cannot hold")
    return {
        **{file: _answers(row, group) for group, file in DESCRIPTION_FILES.items()},
        "meta_info": "\n".join(f"{name} : {value or ''}" for name, value in meta.items()),
        "raw_lyric": "\n".join(f"{_time(line['start'])}{line['text']}" for line in row["timed_lyrics"]),
        "str_lyric": words,
        "str_rhyme": patterns,
        "tknz_json": json.dumps(tokens, ensure_ascii=False),
    }


def _time(seconds: float) -> str:
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    return f"[{minutes:02d}:{rest // 1000:02d}.{rest % 1000:03d}]"


def _answers(row: Mapping[str, Any], group: str) -> str:
    """Return a description file: one question that holds all parts, with the overall text."""
    described = row[group]["dimensions"]
    tags = [
        {"tid": _full(dimension.question_ids[0]), "value": described[name]["tags"], "desc": described[name]["text"]}
        for name, dimension in DIMENSIONS[group].items()
        if name != AUDIO_EFFECTS
    ]
    sound = described[AUDIO_EFFECTS]
    remarks = sound["option_texts"] or {}
    given = (("sound_quality", None), ("live", remarks.get("live")), ("lo_fi", remarks.get("lo_fi")))
    options = [
        {"oid": _full(digits), "opid": _OPTIONS[sound[name]][0], "desc": text}
        for digits, (name, text) in zip(DIMENSIONS[group][AUDIO_EFFECTS].question_ids, given, strict=True)
        if sound[name] is not None
    ]
    question = {"id": group, "desc": row[group]["overall_text"], "tags": tags, "options": options}
    return json.dumps({"mid": row["id"], "ans": [question]}, ensure_ascii=False, indent=1)


def _full(digits: str) -> str:
    """Return an id of full length from its beginning."""
    return f"{digits}-0000"
