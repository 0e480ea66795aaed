"""Forced alignment by a program: its TextGrid, a stand-in that writes files as it does, and every way to fail."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from music_evals.audio.io import Audio, load_audio
from music_evals.errors import BackendError, InvalidLyricsError, MissingBackendError, UnreadableFileError
from music_evals.preparation import phonemes
from music_evals.preparation.lyrics import Character
from music_evals.preparation.phonemes import Interval, Phone, align_phonemes, read_textgrid

LINES = ("天地,玄!", "黄 Oh")

# the two tiers in the long form, with the spaces at line ends that the aligner writes
LONG = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0 
xmax = 4.0 
tiers? <exists> 
size = 2 
item []: 
    item [1]:
        class = "IntervalTier" 
        name = "words" 
        xmin = 0 
        xmax = 4.0 
        intervals: size = 7 
        intervals [1]:
            xmin = 0.0 
            xmax = 0.5 
            text = "" 
        intervals [2]:
            xmin = 0.5 
            xmax = 1.0 
            text = "天" 
        intervals [3]:
            xmin = 1.0 
            xmax = 1.25 
            text = "地" 
        intervals [4]:
            xmin = 1.25 
            xmax = 2.0 
            text = "<unk>" 
        intervals [5]:
            xmin = 2.0 
            xmax = 2.5 
            text = "" 
        intervals [6]:
            xmin = 2.5 
            xmax = 3.0 
            text = "黄" 
        intervals [7]:
            xmin = 3.0 
            xmax = 4.0 
            text = "oh" 
    item [2]:
        class = "IntervalTier" 
        name = "phones" 
        xmin = 0 
        xmax = 4.0 
        intervals: size = 7 
        intervals [1]:
            xmin = 0.0 
            xmax = 0.5 
            text = "" 
        intervals [2]:
            xmin = 0.5 
            xmax = 0.6 
            text = "tʰ" 
        intervals [3]:
            xmin = 0.6 
            xmax = 1.0 
            text = "j̠e˥n" 
        intervals [4]:
            xmin = 1.0 
            xmax = 1.25 
            text = "ti˥˩" 
        intervals [5]:
            xmin = 1.25 
            xmax = 2.0 
            text = "spn" 
        intervals [6]:
            xmin = 2.5 
            xmax = 3.0 
            text = "xwaŋ" 
        intervals [7]:
            xmin = 3.0 
            xmax = 4.0 
            text = "ow" 
"""  # noqa: W291
SHORT = """File type = "ooTextFile"
Object class = "TextGrid"

0
4.0
<exists>
1
"IntervalTier"
"voice - words"
0
4.0
2
0
1e-1
"say ""3"" [4] <x>"
0.1
4.0
""
"""

STAND_IN = """#!{python}
import pathlib, sys, time
arguments = sys.argv[1:]
assert arguments[0] == "align" and "--no_tokenization" in arguments, arguments
corpus, dictionary, model, out = arguments[-4:]
assert (dictionary, model) == ("mandarin_china_mfa", "mandarin_mfa"), arguments
assert pathlib.Path(corpus, "song.wav").is_file()
texts = [path for path in pathlib.Path(corpus).iterdir() if path.suffix != ".wav"]
(pathlib.Path({record!r})).write_text(texts[0].name + "\\n" + texts[0].read_text(encoding="utf-8"), encoding="utf-8")
{action}
pathlib.Path(out).mkdir()
pathlib.Path(out, "song.TextGrid").write_text(pathlib.Path({source!r}).read_text(encoding="utf-8"), encoding="utf-8")
"""


@pytest.fixture
def audio() -> Audio:
    return load_audio(np.sin(np.arange(4 * 22050) / 20).astype(np.float32), rate=22050)


def _install(folder: Path, monkeypatch: pytest.MonkeyPatch, content: str = LONG, action: str = "") -> Path:
    """Put a program ``mfa`` first on the path that writes `content`; return where it records its input."""
    record, source, program = folder / "record.txt", folder / "source.TextGrid", folder / "bin" / "mfa"
    source.write_text(content, encoding="utf-8")
    program.parent.mkdir()
    script = STAND_IN.format(python=sys.executable, record=str(record), source=str(source), action=action)
    program.write_text(script, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return record


def test_the_words_of_the_program_become_characters_with_phones(
    audio: Audio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = _install(tmp_path, monkeypatch)
    found = align_phonemes(audio, LINES, starts_sec=(0.25, 2.25))
    assert found.characters == (
        Character("天", 0.5, 1.0, 0),
        Character("地", 1.0, 1.25, 0),
        Character("玄", 1.25, 2.0, 0),  # the dictionary of the program does not hold it
        Character("黄", 2.5, 3.0, 1),
        Character("Oh", 3.0, 4.0, 1),
    )
    assert found.phones[:2] == (Phone("tʰ", 0.5, 0.6, 0), Phone("j̠e˥n", 0.6, 1.0, 0))
    assert [phone.character for phone in found.phones] == [0, 0, 1, 2, 3, 4]
    # what the program got: a TextGrid of lines, characters parted by spaces, which our own reader reads
    name, _, content = record.read_text(encoding="utf-8").partition("\n")
    assert name == "song.TextGrid"
    given = tmp_path / "given.TextGrid"
    given.write_text(content, encoding="utf-8")
    assert read_textgrid(given) == {
        "voice": [Interval(0.0, 0.25, ""), Interval(0.25, 2.25, "天 地 玄"), Interval(2.25, 4.0, "黄 Oh")]
    }


def test_without_times_of_lines_the_song_is_one_piece(
    audio: Audio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = _install(tmp_path, monkeypatch)
    assert len(align_phonemes(audio, LINES).characters) == 5
    assert record.read_text(encoding="utf-8") == "song.lab\n天 地 玄\n黄 Oh"


def test_without_the_program_nothing_is_made_up(audio: Audio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingBackendError, match=r"conda install .*'montreal-forced-aligner<4'"):
        align_phonemes(audio, LINES)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ((LONG, "sys.exit('no model mandarin_mfa')"), r"exit status 1: no model mandarin_mfa; .*mfa model download"),
        ((LONG, "sys.exit(0)"), "wrote 0 alignments"),
        ((LONG.replace('"phones"', '"sounds"'), ""), "no tier phones"),
        ((LONG.replace('"地"', '""'), ""), "aligned 4 of 5 characters"),
        ((LONG.replace('"地"', '"他"'), ""), "aligned '他' where line 1 of the lyrics has '地'"),
        ((LONG[:900], ""), "no TextGrid"),
    ],
)
def test_what_the_program_gets_wrong_is_said(
    written: tuple[str, str], message: str, audio: Audio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, monkeypatch, *written)
    with pytest.raises(BackendError, match=message):
        align_phonemes(audio, LINES)


def test_a_program_that_hangs_is_ended(audio: Audio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, monkeypatch, action="time.sleep(60)")
    with pytest.raises(BackendError, match=r"within 0\.5 s"):
        align_phonemes(audio, LINES, timeout_sec=0.5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((("...", "!"), None), "no line has a letter"),
        ((LINES, (0.0,)), "one start a line"),
        ((LINES, (2.0, 1.0)), "increase"),
        ((LINES, (0.0, 5.0)), "increase"),
        ((LINES, (-1.0, 1.0)), "increase"),
        ((LINES, (0.0, float("nan"))), "increase"),
    ],
)
def test_lyrics_that_cannot_be_aligned_are_refused(
    given: tuple[tuple[str, ...], tuple[float, ...] | None],
    message: str,
    audio: Audio,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _install(tmp_path, monkeypatch)
    with pytest.raises(InvalidLyricsError, match=message):
        align_phonemes(audio, given[0], starts_sec=given[1])


def test_the_short_form_is_read(tmp_path: Path) -> None:
    path = tmp_path / "short.TextGrid"
    path.write_text(SHORT, encoding="utf-8")
    assert read_textgrid(path) == {"words": [Interval(0.0, 0.1, 'say "3" [4] <x>'), Interval(0.1, 4.0, "")]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("ooTextFile", "other"), "does not begin"),
        (("size = 7", "size = 7.5"), "count"),
        (("size = 7", "size = 70"), "expected a number"),
        (("xmax = 1.25", "xmax = 0.25"), "times must increase"),
        (('"IntervalTier"', '"TextTier"'), "tiers of intervals"),
        (('"phones"', '"words"'), "there twice"),
    ],
)
def test_a_broken_textgrid_is_named(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.TextGrid"
    path.write_text(LONG.replace(*change), encoding="utf-8")
    with pytest.raises(UnreadableFileError, match=message):
        read_textgrid(path)


def test_a_file_that_is_not_there_or_too_large_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        read_textgrid(tmp_path / "none.TextGrid")
    path = tmp_path / "large.TextGrid"
    path.write_text(LONG, encoding="utf-8")
    monkeypatch.setattr(phonemes, "LARGEST_TEXTGRID", 100)
    with pytest.raises(UnreadableFileError, match="more than 100 bytes"):
        read_textgrid(path)
