"""Ranks with their uncertainty: "ranks 2-4" in place of a place that the data do not give.

Two systems are compared on the items that both have and both define, with the same reference: a paired
test of the mean difference, or for a divergence of the difference of two divergences, in which the two are swapped
within whole clusters (`stats.paired_mean_test`, `stats.swap_test_divergence`). Two items are of one cluster where
either of the two runs says so. Holm's correction goes over all tests of the table, every metric and every pair, but
those against a control or a baseline: these are a family of their own for each score of a system.

Controls and baselines take places beside the systems, and what cannot be told from one of them is placed below it. Of n
in a column the rank range of one is ``1 + (number that are significantly better, or are controls that it cannot be told
from)`` to ``n - (number that are significantly worse, or for a control cannot be told from it)``. With the error of the
whole family at most alpha, all ranges among systems hold the true ranks at once with a chance of at least 1 - alpha, as
far as each test holds its level: ranks by inverted pairwise tests are those of Mogstad, Romano, Shaikh & Wilhelm
(2024). Systems that no test tells apart all get the full range.

The smallest p-value of a random permutation test is 1 / (resamples + 1), which Holm multiplies by the number of tests:
the resamples grow with it, so that a clear difference can be significant in a table of any usual size. In a table with
so many tests that the most resamples could not make one significant, the fewest are drawn, and divergences of systems
are not compared with each other.

References
----------
Holm (1979), A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6(2), 65-70. Mogstad, Romano,
Shaikh & Wilhelm (2024), Inference for ranks with applications to mobility across neighbourhoods and academic
achievement across countries, Review of Economic Studies 91(1), 476-518.

"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.aggregate import swap_test_over_seeds
from music_evals.leaderboard.items import level, mean_of_seeds, merit, span_of
from music_evals.leaderboard.records import DIVERGENCE, ResultRecord
from music_evals.metrics.divergence import histogram_bins, n_bins
from music_evals.stats import PairedTest, holm
from music_evals.stats.paired import NOT_COMPARED, paired_tests_of_systems

ALPHA = 0.05  # chance of one or more wrong ranges in a table

LEAST_RESAMPLES = {"mean": 10_000, "divergence": 2_000}
RESAMPLES_PER_TEST = {"mean": 4 / ALPHA, "divergence": 2 / ALPHA}
"""A divergence is slower to swap; its smallest corrected p-value is alpha / 2."""
MOST_RESAMPLES = 200_000

MOST_SEEDS = 60  # rows of seeds that stand side by side where two systems have different numbers of them

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]
Progress = Callable[[int, int, str], None]
"""Called after some tests with the tests done, those of the table, and the metric."""


class RankRange(NamedTuple):
    """Ranks that the data leave open, 1 is best."""

    first: int
    last: int


class Comparison(NamedTuple):
    """Two systems at one metric, by their positions and that of the metric."""

    # ``better`` is the one with the better score on the shared items, or None; ``difference`` to ``n`` are those of
    # `stats.PairedTest`; ``p_holm`` is corrected over its family, and NaN where there is no test. ``control`` is
    # the one of the two that is a control, which the other must differ from, or None.

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
    control: int | None = None

    @property
    def is_significant(self) -> bool:
        """Whether one of the two is better beyond chance."""
        return self.better is not None and self.p_holm < ALPHA

    @property
    def is_untold(self) -> bool:
        """Whether one of the two is a control, and the other cannot be told from it."""
        return self.control is not None and self.n > 0 and not self.is_significant


def rank_ranges(n: int, comparisons: Sequence[Comparison]) -> list[RankRange]:
    """Return the rank range of each of n systems by their comparisons at one metric; a missing pair is left open."""
    above, below = [0] * n, [0] * n
    for comparison in comparisons:
        better = (
            comparison.control if comparison.is_untold else comparison.better if comparison.is_significant else None
        )
        if better is not None:
            above[comparison.a + comparison.b - better] += 1  # the other has one more that is better
            below[better] += 1
    return [RankRange(1 + over, n - under) for over, under in zip(above, below, strict=True)]


class Place(NamedTuple):
    """The place of a score by its value, 1 is best, those of equal value share theirs; and no better than controls."""

    by_value: float | None
    place: float | None  # the same, or that of the worst control that it cannot be told from


def places(records: Sequence[ResultRecord], comparisons: Sequence[Comparison]) -> list[Place]:
    """Return the place of each record of a column."""
    merits = np.array([merit(record, record.value or 0.0) for record in records])
    order = np.sort(-merits)
    by_value = ((np.searchsorted(order, -merits, "left") + np.searchsorted(order, -merits, "right") + 1) / 2).tolist()
    adjusted = list(by_value)
    for comparison in comparisons:
        if comparison.control is not None and comparison.is_untold:
            other = comparison.a + comparison.b - comparison.control
            adjusted[other] = max(adjusted[other], by_value[comparison.control])
    return list(map(Place, by_value, adjusted))


def compare_pairs(
    columns: Sequence[Sequence[ResultRecord]],
    *,
    known: Mapping[tuple[str, str], PairedTest] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Comparison]:
    """Compare all pairs of each column but those of two controls, with Holm's correction in its families."""
    pairs = [
        [pair for pair in itertools.combinations(range(len(rows)), 2) if min(level(rows[at]) for at in pair) < 2]
        for rows in columns
    ]
    n_pairs = sum(map(len, pairs))
    n_main = sum(level(rows[a]) == level(rows[b]) for rows, own in zip(columns, pairs, strict=True) for a, b in own)
    comparisons: list[Comparison] = []
    for column, (rows, own) in enumerate(zip(columns, pairs, strict=True)):
        for together in _batches(rows, own):
            tests = _known(rows, together, known or {}) or _tests(rows, together, n_tests=n_main, seed=seed)
            comparisons += [_comparison(rows, column, *pair, test) for pair, test in zip(together, tests, strict=True)]
            if progress is not None:
                progress(len(comparisons), n_pairs, rows[0].metric)
    return _corrected(comparisons)


def _comparison(rows: Sequence[ResultRecord], column: int, a: int, b: int, test: PairedTest) -> Comparison:
    better = None
    if test.difference != 0 and not math.isnan(test.difference):
        better = a if (test.difference > 0) == (rows[a].direction == "higher") else b
    levels = level(rows[a]), level(rows[b])
    control = None if levels[0] == levels[1] else a if levels[0] > levels[1] else b
    return Comparison(a, b, column, better, *test, control=control)


def _corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Correct the tests without a control together, and those of a score against controls by themselves."""
    families: dict[Pair | None, list[int]] = {}
    for place, test in enumerate(comparisons):
        owner = None if test.control is None else (test.column, test.a + test.b - test.control)
        families.setdefault(owner, []).append(place)
    p_holm = np.empty(len(comparisons))
    for own in families.values():
        p_holm[own] = holm([comparisons[place].p_value for place in own])
    return [test._replace(p_holm=value) for test, value in zip(comparisons, p_holm.tolist(), strict=True)]


def _known(
    rows: Sequence[ResultRecord], pairs: Sequence[Pair], known: Mapping[tuple[str, str], PairedTest]
) -> list[PairedTest]:
    """Return the tests of some pairs; an empty list if one of them is unknown."""
    tests = [known.get((rows[a].id, rows[b].id)) for a, b in pairs] if known else []
    return [test for test in tests if test is not None] if None not in tests else []


def _batches(rows: Sequence[ResultRecord], pairs: Sequence[Pair]) -> Iterable[list[Pair]]:
    """Return pairs that can be tested together: those of systems that define the same items, and each divergence."""
    if rows and rows[0].kind == DIVERGENCE:
        return ([pair] for pair in pairs)
    kinds = [
        (record.items, record.groups, record.references, tuple(math.isnan(mean_of_seeds(row)) for row in record.values))
        for record in rows
    ]
    known = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    numbers = [known[kind] for kind in kinds]
    batches: dict[Pair, list[Pair]] = {}
    for a, b in pairs:
        batches.setdefault((numbers[a], numbers[b]), []).append((a, b))
    return batches.values()


def _tests(rows: Sequence[ResultRecord], pairs: Sequence[Pair], *, n_tests: int, seed: int) -> list[PairedTest]:
    """Test pairs that can be tested together; `n_tests` is the size of the family, with which the resamples grow."""
    first, second = (rows[place] for place in pairs[0])
    wanted = math.ceil(RESAMPLES_PER_TEST[first.kind] * n_tests)
    is_vain = n_tests >= ALPHA * (MOST_RESAMPLES + 1)
    n_resamples = min(max(LEAST_RESAMPLES[first.kind], 0 if is_vain else wanted), MOST_RESAMPLES)
    shared = _shared(first, second)
    groups = _clusters([first.groups[i] for i, _ in shared], [second.groups[j] for _, j in shared])
    if first.kind == DIVERGENCE:
        if not shared or (is_vain and level(first) == level(second)):
            return [NOT_COMPARED]
        return [_compare_divergences(first, second, shared, groups, n_resamples=n_resamples, seed=seed)]
    places_of = [np.array([row[side] for row in shared], dtype=np.int64) for side in (0, 1)]
    scores = [
        {place: _means(rows[place])[held] for place in {pair[side] for pair in pairs}}
        for side, held in enumerate(places_of)
    ]
    defined = ~(np.isnan(scores[0][pairs[0][0]]) | np.isnan(scores[1][pairs[0][1]]))
    if not defined.any():
        return [NOT_COMPARED] * len(pairs)
    order = [{place: number for number, place in enumerate(side)} for side in scores]
    low, high = span_of(first)
    tests = paired_tests_of_systems(
        np.array([row[defined] for side in scores for row in side.values()]),
        [(order[0][a], len(order[0]) + order[1][b]) for a, b in pairs],
        groups[defined],
        span=(0.0, max(abs(low), abs(high))) if first.direction == "zero" else (low, high),
        n_resamples=n_resamples,
        quick=is_vain,
        seed=seed,
    )
    return [PairedTest(*row) for row in zip(*(side.tolist() for side in tests), strict=True)]


def _means(record: ResultRecord) -> Floats:
    """Return the score of each item, the mean over its seeds; its distance from 0 where nearer to 0 is better."""
    means = np.array([mean_of_seeds(row) for row in record.values])
    return np.abs(means) if record.direction == "zero" else means


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
    sides: list[Floats] = []  # each of shape (seeds, items); an item without as many seeds as the others is undefined
    for side, record in enumerate((first, second)):
        values = [record.values[row[side]] for row in rows]
        n_seeds = max(map(len, values), default=0)
        whole = [seeds if len(seeds) == n_seeds else [None] * n_seeds for seeds in values]
        sides.append(np.array(whole, dtype=np.float64).reshape(len(values), n_seeds).T)
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
        upper=span_of(first)[1],
        n_resamples=n_resamples,
        seed=seed,
    )
