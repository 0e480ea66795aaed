"""Success of single targets: worked cases, laws, and what cannot be told."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import FORMS, Beats, Chords, Chroma, EditTarget, Key, targets_of, targets_to_dict
from music_evals.benchmark.tasks.preservation.facets import BESIDE
from music_evals.datasets.known_edits.labels import declared
from music_evals.datasets.known_edits.labels import kinds as known_kinds
from music_evals.errors import InvalidInputError, UndefinedMetricWarning, UnknownNameError, UnsupportedTypeError
from music_evals.metrics import edit_success as metrics
from music_evals.metrics.catalogue import PRESERVATION_METRICS
from music_evals.metrics.edit_success import ERROR_BANDS, MEANT_TO_CHANGE, Change, success, verdict

AMOUNTS = st.floats(-20, 20).filter(lambda value: abs(value) > 0.01)


def beats(bpm: float) -> Beats:
    return Beats(np.arange(0, 10, 60 / bpm) if bpm > 0 else np.zeros(0), bpm)


def chroma(rng: np.random.Generator, steps: int = 0) -> Chroma:
    return Chroma(np.roll(rng.random((12, 30)), steps, axis=0), 0.02)


def chords(*labels: str) -> Chords:
    edges = np.arange(len(labels) + 1, dtype=np.float64)
    return Chords(np.stack([edges[:-1], edges[1:]], axis=1), labels)


@given(AMOUNTS, st.floats(-40, 40))
def test_success_is_the_share_of_the_change_that_is_there(asked: float, measured: float) -> None:
    score = success(Change(asked, measured))
    assert 0 <= score <= 1
    assert success(Change(asked, asked)) == 1
    assert success(Change(asked, 0.0)) == success(Change(asked, 2 * asked)) == success(Change(asked, -asked)) == 0
    assert success(Change(-asked, -measured)) == score  # the direction does not matter
    assert success(Change(asked, asked / 2)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("measured", "band", "said"),
    [(1.0, 0.2, "done"), (1.2, 0.2, "done"), (1.3, 0.2, "not done"), (0.0, 0.2, "not done"),
     (0.5, 0.6, "cannot be told"), (1.0, 1.0, "cannot be told"), (2.0, 1.0, "done"), (math.nan, 0.2, "cannot be told")],
)  # fmt: skip
def test_a_verdict_weighs_the_change_against_the_error(measured: float, band: float, said: str) -> None:
    assert verdict(Change(1.0, measured), band) == said


def test_every_kind_has_an_error_band() -> None:
    assert ERROR_BANDS.keys() == FORMS.keys()
    assert min(ERROR_BANDS.values()) > 0


def test_what_targets_change_is_what_known_edits_declares() -> None:
    """Of an edit of each kind, the scores whose own field it declares as changed, shifted or scaled."""
    kinds = {"tempo": "tempo", "transpose": "transpose", "key": "mode", "metre": "meter", "chords": "reharmonised",
             "length": "cut", "loudness": "gain"}  # fmt: skip
    fields = {name: entry["field"] for name, entry in declared()["responds_to"].items()}
    for target, kind in kinds.items():
        labels = known_kinds()[kind].labels[1 if kind == "transpose" else 0]  # the first is a whole octave
        expected = {name for name, field in fields.items() if labels[field] != "same"}
        assert MEANT_TO_CHANGE[target] & fields.keys() == expected, target
    assert MEANT_TO_CHANGE.keys() == FORMS.keys()
    counted = {*PRESERVATION_METRICS, *BESIDE}
    assert all(names <= counted for names in MEANT_TO_CHANGE.values())


@pytest.mark.parametrize(
    ("change", "asked", "measured"),
    [
        (metrics.tempo_change(beats(100), beats(120), EditTarget("tempo", "1.2x")), math.log2(1.2), math.log2(1.2)),
        (metrics.tempo_change(beats(100), beats(50), EditTarget("tempo", "200 bpm")), 1.0, -1.0),
        (metrics.length_change(40.0, 20.0, EditTarget("length", "10 s")), -2.0, -1.0),
        (metrics.loudness_change(-20.0, -17.0, EditTarget("loudness", "+6 dB")), 6.0, 3.0),
        (metrics.loudness_change(-20.0, -17.0, EditTarget("loudness", "-14 LUFS")), 6.0, 3.0),
        (metrics.metre_change(4.0, 3.0, EditTarget("metre", "3/4")), 1.0, 1.0),
        (metrics.metre_change(4.0, 4.0, EditTarget("metre", "3/4")), 1.0, 0.0),
        # from C major to A minor only the mode is to go; D minor is a fifth and the mode away
        (metrics.key_change(Key(0, "major"), Key(0, "major"), EditTarget("key", "A minor")), 1.0, 0.0),
        (metrics.key_change(Key(0, "major"), Key(9, "minor"), EditTarget("key", "D minor")), 2.0, 1.0),
        (metrics.key_change(Key(0, "major"), Key(6, "major"), EditTarget("key", "G major")), 1.0, -4.0),
        (metrics.instrument_change([0, 40], [40], EditTarget("instrument_removed", "piano")), 1.0, 1.0),
        (metrics.instrument_change([40], [40], EditTarget("instrument_added", "flute")), 1.0, 0.0),
        # no chord is right, then the first and the third
        (metrics.chords_change(chords("D:min", "E:min", "N", "D:min"), chords("C:maj", "E:min", "F:maj"),
                               EditTarget("chords", "C:maj G:maj F:maj")), 1.0, 2 / 3),
    ],
)  # fmt: skip
def test_worked_changes(change: Change, asked: float, measured: float) -> None:
    assert change == (pytest.approx(asked), pytest.approx(measured))


FLAT, ONE_PITCH = Chroma(np.ones((12, 3)), 0.1), Chroma(np.eye(12)[:, :1], 0.1)


@pytest.mark.parametrize(
    "change",
    [
        metrics.tempo_change(beats(90), beats(math.nan), EditTarget("tempo", "2x")),
        metrics.length_change(20.0, 0.0, EditTarget("length", "0.5x")),
        metrics.metre_change(4.0, math.nan, EditTarget("metre", "3/4")),
        metrics.instrument_change([0], [], EditTarget("instrument_removed", "piano")),
        metrics.loudness_change(-20.0, math.nan, EditTarget("loudness", "+1 dB")),
        metrics.chords_change(chords("C:maj"), chords("N"), EditTarget("chords", "G:maj")),
        metrics.transpose_change(ONE_PITCH, FLAT, EditTarget("transpose", "7")),
    ],
)
def test_what_is_not_there_has_gone_nowhere(change: Change) -> None:
    assert change.measured == success(change) == 0
    assert verdict(change, 0.1) == "not done"


@given(st.integers(-24, 24).filter(lambda steps: steps % 12 != 0), st.integers(0, 2**32))
def test_a_transposition_is_known_up_to_octaves(steps: int, seed: int) -> None:
    target = EditTarget("transpose", f"{steps:+d}")
    before = chroma(np.random.default_rng(seed))
    after = chroma(np.random.default_rng(seed), steps)
    change = metrics.transpose_change(before, after, target)
    assert change.requested == change.measured
    assert (change.requested - steps) % 12 == 0
    assert -6 < change.requested <= 6
    assert metrics.transpose_change(before, before, target).measured == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda: metrics.tempo_change(beats(math.nan), beats(90), EditTarget("tempo", "2x")),
        lambda: metrics.tempo_change(beats(120), beats(90), EditTarget("tempo", "120 bpm")),
        lambda: metrics.length_change(0.0, 10.0, EditTarget("length", "20 s")),
        lambda: metrics.instrument_change([], [73], EditTarget("instrument_added", "flute")),
        lambda: metrics.length_change(20.0, 10.0, EditTarget("length", "20 s")),
        lambda: metrics.loudness_change(math.nan, -20.0, EditTarget("loudness", "+1 dB")),
        lambda: metrics.metre_change(math.nan, 3.0, EditTarget("metre", "3/4")),
        lambda: metrics.metre_change(3.0, 3.0, EditTarget("metre", "3/4")),
        lambda: metrics.key_change(Key(9, "minor"), Key(0, "major"), EditTarget("key", "A minor")),
        lambda: metrics.chords_change(chords("N"), chords("C:maj"), EditTarget("chords", "C:maj")),
        lambda: metrics.chords_change(chords("C:maj", "N"), chords("C:maj"), EditTarget("chords", "C:maj")),
        lambda: metrics.instrument_change([73], [73], EditTarget("instrument_added", "flute")),
        lambda: metrics.transpose_change(FLAT, ONE_PITCH, EditTarget("transpose", "1")),
        lambda: metrics.transpose_change(ONE_PITCH, ONE_PITCH, EditTarget("transpose", "12")),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_nan_with_a_warning(change: Callable[[], Change]) -> None:
    with pytest.warns(UndefinedMetricWarning):
        undefined = change()
    assert math.isnan(success(undefined))
    assert verdict(undefined, 1.0) == "cannot be told"


@pytest.mark.parametrize("kind", list(FORMS))
def test_a_target_in_a_form_of_its_kind_is_read_and_written(kind: str) -> None:
    for form in FORMS[kind].split(", or "):
        text = form.partition(",")[0].partition(" or ")[0]
        [target] = targets_of({kind: text})
        assert targets_of(targets_to_dict((target,))) == (target,)
        assert targets_of(f" {kind} = {text} ;") == (target,)


def test_numbers_are_factors_semitones_and_decibels() -> None:
    targets = targets_of({"tempo": 1.25, "transpose": -3, "length": 2, "loudness": 6})
    assert [(target.amount, target.unit) for target in targets] == [(1.25, "x"), (-3, ""), (2, "x"), (6, "dB")]


def test_flats_are_read_as_sharps() -> None:
    assert EditTarget("key", "Bb minor").key == Key(10, "minor")
    assert EditTarget("key", "cb Major").key == Key(11, "major")
    assert EditTarget("key", "AB minor").key == Key(8, "minor")
    assert EditTarget("chords", "Db:maj Bb:min F:maj").chords == ("C#:maj", "A#:min", "F:maj")


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"tempi": "2x"}, UnknownNameError),
        ({"tempo": "1x"}, InvalidInputError),
        ({"tempo": "0 bpm"}, InvalidInputError),
        ({"tempo": "-2x"}, InvalidInputError),
        ({"tempo": "fast"}, InvalidInputError),
        ({"transpose": 0}, InvalidInputError),
        ({"transpose": "2.5"}, InvalidInputError),
        ({"transpose": "25"}, InvalidInputError),
        ({"key": "H minor"}, InvalidInputError),
        ({"metre": "3"}, InvalidInputError),
        ({"chords": "C Am"}, InvalidInputError),
        ({"chords": ""}, InvalidInputError),
        ({"instrument_added": "kazoo"}, UnknownNameError),
        ({"loudness": "0 dB"}, InvalidInputError),
        ({"loudness": True}, UnsupportedTypeError),
        ({"tempo": None}, UnsupportedTypeError),
        ("tempo", InvalidInputError),
        (["tempo"], UnsupportedTypeError),
    ],
)
def test_other_targets_are_refused(values: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        targets_of(values)


def test_nothing_asked_is_no_target() -> None:
    assert targets_of(None) == targets_of("") == targets_of({}) == ()
