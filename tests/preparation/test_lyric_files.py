"""LRC files: stamps by hand, moved by an offset, and held against the length of the recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from music_evals.errors import InvalidLyricsError
from music_evals.lyrics.patterns import chinese_share
from music_evals.preparation.lyric_files import read_timed_lines
from music_evals.preparation.task import Settings, run_preparation


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
    with pytest.raises(InvalidLyricsError, match="no line with a time stamp"):
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
