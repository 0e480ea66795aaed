"""The verb ``publish``; what it does on a Hub is tested in tests/hub."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from music_evals import cli
from music_evals.hub import publishing
from music_evals.hub.client import Repository
from music_evals.hub.model_index import Changed
from music_evals.hub.publishing import Change, Published, Wanted
from music_evals.hub.repository_folders import RepositoryFolder


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch, root: Path, in_root: Path) -> list[Published]:
    """What a publication of two folders comes to."""
    first, second = RepositoryFolder(root / "metrics/note_f1"), RepositoryFolder(root / "models/anticipation_rnn")
    changes = (Change("new", "app.py", 12), Change("changed", "weights", 3_987_146), Change("deleted", "old", 0))
    rows = [
        Published(first, Repository("space", "o/note_f1"), "would change", changes, ("left.txt",), "https://hub/1"),
        Published(second, Repository("model", "o/anticipation_rnn"), "unchanged", url="https://hub/2"),
    ]

    @functools.wraps(publishing.publish)
    def publish(folders: Any, org: str, **options: Any) -> list[Published]:
        assert org == "o"
        assert [folder.label for folder in folders] == ["metrics/note_f1", "models/anticipation_rnn"]
        options["progress"](1, 2, "metrics/note_f1")
        return rows

    monkeypatch.setattr(publishing, "publish", publish)
    return rows


FOLDERS = ("metrics/note_f1", "models/anticipation_rnn")


def test_the_table(outcome: list[Published], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["publish", *FOLDERS, "--org", "o", "--dry-run"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[1].split() == [
        "metrics/note_f1", "space", "o/note_f1", "would", "change", "3", "4.0", "MB", "https://hub/1",
    ]  # fmt: skip
    assert lines[2].split() == ["models/anticipation_rnn", "model", "o/anticipation_rnn", "unchanged", "https://hub/2"]
    assert lines[4:8] == ["space o/note_f1", "  + app.py (12 B)", "  ~ weights (4.0 MB)", "  - old (0 B)"]
    assert lines[-1] == "Nothing was sent."
    assert "left.txt" in err


def test_json(outcome: list[Published], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["publish", *FOLDERS, "--org", "o", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["changes"][0] == {"kind": "new", "path": "app.py", "size": 12}
    assert first["left"] == ["left.txt"]
    assert (second["window"], second["status"], second["error"]) == ("models/anticipation_rnn", "unchanged", None)


def test_results_that_the_hub_keeps(outcome: list[Published], capsys: pytest.CaptureFixture[str]) -> None:
    outcome[1] = outcome[1]._replace(retained=(Changed("x on a/b", 7, 1),))
    assert cli.main(["publish", *FOLDERS, "--org", "o"]) == 0
    out = capsys.readouterr().out
    assert "model o/anticipation_rnn keeps its results" in out
    assert "  x on a/b: 7, in the folder 1\n" in out
    assert cli.main(["publish", *FOLDERS, "--org", "o", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[1]["kept"] == [{"what": "x on a/b", "old": 7, "new": 1}]


def test_hardware_is_told_and_a_refusal_is_a_failure(
    outcome: list[Published], capsys: pytest.CaptureFixture[str]
) -> None:
    refused = outcome[0]._replace(
        status="published", hardware=Wanted("t4-small", "refused"), error="HubError: no; the files have arrived"
    )
    outcome[0] = refused
    assert cli.main(["publish", *FOLDERS, "--org", "o", "--hardware", "t4-small"]) == 1
    out, err = capsys.readouterr()
    assert "space o/note_f1: hardware t4-small was refused" in out
    assert "metrics/note_f1: HubError: no; the files have arrived" in err
    outcome[0] = refused._replace(hardware=Wanted("t4-small", "would be asked for"), error="")
    assert cli.main(["publish", *FOLDERS, "--org", "o", "--dry-run"]) == 0
    assert "hardware t4-small would be asked for" in capsys.readouterr().out
    assert cli.main(["publish", *FOLDERS, "--org", "o", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["hardware"] == {"name": "t4-small", "state": "would be asked for"}
    assert second["hardware"] is None


def test_failures_are_listed(outcome: list[Published], capsys: pytest.CaptureFixture[str]) -> None:
    outcome[:] = [
        outcome[0]._replace(status="failed", error="HubError: it fell"),
        outcome[1]._replace(status="not tried"),
    ]
    assert cli.main(["publish", *FOLDERS, "--org", "o"]) == 1
    err = capsys.readouterr().err
    assert "metrics/note_f1: HubError: it fell" in err
    assert "models/anticipation_rnn: not tried" in err


@pytest.mark.parametrize("arguments", [[], ["--all", "metrics/note_f1"], ["metrics/gone"], ["src/music_evals"]])
def test_wrong_usage(arguments: list[str], in_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["publish", *arguments, "--org", "o"]) == 2
    assert "music-evals: error: " in capsys.readouterr().err


def test_offline(in_root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    monkeypatch.setattr(publishing, "uncommitted", lambda _: [])  # whatever is being worked on
    where = ["--source", "https://example.org/a/b", "--revision", "0" * 40]
    assert cli.main(["publish", "metrics/note_f1", "--org", "o", *where]) == 1
    assert "HF_HUB_OFFLINE is set" in capsys.readouterr().err
