"""How the end of a sung line is read: by the longest word of a dictionary that it ends in, particles as they are sung.

The dictionary is CC-CEDICT (CC BY-SA 4.0), as pypinyin-dict brings it along; it is read where it lies. It writes the
retroflex ending of a word as a neutral ``er``, so that 花儿 can be told from 女儿.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from music_evals.errors import UnknownNameError, importing
from music_evals.lyrics._readings import LINE_END, Readings, RhymeClass, load_readings, rhyme_of_bopomofo

__all__ = ["SUNG", "Endings", "check_sung", "load_endings"]

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


class Endings:
    """Rhyme classes of lines, by the words that they end in."""

    def __init__(
        self, phrases: Mapping[str, Sequence[Sequence[str]]], readings: Readings, bopomofo: Callable[[str], str]
    ) -> None:
        self._phrases, self._readings, self._bopomofo = phrases, readings, bopomofo

    def of_line(self, text: str, *, sung: str = "neutral", erhua: bool = True) -> RhymeClass:
        """Return the class of a text that ends with a Chinese character."""
        for size in range(min(LONGEST, len(text)), 1, -1):
            word = text[-size:]
            found = self._phrases.get(word)
            if found is not None:
                return self._of_word(word, found, erhua=erhua)
        return self._alone(text, sung)

    def _of_word(self, word: str, found: Sequence[Sequence[str]], *, erhua: bool) -> RhymeClass:
        if word[-1] == _CHILD and erhua and "er" in found[-1] and len(found) > 1:
            return self._of(found[-2][0])
        return self._of(found[-1][0])

    def _alone(self, text: str, sung: str) -> RhymeClass:
        last = text[-1]
        if last == "地" and len(text) > 2 and text[-2] == text[-3]:  # 慢慢地
            return self._readings.of_character("的") if sung == "neutral" else rhyme_of_bopomofo("ㄉㄧ")
        particle = SUNG[sung].get(last) or LINE_END.get(last)
        return rhyme_of_bopomofo(particle) if particle else self._readings.of_character(last)

    def _of(self, reading: str) -> RhymeClass:
        return rhyme_of_bopomofo(self._bopomofo(reading))


def check_sung(name: str) -> None:
    """Refuse a way to sing particles that does not exist."""
    if name not in SUNG:
        raise UnknownNameError("way to sing particles", name, SUNG)


@functools.cache
def load_endings() -> Endings:
    """Return the words of CC-CEDICT over the readings of single characters; loaded once, in about a second."""
    with importing("lyrics", "the rhyme of a Chinese line"):
        from pypinyin.style.bopomofo import converter
        from pypinyin_dict.phrase_pinyin_data import cc_cedict
    return Endings(cc_cedict.phrases_dict, load_readings(), functools.lru_cache(maxsize=4096)(converter.to_bopomofo))
