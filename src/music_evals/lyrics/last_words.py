"""The last word of a text as jieba cuts it, without cutting the rest, and all of its words by the dictionary alone.

jieba chooses the most probable path through the words of its dictionary, and hands runs of single characters to a
hidden Markov model (accurate mode with HMM). Where the last word begins is of interest for rhymes, and no word list is
built for them; `LastWords.cut` gives all words without the model (``HMM=False``), which finds words in any nonsense.
Here the arithmetic, its order and its way with ties are jieba's, and so is the result, to the letter. Dictionary and
model are read from the installed jieba. Words that the user added to jieba do not count.

The reason is time: jieba takes 3.2 times as long to cut the same lines whole (``benchmarks/lyric_structure``), and
the official rhymes are more than half of the work of the lyric score.
"""

from __future__ import annotations

import functools
import importlib.resources
import math
import re
import warnings
from collections.abc import Mapping
from typing import Final, NamedTuple

from music_evals.errors import importing

CACHE_SIZE: Final = 4096
"""Texts whose paths are kept: the lines of a chorus come again, and are cut for their rhyme and for their words."""

# what jieba looks up in its dictionary; any other character stands alone
_BLOCK: Final = re.compile(r"[\u4E00-\u9FD5a-zA-Z0-9+#&._%\-]+")
_NEVER: Final = -3.14e100
_PREFIX: Final = 0.0  # the weight of a word is below zero


class Model(NamedTuple):
    """Log probabilities of jieba's hidden Markov model; states are begin, middle and end of a word, and single."""

    start: Mapping[str, float]
    trans: Mapping[str, Mapping[str, float]]
    emit: Mapping[str, Mapping[str, float]]


class LastWords:
    """Finds last words."""

    def __init__(self, weights: Mapping[str, float], unknown: float, model: Model) -> None:
        self._weights, self._unknown = weights, unknown
        self._start, self._trans = model.start, model.trans
        self._emit = tuple(model.emit[state].get for state in "BMES")
        self._best_path = functools.lru_cache(CACHE_SIZE)(self._path)

    def cut(self, text: str) -> list[str]:
        """Return the words of a text without spaces and signs, those of other scripts in single letters."""
        words = []
        for match in _BLOCK.finditer(text):
            block, at = match[0], 0
            stops = self._best_path(block)
            while at < len(block):
                words.append(block[at : stops[at]])
                at = stops[at]
        return words

    def dictionary(self) -> list[str]:
        """Return the words of the dictionary, in its order."""
        return [word for word, weight in self._weights.items() if weight < _PREFIX]

    def of_text(self, text: str) -> str:
        """Return the last word of a text that ends with a Chinese character."""
        # the end of the text that jieba cuts as one; empty where its last character stands alone
        block = ""
        for match in _BLOCK.finditer(text):
            block = match[0] if match.end() == len(text) else ""
        n = len(block)
        if n < 2:
            return text[-1]
        stops = self._best_path(block)
        at, run = 0, -1  # where the word begins, and the run of single characters before and with it
        while True:
            stop = stops[at]
            if stop - at > 1:
                run = -1
            elif run < 0:
                run = at
            if stop == n:
                break
            at = stop
        if run < 0:
            return block[at:]
        single = block[run:]
        if len(single) == 1 or self._weights.get(single, _PREFIX) < _PREFIX:
            return single[-1]
        start = len(single)
        while start and single[start - 1] >= "\u4e00":
            start -= 1
        single = single[start:]
        return single[self._start_in_run(single) :]

    def _path(self, block: str) -> list[int]:
        """Return where the word ends that starts at each position; ties go to the longer word."""
        n, weights = len(block), self._weights.get
        best, stops = [0.0] * (n + 1), [0] * n
        for start in range(n - 1, -1, -1):
            top, at = -math.inf, start + 1
            for stop in range(start + 1, n + 1):
                weight = weights(block[start:stop])
                if weight is None:
                    break
                if weight < _PREFIX and (value := weight + best[stop]) >= top:
                    top, at = value, stop
            best[start] = self._unknown + best[start + 1] if top == -math.inf else top
            stops[start] = at
        return stops

    def _start_in_run(self, run: str) -> int:
        """Return where the last word of the most probable path of states begins (Viterbi)."""
        trans, (emit_b, emit_m, emit_e, emit_s) = self._trans, self._emit
        from_b, from_m, from_e, from_s = (trans[state] for state in "BMES")
        bm, be, mm, me = from_b["M"], from_b["E"], from_m["M"], from_m["E"]
        eb, es, sb, ss = from_e["B"], from_e["S"], from_s["B"], from_s["S"]
        first = run[0]
        b, m, e, s = (self._start[state] + emit(first, _NEVER) for state, emit in zip("BMES", self._emit, strict=True))
        start_m = start_e = 0  # where the word of the best path into M and into E begins
        for at in range(1, len(run)):
            each = run[at]
            emitted = emit_m(each, _NEVER)
            stay, enter = m + mm + emitted, b + bm + emitted
            emitted = emit_e(each, _NEVER)
            short, long = b + be + emitted, m + me + emitted
            emitted = emit_b(each, _NEVER)
            next_b = max(e + eb + emitted, s + sb + emitted)
            emitted = emit_s(each, _NEVER)
            s = max(s + ss + emitted, e + es + emitted)
            start_e, e = (at - 1, short) if short > long else (start_m, long)
            start_m, m = (at - 1, enter) if enter > stay else (start_m, stay)
            b = next_b
        return start_e if e > s else len(run) - 1


def read_weights(lines: list[str]) -> tuple[dict[str, float], float]:
    """Return word -> weight and the weight of unknown characters, from lines ``word frequency tag``."""
    frequencies: dict[str, int] = {}
    total = 0
    for line in lines:
        word, count = line.split(" ", 2)[:2]
        frequency = frequencies[word] = int(count)
        total += frequency
    logtotal = math.log(total)
    # few frequencies are shared by many words, and so are their weights
    by_frequency = {count: math.log(count) - logtotal for count in set(frequencies.values()) if count}
    weights = {word: by_frequency.get(count, _PREFIX) for word, count in frequencies.items()}
    for word in frequencies:
        for size in range(len(word) - 1, 0, -1):
            weights.setdefault(word[:size], _PREFIX)
    return weights, 0.0 - logtotal


@functools.cache
def load_last_words() -> LastWords:
    """Return the finder with jieba's dictionary and model; loaded once, about a second."""
    with importing("lyrics", "the official rhyme of a Chinese line"), warnings.catch_warnings():
        # jieba 0.42 asks for pkg_resources, and has escapes that newer Python warns of
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.filterwarnings("ignore", message="pkg_resources is deprecated", category=UserWarning)
        from jieba.finalseg import emit_P, start_P, trans_P
    text = importlib.resources.files("jieba").joinpath("dict.txt").read_text(encoding="utf-8")
    weights, unknown = read_weights(text.splitlines())
    return LastWords(weights, unknown, Model(start_P, trans_P, emit_P))
