"""What the benchmark of inpainting hands to the shared results, tables and pages.

Every system with a prediction is tested against the best baseline of each score, which is chosen on the validation
split; note F1 ranks. `inpainting_nll` is compared with nobody: what it counts differs from model to model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from music_evals.benchmark.inpainting.runner import NLL
from music_evals.benchmark.published import published_section
from music_evals.benchmark.results import WHOLE, Found, ScoreTask
from music_evals.metrics.catalogue import Scale
from music_evals.pipelines.inpainting import FEATURES, INPAINTING_METRICS, NLL_INFO
from music_evals.protocols import CONTROL

__all__ = ["FLOOR", "HEADINGS", "INPAINTING", "OFFICIAL", "RANKING", "SUBSETS"]

OFFICIAL = "official"

RANKING = "note_f1"
"""Rankings use it: the accuracies are conditional on shared onsets, and one sure note would score 1."""

HEADINGS = {
    "note_f1": "note F1",
    "position_score": "position",
    "pitch_accuracy": "pitch acc.",
    "rhythm_accuracy": "rhythm acc.",
    "silence_divergence": "silence div.",
    "pitch_class_divergence": "pitch-class div.",
    "groove_divergence": "groove div.",
    NLL: "NLL",
}
"""Metric -> short heading, in the order of the tables: what ranks stands first."""

SUBSETS = {
    WHOLE: "all windows",
    "unseen": "windows whose middle does not occur in the training split",
}

FLOOR = (
    "The noise floor is what a divergence is on average when reference and prediction are swapped at random, song by "
    "song; about half of pure noise lies above it."
)

MIDDLE_STEPS = 96


def _scale(name: str) -> Scale:
    info = NLL_INFO if name == NLL else INPAINTING_METRICS[name]
    facet = "likelihood" if name == NLL else "divergences" if name in FEATURES else "accuracy"
    best = info.high if info.direction == "higher" else info.low
    return Scale(facet, info.low, info.high, info.direction, best, (), HEADINGS[name])


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
    np.array([row["tokens"] for row in found.items.values()], dtype=np.uint8)
    for made in found.predictions.values():
        for middle in made:
            if middle is not None:
                np.array(middle, dtype=np.uint8).reshape(MIDDLE_STEPS)


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
    without_prediction=(NLL,),
    ranked_by=RANKING,
    views=_views,
    view_titles=SUBSETS,
    explained=FLOOR,
)
"""What this benchmark hands to the shared results, tables and pages."""
