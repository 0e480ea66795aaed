from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from music_evals.errors import InvalidInputError, UnreadableFileError
from music_evals.hub.eval_files import (
    check_eval_yaml,
    merge_results,
    ranked_metrics,
    read_eval_yaml,
    read_results_file,
    write_results_file,
)

ROOT = Path(__file__).resolve().parents[2]
GOOD: dict[str, Any] = {
    "name": "n",
    "description": "d",
    "evaluation_framework": "music_evals",
    "tasks": [{"id": "c_s_x", "config": "c", "split": "s"}, {"id": "c_test_y", "config": "c"}],
}
ENTRY: dict[str, Any] = {
    "dataset": {"id": "a/b", "task_id": "c_s_x", "revision": "abc"},
    "value": 0.5,
    "date": "2026-11-20",
    "source": {"url": "https://example.org", "name": "n"},
    "notes": "settings",
}


@pytest.mark.parametrize(
    "path", sorted((ROOT / "datasets_scripts").glob("*/eval.yaml")), ids=lambda path: path.parent.name
)
def test_ours_keep_the_schema(path: Path) -> None:
    declared = read_eval_yaml(path.read_text(encoding="utf-8"), str(path))
    for task in declared["tasks"]:
        assert task["id"] in ranked_metrics(declared, task["config"], task["split"]).values()


def test_a_good_file() -> None:
    assert check_eval_yaml(GOOD, [("c", "s"), ("c", "test")]) == []
    assert ranked_metrics(GOOD, "c", "test") == {"y": "c_test_y"}
    assert ranked_metrics(GOOD, "other", "test") == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": None}, "name: missing"),
        ({"description": " "}, "description: missing"),
        ({"evaluation_framework": ["a"]}, "evaluation_framework: expected one id"),
        ({"tasks": []}, "at least one task"),
        ({"tasks": ["x"]}, "tasks[0]: expected a mapping"),
        ({"tasks": [{"config": "c"}]}, "tasks[0].id: missing"),
        ({"tasks": [{"id": "x y"}]}, "tasks[0].id: missing"),
        ({"tasks": [{"id": "x", "config": "c", "split": "s"}]}, "expected the form <config>_<split>_<metric>"),
        ({"tasks": [{"id": "d_s_x", "config": "d", "split": "s"}]}, "no config 'd' with a split 's'"),
        ({"tasks": [{"id": "c_s_x", "config": "c", "split": "s", "spilt": "s"}]}, "unknown key 'spilt'"),
        ({"tasks": [GOOD["tasks"][0]] * 2}, "more than once"),
        ({"frame": 1}, "unknown key 'frame'"),
    ],
)
def test_what_breaks_the_schema(change: dict[str, Any], said: str) -> None:
    problems = check_eval_yaml({**GOOD, **change}, [("c", "s"), ("c", "test")])
    assert any(said in problem for problem in problems), problems
    with pytest.raises(InvalidInputError, match="breaks the schema"):
        read_eval_yaml(json.dumps({**GOOD, **change}), "eval.yaml", [("c", "s"), ("c", "test")])


def test_no_mapping_and_no_yaml() -> None:
    assert "expected a mapping" in check_eval_yaml([1])[0]
    with pytest.raises(UnreadableFileError, match="cannot be read as YAML"):
        read_eval_yaml("a: [", "eval.yaml")


def test_merging() -> None:
    other = {"dataset": {"id": "a/b", "task_id": "y"}, "value": 1, "extra": "kept"}
    held = {"f.yaml": [copy.deepcopy(ENTRY), other]}
    same = {**ENTRY, "date": "2027-01-01"}
    assert merge_results(held, [same], "f.yaml") == ({}, [])
    merged, changed = merge_results(held, [{**ENTRY, "value": 0.7}], "g.yaml")
    assert [entry["value"] for entry in merged["f.yaml"]] == [0.7, 1]
    assert merged["f.yaml"][1] == other
    assert [(change.old, change.new) for change in changed] == [(0.5, 0.7)]
    new = {"dataset": {"id": "a/b", "task_id": "z"}, "value": 1}
    assert merge_results(held, [new], "g.yaml") == ({"g.yaml": [new]}, [])
    assert held == {"f.yaml": [ENTRY, other]}


THEIRS = """# all that we have
- dataset: {id: a/b, task_id: y}   # a remark
  value: 76.80

  # the next one
- dataset:
    id: a/b
    task_id: c_s_x
  value: 0.50
# the end
"""
SAID: dict[str, Any] = {"dataset": {"id": "a/b", "task_id": "c_s_x"}, "value": 0.7}
MORE: dict[str, Any] = {"dataset": {"id": "a/b", "task_id": "z"}, "value": 1, "notes": "word " * 60}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", ["", "  "])
def test_what_others_wrote_stays_as_it_is(end: str, indent: str) -> None:
    text = "".join(f"{indent}{line}" for line in THEIRS.splitlines(keepends=True)).replace("\n", end)
    held = read_results_file(text, "f.yaml")
    assert write_results_file(held, text, "f.yaml") == text
    more = write_results_file([*held, MORE], text, "f.yaml")
    assert more.startswith(text)
    assert read_results_file(more, "f.yaml") == [*held, MORE]
    assert "\n" not in more.replace(end, "")
    assert write_results_file([held[0], SAID], text, "f.yaml") == text.replace("0.50", "0.7")


@pytest.mark.parametrize("text", ["", "# a remark\n", "[]\n", "# a remark\n[]"])
def test_an_empty_file(text: str) -> None:
    assert read_results_file(text, "f.yaml") == []
    new = write_results_file([MORE], text, "f.yaml")
    assert new.startswith(text.partition("[")[0])
    assert read_results_file(new, "f.yaml") == [MORE]


def test_a_file_on_one_line() -> None:
    text = "[{dataset: {id: a/b, task_id: y}, value: 76.80}]  # x"
    held = read_results_file(text, "f.yaml")
    assert write_results_file([*held, SAID], text, "f.yaml") == text.replace(
        "}]  # x", "}, {dataset: {id: a/b, task_id: c_s_x}, value: 0.7}] # x\n"
    )
    assert re.search(r"value: 2}\] +# x", write_results_file([{**held[0], "value": 2}], text, "f.yaml"))


def test_a_token_vouches_for_one_value() -> None:
    held = {"f.yaml": [{**ENTRY, "verifyToken": "t"}]}
    kept, _ = merge_results(held, [{**ENTRY, "notes": "more"}], "f.yaml")
    assert kept["f.yaml"][0]["verifyToken"] == "t"
    gone, _ = merge_results(held, [{**ENTRY, "value": 1}], "f.yaml")
    assert "verifyToken" not in gone["f.yaml"][0]


@pytest.mark.parametrize("text", ["a: 1", "[1, 2]", "a: ["])
def test_files_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UnreadableFileError):
        read_results_file(text, "f.yaml")
