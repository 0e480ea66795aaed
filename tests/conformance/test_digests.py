"""Numbers and controls are those of `tests/golden/digests`, and `tools/digests.py` sees where one is not."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from tools import digests, pages

from music_evals.cli import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tool sets for itself ends with the test."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("HF_HOME", "MUSIC_EVALS_CACHE", "MPLBACKEND", "GRADIO_ANALYTICS_ENABLED", *digests.OFFLINE):
        monkeypatch.setenv(name, "1")


@pytest.mark.usefixtures("own_environment")
@pytest.mark.parametrize("section", ["modules", "verbs"])
def test_no_number_moved(section: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where that is meant: `python tools/digests.py --section NAME --accept REASON`. Pictures hold no numbers."""
    monkeypatch.setattr("music_evals.studies.editing.figures.draw_figures", lambda _: {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ended = digests.main(["--section", section])
    assert ended == 0, capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    "section",
    [
        pytest.param("pages", marks=pytest.mark.gradio),
        pytest.param("run", marks=pytest.mark.skip(reason="compared under one kernel only: tools/digests.py")),
    ],
)
def test_nothing_moved(section: str) -> None:
    """In a process of its own."""
    command = [sys.executable, str(ROOT / "tools" / "digests.py"), "--section", section]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-3000:]


def test_verbs_that_are_run_or_left_out_for_a_reason_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    verbs = set(re.findall(r"^    ([a-z][\w-]*)(?= |$)", capsys.readouterr().out, re.MULTILINE))
    commands = {command.split()[0] for command in digests.COMMANDS["verbs"].values()}
    assert commands | digests.COMMANDS["not_run"].keys() <= verbs


def test_every_metric_and_space_is_there() -> None:
    for section, house, marker in (("modules", "metrics", "{name}.py"), ("pages", "spaces", "app.py")):
        names = {path.name for path in (ROOT / house).iterdir() if (path / marker.format(name=path.name)).is_file()}
        content = digests.FOLDER.joinpath(f"{section}.json").read_text(encoding="utf-8")
        assert not [name for name in names if f"{name}/" not in content and f"{name}:" not in content]


def test_a_number_that_moved_is_listed() -> None:
    old = {"a/value": 0.5, "a/n": 3, "b/value": math.nan, "c": [1.0, 2.0], "gone": "x", "kind": True}
    same = {"a/value": 0.5 + 9e-7, "a/n": 3.0, "b/value": math.nan, "c": [1.0, 2.0 + 1e-6], "gone": "x", "kind": True}
    assert digests.moved(old, same) == []
    new = {"a/value": 0.5 + 2e-6, "a/n": 4, "b/value": 0.0, "c": [1.0], "new": 1, "kind": 1}
    assert digests.moved(old, new) == [
        "  a/n: 3 -> 4", "  a/value: 0.5 -> 0.500002", "  b/value: nan -> 0.0", "  c: [1.0, 2.0] -> [1.0]",
        "- gone: x", "  kind: True -> 1", "+ new: 1",
    ]  # fmt: skip


def test_what_tells_of_the_run_and_sentences_are_left_out() -> None:
    results: dict[str, Any] = {
        "created": "2026-01-01", "versions": {"numpy": "2"}, "seconds": 1.0, "wording": "It is a sentence.",
        "path": "a/b.mid", "code_hash": 7, "note": None, "hash": "0123456789abcdef", "place": "/a/b",
        "rows": [{"system": "copy", "value": 1 / 3}, {"system": "markov", "duration_sec": [1.0, 2.0]}],
    }  # fmt: skip
    assert dict(digests.flat(results)) == {
        "rows/0 copy/system": "copy", "rows/0 copy/value": 0.3333333333, "rows/1 markov/system": "markov",
        "rows/1 markov/duration_sec": [1.0, 2.0],
    }  # fmt: skip
    assert digests.table_numbers("# 1\n| a1 | 0.5 (-2 to 3.25) |\n|---|---|\n| x | 7 |") == {
        "0": [0.5, -2, 3.25],
        "2": [7],
    }


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    values = {"b/x": 1, "a/b/y": [1, 2.5], "a/b/x": math.nan, "a/page: Take it (button)": ["é"]}
    path = tmp_path / "verbs.json"
    path.write_text(digests.written(values), encoding="utf-8")
    assert path.read_text(encoding="utf-8").splitlines()[2] == '"a/page: Take it (button)": ["é"],'
    assert not digests.moved(values, digests.read(path))
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2 + 3
    assert digests.read(tmp_path / "none.json") == {}


@pytest.mark.usefixtures("own_environment")
def test_a_section_is_compared_and_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    values: dict[str, Any] = {"a/value": 1.0}
    monkeypatch.setattr(digests, "SECTIONS", {"verbs": lambda _: values})
    monkeypatch.setattr(digests, "ROOT", tmp_path)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n### Added\n- more\n")
    (tmp_path / "verbs.json").write_text(digests.written(values))
    arguments = ["--folder", str(tmp_path)]
    assert digests.main(arguments) == 0
    values["a/value"] = 2.0
    assert digests.main(arguments) == 1
    assert "verbs: 1 of 1 values moved\n  a/value: 1.0 -> 2.0\n" in capsys.readouterr().out
    assert digests.main([*arguments, "--accept", "twice as much is right"]) == 0
    assert digests.main(arguments) == 0
    line = "- Digests moved (1 of verbs): twice as much is right. First of them: a/value: 1.0 -> 2.0"
    assert (tmp_path / "CHANGELOG.md").read_text().splitlines()[4] == line


def test_a_control_that_is_lost_is_seen(tmp_path: Path) -> None:
    """Of a page of Gradio, and of a page of forms."""
    components = [
        {"type": "dropdown", "props": {"label": "System", "choices": [["Ours", "a"], ["Theirs", "b"]]}},
        {"type": "slider", "props": {"label": "Votes", "minimum": 1, "maximum": 5}},
        {"type": "markdown", "props": {"value": "Text"}},
        {"type": "button", "props": {"value": "Take it"}},
    ]
    functions = [{"api_name": "take", "api_visibility": "public", "inputs": [1], "outputs": []}]
    config = {"components": components, "dependencies": functions}
    stand_in = f"class Page:\n    def get_config_file(self):\n        return {config}\n\n\nbuild_demo = Page\n"
    (tmp_path / "app.py").write_text(stand_in)
    lines: dict[str, Any] = {}
    pages._gradio(tmp_path / "app.py", "spaces/x", lines)
    assert lines == {
        "spaces/x: System (dropdown)": ["a", "b"], "spaces/x: Votes (slider)": [1, 5],
        "spaces/x: Take it (button)": [], "spaces/x: api take": [1, 0],
    }  # fmt: skip
    lost = {name: value for name, value in lines.items() if "Votes" not in name} | {
        "spaces/x: System (dropdown)": ["a"]
    }
    assert digests.moved(lines, lost) == [
        "  spaces/x: System (dropdown): ['a', 'b'] -> ['a']", "- spaces/x: Votes (slider): [1, 5]"
    ]  # fmt: skip


def test_the_fields_of_forms_are_read() -> None:
    page = pages.Fields(
        '<a href="/work">Work</a><form method="post" action="/task/12/save"><input name="line_3">'
        '<select name="to"><option value="a">A</select><button name="go" value="on">Go</button></form>'
        '<textarea id="notes"></textarea>'
    )
    assert page.fields == {
        "post /task/N/save: line_N (text)": set(), "post /task/N/save: to (select)": {"a"},
        "post /task/N/save: go (button)": {"on"}, "no form: notes (textarea)": set(),
    }  # fmt: skip
    assert page.links == {"/work"}


def test_groups_stand_in_order() -> None:
    for path in sorted(digests.FOLDER.glob("*.json")):
        groups = list(json.loads(path.read_text(encoding="utf-8")))
        assert groups == sorted(groups), path.name
