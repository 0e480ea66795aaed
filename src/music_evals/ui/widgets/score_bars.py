"""Scores of a pair, each on a bar from its lowest to its highest value with two markers to read it by.

One marker is what a recording scores against itself, the other what unrelated pieces score on average: a score says
something only by where it lies between the two.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from music_evals.benchmark.preservation.plots import RIM
from music_evals.errors import MusicEvalsError
from music_evals.metrics.catalogue import Metric, metric_of
from music_evals.pipelines.preservation import Value

__all__ = ["SCORE_STYLE", "Entry", "entries", "score_bars", "why_no_chance"]

DIRECTIONS: Final = {
    "higher": "higher is better",
    "lower": "lower is better",
    "zero": "nearer to 0 is better",
}

SCORE_STYLE: Final = """
.facets { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(19rem, 100%), 1fr)); gap: .4rem 2rem; }
.facets h3 { margin: .6rem 0 .2rem; font-weight: 600; }
.score { margin: 0 0 .9rem; }
.score-head { display: flex; justify-content: space-between; gap: 1rem; }
.score-head b { font-variant-numeric: tabular-nums; }
.score-head .none { font-weight: 400; color: #e8590c; }
.bar { position: relative; height: .7rem; margin: .25rem .4rem; border-radius: 4px;
  background: var(--background-fill-secondary); border: 1px solid var(--border-color-primary); }
.bar span { position: absolute; top: -.2rem; bottom: -.2rem; width: 0; }
.bar .identical { border-left: 2px solid var(--color-accent); }
.bar .unrelated { border-left: 2px dashed var(--body-text-color-subdued); }
.bar .value { width: .8rem; height: .8rem; top: -.1rem; margin-left: -.4rem; border-radius: 50%; background: #e8590c;
  border: 2px solid var(--background-fill-primary); }
.score-foot { color: color-mix(in srgb, var(--body-text-color) 72%, transparent); font-size: var(--text-xs); }
.score-legend { color: color-mix(in srgb, var(--body-text-color) 72%, transparent); font-size: var(--text-sm); }
.score-legend i { display: inline-block; height: .9em; margin: 0 .3em -.1em .6em; }
"""

LEGEND: Final = (
    '<p class="score-legend"><i style="width:.8em;border-radius:50%;background:#e8590c"></i>this pair'
    '<i style="border-left:2px solid var(--color-accent)"></i>identical pair'
    '<i style="border-left:2px dashed"></i>unrelated pair</p>'
)
"""What the markers mean, in HTML."""

Entry = Mapping[str, Any]
"""One score with what is needed to read it, as plain values: a row of the CSV and an item of the JSON."""


def why_no_chance(entrance: str, variant: str) -> str:
    """Say why the mean over unrelated pairs is no marker for some scores; empty where it is one.

    Parameters
    ----------
    entrance
        ``"audio"`` or ``"symbolic"``.
    variant
        Of the scores.

    Examples
    --------
    >>> why_no_chance("audio", "corrected")
    ''
    >>> why_no_chance("symbolic", "corrected")
    'what unrelated pairs score was measured on recordings: no such marker for scores'

    """
    if entrance != "audio":
        return "what unrelated pairs score was measured on recordings: no such marker for scores"
    if variant != "corrected":
        return "what unrelated pairs score was measured with the corrected formulas: no such marker for this variant"
    return ""


def entries(
    names: Iterable[str], values: Mapping[str, Value], failures: Mapping[str, MusicEvalsError], *, chance: bool
) -> list[Entry]:
    """Return one entry a score.

    Parameters
    ----------
    names
        Scores, in their order.
    values, failures
        Of a `Judgement`; each name is in one of them.
    chance
        Whether the scores' mean over unrelated pairs holds here: it was measured on recordings, with the default
        extractors and the corrected formulas.

    Returns
    -------
    list of Entry
        ``score``, ``facet``, ``title``, ``value`` (None where there is none), ``low``, ``high`` (None without a
        bound), ``direction``, ``identical``, ``unrelated`` (None where it is not known), ``state`` (``"defined"``,
        ``"undefined"``, ``"failed"``) and ``reason``.

    """
    found: list[Entry] = []
    for name in names:
        scale = metric_of(name)
        state, value, reason = _state(name, values, failures)
        known = chance and not math.isnan(scale.chance)
        found.append(
            {
                "score": name,
                "facet": scale.facet,
                "title": scale.heading,
                "value": value,
                "low": _finite(scale.low),
                "high": _finite(scale.high),
                "direction": scale.direction,
                "identical": scale.best,
                "unrelated": scale.chance if known else None,
                "state": state,
                "reason": reason,
            }
        )
    return found


def _state(
    name: str, values: Mapping[str, Value], failures: Mapping[str, MusicEvalsError]
) -> tuple[str, float | None, str]:
    if name in failures:
        return "failed", None, f"{type(failures[name]).__name__}: {failures[name]}"
    value = values[name]
    if math.isnan(value.value):
        return "undefined", None, value.reason
    return "defined", float(value.value), ""


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def score_bars(shown: Iterable[Entry]) -> str:
    """Return scores as HTML, by facet, each with its range, direction and markers; everything is escaped."""
    facets: dict[str, list[str]] = {}
    for entry in shown:
        facets.setdefault(str(entry["facet"]), []).append(_score(entry))
    sections = "".join(
        f"<section><h3>{html.escape(facet.capitalize())}</h3>{''.join(scores)}</section>"
        for facet, scores in facets.items()
    )
    return f'{LEGEND}<div class="facets">{sections}</div>'


def _score(entry: Entry) -> str:
    name, scale = str(entry["score"]), metric_of(str(entry["score"]))
    value = entry["value"]
    told = f"<b>{value:.3g}</b>" if isinstance(value, float) else f'<b class="none">{_none(entry)}</b>'
    reason = f'<div class="score-foot">{html.escape(str(entry["reason"]))}</div>' if entry["reason"] else ""
    return (
        f'<div class="score" data-score="{html.escape(name)}" data-state="{entry["state"]}">'
        f'<div class="score-head"><span>{html.escape(scale.heading)}</span>{told}</div>'
        f'{_bar(entry, scale)}{reason}<div class="score-foot">{html.escape(_foot(entry, scale))}</div></div>'
    )


def _none(entry: Entry) -> str:
    return "undefined" if entry["state"] == "undefined" else "not computed"


def _bar(entry: Entry, scale: Metric) -> str:
    high = RIM.get(str(entry["score"]), scale.high)
    if not math.isfinite(high) or not math.isfinite(scale.low):
        return ""
    marks = [("identical", entry["identical"]), ("unrelated", entry["unrelated"]), ("value", entry["value"])]
    drawn = "".join(
        f'<span class="{kind}" style="left:{100 * _place(at, scale.low, high):.1f}%"></span>'
        for kind, at in marks
        if isinstance(at, float)
    )
    return f'<div class="bar" aria-hidden="true">{drawn}</div>'


def _place(value: float, low: float, high: float) -> float:
    return min(max((value - low) / (high - low), 0.0), 1.0)


def _foot(entry: Entry, scale: Metric) -> str:
    """Say in words what the bar shows."""
    name = str(entry["score"])
    unrelated = entry["unrelated"]
    parts = [
        _range(scale) + (f", drawn to {RIM[name]:g}" if name in RIM else ""),
        DIRECTIONS[scale.direction],
        f"identical pair {scale.best:g}",
        f"unrelated pair about {unrelated:g}" if isinstance(unrelated, float) else "",
    ]
    return "; ".join(filter(None, parts))


def _range(scale: Metric) -> str:
    if math.isfinite(scale.high):
        return f"{scale.low:g} to {scale.high:g}"
    return f"{scale.low:g} and up" if math.isfinite(scale.low) else "any number"
