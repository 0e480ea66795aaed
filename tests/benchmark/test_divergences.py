"""Paired tests of divergences over several seeds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from music_evals.benchmark.aggregate import swap_test_over_seeds
from music_evals.metrics.divergence import jensen_shannon


@pytest.mark.parametrize("n_seeds", [(1, 1), (2, 3), (5, 1)])
def test_looking_swaps_up_changes_no_digit(n_seeds: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(n_seeds))
    groups = np.repeat(np.arange(20), rng.integers(2, 6, 20))
    reference = rng.integers(0, 6, len(groups))
    sides = tuple(rng.integers(-1, 5 + side, (n, len(groups))) for side, n in enumerate(n_seeds))
    options = {"size": 9, "n_resamples": 500, "n_bootstrap": 50}
    looked_up = swap_test_over_seeds(reference, sides, groups, **options)
    # any function but jensen_shannon itself is worked out for each swap
    worked_out = swap_test_over_seeds(reference, sides, groups, measure=partial(jensen_shannon), **options)
    assert looked_up == worked_out
    assert looked_up.n == len(groups)
    assert 0 < looked_up.p_value < 1
