from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.benchmark.record_files import write_json_lines

from music_evals.benchmark.records import read_records
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tasks.inpainting import items as tasks
from music_evals.benchmark.tasks.inpainting.systems import stored_system
from music_evals.benchmark.tasks.inpainting.task import INPAINTING, Settings
from music_evals.errors import CorruptRecordsError, InvalidInputError, InvalidTokensError
from music_evals.pipelines.inpainting import evaluate_inpainting, evaluate_nll
from music_evals.stats import bootstrap_divergence, null_divergence, paired_mean_test

REST = [129] * 384


def write_table(folder: Path, **columns: Any) -> str:
    folder.mkdir()
    n = len(columns["tokens"])
    whole = {"item_id": [str(row) for row in range(n)], "song": ["s"] * n, **columns}
    pq.write_table(pa.table(whole), folder / "test.parquet")
    return str(folder)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"tokens": ["60 128"] * 2}, "column tokens holds string; expected lists of 384 whole numbers"),
        ({"tokens": [60, 61]}, "column tokens holds int64"),
        ({"tokens": [["60"] * 384] * 2}, "column tokens holds list"),
        ({"tokens": [[60.0] * 384] * 2}, "column tokens holds list"),
        ({"tokens": [REST, [130, *REST[1:]]]}, r"data: item '1': .*130"),
        ({"tokens": [REST, [None, *REST[1:]]]}, r"data: item '1': "),
        ({"tokens": [REST, None]}, "item '1' has 0 tokens"),
        ({"tokens": [REST] * 2, "seen_in_train": ["true", "false"]}, "column seen_in_train holds string"),
        ({"tokens": [REST] * 2, "seen_in_train": [0, 1]}, "column seen_in_train holds int64"),
        ({"tokens": [REST] * 2, "seen_in_train": [True, None]}, "seen_in_train has no value in 1 rows, .* row 1"),
        ({"tokens": [REST] * 2, "near_train": [1, 0]}, "column near_train holds int64"),
        ({"tokens": [REST] * 2, "near_train": [0.5, 1.5]}, "column near_train holds 1.5 in row 1"),
        ({"tokens": [REST] * 2, "near_train": [0.5, float("nan")]}, "column near_train holds nan in row 1"),
        ({"tokens": [REST] * 2, "repeats_in_context": [None, 0.5]}, "repeats_in_context has no value in 1 rows"),
        ({"tokens": [REST] * 2, "voice": [[1], [2]]}, "column voice holds"),
        ({"tokens": [REST] * 2, "item_id": [None, "a"]}, "item_id has no value in 1 rows, the first is row 0"),
        ({"tokens": [REST] * 2, "item_id": [["a"], ["b"]]}, "column item_id holds list"),
        ({"tokens": [REST] * 2, "song": [None, None]}, "column song holds null"),
    ],
)
def test_columns_of_a_strangers_table(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    folder = write_table(tmp_path / "data", **columns)
    with pytest.raises(InvalidInputError, match=message):
        tasks.load_items(folder, None, "test")


def test_columns_of_other_widths_are_read(tmp_path: Path) -> None:
    fixed = pa.array([REST] * 2, pa.list_(pa.int32(), 384))
    folder = write_table(tmp_path / "data", tokens=fixed, item_id=[7, 8])
    items = tasks.load_items(folder, None, "test")
    assert items.item_ids == ("7", "8")
    np.testing.assert_array_equal(items.contexts, [REST] * 2)


WRONG = [
    ("score", {"system": "unheard of"}),
    ("score", {"item": "unheard of"}),
    ("score", {"seed": [0]}),
    ("score", {"value": "many"}),
    ("prediction", {"middle": [60]}),
    ("prediction", {"middle": [1000] * 96}),
    ("sitting", {"wall_time_sec": None}),
    ("item", {"tokens": "none"}),
]


@pytest.fixture(scope="module")
def finished(tiny_dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A small run that is done."""
    settings = Settings(
        tmp_path_factory.mktemp("run"), dataset=str(tiny_dataset), config="musib", limit=3, baselines="none",
        n_resamples=5, report=False,
    )  # fmt: skip
    INPAINTING.run(settings)
    return settings


@pytest.mark.parametrize(("kind", "change"), WRONG)
def test_wrong_rows_under_a_good_checksum(
    finished: Settings, tmp_path: Path, kind: str, change: dict[str, Any]
) -> None:
    rows = list(read_records(Path(finished.out) / "records"))
    next(row for row in rows if row["kind"] == kind).update(change)
    write_json_lines(tmp_path / "records.jsonl", rows)  # the store itself refuses some of it
    with pytest.raises(CorruptRecordsError, match="overwrite"):
        INPAINTING.run(Settings(**{**vars(finished), "out": tmp_path}))


@pytest.mark.parametrize("missing", ["kind", "item", "system", "metric"])
def test_rows_without_a_field(finished: Settings, tmp_path: Path, missing: str) -> None:
    rows = list(read_records(Path(finished.out) / "records"))
    del next(row for row in rows if row["kind"] == "score")[missing]
    with pytest.raises(CorruptRecordsError, match=f"KeyError: '{missing}'"):
        read_scores(rows, INPAINTING)
    write_json_lines(tmp_path / "records.jsonl", rows)
    with pytest.raises(CorruptRecordsError):
        INPAINTING.run(Settings(**{**vars(finished), "out": tmp_path}))


def test_a_run_of_the_control_alone_has_a_report(finished: Settings, tmp_path: Path) -> None:
    outcome = INPAINTING.run(Settings(**{**vars(finished), "out": tmp_path, "report": True}))
    assert "Nothing is ranked" in outcome.files["report"].read_text()
    assert json.loads(outcome.files["results"].read_text())["tables"]["all"]["ranking"] == []


def test_a_system_has_a_name() -> None:
    with pytest.raises(InvalidInputError, match="name"):
        stored_system("", {0: np.zeros((1, 96), dtype=np.uint8)})


OPTIONS = [
    ({"seed": -1}, "seed must be at least 0, got -1"),
    ({"seed": 0.5}, "seed must be a whole number, got 0.5"),
    ({"n_resamples": -1}, "n_resamples must be at least 0, got -1"),
    ({"n_resamples": "many"}, "n_resamples must be a whole number, got 'many'"),
    ({"n_resamples": True}, "n_resamples must be a whole number, got True"),
    ({"confidence": "high"}, "confidence must lie above 0 and below 1, got 'high'"),
    ({"confidence": 95, "n_resamples": 0}, "confidence must lie above 0 and below 1"),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_options_of_the_pipelines(options: dict[str, Any], message: str) -> None:
    contexts = np.full((2, 384), 129, dtype=np.uint8)
    with pytest.raises(InvalidInputError, match=message):
        evaluate_inpainting(contexts, contexts[:, :96], **options)
    if "confidence" in options:  # the others need no means
        with pytest.raises(InvalidInputError, match=message):
            evaluate_nll(np.full((2, 96), -1.0), confidence=options["confidence"])


@pytest.mark.parametrize("seed", [-1, 0.5, "one"])
def test_seeds_of_the_statistics(seed: Any) -> None:
    bins = np.arange(30) % 3
    same: dict[str, Any] = {"n_bins": 3, "divergence": lambda p, q: np.abs(p - q).sum(axis=-1), "seed": seed}
    calls = [
        lambda: bootstrap_divergence(bins, bins, None, **same),
        lambda: null_divergence(bins, bins, **same),
        lambda: paired_mean_test(np.arange(30.0), np.zeros(30), None, seed=seed),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match="seed must be"):
            call()


def test_tokens_keep_their_kind_of_error(tmp_path: Path) -> None:
    folder = write_table(tmp_path / "data", tokens=[[255, *REST[1:]]])
    with pytest.raises(InvalidTokensError, match="item '0'"):
        tasks.load_items(folder, None, "test")
