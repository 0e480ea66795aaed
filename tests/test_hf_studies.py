"""Modules that judge a study: their tables in every form, their keys, and what they refuse."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import datasets
import evaluate
import numpy as np
import pandas as pd
import pytest

from music_evals.errors import InvalidInputError, NoDataError, PairCountError, UnknownNameError, UnsupportedTypeError
from music_evals.metrics.catalogue import EDITING_SCORES, EFFORT_RATIOS
from music_evals.pipelines.editing_test import TABLES, evaluate_answers, evaluate_effort
from music_evals.pipelines.study_tables import StudyTables
from music_evals.studies.editing.simulation import StudyDesign, simulate_study

ROOT = Path(__file__).resolve().parents[1]
SCORES = {"editing_effort_ratio": EFFORT_RATIOS, "editing_test": EDITING_SCORES}
LIBRARY = {"editing_effort_ratio": evaluate_effort, "editing_test": evaluate_answers}


@pytest.fixture(params=SCORES)
def module(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(ROOT)
    return evaluate.load(f"./metrics/{request.param}", cache_dir=str(tmp_path))


@pytest.fixture
def study(rng: np.random.Generator) -> StudyTables:
    return simulate_study(StudyDesign(n_pieces=4), rng=rng)


def frames(study: StudyTables) -> dict[str, pd.DataFrame]:
    return {name: pd.DataFrame(table) for name, table in study._asdict().items()}


def same(first: Any, second: Any) -> bool:
    return json.dumps(first) == json.dumps(second)


def test_equal_to_the_library(module: Any, study: StudyTables) -> None:
    given = frames(study)
    tables = {"samples": given["samples"], "listening": given["listening"]}
    for options in ({}, {"confidence": 0.8, "epsilon": 1.0, "per_item": True}):
        result = module.compute(predictions=given["edits"], **tables, **options)
        assert same(result, LIBRARY[module.name](study, **options))


def test_keys_and_ranges(module: Any, study: StudyTables) -> None:
    given = frames(study)
    result = module.compute(predictions=given["edits"], samples=given["samples"], listening=given["listening"])
    for name, metric in SCORES[module.name].items():
        assert type(result[name]) is float
        assert metric.low <= result[name] <= metric.high
        assert result[f"{name}_ci"][0] < result[name] < result[f"{name}_ci"][1]
        assert (result[f"{name}_n"], result[f"{name}_n_defined"]) == (8, 8)
        assert result[f"{name}_n_clusters"] == pytest.approx(4)
    if module.name == "editing_test":
        assert tuple(result["tables"]) == TABLES


@pytest.mark.parametrize("form", ["rows", "dataset", ".csv", ".parquet"])
def test_one_table_in_every_form(module: Any, study: StudyTables, form: str, tmp_path: Path) -> None:
    given = frames(study)
    joined = given["edits"].merge(given["samples"], on="sample_id")
    expected = module.compute(predictions=given["edits"], samples=given["samples"])
    table: Any = {"rows": joined.to_dict("records"), "dataset": datasets.Dataset.from_pandas(joined)}.get(form)
    if table is None:
        table = tmp_path / f"edits{form}"
        joined.to_csv(table, index=False) if form == ".csv" else joined.to_parquet(table)
    result = module.compute(predictions=table)
    for name in list(SCORES[module.name])[:3]:
        assert result[name] == expected[name]
        assert result[f"{name}_ci"] == pytest.approx(expected[f"{name}_ci"])
    assert "delta_lq1" not in result


def test_added_one_by_one_is_the_same(module: Any, study: StudyTables) -> None:
    given = frames(study)
    joined = given["edits"].merge(given["samples"], on="sample_id").to_dict("records")
    whole = module.compute(predictions=joined)
    for row in joined:
        module.add(prediction=row)
    assert same(module.compute(), whole)


def test_equal_models_have_a_ratio_of_one(module: Any, study: StudyTables) -> None:
    """The same edits on both sides: no ratio but 1, and no difference."""
    given = frames(study)
    joined = given["edits"].merge(given["samples"], on="sample_id")
    ours = joined[joined["role"] == "proposed"]
    theirs = ours.assign(role="baseline", model="baseline", sample_id=ours["sample_id"] + "b")
    result = module.compute(predictions=pd.concat([ours, theirs]))
    expected = 1.0 if module.name == "editing_effort_ratio" else 0.0
    for name in list(SCORES[module.name])[:3]:
        assert result[name] == pytest.approx(expected)
        assert all(map(math.isnan, result[f"{name}_ci"]))


def test_what_is_refused_names_the_row(module: Any, study: StudyTables) -> None:
    given = frames(study)
    rows = given["edits"].merge(given["samples"], on="sample_id").to_dict("records")
    with pytest.raises(NoDataError):
        module.compute(predictions=[])
    with pytest.raises(InvalidInputError, match="edits, row 3: EQ2 must be a whole number from 1 to 5, got 9"):
        module.compute(predictions=[*rows[:2], rows[2] | {"EQ2": 9}, *rows[3:]])
    with pytest.raises(InvalidInputError, match="'s000'"):
        module.compute(predictions=[rows[0], rows[1] | {"role": "baseline"}, *rows[2:]])
    with pytest.raises(PairCountError):
        module.compute(predictions=[row for row in rows if row["sample_id"] != "s001"])
    with pytest.raises(InvalidInputError, match="piece_id"):
        module.compute(predictions=given["edits"])
    with pytest.raises(InvalidInputError, match="load is 0"):
        module.compute(predictions=[row | {"mouse_clicks": 0} for row in rows])
    with pytest.raises(UnsupportedTypeError, match="edits: expected a path"):
        module.compute(predictions=3)
    with pytest.raises(TypeError, match="no_such_option"):
        module.compute(predictions=rows, no_such_option=1)
    assert module.compute(predictions=rows)  # a failure leaves the instance as it was


def test_there_are_no_variants(module: Any) -> None:
    with pytest.raises(UnknownNameError):
        evaluate.load(f"./metrics/{module.name}", "official")
