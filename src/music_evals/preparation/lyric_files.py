"""Files of lyrics: their text, and the time stamps of the LRC format."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from music_evals.errors import InvalidLyricsError
from music_evals.lyrics.normalise import normalise_lyrics

__all__ = ["TimedLine", "read_lyrics", "read_timed_lines"]

_STAMP = re.compile(r"\[(\d+):(\d{1,2}(?:[.:]\d{1,3})?)\]")
_OFFSET = re.compile(r"^[^\S\n]*\[offset:([^\]\n]*)\]", re.IGNORECASE | re.MULTILINE)
_MILLISECONDS = re.compile(r"\s*([+-]?\d+)\s*")
_MS_PER_SEC: Final = 1000


class TimedLine(NamedTuple):
    """A line and when it begins."""

    start_sec: float
    text: str


def read_lyrics(path: str) -> str:
    """Return the lyrics of a file without time stamps, one phrase a line."""
    return normalise_lyrics(_read(path)).text


def read_timed_lines(path: str, duration_sec: float | None = None) -> list[TimedLine]:
    """Return the lines of an LRC file with their times, in the order in which they are sung.

    A stamp without words behind a line is kept as a line without text: it ends the one before it, as at an interlude.

    Parameters
    ----------
    path
        Lines begin with stamps as ``[00:12.30]``, one for each time that they are sung. A line ``[offset:250]`` moves
        all of them by so many milliseconds: forward in the song where it is negative, to an earlier time where it is
        positive, but not before the beginning.
    duration_sec
        Of the recording, where there is one.

    Raises
    ------
    InvalidLyricsError
        No line has a stamp, an offset is no number, several differ, or a line begins after the recording has ended.

    """
    text = _read(path)
    shift = _offset_sec(text, path)
    timed = []
    for line in text.splitlines():
        stamps, words = _STAMP.findall(line), _STAMP.sub("", line).strip()
        timed += [(60 * int(minutes) + float(seconds.replace(":", ".")), words) for minutes, seconds in stamps]
    if not any(words for _, words in timed):
        raise InvalidLyricsError(f"{path} has no line with a time stamp, as [00:12.30]; the step alignment needs them")
    moved = [TimedLine(max(0.0, start - shift), words) for start, words in sorted(timed, key=lambda line: line[0])]
    sung = [line for line in moved if line.text]
    late = [line for line in sung if duration_sec is not None and line.start_sec > duration_sec]
    if late:
        raise InvalidLyricsError(
            f"{path}: {len(late)} of {len(sung)} lines begin after the recording has ended, at {duration_sec:.2f} s, "
            f"such as {late[0].text!r} at {late[0].start_sec:.2f} s; these are the lyrics of another recording"
        )
    return _without_idle(moved, math.inf if duration_sec is None else duration_sec)


def _without_idle(lines: Sequence[TimedLine], end_sec: float) -> list[TimedLine]:
    """Leave out lines without text that end no line before they do, or that are over at once."""
    remaining: list[TimedLine] = []
    for line, later in itertools.zip_longest(lines, lines[1:]):
        until = min(end_sec, math.inf if later is None else later.start_sec)
        if line.text or (remaining and remaining[-1].text and remaining[-1].start_sec < line.start_sec < until):
            remaining.append(line)
    return remaining


def _offset_sec(text: str, path: str) -> float:
    offsets = {offset.strip() for offset in _OFFSET.findall(text)}
    if not offsets:
        return 0.0
    matches = [_MILLISECONDS.fullmatch(offset) for offset in offsets]
    if len(matches) > 1 or matches[0] is None:
        raise InvalidLyricsError(
            f"{path}: expected one whole number of milliseconds as [offset:+250], got {', '.join(sorted(offsets))}"
        )
    return int(matches[0][1]) / _MS_PER_SEC


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidLyricsError(f"{path} is not UTF-8; save the lyrics as UTF-8") from error
