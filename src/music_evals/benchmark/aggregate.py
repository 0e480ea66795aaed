"""From the records of a run to numbers: means, divergences, intervals, paired tests, ranking.

Items and seeds
    A score of items is the mean over the seeds of an item first, then over items, so that a system with five seeds does
    not count as five times as many items. `seed_std` is its standard deviation between seeds.
Sets
    A divergence compares how a feature of the items is distributed with the control's, seed by seed, and is the mean
    over seeds: a histogram of all seeds together would hold more items than one of a deterministic system, and so less
    noise. Its interval, noise floor and swap test are those of this mean: a group is drawn, or swapped, with all its
    seeds. See `divergences`.
Who is compared
    Systems are compared two by two on the items that they share and that have the same reference: a permutation test
    that swaps the two within whole groups, with Holm's correction over all tests of the table, and beside it the
    difference with its interval, which is not corrected. Best at a score is who defines it for as many of the items
    that all share as any other, and is beaten by nobody. A task that ranks compares each system with the best baseline
    of each score, which is chosen on validation records, with Holm's correction over the scores of that system; those
    that a run asks for on top are a family of their own. What has seen the reference is never compared: it shows where
    a score begins and ends.
Failures
    A pair is scored for a system when every seed of it was. Who was scored on fewer items ranks below all that were
    scored on more, and is neither best nor the best baseline, nor better than a baseline that was scored on more:
    nobody wins by failing on what is hard. An item for which no prediction was given has the worst score, where there
    is one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.batches import ABSENT, ERROR
from music_evals.benchmark.divergences import compare_divergences, divergence_cell, divergence_of, spread
from music_evals.stats import PairedTest, holm, mean_intervals, paired_mean_test, paired_mean_tests
from music_evals.stats.calibration import Clustered, mean_intervals_of_pairs

if TYPE_CHECKING:
    from music_evals.benchmark.columns import Pairs
    from music_evals.benchmark.found import Found
    from music_evals.benchmark.results import ScoreTask

__all__ = ["Draws", "best_baselines", "n_distinct", "shared", "table"]

TESTS_PER_RESAMPLE = 10
"""Permutations for each resample: the smallest p-values need more of them than the ends of an interval."""

TIE = 1e-9
"""Means that differ by less are equal."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]
Cell = dict[str, Any]


class Draws(NamedTuple):
    """How intervals and tests are drawn."""

    confidence: float = 0.95
    n_resamples: int = 1000
    seed: int = 0

    @property
    def of_divergences(self) -> dict[str, Any]:
        """Options of a bootstrap."""
        return self._asdict()

    @property
    def of_tests(self) -> dict[str, Any]:
        """Options of a permutation test, and of the interval beside it."""
        return {
            "confidence": self.confidence,
            "n_resamples": TESTS_PER_RESAMPLE * self.n_resamples,
            "seed": self.seed,
        }


def table(found: Found, task: ScoreTask, best: Mapping[str, str], draws: Draws) -> dict[str, Any]:
    """Work out the numbers of some items."""
    scores = {name: _cells(found, task, name, draws) for name in found.systems}
    if not task.ranked_by:
        return {
            "scores": scores,
            "n_shared": len(_shared_by_all(found)),
            "best": _best(found, task) if len(found.judged) > 1 else {},
            "comparisons": _comparisons(found, task, draws),
        }
    for name in found.judged:
        for metric, test in _tests(found, task, name, best, draws).items():
            n, n_against = (_n_counted(scores[system][metric]) for system in (name, test["against"]))
            scores[name][metric]["test"] = {**test, "on_fewer_items": n < n_against}
    pairs = max(map(found.of, found.systems), key=len)
    return {
        "n_items": len(pairs),
        "n_songs": n_distinct(pairs.groups),
        "ranking": sorted(found.judged, key=lambda name: _rank(scores[name][task.ranked_by])),
        "scores": scores,
    }


def _n_counted(cell: Cell) -> int:
    """Return how many items a score could have: those with a prediction, and those without that count all the same."""
    return int(cell["n_scored"]) + int(cell.get("n_not_given", 0))


def _rank(cell: Cell) -> tuple[int, float]:
    return -cell["n_scored"], math.inf if math.isnan(cell["value"]) else -cell["value"]


# --- cells


def _cells(found: Found, task: ScoreTask, system: str, draws: Draws) -> dict[str, Cell]:
    pairs = found.of(system)
    cells: dict[str, Cell] = {}
    means = [name for name in found.names if not task.is_divergence(name)]
    for failed in (False, True):
        names = [name for name in means if _counts_failed(found, task, name) == failed]
        cells |= _mean_cells(found, task, system, names, draws.confidence) if names else {}
    cells |= {name: divergence_cell(found, task, system, name, draws) for name in found.names if name not in cells}
    if task.ranked_by:
        n_scored = len(found.readable(system))
        cells = {name: {**cell, "n_scored": n_scored} for name, cell in cells.items()}
        absent = found.of(system).take(found.of(system).failed)
        for name in task.not_given(found.header).keys() & cells.keys():
            cells[name]["n_not_given"] = int(np.count_nonzero(absent.states(name) != ABSENT))
    recorded = {name for name in found.names if (pairs.states(name) != ABSENT).any()}
    return {
        name: {**cells[name], "n": len(pairs), "n_failed": _n_failed(pairs, task, name)}
        for name in found.names
        if name not in task.without_prediction or name in recorded
    }


def _counts_failed(found: Found, task: ScoreTask, name: str) -> bool:
    """Tell whether items count at a score although there is no prediction for them."""
    return name in task.without_prediction or name in task.not_given(found.header)


def _n_failed(pairs: Pairs, task: ScoreTask, name: str) -> int:
    if name in task.listed:
        return int(np.count_nonzero(pairs.failed))
    column = task.divergences.get(name, name)
    return int(np.count_nonzero(pairs.failed | np.isin(pairs.states(column), (ABSENT, ERROR))))


def _mean_cells(found: Found, task: ScoreTask, system: str, names: Sequence[str], confidence: float) -> dict[str, Cell]:
    """Return the cells of scores that all have a prediction, or all do without one."""
    pairs = found.readable(system, failed=_counts_failed(found, task, names[0]))
    values, groups = pairs.values(*names), pairs.groups
    spans = [(task.scale(name).low, task.scale(name).high) for name in names]
    sides = task.sides(found, system)
    if sides is None:
        intervals = mean_intervals(values, groups, confidence=confidence, spans=spans)
    else:
        intervals = mean_intervals_of_pairs(Clustered(values, sides), confidence=confidence, spans=spans)
    return {
        name: {
            "value": interval.estimate,
            "low": interval.low,
            "high": interval.high,
            "n_defined": interval.n_defined,
            "n_groups": n_distinct(groups[~np.isnan(column)]),
            "n_clusters": interval.n_clusters,
            **({"seed_std": _seed_std(pairs.by_seed(name))} if found.items else {}),
        }
        for name, interval, column in zip(names, intervals, values.T, strict=True)
    }


def n_distinct(numbers: Integers) -> int:
    """Return how many different numbers there are, from 0 on."""
    return int(np.count_nonzero(np.bincount(numbers)))


def _seed_std(by_seed: Floats) -> float:
    """Return the deviation between seeds of the mean over items."""
    return spread([float(np.nanmean(row)) for row in by_seed if not np.isnan(row).all()])


# --- against the best baseline


def best_baselines(found: Found, task: ScoreTask) -> dict[str, str]:
    """Return score -> the baseline with the best value, from the records of the validation split."""
    # A rate that is compared with the reference's own has no best value. A baseline without a defined value cannot be
    # the best; one that was scored on more items comes before one that was scored on fewer. Of equals the first in the
    # run's order is taken.
    names = [name for name, role in found.roles.items() if role == "baseline"]
    best = {}
    for metric in found.names:
        if metric in task.without_prediction or task.scale(metric).direction == "none":
            continue
        merits = {name: _merit(task.scale(metric).direction, _value(found, task, name, metric)) for name in names}
        defined = {name: (len(found.readable(name)), merit) for name, merit in merits.items() if not math.isnan(merit)}
        if defined:
            best[metric] = max(defined, key=lambda name: defined[name])
    return best


def _value(found: Found, task: ScoreTask, system: str, metric: str) -> float:
    if task.is_divergence(metric):
        return divergence_of(found, task, system, metric)
    values = found.readable(system).values(metric)[:, 0]
    return float(np.nanmean(values)) if not np.isnan(values).all() else math.nan


def _tests(found: Found, task: ScoreTask, system: str, best: Mapping[str, str], draws: Draws) -> dict[str, Cell]:
    """Test a system against the best baseline of each score, with Holm's correction over the scores."""
    tests: dict[str, Cell] = {}
    for metric, against in best.items():
        if against != system and against in found.systems:
            if task.is_divergence(metric):
                made = compare_divergences(found, task, (system, against), metric, draws)
            else:
                made = _compare_means(found, task, (system, against), metric, draws)
            tests[metric] = {"against": against, **made._asdict(), "p_holm": math.nan}
    defined = {metric: test for metric, test in tests.items() if not math.isnan(test["p_value"])}
    for asked in (False, True):
        _correct([test for metric, test in defined.items() if (metric in task.on_request) == asked])
    return tests


def _correct(tests: Sequence[Cell]) -> None:
    """Write Holm's correction over some tests into them."""
    for test, p_holm in zip(tests, holm([test["p_value"] for test in tests]), strict=True):
        test["p_holm"] = float(p_holm)


def _compare_means(found: Found, task: ScoreTask, both: tuple[str, str], metric: str, draws: Draws) -> PairedTest:
    (a, b), scale = shared(found, *both, failed=_counts_failed(found, task, metric)), task.scale(metric)
    first, second = (side.values(metric)[:, 0] for side in (a, b))
    return paired_mean_test(first, second, a.groups, span=(scale.low, scale.high), **draws.of_tests)


# --- two by two


def _best(found: Found, task: ScoreTask) -> dict[str, list[str]]:
    """Return score -> the best of those who define it for the most items."""
    items = _shared_by_all(found)
    shared = {system: _with_items(found.of(system), items) for system in found.judged}
    best: dict[str, list[str]] = {}
    for name in found.names:
        values = {system: pairs.values(name)[:, 0] for system, pairs in shared.items()}
        counts = {system: np.count_nonzero(~np.isnan(column)) for system, column in values.items()}
        winners = [
            system
            for system in found.judged
            if 0 < counts[system] == max(counts.values())
            and not any(_beats(task.scale(name).direction, values[other], values[system]) for other in found.judged)
        ]
        if winners:
            best[name] = winners
    return best


def _shared_by_all(found: Found) -> Integers:
    """Return the items that every system was given, with the same original where it could be read."""
    n = len(found.table.items.words)
    given = np.zeros(n, dtype=np.int64)
    # the originals of an item are one where the first and the last of them in the order of names are the same
    least, most = np.full(n, np.iinfo(np.int64).max), np.full(n, -1)
    for system in found.judged:
        given[np.unique(found.of(system).items)] += 1
        pairs = found.readable(system)
        np.minimum.at(least, pairs.items, pairs.originals)
        np.maximum.at(most, pairs.items, pairs.originals)
    return np.flatnonzero((given == len(found.judged)) & (given > 0) & (least == most))


def _with_items(pairs: Pairs, items: Integers) -> Pairs:
    """Return the pairs with these items, in this order; each must be there."""
    held = pairs.by_item()
    return held.take(np.searchsorted(held.items, items))


def _beats(direction: str, first: Floats, second: Floats) -> bool:
    """Tell whether the first mean is better, over the items that both define."""
    both = ~(np.isnan(first) | np.isnan(second))
    if not both.any():
        return False
    return _merit(direction, float(first[both].mean())) > _merit(direction, float(second[both].mean())) + TIE


def _merit(direction: str, value: float) -> float:
    """Return a number that is larger for a better score."""
    return value if direction == "higher" else -value if direction == "lower" else -abs(value)


def _comparisons(found: Found, task: ScoreTask, draws: Draws) -> list[Cell]:
    spans = [(scale.low, scale.high) for scale in map(task.scale, found.names)]
    tests: list[Cell] = []
    for first, second in itertools.combinations(found.judged, 2):
        a, b = shared(found, first, second)
        if len(a):
            values = [side.values(*found.names) for side in (a, b)]
            made = paired_mean_tests(values[0], values[1], a.groups, spans=spans, **draws.of_tests)
            tests += [
                {"a": first, "b": second, "metric": name, **test._asdict()}
                for name, test in zip(found.names, made, strict=True)
            ]
    _correct(tests)
    return tests


def shared(found: Found, a: str, b: str, *, failed: bool = False) -> tuple[Pairs, Pairs]:
    """Return the pairs of two systems that are of the same item and original, in one order; see `Found.readable`."""
    first, second = found.readable(a, failed=failed), found.readable(b, failed=failed)
    place = np.minimum(np.searchsorted(second.items, first.items), max(len(second) - 1, 0))
    if not len(second):
        return first.take(place[:0]), second
    same = (second.items[place] == first.items) & (second.originals[place] == first.originals)
    return first.take(same), second.take(place[same])
