"""The evidence in pictures: a matrix of responses and one of leakage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from analyse import SCALES, Evidence, label_table

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "preservation_validity"  # the same bytes again
mpl.rcParams["svg.fonttype"] = "none"  # text stays text
from matplotlib import pyplot as plt  # noqa: E402 - after the choice of the backend


def draw_responses(answers: pd.DataFrame, plan: Mapping[str, Any], path: Path) -> None:
    """Draw metrics (columns) against kinds (rows): green is best, red as bad as unrelated music or worse.

    A dot marks the cells where the metric shall answer.
    """
    metrics = list(plan["responds_to"])
    labels = label_table(plan).set_index(["kind", "strength"])
    chance = answers.loc["unrelated", metrics].iloc[0]
    rows = answers.drop("unrelated")[metrics]
    best = pd.Series({metric: SCALES[metric].best for metric in metrics})
    shade = ((rows - chance) / (best - chance)).clip(0, 1)
    figure, axes = plt.subplots(figsize=(9, 0.24 * len(rows) + 1.5), layout="constrained")
    axes.imshow(shade, cmap="RdYlGn", vmin=0, vmax=1, aspect="auto")
    for y, (kind, strength) in enumerate(rows.index):
        for x, metric in enumerate(metrics):
            rule = plan["responds_to"][metric]
            mark = " •" if labels.loc[(kind, strength), rule["field"]] in rule["worse"] else ""
            ink = "black" if 0.15 < shade.iloc[y, x] < 0.9 else "white"
            axes.text(x, y, f"{rows.iloc[y, x]:.2f}{mark}", ha="center", va="center", fontsize=6, color=ink)
    axes.set_xticks(range(len(metrics)), metrics, rotation=35, ha="right", fontsize=7)
    axes.set_yticks(range(len(rows)), [f"{kind} {strength:g}" for kind, strength in rows.index], fontsize=7)
    _save(figure, path)


def draw_leakage(found: Sequence[Evidence], path: Path) -> None:
    """Draw |AUC - 1/2| against the same-music control, for kinds that keep the metric's own field."""
    kinds = list(dict.fromkeys(kind for item in found for kind in item.leakage))
    matrix = np.array([[item.leakage.get(kind, np.nan) for item in found] for kind in kinds])
    figure, axes = plt.subplots(figsize=(9, 0.26 * len(kinds) + 1.5), layout="constrained")
    axes.imshow(matrix, cmap="Reds", vmin=0, vmax=0.5, aspect="auto")
    for (y, x), value in np.ndenumerate(matrix):
        axes.text(x, y, "" if np.isnan(value) else f"{value:.2f}", ha="center", va="center", fontsize=6)
    axes.set_xticks(range(len(found)), [item.metric for item in found], rotation=35, ha="right", fontsize=7)
    axes.set_yticks(range(len(kinds)), kinds, fontsize=7)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
