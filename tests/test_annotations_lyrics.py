"""Song texts in sections and their patterns, as values."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import LyricSection, Pattern, sections_of_text, sections_text
from music_evals.errors import InvalidLyricsError, InvalidPatternError

labels = st.from_regex(r"[\w-]{1,8}", fullmatch=True)
lines = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=10)
sections = st.builds(LyricSection, labels, st.lists(lines, max_size=4).map(tuple))


@given(st.lists(sections, max_size=4))
def test_sections_come_back_from_their_text(song: list[LyricSection]) -> None:
    if not any(sections_of_text(f"(v)\n{line}")[1:] for part in song for line in part.lines):
        assert sections_of_text(sections_text(song)) == tuple(song)


def test_sections_by_hand() -> None:
    assert sections_of_text("") == ()
    assert sections_of_text(" (verse1) \n一 二 \n\n(verse 1)\n(副歌)") == (
        LyricSection("verse1", ("一 二 ", "", "(verse 1)")),
        LyricSection("副歌", ()),
    )


@pytest.mark.parametrize("text", ["一二\n(verse)", "\n(verse)", "（verse）\n一", "(verse 1)\n一", "(verse)\r\n一\r\n"])
def test_texts_that_are_not_in_sections(text: str) -> None:
    with pytest.raises(InvalidLyricsError):
        sections_of_text(text)


def test_a_pattern_is_frozen_and_of_tuples() -> None:
    pattern = Pattern("(verse)\ncR", ["verse"], [["cR"]], [["你好"]])  # type: ignore[arg-type]
    assert pattern == Pattern("(verse)\ncR", ("verse",), (("cR",),), (("你好",),))
    assert hash(pattern) == hash(dataclasses.replace(pattern))
    with pytest.raises(dataclasses.FrozenInstanceError):
        pattern.text = ""  # type: ignore[misc]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((("verse",), ()), r"lines for each label.* got 1 labels, \[\] lines"),
        ((("verse",), (("c",),), ((),)), "words for each line"),
        (((), (), ((),)), "words for each line"),
        ((("verse", ""), ((), ())), "section 2 of a pattern has an empty label"),
    ],
)
def test_a_pattern_holds_together(parts: tuple[tuple[str, ...], ...], message: str) -> None:
    with pytest.raises(InvalidPatternError, match=message):
        Pattern("", *parts)  # type: ignore[arg-type]
