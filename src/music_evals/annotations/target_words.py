"""The targets that an instruction names in words, by a grammar: no model guesses what was meant.

========================  ===========================================================================================
Target                    Words (English, in any case)
========================  ===========================================================================================
``tempo``                 "120 bpm"; "20 % faster", "10 percent slower"; "twice as fast", "half the speed"
``transpose``             "up two semitones", "down by a fifth"; "a whole tone higher", "3 semitones lower"
``key``                   "in A minor", "to the key of E flat major"
``metre``                 "in 3/4", "6/8 time", "waltz time"
``length``                "to 20 seconds", "20 seconds long"; "twice as long", "half as long"
``loudness``              "6 dB louder", "3 dB softer"
``instrument_added``      "add a flute", "with a flute instead", "replace the piano with a flute"
``instrument_removed``    "remove the drums", "without drums", "replace the piano with a flute"
========================  ===========================================================================================

What says less names no target: "faster" has no amount. Where descriptions of the music before and after are given and
both name instruments, one that only the second names is added, and one that only the first names is removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from music_evals.annotations.targets import INSTRUMENTS, EditTarget

__all__ = ["targets_between", "targets_in_words"]

_NUMBERS: Final = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_INTERVALS: Final = {
    "semitone": 1, "half step": 1, "half tone": 1, "whole tone": 2, "whole step": 2, "tone": 2, "minor third": 3,
    "major third": 4, "fourth": 5, "tritone": 6, "fifth": 7, "octave": 12,
}  # fmt: skip
_ALIASES: Final = {
    "drum kit": "drums", "drum": "drums", "drummer": "drums", "sax": "saxophone",
    "fiddle": "violin", "bass guitar": "bass", "electric guitar": "guitar", "acoustic guitar": "guitar",
    "church organ": "organ",
}  # fmt: skip
_NAMES: Final = {**{name: name for name in INSTRUMENTS}, **_ALIASES}


def _any(words: object) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))  # type: ignore[call-overload]


_SIZE = rf"(?P<number>\d+|{_any(_NUMBERS)}) (?P<interval>{_any(_INTERVALS)})s?"
_INSTRUMENT = rf"({_any(_NAMES)})s?\b"
_ARTICLE = r"(?:(?:a|an|the|some|its|\d+) )?"

Reading = Callable[[re.Match[str]], str]


def _steps(match: re.Match[str]) -> str:
    semitones = (
        int(_NUMBERS.get(match["number"].casefold(), match["number"])) * _INTERVALS[match["interval"].casefold()]
    )
    return f"{'+' if match['way'].casefold() in {'up', 'higher'} else '-'}{semitones}" if 0 < semitones <= 24 else ""


def _factor(match: re.Match[str]) -> str:
    return "0.5x" if match[1].casefold() == "half" else "2x"


def _tempo(match: re.Match[str]) -> str:
    return f"{1 + (1 if match[2].casefold() == 'faster' else -1) * int(match[1]) / 100:g}x"


def _key(match: re.Match[str]) -> str:
    accidental = {"sharp": "#", "flat": "b", None: ""}.get(match[3] and match[3].casefold(), match[3])
    return f"{(match[1] or match[2]).upper()}{accidental} {match[4].casefold()}"


def _level(match: re.Match[str]) -> str:
    return f"{'+' if match[2].casefold() == 'louder' else '-'}{match[1]} dB"


def _first(form: str) -> Reading:
    return lambda match: form.format(next(group for group in match.groups() if group is not None))


def _name(place: int) -> Reading:
    return lambda match: _NAMES[[group for group in match.groups() if group is not None][place].casefold()]


_REPLACE = rf"\breplace {_ARTICLE}{_INSTRUMENT} (?:with|by) {_ARTICLE}{_INSTRUMENT}"
_RULES: Final[Sequence[tuple[str, str, Reading]]] = (
    ("tempo", r"\b(\d{2,3}) ?bpm\b", _first("{} bpm")),
    ("tempo", r"\b(\d{1,2}) ?(?:%|per ?cent) (faster|slower)\b", _tempo),
    ("tempo", r"\b(twice|double|half) (?:as fast|the tempo|the speed)\b", _factor),
    ("transpose", rf"\b(?P<way>up|down) (?:by )?{_SIZE}\b", _steps),
    ("transpose", rf"\b{_SIZE} (?P<way>higher|lower|up|down)\b", _steps),
    # a letter alone is a key where it is a capital: "in a major way"
    ("key", r"\b(?:in|into|to) (?:the key of ([a-g])|(?-i:([A-G]))) ?(#|b|sharp|flat)? ?(major|minor)\b", _key),
    ("metre", r"(?<![\d/])([1-9]\d?/(?:2|4|8|16))(?![\d/])", _first("{}")),
    ("metre", r"\b(waltz time)\b", lambda _: "3/4"),
    ("length", r"\b(?:to ([1-9]\d*) seconds|([1-9]\d*) seconds long)\b", _first("{} s")),
    ("length", r"\b(twice|double|half) (?:as long|the length)\b", _factor),
    ("loudness", r"\b([1-9]\d*) ?db (louder|softer|quieter)\b", _level),
    ("instrument_removed", _REPLACE, _name(0)),
    ("instrument_removed", rf"\b(?:remove|without|leave out|take out) {_ARTICLE}{_INSTRUMENT}", _name(0)),
    ("instrument_added", _REPLACE, _name(1)),
    ("instrument_added", rf"\badd {_ARTICLE}{_INSTRUMENT}|\bwith {_ARTICLE}{_INSTRUMENT} instead", _name(0)),
)
"""Kind, pattern, and how the amount is read off what it matches; of rules of one kind the first counts."""


def targets_in_words(text: str) -> tuple[EditTarget, ...]:
    """Return the targets that an instruction names, at most one of a kind: the first.

    Examples
    --------
    >>> [(target.kind, target.text) for target in targets_in_words("Play it 20 % faster, a whole tone higher.")]
    [('tempo', '1.2x'), ('transpose', '+2')]
    """
    words = " ".join(text.replace("-", " ").split())
    targets: dict[str, EditTarget] = {}
    for kind, pattern, read in _RULES:
        match = re.search(pattern, words, re.IGNORECASE | re.ASCII)
        if match is not None and kind not in targets and (amount := read(match)):
            targets[kind] = EditTarget(kind, amount)
    return tuple(targets.values())


def targets_between(before: str, after: str) -> tuple[EditTarget, ...]:
    """Return the targets of instruments that follow from descriptions of the music before and after an edit.

    Nothing follows where one of them names no instrument: it does not say what plays.
    """
    first, second = _instruments(before), _instruments(after)
    if not first or not second:
        return ()
    added, removed = (
        [name for name in side if name not in other] for side, other in ((second, first), (first, second))
    )
    targets = [EditTarget("instrument_added", name) for name in added[:1]]
    return (*targets, *(EditTarget("instrument_removed", name) for name in removed[:1]))


def _instruments(text: str) -> list[str]:
    """Return the instruments that a description names, each once, in its order."""
    words = " ".join(text.casefold().split())
    return list(dict.fromkeys(_NAMES[match[1]] for match in re.finditer(rf"\b{_INSTRUMENT}", words)))
