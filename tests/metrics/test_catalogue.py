"""The catalogue: every score once, its facts consistent, and its chance values those that the benchmark measured."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest

from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.metrics.arrays import PRESERVATION_VARIANTS
from music_evals.metrics.catalogue import (
    AUXILIARY,
    CATALOGUE,
    CELL_SCORES,
    DESCRIPTION_SCORES,
    EDITING_SCORES,
    EFFORT_RATIOS,
    HIDDEN_CELL_SCORES,
    INPAINTING_EXTENSIONS,
    INPAINTING_METRICS,
    LIKELIHOODS,
    LYRIC_CONTENT,
    LYRIC_SCORES,
    MELODY_SCORES,
    PRESERVATION_METRICS,
    RELEASE_SCORES,
    STYLE_SCORES,
    SUCCESS_SCORES,
    TEXT_SCORES,
    Metric,
    metric_of,
)
from music_evals.metrics.lyric_structure import MAXIMUM

ROOT = Path(__file__).resolve().parents[2]
CARDS, RESPONSES = ROOT / "metrics", ROOT / "benchmarks" / "preservation_validity" / "responses.csv"
BLOCKS = (
    INPAINTING_METRICS, INPAINTING_EXTENSIONS, LIKELIHOODS, PRESERVATION_METRICS, RELEASE_SCORES, AUXILIARY,
    SUCCESS_SCORES, TEXT_SCORES,
    LYRIC_SCORES, LYRIC_CONTENT, DESCRIPTION_SCORES, CELL_SCORES, HIDDEN_CELL_SCORES, STYLE_SCORES, MELODY_SCORES,
    EFFORT_RATIOS, EDITING_SCORES)  # fmt: skip
MEASURED = [name for name, metric in CATALOGUE.items() if not math.isnan(metric.chance) and metric.facet != "timbre"]


@pytest.fixture(scope="module")
def unrelated() -> list[dict[str, str]]:
    with RESPONSES.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "unrelated" and row["half"] == "held_out"]
    return [row for row in rows if row["renderer"] != "truth"]


@pytest.mark.parametrize("name", MEASURED)
def test_chance_is_the_mean_over_unrelated_pairs(name: str, unrelated: list[dict[str, str]]) -> None:
    assert len(unrelated) == 2  # one row a renderer
    measured = sum(float(row[name]) for row in unrelated) / len(unrelated)
    assert CATALOGUE[name].chance == pytest.approx(measured, abs=0.05 if name == "delta_bpm" else 0.0051)


def test_chance_of_timbre_is_that_of_its_own_benchmark() -> None:
    with RESPONSES.with_name("timbre.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["edit"] == "unrelated" and row["input"] != "recordings"]
    measured = sum(float(row["timbre_similarity"]) for row in rows) / len(rows)
    assert len(rows) == 2 * 14 * 13
    assert CATALOGUE["timbre_similarity"].chance == pytest.approx(measured, abs=0.0051)


def test_points_of_lyrics_add_up_to_the_total() -> None:
    highest = {name: metric.best for name, metric in LYRIC_SCORES.items()}
    assert highest.pop("lyric_structure_corrected") == 100  # of the variant without a reward
    assert highest.pop("lyric_structure") == sum(highest.values()) == 110
    assert [name.removeprefix("lyric_") for name in highest] == list(MAXIMUM)


def test_every_score_stands_once_under_its_own_name() -> None:
    assert len(CATALOGUE) == sum(map(len, BLOCKS))
    assert all(name == metric.name for name, metric in CATALOGUE.items())
    assert all(len({metric.task for metric in block.values()}) == 1 for block in BLOCKS)
    assert all(metric.features for metric in CATALOGUE.values() if metric.task == "preservation")


def test_the_papers_are_those_that_the_cards_cite() -> None:
    cards = "".join(card.read_text(encoding="utf-8") for card in CARDS.glob("*/README.md"))
    papers = {metric.paper for metric in CATALOGUE.values()} - {""}
    assert all(f"{{{paper}," in cards for paper in papers)
    own = {*AUXILIARY, *STYLE_SCORES, *MELODY_SCORES, "repeated_note_rate", "lyric_structure_corrected"}
    own |= {"lyric_structure_gated", "lyric_wordlikeness"}
    assert {name for name, metric in CATALOGUE.items() if not metric.paper} >= own


@pytest.mark.parametrize(("direction", "best"), [("higher", 2.0), ("lower", -1.0), ("zero", 0.0), ("none", math.nan)])
def test_the_best_follows_from_range_and_direction(direction: str, best: float) -> None:
    metric = Metric("x", "An x", "toys", low=-1.0, high=2.0, direction=direction)
    assert metric.best == pytest.approx(best, nan_ok=True)
    assert metric.heading == metric.title == "An x"


@pytest.mark.parametrize(
    ("options", "unseen"),
    [
        ({"features": ("key",)}, (0.0, 1.0)),
        ({"features": ("segments",), "low": -1.0}, (0.0, 1.0)),  # a failure shares nothing, and is no opposite
        ({"features": ("beats",), "low": -0.5, "direction": "zero"}, (-0.5, 1.0)),
        ({"features": ("beats",), "high": math.inf, "direction": "lower", "chance": 24.4}, (0.0, 24.4)),
        ({"features": ("beats",), "high": math.inf, "direction": "lower"}, None),
        ({"features": ("beats",), "low": -math.inf, "high": math.inf, "direction": "zero"}, None),
        ({}, None),  # no extractor that could fail
    ],
)
def test_what_a_sample_may_lack_follows_from_features_and_range(
    options: dict[str, Any], unseen: tuple[float, float] | None
) -> None:
    assert Metric("x", "An x", "toys", **options).unseen == unseen


@pytest.mark.parametrize(
    "wrong", [{"direction": "up"}, {"kind": "mean"}, {"definition": 0}, {"low": 1.0}, {"low": math.nan}]
)
def test_a_metric_that_contradicts_itself_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="x: expected a direction"):
        Metric("x", "An x", "toys", **wrong)


def test_results_of_another_definition_are_labelled() -> None:
    changed = Metric("x", "An x", "toys", definition=3)
    assert [changed.definition_under(variant) for variant in PRESERVATION_VARIANTS] == [3, 1, 3, 1]
    assert changed.heading_of("corrected", 3) == changed.heading_of("paper", 3) == "An x"
    assert changed.heading_of("corrected", 1) == "An x, definition 1"
    assert changed.heading_of("official", 3) == "An x, definition 3"


def test_an_unknown_score_is_refused_by_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="note_f1"):
        metric_of("note_f2")
