from __future__ import annotations

import copy
from typing import Any

import pytest

from music_evals.errors import UnreadableFileError
from music_evals.hub.model_index import merge_index, merge_published, read_index, write_index


def result(
    values: dict[str, float], dataset: str = "a/b", *, variant: str = "corrected", **more: Any
) -> dict[str, Any]:
    return {
        "task": {"type": "t"},
        "dataset": {"type": dataset, "name": dataset, "config": "c", "split": "s"},
        "metrics": [{"type": name, "value": value, "args": {"variant": variant}} for name, value in values.items()],
        **more,
    }


def index(*results: dict[str, Any], name: str = "m") -> list[dict[str, Any]]:
    return [{"name": name, "results": list(results)}]


def test_into_an_empty_card() -> None:
    merged, changed = merge_index([], result({"x": 1}), "m")
    assert merged == index(result({"x": 1}))
    assert changed == []


def test_the_same_changes_nothing() -> None:
    held = index(result({"x": 1}), result({"y": 2}, "c/d"))
    merged, changed = merge_index(held, result({"x": 1}), "m")
    assert merged is held
    assert changed == []


def test_other_results_stay_and_the_place_is_kept() -> None:
    held = index(result({"x": 1}, "c/d"), result({"x": 1, "y": 2}), result({"x": 3}, "e/f"))
    before = copy.deepcopy(held)
    merged, changed = merge_index(held, result({"x": 5}), "m")
    assert [(change.old, change.new) for change in changed] == [(1, 5)]
    assert str(changed[0].entry) == "x on a/b c s, variant corrected"
    assert merged == index(result({"x": 1}, "c/d"), result({"x": 5, "y": 2}), result({"x": 3}, "e/f"))
    assert held == before


def test_metrics_keep_their_order_whatever_the_order_of_a_push() -> None:
    held = index(result({"a": 1, "b": 2, "c": 3}))
    merged, changed = merge_index(held, result({"c": 6, "d": 7, "a": 4}), "m")
    assert merged == index(result({"a": 4, "b": 2, "c": 6, "d": 7}))
    assert [(change.old, change.new) for change in changed] == [(1, 4), (3, 6)]


def test_a_value_that_stands_twice_stands_once() -> None:
    twice = result({"x": 1})
    twice["metrics"] *= 2
    for held in (index(twice), index(result({"x": 1}), result({"x": 2}, source={"url": "u"}))):
        assert merge_index(held, result({"x": 5}), "m")[0] == index(result({"x": 5}))


def test_what_else_a_metric_says_is_of_its_value() -> None:
    held = index(result({"x": 1}))
    held[0]["results"][0]["metrics"][0]["verified"] = True
    same = result({"x": 1})
    same["metrics"][0]["name"] = "X"
    assert merge_index(held, same, "m")[0][0]["results"][0]["metrics"][0]["verified"]
    assert "verified" not in merge_index(held, result({"x": 2}), "m")[0][0]["results"][0]["metrics"][0]


def test_a_new_revision_replaces_the_value_of_the_old() -> None:
    new = result({"x": 1})
    new["dataset"]["revision"] = "abc"
    merged, changed = merge_index(index(result({"x": 1, "y": 2})), new, "m")
    assert changed == []  # the value is the same
    assert merged == index(result({"y": 2}), new)
    assert merge_index(merged, new, "m") == (merged, [])


def test_variants_stand_side_by_side() -> None:
    merged, _ = merge_index(index(result({"x": 1})), result({"x": 2}, variant="official"), "m")
    assert [metric["value"] for metric in merged[0]["results"][0]["metrics"]] == [1, 2]


def test_the_model_of_that_name_is_taken() -> None:
    held = [*index(name="first"), *index(result({"x": 1}), name="m")]
    assert merge_index(held, result({"y": 1}), "m")[0][0] == held[0]
    assert [model["name"] for model in merge_index(held, result({"y": 1}), "third")[0]] == ["first", "m", "third"]
    assert merge_index(held[:1], result({"y": 1}), "m")[0][0]["name"] == "first"


def test_publishing_keeps_what_only_the_hub_has() -> None:
    local = index(result({"x": 1, "y": 2}))
    pushed = index(result({"x": 1}, source={"url": "u"}), result({"z": 3}, "c/d"))
    merged, kept = merge_published(pushed, local)
    assert kept == []
    assert merged[0]["results"][:2] == pushed[0]["results"]
    assert merged[0]["results"][2]["metrics"] == result({"y": 2})["metrics"]
    assert merge_published(merged, local) == (merged, [])
    assert merge_published([], local) == (local, [])


def test_a_value_on_the_hub_outlives_another_in_the_folder() -> None:
    pushed = index(result({"x": 7}))
    merged, kept = merge_published(pushed, index(result({"x": 1, "y": 2})))
    assert [metric["value"] for metric in merged[0]["results"][0]["metrics"]] == [7, 2]
    assert kept == [("x on a/b c s, variant corrected", 7, 1)]


def test_writing_and_reading() -> None:
    held = index(result({"x": 1}))
    card = write_index("---\nlicense: mit\n---\n# x\n", held)
    assert read_index(card) == held
    assert write_index(card, held) == card
    assert read_index("# none\n") == []


@pytest.mark.parametrize(
    "block",
    ["model-index: text", "model-index: [{name: a}]", "model-index: [{name: a, results: [{metrics: [{type: x}]}]}]",
     "model-index: [{name: a, results: [{dataset: {type: x}, metrics: [{type: x}]}]}]"],
)  # fmt: skip
def test_an_index_of_another_form(block: str) -> None:
    with pytest.raises(UnreadableFileError, match="model-index"):
        read_index(f"---\n{block}\n---\n")
