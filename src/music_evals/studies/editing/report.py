"""The report of an editing test: every table as CSV and as JSON, and those of the paper in one Markdown file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.benchmark.published import read_published
from music_evals.pipelines.editing_test import TABLES
from music_evals.studies.reports import section, write_report_files

__all__ = ["report_text", "write_report"]

_MIXED = (
    "Loads by model and style, with editors, pieces and samples as random terms and the place in the order as a "
    "covariate; standard deviations are of logarithms."
)
_PRINTED = "Lu et al. (ACM MM 2021): 24 samples of six pieces, 12 editors, 31 listeners; their answers are not public."
_RATIOS = {"ratios": "Ratios of effort", "ratios_unmarked": "Ratios of effort without what is marked"}
_SETS = {
    1: "Set 1: loads and answers, over samples",
    2: "Set 2: ratios of loads and differences of answers, over pairs",
    3: "Set 3: answers among themselves, over samples",
    4: "Set 4: differences of answers among themselves, over pairs",
}
_READINGS = {
    "r": "r",
    "spearman": "Spearman",
    "r_within_style": "within styles",
    "r_partial": "within styles and models",
    "r_log": "log ratio",
}


def report_text(tables: Mapping[str, Any], *, confidence: float = 0.95) -> str:
    """Return the report as Markdown: tables 2 to 4 of the paper for the study at hand, and at its end as published.

    The tables are those of `pipelines.editing_test.evaluate_editing_test` at this confidence; ``mixed_models`` among
    them, the rows of `mixed_model.mixed_models`, are written too.
    """
    level = f"{100 * confidence:g} %"
    parts = ["# Editing test", *(f"- {line}" for line in tables["warnings"]), ""]
    parts += section(
        "Loads and answers", "Mean ± standard deviation, over single edits or ratings and over samples.",
        ["style", "role", "of", "single", "n", "samples", "n"],
        [
            [row["style"], row["role"], row["name"], _spread(row["mean"], row["sd"]), row["n"],
             _spread(row["sample_mean"], row["sample_sd"]), row["n_samples"]]
            for row in tables["summary"]
        ]
    )  # fmt: skip
    for name, title in _RATIOS.items():
        if not tables.get(name):
            continue
        parts += section(
            title, "Proposed / baseline; below 1 the proposed model makes less work.",
            ["style", "load", "pairs", "mean", "p", "geometric mean", f"{level} by piece", f"{level} by editor"],
            [
                [row["style"], row["load"], row["n"], _spread(row["mean"], row["sd"]), _p(row["p"]),
                 _number(row["geometric_mean"]), _span(row["ci_low"], row["ci_high"]),
                 _span(row["editor_ci_low"], row["editor_ci_high"])]
                for row in tables[name]
            ]
        )  # fmt: skip
    parts += ["## Correlations", "Stars as in the paper, not corrected: * p < .05, ** p < .005.", ""]
    for number, title in _SETS.items():
        parts += section(
            title, "", ["x", "y", "r", "n", "p", "Holm", "BH", f"{level} Fisher", f"{level} by piece"],
            [
                [row["x"], row["y"], f"{_number(row['r'])}{row['stars'].replace('*', chr(92) + '*')}", row["n"],
                 _p(row["p"]), _p(row["p_holm"]), _p(row["p_bh"]), _span(row["ci_low"], row["ci_high"]),
                 _span(row["piece_ci_low"], row["piece_ci_high"])]
                for row in tables["correlations"]
                if row["set"] == number
            ],
            level=3
        )  # fmt: skip
    by_others = [[row["x"], row["y"], *(_number(row[name]) for name in _READINGS)] for row in tables["correlations"]]
    note = "Without tests: they say how far r depends on its kind."
    parts += section("The same by other correlations", note, ["x", "y", *_READINGS.values()], by_others, level=3)
    if tables.get("mixed_models"):
        parts += section(
            "Mixed model", _MIXED,
            ["load", "term", "ratio", level, "p", "sd editor", "sd piece", "sd sample", "sd rest", "n"],
            [
                [row["load"], row["term"], _number(row["ratio"]), _span(row["ci_low"], row["ci_high"]), _p(row["p"]),
                 *(_number(row[f"sd_{name}"]) for name in ("editor", "piece", "sample", "residual")), row["n"]]
                for row in tables["mixed_models"]
            ]
        )  # fmt: skip
        parts += [f"- {note}" for note in dict.fromkeys(row["note"] for row in tables["mixed_models"]) if note]
    if tables["style_similarity"]:
        parts += section("Similarity to styles", "Mean over samples, 1 to 5.", *_table(tables["style_similarity"]))
    parts += [*section("The time limit", "", *_table(tables["censoring"])), *_published()]
    return "\n".join(parts).rstrip() + "\n"


def write_report(
    tables: Mapping[str, Any],
    folder: str | os.PathLike[str],
    *,
    confidence: float = 0.95,
    figures: Mapping[str, bytes] | None = None,
) -> dict[str, Path]:
    """Write ``report.md``, ``tables.json``, one CSV a table and the figures into a folder; return name -> path.

    Raises `OutputError`: the folder or a file cannot be written.
    """
    names = [*(name for name in TABLES if name != "warnings"), "mixed_models"]
    text, rows = report_text(tables, confidence=confidence), {name: tables.get(name) or () for name in names}
    return write_report_files(folder, text, tables, rows, figures or {})


def _published() -> list[str]:
    """Return tables 2 to 4 of the paper as they are printed."""
    answers, ratios, cells = (read_published(f"bmst_table{number}") for number in (2, 3, 4))
    parts = ["## As published", _PRINTED, ""]
    for title, table in (("Answers", answers), ("Ratios of effort", ratios)):
        scores = list(next(iter(table.means.values())))
        rows = [
            [system, *(_spread(means[score], table.spread[system][score]) for score in scores)]
            for system, means in table.means.items()
        ]
        parts += section(f"{title}, published", "", ["samples", *scores], rows, level=3)
    correlations = [
        [x, y, f"{r:.2f}{cells.marks.get(x, {}).get(y, '').replace('*', chr(92) + '*')}"]
        for x, row in cells.means.items()
        for y, r in row.items()
    ]
    return [*parts, *section("Correlations, published", "", ["x", "y", "r"], correlations, level=3)]


def _table(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Return the head and the cells of rows with all of their columns."""
    return list(rows[0]), [
        [_number(cell) if isinstance(cell, float) else cell for cell in row.values()] for row in rows
    ]


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _spread(mean: float, sd: float) -> str:
    return f"{_number(mean)} ± {_number(sd)}"


def _span(low: float, high: float) -> str:
    return "-" if math.isnan(low) else f"{low:.2f} to {high:.2f}"


def _p(value: float) -> str:
    return "-" if math.isnan(value) else "< .001" if value < 0.001 else f"{value:.3f}"
