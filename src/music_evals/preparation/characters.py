"""Characters of sung lyrics with their times, and a first draft of these where only lines have time stamps."""

from __future__ import annotations

import dataclasses
import itertools
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import F0Track
from music_evals.errors import InvalidAnnotationError, InvalidLyricsError

__all__ = ["Character", "characters_of_line", "spread_lines"]

Floats = npt.NDArray[np.float64]

_HAN: Final = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_VOWELS: Final = re.compile("[aeiouy]+")
APOSTROPHES: Final = "'\u2019"  # within a word
LONGEST_SHARE_SEC: Final = 2.0
"""Longest share of a character in a draft: what a line has beyond it is taken for an interlude."""


@dataclasses.dataclass(frozen=True)
class Character:
    """A sung character, or a word of a language that is not written in characters.

    Parameters
    ----------
    text
        Not empty.
    start_sec, end_sec
        Finite; the end lies after the start.
    line
        Index of its line among the lines of the song, those without a letter too; >= 0.

    Raises
    ------
    InvalidAnnotationError
        One of these does not hold.

    """

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
    """Return what is sung of a line: each Chinese character, and each run of other letters and digits as one word.

    Examples
    --------
    >>> characters_of_line("我说 hello,世界!")
    ['我', '说', 'hello', '世', '界']

    """
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

    A line lasts from its stamp to the next one. With `f0`, its sounding time is that of its voiced frames, so that
    interludes and breaths get no character; without it, or where a line has no voiced frame, it is all of its time, cut
    off where a syllable would get more than `LONGEST_SHARE_SEC`. A Chinese character is one syllable; of another word
    its groups of vowels are counted. It is a draft for `refinement.refine`, or for people.

    Parameters
    ----------
    lines
        Time stamp in seconds and text of each line, by time; a line without a letter, as of an interlude, only ends
        the line before it.
    end_sec
        End of the song, after the last stamp.
    f0
        Pitch of the voice.

    Raises
    ------
    InvalidLyricsError
        No line has a letter.
    InvalidAnnotationError
        Stamps that do not increase, as those of a translation, or that reach beyond `end_sec`.

    """
    _check_stamps(lines, end_sec)
    characters: list[Character] = []
    ends = [*(start for start, _ in lines[1:]), end_sec]
    for number, ((start, text), end) in enumerate(zip(lines, ends, strict=True)):
        names = characters_of_line(text)
        if not names:
            continue
        syllables = np.array([_syllables(name) for name in names], dtype=np.float64)
        edges = _edges(np.concatenate([[0.0], np.cumsum(syllables) / syllables.sum()]), start, end, f0, syllables.sum())
        characters += [
            Character(name, float(first), float(last), number)
            for name, first, last in zip(names, edges[:-1], edges[1:], strict=True)
        ]
    if not characters:
        raise InvalidLyricsError("no line has a letter that could be sung; check the lyrics")
    return characters


def _check_stamps(lines: Sequence[tuple[float, str]], end_sec: float) -> None:
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


def _syllables(name: str) -> int:
    return 1 if _HAN.match(name) else max(len(_VOWELS.findall(name.lower())), 1)


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
