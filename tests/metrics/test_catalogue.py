"""What is said of the scales of music context preservation agrees with the benchmark that measured it."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from music_evals.metrics.catalogue import COMPANIONS, LYRIC_SCORES, PRESERVATION_METRICS
from music_evals.pipelines.lyrics import SCORES

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


def test_points_of_lyrics_stand_once() -> None:
    assert {name: (scale.low, scale.high, scale.direction, scale.title) for name, scale in LYRIC_SCORES.items()} == {
        name: info[:4] for name, info in SCORES.items()
    }
    highest = {name: scale.best for name, scale in LYRIC_SCORES.items()}
    assert highest.pop("lyric_structure") == sum(highest.values()) == 110
    assert [info.field for info in SCORES.values()] == [
        "total", *(name.removeprefix("lyric_") for name in highest),
    ]  # fmt: skip
