"""The verb ``push``; what it does on a Hub is tested in tests/hub."""

from __future__ import annotations

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import pytest

from music_evals import cli
from music_evals.errors import HubError, HubRightsError, OtherResultsError
from music_evals.hub import pushing
from music_evals.hub.model_index import Changed
from music_evals.hub.pushing import Pushed

DONE = Pushed(
    "o/m",
    {"README.md": "--- a\n+++ b\n+x\n"},
    (Changed("x on a/b", 1, 2),),
    {"x": "c_s_x"},
    "https://hub/commit",
    ("a remark",),
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `push_results` is called with; it returns `DONE`."""
    seen: dict[str, Any] = {}

    @functools.wraps(pushing.push_results)
    def push_results(results: str, model: str, **options: Any) -> Pushed:
        seen.update(options, results=results, model=model)
        return seen.pop("answer", DONE)

    monkeypatch.setattr(pushing, "push_results", push_results)
    return seen


def test_what_is_told(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["push", "results", "--model", "o/m", "--pr", "--overwrite", "--dataset", "o/d"]) == 0
    out, err = capsys.readouterr()
    assert out == "o/m: 1 tasks, README.md\n  x on a/b: 1 became 2\nhttps://hub/commit\n"
    assert err == "note: a remark\n"
    assert (asked["results"], asked["model"], asked["dataset"]) == ("results", "o/m", "o/d")
    assert asked["pull_request"]
    assert asked["overwrite"]
    assert not asked["dry_run"]


def test_a_dry_run_and_json(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["push", "results", "--model", "o/m", "--dry-run"]) == 0
    assert capsys.readouterr().out == "--- a\n+++ b\n+x\n\nNothing was sent.\n"
    assert cli.main(["push", "results", "--model", "o/m", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["changed"] == [{"what": "x on a/b", "old": 1, "new": 2}]
    assert told["tasks"] == {"x": "c_s_x"}


def test_what_a_dry_run_would_need(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["push", "results", "--model", "o/m", "--dry-run"]) == 0
    assert "note: 1 values on the card would change, which needs --overwrite\n" in capsys.readouterr().err
    asked["answer"] = dataclasses.replace(DONE, owners=("other",))
    assert cli.main(["push", "results", "--model", "o/m", "--dry-run", "--overwrite"]) == 0
    assert "note: values of other would become others, which needs --adopt and --overwrite\n" in capsys.readouterr().err


def test_options_are_named_where_they_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for error, said in {
        OtherResultsError("o/m has other values:\n  x: 1 would become 2"): "2\n--overwrite lets values change",
        HubRightsError("this token may not do that"): "may not do that; --pr proposes the change",
        HubError("the Hub answers 500"): "answers 500\n",
    }.items():

        def refuse(*_: Any, error: Exception = error, **__: Any) -> None:
            raise error

        monkeypatch.setattr(pushing, "push_results", refuse)
        assert cli.main(["push", "results", "--model", "o/m"]) != 0
        assert said in capsys.readouterr().err


def test_nothing_to_send(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    asked["answer"] = Pushed("o/m", {}, (), {}, "", ())
    assert cli.main(["push", "results", "--model", "o/m"]) == 0
    assert capsys.readouterr().out == "o/m holds these results already; nothing was sent.\n"


def test_results_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["push", str(tmp_path), "--model", "o/m"]) == 2
    assert "results.json is not there" in capsys.readouterr().err
