"""Pictures of a run as SVG text, for a page that sets their colours: they follow its light or dark theme.

Piano rolls are drawn here; distributions and histograms by matplotlib (extra ``report``), whose fixed colours are
replaced by the variables of the page.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, ContextLayout, Tokens
from music_evals.benchmark.formats import COLOURS, check_backend, figure_of, literal, svg
from music_evals.symbolic import noteseq

__all__ = ["check_backend", "distributions", "divergences", "piano_roll", "song_means"]

Floats = npt.NDArray[np.float64]


def distributions(
    name: str, values: Mapping[str, Floats], highlight: str | None, *, label: str, outside: Collection[str] = ()
) -> str:
    """Draw the scores of each song, one line of dots a system, with the median as a bar.

    The axis shows the systems that are ranked; the median of one that stands `outside` of the ranking, such as the
    control, is written at the edge where it lies beyond.
    """
    low, high = _span([scores for system, scores in values.items() if system not in outside])
    rng = np.random.default_rng(0)  # only moves dots apart, so that equal ones are seen
    figure, axes = figure_of(9, 0.32 * len(values) + 0.9)
    for row, (system, scores) in enumerate(values.items()):
        defined = scores[~np.isnan(scores)]
        colour = COLOURS["accent" if system == highlight else "muted"]
        axes.scatter(defined, row + rng.uniform(-0.2, 0.2, len(defined)), s=14, color=colour, alpha=0.55, linewidths=0)
        if not len(defined):
            continue
        median = float(np.median(defined))
        if low <= median <= high:
            axes.vlines(median, row - 0.36, row + 0.36, color=colour, linewidth=2.5)
        else:
            edge, text, side = (high, f"{median:.2f} →", "right") if median > high else (low, f"← {median:.2f}", "left")
            axes.text(edge, row, text, ha=side, va="center", color=colour)
    axes.set_yticks(range(len(values)), [literal(system) for system in values])
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_xlim(low, high)
    axes.set_xlabel(f"{label}; one dot a song, bar = median")
    axes.grid(axis="x", linewidth=0.6)
    axes.tick_params(length=0)
    medians = ", ".join(
        f"{system} {np.nanmedian(scores):.2f}" for system, scores in values.items() if not np.isnan(scores).all()
    )
    return svg(figure, name, f"{label} by song. Medians: {medians}")


def _span(values: Sequence[Floats]) -> tuple[float, float]:
    """Return the ends of an axis from 0 to 1 that shows some scores, with a little room beside them."""
    shown = np.concatenate([*values, np.empty(0)])
    shown = shown[~np.isnan(shown)]
    if not len(shown) or shown.min() == shown.max():
        return -0.02, 1.02
    low, high = float(shown.min()), float(shown.max())
    room = 0.05 * (high - low)
    return low - room, high + room


def divergences(
    name: str,
    masses: Mapping[str, tuple[Floats, Floats]],
    cells: Mapping[str, Mapping[str, Any]],
    highlight: str | None,
    *,
    label: str,
    feature: str,
    counted: str = "items",
) -> str:
    """Draw histograms of a feature, and beside them each system's divergence with its interval and noise floor."""
    figure, (left, right) = figure_of(10, max(2.6, 0.32 * len(cells) + 0.9), 2)
    colours = [COLOURS["ink"], COLOURS["accent"], COLOURS["second"]]
    for (curve, (edges, mass)), colour in zip(masses.items(), colours, strict=False):
        left.step(edges, mass, where="post", color=colour, linewidth=1.6, label=literal(curve))
    left.set_xlabel(feature)
    left.set_ylabel(f"share of {counted}")
    filled = np.flatnonzero(np.any([mass > 0 for _, mass in masses.values()], axis=0))
    if filled.size:
        first, _ = next(iter(masses.values()))
        width = first[1] - first[0]
        left.set_xlim(first[filled[0]] - 3 * width, first[filled[-1]] + 4 * width)
    left.legend(fontsize=8, frameon=False, labelcolor=COLOURS["ink"])
    for row, (system, cell) in enumerate(cells.items()):
        if cell["value"] is None:
            continue
        colour = COLOURS["accent" if system == highlight else "muted"]
        if cell["low"] is not None and cell["high"] is not None:
            right.hlines(row, cell["low"], cell["high"], color=colour, linewidth=2, alpha=0.5)
        right.scatter([cell["value"]], [row], s=30, color=colour, zorder=3)
        if cell.get("null") is not None:
            right.vlines(cell["null"], row - 0.32, row + 0.32, color=COLOURS["second"], linewidth=2)
    right.set_yticks(range(len(cells)), [literal(system) for system in cells])
    right.set_ylim(len(cells) - 0.5, -0.5)
    right.set_xlim(-0.02, 0.72)
    right.set_xlabel("in nats; line = interval, tick = noise floor")
    right.grid(axis="x", linewidth=0.6)
    right.tick_params(axis="y", length=0)
    reported = ", ".join(f"{system} {cell['value']:.2f}" for system, cell in cells.items() if cell["value"] is not None)
    return svg(figure, name, f"{label}: {reported}. Histograms of the {feature}: {', '.join(masses)}")


_STEP_PX = 2.4
_PITCH_PX = 5


def piano_roll(
    context: Tokens,
    middle: Tokens,
    *,
    label: str,
    layout: ContextLayout = MUSIB_LAYOUT,
    bar_lines: Sequence[int] | None = None,
) -> str:
    """Draw one context with a middle in it: past and future in grey, the middle in the accent colour.

    `bar_lines` are the steps of the bar lines where measures are not those of the layout.
    """
    if bar_lines is None:
        bar_lines = [measure * layout.steps_per_measure for measure in range(layout.n_measures + 1)]
    shown = context.copy()
    shown[layout.middle] = middle
    pitches = np.concatenate([tokens[tokens < 128] for tokens in (context, middle)])
    low, high = (int(pitches.min()), int(pitches.max())) if pitches.size else (60, 60)
    low, high = low - 2, high + 2
    width, height = layout.n_steps * _STEP_PX, (high - low + 1) * _PITCH_PX
    span = _rectangle(layout.middle.start, 0, layout.middle_steps, height, "span")
    bars = "".join(
        f'<line class="bar" x1="{x:g}" x2="{x:g}" y1="0" y2="{height}"/>'
        for x in (line * _STEP_PX for line in bar_lines)
    )
    notes = ""
    for note in noteseq.decode(shown):
        onset, duration, pitch = (int(note[name]) for name in ("onset_tick", "duration_tick", "pitch"))
        kind = "note filled" if layout.middle.start <= onset < layout.middle.stop else "note"
        notes += _rectangle(onset, (high - pitch) * _PITCH_PX, duration, _PITCH_PX, kind)
    return (
        f'<svg class="roll" role="img" aria-label="{html.escape(label, quote=True)}" '
        f'viewBox="0 0 {width:g} {height}">{span}{bars}{notes}</svg>'
    )


def _rectangle(step: int, top: float, steps: int, height: float, kind: str) -> str:
    x, width = step * _STEP_PX, steps * _STEP_PX
    # a hair's breadth between two notes of one pitch, so that they are seen to be two
    gap = 0.8 if kind != "span" else 0
    return f'<rect class="{kind}" x="{x:g}" y="{top:g}" width="{width - gap:g}" height="{height:g}"/>'


def song_means(values: Floats, songs: Sequence[str]) -> Floats:
    """Return the mean of the defined items of each song, shape (songs,), songs in their first order."""
    import pandas as pd

    means: Floats = pd.Series(values).groupby(np.array(songs, dtype=object), sort=False).mean().to_numpy()
    return means
