from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from music_evals.errors import InvalidInputError
from music_evals.metrics.likelihood import inpainting_nll


def test_worked_case() -> None:
    # one half and one eighth: 1 and 3 bits, 2 bits on average, in nats 2 ln 2
    assert inpainting_nll(np.log([[1 / 2, 1 / 8], [1, 1]])) == pytest.approx([2 * np.log(2), 0])


def test_one_middle_gives_one_number() -> None:
    assert inpainting_nll([-1.0, -2.0]) == 1.5


def test_uniform_guess_over_the_vocabulary() -> None:
    assert inpainting_nll(np.full((1, 96), -np.log(130))) == pytest.approx([4.867534450455582])  # ln 130


def test_an_impossible_true_token_is_infinitely_unlikely() -> None:
    np.testing.assert_array_equal(inpainting_nll([[-1.0, -np.inf], [0.0, 0.0]]), [np.inf, 0])


def test_rounding_above_zero_is_zero() -> None:
    score = inpainting_nll(np.full(4, 1e-7, np.float32))
    assert score == 0
    assert not np.signbit(score)


@given(hnp.arrays(np.float64, (3, 5), elements=st.floats(-50, 0)), st.permutations(range(3)))
def test_bounds_and_order(values: np.ndarray, order: list[int]) -> None:
    scores = inpainting_nll(values)
    assert (scores >= 0).all()
    np.testing.assert_array_equal(inpainting_nll(values[order]), scores[order])


@pytest.mark.parametrize(
    "values", [[0.5], [[-1.0, np.nan]], np.zeros((0,)), np.zeros((2, 0)), -1.0, np.zeros((1, 1, 1))]
)
def test_bad_input_is_named(values: object) -> None:
    with pytest.raises(InvalidInputError):
        inpainting_nll(values)
