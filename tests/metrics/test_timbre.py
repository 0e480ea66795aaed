"""Timbre similarity, on bands made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import BandFrames
from music_evals.errors import InvalidAnnotationError, UndefinedMetricWarning, UnknownNameError
from music_evals.metrics.timbre import timbre_similarity

HUMP = -20.0 * np.abs(np.sin(np.arange(96) / 9))
RNG = st.integers(0, 2**32).map(np.random.default_rng)


def bands(levels: np.ndarray, prominence: np.ndarray | float = 3.0, n_frames: int = 5) -> BandFrames:
    """Frames that are all alike."""
    rows = np.concatenate([levels, np.broadcast_to(prominence, 96)])
    return BandFrames(np.repeat(rows[:, None], n_frames, axis=1), 0.1)


def noisy(rng: np.random.Generator, n_frames: int = 40) -> BandFrames:
    levels = HUMP[:, None] + rng.normal(0, 5, (96, n_frames))
    return BandFrames(np.concatenate([levels, rng.uniform(0, 10, (96, n_frames))]), 0.1)


@pytest.mark.parametrize(("decibels", "expected"), [(0.0, 1.0), (2.0, 2.0 ** -(0.5**4)), (4.0, 0.5), (8.0, 2.0**-16)])
def test_prominence_by_hand(decibels: float, expected: float) -> None:
    """Half of the numbers differ by so much, the levels not at all: the mean difference is half of it."""
    other = bands(HUMP, 3.0 + decibels)
    assert timbre_similarity(bands(HUMP), other) == pytest.approx(expected, rel=1e-9)


def plain(reference: BandFrames, estimate: BandFrames) -> float:
    """The definition, number by number."""
    spreads = []
    for side in (reference, estimate):
        powers = [sum(10 ** (level / 10) for level in frame[:96]) for frame in side.frames.T]
        used = [t for t, power in enumerate(powers) if power >= max(powers) / 10**4]
        spread = {}
        for band in range(96):
            shares = [max(side.frames[band, t] - 10 * math.log10(powers[t]), -50) for t in used]
            prominence = [side.frames[96 + band, t] for t in used]
            spread[band] = [np.percentile(values, q) for values in (shares, prominence) for q in (10, 50, 90)]
        spreads.append(spread)
    first, second = spreads
    means = []
    for shift in range(-6, 7):
        pairs = [(first[band], second[band + shift]) for band in range(96) if band + shift in second]
        means.append(np.mean([abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True)]))
    return float(2 ** -((min(means) / 2) ** 4))


@pytest.mark.parametrize("seed", range(3))
def test_the_definition_number_by_number(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pair = noisy(rng), noisy(rng, 31)
    pair[1].frames[:96, :4] -= 50
    pair[1].frames[:96] -= 0.1 * np.arange(96)[:, None]
    assert timbre_similarity(*pair) == pytest.approx(plain(*pair), rel=1e-9)
    assert 0.05 < plain(*pair) < 0.95


@given(RNG, st.floats(-60, 60))
def test_order_length_and_level_do_not_matter(rng: np.random.Generator, gain_db: float) -> None:
    reference = noisy(rng)
    changed = np.tile(reference.frames[:, rng.permutation(40)], 2)
    changed[:96] += gain_db
    # quantiles between two of 40 and of 80 values differ by a part of their distance
    assert timbre_similarity(reference, BandFrames(changed, 0.2)) > 0.99
    shuffled = BandFrames(reference.frames[:, rng.permutation(40)], 0.1)
    assert timbre_similarity(reference, shuffled) == 1


@pytest.mark.parametrize("semitones", [-6, -1, 3, 6])
def test_a_transposition_of_all_is_undone(semitones: int) -> None:
    moved = np.roll(HUMP, semitones)
    # the level of the frame changes a little, for other bands lie beyond the ends
    assert timbre_similarity(bands(HUMP), bands(moved)) > 0.999
    assert timbre_similarity(bands(HUMP), bands(np.roll(HUMP, 14))) < 0.9


def test_a_steeper_spectrum_falls_by_degree() -> None:
    slopes = [0.0, 0.05, 0.1, 0.2, 0.4]
    values = [timbre_similarity(bands(HUMP), bands(HUMP - slope * np.arange(96))) for slope in slopes]
    assert values[0] == 1
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.1


def test_soft_frames_do_not_count() -> None:
    """What lies more than 40 dB below the loudest frame may have any shape."""
    loud, soft = bands(HUMP), bands(np.linspace(-45, -65, 96), 0.0)
    both = BandFrames(np.concatenate([loud.frames, soft.frames], axis=1), 0.1)
    assert timbre_similarity(loud, both) == 1


def test_without_frames() -> None:
    nothing = BandFrames(np.zeros((192, 0)), 0.1)
    assert timbre_similarity(bands(HUMP), nothing) == 0
    with pytest.warns(UndefinedMetricWarning):
        assert math.isnan(timbre_similarity(nothing, bands(HUMP)))


def test_bad_input() -> None:
    with pytest.raises(UnknownNameError):
        timbre_similarity(bands(HUMP), bands(HUMP), variant="musecpeval-0.3")
    with pytest.raises(InvalidAnnotationError):
        BandFrames(np.zeros((96, 4)), 0.1)
