"""The page on lyrics: its callbacks as plain functions, its layout in a process of its own."""

from __future__ import annotations

import contextlib
import csv
import html
import json
import re
import string
import subprocess
import time
from pathlib import Path

import pytest

from music_evals.annotations import sections_of_rows, sections_text
from music_evals.benchmark.records import read_records
from music_evals.cli import main
from music_evals.datasets.caimd.demo import demo_rows
from music_evals.errors import InvalidInputError, InvalidLyricsError, InvalidPatternError, NoDataError, UnknownNameError
from music_evals.lyrics.normalise import STEPS
from music_evals.lyrics.patterns import read_pattern
from music_evals.lyrics.rhyme import METHODS
from music_evals.metrics.lyric_structure import MAXIMUM, VARIANTS
from music_evals.pipelines.lyrics import lyric_structure
from music_evals.ui.spaces import lyric_scoring
from music_evals.ui.spaces import lyrics as page
from music_evals.ui.spaces.words_muchin import DESCRIPTION_WORDS, LYRICS_WORDS, said_in
from music_evals.ui.widgets.lyric_view import MARKS, inert, line_rows, losses

SPACE = Path(__file__).resolve().parents[3] / "spaces" / "lyrics"
SOURCE = Path(page.__file__).parents[1]
PATTERN = "(verse)\nccccR\nccccR\nccccc\nccccR"
POEM = "(verse)\n床前明月光\n疑是地上霜\n举头望明月\n低头思故乡"
HOSTILE = "(verse)\n<img src=x onerror=alert(1)>床前明月光\n疑是地上霜${alert(1)}{{x}}"


def text_of(view: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", view))


@pytest.fixture(scope="module")
def examples() -> list[lyric_scoring.LyricExample]:
    return lyric_scoring.load_examples(SPACE / "examples.jsonl")


@pytest.mark.parametrize(("name", "words"), [("lyrics", LYRICS_WORDS), ("description", DESCRIPTION_WORDS)])
def test_no_words_are_missing(name, words):
    assert words.languages == ("en", "zh")
    assert words.missing() == {}
    fields = string.Formatter().parse
    for key, english in words.texts["en"].items():
        chinese = words.texts["zh"][key]
        assert english.strip(), key
        assert chinese.strip(), key
        assert sorted(p[1] for p in fields(english) if p[1]) == sorted(p[1] for p in fields(chinese) if p[1]), key
    templates = {"lyrics": "lyric", "description": "tag"}[name]
    files = {
        "lyrics": ("spaces/lyrics", "spaces/lyric_scoring", "widgets/lyric_view"),
        "description": ("spaces/description", "spaces/tag_comparison", "widgets/tag_view"),
    }[name]
    pages = [SOURCE / f"{each}.py" for each in files] + sorted((SOURCE / "templates").glob(f"{templates}_*.html"))
    code = "".join(each.read_text(encoding="utf-8") for each in pages)
    said = re.findall(r'\bt\("([\w -]+)"[,)]', code) + re.findall(r'parts\.add\([\w.]+, "([\w -]+)"', code)
    assert len(said) > 20
    for key in said:
        assert key in words.texts["en"], f"the page says {key!r}, and has no words for it"


def test_all_words_of_lists_are_there():
    t = LYRICS_WORDS("zh")
    keys = [f"mark_{mark}" for mark in MARKS] + [f"level_{name}" for name in MAXIMUM]
    keys += [f"step_{name}" for name in STEPS] + [f"rhymes_{name}" for name in lyric_scoring.RHYMES]
    keys += [f"variant_{name}" for name in VARIANTS] + [f"rhyme_{name}" for name in METHODS]
    assert all(t(key) for key in keys)


def test_examples_are_songs_of_our_own(examples):
    rows = {row["id"]: row for row in demo_rows()}
    structure = rows["demo_0013"]["structure"]
    by_name = {example.name: example for example in examples}
    assert by_name["demo_0013"].lyrics == sections_text(sections_of_rows(structure, "lines"))
    assert by_name["demo_0013"].pattern == sections_text(sections_of_rows(structure, "rhyme"))
    other = rows["demo_0017"]["structure"]
    assert by_name["demo_0017_other"].lyrics == sections_text(sections_of_rows(other, "lines"))


def test_every_example_scores_what_the_library_gives(examples):
    found = {}
    for example in examples:
        judged = lyric_scoring.score_text(example.lyrics, example.pattern, normalise=True)
        assert judged.score.total == lyric_structure(example.pattern, example.lyrics, normalise=True).total
        found[example.name] = judged.score.total
    assert found["demo_0013"] > 100 > found["model"] > found["demo_0017_other"]


def test_a_poem_by_hand():
    """All as asked but for the hundredth of a line of the official code; 3 of 4 lines rhyme, within 0.6 to 0.8."""
    judged, values, levels, lines, lost, changes, *_ = lyric_scoring.score_lyrics(
        POEM, PATTERN, "official", "char", False
    )
    assert judged.score.total == pytest.approx(109.92, abs=0.01)
    assert values["scores"]["lyric_song"] == 10.0
    assert "109.92 of 110" in text_of(levels)
    assert levels.count('class="ly-level"') == 6
    assert re.findall(r'data-mark="(\w+)"', lines) == ["kept", "kept", "none", "kept"]
    assert "唐" in lines
    assert "No section and no line lost anything." in text_of(lost)
    assert "off" in text_of(changes)


def test_rhyme_marks_say_what_became_of_a_rhyme():
    lyrics = "(verse)\n床前明月光\n疑是地上霜\n举头望明月\n低头思故里"
    wanted = "(verse)\nccccR\nccccc\nccccR\nccccR\nccccc"
    judged = lyric_scoring.score_text(lyrics, wanted, rhyme="char", normalise=False)
    rows = line_rows(judged.score)
    assert [row["rhyme"] for row in rows] == ["kept", "extra", "missed", "missed", "none"]
    assert rows[-1]["status"] == "missing"
    assert rows[-1]["ratio"] is None
    view = lyric_scoring.show(judged, "zh")[1]
    for mark in ("kept", "extra", "missed", "none"):
        assert LYRICS_WORDS("zh")(f"mark_{mark}") in view
    told = dict(losses(judged.score, LYRICS_WORDS("en")))
    [section] = [lines for head, lines in told.items() if head.startswith("section 1")]
    assert section == [
        "line 2 疑是地上霜: rhymes where no rhyme is expected",
        "line 3 举头望明月: a rhyme is expected",
        "line 4 低头思故里: a rhyme is expected",
        "line 5: missing, 5 characters expected",
    ]


def test_missing_and_unexpected_sections_are_named():
    judged = lyric_scoring.score_text(
        f"{POEM}\n(outro)\n床前", f"(intro)\ncc\n{PATTERN}", rhyme="char", normalise=False
    )
    heads = [head for head, _ in losses(judged.score, LYRICS_WORDS("en"))]
    assert "section 1 (intro) is missing" in heads
    assert "section (outro), number 2 of the lyrics, is not expected" in heads


def test_the_normaliser_lists_its_changes(examples):
    judged = lyric_scoring.score_text(examples[0].lyrics, examples[0].pattern)
    view = lyric_scoring.show(judged, "zh")[3]
    assert "繁体转简体" in view
    assert "强调标记" in view
    assert "删除" in view
    assert "step_" not in view
    told = text_of(lyric_scoring.show(judged, "en")[3])
    assert "'# 主歌' and 1 more became '(verse)' and 1 more" in html.unescape(told)


@pytest.mark.slow
def test_both_variants_and_all_methods_answer():
    totals = {
        (variant, rhyme): lyric_scoring.score_text(POEM, PATTERN, variant, rhyme).score.total
        for variant in VARIANTS
        for rhyme in METHODS
    }
    assert totals["official", "char"] > totals["paper", "char"] > 0


def test_results_can_be_taken_away():
    lyrics = f"{POEM}\n(outro)\n=HYPERLINK(床)"
    *_, json_path, csv_path, receipt = lyric_scoring.score_lyrics(lyrics, PATTERN, "official", "char", False)
    values = json.loads(Path(json_path).read_text(encoding="utf-8"))
    assert values["options"] == {"variant": "official", "rhyme": "char", "normalise": False, "strict": True}
    assert values["direction"] == "higher is better"
    with Path(csv_path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["rhyme"] for row in rows[:4]] == ["kept", "kept", "none", "kept"]
    assert rows[-1]["words"].startswith("'=")
    assert "lyric_structure" in receipt


@pytest.mark.parametrize("normalise", [True, False])
def test_the_code_gives_the_same_score(examples, tmp_path, monkeypatch, capsys, normalise):
    example = examples[0] if normalise else examples[1]
    judged = lyric_scoring.score_text(example.lyrics, example.pattern, "paper", "char", normalise=normalise)
    python, shell = lyric_scoring.code_of(judged)
    space: dict = {}
    exec(python, space)  # noqa: S102
    assert space["score"].total == judged.score.total
    monkeypatch.chdir(tmp_path)
    files, _, command = shell.rpartition("music-evals ")
    subprocess.run(["bash", "-c", files], check=True)
    assert main(command.replace("\\\n", " ").split()) == 0
    records = read_records(tmp_path / "results" / "lyrics" / "records")
    scores = [row for row in records if row.get("metric") == "lyric_structure"]
    assert [row["system"] for row in scores] == [
        "lyrics",
        "echo",
        "one character",
        "random characters",
        "random words",
        "climbed",
    ]
    assert scores[0]["value"] == pytest.approx(judged.score.total)


def test_a_text_cannot_leave_its_quotes(tmp_path):
    judged = lyric_scoring.score_text(
        f"{POEM}\nEND\n'; touch here #床 $(touch there)", PATTERN, rhyme="char", normalise=False
    )
    _, shell = lyric_scoring.code_of(judged)
    files, _, _ = shell.rpartition("music-evals ")
    subprocess.run(["bash", "-c", files], check=True, cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lyrics.txt", "pattern.txt"]
    assert (tmp_path / "lyrics.txt").read_text(encoding="utf-8") == judged.lyrics


@pytest.mark.parametrize("language", ["en", "zh"])
def test_texts_of_visitors_stay_text(language):
    outputs = lyric_scoring.score_lyrics(HOSTILE, PATTERN, "official", "char", False, language)
    for view in (*outputs[2:6], lyric_scoring.check_pattern_text(HOSTILE, language)):
        assert "<img" not in view
        assert "${" not in view
        assert "{{" not in view
    assert inert("song_empty.html", text="<${{&").strip() == '<p class="me-empty">&lt;&#36;&#123;&#123;&amp;</p>'


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        ("(verse)\nccRc", (2, 3)),
        ("(verse)\nccc\ncxc", (3, 2)),
        ("ccc", (1, 1)),
        ("", (1, 1)),
        ("(verse)\n\nccc", (2, 1)),
        ("(verse)ccc", (1, 8)),
        ("(verse)\nccc (chorus)\ncc", (2, 5)),
    ],
)
def test_errors_of_a_pattern_have_line_and_column_in_both_languages(pattern, place):
    line, column = place
    assert f"Line {line}, column {column}: " in lyric_scoring.check_pattern_text(pattern)
    chinese = text_of(lyric_scoring.check_pattern_text(pattern, "zh"))
    assert f"第 {line} 行第 {column} 列" in chinese
    said = chinese.split("列：")[1].replace("(verse1)", "").replace("(verse)", "").replace("(chorus)", "")
    assert not re.search(r"[a-z]{4}", said), "an error that has no Chinese words"


def test_a_good_pattern_is_counted():
    assert "Sections: 1, lines: 4, characters: 20, rhyming lines: 3" in lyric_scoring.check_pattern_text(PATTERN)
    assert "1 段，4 行，20 字，3 行押韵" in lyric_scoring.check_pattern_text(PATTERN.replace("\n", "\r\n"), "zh")
    assert "too long" in lyric_scoring.check_pattern_text("c" * (lyric_scoring.MAX_CHARACTERS + 1))


def test_a_pattern_is_derived_and_is_in_the_grammar(examples):
    for example in examples:
        pattern, remark = lyric_scoring.derive_pattern(example.lyrics)
        read_pattern(pattern)
        assert "✓" in remark
    assert lyric_scoring.derive_pattern(examples[1].lyrics)[0] == examples[1].pattern
    pattern, remark = lyric_scoring.derive_pattern("(verse)\n床前, hi 明月\n\n疑是", "char", False, "zh")
    assert pattern == "(verse)\ncc cc\ncc"
    assert "3 个非汉字" in remark
    with pytest.raises(InvalidLyricsError):
        lyric_scoring.derive_pattern("床前明月光", "char", False)
    with pytest.raises(UnknownNameError):
        lyric_scoring.derive_pattern(POEM, "chr")


def test_sections_are_added_with_the_next_number():
    first, _ = lyric_scoring.add_section("", "verse", 3, 4, "even")
    assert first == "(verse1)\ncccc\ncccR\ncccc"
    second, told = lyric_scoring.add_section(f"{first}\n", "verse", 1, 1, "all", "zh")
    assert second == f"{first}\n(verse2)\nR"
    assert "verse2" in told
    read_pattern(second)
    assert lyric_scoring.add_section(second, "chorus", 1, 2, "none")[0].endswith("(chorus1)\ncc")


@pytest.mark.parametrize(
    "change", [{"n_lines": 0}, {"n_lines": 41}, {"n_characters": 2.5}, {"n_characters": float("nan")}]
)
def test_numbers_of_a_section_are_held_to_their_range(change):
    options = {"n_lines": 1, "n_characters": 1} | change
    with pytest.raises(InvalidInputError):
        lyric_scoring.add_section("", "verse", options["n_lines"], options["n_characters"], "all")


def test_names_that_do_not_exist_are_refused():
    with pytest.raises(UnknownNameError):
        lyric_scoring.add_section("", "vers", 1, 1, "all")
    with pytest.raises(UnknownNameError):
        lyric_scoring.add_section("", "verse", 1, 1, "al")
    with pytest.raises(UnknownNameError):
        lyric_scoring.score_text(POEM, PATTERN, "offical")
    with pytest.raises(UnknownNameError):
        lyric_scoring.score_text(POEM, PATTERN, "official", "chars")


def test_texts_over_the_limits_are_refused():
    with pytest.raises(InvalidLyricsError):
        lyric_scoring.score_text(POEM + "床" * lyric_scoring.MAX_CHARACTERS, PATTERN)
    with pytest.raises(InvalidLyricsError, match="lines"):
        lyric_scoring.score_text(POEM + "\\n" * lyric_scoring.MAX_LINES, PATTERN)
    with pytest.raises(InvalidPatternError):
        lyric_scoring.score_text(POEM, PATTERN + "\nc" * lyric_scoring.MAX_LINES)
    with pytest.raises(InvalidPatternError):
        lyric_scoring.add_section("(verse)" + "\nc" * (lyric_scoring.MAX_LINES - 2), "verse", 40, 40, "all")


@pytest.mark.parametrize(
    "text", [" " * 5990 + "x", "* \n" * 299, "\\r" * 299, "(verse)\n" + "床x1 " * 1400, "# " * 2900]
)
def test_hostile_texts_do_not_hold_up_the_queue(text):
    start = time.process_time()  # of the processor: a busy machine is not the text's fault
    with contextlib.suppress(InvalidLyricsError):
        lyric_scoring.score_text(text, PATTERN, rhyme="char")
    assert time.process_time() - start < 60


def test_what_is_wrong_is_said_in_the_language_of_the_page():
    with pytest.raises(InvalidInputError, match="没有段落标题"):
        lyric_scoring.score_lyrics("床前明月光", PATTERN, language="zh")
    with pytest.raises(InvalidInputError, match="第 2 行第 1 列"):
        lyric_scoring.score_lyrics(POEM, "(verse)\nx", language="zh")
    with pytest.raises(InvalidInputError, match="文本过长"):
        lyric_scoring.score_lyrics("床" * 6001, PATTERN, language="zh")
    with pytest.raises(InvalidLyricsError):
        lyric_scoring.score_lyrics("床前明月光", PATTERN)
    assert said_in("zh", "something new") == "something new"


def test_stages_are_told():
    steps = []
    lyric_scoring.score_lyrics(
        POEM, PATTERN, "official", "char", True, "zh", lambda share, text: steps.append((share, text))
    )
    assert [text for _, text in steps] == ["读取歌词", "判定押韵并评分", "写出结果"]
    assert [share for share, _ in steps] == sorted(share for share, _ in steps)


def test_damaged_examples_are_named(tmp_path):
    path = tmp_path / "examples.jsonl"
    path.write_text('{"name": "a", "en": "b"}\n', encoding="utf-8")
    with pytest.raises(InvalidInputError, match="line 1: no text in zh, lyrics, pattern"):
        lyric_scoring.load_examples(path)
    path.write_text("", encoding="utf-8")
    with pytest.raises(NoDataError):
        page.build_demo(path)


def test_lists_are_renamed_in_both_languages():
    assert page._choices(VARIANTS, "variant_")("zh")[0] == ("official：作者代码", "official")
    assert [name for _, name in page._choices(lyric_scoring.KINDS)("en")] == list(lyric_scoring.KINDS)
    for names, prefix in ((lyric_scoring.KINDS, ""), (lyric_scoring.RHYMES, "rhymes_"), (METHODS, "rhyme_")):
        assert all(re.search("[\u4e00-\u9fff]", title) for title, _ in page._choices(names, prefix)("zh"))


def test_before_a_score_its_views_say_what_will_stand_there():
    assert all("Press Score" in view for view in lyric_scoring.show(None, "en"))
    assert all("评分" in view for view in lyric_scoring.show(None, "zh"))
    assert len({*lyric_scoring.show(None, "en")}) == 4


@pytest.mark.parametrize("lyrics", ["床前明月光", "", "(verse)"])
def test_what_cannot_be_scored_is_said_without_options_of_the_library(lyrics):
    with pytest.raises(InvalidLyricsError) as error:
        lyric_scoring.score_lyrics(lyrics, PATTERN, normalise=False)
    assert not re.search(r"\w+=|strict", str(error.value))
    with pytest.raises(InvalidInputError, match=r"^Lines: enter a whole number from 1 to 40$"):
        lyric_scoring.add_section("", "verse", None, 4, "all")
    with pytest.raises(InvalidInputError, match="每行字数：请输入 1 到 40 的整数"):
        lyric_scoring.add_section("", "verse", 4, 99, "all", "zh")


@pytest.mark.parametrize(("language", "told"), [("en", "no Chinese character"), ("zh", "没有任何汉字")])
@pytest.mark.parametrize("normalise", [True, False])
def test_a_pattern_that_is_handed_back_is_announced_in_both_languages(language, told, normalise):
    judged = lyric_scoring.score_text(PATTERN, PATTERN, rhyme="char", normalise=normalise)
    score, _, lost, _ = lyric_scoring.show(judged, language)
    assert judged.score.total > 100  # what it scores is left to the official code; it is not left unsaid
    assert told in score
    assert told in lost
    assert all(
        told not in view for view in lyric_scoring.show(lyric_scoring.score_text(POEM, PATTERN, rhyme="char"), language)
    )
    assert any("no Chinese character" in note for note in lyric_scoring.results_of(judged)["notes"])
