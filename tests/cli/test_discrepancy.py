from __future__ import annotations

import json
from pathlib import Path

import pytest

from music_evals.benchmark.records import read_records
from music_evals.cli import main

DEMO = Path(__file__).resolve().parents[2] / "datasets_scripts" / "caimd"

pytest.importorskip("matplotlib")


def arguments(out: Path, *more: str) -> list[str]:
    return [
        "discrepancy",
        "--dataset",
        str(DEMO),
        "--config",
        "demo",
        "--encoder",
        "char-ngrams",
        "--out",
        str(out),
        *more,
    ]


def test_the_demo_songs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(tmp_path, "--by", "genre,emotion,purpose", "--level", "tags", "--permutations", "100")) == 0
    told = capsys.readouterr().out
    assert "by purpose" in told
    assert "note: the encoder char-ngrams compares spelling" in told
    assert str(tmp_path) in told
    assert "discrepancy.svg" in told
    assert len(read_records(tmp_path / "records"))
    for name in ("results.json", "table.md", "cells.csv", "discrepancy.svg", "report.html"):
        assert (tmp_path / name).is_file()


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = arguments(tmp_path, "--by", "emotion", "--permutations", "50", "--no-plot", "--json")
    assert main(command) == 0
    told = capsys.readouterr()
    results = json.loads(told.out)
    assert results["task"] == "discrepancy"
    assert results["dataset"]["config"] == "demo"
    assert list(results["groups"]) == ["emotion"]
    assert "results: " in told.err
    assert not (tmp_path / "discrepancy.svg").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--by", "genr"], "did you mean genre"),
        (["--encoder", "no/such-model"], "hf download no/such-model"),
        (["--split", "train"], "split"),
        (["--permutations", "0"], "--permutations must be at least 1"),
    ],
)
def test_what_is_wrong_is_told(
    more: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path, *more)) == 2
    assert message in capsys.readouterr().err
