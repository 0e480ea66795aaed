"""How nearly passages copy each other: by hand, against plain loops, and what must not change the value."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from music_evals.annotations import HOLD, MUSIB_LAYOUT, REST
from music_evals.datasets import near_copies
from music_evals.datasets.near_copies import (
    NEAR,
    Passages,
    most_equal,
    near_train,
    quarter_skeletons,
    repeats_in_context,
    training_passages,
)
from music_evals.datasets.tunes import content_key
from music_evals.errors import InvalidInputError

skeletons = hnp.arrays(
    np.uint8, st.tuples(st.integers(1, 5), st.just(16)), elements=st.sampled_from([60, 61, 62, 64, HOLD, REST])
)


def quarters(*values: int) -> np.ndarray:
    """One quarter note, rest (129) or further hold (128) a quarter, 6 steps each."""
    steps = [[value] + [REST if value == REST else HOLD] * 5 for value in values]
    return np.array(steps, dtype=np.uint8).reshape(1, -1)


def window(past: list[int], middle: list[int], future: list[int]) -> np.ndarray:
    """A window of 24, 16 and 24 quarters."""
    return quarters(*past, *middle, *future)


def plainly_nearest(skeleton: list[int], passages: list[list[int]]) -> Fraction:
    """The definition, in loops over passages, transpositions and quarters."""
    best = 0
    for passage in passages:
        for shift in range(-127, 128):
            pairs = zip(skeleton, passage, strict=True)
            equal = sum(a == b if a >= HOLD or b >= HOLD else a + shift == b for a, b in pairs)
            best = max(best, equal)
    return Fraction(best, len(skeleton))


def test_a_skeleton_is_what_sounds_at_each_quarter():
    tokens = np.array([[HOLD, 60, 128, 128, 128, 128, 128, 62, 129, 128, 128, 128, 128, 128, 70, 128, 128, 128]])
    # step 0: held from before; step 6: the 60 of step 1; step 12: a hold after a rest belongs to no note
    assert quarter_skeletons(tokens.astype(np.uint8)).tolist() == [[HOLD, 60, REST]]


def test_a_transposed_passage_with_two_other_quarters_is_a_near_copy():
    middle = [60, 62, 64, 65, 67, 65, 64, 62, 60, 62, 64, 65, 67, 65, 64, REST]
    passage = [pitch + 5 if pitch < HOLD else pitch for pitch in middle]
    passage[3], passage[7] = 71, REST
    found = Passages(np.array([passage], dtype=np.uint8)).nearest(np.array([middle], dtype=np.uint8))
    assert found.tolist() == [14 / 16] == [NEAR]


@settings(deadline=None)
@given(skeletons, skeletons)
def test_the_bits_find_what_plain_loops_find(first, second):
    expected = [float(plainly_nearest(row, second.tolist())) for row in first.tolist()]
    assert Passages(second).nearest(first).tolist() == expected
    assert (most_equal(first[:, None], second).max(axis=1) / 16).tolist() == expected


@given(skeletons, st.integers(-60, 63))
def test_transposition_changes_nothing(passages, shift):
    moved = np.where(passages < HOLD, passages.astype(int) + shift, passages).astype(np.uint8)
    assert (Passages(passages).nearest(moved) == 1).all()
    assert (Passages(moved).nearest(passages) == 1).all()


@settings(deadline=None)
@given(hnp.arrays(np.uint8, 96, elements=st.sampled_from([60, 62, HOLD, REST])), st.integers(-60, 60))
def test_equal_content_is_as_near_as_can_be(tokens, shift):
    """What `seen_in_train` calls the same has the value 1, holds at the start and rests too."""
    moved = np.where(tokens < HOLD, tokens.astype(int) + shift, tokens).astype(np.uint8)
    assert content_key(tokens) == content_key(moved)
    assert Passages(quarter_skeletons(moved[None])).nearest(quarter_skeletons(tokens[None])).tolist() == [1.0]


def test_more_passages_than_are_counted_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    passages, middles = (rng.integers(60, 72, (n, 16)).astype(np.uint8) for n in (300, 7))
    whole = Passages(passages).nearest(middles)
    monkeypatch.setattr(near_copies, "_AT_ONCE", 70)
    np.testing.assert_array_equal(Passages(passages).nearest(middles), whole)
    np.testing.assert_array_equal(whole, most_equal(middles[:, None], passages).max(axis=1) / 16)


def test_training_is_looked_at_bar_by_bar():
    tune = [40, 47, 42, 55, 44, 41, 52, 46, 58, 43, 57, 48, 51, 45, 54, 40]
    other = [60, 61] * 12
    aligned = window(other[:20] + tune[:4], tune[4:] + other[:4], other)  # the tune starts at measure 5
    late = window(other[:21] + tune[:3], tune[3:] + other[:3], other)  # and a quarter later
    judged = window([60] * 24, [pitch + 7 for pitch in tune], [60] * 24)
    assert near_train(judged, training_passages([aligned])).tolist() == [1.0]
    assert near_train(judged, training_passages([late]))[0] < 1.0
    assert near_train(judged, training_passages([late, aligned])).tolist() == [1.0]
    assert near_train(judged, training_passages([])).tolist() == [0.0]
    # 13 bar lines; from six of them, at measures 0, 1 and 9 to 12, the alternation of 60 and 61 is all there is
    assert len(training_passages([aligned, aligned])) == 8


def test_repeats_are_looked_for_in_past_and_future_not_across_the_middle():
    middle = [50, 57, 52, 65, 54, 51, 62, 56, 68, 53, 67, 58, 61, 55, 64, 59]
    steady = [70] * 24
    past = steady[:8] + middle
    future = middle + steady[:8]
    assert repeats_in_context(window(past, middle, steady)).tolist() == [1.0]
    assert repeats_in_context(window(steady, middle, [pitch + 3 for pitch in future])).tolist() == [1.0]
    assert repeats_in_context(window(steady, middle, steady)).tolist() == [1 / 16]
    shifted = window(steady[:4] + middle + steady[:4], middle, steady)
    assert repeats_in_context(shifted).tolist() == [1.0]  # at measure 1
    late = window(steady[:5] + middle + steady[:3], middle, steady)  # a quarter after a bar line
    assert repeats_in_context(late)[0] < NEAR
    with_own = np.concatenate([window(past, middle, steady), window(steady, middle, steady)])
    assert repeats_in_context(with_own).tolist() == [1.0, 1 / 16]


def test_skeletons_of_another_length_are_refused():
    with pytest.raises(InvalidInputError, match="skeletons of 16 quarters, got 12"):
        Passages(np.full((1, 16), 60, dtype=np.uint8)).nearest(np.full((1, 12), 60, dtype=np.uint8))


def test_no_windows_have_no_values():
    nothing = np.empty((0, MUSIB_LAYOUT.n_steps), dtype=np.uint8)
    assert repeats_in_context(nothing).shape == (0,)
    assert near_train(nothing, training_passages([])).shape == (0,)
