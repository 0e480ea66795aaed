"""The report of a run over lyrics: the shared page, and where the worst texts lost their points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from music_evals.benchmark.cells import format_value
from music_evals.benchmark.report import score_page, shares
from music_evals.benchmark.results import Found
from music_evals.benchmark.templates import render

__all__ = ["EXPLAINED", "headers_text", "render_report", "worst_texts"]

EXPLAINED = 10
"""Texts that are explained by default: the worst of each system, to equal shares."""

MOST_LINES = 60
"""Of an explanation in the page; the records hold all."""

TOTAL = "lyric_structure"


def render_report(
    results: Mapping[str, Any], found: Found, *, explained: int = EXPLAINED, sections: Sequence[str] = ()
) -> str:
    """Return the page."""
    facts = {"variant": results["variant"], **results["options"], "section headers": headers_text(results)}
    return score_page(results, found, facts, items=[*sections, _explanations(found, explained)])


def headers_text(header: Mapping[str, Any]) -> str:
    """Return whether the section headers of the patterns had numbers; those of files are as they are."""
    return {True: "numbered", False: "without numbers", None: "as in the files"}[header["numbered"]]


def worst_texts(found: Found) -> list[tuple[Mapping[str, Any], float]]:
    """Return the pairs that are explained, with their totals: by system, the worst first."""
    chosen: list[tuple[Mapping[str, Any], float]] = []
    for system in found.judged:
        pairs = [pair for pair in found.readable(system) if (pair["item"], system) in found.explanations]
        judged = [(pair, found.value(pair["item"], system, TOTAL)) for pair in pairs]
        defined = [(pair, total) for pair, total in judged if not math.isnan(total)]
        chosen += sorted(defined, key=lambda row: (row[1], row[0]["item"]))
    return chosen


def _explanations(found: Found, n: int) -> str:
    texts = worst_texts(found)
    reported = []
    for pair, total in shares(texts, n):
        lines = found.explanations[pair["item"], pair["system"]]["lines"]
        more = [f"and {len(lines) - MOST_LINES} more lines in the records"] if len(lines) > MOST_LINES else []
        shown = "\n".join([*lines[:MOST_LINES], *more])
        reported.append((f"{pair['item']}, {pair['system']}", format_value(total), shown))
    return (
        render("music_evals.benchmark.songs", "explanations.html", reported=reported, n_texts=len(texts))
        if reported
        else ""
    )
