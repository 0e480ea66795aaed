"""What stands beside note F1: the divergence of intervals over seeds and failures, and the rates."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.judging import judge_items

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.benchmark.contents import heading
from music_evals.benchmark.results import build_results
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tables import blocks, text_report
from music_evals.benchmark.tasks.inpainting.items import ItemSet, load_items
from music_evals.benchmark.tasks.inpainting.runner import InpaintingJob, extension_names
from music_evals.benchmark.tasks.inpainting.systems import System, baseline_system, stored_system
from music_evals.benchmark.tasks.inpainting.task import INPAINTING
from music_evals.errors import CorruptRecordsError, UnknownNameError
from music_evals.metrics import melodic_intervals
from music_evals.metrics.divergence import normalised_jensen_shannon
from music_evals.pipelines.inpainting import evaluate_inpainting
from music_evals.stats import swap_test_divergence

H, R = 128, 129
NAME = "interval_divergence"


@pytest.fixture
def items(tiny_dataset: Path) -> ItemSet:
    return load_items(str(tiny_dataset), "musib", "validation")


@pytest.fixture
def melodies(items: ItemSet) -> np.ndarray:
    """Random melodies of three seeds, shape (3, n, 96)."""
    rng = np.random.default_rng(5)
    middles = np.where(rng.random((3, len(items), 96)) < 0.2, rng.integers(58, 70, (3, len(items), 96)), H)
    return middles.astype(np.uint8)


def results_of(items: ItemSet, systems: list[System], path: Path, **options: Any) -> dict[str, Any]:
    found = read_scores(judge_items(items, [*systems, baseline_system("reference", None)], path, **options), INPAINTING)
    return build_results(found, INPAINTING, n_resamples=200)


def monotone(items: ItemSet) -> np.ndarray:
    middles = np.full((len(items), 96), H, np.uint8)
    middles[:, ::6] = 60
    return middles


def test_one_seed_has_the_divergence_of_the_library(items: ItemSet, melodies: np.ndarray, tmp_path: Path) -> None:
    results = results_of(items, [stored_system("one", {0: melodies[0]})], tmp_path / "records")
    cell = results["tables"]["all"]["scores"]["one"][NAME]
    expected = evaluate_inpainting(
        items.contexts, melodies[0], groups=list(items.songs), metrics=[NAME], n_resamples=200
    )
    assert cell["value"] == pytest.approx(expected[NAME])
    assert (cell["low"], cell["high"]) == pytest.approx(expected[f"{NAME}_ci"])
    assert cell["null"] == pytest.approx(expected[f"{NAME}_null"])
    assert (cell["n"], cell["n_defined"], cell["n_failed"]) == (len(items), expected[f"{NAME}_n_defined"], 0)
    control = results["tables"]["all"]["scores"]["reference"][NAME]
    assert control["value"] == 0


def test_seeds_are_averaged_and_cost_no_failed_item(items: ItemSet, melodies: np.ndarray, tmp_path: Path) -> None:
    lost = items.item_ids[0]
    system = stored_system("three", dict(enumerate(melodies)), {lost: "no prediction was given"})
    cell = results_of(items, [system], tmp_path / "records")["tables"]["all"]["scores"]["three"][NAME]
    by_seed = [melodic_intervals.interval_divergence(items.middles[1:], middles[1:]) for middles in melodies]
    assert cell["value"] == pytest.approx(np.mean(by_seed))
    assert cell["seed_std"] == pytest.approx(np.std(by_seed, ddof=1))
    assert (cell["n"], cell["n_scored"], cell["n_failed"]) == (len(items), len(items) - 1, 1)


def test_without_two_notes_on_either_side_it_is_undefined(items: ItemSet, tmp_path: Path) -> None:
    silent = ItemSet("own", None, "test", items.item_ids, items.songs, np.full_like(items.contexts, R))
    system = stored_system("silent", {0: silent.middles})
    cell = results_of(silent, [system], tmp_path / "records")["tables"]["all"]["scores"]["silent"][NAME]
    assert (cell["value"], cell["low"], cell["null"], cell["n_defined"]) == (None, None, None, 0)


def test_monotone_output_is_shown_in_the_table_of_note_f1(items: ItemSet, tmp_path: Path) -> None:
    results = results_of(items, [stored_system("monotone", {0: monotone(items)})], tmp_path / "records")
    first = next(blocks(results))
    wanted = ["note_f1", NAME, "repeated_note_rate"]
    assert list(first.head[:3]) == [heading(results, name) for name in wanted]
    cells = results["tables"]["all"]["scores"]
    assert cells["monotone"]["repeated_note_rate"]["value"] == 1
    truth = melodic_intervals.repeated_note_rate(items.middles)
    assert cells["reference"]["repeated_note_rate"]["value"] == pytest.approx(np.nanmean(truth))
    assert cells["monotone"][NAME]["value"] > cells["monotone"][NAME]["null"]
    assert "≈ is compared with the reference's own" in text_report(results)


def test_a_rate_has_no_best_baseline_and_the_divergence_has(
    items: ItemSet, melodies: np.ndarray, tmp_path: Path
) -> None:
    copy = baseline_system("copy_past", items.contexts)
    systems = [copy, baseline_system("silence", None), baseline_system("reference", None)]
    validation = read_scores(judge_items(items, systems, tmp_path / "validation.jsonl"), INPAINTING)
    judged = [stored_system("model", {0: melodies[0]}), *systems]
    found = read_scores(judge_items(items, judged, tmp_path / "records"), INPAINTING)
    results = build_results(found, INPAINTING, validation, n_resamples=50)
    assert "repeated_note_rate" not in results["best_baseline"]
    # silence has no interval, which shares nothing with the reference's
    assert results["best_baseline"][NAME] == "copy_past"
    cells = results["tables"]["all"]["scores"]["model"]
    assert "test" not in cells["repeated_note_rate"]
    test = cells[NAME]["test"]
    assert (test["against"], test["n"]) == ("copy_past", len(items))
    other = results["tables"]["all"]["scores"]["copy_past"][NAME]["value"]
    assert test["difference"] == pytest.approx(cells[NAME]["value"] - other)


def test_a_song_weighs_as_many_intervals_as_it_has_in_cell_and_test(
    items: ItemSet, melodies: np.ndarray, tmp_path: Path
) -> None:
    songs, codes = np.unique(items.songs, return_inverse=True)
    assert len(songs) > 2
    sparse = melodies[0].copy()
    sparse[codes != 0] = np.where(np.arange(96) % 48 == 0, sparse[codes != 0] % 12 + 60, H)  # two notes a window
    own = dataclasses.replace(items, contexts=items.contexts.copy())
    own.contexts[:, MUSIB_LAYOUT.middle] = sparse  # in the reference, too, the first song has nearly all intervals
    middles = {"model": np.roll(sparse, 1, axis=0), "copy": np.where(sparse < H, sparse + 1, sparse)}
    middles["model"][codes != 0] = sparse[codes != 0]
    systems = [dataclasses.replace(stored_system(name, {0: part}), role=role)
               for (name, part), role in zip(middles.items(), ("model", "baseline"), strict=True)]  # fmt: skip
    rows = judge_items(own, [*systems, baseline_system("reference", None)], tmp_path / "records")
    found = read_scores(rows, INPAINTING)
    results = build_results(found, INPAINTING, found, n_resamples=200)
    assert results["best_baseline"][NAME] == "copy"
    cell = results["tables"]["all"]["scores"]["model"][NAME]
    sides = [melodic_intervals.interval_bins(part) for part in (sparse, *middles.values())]
    width = max(part.shape[1] for part in sides)
    laid = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1).ravel() for part in sides]
    filled = np.max(laid, axis=0) >= 0
    expected = swap_test_divergence(
        *(part[filled].astype(int) for part in laid), np.repeat(codes, width)[filled],
        n_bins=melodic_intervals.INTERVAL_BINS, divergence=normalised_jensen_shannon, upper=np.log(2),
        n_resamples=2000, n_bootstrap=200,
    )  # fmt: skip
    assert cell["n_clusters"] < 0.9 * len(songs)
    assert (cell["test"]["low"], cell["test"]["high"]) == pytest.approx((expected.low, expected.high))
    assert cell["test"]["p_value"] == pytest.approx(expected.p_value)


def test_extensions_are_recorded_where_they_are_asked_for(items: ItemSet, tmp_path: Path) -> None:
    systems = [stored_system("model", {0: monotone(items)})]
    plain = results_of(items, systems, tmp_path / "plain.jsonl")["scales"]
    assert "consonance_pitch_accuracy" not in plain
    extensions = extension_names("all")
    assert extensions == ("consonance_pitch_accuracy", "self_replication_rate")
    results = results_of(items, systems, tmp_path / "all.jsonl", extensions=extensions)
    cells = results["tables"]["all"]["scores"]["model"]
    expected = evaluate_inpainting(items.contexts, monotone(items), metrics=extensions)
    for name in extensions:
        assert cells[name]["value"] == pytest.approx(expected[name], nan_ok=True)
    truth = results["tables"]["all"]["scores"]["reference"]["self_replication_rate"]["value"]
    assert truth == pytest.approx(expected["self_replication_rate_reference"])


def test_what_extensions_may_be_named() -> None:
    assert extension_names("none") == ()
    assert extension_names("interval_divergence, self_replication_rate") == ("self_replication_rate",)
    with pytest.raises(UnknownNameError, match="self_replication_rate"):
        extension_names("self_replication")


def test_a_run_that_is_asked_for_more_scores_works_out_what_is_missing(items: ItemSet, tmp_path: Path) -> None:
    systems = [stored_system("model", {0: monotone(items)}), baseline_system("reference", None)]
    path = tmp_path / "records"
    judge_items(items, systems, path)
    rows = judge_items(items, systems, path, extensions=("self_replication_rate",))
    job = InpaintingJob(items, systems, extensions=("self_replication_rate",))
    assert job.left(rows) == []
    results = build_results(read_scores(rows, INPAINTING), INPAINTING, n_resamples=10)
    assert results["tables"]["all"]["scores"]["model"]["self_replication_rate"]["n_failed"] == 0


def test_predictions_of_other_tokens_are_damaged_records(items: ItemSet, tmp_path: Path) -> None:
    rows = list(judge_items(items, [stored_system("model", {0: items.middles})], tmp_path / "records"))
    rows = [{**row, "middle": [130] * 96} if row["kind"] == "prediction" else row for row in rows]
    with pytest.raises(CorruptRecordsError, match="a prediction of other tokens: token 130"):
        read_scores(rows, INPAINTING)
