"""Rhyme of Chinese lines by the 18 classes of the Chinese New Rhyme (zhonghua xinyun).

A line's class is that of its last Chinese character, U+4E00 to U+9FFF; what follows it (spaces, punctuation, Latin)
does not count. ``char`` and ``words`` also read the zero, U+3007, as líng. Lines rhyme if they share a class *within
their section*: the marks of MuChin's data follow this rule, not the "one before it" of the paper's text. These marks
were made by a program and then checked by annotators, so that agreement with them is agreement with that program first
of all.

How a character is read decides, and there are several ways to find out:

========== ============================================================ =========================================
method     reading of the last character                                use
========== ============================================================ =========================================
official   in the word that jieba cuts there, by pypinyin with the      parity with the authors' code
           tables ``large_pinyin`` and ``cc_cedict`` of pypinyin-dict
line       as pypinyin reads the whole line with these tables           parity but for the word cutting
char       the character's usual reading in ``cc_cedict``; particles    closest to the marks, and quickest
           and interjections as a line ends in them: 呢 ne, 哦 o
words      in the longest word of CC-CEDICT that the line ends in;      reading what is sung
           particles as they are sung, and 儿 as an ending of the word
callable   whatever it finds                                            other languages, other rules
========== ============================================================ =========================================

``official`` and ``line`` read what the authors' code reads, its mistakes too: 呢 at the end of a line is the cloth ní.

What counts as one class is a scheme of its own, named behind a plus sign: ``"official+shisanzhe"``.

============= ======================================================================================= ==========
scheme        classes                                                                                 number
============= ======================================================================================= ==========
``xinyun18``  the New Rhyme of 1941 (zhonghua xinyun), `RHYME_CLASSES`; the default                   18
``shisanzhe`` the thirteen tracks of northern song and opera (shisan zhe): o with e; i, -i, er and ü  13
              as one; eng with ong
``xinyun14``  the New Rhyme of 2005, in fourteen classes: o with e; i, er and ü as one; eng with ong   14
``near``      the thirteen tracks, and en, in, un, ün with eng, ing, ong: what near rhymes share       12
============= ======================================================================================= ==========

All but a callable need the extra ``lyrics``. The tables are read where they lie, at run time: nobody's jieba or
pypinyin is changed, nor does what was loaded into those count.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from music_evals.errors import UnknownNameError, UnsupportedTypeError, importing
from music_evals.lyrics.last_words import load_last_words
from music_evals.lyrics.readings import LINE_END, load_readings, rhyme_of_bopomofo

__all__ = [
    "METHODS", "RHYME_CLASSES", "SCHEMES", "RhymeClass", "RhymeMethod", "class_counts", "last_character",
    "rhyme_by_words", "rhyme_class", "rhyme_function", "rhyme_kind", "rhyme_marks",
]  # fmt: skip

METHODS: Final = ("official", "line", "char", "words")
"""Named ways to find the class of a line."""

_ZERO: Final = "\u3007"

_THIRTEEN: Final = {3: 2, 5: 7, 6: 7, 11: 7, 18: 17}
SCHEMES: Final[Mapping[str, Mapping[int, int]]] = MappingProxyType(
    {
        "xinyun18": MappingProxyType({}),
        "shisanzhe": MappingProxyType(_THIRTEEN),
        "xinyun14": MappingProxyType({3: 2, 6: 7, 11: 7, 18: 17}),
        "near": MappingProxyType({**_THIRTEEN, 17: 15, 18: 15}),
    }
)
"""Name -> class of `RHYME_CLASSES` -> the one that it is counted with; those that are missing stand for themselves."""

RhymeMethod = str | Callable[[str], Hashable]
"""A name out of `METHODS`, alone or with a scheme behind a plus sign, or a function from a line to its class, None for
a line that cannot rhyme."""


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
    """Return the position of the last Chinese character (U+4E00 to U+9FFF) of a line, -1 if there is none."""
    at = len(line) - 1
    while at >= 0 and not "\u4e00" <= line[at] <= "\u9fff":
        at -= 1
    return at


def rhyme_function(method: RhymeMethod = "official") -> Callable[[str], Hashable]:
    """Return the function from a line to its rhyme class, with its tables loaded.

    The method is a name out of `METHODS`, alone or with a scheme out of `SCHEMES` as ``"char+shisanzhe"``, or such a
    function, which is returned as it is.

    Raises
    ------
    UnknownNameError
        A name that is not in `METHODS`, or a scheme that is not in `SCHEMES`.
    UnsupportedTypeError
        Neither a name nor a function.
    MissingBackendError
        A package that the method needs is not installed.
    """
    return method if callable(method) else _loaded(_named(method))


def rhyme_class(text: str, method: RhymeMethod = "official") -> Hashable:
    """Return the rhyme class of a line, by a method that `rhyme_function` takes.

    It is a key of `RHYME_CLASSES`; the character itself, or the bopomofo symbol, where its reading is unknown or in no
    class; None for a line that cannot rhyme, as one without a Chinese character. With a function, whatever it returns.

    Examples
    --------
    >>> rhyme_class("床前明月光", "char"), RHYME_CLASSES[16].name
    (16, '唐')
    """
    return rhyme_function(method)(text)


def rhyme_marks(lines: Iterable[str], method: RhymeMethod = "official") -> list[bool]:
    """Tell of each line of one section whether it rhymes: whether another line of the section has its class too.

    The method is one that `rhyme_function` takes.

    Examples
    --------
    >>> rhyme_marks(["床前明月光", "疑是地上霜", "举头望明月", "低头思故乡"], "char")
    [True, True, False, True]
    """
    find = rhyme_function(method)
    classes = [find(line) for line in lines]
    counts = class_counts(classes)
    return [counts.get(each, 0) > 1 for each in classes]


def rhyme_by_words(*, scheme: str = "xinyun18", sung: str = "neutral", erhua: bool = True) -> Callable[[str], Hashable]:
    """Return the method ``"words"`` with other choices, as a function that all of this module take.

    A scheme or a way to sing that does not exist is an `UnknownNameError`; without the extra ``lyrics`` it is a
    `MissingBackendError`.

    Parameters
    ----------
    scheme
        What counts as one class, out of `SCHEMES`.
    sung
        How 的, 了 and 着 are read as particles at the end of a line: ``"neutral"``, de, le and zhe, or ``"full"``, di,
        liao and zhuo, as in older songs. In a word they are read as the dictionary has it: 目的, 明了, 执着.
    erhua
        Whether 儿 that only colours the syllable before it is left out, so that 花儿 rhymes with 家. False sings it as
        a syllable of its own. In a word such as 女儿 it always is one.

    Examples
    --------
    >>> plain, older = rhyme_by_words(), rhyme_by_words(sung="full")
    >>> plain("心里的人走了"), older("心里的人走了"), plain("这件事我不明了")
    (3, 13, 13)
    """
    if sung not in SUNG:
        raise UnknownNameError("way to sing particles", sung, SUNG)
    merged = _scheme(scheme)
    with importing("lyrics", "the rhyme of a Chinese line"):
        from pypinyin.style.bopomofo import converter
        from pypinyin_dict.phrase_pinyin_data import cc_cedict
    phrases, readings = cc_cedict.phrases_dict, load_readings()
    bopomofo = functools.lru_cache(maxsize=4096)(converter.to_bopomofo)

    def of_line(text: str) -> int | str | None:
        """Return the class of a text that ends with a Chinese character."""
        # the longest word that the text ends in, 儿 as an ending of the word
        for size in range(min(LONGEST, len(text)), 1, -1):
            word = text[-size:]
            syllables = phrases.get(word)
            if syllables is not None:
                colours = word[-1] == _CHILD and erhua and "er" in syllables[-1] and len(syllables) > 1
                return rhyme_of_bopomofo(bopomofo(syllables[-2 if colours else -1][0]))
        last = text[-1]
        if last == "地" and len(text) > 2 and text[-2] == text[-3]:  # 慢慢地
            return readings.of_character("的") if sung == "neutral" else rhyme_of_bopomofo("ㄉㄧ")
        particle = SUNG[sung].get(last) or LINE_END.get(last)
        return rhyme_of_bopomofo(particle) if particle else readings.of_character(last)

    def words(line: str) -> Hashable:
        at = _last_read(line)
        if at < 0:
            return None
        start = at
        while start and _last_read(line[start - 1]) == 0:
            start -= 1
        rhyme_class = of_line(line[start : at + 1])
        return merged.get(rhyme_class, rhyme_class) if isinstance(rhyme_class, int) else rhyme_class

    return words


def rhyme_kind(first: str, second: str, method: str = "words") -> str:
    """Tell how two lines rhyme, by a name out of `METHODS`, alone or with a scheme.

    ``"full"``: the same class; ``"near"``: the same class of the scheme ``near`` only; ``"none"``.

    Examples
    --------
    >>> rhyme_kind("春眠不觉晓", "花落知多少"), rhyme_kind("夜来风雨声", "城春草木深")
    ('full', 'near')
    """
    name = _named(method).partition("+")[0]
    for kind, chosen in (("full", method), ("near", f"{name}+near")):
        classes = [rhyme_class(line, chosen) for line in (first, second)]
        if classes[0] is not None and classes[0] == classes[1]:
            return kind
    return "none"


def class_counts(classes: Iterable[Hashable]) -> dict[Hashable, int]:
    """Return how many lines of a section have each class, those without one left out."""
    return Counter(each for each in classes if each is not None)


def _last_read(line: str) -> int:
    """Return the position of the last character that is Chinese or the zero, -1 if there is none."""
    return max(last_character(line), line.rfind(_ZERO))


def _named(method: object) -> str:
    if not isinstance(method, str):
        raise UnsupportedTypeError(
            f"rhyme must be one of {', '.join(METHODS)} or a function line -> class, got {type(method).__name__}"
        )
    name, plus, scheme = method.partition("+")
    if name not in METHODS:
        raise UnknownNameError("rhyme method", name, METHODS)
    if plus:
        _scheme(scheme)
    return method


def _scheme(name: str) -> Mapping[int, int]:
    if name not in SCHEMES:
        raise UnknownNameError("rhyme scheme", name, SCHEMES)
    return SCHEMES[name]


@functools.cache
def _loaded(method: str) -> Callable[[str], Hashable]:
    name, plus, scheme = method.partition("+")
    if plus:
        find, merged = _loaded(name), _scheme(scheme)

        def counted(line: str) -> Hashable:
            rhyme_class = find(line)
            return merged.get(rhyme_class, rhyme_class) if isinstance(rhyme_class, int) else rhyme_class

        return counted
    if method == "words":
        return rhyme_by_words()
    readings = load_readings()
    if method == "char":
        alone = {each: rhyme_of_bopomofo(reading) for each, reading in LINE_END.items()}

        def char(line: str) -> Hashable:
            at = _last_read(line)
            if at < 0:
                return None
            return alone[line[at]] if line[at] in alone else readings.of_character(line[at])

        return char
    if method == "line":
        return lambda line: readings.of_text(line[: at + 1]) if (at := last_character(line)) >= 0 else None
    words = load_last_words()

    def official(line: str) -> Hashable:
        at = last_character(line)
        if at < 0:
            return None
        word = words.of_text(line[: at + 1])
        # pypinyin does not know a word such as "T恤": it cuts the Chinese part again
        return readings.of_word(word) if min(word) >= "\u4e00" else readings.of_text(word)

    return official


# How the end of a sung line is read: by the longest word of a dictionary that it ends in, particles as they are sung.
#
# The dictionary is CC-CEDICT (CC BY-SA 4.0), as pypinyin-dict brings it along; it is read where it lies. It writes the
# retroflex ending of a word as a neutral ``er``, so that 花儿 can be told from 女儿.


LONGEST: Final = 8
"""Characters of a word that is looked for; longer entries are proverbs."""

SUNG: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "neutral": MappingProxyType({"的": "ㄉㄜ", "了": "ㄌㄜ", "着": "ㄓㄜ", "得": "ㄉㄜ"}),
        "full": MappingProxyType({"的": "ㄉㄧ", "了": "ㄌㄧㄠ", "着": "ㄓㄨㄛ", "得": "ㄉㄜ"}),
    }
)
"""How particles at the end of a line are sung: as they are spoken, or with their full vowels as in older songs."""

_CHILD = "儿"
