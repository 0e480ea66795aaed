from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

from music_evals.benchmark.pairs import CEILING, UNRELATED
from music_evals.benchmark.preservation_plots import (
    RIM,
    differing_notes,
    differing_spans,
    outward,
    timeline,
    unmatched,
)
from music_evals.benchmark.preservation_results import build_results, collect
from music_evals.benchmark.preservation_tables import markdown_report, significant, text_report
from music_evals.benchmark.published import PRESERVATION_TABLE
from music_evals.errors import CorruptRecordsError
from music_evals.metrics.scales import PRESERVATION_METRICS
from music_evals.stats import bootstrap_mean

METRICS = ["circle_of_fifths_distance", "beat_f_measure"]


def records(scores: dict[tuple[str, str], list[Any]], groups: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """Return records of (system, item) -> one value, None (undefined) or text (error) a metric."""
    systems = list(dict.fromkeys(system for system, _ in scores if system not in {CEILING, UNRELATED}))
    header = {
        "variant": "corrected",
        "metrics": METRICS,
        "companions": [],
        "extractors": {"features": {}},
        "versions": {},
    }
    dataset = {"id": "d", "config": None, "split": None, "revision": None}
    rows: list[dict[str, Any]] = [
        {"kind": "run", "task": "preservation", "dataset": dataset, "versions": {}, **header},
        {"kind": "selection", "systems": systems},
    ]
    for system, item in scores:
        about = {"item": item, "system": system, "group": (groups or {}).get(item, item), "entrance": "audio"}
        sides = {side: {"name": f"{item}.wav", "content": f"{side} {item}"} for side in ("reference", "estimate")}
        rows.append({"kind": "pair", **about, **sides, "treatment": ""})
    for (system, item), values in scores.items():
        for metric, value in zip(METRICS, values, strict=True):
            found: dict[str, Any] = {"value": value}
            if isinstance(value, str):
                found = {"error": value}
            elif value is None:
                found |= {"reason": "reference: silent"}
            about = {"item": item, "system": system, "content": [f"reference {item}", f"estimate {item}"]}
            rows.append({"kind": "score", **about, "metric": metric, "variant": "corrected", **found, "n": 1})
    return rows


def results_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return build_results(collect(rows), n_resamples=200)


def test_means_intervals_and_counts_are_those_of_the_pairs() -> None:
    values = {"a": 0.2, "b": 0.4, "c": 0.9, "d": None, "e": "BackendError: broken"}
    groups = {"a": "x", "b": "x"}
    results = results_of(records({("s", item): [0.5, value] for item, value in values.items()}, groups))
    cell = results["scores"]["s"]["beat_f_measure"]
    assert cell["value"] == pytest.approx(0.5)  # (0.2 + 0.4 + 0.9) / 3
    assert (cell["n"], cell["n_defined"], cell["n_failed"]) == (5, 3, 1)
    column = np.array([0.2, 0.4, 0.9, np.nan, np.nan])
    expected = bootstrap_mean(column, np.array(["x", "x", "c", "d", "e"]), n_resamples=200)
    assert (cell["low"], cell["high"]) == (expected.low, expected.high)
    assert results["systems"]["s"] == {"role": "system", "entrances": ["audio"], "n_pairs": 5, "n_groups": 4}
    assert results["undefined"] == [
        {"item": "d", "system": "s", "metric": "beat_f_measure", "reason": "reference: silent"}
    ]
    assert results["failures"] == [
        {"item": "e", "system": "s", "metric": "beat_f_measure", "error": "BackendError: broken"}
    ]
    json.dumps(results, allow_nan=False)


def test_the_order_of_records_changes_nothing() -> None:
    rows = records({(system, item): [0.1 * n, 0.05 * n] for system in "st" for n, item in enumerate("abcdef")})
    shuffled = copy.deepcopy(rows[:2]) + rows[2:14][::-1] + rows[14:][::-1]
    assert results_of(shuffled) == results_of(rows)


def test_two_systems_are_tested_on_the_items_that_they_share() -> None:
    scores = {("s", f"{n}"): [0.0, 0.9] for n in range(8)} | {("t", f"{n}"): [0.0, 0.4] for n in range(2, 10)}
    results = results_of(records(scores))
    tests = {test["metric"]: test for test in results["comparisons"]}
    assert tests["beat_f_measure"]["n"] == 6
    assert tests["beat_f_measure"]["difference"] == pytest.approx(0.5)
    assert tests["beat_f_measure"]["p_value"] == pytest.approx(2 / 2**6)  # all six signs alike, or all turned
    assert tests["circle_of_fifths_distance"]["p_value"] == 1
    assert tests["beat_f_measure"]["p_holm"] == pytest.approx(2 * 2 / 2**6)  # the smaller of two, times two
    assert results["best"] == {"circle_of_fifths_distance": "s", "beat_f_measure": "s"}
    assert [test["metric"] for test in significant(results)] == []
    more = {("s", f"{n}"): [0.0, 0.9] for n in range(8)} | {("t", f"{n}"): [0.0, 0.4] for n in range(8)}
    assert [test["metric"] for test in significant(results_of(records(more)))] == ["beat_f_measure"]


def test_items_with_another_original_are_not_compared() -> None:
    rows = records({("s", "a"): [0.0, 1.0], ("t", "a"): [0.0, 0.5], ("s", "b"): [0.0, 1.0], ("t", "b"): [0.0, 0.5]})
    changed = json.loads(json.dumps(rows).replace("reference a", "reference other", 1))
    assert [test["n"] for test in results_of(changed)["comparisons"]] == [1, 1]


def test_nobody_is_best_by_failing() -> None:
    scores = {("s", "a"): [0.1, 0.5], ("s", "b"): [0.1, 0.5], ("t", "a"): [0.0, 1.0], ("t", "b"): ["E: x", "E: x"]}
    results = results_of(records(scores))
    assert results["best"] == {"circle_of_fifths_distance": "s", "beat_f_measure": "s"}
    assert results["failures"] == [{"item": "b", "system": "t", "metric": None, "error": "E: x"}]  # one, not two


def test_controls_stand_outside() -> None:
    scores = {("s", "a"): [0.5, 0.5], ("t", "a"): [0.5, 0.6], (CEILING, "a"): [0.0, 1.0], (UNRELATED, "a"): [0.3, 0.1]}
    results = results_of(records(scores))
    assert [about["role"] for about in results["systems"].values()] == ["system", "system", "control", "control"]
    assert {test[side] for test in results["comparisons"] for side in "ab"} == {"s", "t"}
    assert results["best"]["beat_f_measure"] == "t"
    text = text_report(results)
    assert "(same music)" in text
    assert "(unrelated music)" in text
    assert "| `same music` (control) |" in markdown_report(results)


def test_only_the_last_selection_counts() -> None:
    rows = records({("s", "a"): [0.0, 0.9], ("s", "b"): [0.0, 0.1]})
    last = [rows[1], rows[2]]
    results = results_of([*rows, *last])
    assert results["scores"]["s"]["beat_f_measure"]["value"] == 0.9
    assert results["scores"]["s"]["beat_f_measure"]["n"] == 1


def test_scores_of_other_bytes_do_not_count() -> None:
    rows = records({("s", "a"): [0.0, 0.9]})
    rows.append({**rows[-1], "content": ["reference a", "estimate of last week"], "value": 0.1})
    assert results_of(rows)["scores"]["s"]["beat_f_measure"]["value"] == 0.9


def test_records_of_something_else_are_damage() -> None:
    with pytest.raises(CorruptRecordsError):
        collect([{"kind": "run"}])
    with pytest.raises(CorruptRecordsError):
        collect([{"kind": "run"}, {"kind": "selection"}])


def test_tables_tell_direction_interval_and_what_is_missing() -> None:
    results = results_of(records({("s", "a"): [0.0, None], ("s", "b"): [0.5, 0.25], ("s", "c"): [0.0, 0.75]}))
    text = text_report(results)
    assert "Circle-of-fifths distance ↓" in text
    assert "Beat F-measure ↑" in text
    assert "n 2/3" in text
    assert "0.500" in text
    assert "published, not run by us" in text
    markdown = markdown_report(results)
    assert "| system | Beat F-measure ↑ |" in markdown
    assert "### Harmony" in markdown


def test_published_rows_are_those_of_the_paper() -> None:
    assert list(PRESERVATION_TABLE) == ["Vanilla", "MusicGen", "MusiConGen", "MusicMagus", "ZETA", "RefinPaint"]
    assert all(set(row) == set(PRESERVATION_METRICS) for row in PRESERVATION_TABLE.values())
    assert PRESERVATION_TABLE["ZETA"]["delta_bpm"] == 4.125
    assert PRESERVATION_TABLE["MusiConGen"]["chroma_dtw_similarity"] == 0.902
    assert PRESERVATION_TABLE["RefinPaint"]["motif_recall"] == 0.568
    assert results_of(records({("s", "a"): [0.0, 1.0]}))["published"]["table"]["MusicGen"] == {
        "circle_of_fifths_distance": 0.197,
        "beat_f_measure": 0.273,
    }


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("beat_f_measure", 1.0, 1.0),
        ("beat_f_measure", 0.25, 0.25),
        ("circle_of_fifths_distance", 0.0, 1.0),
        ("circle_of_fifths_distance", 5 / 6, 1 / 6),
        ("segment_ari", -0.5, 0.0),
        ("segment_ari", 0.5, 0.5),
        ("delta_bpm", 0.0, 1.0),
        ("delta_bpm", RIM["delta_bpm"] / 4, 0.75),
        ("delta_bpm", 1000.0, 0.0),
    ],
)
def test_outward_is_better(name: str, value: float, place: float) -> None:
    assert outward(name, value, PRESERVATION_METRICS[name]._asdict()) == pytest.approx(place)


def test_an_undefined_score_has_no_place() -> None:
    assert np.isnan(outward("beat_f_measure", None, PRESERVATION_METRICS["beat_f_measure"]._asdict()))


def test_what_differs_between_two_files() -> None:
    assert unmatched([1.0, 2.0, 3.0], [1.07, 2.08], 0.07) == [False, True, True]
    assert unmatched([1.0], [], 0.07) == [True]
    assert unmatched([], [1.0], 0.07) == []
    own = [(0.0, 2.0, "C:maj"), (2.0, 4.0, "G:maj")]
    other = [(0.0, 1.0, "C:maj"), (1.0, 3.0, "A:min"), (3.0, 3.5, "G:maj")]
    assert differing_spans(own, other) == [(1.0, 2.0), (2.0, 3.0)]
    notes = [(0.0, 1.0, 60.0), (1.0, 2.0, 62.0), (2.0, 3.0, 64.0)]
    edited = [(0.05, 1.0, 60.3), (1.0, 2.0, 63.0), (2.2, 3.0, 64.0)]
    assert differing_notes(notes, edited) == [False, True, True]


def test_a_timeline_shows_what_there_is() -> None:
    reference = {
        "duration_sec": 10.0,
        "beats": [1.0, 2.0, 3.0],
        "chords": [[0.0, 5.0, "C:maj"], [5.0, 10.0, "<N>"]],
        "segments": [[0.0, 4.0, "A"], [4.0, 10.0, "B"]],
        "melody": [[0.0, 1.0, 60.0], [1.0, 2.0, 62.0]],
    }
    estimate = {**reference, "beats": [1.0, 2.5], "melody": [[0.0, 1.0, 60.0]]}
    picture = timeline(reference, estimate, label='a "pair"')
    assert 'aria-label="Timeline' not in picture
    assert 'aria-label="a &quot;pair&quot;"' in picture
    assert "&lt;N&gt;" in picture
    assert picture.count('<line class="differs"') == 3  # beats 2 and 3 of the original, 2.5 of the edit
    assert picture.count("note differs") == 1
    assert picture.count("note edit") == 1
    bare = timeline({"duration_sec": 1.0}, {"duration_sec": 0.0}, label="nothing")
    assert bare.count("<text") >= 1
    assert "rect" not in bare
