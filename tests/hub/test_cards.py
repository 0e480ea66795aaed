from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from music_evals.errors import InvalidInputError, UnknownNameError, UnreadableFileError
from music_evals.hub.cards import RESULTS_END, RESULTS_START, fill_card

CARD = f"""---
license: apache-2.0
library_name: music_evals
tags: [music]
---

# My model

Text before.

{RESULTS_START}
old numbers
{RESULTS_END}

Text after.
"""


@pytest.fixture(scope="module")
def results(inpainting_run_of_all: Path) -> dict[str, Any]:
    return json.loads((inpainting_run_of_all / "results.json").read_bytes())


@pytest.mark.slow
def test_a_filled_card_loads_and_holds_the_results(results: dict[str, Any]) -> None:
    card = ModelCard(fill_card(results, "mine", CARD))
    found = {result.metric_type: result for result in card.data.eval_results}
    cells = results["tables"]["all"]["scores"]["mine"]
    assert set(found) == set(cells)
    for metric, result in found.items():
        assert result.metric_value == pytest.approx(cells[metric]["value"], abs=1e-4)
        assert (result.dataset_config, result.dataset_split) == ("musib", "test")
        assert result.metric_args["variant"] == "corrected"
        assert result.metric_args["low"] <= result.metric_args["high"]
    assert card.data.license == "apache-2.0"
    assert card.data.model_name == "mine"


def test_the_text_around_the_results_is_kept(results: dict[str, Any]) -> None:
    card = fill_card(results, "mine", CARD)
    assert "Text before." in card
    assert "Text after." in card
    assert "old numbers" not in card
    inside = card.partition(RESULTS_START)[2].partition(RESULTS_END)[0]
    assert inside.count("| `mine` |") == 2  # all windows, and those not seen in training
    assert "`copy_past`" in inside
    assert "`reference`" not in inside
    assert results["dataset"]["fingerprint"] in inside
    best = results["tables"]["all"]["scores"]["mine"]["note_f1"]["test"]["against"]
    assert best in {"copy_past", "markov"}
    assert f"the best baseline `{best}`" in inside


def test_filling_twice_changes_nothing_more(results: dict[str, Any]) -> None:
    once = fill_card(results, "mine", CARD)
    assert fill_card(results, "mine", once) == once


def test_scores_on_other_datasets_stay(results: dict[str, Any]) -> None:
    elsewhere = {**results, "dataset": {**results["dataset"], "id": "irish_folk"}}
    card = ModelCard(fill_card(results, "mine", fill_card(elsewhere, "mine", CARD)))
    assert {result.dataset_type for result in card.data.eval_results} == {"irish_folk", results["dataset"]["id"]}
    assert len(card.data.eval_results) == 18


def test_each_variant_has_its_own_scores(results: dict[str, Any]) -> None:
    official = {**results, "variant": "official"}
    card = fill_card(official, "mine", fill_card(results, "mine", CARD))
    variants = [result.metric_args["variant"] for result in ModelCard(card).data.eval_results]
    assert sorted(variants) == ["corrected"] * 9 + ["official"] * 9
    assert fill_card(official, "mine", card) == card


@pytest.mark.parametrize(
    ("difference", "p_holm", "words"),
    [
        (0.2, 0.001, "significantly better than"),
        (-0.2, 0.001, "significantly worse than"),
        (0.2, 0.4, "not significantly different from"),
        (0.0, 1.0, "not significantly different from"),
        (0.2, None, "not significantly different from"),
    ],
)
def test_the_verdict_is_that_of_the_test(
    results: dict[str, Any], difference: float, p_holm: float | None, words: str
) -> None:
    changed = copy.deepcopy(results)
    cell = changed["tables"]["all"]["scores"]["mine"]["note_f1"]
    cell["test"] |= {"difference": difference, "p_holm": p_holm}
    card = fill_card(changed, "mine", CARD)
    assert f"{words} the best baseline `{cell['test']['against']}`" in card


def test_a_card_without_marks_gets_a_section(results: dict[str, Any]) -> None:
    card = fill_card(results, "mine", "---\nlicense: mit\n---\n# Mine\n")
    assert card.index("# Mine") < card.index("## Results") < card.index(RESULTS_START) < card.index(RESULTS_END)


def test_no_card_yet(results: dict[str, Any]) -> None:
    card = ModelCard(fill_card(results, "mine"))
    assert card.data.library_name == "music_evals"
    assert "# mine" in card.text


@pytest.mark.parametrize(
    "card", [f"# x\n{RESULTS_START}\n", f"# x\n{RESULTS_END}\n", f"# x\n{RESULTS_END}\n{RESULTS_START}\n"]
)
def test_marks_that_do_not_pair_up(results: dict[str, Any], card: str) -> None:
    with pytest.raises(UnreadableFileError, match="one is missing or they are swapped"):
        fill_card(results, "mine", card)


def test_a_broken_head(results: dict[str, Any]) -> None:
    with pytest.raises(UnreadableFileError, match="head of the card"):
        fill_card(results, "mine", "---\nlicense: [mit\n---\n# Mine\n")


def test_who_gets_no_card(results: dict[str, Any]) -> None:
    with pytest.raises(UnknownNameError, match="did you mean mine"):
        fill_card(results, "mime")
    with pytest.raises(InvalidInputError, match="has seen the reference"):
        fill_card(results, "reference")


def test_undefined_scores_are_left_out(results: dict[str, Any]) -> None:
    metrics = {result.metric_type for result in ModelCard(fill_card(results, "silence")).data.eval_results}
    assert "note_f1" in metrics
    assert "pitch_accuracy" not in metrics
