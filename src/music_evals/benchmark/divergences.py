"""Divergences of whole sets of items: their cells, and the tests of two systems.

A divergence compares how a feature of the items is distributed with the control's, seed by seed, and is the mean over
seeds. Of what is listed, such as melodic intervals, an item has many values, and a group counts as much as it has.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.metrics.divergence import histogram_bins, jensen_shannon, masses, n_bins, normalised_jensen_shannon
from music_evals.stats import PairedTest, bootstrap_divergence, null_divergence, swap_test_divergence
from music_evals.stats.paired import NOT_COMPARED

if TYPE_CHECKING:
    from music_evals.benchmark.aggregate import Draws
    from music_evals.benchmark.found import Found
    from music_evals.benchmark.results import ScoreTask

__all__ = [
    "compare_divergences",
    "divergence_cell",
    "divergence_of",
    "over_seeds",
    "side_by_side",
    "spread",
    "swap_test_over_seeds",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]
Measure = Callable[[Floats, Floats], Floats]


class _Sides(NamedTuple):
    """A feature of the items that reference and system define, as bins of a histogram."""

    reference: npt.NDArray[np.int64]
    """Shape (n,)."""
    estimate: npt.NDArray[np.int64]
    """Shape (seeds, n)."""
    items: Integers
    """Numbers of the items, in their order."""
    groups: Integers
    size: int
    """Number of bins."""
    measure: Measure


def _sides(found: Found, task: ScoreTask, system: str, metric: str, among: Integers | None = None) -> _Sides:
    """Return both sides of a divergence, over the items that define it, `among` some where they are given."""
    if metric in task.listed:
        return _listed_sides(found, task, system, metric, among)
    feature, control = task.divergences[metric], task.controls[0]
    pairs = found.readable(system)
    reference = found.beside(pairs, control, feature)
    estimate = pairs.by_seed(feature)
    kept = ~np.isnan(reference) & ~np.isnan(estimate).any(axis=0)
    if among is not None:
        kept &= np.isin(pairs.items, among)
    bins = functools.partial(histogram_bins, variant=found.header["variant"])
    size = n_bins(found.header["variant"])
    groups = pairs.groups[kept]
    return _Sides(bins(reference[kept]), bins(estimate[:, kept]), pairs.items[kept], groups, size, jensen_shannon)


def _listed_sides(found: Found, task: ScoreTask, system: str, metric: str, among: Integers | None) -> _Sides:
    """Lay what is listed of each item into one line; each item has room for as many values as any."""
    pairs = found.readable(system)
    control = found.of_items(pairs, task.controls[0])
    kept = ~control.failed if among is None else ~control.failed & np.isin(pairs.items, among)
    reference, estimate = control.listed(metric)[0, kept], pairs.listed(metric)[:, kept]
    return _Sides(
        reference.ravel().astype(np.int64),
        estimate.reshape(len(estimate), -1).astype(np.int64),
        pairs.items[kept],
        np.repeat(pairs.groups[kept], reference.shape[1]),
        task.listed[metric].size,
        normalised_jensen_shannon,  # the sides need not have equally many values
    )


def _by_seed(sides: _Sides) -> list[float]:
    """Return the divergence of each seed."""
    size = sides.size
    return [float(sides.measure(masses(sides.reference, size), masses(row, size))) for row in sides.estimate]


def over_seeds(n_seeds: int, size: int, measure: Measure = jensen_shannon) -> Measure:
    """Return the mean divergence over seeds, of histograms that stand side by side: bin `seed * size + bin`."""
    # The masses come as counts over all items of all seeds, so each seed's sums to 1 / n_seeds.

    def divergence(reference: Floats, estimate: Floats) -> Floats:
        shape = (len(reference), n_seeds, size)
        values = measure(n_seeds * reference.reshape(shape), n_seeds * estimate.reshape(shape))
        means: Floats = np.asarray(np.mean(values, axis=-1), dtype=np.float64)
        return means

    return divergence


def _term_over_seeds(n_seeds: int, reference: Floats, estimate: Floats) -> Floats:
    """Return what single bins add to `over_seeds` of `jensen_shannon`, which is a sum over bins."""
    terms: Floats = jensen_shannon(n_seeds * reference[..., None], n_seeds * estimate[..., None]) / n_seeds
    return terms


def swap_test_over_seeds(
    reference: npt.NDArray[np.int64],
    sides: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    groups: npt.ArrayLike,
    *,
    size: int,
    measure: Measure = jensen_shannon,
    **options: Any,
) -> PairedTest:
    """Test two systems' mean divergences over seeds, from bins of shape (n,) and, of each system, (seeds, n).

    `options` are those of `stats.swap_test_divergence`; its `n` counts an item once for all seeds.
    """
    n_seeds = math.lcm(*map(len, sides))  # each seed stands in equally many rows
    target, a, b = (side_by_side(bins, n_seeds, size) for bins in (reference[None], *sides))
    test = swap_test_divergence(
        target,
        a,
        b,
        np.tile(groups, n_seeds),
        n_bins=n_seeds * size,
        divergence=over_seeds(n_seeds, size, measure),
        term=functools.partial(_term_over_seeds, n_seeds) if measure is jensen_shannon else None,
        **options,
    )
    return test._replace(n=test.n // n_seeds)


def side_by_side(bins: npt.NDArray[np.int64], n_rows: int, size: int) -> npt.NDArray[np.int64]:
    """Repeat bins (seeds, n) to `n_rows` rows and lay these into one line of n_rows * n bins; -1 stays discarded."""
    rows = np.tile(bins, (n_rows // len(bins), 1))
    offsets = size * np.arange(n_rows)[:, None]
    return np.where(rows < 0, -1, rows + offsets).ravel()


def divergence_cell(found: Found, task: ScoreTask, system: str, metric: str, draws: Draws) -> dict[str, Any]:
    """Return the value of a divergence with its interval, noise floor, numbers and spread between seeds."""
    sides = _sides(found, task, system, metric)
    size = sides.size
    listed = _n_with_values(sides) if metric in task.listed else None
    if not sides.estimate.size or listed == 0:
        undefined = dict.fromkeys(("value", "low", "high", "seed_std", "null"), math.nan)
        return {**undefined, "n_defined": 0, "n_groups": 0, "n_clusters": 0.0}
    if listed:
        sides = _at(sides, _filled(sides))
    n_seeds = len(sides.estimate)
    # the histograms of all seeds stand side by side, so that a group is drawn with all its seeds
    interval = bootstrap_divergence(
        side_by_side(sides.reference[None], n_seeds, size),
        side_by_side(sides.estimate, n_seeds, size),
        np.tile(sides.groups, n_seeds),
        n_bins=n_seeds * size,
        divergence=over_seeds(n_seeds, size, sides.measure),
        upper=task.scale(metric).high,
        **draws.of_divergences,
    )
    null = functools.partial(
        null_divergence,
        n_bins=size,
        divergence=sides.measure,
        units=sides.groups,
        n_permutations=draws.n_resamples,
        seed=draws.seed,
    )
    return {
        "value": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "n_defined": interval.n_defined // n_seeds if listed is None else listed,
        "n_groups": len(np.unique(sides.groups)),
        "n_clusters": interval.n_clusters,
        "seed_std": spread(_by_seed(sides)),
        "null": float(np.mean([null(sides.reference, row) for row in sides.estimate])),
    }


def _n_with_values(sides: _Sides) -> int:
    """Return how many items have any value listed, on either side."""
    if not len(sides.items):
        return 0
    return int(np.count_nonzero(_filled(sides).reshape(len(sides.items), -1).any(axis=1)))


def _filled(sides: _Sides) -> npt.NDArray[np.bool_]:
    """Tell which places hold a value on either side; the others are room that nothing fills."""
    filled: npt.NDArray[np.bool_] = (sides.reference >= 0) | (sides.estimate >= 0).any(axis=0)
    return filled


def _at(sides: _Sides, filled: npt.NDArray[np.bool_]) -> _Sides:
    """Leave out room that nothing fills, so that a group is as large as its values are many."""
    return sides._replace(
        reference=sides.reference[filled], estimate=sides.estimate[:, filled], groups=sides.groups[filled]
    )


def divergence_of(found: Found, task: ScoreTask, system: str, metric: str) -> float:
    """Return a divergence, the mean over seeds; NaN where nothing defines it."""
    sides = _sides(found, task, system, metric)
    return float(np.mean(_by_seed(sides))) if sides.estimate.size else math.nan


def compare_divergences(found: Found, task: ScoreTask, both: tuple[str, str], metric: str, draws: Draws) -> PairedTest:
    """Test the divergences of two systems on the items that both define."""
    items = [_sides(found, task, system, metric).items for system in both]
    common = np.intersect1d(items[0], items[1])
    a, b = (_sides(found, task, system, metric, common) for system in both)
    if not (a.estimate.size and b.estimate.size):
        return NOT_COMPARED
    if metric in task.listed:
        filled = _filled(a) | _filled(b)
        a, b = _at(a, filled), _at(b, filled)
    test = swap_test_over_seeds(
        a.reference,
        (a.estimate, b.estimate),
        a.groups,
        size=a.size,
        measure=a.measure,
        upper=task.scale(metric).high,
        n_bootstrap=draws.n_resamples,
        **draws.of_tests,
    )
    return test._replace(n=len(common))


def spread(values: Sequence[float]) -> float:
    """Return the deviation between seeds of a score; NaN for one seed."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
