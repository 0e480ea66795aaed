"""The mixed model and the figures of an editing test, on studies with a known effect."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from music_evals.errors import InvalidInputError
from music_evals.pipelines.editing_test import evaluate_editing_test
from music_evals.pipelines.study_tables import StudyTables
from music_evals.studies.editing.figures import draw_figures
from music_evals.studies.editing.mixed_model import mixed_models
from music_evals.studies.editing.report import report_text, write_report
from music_evals.studies.editing.simulation import StudyDesign, simulate_study

pytest.importorskip("statsmodels")


def study(seed: int = 0, **design: Any) -> StudyTables:
    return simulate_study(StudyDesign(**{"ratio": 0.7, "n_listeners": 0, **design}), rng=np.random.default_rng(seed))


def with_edits(tables: StudyTables, **columns: Any) -> StudyTables:
    return tables._replace(edits={**tables.edits, **columns})


def of_time(tables: StudyTables) -> dict[str, dict[str, Any]]:
    return {row["term"]: row for row in mixed_models(tables) if row["load"] == "time"}


@pytest.mark.slow
def test_a_large_study_finds_what_was_put_in() -> None:
    rows = {(row["load"], row["term"]): row for row in mixed_models(study(n_pieces=40, editor_sd=0.5, piece_sd=0.3))}
    time = rows["time", "proposed / baseline"]
    assert time["ratio"] == pytest.approx(0.7, abs=0.06)
    assert time["p"] < 0.001
    assert time["sd_editor"] == pytest.approx(0.5, abs=0.25)
    assert time["sd_piece"] == pytest.approx(0.3, abs=0.12)
    styles = [row["ratio"] for (load, term), row in rows.items() if load == "time" and term.count(",")]
    assert time["ratio"] == pytest.approx(math.exp(np.mean(np.log(styles))), rel=1e-6)


def test_swapping_the_roles_inverts_the_ratio() -> None:
    tables = study()
    roles = np.where(tables.samples["role"] == "proposed", "baseline", "proposed")
    there = mixed_models(tables)[0]
    back = mixed_models(tables._replace(samples={**tables.samples, "role": roles}))[0]
    assert there["ratio"] * back["ratio"] == pytest.approx(1, rel=1e-3)
    assert there["ci_low"] * back["ci_high"] == pytest.approx(1, rel=1e-2)


def test_tiring_editors_are_told_apart_from_the_model() -> None:
    tables = study(1, n_pieces=12)
    rng = np.random.default_rng(0)
    order = tables.edits["order_index"].copy()
    for editor in np.unique(tables.edits["editor_id"]):  # the simulator lets all edit the pieces in one order
        mine = tables.edits["editor_id"] == editor
        order[mine] = rng.permutation(order[mine])
    plain = of_time(with_edits(tables, order_index=order))
    slower = with_edits(tables, order_index=order, time_s=tables.edits["time_s"] * 1.2**order)
    rows = of_time(slower)
    assert rows["order"]["ratio"] == pytest.approx(1.2 * plain["order"]["ratio"], rel=0.01)
    assert rows["proposed / baseline"]["ratio"] == pytest.approx(plain["proposed / baseline"]["ratio"], rel=0.01)


@pytest.mark.slow
def test_editors_who_learn_are_found() -> None:
    rows = of_time(study(3, n_pieces=30, learning=0.95, edits_per_sample=4))
    assert rows["order"]["ci_low"] < 0.95 < rows["order"]["ci_high"]
    assert rows["order"]["p"] < 0.05
    assert rows["proposed / baseline"]["ci_low"] < 0.7 < rows["proposed / baseline"]["ci_high"]


@pytest.mark.slow
def test_careless_answers_hide_what_effort_has_to_do_with_them_and_no_effort() -> None:
    careful, careless = (study(5, n_pieces=20, careless=share) for share in (0.0, 1.0))
    r = [
        next(
            row["r"] for row in evaluate_editing_test(tables)["correlations"] if (row["x"], row["y"]) == ("time", "EQ1")
        )
        for tables in (careful, careless)
    ]
    assert r[0] < -0.5 < -0.3 < r[1]
    ratios = [evaluate_editing_test(tables)["ratios"][-1]["geometric_mean"] for tables in (careful, careless)]
    assert ratios == pytest.approx([0.7, 0.7], abs=0.12)


def test_a_load_of_nothing_has_no_logarithm() -> None:
    tables = study()
    keys = tables.edits["key_presses"].copy()
    keys[3] = 0
    with pytest.raises(InvalidInputError, match="row 4: key_presses is 0"):
        mixed_models(with_edits(tables, key_presses=keys))
    assert math.isfinite(mixed_models(with_edits(tables, key_presses=keys), epsilon=1.0)[3]["ratio"])


def test_a_fit_that_cannot_be_says_so_and_gives_no_number() -> None:
    tables = study()
    first = tables.samples["sample_id"][:2]
    kept = np.flatnonzero(np.isin(tables.edits["sample_id"], first))
    same = {name: column[kept] for name, column in tables.edits.items()}
    samples = {name: column[:2] for name, column in tables.samples.items()}
    rows = mixed_models(StudyTables(samples, {**same, "time_s": np.full(len(kept), 60.0)}, None))
    time = next(row for row in rows if row["load"] == "time")
    assert math.isnan(time["ratio"])
    assert "did not converge" in time["note"]


@pytest.mark.slow
def test_intervals_of_small_studies_hold_the_truth() -> None:
    inside = []
    for seed in range(80):
        for row in mixed_models(study(seed)):
            if row["term"] == "proposed / baseline":
                inside.append(row["ci_low"] <= 0.7 <= row["ci_high"])  # noqa: PERF401
    assert 0.9 <= np.mean(inside) <= 1.0


@pytest.mark.slow
def test_the_report_tells_the_model_and_has_figures(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    tables = study(n_listeners=12)
    found = evaluate_editing_test(tables)
    found["mixed_models"] = mixed_models(tables)
    figures = draw_figures(found)
    assert {"effort_and_answers.svg", "ratios_and_differences.svg"} <= set(figures)
    assert figures == draw_figures(found)  # the same bytes again
    text = figures["effort_and_answers.svg"].decode()
    r = next(row["r"] for row in found["correlations"] if (row["x"], row["y"]) == ("time", "EQ1"))
    assert f"r = {r:.2f}" in text
    assert "## Mixed model" in report_text(found)
    row = next(row for row in found["correlations"] if (row["x"], row["y"]) == ("ratio_time", "delta_EQ1"))
    cells = [row[name] for name in ("r", "spearman", "r_within_style", "r_partial", "r_log")]
    assert "| ratio_time | delta_EQ1 | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |" in report_text(found)
    files = write_report(found, tmp_path, figures=figures)
    assert {"mixed_models.csv", "report.md", *figures} <= set(files)
    assert "## Mixed model" not in report_text(evaluate_editing_test(tables))


@pytest.mark.slow
def test_similarity_is_drawn_where_listeners_gave_it() -> None:
    pytest.importorskip("matplotlib")
    found = evaluate_editing_test(study())
    row = {"style": "bach", "role": "proposed", "n_samples": 6, "baroque": 4.0, "jazz": 2.0}
    assert b"baroque" in draw_figures({**found, "style_similarity": [row]})["style_similarity.svg"]
    assert "style_similarity.svg" not in draw_figures(found)
