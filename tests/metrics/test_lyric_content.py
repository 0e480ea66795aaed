from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import InvalidInputError, PairCountError, UndefinedMetricWarning
from music_evals.metrics.lyric_content import (
    DIVERSITY_OF_PEOPLE,
    REPETITION_OF_PEOPLE,
    WORDS_OF_PEOPLE,
    gated_structure,
    line_repetition,
    lyric_diversity,
    lyric_wordlikeness,
    lyrics_vector,
    outside,
    theme_similarity,
    word_share,
)
from music_evals.pipelines.lyric_content import lines_of

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "lyric_content.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=[case["why"] for case in GOLDEN["cases"]])
def test_cases_that_were_counted_by_hand(case: dict) -> None:
    sections = lines_of(case["text"])
    assert lyric_diversity(sections) == pytest.approx(case["diversity"], abs=1e-15)
    assert line_repetition(sections) == pytest.approx(case["repetition"], abs=1e-15)


lines = st.text("春夏秋冬风 a", max_size=8)
songs = st.lists(st.lists(lines, min_size=1, max_size=4), min_size=1, max_size=4).filter(
    lambda song: any(len(line.replace(" ", "").replace("a", "")) > 1 for part in song for line in part)
)


@given(songs, st.permutations(range(4)))
def test_laws_of_diversity(song: list[list[str]], order: list[int]) -> None:
    value = lyric_diversity(song)
    assert 0 < value <= 1
    turned = [song[place] for place in order if place < len(song)]
    assert lyric_diversity(turned) == pytest.approx(value, abs=1e-12)  # the order of the sections does not matter
    assert lyric_diversity([*song, *song]) == pytest.approx(value, abs=1e-12)  # nor do sections that come again
    doubled = [[*part, *part] for part in song]
    assert lyric_diversity(doubled) == pytest.approx(value / 2, abs=1e-12)  # but lines that come again in one do


@given(songs)
def test_laws_of_repetition(song: list[list[str]]) -> None:
    share = line_repetition(song)
    n = sum(bool(line.strip()) for part in song for line in part)
    assert 0 <= share < 1
    assert line_repetition([*song, *song]) == pytest.approx((share * n + n) / (2 * n))


def test_longer_n_grams_repeat_less() -> None:
    song = [["春夏春夏春秋"]]
    # 2 of 6 are 春夏 夏春 春夏 夏春 春秋; of 3 春夏春 夏春夏 春夏春 夏春秋
    assert [lyric_diversity(song, n=n) for n in (1, 2, 3)] == pytest.approx([3 / 6, 3 / 5, 3 / 4])
    with pytest.raises(InvalidInputError, match="at least 1"):
        lyric_diversity(song, n=0)


@pytest.mark.parametrize("song", [[], [[]], [["", " "]], [["春"], ["夏"]]])
def test_nothing_to_count_is_undefined(song: list[list[str]]) -> None:
    with pytest.warns(UndefinedMetricWarning, match="no section has 2 tokens"):
        assert math.isnan(lyric_diversity(song))


def test_no_line_is_undefined() -> None:
    with pytest.warns(UndefinedMetricWarning, match="no line with a word"):
        assert math.isnan(line_repetition([["", " "]]))


def unit(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32) / np.linalg.norm(values)


def test_a_theme_by_hand() -> None:
    theme, sections = unit(1, 0), np.stack([unit(1, 0), unit(0, 1)])
    # 3 characters of the theme and 1 of something else: (3, 1) / sqrt(10)
    assert theme_similarity(theme, sections, np.array([3.0, 1.0])) == pytest.approx(3 / math.sqrt(10))
    assert theme_similarity(theme, sections[:1], np.array([5.0])) == pytest.approx(1.0)
    assert theme_similarity(theme, -sections[:1], np.array([5.0])) == pytest.approx(-1.0)
    np.testing.assert_allclose(lyrics_vector(sections, np.array([1.0, 1.0])), [math.sqrt(0.5)] * 2, rtol=1e-6)


def test_themes_that_cannot_be_compared() -> None:
    theme = unit(1, 0)
    with pytest.warns(UndefinedMetricWarning, match="cancel out"):
        assert math.isnan(theme_similarity(theme, np.stack([theme, -theme]), np.array([2.0, 2.0])))
    with pytest.warns(UndefinedMetricWarning, match="no section with a word"):
        assert math.isnan(theme_similarity(theme, np.empty((0, 2), np.float32), np.empty(0)))
    with pytest.raises(PairCountError):
        theme_similarity(theme, np.stack([theme, theme]), np.array([1.0]))


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.floats(0.1, 10))
def test_laws_of_themes(seed: int, k: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    theme, *rows = (unit(*rng.normal(size=4)) for _ in range(k + 1))
    sections, weights = np.stack(rows), rng.uniform(1, 9, k)
    value = theme_similarity(theme, sections, weights)
    assert -1 <= value <= 1
    assert theme_similarity(theme, sections, weights * factor) == pytest.approx(value, abs=1e-6)
    order = rng.permutation(k)
    assert theme_similarity(theme, sections[order], weights[order]) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(
    ("words", "share"),
    [
        (["床前", "明月", "光"], 4 / 5),
        (["啦啦", "啦啦啦", "春天"], 2 / 7),  # one character repeated is no word
        (["T恤", "b", "a", "春"], 1 / 2),  # two Chinese characters, one of them in a word
        (["春", "夏"], 0.0),
        (["一心一意"], 1.0),
    ],
)
def test_shares_by_hand(words: list[str], share: float) -> None:
    assert word_share(words) == pytest.approx(share, abs=1e-15)
    low, high = WORDS_OF_PEOPLE
    assert lyric_wordlikeness(words) == pytest.approx(max(low - share, share - high, 0.0), abs=1e-15)


@pytest.mark.parametrize("words", [[], ["b", "a", "by"], ["2025"]])
def test_no_chinese_character_has_no_wordlikeness(words: list[str]) -> None:
    with pytest.warns(UndefinedMetricWarning, match="no Chinese character"):
        assert math.isnan(lyric_wordlikeness(words))


words_of_any_kind = st.lists(st.text("春夏秋冬a", min_size=1, max_size=3), min_size=1).filter(
    lambda words: any(char != "a" for word in words for char in word)
)


@given(words_of_any_kind)
def test_laws_of_wordlikeness(words: list[str]) -> None:
    share, distance = word_share(words), lyric_wordlikeness(words)
    assert 0 <= share <= 1
    assert 0 <= distance <= max(WORDS_OF_PEOPLE[0], 1 - WORDS_OF_PEOPLE[1])
    assert (distance == 0) == (WORDS_OF_PEOPLE[0] <= share <= WORDS_OF_PEOPLE[1])
    assert word_share(words * 2) == pytest.approx(share)
    assert word_share(words[::-1]) == share


def test_gates_by_hand() -> None:
    good = {"wordlikeness": 0.0, "diversity": DIVERSITY_OF_PEOPLE[1], "repetition": REPETITION_OF_PEOPLE[0]}
    assert gated_structure(88.0, **good) == 88.0
    shut = [
        {"wordlikeness": 0.01}, {"wordlikeness": math.nan}, {"diversity": DIVERSITY_OF_PEOPLE[0] - 0.01},
        {"diversity": math.nan}, {"repetition": REPETITION_OF_PEOPLE[1] + 0.01}, {"repetition": math.nan},
    ]  # fmt: skip
    assert [gated_structure(88.0, **good | gate) for gate in shut] == [0.0] * len(shut)
    assert [outside(value, (0.2, 0.5)) for value in (0.2, 0.5)] == [0.0, 0.0]
    assert [outside(value, (0.2, 0.5)) for value in (0.0, 0.75)] == pytest.approx([0.2, 0.25])
