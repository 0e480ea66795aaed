"""What every evaluation returns of a metric: its mean over items, the interval, and how many items count."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import PairCountError, UndefinedMetricWarning
from music_evals.stats import resampling

__all__ = ["Options", "check_groups", "intervals_of_means", "report"]


class Options(NamedTuple):
    """How intervals are made."""

    groups: npt.NDArray[Any] | None
    confidence: float
    n_resamples: int
    seed: int


def check_groups(groups: npt.ArrayLike | None, n: int) -> npt.NDArray[Any] | None:
    """Return one label an item, shape (n,), or None.

    Raises
    ------
    PairCountError
        Labels of another shape.

    """
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise PairCountError(f"groups must hold one label an item, shape ({n},), got {labels.shape}")
    return labels


def intervals_of_means(columns: npt.NDArray[np.float64], options: Options) -> list[resampling.Interval]:
    """Return the mean of each column of shape (n, metrics), NaN left out, with its interval; NaN without resamples."""
    if options.n_resamples:
        return resampling.bootstrap_means(columns, **options._asdict())
    defined = (~np.isnan(columns)).sum(axis=0)
    with np.errstate(invalid="ignore"):
        means = np.nansum(columns, axis=0) / defined
    return [
        resampling.Interval(float(mean), np.nan, np.nan, len(columns), int(n))
        for mean, n in zip(means, defined, strict=True)
    ]


def report(name: str, interval: resampling.Interval, null: float | None = None) -> dict[str, Any]:
    """Return the keys of one metric, and warn where it is undefined.

    Parameters
    ----------
    name, interval
        The metric and its value.
    null
        Noise floor of a divergence.

    Warns
    -----
    UndefinedMetricWarning
        No item defines the metric.

    """
    if np.isnan(interval.estimate):
        msg = f"{name} is undefined: none of the {interval.n} items defines it"
        # report -> evaluate_* -> the caller
        warnings.warn(msg, UndefinedMetricWarning, stacklevel=3)
    result: dict[str, Any] = {
        name: interval.estimate,
        f"{name}_ci": (interval.low, interval.high),
        f"{name}_n": interval.n,
        f"{name}_n_defined": interval.n_defined,
    }
    if null is not None:
        result[f"{name}_null"] = null
    return result
