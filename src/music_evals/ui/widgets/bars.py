"""Scores on their ranges: a bar each, its direction in words, and markers that give the score a meaning.

One marker is the best that can be had, such as what a recording scores against itself; the other is chance, such as
what unrelated pieces score on average. A score says something only by where it lies between the two.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from music_evals.annotations import VOCABULARY_SIZE
from music_evals.metrics.catalogue import metric_of
from music_evals.ui.assets import html

ROOM: Final = 1.25  # a bar without an end is drawn a quarter longer than the largest value on it
DIRECTIONS: Final = {
    "higher": "higher is better",
    "lower": "lower is better",
    "zero": "nearer to 0 is better",
    "none": "compared with the reference's own",
}


@dataclasses.dataclass(frozen=True)
class Mark:
    """A value that gives a score a meaning: the best that can be had, or chance."""

    label: str  # what scores so, such as ``"identical pair"``
    value: float
    about: bool = False  # whether it is a mean of many

    def __str__(self) -> str:
        return f"{self.label} {'about ' if self.about else ''}{self.value:.3g}"


@dataclasses.dataclass(frozen=True)
class Bar:
    """A score with what is needed to read it; a value that is missing (None) comes with its state and reason."""

    score: str
    value: float | None
    low: float
    high: float
    direction: str  # a key of `DIRECTIONS`
    best: Mark | None = None
    chance: Mark | None = None
    title: str = ""
    facet: str = ""
    state: str = "defined"  # ``"defined"``, ``"undefined"`` or ``"failed"``
    reason: str = ""

    @property
    def marks(self) -> dict[str, Mark]:
        """Markers that have a value, by kind."""
        both = {"best": self.best, "chance": self.chance}
        return {kind: mark for kind, mark in both.items() if mark is not None and not math.isnan(mark.value)}

    @property
    def row(self) -> dict[str, Any]:
        """Everything as plain values, for a row of a CSV: what is unbounded or unknown is None."""
        plain = {"low": self.low, "high": self.high, **{kind: mark.value for kind, mark in self.marks.items()}}
        bounds = {name: value if math.isfinite(value) else None for name, value in plain.items()}
        return {
            "score": self.score, "facet": self.facet, "title": self.title, "value": self.value,
            "low": bounds["low"], "high": bounds["high"], "direction": self.direction,
            "identical": bounds.get("best"), "unrelated": bounds.get("chance"),
            "state": self.state, "reason": self.reason,
        }  # fmt: skip


def bar_of(
    score: str, value: float | None, *, modality: str = "", variant: str = "", state: str = "defined", reason: str = ""
) -> Bar:
    """Return a score of any module with its range and the markers that are known for it."""
    # Of music, `modality` (``"audio"`` or ``"symbolic"``) and `variant` say whether the mean over unrelated pairs,
    # which was measured on recordings under the corrected formulas, is a marker.
    metric = metric_of(score)
    best = chance = None
    if score == "inpainting_nll":
        chance = Mark("all tokens equally likely", math.log(VOCABULARY_SIZE))
    elif metric.task == "inpainting":
        best = Mark("the true middle", metric.best)
    elif metric.task == "preservation":
        best = Mark("identical pair", metric.best)
        if not why_no_chance(modality, variant):
            chance = Mark("unrelated pair", metric.chance, about=True)
    if value is not None and math.isnan(value):
        value, state = None, "undefined"
    scale = metric.low, metric.high, metric.direction
    title = metric.heading if metric.task == "preservation" else metric.title
    return Bar(score, value, *scale, best, chance, title, metric.facet, state, reason)


def bars_html(bars: Iterable[Bar], *, headings: bool = True) -> str:
    """Return scores as HTML, by facet, everything escaped."""
    facets: dict[str, list[Mapping[str, Any]]] = {}
    legend: dict[str, str] = {}
    for bar in bars:
        # what the template shows
        points = {**{kind: mark.value for kind, mark in bar.marks.items()}, "value": bar.value}
        known = {kind: value for kind, value in points.items() if value is not None}
        far = ROOM * max((abs(value) for value in known.values() if math.isfinite(value)), default=0.0) or 1.0
        low = bar.low if math.isfinite(bar.low) else -far
        high = bar.high if math.isfinite(bar.high) else far
        spans = f"{bar.low:.3g} to {bar.high:.3g}" if math.isfinite(bar.low) else "any number"
        if math.isinf(bar.high):
            spans = f"{bar.low:g} and up" if math.isfinite(bar.low) else spans
            spans += f", drawn to {high:.3g}"
        facets.setdefault(bar.facet if headings else "", []).append(
            {
                "score": bar.score,
                "title": bar.title or bar.score,
                "facet": bar.facet,
                "state": bar.state,
                "reason": bar.reason,
                "shown": number(bar.value),
                "places": [(kind, 100 * min(max((value - low) / (high - low), 0), 1)) for kind, value in known.items()],
                "foot": "; ".join([spans, DIRECTIONS[bar.direction], *map(str, bar.marks.values())]),
            }
        )
        legend |= {kind: mark.label for kind, mark in bar.marks.items()}
    return html("bars.html", facets=facets, legend=legend)


def number(value: float | None) -> str:
    """Return a score with three decimals, or ``"undefined"``."""
    return "undefined" if value is None or math.isnan(value) else f"{value:.3f}"


def why_no_chance(modality: str, variant: str) -> str:
    """Say why the mean over unrelated pairs is no marker for some scores; empty where it is one."""
    if modality != "audio":
        return "what unrelated pairs score was measured on recordings: no such marker for scores"
    if variant != "corrected":
        return "what unrelated pairs score was measured with the corrected formulas: no such marker for this variant"
    return ""
