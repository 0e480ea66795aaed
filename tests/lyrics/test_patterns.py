from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import LyricSection, Pattern, sections_of_rows, sections_text
from music_evals.errors import InvalidPatternError, UnsupportedTypeError
from music_evals.lyrics.patterns import check_pattern, mark_lyrics, read_pattern, split_sections

DEV = Path(__file__).resolve().parents[2] / "../shared/data/muchin/dev.jsonl"


def last_letter(line: str) -> str | None:
    """Rhyme without tables: the last character itself."""
    found = re.findall(r"[\u4e00-\u9fff]", line)
    return found[-1] if found else None


# -------------------------------------------------------------------------------------------------------- headers
def test_headers_are_found_wherever_they_stand() -> None:
    split = split_sections("intro text\n(verse1)\n一二\n三(啊啊)四\n(pre-chorus)")
    assert split.preamble == "intro text\n"
    assert [(each.label, each.header, each.body) for each in split.sections] == [
        ("verse1", "(verse1)\n", "一二\n三"), ("啊啊", "(啊啊)", "四\n"), ("pre-chorus", "(pre-chorus)", ""),
    ]  # fmt: skip
    assert [each.start for each in split.sections] == [11, 24, 30]


@pytest.mark.parametrize("text", ["", "一二", "（verse）\n一", "[verse]\n一", "(verse 1)\n一", "()\n一", "(a.b)"])
def test_other_brackets_are_no_headers(text: str) -> None:
    assert split_sections(text) == ("", ())


@given(st.text(alphabet="(a-1)\n \r一c，", max_size=60))
def test_nothing_is_lost_in_splitting(text: str) -> None:
    split = split_sections(text)
    if split.sections:
        assert split.preamble + "".join(each.header + each.body for each in split.sections) == text
        for each in split.sections:
            assert text[each.start :].startswith(each.header)


# ---------------------------------------------------------------------------------------------------------- marks
def test_marks_by_hand() -> None:
    text = "好的：\n(verse)\n我爱你\n他 爱你，\nI love 你们\n(chorus)\n想你\n(outro)\nlala"
    marked = mark_lyrics(text, last_letter)
    assert marked.text == "好的：\n(verse)\nccR\nc cR，\nI love cc\n(chorus)\ncc\n(outro)\nlala"
    assert marked.labels == ("verse", "chorus", "outro")
    assert marked.lines == (("ccR", "c cR，", "I love cc"), ("cc",), ("lala",))
    assert marked.words == (("我爱你", "他 爱你，", "I love 你们"), ("想你",), ("lala",))


def test_a_section_that_is_sung_again_is_judged_for_itself() -> None:
    again = "(chorus)\n我爱你\n想你\n(verse)\n我爱你\n"
    assert mark_lyrics(again, last_letter).text == "(chorus)\nccR\ncR\n(verse)\nccc\n"


def test_every_line_break_of_python_breaks_a_line() -> None:
    marked = mark_lyrics("(v)\n你\u2028你\x0b\r\n你", last_letter)
    assert marked.text == "(v)\nR\u2028R\x0b\r\nR"
    assert marked.lines == (("R", "R", "", "R"),)


def test_a_class_without_a_chinese_character_marks_nothing() -> None:
    assert mark_lyrics("(v)\nday\nway\n我", lambda line: line[-2:]).text == "(v)\nday\nway\nc"


def test_text_without_a_header_has_no_pattern() -> None:
    assert mark_lyrics("床前明月光", last_letter) == Pattern("", (), (), ())


@given(st.text(alphabet="(va)\n 我你c，\r", max_size=80))
def test_only_chinese_characters_change(text: str) -> None:
    marked = mark_lyrics(text, last_letter)
    split = split_sections(text)
    assert marked.labels == tuple(each.label for each in split.sections)
    if not split.sections:
        return
    assert len(marked.text) == len(text)
    for before, after in zip(text, marked.text, strict=True):
        assert before == after or (before in "我你" and after in "cR")
    assert [*map(len, marked.lines)] == [*map(len, marked.words)]


# -------------------------------------------------------------------------------------------------------- grammar
def test_a_pattern_is_read_and_written() -> None:
    text = "(intro1)\n(pre-chorus1)\ncccR\n cc ccR\ncc \n(verse)\nR\nc"
    sections = read_pattern(text)
    assert sections == (
        LyricSection("intro1", ()), LyricSection("pre-chorus1", ("cccR", " cc ccR", "cc ")),
        LyricSection("verse", ("R", "c")),
    )  # fmt: skip
    assert sections_text(sections) == text
    assert read_pattern(text + "\n") == sections


lines = st.from_regex(r"[c ]*[cR]", fullmatch=True)
labels = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)


@given(st.lists(st.builds(LyricSection, labels, st.lists(lines, max_size=4).map(tuple)), min_size=1, max_size=4))
def test_patterns_round_trip(sections: list[LyricSection]) -> None:
    assert read_pattern(sections_text(sections)) == tuple(sections)


@pytest.mark.parametrize(
    ("text", "place", "complaint"),
    [
        ("", "line 1, column 1", "expected a header in round brackets, as \\(verse1\\), got an empty text"),
        ("cccR", "line 1, column 1", "got 'cccR'"),
        ("ccc\n(verse)\nccR", "line 1, column 1", "expected a header"),
        ("（verse）\nccR", "line 1, column 1", "expected a header"),
        ("(verse)\nccc\ncRc", "line 3, column 2", "'R' is the last character"),
        ("(verse)\nccc\nccR ", "line 3, column 3", "nothing may follow"),
        ("(verse)\ncRR", "line 2, column 2", "'R' is the last"),
        ("(verse)\nccr", "line 2, column 3", "got 'r'"),
        ("(verse)\n我爱你", "line 2, column 1", "got '我'"),
        ("(verse)\nccc，ccR", "line 2, column 4", "got '，'"),
        ("(verse)\r\nccR", "line 1, column 8", "Windows line ends"),
        ("(verse)\nccR\n(verse 2)\nccR", "line 3, column 1", "got '\\('"),
        ("(verse)\nccR\nccc(chorus)\nccR", "line 3, column 4", "\\(chorus\\) must stand on a line of its own"),
        ("(verse)ccR", "line 1, column 8", "expected the end of the line after \\(verse\\), got 'c'"),
        ("(verse)(chorus)", "line 1, column 8", "line of its own"),
        ("(verse)\nccR\n\n(chorus)\nccR", "line 3, column 1", "a blank one"),
        ("(verse)\n  \nccR", "line 2, column 1", "a blank one"),
        ("(verse)\nccR\n\n", "line 3, column 1", "a blank one"),
    ],
)
def test_what_is_not_in_the_grammar(text: str, place: str, complaint: str) -> None:
    with pytest.raises(InvalidPatternError, match=f"{place}: .*{complaint}"):
        read_pattern(text)


@given(st.text(alphabet="(va)\n cR", max_size=30))
def test_the_grammar_is_the_one_that_is_written_down(text: str) -> None:
    section = r"\([\w-]+\)(?:\n(?! *(?:\n|\Z))[c ]*[cR ])*"
    valid = re.fullmatch(rf"{section}(?:\n{section})*\n?", text) is not None
    try:
        read_pattern(text)
    except InvalidPatternError:
        assert not valid
    else:
        assert valid


@pytest.mark.parametrize("text", ["(verse)\nccc(chorus)ccR", "(verse)\n\nccR\n\n(chorus)"])
def test_a_scorer_needs_less(text: str) -> None:
    assert check_pattern(text) == split_sections(text)
    with pytest.raises(InvalidPatternError):
        read_pattern(text)


@pytest.mark.parametrize("value", [None, b"(verse)\nccR", ["(verse)"]])
def test_a_pattern_is_a_text(value: object) -> None:
    with pytest.raises(UnsupportedTypeError, match="must be a text"):
        read_pattern(value)  # type: ignore[arg-type]


@pytest.mark.skipif(not DEV.exists(), reason=f"needs the songs of MuChin, {DEV}")
def test_the_patterns_of_real_songs_are_in_the_grammar() -> None:
    for song in map(json.loads, DEV.read_text(encoding="utf-8").splitlines()):
        sections = sections_of_rows(song["structure"], "rhyme")
        assert read_pattern(sections_text(sections)) == sections
