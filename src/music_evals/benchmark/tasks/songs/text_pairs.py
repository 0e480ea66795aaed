"""Pairs of texts: the output of a system for a song, and its reference.

A pair has an item, a system, a group (the cluster of the intervals) and two sides, as in `pairs`; only that the sides
are values in memory, known by a hash of what they hold. A system that made several texts for a song, by several seeds,
has one item for each: the first run keeps the song's id, the others are called ``<id>, run 2`` and so on, whatever the
seeds are, so that systems are compared run by run; all runs of a song are in its group.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from music_evals.benchmark.inputs import some
from music_evals.benchmark.rows import Failure
from music_evals.errors import PairCountError
from music_evals.locations import HASH_DIGITS

__all__ = ["TextPair", "TextPairSet", "TextSide", "check_counts", "run_name", "score_or_reason"]


@dataclasses.dataclass(frozen=True)
class TextSide:
    """A reference or an estimate: a text, or tags."""

    name: str  # what records call it
    value: Any  # what it holds; plain values that JSON can hold

    @property
    def content(self) -> str:
        """Hash of what it holds."""
        text = json.dumps(self.value, ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


@dataclasses.dataclass(frozen=True)
class TextPair:
    """The output of a system for an item, and its reference."""

    item: str
    system: str
    group: str
    modality: str
    reference: TextSide
    estimate: TextSide
    treatment: str = ""


@dataclasses.dataclass(frozen=True)
class TextPairSet:
    """All pairs of one run, without the controls."""

    dataset: Mapping[str, Any]  # ``id``, ``config``, ``split`` and ``revision``, for the receipt
    systems: tuple[str, ...] = ()  # in the order given
    pairs: tuple[TextPair, ...] = ()  # in the order given; a failure is an item of a system without a pair
    failures: tuple[Failure, ...] = ()


def check_counts(pairs: Sequence[TextPair | Failure], where: str) -> None:
    """Raise where a system has two texts for one item."""
    counts = Counter((pair.item, pair.system) for pair in pairs)
    twice = [f"{item} ({system})" for (item, system), count in counts.items() if count > 1]
    if twice:
        raise PairCountError(
            f"{where}: ids must be unique for each system, twice or more: {some(twice)}; give each pair its own id"
        )


def score_or_reason(value: float, reason: str) -> dict[str, Any]:
    """Return a score as `rows.Scorer` gives it: its value, or where that is NaN the reason."""
    return {"value": None, "reason": reason} if math.isnan(value) else {"value": float(value)}


def run_name(item: str, run: int) -> str:
    """Return what an item is called in the run of this number, from 0 on."""
    return item if run == 0 else f"{item}, run {run + 1}"
