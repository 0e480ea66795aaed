"""Tables of an editing test: worked by hand on two pairs, and true of studies that were simulated."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.pipelines import editing_test
from music_evals.pipelines.editing_test import TABLES, evaluate_editing_test
from music_evals.pipelines.study_tables import ROLES, StudyTables, Table, study_tables
from music_evals.studies.editing.simulation import StudyDesign, simulate_study


def rows_of(table: Table) -> list[dict[str, Any]]:
    return [dict(zip(table, values, strict=True)) for values in zip(*(c.tolist() for c in table.values()), strict=True)]


def by_hand() -> StudyTables:
    """Two pieces in one style; each sample has two edits, of 600 and 800 s for the baseline, half of it for ours."""
    samples, edits = [], []
    for piece in ("p", "q"):
        for role, factor in zip(ROLES, (1, 2), strict=True):
            name = f"{piece}-{role}"
            samples.append({"sample_id": name, "piece_id": piece, "style": "bach", "model": role, "role": role})
            for editor, seconds in (("a", 300), ("b", 400)):
                load = {"time_s": seconds * factor, "key_presses": 10 * factor**2, "mouse_clicks": 20}
                told = {"hit_limit": False, "EQ1": 5 - factor, "EQ2": 4, "EQ3": 2 + (editor == "b")}
                edits.append({"sample_id": name, "editor_id": editor, **load, **told})
    return study_tables(samples, edits)


def cell(rows: list[dict[str, Any]], **known: Any) -> dict[str, Any]:
    (found,) = [row for row in rows if all(row[name] == value for name, value in known.items())]
    return found


def test_two_pairs_by_hand() -> None:
    result = evaluate_editing_test(by_hand())
    assert tuple(result) == TABLES
    ours = cell(result["sample_means"], sample_id="p-proposed")
    assert (ours["time"], ours["keyboard"], ours["mouse"], ours["EQ3"], ours["n_edits"]) == (350, 10, 20, 2.5, 2)
    assert "LQ1" not in ours
    pair = cell(result["pairs"], piece_id="q")
    assert (pair["ratio_time"], pair["ratio_keyboard"], pair["ratio_mouse"]) == (0.5, 0.25, 1.0)
    assert (pair["delta_EQ1"], pair["delta_EQ2"], pair["delta_EQ3"]) == (1.0, 0.0, 0.0)
    assert (pair["n_editors_of_both"], pair["ratio_time_per_editor"]) == (2, pytest.approx(0.5))
    over_edits = cell(result["summary"], role="baseline", name="time")
    assert (over_edits["mean"], over_edits["n"], over_edits["sample_sd"], over_edits["n_samples"]) == (700, 4, 0.0, 2)
    assert over_edits["sd"] == pytest.approx(math.sqrt(40000 / 3))
    ratio = cell(result["ratios"], load="keyboard")
    assert (ratio["style"], ratio["mean"], ratio["n"]) == ("bach", 0.25, 2)
    assert ratio["geometric_mean"] == pytest.approx(0.25)
    assert math.isnan(ratio["p"])  # both ratios are the same
    assert result["style_similarity"] == []
    assert cell(result["censoring"], role="proposed")["share"] == 0.0
    assert any("2 pieces" in line for line in result["warnings"])
    assert any("set 1" in line.lower() and "EQ2" in line for line in result["warnings"])


def test_a_simulated_study_of_the_papers_size(rng: np.random.Generator) -> None:
    result = evaluate_editing_test(simulate_study(StudyDesign(ratio=0.8, edit_sd=0.1, answer_sd=0.3), rng=rng))
    assert (len(result["sample_means"]), len(result["pairs"])) == (24, 12)
    assert [row["set"] for row in result["correlations"]] == [1] * 12 + [2] * 12 + [3] * 6 + [4] * 6
    assert {row["n"] for row in result["correlations"] if row["set"] in {2, 4}} == {12}
    assert {row["n_ratings"] for row in result["sample_means"]} == {10}
    assert all(row["r"] < 0 for row in result["correlations"] if row["set"] == 1)
    for row in result["correlations"]:
        assert row["ci_low"] <= row["r"] <= row["ci_high"]
        assert row["p"] <= row["p_bh"] <= row["p_holm"] + 1e-12
    for row in result["style_similarity"]:
        assert row[row["style"]] > row[{"bach": "jazz", "jazz": "bach"}[row["style"]]]


def test_swapped_roles_invert_ratios_and_negate_differences(rng: np.random.Generator) -> None:
    tables = simulate_study(StudyDesign(n_pieces=3), rng=rng)
    roles = np.where(tables.samples["role"] == ROLES[0], ROLES[1], ROLES[0])
    swapped = evaluate_editing_test(tables._replace(samples={**tables.samples, "role": roles}))
    for one, other in zip(evaluate_editing_test(tables)["pairs"], swapped["pairs"], strict=True):
        assert one["ratio_time"] == pytest.approx(1 / other["ratio_time"])
        assert one["delta_LQ1"] == -other["delta_LQ1"]


def test_the_order_of_edits_plays_no_part(rng: np.random.Generator) -> None:
    tables = simulate_study(StudyDesign(n_pieces=3), rng=rng)
    order = rng.permutation(len(tables.edits["sample_id"]))
    moved = tables._replace(edits={name: column[order] for name, column in tables.edits.items()})
    for one, other in zip(
        evaluate_editing_test(tables)["correlations"], evaluate_editing_test(moved)["correlations"], strict=True
    ):
        assert one["r"] == pytest.approx(other["r"])
        assert one["piece_ci_low"] == pytest.approx(other["piece_ci_low"])


def test_eleven_pairs_are_eleven_and_missing_ratings_are_not_counted(rng: np.random.Generator) -> None:
    tables = simulate_study(StudyDesign(), rng=rng)
    assert tables.listening is not None
    dropped = rows_of(tables.samples)[:2]
    keep = [row for row in rows_of(tables.samples) if row not in dropped]
    names = {row["sample_id"] for row in keep}
    rest = [[row for row in rows_of(table) if row["sample_id"] in names] for table in (tables.edits, tables.listening)]
    result = evaluate_editing_test(study_tables(keep, *rest))
    assert {row["n"] for row in result["correlations"] if row["set"] in {2, 4}} == {11}
    silent = [row for row in rows_of(tables.listening) if row["sample_id"] != "s000"]
    result = evaluate_editing_test(study_tables(rows_of(tables.samples), rows_of(tables.edits), silent))
    assert {row["n"] for row in result["correlations"] if row["y"] == "LQ1"} == {23}
    assert {row["n"] for row in result["correlations"] if row["set"] == 1 and row["y"] != "LQ1"} == {24}


def test_what_the_time_limit_ended_is_reported(rng: np.random.Generator) -> None:
    tables = simulate_study(StudyDesign(time_limit_s=500.0), rng=rng)
    result = evaluate_editing_test(tables, time_limit_s=499.0)
    ended = int(np.count_nonzero(tables.edits["hit_limit"]))
    assert ended > 0
    assert sum(row["n_hit_limit"] for row in result["censoring"]) == ended
    assert f"The time limit ended {ended} of 72 edits" in result["warnings"][0]
    assert sum("over the limit of 499 s" in line for line in result["warnings"]) == ended


def test_zero_loads_need_an_epsilon() -> None:
    tables = by_hand()
    keys = np.where(tables.edits["sample_id"] == "p-baseline", 0.0, tables.edits["key_presses"])
    idle = tables._replace(edits={**tables.edits, "key_presses": keys})
    with pytest.raises(InvalidInputError, match=r"'p-baseline' .*keyboard: the baseline load is 0"):
        evaluate_editing_test(idle)
    pairs = evaluate_editing_test(idle, epsilon=1.0)["pairs"]
    assert cell(pairs, piece_id="p")["ratio_keyboard"] == 11.0


def test_a_sample_that_nobody_edited() -> None:
    tables = by_hand()
    edits = [row for row in rows_of(tables.edits) if row["sample_id"] != "q-baseline"]
    with pytest.raises(PairCountError, match="samples, row 4: nobody edited 'q-baseline'"):
        evaluate_editing_test(study_tables(rows_of(tables.samples), edits))


@pytest.mark.parametrize("options", [{"confidence": 1.0}, {"epsilon": -1.0}, {"time_limit_s": 0.0}])
def test_options_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError):
        evaluate_editing_test(by_hand(), **options)


def coverage(design: StudyDesign, draws: int, rng: np.random.Generator) -> dict[str, float]:
    """Return how often the intervals of the ratio of times cover the truth."""
    hits = {"piece": 0, "editor": 0}
    for _ in range(draws):
        row = cell(evaluate_editing_test(simulate_study(design, rng=rng))["ratios"], style="bach", load="time")
        hits["piece"] += row["ci_low"] <= design.ratio <= row["ci_high"]
        hits["editor"] += row["editor_ci_low"] <= design.ratio <= row["editor_ci_high"]
    return {name: count / draws for name, count in hits.items()}


@pytest.fixture
def ratios_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No correlations, which take three quarters of the time and are not looked at."""
    monkeypatch.setattr(editing_test, "_correlations", lambda *_: [])


UNLIMITED = StudyDesign(styles=("bach",), n_listeners=0, ratio=0.7, time_limit_s=math.inf)


@pytest.mark.slow
@pytest.mark.usefixtures("ratios_alone")
def test_intervals_of_ratios_cover_a_known_effect(rng: np.random.Generator) -> None:
    assert coverage(UNLIMITED, 60, rng)["piece"] > 0.85


@pytest.mark.slow
@pytest.mark.usefixtures("ratios_alone")
@pytest.mark.parametrize("n_pieces", [6, 12])
def test_coverage_of_the_intervals_of_ratios(n_pieces: int, rng: np.random.Generator) -> None:
    found = coverage(dataclasses.replace(UNLIMITED, n_pieces=n_pieces), 300, rng)
    assert 0.92 < found["piece"] < 0.98


def test_designs_that_cannot_be() -> None:
    with pytest.raises(InvalidInputError, match="at least as many editors"):
        StudyDesign(n_editors=2)
    with pytest.raises(InvalidInputError, match="ratings_per_sample"):
        StudyDesign(n_listeners=5)
    with pytest.raises(InvalidInputError, match="ratio"):
        StudyDesign(ratio=0.0)


def test_ratios_by_those_who_edited_both_leave_the_others_out() -> None:
    tables = by_hand()
    editors = tables.edits["editor_id"].copy()
    seconds = tables.edits["time_s"].copy()
    editors[1], seconds[0] = "c", 150.0  # of p, ours: b becomes another editor, a is faster
    pair = cell(
        evaluate_editing_test(tables._replace(edits={**tables.edits, "editor_id": editors, "time_s": seconds}))[
            "pairs"
        ],
        piece_id="p",
    )
    assert (pair["n_editors_of_both"], pair["ratio_time_per_editor"]) == (1, pytest.approx(150 / 600))
    assert pair["ratio_time"] == pytest.approx((150 + 400) / (600 + 800))
    editors[0] = "d"
    none = evaluate_editing_test(tables._replace(edits={**tables.edits, "editor_id": editors}))["pairs"]
    assert math.isnan(cell(none, piece_id="p")["ratio_time_per_editor"])


def test_other_readings_of_a_correlation_stand_beside_it() -> None:
    row = cell(evaluate_editing_test(by_hand())["correlations"], x="time", y="EQ1")
    assert row["r"] == pytest.approx(-1)
    assert row["spearman"] == pytest.approx(-1)
    assert row["r_within_style"] == pytest.approx(-1)
    assert math.isnan(row["r_partial"])  # the model says all
    assert math.isnan(row["r_log"])  # no ratio
