"""Scores by an encoder: cases worked by hand, laws, what is undefined, and the distances of the authors' code."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from music_evals.errors import InvalidInputError, UndefinedMetricWarning
from music_evals.metrics.text_audio import instruction_rank, lpaps, text_audio_similarity, text_direction

GOLDEN = Path(__file__).parents[1] / "golden" / "parity" / "lpaps.safetensors"
VECTORS = arrays(np.float64, 5, elements=st.floats(-10, 10)).filter(lambda vector: np.linalg.norm(vector) > 0.1)
LAYERS = st.tuples(*(arrays(np.float64, shape, elements=st.floats(-5, 5)) for shape in ((6, 3), (2, 4))))
SCALES = st.floats(0.01, 100)
SILENCE = np.zeros(2)
EAST, NORTH = np.array([1.0, 0.0]), np.array([0.0, 2.0])


def test_cosines_by_hand() -> None:
    assert text_audio_similarity([3, 4], [4, 3]) == pytest.approx(24 / 25)
    assert text_audio_similarity([1, 0], [-2, 0]) == -1
    # from the east to the north: all of the way; half of it on the circle, 22.5° off; the other way; and to the west
    assert text_direction(EAST, NORTH, EAST, NORTH) == pytest.approx(1)
    assert text_direction(EAST, NORTH, EAST, [1, 1]) == pytest.approx(math.cos(math.pi / 8))
    assert text_direction(NORTH, EAST, EAST, NORTH) == pytest.approx(-1)
    assert text_direction(EAST, NORTH, EAST, -EAST) == pytest.approx(math.sqrt(0.5))


def test_ranks_by_hand() -> None:
    """Nearer to the recording are its own text, then the first other one; equal ones do not count."""
    others = np.array([[1.0, 1.0], [0.0, 1.0], [-1.0, 0.0]])
    assert instruction_rank([2, 1], others, EAST) == 1
    assert instruction_rank([0, 1], others, EAST) == pytest.approx(1 / 3)
    assert instruction_rank([-3, 0], others, EAST) == 0


def test_distances_by_hand() -> None:
    """Channel 1: (1, 0) against (0, 1), 2; channel 2: equal but for the scale, 0; the mean is 1. Opposite ones: 4."""
    first, second = np.array([[1.0, 3.0], [0.0, 4.0]]), np.array([[0.0, 6.0], [2.0, 8.0]])
    assert lpaps([first], [second]) == pytest.approx(1)
    assert lpaps([first, first], [second, -first]) == pytest.approx(1 + 4)
    assert lpaps([first], [np.zeros((2, 2))]) == pytest.approx(1)  # a channel of zeros has no direction


def test_the_original_and_silence_did_not_move() -> None:
    assert text_direction(EAST, NORTH, EAST, 3 * EAST) == 0
    assert text_direction(EAST, NORTH, EAST, SILENCE) == 0
    assert text_audio_similarity(EAST, SILENCE) == 0
    assert instruction_rank(EAST, [NORTH, -EAST], SILENCE) == 0


def test_undefined() -> None:
    for undefined in (
        lambda: text_direction(EAST, 2 * EAST, EAST, NORTH),
        lambda: text_direction(EAST, NORTH, SILENCE, EAST),
        lambda: instruction_rank(EAST, [], EAST),
    ):
        with pytest.warns(UndefinedMetricWarning):
            assert math.isnan(undefined())


@given(VECTORS, VECTORS, VECTORS, VECTORS, st.tuples(SCALES, SCALES, SCALES, SCALES))
def test_only_directions_count(
    before: np.ndarray, text: np.ndarray, original: np.ndarray, edit: np.ndarray, scales: tuple[float, ...]
) -> None:
    score = text_audio_similarity(text, edit)
    assert -1 <= score <= 1
    assert text_audio_similarity(text, text) == pytest.approx(1)
    assert text_audio_similarity(scales[1] * text, scales[3] * edit) == pytest.approx(score, abs=1e-9)
    assert text_audio_similarity(edit, text) == pytest.approx(score)
    apart = [
        np.linalg.norm(a / np.linalg.norm(a) - b / np.linalg.norm(b)) for a, b in ((before, text), (original, edit))
    ]
    if min(apart) > 0.01:
        way = text_direction(before, text, original, edit)
        assert -1 <= way <= 1
        scaled = [scale * vector for scale, vector in zip(scales, (before, text, original, edit), strict=True)]
        assert text_direction(*scaled) == pytest.approx(way, abs=1e-6)
        assert text_direction(text, before, original, edit) == pytest.approx(-way, abs=1e-6)


@given(VECTORS, VECTORS, st.lists(VECTORS, min_size=1, max_size=6), st.randoms())
def test_a_rank_does_not_depend_on_the_order(text: np.ndarray, audio: np.ndarray, others: list, random) -> None:
    rank = instruction_rank(text, others, audio)
    assert 0 <= rank <= 1
    shuffled = random.sample(others, len(others))
    assert instruction_rank(text, shuffled, audio) == pytest.approx(rank)


def test_chance_of_a_rank_is_half(rng: np.random.Generator) -> None:
    ranks = [instruction_rank(row[0], row[1:10], row[10]) for row in rng.normal(size=(2000, 11, 8))]
    assert np.mean(ranks) == pytest.approx(0.5, abs=0.02)


@given(LAYERS, LAYERS, SCALES)
def test_laws_of_the_distance(first: tuple, second: tuple, scale: float) -> None:
    distance = lpaps(first, second)
    assert 0 <= distance <= 8 + 1e-9
    assert lpaps(first, first) == 0
    assert lpaps(second, first) == pytest.approx(distance)
    order = np.array([1, 0, 2, 5, 4, 3])  # positions of both sides, in another order
    assert lpaps([first[0][order], first[1]], [second[0][order], second[1]]) == pytest.approx(distance)
    loud = [np.where(np.abs(layer) > 1e-3, layer, 0) for layer in first]
    assert lpaps([scale * layer for layer in loud], second) == pytest.approx(lpaps(loud, second), abs=1e-6)


def test_the_distance_is_that_of_the_authors() -> None:
    load = pytest.importorskip("safetensors.numpy")
    theirs = load.load_file(GOLDEN)
    sides = [[theirs[f"window {window}, stage {stage}"] for stage in range(1, 5)] for window in (2, 1)]
    assert lpaps(*sides) == pytest.approx(theirs["distance"].item(), rel=1e-6)


def test_other_layers_are_refused() -> None:
    layer = np.ones((3, 2))
    for first, second in (([layer], [layer, layer]), ([layer], [layer.T]), ([], []), ([layer[0]], [layer[0]])):
        with pytest.raises(InvalidInputError):
            lpaps(first, second)
