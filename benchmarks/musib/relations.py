"""How the scores go together: Spearman correlations by item, within a system, and by system, over their means.

Every score is turned so that more is better, but for the rate of repeated notes, which has no better end and stands as
it is. Two scores of the tables are not here: the divergence of intervals, which is of a whole set of predictions and of
no window; and by system the likelihood, of which no two models count the same. By item a score is here that every model
has. Intervals are the middle 95 % over resamples of whole songs; by item the correlation is that of each model, and
then their mean.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from benchmarks.musib.hypotheses import Scores, scores_of
from benchmarks.musib.judging import Judged, design_of
from benchmarks.musib.reasons import NLL
from benchmarks.musib.tables import Row
from scipy import stats

from music_evals.benchmark.tasks.inpainting.runner import INTERVALS
from music_evals.metrics.divergence import histogram_bins, jensen_shannon, n_bins
from music_evals.pipelines.inpainting import FEATURES
from music_evals.protocols import CONTROL

Floats = npt.NDArray[np.float64]

COLUMNS = ("data", "level", "a", "b", "rho", "low", "high", "n", "n_groups")
"""Columns of correlations.csv."""

N_RESAMPLES: Final = 500
LEAST_SYSTEMS: Final = 4
"""With three systems a correlation has four values that it can take."""


def correlation_rows(run: Judged, *, n_resamples: int = N_RESAMPLES, seed: int = 0) -> Iterator[Row]:
    """Yield the correlations of all pairs of scores of an honest run."""
    systems = [name for name in run.found.compared if run.results["systems"][name]["role"] in {"model", "baseline"}]
    models = [name for name in systems if design_of(run.results, name) is not None]
    songs, codes = np.unique(np.array(run.found.songs), return_inverse=True)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(songs), size=(n_resamples, len(songs)))
    key = run.plan.data.key
    if models:
        for row in by_item([scores_of(run, name) for name in models], codes, drawn):
            yield {"data": key, "level": "item", **row, "n_groups": len(songs)}
    if len(systems) >= LEAST_SYSTEMS:
        weights = np.array([np.bincount(row, minlength=len(songs)) for row in drawn], dtype=np.float64)
        values = system_scores(run, systems, codes, np.vstack([np.ones(len(songs)), weights]))
        for row in by_system(values):
            yield {"data": key, "level": "system", **row, "n": len(systems), "n_groups": len(songs)}


def by_item(scores: Sequence[Scores], codes: npt.NDArray[np.intp], drawn: npt.NDArray[np.intp]) -> Iterator[Row]:
    """Yield the mean over models of the correlation of two scores over items."""
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    members = np.split(order, ends[:-1])
    names = [name for name in scores[0].values if all(_varies(one.values[name]) for one in scores)]
    for a, b in itertools.combinations(names, 2):
        pairs = [(_upwards(a, one.values[a]), _upwards(b, one.values[b])) for one in scores]
        resampled = [_mean_rho(pairs, np.concatenate([members[song] for song in row])) for row in drawn]
        low, high = _middle(resampled)
        n = int(np.mean([np.count_nonzero(~np.isnan(first + second)) for first, second in pairs]))
        yield {"a": a, "b": b, "rho": _mean_rho(pairs, np.arange(len(codes))), "low": low, "high": high, "n": n}


def _varies(values: Floats) -> bool:
    return len(np.unique(values[~np.isnan(values)])) > 1


def _upwards(name: str, values: Floats) -> Floats:
    """Turn a score so that more is better; a rate without a better end stays."""
    return -values if name == NLL or name in FEATURES else values


def _mean_rho(pairs: Sequence[tuple[Floats, Floats]], rows: npt.NDArray[np.intp]) -> float:
    """Return the mean correlation over models, of those that have one on these items."""
    found = [_rho(first[rows], second[rows]) for first, second in pairs]
    defined = [value for value in found if not math.isnan(value)]
    return float(np.mean(defined)) if defined else math.nan


def _rho(first: Floats, second: Floats) -> float:
    """Return the correlation of ranks over what both define; NaN where one of them is constant."""
    both = ~np.isnan(first + second)
    if np.count_nonzero(both) < 3:
        return math.nan
    ranks = stats.rankdata(first[both]), stats.rankdata(second[both])
    if not (np.ptp(ranks[0]) and np.ptp(ranks[1])):
        return math.nan
    return float(np.corrcoef(*ranks)[0, 1])


def system_scores(
    run: Judged, systems: Sequence[str], codes: npt.NDArray[np.intp], weights: Floats
) -> Mapping[str, Floats]:
    """Return each score of each system, turned upwards, shape (rows, systems), with songs weighted as in each row."""
    found = {}
    for metric in (name for name in run.found.metrics if name not in {NLL, INTERVALS}):
        columns = [
            _divergences(run, system, metric, codes, weights)
            if metric in FEATURES
            else _means(run.found.at(list(run.found.item_rows), system).values(metric)[:, 0], codes, weights)
            for system in systems
        ]
        found[metric] = np.array([_upwards(metric, column) for column in columns]).T
    return found


def _means(values: Floats, codes: npt.NDArray[np.intp], weights: Floats) -> Floats:
    defined = ~np.isnan(values)
    n = weights.shape[1]
    sums = weights @ np.bincount(codes[defined], weights=values[defined], minlength=n)
    counts = weights @ np.bincount(codes[defined], minlength=n)
    means: Floats = np.divide(sums, counts, out=np.full(len(weights), np.nan), where=counts > 0)
    return means


def _divergences(run: Judged, system: str, metric: str, codes: npt.NDArray[np.intp], weights: Floats) -> Floats:
    """Return the divergence of a system from the control with songs weighted, the mean over its seeds."""
    feature, variant = FEATURES[metric], run.results["variant"]
    items, size = list(run.found.item_rows), n_bins(variant)
    reference = run.found.at(items, CONTROL).values(feature)[:, 0]
    rows = run.found.at(items, system).by_seed(feature)
    kept = ~np.isnan(reference) & ~np.isnan(rows).any(axis=0)
    if not len(rows) or not kept.any():
        return np.full(len(weights), np.nan)

    def mass(values: Floats) -> Floats:
        counts = np.zeros((weights.shape[1], size))
        np.add.at(counts, (codes[kept], histogram_bins(values[kept], variant=variant)), 1)
        weighed = weights @ counts
        masses: Floats = weighed / weighed.sum(axis=1, keepdims=True)
        return masses

    truth = mass(reference)
    values: Floats = np.mean([jensen_shannon(truth, mass(row)) for row in rows], axis=0)
    return values


def by_system(values: Mapping[str, Floats]) -> Iterator[Row]:
    """Yield the correlations of the systems' scores; the first row of each holds the data, the others resamples."""
    for a, b in itertools.combinations(values, 2):
        rhos = [_rho(first, second) for first, second in zip(values[a], values[b], strict=True)]
        low, high = _middle(rhos[1:])
        yield {"a": a, "b": b, "rho": rhos[0], "low": low, "high": high}


def _middle(resampled: Sequence[float]) -> tuple[float | None, float | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a score that no resample defines
        low, high = np.nanquantile(resampled, [0.025, 0.975])
    return (None, None) if math.isnan(low) else (float(low), float(high))


def relation_table(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the correlations as lines of a table."""
    head = ["data", "level", "scores", "rho", "interval"]
    lines = [head, ["---", "---", "---", "---:", "---"]]
    for row in rows:
        rho, low, high = (None if row[key] in {"", None} else float(row[key]) for key in ("rho", "low", "high"))
        if rho is not None and not math.isnan(rho):
            interval = "" if low is None or high is None else f"{low:.2f} to {high:.2f}"
            lines.append([row["data"], row["level"], f"{row['a']}, {row['b']}", f"{rho:.2f}", interval])
    return lines
