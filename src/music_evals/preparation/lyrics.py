"""Lyrics of a song: their files with time stamps of lines, what is sung of them, and a first draft of its times."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import F0Track
from music_evals.errors import InvalidAnnotationError, InvalidLyricsError
from music_evals.lyrics.normalise import normalise_lyrics

Floats = npt.NDArray[np.float64]

_HAN: Final = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_VOWELS: Final = re.compile("[aeiouy]+")
APOSTROPHES: Final = "'\u2019"  # within a word
LONGEST_SHARE_SEC: Final = 2.0
"""Longest share of a character in a draft: what a line has beyond it is taken for an interlude."""
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

    Lines begin with stamps as ``[00:12.30]``, one for each time that they are sung. A stamp without words behind a line
    is kept as a line without text: it ends the one before it, as at an interlude. A line ``[offset:250]`` moves all of
    them by so many milliseconds: to a later time where it is negative, to an earlier one where it is positive, but not
    before the beginning. None may begin after `duration_sec`.
    """
    text = _read(path)
    offsets = sorted({offset.strip() for offset in _OFFSET.findall(text)})
    matches = [_MILLISECONDS.fullmatch(offset) for offset in offsets or ["0"]]
    if len(matches) > 1 or matches[0] is None:
        raise InvalidLyricsError(
            f"{path}: expected one whole number of milliseconds as [offset:+250], got {', '.join(offsets)}"
        )
    shift = int(matches[0][1]) / _MS_PER_SEC
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
    # lines without text that end no line before they do, or that are over at once, are left out
    end_sec = math.inf if duration_sec is None else duration_sec
    remaining: list[TimedLine] = []
    for stamped, later in zip(moved, [*moved[1:], TimedLine(math.inf, "")], strict=True):
        until = min(end_sec, later.start_sec)
        if stamped.text or (remaining and remaining[-1].text and remaining[-1].start_sec < stamped.start_sec < until):
            remaining.append(stamped)
    return remaining


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidLyricsError(f"{path} is not UTF-8; save the lyrics as UTF-8") from error


@dataclasses.dataclass(frozen=True)
class Character:
    """A sung character, or a word of a language that is not written in characters."""

    text: str
    start_sec: float
    end_sec: float
    line: int = 0

    def __post_init__(self) -> None:
        if not self.text or self.line < 0:
            raise InvalidAnnotationError(f"expected a text and a line from 0 on, got {self.text!r}, line {self.line}")
        if not -np.inf < self.start_sec < self.end_sec < np.inf:
            raise InvalidAnnotationError(
                f"character {self.text!r}: expected start before end, got {self.start_sec} s and {self.end_sec} s"
            )


def characters_of_line(text: str) -> list[str]:
    """Return what is sung of a line: each Chinese character, and each run of other letters and digits as one word."""
    characters: list[str] = []
    word = ""
    for letter in [*text, " "]:
        inside = unicodedata.category(letter)[0] in "LNM" or (letter in APOSTROPHES and bool(word))
        if _HAN.match(letter) or not inside:
            characters += [word.rstrip(APOSTROPHES)] if word else []
            word = ""
            if _HAN.match(letter):
                characters.append(letter)
        else:
            word += letter
    return characters


def spread_lines(lines: Sequence[tuple[float, str]], end_sec: float, f0: F0Track | None = None) -> list[Character]:
    """Return a draft: the characters of each line share its sounding time by their syllables.

    A line lasts from its stamp (in seconds) to the next one; one without a letter, as of an interlude, only ends the
    one before it. With `f0`, its sounding time is that of its voiced frames, so that interludes and breaths get no
    character; without it, or where a line has no voiced frame, it is all of its time, cut off where a syllable would
    get more than `LONGEST_SHARE_SEC`. A Chinese character is one syllable; of another word its groups of vowels are
    counted. It is a draft for `refinement.refine`, or for people.
    """
    for (start, text), (later, other) in itertools.pairwise(lines):
        if start >= later:
            raise InvalidAnnotationError(
                f"expected time stamps that increase, but {text!r} begins at {start:.2f} s and {other!r} at "
                f"{later:.2f} s; of lines that begin together keep the one that is sung, no translation and no credits"
            )
    if lines and lines[-1][0] >= end_sec:
        raise InvalidAnnotationError(
            f"expected time stamps that increase up to the end of the song at {end_sec:.2f} s, but {lines[-1][1]!r} "
            f"begins at {lines[-1][0]:.2f} s"
        )
    characters: list[Character] = []
    ends = [*(start for start, _ in lines[1:]), end_sec]
    for number, ((start, text), end) in enumerate(zip(lines, ends, strict=True)):
        names = characters_of_line(text)
        if not names:
            continue
        vowels = [1 if _HAN.match(name) else len(_VOWELS.findall(name.lower())) for name in names]
        syllables = np.maximum(np.array(vowels, dtype=np.float64), 1)
        edges = _edges(np.concatenate([[0.0], np.cumsum(syllables) / syllables.sum()]), start, end, f0, syllables.sum())
        characters += [
            Character(name, float(first), float(last), number)
            for name, first, last in zip(names, edges[:-1], edges[1:], strict=True)
        ]
    if not characters:
        raise InvalidLyricsError("no line has a letter that could be sung; check the lyrics")
    return characters


def _edges(shares: Floats, start: float, end: float, f0: F0Track | None, n_syllables: float) -> Floats:
    """Return the times at which shares of the sounding time of a line have passed, increasing."""
    if f0 is not None:
        inside = (f0.times_sec >= start) & (f0.times_sec < end)
        times, sounding = f0.times_sec[inside], f0.voiced[inside]
        if sounding.sum() > len(shares):
            # Voiced time passes at 1, other time at 1 in 1000, so that the inverse is defined everywhere.
            passed = np.cumsum(np.where(sounding, 1.0, 1e-3))
            passed = (passed - passed[0]) / (passed[-1] - passed[0])
            first, last = np.flatnonzero(sounding)[[0, -1]]
            low, high = passed[first], passed[last]
            edges: Floats = np.interp(low + shares * (high - low), passed, times)
            return edges
    whole: Floats = start + shares * min(end - start, LONGEST_SHARE_SEC * n_syllables)
    return whole
