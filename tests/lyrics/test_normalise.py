"""Texts as language models write them, and the form that they are brought into. The poems are Tang, by Meng Haoran."""

# ruff: noqa: RUF001  (full-width and typographic marks are what is tested)

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import sections_of_rows, sections_text
from music_evals.errors import MissingBackendError, UnsupportedTypeError
from music_evals.lyrics import headers, normalise
from music_evals.lyrics.normalise import STEPS, normalise_lyrics

MUCHIN = Path(__file__).resolve().parents[2] / "../shared/data/muchin/dev.jsonl"
PLAIN = "(verse)\n春眠不觉晓\n处处闻啼鸟\n(chorus)\n夜来风雨声\n花落知多少"

# what models write, each of them the same song
AS_WRITTEN = {
    "preamble and closing": f"好的，以下是为您创作的歌词：\n\n{PLAIN}\n\n希望你喜欢",
    "closing below a rule": f"{PLAIN}\n---\n希望这首歌词能让您满意！",
    "a note on the song": f"{PLAIN}\n\n---\n\n**创作说明：**\n1. 押韵：鸟、少\n2. 结构：主歌与副歌",
    "English remarks": f"Sure! Here is the song:\n\n{PLAIN}\n\nHope you enjoy these lyrics!",
    "an offer": f"{PLAIN}\n\n如果您需要修改，请随时告诉我。",
    "title": f"# 《春晓》\n\n作词：孟浩然\n\n{PLAIN}",
    "the end": f"{PLAIN}\n\n（完）",
    "fence": f"```\n{PLAIN}\n```",
    "fence with a language, and words outside": f"这是歌词：\n\n```text\n{PLAIN}\n```\n\n押韵采用一韵到底。",
    "fence that is never closed": f"```markdown\n{PLAIN}",
    "fences below headers": ("## 主歌\n```\n春眠不觉晓\n处处闻啼鸟\n```\n## 副歌\n```\n夜来风雨声\n花落知多少\n```\n"),
    "full-width brackets": PLAIN.replace("(", "（").replace(")", "）"),
    "square brackets": PLAIN.replace("(", "[").replace(")", "]"),
    "lenticular brackets": PLAIN.replace("(", "【").replace(")", "】"),
    "Chinese names": PLAIN.replace("(verse)", "【主歌】").replace("(chorus)", "〔副歌〕"),
    "Chinese names without brackets": PLAIN.replace("(verse)", "主歌：").replace("(chorus)", "副歌"),
    "Markdown headings": PLAIN.replace("(verse)", "## Verse").replace("(chorus)", "### 副歌（Chorus）"),
    "bold names": PLAIN.replace("(verse)", "**Verse**").replace("(chorus)", "__Chorus:__"),
    "bold headers": PLAIN.replace("(verse)", "**(verse)**").replace("(chorus)", "***[Chorus]***"),
    "lines after a colon": "Verse: 春眠不觉晓\n处处闻啼鸟\nChorus：夜来风雨声\n花落知多少",
    "bold names with a colon": "**Verse:** 春眠不觉晓\n处处闻啼鸟\n**Chorus：**\n夜来风雨声\n花落知多少",
    "lines behind the header": "(verse) 春眠不觉晓\n处处闻啼鸟\n【副歌】夜来风雨声\n花落知多少",
    "headers in the line": "(verse)春眠不觉晓\n处处闻啼鸟 (chorus)夜来风雨声\n花落知多少",
    "remarks in headers": PLAIN.replace("(verse)", "[Verse: 李白]").replace("(chorus)", "【副歌】（女声）"),
    "titles of headings": PLAIN.replace("(verse)", "## Verse - 春晓").replace("(chorus)", "## Chorus：风雨"),
    "counts in headers": PLAIN.replace("(verse)", "(Verse, 2 lines)").replace("(chorus)", "[Chorus | 副歌 | 2 lines]"),
    "tags": "<verse>\n春眠不觉晓\n处处闻啼鸟\n</verse>\n[chorus]\n夜来风雨声\n花落知多少\n[/chorus]",
    "JSON": '{"lyrics": "' + PLAIN.replace("\n", "\\n") + '"}',
    "JSON of lines": '["[verse]", "春眠不觉晓", "处处闻啼鸟", "[chorus]", "夜来风雨声", "花落知多少"]',
    "JSON of sections": (
        '好的：\n```json\n{"title": "春晓", "sections": [{"type": "verse", "lines": ["春眠不觉晓", "处处闻啼鸟"]},\n'
        '{"type": "chorus", "text": "夜来风雨声\\n花落知多少"}]}\n```\n希望你喜欢'
    ),
    "JSON by label": '{"verse": ["春眠不觉晓", "处处闻啼鸟"], "chorus": "夜来风雨声\\n花落知多少"}',
    "JSON within words": (
        'Here: {"lyrics": {"[Verse]": "春眠不觉晓\\n处处闻啼鸟", "副歌": ["夜来风雨声", "花落知多少"]}} ok'
    ),
    "LRC": (
        "[ti:春晓]\n[ar:孟浩然]\n[offset:0]\n[verse]\n[00:10.00]春眠不觉晓\n[00:13.20]处处闻啼鸟\n"
        "[chorus]\n[00:20.5]夜来风雨声\n[01:01]花落知多少\n"
    ),
    "LRC with headers in time": (
        "[00:01.00](verse)\n[00:02.00] 春眠不觉晓\n处处闻啼鸟\n"
        "[00:09.00](chorus)\n[00:09.10]夜来风雨声\n[00:12]花落知多少"
    ),
    "LRC by words": PLAIN.replace("春眠", "[00:01.00]<00:01.00>春<00:01.50>眠"),
    "LRC in JSON": '{"lyric": "(verse)\\n[00:10.00]春眠不觉晓\\n处处闻啼鸟\\n(chorus)\\n夜来风雨声\\n花落知多少"}',
    "semicolons": "[verse] 春眠不觉晓.处处闻啼鸟 ; [chorus] 夜来风雨声.花落知多少",
    "Suno": "[Verse 1: soft piano]\n春眠不觉晓\n处处闻啼鸟\n\n[Chorus]\n夜来风雨声\n花落知多少\n".replace(" 1:", ":"),
    "YuE": "[verse]\n春眠不觉晓\n处处闻啼鸟\n\n\n[chorus]\n夜来风雨声\n花落知多少\n\n",
    "ACE-Step": "[Verse - whispered]\n春眠不觉晓\n处处闻啼鸟\n\n[Chorus - anthemic]\n夜来风雨声\n花落知多少",
    "hook": PLAIN.replace("(chorus)", "[Hook]"),
    "repeats": PLAIN.replace("(chorus)", "(副歌重复两遍)").replace("少", "少（×2）"),
    "CRLF": PLAIN.replace("\n", "\r\n"),
    "line separators": PLAIN.replace("\n", "\u2028"),
    "HTML": PLAIN.replace("\n", "<br/>").replace("春眠", "<b>春眠</b>"),
    "escaped newlines": PLAIN.replace("\n", "\\n"),
    "doubly escaped newlines in quotes": '"' + PLAIN.replace("\n", "\\\\n") + '"',
    "numbered lines": "(verse)\n1. 春眠不觉晓\n2. 处处闻啼鸟\n(chorus)\n１．夜来风雨声\n② 花落知多少",
    "numbered sections": PLAIN.replace("(verse)", "1. 主歌").replace("(chorus)", "2. 副歌"),
    "Chinese numbers": PLAIN.replace("(verse)", "一、主歌").replace("(chorus)", "（二）副歌"),
    "bullets": PLAIN.replace("春", "- 春").replace("处", "* 处", 1).replace("夜", "• 夜").replace("花", "> 花"),
    "traditional": "（主歌）\n春眠不覺曉\n處處聞啼鳥\n【副歌】\n夜來風雨聲\n花落知多少",
    "end punctuation": PLAIN.replace("晓", "晓，").replace("鸟", "鸟。").replace("声", "声……").replace("少", "少？！"),
    "quotes": PLAIN.replace("夜", "“夜").replace("少", "少”"),
    "full-width indentation": PLAIN.replace("春", "　　春").replace("处处", "　处处"),
    "blank lines": PLAIN.replace("\n", "\n\n \n"),
    "ends of lines": PLAIN.replace("\n", "  \n") + "\n",
    "invisible": "\ufeff" + PLAIN.replace("眠", "\u200b眠").replace("来", "来\u200d\ufe0f").replace("\n", "\u00ad\n"),
    "reasoning": f"<think>\n先想结构 (verse)\n(bridge)\n</think>\n\n{PLAIN}",
    "reasoning opened by the prompt": f"先想结构 (verse)\n(bridge)\n</think>\n{PLAIN}",
    "emphasis": PLAIN.replace("春眠", "**春眠**").replace("花落", "_花落_"),
    "notes": PLAIN.replace("晓", "晓 ♪").replace("少", "少～"),
}


@pytest.mark.parametrize("kind", AS_WRITTEN)
def test_a_song_as_it_is_written(kind: str) -> None:
    found = normalise_lyrics(AS_WRITTEN[kind])
    assert found.text == PLAIN
    assert found.changes
    assert found.foreign == ()


def test_all_at_once() -> None:
    text = (
        "<think>用户要一首歌……</think>好的！以下是歌词：\r\n\r\n```text\r\n### 1. 主歌一（Verse 1）\r\n"
        "1、春眠不覺曉，處處聞啼鳥。\r\n\r\n**預副歌：**\r\n夜來風雨聲 baby，\r\n"
        "【橋段 - 慢】花落知多少？\r\n[Outro]\r\n（哦～）\r\n```\r\n希望您喜欢！"
    )
    found = normalise_lyrics(text)
    assert found.text == (
        "(verse1)\n春眠不觉晓 处处闻啼鸟\n(pre-chorus)\n夜来风雨声 baby\n(bridge)\n花落知多少\n(ending)\n哦"
    )
    assert found.foreign == ("baby",)
    form, *changes = found.changes
    assert form.startswith("format: ")
    steps = [change.partition(": ")[0] for change in changes]
    assert steps == [name for name in STEPS if name in steps]
    assert steps == [
        "reasoning", "line breaks", "code fences", "list marks", "emphasis", "widths", "simplified characters",
        "headers", "pauses", "blank lines",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("Verse 2", "verse2"), ("VERSE II", "verse2"), ("verse_2", "verse2"), ("Verse Two", "verse2"),
        ("Second Verse", "verse2"), ("2nd verse", "verse2"), ("主歌2", "verse2"), ("主歌二", "verse2"),
        ("第二段主歌", "verse2"), ("主歌第二段", "verse2"), ("主歌B", "verse2"), ("主歌（Verse 2）", "verse2"),
        ("Verse 12", "verse12"), ("第十二段主歌", "verse12"), ("Pre-Chorus", "pre-chorus"),
        ("prechorus 1", "pre-chorus1"), ("(Pre Chorus)", "pre-chorus"), ("预副歌", "pre-chorus"),
        ("導歌", "pre-chorus"), ("前奏", "intro"), ("Intro", "intro"), ("间奏", "interlude"),
        ("[Guitar Solo]", "interlude"), ("桥段", "bridge"), ("Middle 8", "bridge"), ("尾奏", "ending"),
        ("[Outro]", "ending"), ("【尾声】", "ending"), ("(ending)", "ending"), ("最后副歌", "chorus"),
        ("Final Chorus x2", "chorus"), ("Post-Chorus", "post-chorus"), ("(rap)", "rap"), ("(others)", "others"),
    ],
)  # fmt: skip
def test_names_of_sections(line: str, label: str) -> None:
    assert normalise_lyrics(f"{line}\n春眠不觉晓").text == f"({label})\n春眠不觉晓"


@pytest.mark.parametrize(
    "line",
    [
        "hook", "尾声", "桥", "averse", "introverse", "副歌声声", "the bridge is down", "我的主歌", "(啊啊)",
        "(verse/chorus)", "(verse, chorus)", "1998",
    ],
)  # fmt: skip
def test_words_of_a_song_are_no_header(line: str) -> None:
    """A word that may be sung is a header only where it is marked as one; the rest of a line counts too."""
    found = normalise_lyrics(f"(verse)\n{line}\n春眠不觉晓").text
    assert found.count("(") == 1
    assert len(found.split("\n")) == 3


def test_what_is_no_header_in_brackets_is_words() -> None:
    assert normalise_lyrics("(verse)\n（啊啊）春眠（哦）不觉晓").text == "(verse)\n啊啊 春眠 哦 不觉晓"


def test_nothing_is_invented() -> None:
    found = normalise_lyrics("春眠不觉晓，\n处处闻啼鸟。")
    assert found.text == "春眠不觉晓\n处处闻啼鸟"
    assert normalise_lyrics("好的，以下是歌词：\n春眠不觉晓\n处处闻啼鸟").text == found.text
    assert normalise_lyrics("(chorus)\n（副歌 ×3）").text == "(chorus)\n(chorus)"
    assert normalise_lyrics("抱歉，我无法完成这个请求。").text == "抱歉 我无法完成这个请求"


def test_a_text_that_is_all_thinking_is_empty() -> None:
    found = normalise_lyrics("<think>先写 (verse)\n春眠不觉晓")
    assert found.text == ""
    assert found.changes == ("reasoning: '<think>先写 (verse)' and 1 more removed",)
    assert normalise_lyrics("").changes == ()


# what may be sung: below the last line of the song, or below a blank line
SUNG = [
    "希望你还在，希望有歌。",
    "如果你爱我，请告诉我。",
    "这首歌，送给你。",
    "请告诉我，为什么？",
    "感谢你，陪着我。",
    "注定，要分离。",
    "感谢你来过",
    "谢谢您！",
    "感谢阅读",
    "希望你喜欢我",
    "希望你喜欢这样的我，这样的夜",
    "如果你不满意，我就走",
    "如果你需要我，请告诉我",
    "如果可以，我想修改结局",
    "请你修改我的命运！",
    "请随时告诉我，你在哪里",
    "把你写进我的歌词，唱给风听",
    "写一首歌词，给从前的你",
    "以上苍的名义，爱你",
    "云层以上，是你的歌",
    "这首歌我唱给你听",
    "感谢你听完这首歌",
    "唱完",
    "故事没有说完，夜已完",
    "他说：别走",
    "注意，列车进站",
    "好的，我会等你",
    "Let me know if you still love me",
    "Let me know that you are mine",
    "Hope you find what you are looking for",
    "I hope you remember me",
    "Feel free to fall in love",
    "Thank you for the days",
    "This song is for you",
]


def test_instrumental_sections_are_empty_ones() -> None:
    form = "(intro)\n(verse)\n春眠不觉晓\n(interlude)\n(chorus)\n花落知多少\n(ending)"
    semicolons = "[intro-short] ; [verse] 春眠不觉晓 ; [inst-medium] ; [chorus] 花落知多少 ; [outro-short]"
    lines = "[intro-short]\n\n[verse]\n春眠不觉晓\n\n[inst-medium]\n\n[chorus]\n花落知多少\n\n[outro-long]"
    suno = "[Intro]\n[Verse]\n春眠不觉晓\n[Instrumental Break]\n[Chorus]\n花落知多少\n[Fade Out]"
    ace = "[intro]\n[verse]\n春眠不觉晓\n[build up]\n[chorus]\n花落知多少\n[outro]"
    assert {normalise_lyrics(text).text for text in (semicolons, lines, suno, ace)} == {form}


def test_a_line_of_lrc_is_sung_at_each_of_its_times() -> None:
    text = "[verse]\n[00:01.00]春眠不觉晓\n[chorus]\n[00:05.00][00:15.00]花落知多少\n[verse2]\n[00:10.00]处处闻啼鸟"
    assert normalise_lyrics(text).text == "(verse)\n春眠不觉晓\n(chorus)\n花落知多少\n(verse2)\n处处闻啼鸟\n花落知多少"


@pytest.mark.parametrize("text", ["[]", "{}", "[1, 2]", '{"a": 1}', "[verse", "{春眠}", "春 ; 眠", "[verse] 春 ; 眠"])
def test_what_is_in_none_of_these_formats_stays(text: str) -> None:
    assert STEPS["song formats"](text) == text


@given(st.lists(st.sampled_from(["[verse]", "[chorus]", "春眠不觉晓", "花落知多少"]), min_size=1, max_size=8))
def test_lyrics_written_in_a_format_are_read_back(lines: list[str]) -> None:
    plain = normalise_lyrics("\n".join(lines)).text
    times = [f"[{at // 60:02d}:{at % 60:02d}.00]{line}" for at, line in enumerate(lines)]
    for text in (json.dumps(lines), json.dumps({"lyrics": "\n".join(lines)}, ensure_ascii=False), "\n".join(times)):
        assert normalise_lyrics(text).text == plain


@pytest.mark.parametrize("line", SUNG)
def test_words_of_the_last_section_are_no_closing_remark(line: str) -> None:
    for text in (f"{PLAIN}\n{line}", f"{PLAIN}\n\n{line}", f"{PLAIN}\n\n{line}\n\n床前明月光"):
        found = normalise_lyrics(text)
        assert len(found.text.split("\n")) == 7 + text.endswith("光")
        assert found.removed_lines == ()


REMARKS = [
    "希望你喜欢",
    "希望您喜欢！",
    "希望你喜欢这首歌词！",
    "希望这首歌能让您满意。",
    "希望这些歌词符合您的要求",
    "感谢您的信任，希望您喜欢这首作品！",
    "以上就是为您创作的歌词。",
    "以上歌词共两段，每段两句。",
    "（以上为完整歌词）",
    "如有需要，请告诉我。",
    "如需调整，请随时告诉我！",
    "欢迎提出修改意见。",
    "如果您觉得哪里需要修改，欢迎告诉我。",
    "如果有什么想要调整的地方，请随时告诉我",
    "这首歌采用一韵到底的写法，描绘春夜。",
    "**注：**歌词押“少”韵。",
    "歌词严格按照结构创作",
    "创作说明：\n主题：春天\n意象：春、鸟、雨、花",
    "---\n**押韵说明**\n- 第一段：晓、鸟\n- 第二段：声、少",
    "🎵 希望您喜欢这首歌！\n\n如需修改，请告诉我。",
    "Hope you like it!",
    "I hope this song meets your needs.",
    "Let me know if you'd like any changes!",
    "Feel free to adjust the lyrics.",
    "Would you like me to change the chorus?",
    "Note: every line rhymes.",
    "These lyrics follow the given structure.",
    "The End",
    "—— 全文完 ——",
    "（终）",
]


@pytest.mark.parametrize("remark", REMARKS)
def test_a_remark_on_the_text_goes_where_it_stands_apart(remark: str) -> None:
    """Below a blank line, a rule or a fence; not where it stands among the lines of the song, or before one."""
    worded = [line for line in remark.split("\n") if any(map(str.isalnum, line))]
    for above in (
        f"{PLAIN}\n\n",
        f"{PLAIN}\n---\n",
        "## 主歌\n```\n春眠不觉晓\n处处闻啼鸟\n```\n" + PLAIN[PLAIN.index("(chorus)") :] + "\n\n",
    ):
        found = normalise_lyrics(above + remark)
        assert found.text == PLAIN
        assert len(found.removed_lines) == len(worded)
    fenced = "(verse)\n```\n春眠不觉晓\n处处闻啼鸟\n```\n"
    assert normalise_lyrics(fenced + remark).text == "(verse)\n春眠不觉晓\n处处闻啼鸟"
    if "\n" not in remark:
        among = normalise_lyrics(f"{PLAIN}\n{remark}")
        assert (len(among.text.split("\n")), among.removed_lines) == (7, ())
    before = normalise_lyrics(f"{PLAIN}\n\n{remark}\n\n床前明月光")
    assert before.text.endswith("床前明月光")
    assert before.removed_lines == ()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("(verse)\n希望你喜欢我的歌词，好吗\n疑是地上霜", "(verse)\n希望你喜欢我的歌词 好吗\n疑是地上霜"),
        ("床前明月光\n如果你不满意，我就走\n疑是地上霜", "床前明月光\n如果你不满意 我就走\n疑是地上霜"),
        ("(verse)\n床前明月光\n\n感谢你来过", "(verse)\n床前明月光\n感谢你来过"),
        ("好的，我会等你\n床前明月光", "好的 我会等你\n床前明月光"),
        ("当然：我爱你\n床前明月光", "当然 我爱你\n床前明月光"),
    ],
)
def test_lines_that_sound_like_remarks_stay(text: str, left: str) -> None:
    assert normalise_lyrics(text).text == left


def test_removed_lines_are_told() -> None:
    text = f"<think>先想想</think>\n好的，以下是歌词：\n```text\n{PLAIN}\n```\n希望您喜欢！"
    assert normalise_lyrics(text).removed_lines == ("<think>先想想</think>", "好的，以下是歌词：", "希望您喜欢！")
    assert normalise_lyrics(f"《春晓》\n{PLAIN}\n\n希望您喜欢！").removed_lines == ("《春晓》", "希望您喜欢!")
    assert normalise_lyrics(PLAIN.replace("(", "【").replace(")", "】")).removed_lines == ()


@pytest.mark.parametrize("piece", ["可以修改", "希望", "(", "注:", "如", "歌词:", "- ", "—", "let me know if ", "a("])
def test_long_lines_are_read_in_a_moment(piece: str) -> None:
    start = time.process_time()
    normalise_lyrics(f"{PLAIN}\n\n{piece * (40_000 // len(piece))}x")
    assert time.process_time() - start < 60


@pytest.mark.slow
def test_a_line_of_many_headers() -> None:
    """No text makes the reading of it fail, or take long."""
    assert normalise_lyrics("(verse)春" * 2500).text == "\n".join(["(verse)\n春"] * 2500)
    assert normalise_lyrics("Verse:" * 300 + "春").text == "\n".join(["(verse)"] * 300 + ["春"])
    assert normalise_lyrics("(" * 20_000).text == ""


def test_foreign_words_stay_and_are_told() -> None:
    found = normalise_lyrics("(verse)\nBaby, don’t say it's 3点，re-start さくら")
    assert found.text == "(verse)\nBaby don’t say it's 3点 re-start さくら"
    assert found.foreign == ("Baby", "don’t", "say", "it's", "3", "re-start", "さくら")


def test_a_pause_at_the_end_of_a_released_line_stays() -> None:
    """Some lines of the released songs have one."""
    text = "(verse1)\n 春眠不觉晓 处处闻啼鸟 \n夜来风雨声"
    assert normalise_lyrics(text) == normalise.Normalised(text, ())


def test_opencc_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opencc", None)
    normalise._opencc.cache_clear()
    with pytest.raises(MissingBackendError, match=r"'opencc'.*\.\[lyrics\]"):
        normalise_lyrics(PLAIN)
    assert normalise_lyrics("[Verse]\nOh").text == "(verse)\nOh"


@pytest.mark.parametrize("item", [None, 7, b"(verse)", ["(verse)"]])
def test_other_types_are_refused(item: object) -> None:
    with pytest.raises(UnsupportedTypeError, match="expected the text of a song"):
        normalise_lyrics(item)  # type: ignore[arg-type]


_MARKS = "，。、！？：:.-—*_#`~|()（）[]【】<>《》×x12１①一二 \t\n\r\\n　'’\"aRc\u200b\ufeff\u2028"
_PIECES = st.sampled_from(
    [
        *"春眠不覺曉乾著後", *_MARKS, "é", "e\u0301", "ﬁ", "verse", "Verse 1", "主歌", "副歌", "pre-chorus", "hook",
        "桥", "```", "**", "---", "\n\n", "<think>", "</think>", "<br>", "好的，", "希望您喜欢", "感谢", "注：", "x2",
        "(verse1)", "1. ", "- ", "\n1、", " / ", "|", "男：", "（合）", "[zh]", "【A1】", "[soft piano]", "[End]",
        "B：", "all: ", "<|im_end|>", "<|im_start|>assistant", " ; ", "{",
    ]
)  # fmt: skip
_WRITTEN = st.lists(_PIECES, max_size=30).map("".join)


@given(st.one_of(_WRITTEN, st.text(max_size=60)))
def test_a_second_pass_changes_nothing(text: str) -> None:
    once = normalise_lyrics(text)
    again = normalise_lyrics(once.text)
    assert (again.text, again.changes) == (once.text, ())


@given(_WRITTEN)
def test_no_word_is_added(text: str) -> None:
    """Each Chinese character of the result stood in the text, in simplified form, and no section is added."""
    folded = normalise.simplify(normalise.fold_widths(normalise.drop_invisible(text)))
    found = [char for char in normalise_lyrics(text).text if "\u4e00" <= char <= "\u9fff"]
    rest = iter(folded)
    assert all(char in rest for char in found)


_RELEASED = st.lists(
    st.tuples(
        st.sampled_from([name for name in headers.SECTION_NAMES if name != "post-chorus"]),
        st.integers(1, 12),
        st.lists(st.text("春眠晓鸟花落知少 ", min_size=1, max_size=12).filter(
            lambda line: line.strip() and "  " not in line), min_size=1, max_size=5),
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@given(_RELEASED)
def test_the_released_form_stays(sections: list[tuple[str, int, list[str]]]) -> None:
    text = "\n".join(line for name, number, lines in sections for line in (f"({name}{number})", *lines))
    assert normalise_lyrics(text) == normalise.Normalised(text, ())


@pytest.mark.skipif(not MUCHIN.is_file(), reason="the released songs are not beside the repository")
@pytest.mark.parametrize("numbered", [True, False])
def test_the_released_songs_stay(numbered: bool) -> None:
    for line in MUCHIN.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        text = sections_text(sections_of_rows(row["structure"]), numbered=numbered)
        assert normalise_lyrics(text) == normalise.Normalised(text, ()), row["id"]
