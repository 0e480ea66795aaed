"""How large a study must be: simulated studies of several sizes, and what their intervals find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from music_evals.errors import InvalidInputError


def draw_sizes(
    sizes: Sequence[int],
    draw: Callable[[int, np.random.Generator], Sequence[float]],
    *,
    n_draws: int,
    seed: int,
    progress: Callable[[int, int], object] | None,
) -> list[tuple[int, Any]]:
    """Return each size with the numbers that `draw` gives for each of `n_draws` studies of it, a row a number."""
    if n_draws < 1 or not sizes or min(sizes) < 2:
        raise InvalidInputError(f"expected sizes from 2 on and at least one draw, got {list(sizes)}, {n_draws}")
    simulated = []
    for done, size in enumerate(sizes, start=1):
        rng = np.random.default_rng([seed, size])
        simulated.append((size, np.array([draw(size, rng) for _ in range(n_draws)]).T))
        if progress is not None:
            progress(done, len(sizes))
    return simulated
