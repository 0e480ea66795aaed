"""Characters of lines, the draft that spreads them over the time of their lines, and LRC files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import F0Track
from music_evals.errors import InvalidAnnotationError, InvalidLyricsError
from music_evals.lyrics.patterns import chinese_share
from music_evals.preparation.lyrics import Character, characters_of_line, read_timed_lines, spread_lines
from music_evals.preparation.task import Settings, run_preparation


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("天地,玄黄!", ["天", "地", "玄", "黄"]),
        ("I don't know 了", ["I", "don't", "know", "了"]),
        ("'bout 3点", ["bout", "3", "点"]),
        ("cafe\u0301 啊", ["cafe\u0301", "啊"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("... —", []),
        ("", []),
    ],
)
def test_a_line_is_cut_into_characters_and_words(line: str, expected: list[str]) -> None:
    assert characters_of_line(line) == expected


def test_shares_without_a_voice_are_those_of_syllables() -> None:
    # 4 s for 天 (1), water (2: a, e) and 地 (1); the second line would have 8 s for one syllable: it is cut after 2 s
    found = spread_lines([(1.0, "天 water 地"), (5.0, "玄"), (13.0, "...")], 20.0)
    assert found == [
        Character("天", 1.0, 2.0, 0),
        Character("water", 2.0, 4.0, 0),
        Character("地", 4.0, 5.0, 0),
        Character("玄", 5.0, 7.0, 1),
    ]


def test_a_character_gets_a_share_of_the_time_in_which_the_voice_sounds() -> None:
    # the voice sounds from 1 to 2 s and from 4 to 5 s: each of four characters gets half a second of it
    times = np.arange(0, 6, 0.01)
    sounds = ((times >= 1) & (times < 2)) | ((times >= 4) & (times < 5))
    found = spread_lines([(0.0, "天地玄黄")], 6.0, F0Track(times, np.where(sounds, 220.0, -220.0)))
    starts, ends = [one.start_sec for one in found], [one.end_sec for one in found]
    np.testing.assert_allclose(starts[:2] + starts[3:], [1.0, 1.5, 4.5], atol=0.02)
    np.testing.assert_allclose(ends[:1] + ends[2:], [1.5, 4.5, 5.0], atol=0.02)
    assert 2.0 - 0.02 <= ends[1] == starts[2] <= 4.02  # somewhere in the rest


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 3), st.booleans())
def test_a_draft_keeps_to_its_lines(sizes: list[int], seed: int, heard: bool) -> None:
    rng = np.random.default_rng(seed)
    stamps = np.cumsum(rng.uniform(0.2, 5.0, len(sizes) + 1))
    times = np.arange(0, stamps[-1], 0.02)
    f0 = F0Track(times, np.where(rng.random(len(times)) < 0.5, 200.0, 0.0)) if heard else None
    lines = [(float(start), "天" * size) for start, size in zip(stamps[:-1], sizes, strict=True)]
    found = spread_lines(lines, float(stamps[-1]), f0)
    assert [sum(one.line == i for one in found) for i in range(len(sizes))] == sizes
    for one, two in zip(found, [*found[1:], None], strict=True):
        assert stamps[one.line] <= one.start_sec < one.end_sec <= stamps[one.line + 1] + 1e-9
        assert two is None or one.end_sec <= two.start_sec + 1e-9


def test_what_cannot_be_spread_is_refused() -> None:
    with pytest.raises(InvalidLyricsError):
        spread_lines([(0.0, "...")], 5.0)
    with pytest.raises(InvalidAnnotationError, match=r"'天' begins at 1.00 s and 'sky' at 1.00 s.*no translation"):
        spread_lines([(1.0, "天"), (1.0, "sky")], 5.0)
    with pytest.raises(InvalidAnnotationError, match=r"increase.*song at 1.00 s"):
        spread_lines([(1.0, "天")], 1.0)
    with pytest.raises(InvalidAnnotationError, match="start before end"):
        Character("天", 1.0, 1.0)
    with pytest.raises(InvalidAnnotationError, match="a text"):
        Character("", 1.0, 2.0)


@pytest.fixture
def write(tmp_path: Path):
    def written(text: str) -> str:
        path = tmp_path / "song.lrc"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return written


def test_stamps_are_minutes_seconds_and_parts_of_them(write) -> None:
    found = read_timed_lines(write("[ti:名]\n[00:10.5][01:00:25]副歌\n[00:03]主歌\n[00:04.125]\n没有\n"))
    assert found == [(3.0, "主歌"), (4.125, ""), (10.5, "副歌"), (60.25, "副歌")]


def test_a_stamp_without_words_is_kept_where_it_ends_a_line(write) -> None:
    lines = "[00:00]\n[00:10]天地\n[00:14]\n[00:15]\n[01:10]玄黄\n[01:20]\n[01:20]宇宙\n[01:30]\n"
    worded = [(10.0, "天地"), (14.0, ""), (70.0, "玄黄"), (80.0, "宇宙")]
    assert read_timed_lines(write(lines)) == [*worded, (90.0, "")]
    assert read_timed_lines(write(lines), 85.0) == worded  # the last lies behind the end of the recording
    with pytest.raises(InvalidLyricsError):
        read_timed_lines(write("[00:01]\n[00:02]\n"))


@pytest.mark.parametrize(
    ("tag", "starts"),
    [
        ("[offset:0]", [0.5, 2.0]),
        ("[offset:+500]", [0.0, 1.5]),  # positive: lines come sooner
        ("[offset: -250 ]", [0.75, 2.25]),
        ("[OFFSET:600]", [0.0, 1.4]),  # not before the beginning
    ],
)
def test_an_offset_moves_all_lines(write, tag: str, starts: list[float]) -> None:
    found = read_timed_lines(write(f"[ar:某]\n{tag}\n[00:00.50]一\n[00:02.00]二\n"))
    assert [line.start_sec for line in found] == pytest.approx(starts)
    assert [line.text for line in found] == ["一", "二"]


@pytest.mark.parametrize("tag", ["[offset:soon]", "[offset:]", "[offset:1.5]", "[offset:1]\n[offset:2]"])
def test_an_offset_that_says_nothing_clear_is_refused(write, tag: str) -> None:
    with pytest.raises(InvalidLyricsError, match="milliseconds"):
        read_timed_lines(write(f"{tag}\n[00:00.50]一\n"))


def test_lines_after_the_end_of_the_recording_are_refused(write) -> None:
    path = write("[00:00.50]一\n[00:02.00]二\n[00:02.01]三\n")
    assert len(read_timed_lines(path)) == 3
    assert len(read_timed_lines(path, 2.01)) == 3
    with pytest.raises(InvalidLyricsError, match=r"1 of 3 lines begin after .* 2\.00 s, such as '三' at 2\.01 s"):
        read_timed_lines(path, 2.0)
    # moved into the recording by the offset
    assert len(read_timed_lines(write("[offset:10]\n[00:02.01]三\n"), 2.0)) == 1


def test_the_step_reads_the_recording_where_there_is_one(tmp_path: Path) -> None:
    folder = tmp_path / "songs"
    folder.mkdir()
    for name in ("with", "without"):
        (folder / f"{name}.lrc").write_text("[00:03.00]三\n", encoding="utf-8")
    soundfile.write(folder / "with.wav", np.zeros(2 * 8000), 8000)
    done = run_preparation(Settings(tmp_path / "out", songs=folder, steps=["alignment"]))
    assert [name for name, _ in done.failures] == ["with alignment"]
    assert [len(row["lines"]) for row in done.rows] == [0, 1]


def test_the_share_of_chinese_letters() -> None:
    assert chinese_share("(verse)\n春眠 ab") == 0.5
    assert chinese_share("12 !") == 0
