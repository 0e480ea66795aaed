"""The report of a listening test: one Markdown file, everything as JSON, and one CSV a table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from music_evals.benchmark.formats import format_interval, format_value, markdown_name, plain
from music_evals.studies.listening.agreement import agreement_text
from music_evals.studies.listening.analysis import TABLES
from music_evals.studies.listening.answers import ListeningTables
from music_evals.studies.listening.screening import rule_texts
from music_evals.studies.listening.settings import ListeningSettings
from music_evals.studies.reports import section, write_report_files

__all__ = ["report_text", "write_report"]

Row = Mapping[str, Any]

_COMPARISONS = {
    "differences": ("difference", "Differences", "The first less the second, in the unit of the scale."),
    "preferences": ("share", "Preferences", "Share of choices in which the first was preferred; 0.5 is chance."),
}
_ORDER = {
    "rating": "How much a rating changes from the first page to the last, against what others say of the same sound.",
    "ab": "How often the first of two sounds was chosen; each sound is first as often as second.",
}


def report_text(
    results: Mapping[str, Any],
    settings: ListeningSettings,
    *,
    confidence: float = 0.95,
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> str:
    """Return the report of what `analysis.evaluate_listening` gave as Markdown.

    `runs` are, by name, how the metrics of runs agree with the listeners (`agreement.agreement_of_run`).
    """
    kind, is_out = settings.type, not all(row["is_kept"] for row in results["listeners"])
    shown = {name: [row for row in results[name] if is_out or row["listeners"] == "kept"] for name in TABLES[1:-1]}
    level = f"{100 * confidence:g} %"
    parts = ["# Listening test", *(f"- {line}" for line in results["warnings"]), ""]
    note = f"Intervals ({level}) are for other listeners and items."
    parts += section(
        "Means", f"Share of its comparisons that a system won; intervals at {level}." if kind == "ab" else note,
        ["question", "system", "of", "mean", level, "sd", "ratings", "listeners", "groups of items"],
        [
            [row["question"], markdown_name(row["system"]), row["listeners"], format_value(row["mean"]),
             _interval(row, "mean"), format_value(row["sd"]), *(row[name] for name in ("n", "n_listeners", "n_groups"))]
            for row in shown["means"]
        ]
    )  # fmt: skip
    for name, (estimate, title, note) in _COMPARISONS.items():
        if shown[name]:
            parts += section(
                title, f"{note} p-values by Holm are corrected over all rows.",
                ["question", "first", "second", "of", estimate, level, "p", "p (Holm)"],
                [
                    [row["question"], markdown_name(row["first"]), markdown_name(row["second"]), row["listeners"],
                     format_value(row[estimate]), _interval(row, estimate), _p(row["p"]), _p(row["p_holm"])]
                    for row in shown[name]
                ]
            )  # fmt: skip
    parts += section(
        "Agreement among listeners", "Krippendorff's alpha: 1 is perfect, 0 is chance.",
        ["question", "listeners", "alpha", "level", "one against the others", "how many", "sounds"],
        [
            [row["question"], row["listeners"], format_value(row["alpha"]), row["level"],
             format_value(row["leave_one_out"]), row["n_listeners"], row["n_stimuli"]]
            for row in results["agreement"]
        ]
    )  # fmt: skip
    parts += section(
        "Order", _ORDER["ab" if kind == "ab" else "rating"], ["question", "effect", "of", "estimate", level],
        [
            [row["question"], row["effect"], row["listeners"], format_value(row["estimate"]),
             _interval(row, "estimate")]
            for row in shown["order"]
        ]
    )  # fmt: skip
    parts += _listeners(results["listeners"], settings)
    for name, made in (runs or {}).items():
        parts += [f"## Metrics of {markdown_name(name)}", "", "```text", agreement_text(made), "```", ""]
    return "\n".join(parts).rstrip() + "\n"


def _listeners(listeners: Sequence[Row], settings: ListeningSettings) -> list[str]:
    """Return the rules of the test, and what became of each listener."""
    rules = "\n".join(f"- {text} (`{mark}`)" for mark, text in rule_texts(settings).items())
    return section(
        "Listeners", f"By the rules of the test, a listener is left out who\n\n{rules}",
        ["listener", "pages", "minutes", "at the server", "checks failed", "spread", "agreement", "kept", "marks"],
        [
            [markdown_name(row["listener"]), row["n_trials"], f"{row['seconds'] / 60:.1f}",
             format_value(row["server_sec"] / 60), f"{row['n_failed']} of {row['n_checks']}",
             format_value(row["spread"]), format_value(row["agreement"]), "no" if row["marks"] else "yes", row["marks"]]
            for row in listeners
        ],
    )  # fmt: skip


def _interval(row: Row, name: str) -> str:
    return format_interval(plain({"low": row["low"], "high": row["high"], "value": row[name]}))


def _p(value: float) -> str:
    return "< .001" if value < 0.001 else format_value(value)


def write_report(
    results: Mapping[str, Any],
    tables: ListeningTables,
    settings: ListeningSettings,
    folder: str | os.PathLike[str],
    *,
    confidence: float = 0.95,
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Path]:
    """Write ``report.md``, ``tables.json`` and one CSV a table into a folder that is made; return name -> path.

    Parameters are those of `report_text`; `tables` are the answers that ``ratings.csv``, ``listening.csv``,
    ``choices.csv`` and ``checks.csv`` are made of. Raises `OutputError` where a file cannot be written.
    """
    about = {"confidence": confidence, "type": settings.type, "rules": rule_texts(settings)}
    content = {**results, "runs": dict(runs or {}), **about}
    rows = {name: getattr(tables, name) for name in ("ratings", "listening", "choices", "checks")}
    rows |= {name: results[name] for name in TABLES[:-1]}
    return write_report_files(
        folder, report_text(results, settings, confidence=confidence, runs=runs), content, rows, {}
    )
