"""What the benchmark of inpainting hands to the shared results, tables and pages.

Every system with a prediction is tested against the best baseline of each score, which is chosen on the validation
split; note F1 ranks. `inpainting_nll` is not compared between models: what it counts differs from model to model.

Note F1 rewards monotone output: the commonest pitch at every beat finds many notes. The divergence of melodic intervals
and the rate of repeated notes see it, and stand beside note F1 in every table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.benchmark.published import published_section
from music_evals.benchmark.results import WHOLE, ScoreTask
from music_evals.benchmark.scores import HistogramFeature, ScoreTable
from music_evals.benchmark.tasks.inpainting.runner import COMPANION, EXTENSIONS, INTERVALS, NLL
from music_evals.metrics.catalogue import INPAINTING_METRICS, Metric, metric_of
from music_evals.metrics.melodic_intervals import INTERVAL_BINS, interval_bins
from music_evals.pipelines.inpainting import FEATURES
from music_evals.protocols import CONTROLS, NEAR_COPY

__all__ = ["FLOOR", "HEADINGS", "INPAINTING", "OFFICIAL", "RANKING", "SUBSETS"]

OFFICIAL = "official"

PUBLISHED_ON = "jsb_chorales"
"""The data set of the published table: its name, the last part of its folder or of its Hub id."""

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
NEAR, REPEATS = "near copies of training", "repeats in context"

SPLITS: Final[Mapping[str, tuple[Callable[[Any], bool], str, str]]] = {
    "seen_in_train": (bool, "", "unseen"),
    "near_train": (lambda value: value >= NEAR_COPY, NEAR, "no near copies"),
    "repeats_in_context": (lambda value: value >= NEAR_COPY, REPEATS, "does not repeat"),
}
"""Column of the items -> what divides them in two parts, and the names of both; no name, no part."""

MOST_VOICES = 8
"""Where a data set has more voices, there is no part for each: they are names of instruments or files."""

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


def _not_given(header: Mapping[str, Any]) -> dict[str, float]:
    """Return what an empty prediction scores at each metric that defines it: the official accuracies, but not ours."""
    accuracies = ("pitch_accuracy", "rhythm_accuracy") if header["variant"] == OFFICIAL else ()
    return dict.fromkeys((RANKING, "position_score", *accuracies), 0.0)


def _published(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return table 3 of MUSIB where the run is under its conditions and on its data; nothing elsewhere."""
    if header.get("protocol") == OFFICIAL and Path(header["dataset"]["id"]).name == PUBLISHED_ON:
        return published_section()
    return {"source": "", "table": {}, "differences": {}}


def _views(score_table: ScoreTable) -> dict[str, set[str]]:
    """Return all windows, and those whose middle was not seen in training where that is known and not all were."""
    in_train = {item: row["seen_in_train"] for item, row in score_table.item_rows.items()}
    views = {WHOLE: set(in_train)}
    if None not in in_train.values() and not all(in_train.values()):
        views["unseen"] = {item for item, known in in_train.items() if not known}
    return views


def _parts(score_table: ScoreTable) -> dict[str, set[str]]:
    """Return the windows of each part that gets the score that ranks; none where nothing is known that divides them."""
    columns = (*SPLITS, "voice")
    # records of before a column was known do not have it
    known = {item: [row.get(column) for column in columns] for item, row in score_table.item_rows.items()}
    by_column = {column: {item: row[n] for item, row in known.items()} for n, column in enumerate(columns)}
    whole = {column: values for column, values in by_column.items() if None not in values.values()}
    parts: dict[str, set[str]] = {}
    for column, (divides, with_it, without) in SPLITS.items():
        values = whole.get(column, {})
        held = {item for item, value in values.items() if divides(value)}
        if 0 < len(held) < len(values):
            parts |= {with_it: held, without: values.keys() - held}
    voices = whole.get("voice", {})
    names = list(dict.fromkeys(voices.values()))
    if 1 < len(names) <= MOST_VOICES:
        parts |= {f"voice {name}": {item for item, voice in voices.items() if voice == name} for name in names}
    parts.pop("", None)
    return {WHOLE: set(known), **parts} if parts else {}


def _on_parts(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the share of near copies: such windows can be answered from memory."""
    if NEAR in parts:
        near, n = parts[NEAR]["n_items"], parts[WHOLE]["n_items"]
        yield (
            f"{near} of {n} windows ({near / n:.0%}) are near copies of a training passage, up to transposition: the "
            "report and table.md have note F1 with and without them"
        )


def _check_tokens(score_table: ScoreTable) -> None:
    """Raise for tokens of another number or size: they would be drawn."""
    for row in score_table.records.of("item", "prediction"):
        if row["kind"] == "prediction":
            np.array(row["middle"], dtype=np.uint8).reshape(MUSIB_LAYOUT.middle_steps)
        elif "error" not in row:
            np.array(row["tokens"], dtype=np.uint8).reshape(MUSIB_LAYOUT.n_steps)


INPAINTING: Final = ScoreTask(
    name="inpainting",
    title="Score inpainting",
    scales={name: _scale(name) for name in HEADINGS},
    controls=CONTROLS,
    controls_explained=(
        "reference: the true middle. best_lag: of the stretches of its own context the one that has the best note F1 "
        "with the true middle, so that no copy can do better."
    ),
    how=_how,
    published=_published,
    items="windows",
    groups="songs",
    finish=_check_tokens,
    divergences=FEATURES,
    histogram_features={INTERVALS: HistogramFeature(interval_bins, INTERVAL_BINS)},
    on_request=(COMPANION, *EXTENSIONS),
    without_prediction=(NLL,),
    not_given=_not_given,
    ranked_by=RANKING,
    views=_views,
    view_titles=SUBSETS,
    explained=f"{MONOTONE} {FLOOR}",
    parts=_parts,
    on_parts=_on_parts,
)
"""What this benchmark hands to the shared results, tables and pages."""
