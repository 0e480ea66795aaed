"""Rhyme of Chinese lines by the 18 classes of the Chinese New Rhyme (zhonghua xinyun).

A line's class is that of its last Chinese character, U+4E00 to U+9FFF; what follows it (spaces, punctuation, Latin)
does not count. Lines rhyme if they share a class *within their section*: the marks of MuChin's data follow this rule,
not the "one before it" of the paper's text. These marks were made by a program and then checked by annotators, so that
agreement with them is agreement with that program first of all.

How a character is read decides, and there are several ways to find out:

========== ============================================================ =========================================
method     reading of the last character                                use
========== ============================================================ =========================================
official   in the word that jieba cuts there, by pypinyin with the      parity with the authors' code
           tables ``large_pinyin`` and ``cc_cedict`` of pypinyin-dict
line       as pypinyin reads the whole line with these tables           parity but for the word cutting
char       the character's usual reading in ``cc_cedict``               closest to the marks, and quickest
callable   whatever it finds                                            other languages, other rules
========== ============================================================ =========================================

All but a callable need the extra ``lyrics``. The tables are read where they lie, at run time: nobody's jieba or
pypinyin is changed, nor does what was loaded into those count.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from music_evals.errors import UnknownNameError, UnsupportedTypeError
from music_evals.lyrics._readings import load_readings
from music_evals.lyrics._words import load_last_words

__all__ = [
    "METHODS",
    "RHYME_CLASSES",
    "RhymeClass",
    "RhymeMethod",
    "class_counts",
    "last_character",
    "rhyme_class",
    "rhyme_function",
    "rhyme_marks",
]

METHODS: Final = ("official", "line", "char")
"""Named ways to find the class of a line."""

RhymeMethod = str | Callable[[str], Hashable]
"""A name out of `METHODS`, or a function from a line to its class, None for a line that cannot rhyme."""


class RhymeClass(NamedTuple):
    """A class of the Chinese New Rhyme.

    Attributes
    ----------
    number
        1..18.
    name
        The character that it is called by.
    finals
        In pinyin.

    """

    number: int
    name: str
    finals: tuple[str, ...]


RHYME_CLASSES: Final[Mapping[int, RhymeClass]] = MappingProxyType(
    {
        number: RhymeClass(number, name, tuple(finals.split()))
        for number, (name, finals) in enumerate(
            [
                ("麻", "a ia ua"), ("波", "o uo"), ("歌", "e"), ("皆", "ie üe"), ("支", "-i"), ("儿", "er"),
                ("齐", "i"), ("微", "ei ui"), ("开", "ai uai"), ("姑", "u"), ("鱼", "ü"), ("侯", "ou iu"),
                ("豪", "ao iao"), ("寒", "an ian uan üan"), ("痕", "en in un ün"), ("唐", "ang iang uang"),
                ("庚", "eng ing weng"), ("东", "ong iong"),
            ],
            start=1,
        )
    }
)  # fmt: skip
"""Number -> class."""


def last_character(line: str) -> int:
    """Return the position of the last Chinese character (U+4E00 to U+9FFF) of a line, -1 where there is none."""
    at = len(line) - 1
    while at >= 0 and not "\u4e00" <= line[at] <= "\u9fff":
        at -= 1
    return at


def rhyme_function(method: RhymeMethod = "official") -> Callable[[str], Hashable]:
    """Return the function from a line to its rhyme class, with its tables loaded.

    Parameters
    ----------
    method
        A name out of `METHODS`, or such a function, which is returned as it is.

    Raises
    ------
    UnknownNameError
        A name that is not in `METHODS`.
    UnsupportedTypeError
        Neither a name nor a function.
    MissingBackendError
        A package that the method needs is not installed.

    """
    return method if callable(method) else _loaded(_named(method))


def rhyme_class(text: str, method: RhymeMethod = "official") -> Hashable:
    """Return the rhyme class of a line.

    Parameters
    ----------
    text
        A line; one without a Chinese character has no class.
    method
        A name out of `METHODS`, or a function from a line to its class.

    Returns
    -------
    int, str or None
        A key of `RHYME_CLASSES`; the character itself, or the bopomofo symbol, where its reading is unknown or in no
        class; None for a line that cannot rhyme. With a function, whatever it returns.

    Raises
    ------
    UnknownNameError, UnsupportedTypeError, MissingBackendError
        As `rhyme_function`.

    Examples
    --------
    >>> rhyme_class("床前明月光", "char"), RHYME_CLASSES[16].name
    (16, '唐')

    """
    return rhyme_function(method)(text)


def rhyme_marks(lines: Iterable[str], method: RhymeMethod = "official") -> list[bool]:
    """Tell which lines of one section rhyme: those whose class another line of the section has too.

    Parameters
    ----------
    lines
        Phrases of one section, n of them.
    method
        As in `rhyme_class`.

    Returns
    -------
    list of bool
        n marks, in the order of the lines.

    Raises
    ------
    UnknownNameError, UnsupportedTypeError, MissingBackendError
        As `rhyme_function`.

    Examples
    --------
    >>> rhyme_marks(["床前明月光", "疑是地上霜", "举头望明月", "低头思故乡"], "char")
    [True, True, False, True]

    """
    find = rhyme_function(method)
    classes = [find(line) for line in lines]
    counts = class_counts(classes)
    return [counts.get(each, 0) > 1 for each in classes]


def class_counts(classes: Iterable[Hashable]) -> dict[Hashable, int]:
    """Return how many lines of a section have each class, those without one left out."""
    counts: dict[Hashable, int] = {}
    for each in classes:
        if each is not None:
            counts[each] = counts.get(each, 0) + 1
    return counts


def _named(method: object) -> str:
    if not isinstance(method, str):
        raise UnsupportedTypeError(
            f"rhyme must be one of {', '.join(METHODS)} or a function line -> class, got {type(method).__name__}"
        )
    if method not in METHODS:
        raise UnknownNameError("rhyme method", method, METHODS)
    return method


@functools.cache
def _loaded(method: str) -> Callable[[str], Hashable]:
    readings = load_readings()
    if method == "char":
        return lambda line: readings.of_character(line[at]) if (at := last_character(line)) >= 0 else None
    if method == "line":
        return lambda line: readings.of_text(line[: at + 1]) if (at := last_character(line)) >= 0 else None
    words = load_last_words()

    def official(line: str) -> Hashable:
        at = last_character(line)
        if at < 0:
            return None
        word = words.of_text(line[: at + 1])
        # a word such as "T恤" is none that pypinyin knows: it cuts the Chinese part again
        return readings.of_word(word) if min(word) >= "\u4e00" else readings.of_text(word)

    return official
