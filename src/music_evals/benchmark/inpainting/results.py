"""What the benchmark of inpainting hands to the shared results, tables and pages.

Every system with a prediction is tested against the best baseline of each score, which is chosen on the validation
split; note F1 ranks. `inpainting_nll` is compared with nobody: what it counts differs from model to model.

Note F1 rewards monotone output: the commonest pitch at every beat finds many notes. The divergence of melodic intervals
and the rate of repeated notes see it, and stand beside note F1 in every table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.benchmark.inpainting.runner import COMPANION, EXTENSIONS, INTERVALS, NLL
from music_evals.benchmark.listed import Listed
from music_evals.benchmark.published import published_section
from music_evals.benchmark.results import WHOLE, Found, ScoreTask
from music_evals.metrics.catalogue import INPAINTING_METRICS, Metric, metric_of
from music_evals.metrics.melodic_intervals import INTERVAL_BINS, interval_bins
from music_evals.pipelines.inpainting import FEATURES
from music_evals.protocols import CONTROL

__all__ = ["FLOOR", "HEADINGS", "INPAINTING", "OFFICIAL", "RANKING", "SUBSETS"]

OFFICIAL = "official"

RANKING = "note_f1"
"""Rankings use it: the accuracies are conditional on shared onsets, and one sure note would score 1."""

HEADINGS = {
    name: metric_of(name).heading for name in (RANKING, INTERVALS, COMPANION, *INPAINTING_METRICS, *EXTENSIONS, NLL)
}
"""Metric -> short heading, in the order of the tables: what ranks stands first, beside it what sees monotone output."""

SUBSETS = {
    WHOLE: "all windows",
    "unseen": "windows whose middle does not occur in the training split",
}

MONOTONE = (
    "Note F1 rewards monotone output, such as the commonest pitch at every beat: read it beside the divergence of "
    "melodic intervals, and the rate of repeated notes beside that of the reference."
)

FLOOR = (
    "The noise floor is what a divergence is on average when reference and prediction are swapped at random, song by "
    "song; about half of pure noise lies above it."
)


def _scale(name: str) -> Metric:
    """Return a metric as the tables group it."""
    facet = "likelihood" if name == NLL else "divergences" if name in FEATURES else "notes"
    return dataclasses.replace(metric_of(name), facet=facet)


def _how(header: Mapping[str, Any]) -> str:
    protocol = f", protocol {header['protocol']}" if header.get("protocol") else ""
    return f"variant {header['variant']}{protocol}"


def _published(header: Mapping[str, Any]) -> dict[str, Any]:
    if header.get("protocol") == OFFICIAL:
        return published_section()
    return {"source": "", "table": {}, "differences": {}}


def _views(found: Found) -> dict[str, set[str]]:
    """Return all windows, and those whose middle was not seen in training where that is known and not all were."""
    seen = {item: row["seen_in_train"] for item, row in found.items.items()}
    views = {WHOLE: set(seen)}
    if None not in seen.values() and not all(seen.values()):
        views["unseen"] = {item for item, known in seen.items() if not known}
    return views


def _check_tokens(found: Found) -> None:
    """Raise for tokens of another number or size: they would be drawn."""
    for row in found.records.of("item", "prediction"):
        if row["kind"] == "prediction":
            np.array(row["middle"], dtype=np.uint8).reshape(MUSIB_LAYOUT.middle_steps)
        elif "error" not in row:
            np.array(row["tokens"], dtype=np.uint8).reshape(MUSIB_LAYOUT.n_steps)


INPAINTING: Final = ScoreTask(
    name="inpainting",
    title="Score inpainting",
    scales={name: _scale(name) for name in HEADINGS},
    controls=(CONTROL,),
    controls_explained=f"{CONTROL}: the true middle.",
    how=_how,
    published=_published,
    items="windows",
    groups="songs",
    finish=_check_tokens,
    divergences=FEATURES,
    listed={INTERVALS: Listed(interval_bins, INTERVAL_BINS)},
    on_request=(COMPANION, *EXTENSIONS),
    without_prediction=(NLL,),
    ranked_by=RANKING,
    views=_views,
    view_titles=SUBSETS,
    explained=f"{MONOTONE} {FLOOR}",
)
"""What this benchmark hands to the shared results, tables and pages."""
