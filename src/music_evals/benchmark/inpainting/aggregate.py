"""From records to results: means, divergences, intervals, paired tests, ranking. Nothing here runs a system.

How several seeds are put together
----------------------------------
- A metric of items: the mean over an item's seeds first, then the mean over items, so that a system with five seeds
  does not count as five times as many items. The interval is clustered by song.
- A divergence: one value for each seed, then their mean. A histogram of all seeds together would hold more items than
  one of a deterministic system, and so less noise, which would favour it. Interval, noise floor and swap test are
  those of this mean: a song is drawn, or swapped, with all its seeds.
- `seed_std` is the standard deviation of the score between seeds, over the items.

Failures
--------
An item is scored for a system when every seed of it was. Others are in no mean; every cell tells how many items there
are (`n`), how many were scored (`n_scored`) and how many define the metric (`n_defined`). A system that was scored on
fewer items ranks below all that were scored on more, and cannot be the best baseline before them: nobody wins by
failing on what is hard.

Which baseline is the best is decided for each metric on the validation split. Every other system is tested against it,
metric by metric, with Holm's correction over the metrics of that system. A control or a leaking system is never tested
nor ranked. `inpainting_nll` is not compared: what it counts differs from model to model.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import Tokens
from music_evals.benchmark.inpainting.runner import NLL
from music_evals.benchmark.records import reading_rows
from music_evals.benchmark.versions import kernels_of
from music_evals.errors import CorruptRecordsError
from music_evals.metrics.catalogue import INPAINTING_METRICS
from music_evals.metrics.divergence import histogram_bins, jensen_shannon, masses, n_bins
from music_evals.pipelines.inpainting import FEATURES
from music_evals.stats import (
    PairedTest,
    bootstrap_divergence,
    bootstrap_mean,
    holm,
    null_divergence,
    paired_mean_test,
    swap_test_divergence,
)

__all__ = ["RANKING", "Scores", "best_baselines", "collect", "over_seeds", "side_by_side", "summarize"]

RANKING = "note_f1"
"""Rankings use it: the accuracies are conditional on shared onsets, and one sure note would score 1."""

TESTS_PER_RESAMPLE = 10
"""Permutations for each resample: the smallest p-values need more of them than the ends of an interval."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Row = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Scores:
    """The records of a run as arrays.

    Attributes
    ----------
    header
        The run row.
    item_ids, songs
        One an item.
    contexts
        Shape (n, 384).
    seen
        Shape (n,), or None where it is not known what was seen in training.
    values
        System -> metric or feature -> scores, shape (seeds, n); NaN is undefined or failed.
    scored
        System -> True where every seed of the item was scored, shape (n,).
    middles
        System -> predictions, shape (seeds, n, 96); 255 where there is none.
    failures
        One dict a failed result: item, system, seed, metric, error. A metric of None: all that judge the prediction.
    wall_time_sec
        Of all sittings together.
    kernels
        Those that made the scores; see `versions.kernels_of`.

    """

    header: dict[str, Any]
    item_ids: tuple[str, ...]
    songs: tuple[str, ...]
    contexts: Tokens
    seen: npt.NDArray[np.bool_] | None
    values: dict[str, dict[str, Floats]]
    scored: dict[str, npt.NDArray[np.bool_]]
    middles: dict[str, Tokens]
    failures: list[dict[str, Any]]
    wall_time_sec: float
    kernels: tuple[str, ...] = ()

    def item_means(self, system: str, metric: str) -> Floats:
        """Mean over the seeds of each item for which it is defined, shape (n,); NaN where the item is not scored."""
        values = self.values[system].get(metric)
        if values is None:
            return np.full(len(self.item_ids), np.nan)
        defined = ~np.isnan(values)
        if metric != NLL:  # the likelihood of the true middle needs no prediction
            defined &= self.scored[system]
        counts = defined.sum(axis=0)
        sums = np.where(defined, values, 0.0).sum(axis=0)
        means: Floats = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
        return means


@reading_rows()
def collect(rows: Sequence[Row]) -> Scores:
    """Read the rows of a record file into arrays; of two rows for one score the later one counts.

    Raises
    ------
    CorruptRecordsError
        The first row is no header.

    """
    if not rows or rows[0].get("kind") != "run":
        raise CorruptRecordsError("the records do not start with their header; restore the file or use --overwrite")
    header = dict(rows[0])
    items = [row for row in rows if row["kind"] == "item"]
    known = [row for row in items if "error" not in row]
    index = {row["item"]: position for position, row in enumerate(known)}
    systems: dict[str, Any] = header["systems"]
    seeds = {name: {seed: row for row, seed in enumerate(system["seeds"])} for name, system in systems.items()}
    values: dict[str, dict[str, Floats]] = {name: {} for name in systems}
    middles = {name: np.full((len(seeds[name]), len(known), 96), 255, dtype=np.uint8) for name in systems}
    latest = {(row["system"], row["seed"], row["item"], row["metric"]): row for row in rows if row["kind"] == "score"}
    for row in rows:
        if row["kind"] == "prediction":
            middle = np.array(row["middle"], dtype=np.uint8).reshape(96)  # a shorter one would be repeated
            middles[row["system"]][seeds[row["system"]][row["seed"]], index[row["item"]]] = middle
    for (system, seed, item, metric), row in latest.items():
        column = values[system].setdefault(metric, np.full((len(seeds[system]), len(known)), np.nan))
        column[seeds[system][seed], index[item]] = _number(row.get("value"))
        if "error" in row and metric != NLL:
            # a chunk that is tried again may fail on an item that it had a prediction for
            middles[system][seeds[system][seed], index[item]] = 255
    seen = [row["seen_in_train"] for row in known]
    return Scores(
        header=header,
        item_ids=tuple(index),
        songs=tuple(row["song"] for row in known),
        contexts=np.array([row["tokens"] for row in known], dtype=np.uint8),
        seen=None if None in seen else np.array(seen, dtype=bool),
        values=values,
        scored={name: (found != 255).all(axis=(0, 2)) for name, found in middles.items()},
        middles=middles,
        failures=_failures(items, latest),
        wall_time_sec=sum(row["wall_time_sec"] for row in rows if row["kind"] == "sitting"),
        kernels=tuple(kernels_of(rows)),
    )


def _number(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


def _failures(items: Sequence[Row], latest: Mapping[tuple[str, int, str, str], Row]) -> list[dict[str, Any]]:
    keys = ("item", "system", "seed", "metric", "error")
    failed = [(row["item"], None, None, None, row["error"]) for row in items if "error" in row]
    # without a prediction every metric of it fails, for one reason; the likelihood has its own
    found = {
        (item, system, seed, NLL if metric == NLL else None): row["error"]
        for (system, seed, item, metric), row in latest.items()
        if "error" in row
    }
    return [dict(zip(keys, row, strict=True)) for row in (*failed, *((*who, error) for who, error in found.items()))]


@dataclasses.dataclass(frozen=True, eq=False)
class _View:
    """The scores of some items, and how they are summarised."""

    scores: Scores
    rows: npt.NDArray[np.bool_]
    best: Mapping[str, str]
    confidence: float = 0.95
    n_resamples: int = 1000
    seed: int = 0

    @property
    def variant(self) -> str:
        return str(self.scores.header["variant"])

    @property
    def systems(self) -> dict[str, Any]:
        found: dict[str, Any] = self.scores.header["systems"]
        return found

    def groups(self, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.str_]:
        return np.array(self.scores.songs)[rows]

    def n_scored(self, system: str) -> int:
        return int((self.rows & self.scores.scored[system]).sum())


def summarize(
    scores: Scores,
    best: Mapping[str, str] | None = None,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Work out the tables for all windows and for those whose middle was not seen in training.

    Parameters
    ----------
    scores
        From `collect`.
    best
        Metric -> best baseline on validation, from `best_baselines`; None makes no tests.
    confidence, n_resamples, seed
        Of the intervals; the tests take ten times as many resamples.

    Returns
    -------
    dict
        Subset (``"all"``, ``"unseen"``) -> ``n_items``, ``n_songs``, ``ranking`` and ``scores``: system -> metric ->
        ``value``, ``low``, ``high``, ``n`` items of the subset, ``n_scored``, ``n_defined``, ``seed_std``, for
        divergences ``null``, and where it was compared ``test`` with ``against``, ``difference``, ``p_value``,
        ``p_holm``, ``n``. Undefined is NaN.

    """
    subsets = {"all": np.ones(len(scores.item_ids), dtype=bool)}
    if scores.seen is not None and not scores.seen.all():
        subsets["unseen"] = ~scores.seen
    return {
        name: _table(_View(scores, rows, best or {}, confidence, n_resamples, seed)) for name, rows in subsets.items()
    }


def best_baselines(scores: Scores) -> dict[str, str]:
    """Return metric -> the baseline with the best value, from the records of the validation split.

    A baseline without a defined value cannot be the best; one that was scored on more items comes before one that was
    scored on fewer. Of equals the first in the run's order is taken.
    """
    names = [name for name, system in scores.header["systems"].items() if system["role"] == "baseline"]
    view = _View(scores, np.ones(len(scores.item_ids), dtype=bool), {})
    best = {}
    for metric, info in INPAINTING_METRICS.items():
        sign = 1 if info.direction == "higher" else -1
        found = {name: sign * _value(view, name, metric) for name in names}
        defined = {name: (view.n_scored(name), value) for name, value in found.items() if not math.isnan(value)}
        if defined:
            best[metric] = max(defined, key=lambda name: defined[name])
    return best


def _value(view: _View, system: str, metric: str) -> float:
    if metric in FEATURES:
        reference, estimate, _ = _bins(view, system, metric)
        return float(np.mean(_by_seed(view, reference, estimate))) if estimate.size else math.nan
    values = view.scores.item_means(system, metric)[view.rows & view.scores.scored[system]]
    return float(np.nanmean(values)) if not np.isnan(values).all() else math.nan


def _by_seed(view: _View, reference: Integers, estimate: Integers) -> list[float]:
    """Divergence of each seed; bins (n,) and (seeds, n)."""
    size = n_bins(view.variant)
    return [float(jensen_shannon(masses(reference, size), masses(row, size))) for row in estimate]


def _table(view: _View) -> dict[str, Any]:
    table = {name: _cells(view, name) for name in view.systems}
    ranked = [name for name, system in view.systems.items() if system["role"] in {"model", "baseline"}]
    for name in ranked:
        for metric, test in _tests(view, name).items():
            table[name][metric]["test"] = test
    return {
        "n_items": int(view.rows.sum()),
        "n_songs": len(set(view.groups(view.rows).tolist())),
        "ranking": sorted(ranked, key=lambda name: _rank(table[name][RANKING])),
        "scores": table,
    }


def _rank(cell: Mapping[str, Any]) -> tuple[int, float]:
    value = cell["value"]
    return -cell["n_scored"], math.inf if math.isnan(value) else -value


def _cells(view: _View, system: str) -> dict[str, dict[str, Any]]:
    names = [*INPAINTING_METRICS, *([NLL] if NLL in view.scores.values[system] else [])]
    counts = {"n": int(view.rows.sum()), "n_scored": view.n_scored(system)}
    return {
        metric: (_divergence_cell if metric in FEATURES else _mean_cell)(view, system, metric) | counts
        for metric in names
    }


def _mean_cell(view: _View, system: str, metric: str) -> dict[str, Any]:
    scores = view.scores
    chosen = view.rows if metric == NLL else view.rows & scores.scored[system]
    interval = bootstrap_mean(
        scores.item_means(system, metric)[chosen],
        view.groups(chosen),
        confidence=view.confidence,
        n_resamples=view.n_resamples,
        seed=view.seed,
    )
    values = scores.values[system].get(metric, np.empty((0, len(chosen))))[:, chosen]
    return {
        "value": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "n_defined": interval.n_defined,
        "seed_std": _spread([float(np.nanmean(row)) for row in values if not np.isnan(row).all()]),
    }


def _spread(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def _bins(view: _View, system: str, metric: str) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
    """Return the bins of the reference (n,) and of each seed (seeds, n), and which items these are.

    The control's features are the reference's. Only items that every seed was scored for are compared.
    """
    feature, values = FEATURES[metric], view.scores.values
    control = next(name for name, held in view.systems.items() if held["role"] == "control")
    estimate = values[system].get(feature, np.empty((0, len(view.rows))))
    reference = values[control].get(feature, np.full((1, len(view.rows)), np.nan))[0]
    chosen = view.rows & ~np.isnan(reference) & ~np.isnan(estimate).any(axis=0)
    bins = functools.partial(histogram_bins, variant=view.variant)
    return bins(reference[chosen]), bins(estimate[:, chosen]), chosen


def over_seeds(n_seeds: int, size: int) -> Callable[[Floats, Floats], Floats]:
    """Return the mean divergence over seeds, of histograms that stand side by side: bin `seed * size + bin`.

    The masses come as counts over all items of all seeds, so each seed's sums to 1 / n_seeds.
    """

    def divergence(reference: Floats, estimate: Floats) -> Floats:
        shape = (len(reference), n_seeds, size)
        values = jensen_shannon(n_seeds * reference.reshape(shape), n_seeds * estimate.reshape(shape))
        means: Floats = np.asarray(np.mean(values, axis=-1), dtype=np.float64)
        return means

    return divergence


def side_by_side(bins: Integers, n_rows: int, size: int) -> Integers:
    """Repeat bins (seeds, n) to `n_rows` rows and lay these into one line of n_rows * n bins; -1 stays discarded."""
    rows = np.tile(bins, (n_rows // len(bins), 1))
    offsets = size * np.arange(n_rows)[:, None]
    return np.where(rows < 0, -1, rows + offsets).ravel()


def _divergence_cell(view: _View, system: str, metric: str) -> dict[str, Any]:
    reference, estimate, chosen = _bins(view, system, metric)
    if not estimate.size:
        undefined = dict.fromkeys(("value", "low", "high", "seed_std", "null"), math.nan)
        return {**undefined, "n_defined": 0}
    n_seeds, size, songs = len(estimate), n_bins(view.variant), view.groups(chosen)
    interval = bootstrap_divergence(
        side_by_side(reference[None], n_seeds, size),
        side_by_side(estimate, n_seeds, size),
        np.tile(songs, n_seeds),
        n_bins=n_seeds * size,
        divergence=over_seeds(n_seeds, size),
        upper=INPAINTING_METRICS[metric].high,
        confidence=view.confidence,
        n_resamples=view.n_resamples,
        seed=view.seed,
    )
    null = functools.partial(
        null_divergence,
        n_bins=size,
        divergence=jensen_shannon,
        units=songs,
        n_permutations=view.n_resamples,
        seed=view.seed,
    )
    return {
        "value": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "n_defined": interval.n_defined // n_seeds,
        "seed_std": _spread(_by_seed(view, reference, estimate)),
        "null": float(np.mean([null(reference, row) for row in estimate])),
    }


def _tests(view: _View, system: str) -> dict[str, dict[str, Any]]:
    """Test a system against the best baseline of each metric, with Holm's correction over the metrics."""
    tests = {}
    for metric, against in view.best.items():
        if against != system and against in view.systems:
            compare = _compare_divergences if metric in FEATURES else _compare_means
            test = compare(view, system, against, metric)
            tests[metric] = {"against": against, **test._asdict(), "p_holm": math.nan}
    defined = [row for row in tests.values() if not math.isnan(row["p_value"])]
    if defined:
        for row, p_value in zip(defined, holm([row["p_value"] for row in defined]), strict=True):
            row["p_holm"] = float(p_value)
    return tests


def _compare_means(view: _View, system: str, against: str, metric: str) -> PairedTest:
    return paired_mean_test(
        view.scores.item_means(system, metric)[view.rows],
        view.scores.item_means(against, metric)[view.rows],
        view.groups(view.rows),
        n_resamples=TESTS_PER_RESAMPLE * view.n_resamples,
        seed=view.seed,
    )


def _compare_divergences(view: _View, system: str, against: str, metric: str) -> PairedTest:
    both = _bins(view, system, metric)[2] & _bins(view, against, metric)[2]
    common = dataclasses.replace(view, rows=both)
    reference, a, _ = _bins(common, system, metric)
    _, b, _ = _bins(common, against, metric)
    if not (a.size and b.size):
        return PairedTest(math.nan, math.nan, 0)
    size = n_bins(view.variant)
    # each seed stands in equally many rows
    n_seeds = math.lcm(len(a), len(b))
    test = swap_test_divergence(
        side_by_side(reference[None], n_seeds, size),
        side_by_side(a, n_seeds, size),
        side_by_side(b, n_seeds, size),
        np.tile(view.groups(both), n_seeds),
        n_bins=n_seeds * size,
        divergence=over_seeds(n_seeds, size),
        n_resamples=TESTS_PER_RESAMPLE * view.n_resamples,
        seed=view.seed,
    )
    return test._replace(n=test.n // n_seeds)
