from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats.labels import label_mean_tests


def one(values, inside, groups=None, **options):
    (found,) = label_mean_tests(values, np.array(inside, dtype=bool)[:, None], groups, **options)
    return found


@pytest.mark.parametrize(
    ("values", "inside", "groups", "expected"),
    [
        # 2 of 4: 6 choices; only the two best and the two worst are as far apart
        ([4, 3, 2, 1], [1, 1, 0, 0], None, (2, 2 / 6, 2, 2)),
        # 1 of 4: the largest of four; three others differ by less
        ([9, 1, 2, 3], [1, 0, 0, 0], None, (7, 1 / 4, 1, 3)),
        # whole songs: a (mean 5, three items) against b, c: three choices of one song
        ([5, 5, 5, 1, 1], [1, 1, 1, 0, 0], ["a", "a", "a", "b", "c"], (4, 1 / 3, 3, 2)),
        ([1, 1, 1], [1, 0, 0], None, (0, 1, 1, 2)),
        # what is undefined is left out
        ([4, 3, np.nan, 2, 1], [1, 1, 1, 0, 0], None, (2, 2 / 6, 2, 2)),
    ],
)
def test_by_hand(values, inside, groups, expected):
    assert one(values, inside, groups) == pytest.approx(expected)


@pytest.mark.parametrize(("values", "inside"), [([1, 2], [1, 1]), ([1, 2], [0, 0]), ([np.nan, 2], [1, 0]), ([], [])])
def test_nobody_inside_or_outside(values, inside):
    found = one(np.array(values, dtype=float), np.array(inside))
    assert np.isnan(found[:2]).all()


def test_random_orders_agree_with_scipy():
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(0.8, 1, 15), rng.normal(0, 1, 25)])
    inside = np.arange(40) < 15
    found = one(values, inside, n_resamples=20_000)
    expected = scipy.stats.permutation_test(
        (values[inside], values[~inside]),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        n_resamples=20_000,
        vectorized=True,
        random_state=0,
    )
    assert found.difference == pytest.approx(expected.statistic)
    # two samples of 20,000 of a p-value near .02: standard deviation .0014 of their difference
    assert found.p_value == pytest.approx(expected.pvalue, abs=0.006)
    assert one(values, inside, n_resamples=20_000) == found
    assert one(values, inside, n_resamples=20_000, seed=1) != found


@given(st.lists(st.integers(-3, 3), min_size=3, max_size=7), st.data())
def test_exact_p_values_by_enumeration(values, data):
    k = data.draw(st.integers(1, len(values) - 1))
    scores, inside = np.array(values, dtype=float), np.arange(len(values)) < k

    def difference(chosen):
        mask = np.isin(np.arange(len(scores)), chosen)
        return scores[mask].mean() - scores[~mask].mean()

    all_of_them = [difference(chosen) for chosen in itertools.combinations(range(len(scores)), k)]
    extreme = [abs(value) >= abs(difference(range(k))) - 1e-9 for value in all_of_them]
    assert one(scores, inside).p_value == pytest.approx(np.mean(extreme))


def test_p_values_are_uniform_under_the_null():
    rng = np.random.default_rng(0)
    p_values = []
    for seed in range(200):
        groups = np.repeat(np.arange(30), 3)
        values = rng.normal(size=30)[groups] + 0.3 * rng.normal(size=90)
        p_values.append(one(values, groups < 10, groups, n_resamples=199, seed=seed).p_value)
    # 200 draws of 5 %: 10 expected, standard deviation 3.1; without clusters it is about half of all
    assert np.mean(np.array(p_values) <= 0.05) < 0.1


def test_several_labels_at_once():
    rng = np.random.default_rng(1)
    values, labels = rng.normal(size=60), rng.random((60, 4)) < 0.4
    together = label_mean_tests(values, labels, None, n_resamples=500)
    for column, found in zip(labels.T, together, strict=True):
        assert found == one(values, column, n_resamples=500)
    order = rng.permutation(60)
    songs = np.array([f"{item:02}" for item in range(60)])
    shuffled = label_mean_tests(values[order], labels[order], songs[order], n_resamples=500)
    assert shuffled == label_mean_tests(values, labels, songs, n_resamples=500)


def test_what_is_wrong_is_told():
    with pytest.raises(InvalidInputError, match="shape"):
        label_mean_tests([1.0, 2.0], [True, False], None)
    with pytest.raises(PairCountError):
        label_mean_tests([1.0, 2.0], [[True]] * 3, None)
    with pytest.raises(InvalidInputError, match="finite"):
        one([np.inf, 1.0], [1, 0])
    with pytest.raises(InvalidInputError, match="whole clusters"):
        one([1.0, 2.0], [1, 0], ["a", "a"])
    with pytest.raises(InvalidInputError, match="n_resamples"):
        one([1.0, 2.0], [1, 0], n_resamples=0)
