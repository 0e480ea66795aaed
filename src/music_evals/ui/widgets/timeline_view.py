"""Timelines of a pair that a player follows, and a list of the places where the two sides disagree.

The picture is the benchmark's (`benchmark.preservation_plots.timeline`); the list says the same for the keyboard and
for readers who do not see it. Whatever carries ``data-sec`` moves the player there.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from music_evals.annotations import Features
from music_evals.benchmark.preservation.plots import (
    PICTURE_STYLE,
    differing_notes,
    differing_spans,
    timeline,
    unmatched,
)
from music_evals.benchmark.preservation.worker import outline
from music_evals.ui.widgets.findings import chord_name

__all__ = ["TIMELINE_STYLE", "Disagreement", "clock", "disagreements", "timeline_html"]

BEAT_TOLERANCE_SEC: Final = 0.07  # these two as in the picture and in the metrics
BOUNDARY_TOLERANCE_SEC: Final = 0.5
SHOWN: Final = 60  # of one kind in the list; all are in the picture
NOTE_NAMES: Final = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")
NO_FEATURES: Final = "Neither side has chords, beats, sections or a melody that could be drawn."

TIMELINE_STYLE: Final = (
    """
.timeline-frame { overflow-x: auto; --raised: var(--background-fill-secondary); --ink: var(--body-text-color);
  --muted: color-mix(in srgb, var(--body-text-color) 72%, transparent); --line: var(--border-color-primary);
  --accent: var(--color-accent); --second: #e8590c; --surface: var(--background-fill-primary); }
.timeline-frame .timeline { min-width: 44rem; cursor: pointer; display: block; }
.disagreements ol { columns: 15rem; margin: .3rem 0; padding: 0; list-style: none; }
.disagreements li { break-inside: avoid; margin: 0 0 .15rem; }
.disagreements button { font: inherit; text-align: left; padding: .1rem .3rem; border-radius: 4px; }
.disagreements button:hover { background: var(--background-fill-secondary); }
.disagreements time { color: #e8590c; font-variant-numeric: tabular-nums; }
"""
    + PICTURE_STYLE
    + "\n.timeline line.playhead { stroke: var(--ink); stroke-width: 1.6; pointer-events: none; }\n"
)
"""For the element that holds `timeline_html`; colours are those of Gradio's theme."""


class Disagreement(NamedTuple):
    """One place where the two sides differ."""

    time_sec: float
    kind: str
    """``"chord"``, ``"beat"``, ``"section"`` or ``"note"``."""
    text: str


def disagreements(original: Mapping[str, Any], edit: Mapping[str, Any]) -> list[Disagreement]:
    """Return the places that the picture colours, by kind, then by time.

    Parameters
    ----------
    original, edit
        From `preservation_worker.outline`. What only one side has is not compared.

    """
    found: list[Disagreement] = []
    for kind, compare in (("chords", _chords), ("beats", _beats), ("segments", _sections), ("melody", _notes)):
        if kind in original and kind in edit:
            found += sorted(compare(original[kind], edit[kind]))
    return found


def _chords(original: Sequence[Any], edit: Sequence[Any]) -> Iterable[Disagreement]:
    for start, end in differing_spans(original, edit):
        was, became = (chord_name(_label_at(side, start, end)) for side in (original, edit))
        yield Disagreement(start, "chord", f"{was} became {became}")


def _label_at(spans: Sequence[Any], start: float, end: float) -> str:
    return next(str(label) for first, last, label in spans if first <= start and end <= last)


def _beats(original: Sequence[float], edit: Sequence[float]) -> Iterable[Disagreement]:
    return _lost_and_new("beat", original, edit, BEAT_TOLERANCE_SEC, "beat")


def _sections(original: Sequence[Any], edit: Sequence[Any]) -> Iterable[Disagreement]:
    first, second = ([start for start, *_ in side[1:]] for side in (original, edit))
    return _lost_and_new("section", first, second, BOUNDARY_TOLERANCE_SEC, "section boundary")


def _lost_and_new(
    kind: str, original: Sequence[float], edit: Sequence[float], tolerance_sec: float, word: str
) -> Iterable[Disagreement]:
    for own, other, title in ((original, edit, "original"), (edit, original, "edit")):
        for time, alone in zip(own, unmatched(own, other, tolerance_sec), strict=True):
            if alone:
                yield Disagreement(time, kind, f"{word} in the {title} only")


def _notes(original: Sequence[Any], edit: Sequence[Any]) -> Iterable[Disagreement]:
    for own, other, title in ((original, edit, "original"), (edit, original, "edit")):
        for (start, _, pitch), alone in zip(own, differing_notes(own, other), strict=True):
            if alone:
                yield Disagreement(start, "note", f"{_note_name(pitch)} in the {title} only")


def _note_name(pitch: float) -> str:
    """Return the name of the nearest note, 60 = C4."""
    nearest = round(pitch)
    return f"{NOTE_NAMES[nearest % 12]}{nearest // 12 - 1}"


def clock(time_sec: float) -> str:
    """Return a time as minutes, seconds and tenths.

    Examples
    --------
    >>> clock(83.46)
    '1:23.5'

    """
    tenths = round(time_sec * 10)
    return f"{tenths // 600}:{tenths // 10 % 60:02d}.{tenths % 10}"


def timeline_html(original: Features, edit: Features) -> str:
    """Return picture and list for the features of a pair, escaped."""
    sides = outline(original), outline(edit)
    if not any(kind in side for side in sides for kind in ("beats", "chords", "segments", "melody")):
        return f"<p>{NO_FEATURES}</p>"
    label = "Timelines of the original and the edit; what differs is listed below the picture"
    picture = timeline(*sides, label=label, playable=True)
    return f'<div class="timeline-frame" tabindex="0" role="group" aria-label="Timelines">{picture}</div>{_list(sides)}'


def _list(sides: tuple[Mapping[str, Any], Mapping[str, Any]]) -> str:
    found = disagreements(*sides)
    words = {"chord": "Chords", "beat": "Beats", "section": "Sections", "note": "Melody"}
    groups = []
    for kind, word in words.items():
        mine = [place for place in found if place.kind == kind]
        if mine:
            entries = "".join(map(_entry, mine[:SHOWN]))
            more = f"<p>and {len(mine) - SHOWN} more, in the picture</p>" if len(mine) > SHOWN else ""
            groups.append(
                f'<details class="disagreements"><summary>{word}: {len(mine)} places differ</summary>'
                f"<ol>{entries}</ol>{more}</details>"
            )
    return "".join(groups) or "<p>Nothing that is drawn differs.</p>"


def _entry(place: Disagreement) -> str:
    return (
        f'<li><button type="button" data-sec="{place.time_sec:.3f}"><time>{clock(place.time_sec)}</time> '
        f"{html.escape(place.text)}</button></li>"
    )
