from __future__ import annotations

import warnings

import numpy as np
import pytest

from music_evals.errors import (
    ContextLengthError,
    InvalidInputError,
    InvalidTokensError,
    NoDataError,
    PairCountError,
    UndefinedMetricWarning,
    UnknownNameError,
)
from music_evals.metrics import arrays, divergence, inpainting, melodic_intervals
from music_evals.metrics.catalogue import INPAINTING_EXTENSIONS, INPAINTING_METRICS, metric_of
from music_evals.pipelines.inpainting import evaluate_inpainting, evaluate_nll, item_features, item_scores
from music_evals.stats import bootstrap_divergence, mean_interval, null_divergence

H, R = 128, 129
LN2 = np.log(2)
VARIANTS = ["corrected", "official", "paper"]
RATES = ["self_replication_rate", "repeated_note_rate"]
SET_METRICS = [name for name, info in INPAINTING_METRICS.items() if info.kind == "set"]
ITEM_METRICS = [name for name, info in INPAINTING_METRICS.items() if info.kind == "item"]


def melodies(rng: np.random.Generator, n: int, steps: int) -> np.ndarray:
    """Return voices whose notes last one to four eighths, with some rests; each item has its own density."""
    tokens = np.full((n, steps), H, np.uint8)
    for row in tokens:
        start, density = 0, rng.uniform(0.6, 1)
        while start < steps:
            row[start] = rng.integers(55, 75) if rng.random() < density else R
            end = start + 3 * rng.integers(1, 5)
            if row[start] == R:
                row[start:end] = R
            start = end
    return tokens


@pytest.fixture(scope="module")
def contexts() -> np.ndarray:
    return melodies(np.random.default_rng(5), 40, 384)


@pytest.fixture(scope="module")
def middles(contexts: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(6)
    filled = melodies(rng, len(contexts), 96)
    return np.where(rng.random(filled.shape) < 0.8, contexts[:, 144:240], filled)


def resamples(name: str, n: int) -> dict[str, int]:
    """Return the option of a divergence; other scores refuse it."""
    return {"n_resamples": n} if metric_of(name).kind == "set" else {}


GROUPS = np.repeat([f"song{k}" for k in range(8)], 5)


def test_result_has_the_keys_of_the_design(contexts: np.ndarray, middles: np.ndarray) -> None:
    result = evaluate_inpainting(contexts, middles, groups=GROUPS, n_resamples=20)
    expected = []
    for name, info in INPAINTING_METRICS.items():
        expected += [name, f"{name}_ci", f"{name}_n", f"{name}_n_defined", f"{name}_n_clusters"]
        expected += [f"{name}_null"] if info.kind == "set" else []
    assert list(result) == expected
    for name, info in INPAINTING_METRICS.items():
        low, high = result[f"{name}_ci"]
        assert info.low <= low <= high <= info.high
        assert info.low <= result[name] <= info.high
        assert result[f"{name}_n"] == 40
        assert type(result[name]) is float


@pytest.mark.parametrize("variant", VARIANTS)
def test_values_are_those_of_the_library(contexts: np.ndarray, middles: np.ndarray, variant: str) -> None:
    result = evaluate_inpainting(contexts, middles, variant=variant, groups=GROUPS, n_resamples=50, seed=3)
    for name in ITEM_METRICS:
        values = getattr(inpainting, name)(contexts[:, 144:240], middles, variant=variant)
        assert item_scores(contexts, middles, variant=variant)[name].tolist() == values.tolist()
        interval = mean_interval(values, GROUPS, span=(0, 1))
        assert result[f"{name}_n_clusters"] == pytest.approx(interval.n_clusters)
        assert (result[name], *result[f"{name}_ci"]) == pytest.approx(interval[:3], rel=1e-12)
    for name in SET_METRICS:
        value = getattr(divergence, name)(contexts, middles, variant=variant)
        assert result[name] == pytest.approx(value, rel=1e-12)
        bins = [
            divergence.histogram_bins(values, variant=variant)
            for values in item_features(contexts, middles, variant=variant)[name]
        ]
        options = {"n_bins": divergence.n_bins(variant), "divergence": divergence.jensen_shannon, "seed": 3}
        assert result[f"{name}_ci"] == bootstrap_divergence(*bins, GROUPS, n_resamples=50, **options)[1:3]
        assert result[f"{name}_null"] == null_divergence(*bins, n_permutations=50, units=GROUPS, **options)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_reference_is_a_perfect_control(contexts: np.ndarray, variant: str) -> None:
    result = evaluate_inpainting(contexts, contexts[:, 144:240], variant=variant, n_resamples=10)
    assert [result[name] for name in INPAINTING_METRICS] == [1, 1, 1, 1, 0, 0, 0]
    assert all(result[f"{name}_null"] == 0 for name in SET_METRICS)


def test_a_metric_does_not_depend_on_its_company(contexts: np.ndarray, middles: np.ndarray) -> None:
    everything = evaluate_inpainting(
        contexts, middles, groups=GROUPS, n_resamples=20, extensions=tuple(INPAINTING_EXTENSIONS), per_item=True
    )
    for name in INPAINTING_METRICS:
        alone = evaluate_inpainting(contexts, middles, groups=GROUPS, metrics=[name], **resamples(name, 20))
        assert alone == {key: everything[key] for key in alone}
        assert len(alone) in {5, 6}
    for name in INPAINTING_EXTENSIONS:
        options = {"extensions": [name], **resamples(name, 20)}
        alone = evaluate_inpainting(contexts, middles, groups=GROUPS, metrics=(), **options)
        assert alone == {key: everything[key] for key in alone}


def test_chunks_and_seeds(contexts: np.ndarray, middles: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"n_resamples": 20, "extensions": tuple(INPAINTING_EXTENSIONS)}
    first = evaluate_inpainting(contexts, middles, **options)
    monkeypatch.setattr(arrays, "CHUNK_ROWS", 7)
    assert evaluate_inpainting(contexts, middles, **options) == first
    other = evaluate_inpainting(contexts, middles, seed=1, **options)
    assert other["groove_divergence"] == first["groove_divergence"]
    assert other["groove_divergence_ci"] != first["groove_divergence_ci"]
    assert other["note_f1_ci"] == first["note_f1_ci"]  # nothing is drawn


def test_without_resamples_divergences_have_no_intervals(contexts: np.ndarray, middles: np.ndarray) -> None:
    options = {"groups": GROUPS, "extensions": tuple(INPAINTING_EXTENSIONS)}
    quick = evaluate_inpainting(contexts, middles, n_resamples=0, **options)
    full = evaluate_inpainting(contexts, middles, n_resamples=5, **options)
    assert list(quick) == list(full)
    for key, value in quick.items():
        if key.endswith(("divergence_ci", "_null")):
            assert np.isnan(value).all()
        else:
            assert value == pytest.approx(full[key], rel=1e-12, nan_ok=True)


def test_undefined_items_are_left_out_and_counted(contexts: np.ndarray) -> None:
    silent = np.full((40, 96), R, np.uint8)
    silent[0] = contexts[0, 144:240]
    result = evaluate_inpainting(contexts, silent, n_resamples=10)
    assert result["pitch_accuracy"] == 1
    assert (result["pitch_accuracy_n"], result["pitch_accuracy_n_defined"]) == (40, 1)
    assert result["position_score"] == pytest.approx(1 / 40)
    assert result["position_score_n_defined"] == 40


def test_a_score_that_no_item_defines_is_nan_with_a_warning(contexts: np.ndarray) -> None:
    silent = np.full((40, 96), R, np.uint8)
    with pytest.warns(UndefinedMetricWarning) as caught:
        result = evaluate_inpainting(
            contexts, silent, metrics=["pitch_accuracy", "note_f1"], extensions=tuple(INPAINTING_EXTENSIONS)
        )
    named = [str(warning.message).split()[0] for warning in caught]
    assert named == ["pitch_accuracy", "repeated_note_rate", "consonance_pitch_accuracy", "self_replication_rate"]
    assert {warning.filename for warning in caught} == {__file__}
    assert np.isnan(result["pitch_accuracy"])
    assert result["note_f1"] == 0
    # an estimate without intervals is as far from the reference as can be
    assert result["interval_divergence"] == pytest.approx(LN2)


def test_two_sets_without_intervals_are_undefined() -> None:
    silent = np.full((3, 384), R, np.uint8)
    with pytest.warns(UndefinedMetricWarning, match="interval_divergence is undefined"):
        result = evaluate_inpainting(silent, silent[:, :96], metrics=(), extensions=["interval_divergence"])
    assert np.isnan([result["interval_divergence"], result["interval_divergence_null"]]).all()
    assert result["interval_divergence_n_defined"] == 0


def test_per_item_scores(contexts: np.ndarray, middles: np.ndarray) -> None:
    result = evaluate_inpainting(
        contexts, middles, n_resamples=0, per_item=True, metrics=["note_f1", "silence_divergence"]
    )
    rows = result["per_item"]
    assert len(rows) == 40
    assert list(rows[0]) == ["note_f1", "silence_rate", "silence_rate_reference"]
    assert np.mean([row["note_f1"] for row in rows]) == pytest.approx(result["note_f1"])
    assert [row["silence_rate"] for row in rows] == divergence.silence_rate(middles).tolist()
    assert [row["silence_rate_reference"] for row in rows] == divergence.silence_rate(contexts[:, 144:240]).tolist()


def test_the_intervals_of_an_item_show_in_its_repeated_notes(contexts: np.ndarray, middles: np.ndarray) -> None:
    result = evaluate_inpainting(contexts, middles, n_resamples=0, per_item=True, metrics=["interval_divergence"])
    expected = melodic_intervals.repeated_note_rate(middles), melodic_intervals.repeated_note_rate(contexts[:, 144:240])
    for name, values in zip(("repeated_note_rate", "repeated_note_rate_reference"), expected, strict=True):
        np.testing.assert_array_equal([row[name] for row in result["per_item"]], values)


def test_micro_average_counts_notes(contexts: np.ndarray, middles: np.ndarray) -> None:
    counts = inpainting.note_counts(contexts[:, 144:240], middles)
    notes = counts.reference.sum() + counts.estimate.sum()
    extensions = ("consonance_pitch_accuracy", "self_replication_rate")
    result = evaluate_inpainting(
        contexts, middles, groups=GROUPS, average="micro", n_resamples=50, extensions=extensions
    )
    assert result["position_score"] == pytest.approx(2 * counts.shared.sum() / notes)
    assert result["note_f1"] == pytest.approx(2 * counts.same_pitch.sum() / notes)
    assert result["pitch_accuracy"] == pytest.approx(counts.same_pitch.sum() / counts.shared.sum())
    assert result["rhythm_accuracy"] == pytest.approx(counts.same_duration.sum() / counts.shared.sum())
    for name in (*ITEM_METRICS, *extensions):
        low, high = result[f"{name}_ci"]
        assert low <= result[name] <= high or (result[name] == 0 and np.isnan([low, high]).all())
        assert result[f"{name}_n"] == 40


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_one_song_has_no_interval(contexts: np.ndarray, middles: np.ndarray, average: str) -> None:
    result = evaluate_inpainting(
        contexts, middles, groups=["song"] * 40, average=average, extensions=tuple(INPAINTING_EXTENSIONS), n_resamples=5
    )
    for name in (*INPAINTING_METRICS, *INPAINTING_EXTENSIONS):
        assert np.isfinite(result[name])
        assert np.isnan(result[f"{name}_ci"]).all()


def test_groups_widen_the_interval_of_items_that_repeat(contexts: np.ndarray, middles: np.ndarray) -> None:
    whole, filled = np.repeat(contexts, 5, axis=0), np.repeat(middles, 5, axis=0)
    by_song = evaluate_inpainting(whole, filled, groups=np.repeat(np.arange(40), 5))
    by_item = evaluate_inpainting(whole, filled)
    for name in ("position_score", "note_f1"):
        clustered, single = (np.diff(result[f"{name}_ci"]) for result in (by_song, by_item))
        assert clustered > 1.8 * single  # five copies of each: sqrt(5) = 2.24


@pytest.mark.slow
def test_intervals_of_an_item_are_swapped_together(contexts: np.ndarray, middles: np.ndarray) -> None:
    name = "interval_divergence"
    result = evaluate_inpainting(contexts, middles, metrics=(), extensions=[name], n_resamples=2000)
    true = contexts[:, 144:240]
    assert result[name] == pytest.approx(melodic_intervals.interval_divergence(true, middles))
    rng = np.random.default_rng(9)
    floor = [
        melodic_intervals.interval_divergence(np.where(swap, middles, true), np.where(swap, true, middles))
        for swap in rng.random((2000, len(middles), 1)) < 0.5
    ]
    assert result[f"{name}_null"] == pytest.approx(np.mean(floor), rel=0.05)


def test_the_noise_floor_swaps_whole_groups(contexts: np.ndarray, middles: np.ndarray) -> None:
    # two groups: two of the four swaps leave the divergence as it is, the others give that of one group swapped
    groups = np.arange(40) // 20
    true = contexts[:, 144:240]
    one = groups[:, None] == 1
    sides = np.where(one, middles, true), np.where(one, true, middles)
    name = "interval_divergence"
    result = evaluate_inpainting(contexts, middles, groups=groups, metrics=(), extensions=[name], n_resamples=4000)
    expected = (
        melodic_intervals.interval_divergence(true, middles) + melodic_intervals.interval_divergence(*sides)
    ) / 2
    assert result[f"{name}_null"] == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("base", "largest"), [("nats", LN2), ("bits", 1.0)])
def test_no_interval_reaches_beyond_the_largest_divergence(base: str, largest: float) -> None:
    # rests in most of the middles: a divergence near its largest value
    contexts = np.full((8, 384), 128, np.uint8)
    contexts[:, ::12] = 60
    middles = contexts[:, 144:240].copy()
    middles[:7] = R
    result = evaluate_inpainting(contexts, middles, metrics=["silence_divergence"], base=base)
    low, high = result["silence_divergence_ci"]
    assert low <= high == largest


def test_replication_can_look_in_a_corpus(contexts: np.ndarray) -> None:
    true = contexts[:, 144:240]
    options = {"metrics": (), "extensions": ["self_replication_rate"]}
    assert evaluate_inpainting(contexts, true, corpus=contexts, **options)["self_replication_rate"] == 1
    assert evaluate_inpainting(contexts, true, corpus=[40] * 24, **options)["self_replication_rate"] == 0


def test_copies_at_another_pitch_count_where_that_is_asked_for(contexts: np.ndarray) -> None:
    tuned = contexts.copy()
    tuned[:, 144:168] = [60, 62] + [128] * 22
    tuned[:, :24] = [65, 67] + [128] * 22
    options = {"metrics": ["self_replication_rate"], "per_item": True}
    plain, moved = (
        evaluate_inpainting(tuned, tuned[:, 144:240], transposed=transposed, **options) for transposed in (False, True)
    )
    assert moved["self_replication_rate"] >= plain["self_replication_rate"] + 0.25
    assert all(row["self_replication_rate"] >= 0.25 for row in moved["per_item"])


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_rates_stand_beside_those_of_the_true_middles(contexts: np.ndarray, middles: np.ndarray, average: str) -> None:
    names = ["self_replication_rate", "repeated_note_rate"]
    options = {"metrics": names, "average": average, "per_item": True}
    copying = np.concatenate([contexts[:, :144], contexts[:, :96], contexts[:, 240:]], axis=1)
    true = copying[:, 144:240]
    result, of_truth = (evaluate_inpainting(copying, filled, **options) for filled in (middles, true))
    for name in names:
        assert result[f"{name}_reference"] == pytest.approx(of_truth[name])
        assert result[name] != result[f"{name}_reference"]
        rows = [row[f"{name}_reference"] for row in result["per_item"]]
        np.testing.assert_array_equal(rows, [row[name] for row in of_truth["per_item"]])
    assert not [key for key in evaluate_inpainting(contexts, middles, n_resamples=0) if key.endswith("_reference")]


def test_extensions_are_those_of_their_functions(contexts: np.ndarray, middles: np.ndarray) -> None:
    """One pass over the items gives what the functions give by themselves."""
    true = contexts[:, 144:240]
    found = item_scores(contexts, middles, extensions=["consonance_pitch_accuracy", *RATES])
    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        expected = {
            "repeated_note_rate": melodic_intervals.repeated_note_rate(middles),
            "consonance_pitch_accuracy": inpainting.consonance_pitch_accuracy(true, middles),
            "self_replication_rate": inpainting.self_replication_rate(contexts, middles),
        }
    assert [*found] == [*ITEM_METRICS, *expected]
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_base_of_the_divergences(contexts: np.ndarray, middles: np.ndarray) -> None:
    nats, bits = (evaluate_inpainting(contexts, middles, base=base, n_resamples=10) for base in ("nats", "bits"))
    for name in SET_METRICS:
        for key in (name, f"{name}_ci", f"{name}_null"):
            np.testing.assert_allclose(np.array(bits[key]) * LN2, nats[key], rtol=1e-12)


def test_options_of_divergences_are_taken_where_one_is_computed(contexts: np.ndarray, middles: np.ndarray) -> None:
    """Not given, they are the documented defaults; and one divergence among other scores is enough."""
    names = {"metrics": ["note_f1", "groove_divergence"]}
    given = evaluate_inpainting(contexts, middles, n_resamples=1000, seed=0, base="nats", **names)
    assert evaluate_inpainting(contexts, middles, **names) == given
    extension = {"metrics": ["note_f1"], "extensions": ["interval_divergence"]}
    assert np.isnan(evaluate_inpainting(contexts, middles, n_resamples=0, **extension)["interval_divergence_null"])


def test_bad_input_is_named(contexts: np.ndarray, middles: np.ndarray) -> None:
    cases = [
        ((contexts[:, :383], middles), {}, ContextLengthError, r"\(n, 384\), got \(40, 383\)"),
        ((contexts, contexts), {}, ContextLengthError, r"middles, of shape \(n, 96\), got \(40, 384\)"),
        ((contexts[0], middles[0]), {}, ContextLengthError, r"got \(384,\)"),
        ((contexts, middles[:3]), {}, PairCountError, "40 references and 3 estimates"),
        ((contexts, middles.astype(int) + 100), {}, InvalidTokensError, "outside the vocabulary"),
        ((contexts[:0], middles[:0]), {}, NoDataError, "no items"),
        ((contexts, middles), {"groups": [1, 2]}, PairCountError, "one label an item"),
        ((contexts, middles), {"metrics": ["note_f"]}, UnknownNameError, "did you mean note_f1"),
        ((contexts, middles), {"extensions": ["note_f1"]}, UnknownNameError, "unknown extension"),
        ((contexts, middles), {"variant": "exact"}, UnknownNameError, "unknown variant"),
        ((contexts, middles), {"average": "mean"}, UnknownNameError, "unknown average"),
        ((contexts, middles), {"base": "nat"}, UnknownNameError, "did you mean nats"),
        ((contexts, middles), {"confidence": 95}, InvalidInputError, "confidence"),
        ((contexts, middles), {"n_resamples": -1}, InvalidInputError, "n_resamples"),
        ((contexts, middles), {"metrics": "note_f1", "seed": 0}, InvalidInputError, "`seed` can be given for div"),
        ((contexts, middles), {"metrics": (), "n_resamples": 0, "base": "nats"}, InvalidInputError, "`n_res.*`base`"),
    ]
    for items, options, error, message in cases:
        with pytest.raises(error, match=message):
            evaluate_inpainting(*items, **options)


def test_official_divergences_do_not_need_onsets_in_the_reference(contexts: np.ndarray, middles: np.ndarray) -> None:
    silent = contexts.copy()
    silent[7, 144:240] = R
    result = evaluate_inpainting(silent, middles, variant="official", metrics=SET_METRICS, n_resamples=5)
    assert set(SET_METRICS) <= set(result)
    with pytest.raises(InvalidInputError, match="item 7"):
        evaluate_inpainting(silent, middles, variant="official", n_resamples=5)


# likelihood


def test_nll() -> None:
    rows = np.log([[1 / 2, 1 / 8], [1, 1], [1 / 4, 1 / 4], [1 / 2, 1 / 2]])
    result = evaluate_nll(rows, groups=["a", "a", "b", "c"], per_item=True)
    # 2, 0, 2 and 1 bits
    assert result["inpainting_nll"] == pytest.approx(5 / 4 * LN2)
    assert (result["inpainting_nll_n"], result["inpainting_nll_n_defined"]) == (4, 4)
    assert result["inpainting_nll_ci"][0] <= 5 / 4 * LN2 <= result["inpainting_nll_ci"][1]
    assert [row["inpainting_nll"] for row in result["per_item"]] == pytest.approx([2 * LN2, 0, 2 * LN2, LN2])


def test_infinite_nll_has_no_interval() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = evaluate_nll([[-1.0, -np.inf], [-1.0, -1.0], [-2.0, -1.0]])
    assert result["inpainting_nll"] == np.inf
    assert np.isnan(result["inpainting_nll_ci"]).all()


def test_bad_nll_input_is_named() -> None:
    with pytest.raises(NoDataError):
        evaluate_nll([])
    with pytest.raises(InvalidInputError, match="one row an item"):
        evaluate_nll([-1.0, -1.0])
    with pytest.raises(InvalidInputError, match="at most 0"):
        evaluate_nll([[0.5]])
    with pytest.raises(PairCountError):
        evaluate_nll([[-0.5]], groups=[1, 2])
