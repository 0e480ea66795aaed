"""From records to evidence: responses, chance, ceiling, AUC, leakage, monotonicity."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measure import UNRELATED

from music_evals.metrics.catalogue import AUXILIARY, PRESERVATION_METRICS
from music_evals.stats.discrimination import auc, clustered_auc

SCALES = {**PRESERVATION_METRICS, **AUXILIARY}
SAME = "same"


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What one metric can and cannot see, on one half and one renderer.

    Parameters
    ----------
    auc, low, high
        P(a pair whose own field changed scores worse than a pair whose own field is the same), and its interval by
        resampled pieces.
    chance
        Mean over unrelated pairs.
    ceiling
        Mean over the kinds that change nothing: gain, velocity, texture.
    leakage
        Kind -> |AUC - 1/2| of edits that keep the metric's own field but change others, against those kinds.
    shift
        Kind -> by how much its median score differs from the ceiling's: a leak of 0.5 may be a hair's breadth.
    monotone
        Share of steps to the next strength of a kind, within a piece, that do not score better.
    n_undefined
        Pairs of the metric that are NaN.

    """

    metric: str
    half: str
    renderer: str
    auc: float
    low: float
    high: float
    chance: float
    ceiling: float
    leakage: Mapping[str, float]
    shift: Mapping[str, float]
    monotone: float
    n_changed: int
    n_same: int
    n_undefined: int


def load_records(paths: Sequence[Path]) -> pd.DataFrame:
    """Return one row a pair."""
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    return pd.DataFrame(rows).drop(columns="reasons")


def badness(values: pd.Series, metric: str) -> np.ndarray:
    """Return the values turned so that more is worse; of those that shall be 0, their distance from it."""
    scores = values.to_numpy(dtype=np.float64)
    return {"lower": scores, "zero": np.abs(scores)}.get(SCALES[metric].direction, -scores)


def label_table(plan: Mapping[str, Any]) -> pd.DataFrame:
    """Return the label of each field for each (kind, strength)."""
    rows = []
    for kind, facts in plan["kinds"].items():
        for index, strength in enumerate(facts["strengths"]):
            labels = {
                field: label if isinstance(label, str) else label[index]
                for field, label in facts.get("labels", {}).items()
            }
            fields = {field: labels.get(field, SAME) for field in plan["fields"]}
            rows.append({"kind": kind, "strength": float(strength), "rank": index, **fields})
    return pd.DataFrame(rows)


def evidence(records: pd.DataFrame, plan: Mapping[str, Any], half: str, renderer: str) -> list[Evidence]:
    """Return the evidence of every metric that was measured."""
    chosen = records[(records.half == half) & (records.renderer == renderer)]
    labelled = chosen.merge(label_table(plan), on=["kind", "strength"], how="left")
    return [_evidence(labelled, metric, plan, half, renderer) for metric in plan["responds_to"] if metric in chosen]


def _evidence(rows: pd.DataFrame, metric: str, plan: Mapping[str, Any], half: str, renderer: str) -> Evidence:
    rule = plan["responds_to"][metric]
    worse = rows.assign(badness=badness(rows[metric], metric))
    edits = worse[worse.kind != UNRELATED]
    own = edits[rule["field"]]
    changed, same = edits[own.isin(rule["worse"])], edits[own == SAME]
    control = edits[edits.kind.isin(plan["control"])]
    cluster = "source" if "source" in edits else "piece"  # of real recordings, several may be by one artist
    area, low, high = clustered_auc(changed.badness, same.badness, changed[cluster], same[cluster])
    others = list(same[~same.kind.isin(plan["control"])].groupby("kind", sort=False))
    return Evidence(
        metric, half, renderer, area, low, high,
        chance=worse[worse.kind == UNRELATED][metric].mean(),
        ceiling=control[metric].mean(),
        leakage={kind: abs(auc(pairs.badness, control.badness) - 0.5) for kind, pairs in others},
        shift={kind: pairs[metric].median() - control[metric].median() for kind, pairs in others},
        monotone=_monotone(changed),
        n_changed=len(changed), n_same=len(same), n_undefined=int(edits[metric].isna().sum()),
    )  # fmt: skip


def _monotone(changed: pd.DataFrame) -> float:
    """Return the share of steps to the next strength of a kind, within a piece, that do not score better."""
    ordered = changed.dropna(subset="badness").sort_values("rank")
    return share_not_better(ordered.groupby(["piece", "kind"]).badness)


def share_not_better(chains: Any) -> float:
    """Return the share of steps within groups of ordered badness that do not score better; NaN without a step."""
    steps = chains.diff().dropna()
    return float((steps >= -1e-9).mean()) if len(steps) else float("nan")


def responses(records: pd.DataFrame, half: str, renderer: str) -> pd.DataFrame:
    """Return the mean of each metric for each kind and strength, unrelated pairs last; as wide as metrics."""
    chosen = records[(records.half == half) & (records.renderer == renderer)]
    means = chosen.groupby(["kind", "strength"], sort=False)[list(SCALES)].mean()
    counts = chosen.groupby(["kind", "strength"], sort=False).size().rename("n")
    return pd.concat([counts, means], axis=1)
