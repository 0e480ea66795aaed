"""Lyrics that say nothing keep the pattern to the letter, and are the same wherever they are made."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from music_evals.annotations import sections_of_rows, sections_text
from music_evals.benchmark.tasks.songs import nonsense
from music_evals.datasets.caimd.demo import demo_rows
from music_evals.lyrics.words import cut_words
from music_evals.metrics.lyric_content import lyric_wordlikeness
from music_evals.pipelines.lyric_content import lines_of
from music_evals.pipelines.lyrics import lyric_structure

ROWS = demo_rows()[:6]
PATTERNS, WORDS = (
    [sections_text(sections_of_rows(row["structure"], field)) for row in ROWS] for field in ("rhyme", "lines")
)
ODD = ["(Reprise)\nc cR\n\n(chorus) ccR", "(verse)\nc", "(verse)\nR\n(intro)", "(verse)\ncccc cccR\ncccc cccR"]
WRITERS = [nonsense.random_characters, nonsense.random_words, nonsense.climbed]


def shape(text: str) -> str:
    return "".join("c" if "\u4e00" <= char <= "\u9fff" else char for char in text)


@pytest.mark.parametrize("write", WRITERS)
def test_headers_lines_and_pauses_are_kept(write: Callable[[str, random.Random], str]) -> None:
    for pattern in [*PATTERNS, *ODD]:
        text = write(pattern, random.Random(1))
        assert shape(text) == nonsense.filled(pattern, lambda run: "c" * len(run)).rstrip("\n")
        assert text == write(pattern, random.Random(1))
    for pattern in PATTERNS:
        score = lyric_structure(pattern, write(pattern, random.Random(2)), rhyme="char")
        assert score.corrected_total > 99


def test_a_search_ends_among_people_and_words_at_random_do_not() -> None:
    for pattern in PATTERNS:
        made = [write(pattern, random.Random(3)) for write in WRITERS]
        distances = [lyric_wordlikeness(cut_words(lines_of(text))) for text in made]
        assert distances[0] > 0.3
        assert distances[1] > 0.1
        assert distances[2] == 0.0


def test_shuffled_words_are_the_words_of_the_song() -> None:
    for pattern, words in zip(PATTERNS, WORDS, strict=True):
        lines = [line for section in lines_of(words) for line in section]
        text = nonsense.shuffled_words(pattern, lines, random.Random(4))
        assert shape(text) == shape(words)
        assert text != words
        assert sorted(text) == sorted(words)
