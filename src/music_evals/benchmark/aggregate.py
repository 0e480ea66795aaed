"""From the scores of a run to numbers: means, divergences, intervals, paired tests, ranking.

Items and seeds
    A score of items is the mean over the seeds of an item first, then over items, so that a system with five seeds does
    not count as five times as many items. `seed_std` is its standard deviation between seeds.
Sets
    A divergence compares how a feature of the items is distributed with the control's, seed by seed, and is the mean
    over seeds: a histogram of all seeds together would hold more items than one of a deterministic system, and so less
    noise. Its interval, noise floor and swap test are those of this mean: a group is drawn, or swapped, with all its
    seeds. Of a histogram feature, such as melodic intervals, an item has many values, and a group counts as
    much as it has.
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

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.score_table import ABSENT, ERROR, ScoreTable
from music_evals.metrics.divergence import histogram_bins, jensen_shannon, masses, n_bins, normalised_jensen_shannon
from music_evals.stats import (
    PairedTest,
    bootstrap_divergence,
    holm,
    mean_intervals,
    null_divergence,
    paired_mean_test,
    paired_mean_tests,
    swap_test_divergence,
)
from music_evals.stats.calibration import Clustered, mean_intervals_of_pairs
from music_evals.stats.paired import NOT_COMPARED

if TYPE_CHECKING:
    from music_evals.benchmark.task import Task

TESTS_PER_RESAMPLE = 10
"""Permutations for each resample: the smallest p-values need more of them than the ends of an interval."""

TIE = 1e-9
"""Means that differ by less are equal."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]
Measure = Callable[[Floats, Floats], Floats]
Cell = dict[str, Any]


class Resampling(NamedTuple):
    """How intervals and tests are drawn."""

    confidence: float = 0.95
    n_resamples: int = 1000
    seed: int = 0

    @property
    def of_tests(self) -> dict[str, Any]:
        """Options of a permutation test, and of the interval beside it."""
        return self._replace(n_resamples=TESTS_PER_RESAMPLE * self.n_resamples)._asdict()


def table_of_scores(scores: ScoreTable, task: Task, best: Mapping[str, str], resampling: Resampling) -> dict[str, Any]:
    """Return the numbers of some items; `best` names the best baseline of each metric, for a task that ranks."""
    cells = {system: _cells(scores, task, system, resampling) for system in scores.systems}
    if not task.ranked_by:
        return {
            "scores": cells,
            "n_shared": len(_shared_by_all(scores)),
            "best": _best(scores, task) if len(scores.compared) > 1 else {},
            "comparisons": _comparisons(scores, task, resampling),
        }
    for system in scores.compared:
        for metric, test in _tests_against_best(scores, task, system, best, resampling).items():
            # items that a score could have: those with a prediction, and those without that count all the same
            both = (cells[name][metric] for name in (system, test["against"]))
            n, n_against = (cell["n_scored"] + cell.get("n_not_given", 0) for cell in both)
            cells[system][metric]["test"] = {**test, "on_fewer_items": n < n_against}
    pairs = max(map(scores.of, scores.systems), key=len)
    ranking = {name: cells[name][task.ranked_by] for name in scores.compared}
    values = {name: math.inf if math.isnan(cell["value"]) else -cell["value"] for name, cell in ranking.items()}
    ranks = {name: (-cell["n_scored"], values[name]) for name, cell in ranking.items()}
    return {
        "n_items": len(pairs),
        "n_songs": n_distinct(pairs.codes("group")),
        "ranking": sorted(scores.compared, key=ranks.__getitem__),
        "scores": cells,
    }


def n_distinct(numbers: Integers) -> int:
    """Return how many different numbers there are, from 0 on."""
    return int(np.count_nonzero(np.bincount(numbers)))


# --- cells


def _cells(scores: ScoreTable, task: Task, system: str, resampling: Resampling) -> dict[str, Cell]:
    pairs = scores.of(system)
    cells: dict[str, Cell] = {}
    for failed in (False, True):
        means = (name for name in scores.metrics if not task.is_divergence(name))
        names = [name for name in means if _counts_failed(scores, task, name) == failed]
        cells |= _mean_cells(scores, task, system, names, resampling.confidence) if names else {}
    for name in scores.metrics:
        if name not in cells:
            cells[name] = _divergence_cell(scores, task, system, name, resampling)
    if task.ranked_by:
        n_scored, absent = len(scores.scored(system)), pairs.take(pairs.failed)
        cells = {name: {**cell, "n_scored": n_scored} for name, cell in cells.items()}
        for name in task.missing_scores(scores.header).keys() & cells.keys():
            cells[name]["n_not_given"] = int(np.count_nonzero(absent.states(name) != ABSENT))
    counted: dict[str, Cell] = {}
    for name in scores.metrics:
        if name in task.without_prediction and not (pairs.states(name) != ABSENT).any():
            continue
        failed_at = pairs.failed
        if name not in task.histogram_features:
            failed_at = failed_at | np.isin(pairs.states(task.divergences.get(name, name))[:, 0], (ABSENT, ERROR))
        counted[name] = {**cells[name], "n": len(pairs), "n_failed": int(np.count_nonzero(failed_at))}
    return counted


def _counts_failed(scores: ScoreTable, task: Task, name: str) -> bool:
    """Tell whether items count at a score although there is no prediction for them."""
    return name in task.without_prediction or name in task.missing_scores(scores.header)


def _mean_cells(
    scores: ScoreTable, task: Task, system: str, names: Sequence[str], confidence: float
) -> dict[str, Cell]:
    """Return the cells of scores that all have a prediction, or all do without one."""
    pairs = scores.scored(system, failed=_counts_failed(scores, task, names[0]))
    values, groups = pairs.values(*names), pairs.codes("group")
    scales = [task.scale(name) for name in names]
    spans, unseen = [(scale.low, scale.high) for scale in scales], [scale.unseen for scale in scales]
    sides = task.paired_groups(scores, system)
    if sides is None:
        intervals = mean_intervals(values, groups, confidence=confidence, spans=spans, unseen=unseen)
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
            **(
                {"seed_std": _seed_std(np.nanmean(row) for row in pairs.by_seed(name) if not np.isnan(row).all())}
                if scores.item_rows
                else {}
            ),
        }
        for name, interval, column in zip(names, intervals, values.T, strict=True)
    }


def _seed_std(values: Iterable[float]) -> float:
    """Return the deviation between seeds of a score; NaN for one seed."""
    by_seed = list(map(float, values))
    return float(np.std(by_seed, ddof=1)) if len(by_seed) > 1 else math.nan


# --- against the best baseline


def best_baselines(scores: ScoreTable, task: Task) -> dict[str, str]:
    """Return score -> the baseline with the best value, from the records of the validation split."""
    # A rate that is compared with the reference's own has no best value. A baseline without a defined value cannot be
    # the best; one that was scored on more items comes before one that was scored on fewer. Of equals the first in the
    # run's order is taken.
    names = [name for name, role in scores.roles.items() if role == "baseline"]
    best = {}
    for metric in scores.metrics:
        if metric in task.without_prediction or task.scale(metric).direction == "none":
            continue
        merits = {name: _merit(task.scale(metric).direction, _value(scores, task, name, metric)) for name in names}
        defined = {name: (len(scores.scored(name)), merit) for name, merit in merits.items() if not math.isnan(merit)}
        if defined:
            best[metric] = max(defined, key=lambda name: defined[name])
    return best


def _value(scores: ScoreTable, task: Task, system: str, metric: str) -> float:
    if task.is_divergence(metric):
        histograms = _histograms(scores, task, system, metric)
        return float(np.mean(histograms.by_seed())) if histograms.estimate.size else math.nan
    values = scores.scored(system).values(metric)[:, 0]
    return float(np.nanmean(values)) if not np.isnan(values).all() else math.nan


def _tests_against_best(
    scores: ScoreTable, task: Task, system: str, best: Mapping[str, str], resampling: Resampling
) -> dict[str, Cell]:
    """Test a system against the best baseline of each score, with Holm's correction over the scores."""
    tests: dict[str, Cell] = {}
    for metric, against in best.items():
        if against != system and against in scores.systems:
            if task.is_divergence(metric):
                test = compare_divergences(scores, task, (system, against), metric, resampling)
            else:
                a, b = scores.paired(system, against, failed=_counts_failed(scores, task, metric))
                first, second = (side.values(metric)[:, 0] for side in (a, b))
                span = task.scale(metric).low, task.scale(metric).high
                test = paired_mean_test(first, second, a.codes("group"), span=span, **resampling.of_tests)
            tests[metric] = {"against": against, **test._asdict(), "p_holm": math.nan}
    defined = {metric: test for metric, test in tests.items() if not math.isnan(test["p_value"])}
    for on_request in (False, True):
        _correct([test for metric, test in defined.items() if (metric in task.on_request) == on_request])
    return tests


def _correct(tests: Sequence[Cell]) -> None:
    """Write Holm's correction over some tests into them."""
    for test, p_holm in zip(tests, holm([test["p_value"] for test in tests]), strict=True):
        test["p_holm"] = float(p_holm)


# --- two by two


def _best(scores: ScoreTable, task: Task) -> dict[str, list[str]]:
    """Return score -> the best of those who define it for the most items."""
    items, held = _shared_by_all(scores), {name: scores.scored(name, failed=True) for name in scores.compared}
    shared = {system: pairs.take(np.searchsorted(pairs.codes("item"), items)) for system, pairs in held.items()}
    best: dict[str, list[str]] = {}
    for name in scores.metrics:
        values = {system: pairs.values(name)[:, 0] for system, pairs in shared.items()}
        counts = {system: np.count_nonzero(~np.isnan(column)) for system, column in values.items()}
        winners = [
            system
            for system in scores.compared
            if 0 < counts[system] == max(counts.values())
            and not any(_beats(task.scale(name).direction, values[other], values[system]) for other in scores.compared)
        ]
        if winners:
            best[name] = winners
    return best


def _shared_by_all(scores: ScoreTable) -> Integers:
    """Return the items that every system was given, with the same reference where it could be read."""
    n = len(scores.columns["item"].categories)
    given = np.zeros(n, dtype=np.int64)
    # the references of an item are one where the first and the last of them in the order of names are the same
    least, most = np.full(n, np.iinfo(np.int64).max), np.full(n, -1)
    for system in scores.compared:
        given[np.unique(scores.of(system).codes("item"))] += 1
        pairs = scores.scored(system)
        np.minimum.at(least, pairs.codes("item"), pairs.codes("reference"))
        np.maximum.at(most, pairs.codes("item"), pairs.codes("reference"))
    return np.flatnonzero((given == len(scores.compared)) & (given > 0) & (least == most))


def _beats(direction: str, first: Floats, second: Floats) -> bool:
    """Tell whether the first mean is better, over the items that both define."""
    both = ~(np.isnan(first) | np.isnan(second))
    if not both.any():
        return False
    return _merit(direction, float(first[both].mean())) > _merit(direction, float(second[both].mean())) + TIE


def _merit(direction: str, value: float) -> float:
    """Return a number that is larger for a better score."""
    return value if direction == "higher" else -value if direction == "lower" else -abs(value)


def _comparisons(scores: ScoreTable, task: Task, resampling: Resampling) -> list[Cell]:
    spans = [(scale.low, scale.high) for scale in map(task.scale, scores.metrics)]
    tests: list[Cell] = []
    for first, second in itertools.combinations(scores.compared, 2):
        a, b = scores.paired(first, second)
        if len(a):
            values = [side.values(*scores.metrics) for side in (a, b)]
            made = paired_mean_tests(values[0], values[1], a.codes("group"), spans=spans, **resampling.of_tests)
            tests += [
                {"a": first, "b": second, "metric": name, **test._asdict()}
                for name, test in zip(scores.metrics, made, strict=True)
            ]
    _correct(tests)
    return tests


# --- divergences of whole sets of items


class _Histograms(NamedTuple):
    """A feature of the items that reference and system define, as bins of a histogram."""

    reference: npt.NDArray[np.int64]  # shape (n,)
    estimate: npt.NDArray[np.int64]  # shape (seeds, n)
    items: Integers  # numbers of the items, in their order
    groups: Integers
    size: int  # number of bins
    measure: Measure

    def by_seed(self) -> list[float]:
        """Return the divergence of each seed."""
        reference = masses(self.reference, self.size)
        return [float(self.measure(reference, masses(row, self.size))) for row in self.estimate]

    def filled(self) -> npt.NDArray[np.bool_]:
        """Tell which places hold a value on either side; the others are room that nothing fills."""
        filled: npt.NDArray[np.bool_] = (self.reference >= 0) | (self.estimate >= 0).any(axis=0)
        return filled

    def at(self, places: npt.NDArray[np.bool_]) -> _Histograms:
        """Leave out other places, so that a group is as large as its values are many."""
        return self._replace(
            reference=self.reference[places], estimate=self.estimate[:, places], groups=self.groups[places]
        )


def _histograms(scores: ScoreTable, task: Task, system: str, metric: str, among: Integers | None = None) -> _Histograms:
    """Return both sides of a divergence, over the items that define it, `among` some where they are given."""
    pairs, control = scores.scored(system), task.controls[0]
    chosen = np.ones(len(pairs), dtype=bool) if among is None else np.isin(pairs.codes("item"), among)
    if metric in task.histogram_features:
        # the values of all items are laid into one line; each item has room for as many as any
        others = scores.at(pairs.codes("item"), control)
        chosen &= ~others.failed
        reference_bins, estimate_bins = others.bins(metric, control)[0, chosen], pairs.bins(metric, system)[:, chosen]
        return _Histograms(
            reference_bins.ravel().astype(np.int64),
            estimate_bins.reshape(len(estimate_bins), -1).astype(np.int64),
            pairs.codes("item")[chosen],
            np.repeat(pairs.codes("group")[chosen], reference_bins.shape[1]),
            task.histogram_features[metric].size,
            normalised_jensen_shannon,  # the sides need not have equally many values
        )
    feature, variant = task.divergences[metric], scores.header["variant"]
    reference = scores.at(pairs.codes("item"), control).values(feature)[:, 0]
    estimate = pairs.by_seed(feature)
    chosen &= ~np.isnan(reference) & ~np.isnan(estimate).any(axis=0)
    bins = functools.partial(histogram_bins, variant=variant)
    sides = bins(reference[chosen]), bins(estimate[:, chosen])
    return _Histograms(
        *sides, pairs.codes("item")[chosen], pairs.codes("group")[chosen], n_bins(variant), jensen_shannon
    )


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


def side_by_side(bins: npt.NDArray[np.int64], n_rows: int, size: int) -> npt.NDArray[np.int64]:
    """Repeat bins (seeds, n) to `n_rows` rows and lay these into one line of n_rows * n bins; -1 stays discarded."""
    rows = np.tile(bins, (n_rows // len(bins), 1))
    return np.where(rows < 0, -1, rows + size * np.arange(n_rows)[:, None]).ravel()


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


def _divergence_cell(scores: ScoreTable, task: Task, system: str, metric: str, resampling: Resampling) -> Cell:
    """Return the value of a divergence with its interval, noise floor, numbers and spread between seeds."""
    sides = _histograms(scores, task, system, metric)
    n_items = None
    if metric in task.histogram_features:
        filled = sides.filled()
        n_items = int(np.count_nonzero(filled.reshape(len(sides.items), -1).any(axis=1))) if len(sides.items) else 0
        sides = sides.at(filled)
    if not sides.estimate.size or n_items == 0:
        undefined = dict.fromkeys(("value", "low", "high", "seed_std", "null"), math.nan)
        return {**undefined, "n_defined": 0, "n_groups": 0, "n_clusters": 0.0}
    size, n_seeds = sides.size, len(sides.estimate)
    # the histograms of all seeds stand side by side, so that a group is drawn with all its seeds
    interval = bootstrap_divergence(
        side_by_side(sides.reference[None], n_seeds, size),
        side_by_side(sides.estimate, n_seeds, size),
        np.tile(sides.groups, n_seeds),
        n_bins=n_seeds * size,
        divergence=over_seeds(n_seeds, size, sides.measure),
        upper=task.scale(metric).high,
        **resampling._asdict(),
    )
    null = functools.partial(
        null_divergence,
        n_bins=size,
        divergence=sides.measure,
        units=sides.groups,
        n_permutations=resampling.n_resamples,
        seed=resampling.seed,
    )
    return {
        "value": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "n_defined": interval.n_defined // n_seeds if n_items is None else n_items,
        "n_groups": len(np.unique(sides.groups)),
        "n_clusters": interval.n_clusters,
        "seed_std": _seed_std(sides.by_seed()),
        "null": float(np.mean([null(sides.reference, row) for row in sides.estimate])),
    }


def compare_divergences(
    scores: ScoreTable, task: Task, both: tuple[str, str], metric: str, resampling: Resampling
) -> PairedTest:
    """Test the divergences of two systems on the items that both define."""
    first, second = (_histograms(scores, task, system, metric).items for system in both)
    common = np.intersect1d(first, second)
    a, b = (_histograms(scores, task, system, metric, common) for system in both)
    if not (a.estimate.size and b.estimate.size):
        return NOT_COMPARED
    if metric in task.histogram_features:
        filled = a.filled() | b.filled()
        a, b = a.at(filled), b.at(filled)
    test = swap_test_over_seeds(
        a.reference,
        (a.estimate, b.estimate),
        a.groups,
        size=a.size,
        measure=a.measure,
        upper=task.scale(metric).high,
        n_bootstrap=resampling.n_resamples,
        **resampling.of_tests,
    )
    return test._replace(n=len(common))
