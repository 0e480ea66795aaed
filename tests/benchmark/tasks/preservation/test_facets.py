"""One calibrated score a facet, what the controls say of the scores, and what a corpus shares."""

from __future__ import annotations

import json
import re
import types
from typing import Any

import numpy as np
import pytest

from music_evals.benchmark.contents import caveats
from music_evals.benchmark.results import build_results
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tables import markdown_report, text_report
from music_evals.benchmark.tasks.preservation.facets import grade
from music_evals.benchmark.tasks.preservation.pairs import CEILING, UNRELATED
from music_evals.benchmark.tasks.preservation.report import render_report
from music_evals.benchmark.tasks.preservation.screen import text_report as screen_text
from music_evals.benchmark.tasks.preservation.task import PRESERVATION
from music_evals.cli.preserve import _print_grades

METRICS = ("circle_of_fifths_distance", "major_minor_score", "beat_f_measure", "motif_recall")
N = 6


def records(
    scores: dict[str, list[list[float | None]]],
    *,
    keys: int = N,
    tempi: int = N,
    metrics: tuple[str, ...] = METRICS,
    companions: tuple[str, ...] = (),
    variant: str = "corrected",
    n_long: int = 0,
) -> list[dict[str, Any]]:
    """Return records of system -> the scores of each of `N` items, over originals in some keys and tempi.

    The first `n_long` originals last 90 s and have sections A and B.
    """
    header = {"variant": variant, "metrics": metrics, "companions": companions, "extractors": {"features": {}}}
    dataset = {"id": "d", "config": None, "split": None, "revision": None}
    rows: list[dict[str, Any]] = [
        {"kind": "run", "task": "preservation", "dataset": dataset, "versions": {}, **header},
        {"kind": "selection", "systems": [system for system in scores if system not in {CEILING, UNRELATED}]},
    ]
    contents = {
        system: [(f"o{n}", f"o{(n + 1) % N}" if system == UNRELATED else f"{system}{n}") for n in range(N)]
        for system in scores
    }
    for system, sides in contents.items():
        for n, (original, edit) in enumerate(sides):
            about = {"item": f"{n}", "system": system, "group": original, "modality": "audio", "treatment": ""}
            files = {"reference": {"name": "r", "content": original}, "estimate": {"name": "e", "content": edit}}
            rows.append({"kind": "pair", **about, **files})
    for system, sides in contents.items():
        for n, row in enumerate(scores[system]):
            for metric, value in zip((*metrics, *companions), row, strict=True):
                about = {"item": f"{n}", "system": system, "content": list(sides[n]), "metric": metric}
                found = {"value": value} if value is not None else {"value": None, "reason": "silent"}
                rows.append({"kind": "score", **about, "variant": variant, **found, "n": 1})
    for n in range(N):
        heard = {"key": [7 * (n % keys) % 12, "major"], "beats": [k * 0.5 * 1.1 ** (n % tempi) for k in range(8)]}
        if n < n_long:
            heard["segments"] = [[0.0, 40.0, "A"], [40.0, 90.0, "B"]]
        duration_sec = 90.0 if n < n_long else 9.0
        rows.append({"kind": "outline", "content": f"o{n}", "music": f"m{n}", "duration_sec": duration_sec, **heard})
    return rows


def spread(*means: float, width: float = 0.01) -> list[list[float | None]]:
    return [[mean + width * (n - (N - 1) / 2) for mean in means] for n in range(N)]


CONTROLS = {CEILING: spread(0.1, 0.9, 0.95, 0.8), UNRELATED: spread(0.5, 0.1, 0.25, 0.6)}


def results_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return build_results(read_scores(rows, PRESERVATION), PRESERVATION, n_resamples=50)


def test_a_facet_is_the_mean_of_the_places_of_its_metrics() -> None:
    """Key (0.2 - 0.5) / (0.1 - 0.5) = 0.75, chords (0.5 - 0.1) / 0.8 = 0.5; beats (0.6 - 0.25) / 0.7 = 0.5."""
    facets = results_of(records({"s": spread(0.2, 0.5, 0.6, 0.6), **CONTROLS}))["facets"]
    cells = facets["scores"]["s"]
    assert [cells[name]["value"] for name in ("harmony", "rhythm", "melody")] == pytest.approx([0.625, 0.5, 0])
    assert list(facets["scores"]) == ["s"]  # controls lie at 0 and 1 by definition
    assert facets["metrics"]["harmony"]["used"] == list(METRICS[:2])
    assert all(cell["low"] < cell["value"] < cell["high"] for cell in cells.values())
    assert all((cell["undefined"], cell["n"], cell["n_groups"]) == (0, N, N) for cell in cells.values())


def test_it_follows_from_the_means_of_the_table() -> None:
    results = results_of(records({"s": spread(0.2, 0.5, 0.6, 0.6, width=0.1), **CONTROLS}))
    own, same, other = (results["scores"][name]["beat_f_measure"]["value"] for name in ("s", CEILING, UNRELATED))
    assert results["facets"]["scores"]["s"]["rhythm"]["value"] == pytest.approx((own - other) / (same - other))


FORM = ("segment_ari", "voicing_recall", "motif_recall")
HEARD = ("swing_ratio", "ssm_correlation", "melody_contour_accuracy", "interval_lcs")


@pytest.mark.parametrize(
    ("n_long", "variant", "used"),
    [
        (2, "corrected", {"structure": ["ssm_correlation"], "melody": ["motif_recall", "melody_contour_accuracy"]}),
        (3, "corrected", {"structure": ["segment_ari", "ssm_correlation"]}),
        (2, "official", {"structure": ["segment_ari"], "melody": ["voicing_recall", "motif_recall"]}),
    ],
)
def test_some_auxiliary_metrics_count_and_some_metrics_do_not(
    n_long: int, variant: str, used: dict[str, list[str]]
) -> None:
    same, other = (0.9, 0.9, 0.9, 0.02, 0.9, 0.9, 0.9), (0.1, 0.2, 0.3, 0.8, 0.1, 0.2, 0.3)
    scores = {"s": spread(0.5, 0.5, 0.5, 0.41, 0.5, 0.5, 0.5), CEILING: spread(*same), UNRELATED: spread(*other)}
    rows = records(scores, metrics=FORM, companions=HEARD, n_long=n_long, variant=variant)
    facets = results_of(rows)["facets"]
    assert {facet: facets["metrics"][facet]["used"] for facet in used} == used
    assert ("rhythm" in facets["metrics"]) == (variant == "corrected")
    if variant == "corrected":
        assert facets["metrics"]["rhythm"]["used"] == ["swing_ratio"]
        assert facets["scores"]["s"]["rhythm"]["value"] == pytest.approx(0.5)
        assert "voicing_recall" in facets["metrics"]["melody"]["left_out"]
        (remark,) = [text for text in facets["remarks"] if "Voicing recall" in text]
        assert ("Segment ARI (4 of 6 originals" in remark) == (n_long == 2)


def test_sections_carry_the_facet_where_nothing_else_does() -> None:
    scores = {"s": spread(0.5), CEILING: spread(0.9), UNRELATED: spread(0.1)}
    facets = results_of(records(scores, metrics=FORM[:1]))["facets"]
    assert facets["metrics"]["structure"]["used"] == ["segment_ari"]


def test_metrics_whose_controls_overlap_are_left_out_and_named() -> None:
    controls = {**CONTROLS, UNRELATED: spread(0.5, 0.1, 0.95, 0.6)}
    results = results_of(records({"s": spread(0.2, 0.5, 0.6, 0.6), **controls}))
    cell = results["facets"]["scores"]["s"]["rhythm"]
    assert (cell["value"], cell["low"], cell["undefined"]) == (None, None, None)
    assert results["facets"]["metrics"]["rhythm"] == {"used": [], "left_out": ["beat_f_measure"]}
    (caveat,) = [text for text in caveats(results) if "left out of the summary" in text]
    assert "Beat F-measure (AUC 0.50)" in caveat
    assert "Rhythm ↑ (0 of 1)" in text_report(results)


def test_controls_next_to_each_other_place_nothing() -> None:
    """They are told apart without a mistake, yet a place between them would be a quotient of small numbers."""
    controls = {
        CEILING: spread(0.1, 0.9, 0.95, 0.998, width=0.001),
        UNRELATED: spread(0.5, 0.1, 0.25, 0.95, width=0.001),
    }
    results = results_of(records({"s": spread(0.2, 0.5, 0.6, 0.8), **controls}))
    assert results["facets"]["separation"]["motif_recall"] == 1
    assert results["facets"]["metrics"]["melody"] == {"used": [], "left_out": ["motif_recall"]}
    assert results["facets"]["scores"]["s"]["melody"]["value"] is None
    (caveat,) = [text for text in caveats(results) if "left out of the summary" in text]
    assert "Motif recall (means 5 % of its range apart)" in caveat


def test_what_is_undefined_is_counted_and_said() -> None:
    half = [[None if n % 2 else row[0], *row[1:]] for n, row in enumerate(spread(0.2, 0.5, 0.6, 0.6))]
    results = results_of(records({"s": half, "t": [[None, *row[1:]] for row in half], **CONTROLS}))
    cells = results["facets"]["scores"]
    assert cells["s"]["harmony"]["undefined"] == pytest.approx(0.25)  # half of one of two metrics
    assert cells["t"]["harmony"]["value"] is None  # chords alone would be another facet than that of s
    assert cells["t"]["harmony"]["undefined"] == pytest.approx(0.5)
    assert any("without a value are 25 % of harmony of s and 50 % of harmony of t" in text for text in caveats(results))
    assert "undefined 25 %" in text_report(results)
    # on the screen the name of a system stays as it was given
    assert "\nt has no Circle-of-fifths distance" in screen_text(results)


@pytest.mark.parametrize("failing", ["s", CEILING, UNRELATED])
def test_who_failed_on_everything_has_no_place(failing: str) -> None:
    rows = records({"s": spread(0.2, 0.5, 0.6, 0.6), "t": spread(0.2, 0.5, 0.6, 0.6), **CONTROLS})
    for row in rows:
        if row["kind"] == "pair" and row["system"] == failing:
            row["error"] = "UnreadableFileError: noise"
    kept = [row for row in rows if row["kind"] != "score" or row["system"] != failing]
    results = results_of(kept)
    cells = results["facets"]["scores"]
    assert [cell["value"] for cell in cells["s"].values()] == [None] * 3
    assert all(cell["value"] is None for cell in cells["t"].values()) == (failing != "s")
    assert "n/a" in text_report(results)


@pytest.mark.parametrize("missing", [CEILING, UNRELATED])
def test_without_both_controls_there_is_no_summary(missing: str) -> None:
    scores = {"s": spread(0.2, 0.5, 0.6, 0.6), **{name: rows for name, rows in CONTROLS.items() if name != missing}}
    rows = records(scores)
    results = results_of(rows)
    assert "facets" not in results
    assert "By facet" not in markdown_report(results)
    assert grade(read_scores(rows, PRESERVATION)) == {}


def test_it_stands_in_text_table_and_page() -> None:
    rows = records({"s": spread(0.2, 0.5, 0.6, 0.6), **CONTROLS})
    results = results_of(rows)
    page = render_report(results, read_scores(rows, PRESERVATION))
    two = results_of(records({"s": spread(0.2, 0.5, 0.6, 0.6), "t": spread(0.2, 0.5, 0.6, 0.6), **CONTROLS}))
    for text in (text_report(results), markdown_report(results), screen_text(two), page):
        assert "By facet, between the controls" in text
        assert "0 is unrelated music, 1 the same music" in text
        assert "0.625" in text
    json.dumps(results, allow_nan=False)
    alone = " ".join(screen_text(results).split())
    assert re.search(r"to the same music \(1\), s has harmony 0\.625 \(0\.\d{3}\.\.0\.\d{3}\), rhythm 0\.500", alone)


def test_one_score_over_all_facets_is_made_on_request_alone() -> None:
    rows = records({"s": spread(0.2, 0.5, 0.6, 0.7), **CONTROLS})
    found = grade(read_scores(rows, PRESERVATION))["s"]
    assert found.estimate == pytest.approx((0.625 + 0.5 + 0.5) / 3)
    assert found.low < found.estimate < found.high
    assert "grade" not in json.dumps(results_of(rows))
    overlap = {**CONTROLS, UNRELATED: spread(0.5, 0.1, 0.95, 0.6)}
    assert np.isnan(grade(read_scores(records({"s": spread(0.2, 0.5, 0.6, 0.7), **overlap}), PRESERVATION))["s"]).all()


@pytest.mark.parametrize("as_json", [False, True])
def test_the_verb_prints_the_grade_beside_its_results(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    rows = records({"s": spread(0.2, 0.5, 0.6, 0.7), **CONTROLS})
    outcome = types.SimpleNamespace(scores=read_scores(rows, PRESERVATION))
    _print_grades(outcome, 0.95, as_json=as_json)
    out, err = capsys.readouterr()
    told, silent = (err, out) if as_json else (out, err)
    assert re.fullmatch(r"over all facets, s: 0\.542 0\.\d{3}\.\.0\.\d{3}\n", told)
    assert silent == ""


def test_chance_and_ceiling_are_those_of_the_run() -> None:
    texts = caveats(results_of(records({"s": spread(0.2, 0.5, 0.6, 0.6), **CONTROLS})))
    assert any(text.startswith("unrelated music of this run reaches 0.60 in Motif recall:") for text in texts)
    assert any(text.startswith("same music of this run reaches no more than 0.80 in Motif recall:") for text in texts)
    good = {CEILING: spread(0.0, 1.0, 1.0, 1.0), UNRELATED: spread(0.5, 0.1, 0.25, 0.1)}
    assert not any(
        "of this run reaches" in text for text in caveats(results_of(records({"s": spread(0, 1, 1, 1), **good})))
    )
    assert not any(
        digit in text
        for text in results_of(records({"s": spread(0, 1, 1, 1), **good}))["published"]["differences"]["chance"].split()
        for digit in ("0.67", "0.84")
    )


def test_a_corpus_in_one_key_or_tempo_is_said_to_be_so() -> None:
    scores = {"s": spread(0.2, 0.5, 0.6, 0.6), **CONTROLS}
    apart = results_of(records(scores))
    assert apart["systems"][UNRELATED]["shared"]["key"] == {"shared": 0, "known": N}
    assert apart["systems"][UNRELATED]["note"] == ""
    assert not any("share their" in text for text in caveats(apart))
    one_key = results_of(records(scores, keys=1))
    assert one_key["systems"][UNRELATED]["shared"]["key"] == {"shared": N, "known": N}
    assert any(text.startswith("originals of this corpus share their key: 6 of 6") for text in caveats(one_key))
    assert "(unrelated music) [6 of 6 in one key]" in text_report(one_key)
    assert "Unrelated music is partly alike: 6 of 6 in one key.\n" in screen_text(one_key)
    assert "partly alike" not in screen_text(apart)
    one_tempo = results_of(records(scores, tempi=1))
    assert "[6 of 6 in one tempo]" in markdown_report(one_tempo)
    assert any("scores of rhythm may lie above those of chance" in text for text in caveats(one_tempo))
    bare = [row for row in records(scores, keys=1) if row["kind"] != "outline"]
    assert results_of(bare)["systems"][UNRELATED]["shared"]["key"] == {"shared": 0, "known": 0}


def test_the_order_of_records_changes_nothing() -> None:
    rows = records({"s": spread(0.2, 0.5, 0.6, 0.6), "t": spread(0.3, 0.4, 0.9, 0.6), **CONTROLS})
    head, body = rows[:2], rows[2:]
    pairs, rest = [row for row in body if row["kind"] == "pair"], [row for row in body if row["kind"] != "pair"]
    assert results_of([*head, *pairs, *rest[::-1]])["facets"] == results_of(rows)["facets"]
