"""What is said of the scales of music context preservation agrees with the benchmark that measured it."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from music_evals.metrics.scales import COMPANIONS, PRESERVATION_METRICS

RESPONSES = Path(__file__).resolve().parents[2] / "benchmarks" / "preservation_validity" / "responses.csv"
SCALES = {name: scale for name, scale in {**PRESERVATION_METRICS, **COMPANIONS}.items() if not math.isnan(scale.chance)}


@pytest.fixture(scope="module")
def unrelated() -> list[dict[str, str]]:
    with RESPONSES.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "unrelated" and row["half"] == "held_out"]
    return [row for row in rows if row["renderer"] != "truth"]


@pytest.mark.parametrize("name", SCALES)
def test_chance_is_the_mean_over_unrelated_pairs(name: str, unrelated: list[dict[str, str]]) -> None:
    assert len(unrelated) == 2  # one row a renderer
    measured = sum(float(row[name]) for row in unrelated) / len(unrelated)
    assert SCALES[name].chance == pytest.approx(measured, abs=0.05 if name == "delta_bpm" else 0.0051)
