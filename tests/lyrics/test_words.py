"""Words by the dictionary alone are jieba's own, to the letter."""

from __future__ import annotations

import logging
import random

import pytest

from music_evals.annotations import sections_of_rows
from music_evals.datasets.caimd.demo import demo_rows
from music_evals.lyrics.words import cut_words, dictionary_words

LINES = [line for row in demo_rows() for part in sections_of_rows(row["structure"], "lines") for line in part.lines]


@pytest.fixture(scope="module")
def jieba_words():
    jieba = pytest.importorskip("jieba")
    jieba.setLogLevel(logging.ERROR)
    return lambda line: [
        word for word in jieba.cut(line, HMM=False) if any("\u4e00" <= char <= "\u9fff" for char in word)
    ]


def chinese(words: list[str]) -> list[str]:
    return [word for word in words if any("\u4e00" <= char <= "\u9fff" for char in word)]


def test_words_are_those_of_jieba(jieba_words) -> None:
    rng = random.Random(0)
    made = ["".join(rng.sample(line, len(line))) for line in LINES[:200]]
    mixed = ["我爱baby你", "穿着T恤唱K", "", " ", "2025年的第1天", "啦啦啦啦"]
    for line in [*LINES, *made, *mixed]:
        assert chinese(cut_words([[line]])) == jieba_words(line), line


def test_words_stay_within_lines_and_traditional_characters_are_read() -> None:
    assert cut_words([["我们", "的"], ["春天"]]) == ["我们", "的", "春天"]
    assert cut_words([["春"], ["天"]]) == ["春", "天"]
    assert cut_words([["我們走在陽光裡"]]) == cut_words([["我们走在阳光里"]])
    assert cut_words([["baby come back"], []]) == []


def test_the_dictionary_holds_words_only() -> None:
    words = dictionary_words()
    assert len(words) > 300_000
    assert {"春天", "一心一意"} <= set(words)
    assert not {"啦啦", "春", "T恤"} & set(words)
