"""Pictures of an editing test, for one's own data what figures 2 to 4 of the paper are for theirs; extra `report`.

Each is SVG, and comes out the same again. The figures of the paper print no numbers; ours show the same relations: how
near samples were found to each style, what effort has to do with answers, and what ratios of effort have to do with
differences of answers.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from music_evals.errors import importing
from music_evals.metrics.editing import LOADS

__all__ = ["draw_figures"]

_COLOURS = {"proposed": "#1f5f8b", "baseline": "#c4622d"}
_MARKS = "osD^vP"
_UNITS = {"time": "time, s", "keyboard": "key presses", "mouse": "mouse clicks"}


def draw_figures(tables: Mapping[str, Any]) -> dict[str, bytes]:
    """Draw the pictures that the tables of `pipelines.editing_test.evaluate_editing_test` have data for.

    ``style_similarity.svg`` where there was a listening test with styles, ``effort_and_answers.svg`` and
    ``ratios_and_differences.svg``. Raises `MissingBackendError` where matplotlib is not installed.
    """
    with importing("report", "the figures of an editing test"):
        from matplotlib import rc_context
    with rc_context({"svg.hashsalt": "music_evals", "svg.fonttype": "none", "font.size": 8}):
        figures = {}
        if tables["style_similarity"]:
            figures["style_similarity.svg"] = _similarity(tables["style_similarity"])
        means, pairs = tables["sample_means"], tables["pairs"]
        questions = [name for name in ("EQ1", "EQ2", "EQ3", "LQ1") if name in means[0]]
        cells = {(row["x"], row["y"]): row for row in tables["correlations"]}
        figures["effort_and_answers.svg"] = _grid(means, list(LOADS), questions, cells, by="role")
        ratios, deltas = [f"ratio_{load}" for load in LOADS], [f"delta_{name}" for name in questions]
        figures["ratios_and_differences.svg"] = _grid(pairs, ratios, deltas, cells, by="style")
        return figures


def _similarity(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Draw figure 2: mean similarity of each kind of samples to each style, 1 to 5."""
    from matplotlib.figure import Figure

    styles = [name for name in rows[0] if name not in {"style", "role", "n_samples"}]
    figure = Figure(figsize=(1.2 + 1.1 * len(rows), 2.6), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(styles)
    for number, style in enumerate(styles):
        places = [place + (number - (len(styles) - 1) / 2) * width for place in range(len(rows))]
        axes.bar(places, [row[style] for row in rows], width, label=style, color=f"C{number}")
    axes.set_xticks(range(len(rows)), [f"to {row['style']},\n{row['role']}" for row in rows])
    axes.set_ylim(1, 5)
    axes.set_ylabel("similarity, 1 to 5")
    axes.legend(frameon=False, ncols=len(styles), loc="upper center", bbox_to_anchor=(0.5, 1.2))
    return _svg(figure)


def _grid(
    rows: Sequence[Mapping[str, Any]],
    xs: Sequence[str],
    ys: Sequence[str],
    cells: Mapping[tuple[str, str], Mapping[str, Any]],
    *,
    by: str,
) -> bytes:
    """Draw figures 3 and 4: a panel for each pair of columns, a mark for each row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.1 * len(xs) + 0.6, 1.7 * len(ys) + 0.6), layout="constrained")
    panels = figure.subplots(len(ys), len(xs), squeeze=False, sharex="col", sharey="row")
    groups = list(dict.fromkeys(row[by] for row in rows))
    for line, y in zip(panels, ys, strict=True):
        for axes, x in zip(line, xs, strict=True):
            for number, group in enumerate(groups):
                chosen = [row for row in rows if row[by] == group]
                axes.scatter(
                    [row[x] for row in chosen], [row[y] for row in chosen], s=14, label=group,
                    marker=_MARKS[number % len(_MARKS)], color=_COLOURS.get(group, f"C{number}"), alpha=0.8,
                )  # fmt: skip
            r = cells[x, y]["r"]
            axes.set_title("r undefined" if math.isnan(r) else f"r = {r:.2f}{cells[x, y]['stars']}", fontsize=8)
            if x.startswith("ratio_"):
                axes.axvline(1, color="#9a9a9a", linewidth=0.8)
                axes.axhline(0, color="#9a9a9a", linewidth=0.8)
        line[0].set_ylabel(y.replace("delta_", "difference of "))
    for axes, x in zip(panels[-1], xs, strict=True):
        load = x.removeprefix("ratio_")
        axes.set_xlabel(_UNITS[load] if load == x else f"ratio of {_UNITS[load].partition(',')[0]}")
    panels[0][0].legend(frameon=False, fontsize=7)
    return _svg(figure)


def _svg(figure: Any) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()
