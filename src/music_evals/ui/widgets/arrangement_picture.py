"""Melody and accompaniment before and after, as piano rolls below each other: SVG for files and pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from music_evals.annotations import Score
from music_evals.symbolic.measures import meter_map

_STYLE = """\
.rolls { background: #fff; font: 14px sans-serif; } .rolls text { fill: #222; } .rolls .bar { stroke: #ccc; }
.rolls .melody { fill: #777; } .rolls .accompaniment { fill: #c2410c; }
@media (prefers-color-scheme: dark) { .rolls { background: #171717; } .rolls text { fill: #eee; }
.rolls .bar { stroke: #444; } .rolls .melody { fill: #aaa; } .rolls .accompaniment { fill: #fb923c; } }"""
_QUARTER_PX, _PITCH_PX, _HEAD_PX, _SPACE_PX = 16, 4, 24, 18


def arrangements_svg(name: str, scores: Sequence[tuple[str, Score]]) -> str:
    """Draw the original and each sample below each other: the melody grey, the accompaniment in colour."""
    pitches = [pitch for _, score in scores for pitch in score.notes["pitch"].tolist()]
    low, high = min(pitches) - 1, max(pitches) + 1
    height = (high - low + 1) * _PITCH_PX
    quarters = max(score.end_tick / score.ticks_per_quarter for _, score in scores)
    parts, y = [f'<text x="8" y="16" font-weight="bold">{escape(name)}</text>'], float(_HEAD_PX)
    for label, score in scores:
        px = _QUARTER_PX / score.ticks_per_quarter
        rects = [
            f'<rect class="{score.voices[note["voice"]]}" x="{8 + px * note["onset_tick"]:.1f}" '
            f'y="{(high - int(note["pitch"])) * _PITCH_PX}" width="{max(px * note["duration_tick"] - 0.5, 1):.1f}" '
            f'height="{_PITCH_PX}"/>'
            for note in score.notes
        ]
        bars = [
            f'<line class="bar" x1="{8 + px * tick:.1f}" x2="{8 + px * tick:.1f}" y1="0" y2="{height}"/>'
            for tick in meter_map(score).starts.tolist()
        ]
        shift = y + _SPACE_PX
        parts += [
            f'<text x="8" y="{y + 12:.0f}">{escape(label)}</text>',
            f'<g class="roll" transform="translate(0 {shift:.0f})">{"".join([*bars, *rects])}</g>',
        ]
        y = shift + height + _SPACE_PX
    return (
        f'<svg class="rolls" role="img" aria-label="{escape(name, quote=True)}" xmlns="http://www.w3.org/2000/svg" '
        f'width="{quarters * _QUARTER_PX + 16:.0f}" height="{y:.0f}">'
        f"<style>{_STYLE}</style>{''.join(parts)}</svg>\n"
    )
