"""Variant ``official`` is held to numbers of the authors' code, to the last bit where their arithmetic is per item."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from music_evals.errors import InvalidInputError
from music_evals.metrics import divergence, inpainting

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "inpainting_official.json").read_text(encoding="utf-8"))


def read(items: list[dict], side: str) -> np.ndarray:
    return np.array([np.frombuffer(bytes.fromhex(item[side]), np.uint8) for item in items])


CONTEXTS, MIDDLES = read(GOLDEN["items"], "context"), read(GOLDEN["items"], "middle")
TRUE = CONTEXTS[:, 144:240]
FEATURES = {
    "silence": lambda _, middles: divergence.silence_rate(middles),
    "pitch_class": lambda *pair: divergence.pitch_class_entropy_difference(*pair, variant="official"),
    "groove": lambda *pair: divergence.groove_similarity(*pair, variant="official"),
}


@pytest.mark.parametrize("name", ["position_score", "pitch_accuracy", "rhythm_accuracy"])
def test_note_metrics(name: str) -> None:
    scores = getattr(inpainting, name)(TRUE, MIDDLES, variant="official")
    expected = [item[name] for item in GOLDEN["items"]]
    np.testing.assert_array_equal(scores, expected)
    assert scores.mean() == pytest.approx(GOLDEN["means"][name], abs=1e-15)  # they add up one by one


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("side", [0, 1], ids=["true", "filled"])
def test_features(name: str, side: int) -> None:
    values = FEATURES[name](CONTEXTS, (TRUE, MIDDLES)[side])
    np.testing.assert_array_equal(values, [item[name][side] for item in GOLDEN["items"]])


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("side", ["reference", "estimate"])
def test_histograms(name: str, side: str) -> None:
    values = FEATURES[name](CONTEXTS, TRUE if side == "reference" else MIDDLES)
    bins = divergence.histogram_bins(values, variant="official")
    expected = GOLDEN["sets"][name][f"{side}_histogram"]
    assert np.bincount(bins[bins >= 0], minlength=divergence.n_bins("official")).tolist() == expected


@pytest.mark.parametrize("name", FEATURES)
def test_divergences(name: str) -> None:
    value = getattr(divergence, f"{name}_divergence")(CONTEXTS, MIDDLES, variant="official")
    # torch adds the bins in another order than numpy
    assert value == pytest.approx(GOLDEN["sets"][name]["divergence"], abs=1e-14)


def test_values_above_the_last_edge_are_lost() -> None:
    # the cases contain silences and grooves above 0.99, so their histograms hold fewer than all items
    assert sum(GOLDEN["sets"]["silence"]["estimate_histogram"]) < len(MIDDLES)
    assert sum(GOLDEN["sets"]["groove"]["estimate_histogram"]) < len(MIDDLES)


def test_a_reference_without_onset_is_refused_where_their_code_fails() -> None:
    case = GOLDEN["errors"][0]
    assert case["raises"] == "IndexError"
    reference, estimate = read([case], "context")[:, 144:240], read([case], "middle")
    with pytest.raises(InvalidInputError, match="cannot score a reference without onset"):
        inpainting.position_score(reference, estimate, variant="official")


@pytest.mark.parametrize("name", ["pitch_class", "groove"])
def test_a_reference_without_onset_has_features_where_their_functions_give_0(name: str) -> None:
    case = GOLDEN["errors"][0]
    context = read([case], "context")
    np.testing.assert_array_equal(FEATURES[name](context, context[:, 144:240]), [0])
    assert np.isfinite(getattr(divergence, f"{name}_divergence")(context, read([case], "middle"), variant="official"))
