"""Tables that a reader should know by name, the scores that lead them, and tables of papers.

A preset is recognised by the content of its references, not by names, which other data may share. Tables of papers are
"published, not re-run": they stand in tables of their own, whose headings say under which conditions they were made,
and are never ranked.
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
from music_evals.metrics.catalogue import DESCRIPTION_SCORES, LYRIC_SCORES, PRESERVATION_METRICS, metric_of

PUBLISHED = "published, not re-run"  # why rows of papers have no rank

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
    "lyrics": "lyric_structure_gated",
    "descriptions": "tag_semantic_similarity",
    "style-transfer": "piano_roll_error_rate_hidden_8",
}
"""Task -> the metric of the first column, if any system has it."""


class Preset(NamedTuple):
    """A table that a reader should know by name, and what its settings must say."""

    name: str
    task: str
    settings: Mapping[str, Any]


PRESETS: Final = (
    Preset("Score inpainting: JSB Chorales", "inpainting", {"references": "16380cc094b97a30", "variant": "corrected"}),
    Preset(
        "Score inpainting: JSB Chorales, the published protocol",
        "inpainting",
        {"references": "80481267c7903c0f", "variant": "official"},
    ),
    Preset(
        "Style transfer: cells of chorales",
        "style-transfer",
        {"references": "b6a38c53bde81fe8", "option kind": "cells"},
    ),
)
"""What comes first, in this order; a test makes the hashes from the data sets."""


class PublishedTable(NamedTuple):
    """A table of a paper: its task, its name, and the conditions under which its rows were made."""

    task: str
    name: str
    conditions: str


PUBLISHED_TABLES: Final = (
    PublishedTable(
        "inpainting", "MUSIB, table 3", "the authors' code, 18 contexts of their JSB Chorales, transposed at random"
    ),
    PublishedTable(
        "preservation", "MuseCPBench, table 2", "the authors' code, the sources, tools and lengths of each row its own"
    ),
    PublishedTable(
        "lyrics", "MuChin, table 1", "the authors' code, songs and prompt, texts scored as they were written"
    ),
    PublishedTable(
        "descriptions",
        "MuChin, table 2",
        "the authors' code and songs, bge-large-zh-v1.5, tags named by their clusters",
    ),
)


def fits(preset: Preset, settings: Mapping[str, Any]) -> bool:
    """Tell whether the settings of a table are those that a preset asks for."""
    return all(settings.get(key) == value for key, value in preset.settings.items())


def _printed(task: str) -> dict[str, Any]:
    """Return the published table of a task: `source`, `table`, `differences` and, where it is printed, `spread`."""
    if task == "preservation":
        return published_preservation(PRESERVATION_METRICS)
    if task == "lyrics":
        return published_lyrics(LYRIC_SCORES)
    return published_descriptions(DESCRIPTION_SCORES) if task == "descriptions" else published_section()


def published_table(table: PublishedTable) -> Row:
    """Return a table of a paper in the form of `tables.make_leaderboard`, with the digits that it prints."""
    printed = _printed(table.task)
    metrics = dict.fromkeys(metric for scores in printed["table"].values() for metric in scores)
    decimals = {
        metric: max(
            len(repr(scores[metric]).partition(".")[2]) for scores in printed["table"].values() if metric in scores
        )
        for metric in metrics
    }
    undefined = dict.fromkeys(("low", "high", "floor", "n", "n_defined", "n_failed", "rank", "place", "by_value"))
    rows = []
    for system, scores in printed["table"].items():
        row = {"label": system, "system": system, "kind": "published", "why": PUBLISHED, "source": printed["source"]}
        row |= dict.fromkeys(("remark", "role", "content", "submitter", "date"), "") | {"mean_rank": None}
        cells = {}
        for metric, value in scores.items():
            spread = printed.get("spread", {}).get(system, {}).get(metric)
            cells[metric] = {
                "value": value,
                **undefined,
                "why": PUBLISHED,
                "shown": f"{value:.{decimals[metric]}f}",
                "interval": "" if spread is None else f"sd {spread:.{decimals[metric]}f}",
                **dict.fromkeys(("mark", "record", "run"), ""),
            }
        rows.append(row | {"cells": cells})
    columns = [
        {"id": name, "metric": name, "title": metric_of(name).heading, "direction": metric_of(name).direction}
        | {"extractors": {}, "differs": "", "n_ranked": 0}
        for name in metrics
    ]
    return {
        "id": f"published-{table.task}",
        "title": f"{TASK_NAMES[table.task]}: {table.name} as published, not re-run ({table.conditions})",
        "task": table.task,
        "preset": None,
        "settings": {"conditions": table.conditions, "source": printed["source"]},
        "apart": [],
        "notes": ["not to be compared with rows of other tables: other data, other code"],
        "headline": HEADLINES[table.task] if HEADLINES[table.task] in metrics else next(iter(metrics)),
        "columns": columns,
        "rows": rows,
        "tests": [],
        "n_tests": 0,
        "published": {"source": printed["source"], "differences": printed["differences"]},
    }
