"""The report of an editing test: every table as CSV and as JSON, and those of the paper in one Markdown file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.benchmark.formats import markdown_rows, plain
from music_evals.benchmark.published import read_published
from music_evals.files import write_atomically
from music_evals.pipelines.editing_test import TABLES
from music_evals.pipelines.study_tables import table_text

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

    Parameters
    ----------
    tables
        From `pipelines.editing_test.evaluate_editing_test`; ``mixed_models`` among them, the rows of
        `mixed.mixed_models`, are written too.
    confidence
        The level that they were made with.

    """
    level = f"{100 * confidence:g} %"
    parts = ["# Editing test", *(f"- {line}" for line in tables["warnings"]), ""]
    parts += ["## Loads and answers", "Mean ± standard deviation, over single edits or ratings and over samples.", ""]
    parts += _markdown(
        ["style", "role", "of", "single", "n", "samples", "n"],
        [
            [row["style"], row["role"], row["name"], _spread(row["mean"], row["sd"]), row["n"],
             _spread(row["sample_mean"], row["sample_sd"]), row["n_samples"]]
            for row in tables["summary"]
        ],
    )  # fmt: skip
    for name, title in _RATIOS.items():
        if not tables.get(name):
            continue
        parts += [f"## {title}", "Proposed / baseline; below 1 the proposed model makes less work.", ""]
        parts += _markdown(
            ["style", "load", "pairs", "mean", "p", "geometric mean", f"{level} by piece", f"{level} by editor"],
            [
                [row["style"], row["load"], row["n"], _spread(row["mean"], row["sd"]), _p(row["p"]),
                 _number(row["geometric_mean"]), _span(row["ci_low"], row["ci_high"]),
                 _span(row["editor_ci_low"], row["editor_ci_high"])]
                for row in tables[name]
            ],
        )  # fmt: skip
    parts += ["## Correlations", "Stars as in the paper, not corrected: * p < .05, ** p < .005.", ""]
    for number, title in _SETS.items():
        parts += [f"### {title}", ""]
        parts += _markdown(
            ["x", "y", "r", "n", "p", "Holm", "BH", f"{level} Fisher", f"{level} by piece"],
            [
                [row["x"], row["y"], f"{_number(row['r'])}{row['stars'].replace('*', chr(92) + '*')}", row["n"],
                 _p(row["p"]), _p(row["p_holm"]), _p(row["p_bh"]), _span(row["ci_low"], row["ci_high"]),
                 _span(row["piece_ci_low"], row["piece_ci_high"])]
                for row in tables["correlations"]
                if row["set"] == number
            ],
        )  # fmt: skip
    parts += ["### The same by other correlations", "Without tests: they say how far r depends on its kind.", ""]
    parts += _markdown(
        ["x", "y", *_READINGS.values()],
        [[row["x"], row["y"], *(_number(row[name]) for name in _READINGS)] for row in tables["correlations"]],
    )
    if tables.get("mixed_models"):
        parts += ["## Mixed model", _MIXED, ""]
        parts += _markdown(
            ["load", "term", "ratio", level, "p", "sd editor", "sd piece", "sd sample", "sd rest", "n"],
            [
                [row["load"], row["term"], _number(row["ratio"]), _span(row["ci_low"], row["ci_high"]), _p(row["p"]),
                 *(_number(row[f"sd_{name}"]) for name in ("editor", "piece", "sample", "residual")), row["n"]]
                for row in tables["mixed_models"]
            ],
        )  # fmt: skip
        parts += [f"- {note}" for note in dict.fromkeys(row["note"] for row in tables["mixed_models"]) if note]
    if tables["style_similarity"]:
        parts += ["## Similarity to styles", "Mean over samples, 1 to 5.", ""]
        parts += _table(tables["style_similarity"])
    parts += ["## The time limit", "", *_table(tables["censoring"]), *_published()]
    return "\n".join(parts).rstrip() + "\n"


def write_report(
    tables: Mapping[str, Any],
    folder: str | os.PathLike[str],
    *,
    confidence: float = 0.95,
    figures: Mapping[str, bytes] | None = None,
) -> dict[str, Path]:
    """Write ``report.md``, ``tables.json`` and one CSV a table, each whole or not at all.

    Parameters
    ----------
    tables, confidence
        As of `report_text`.
    folder
        Where to; it is made.
    figures
        From `figures.draw_figures`, written beside the tables.

    Returns
    -------
    dict
        Name -> path of what was written.

    Raises
    ------
    OutputError
        The folder or a file cannot be written.

    """
    place = Path(folder)
    texts = {"report.md": report_text(tables, confidence=confidence)}
    texts["tables.json"] = json.dumps(plain(tables), indent=1, allow_nan=False) + "\n"
    names = [*(name for name in TABLES if name != "warnings"), "mixed_models"]
    texts |= {f"{name}.csv": table_text(plain(tables[name])) for name in names if tables.get(name)}
    files = {name: text.encode() for name, text in texts.items()} | dict(figures or {})
    return {name: write_atomically(place / name, content, parents=True) for name, content in files.items()}


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
        parts += [f"### {title}, published", "", *_markdown(["samples", *scores], rows)]
    correlations = [
        [x, y, f"{r:.2f}{cells.marks.get(x, {}).get(y, '').replace('*', chr(92) + '*')}"]
        for x, row in cells.means.items()
        for y, r in row.items()
    ]
    return [*parts, "### Correlations, published", "", *_markdown(["x", "y", "r"], correlations)]


def _table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return rows with all of their columns."""
    cells = [[_number(cell) if isinstance(cell, float) else cell for cell in row.values()] for row in rows]
    return _markdown(list(rows[0]), cells)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [markdown_rows([str(cell).replace("|", "\\|") for cell in line] for line in lines), ""]


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _spread(mean: float, sd: float) -> str:
    return f"{_number(mean)} ± {_number(sd)}"


def _span(low: float, high: float) -> str:
    return "-" if math.isnan(low) else f"{low:.2f} to {high:.2f}"


def _p(value: float) -> str:
    return "-" if math.isnan(value) else "< .001" if value < 0.001 else f"{value:.3f}"
