"""Dynamic time warping: librosa's path pair by pair, and the cheapest and shortest alignment found cell by cell."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from music_evals.metrics import dtw


@st.composite
def pairs(draw: st.DrawFn, longest: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Two sequences of few different frames, so that many alignments cost the same."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    levels = draw(st.integers(2, 50))
    sizes = draw(st.tuples(st.integers(1, longest), st.integers(1, longest)))
    first, second = (1.0 + rng.integers(0, levels, (n, 3)) for n in sizes)
    return first, second


def cell_by_cell(costs: np.ndarray, band: float | None = None) -> tuple[float, int]:
    """The definition: of all paths the cheapest, of these the shortest."""
    n, m = costs.shape
    share = math.inf if band is None else max(band, 1 / max(min(n, m) - 1, 1))
    best = {}
    for i in range(n):
        for j in range(m):
            if abs(i / max(n - 1, 1) - j / max(m - 1, 1)) > share:
                continue
            before = [best[p] for p in ((i - 1, j - 1), (i, j - 1), (i - 1, j)) if p in best]
            cost, length = min(before) if before else (0.0, 0)
            if before or (i, j) == (0, 0):
                best[i, j] = (cost + costs[i, j], length + 1)
    return best[n - 1, m - 1]


@pytest.mark.slow
@given(pairs())
def test_the_path_is_that_of_librosa(pair: tuple[np.ndarray, np.ndarray]) -> None:
    import librosa

    costs = cdist(*pair, "cosine")
    total, path = librosa.sequence.dtw(C=costs)
    ours = dtw.warping_path(*pair, metric="cosine")
    np.testing.assert_array_equal(ours, path[::-1])
    along = dtw.path_costs(*pair, ours, metric="cosine")
    np.testing.assert_array_equal(along, costs[tuple(ours.T)])
    assert along.sum() == pytest.approx(total[-1, -1])


@pytest.mark.parametrize("sizes", [(1, 300), (300, 1), (255, 257), (256, 256), (320, 700), (700, 64), (65, 63)])
def test_blocks_and_tiles_leave_no_seam(sizes: tuple[int, int], rng: np.random.Generator) -> None:
    import librosa

    first, second = (1.0 + rng.integers(0, 3, (n, 2)) for n in sizes)
    costs = cdist(first, second, "cosine")
    total, path = librosa.sequence.dtw(C=costs)
    np.testing.assert_array_equal(dtw.warping_path(first, second, metric="cosine"), path[::-1])
    assert dtw.alignment_cost(first, second, metric="cosine")[0] == total[-1, -1]


@given(pairs(longest=12), st.sampled_from([None, 0.1, 0.3]))
def test_the_cheapest_and_of_these_the_shortest(pair: tuple[np.ndarray, np.ndarray], band: float | None) -> None:
    assert dtw.alignment_cost(*pair, band=band) == cell_by_cell(cdist(*pair, "sqeuclidean"), band)


@given(pairs(), st.sampled_from([None, 0.1]))
def test_the_sides_may_change_places(pair: tuple[np.ndarray, np.ndarray], band: float | None) -> None:
    assert dtw.alignment_cost(*pair, band=band) == dtw.alignment_cost(*pair[::-1], band=band)


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0, 0.2))
def test_a_band_always_lets_a_path_through(n: int, m: int, band: float) -> None:
    cost, length = dtw.alignment_cost(np.ones((n, 1)), np.zeros((m, 1)), band=band)
    assert cost == length  # every pair costs 1
    assert max(n, m) <= length <= n + m - 1


def test_the_shortest_of_equal_alignments_by_hand() -> None:
    # a b against a a b, costs 0 for equal letters: (0,0) (0,1) (1,2) is one of 0, and the shortest
    a, b = [1.0, 0.0], [0.0, 1.0]
    assert dtw.alignment_cost(np.array([a, b]), np.array([a, a, b])) == (0.0, 3)
    # a b a against b: nothing to choose, 2 squared units twice
    assert dtw.alignment_cost(np.array([a, b, a]), np.array([b])) == (4.0, 3)
