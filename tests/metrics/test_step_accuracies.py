"""Variant ``chen2020``: the accuracies of Music SketchNet, over time indexes, which MUSIB changed.

The two examples stand for figures 5 and 6 of MUSIB, which show such cases. Their notes are ours: the printed ones were
not at hand.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from music_evals.errors import UndefinedMetricWarning, UnknownNameError
from music_evals.metrics.inpainting import CHEN, note_f1, pitch_accuracy, position_score, rhythm_accuracy
from music_evals.pipelines.inpainting import evaluate_inpainting

H, R = 128, 129
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "inpainting_sketchnet.json").read_text(encoding="utf-8"))
TRUE, MIDDLES = (
    np.array([np.frombuffer(bytes.fromhex(item[side]), np.uint8) for item in GOLDEN["items"]])
    for side in ("reference", "middle")
)
METRICS = {"pitch_accuracy": pitch_accuracy, "rhythm_accuracy": rhythm_accuracy}


@pytest.mark.filterwarnings("ignore::music_evals.errors.UndefinedMetricWarning")
@pytest.mark.parametrize("name", METRICS)
def test_items_are_those_of_the_authors_code(name: str) -> None:
    expected = [math.nan if item[name] is None else item[name] for item in GOLDEN["items"]]
    np.testing.assert_array_equal(METRICS[name](TRUE, MIDDLES, variant=CHEN), expected)


def test_figure_5_two_estimates_that_the_old_pitch_accuracy_does_not_tell_apart() -> None:
    """Of four true notes one estimate has all onsets and two pitches, the other two whole notes and no more."""
    truth = [60, H, 62, H, 64, H, 65, H]
    wrong, missing = [60, H, 62, H, 67, H, 69, H], [60, H, 62, H, H, H, H, H]
    assert [pitch_accuracy(truth, estimate, variant=CHEN) for estimate in (wrong, missing)] == [2 / 4, 2 / 4]
    # by notes in common: two of four, and two of two; the position score says what is missing
    assert [pitch_accuracy(truth, estimate) for estimate in (wrong, missing)] == [2 / 4, 2 / 2]
    assert [position_score(truth, estimate) for estimate in (wrong, missing)] == [1, pytest.approx(4 / 6)]


def test_figure_6_rhythm_accuracy_under_two_resolutions() -> None:
    """Two halves, of which an estimate sounds the first quarter: no duration is right, at any resolution."""
    found, ours = {}, []
    for steps in (1, 2, 6):  # of a quarter
        truth = 2 * [60, *[H] * (2 * steps - 1)]
        estimate = 2 * [60, *[H] * (steps - 1), *[R] * steps]
        found[steps] = float(rhythm_accuracy(truth, estimate, variant=CHEN))
        ours.append(float(rhythm_accuracy(truth, estimate)))
    # holds of the first quarter over all holds
    assert found == {1: 0 / 2, 2: 2 / 6, 6: pytest.approx(10 / 22)}
    assert ours == [0, 0, 0]


def contexts() -> np.ndarray:
    whole = np.full((len(TRUE), 384), R, np.uint8)
    whole[:, 144:240] = TRUE
    return whole


@pytest.mark.parametrize("name", METRICS)
def test_the_pipeline_takes_it_for_the_two_accuracies_alone(name: str) -> None:
    values = np.array([math.nan if item[name] is None else item[name] for item in GOLDEN["items"]])
    found = evaluate_inpainting(contexts(), MIDDLES, metrics=[name], variant=CHEN, per_item=True)
    assert found[name] == pytest.approx(np.nanmean(values))
    assert (found[f"{name}_n"], found[f"{name}_n_defined"]) == (len(values), np.count_nonzero(~np.isnan(values)))
    np.testing.assert_array_equal([row[name] for row in found["per_item"]], values)
    onsets = TRUE < H
    asked = onsets if name == "pitch_accuracy" else ~onsets
    micro = evaluate_inpainting(contexts(), MIDDLES, metrics=[name], variant=CHEN, average="micro")
    assert micro[name] == pytest.approx(np.mean((TRUE == MIDDLES)[asked]))
    with pytest.raises(UnknownNameError, match="variant"):
        evaluate_inpainting(contexts(), MIDDLES, metrics=[name, "note_f1"], variant=CHEN)
    with pytest.raises(UnknownNameError, match="variant"):
        note_f1(TRUE, MIDDLES, variant=CHEN)


@pytest.mark.parametrize("name", METRICS)
def test_the_evaluate_modules_take_it(name: str) -> None:
    import evaluate

    home = str(Path(__file__).parents[2] / "metrics" / name)
    given = {"predictions": MIDDLES[:5].tolist(), "references": contexts()[:5].tolist()}
    named = evaluate.load(home, CHEN).compute(**given)
    assert named == evaluate.load(home).compute(**given, variant=CHEN)
    assert named[name] == pytest.approx(np.mean([item[name] for item in GOLDEN["items"][:5]]))


def test_it_is_undefined_where_the_truth_has_no_such_step() -> None:
    with pytest.warns(UndefinedMetricWarning, match="no onset"):
        assert math.isnan(pitch_accuracy([R, H], [60, H], variant=CHEN))
    with pytest.warns(UndefinedMetricWarning, match="neither holds nor rests"):
        assert math.isnan(rhythm_accuracy([60, 61], [60, H], variant=CHEN))
