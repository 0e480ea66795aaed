"""Pictures of arrangements: melody and accompaniment as piano rolls, one above the other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from music_evals.annotations import Score
from music_evals.errors import NoDataError
from music_evals.symbolic.measures import meter_map

__all__ = ["score_rolls"]

WIDTH, SEMITONE, HEAD, SPACE = 960, 4, 28, 20

_STYLE = """\
svg { background: #fff; font: 14px sans-serif; } text { fill: #222; } .bar { stroke: #ddd; }
.melody { fill: #c2410c; } .accompaniment { fill: #52708f; }
@media (prefers-color-scheme: dark) { svg { background: #171717; } text { fill: #eee; } .bar { stroke: #444; }
.melody { fill: #fb923c; } .accompaniment { fill: #8fb3d9; } }"""


def score_rolls(title: str, scores: Sequence[tuple[str, Score]]) -> str:
    """Return an SVG file with one roll a score, all of one scale in time and pitch.

    Parameters
    ----------
    title
        Stands above all.
    scores
        Label and score, at least one; voice 0 is the melody, all others are accompaniment.

    Raises
    ------
    NoDataError
        There is no score, or none of them has a note.

    """
    pitches = np.concatenate([np.empty(0, dtype=np.uint8), *(score.notes["pitch"] for _, score in scores)])
    if not len(pitches):
        raise NoDataError("there are no notes to draw")
    low, high = int(pitches.min()), int(pitches.max())
    quarters = max(score.end_tick / score.ticks_per_quarter for _, score in scores)
    height = (high - low + 1) * SEMITONE
    parts, top = [], HEAD
    for label, score in scores:
        parts.append(f'<text x="8" y="{top + 14}">{escape(label)}</text>')
        top += SPACE
        scale = WIDTH / quarters / score.ticks_per_quarter
        if len(score.notes):
            lines = meter_map(score).starts.tolist()
            parts += [
                f'<path class="bar" d="M{8 + tick * scale:.1f} {top}v{height}"/>'
                for tick in lines
                if tick * scale <= WIDTH
            ]
        # the melody lies on top of what is under it
        for note in score.notes[np.argsort(score.notes["voice"] == 0, kind="stable")]:
            kind = "accompaniment" if note["voice"] else "melody"
            x, width = 8 + int(note["onset_tick"]) * scale, max(int(note["duration_tick"]) * scale - 0.5, 0.5)
            y = top + (high - int(note["pitch"])) * SEMITONE
            parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{SEMITONE - 1}"/>')
        top += height + SPACE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 16}" height="{top}" role="img" '
        f'aria-label="{escape(title, quote=True)}"><style>{_STYLE}</style>'
        f'<text x="8" y="18" font-weight="bold">{escape(title)}</text>{"".join(parts)}</svg>\n'
    )
