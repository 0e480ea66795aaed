"""Melodic intervals: worked by hand, held to their laws, and shown to see what note F1 does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from music_evals.errors import InvalidTokensError, UndefinedMetricWarning
from music_evals.metrics import inpainting, melodic_intervals

H, R = 128, 129
LN2 = np.log(2)

tokens = st.sampled_from([H, H, H, R, 60, 60, 61, 72, 67, 127])


def test_interval_divergence_by_hand() -> None:
    # up 2, up 2, down 12 | up 2, up 19: masses 2/3, 1/3, 0 and 1/2, 0, 1/2; holds and rests between play no part
    reference, estimate = [[60, H, 62, R, 64, 52]], [[60, 62, H, 81, R, R]]
    expected = (2 / 3 * np.log(8 / 7) + 1 / 2 * np.log(6 / 7) + 1 / 3 * LN2 + 1 / 2 * LN2) / 2
    assert melodic_intervals.interval_divergence(reference, estimate) == pytest.approx(expected)
    assert melodic_intervals.interval_divergence(reference, estimate, base="bits") == pytest.approx(expected / LN2)


def test_leaps_beyond_the_octave_are_one_kind() -> None:
    assert melodic_intervals.interval_divergence([[40, 53, 40]], [[40, 90, 40]]) == 0
    assert melodic_intervals.interval_divergence([[40, 52]], [[40, 53]]) == pytest.approx(LN2)
    assert melodic_intervals.interval_divergence([[40, 53]], [[53, 40]]) == pytest.approx(LN2)


def test_intervals_do_not_cross_items() -> None:
    assert melodic_intervals.interval_divergence([[60, 62], [70, 72]], [[60, 62], [50, 52]]) == 0


def test_interval_divergence_of_one_empty_side_is_largest_and_of_two_undefined() -> None:
    assert melodic_intervals.interval_divergence([[60, 62]], [[60, H]]) == pytest.approx(LN2)
    with pytest.warns(UndefinedMetricWarning, match="two notes"):
        assert np.isnan(melodic_intervals.interval_divergence([[60, R]], [[R, 60]]))


@given(hnp.arrays(np.uint8, (2, 3, 24), elements=tokens), st.integers(-60, 0))
def test_laws_of_interval_divergence(sides: np.ndarray, semitones: int) -> None:
    sides[..., :2] = 60, 64  # an interval on each side
    value = melodic_intervals.interval_divergence(*sides)
    assert 0 <= value <= LN2 + 1e-12
    assert melodic_intervals.interval_divergence(sides[0], sides[0]) == 0
    assert melodic_intervals.interval_divergence(*sides[::-1]) == value
    assert melodic_intervals.interval_divergence(*sides[:, ::-1]) == value
    moved = np.where(sides < H, sides.astype(np.int16) + semitones, sides).astype(np.uint8)
    assert melodic_intervals.interval_divergence(*moved) == value


def test_interval_pairs_line_up_by_item() -> None:
    pairs = melodic_intervals.interval_pairs([[60, 62, 64], [60, H, H]], [[60, H, 59], [60, 61, 61]])
    # +2, +2 beside -1; nothing beside +1, 0; bins are 13 higher
    assert pairs.items.tolist() == [0, 0, 1, 1]
    assert pairs.reference.tolist() == [15, 15, -1, -1]
    assert pairs.estimate.tolist() == [12, -1, 14, 13]


def test_interval_bins_by_hand() -> None:
    # up 2, none, more than an octave down | nothing between the notes of two items | one note | rests only
    found = melodic_intervals.interval_bins(
        [[60, H, 62, R, 62, 40], [50, R, 51, H, H, H], [60, H, H, H, H, H], [R] * 6]
    )
    assert found.tolist() == [[15, 13, 0], [14, -1, -1], [-1, -1, -1], [-1, -1, -1]]
    assert melodic_intervals.interval_bins(np.zeros((0, 96), np.uint8)).shape == (0, 0)
    with pytest.raises(InvalidTokensError, match="shape"):
        melodic_intervals.interval_bins([60, 62])


def test_repeated_note_rate_by_hand() -> None:
    # of three intervals two are 0; of two none; a rest or a hold between two notes plays no part
    rates = melodic_intervals.repeated_note_rate([[60, 60, R, 60, H, 62], [60, 62, 60, R, R, R]])
    assert rates.tolist() == [2 / 3, 0]


def test_repeated_note_rate_is_undefined_without_two_notes() -> None:
    with pytest.warns(UndefinedMetricWarning, match="2 of 3 items"):
        rates = melodic_intervals.repeated_note_rate([[60, H, 60], [60, H, R], [R, R, R]])
    np.testing.assert_array_equal(rates, [1, np.nan, np.nan])


@given(hnp.arrays(np.uint8, (3, 24), elements=tokens), st.integers(-60, 0))
def test_laws_of_the_repeated_note_rate(middles: np.ndarray, semitones: int) -> None:
    middles[:, :2] = 60, 64  # an interval in each
    rates = melodic_intervals.repeated_note_rate(middles)
    assert ((rates >= 0) & (rates < 1)).all()
    moved = np.where(middles < H, middles.astype(np.int16) + semitones, middles).astype(np.uint8)
    np.testing.assert_array_equal(melodic_intervals.repeated_note_rate(moved), rates)
    np.testing.assert_array_equal(melodic_intervals.repeated_note_rate(np.where(middles < H, 60, middles)), np.ones(3))


def test_monotone_output_that_note_f1_rewards_is_seen() -> None:
    """The commonest pitch at every beat finds more notes than a right melody that comes a step late."""
    truth = [[60, 62, 60, 64, 60, 62, 60, 65]]
    monotone, late = [[60] * 8], [[R, 60, 62, 60, 64, 60, 62, 60]]
    assert inpainting.note_f1(truth, monotone) > inpainting.note_f1(truth, late)
    assert melodic_intervals.interval_divergence(truth, monotone) == pytest.approx(LN2)
    assert melodic_intervals.interval_divergence(truth, late) < 0.1
    assert melodic_intervals.repeated_note_rate(monotone) == 1 > melodic_intervals.repeated_note_rate(late)
