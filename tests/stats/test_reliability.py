"""Agreement of raters beyond chance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import PairCountError, UnknownNameError
from music_evals.stats.reliability import cohen_kappa, krippendorff_alpha, krippendorff_alpha_of_sets

X = np.nan
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, X, X, X],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, X, 3],
        [X, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, X],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, X],
    ]
).T
"""Four observers and twelve units: Krippendorff, "Computing Krippendorff's alpha-reliability", 2011, example E."""


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_the_printed_one(level: str, printed: float) -> None:
    assert krippendorff_alpha(KRIPPENDORFF, level=level) == pytest.approx(printed, abs=5e-4)


def test_alpha_of_what_shows_nothing() -> None:
    assert np.isnan(krippendorff_alpha([[1, X], [X, 2]]))  # nobody rated what another did
    assert np.isnan(krippendorff_alpha([[3, 3], [3, 3]]))  # nobody could have differed
    assert krippendorff_alpha([[1, 1], [2, 2]]) == 1
    assert krippendorff_alpha([[1, 2], [2, 1]]) < 0
    with pytest.raises(UnknownNameError, match="ordinal"):
        krippendorff_alpha(KRIPPENDORFF, level="ordinl")


@given(st.lists(st.lists(st.integers(1, 5), min_size=3, max_size=3), min_size=2, max_size=8), st.randoms())
def test_alpha_is_that_of_all_pairs(rows: list[list[int]], random: object) -> None:
    """1 - mean squared difference within units / that over all pairs of ratings; the order of raters plays no part."""
    table = np.array(rows, dtype=float)
    every = [(a - b) ** 2 for a, b in itertools.permutations(table.ravel(), 2)]
    within = [(a - b) ** 2 for row in table for a, b in itertools.permutations(row, 2)]
    if not any(every):
        assert np.isnan(krippendorff_alpha(table))
        return
    assert krippendorff_alpha(table) == pytest.approx(1 - np.mean(within) / np.mean(every))
    assert krippendorff_alpha(table[:, ::-1]) == pytest.approx(krippendorff_alpha(table))


TAGS = [["ab", "ab", "a"], ["c", "cd"], ["bd", "b", "acd"], ["e", "e", "e"], ["ae", "bc"], ["abcde"]]


@pytest.mark.parametrize(("distance", "golden"), [("masi", 0.35740664751743934), ("jaccard", 0.3991989319092122)])
def test_alpha_of_sets_is_nltks(distance: str, golden: float) -> None:
    """Golden: nltk 3.10.4, metrics.agreement.AnnotationTask, of the units that two or more rated."""
    assert krippendorff_alpha_of_sets(TAGS, distance=distance) == pytest.approx(golden)


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=2, max_size=3), min_size=1, max_size=6))
def test_alpha_of_single_tags_is_the_nominal_one(units: list[list[str]]) -> None:
    table = np.array([["abc".index(tag) for tag in unit] + [X] * (3 - len(unit)) for unit in units], dtype=float)
    expected = pytest.approx(krippendorff_alpha(table, level="nominal"), nan_ok=True)
    assert krippendorff_alpha_of_sets(units) == expected


def test_alpha_of_sets_that_show_nothing() -> None:
    assert np.isnan(krippendorff_alpha_of_sets([["a"], ["b"]]))
    assert np.isnan(krippendorff_alpha_of_sets([["a", "a"], [["a"], {"a"}]]))
    assert krippendorff_alpha_of_sets([[set(), set()], ["a", "a"]]) == 1
    with pytest.raises(UnknownNameError, match="masi"):
        krippendorff_alpha_of_sets(TAGS, distance="mas")


@pytest.mark.parametrize(
    ("weights", "golden"),
    [("none", 0.7297297297297298), ("linear", 0.8214285714285714), ("quadratic", 0.9009900990099)],
)
def test_kappa_is_scikit_learns(weights: str, golden: float) -> None:
    """Golden: scikit-learn 1.9.1, metrics.cohen_kappa_score."""
    first, second = [1, 2, 3, 3, 2, 1, 4, 1, 2, 4], [1, 2, 3, 3, 2, 2, 4, 1, 2, 3]
    assert cohen_kappa(first, second, weights=weights) == pytest.approx(golden)
    names = np.array(["", "a", "b", "c", "d"])
    assert cohen_kappa(names[first], names[second], weights=weights) == pytest.approx(golden)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12), st.sampled_from(["none", "quadratic"]))
def test_kappa_is_symmetric_and_at_most_one(pairs: list[tuple[int, int]], weights: str) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    found = cohen_kappa(first, second, weights=weights)
    assert found == pytest.approx(cohen_kappa(second, first, weights=weights), nan_ok=True)
    assert np.isnan(found) == (len({*first, *second}) < 2)
    assert np.isnan(found) or found <= 1
    assert len(set(first)) < 2 or cohen_kappa(first, first, weights=weights) == 1


def test_kappa_needs_pairs() -> None:
    with pytest.raises(PairCountError):
        cohen_kappa([1, 2], [1])
    with pytest.raises(UnknownNameError, match="quadratic"):
        cohen_kappa([1], [1], weights="square")
