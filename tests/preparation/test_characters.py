"""Characters of lines, and the draft that spreads them over the time of their lines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import F0Track
from music_evals.errors import InvalidAnnotationError, InvalidLyricsError
from music_evals.preparation.characters import Character, characters_of_line, spread_lines


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("天地,玄黄!", ["天", "地", "玄", "黄"]),
        ("I don't know 了", ["I", "don't", "know", "了"]),
        ("'bout 3点", ["bout", "3", "点"]),
        ("cafe\u0301 啊", ["cafe\u0301", "啊"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("... —", []),
        ("", []),
    ],
)
def test_a_line_is_cut_into_characters_and_words(line: str, expected: list[str]) -> None:
    assert characters_of_line(line) == expected


def test_shares_without_a_voice_are_those_of_syllables() -> None:
    # 4 s for 天 (1), water (2: a, e) and 地 (1); the second line would have 8 s for one syllable: it is cut after 2 s
    found = spread_lines([(1.0, "天 water 地"), (5.0, "玄"), (13.0, "...")], 20.0)
    assert found == [
        Character("天", 1.0, 2.0, 0),
        Character("water", 2.0, 4.0, 0),
        Character("地", 4.0, 5.0, 0),
        Character("玄", 5.0, 7.0, 1),
    ]


def test_a_character_gets_a_share_of_the_time_in_which_the_voice_sounds() -> None:
    # the voice sounds from 1 to 2 s and from 4 to 5 s: each of four characters gets half a second of it
    times = np.arange(0, 6, 0.01)
    sounds = ((times >= 1) & (times < 2)) | ((times >= 4) & (times < 5))
    found = spread_lines([(0.0, "天地玄黄")], 6.0, F0Track(times, np.where(sounds, 220.0, -220.0)))
    starts, ends = [one.start_sec for one in found], [one.end_sec for one in found]
    np.testing.assert_allclose(starts[:2] + starts[3:], [1.0, 1.5, 4.5], atol=0.02)
    np.testing.assert_allclose(ends[:1] + ends[2:], [1.5, 4.5, 5.0], atol=0.02)
    assert 2.0 - 0.02 <= ends[1] == starts[2] <= 4.02  # somewhere in the rest


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 3), st.booleans())
def test_a_draft_keeps_to_its_lines(sizes: list[int], seed: int, heard: bool) -> None:
    rng = np.random.default_rng(seed)
    stamps = np.cumsum(rng.uniform(0.2, 5.0, len(sizes) + 1))
    times = np.arange(0, stamps[-1], 0.02)
    f0 = F0Track(times, np.where(rng.random(len(times)) < 0.5, 200.0, 0.0)) if heard else None
    lines = [(float(start), "天" * size) for start, size in zip(stamps[:-1], sizes, strict=True)]
    found = spread_lines(lines, float(stamps[-1]), f0)
    assert [sum(one.line == i for one in found) for i in range(len(sizes))] == sizes
    for one, two in zip(found, [*found[1:], None], strict=True):
        assert stamps[one.line] <= one.start_sec < one.end_sec <= stamps[one.line + 1] + 1e-9
        assert two is None or one.end_sec <= two.start_sec + 1e-9


def test_what_cannot_be_spread_is_refused() -> None:
    with pytest.raises(InvalidLyricsError, match="no line has a letter"):
        spread_lines([(0.0, "...")], 5.0)
    with pytest.raises(InvalidAnnotationError, match=r"'天' begins at 1.00 s and 'sky' at 1.00 s.*no translation"):
        spread_lines([(1.0, "天"), (1.0, "sky")], 5.0)
    with pytest.raises(InvalidAnnotationError, match=r"increase.*song at 1.00 s"):
        spread_lines([(1.0, "天")], 1.0)
    with pytest.raises(InvalidAnnotationError, match="start before end"):
        Character("天", 1.0, 1.0)
    with pytest.raises(InvalidAnnotationError, match="a text"):
        Character("", 1.0, 2.0)
