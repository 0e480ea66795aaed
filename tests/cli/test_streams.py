"""Data on stdout in any encoding."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from music_evals import cli
from music_evals.annotations import Score
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes

ENCODINGS = ("ascii", "latin-1", "cp1252", "gbk", "utf-8")
NAME = "ü 春 🎵"

Say = Callable[[list[str], str], tuple[int, bytes, str]]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Say:
    """Run a command whose stdout and stderr have an encoding; return the code, the bytes of stdout, and stderr."""

    def run(arguments: list[str], encoding: str) -> tuple[int, bytes, str]:
        streams = {name: io.BytesIO() for name in ("stdout", "stderr")}
        for name, buffer in streams.items():
            monkeypatch.setattr(sys, name, io.TextIOWrapper(buffer, encoding=encoding, errors="strict"))
        try:
            code = cli.main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        out, err = (buffer.getvalue() for buffer in streams.values())
        monkeypatch.undo()
        return code, out, err.decode(encoding)

    return run


@pytest.fixture
def tunes(tmp_path: Path) -> Path:
    """Two folders of one score each, with a name that few encodings hold."""
    for side, shift in (("r", 0), ("e", 1)):
        (tmp_path / side).mkdir()
        save_midi(
            Score(make_notes(np.arange(32) * 480, 480, np.tile([60, 64], 16) + shift), 480),
            tmp_path / side / f"{NAME}.mid",
        )
    return tmp_path


def test_tables_and_json_of_a_run(say: Say, tiny_dataset: Path, tmp_path: Path) -> None:
    """The same folder again and again: only what is printed is made anew."""
    run = [
        "inpainting", "--dataset", str(tiny_dataset), "--config", "musib", "--baselines", "copy_past", "--limit", "4",
        "--resamples", "20", "--no-report", "--out", str(tmp_path / NAME),
    ]  # fmt: skip
    code, plain, _ = say(run, "utf-8")
    assert code == 0
    assert "↑" in plain.decode()
    for encoding in ("ascii", "cp1252", "gbk"):
        code, out, _ = say(run, encoding)
        assert code == 0, encoding
        for line in ("note F1", "copy_past", "records"):
            assert line in out.decode(encoding), encoding
        code, out, _ = say([*run, "--json"], encoding)
        assert (code, json.loads(out.decode(encoding))["task"]) == (0, "inpainting")


@pytest.mark.slow
def test_json_stays_what_it_is(say: Say, tunes: Path) -> None:
    for encoding in ENCODINGS:
        code, out, _ = say(["frame", str(tunes / "r"), "--json"], encoding)
        assert (code, json.loads(out.decode(encoding))["frame"]["filename"]) == (0, [f"{NAME}.mid"])
        code, out, _ = say(["frame", str(tunes / "r")], encoding)
        assert (code, len(out.decode(encoding).splitlines())) == (0, 2)


@pytest.mark.slow
def test_lists_help_and_refusals(say: Say, tunes: Path) -> None:
    for encoding, what in zip(ENCODINGS, ("tasks", "models", "datasets", "tasks", "tasks"), strict=True):
        assert say(["list", what], encoding)[0] == 0
        assert json.loads(say(["list", what, "--json"], encoding)[1].decode(encoding))
        assert say(["preserve", "--help"], encoding)[0] == 0
        code, out, err = say(["inpainting", "--out", str(tunes / "r" / f"{NAME}.mid"), "--dataset", "→春"], encoding)
        assert (code, out) == (2, b"")
        assert "Traceback" not in err
        assert say(["list", f"→{NAME}"], encoding)[0] == 2


@pytest.mark.slow
def test_file_names_that_are_no_text(say: Say, tunes: Path) -> None:
    name = b"half \xff.mid"
    try:
        (tunes / "r" / f"{NAME}.mid").rename(os.fsdecode(os.fsencode(tunes / "r") + b"/" + name))
    except OSError:
        pytest.skip("this file system takes names in UTF-8 alone")
    for encoding in ENCODINGS:
        code, out, _ = say(["frame", str(tunes / "r")], encoding)
        assert (code, "half \\udcff.mid" in out.decode(encoding)) == (0, True)


@pytest.mark.slow
def test_tables_of_edits_and_boards(say: Say, tunes: Path) -> None:
    out = str(tunes / "out")
    run = ["preserve", "--reference", str(tunes / "r"), "--estimate", f"up={tunes / 'e'}", "--resamples", "20"]
    run += ["--metrics", "motif_recall", "--engine", "serial", "--no-report", "--out", out]
    board = ["leaderboard", "build", "--board", str(tunes / "board"), "--out", str(tunes / "pages")]
    assert say(run, "utf-8")[0] == 0
    assert say(["leaderboard", "add", out, "--board", str(tunes / "board"), "--submitter", NAME], "ascii")[0] == 0
    for encoding in ("ascii", "cp1252"):
        for command in (run, board, [*board, "--json"]):
            code, _, err = say(command, encoding)
            assert code == 0, (encoding, command, err)


@pytest.mark.slow
@pytest.mark.parametrize(("encoding", "arrow"), [("cp1252", b"\\u2192"), ("ascii:replace", b"?")])
def test_the_command_with_redirected_output(encoding: str, arrow: bytes, tunes: Path) -> None:
    (tunes / "r" / f"{NAME}.mid").rename(tunes / "r" / "→.mid")
    command = [sys.executable, "-m", "music_evals", "frame", str(tunes / "r")]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    ended = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert arrow + b".mid" in ended.stdout
    assert b"Traceback" not in ended.stderr
