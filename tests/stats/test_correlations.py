"""Correlations: what papers print follows from their r and n, and the intervals cover what they promise."""

from __future__ import annotations

import csv
import json
import math
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.metrics.editing import stars
from music_evals.stats.correlations import (
    adjusted_correlation,
    correlation,
    fisher_interval,
    jackknife_interval,
    mean_test,
    p_of_correlation,
)
from music_evals.stats.multiplicity import benjamini_hochberg, holm

GOLDEN = json.loads((Path(__file__).resolve().parents[1] / "golden" / "editing_table4.json").read_text())
_FILE = resources.files("music_evals.benchmark").joinpath("published", "bmst_table4.csv").read_text(encoding="utf-8")
CELLS = list(csv.DictReader(line for line in _FILE.splitlines() if not line.startswith("#")))
"""Table 4 of the paper, which the package shows in its reports."""


def test_the_stars_of_all_36_cells_follow_from_r_and_n() -> None:
    assert len(CELLS) == 36
    p_values = [float(p_of_correlation(float(cell["mean"]), int(cell["n"]))) for cell in CELLS]
    assert stars(p_values) == [cell["mark"] for cell in CELLS]


def test_p_values_and_fisher_intervals_of_close_cells() -> None:
    for r, n, p in GOLDEN["checked"]["p"]:
        assert float(p_of_correlation(r, n)) == pytest.approx(p, abs=6e-4)
    for r, n, low, high in GOLDEN["checked"]["fisher_95"]:
        assert fisher_interval(r, n) == pytest.approx((low, high), abs=0.006)


def test_what_survives_many_tests_in_set_2() -> None:
    p_values = [float(p_of_correlation(float(cell["mean"]), int(cell["n"]))) for cell in CELLS if cell["set"] == "2"]
    strict, lenient = np.sort(holm(p_values)), np.sort(benjamini_hochberg(p_values))
    expected = GOLDEN["checked"]["set_2_holm"]
    assert strict[:2] == pytest.approx([expected["smallest"], expected["next"]], abs=6e-4)
    assert np.count_nonzero(strict < 0.05) == 1
    expected = GOLDEN["checked"]["set_2_benjamini_hochberg"]
    assert lenient[:2] == pytest.approx([expected["smallest_two"]] * 2, abs=6e-4)
    assert np.all((lenient[2:] > expected["others"][0] - 6e-4) & (lenient[2:] < expected["others"][1] + 6e-4))


def test_the_same_as_scipy(rng: np.random.Generator) -> None:
    x = rng.normal(size=20)
    y = 0.5 * x + rng.normal(size=20)
    expected = scipy.stats.pearsonr(x, y)
    found = correlation(x, y)
    assert (found.r, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert mean_test(x - 0.3) == pytest.approx(scipy.stats.ttest_1samp(x, 0.3).pvalue)
    p_values = rng.uniform(size=(3, 4))
    expected_bh = scipy.stats.false_discovery_control(p_values.ravel()).reshape(3, 4)
    np.testing.assert_allclose(benjamini_hochberg(p_values), expected_bh)


def test_undefined_rows_and_columns() -> None:
    found = correlation([1.0, 2.0, np.nan, 4.0, 5.0], [2.0, 1.0, 9.0, np.nan, 3.0])
    assert found.n == found.n_clusters == 3
    assert math.isnan(found.low)
    constant = correlation([0.1] * 5, [1, 2, 3, 4, 5])
    assert constant.n == 5
    assert all(math.isnan(value) for value in (constant.r, constant.p, constant.low, constant.clustered_low))
    assert all(map(math.isnan, jackknife_interval(0.5, [0.4, 0.6])))
    assert math.isnan(mean_test([1.0]))
    assert np.isnan(benjamini_hochberg([0.5, np.nan])).tolist() == [False, True]
    line = correlation([1, 2, 3, 4], [2, 4, 6, 8])
    assert (line.r, line.low) == pytest.approx((1.0, 1.0))
    assert line.p < 1e-6
    with pytest.raises(PairCountError):
        correlation([1, 2], [1, 2, 3])
    with pytest.raises(InvalidInputError, match=r"-1 to 1, got 1\.2"):
        p_of_correlation(1.2, 10)


def test_the_order_of_rows_and_the_names_of_groups_play_no_part(rng: np.random.Generator) -> None:
    x, y, groups = rng.normal(size=12), rng.normal(size=12), np.repeat(np.arange(6), 2)
    order = rng.permutation(12)
    first, second = correlation(x, y, groups), correlation(x[order], y[order], [f"song {g}" for g in groups[order]])
    assert tuple(first) == pytest.approx(tuple(second))


def coverage(n_pieces: int, draws: int, truth: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return how often Fisher's and the clustered interval cover: four rows a piece, half of the spread the piece's."""
    hits = np.zeros(2)
    for _ in range(draws):
        parts = []
        for size in ((n_pieces, 1), (n_pieces, 4)):
            u, v = rng.normal(size=size), rng.normal(size=size)
            parts.append((u, truth * u + math.sqrt(1 - truth**2) * v))
        x, y = (sum(pair) for pair in zip(*parts, strict=True))
        found = correlation(np.ravel(x), np.ravel(y), np.repeat(np.arange(n_pieces), 4))
        hits += [found.low <= truth <= found.high, found.clustered_low <= truth <= found.clustered_high]
    return float(hits[0] / draws), float(hits[1] / draws)


def test_the_clustered_interval_covers_more_than_fishers(rng: np.random.Generator) -> None:
    fisher, clustered = coverage(6, 300, 0.6, rng)
    assert fisher < clustered
    assert clustered > 0.88


@pytest.mark.slow
@pytest.mark.parametrize("n_pieces", [6, 12, 24])
@pytest.mark.parametrize("truth", [0.0, 0.6])
def test_coverage_of_the_clustered_interval(n_pieces: int, truth: float, rng: np.random.Generator) -> None:
    fisher, clustered = coverage(n_pieces, 2000, truth, rng)
    assert fisher < 0.92
    assert 0.90 < clustered < 0.985


def test_correlations_beside_groups_agree_with_scipy_and_with_residuals_by_hand() -> None:
    rng = np.random.default_rng(0)
    style = ["a"] * 12 + ["b"] * 12
    x = rng.normal(size=24) + 3 * (np.array(style) == "a")
    y = -0.5 * x + rng.normal(size=24) + 5 * (np.array(style) == "b")
    assert adjusted_correlation(x, y, []) == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert adjusted_correlation(x, y, [], ranks=True) == pytest.approx(scipy.stats.spearmanr(x, y).statistic)
    left = [column - np.repeat([column[:12].mean(), column[12:].mean()], 12) for column in (x, y)]
    assert adjusted_correlation(x, y, [style]) == pytest.approx(np.corrcoef(*left)[0, 1])
    assert adjusted_correlation(x, y, [style, style]) == pytest.approx(np.corrcoef(*left)[0, 1])
    assert math.isnan(adjusted_correlation(x, np.array(style) == "a", [style]))
    assert math.isnan(adjusted_correlation([1, 2], [2, 1], []))
