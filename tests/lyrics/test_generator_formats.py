"""Right lyrics in each format that a generator takes or gives score as the plain text does, 100 of 100."""

# ruff: noqa: RUF001  (full-width marks are what is tested)

from __future__ import annotations

import contextlib
import json
import time

import pytest

from music_evals.errors import InvalidLyricsError
from music_evals.lyrics.normalise import FORMAT_FOUND, normalise_lyrics
from music_evals.lyrics.song_formats import find_format, read_as
from music_evals.pipelines.lyrics import lyric_structure

PATTERN = "(verse)\nccccR\nccccR\ncccc\n(chorus)\nccccR\nccccR"
PLAIN = "(verse)\n春眠不觉晓\n处处闻啼鸟\n夜来风雨\n(chorus)\n床前明月光\n疑是地上霜"
V, C = ["春眠不觉晓", "处处闻啼鸟", "夜来风雨"], ["床前明月光", "疑是地上霜"]
TAGGED = PLAIN.replace("(", "[").replace(")", "]")
SEMICOLONS = f"[verse] {'.'.join(V)} ; [chorus] {'.'.join(C)}"


def lines(first: str = "[verse]", second: str = "[chorus]", *, before: str = "", after: str = "") -> str:
    """Return the song under two headers, with something before and after each of its lines."""
    song = [first, *(before + line + after for line in V), second, *(before + line + after for line in C)]
    return "\n".join(song)


def jsonl(**more: str) -> str:
    return json.dumps({"idx": "0", "gt_lyric": SEMICOLONS, **more}, ensure_ascii=False)


SONG_GENERATION = {
    "own jsonl": jsonl(auto_prompt_audio_type="Auto"),
    "own jsonl with descriptions": jsonl(descriptions="female, dark, pop, the bpm is 125.") + "\n",
    "own jsonl, escaped": json.dumps({"descriptions": "male", "gt_lyric": SEMICOLONS, "idx": "1"}),
    "own jsonl in a fence": f"好的：\n```jsonl\n{jsonl()}\n```\n希望你喜欢",
    "own jsonl with lines": json.dumps({"idx": "a", "gt_lyric": TAGGED}, ensure_ascii=False),
    "own jsonl, Windows": jsonl() + "\r\n",
    "silence first": f"[silence] ; {SEMICOLONS}",
    "silence last": f"{SEMICOLONS} ; [silence]",
    "silence, no spaces": f"{SEMICOLONS.replace(' ; ', ';')};[silence];",
    "full-width": f"【silence】；{SEMICOLONS.replace('[', '【').replace(']', '】').replace(' ; ', '；')}",
    "capitals": f"[SILENCE] ; {SEMICOLONS.replace('verse', 'Verse').replace('chorus', 'CHORUS')}",
    "a remark before": f"以下是歌词：\n\n[silence] ; {SEMICOLONS}\n\n希望您喜欢！",
    "a language": f"[zh] ; {SEMICOLONS}",
    "Chinese stops": SEMICOLONS.replace(".", "。") + "。",
    "Chinese names": SEMICOLONS.replace("verse", "主歌").replace("chorus", "副歌"),
    "in quotes": f'"[silence] ; {SEMICOLONS}"',
    "lines with silence": f"[silence]\n\n{TAGGED}\n\n[silence]",
}

OTHERS = {
    # the letters of a form
    "【A1】": lines("【A1】", "【B】"),
    "[A] and [B]": lines("[A]", "[B]"),
    "A1：": lines("A1：", "B1："),
    "full-width letters": lines("（Ａ）", "（Ｂ）"),
    "A段": lines("A段", "B段："),
    "letters in headings": lines("## A1", "## B"),
    "letters beside a name": lines("【主歌A】", "【副歌B】"),
    "letters in capitals and small": lines("[a1]", "【 B1 】"),
    # how it is played
    "[soft piano]": lines("[verse]\n[soft piano]", "[chorus]\n[full band, drums]"),
    "stage tags before the song": f"[soft piano]\n{lines()}",
    "stage tags in capitals": lines("[Verse]\n[SOFT PIANO]", "[Chorus]\n[Big Finish!]"),
    "stage tags, lenticular": lines("【主歌】\n【轻柔的钢琴】", "【副歌】\n【鼓点渐强】"),
    "stage tags, bold": lines("**[Verse]**\n**[soft piano]**", "**[Chorus]**"),
    "stage tags, full-width": lines("［verse］\n［soft piano］", "［chorus］"),
    "stage tags beside each other": lines("[verse]\n[soft piano] [whispered]"),
    "stage tags before a line": lines(before="[whispered] "),
    "stage tags between lines": lines().replace("处处", "[strings swell]\n处处"),
    "stage tags, Windows": lines("[verse]\n[soft piano]").replace("\n", "\r\n"),
    # which language
    "[zh]": f"[zh]\n{lines()}",
    "[zh] on each line": lines(before="[zh]"),
    "[ZH] on each line": lines(before="[ZH] "),
    "[zh] behind headers": lines("[verse][zh]", "[chorus] [zh]"),
    "(zh)": lines(before="(zh) "),
    # where it ends
    "[stop]": f"{lines()}\n[stop]",
    "[stop] on each line": lines(after="[stop]"),
    "[start] and [end]": f"[start]\n{lines()}\n[end]",
    "[End]": f"{lines()}\n\n[End]",
    "[End] behind the last line": f"{lines()} [End]",
    "【END】": f"{lines()}\n【END】\n",
    "[The End]": f"{lines()}\n[The End]",
    "[ end ]": f"{lines()}\n[ end ]",
    "[结束]": f"{lines()}\n[结束]",
    "[stop] in LRC": "\n".join(
        f"[00:{at:02d}.00]{line}" for at, line in enumerate(lines("[verse]", "[chorus]").split("\n"))
    ) + "\n[00:30.00][stop]",
    # who sings
    "男：": lines(before="男："),
    "男： and 合：": lines().replace("春眠", "男：春眠").replace("处处", "女: 处处").replace("床前", "合：床前"),
    "（男）": lines().replace("春眠", "（男）春眠").replace("床前", "【合】床前"),
    "(合) behind lines": lines(after="（合）"),
    "男： alone": lines("[verse]\n男：", "[chorus]\n合："),
    "【女】 alone": lines("[verse]\n【女】", "[chorus]\n（合唱）"),
    "男/女：": lines(before="男/女："),
    "男女合：": lines(before="男女合："),
    "女声独唱：": lines(before="女声独唱："),
    "Male:": lines(before="Male: ").replace("Male: 床", "BOTH：床"),
    "[Female vocal]": lines(before="[Female vocal] "),
    "A： and B：": lines().replace("春眠", "A：春眠").replace("处处", "B：处处"),
    "bold singers": lines(before="**男：**"),
    "眾：": lines(before="眾："),
    # tokens of chat templates
    "<|im_end|>": f"{lines()}<|im_end|>",
    "<|im_end|> on its own line": f"{lines()}\n<|im_end|>\n<|endoftext|>",
    "<|eot_id|>": f"{lines()}<|eot_id|>",
    "</s>": f"<s>{lines()}</s>",
    "struck out": lines(before="<s>", after="</s>"),
    "<end_of_turn>": f"{lines()}<end_of_turn>\n<eos>",
    "DeepSeek's": f"{lines()}<｜end▁of▁sentence｜>",
    "GLM's": f"{lines()}<|user|>",
    "the whole template": f"<|im_start|>user\n写一首歌<|im_end|>\n<|im_start|>assistant\n{lines()}<|im_end|>",
    "Llama's template": "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n写歌<|eot_id|>"
    f"<|start_header_id|>assistant<|end_header_id|>\n\n{lines()}<|eot_id|>",
    "the harmony format": "<|channel|>analysis<|message|>先想<|end|><|start|>assistant<|channel|>final<|message|>"
    f"{lines()}<|return|>",
    "Gemma's template": f"<start_of_turn>user\n写歌<end_of_turn>\n<start_of_turn>model\n{lines()}<end_of_turn>",
    "another turn": f"{lines()}<|im_end|>\n<|im_start|>user\n再写一首<|im_end|>",
    "thinking, JSON and a token": f"<think>[verse] {{...}}</think>{jsonl()}<|im_end|>",
    # lines on one line
    "春 / 处": f"[verse]\n{' / '.join(V)}\n[chorus]\n{' / '.join(C)}",
    "behind the header": f"[verse] {' / '.join(V)}\n[chorus] {' / '.join(C)}",
    "after a colon": f"主歌：{' / '.join(V)}\n副歌：{' / '.join(C)}",
    "full-width slashes": f"[verse]\n{'／'.join(V)}\n[chorus]\n{'／'.join(C)}",
    "tight slashes": f"(verse)\n{'/'.join(V)}\n(chorus)\n{'/'.join(C)}",
    "bars": f"(verse)\n{' | '.join(V)}\n(chorus)\n{' | '.join(C)}",
    "double slashes": f"(verse)\n{' // '.join(V)}\n(chorus)\n{' // '.join(C)}",
    "slashes and stops": f"[verse]\n{'。 / '.join(V)}。\n[chorus]\n{'， / '.join(C)}",
    "the song on one line": f"[verse] {' / '.join(V)} / [chorus] {' / '.join(C)}",
    "slashes at the ends": "[verse]\n春眠不觉晓 /\n处处闻啼鸟 /\n夜来风雨\n[chorus]\n床前明月光 /\n疑是地上霜",
    "one couplet": lines().replace("春眠不觉晓\n", "春眠不觉晓 / "),
    "slashes and singers": f"[verse]\n男：{V[0]} / 女：{V[1]} / 合：{V[2]}\n[chorus]\n{' / '.join(C)}",
    "slashes in JSON": json.dumps({"verse": " / ".join(V), "chorus": " / ".join(C)}),
    # several at once
    "all": f"<think>想</think>[zh]\n【A1】\n[soft piano]\n男：{' / '.join(V)}\n【B】\n合：{' / '.join(C)}\n[End]\n"
    "<|im_end|>",
}  # fmt: skip


@pytest.mark.parametrize("kind", [*SONG_GENERATION, *OTHERS])
def test_a_right_lyric_scores_as_the_plain_text(kind: str) -> None:
    text = {**SONG_GENERATION, **OTHERS}[kind]
    read = normalise_lyrics(text)
    score = lyric_structure(PATTERN, text, variant="corrected", rhyme="char", normalise=True)
    assert [line for line in read.text.split("\n") if line[0] != "("] == [*V, *C]
    assert score.total == pytest.approx(100)
    assert read.foreign == ()
    again = normalise_lyrics(read.text)
    assert (again.text, again.changes) == (read.text, ())


@pytest.mark.parametrize("kind", SONG_GENERATION)
def test_songgeneration_is_named(kind: str) -> None:
    assert f"{FORMAT_FOUND}songgeneration" in normalise_lyrics(SONG_GENERATION[kind]).changes


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[intro-short]\n\n[verse]\n春眠不觉晓\n\n[outro-short]", "songgeneration"),
        ("[verse]\n春眠不觉晓\n\n[inst-medium]", "songgeneration"),
        ("[verse]\n春眠不觉晓\n\n[chorus]\n处处闻啼鸟", "yue"),
        ('{"lyrics": "(verse)\\n春眠不觉晓"}', "json"),
    ],
)
def test_lines_of_other_generators_are_not(text: str, name: str) -> None:
    assert find_format(text) == name


def test_stage_tags_are_counted() -> None:
    read = normalise_lyrics(OTHERS["[soft piano]"])
    assert read.stage_tags == ("[soft piano]", "[full band, drums]")
    assert read.removed_lines == ()
    assert any(note.startswith("stage tags: ") and "[soft piano]" in note for note in read.changes)
    assert normalise_lyrics(TAGGED).stage_tags == ()
    assert normalise_lyrics(lines(before="[zh]")).stage_tags == ()
    notes = lyric_structure(PATTERN, OTHERS["[soft piano]"], rhyme="char", normalise=True).notes
    assert any("stage tags" in note for note in notes)


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("爱 / 恨", "爱 恨"),
        ("你/我 都一样", "你 我 都一样"),
        ("爱/恨/情", "爱 恨 情"),
        ("黑夜/白天", "黑夜 白天"),
        ("24/7 都想你", "24 7 都想你"),
        ("AC/DC", "AC DC"),
        ("（来/去）", "来 去"),
        ("他说：别走", "他说 别走"),
        ("女人：我爱你", "女人 我爱你"),
        ("男人和女人", "男人和女人"),
        ("全世界：只有你", "全世界 只有你"),
        ("合上眼睛", "合上眼睛"),
        ("（啊啊）春眠", "啊啊 春眠"),
        ("（男人）", "男人"),
        ("众里寻他", "众里寻他"),
        ("A", "A"),
        ("A 我爱你", "A 我爱你"),
        ("stop 不要走", "stop 不要走"),
        ("The end", "The end"),
        ("a < b", "a b"),
        ("《春晓》", "春晓"),
        ("「春眠」", "春眠"),
        ("结束了", "结束了"),
        ("春眠;不觉晓", "春眠 不觉晓"),
        ("[啊]春眠", "啊 春眠"),
        ("3:15 的火车", "3 15 的火车"),
        ("|", ""),
    ],
)
def test_true_lines_with_such_marks_stay(line: str, left: str) -> None:
    read = normalise_lyrics(f"(verse)\n春眠不觉晓\n{line}\n处处闻啼鸟\n夜来风雨声")
    assert read.text == "\n".join(filter(None, ["(verse)", "春眠不觉晓", left, "处处闻啼鸟", "夜来风雨声"]))
    assert read.stage_tags == ()


def test_lyrics_in_square_brackets_are_not_all_stage_tags() -> None:
    read = normalise_lyrics("[verse]\n[春眠不觉晓]\n[处处闻啼鸟]")
    assert (read.text, read.stage_tags) == ("(verse)\n春眠不觉晓\n处处闻啼鸟", ())


def test_one_section_has_no_semicolon() -> None:
    assert normalise_lyrics(f"[verse] {'.'.join(V)}").text == "\n".join(["(verse)", *V])
    assert normalise_lyrics("[verse] 春眠不觉晓", song_format="songgeneration").text == "(verse)\n春眠不觉晓"
    assert find_format("[verse] 春眠不觉晓\n处处闻啼鸟") == "plain"


def test_any_name_of_a_tagged_format_reads_another() -> None:
    for name in ("yue", "suno", "ace-step", "songgeneration"):
        for text in (SEMICOLONS, TAGGED):
            assert normalise_lyrics(text, song_format=name).text == PLAIN


HOSTILE = ["\n", "\\", " ", "Verse:", " x1", "<think>", "```\n", "["]


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_the_length(piece: str) -> None:
    """A quadratic step takes half a minute at this length."""
    text = piece * (40_000 // len(piece)) + "x"
    start = time.process_time()
    find_format(text)
    normalise_lyrics(text)
    with contextlib.suppress(InvalidLyricsError):
        read_as(text, "lrc")
    assert time.process_time() - start < 15
