"""The area under the ROC curve, against its definition and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from music_evals.stats.discrimination import auc, clustered_auc

SCORES = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=12)


@given(SCORES, SCORES)
def test_is_the_mann_whitney_statistic(above, below):
    expected = mannwhitneyu(above, below, method="asymptotic").statistic / (len(above) * len(below))
    assert auc(above, below) == pytest.approx(expected)


@given(SCORES, SCORES)
def test_the_other_way_round_is_the_complement(above, below):
    assert auc(above, below) == pytest.approx(1 - auc(below, above))


@given(SCORES, SCORES)
def test_sees_the_order_only(above, below):
    assert auc(np.exp(above), np.exp(below)) == pytest.approx(auc(above, below))


def test_extremes():
    assert auc([2, 3], [0, 1]) == 1
    assert auc([0, 1], [2, 3]) == 0
    assert auc([1, 1], [1]) == 0.5


def test_undefined_scores_are_left_out():
    assert auc([np.nan, 2], [1, np.nan]) == 1
    assert np.isnan(auc([np.nan], [1]))
    assert np.isnan(auc([], [1]))


class TestInterval:
    def test_holds_the_estimate_and_is_reproducible(self):
        rng = np.random.default_rng(0)
        above, below = rng.normal(1, 1, 60), rng.normal(0, 1, 60)
        groups = np.arange(60) % 12
        found = clustered_auc(above, below, groups, groups, n_resamples=200)
        assert found[1] < found[0] < found[2]
        assert found == clustered_auc(above, below, groups, groups, n_resamples=200)

    def test_resamples_whole_groups(self):
        """Two groups that disagree entirely: a resample holds either, or both, and nothing in between."""
        above, below, groups = [1.0, 0.0], [0.0, 1.0], ["a", "b"]
        estimate, low, high = clustered_auc(above, below, groups, groups, n_resamples=200)
        assert (estimate, low, high) == (0.5, 0.0, 1.0)
