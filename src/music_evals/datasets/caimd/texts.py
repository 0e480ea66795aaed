"""The files of one CaiMD song as texts: what each may look like, and what is counted where it looks otherwise."""

from __future__ import annotations

import itertools
import json
import re
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.annotations import sections_of_text
from music_evals.datasets.caimd.schema import SECTION_TYPES, section_row
from music_evals.errors import InvalidLyricsError, UnreadableFileError
from music_evals.yaml_files import packaged_yaml

MAX_FILE_BYTES: Final = 4 * 2**20
"""Files of songs have some kilobytes, the lists of the release less than 100; a wrong file must not fill the memory."""


_FINDINGS: Final[dict[str, dict[str, str]]] = packaged_yaml("music_evals.datasets.caimd", "findings.yaml")
BROKEN, ANOMALIES = _FINDINGS["broken"], _FINDINGS["anomalies"]
"""Why a song is left out; what is counted in the others, and what becomes of it."""

_PATTERN: Final = re.compile(r"[c ]*[cR]?")
_CHINESE: Final = re.compile(r"[\u4e00-\u9fff ]*")
_TIME: Final = re.compile(r"\[(\d{1,3}):(\d{1,2})\.(\d{1,3})\](.*)", re.ASCII | re.DOTALL)
_TOKEN: Final = re.compile(r"<\|ss_(\w+)\|>(.*)", re.DOTALL)
_META: Final = {"name": "title", "singer": "artist", "genre": "genre", "album": "album"}


class BrokenSongError(UnreadableFileError):
    """A song that cannot be read."""

    def __init__(self, kind: str, path: Path, reason: str) -> None:
        super().__init__(f"{path.parent.name}/{path.name}: {reason}", kind=kind)


def read_text(path: Path, root: Path | None, anomalies: Counter[str] | None = None) -> str:
    """Read a file of the release whole, without byte order mark and carriage returns."""
    counts = Counter[str]() if anomalies is None else anomalies
    try:
        facts = path.stat()
    except OSError:
        raise BrokenSongError("missing_file", path, "no such file; is the copy of the release complete?") from None
    if not stat.S_ISREG(facts.st_mode):
        raise BrokenSongError("forbidden_file", path, "not a plain file")
    if root is not None and not path.resolve().is_relative_to(root.resolve()):
        raise BrokenSongError("forbidden_file", path, "a link that leads out of the release")
    if facts.st_size > MAX_FILE_BYTES:
        raise BrokenSongError("too_large", path, f"{facts.st_size} bytes, expected at most {MAX_FILE_BYTES}")
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BrokenSongError("not_utf8", path, f"not UTF-8 at byte {error.start}") from error
    except OSError as error:
        raise BrokenSongError("forbidden_file", path, f"cannot be read ({error.strerror})") from error
    counts["byte_order_mark"] += text.startswith("\ufeff")
    counts["carriage_return"] += "\r" in text
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def parse_object(text: str, path: Path) -> dict[str, Any]:
    """Return the JSON object that a text holds."""
    read = _parse_json(text, path)
    if not isinstance(read, dict):
        raise BrokenSongError("unparsable", path, f"expected a JSON object, got {type(read).__name__}")
    return read


def _parse_json(text: str, path: Path, **options: Any) -> Any:
    try:
        return json.loads(text, **options)
    except (ValueError, RecursionError) as error:
        raise BrokenSongError("unparsable", path, f"not JSON ({error})") from error


def parse_meta(text: str, anomalies: Counter[str], *, slash: bool) -> dict[str, Any]:
    """Return title, artist, genre and album of ``key : value`` lines; what is blank or not there is null."""
    reported = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.split("\n"))}
    row: dict[str, Any] = {column: reported.get(key) or None for key, column in _META.items()}
    for column, value in row.items():
        anomalies[f"blank_{column}"] += value is None
    names = re.split(r"[,/]" if slash else ",", row["artist"] or "")
    row["artist"] = [name for name in names if name.strip()]
    return row


def parse_structure(words: str, patterns: str, folder: Path, anomalies: Counter[str]) -> list[dict[str, Any]]:
    """Return the `structure` of a row from ``str_lyric`` and ``str_rhyme``."""
    sung = _sections(words, folder / "str_lyric", anomalies)
    marked = _sections(patterns, folder / "str_rhyme", anomalies)
    here, there = ([(label, len(lines)) for label, lines in part] for part in (sung, marked))
    if here != there:
        where = next((pair for pair in zip(here, there, strict=False) if pair[0] != pair[1]), (len(here), len(there)))
        reason = f"sections and line counts differ from those of str_lyric: {where[0]} there, {where[1]} here"
        raise BrokenSongError("structure_differs", folder / "str_rhyme", reason)
    rows = [section_row(label, lines, rhyme) for (label, lines), (_, rhyme) in zip(sung, marked, strict=True)]
    for row in rows:
        anomalies["unknown_section"] += row["type"] not in SECTION_TYPES
        anomalies["empty_section"] += not row["lines"]
        for line, pattern in zip(row["lines"], row["rhyme"], strict=True):
            anomalies["not_chinese"] += not _CHINESE.fullmatch(line)
            anomalies["not_in_grammar"] += not _PATTERN.fullmatch(pattern)
            anomalies["lengths_differ"] += len(line) != len(pattern)
            anomalies["pauses_differ"] += len(line) == len(pattern) and any(
                (here == " ") != (there == " ") for here, there in zip(line, pattern, strict=True)
            )
    return rows


def _sections(text: str, path: Path, anomalies: Counter[str]) -> list[tuple[str, tuple[str, ...]]]:
    lines = text.removesuffix("\n").split("\n")
    nonblank = [line for line in lines if line.strip()]
    anomalies["blank_line"] += len(lines) - len(nonblank)
    try:
        sections = sections_of_text("\n".join(nonblank))
    except InvalidLyricsError as error:
        raise BrokenSongError("unparsable", path, str(error)) from error
    if not sections:
        raise BrokenSongError("unparsable", path, "no section header such as (verse1)")
    return [(section.label, section.lines) for section in sections]


def parse_raw(text: str, anomalies: Counter[str]) -> list[dict[str, Any]]:
    """Return `timed_lyrics` from ``raw_lyric``; seconds."""
    if text.lstrip().startswith("{"):
        anomalies["raw_is_description"] += 1
        return []
    rows = []
    for line in text.split("\n"):
        match = _TIME.fullmatch(line)
        if match:
            rows.append({"start": _seconds(match), "text": match[4]})
        else:
            anomalies["line_without_time"] += bool(line.strip())
    anomalies["raw_not_monotone"] += _goes_back(rows)
    return rows


def parse_tokens(text: str, path: Path, anomalies: Counter[str]) -> list[dict[str, Any]]:
    """Return `timed_sections` from ``tknz_json``, in the order of the file; seconds."""
    pairs = _parse_json(text, path, object_pairs_hook=list)
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) and isinstance(pair[1], str) for pair in pairs):
        raise BrokenSongError("unparsable", path, "expected a JSON object of strings")
    anomalies["same_time_twice"] += len(pairs) - len({time for time, _ in pairs})
    rows = []
    for time, token in pairs:
        match, tagged = _TIME.fullmatch(time), _TOKEN.fullmatch(token)
        anomalies["line_without_time"] += match is None
        anomalies["line_without_section"] += tagged is None
        if match:
            section, line = tagged.groups() if tagged else (None, token)
            rows.append({"start": _seconds(match), "section": section, "text": line})
    anomalies["tokens_not_monotone"] += _goes_back(rows)
    return rows


def _seconds(match: re.Match[str]) -> float:
    """Return the time of ``[mm:ss.xx]``, rounded once."""
    return (int(match[1]) * 60_000 + int(match[2]) * 1000 + int(match[3].ljust(3, "0"))) / 1000


def _goes_back(rows: Sequence[Mapping[str, Any]]) -> bool:
    return any(after["start"] < before["start"] for before, after in itertools.pairwise(rows))


def compare_raw(row: Mapping[str, Any], anomalies: Counter[str]) -> None:
    """Count whether the timed lyrics of a row, if it has any, are the lines of its structure."""
    if not row["timed_lyrics"]:
        return
    raw = [line["text"] for line in row["timed_lyrics"]]
    lines = [line for section in row["structure"] for line in section["lines"]]
    anomalies["raw_line_count"] += len(raw) != len(lines)
    anomalies["raw_text"] += raw != lines
