"""The middles that VLI of the published size wrote are of the test windows, and score what the table says."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from benchmarks.musib.systems import DATA

from benchmarks.musib import published_size, tables
from music_evals.benchmark.tasks.inpainting.items import load_items
from music_evals.pipelines.inpainting import evaluate_inpainting


def test_the_stored_middles_score_what_the_table_says():
    lines = (published_size.FOLDER / "vli_paper.jsonl").read_text().splitlines()
    middles = {row["item_id"]: row["middle"] for row in map(json.loads, lines)}
    data = next(data for data in DATA if data.key == "jsb")
    items = load_items(data.place, data.config, "test")
    assert set(middles) == set(items.item_ids)
    written = np.array([middles[item] for item in items.item_ids], dtype=np.uint8)
    found = evaluate_inpainting(items.contexts, written, metrics=["note_f1", "position_score"])
    rows = tables.read_csv(published_size.FOLDER / "results.csv")
    told = {
        row["metric"]: float(row["value"]) for row in rows if (row["system"], row["subset"]) == ("vli_paper", "all")
    }
    for metric, value in found.items():
        if metric in told:
            assert value == pytest.approx(told[metric], abs=1e-6)
    assert {"note_f1", "position_score"} <= found.keys() & told.keys()
    page = (published_size.HERE / "README.md").read_text()
    assert f"| `vli_paper` | {published_size.LARGE_SIZE} | {float(told['note_f1']):.3f}" in page


def test_differences_are_those_of_the_scores_and_of_the_page():
    scores = {
        (row["system"], row["metric"]): float(row["value"])
        for row in tables.read_csv(published_size.FOLDER / "results.csv")
        if row["subset"] == "all" and row["value"]
    }
    found = tables.read_csv(published_size.FOLDER / "differences.csv")
    assert [row["metric"] for row in found] == list(published_size.COMPARED)
    for row in found:
        sign = -1 if "divergence" in row["metric"] or row["metric"] == published_size.COMPANION else 1
        expected = sign * (scores["vli_paper", row["metric"]] - scores["vli", row["metric"]])
        # where a window lacks a score, the difference is of those that have it for both
        assert float(row["difference"]) == pytest.approx(expected, abs=2e-6 if row["n"] == "308" else 2e-3)
    assert published_size.difference_table(found) in (published_size.HERE / "README.md").read_text()
