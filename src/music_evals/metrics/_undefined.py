"""How a metric of one pair says that it has no value."""

from __future__ import annotations

import warnings

from music_evals.errors import UndefinedMetricWarning

__all__ = ["undefined"]


def undefined(name: str, why: str, *, stacklevel: int = 3) -> float:
    """Return NaN, with an `UndefinedMetricWarning` at the caller of the metric that says why."""
    msg = f"{name} is undefined: {why}"
    warnings.warn(msg, UndefinedMetricWarning, stacklevel=stacklevel)
    return float("nan")
