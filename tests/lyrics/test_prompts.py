from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import LyricSection, sections_text
from music_evals.errors import InvalidLyricsError, InvalidPatternError, UnknownNameError
from music_evals.lyrics import prompts
from music_evals.lyrics.patterns import read_pattern
from music_evals.lyrics.prompts import LANGUAGES, Example, default_example, lyric_prompt, prompt_receipt

THEME = "我想念故乡的雨。"
STRUCTURE = "(verse1)\nccc ccR\nccccR\n(chorus2)\nccc"
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_prompt_holds_what_it_is_about(language: str) -> None:
    prompt = lyric_prompt(THEME, STRUCTURE, language=language)
    example = default_example()
    order = [example.theme, example.structure, example.lyrics, THEME, "(verse)\nccc ccR\nccccR\n(chorus)\nccc"]
    places = [prompt.index(part) for part in order]
    assert places == sorted(places)
    assert "$" not in prompt
    assert not re.search(r"\((verse|chorus)\d", prompt)  # headers without numbers
    assert prompt == prompt.strip()


def test_the_language_is_that_of_the_instructions() -> None:
    default, english = lyric_prompt(THEME, STRUCTURE), lyric_prompt(THEME, STRUCTURE, language="en")
    assert default == lyric_prompt(THEME, STRUCTURE, language="zh")
    assert default.startswith("你是一位")
    assert english.startswith("You are")
    ours = default_example()
    rest = english
    for part in (ours.theme, ours.lyrics, THEME):
        rest = rest.replace(part, "")
    assert not CHINESE.search(rest)


def test_the_example_keeps_its_own_rules() -> None:
    """Worked by hand: c and R are one character each; R is New Rhyme class 10 (u) in the verse, 16 (ang) after it."""
    example = default_example()
    pattern, lines = example.structure.splitlines(), example.lyrics.splitlines()
    assert len(pattern) == len(lines)
    for asked, line in zip(pattern, lines, strict=True):
        assert line == asked if asked.startswith("(") else re.sub("[cR]", "字", asked) == CHINESE.sub("字", line)
    rhymes = [line[-1] for asked, line in zip(pattern, lines, strict=True) if asked.endswith("R")]
    assert rhymes == ["雾", "路", "上", "忙", "方"]
    assert read_pattern(example.structure)


def test_an_example_of_ones_own() -> None:
    mine = Example("Rain.", "(verse9)\nccR", "(verse)\n下雨天\n")
    prompt = lyric_prompt(THEME, STRUCTURE, example=mine)
    assert "Rain." in prompt
    assert "(verse)\nccR" in prompt
    assert "下雨天" in prompt
    assert default_example().theme not in prompt


@pytest.mark.parametrize("theme", ["", "  \n", "\u3000"])
def test_an_empty_theme(theme: str) -> None:
    with pytest.raises(InvalidLyricsError):
        lyric_prompt(theme, STRUCTURE)


@pytest.mark.parametrize("structure", ["", "ccc", "(verse)\nabc", "(verse)\ncRc", "[verse]\nccc"])
def test_a_bad_pattern(structure: str) -> None:
    with pytest.raises(InvalidPatternError):
        lyric_prompt(THEME, structure)
    with pytest.raises(InvalidPatternError):
        lyric_prompt(THEME, STRUCTURE, example=Example(THEME, structure, "词"))


def test_a_bad_example() -> None:
    with pytest.raises(InvalidLyricsError):
        lyric_prompt(THEME, STRUCTURE, example=Example(" ", STRUCTURE, "词"))
    with pytest.raises(InvalidLyricsError):
        lyric_prompt(THEME, STRUCTURE, example=Example(THEME, STRUCTURE, "\n"))


def test_an_unknown_language() -> None:
    for call in (lambda: lyric_prompt(THEME, STRUCTURE, language="eng"), lambda: prompt_receipt("eng")):
        with pytest.raises(UnknownNameError):
            call()


@given(
    theme=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip),
    lines=st.lists(st.from_regex(r"c{1,4}( c{1,3})?R?", fullmatch=True), min_size=1, max_size=5),
)
def test_any_theme_stands_in_the_prompt_as_it_is(theme: str, lines: list[str]) -> None:
    pattern = sections_text([LyricSection("verse", tuple(lines))])
    assert f"{theme.strip()}\n结构：\n{pattern}\n歌词：" in lyric_prompt(theme, pattern)


def test_the_receipt_tells_one_prompt_from_another(monkeypatch: pytest.MonkeyPatch) -> None:
    receipt = prompt_receipt()
    assert {key: receipt[key] for key in ("version", "language", "example")} == {
        "version": 1,
        "language": "zh",
        "example": "built-in",
    }
    others = [prompt_receipt("en"), prompt_receipt("zh", Example(THEME, STRUCTURE, "词"))]
    content = prompts._content()
    changed = {**content, "prompts": {**content["prompts"], "zh": content["prompts"]["zh"] + "!"}}
    monkeypatch.setattr(prompts, "_content", lambda: changed)
    others.append(prompt_receipt())
    assert len({receipt["content_hash"], *(other["content_hash"] for other in others)}) == 4
    assert others[1]["example"] == "given"


def test_no_template_misses_or_invents_a_field() -> None:
    import string

    fields = {"theme", "structure", "example_theme", "example_structure", "example_lyrics"}
    for language in LANGUAGES:
        assert set(string.Template(prompts._content()["prompts"][language]).get_identifiers()) == fields
