"""What is said of the scores on real recordings: evidence by metric and half, the tables of README and cards."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from analyse import SCALES, badness, evidence, share_not_better
from measure import UNRELATED
from real_measure import RENDERER
from run import HERE, card_of, fill_in, has_card

from music_evals.pipelines.preservation import AUXILIARY, FACETS, PRESERVATION_METRICS

GOALS = {
    "delta_bpm": 0.95, "motif_jaccard": 0.95, "motif_recall": 0.95,
    "segment_ari": 0.92, "boundary_f_measure": 0.92, "voicing_recall": 0.92,
}  # fmt: skip
"""AUC of the own field's changes that is asked for on the test half."""

UNMUSICAL = "noise_alone"


@dataclasses.dataclass(frozen=True)
class RealEvidence:
    """What a main or auxiliary metric makes of the edits of real recordings.

    Parameters
    ----------
    auc, low, high
        P(an edit that changes the own field scores worse than one that keeps it), and its interval by resampled
        sources. NaN where no edit changes the field, or the table has no rule.
    same_music, worst_decile
        Of the edits that change nothing: the median, and the value that one in ten is worse than. Of scores that shall
        be 0, their size.
    unrelated, noise
        Mean over pairs of different artists, and over noise in the place of the music.
    monotone
        Share of steps to the next strength of an edit that do not score better, where it changes the own field.
    noise_order
        The same of the steps from 20 dB of noise to noise alone.
    undefined
        Share of the edits, noise alone left out, for which there is no score.
    n_edits, n_sources
        Edits that are judged, and artists.

    """

    metric: str
    half: str
    auc: float
    low: float
    high: float
    same_music: float
    worst_decile: float
    unrelated: float
    noise: float
    monotone: float
    noise_order: float
    undefined: float
    n_edits: int
    n_sources: int


def real_evidence(scores: pd.DataFrame, plan: Mapping[str, Any], half: str) -> list[RealEvidence]:
    """Return the evidence of every metric and auxiliary metric that was measured, in the order of the catalogue."""
    judged = {item.metric: item for item in evidence(scores, plan, half, RENDERER)}
    rows = scores[scores.half == half]
    return [_of_metric(rows, metric, judged.get(metric), plan, half) for metric in SCALES if metric in rows]


def _of_metric(rows: pd.DataFrame, metric: str, item: Any, plan: Mapping[str, Any], half: str) -> RealEvidence:
    worse = rows.assign(badness=badness(rows[metric], metric))
    edits = worse[(worse.kind != UNRELATED) & (worse.kind != UNMUSICAL)]
    control = edits[edits.kind.isin(plan["control"])].badness.dropna()
    sign = -1.0 if SCALES[metric].direction == "higher" else 1.0
    return RealEvidence(
        metric, half,
        *((item.auc, item.low, item.high) if item else (np.nan,) * 3),
        same_music=sign * control.median(),
        worst_decile=sign * (control.quantile(0.9) if len(control) else np.nan),
        unrelated=sign * worse[worse.kind == UNRELATED].badness.mean(),
        noise=sign * worse[worse.kind == UNMUSICAL].badness.mean(),
        monotone=item.monotone if item else np.nan,
        noise_order=_noise_order(worse, plan["noise_order"]),
        undefined=edits.badness.isna().mean(),
        n_edits=len(edits), n_sources=rows.source.nunique(),
    )  # fmt: skip


def _noise_order(worse: pd.DataFrame, kinds: Sequence[str]) -> float:
    """Return the share of steps to louder noise, within a recording, that do not score better."""
    chain = worse[worse.kind.isin(kinds)].dropna(subset="badness")
    # less signal to noise is louder; noise alone, whose level is given as 0 dB, comes last
    ordered = chain.assign(last=chain.kind == UNMUSICAL).sort_values(["last", "strength"], ascending=[True, False])
    return share_not_better(ordered.groupby("piece").badness)


def write_pages(found: Sequence[RealEvidence], run: Mapping[str, Any]) -> None:
    """Write the tables of README and of each card."""
    for path, text in real_pages(found, run).items():
        fill_in(path, "real", text)


def real_pages(found: Sequence[RealEvidence], run: Mapping[str, Any]) -> dict[Path, str]:
    """Return what README and each card say between their marks."""
    shown = "test" if any(item.half == "test" for item in found) else "development"
    chosen = [item for item in found if item.half == shown]
    pages = {HERE / "README.md": _about(run) + "\n" + evidence_table(found)}
    for metric in (*PRESERVATION_METRICS, *filter(has_card, AUXILIARY)):
        own = [item for item in found if item.metric == metric]
        pages[card_of(metric)] = evidence_table(own) + _verdict(own)
    for facet, metrics in FACETS.items():
        names = [*metrics, *(name for name in AUXILIARY if AUXILIARY[name].facet == facet)]
        pages[card_of(f"{facet}_preservation")] = evidence_table([item for item in chosen if item.metric in names])
    eleven = [item for item in chosen if item.metric in PRESERVATION_METRICS]
    pages[card_of("music_context_preservation")] = evidence_table(eleven)
    return pages


def evidence_table(found: Sequence[RealEvidence]) -> str:
    """Return the table in Markdown."""
    heads = [
        "score", "half", "AUC", "95 % interval", "same music: median", "worst decile", "unrelated", "noise alone",
        "monotone", "noise order", "undefined",
    ]  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for item in found:
        interval = f"{item.low:.2f} to {item.high:.2f}" if item.low == item.low else ""
        numbers = [
            _number(getattr(item, name))
            for name in ("same_music", "worst_decile", "unrelated", "noise", "monotone", "noise_order")
        ]
        cells = [f"`{item.metric}`", item.half, _number(item.auc, 3), interval, *numbers, f"{item.undefined:.0%}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _number(value: float, digits: int = 2) -> str:
    return "" if np.isnan(value) else f"{value + 0.0:.{digits}f}"


def _verdict(own: Sequence[RealEvidence]) -> str:
    """Return the sentence on the goal, where there is one for the metric."""
    if not own:
        return "\nNot measured yet.\n"
    item = own[-1]
    if item.metric not in GOALS:
        return ""
    goal = GOALS[item.metric]
    if item.half != "test":
        return f"\nThe goal is an AUC of {goal} on the test half, which is not measured yet.\n"
    verdict = "reached" if item.auc >= goal else "**missed**"
    return f"\nOn the test half the goal of an AUC of {goal} is {verdict}, with {item.n_sources} artists.\n"


def _about(run: Mapping[str, Any]) -> str:
    programs = ", ".join(f"{name} {version}" for name, version in run["programs"].items())
    halves = " and ".join(
        f"{count} recordings by {run['sources'][half]} artists ({half})" for half, count in run["recordings"].items()
    )
    return f"{halves}, {run['pairs']} pairs.\nEdits by {programs}. Command:\n`{run['command']}`.\n"
