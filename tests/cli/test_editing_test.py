"""The verb ``editing-test``: from the tables of a study to its report, and the size of a study."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from music_evals.cli import main
from music_evals.errors import InvalidInputError
from music_evals.pipelines.editing_test import evaluate_editing_test
from music_evals.pipelines.study_tables import study_tables
from music_evals.studies.editing.simulation import StudyDesign, plan_sizes, simulate_study


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study of the paper's size, with listeners."""
    for name, table in simulate_study(StudyDesign(ratio=0.7), rng=np.random.default_rng(7))._asdict().items():
        pd.DataFrame(table).to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test of the tables does not look at takes most of their time."""
    monkeypatch.setattr("music_evals.studies.editing.figures.draw_figures", lambda _: {})


def test_the_report_of_a_study(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["editing-test", "report", str(study)]) == 0
    out = capsys.readouterr().out
    report = (study / "report" / "report.md").read_text(encoding="utf-8")
    assert out.strip() == report.strip()
    expected = evaluate_editing_test(simulate_study(StudyDesign(ratio=0.7), rng=np.random.default_rng(7)))
    with (study / "report" / "correlations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 36
    for row, cell in zip(rows, expected["correlations"], strict=True):
        assert (row["x"], row["y"], row["stars"]) == (cell["x"], cell["y"], cell["stars"])
        assert float(row["r"]) == pytest.approx(cell["r"])
        assert f"| {cell['x']} | {cell['y']} | {cell['r']:.2f}" in report
    tables = json.loads((study / "report" / "tables.json").read_text())
    assert len(tables["pairs"]) == 12
    for heading in ("Loads and answers", "Ratios of effort", "Correlations", "Similarity to styles", "The time limit"):
        assert f"## {heading}" in report
    assert all(line in report for line in tables["warnings"])


@pytest.mark.slow
@pytest.mark.usefixtures("no_figures")
def test_a_report_says_what_is_marked_and_the_ratios_without(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edits = pd.read_csv(study / "edits.csv")
    edits["marks"] = ["regular unheard" if editor == "e00" else "" for editor in edits["editor_id"]]
    edits.to_csv(study / "edits.csv", index=False)
    assert main(["editing-test", "report", str(study), "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)
    rest = pd.read_csv(study / "edits.csv").query("editor_id != 'e00'")
    expected = evaluate_editing_test(study_tables(study / "samples.csv", rest, study / "listening.csv"))["ratios"]
    found = tables["ratios_unmarked"]
    assert [row["geometric_mean"] for row in found] == pytest.approx([row["geometric_mean"] for row in expected])
    assert [row["geometric_mean"] for row in found] != [row["geometric_mean"] for row in tables["ratios"]]
    n_marked = int((edits["marks"] != "").sum())
    assert f"{n_marked} of {len(edits)} edits are marked as hard to believe." in tables["warnings"]
    assert f"e00: regular {n_marked}, unheard {n_marked}" in tables["warnings"]
    report = (study / "report" / "report.md").read_text(encoding="utf-8")
    assert "## Ratios of effort without what is marked" in report
    # where all of a model is marked, nothing is left to compare
    edits["marks"] = "unheard"
    edits.to_csv(study / "edits.csv", index=False)
    assert main(["editing-test", "report", str(study), "--json"]) == 0
    assert {row["n"] for row in json.loads(capsys.readouterr().out)["ratios_unmarked"]} == {0}


@pytest.mark.slow
@pytest.mark.usefixtures("no_figures")
def test_without_listeners_as_json(study: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (study / "listening.csv").unlink()
    out = tmp_path / "elsewhere"
    assert main(["editing-test", "report", str(study), "--out", str(out), "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)
    assert len(tables["correlations"]) == 9 + 9 + 3 + 3
    assert tables["style_similarity"] == []
    assert tables["ratios_unmarked"] == []  # nothing is marked
    assert not (out / "style_similarity.csv").exists()
    assert "Similarity to styles" not in (out / "report.md").read_text()


def test_a_wrong_row_is_named(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edits = pd.read_csv(study / "edits.csv")
    edits.loc[4, "EQ1"] = 7
    edits.to_csv(study / "edits.csv", index=False)
    assert main(["editing-test", "report", str(study)]) == 2
    assert "edits, row 5: EQ1 must be a whole number from 1 to 5" in capsys.readouterr().err
    assert not (study / "report").exists()
    assert main(["editing-test", "report", str(study / "nowhere")]) == 2


@pytest.mark.slow
def test_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["editing-test", "plan", "--ratio", "0.5", "--pieces", "3,6", "--styles", "1", "--draws", "20", "--json"]
    assert main(command) == 0
    first = capsys.readouterr().out
    sizes = json.loads(first)
    assert [(size["n_pieces"], size["n_edits"]) for size in sizes] == [(3, 18), (6, 36)]
    assert sizes[0]["power"] < sizes[1]["power"]
    assert sizes[0]["width"] > sizes[1]["width"]
    assert main(command) == 0
    assert capsys.readouterr().out == first
    assert main([*command[:-1]]) == 0
    assert capsys.readouterr().out.startswith("pieces  edits  power")
    assert main(["editing-test", "plan", "--pieces", "six"]) == 2
    assert "--pieces must be whole numbers" in capsys.readouterr().err


@pytest.mark.slow
def test_no_effect_is_seldom_found() -> None:
    design = StudyDesign(styles=("bach",), ratio=1.0, time_limit_s=math.inf)
    (size,) = plan_sizes(design, [6], n_draws=100, seed=3)
    assert size.power <= 0.08  # on one side of 1, of 2.5 % at the nominal level
    assert size.coverage > 0.87
    with pytest.raises(InvalidInputError, match=r"from 2 .*\[1\]"):
        plan_sizes(design, [1])
