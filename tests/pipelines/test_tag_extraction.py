"""Tags out of free text: the words of a vocabulary, the longer before the shorter, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import SCORED
from music_evals.errors import InvalidTagsError
from music_evals.pipelines.tags import extract_tags, vocabulary_of


def found(text: str, *tags: str) -> list[str]:
    return extract_tags(text, {"amateur": {"vocal_components": tags}})["amateur"]["vocal_components"]


@pytest.mark.parametrize(
    ("text", "tags", "expected"),
    [
        ("这首歌由温柔的女声演唱", ("女声", "温柔的女声", "男声"), ["温柔的女声"]),
        ("温柔的女声,也有女声合唱", ("女声", "温柔的女声"), ["温柔的女声", "女声"]),
        ("\uff30\uff4f\uff50 song with R&B drums", ("pop", "r&b", "Drum"), ["pop", "r&b"]),
        ("popular", ("pop",), []),
        ("一首pop歌", ("POP",), ["POP"]),
        ("鼓,然后吉他", ("吉他", "鼓"), ["鼓", "吉他"]),
        ("无关", ("", " "), []),
    ],
)
def test_words_of_the_vocabulary_are_found(text: str, tags: tuple[str, ...], expected: list[str]) -> None:
    assert found(text, *tags) == expected


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(InvalidTagsError, match="empty"):
        found("  ", "鼓")


def test_the_vocabulary_is_that_of_the_annotators() -> None:
    words = vocabulary_of(
        [{"amateur": {"vocal_components": ["女声", "男声", " "]}}, {"amateur": {"vocal_components": ["女声"]}}]
    )
    assert words["amateur"]["vocal_components"] == ["女声", "男声"]
    assert {group: set(names) for group, names in words.items()} == {g: set(n) for g, n in SCORED.items()}


@given(st.text(min_size=1).filter(str.strip), st.lists(st.text(max_size=5), max_size=8))
def test_every_tag_that_is_found_is_in_the_vocabulary_once(text: str, tags: list[str]) -> None:
    held = found(text, *tags)
    assert set(held) <= set(tags)
    assert len(held) == len(set(held))
    assert found(text, *reversed(tags)) == held


@given(st.lists(st.sampled_from(["女声", "男声", "吉他", "鼓", "温柔"]), min_size=1, unique=True))
def test_a_text_of_tags_has_these_tags(tags: list[str]) -> None:
    assert found("、".join(tags), "女声", "男声", "吉他", "鼓", "温柔") == tags
