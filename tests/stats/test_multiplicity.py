import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import InvalidInputError
from music_evals.stats import holm

P_VALUES = st.lists(st.floats(0, 1), max_size=12)


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [
        # The usual textbook example, alpha 0.05: 0.005 <= 0.05/4, 0.01 <= 0.05/3, 0.03 > 0.05/2, so the first and the
        # last are rejected. Adjusted by hand: 4 x 0.005, 3 x 0.01, 2 x 0.03, and 1 x 0.04 raised to the one before.
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        # 5 x 0.01, 4 x 0.02, 3 x 0.03, 2 x 0.04 = 0.08 raised to 0.09, 1 x 0.05 raised to 0.09
        ([0.01, 0.02, 0.03, 0.04, 0.05], [0.05, 0.08, 0.09, 0.09, 0.09]),
        ([0.2], [0.2]),
        ([0.6, 0.7], [1.0, 1.0]),  # 2 x 0.6 is cut at 1
        ([0.02, 0.02], [0.04, 0.04]),  # ties share the larger factor
        ([], []),
    ],
)
def test_adjusted_by_hand(p_values, expected):
    np.testing.assert_allclose(holm(p_values), expected, rtol=1e-12)


def test_nan_passes_through_and_does_not_count():
    np.testing.assert_allclose(holm([0.03, np.nan, 0.01]), [0.03, np.nan, 0.02], rtol=1e-12)
    assert np.isnan(holm([np.nan, np.nan])).all()


def test_a_table_is_one_family_and_keeps_its_shape():
    np.testing.assert_allclose(holm([[0.01, 0.04], [0.03, 0.005]]), [[0.03, 0.06], [0.06, 0.02]], rtol=1e-12)


@given(P_VALUES)
def test_between_the_raw_values_and_bonferroni(p_values):
    adjusted = holm(p_values)
    assert (adjusted >= p_values).all()
    assert (adjusted <= np.minimum(np.multiply(p_values, len(p_values)), 1) + 1e-12).all()


@given(P_VALUES, st.randoms())
def test_order_of_the_tests_plays_no_part(p_values, random):
    order = random.sample(range(len(p_values)), len(p_values))
    np.testing.assert_array_equal(holm(np.asarray(p_values)[order]), holm(p_values)[order])


@given(P_VALUES, st.floats(0.001, 0.5))
def test_rejects_what_the_step_down_procedure_rejects(p_values, alpha):
    # The procedure as Holm words it: stop at the first p-value over alpha / (m - i + 1).
    m = len(p_values)
    rejected = 0
    for i, p in enumerate(sorted(p_values)):
        if p * (m - i) > alpha:
            break
        rejected += 1
    assert np.count_nonzero(holm(p_values) <= alpha) == rejected


def test_input_is_not_written_to():
    p_values = np.array([0.5, 0.01])
    holm(p_values)
    np.testing.assert_array_equal(p_values, [0.5, 0.01])


@pytest.mark.parametrize("wrong", [-0.1, 1.5, np.inf])
def test_outside_the_unit_interval_is_an_error(wrong):
    with pytest.raises(InvalidInputError, match=r"0\.\.1"):
        holm([0.5, wrong])
