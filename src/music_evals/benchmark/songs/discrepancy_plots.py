"""The picture of the discrepancy study, in the style of figure 3 of MuChin, as an SVG file that stands alone."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from music_evals.annotations import AUDIO_EFFECTS
from music_evals.benchmark.canvas import check_backend, literal
from music_evals.lyrics.tag_groups import GROUPINGS
from music_evals.pipelines.discrepancy import ALL, FACING, Cell, DiscrepancyStudy

__all__ = ["plot_study"]

PANEL_INCHES: Final = (11.0, 3.6)

# ten colours that also differ in lightness, and ten marks: a line is identified by either
COLOURS: Final = (
    "#332288", "#88ccee", "#44aa99", "#117733", "#999933", "#ddaa33", "#cc6677", "#882255", "#aa4499", "#777777",
)  # fmt: skip
MARKS: Final = "os^vD<>pPX"

STYLE: Final = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "discrepancy",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
}

LABEL_WIDTH = 11  # letters that fit below a group
SPREAD = 0.7  # of the room of a group, for the points of its dimensions


def plot_study(study: DiscrepancyStudy) -> str:
    """Draw a panel for each grouping: groups of songs along x, a line with intervals for each dimension."""
    # The first place of each panel is that of all songs. A filled point differs from the songs outside its group after
    # Holm's correction; the others are hollow. Below each group stands its number of songs. Audio effects are left out
    # beside other dimensions: to a closed question nearly all songs have one answer, and the rest would be pressed
    # flat.
    check_backend()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        width, height = PANEL_INCHES
        figure = Figure(figsize=(width, height * len(study.groups)), layout="constrained")
        rows = figure.subplots(len(study.groups), 1, squeeze=False)[:, 0]
        for axes, grouping in zip(rows, study.groups, strict=True):
            _draw_panel(axes, study, grouping)
        handles, labels = rows[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
        settings = study.settings
        how = f"Professionals against amateurs: {settings['level']}, encoder {literal(settings['encoder']['name'])}"
        figure.suptitle(how, x=0.01, ha="left", fontsize=11)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", facecolor="white", metadata={"Date": None, "Creator": None})
    # the date is left out and the names are salted, so that nothing but the numbers decides the text
    return re.sub(r"[ \t]+\n", "\n", buffer.getvalue())


def _draw_panel(axes: Any, study: DiscrepancyStudy, grouping: str) -> None:
    chosen = GROUPINGS[grouping]
    keys = [(ALL, ALL, "All songs"), *((grouping, group.name, group.english) for group in chosen.groups)]
    names = [name for name in study.dimensions if name != AUDIO_EFFECTS] or study.dimensions
    cells = {name: [study.cell(one, group, name) for one, group, _ in keys] for name in names}
    shifts = np.linspace(-SPREAD / 2, SPREAD / 2, len(cells)) if len(cells) > 1 else np.zeros(1)
    for place, (name, row) in enumerate(cells.items()):
        style = {"color": COLOURS[place % len(COLOURS)], "marker": MARKS[place % len(MARKS)]}
        _draw_dimension(axes, row, float(shifts[place]), FACING[name].english, style)
    songs = [row.n for row in next(iter(cells.values()))]
    titles = [textwrap.fill(title, LABEL_WIDTH) for *_, title in keys]
    labels = [f"{literal(title)}\nn = {n}" for title, n in zip(titles, songs, strict=True)]
    axes.set_xticks(range(len(keys)), labels)
    axes.axvline(0.5, color="#999999", linewidth=0.8, linestyle=":")
    axes.set_xlim(-0.5, len(keys) - 0.5)
    axes.grid(axis="y", linewidth=0.4)
    axes.set_axisbelow(True)
    axes.set_ylabel("similarity (low: they differ)")
    axes.set_title(f"By {chosen.english.lower()}", loc="left")


def _draw_dimension(axes: Any, row: Sequence[Cell], shift: float, label: str, style: dict[str, Any]) -> None:
    x = np.arange(len(row)) + shift
    values = np.array([cell.similarity for cell in row])
    ends = np.array([(cell.low, cell.high) for cell in row])
    reach = np.abs(ends - values[:, None]).T  # a bootstrap interval need not hold its estimate to the last bit
    axes.plot(x[1:], values[1:], color=style["color"], linewidth=0.7, alpha=0.45)
    axes.errorbar(
        x, values, yerr=reach, **style, linestyle="none", markersize=4, markerfacecolor="white", elinewidth=0.9,
        markeredgewidth=0.9, label=label,
    )  # fmt: skip
    differs = np.array([cell.p_adjusted < 0.05 for cell in row])
    axes.plot(x[differs], values[differs], **style, linestyle="none", markersize=4.5)
