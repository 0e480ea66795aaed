"""A score on its range: a bar with a pointer, its direction in words, and markers that give it a meaning.

Plain HTML in the colours of the page, light or dark; it needs no script and shrinks to any width. Its style is part of
`music_evals.ui.frame.CSS`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["BAR_CSS", "Mark", "Range", "number", "range_bar"]

ROOM = 1.25  # a bar without an end is drawn a quarter longer than the largest value on it

DIRECTIONS = {
    "higher": "higher is better →",
    "lower": "← lower is better",
    "zero": "nearer to 0 is better",
    "none": "compared with the reference's own",
}

BAR_CSS = """
.me-bar {margin: .4rem 0 1.2rem}
.me-bar-head {display: flex; flex-wrap: wrap; gap: 0 1rem; justify-content: space-between; align-items: baseline}
.me-bar-value {font-size: 1.5em; font-weight: 700; font-variant-numeric: tabular-nums}
.me-bar-track {position: relative; height: .8rem; margin: 1rem .5rem .3rem; border-radius: .4rem;
  background: var(--border-color-primary)}
.me-bar-mark, .me-bar-point {position: absolute; transform: translateX(-50%)}
.me-bar-mark {top: -.35rem; bottom: -.35rem; width: .15rem; background: var(--me-quiet)}
.me-bar-mark::before {content: attr(data-n); position: absolute; bottom: 100%; left: 50%; font-size: .7rem;
  line-height: 1; transform: translateX(-50%); color: var(--me-quiet)}
.me-bar-point {top: -.25rem; width: 1.3rem; height: 1.3rem; border-radius: 50%; background: var(--color-accent);
  border: .15rem solid var(--body-text-color)}
.me-bar-ends {display: flex; justify-content: space-between; font-size: var(--text-sm);
  color: var(--me-quiet)}
.me-bar-legend {list-style: none; margin: .2rem 0 0; padding: 0; font-size: var(--text-sm)}
"""


class Range(NamedTuple):
    """Range and direction of a score."""

    low: float
    high: float
    direction: str
    """``"higher"``, ``"lower"``, ``"zero"``, or ``"none"``."""


class Mark(NamedTuple):
    """A value that gives a score a meaning."""

    label: str
    """What scores so, such as ``"identical pair"``."""
    value: float


def range_bar(name: str, value: float, span: Range, marks: Sequence[Mark] = (), *, title: str = "") -> str:
    """Return a bar as HTML, everything in it escaped.

    Parameters
    ----------
    name
        Name of the score.
    value
        NaN is shown as undefined, without a pointer.
    span
        Its range; an end that is infinite is drawn a quarter beyond the largest value on the bar.
    marks
        Numbered on the bar and told below it, in this order. Those that are NaN are left out.
    title
        Heading; empty for the name.

    """
    shown = [mark for mark in marks if not math.isnan(mark.value)]
    low, high = _ends(value, span, shown)
    least, most, direction = _end(span.low), _end(span.high), DIRECTIONS[span.direction]
    said = f"{name}: {number(value)} on a scale of {least} to {most}, {direction}"
    pins = "".join(
        f'<span class="me-bar-mark" data-n="{index}" style="left:{_place(mark.value, low, high)}%"></span>'
        for index, mark in enumerate(shown, start=1)
    )
    point = "" if math.isnan(value) else f'<span class="me-bar-point" style="left:{_place(value, low, high)}%"></span>'
    legend = "".join(
        f"<li>{index} {html.escape(mark.label)}: {number(mark.value)}</li>" for index, mark in enumerate(shown, start=1)
    )
    return (
        f'<div class="me-bar" data-score="{html.escape(name)}">'
        f'<div class="me-bar-head"><span>{html.escape(title or name)}</span>'
        f'<span class="me-bar-value">{number(value)}</span></div>'
        f'<div class="me-bar-track" role="img" aria-label="{html.escape(said)}">{pins}{point}</div>'
        f'<div class="me-bar-ends"><span>{least}</span><span>{direction}</span><span>{most}</span></div>'
        + (f'<ul class="me-bar-legend">{legend}</ul>' if legend else "")
        + "</div>"
    )


def number(value: float) -> str:
    """Return a score with three decimals, or ``"undefined"``."""
    return "undefined" if math.isnan(value) else f"{value:.3f}"


def _end(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.3g}"


def _ends(value: float, span: Range, marks: Sequence[Mark]) -> tuple[float, float]:
    """Return the ends that are drawn."""
    known = [abs(part) for part in (value, *(mark.value for mark in marks)) if math.isfinite(part)]
    far = ROOM * max(known, default=0.0) or 1.0
    return (span.low if math.isfinite(span.low) else -far, span.high if math.isfinite(span.high) else far)


def _place(value: float, low: float, high: float) -> str:
    """Return where a value stands, in percent of the bar."""
    return f"{100 * min(max((value - low) / (high - low), 0.0), 1.0):.2f}"
