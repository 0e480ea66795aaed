"""The base classes of the evaluate modules, seen through two small modules of our own."""

from __future__ import annotations

import inspect
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import music_evals.hf as mh
from music_evals.annotations import HOLD, REST, Score, TimeSignature
from music_evals.errors import (
    ContextLengthError,
    ContextMismatchWarning,
    InvalidInputError,
    InvalidTokensError,
    NoDataError,
    PairCountError,
    PolyphonyError,
    UnknownNameError,
    UnreadableFileError,
    UnsupportedTypeError,
)
from music_evals.symbolic.midi import read_midi, to_pretty_midi, write_midi
from music_evals.symbolic.notes import make_notes

MEASURE = [60, *[HOLD] * 11, 64, *[HOLD] * 11]
CONTEXT = MEASURE * 16
MIDDLE = MEASURE * 4


class Agreement(mh.SymbolicMetric):
    """Share of equal tokens: enough to see what arrives."""

    def _info(self) -> Any:
        return self.make_info("Share of equal tokens.")

    def _compute(self, predictions: list[str], references: list[str], *, fail: bool = False) -> dict[str, Any]:
        if fail:
            raise InvalidInputError("asked to fail")
        contexts, middles = mh.read_pairs(references, predictions)
        equal = (contexts[:, 144:240] == middles).mean(axis=1)
        return {"agreement": equal.mean(), "agreement_ci": (np.float64(0), np.float64(1)), "per_item": list(equal)}


class Surprise(mh.LikelihoodMetric):
    def _info(self) -> Any:
        return self.make_info("Mean.")

    def _compute(self, predictions: list[list[float]], **options: Any) -> dict[str, Any]:
        rows = -mh.read_log_probabilities(predictions).mean(axis=1)
        return {"surprise": rows.mean(), "per_item": list(rows)} | options


class Telling(mh.SymbolicMetric):
    """Returns the variant that it was computed with."""

    def _info(self) -> Any:
        return self.make_info("The variant.")

    def _compute(self, *, variant: str = "none", **_: list[str]) -> dict[str, Any]:
        return {"variant": variant}


@pytest.fixture
def agreement(tmp_path: Path) -> Agreement:
    return Agreement(cache_dir=str(tmp_path))


@pytest.fixture
def surprise(tmp_path: Path) -> Surprise:
    return Surprise(cache_dir=str(tmp_path))


def score_of(n_measures: int, tpq: int = 480) -> Score:
    """Two notes a measure, as in `MEASURE`."""
    onsets = np.arange(2 * n_measures) * 2 * tpq
    return Score(make_notes(onsets, np.full(2 * n_measures, 2 * tpq), [60, 64] * n_measures), tpq)


def rows_of(n_measures: int) -> list[dict[str, int]]:
    return [{"onset_step": 12 * i, "duration_step": 12, "pitch": 60 + 4 * (i % 2)} for i in range(2 * n_measures)]


def as_path(tmp_path: Path, n_measures: int) -> Path:
    path = tmp_path / f"{n_measures}.mid"
    path.write_bytes(write_midi(score_of(n_measures)))
    return path


def as_symusic(_: Path, n_measures: int) -> Any:
    import symusic

    return symusic.Score.from_midi(write_midi(score_of(n_measures)))


KINDS: dict[str, Callable[[Path, int], Any]] = {
    "path": as_path,
    "str path": lambda tmp_path, n: str(as_path(tmp_path, n)),
    "MIDI bytes": lambda _, n: write_midi(score_of(n)),
    "MIDI bytearray": lambda _, n: bytearray(write_midi(score_of(n))),
    "score": lambda _, n: score_of(n),
    "note array in steps": lambda _, n: score_of(n, tpq=6).notes,
    "note rows": lambda _, n: rows_of(n),
    "pretty_midi": lambda _, n: to_pretty_midi(score_of(n)),
    "symusic": as_symusic,
    "list": lambda _, n: MEASURE * n,
    "tuple": lambda _, n: tuple(MEASURE * n),
    "uint8 array": lambda _, n: np.array(MEASURE * n, dtype=np.uint8),
    "int64 array": lambda _, n: np.array(MEASURE * n),
    "list of numpy integers": lambda _, n: list(np.array(MEASURE * n, dtype=np.int16)),
    "read-only array": lambda _, n: np.broadcast_to(np.uint8(60), 24 * n),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_item_says_the_same(kind: str, agreement: Agreement, tmp_path: Path) -> None:
    make = KINDS[kind]
    known = MEASURE if kind != "read-only array" else [60] * 24
    # ... and it is not equal by being empty: against the tokens themselves
    other = [61, *[HOLD] * 23] * 4
    predictions = [make(tmp_path, 4), known * 4, other]
    result = agreement.compute(predictions=predictions, references=[make(tmp_path, 16) for _ in predictions])
    assert result["per_item"][:2] == [1.0, 1.0]
    assert result["per_item"][2] < 1.0


def test_kinds_mix_in_one_batch(agreement: Agreement, tmp_path: Path) -> None:
    kinds = [make for name, make in KINDS.items() if name != "read-only array"]
    predictions = [make(tmp_path, 4) for make in kinds]
    references = [make(tmp_path, 16) for make in reversed(kinds)]
    result = agreement.compute(predictions=predictions, references=references)
    assert result["per_item"] == [1.0] * len(kinds)


@pytest.mark.slow
def test_a_context_in_parts_is_a_whole_context(agreement: Agreement, tmp_path: Path) -> None:
    parts = {"past": MEASURE * 6, "middle": as_path(tmp_path, 4), "future": np.array(MEASURE * 6)}
    assert agreement.compute(predictions=[parts], references=[parts])["agreement"] == 1.0
    with pytest.raises(UnsupportedTypeError, match="past, middle and future"):
        agreement.compute(predictions=[MIDDLE], references=[{"past": MEASURE * 6, "middle": MEASURE * 4}])
    with pytest.raises(ContextLengthError, match="144"):
        agreement.compute(predictions=[MIDDLE], references=[{**parts, "past": MEASURE * 5}])


def test_only_the_middle_of_a_prediction_is_read(agreement: Agreement) -> None:
    """A whole prediction scores as its middle does, and a foreign context is told and not read."""
    whole = [REST] * 144 + MIDDLE + [REST] * 144
    with pytest.warns(ContextMismatchWarning, match="1 of 2 predictions, the first at index 1") as caught:
        result = agreement.compute(predictions=[CONTEXT, whole], references=[CONTEXT, CONTEXT])
    assert result["agreement"] == 1.0
    assert caught[0].filename == __file__


def test_an_equal_context_does_not_warn(agreement: Agreement) -> None:
    assert agreement.compute(predictions=[CONTEXT], references=[CONTEXT])["agreement"] == 1.0


def test_short_files_end_in_rests(agreement: Agreement) -> None:
    """Files have no length of their own: one note is a middle, and the rest of it is rest."""
    one = Score(make_notes([0], [480], [60]), 480)
    padded = [60, *[HOLD] * 5, *[REST] * 90]
    reference = CONTEXT[:144] + padded + CONTEXT[240:]
    assert agreement.compute(predictions=[one], references=[reference])["agreement"] == 1.0


@pytest.mark.parametrize(
    ("prediction", "error", "message"),
    [
        (MEASURE * 3, ContextLengthError, "96 steps"),
        (MEASURE * 5, ContextLengthError, "96 steps"),
        ([*MIDDLE[:-1], 130], InvalidTokensError, "token 130"),
        ([*MIDDLE[:-1], -1], InvalidTokensError, "token -1"),
        ([*MIDDLE[:-1], 10**30], InvalidTokensError, "whole numbers"),
        (np.array(MIDDLE).astype(np.int8), InvalidTokensError, "int8 cannot hold"),
        (np.array(MIDDLE, dtype=np.float64), InvalidTokensError, "float64"),
        (np.array(MIDDLE) > 60, InvalidTokensError, "bool"),
        (np.array([MIDDLE]), ContextLengthError, r"shape \(1, 96\)"),
        ([float(token) for token in MIDDLE], UnsupportedTypeError, "list of float"),
        ([*MIDDLE[:-1], True], UnsupportedTypeError, "bool and int"),
        ([*MIDDLE[:-1], "60"], UnsupportedTypeError, "int and str"),
        ([], UnsupportedTypeError, "list without items"),
        (None, UnsupportedTypeError, "NoneType"),
        (60, UnsupportedTypeError, "one item stood where a batch"),
        ({1, 2}, UnsupportedTypeError, "set"),
        (b"no MIDI", UnreadableFileError, "MIDI"),
        ("missing.mid", NoDataError, "no such file"),
        (rows_of(17), ContextLengthError, "408"),
        ([{"onset_step": 0, "pitch": 60}], UnsupportedTypeError, "list of dict"),
        (Score(make_notes([0, 10], [20, 20], [60, 64]), 6), PolyphonyError, "one voice"),
        (
            Score(make_notes([0], [6], [60]), 6, (TimeSignature(0, 3, 4),)),
            ContextLengthError,
            "measure 1 is in 3/4 .*; choose whole measures of 4/4, or give the steps as tokens",
        ),
    ],
)
def test_an_item_that_cannot_be_read_is_named(
    prediction: Any, error: type[Exception], message: str, agreement: Agreement
) -> None:
    with pytest.raises(error, match=message) as caught:
        agreement.add_batch(predictions=[MIDDLE, prediction], references=[CONTEXT, CONTEXT])
    assert str(caught.value).startswith("predictions[1]: ")
    with pytest.raises(error, match=r"^references\[0\]: "):
        agreement.add(prediction=MIDDLE, reference=prediction)
    assert len(agreement) == 0


def test_what_is_offered_is_named(agreement: Agreement) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"MIDI bytes; notes .* NoteSeq tokens .* past, middle and future"):
        agreement.add(prediction=object(), reference=CONTEXT)


def test_a_middle_is_no_reference(agreement: Agreement) -> None:
    with pytest.raises(ContextLengthError, match="384"):
        agreement.add(prediction=MIDDLE, reference=MIDDLE)


@pytest.mark.parametrize("batch", ["a.mid", b"MThd", Path("a.mid"), {"past": []}, 7, score_of(4)])
def test_a_bare_item_is_no_batch(batch: Any, agreement: Agreement) -> None:
    """A string would be read letter by letter."""
    with pytest.raises(UnsupportedTypeError, match="must be a list of items"):
        agreement.compute(predictions=batch, references=[CONTEXT])


def test_pairs_must_pair_up(agreement: Agreement) -> None:
    with pytest.raises(PairCountError):
        agreement.compute(predictions=[MIDDLE], references=[CONTEXT, CONTEXT])
    with pytest.raises(PairCountError):
        agreement.compute(predictions=[MIDDLE])
    with pytest.raises(NoDataError):
        agreement.compute(predictions=[], references=[])
    with pytest.raises(NoDataError):
        agreement.compute()


def test_a_failed_add_changes_nothing(agreement: Agreement) -> None:
    agreement.add(prediction=MIDDLE, reference=CONTEXT)
    with pytest.raises(InvalidTokensError):
        agreement.add_batch(predictions=[MIDDLE, [200] * 96], references=[CONTEXT, CONTEXT])
    with pytest.raises(PairCountError):
        agreement.add_batch(predictions=[MIDDLE], references=[])
    agreement.add(prediction=MIDDLE[::-1], reference=CONTEXT)
    assert len(agreement.compute()["per_item"]) == 2


def test_a_failed_compute_leaves_a_fresh_instance(agreement: Agreement, tmp_path: Path) -> None:
    for _ in range(3):
        with pytest.raises(InvalidInputError, match="asked to fail"):
            agreement.compute(predictions=[MIDDLE], references=[CONTEXT], fail=True)
        with pytest.raises(TypeError, match="unknown_option"):
            agreement.compute(predictions=[MIDDLE], references=[CONTEXT], unknown_option=1)
        with pytest.raises(PairCountError):
            agreement.compute(predictions=[MIDDLE], references=[])
    assert not list(tmp_path.rglob("*.arrow"))
    assert len(agreement) == 0
    # the lock was given back: neither this instance nor the next one waits for it, nor takes another name
    for instance in (agreement, Agreement(cache_dir=str(tmp_path))):
        instance.add(prediction=MIDDLE, reference=CONTEXT)
        assert Path(instance.cache_file_name).name == "default_experiment-1-0.arrow"
        assert instance.compute()["agreement"] == 1.0


def test_a_failure_does_not_touch_the_files_of_another_instance(tmp_path: Path) -> None:
    """What a first instance had held and given back belongs to the second by now."""
    first, second = Agreement(cache_dir=str(tmp_path)), Agreement(cache_dir=str(tmp_path))
    first.compute(predictions=[MIDDLE], references=[CONTEXT])
    second.add(prediction=MIDDLE, reference=CONTEXT)
    with pytest.raises(PairCountError):
        first.compute(predictions=[MIDDLE], references=[])
    assert second.compute()["agreement"] == 1.0


def test_order_is_kept_when_ways_to_add_are_mixed(agreement: Agreement) -> None:
    wrong = [REST] * 96
    agreement.add(prediction=MIDDLE, reference=CONTEXT)
    agreement.add_batch(predictions=[wrong, MIDDLE], references=[CONTEXT, CONTEXT])
    agreement.add(prediction=wrong, reference=CONTEXT)
    result = agreement.compute(predictions=[MIDDLE], references=[CONTEXT])
    assert [score == 1.0 for score in result["per_item"]] == [True, False, True, False, True]


def test_results_are_plain(agreement: Agreement) -> None:
    result = agreement.compute(predictions=[MIDDLE], references=[CONTEXT])
    assert type(result["agreement"]) is float
    assert result["agreement_ci"] == (0.0, 1.0)
    assert {type(end) for end in result["agreement_ci"]} == {float}
    assert json.loads(json.dumps(result)) == {"agreement": 1.0, "agreement_ci": [0.0, 1.0], "per_item": [1.0]}


def test_inputs_are_not_written_to(agreement: Agreement) -> None:
    context, middle = np.array(CONTEXT, dtype=np.uint8), np.array(MIDDLE, dtype=np.uint8)
    agreement.compute(predictions=[middle], references=[context])
    assert context.tolist() == CONTEXT
    assert middle.tolist() == MIDDLE


def test_batches_may_be_arrays_columns_and_generators(agreement: Agreement) -> None:
    import datasets

    rows = datasets.Dataset.from_dict({"tokens": [CONTEXT, CONTEXT]})
    middles = np.array([MIDDLE, MIDDLE], dtype=np.uint8)
    assert agreement.compute(predictions=middles, references=rows["tokens"])["agreement"] == 1.0
    assert agreement.compute(predictions=(m for m in middles), references=(CONTEXT, CONTEXT))["agreement"] == 1.0


def test_nothing_is_written_when_kept_in_memory(tmp_path: Path) -> None:
    instance = Agreement(cache_dir=str(tmp_path), keep_in_memory=True)
    assert instance.compute(predictions=[MIDDLE], references=[CONTEXT])["agreement"] == 1.0
    with pytest.raises(InvalidInputError):
        instance.compute(predictions=[MIDDLE], references=[CONTEXT], fail=True)
    assert instance.compute(predictions=[MIDDLE], references=[CONTEXT])["agreement"] == 1.0
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_the_bases_are_abstract() -> None:
    """evaluate takes the first class of a module that is not."""
    assert inspect.isabstract(mh.SymbolicMetric)
    assert inspect.isabstract(mh.LikelihoodMetric)
    assert not inspect.isabstract(Agreement)


def test_docstrings_reach_the_user(agreement: Agreement) -> None:
    assert "6 + 4 + 6 measures" in agreement.compute.__doc__
    assert agreement.info.license == "Apache-2.0"
    assert "10.1186/s13636-023-00279-6" in agreement.citation


def test_rows_of_log_probabilities(surprise: Surprise) -> None:
    result = surprise.compute(predictions=[[-1.0, -3.0], (-0.5, 0)], seed=np.int64(3))
    assert result["surprise"] == pytest.approx((2 + 0.25) / 2)
    assert result["per_item"] == [2.0, 0.25]
    assert type(result["seed"]) is int
    surprise.add(prediction=np.array([-1.0, -1.0], dtype=np.float32))
    surprise.add_batch(predictions=np.array([[-2.0, -2.0]]))
    assert surprise.compute()["surprise"] == pytest.approx(1.5)


def test_an_impossible_token_is_infinitely_surprising(surprise: Surprise) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = surprise.compute(predictions=[[-1.0, -math.inf], [-1.0, -1.0]])
    assert result["surprise"] == math.inf


@pytest.mark.parametrize(
    ("predictions", "error", "message"),
    [
        ([[-1.0], [-1.0, 0.5]], InvalidInputError, r"predictions\[1\]: .*at most 0, got 0.5"),
        ([[-1.0, math.nan]], InvalidInputError, "got nan"),
        ([[-1.0], [-1.0, -2.0]], InvalidInputError, "rows of 1, 2 steps"),
        ([[]], UnsupportedTypeError, "list without items"),
        ([np.zeros(0)], InvalidInputError, "shape"),
        ([[True, False]], UnsupportedTypeError, "list of bool"),
        ([["-1"]], UnsupportedTypeError, "list of str"),
        ([-1.0], UnsupportedTypeError, "float"),
        ("-1.0", UnsupportedTypeError, "list of items"),
        ([np.zeros((2, 2))], UnsupportedTypeError, "ndarray"),
        ([], NoDataError, "empty"),
    ],
)
def test_other_rows_are_refused(predictions: Any, error: type[Exception], message: str, surprise: Surprise) -> None:
    with pytest.raises(error, match=message):
        surprise.compute(predictions=predictions)
    assert surprise.compute(predictions=[[-1.0]])["surprise"] == 1.0


def test_bytes_survive_unchanged() -> None:
    """A guard for the tests above: the file that they write holds what they think."""
    assert read_midi(write_midi(score_of(4))).notes["pitch"].tolist() == [60, 64] * 4


def test_the_config_name_chooses_the_variant(tmp_path: Path) -> None:
    """Also for items that were added; a contradiction is refused, and drops them as every failure does."""
    official = Telling("official", cache_dir=str(tmp_path))
    official.add(prediction=MIDDLE, reference=CONTEXT)
    assert official.compute() == {"variant": "official"}
    official.add(prediction=MIDDLE, reference=CONTEXT)
    with pytest.raises(InvalidInputError, match="'paper'"):
        official.compute(variant="paper")
    with pytest.raises(NoDataError):
        official.compute()
    for config in (None, "default"):
        free = Telling(config, cache_dir=str(tmp_path))
        pairs = {"predictions": [MIDDLE], "references": [CONTEXT]}
        assert (free.compute(**pairs), free.compute(**pairs, variant="paper")) == (
            {"variant": "none"}, {"variant": "paper"}
        )  # fmt: skip


def test_a_config_that_is_no_variant_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="'papre'"):
        Telling("papre", cache_dir=str(tmp_path))
    with pytest.raises(UnknownNameError, match="'official'"):
        Surprise("official", cache_dir=str(tmp_path))
