"""Words of Chinese lines: cut by jieba's dictionary alone, and the dictionary itself.

Traditional characters are read as simplified ones, which the dictionary is made of. Needs the extra ``lyrics``; the
dictionary is loaded at the first call, in about a second.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from music_evals.lyrics.last_words import load_last_words
from music_evals.lyrics.normalise import simplify
from music_evals.lyrics.rhyme import last_character

__all__ = ["cut_words", "dictionary_words"]


def cut_words(sections: Iterable[Sequence[str]]) -> list[str]:
    """Return the words of the lines of sections, as jieba cuts each line with ``HMM=False``.

    Spaces and punctuation are left out and end a word; letters of other scripts stand alone, but where the dictionary
    has a word with them, such as T恤. Sections without a Chinese character have no word, and load no dictionary.

    Raises
    ------
    MissingBackendError
        jieba or opencc is not installed.

    Examples
    --------
    >>> cut_words([["春眠不觉晓", "baby 我愛你"]])
    ['春', '眠', '不觉', '晓', 'b', 'a', 'b', 'y', '我爱你']
    """
    text = "\n".join(line for lines in sections for line in lines)
    return load_last_words().cut(simplify(text)) if last_character(text) >= 0 else []


@functools.cache
def dictionary_words() -> tuple[str, ...]:
    """Return the words of two to four Chinese characters, not all the same, in the order of jieba's dictionary."""
    return tuple(
        word
        for word in load_last_words().dictionary()
        if 2 <= len(word) <= 4 and len(set(word)) > 1 and all("\u4e00" <= char <= "\u9fff" for char in word)
    )
