from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.stats
from scipy.spatial.distance import jensenshannon

from music_evals.benchmark import aggregate, results, scores
from music_evals.benchmark.contents import mark, table_of, verdict
from music_evals.benchmark.tables import cell_note, markdown_report, markdown_table, part_blocks, text_report
from music_evals.benchmark.tasks.inpainting.runner import METRICS, NLL
from music_evals.benchmark.tasks.inpainting.task import INPAINTING
from music_evals.errors import CorruptRecordsError
from music_evals.metrics.catalogue import INPAINTING_METRICS
from music_evals.pipelines.inpainting import FEATURES
from music_evals.stats.intervals import weights_of_clusters

SONGS = ("s1", "s1", "s2", "s2")


def make_rows(
    values: dict[str, dict[str, list[list[float | None]]]],
    roles: dict[str, str] | None = None,
    *,
    songs: tuple[str, ...] = SONGS,
    seen: list[bool] | None = None,
    **known: list[Any],
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
        seen_row = None if seen is None else seen[row]
        told = {name: column[row] for name, column in known.items()}
        rows.append(
            {"kind": "item", "item": item, "song": song, "seen_in_train": seen_row, **told, "tokens": [129] * 384}
        )
    for name, metrics in values.items():
        for seed in systems[name]["seeds"]:
            for row, item in enumerate(items):
                who = {"item": item, "system": name, "seed": seed}
                rows.append({"kind": "prediction", **who, "middle": [129] * 96})
                for metric in METRICS:
                    value = metrics[metric][seed][row] if metric in metrics else 0.0
                    rows.append({"kind": "score", **who, "metric": metric, "value": value, "n": 1})
    return rows


def collect(rows: list[dict[str, Any]]) -> scores.ScoreTable:
    return scores.read_scores(rows, INPAINTING)


def best_baselines(found: scores.ScoreTable) -> dict[str, str]:
    return aggregate.best_baselines(found, INPAINTING)


def summarize(found: scores.ScoreTable, best: dict[str, str] | None = None, *, n_resamples: int) -> dict[str, Any]:
    """Tables of all items and of those that were not seen."""
    draws = aggregate.Resampling(n_resamples=n_resamples)
    views = INPAINTING.views(found)
    return {
        name: aggregate.table_of_scores(found.only(items), INPAINTING, best or {}, draws)
        for name, items in views.items()
    }


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


def test_no_difference_is_larger_than_scores_can_be_apart() -> None:
    songs = tuple("abc")
    values = {
        "model": {"pitch_accuracy": [[1.0, 0.9, 0.1]], "silence_rate": [[0.0, 0.0, 0.5]]},
        "copy_past": {"pitch_accuracy": [[0.0, 0.1, 0.9]], "silence_rate": [[0.5, 0.5, 0.0]]},
        "reference": {"silence_rate": [[0.0, 0.0, 0.0]]},
    }
    rows = make_rows(values, {**CONTROL, "model": "model"}, songs=songs)
    best = dict.fromkeys(("pitch_accuracy", "silence_divergence"), "copy_past")
    scores = summarize(collect(rows), best, n_resamples=200)["all"]["scores"]["model"]
    tests = [scores[metric]["test"] for metric in best]
    assert [(tests[0]["low"], tests[0]["high"])] == [(-1, 1)]
    assert tests[1]["low"] == pytest.approx(-math.log(2))


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


NEAR_HALF = {"near_train": [1.0, 0.875, 0.8125, 0.5], "repeats_in_context": [0.5, 0.5, 1.0, 0.5]}
VOICES = ["soprano", "bass", "soprano", "bass"]


def parts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    found = results.build_results(collect(rows), INPAINTING, n_resamples=20)
    assert found["wording"]["on_parts"] == list(INPAINTING.part_notes(found.get("parts", {})))
    return found.get("parts", {})


def test_each_part_of_the_windows_has_its_note_f1() -> None:
    values = {"markov": {"note_f1": [[0.1, 0.2, 0.4, 0.8]]}, **REFERENCE}
    made = parts(make_rows(values, CONTROL, seen=[True, False, False, False], voice=VOICES, **NEAR_HALF))
    means = {name: (part["n_items"], part["scores"]["markov"]["value"]) for name, part in made.items()}
    assert means == {
        "all": (4, pytest.approx(1.5 / 4)),
        "unseen": (3, pytest.approx(1.4 / 3)),
        "near copies of training": (2, pytest.approx(0.15)),  # 14 of 16 quarters is near
        "no near copies": (2, pytest.approx(0.6)),
        "repeats in context": (1, pytest.approx(0.4)),
        "does not repeat": (3, pytest.approx(1.1 / 3)),
        "voice soprano": (2, pytest.approx(0.25)),
        "voice bass": (2, pytest.approx(0.5)),
    }
    (sentence,) = INPAINTING.part_notes(made)
    assert sentence.startswith("2 of 4 windows (50%) are near copies of a training passage")


def test_what_is_not_known_of_all_windows_makes_no_part() -> None:
    values = {"markov": {"note_f1": [[0.1, 0.2, 0.4, 0.8]]}, **REFERENCE}
    assert parts(make_rows(values, CONTROL)) == {}  # records of before the columns
    some = {"near_train": [1.0, None, 0.5, 0.5], "repeats_in_context": [0.5] * 4, "voice": ["alto"] * 4}
    assert parts(make_rows(values, CONTROL, **some)) == {}  # not of all; all alike; one voice
    assert set(parts(make_rows(values, CONTROL, voice=VOICES))) == {"all", "voice soprano", "voice bass"}


def test_parts_stand_in_one_table_on_the_page_and_not_in_the_terminal() -> None:
    values = {"markov": {"note_f1": [[0.1, 0.2, 0.4, 0.8]]}, **REFERENCE}
    rows = make_rows(values, CONTROL, **NEAR_HALF)
    rows[0] |= {"dataset": {"id": "x", "config": None, "split": "test"}, "versions": {}, "seeds": [0]}
    built = results.build_results(collect(rows), INPAINTING, n_resamples=20)
    (block,) = part_blocks(built)
    assert block.title == "note F1 of parts of the windows"
    assert block.head[:3] == ("all (4)", "near copies of training (2)", "no near copies (2)")
    assert [[cell.value for cell in row.cells] for row in block.rows] == [
        ["0.375", "0.150", "0.600", "0.400", "0.367"], ["1.000"] * 5,
    ]  # fmt: skip
    assert block.title in markdown_report(built)
    printed = text_report(built)
    assert block.title not in printed
    assert printed.count("2 of 4 windows (50%) are near copies") == 1


def test_divergences_compare_with_the_true_middle_whatever_control_comes_first() -> None:
    """best_lag stands before the reference in the header of a run, as all baselines do."""
    feature = FEATURES["silence_divergence"]
    values = {
        "best_lag": {feature: [[0.9, 0.9, 0.9, 0.9]]},
        "markov": {feature: [[0.1, 0.2, 0.1, 0.2]]},
        "reference": {feature: [[0.1, 0.2, 0.1, 0.2]]},
    }
    table = summarize(collect(make_rows(values, {**CONTROL, "best_lag": "control"})), n_resamples=20)["all"]
    assert table["ranking"] == ["markov"]
    assert table["scores"]["markov"]["silence_divergence"]["value"] == 0
    assert table["scores"]["best_lag"]["silence_divergence"]["value"] == pytest.approx(math.log(2))


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
    assert (cell["n"], cell["n_scored"], cell["n_defined"]) == (4, 3, 3)
    assert scores.failures == [
        {"item": "unreadable", "system": None, "seed": None, "metric": None, "error": "UnreadableFileError: no MIDI"},
        {"item": "i3", "system": "markov", "seed": 0, "metric": None, "error": "ValueError: no"},
    ]


def fail(rows: list[dict[str, Any]], system: str, item: str, *, seed: int = 0) -> None:
    """Let a later sitting fail on what an earlier one scored."""
    who = {"item": item, "system": system, "seed": seed}
    rows += [{"kind": "score", **who, "metric": metric, "error": "ValueError: no", "n": 0} for metric in METRICS]


def test_nobody_wins_by_failing() -> None:
    values = {"picky": {"note_f1": [[1.0, 0.0, 0.0, 0.0]]}, "fair": {"note_f1": [[0.3, 0.3, 0.3, 0.3]]}, **REFERENCE}
    rows = make_rows(values, {**CONTROL, "picky": "model"})
    for item in ("i1", "i2", "i3"):
        fail(rows, "picky", item)
    scores = collect(rows)
    table = summarize(scores, n_resamples=20)["all"]
    assert table["ranking"] == ["fair", "picky"]
    for metric in ("note_f1", "silence_divergence"):
        cell = table["scores"]["picky"][metric]
        assert (cell["n"], cell["n_scored"], cell["n_defined"]) == (4, 1, 1)
        assert "n 1/4" in cell_note(cell)
    # nor does such a baseline become the best one
    baselines = {name: {"role": "baseline" if name == "picky" else held["role"], "seeds": [0]}
                 for name, held in rows[0]["systems"].items()}  # fmt: skip
    assert best_baselines(collect([{**rows[0], "systems": baselines}, *rows[1:]]))["note_f1"] == "fair"
    text = text_report(_results(rows))
    assert "picky [1/4 scored]" in text
    assert "fair [" not in text
    assert "`picky` [1/4 scored]" in markdown_table(_results(rows))


def test_who_failed_on_items_is_not_better_than_a_baseline_that_did_not() -> None:
    songs = tuple("abcdefghijkl")
    values = {
        "picky": {"note_f1": [[1.0] * 12]},
        "fair": {"note_f1": [[0.3, 0.2] * 6]},
        "reference": {"note_f1": [[1.0] * 12]},
    }
    rows = make_rows(values, {**CONTROL, "picky": "model"}, songs=songs)
    whole = _results(rows, rows)
    assert mark(whole, table_of(whole), "picky", "note_f1") == "better"
    assert verdict(whole, "picky", "note_f1") == "significantly better than"
    fail(rows, "picky", "i0")
    partly = _results(rows, rows)
    test = table_of(partly)["scores"]["picky"]["note_f1"]["test"]
    assert test["p_holm"] < 0.05
    assert test["on_fewer_items"]
    assert mark(partly, table_of(partly), "picky", "note_f1") == ""
    assert verdict(partly, "picky", "note_f1").startswith("scored on fewer windows than")
    # it may well be worse
    worse = [{**row, "value": 0.0} if row.get("system") == "picky" and row.get("value") else row for row in rows]
    assert mark(_results(worse, rows), table_of(_results(worse, rows)), "picky", "note_f1") == "worse"


def _results(rows: list[dict[str, Any]], validation: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    found, chosen_on = (None if part is None else collect(with_dataset(part)) for part in (rows, validation))
    assert found is not None
    return results.build_results(found, INPAINTING, chosen_on, n_resamples=20)


def with_dataset(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**rows[0], "dataset": {"id": "d", "config": None, "split": "test"}}, *rows[1:]]


def test_an_item_that_fails_for_one_seed_is_not_scored() -> None:
    rows = make_rows({"markov": {"note_f1": [[0.0, 0.4], [1.0, 0.4]]}, "reference": {"note_f1": [[1.0, 1.0]]}},
                     CONTROL, songs=("a", "b"))  # fmt: skip
    fail(rows, "markov", "i0", seed=0)  # its bad seed
    assert math.isnan(collect(rows).value("i0", "markov", "note_f1"))
    cell = summarize(collect(rows), n_resamples=20)["all"]["scores"]["markov"]["note_f1"]
    assert cell["value"] == pytest.approx(0.4)
    assert (cell["n"], cell["n_scored"]) == (2, 1)


def test_a_later_failure_takes_the_prediction_back() -> None:
    rows = make_rows({"markov": {"note_f1": [[0.1, 0.2, 0.3, 0.4]]}, **REFERENCE}, CONTROL)
    fail(rows, "markov", "i1")
    scores = collect(rows)
    assert scores.prediction("i1", "markov") == [None]
    assert [pair["item"] for pair in scores.scored("markov")] == ["i0", "i2", "i3"]
    # a failing likelihood says nothing of the prediction
    rows.append({"kind": "score", "item": "i2", "system": "markov", "seed": 0, "metric": NLL, "error": "x", "n": 0})
    scores = collect(rows)
    assert [pair["item"] for pair in scores.scored("markov")] == ["i0", "i2", "i3"]
    assert scores.failures[-1] == {"item": "i2", "system": "markov", "seed": 0, "metric": NLL, "error": "x"}


def test_the_noise_floor_swaps_whole_songs() -> None:
    # two songs of two equal windows: of the four swaps two leave ln 2 and two make the histograms equal
    values = {"markov": {"silence_rate": [[0.5] * 4]}, "reference": {"silence_rate": [[0.0] * 4]}}
    cell = summarize(collect(make_rows(values, CONTROL)), n_resamples=4000)["all"]["scores"]["markov"]
    assert cell["silence_divergence"]["null"] == pytest.approx(math.log(2) / 2, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [(2, 4), (1, 3), (2, 2)])
def test_unequal_seeds_against_every_swap_and_draw(seeds: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    songs = ("a", "a", "b", "c", "c", "d")
    draw = [rng.integers(0, 4, (n, 6)) / 10 for n in (1, *seeds)]
    truth, a, b = draw
    values = {"model": {"silence_rate": a.tolist()}, "rival": {"silence_rate": b.tolist()},
              "reference": {"silence_rate": truth.tolist()}}  # fmt: skip
    rows = make_rows(values, {**CONTROL, "model": "model"}, songs=songs)
    table = summarize(collect(rows), {"silence_divergence": "rival"}, n_resamples=20_000)["all"]["scores"]["model"]
    cell, groups = table["silence_divergence"], np.array(songs)

    def mean(reference: Any, estimate: Any) -> float:
        sides = [[np.bincount((10 * row).round().astype(int), minlength=4) / row.size for row in side]
                 for side in (np.broadcast_to(reference, estimate.shape), estimate)]  # fmt: skip
        return float(np.mean([jensenshannon(p, q) ** 2 for p, q in zip(*sides, strict=True)]))

    @functools.cache
    def drawn(names: tuple[str, ...]) -> float:
        columns = np.concatenate([np.flatnonzero(groups == name) for name in names])
        return mean(truth[:, columns], a[:, columns])

    assert cell["value"] == pytest.approx(mean(truth, a))
    resampled = [drawn(tuple(sorted(names))) for names in itertools.product("abcd", repeat=4)]
    sizes = np.array([2.0, 1, 2, 1])
    reach = scipy.stats.t.ppf(0.975, weights_of_clusters(sizes)[3]) * np.std(resampled) * math.sqrt(4 / 3)
    centre = 2 * cell["value"] - np.mean(resampled)
    upper = math.log(2)
    assert cell["low"] == pytest.approx(np.clip(centre - reach, 0, upper), abs=0.02)
    assert cell["high"] == pytest.approx(np.clip(centre + reach, 0, upper), abs=0.02)
    assert cell["n_clusters"] == pytest.approx(36 / 10)
    # the swap test: all 2**4 swaps of songs, each seed of one beside each of the other equally often
    n_seeds = math.lcm(*seeds)
    first, second = (np.tile(side, (n_seeds // len(side), 1)) for side in (a, b))
    found = []
    for flips in itertools.product([False, True], repeat=4):
        swap = np.isin(groups, np.array(list("abcd"))[list(flips)])
        one, other = np.where(swap, second, first), np.where(swap, first, second)
        found.append(mean(truth, one) - mean(truth, other))
    assert cell["test"]["difference"] == pytest.approx(found[0])
    assert cell["test"]["p_value"] == pytest.approx(np.mean(np.abs(found) >= abs(found[0]) - 1e-9))


def test_of_two_rows_the_later_counts() -> None:
    rows = make_rows({"markov": {"note_f1": [[0.1, 0.2, 0.3, 0.4]]}, **REFERENCE}, CONTROL)
    later = next(row for row in rows if row["kind"] == "score" and row["metric"] == "note_f1")
    rows.append({**later, "value": 0.5})
    items = ["i0", "i1", "i2", "i3"]
    assert collect(rows).at(items, "markov").by_seed("note_f1").tolist() == [[0.5, 0.2, 0.3, 0.4]]
    rows.append({**later, "value": "inf"})
    assert collect(rows).value("i0", "markov", "note_f1") == math.inf


def test_records_without_a_header() -> None:
    with pytest.raises(CorruptRecordsError, match="header"):
        collect([])
    with pytest.raises(CorruptRecordsError, match="header"):
        collect(make_rows(REFERENCE, CONTROL)[1:])


def test_every_divergence_has_its_feature() -> None:
    assert set(FEATURES) == {name for name, info in INPAINTING_METRICS.items() if info.kind == "set"}
