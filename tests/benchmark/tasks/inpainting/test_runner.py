from __future__ import annotations

import collections
import dataclasses
import functools
import json
import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.benchmark.record_files import shards
from tests.judging import judge_items

from music_evals.annotations import Tokens
from music_evals.benchmark.scores import read_scores
from music_evals.benchmark.tasks.inpainting import runner
from music_evals.benchmark.tasks.inpainting.items import ItemSet, load_items
from music_evals.benchmark.tasks.inpainting.systems import System, baseline_system, load_model, stored_system
from music_evals.benchmark.tasks.inpainting.task import INPAINTING
from music_evals.errors import CorruptRecordsError, InvalidInputError
from music_evals.numerics import package_versions
from music_evals.pipelines.inpainting import evaluate_inpainting


@pytest.fixture
def items(tiny_dataset: Path) -> ItemSet:
    return load_items(str(tiny_dataset), "musib", "test")


@dataclasses.dataclass
class Moody:
    """Fails on contexts that start with one pitch, and otherwise rests."""

    bad: int
    error: Exception
    name: str = "moody"
    deterministic: bool = True
    sees_reference: bool = False

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:  # noqa: ARG002 (the protocol)
        if (contexts[:, 0] == self.bad).any():
            raise self.error
        return np.full((len(contexts), 96), 129, dtype=np.uint8)


def scores_of(rows: list[dict[str, Any]], system: str) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["item"], row["metric"]): row for row in rows if row["kind"] == "score" and row["system"] == system}


@pytest.mark.slow
def test_every_item_has_every_metric_once(tmp_path: Path, items: ItemSet, fake_model: Path) -> None:
    systems = [load_model(str(fake_model)), baseline_system("copy_past", None), baseline_system("reference", None)]
    rows = judge_items(items, systems, tmp_path / "records", seeds=[0, 1, 2])
    counts = collections.Counter((row["system"], row["metric"]) for row in rows if row["kind"] == "score")
    for metric in (*runner.METRICS, runner.COMPANION):
        assert counts["fake", metric] == 3 * 70
        assert counts["copy_past", metric] == 70
    assert counts["fake", runner.NLL] == 70  # once, though there are three seeds
    assert counts["copy_past", runner.NLL] == 0
    row = next(row for row in rows if row["kind"] == "score")
    assert set(row) == {"kind", "item", "system", "seed", "metric", "variant", "value", "n"}
    header = rows[0]
    assert header["dataset"]["fingerprint"] == items.fingerprint
    assert header["systems"]["fake"]["seeds"] == [0, 1, 2]
    assert header["versions"]["music_evals"]


def test_the_control_scores_perfectly(tmp_path: Path, items: ItemSet) -> None:
    rows = judge_items(items, [baseline_system("reference", None)], tmp_path / "records")
    for (_, metric), row in scores_of(rows, "reference").items():
        if metric in {"note_f1", "position_score", "pitch_accuracy", "rhythm_accuracy"}:
            assert row["value"] == 1


def test_records_agree_with_the_library(tmp_path: Path, items: ItemSet) -> None:
    rows = judge_items(items, [baseline_system("copy_past", None)], tmp_path / "records")
    middles = items.contexts[:, 48:144]  # the last four measures of the past
    expected = evaluate_inpainting(items.contexts, middles, n_resamples=1, per_item=True)["per_item"]
    found = scores_of(rows, "copy_past")
    for item, values in zip(items.item_ids, expected, strict=True):
        for metric in ("note_f1", "position_score", "pitch_accuracy", "rhythm_accuracy"):
            value = found[item, metric]["value"]
            assert (np.nan if value is None else value) == pytest.approx(values[metric], nan_ok=True)


def test_a_resumed_run_does_not_run_again(tmp_path: Path, items: ItemSet) -> None:
    path = tmp_path / "records"
    calls: list[tuple[int, int, str]] = []
    first = judge_items(items, [baseline_system("copy_past", None)], path, progress=lambda *call: calls.append(call))
    assert calls == [(64, 70, "copy_past"), (70, 70, "copy_past")]
    content = shards(path)
    again = judge_items(items, [baseline_system("copy_past", None)], path, progress=lambda *call: calls.append(call))
    assert len(calls) == 2
    assert shards(path) == content
    assert list(again) == list(first)


def test_another_run_is_refused(tmp_path: Path, items: ItemSet, fake_model: Path) -> None:
    path = tmp_path / "records"
    judge_items(items, [load_model(str(fake_model))], path, seeds=[0])
    with pytest.raises(CorruptRecordsError, match="variant was 'corrected' and is now 'paper'"):
        judge_items(items, [load_model(str(fake_model))], path, seeds=[0], variant="paper")
    with pytest.raises(CorruptRecordsError, match=r"dataset\.fingerprint"):
        judge_items(items.head(3), [load_model(str(fake_model))], path, seeds=[0])
    (fake_model / "model.safetensors").write_bytes(b"trained again")
    with pytest.raises(CorruptRecordsError, match=r"systems\.fake\.content_hash"):
        judge_items(items, [load_model(str(fake_model))], path, seeds=[0])
    judge_items(items, [load_model(str(fake_model))], path, seeds=[0], overwrite=True)


@pytest.mark.parametrize("error", [ValueError("bad mood"), RuntimeError("out of memory"), KeyError("x")])
def test_a_failing_item_costs_itself_alone(tmp_path: Path, items: ItemSet, error: Exception) -> None:
    path = tmp_path / "records"
    bad = int(items.contexts[10, 0])
    failing = {item for item, context in zip(items.item_ids, items.contexts, strict=True) if context[0] == bad}
    assert 0 < len(failing) < 70
    system = System("moody", "model", "0", lambda: Moody(bad, error))
    found = scores_of(judge_items(items, [system], path), "moody")
    assert {item for (item, _), row in found.items() if "error" in row} == failing
    for (item, _), row in found.items():
        assert ("value" in row) == (item not in failing)
        assert "error" not in row or (type(error).__name__ in row["error"] and row["n"] == 0)
    # what failed is tried again, what succeeded is not; the later row counts
    calm = System("moody", "model", "0", lambda: Moody(-1, error))
    rows = judge_items(items, [calm], path)
    assert all("value" in row for row in scores_of(rows, "moody").values())


class Doubtful(Moody):
    """Predicts, but has no likelihood for contexts that start with one pitch; counts what it is asked."""

    calls: ClassVar[list[str]] = []

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:  # noqa: ARG002
        self.calls.append("inpaint")
        return np.full((len(contexts), 96), 129, dtype=np.uint8)

    def nll(self, contexts: Tokens) -> Any:
        self.calls.append("nll")
        if (contexts[:, 0] == self.bad).any():
            raise self.error
        return np.full((len(contexts), 96), 1.0)


def test_a_failing_likelihood_costs_itself_alone(tmp_path: Path, items: ItemSet) -> None:
    path = tmp_path / "records"
    few = items.head(5)
    bad = int(few.contexts[2, 0])
    failing = [item for item, context in zip(few.item_ids, few.contexts, strict=True) if context[0] == bad]
    assert len(failing) < 5
    Doubtful.calls.clear()
    system = System("moody", "model", "0", lambda: Doubtful(bad, ValueError("no density")))
    scores = read_scores(judge_items(few, [system], path, seeds=[0]), INPAINTING)
    assert [(row["item"], row["metric"]) for row in scores.failures] == [(item, runner.NLL) for item in failing]
    assert len(scores.scored("moody")) == len(few)
    assert int(np.isnan(scores.at(few.item_ids, "moody").values(runner.NLL)).sum()) == len(failing)
    # taken up again, only the likelihood is asked for
    Doubtful.calls.clear()
    calm = System("moody", "model", "0", lambda: Doubtful(-1, ValueError()))
    scores = read_scores(judge_items(few, [calm], path, seeds=[0]), INPAINTING)
    assert set(Doubtful.calls) == {"nll"}
    assert scores.failures == []
    Doubtful.calls.clear()
    judge_items(few, [calm], path, seeds=[0])
    assert Doubtful.calls == []


def test_an_item_that_fails_when_its_chunk_comes_again_is_a_failure(tmp_path: Path, items: ItemSet) -> None:
    path = tmp_path / "records"
    starts = items.contexts[:, 0].tolist()
    second = next(row for row, start in enumerate(starts) if start != starts[0])
    few = dataclasses.replace(
        items.head(2), contexts=items.contexts[[0, second]], item_ids=(items.item_ids[0], items.item_ids[second])
    )
    for bad in (starts[0], starts[second]):
        system = System("moody", "model", "0", lambda bad=bad: Moody(bad, ValueError("mood")))  # type: ignore[misc]
        scores = read_scores(judge_items(few, [system], path), INPAINTING)
    assert [pair["item"] for pair in scores.scored("moody")] == [few.item_ids[0]]
    assert [row["item"] for row in scores.failures] == [few.item_ids[1]]


def test_what_is_not_a_middle_is_an_error(tmp_path: Path, items: ItemSet) -> None:
    class Wrong(Moody):
        def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Any:  # noqa: ARG002
            return [np.zeros((len(contexts), 95), dtype=np.uint8), np.full((len(contexts), 96), 130)][self.bad]

    for bad, message in enumerate(["shape (1, 95), expected (1, 96)", "token 130"]):
        system = System("moody", "model", str(bad), lambda bad=bad: Wrong(bad, ValueError()))  # type: ignore[misc]
        rows = judge_items(items.head(2), [system], tmp_path / f"{bad}.jsonl")
        assert all(message in row["error"] for row in scores_of(rows, "moody").values())


def test_an_interrupt_is_no_item_failure(tmp_path: Path, items: ItemSet) -> None:
    system = System("moody", "model", "0", lambda: Moody(int(items.contexts[0, 0]), KeyboardInterrupt()))  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        judge_items(items, [system], tmp_path / "records")


def test_items_that_a_variant_cannot_score_are_errors(tmp_path: Path, items: ItemSet) -> None:
    contexts = items.contexts.copy()
    contexts[1, 144:240] = 129  # the authors' code fails on a reference without a note
    silent = dataclasses.replace(items, contexts=contexts).head(4)
    rows = judge_items(silent, [baseline_system("copy_past", None)], tmp_path / "r.jsonl", variant="official")
    failed = {item for (item, _), row in scores_of(rows, "copy_past").items() if "error" in row}
    assert failed == {items.item_ids[1]}
    rows = judge_items(silent, [baseline_system("copy_past", None)], tmp_path / "c.jsonl", variant="corrected")
    assert not any("error" in row for row in rows)


def test_stored_predictions_and_their_failures(tmp_path: Path, items: ItemSet) -> None:
    few = items.head(3)
    system = stored_system("mine", {7: few.middles}, {few.item_ids[1]: "PolyphonyError: two notes"})
    rows = judge_items(few, [system], tmp_path / "records", seeds=[0, 1])
    predictions = [row for row in rows if row["kind"] == "prediction"]
    assert [row["item"] for row in predictions] == [few.item_ids[0], few.item_ids[2]]
    assert {row["seed"] for row in predictions} == {7}
    found = scores_of(rows, "mine")
    assert found[few.item_ids[0], "note_f1"]["value"] == 1
    assert found[few.item_ids[1], "note_f1"]["error"] == "PolyphonyError: two notes"


@pytest.mark.slow
def test_randomness_hangs_on_seed_and_system_alone(tmp_path: Path, items: ItemSet, fake_model: Path) -> None:
    def middles(path: str, seeds: list[int], *others: System) -> dict[tuple[int, str], list[int]]:
        rows = judge_items(items, [*others, load_model(str(fake_model))], tmp_path / path, seeds=seeds)
        return {
            (row["seed"], row["item"]): row["middle"]
            for row in rows
            if row["kind"] == "prediction" and row["system"] == "fake"
        }

    alone = middles("alone.jsonl", [0, 1])
    beside = middles("beside.jsonl", [1, 5], baseline_system("copy_past", None))
    shared = [key for key in alone if key in beside]
    assert len(shared) == 70
    assert all(alone[key] == beside[key] for key in shared)
    assert alone[0, items.item_ids[0]] != alone[1, items.item_ids[0]]


@pytest.mark.slow
def test_processes_give_the_same_records(tmp_path: Path, items: ItemSet, tiny_dataset: Path) -> None:
    train = load_items(str(tiny_dataset), "musib", "train").contexts
    systems = [baseline_system("markov", train), baseline_system("copy_past", None)]
    serial = judge_items(items, systems, tmp_path / "serial.jsonl", seeds=[0, 1])
    spread = judge_items(items, systems, tmp_path / "spread.jsonl", seeds=[0, 1], workers=2)
    canonical = [
        sorted(json.dumps(row, sort_keys=True) for row in rows if row["kind"] != "sitting") for rows in (serial, spread)
    ]
    assert canonical[0] == canonical[1]


@pytest.mark.parametrize(
    ("cores", "n", "n_seeds", "expected"),
    [(2, 64, 2, 2), (8, 64, 2, 2), (8, 200, 3, 4), (2, 64, 1, 1), (2, 63, 5, 1), (1, 640, 5, 1)],
)
def test_networks_on_many_items_have_a_process_for_each_core(  # noqa: PLR0917
    fake_model: Path, monkeypatch: pytest.MonkeyPatch, cores: int, n: int, n_seeds: int, expected: int
) -> None:
    monkeypatch.setattr("music_evals.benchmark.tasks.inpainting.runner.n_cores", lambda: cores)
    names = tuple(map(str, range(n)))
    items = ItemSet("many", None, "test", names, names, np.full((n, 384), 60, dtype=np.uint8))
    network, rule = load_model(str(fake_model)), baseline_system("markov", items.contexts)
    assert runner.InpaintingJob(items, [network, rule], seeds=range(n_seeds)).workers == expected
    assert runner.InpaintingJob(items, [rule], seeds=range(n_seeds)).workers == 1


@dataclasses.dataclass
class Fatal(Moody):
    """Ends its process on contexts that start with one pitch."""

    def inpaint(self, contexts: Tokens, *, rng: np.random.Generator) -> Tokens:
        try:
            return super().inpaint(contexts, rng=rng)
        except ValueError:
            os._exit(1)


@pytest.mark.slow
def test_an_item_that_ends_its_process_costs_itself_alone(tmp_path: Path, items: ItemSet) -> None:
    few = items.head(8)
    bad = int(few.contexts[3, 0])
    failing = {item for item, context in zip(few.item_ids, few.contexts, strict=True) if context[0] == bad}
    assert 0 < len(failing) < 8
    system = System("fatal", "model", "0", functools.partial(Fatal, bad, ValueError()))
    found = scores_of(judge_items(few, [system], tmp_path / "records", engine="local"), "fatal")
    assert {item for (item, _), row in found.items() if "error" in row} == failing
    assert {metric for _, metric in found} == {*runner.METRICS, runner.COMPANION}
    assert "the process died (exit code 1)" in found[next(iter(failing)), "note_f1"]["error"]


def test_what_makes_no_run(tmp_path: Path, items: ItemSet) -> None:
    copy = baseline_system("copy_past", None)
    with pytest.raises(InvalidInputError, match="copy_past more than once"):
        judge_items(items, [copy, copy], tmp_path / "records")
    with pytest.raises(InvalidInputError, match="at least one seed"):
        judge_items(items, [copy], tmp_path / "records", seeds=[])
    with pytest.raises(InvalidInputError, match="`workers` must be at least 1"):
        judge_items(items, [copy], tmp_path / "records", workers=0)
    assert not (tmp_path / "records").exists()


def test_versions_tell_what_made_the_numbers() -> None:
    versions = package_versions()
    assert {"python", "music_evals", "numpy", "scipy"} <= set(versions)
