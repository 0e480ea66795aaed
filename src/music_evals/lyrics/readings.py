"""Readings of Chinese words: the tables of pypinyin and pypinyin-dict, looked up without changing them.

`pypinyin_dict` is made to be loaded *into* pypinyin, which then reads differently in the whole process. Here its tables
are consulted where they lie, in the order in which loading would have laid them over each other, so that the user's own
pypinyin stays as it is. A text is cut as pypinyin 0.55 does: forward, the longest phrase that it knows.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from music_evals.errors import importing

RhymeClass = int | str | None
Phrases = Mapping[str, Sequence[Sequence[str]]]

# Zhonghua xinyun, the New Rhyme: the last symbol of a syllable decides, -ng apart
_CLASSES: Mapping[str, int] = {
    "ㄚ": 1, "ㄛ": 2, "ㄜ": 3, "ㄝ": 4,
    "ㄓ": 5, "ㄔ": 5, "ㄕ": 5, "ㄖ": 5, "ㄗ": 5, "ㄘ": 5, "ㄙ": 5,
    "ㄦ": 6, "ㄧ": 7, "ㄟ": 8, "ㄞ": 9, "ㄨ": 10, "ㄩ": 11, "ㄡ": 12, "ㄠ": 13, "ㄢ": 14, "ㄣ": 15, "ㄤ": 16,
}  # fmt: skip
_ENG, _ONG = 17, 18

LINE_END: Final[Mapping[str, str]] = MappingProxyType(
    {"呢": "ㄋㄜ", "呗": "ㄅㄟ", "咯": "ㄌㄛ", "哦": "ㄛ", "喔": "ㄛ", "还": "ㄏㄨㄢ", "\u3007": "ㄌㄧㄥ"}
)
"""Characters whose first reading in the tables is in another class than the one that they have as a word by themselves
at the end of a line: particles (CC-CEDICT: ne, bei, lo) and interjections (o), not the woollen cloth ní or the chant
bài; the verb huán, since the adverb hái ends no line; and the zero, which the tables read yuán in some texts.

The other particles need no entry: their readings are in one class (吗 吧 啊 呀 啦), or the particle's comes first.
"""
_TONES = str.maketrans("", "", "˙ˊˇˋ")


def rhyme_of_bopomofo(syllable: str) -> RhymeClass:
    """Return the class of a syllable in bopomofo: 1..18, a symbol that is in no class as itself, None for no symbol."""
    plain = syllable.translate(_TONES)
    if not plain.endswith("ㄥ"):
        return _CLASSES.get(plain[-1:]) or plain[-1:] or None
    # -ong is written u + eng after a consonant; weng alone is eng
    return _ONG if plain.endswith("ㄩㄥ") or (plain.endswith("ㄨㄥ") and plain != "ㄨㄥ") else _ENG


class Readings:
    """Rhyme classes of words, by the readings that pypinyin would give."""

    def __init__(
        self,
        load_phrases: Callable[[], Sequence[Phrases]],
        characters: Mapping[str, str],
        bopomofo: Callable[[str], str],
        is_han: Callable[[str], object],
    ) -> None:
        self._load_phrases, self._is_han = load_phrases, is_han
        self._of_reading = functools.cache(lambda reading: rhyme_of_bopomofo(bopomofo(reading)))
        self._characters = {each: self._of_reading(reading) for each, reading in characters.items()}

    def of_character(self, character: str) -> RhymeClass:
        """Return the class of a single character; one without a known reading is in a class of its own."""
        try:
            return self._characters[character]
        except KeyError:
            return self._of_reading(character)

    def of_word(self, word: str) -> RhymeClass:
        """Return the class of the last syllable of a word: of the phrase if it is one, else of its last character."""
        for table in self._phrases:
            readings = table.get(word)
            if readings is not None:
                return self._of_reading(readings[-1][0])
        return self.of_character(word[-1])

    def of_text(self, text: str) -> RhymeClass:
        """Return the class of the last syllable of a text that ends with a Chinese character, cut into phrases."""
        start, end = len(text), len(text)
        while start and self._is_han(text[start - 1]):
            start -= 1
        while True:
            longest = self._longest.get(text[start : start + 2], 1)
            size = min(longest, end - start)
            while size > 1 and not any(text[start : start + size] in table for table in self._phrases):
                size -= 1
            if start + size == end:
                return self.of_word(text[start:])
            # what begins a phrase that the text does not end is cut into characters, all of it
            if size == 1 and longest > end - start:
                at = bisect.bisect_left(self._sorted, text[start:])
                if at < len(self._sorted) and self._sorted[at].startswith(text[start:]):
                    return self.of_character(text[-1])
            start += size

    @functools.cached_property
    def _phrases(self) -> Sequence[Phrases]:
        return self._load_phrases()

    @functools.cached_property
    def _longest(self) -> dict[str, int]:
        """First two characters of phrases -> the length of the longest phrase that starts so."""
        longest: dict[str, int] = {}
        for phrase in self._sorted:
            longest[phrase[:2]] = max(longest.get(phrase[:2], 0), len(phrase))
        return longest

    @functools.cached_property
    def _sorted(self) -> list[str]:
        return sorted({phrase for table in self._phrases for phrase in table})


@functools.cache
def load_readings() -> Readings:
    """Return the readings of ``large_pinyin`` and ``cc_cedict`` over pypinyin's own; loaded once."""
    with importing("lyrics", "the rhyme of a Chinese line"):
        from pypinyin.constants import RE_HANS
        from pypinyin.phrases_dict import phrases_dict
        from pypinyin.pinyin_dict import pinyin_dict
        from pypinyin.style.bopomofo import converter
        from pypinyin_dict.pinyin_data import cc_cedict
    usual = {**pinyin_dict, **cc_cedict.pinyin_dict}
    characters = {chr(code): readings.partition(",")[0] for code, readings in usual.items()}

    def load_phrases() -> tuple[Phrases, Phrases]:
        from pypinyin_dict.phrase_pinyin_data import large_pinyin  # takes a second or two

        return large_pinyin.phrases_dict, phrases_dict

    # most characters are in the basic block, the pattern knows the others
    return Readings(
        load_phrases,
        characters,
        converter.to_bopomofo,
        lambda each: "\u4e00" <= each <= "\u9fff" or RE_HANS.match(each),
    )
