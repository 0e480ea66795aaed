"""The report of a run over lyrics: the shared page, and where the worst texts lost their points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from music_evals.benchmark.cells import format_value
from music_evals.benchmark.report import receipt_section, score_page, shares
from music_evals.benchmark.results import Found

__all__ = ["EXPLAINED", "headers_told", "render_report", "worst_texts"]

EXPLAINED = 10
"""Texts that are explained by default: the worst of each system, to equal shares."""

MOST_LINES = 60
"""Of an explanation in the page; the records hold all."""

TOTAL = "lyric_structure"

STYLE = """
pre { font: .82rem/1.5 ui-monospace, "SF Mono", Menlo, monospace; white-space: pre-wrap; background: var(--raised);
  border-radius: 4px; padding: .8rem 1rem; margin: .4rem 0 1rem; max-width: 76rem; }
"""


def render_report(
    results: Mapping[str, Any], found: Found, *, explained: int = EXPLAINED, sections: Sequence[str] = ()
) -> str:
    """Return the page.

    Parameters
    ----------
    results
        From `score_results.build_results`.
    found
        The records that the results were made of.
    explained
        Texts of which is told where they lost points, and at least one of each system; 0 for none.
    sections
        Further ones, in HTML, before those texts.

    Returns
    -------
    str
        HTML without any outside reference.

    """
    facts = {"variant": results["variant"], **results["options"], "section headers": headers_told(results)}
    receipt = receipt_section(results, found, facts)
    return score_page(
        results, items=[*sections, _explanations(results, found, explained)], receipt=receipt, style=STYLE
    )


def headers_told(header: Mapping[str, Any]) -> str:
    """Return whether the section headers of the patterns had numbers; those of files are as they are."""
    return {True: "numbered", False: "without numbers", None: "as in the files"}[header["numbered"]]


def worst_texts(results: Mapping[str, Any], found: Found) -> list[tuple[Mapping[str, Any], float]]:
    """Return the pairs that are explained, with their totals: by system, the worst first."""
    chosen: list[tuple[Mapping[str, Any], float]] = []
    for system, about in results["systems"].items():
        if about["role"] != "system":
            continue
        pairs = [pair for pair in found.pairs.get(system, []) if (pair["item"], system) in found.explanations]
        judged = [(pair, found.value(pair["item"], system, TOTAL)) for pair in pairs]
        defined = [(pair, total) for pair, total in judged if not math.isnan(total)]
        chosen += sorted(defined, key=lambda row: (row[1], row[0]["item"]))
    return chosen


def _explanations(results: Mapping[str, Any], found: Found, n: int) -> str:
    texts = worst_texts(results, found)
    chosen = shares(texts, n)
    if not chosen:
        return ""
    told = [_explanation(found, pair, total) for pair, total in chosen]
    intro = f"{len(told)} of {len(texts)} texts: the worst of each system by their total."
    return f"<h2>Where points were lost</h2>\n<p>{intro}</p>\n" + "\n".join(told)


def _explanation(found: Found, pair: Mapping[str, Any], total: float) -> str:
    lines = found.explanations[pair["item"], pair["system"]]["lines"]
    more = [f"and {len(lines) - MOST_LINES} more lines in the records"] if len(lines) > MOST_LINES else []
    shown = escape("\n".join([*lines[:MOST_LINES], *more]))
    label = escape(f"{pair['item']}, {pair['system']}")
    return f"<details><summary>{label}: {format_value(total)}</summary><pre>{shown}</pre></details>"
