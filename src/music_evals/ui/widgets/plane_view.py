"""One edit by what it did of what was asked, and by what it preserved: its point beside the original unchanged.

A single pair has no controls of its own. Its preservation is placed as `benchmark.tasks.preservation.plane` places it,
between an identical pair (1) and the mean of unrelated pairs (0) that the bars show.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from music_evals.annotations import FACETS
from music_evals.benchmark.formats import plain
from music_evals.benchmark.tasks.preservation.plots import plane_figure
from music_evals.metrics.catalogue import PRESERVATION_METRICS
from music_evals.metrics.edit_success import MEANT_TO_CHANGE
from music_evals.pipelines.edit_success import TargetScore, success_of
from music_evals.pipelines.intervals import mean_of_defined
from music_evals.stats.plane import NO_ELLIPSE
from music_evals.ui.assets import html
from music_evals.ui.widgets.bars import Bar

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["plane_html", "preservation_of"]


def preservation_of(bars: Sequence[Bar], targets: Collection[str]) -> float:
    """Return the mean of the facets of a pair, each the mean of its metrics; NaN where none has both marks.

    Metrics that the kinds of targets are meant to change do not count.
    """
    changed = frozenset[str]().union(*(MEANT_TO_CHANGE[kind] for kind in targets))
    facets: dict[str, list[float]] = {facet: [] for facet in FACETS}
    for bar in bars:
        marks = bar.marks
        if (
            bar.score in PRESERVATION_METRICS
            and bar.score not in changed
            and bar.value is not None
            and marks.keys() == {"best", "chance"}
        ):
            chance = marks["chance"].value
            facets[bar.facet].append((bar.value - chance) / (marks["best"].value - chance))
    return mean_of_defined(list(map(mean_of_defined, facets.values())))


def plane_html(bars: Sequence[Bar], targets: Mapping[str, TargetScore]) -> Markup:
    """Return what became of each target, and the plane where both scores are known; escaped."""
    scores = {"success": success_of(targets), "preservation": preservation_of(bars, targets)}
    point: dict[str, Any] = {"role": "system", "front": False}
    point |= {name: {"value": value, "ellipse": NO_ELLIPSE._asdict()} for name, value in scores.items()}
    unchanged = point | {"role": "control"}
    unchanged |= {name: point[name] | {"value": value} for name, value in (("success", 0.0), ("preservation", 1.0))}
    points = plain({"this edit": point, "the original, unchanged": unchanged})
    shown = plane_figure(points) if None not in (points["this edit"][name]["value"] for name in scores) else ""
    rows = [(kind, score.success, score.verdict, score.reason) for kind, score in targets.items()]
    return html("plane.html", picture=shown, targets=rows)
