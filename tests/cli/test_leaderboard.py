"""The verb ``leaderboard``; what it makes is tested in tests/leaderboard."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from music_evals import cli
from music_evals.leaderboard.board import parts


@pytest.fixture
def run(preservation_run_of_all: Path) -> Path:
    return preservation_run_of_all


@pytest.mark.slow
def test_add_and_build(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board, site = tmp_path / "board", tmp_path / "site"
    capsys.readouterr()
    assert cli.main(["leaderboard", "add", str(run), "--board", str(board), "--submitter", "me"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    n = int(re.fullmatch(rf"{re.escape(str(run))}: (\d+) records added, 0 were there\n", err)[1])
    assert cli.main(["leaderboard", "add", str(run), "--board", str(board), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"results": str(run), "added": 0, "known": n}]
    assert len(parts(board)) == 1
    assert cli.main(["leaderboard", "build", "--board", str(board), "--out", str(site)]) == 0
    out, err = capsys.readouterr()
    assert "Music editing: what is preserved: r, variant corrected" in out
    assert "(same music)" in out
    assert "published, not re-run" in out
    assert f"page: {site / 'index.html'}" in err
    assert cli.main(["leaderboard", "build", "--board", str(board), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (
        told
        == json.loads((site / "leaderboard.json").read_text())
        == json.loads((board / "leaderboard.json").read_text())
    )
    assert {path.suffix for path in (site / "tables").iterdir()} == {".csv", ".tex"}


def test_wrong_use(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = ["--board", str(tmp_path / "board")]
    assert cli.main(["leaderboard", "build", *board]) == 2
    assert "holds no records" in capsys.readouterr().err
    assert cli.main(["leaderboard", "add", str(tmp_path), *board]) == 2
    assert "results.json is not there" in capsys.readouterr().err
    assert cli.main(["leaderboard", "add", str(run), *board, "--system", "nobody"]) == 2
    assert "nobody" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["leaderboard"])
    assert cli.main(["leaderboard", "add", str(run), "--board", "/dev/null/board"]) == 1
    assert "cannot make" in capsys.readouterr().err
