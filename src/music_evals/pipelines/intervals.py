"""What every evaluation returns of a metric: its mean over items, the interval, and how many items count."""

from __future__ import annotations

import warnings
from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.errors import NoDataError, PairCountError, UndefinedMetricWarning
from music_evals.metrics.catalogue import CATALOGUE
from music_evals.stats import Interval, mean_intervals


def check_pairs(references: Sized, others: Sized, names: str, unit: str, nothing: str) -> None:
    """Raise where references and `names`, one of each a `unit`, differ in number, or are empty: `nothing` says so."""
    if len(references) != len(others):
        raise PairCountError(
            f"{len(references)} references and {len(others)} {names} do not pair up; give one of each {unit}"
        )
    if not len(references):
        raise NoDataError(nothing)


def check_groups(groups: npt.ArrayLike | None, n: int) -> npt.NDArray[Any] | None:
    """Return one label an item, shape (n,), or None."""
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise PairCountError(f"groups must hold one label an item, shape ({n},), got {labels.shape}")
    return labels


def intervals_of_means(
    names: Sequence[str], columns: npt.NDArray[np.float64], groups: npt.ArrayLike | None, confidence: float
) -> list[Interval]:
    """Return the mean of each column of shape (n, metrics), NaN left out, with its interval in the metric's range."""
    known = [CATALOGUE.get(name) for name in names]
    spans = [(-np.inf, np.inf) if metric is None else (metric.low, metric.high) for metric in known]
    unseen = [None if metric is None else metric.unseen for metric in known]
    return mean_intervals(columns, groups, confidence=confidence, spans=spans, unseen=unseen)


def interval_of_rates(
    name: str,
    values: npt.NDArray[np.float64],
    weights: npt.NDArray[np.int64],
    groups: npt.ArrayLike | None,
    confidence: float,
) -> Interval:
    """Return the micro average of rates: an item counts as often as its denominator says, in its cluster."""
    items = np.repeat(np.arange(len(values)), weights)
    clusters = items if groups is None else np.asarray(groups)[items]
    [interval] = intervals_of_means([name], values[items, None], clusters, confidence)
    return interval._replace(n=len(values), n_defined=int((weights > 0).sum()))


def mean_of_defined(values: npt.ArrayLike) -> float:
    """Return the mean of what is defined; NaN where nothing is."""
    array = np.asarray(values, dtype=np.float64)
    defined = array[~np.isnan(array)]
    return float(defined.mean()) if defined.size else float("nan")


def report_means(
    names: Sequence[str], columns: npt.NDArray[np.float64], groups: npt.ArrayLike | None, confidence: float
) -> dict[str, Any]:
    """Return what `report` does of each of `intervals_of_means`."""
    result: dict[str, Any] = {}
    for name, interval in zip(names, intervals_of_means(names, columns, groups, confidence), strict=True):
        result |= report(name, interval, stacklevel=4)
    return result


def report(name: str, interval: Interval, null: float | None = None, *, stacklevel: int = 3) -> dict[str, Any]:
    """Return the keys of one metric, and warn where it is undefined."""
    if np.isnan(interval.estimate):
        msg = f"{name} is undefined: none of the {interval.n} items defines it"
        warnings.warn(msg, UndefinedMetricWarning, stacklevel=stacklevel)
    result: dict[str, Any] = {
        name: interval.estimate,
        f"{name}_ci": (interval.low, interval.high),
        f"{name}_n": interval.n,
        f"{name}_n_defined": interval.n_defined,
        f"{name}_n_clusters": interval.n_clusters,
    }
    if null is not None:
        result[f"{name}_null"] = null
    return result
