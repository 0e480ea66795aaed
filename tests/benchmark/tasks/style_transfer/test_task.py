"""Style transfer on the shared engine: both kinds of runs, resumed, on boards and cards, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmark.record_files import cut
from tests.benchmark.tasks.style_transfer.toy_style import Toy, toy

import music_evals
from music_evals.benchmark.load import load_results
from music_evals.benchmark.records import read_records
from music_evals.benchmark.tasks.style_transfer.task import Settings, _output_of
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.hub.scores import read_scores
from music_evals.leaderboard import add_to_board, build_leaderboard
from music_evals.leaderboard.records import records_of_run
from music_evals.metrics.catalogue import STYLE_SCORES
from music_evals.pipelines.style_transfer.cell_prediction import evaluate_predictor
from music_evals.protocols import ROLL_BASELINES, load_plugin
from music_evals.symbolic.encodings.piano_rolls import arrange, piano_roll
from music_evals.symbolic.midi import read_midi

HOW: dict[str, Any] = {"n_resamples": 20, "report": False}


@pytest.mark.slow
def test_cells_of_models_and_trivial_rows(corpus: Path, model: Path, tmp_path: Path) -> None:
    found = music_evals.run("style-transfer", tmp_path / "out", dataset=str(corpus), models=[model], n_resamples=20)
    scores = found.results["scores"]
    assert set(scores) == {"toy", *ROLL_BASELINES}
    assert scores["toy"]["piano_roll_error_rate"]["value"] == 0
    assert scores["toy"]["cell_nll_hidden_32"]["value"] == pytest.approx(-math.log(0.75))
    rolls = [piano_roll(toy(seed)) for seed in (3, 4, 5)]
    for name in ("copy_previous", "copy_every_4"):
        rule = load_plugin(ROLL_BASELINES, name, "baseline")(name)
        by_hand = evaluate_predictor(rolls, rule, hidden=(0, 8), average="macro")
        for metric in ("piano_roll_error_rate", "change_error_rate", "cell_f1_hidden_8"):
            assert scores[name][metric]["value"] == pytest.approx(by_hand[metric])
        assert 0 < scores[name]["cell_nll_hidden_8"]["value"] < math.inf  # fitted to the training pieces
    assert "Style transfer" in found.files["report"].read_text()
    assert "copy_every_2" in found.files["table"].read_text()
    assert load_results(tmp_path / "out").results["scores"] == scores


@pytest.mark.slow
def test_transfers_are_judged_and_kept(corpus: Path, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    how = {"dataset": str(corpus), "models": [model], "kind": "transfers", "n_seeds": 2, **HOW}
    found = music_evals.run("style-transfer", out, **how)
    scores = found.results["scores"]
    assert set(scores) == {"toy", "unchanged:bach", "melody_alone:bach"}
    assert all(cells["melody_cell_recall"]["value"] == 1 for cells in scores.values())
    assert set(found.results["fidelity"]["toy"]) == {name for name, info in STYLE_SCORES.items() if info.kind == "set"}
    assert found.results["fidelity"]["toy"]["style_density_divergence"]["n"] == 6
    assert found.results["fidelity"]["melody_alone:bach"]["style_interval_divergence"]["n_defined"] == 0
    assert "Divergence from the target corpus" in found.files["table"].read_text()
    # the files hold what the records do, melody and accompaniment apart
    score = read_midi(out / "outputs" / "toy" / "toy3_run_2.mid")
    given = arrange(toy(3), "melody")
    kept = arrange(score, "melody", steps_per_quarter=8)
    assert np.array_equal(kept.melody.onsets[: len(given)], given.melody.onsets[: len(kept)])
    # two seeds are two outputs
    texts = {(out / "outputs" / "toy" / f"toy3{run}.mid").read_bytes() for run in ("", "_run_2")}
    assert len(texts) == 2


@pytest.mark.slow
def test_a_run_that_was_cut_is_resumed_to_the_same_results(corpus: Path, model: Path, tmp_path: Path) -> None:
    how = {"dataset": str(corpus), "models": [model], "kind": "transfers", **HOW}
    whole = music_evals.run("style-transfer", tmp_path / "whole", **how)
    rows = read_records(tmp_path / "whole" / "records")
    first = next(place for place, row in enumerate(rows) if row["kind"] == "explanation")
    cut(tmp_path / "whole" / "records", first + 1, tmp_path / "cut" / "records")
    Toy.calls = 0
    resumed = music_evals.run("style-transfer", tmp_path / "cut", **how)
    assert resumed.results == whole.results
    assert Toy.calls == 2  # of three pieces, the first was there
    names = [path.relative_to(tmp_path / "whole") for path in sorted((tmp_path / "whole").rglob("*.mid"))]
    assert len(names) == 9
    assert all((tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes() for name in names)


@pytest.mark.slow
def test_a_failure_costs_its_piece_alone(corpus: Path, model: Path, tmp_path: Path) -> None:
    (model / "breaks").touch()
    how = {"dataset": str(corpus), "models": [model], "kind": "transfers", **HOW}
    found = music_evals.run("style-transfer", tmp_path / "out", **how).results
    starts_on_g = [seed for seed in (3, 4, 5) if toy(seed).notes["pitch"][toy(seed).notes["voice"] == 0][0] == 67]
    failed = {row["item"] for row in found["failures"]}
    assert failed == {f"toy{seed}" for seed in starts_on_g}
    assert found["scores"]["unchanged:bach"]["melody_cell_recall"]["n_failed"] == 0


def test_an_output_comes_back_from_its_record() -> None:
    given = arrange(toy(0), "melody", gaps=False)
    notes = [[0, 8, 60, 0], [8, 120, 62, 0], [0, 128, 40, 1], [64, 4, 43, 1]]
    output = _output_of(notes, given)
    assert output.melody.cells.sum() == 128
    assert output.accompaniment.onsets.sum() == 2
    assert output.melody.same_grid(given.melody)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dataset": None}, "give `dataset`"),
        ({"hidden": [0, 5]}, "`hidden` must be"),
        ({"hidden": []}, "`hidden` must be"),
        ({"n_seeds": 0}, "`n_seeds` must be at least 1"),
        ({"kind": "cell"}, "did you mean cells"),
        ({"styles": ["bachs"]}, "did you mean bach"),
    ],
)
def test_settings_are_checked(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises((InvalidInputError, UnknownNameError), match=message):
        Settings(tmp_path, **{"dataset": "x", **change})


def test_an_untrained_model_and_a_double_name_are_refused(corpus: Path, model: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="different names, got toy"):
        music_evals.run("style-transfer", tmp_path / "out", dataset=str(corpus), models=[model, model], **HOW)
    (model / "model.safetensors").unlink()
    with pytest.raises(NoDataError):
        music_evals.run("style-transfer", tmp_path / "out", dataset=str(corpus), models=[model], **HOW)


@pytest.mark.slow
def test_results_go_to_boards_and_cards_with_the_trivial_rows(corpus: Path, model: Path, tmp_path: Path) -> None:
    outcome = music_evals.run("style-transfer", tmp_path / "out", dataset=str(corpus), models=[model], **HOW)
    run = load_results(tmp_path / "out")
    records = list(records_of_run(run, date="2026-01-01"))
    assert {record.system for record in records} == {"toy", *ROLL_BASELINES}
    assert {"piano_roll_error_rate", "cell_f1_hidden_32"} <= {record.metric for record in records}
    card = read_scores(outcome.results, "toy")
    assert card.task.type == "music-style-transfer"
    assert card.scores["piano_roll_error_rate"].value == 0


@pytest.mark.slow
def test_divergences_of_transfers_go_to_boards_and_cards(corpus: Path, model: Path, tmp_path: Path) -> None:
    how = {"dataset": str(corpus), "models": [model], "kind": "transfers", "styles": ["bach", "swing"], **HOW}
    results = music_evals.run("style-transfer", tmp_path / "out", **how).results
    add_to_board(tmp_path / "out", tmp_path / "board", date="2026-01-01")
    music_evals.run("style-transfer", tmp_path / "cells", dataset=str(corpus), models=[model], **HOW)
    add_to_board(tmp_path / "cells", tmp_path / "board", date="2026-01-01")
    tables = [table for table in build_leaderboard(tmp_path / "board")["tables"] if table["task"] == "style-transfer"]
    held = {
        (table["settings"]["option kind"], table["settings"].get("target style")): {
            row["system"]: row for row in table["rows"]
        }
        for table in tables
    }
    # cells, and transfers to each style, are tables of their own
    assert {place: set(rows) for place, rows in held.items()} == {
        ("cells", None): {"toy", *ROLL_BASELINES},
        ("transfers", "bach"): {"toy", "unchanged:bach", "melody_alone:bach"},
        ("transfers", "swing"): {"unchanged:swing", "melody_alone:swing"},
    }
    name = "style_density_divergence"
    found = results["fidelity"]["toy"][name]
    table = next(table for table in tables if table["settings"].get("target style") == "bach")
    column = next(column for column in table["columns"] if column["metric"] == name)
    cell = held["transfers", "bach"]["toy"]["cells"][column["id"]]
    assert column["direction"] == "lower"
    assert (cell["value"], cell["low"], cell["high"]) == (found["value"], *found["ci"])
    assert (cell["floor"], cell["n"]) == (found["null"], found["n"])
    assert cell["rank"] is None
    assert "all outputs together" in cell["why"]
    score = read_scores(results, "toy").scores[name]
    assert (score.value, score.null) == (round(found["value"], 4), round(found["null"], 4))
    assert (score.low, score.high) == (round(found["ci"][0], 4), round(found["ci"][1], 4))
    assert name not in read_scores(load_results(tmp_path / "cells").results, "toy").scores
