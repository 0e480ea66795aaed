"""How large an editing test must be: its power and the coverage of its intervals, from studies with a known effect."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from music_evals.errors import InvalidInputError
from music_evals.pipelines.editing_test import evaluate_effort
from music_evals.studies.editing.simulation import StudyDesign, simulate_study

__all__ = ["PlannedSize", "plan_sizes"]


class PlannedSize(NamedTuple):
    """What studies of one size found."""

    n_pieces: int
    n_edits: int
    """Edits in all, both models."""
    power: float
    """Share of the studies whose interval of the ratio of times, clustered by piece, lies on the right side of 1."""
    coverage: float
    """Share of those intervals that hold the true ratio. The time limit can lower it: it brings ratios nearer to 1."""
    width: float
    """Median of the upper over the lower end of the interval."""


def plan_sizes(
    design: StudyDesign,
    pieces: Sequence[int],
    *,
    n_draws: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> list[PlannedSize]:
    """Simulate studies of several sizes.

    Parameters
    ----------
    design
        What is true; its `n_pieces` is replaced, and nobody listens.
    pieces
        Sizes, at least 2 pieces each.
    n_draws
        Studies of each size, at least 1.
    confidence
        Level of the intervals.
    seed
        Draws everything; each size has draws of its own.
    progress
        Called after each size with how many are done and how many there are.

    Returns
    -------
    list of PlannedSize
        In the order of `pieces`.

    Raises
    ------
    InvalidInputError
        A size below 2, or no draws.

    """
    if n_draws < 1 or not pieces or min(pieces) < 2:
        raise InvalidInputError(f"expected sizes from 2 pieces on and at least one draw, got {list(pieces)}, {n_draws}")
    planned = []
    for done, n_pieces in enumerate(pieces, start=1):
        rng = np.random.default_rng([seed, n_pieces])
        sized = dataclasses.replace(design, n_pieces=n_pieces, n_listeners=0)
        studies = (simulate_study(sized, rng=rng) for _ in range(n_draws))
        ends = [evaluate_effort(study, confidence=confidence)["time_effort_ratio_ci"] for study in studies]
        low, high = np.array(ends).T
        is_detected = high < 1 if design.ratio < 1 else low > 1
        planned.append(
            PlannedSize(
                n_pieces,
                2 * n_pieces * len(sized.styles) * sized.edits_per_sample,
                float(np.mean(is_detected)),
                float(np.mean((low <= design.ratio) & (design.ratio <= high))),
                float(np.median(high / low)),
            )
        )
        if progress is not None:
            progress(done, len(pieces))
    return planned
