"""The steps `phonemes` and `characters`, from files of a sung song to the data set."""

from __future__ import annotations

import stat
import sys
from collections.abc import Sequence
from pathlib import Path

import datasets
import numpy as np
import pytest
from benchmarks.lyric_alignment.songs import Song, make_song
from benchmarks.lyric_alignment.voices import RATE

from music_evals.audio.io import encode_flac
from music_evals.errors import MissingBackendError
from music_evals.preparation.sung import about_phonemes
from music_evals.preparation.task import Prepared, Settings, run_preparation

LATE_SEC = 0.15

STAND_IN = """#!{python}
import pathlib, sys
if sys.argv[1] == "version":
    print("3.2.1")
else:
    pathlib.Path(sys.argv[-1]).mkdir()
    pathlib.Path(sys.argv[-1], "song.TextGrid").write_text({content!r}, encoding="utf-8")
"""


@pytest.fixture(scope="module")
def sung() -> Song:
    return make_song("development", 0)


@pytest.fixture
def folder(sung: Song, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the recording and its lyrics; there is no aligner."""
    root = tmp_path / "songs"
    root.mkdir()
    (root / "song.flac").write_bytes(encode_flac(sung.samples.astype(np.float32), RATE))
    lines: dict[int, str] = {}
    starts: dict[int, float] = {}
    for one in sung.characters:
        lines[one.line] = lines.get(one.line, "") + one.text
        starts.setdefault(one.line, one.start_sec)
    lrc = "".join(f"[00:{starts[i]:05.2f}]{text}\n" for i, text in lines.items())
    (root / "song.lrc").write_text(lrc, encoding="utf-8")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return root


def _install_aligner(sung: Song, folder: Path) -> None:
    """Put a program ``mfa`` on the path that has every character late, and one phone in each."""
    intervals = [(one.start_sec + LATE_SEC, one.end_sec + LATE_SEC, one.text) for one in sung.characters]
    rows = "\n".join(f'{start}\n{end}\n"{text}"' for start, end, text in intervals)
    tiers = "\n".join(f'"IntervalTier"\n"{name}"\n0\n99\n{len(intervals)}\n{rows}' for name in ("words", "phones"))
    content = f'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n99\n<exists>\n2\n{tiers}\n'
    program = folder.parent / "bin" / "mfa"
    program.parent.mkdir()
    program.write_text(STAND_IN.format(python=sys.executable, content=content), encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def _prepare(folder: Path, steps: Sequence[str] = ()) -> Prepared:
    return run_preparation(Settings(folder.parent / "out", songs=folder, steps=steps, engine="serial"))


def _right(starts: list[float], song: Song) -> float:
    """Return the share of characters that begin within 100 ms of the truth."""
    return float(np.mean(np.abs(np.array(starts) - [one.start_sec for one in song.characters]) <= 0.1))


@pytest.mark.slow
def test_the_aligner_s_characters_are_refined(sung: Song, folder: Path) -> None:
    _install_aligner(sung, folder)
    assert about_phonemes({}) == {
        "mfa": "3.2.1", "acoustic_model": "mandarin_mfa", "dictionary": "mandarin_china_mfa",
    }  # fmt: skip
    done = _prepare(folder, ["phonemes", "characters"])
    assert not done.failures
    (row,) = datasets.load_dataset(str(folder.parent / "out"), "automatic", split="test",
                                   cache_dir=str(folder.parent / "cache"))  # fmt: skip
    texts = [one.text for one in sung.characters]
    assert [one["text"] for one in row["aligned"]] == [one["text"] for one in row["characters"]] == texts
    assert [one["character"] for one in row["phones"]] == list(range(len(texts)))
    assert [one["line"] for one in row["characters"]] == [one.line for one in sung.characters]
    assert _right([one["start_sec"] for one in row["aligned"]], sung) == 0.0
    assert _right([one["start_sec"] for one in row["characters"]], sung) > 0.8
    assert row["characters_from"] == {
        "first": "mfa", "heard": "mixture", "shift_sec": pytest.approx(-LATE_SEC, abs=0.03),
    }  # fmt: skip
    assert all(one["notes"] for one in row["characters"])
    assert {rest["kind"] for rest in row["rests"]} <= {"breath", "pause"}
    assert len(row["rests"]) >= 5  # a breath after each line


@pytest.mark.slow
def test_without_an_aligner_lines_are_spread_and_only_if_asked_for(sung: Song, folder: Path) -> None:
    assert set(_prepare(folder, ["characters"]).rows[0]["characters_from"]) == {"first", "heard", "shift_sec"}
    row = _prepare(folder, ["characters"]).rows[0]
    assert row["characters_from"]["first"] == "lines"
    assert not row["aligned"]
    assert _right([one["start_sec"] for one in row["characters"]], sung) > 0.3  # benchmarks/lyric_alignment has figures
    with pytest.raises(MissingBackendError, match="conda install"):
        _prepare(folder, ["phonemes"])


def test_what_is_left_out_is_said(folder: Path) -> None:
    for path in folder.glob("*.flac"):
        path.unlink()  # nothing to listen to: only lyrics are prepared
    left_out = _prepare(folder).left_out
    assert left_out["phonemes"] == "the Montreal Forced Aligner (mfa) is not installed"
    assert "ask for it by name" in left_out["characters"]
