"""The picture of the discrepancy study, in the style of figure 3 of MuChin, as an SVG file that stands alone."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from music_evals.annotations import AUDIO_EFFECTS
from music_evals.benchmark.formats import check_backend, literal
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

LEAST_SONGS: Final = 5
"""A mean of fewer songs has no dot: it is that of a few annotators."""

EFFECTS_SHARE: Final = 0.55  # height of the panel of audio effects, of that of the others
LABEL_WIDTH = 11  # letters that fit below a group
SPREAD = 0.7  # of the room of a group, for the points of its dimensions


def plot_study(study: DiscrepancyStudy) -> str:
    """Draw panels for each grouping: groups of songs along x, a dot with its interval for each dimension."""
    # The first place of each panel is that of all songs. A filled dot differs from the songs outside its group after
    # Holm's correction; the others are hollow. Below each group stands its number of songs; where there are fewer than
    # `LEAST_SONGS`, no dot is drawn. Audio effects have a panel of their own below the other dimensions: to a closed
    # question nearly all songs have one answer, and on one scale the rest would be pressed flat.
    check_backend()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        width, height = PANEL_INCHES
        panels = [(grouping, names) for grouping in study.groups for names in _panels(study.dimensions)]
        shares = [
            EFFECTS_SHARE if names == [AUDIO_EFFECTS] and len(study.dimensions) > 1 else 1.0 for _, names in panels
        ]
        figure = Figure(figsize=(width, height * sum(shares)), layout="constrained")
        rows = figure.subplots(len(panels), 1, squeeze=False, height_ratios=shares)[:, 0]
        for axes, (grouping, names) in zip(rows, panels, strict=True):
            _draw_panel(axes, study, grouping, names)
        known: dict[str, Any] = {}
        for axes in rows:
            known |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        labels, handles = list(known), list(known.values())
        figure.legend(handles, labels, loc="outside right upper", frameon=False)
        settings = study.settings
        how = f"Professionals against amateurs: {settings['level']}, encoder {literal(settings['encoder']['name'])}"
        figure.suptitle(how, x=0.01, ha="left", fontsize=11)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", facecolor="white", metadata={"Date": None, "Creator": None})
    # the date is left out and the names are salted, so that nothing but the numbers decides the text
    return re.sub(r"(?<![ \t])[ \t]+\n", "\n", buffer.getvalue())


def _panels(dimensions: Sequence[str]) -> list[list[str]]:
    """Return the dimensions of each panel: all but the audio effects, and these."""
    others = [name for name in dimensions if name != AUDIO_EFFECTS]
    return [names for names in (others, [name for name in dimensions if name == AUDIO_EFFECTS]) if names]


def _draw_panel(axes: Any, study: DiscrepancyStudy, grouping: str, names: Sequence[str]) -> None:
    chosen = GROUPINGS[grouping]
    keys = [(ALL, ALL, "All songs"), *((grouping, group.name, group.english) for group in chosen.groups)]
    cells = {name: [study.cell(by, group, name) for by, group, _ in keys] for name in names}
    shifts = np.linspace(-SPREAD / 2, SPREAD / 2, len(cells)) if len(cells) > 1 else np.zeros(1)
    for (name, row), shift in zip(cells.items(), shifts.tolist(), strict=True):
        place = list(study.dimensions).index(name)
        style = {"color": COLOURS[place % len(COLOURS)], "marker": MARKS[place % len(MARKS)]}
        _draw_dimension(axes, row, shift, FACING[name].english, style)
    songs = [row.n for row in next(iter(cells.values()))]
    titles = [textwrap.fill(title, LABEL_WIDTH) for *_, title in keys]
    labels = [
        f"{literal(title)}\nn = {n}{'' if n >= LEAST_SONGS else ', hidden'}"
        for title, n in zip(titles, songs, strict=True)
    ]
    axes.set_xticks(range(len(keys)), labels)
    axes.axvline(0.5, color="#999999", linewidth=0.8, linestyle=":")
    axes.set_xlim(-0.5, len(keys) - 0.5)
    axes.grid(axis="y", linewidth=0.4)
    axes.set_axisbelow(True)
    axes.set_ylabel("similarity (low: they differ)")
    effects = ", audio effects" if list(names) == [AUDIO_EFFECTS] and len(study.dimensions) > 1 else ""
    axes.set_title(f"By {chosen.english.lower()}{effects}", loc="left")


def _draw_dimension(axes: Any, row: Sequence[Cell], shift: float, label: str, style: dict[str, Any]) -> None:
    shown = [place for place, cell in enumerate(row) if cell.n_defined >= LEAST_SONGS]
    row = [row[place] for place in shown]
    x = np.array(shown, dtype=np.float64) + shift
    values = np.array([cell.similarity for cell in row])
    ends = np.array([(cell.low, cell.high) for cell in row]).reshape(-1, 2)
    reach = np.abs(ends - values[:, None]).T  # a bootstrap interval need not hold its estimate to the last bit
    axes.errorbar(
        x, values, yerr=reach, **style, linestyle="none", markersize=4, markerfacecolor="white", elinewidth=0.9,
        markeredgewidth=0.9, label=label,
    )  # fmt: skip
    differs = np.array([cell.p_adjusted < 0.05 for cell in row], dtype=bool)
    axes.plot(x[differs], values[differs], **style, linestyle="none", markersize=7)
