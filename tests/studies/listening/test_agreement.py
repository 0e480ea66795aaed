"""Metrics of a run beside ratings: who meets whom, what is turned round, what is corrected and said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from music_evals.benchmark.load import LoadedResults
from music_evals.benchmark.results import build_results
from music_evals.benchmark.run import definitions_of
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tasks.preservation.task import PRESERVATION
from music_evals.errors import NoDataError
from music_evals.stats import holm
from music_evals.studies.listening.agreement import agreement_of_run, agreement_text
from music_evals.studies.pairs import StudyPair
from music_evals.studies.ratings import Rating

METRICS = ("circle_of_fifths_distance", "beat_f_measure", "tempo_log2")
ITEMS, SYSTEMS, LISTENERS = [f"i{n}" for n in range(6)], ("a", "b", "c"), [f"p{n}" for n in range(5)]


@pytest.fixture
def quality(rng: np.random.Generator) -> dict[tuple[str, str], float]:
    return {(item, system): float(rng.random()) + 0.3 * n for item in ITEMS for n, system in enumerate(SYSTEMS)}


@pytest.fixture
def run(quality: dict[tuple[str, str], float]) -> LoadedResults:
    """A run whose key distance falls with the quality, whose beats follow it, and whose tempo is off on both sides."""
    header = {"variant": "corrected", "metrics": METRICS[:2], "companions": METRICS[2:], "extractors": {}}
    dataset = {"id": "d", "config": None, "split": None, "revision": None}
    rows: list[dict[str, Any]] = [
        {"kind": "run", "task": "preservation", "dataset": dataset, "versions": {}, **header, **definitions_of(header)},
        {"kind": "selection", "systems": list(SYSTEMS)},
    ]
    for item, system in quality:
        sides = {side: {"name": "f", "content": f"{side} {item}"} for side in ("reference", "estimate")}
        about = {"item": item, "system": system, "group": f"song {ITEMS.index(item) // 2}", "modality": "audio"}
        rows.append({"kind": "pair", **about, **sides, "treatment": ""})
    for (item, system), good in quality.items():
        sign = 1 if item in ITEMS[::2] else -1
        for metric, value in zip(METRICS, (1 - good / 2, good / 2, sign * (1 - good / 2)), strict=True):
            about = {"item": item, "system": system, "content": [f"reference {item}", f"estimate {item}"]}
            rows.append({"kind": "score", **about, "metric": metric, "variant": "corrected", "value": value, "n": 1})
    found = read_scores(rows, PRESERVATION)
    return LoadedResults(Path("run"), "preservation", build_results(found, PRESERVATION), found, found.records)


def ratings_of(quality: dict[tuple[str, str], float], *facets: str, noise: float = 0.0) -> list[Rating]:
    rng = np.random.default_rng(3)
    return [
        Rating(item=item, system=system, listener=who, facet=facet, rating=good + noise * float(rng.normal()))
        for facet in facets
        for (item, system), good in quality.items()
        for who in LISTENERS
    ]


def rows_of(made: dict[str, Any], question: str) -> dict[str, dict[str, Any]]:
    return {row["metric"]: row for row in made["agreement"] if row["question"] == question}


def test_directions_are_turned(run: LoadedResults, quality: dict[tuple[str, str], float]) -> None:
    """A distance that falls, and a signed change that nears 0, agree with people as much as a score that rises."""
    made = agreement_of_run(run, ratings_of(quality, "overall"), n_resamples=50)
    rows = rows_of(made, "overall")
    assert list(rows) == list(METRICS)
    for row in rows.values():
        assert row["stimuli"]["estimate"] == pytest.approx(1)
        assert row["preferences"]["estimate"] == 1
    about = made["questions"]["overall"]
    assert (about["n_ratings"], about["n_stimuli"], about["n_listeners"], about["n_clusters"]) == (90, 18, 5, 3)
    assert about["alpha"] == about["leave_one_out"] == pytest.approx(1)
    json.dumps(made, allow_nan=False)


def test_numbers_are_those_of_the_ratings(run: LoadedResults, quality: dict[tuple[str, str], float]) -> None:
    ratings = ratings_of(quality, "rhythm", noise=1.0)
    made = agreement_of_run(run, ratings, n_resamples=50)
    means = [np.mean([one.rating for one in ratings if (one.item, one.system) == key]) for key in quality]
    expected = spearmanr(list(quality.values()), means)[0]
    assert rows_of(made, "rhythm")["beat_f_measure"]["stimuli"]["estimate"] == pytest.approx(expected)


def test_all_tests_of_the_report_are_corrected_together(
    run: LoadedResults, quality: dict[tuple[str, str], float]
) -> None:
    made = agreement_of_run(run, ratings_of(quality, "rhythm", "harmony", noise=0.5), n_resamples=50)
    kinds = ("stimuli", "preferences")
    p_values = [row[kind]["p_value"] for row in made["agreement"] for kind in kinds]
    assert len(p_values) == 2 * 3 * 2
    assert [row[kind]["p_holm"] for row in made["agreement"] for kind in kinds] == pytest.approx(list(holm(p_values)))
    assert all(row["systems"]["p_value"] is row["systems"]["p_holm"] is None for row in made["agreement"])


def test_what_is_not_in_the_run_tells_of_the_listeners_alone(
    run: LoadedResults, quality: dict[tuple[str, str], float]
) -> None:
    plain = agreement_of_run(run, ratings_of(quality, "overall", noise=0.5), n_resamples=50)
    hidden = {**quality, **{(item, "reference"): 9.0 for item in ITEMS}}
    made = agreement_of_run(run, [*ratings_of(hidden, "overall")], n_resamples=50)
    about = made["questions"]["overall"]
    assert (about["n_stimuli"], about["n_judged"], about["not_judged"]) == (24, 18, {"reference": 6})
    assert rows_of(made, "overall")["beat_f_measure"]["stimuli"]["n"] == 18
    assert any("rated and not judged in the run" in note and "reference (6)" in note for note in made["notes"])
    assert not any("not judged" in note for note in plain["notes"])


def test_names_of_a_study_are_found_by_its_key(run: LoadedResults, quality: dict[tuple[str, str], float]) -> None:
    ratings = [
        Rating(item=one.item, system=f"{one.system} (sample)", listener=one.listener, rating=one.rating)
        for one in ratings_of(quality, "overall")
    ]
    with pytest.raises(
        NoDataError, match=r"the ratings are of a \(sample\), b \(sample\), c \(sample\).*key of the study"
    ):
        agreement_of_run(run, ratings, n_resamples=20)

    def key(folder: str) -> list[StudyPair]:
        files = {"reference": "r.flac", "estimate": "e.flac"}
        return [
            StudyPair(item_id=item, group="g", system=f"{system} (sample)", run=folder, run_system=system, **files)
            for item, system in quality
        ]

    made = agreement_of_run(run, ratings, key=key("run"), n_resamples=20)
    assert rows_of(made, "overall")["beat_f_measure"]["stimuli"]["estimate"] == pytest.approx(1)
    renamed = agreement_of_run(run, ratings, key=key("its old name"), n_resamples=20)
    assert renamed["agreement"] == made["agreement"]
    one_elsewhere = [*key("run")[:-1], key("another")[-1]]
    assert agreement_of_run(run, ratings, key=one_elsewhere, n_resamples=20)["questions"]["overall"]["n_judged"] == 17


def test_few_listeners_and_little_agreement_are_said(run: LoadedResults, quality: dict[tuple[str, str], float]) -> None:
    ratings = ratings_of(quality, "overall", noise=5.0)
    made = agreement_of_run(run, ratings, n_resamples=20, level="ordinal")
    assert any("listeners agree little with each other (alpha" in note for note in made["notes"])
    assert any("3 groups of items and 5 listeners the intervals are rough" in note for note in made["notes"])
    alone = agreement_of_run(run, [one for one in ratings if one.listener == "p0"], n_resamples=20)
    assert any("no interval, no test" in note for note in alone["notes"])
    assert all(row["stimuli"]["low"] is row["stimuli"]["p_holm"] is None for row in alone["agreement"])
    assert alone["questions"]["overall"]["alpha"] is None
    text = agreement_text(made)
    assert "overall: 90 ratings by 5 listeners of 6 items and 3 systems; Krippendorff's alpha (ordinal)" in text
    assert "Circle-of-fifths distance ↓" in text
    assert "Holm-corrected" in text
    assert "note: overall: listeners agree little" in text
