"""Features of which an item has many values, such as the intervals of a melody: read from what systems wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.records import REMEDY, Records
from music_evals.errors import CorruptRecordsError, InvalidTokensError

__all__ = ["Bins", "Listed", "read_listed"]

Bins = npt.NDArray[np.int8]
"""Bins of a histogram, shape (..., most) with as many as an item has at most; -1 behind the last of an item."""


class Listed(NamedTuple):
    """How such a feature becomes a histogram."""

    bins: Callable[[npt.NDArray[np.uint8]], Bins]  # what was written, shape (n, steps) -> bins, shape (n, most)
    size: int  # number of bins


def read_listed(records: Records, numbers: npt.NDArray[np.int64], listed: Listed) -> Bins:
    """Return the bins of the predictions in these rows of the records; none for a number of -1."""
    if not len(numbers):
        return np.empty((0, 0), dtype=np.int8)
    order = np.argsort(numbers, kind="stable")
    found: list[tuple[npt.NDArray[np.int64], Bins]] = []
    for batch in records.batches("prediction"):
        place = np.minimum(np.searchsorted(numbers, batch.numbers, sorter=order), len(order) - 1)
        wanted = numbers[order[place]] == batch.numbers
        if wanted.any():
            rows: list[dict[str, Any]] = [row for row, kept in zip(batch.rows(), wanted, strict=True) if kept]
            middles = np.array([row["middle"] for row in rows], dtype=np.uint8)
            try:
                found.append((order[place[wanted]], listed.bins(middles)))
            except InvalidTokensError as error:
                raise CorruptRecordsError(
                    f"the records hold a prediction of other tokens: {error}; {REMEDY}"
                ) from error
    bins = np.full((len(numbers), max((part.shape[1] for _, part in found), default=0)), -1, dtype=np.int8)
    for places, part in found:
        bins[places, : part.shape[1]] = part
    return bins
