"""Labelled intervals brought to the span of the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["crop_to"]

FloatArray = npt.NDArray[np.float64]


def crop_to(
    intervals_sec: FloatArray, labels: Sequence[str], start_sec: float, end_sec: float
) -> tuple[FloatArray, list[str]]:
    """Return what lies between two times; intervals that only touch them are dropped, nothing is added."""
    # `mir_eval.util.adjust_intervals` keeps an interval of no length where one starts exactly at the end.
    inside = (intervals_sec[:, 0] < end_sec) & (intervals_sec[:, 1] > start_sec)
    kept = [label for label, keep in zip(labels, inside, strict=True) if keep]
    return np.clip(intervals_sec[inside], start_sec, end_sec), kept
