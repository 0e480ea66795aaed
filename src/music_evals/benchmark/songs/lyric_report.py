"""The report of a run over lyrics: the shared page, and where the worst texts lost their points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.benchmark.cells import format_value
from music_evals.benchmark.report import Ranked, score_page, shares
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


def worst_texts(found: Found) -> list[Ranked]:
    """Return the pairs of each system that are explained, with their totals, the worst first."""
    ranked: list[Ranked] = []
    for system in found.judged:
        pairs = found.readable(system)
        totals = pairs.values(TOTAL)[:, 0]
        shown = np.flatnonzero(found.explanations.there(pairs) & ~np.isnan(totals))
        order = shown[np.argsort(totals[shown], kind="stable")]  # by item where they are equal
        ranked.append((pairs.take(order), totals[order]))
    return ranked


def _explanations(found: Found, n: int) -> str:
    texts = worst_texts(found)
    reported = []
    for pair, total in shares(texts, n):
        lines = found.explanations[pair["item"], pair["system"]]["lines"]
        more = [f"and {len(lines) - MOST_LINES} more lines in the records"] if len(lines) > MOST_LINES else []
        shown = "\n".join([*lines[:MOST_LINES], *more])
        reported.append((f"{pair['item']}, {pair['system']}", format_value(total), shown))
    n_texts = sum(len(pairs) for pairs, _ in texts)
    return (
        render("music_evals.benchmark.songs", "explanations.html", reported=reported, n_texts=n_texts)
        if reported
        else ""
    )
