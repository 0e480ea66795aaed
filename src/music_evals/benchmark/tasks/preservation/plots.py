"""Pictures of the preservation benchmark: a radar for each system, and a timeline for each pair, as SVG text."""

from __future__ import annotations

import functools
import html
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from music_evals.benchmark.formats import COLOURS, figure_of, literal, render, static, svg
from music_evals.benchmark.score_table import OUTSIDE
from music_evals.metrics.rhythm import TOLERANCE_SEC
from music_evals.metrics.structure import WINDOW_SEC

if TYPE_CHECKING:
    from markupsafe import Markup

RIM = {"delta_bpm": 40.0}
"""Metric without a worst value -> what is drawn in the centre of the radar, and all beyond it."""

NOTE_TOLERANCE_SEC = 0.1  # two frames of the longest hop of our pitch trackers

SPAN_TOLERANCE_SEC = 0.1  # two frames of the chord recogniser: at a change of chord they may differ by one

PICTURE_STYLE = static("timelines.css")

Floats = npt.NDArray[np.float64]
Spans = Sequence[tuple[float, float, Any]]


def outward(name: str, values: npt.ArrayLike | None, scale: Mapping[str, Any]) -> Any:
    """Return where scores stand on the radar: 1 is the best value, 0 the worst; NaN where they are undefined."""
    # Linear between worst and best. Below 0, which is worse than chance, is drawn as 0; a metric without a worst value
    # has its centre at `RIM`.
    high = RIM.get(name, scale["high"])
    share = np.asarray(np.nan if values is None else values, dtype=np.float64) / high
    return np.clip(share if scale["direction"] == "higher" else 1 - share, 0, 1)


def radar(
    name: str,
    system: str,
    cells: Mapping[str, Mapping[str, Any]],
    controls: Mapping[str, Mapping[str, Mapping[str, Any]]],
    scales: Mapping[str, Mapping[str, Any]],
) -> str:
    """Draw the scores of one system, with the controls as lines; outward is better."""
    angles = np.linspace(0, 2 * np.pi, len(cells), endpoint=False)
    figure, axes = figure_of(5.4, 4.8, subplot_kw={"projection": "polar"})
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    styles: list[dict[str, Any]]
    styles = [{"color": COLOURS["ink"], "linestyle": ":"}, {"color": COLOURS["second"], "linestyle": "--"}]
    styles = [*styles[: len(controls)], {"color": COLOURS["accent"], "linewidth": 2}]
    for (label, row), style in zip([*controls.items(), (system, cells)], styles, strict=True):
        # a line that ends where it begins
        places = np.array([outward(metric, row[metric]["value"], scales[metric]) for metric in cells])
        axes.plot(np.append(angles, angles[:1]), np.append(places, places[:1]), label=literal(label), **style)
    if not np.isnan(places).any():
        axes.fill(angles, places, color=COLOURS["accent"], alpha=0.18)
    axes.set_ylim(0, 1)
    axes.set_yticks([0.25, 0.5, 0.75], ["", "", ""])
    axes.set_xticks(angles, [scales[metric]["title"].replace(" ", "\n", 1) for metric in cells], fontsize=8)
    axes.tick_params(axis="x", pad=12)
    axes.grid(linewidth=0.6)
    axes.legend(fontsize=8, frameon=False, labelcolor=COLOURS["ink"], loc="lower left", bbox_to_anchor=(-0.3, -0.2))
    reported = ", ".join(
        f"{scales[metric]['title']} {cell['value']:.2f}" for metric, cell in cells.items() if cell["value"] is not None
    )
    return svg(figure, name, f"Radar of {system}, outward is better: {reported}")


PLANE_PX = (620, 400)
"""Width and height of a plane."""
_SCALE_PX = (56, 44)  # at the left and below
_PLANE_REACH = 0.5  # how far beyond both ends of the scale of preservation is drawn at most
_ACCENT = "var(--accent, #1f6fb4)"

At = Callable[[float, float], tuple[float, float]]


def plane_svg(points: Mapping[str, Mapping[str, Any]], *, axis: str = "preservation") -> str:
    """Draw systems by success (across) and preservation or a facet (up), with their ellipses and the Pareto front.

    Points are those of ``systems`` in `plane.plane`, numbered in their order; controls are hollow. A point beyond the
    picture lies on its edge.
    """
    width, height = (size - taken for size, taken in zip(PLANE_PX, _SCALE_PX, strict=True))
    drawable = {
        name: (number, point)
        for number, (name, point) in enumerate(points.items(), start=1)
        if None not in (point["success"]["value"], point[axis]["value"])
    }
    ups = [float(point[axis]["value"]) for _, point in drawable.values()]
    low = max(min([0.0, *ups]), -_PLANE_REACH) - 0.08
    high = min(max([1.0, *ups]), 1 + _PLANE_REACH) + 0.08

    def at(x: float, y: float) -> tuple[float, float]:
        return (x + 0.06) * width / 1.12, (high - min(max(y, low), high)) * height / (high - low)

    grid, scale = "", ""
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = at(value, value)
        line = f'stroke="currentColor" stroke-opacity="{0.35 if value in {0.0, 1.0} else 0.12}"'
        grid += f'<path d="M{x:.1f} 0V{height}M0 {y:.1f}H{width}" {line}/>'
        scale += f'<text x="{_SCALE_PX[0] + x:.1f}" y="{height + 16}" text-anchor="middle">{value:g}</text>'
        scale += f'<text x="{_SCALE_PX[0] - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    marks = "".join(_mark(name, number, point, axis, at) for name, (number, point) in drawable.items())
    label = html.escape(f"Success and {axis} of {len(drawable)} systems", quote=True)
    up = html.escape(f"{axis}, 0 unrelated, 1 the same music")
    return (
        f'<svg class="plot" role="img" aria-label="{label}" viewBox="0 0 {PLANE_PX[0]} {PLANE_PX[1]}" font-size="12" '
        f'fill="currentColor">{scale}<text x="{PLANE_PX[0] - 4}" y="{PLANE_PX[1] - 8}" text-anchor="end">success, how '
        f'much of what was asked</text><text transform="translate(14 {height}) rotate(-90)">{up}</text>'
        f'<svg x="{_SCALE_PX[0]}" width="{width}" height="{height}">{grid}'
        f"{_staircase([point for _, point in drawable.values()], axis, at)}{marks}</svg></svg>"
    )


def plane_figure(points: Mapping[str, Mapping[str, Any]], *, axis: str = "preservation") -> Markup:
    """Return `plane_svg` as HTML with the names of its points, those of the front in bold."""
    from markupsafe import Markup

    picture = Markup(plane_svg(points, axis=axis))  # noqa: S704  (names are escaped there)
    page = render("music_evals.benchmark.tasks.preservation", "plane_figure.html", points=points, picture=picture)
    return Markup(page)  # noqa: S704  (the template escapes)


def _mark(title: str, number: int, point: Mapping[str, Any], axis: str, at: At) -> str:
    """Draw the ellipse of a point, where it has one, and the point."""
    (x, y), origin, unit = at(point["success"]["value"], point[axis]["value"]), at(0, 0), at(1, 1)
    stroke, filled = ("currentColor", "none") if point["role"] in OUTSIDE else (_ACCENT, _ACCENT)
    ellipse, drawing = point[axis]["ellipse"], ""
    if ellipse["major"] is not None:
        # in the unit of the scores, turned there and then stretched as the picture is
        scale = f"scale({unit[0] - origin[0]:.1f} {unit[1] - origin[1]:.1f})"
        drawing = (
            f'<ellipse rx="{ellipse["major"]:.4f}" ry="{max(ellipse["minor"], 1e-3):.4f}" transform="translate({x:.1f} '
            f'{y:.1f}) {scale} rotate({np.degrees(ellipse["angle_rad"]):.2f})" fill-opacity=".1" stroke-opacity=".5" '
            f'vector-effect="non-scaling-stroke" style="fill:{stroke};stroke:{stroke}"/>'
        )
    weight = ' font-weight="bold"' if point["front"] else ""
    return (
        f'{drawing}<g style="fill:{filled};stroke:{stroke}"><title>{html.escape(title)}</title>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/></g><text x="{x + 8:.1f}" y="{y - 6:.1f}"{weight}>{number}</text>'
    )


def _staircase(points: Sequence[Mapping[str, Any]], axis: str, at: At) -> str:
    """Draw what the front leaves below it: level up to a point, then down to the next."""
    front = sorted((point["success"]["value"], point[axis]["value"]) for point in points if point["front"])
    if not front or axis != "preservation":  # which the front is of
        return ""
    heights = [*(y for _, y in front), -np.inf]
    corners = [(-1.0, front[0][1])]
    corners += [(x, height) for (x, _), two in zip(front, itertools.pairwise(heights), strict=True) for height in two]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in itertools.starmap(at, corners))
    return f'<polyline points="{path}" fill="none" stroke-dasharray="5 4" style="stroke:{_ACCENT}"/>'


_NAMES, _WIDTH, _LANE, _GAP, _MELODY = 136, 880, 16, 6, 96
_LETTER_PX = 7
_ON_ONE_WIDTH_SEC = 60.0  # what lasts longer gets a wider picture, so that chords keep room for their labels
_WIDEST = 10  # widths
_PITCH_GAP_PX = 11  # between two names of notes
_PITCH_ROOM_PX = 4  # of a name to the edge of its lane
_PITCH_STEPS = (1, 2, 3, 4, 6, 12, 24, 48, 96)  # semitones; each holds every C, or every second one
_NOTE_NAMES = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")


def timeline(reference: Mapping[str, Any], estimate: Mapping[str, Any], *, label: str, playable: bool = False) -> str:
    """Draw beats, chords, sections and melody of both files below each other; what differs is coloured."""
    # A chord differs while the other file has another one; a beat or boundary where the other file has none within 70
    # ms or 0.5 s; a note where the other file has none of its pitch that begins within 100 ms.
    end_sec = max(reference["duration_sec"], estimate["duration_sec"], 1e-3)
    lanes = _Lanes(end_sec)
    for kind, word, height, draw in LANES:
        for side, own, other in (("original", reference, estimate), ("edit", estimate, reference)):
            if kind in own:
                sides = own[kind], other.get(kind, [])
                marks = _pitch_axis(*sides) if kind == "melody" else []
                lanes.add(f"{word}, {side}", draw(lanes, *sides), height, side, marks)
    step = next((step for step in (1, 2, 5, 10, 20, 30, 60, 120) if end_sec / step <= 20), 300)
    axis = ""
    for time in range(0, int(end_sec) + 1, step):
        x = time * lanes.px_per_sec
        axis += (
            f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="5"/><text x="{x + 2:.1f}" y="13">{time}</text>'
        )
    lanes.add("seconds", axis)
    return lanes.render(label, playable=playable)


class _Lanes:
    """Lanes below each other, and beside them their names."""

    def __init__(self, end_sec: float) -> None:
        self.width = round(_WIDTH * min(max(1.0, end_sec / _ON_ONE_WIDTH_SEC), _WIDEST))
        self.px_per_sec = self.width / end_sec
        self._top, self._names, self._parts = _GAP, list[str](), list[str]()

    def add(
        self, name: str, content: str, height: int = _LANE, side: str = "", marks: Sequence[tuple[float, str]] = ()
    ) -> None:
        """Add a lane; `marks` are heights within it and what stands beside them."""
        if side:
            self._names.append(f'<rect class="side {side}" x="0" y="{self._top}" width="4" height="{height}"/>')
        self._names.append(f'<text x="9" y="{self._top + 12}">{html.escape(name)}</text>')
        self._names += [
            f'<text class="pitch" x="{_NAMES - 3}" y="{self._top + y + 4:.1f}">{html.escape(text)}</text>'
            for y, text in marks
        ]
        self._parts.append(f'<g class="{side}" transform="translate(0 {self._top})">{content}</g>')
        self._top += height + _GAP

    def render(self, label: str, *, playable: bool) -> str:
        scale = f' data-per-sec="{self.px_per_sec:.4f}"' if playable else ""
        head = f'<line class="playhead" x1="0" x2="0" y1="0" y2="{self._top}"/>' if playable else ""
        rem = 46 * (_NAMES + self.width) / (_NAMES + _WIDTH)
        return (
            '<div class="timeline" tabindex="0" role="group" aria-label="Beats, chords, sections and melody">'
            f'<div class="sheet" style="grid-template-columns:{_NAMES}fr {self.width}fr;min-width:{rem:.1f}rem">'
            f'<svg class="names" aria-hidden="true" viewBox="0 0 {_NAMES} {self._top}">'
            f'{"".join(self._names)}</svg><svg class="lanes" role="img" aria-label="{html.escape(label, quote=True)}"'
            f'{scale} viewBox="0 0 {self.width} {self._top}">{"".join(self._parts)}{head}</svg></div></div>'
        )


def _chords(lanes: _Lanes, own: Spans, other: Spans) -> str:
    differing = "".join(_box(lanes, start, end, "differs") for start, end in differing_spans(own, other))
    # as musicians write it: A:min is Am and C:maj is C; other labels stay as they are
    symbols = [f"{label[:-4]}m" if label.endswith(":min") else label.removesuffix(":maj") for *_, label in own]
    labels = "".join(_text(lanes, *span[:2], symbol) for span, symbol in zip(own, symbols, strict=True))
    return "".join(_box(lanes, start, end, "span", title=str(label)) for start, end, label in own) + differing + labels


def _sections(lanes: _Lanes, own: Spans, other: Spans) -> str:
    inner, theirs = [start for start, *_ in own[1:]], [start for start, *_ in other[1:]]
    strokes = _strokes(lanes, inner, theirs, WINDOW_SEC)
    boxes = "".join(_box(lanes, start, end, "span", title=str(label)) for start, end, label in own)
    return boxes + strokes + "".join(_text(lanes, *span) for span in own)


def _pitch_span(own: Spans, other: Spans) -> tuple[float, float]:
    """Return the lowest and the highest pitch that is drawn, one scale for both sides; NaN without any."""
    pitches = [pitch for *_, pitch in (*own, *other)]
    return (min(pitches) - 1, max(pitches) + 1) if pitches else (np.nan, np.nan)


def _pitch_axis(own: Spans, other: Spans) -> list[tuple[float, str]]:
    """Return the heights of notes in the lane of the melody, and their names, as many as can be read."""
    low, high = _pitch_span(own, other)
    if np.isnan(low):
        return []
    px = _MELODY / (high - low)
    step = next((step for step in _PITCH_STEPS if step * px >= _PITCH_GAP_PX), _PITCH_STEPS[-1])
    return [
        ((high - pitch) * px, note_name(pitch))
        for pitch in range(int(np.ceil(low)), int(np.floor(high)) + 1)
        if pitch % step == 0 and _PITCH_ROOM_PX <= (high - pitch) * px <= _MELODY - _PITCH_ROOM_PX
    ]


def note_name(pitch: float) -> str:
    """Return the name of the nearest note.

    Examples
    --------
    >>> note_name(60), note_name(69.4)
    ('C4', 'A4')
    """
    nearest = round(pitch)
    return f"{_NOTE_NAMES[nearest % 12]}{nearest // 12 - 1}"


def _melody(lanes: _Lanes, own: Spans, other: Spans) -> str:
    low, high = _pitch_span(own, other)
    if np.isnan(low):
        return ""
    height = _MELODY / (high - low)
    ground = _box(lanes, 0, lanes.width / lanes.px_per_sec, "ground", height=_MELODY)
    lines = "".join(
        f'<line class="pitch" x1="0" x2="{lanes.width}" y1="{y:.1f}" y2="{y:.1f}"/>' for y, _ in _pitch_axis(own, other)
    )
    notes = zip(own, differing_notes(own, other), strict=True)
    for (start, end, pitch), differs in notes:
        kind, top = "note differs" if differs else "note", (high - pitch) * height - 2
        lines += _box(lanes, start, end, kind, top=top, height=4, title=note_name(pitch))
    return ground + lines


def unmatched(own: Sequence[float], other: Sequence[float], tolerance_sec: float) -> list[bool]:
    """Tell for each time whether none of the others lies within the tolerance."""
    distances = np.abs(np.asarray(own, dtype=float)[:, None] - np.asarray(other, dtype=float)[None, :])
    is_unmatched: list[bool] = (distances.min(axis=1, initial=np.inf) > tolerance_sec + 1e-9).tolist()
    return is_unmatched


def differing_notes(own: Spans, other: Spans) -> list[bool]:
    """Tell for each note whether the others hold none of its pitch that begins with it."""
    by_pitch: dict[int, list[float]] = {}
    for start, _, pitch in other:
        by_pitch.setdefault(round(pitch), []).append(start)
    return [unmatched([start], by_pitch.get(round(pitch), []), NOTE_TOLERANCE_SEC)[0] for start, _, pitch in own]


def differing_spans(own: Spans, other: Spans) -> list[tuple[float, float]]:
    """Return where labels differ from what the others say at that time; where they say nothing, nothing differs."""
    differing = []
    for start, end, label in own:
        for their_start, their_end, their_label in other:
            first, last = max(start, their_start), min(end, their_end)
            if last - first > SPAN_TOLERANCE_SEC and label != their_label:
                differing.append((first, last))
    return differing


def _text(lanes: _Lanes, start: float, end: float, label: object) -> str:
    """Write a label where it fits."""
    if (end - start) * lanes.px_per_sec < _LETTER_PX * len(str(label)) + 4:
        return ""
    return f'<text class="inside" x="{start * lanes.px_per_sec + 3:.1f}" y="12">{html.escape(str(label))}</text>'


def _box(
    lanes: _Lanes, start: float, end: float, kind: str, *, top: float = 0, height: float = _LANE, title: str = ""
) -> str:
    x, width = start * lanes.px_per_sec, max((end - start) * lanes.px_per_sec, 0.5)
    box = f'<rect class="{kind}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:g}"'
    return f"{box}><title>{html.escape(title)}</title></rect>" if title else f"{box}/>"


def _strokes(lanes: _Lanes, own: Sequence[float], other: Sequence[float], tolerance_sec: float) -> str:
    """Draw times, and mark those near which the other side has none."""
    kinds = ("differs" if differs else "" for differs in unmatched(own, other, tolerance_sec))
    places = (f"{time * lanes.px_per_sec:.1f}" for time in own)
    strokes = zip(places, kinds, strict=True)
    return "".join(f'<line class="{kind}" x1="{x}" x2="{x}" y1="0" y2="{_LANE}"/>' for x, kind in strokes)


LANES: tuple[tuple[str, str, int, Callable[[_Lanes, Any, Any], str]], ...] = (
    ("beats", "beats", _LANE, functools.partial(_strokes, tolerance_sec=TOLERANCE_SEC)),
    ("chords", "chords", _LANE, _chords),
    ("segments", "sections", _LANE, _sections),
    ("melody", "melody", _MELODY, _melody),
)
"""What an outline holds, its word, the height of its lane, and how it is drawn."""
