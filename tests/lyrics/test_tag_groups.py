"""Groups of songs by their tags: the table is whole, and songs are sorted by it."""

from __future__ import annotations

import hashlib
import json

import pytest

from music_evals.annotations import DIMENSIONS
from music_evals.lyrics.tag_groups import GROUPINGS, fold_tag


def test_the_groups_are_those_of_the_published_figures() -> None:
    """A change of any keyword changes numbers by group: it is made on purpose, and benchmarks/discrepancy run again."""
    told = {name: (each.english, each.chinese, dict(each.dimensions), each.groups) for name, each in GROUPINGS.items()}
    digest = hashlib.sha256(json.dumps(told, ensure_ascii=False).encode()).hexdigest()
    assert digest == "e1dc94363c64e386cb2147eae1759f1552171255a2738fad2590dc26220d425f"


def test_groupings_hold_together() -> None:
    assert list(GROUPINGS) == ["genre", "emotion", "purpose", "culture", "audience"]
    for grouping in GROUPINGS.values():
        names = [group.name for group in grouping.groups]
        assert len(names) == len(set(names))
        for annotators, dimension in grouping.dimensions.items():
            assert dimension in DIMENSIONS[annotators]
        for group in grouping.groups:
            assert len(group.keywords) == len(set(group.keywords))
            assert all(word == fold_tag(word) and word for word in group.keywords)
            for word in group.keywords:
                assert group.matches([f"  {word.upper()} "]), (group.name, word)
            assert any(not word.isascii() for word in group.keywords)
            assert any(word.isascii() for word in group.keywords)


@pytest.mark.parametrize(
    ("grouping", "tags", "expected"),
    [
        ("genre", ["流行摇滚", "华语"], ("pop", "rock")),
        ("genre", ["Therapy", "Poptrap"], ()),
        ("genre", ["灵魂/R&B/说唱"], ("hip_hop", "rnb")),
        ("emotion", ["不开心"], ()),
        ("emotion", ["不舍", "无奈"], ("longing", "torn")),
        ("emotion", ["开心", "快乐"], ("happy",)),
        ("purpose", ["\uff2b\uff34\uff36"], ("karaoke",)),
        ("culture", ["没有地域文化特点", "中国风"], ("unmarked", "chinese", "traditional")),
        ("audience", ["不适合儿童"], ()),
        ("audience", [], ()),
    ],
)
def test_songs_are_sorted(grouping: str, tags: list[str], expected: tuple[str, ...]) -> None:
    assert GROUPINGS[grouping].assign(tags) == expected
