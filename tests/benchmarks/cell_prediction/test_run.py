"""The objective table: models of a style beside rules, rows that replace older ones of the same system."""

from __future__ import annotations

import csv
import dataclasses
import shutil
from pathlib import Path

import pytest
import torch

from benchmarks.cell_prediction import run
from music_evals.annotations import Score
from music_evals.datasets.manifest import write_dataset
from music_evals.datasets.style_pieces import PieceFacts, features, row_of
from music_evals.hub.model_index import read_index
from music_evals.models.bmst import BMST, BMSTConfig
from music_evals.symbolic.notes import make_notes

TINY = BMSTConfig(window=6, embedding=4, n_layers=1, n_heads=2, inner=8, context=3, pitch_width=4, filters=5)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page, a corpus of three families and a model of its style."""
    shutil.copy(run.HERE / "README.md", tmp_path)
    rows = [
        row_of(
            Score(make_notes([0, 16, 0], [16, 8, 24], [pitch, pitch + 2, 40], voice=[0, 0, 1]), 8, voices=("a", "b")),
            PieceFacts(f"piece{pitch}", "bach", f"tune{pitch}"),
        )
        for pitch in (60, 64, 67)
    ]
    write_dataset(tmp_path / "own", {"pieces": {"train": rows, "test": rows}}, features())
    monkeypatch.setattr(run, "CORPORA", {"bach": run.Corpus(str(tmp_path / "own"), "pieces", "Three pieces")})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BMST(dataclasses.replace(TINY, style="bach")).save_pretrained(tmp_path / "tiny")
        BMST(dataclasses.replace(TINY, style="swing")).save_pretrained(tmp_path / "other")
    head = "---\nlicense: apache-2.0\n---\n\n# Tiny\n\n"
    (tmp_path / "tiny" / "README.md").write_text(f"{head}<!-- results:start -->\n<!-- results:end -->\n")
    return tmp_path


def rows_of(place: Path) -> dict[tuple[str, int, str], dict[str, str]]:
    with (place / "results.csv").open(encoding="utf-8", newline="") as file:
        return {(row["system"], int(row["hidden"]), row["score"]): row for row in csv.DictReader(file)}


def test_rules_and_models_stand_in_one_table(place: Path) -> None:
    options = ["--hidden", "0", "2", "--write", "--out", str(place)]
    run.main(["--rules", *options])
    rules = rows_of(place)
    assert {system for system, *_ in rules} == {
        "silence", "copy_previous", "copy_next", "copy_every_4", "copy_every_2",
    }  # fmt: skip
    # a held bass over two notes: 16 steps of one, 8 of the other, in a bar of 32; the bass for 24
    silent = rules["silence", 0, "piano_roll_error_rate"]
    assert float(silent["value"]) == pytest.approx(48 / (32 * 84), abs=1e-6)
    assert silent["pieces"] == "3"
    assert float(silent["groups"]) == pytest.approx(3)
    assert float(rules["silence", 0, "cell_nll"]["value"]) < 1  # its answers have the probabilities of training
    run.main(["--model", str(place / "other"), *options[:3]])  # of a style that no corpus has: nothing to judge
    run.main(["--model", str(place / "tiny"), *options])
    both = rows_of(place)
    assert {key: row for key, row in both.items() if key[0] != "bmst"} == rules
    assert int(both["bmst", 0, "cell_f1"]["parameters"]) > 1000
    page = (place / "README.md").read_text(encoding="utf-8")
    assert "### Three pieces" in page
    assert page.count("| `bmst` |") == 2
    assert "3 pieces of test" in page
    card = (place / "tiny" / "README.md").read_text(encoding="utf-8")
    held = {metric["type"]: metric["value"] for metric in read_index(card)[0]["results"][0]["metrics"]}
    assert held["cell_f1"] == float(both["bmst", 0, "cell_f1"]["value"])
    assert card.count("| `bmst` |") == 2
    assert "| `copy_every_4` |" in card


def test_the_shipped_table_is_that_of_the_page() -> None:
    page = (run.HERE / "README.md").read_text(encoding="utf-8")
    with (run.HERE / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["score"] in run.SHOWN:
            assert run._shown(row["score"], row) in page
    assert {row["corpus"] for row in rows} == set(run.CORPORA)
