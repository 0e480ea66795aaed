"""The published scores of this repository are what its commands give."""

from __future__ import annotations

import csv
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARK = ROOT / "benchmarks" / "jsb_chorales"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("jsb_chorales_run", BENCHMARK / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stored(protocol: str) -> dict[tuple[str, str, str], dict[str, str]]:
    with (BENCHMARK / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["protocol"] == protocol]
    return {(row["subset"], row["system"], row["metric"]): row for row in rows}


def _three(value: float) -> str:
    """Return three decimals of a value that was rounded to six, either way where it lies between two."""
    return f"({value - 1e-6:.3f}|{value + 1e-6:.3f})"


def test_the_page_shows_the_stored_note_f1_of_every_system() -> None:
    page = (BENCHMARK / "README.md").read_text(encoding="utf-8")
    rows = [row for key, row in stored("honest").items() if key[2] == "note_f1"]
    assert rows
    for row in rows:
        # without spread between the songs there is no interval
        low, high = (_three(float(row[key])) if row[key] else "" for key in ("low", "high"))
        interval = rf" \({low} to {high}\)" if low else " "
        assert re.search(rf"`{row['system']}`\*? \| {float(row['value']):.3f}.?{interval}", page), row


def test_the_page_quotes_the_scores_under_the_published_conditions() -> None:
    page = " ".join((BENCHMARK / "README.md").read_text(encoding="utf-8").split())
    rows = stored("official")
    for system in ("copy_past", "anticipation_rnn:teacher_forced (leaks)"):
        position, pitch, rhythm = (
            f"{float(rows['all', system, metric]['value']):.3f}"
            for metric in ("position_score", "pitch_accuracy", "rhythm_accuracy")
        )
        assert f"scores {position} for positions, {pitch} for pitch and {rhythm} for rhythm" in page


def test_the_control_is_perfect_and_no_system_leaks() -> None:
    perfect = {"position_score": 1, "pitch_accuracy": 1, "rhythm_accuracy": 1, "note_f1": 1}
    perfect |= dict.fromkeys(("silence_divergence", "pitch_class_divergence", "groove_divergence"), 0)
    honest = stored("honest")
    for subset in ("all", "unseen"):
        for metric, value in perfect.items():
            assert float(honest[subset, "reference", metric]["value"]) == value
    assert not [key for key in honest if "teacher_forced" in key[1]]


def test_parts_of_the_windows_as_the_pages_show_them(benchmark: ModuleType) -> None:
    cells = {"reference": {"value": 1.0, "low": None, "high": None}, "copy": {"value": 0.25, "low": 0.2, "high": 0.3}}
    sizes = {"all": 8, "near copies of training": 2}
    results = {
        "systems": {"reference": {"role": "control"}, "copy": {"role": "baseline"}},
        "tables": {"all": {"ranking": ["copy"], "scores": {name: {} for name in cells}}},
        "parts": {name: {"n_items": n, "n_songs": 1, "scores": cells} for name, n in sizes.items()},
    }
    assert benchmark.near_text(results).startswith("2 of the 8 windows (25%) are near copies")
    assert benchmark.parts_text(results).splitlines()[2:] == [
        "| system | all (8) | near copies of training (2) |",
        "| --- | ---: | ---: |",
        "| `copy` | 0.250 | 0.250 |",
        "| `reference` | 1.000 | 1.000 |",
    ]
    rows = list(benchmark.part_rows(results))
    assert rows[1] == {
        "part": "all", "windows": "8", "system": "copy", "value": "0.250000", "low": "0.200000", "high": "0.300000",
    }  # fmt: skip
    assert (rows[0]["low"], len(rows)) == ("", 4)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["honest", "official"])
def test_the_scores_of_the_baselines_come_out_again(protocol: str, benchmark: ModuleType, tmp_path: Path) -> None:
    """Every number of every baseline; the networks' depend on the processor's rounding, and are left out."""
    results: dict[str, Any] = benchmark.judge(protocol, tmp_path, models=())
    expected = stored(protocol)
    for row in benchmark.rows_of(protocol, results):
        held = expected[row["subset"], row["system"], row["metric"]]
        assert {key: row[key] for key in row if key != "p_holm"} == {key: held[key] for key in row if key != "p_holm"}
