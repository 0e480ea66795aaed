"""Tags in each of their forms; vectors are made by hand, so that scores can be counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from music_evals.errors import (
    InvalidInputError,
    InvalidTagsError,
    NoDataError,
    PairCountError,
    UndefinedMetricWarning,
    UnknownNameError,
)
from music_evals.pipelines.descriptions import evaluate_descriptions
from music_evals.pipelines.tags import check_item, evaluate_tags, form_of

VECTORS = {"a": (1.0, 0.0), "b": (0.0, 1.0), "c": (0.6, 0.8)}
NAME = "tag_semantic_similarity"


class Hand:
    """An encoder of three tags, which counts what it encodes."""

    name, revision = "hand", "7"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.seen += texts
        return np.array([VECTORS[text] for text in texts], dtype=np.float32)


def test_lists() -> None:
    """Cosines a.a = 1, a.b = 0, a.c = 0.6, b.c = 0.8: song 1 is (1 + 0.6) / 2, song 2 (0 + 0.8) / 2."""
    encoder = Hand()
    result = evaluate_tags([["a", "c"], ["a", "c"]], [["a"], ["b"]], encoder=encoder, per_item=True)
    assert [row[NAME] for row in result["per_item"]] == pytest.approx([0.8, 0.4])
    assert result[NAME] == pytest.approx(0.6)
    assert result[f"{NAME}_std"] == pytest.approx((0.2 + 0.4) / 2)
    assert (result[f"{NAME}_n"], result[f"{NAME}_n_defined"]) == (2, 2)
    assert result["encoder"] == {"name": "hand", "revision": "7"}
    assert sorted(encoder.seen) == ["a", "b", "c"]
    low, high = result[f"{NAME}_ci"]
    assert -1 <= low < 0.4  # of two songs
    assert 0.8 < high <= 1 + 1e-6


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"aggregation": "best_match"}, (1 + (1 + 0.6) / 2) / 2), ({"aggregation": "f1"}, 2 * 0.8 / 1.8),
     ({"normalize_by_self": True}, 0.8 / math.sqrt((1 + 1 + 0.6 + 0.6) / 4))],
)  # fmt: skip
def test_options(options: dict[str, object], expected: float) -> None:
    result = evaluate_tags([["a", "c"]], [["a"]], encoder=Hand(), **options)
    assert result[NAME] == pytest.approx(expected)


def test_a_list_without_tags() -> None:
    songs = {"generated": [["a"], []], "references": [["a"], ["b"]]}
    left_out = evaluate_tags(**songs, encoder=Hand(), per_item=True)
    assert (left_out[NAME], left_out[f"{NAME}_n_defined"]) == (pytest.approx(1), 1)
    assert left_out["per_item"][1]["reasons"] == {NAME: "no generated tags"}
    assert evaluate_tags(**songs, encoder=Hand(), empty="zero")[NAME] == pytest.approx(0.5)
    with pytest.raises(InvalidTagsError, match=r"^song 1: the generated list is empty"):
        evaluate_tags(**songs, encoder=Hand(), empty="raise")
    with pytest.warns(UndefinedMetricWarning, match="none of the 1 items defines it"):
        assert math.isnan(evaluate_tags([["a"]], [[]], encoder=Hand())[NAME])


PEOPLE = {"musical_genres": ["a"], "tempo_rhythm": ["b"], "lyric_themes": ["c"]}
MODEL = {"musical_genres": ["c"], "tempo_rhythm": ["b"]}


def test_dimensions() -> None:
    """Genre 0.6, tempo 1; themes are not in table 2, and are judged where they are asked for."""
    result = evaluate_tags([PEOPLE], [MODEL], encoder=Hand())
    assert result["professional/musical_genres"] == pytest.approx(0.6)
    assert result["professional/tempo_rhythm"] == pytest.approx(1)
    assert result[NAME] == result["professional_average"] == pytest.approx(0.8)
    assert "professional/lyric_themes" not in result
    asked = {"professional": ["lyric_themes"]}
    themes = evaluate_tags([PEOPLE], [PEOPLE], encoder=Hand(), dimensions=asked)
    assert themes["professional/lyric_themes"] == pytest.approx(1)


def test_groups_are_the_business_of_descriptions() -> None:
    both = [{"professional": MODEL, "amateur": {"song_purpose": ["a"]}}]
    people = [{"professional": PEOPLE, "amateur": {"song_purpose": ["b"], "perception_of_tempo": ["a"]}}]
    dimensions = {
        "professional": ["musical_genres", "tempo_rhythm"],
        "amateur": ["perception_of_tempo", "song_purpose"],
    }
    options: dict[str, Any] = {"encoder": Hand(), "empty": "zero"}
    result = evaluate_tags(people, both, **options)
    assert str(result) == str(evaluate_descriptions(people, both, dimensions=dimensions, **options))
    assert result[NAME] == pytest.approx((0.8 + 0) / 2)


def test_whose_dimensions() -> None:
    shared = {"instrumentation": ["a"]}
    with pytest.raises(InvalidTagsError, match=r"both groups .* say annotators="):
        evaluate_tags([shared], [shared], encoder=Hand())
    result = evaluate_tags([shared], [shared], encoder=Hand(), annotators="amateur")
    assert result["amateur/instrumentation"] == pytest.approx(1)
    with pytest.raises(InvalidTagsError):
        evaluate_tags([{"perception_of_tempo": ["a"]}], [{"musical_genres": ["a"]}], encoder=Hand())
    with pytest.raises(UnknownNameError, match="did you mean amateur"):
        evaluate_tags([shared], [shared], encoder=Hand(), annotators="amateurs")
    with pytest.raises(InvalidTagsError):
        evaluate_tags([["a"]], [["a"]], encoder=Hand(), annotators="amateur")
    with pytest.raises(InvalidTagsError, match=r"of lyric_themes none is in table 2.*dimensions="):
        evaluate_tags([{"professional": {}}], [{"professional": {"lyric_themes": ["a"]}}], encoder=Hand())


def test_an_empty_description_takes_any_form_but_a_list() -> None:
    assert [form_of(item) for item in (["a"], MODEL, {"professional": MODEL}, {})] == [
        "list", "dimensions", "groups", "groups",
    ]  # fmt: skip
    result = evaluate_tags([PEOPLE, PEOPLE], [MODEL, {}], encoder=Hand())
    assert (result[f"{NAME}_n"], result[f"{NAME}_n_defined"]) == (2, 1)
    with pytest.raises(
        InvalidTagsError, match=r"references\[0\] holds tags in the form 'dimensions', predictions\[0\]"
    ):
        evaluate_tags([MODEL], [["a"]], encoder=Hand())


def test_songs_must_pair_up() -> None:
    with pytest.raises(PairCountError, match="2 references and 1 predictions"):
        evaluate_tags([["a"], ["b"]], [["a"]], encoder=Hand())
    with pytest.raises(NoDataError):
        evaluate_tags([], [], encoder=Hand())
    with pytest.raises(PairCountError):
        evaluate_tags([["a"]], [["a"]], encoder=Hand(), groups=[1, 2])
    with pytest.raises(InvalidInputError, match="confidence"):
        evaluate_tags([["a"]], [["a"]], encoder=Hand(), confidence=2)


def test_tags_become_tuples() -> None:
    assert check_item(["a", "b"], "x") == ("a", "b")
    assert check_item(MODEL, "x") == {"musical_genres": ("c",), "tempo_rhythm": ("b",)}
    with pytest.raises(UnknownNameError, match=r"professional dimension 'tempo'.*in x"):
        check_item({"musical_genres": ["a"], "tempo": ["b"]}, "x")
