"""Ranks with their uncertainty: "ranks 2-4" in place of a place that the data do not give.

Two systems are compared on the items that both were judged on and that both define, with the same reference: a paired
test of the mean difference, or for a divergence of the difference of two divergences, in which the two are swapped
within whole clusters (`stats.paired_mean_test`, `stats.swap_test_divergence`). Two items are of one cluster where
either of the two runs says so. Holm's correction goes over all tests of the table, every metric and every pair.

Of n systems the rank range of one is ``1 + (number that are significantly better)`` to ``n - (number that are
significantly worse)``. With the error of the whole family at most alpha, all ranges of the table hold the true ranks
at once with a chance of at least 1 - alpha, as far as each test holds its level: ranks by inverted pairwise tests are
those of Mogstad, Romano, Shaikh & Wilhelm (2024). Systems that no test tells apart all get the full range.

The smallest p-value of a random permutation test is 1 / (resamples + 1), which Holm multiplies by the number of tests:
the resamples grow with it, so that a clear difference can be significant in a table of any usual size.

References
----------
Holm (1979), A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6(2), 65-70. Mogstad, Romano,
Shaikh & Wilhelm (2024), Inference for ranks with applications to mobility across neighbourhoods and academic
achievement across countries, Review of Economic Studies 91(1), 476-518.

"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.divergences import swap_test_over_seeds
from music_evals.leaderboard.records import ResultRecord
from music_evals.metrics.catalogue import CATALOGUE
from music_evals.metrics.divergence import histogram_bins, n_bins
from music_evals.stats import PairedTest, holm, paired_mean_test
from music_evals.stats.paired import NOT_COMPARED

__all__ = ["ALPHA", "Comparison", "RankRange", "compare", "compare_pairs", "rank_ranges"]

ALPHA = 0.05
"""Chance of one or more wrong ranges in a table."""

LEAST_RESAMPLES = {"mean": 10_000, "divergence": 2_000}
RESAMPLES_PER_TEST = {"mean": 4 / ALPHA, "divergence": 2 / ALPHA}
"""A divergence is slower to swap; its smallest corrected p-value is alpha / 2."""
MOST_RESAMPLES = 200_000

MOST_SEEDS = 60  # rows of seeds that stand side by side where two systems have different numbers of them

Floats = npt.NDArray[np.float64]
Progress = Callable[[int, int, str], None]
"""Called after each test with the tests done, those of the table, and the metric."""


class RankRange(NamedTuple):
    """Ranks that the data leave open, 1 is best."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


class Comparison(NamedTuple):
    """Two systems at one metric, by their positions and that of the metric."""

    # ``better`` is the one with the better score on the shared items, or None; ``difference`` to ``n`` are those of
    # `stats.PairedTest`; ``p_holm`` is corrected over the table, and NaN where there is no test.

    a: int
    b: int
    column: int
    better: int | None
    difference: float
    low: float
    high: float
    p_value: float
    n: int
    p_holm: float = math.nan

    @property
    def is_significant(self) -> bool:
        """Whether one of the two is better beyond chance."""
        return self.better is not None and self.p_holm < ALPHA


def rank_ranges(n: int, comparisons: Sequence[Comparison]) -> list[RankRange]:
    """Return the rank range of each of n systems by their comparisons at one metric; a missing pair is left open.

    Examples
    --------
    >>> rank_ranges(3, [Comparison(0, 1, 0, 0, 0.2, 0.1, 0.3, 0.01, 9, 0.03)])
    [RankRange(first=1, last=2), RankRange(first=2, last=3), RankRange(first=1, last=3)]

    """
    better, worse = [0] * n, [0] * n
    for made in comparisons:
        if made.is_significant and made.better is not None:
            better[made.a + made.b - made.better] += 1  # the loser has one more that is better
            worse[made.better] += 1
    return [RankRange(1 + above, n - below) for above, below in zip(better, worse, strict=True)]


def compare_pairs(
    columns: Sequence[Sequence[ResultRecord]],
    *,
    known: Mapping[tuple[str, str], PairedTest] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Comparison]:
    """Compare all pairs of each column, with Holm's correction over all of them."""
    pairs = [
        (column, a, b) for column, rows in enumerate(columns) for a, b in itertools.combinations(range(len(rows)), 2)
    ]
    made = []
    for done, (column, a, b) in enumerate(pairs, start=1):
        first, second = columns[column][a], columns[column][b]
        test = (known or {}).get((first.id, second.id)) or compare(first, second, n_tests=len(pairs), seed=seed)
        better = None
        if test.difference != 0 and not math.isnan(test.difference):
            better = a if (test.difference > 0) == (first.direction == "higher") else b
        made.append(Comparison(a, b, column, better, *test))
        if progress is not None:
            progress(done, len(pairs), first.metric)
    corrected: Floats = holm([row.p_value for row in made]) if made else np.empty(0)
    return [row._replace(p_holm=float(p_holm)) for row, p_holm in zip(made, corrected, strict=True)]


def compare(first: ResultRecord, second: ResultRecord, *, n_tests: int = 1, seed: int = 0) -> PairedTest:
    """Test two systems at one metric on the items that they share; NaN where there is none that both define."""
    # Where nearer to 0 is better, distances from 0 are compared. The number of resamples grows with `n_tests`, the size
    # of the family.
    rows = _shared(first, second)
    if not rows:
        return NOT_COMPARED
    groups = _clusters([first.groups[i] for i, _ in rows], [second.groups[j] for _, j in rows])
    wanted = math.ceil(RESAMPLES_PER_TEST[first.kind] * n_tests)
    n_resamples = min(max(LEAST_RESAMPLES[first.kind], wanted), MOST_RESAMPLES)
    if first.kind == "divergence":
        return _compare_divergences(first, second, rows, groups, n_resamples=n_resamples, seed=seed)
    sides = [np.array([_mean(record.values[row[side]]) for row in rows]) for side, record in enumerate((first, second))]
    span = _span(first)
    if first.direction == "zero":
        sides, span = [np.abs(side) for side in sides], (0.0, max(map(abs, span)))
    return paired_mean_test(sides[0], sides[1], groups, span=span, n_resamples=n_resamples, seed=seed)


def _span(record: ResultRecord) -> tuple[float, float]:
    """Return the range of a score, which is open where the catalogue does not know it."""
    metric = CATALOGUE.get(record.metric)
    return (-math.inf, math.inf) if metric is None else (metric.low, metric.high)


def _shared(first: ResultRecord, second: ResultRecord) -> list[tuple[int, int]]:
    """Return the rows of the items that two systems have in common, held against the same reference."""
    place = {item: row for row, item in enumerate(second.items)}
    rows = [(row, place[item]) for row, item in enumerate(first.items) if item in place]
    if first.references and second.references:
        rows = [row for row in rows if first.references[row[0]] == second.references[row[1]]]
    return sorted(rows, key=lambda row: first.items[row[0]])


def _clusters(first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.str_]:
    """Return clusters of items: two are of one where either side says so, or a chain of such pairs joins them."""
    leader: dict[tuple[int, str], tuple[int, str]] = {}

    def lead(name: tuple[int, str]) -> tuple[int, str]:
        while leader.setdefault(name, name) != name:
            leader[name] = name = leader[leader[name]]
        return name

    for a, b in zip(first, second, strict=True):
        leader[lead((0, a))] = lead((1, b))
    return np.array(["{}:{}".format(*lead((0, a))) for a in first], dtype=str)


def _mean(seeds: Sequence[float | None]) -> float:
    defined = [value for value in seeds if value is not None]
    return float(np.mean(defined)) if defined else math.nan


def _compare_divergences(
    first: ResultRecord,
    second: ResultRecord,
    rows: Sequence[tuple[int, int]],
    groups: npt.NDArray[np.str_],
    *,
    n_resamples: int,
    seed: int,
) -> PairedTest:
    reference = np.array([first.reference_values[i] for i, _ in rows], dtype=np.float64)
    sides = [_by_seed([record.values[row[side]] for row in rows]) for side, record in enumerate((first, second))]
    chosen = ~np.isnan(reference) & ~np.isnan(sides[0]).any(axis=0) & ~np.isnan(sides[1]).any(axis=0)
    if not chosen.any() or not (len(sides[0]) and len(sides[1])):
        return NOT_COMPARED
    if math.lcm(*map(len, sides)) > MOST_SEEDS:
        n_seeds = min(map(len, sides))
        sides = [side[:n_seeds] for side in sides]
    a, b = (histogram_bins(side[:, chosen], variant=first.variant) for side in sides)
    return swap_test_over_seeds(
        histogram_bins(reference[chosen], variant=first.variant),
        (a, b),
        groups[chosen],
        size=n_bins(first.variant),
        upper=_span(first)[1],
        n_resamples=n_resamples,
        seed=seed,
    )


def _by_seed(values: Sequence[Sequence[float | None]]) -> Floats:
    """Return values of shape (seeds, items); an item without as many seeds as the others is undefined."""
    n_seeds = max(map(len, values), default=0)
    whole = [seeds if len(seeds) == n_seeds else [None] * n_seeds for seeds in values]
    return np.array(whole, dtype=np.float64).reshape(len(values), n_seeds).T
