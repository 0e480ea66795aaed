"""Tables that a reader should see first, their headlines, and the rows of papers beside ours.

Tables of papers stand beside ours as "published, not re-run" and are never ranked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from music_evals.benchmark.published import (
    published_descriptions,
    published_lyrics,
    published_preservation,
    published_section,
)
from music_evals.metrics.catalogue import DESCRIPTION_SCORES, LYRIC_SCORES, PRESERVATION_METRICS

__all__ = ["HEADLINES", "PRESETS", "PUBLISHED", "TASK_NAMES", "Preset", "add_published", "fits", "published"]

PUBLISHED = "published, not re-run"
"""Why rows of papers have no rank."""

Row = dict[str, Any]

TASK_NAMES: Final = {
    "inpainting": "Score inpainting",
    "preservation": "Music editing: what is preserved",
    "lyrics": "Structured lyrics",
    "descriptions": "Music description",
    "style-transfer": "Style transfer",
}
HEADLINES: Final = {
    "inpainting": "note_f1",
    "preservation": "chroma_dtw_similarity",
    "lyrics": "lyric_structure_corrected",
    "descriptions": "tag_semantic_similarity",
    "style-transfer": "piano_roll_error_rate_hidden_8",
}
"""Task -> the metric that a table is sorted by at first; one that none of its systems has makes way for the first."""


class Preset(NamedTuple):
    """A table that a reader should see first: what its settings must say, and whether a paper has rows for it."""

    name: str
    task: str
    settings: Mapping[str, Any]
    is_published: bool = True


PRESETS: Final = (
    Preset(
        "Score inpainting: JSB Chorales",
        "inpainting",
        {"dataset": "jsb_chorales", "config": "musib", "split": "test", "variant": "corrected"},
        is_published=False,
    ),
    Preset(
        "Score inpainting: JSB Chorales, the published conditions",
        "inpainting",
        {"dataset": "jsb_chorales", "config": "musib_official", "split": "test", "variant": "official"},
    ),
    Preset(
        "Music editing: MedleyDB",
        "preservation",
        {"dataset": "medleydb_editing", "split": "test", "variant": "corrected"},
    ),
    Preset(
        "Structured lyrics: CaiMD",
        "lyrics",
        {"dataset": "caimd", "config": "v2", "split": "test", "variant": "official", "option normalise": True},
    ),
    Preset(
        "Music description: CaiMD",
        "descriptions",
        {"dataset": "caimd", "config": "v2", "split": "test", "variant": "mean"},
    ),
    Preset(
        "Style transfer: cells of chorales",
        "style-transfer",
        {"dataset": "jsb_chorales", "config": "style", "split": "test", "option kind": "cells"},
        is_published=False,
    ),
)
"""What comes first, in this order; where there are no results yet, the published table stands alone."""


def fits(preset: Preset, settings: Mapping[str, Any]) -> bool:
    """Tell whether the settings of a table are those that a preset asks for."""
    return all(settings.get(key) == value for key, value in preset.settings.items())


def published(task: str) -> dict[str, Any]:
    """Return the published table of a task: `source`, `table`, `differences` and, where it is printed, `spread`."""
    if task == "preservation":
        return published_preservation(PRESERVATION_METRICS)
    if task == "lyrics":
        return published_lyrics(LYRIC_SCORES)
    return published_descriptions(DESCRIPTION_SCORES) if task == "descriptions" else published_section()


def add_published(table: Row) -> None:
    """Put the rows of a paper below ours, in the first column of each metric, with the digits that it prints."""
    printed = published(table["task"])
    columns: dict[str, str] = {}
    for column in table["columns"]:
        columns.setdefault(column["metric"], column["id"])
    decimals: dict[str, int] = {}
    for metric, value in (pair for scores in printed["table"].values() for pair in scores.items()):
        decimals[metric] = max(decimals.get(metric, 0), len(repr(value).partition(".")[2]))
    undefined = dict.fromkeys(("low", "high", "floor", "n", "n_defined", "n_failed", "rank"))
    for system, scores in printed["table"].items():
        row = {"label": system, "system": system, "kind": "published", "why": PUBLISHED, "source": printed["source"]}
        row |= dict.fromkeys(("remark", "role", "content", "submitter", "date"), "")
        cells = {}
        for metric in scores.keys() & columns.keys():
            spread = printed.get("spread", {}).get(system, {}).get(metric)
            cells[columns[metric]] = {
                "value": scores[metric],
                **undefined,
                "why": PUBLISHED,
                "shown": f"{scores[metric]:.{decimals[metric]}f}",
                "interval": "" if spread is None else f"sd {spread:.{decimals[metric]}f}",
                **dict.fromkeys(("record", "run"), ""),
            }
        table["rows"].append(row | {"cells": dict(sorted(cells.items()))})
    table["published"] = {"source": printed["source"], "differences": printed["differences"]}
