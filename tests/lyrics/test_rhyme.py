from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from music_evals.errors import MissingBackendError, UnknownNameError, UnsupportedTypeError
from music_evals.lyrics import last_words, readings
from music_evals.lyrics.readings import rhyme_of_bopomofo
from music_evals.lyrics.rhyme import METHODS, RHYME_CLASSES, last_character, rhyme_class, rhyme_function, rhyme_marks

DEV = Path(__file__).resolve().parents[2] / "../shared/data/muchin/dev.jsonl"
ROOT = Path(__file__).resolve().parents[2]

# what the authors do, with the libraries themselves; in a process of its own, since it changes pypinyin
ORACLE = """
import json, logging, sys, warnings
warnings.simplefilter("ignore")
import jieba
from pypinyin import Style, pinyin
from pypinyin_dict.phrase_pinyin_data import large_pinyin
from pypinyin_dict.pinyin_data import cc_cedict
jieba.setLogLevel(logging.ERROR)
large_pinyin.load()
cc_cedict.load()
def last(text):
    found = pinyin(text, style=Style.BOPOMOFO, strict=False)
    return found[-1][0] if found and found[-1] else ""
def words(line):
    return list(jieba.cut(line))
lines = json.load(sys.stdin)
json.dump([[words(line)[-1], last(words(line)), last(line), last(line[-1])] for line in lines], sys.stdout)
"""

POEMS = re.findall(
    r"\S+",
    "床前明月光 疑是地上霜 举头望明月 低头思故乡 国破山河在 城春草木深 感时花溅泪 恨别鸟惊心 烽火连三月 家书抵万金 "
    "白头搔更短 浑欲不胜簪 风急天高猿啸哀 渚清沙白鸟飞回 无边落木萧萧下 不尽长江滚滚来 万里悲秋常作客 百年多病独登台 "
    "艰难苦恨繁霜鬓 潦倒新停浊酒杯 黄河之水天上来 奔流到海不复回 高堂明镜悲白发 朝如青丝暮成雪 人生得意须尽欢 "
    "莫使金樽空对月 前不见古人 后不见来者 念天地之悠悠 独怆然而涕下 白日依山尽 黄河入海流 欲穷千里目 更上一层楼 "
    "春眠不觉晓 处处闻啼鸟 夜来风雨声 花落知多少 夜深了还是睡不着 我们都要快乐 听那熟悉的音乐 一路同行 过了一行 "
    "坚硬的外壳 嘴角 主角 景色 上色 他穿上T恤 AA制",
)
# where `char` leaves pypinyin: particles and an interjection, and nothing else
LINE_ENDS = {"呢": 3, "呗": 8, "咯": 2, "哦": 2}
SPECIAL = "呢哦呗咯cR x9.-%,，〇㐀\u9fd5\u9fd6\u9fff着了行乐角壳色没的地得长还觉T恤A座K歌𠀀"


def random_lines(n: int, seed: int = 0) -> list[str]:
    """Return lines of poems' and rare characters, of all lengths, with Latin among them."""
    rng = random.Random(seed)
    usual = "".join(POEMS)
    lines = []
    for _ in range(n):
        kinds = rng.choices(["usual", "special", "any", "line"], [70, 15, 10, 5], k=rng.randint(1, 12))
        parts = {"line": lambda: rng.choice(POEMS), "usual": lambda: rng.choice(usual),
                 "special": lambda: rng.choice(SPECIAL), "any": lambda: chr(rng.randint(0x4E00, 0x9FFF))}  # fmt: skip
        lines.append("".join(parts[kind]() for kind in kinds))
    return [line[: at + 1] for line in lines if (at := last_character(line)) >= 0]


def ask_oracle(lines: list[str]) -> list[list[str]]:
    command = [sys.executable, "-c", ORACLE]
    done = subprocess.run(command, input=json.dumps(lines), capture_output=True, text=True, check=True)
    answers: list[list[str]] = json.loads(done.stdout)
    return answers


def compare_with_oracle(lines: list[str]) -> None:
    words = last_words.load_last_words()
    official, whole, char = (rhyme_function(method) for method in ("official", "line", "char"))
    for line, (word, *syllables) in zip(lines, ask_oracle(lines), strict=True):
        assert words.of_text(line) == word, line
        expected = [rhyme_of_bopomofo(syllable) for syllable in syllables]
        expected[2] = LINE_ENDS.get(line[-1], expected[2])
        assert [official(line), whole(line), char(line)] == expected, line


@pytest.mark.slow
def test_words_and_readings_are_those_of_jieba_and_pypinyin() -> None:
    compare_with_oracle(POEMS + random_lines(300))  # 15,000 with `slow`


@pytest.mark.slow
@pytest.mark.skipif(not DEV.exists(), reason=f"needs the songs of MuChin, {DEV}")
def test_words_and_readings_of_real_songs() -> None:
    songs = map(json.loads, DEV.read_text(encoding="utf-8").splitlines())
    lines = {line for song in songs for section in song["structure"] for line in section["lines"]}
    whole = [line[: last_character(line) + 1] for line in sorted(lines)]
    assert len(whole) > 10_000
    compare_with_oracle(whole + random_lines(15_000, seed=1))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A jieba of our own: the test must not change the one that everybody uses."""
    import logging

    last_words.load_last_words()  # silences what jieba's import warns of
    import jieba

    jieba.setLogLevel(logging.ERROR)
    own = jieba.Tokenizer()
    own.tmp_dir = str(tmp_path_factory.mktemp("jieba"))
    own.initialize()
    return own


characters = st.sampled_from("".join(POEMS) + SPECIAL) | st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)


@pytest.mark.slow
@given(st.text(characters, max_size=14), st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF))
@example("穿上T", "恤")
@example("", "\u9fff")
def test_the_last_word_is_the_one_that_jieba_cuts(tokenizer: Any, start: str, end: str) -> None:
    assert last_words.load_last_words().of_text(start + end) == tokenizer.lcut(start + end)[-1]


@pytest.mark.slow
def test_nobody_elses_jieba_and_pypinyin_are_changed() -> None:
    code = (
        "from music_evals.lyrics.rhyme import rhyme_class\n"
        "import pypinyin.constants as constants, pypinyin.phrases_dict as phrases, pypinyin.pinyin_dict as single\n"
        "for method in ('official', 'line', 'char'):\n    rhyme_class('床前明月光', method)\n"
        "import jieba\n"
        "assert constants.PHRASES_DICT == phrases.phrases_dict and constants.PINYIN_DICT == single.pinyin_dict\n"
        "assert not jieba.dt.initialized\n"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stderr == run.stdout == ""


# one character with a single reading for each final of each class (zhonghua xinyun)
FINALS = {
    1: "妈家花", 2: "佛多", 3: "哥", 4: "姐雪", 5: "枝吃诗日资词丝", 6: "儿", 7: "机", 8: "飞归", 9: "开快", 10: "姑",
    11: "鱼", 12: "侯秋", 13: "高桥", 14: "山天欢元", 15: "人心春云", 16: "方江窗", 17: "风星翁", 18: "红穷",
}  # fmt: skip


def test_the_eighteen_classes() -> None:
    assert list(RHYME_CLASSES) == list(range(1, 19))
    for number, members in FINALS.items():
        assert RHYME_CLASSES[number].number == number
        assert {rhyme_class(each, "char") for each in members} == {number}, members
        assert rhyme_class(RHYME_CLASSES[number].name, "char") == number


@pytest.mark.parametrize(
    ("syllable", "expected"),
    [("ㄨㄥ", 17), ("ㄈㄥ", 17), ("ㄊㄧㄥ", 17), ("ㄏㄨㄥˊ", 18), ("ㄑㄩㄥˊ", 18), ("ㄨㄛˇ", 2),
     ("ㄩㄝˋ", 4), ("ㄇ˙", "ㄇ"), ("˙", None), ("", None)],
)  # fmt: skip
def test_the_end_of_a_syllable_decides(syllable: str, expected: object) -> None:
    assert rhyme_of_bopomofo(syllable) == expected


@pytest.mark.parametrize("method", METHODS)
def test_what_follows_the_last_chinese_character_does_not_count(method: str) -> None:
    assert rhyme_class("床前明月光", method) == 16
    assert rhyme_class("床前明月光 oh yeah！\n", method) == 16
    assert rhyme_class("oh yeah", method) is None
    assert rhyme_class("", method) is None
    # outside of U+4E00 to U+9FFF, as the authors draw the line; only our own methods read the zero
    assert rhyme_class("㐀", method) is None
    assert rhyme_class("㐀〇", method) == {"char": 17, "words": 17}.get(method)


@pytest.mark.parametrize("method", METHODS)
def test_an_unknown_reading_is_a_class_of_its_own(method: str) -> None:
    assert rhyme_class("我爱\u9fa6", method) == "\u9fa6"
    assert rhyme_marks(["我爱\u9fa6", "你爱\u9fa6", "他爱\u9fa7"], method) == [True, True, False]


def test_a_word_tells_how_a_character_is_read() -> None:
    # le4 and yue4; hang2 and xing2
    assert [rhyme_class(line) for line in ("我们都要快乐", "听那熟悉的音乐")] == [3, 4]
    assert [rhyme_class(line) for line in ("我去银行", "我去旅行")] == [16, 17]
    # a single character has its usual reading
    assert rhyme_class("听那熟悉的音乐", "char") == rhyme_class("乐", "char") == 3


@pytest.mark.parametrize("method", METHODS)
def test_lines_rhyme_within_their_section(method: str) -> None:
    assert rhyme_marks(["床前明月光", "疑是地上霜", "举头望明月", "低头思故乡"], method) == [True, True, False, True]
    # all lines of every class with two members or more
    assert rhyme_marks(["白日依山尽", "黄河入海流", "春眠不觉晓", "更上一层楼", "花落知多少"], method) == [
        False, True, True, True, True,
    ]  # fmt: skip
    assert rhyme_marks(["la la", "la la", ""], method) == [False, False, False]
    assert rhyme_marks([], method) == []


def test_a_function_of_your_own() -> None:
    def ending(line: str) -> str | None:
        return line[-2:] if line else None

    assert rhyme_class("the light of day", ending) == "ay"
    assert rhyme_marks(["the light of day", "so far away", "", "", "the night"], ending) == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert rhyme_function(ending) is ending


def test_names_that_do_not_exist() -> None:
    with pytest.raises(UnknownNameError):
        rhyme_class("床前明月光", "offical")
    with pytest.raises(UnsupportedTypeError, match="one of official, line, char, words or a function"):
        rhyme_function(3)  # type: ignore[arg-type]


@pytest.fixture
def unloaded() -> Iterator[None]:
    """Let tables be loaded again, within the test only."""
    kept = readings.load_readings, last_words.load_last_words
    for each in kept:
        each.cache_clear()
    yield
    for each in kept:
        each.cache_clear()


@pytest.mark.parametrize(
    ("module", "package"),
    [("pypinyin.constants", "pypinyin"), ("pypinyin_dict.pinyin_data", "pypinyin_dict"), ("jieba.finalseg", "jieba")],
)
def test_a_missing_package_says_how_to_install_it(
    module: str, package: str, monkeypatch: pytest.MonkeyPatch, unloaded: None
) -> None:
    load = last_words.load_last_words if package == "jieba" else readings.load_readings
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingBackendError, match=rf"{package}'; install it with: pip install .*\.\[lyrics\]"):
        load()


def test_weights_of_a_small_dictionary() -> None:
    import math

    weights, unknown = last_words.read_weights(["天 4 n", "天空中 2 n", "空 2 n"])
    assert weights == {
        "天": math.log(4) - math.log(8), "天空中": math.log(2) - math.log(8), "空": math.log(2) - math.log(8),
        "天空": 0.0,
    }  # fmt: skip
    assert unknown == -math.log(8)
