from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import InvalidInputError, InvalidTagsError, UndefinedMetricWarning, UnknownNameError
from music_evals.metrics.semantics import (
    AGGREGATIONS,
    best_matches,
    cosine_matrix,
    normalized_similarity,
    pair_statistics,
    semantic_similarity,
)

# By hand, in the plane: generated at 0 and 90 degrees, reference at 0 and 60 degrees.
# The cosines are 1 and 1/2 for the first, 0 and half the root of 3 for the second.
HALF_ROOT3 = np.sqrt(3) / 2
GENERATED = np.array([[1.0, 0.0], [0.0, 1.0]])
REFERENCE = np.array([[1.0, 0.0], [0.5, HALF_ROOT3]])
EMPTY = np.empty((0, 2))


@st.composite
def lists(draw: st.DrawFn) -> npt.NDArray[np.float32]:
    n = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    vectors = rng.normal(size=(n, 4))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_by_hand() -> None:
    cosines = cosine_matrix(GENERATED, REFERENCE)
    assert cosines.dtype == np.float32
    np.testing.assert_allclose(cosines, [[1, 0.5], [0, HALF_ROOT3]], atol=1e-7)
    mean = (1.5 + HALF_ROOT3) / 4
    std = np.sqrt((1 + 0.25 + 0.75) / 4 - mean**2)  # the mean of squares less the square of the mean
    np.testing.assert_allclose(pair_statistics(cosines), (mean, std), atol=1e-7)
    precision, recall = (1 + HALF_ROOT3) / 2, (1 + HALF_ROOT3) / 2
    np.testing.assert_allclose(best_matches(cosines), (precision, recall), atol=1e-7)
    found = semantic_similarity(REFERENCE, GENERATED)
    np.testing.assert_allclose(found[:4], (mean, std, precision, recall), atol=1e-7)
    assert found[4:] == (2, 2)


def test_both_directions_of_best_matches_differ() -> None:
    # one generated text at 0 degrees against 0 and 60: precision 1, recall (1 + .5) / 2
    matches = best_matches(cosine_matrix(GENERATED[:1], REFERENCE))
    np.testing.assert_allclose(matches, (1, 0.75), atol=1e-7)
    assert matches.mean == pytest.approx(0.875)
    assert matches.f1 == pytest.approx(2 * 0.75 / 1.75)
    assert semantic_similarity(REFERENCE, GENERATED[:1], aggregation="best_match").value == pytest.approx(0.875)
    assert semantic_similarity(REFERENCE, GENERATED[:1], aggregation="f1").value == pytest.approx(6 / 7)


def test_f1_is_0_where_a_direction_is_not_above_0() -> None:
    opposite = semantic_similarity(-GENERATED[:1], GENERATED[:1], aggregation="f1")
    assert (opposite.value, opposite.precision) == (0, -1)
    assert semantic_similarity(GENERATED[1:], GENERATED[:1], aggregation="f1").value == 0


def test_normalized_by_hand() -> None:
    # mean(G, G) = .5, mean(R, R) = (1 + .5) / 2 = .75
    expected = (1.5 + HALF_ROOT3) / 4 / np.sqrt(0.5 * 0.75)
    assert semantic_similarity(REFERENCE, GENERATED, normalize_by_self=True).value == pytest.approx(expected, abs=1e-7)


@given(lists())
def test_a_list_against_itself(texts: npt.NDArray[np.float32]) -> None:
    assert normalized_similarity(texts, texts) == 1
    assert normalized_similarity(texts, texts.copy()) == 1
    assert normalized_similarity(texts, np.concatenate([texts, texts])) == pytest.approx(1, abs=1e-12)
    for aggregation in ("best_match", "f1"):
        assert semantic_similarity(texts, texts, aggregation=aggregation).value == pytest.approx(1, abs=1e-6)
    mean = semantic_similarity(texts, texts).value
    assert 0 <= mean <= 1 + 1e-6
    assert semantic_similarity(texts[:1], texts[:1]).value == pytest.approx(1, abs=1e-6)


@given(lists(), lists())
def test_ranges_symmetry_and_order(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> None:
    for aggregation in AGGREGATIONS:
        forward = semantic_similarity(other, one, aggregation=aggregation)
        back = semantic_similarity(one, other, aggregation=aggregation)
        assert forward.value == pytest.approx(back.value, abs=1e-6)
        assert -1 - 1e-6 <= forward.value <= 1 + 1e-6
        assert forward.precision == pytest.approx(back.recall, abs=1e-6)
        turned = semantic_similarity(other, one[::-1], aggregation=aggregation)
        assert turned.value == pytest.approx(forward.value, abs=1e-6)
    mean, best = (semantic_similarity(other, one, aggregation=name) for name in ("mean", "best_match"))
    assert mean.value <= best.value + 1e-6
    assert mean.std >= 0
    normalized = normalized_similarity(one, other)
    assert -1 <= normalized <= 1
    assert normalized == pytest.approx(normalized_similarity(other, one), abs=1e-12)
    # the mean over all pairs is the product of the mean vectors
    assert mean.value == pytest.approx(float(one.mean(axis=0) @ other.mean(axis=0)), abs=1e-6)


def test_inputs_are_not_written_to() -> None:
    given_vectors = GENERATED.copy()
    semantic_similarity(REFERENCE, given_vectors, normalize_by_self=True)
    assert (given_vectors == GENERATED).all()


@pytest.mark.parametrize(("generated", "reference", "side"), [(EMPTY, REFERENCE, "generated"), (REFERENCE, [], "ref")])
def test_an_empty_list(generated: npt.ArrayLike, reference: npt.ArrayLike, side: str) -> None:
    with pytest.warns(UndefinedMetricWarning, match=side):
        found = semantic_similarity(reference, generated)
    assert np.isnan(found[:4]).all()
    zero = semantic_similarity(reference, generated, empty="zero")
    assert zero.value == 0
    assert np.isnan(zero.std)
    with pytest.raises(InvalidTagsError, match=side):
        semantic_similarity(reference, generated, empty="raise")


def test_a_list_that_cancels_out() -> None:
    both = np.concatenate([GENERATED[:1], -GENERATED[:1]])
    with pytest.warns(UndefinedMetricWarning, match="cancel"):
        assert np.isnan(semantic_similarity(REFERENCE, both, normalize_by_self=True).value)


@pytest.mark.parametrize(
    ("generated", "message"),
    [
        ([1.0, 0.0], r"shape \(n, dimensions\), got \(2,\)"),
        ([[3.0, 4.0]], "vector 0 has length 5"),
        ([[1.0, 0.0], [np.nan, 0.0]], "vector 1"),
        ([[1.0, 0.0, 0.0]], "equal dimensions, got 3 and 2"),
    ],
)
def test_vectors_that_are_none(generated: list[object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        semantic_similarity(REFERENCE, generated)  # type: ignore[arg-type]


def test_options_that_are_none() -> None:
    with pytest.raises(UnknownNameError, match="best_match"):
        semantic_similarity(REFERENCE, GENERATED, aggregation="best-match")
    with pytest.raises(UnknownNameError, match="nan"):
        semantic_similarity(REFERENCE, GENERATED, empty="none")
    with pytest.raises(InvalidInputError, match="normalize_by_self"):
        semantic_similarity(REFERENCE, GENERATED, aggregation="f1", normalize_by_self=True)
