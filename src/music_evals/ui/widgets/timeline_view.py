"""Timelines of a pair that a player follows, and a list of the places where the two sides disagree.

The picture is the benchmark's (`preservation.plots.timeline`); the list says the same for the keyboard and
for readers who do not see it. Whatever carries ``data-sec`` moves the player there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from music_evals.annotations import Features
from music_evals.benchmark.tasks.preservation import plots
from music_evals.benchmark.tasks.preservation.players import clock
from music_evals.benchmark.tasks.preservation.worker import outline
from music_evals.metrics.rhythm import TOLERANCE_SEC
from music_evals.metrics.structure import WINDOW_SEC
from music_evals.ui.assets import html, style
from music_evals.ui.widgets.findings import chord_name

SHOWN: Final = 60  # of one kind in the list; all are in the picture
NO_FEATURES: Final = "Neither side has chords, beats, sections or a melody that could be drawn."

TIMELINE_STYLE: Final = style("timeline") + plots.PICTURE_STYLE
"""For the element that holds `timeline_html`; colours are those of Gradio's theme."""


class Disagreement(NamedTuple):
    """One place where the two sides differ."""

    time_sec: float
    kind: str  # ``"chord"``, ``"beat"``, ``"section"`` or ``"note"``
    text: str


def disagreements(original: Mapping[str, Any], edit: Mapping[str, Any]) -> list[Disagreement]:
    """Return the places that the picture colours, by kind, then by time."""
    places: list[Disagreement] = []
    for kind, compare in (("chords", _chords), ("beats", _beats), ("segments", _sections), ("melody", _notes)):
        if kind in original and kind in edit:
            places += sorted(compare(original[kind], edit[kind]))
    return places


def _chords(original: Sequence[Any], edit: Sequence[Any]) -> Iterable[Disagreement]:
    for start, end in plots.differing_spans(original, edit):
        was, became = (
            chord_name(next(str(label) for first, last, label in side if first <= start and end <= last))
            for side in (original, edit)
        )
        yield Disagreement(start, "chord", f"{was} became {became}")


def _beats(original: Sequence[float], edit: Sequence[float]) -> Iterable[Disagreement]:
    return _lost_and_new("beat", original, edit, TOLERANCE_SEC, "beat")


def _sections(original: Sequence[Any], edit: Sequence[Any]) -> Iterable[Disagreement]:
    first, second = ([start for start, *_ in side[1:]] for side in (original, edit))
    return _lost_and_new("section", first, second, WINDOW_SEC, "section boundary")


def _lost_and_new(
    kind: str, original: Sequence[float], edit: Sequence[float], tolerance_sec: float, word: str
) -> Iterable[Disagreement]:
    for own, other, title in ((original, edit, "original"), (edit, original, "edit")):
        for time, alone in zip(own, plots.unmatched(own, other, tolerance_sec), strict=True):
            if alone:
                yield Disagreement(time, kind, f"{word} in the {title} only")


def _notes(original: Sequence[Any], edit: Sequence[Any]) -> Iterable[Disagreement]:
    for own, other, title in ((original, edit, "original"), (edit, original, "edit")):
        for (start, _, pitch), alone in zip(own, plots.differing_notes(own, other), strict=True):
            if alone:
                yield Disagreement(start, "note", f"{plots.note_name(pitch)} in the {title} only")


def timeline_html(original: Features, edit: Features) -> str:
    """Return picture, legend and list for the features of a pair, escaped."""
    sides = outline(original), outline(edit)
    if not any(kind in side for side in sides for kind in ("beats", "chords", "segments", "melody")):
        return f"<p>{NO_FEATURES}</p>"
    from markupsafe import Markup

    label = "Timelines of the original and the edit; what differs is listed below the picture"
    places = disagreements(*sides)
    groups = []
    for kind, word in (("chord", "Chords"), ("beat", "Beats"), ("section", "Sections"), ("note", "Melody")):
        if mine := [place for place in places if place.kind == kind]:
            groups.append((word, mine[:SHOWN], len(mine[SHOWN:])))
    picture = Markup(plots.timeline(*sides, label=label, playable=True))  # noqa: S704  (escaped there)
    return html("timeline.html", picture=picture, groups=groups, clock=clock)
