"""Readings of characters that have several, schemes of rhyme classes, and near rhymes."""

from __future__ import annotations

import pytest
from benchmarks.lyric_structure.readings import class_of, misread, read_list
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import UnknownNameError
from music_evals.lyrics.rhyme import (
    METHODS,
    RHYME_CLASSES,
    SCHEMES,
    rhyme_by_words,
    rhyme_class,
    rhyme_function,
    rhyme_kind,
    rhyme_marks,
)
from music_evals.pipelines.lyrics import lyric_structure

SENTENCES = read_list()


def test_the_list_has_readings_of_a_named_dictionary() -> None:
    """At least 200 sentences, none twice, each with the word that it ends in and a reading that CC-CEDICT has of it."""
    from pypinyin.contrib.tone_convert import to_tone3
    from pypinyin_dict.phrase_pinyin_data.cc_cedict import phrases_dict
    from pypinyin_dict.pinyin_data.cc_cedict import pinyin_dict

    assert len({each.text for each in SENTENCES}) == len(SENTENCES) >= 200
    for text, word, reading in SENTENCES:
        assert text[-1] == word[-1], text
        known = phrases_dict[word][-1] if len(word) > 1 else pinyin_dict[ord(word)].split(",")
        assert reading in {to_tone3(each, neutral_tone_with_five=True) for each in known}, text
    assert sum(text.endswith(word) for text, word, _ in SENTENCES) >= 0.95 * len(SENTENCES)
    assert len({word[-1] for _, word, _ in SENTENCES}) >= 40
    assert len({class_of(reading) for _, _, reading in SENTENCES}) >= 12


def test_words_are_read_better_than_single_characters() -> None:
    wrong = {method: len(misread(method, SENTENCES)) for method in METHODS}
    assert wrong["words"] <= 2
    assert wrong["words"] < wrong["official"] < wrong["char"]


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("我把积蓄存进银行", 16), ("窗外传来音乐", 4), ("孩子慢慢睡觉", 13), ("我有自己的目的", 7), ("船已经沉没", 2),
        ("这种味道令人厌恶", 10), ("这件事我不明了", 13), ("你为什么这样执着", 2), ("心里的人已经走了", 3),
        ("那把伞是我的", 3), ("他还在看着", 3), ("唱一声哦", 2), ("我们慢慢地", 3), ("走过这片大地", 7),
        ("欠下的总要还", 14),
    ],
)  # fmt: skip
def test_lines_by_hand(line: str, number: int) -> None:
    """Classes of the New Rhyme by the reading that a singer takes; the first six are those that ``char`` gets wrong."""
    assert rhyme_class(line, "words") == number


# sentence-final particles and interjections, each as CC-CEDICT has it in that use, by class of the New Rhyme
PARTICLES = {
    1: "吗嘛吧罢啊呀哪哇啦哈", 2: "哦喔噢哟唷咯囉啵", 3: "呢么了的着得呵呃嗬", 4: "咧耶", 7: "哩兮矣", 8: "呗嘞嘿诶",
    9: "哎唉嗨哉", 10: "乎", 12: "喽呦", 15: "嗯",
}  # fmt: skip


@pytest.mark.parametrize("method", ["char", "words"])
@pytest.mark.parametrize("number", PARTICLES)
def test_particles_at_the_end_of_a_line(number: int, method: str) -> None:
    for particle in PARTICLES[number]:
        assert rhyme_class(f"你在想什么人{particle}", method) == number, particle
        assert rhyme_class(f"你在想什么人{particle}！ oh", method) == number, particle


def test_a_particle_in_a_word_is_read_as_the_word() -> None:
    lines = ("一件旧的花呢", "他夜夜吟哦", "听见一声梵呗", "怎么说呢", "日子就在格子呢")
    assert [rhyme_class(line, "words") for line in lines] == [7, 3, 9, 3, 7]


def test_the_zero_is_read_as_ling() -> None:
    assert rhyme_class("那一年是二〇二〇", "words") == rhyme_class("那一年是二〇二〇", "char") == 17
    assert rhyme_class("一切归〇！", "words") == rhyme_class("一切归零", "words") == 17
    assert rhyme_marks(["那一年是二〇〇〇", "我只听见风声"], "words") == [True, True]
    assert rhyme_class("二〇二〇", "official") == rhyme_class("二〇二〇", "line") == 6  # the authors' code sees 二


def test_the_official_reading_is_the_authors() -> None:
    """The particle is read as the cloth, since their code does; parity with it is what ``official`` is for."""
    assert rhyme_class("你在想什么呢", "official") == rhyme_class("你在想什么呢", "line") == 7


def test_an_ending_that_colours_the_syllable_before_it() -> None:
    sung, spelled = rhyme_by_words(), rhyme_by_words(erhua=False)
    assert (sung("院子里开满了花儿"), spelled("院子里开满了花儿")) == (1, 6)
    assert sung("树上有一只小鸟儿") == sung("春眠不觉晓") == 13
    assert sung("这是我的女儿") == spelled("这是我的女儿") == 6
    assert rhyme_marks(["院子里开满了花儿", "这里是我的家"], sung) == [True, True]


def test_particles_as_older_songs_sing_them() -> None:
    plain, older = rhyme_by_words(), rhyme_by_words(sung="full")
    for line, neutral, full in (("人都走了", 3, 13), ("那是我的", 3, 7), ("灯还亮着", 3, 2), ("这是我的目的", 7, 7)):
        assert (plain(line), older(line)) == (neutral, full), line


# the members of the thirteen tracks and of the standard of 2005, by one syllable of each final
SYLLABLES = {
    "花": "a", "我": "o", "歌": "e", "月": "ie", "诗": "zhi", "儿": "er", "题": "i", "飞": "ei", "来": "ai", "路": "u",
    "雨": "ü", "秋": "ou", "高": "ao", "山": "an", "人": "en", "光": "ang", "声": "eng", "红": "ong",
}  # fmt: skip
PUBLISHED = {
    "xinyun18": [[each] for each in SYLLABLES.values()],
    "shisanzhe": [["a"], ["o", "e"], ["ie"], ["zhi", "er", "i", "ü"], ["u"], ["ai"], ["ei"], ["ao"], ["ou"], ["an"],
                  ["en"], ["ang"], ["eng", "ong"]],
    "xinyun14": [["a"], ["o", "e"], ["ie"], ["ai"], ["ei"], ["ao"], ["ou"], ["an"], ["en"], ["ang"], ["eng", "ong"],
                 ["i", "er", "ü"], ["zhi"], ["u"]],
    "near": [["a"], ["o", "e"], ["ie"], ["zhi", "er", "i", "ü"], ["u"], ["ai"], ["ei"], ["ao"], ["ou"], ["an"],
             ["en", "eng", "ong"], ["ang"]],
}  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_are_the_published_classes(scheme: str) -> None:
    found: dict[object, list[str]] = {}
    for character, final in SYLLABLES.items():
        found.setdefault(rhyme_class(character, f"char+{scheme}"), []).append(final)
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, PUBLISHED[scheme]))
    assert set(found) <= set(RHYME_CLASSES)
    assert len(found) == {"xinyun18": 18, "shisanzhe": 13, "xinyun14": 14, "near": 12}[scheme]


lines = st.lists(st.text("花我歌月诗儿题飞来路雨秋高山人光声红 ab", min_size=0, max_size=5), min_size=1, max_size=8)


@given(lines, st.sampled_from(["char", "words"]))
def test_a_wider_scheme_rhymes_whatever_a_narrower_one_does(texts: list[str], method: str) -> None:
    narrow, tracks, near = (rhyme_marks(texts, f"{method}+{scheme}") for scheme in ("xinyun18", "shisanzhe", "near"))
    assert narrow == rhyme_marks(texts, method)
    assert all(b >= a for a, b in zip(narrow, tracks, strict=True))
    assert all(b >= a for a, b in zip(tracks, near, strict=True))


def test_near_rhymes_are_named() -> None:
    assert rhyme_kind("春眠不觉晓", "花落知多少") == "full"
    assert rhyme_kind("夜来风雨声", "城春草木深") == "near"
    assert rhyme_kind("夜来风雨声", "城春草木深", "words+near") == "full"
    assert rhyme_kind("床前明月光", "低头思故里") == "none"
    assert rhyme_kind("la la", "la la") == "none"


def test_a_method_with_a_scheme_reaches_the_score() -> None:
    pattern, words = "(verse)\nccR\nccR", "(verse)\n唱首歌\n只有我"
    apart, together = (lyric_structure(pattern, words, rhyme=f"words{way}") for way in ("", "+shisanzhe"))
    assert (apart.found_rhymes, together.found_rhymes) == (0, 2)


@pytest.mark.parametrize("name", ["words+shisanze", "wrods+near", "char+", "+near"])
def test_names_that_do_not_exist(name: str) -> None:
    with pytest.raises(UnknownNameError):
        rhyme_function(name)
    with pytest.raises(UnknownNameError):
        rhyme_by_words(scheme="near14")
    with pytest.raises(UnknownNameError):
        rhyme_by_words(sung="spoken")
