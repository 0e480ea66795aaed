from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from music_evals.benchmark.aggregate import best_baselines, collect, summarize
from music_evals.benchmark.runner import FEATURES, METRICS
from music_evals.errors import CorruptRecordsError
from music_evals.pipelines.inpainting import INPAINTING_METRICS

SONGS = ("s1", "s1", "s2", "s2")


def make_rows(
    values: dict[str, dict[str, list[list[float | None]]]],
    roles: dict[str, str] | None = None,
    *,
    songs: tuple[str, ...] = SONGS,
    seen: list[bool] | None = None,
) -> list[dict[str, Any]]:
    """Records of systems -> metric -> values of each seed; metrics that are not given are 0."""
    items = [f"i{row}" for row in range(len(songs))]
    roles = roles or {}
    systems = {
        name: {"role": roles.get(name, "baseline"), "seeds": list(range(len(next(iter(metrics.values())))))}
        for name, metrics in values.items()
    }
    rows: list[dict[str, Any]] = [{"kind": "run", "variant": "corrected", "systems": systems}]
    for row, (item, song) in enumerate(zip(items, songs, strict=True)):
        known = None if seen is None else seen[row]
        rows.append({"kind": "item", "item": item, "song": song, "seen_in_train": known, "tokens": [129] * 384})
    for name, metrics in values.items():
        for seed in systems[name]["seeds"]:
            for row, item in enumerate(items):
                who = {"item": item, "system": name, "seed": seed}
                rows.append({"kind": "prediction", **who, "middle": [129] * 96})
                for metric in METRICS:
                    value = metrics[metric][seed][row] if metric in metrics else 0.0
                    rows.append({"kind": "score", **who, "metric": metric, "value": value, "n": 1})
    return rows


REFERENCE = {"reference": {"note_f1": [[1.0, 1.0, 1.0, 1.0]]}}
CONTROL = {"reference": "control"}


def test_seeds_are_averaged_within_an_item_first() -> None:
    # item a is defined for one seed of two: its mean is 0.8, not 0.4; c is never defined
    values = {"markov": {"pitch_accuracy": [[0.8, 0.2, None, 1.0], [None, 0.4, None, 0.0]]}, **REFERENCE}
    table = summarize(collect(make_rows(values, CONTROL)), n_resamples=20)["all"]
    cell = table["scores"]["markov"]["pitch_accuracy"]
    assert cell["value"] == pytest.approx((0.8 + 0.3 + 0.5) / 3)
    assert (cell["n"], cell["n_defined"]) == (4, 3)
    # between the seeds: means 2/3 and 0.2
    assert cell["seed_std"] == pytest.approx(abs(2 / 3 - 0.2) / math.sqrt(2))


def test_one_seed_has_no_spread_and_an_undefined_score_no_value() -> None:
    values = {"silence": {"pitch_accuracy": [[None] * 4]}, **REFERENCE}
    cell = summarize(collect(make_rows(values, CONTROL)), n_resamples=20)["all"]["scores"]["silence"]["pitch_accuracy"]
    assert math.isnan(cell["value"])
    assert math.isnan(cell["seed_std"])
    assert cell["n_defined"] == 0


def test_a_divergence_is_the_mean_over_seeds() -> None:
    # seed 0 equals the reference (divergence 0), seed 1 shares nothing with it (ln 2)
    values = {
        "markov": {"silence_rate": [[0.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5]]},
        "reference": {"silence_rate": [[0.0, 0.0, 0.0, 0.0]]},
    }
    cell = summarize(collect(make_rows(values, CONTROL)), n_resamples=20)["all"]["scores"]["markov"][
        "silence_divergence"
    ]
    assert cell["value"] == pytest.approx(math.log(2) / 2)
    assert (cell["n"], cell["n_defined"]) == (4, 4)
    assert cell["seed_std"] == pytest.approx(math.log(2) / math.sqrt(2))


def test_equal_seeds_are_worth_one() -> None:
    rng = np.random.default_rng(1)
    once = rng.random((1, 12)).round(2).tolist()
    songs = tuple(f"s{row // 3}" for row in range(12))
    truth = {"reference": {"groove_similarity": rng.random((1, 12)).round(2).tolist()}}

    def cell(n_seeds: int) -> dict[str, Any]:
        values = {"markov": {"groove_similarity": once * n_seeds}, **truth}
        table = summarize(collect(make_rows(values, CONTROL, songs=songs)), n_resamples=200)["all"]
        found: dict[str, Any] = table["scores"]["markov"]["groove_divergence"]
        return found

    one, three = cell(1), cell(3)
    for key in ("value", "low", "high", "null", "n", "n_defined"):
        assert one[key] == pytest.approx(three[key]), key


def test_the_best_baseline_is_chosen_metric_by_metric() -> None:
    values = {
        "copy_past": {"note_f1": [[0.5] * 4], "pitch_accuracy": [[0.1] * 4], "silence_rate": [[0.9] * 4]},
        "markov": {"note_f1": [[0.4] * 4], "pitch_accuracy": [[0.2] * 4], "silence_rate": [[0.1] * 4]},
        "silence": {"note_f1": [[0.0] * 4], "pitch_accuracy": [[None] * 4], "silence_rate": [[0.9] * 4]},
        "model": {"note_f1": [[0.9] * 4], "pitch_accuracy": [[0.9] * 4], "silence_rate": [[0.1] * 4]},
        "reference": {"note_f1": [[1.0] * 4], "silence_rate": [[0.1] * 4]},
    }
    best = best_baselines(collect(make_rows(values, {**CONTROL, "model": "model"})))
    assert best["note_f1"] == "copy_past"
    assert best["pitch_accuracy"] == "markov"
    assert best["silence_divergence"] == "markov"
    assert set(best) == set(INPAINTING_METRICS)


def test_tests_against_the_best_baseline() -> None:
    # 6 songs of one item: with every difference of one sign, p = 2 / 2**6
    songs = tuple("abcdef")
    values = {
        "model": {"note_f1": [[0.5] * 6], "pitch_accuracy": [[0.5, None, 0.5, 0.5, 0.5, 0.5]]},
        "copy_past": {"note_f1": [[0.4, 0.3, 0.2, 0.4, 0.3, 0.2]], "pitch_accuracy": [[0.5, 0.1, None, 0.5, 0.5, 0.5]]},
        "leak": {"note_f1": [[0.9] * 6]},
        "reference": {"note_f1": [[1.0] * 6]},
    }
    roles = {**CONTROL, "model": "model", "leak": "leaking"}
    best = {"note_f1": "copy_past", "pitch_accuracy": "copy_past"}
    table = summarize(collect(make_rows(values, roles, songs=songs)), best, n_resamples=20)["all"]
    test = table["scores"]["model"]["note_f1"]["test"]
    assert test["against"] == "copy_past"
    assert test["difference"] == pytest.approx(0.5 - 0.3)
    assert test["p_value"] == pytest.approx(2 / 64)
    assert test["p_holm"] == pytest.approx(2 * 2 / 64)  # the smaller of two
    assert test["n"] == 6
    # accuracies are paired where both are defined
    assert table["scores"]["model"]["pitch_accuracy"]["test"]["n"] == 4
    for outside in ("copy_past", "leak", "reference"):
        assert "test" not in table["scores"][outside]["note_f1"], outside
    assert table["ranking"] == ["model", "copy_past"]


def test_a_divergence_is_compared_by_swapping_songs() -> None:
    songs = tuple("abcdefgh")
    truth = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75]
    values = {
        "model": {"silence_rate": [truth, truth]},
        "copy_past": {"silence_rate": [[0.9] * 8]},
        "reference": {"silence_rate": [truth]},
    }
    rows = make_rows(values, {**CONTROL, "model": "model"}, songs=songs)
    table = summarize(collect(rows), {"silence_divergence": "copy_past"}, n_resamples=100)["all"]
    test = table["scores"]["model"]["silence_divergence"]["test"]
    assert test["difference"] == pytest.approx(-math.log(2))  # 0 against no shared bin
    assert test["p_value"] == pytest.approx(2 / 2**8)
    assert test["n"] == 8


def test_unseen_windows_have_their_own_table() -> None:
    values = {"markov": {"note_f1": [[0.1, 0.2, 0.3, 0.4]]}, **REFERENCE}
    tables = summarize(collect(make_rows(values, CONTROL, seen=[True, False, False, True])), n_resamples=20)
    assert tables["all"]["scores"]["markov"]["note_f1"]["value"] == pytest.approx(0.25)
    assert tables["unseen"]["scores"]["markov"]["note_f1"]["value"] == pytest.approx(0.25)
    assert tables["unseen"]["scores"]["markov"]["note_f1"]["n"] == 2
    assert (tables["unseen"]["n_items"], tables["unseen"]["n_songs"]) == (2, 2)
    assert set(summarize(collect(make_rows(values, CONTROL)), n_resamples=20)) == {"all"}


def test_failed_items_are_in_no_mean_and_are_listed() -> None:
    values = {"markov": {"note_f1": [[0.1, 0.2, 0.3, 0.4]]}, **REFERENCE}
    rows = [
        row
        for row in make_rows(values, CONTROL)
        if not (row["kind"] in {"score", "prediction"} and row["system"] == "markov" and row["item"] == "i3")
    ]
    who = {"item": "i3", "system": "markov", "seed": 0}
    rows += [{"kind": "score", **who, "metric": metric, "error": "ValueError: no", "n": 0} for metric in METRICS]
    rows.insert(1, {"kind": "item", "item": "unreadable", "error": "UnreadableFileError: no MIDI"})
    scores = collect(rows)
    cell = summarize(scores, n_resamples=20)["all"]["scores"]["markov"]["note_f1"]
    assert cell["value"] == pytest.approx(0.2)
    assert cell["n"] == 3
    assert scores.failures == [
        {"item": "unreadable", "system": None, "seed": None, "error": "UnreadableFileError: no MIDI"},
        {"item": "i3", "system": "markov", "seed": 0, "error": "ValueError: no"},
    ]


def test_of_two_rows_the_later_counts() -> None:
    rows = make_rows({"markov": {"note_f1": [[0.1, 0.2, 0.3, 0.4]]}, **REFERENCE}, CONTROL)
    later = next(row for row in rows if row["kind"] == "score" and row["metric"] == "note_f1")
    rows.append({**later, "value": 0.5})
    assert collect(rows).values["markov"]["note_f1"].tolist() == [[0.5, 0.2, 0.3, 0.4]]
    rows.append({**later, "value": "inf"})
    assert collect(rows).values["markov"]["note_f1"][0, 0] == math.inf


def test_records_without_a_header() -> None:
    with pytest.raises(CorruptRecordsError, match="header"):
        collect([])
    with pytest.raises(CorruptRecordsError, match="header"):
        collect(make_rows(REFERENCE, CONTROL)[1:])


def test_every_divergence_has_its_feature() -> None:
    assert set(FEATURES) == {name for name, info in INPAINTING_METRICS.items() if info.kind == "set"}
