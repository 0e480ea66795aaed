"""Builder of the data set swing_synth: pieces for piano and bass in medium swing, each from the seed and its number.

Only whole numbers are drawn and calculated with, so the rows are the same on every platform. The recipe takes the place
of the jazz pieces of Lu et al., "Actions speak louder than listening" (ACM MM 2021), which are not public: as many
pieces of the same two instruments, from charts of our own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from music_evals.annotations import KeySignature, Score, TimeSignature
from music_evals.datasets.style_pieces import PieceFacts, row_of, split_families
from music_evals.datasets.swing_synth.charts import Chart, draw_chart
from music_evals.datasets.swing_synth.chords import Chord
from music_evals.datasets.swing_synth.playing import HALVES_PER_BAR, Span, Stroke, comping, walking_bass
from music_evals.errors import UnknownNameError
from music_evals.symbolic.notes import make_notes

__all__ = ["CONFIGS", "N_PIECES", "OFF_BEATS", "SEED", "Piece", "build_configs", "compose", "piece_row", "swing_score"]

SEED: Final = 20211020
N_PIECES: Final = 487
"""As many as the songs of the published data."""

CONFIGS: Final = {"swing_synth": 8, "triplet": 12}
"""Config -> steps a quarter."""

OFF_BEATS: Final = {8: 5, 12: 8}
"""Steps a quarter -> step of the swung off-beat: 5 to 3, the nearest that 32nd notes have to 2 to 1, which 12 has."""

VOICES: Final = ("piano", "bass")
_FIFTHS = (0, -5, 2, -3, 4, -1, 6, 1, -4, 3, -2, 5)  # signature of each major key, from C


@dataclasses.dataclass(frozen=True)
class Piece:
    """A chart in a key, played."""

    chart: Chart
    tonic: int  # 0 = C .. 11 = B
    n_choruses: int
    spans: tuple[Span, ...]
    piano: tuple[Stroke, ...]
    bass: tuple[Stroke, ...]


def compose(number: int, seed: int = SEED) -> Piece:
    """Return the piece of a number, 0 or more; the same for a seed at every call."""
    rng = np.random.Generator(np.random.PCG64([seed, number]))
    chart = draw_chart(rng)
    tonic = int(rng.integers(12))
    n_choruses = 1 + int(rng.integers(2))
    spans = chord_spans(chart, tonic, n_choruses)
    return Piece(chart, tonic, n_choruses, spans, tuple(comping(rng, spans)), tuple(walking_bass(rng, spans)))


def chord_spans(chart: Chart, tonic: int, n_choruses: int) -> tuple[Span, ...]:
    """Return the chords of a piece; equal ones in a row are one. The last two bars are the tonic, the last one held."""
    first = chart.bars[0][0]
    home = Chord(0, "tonic_minor" if chart.minor else first.quality if chart.form == "blues" else "major")
    bars = [*(list(chart.bars) * n_choruses)[:-2], (home,)]
    spans: list[Span] = []
    for index, bar in enumerate(bars):
        width = HALVES_PER_BAR // len(bar)
        for place, (root, quality) in enumerate(bar):
            start = index * HALVES_PER_BAR + place * width
            chord = Chord((root + tonic) % 12, quality)
            if spans and spans[-1].chord == chord:
                spans[-1] = spans[-1]._replace(end=start + width)
            else:
                spans.append(Span(start, start + width, chord))
    end = len(bars) * HALVES_PER_BAR
    return (*spans, Span(end, end + HALVES_PER_BAR, Chord(tonic, home.quality)))


def swing_score(piece: Piece, steps_per_quarter: int) -> Score:
    """Return a piece on a grid of `OFF_BEATS`, with voices ``"piano"`` and ``"bass"``."""
    if steps_per_quarter not in OFF_BEATS:
        raise UnknownNameError("grid of swung pieces", str(steps_per_quarter), [str(grid) for grid in OFF_BEATS])

    def step(half: int) -> int:
        beat, off = divmod(half, 2)
        return beat * steps_per_quarter + off * OFF_BEATS[steps_per_quarter]

    notes = [
        (step(stroke.start), step(stroke.end) - step(stroke.start) - stroke.gap * steps_per_quarter // 8, pitch, voice)
        for voice, strokes in enumerate((piece.piano, piece.bass))
        for stroke in strokes
        for pitch in stroke.pitches
    ]
    onset, duration, pitch, voice = np.array(notes).T
    third = 3 if piece.chart.minor else 0
    key = KeySignature(0, _FIFTHS[(piece.tonic + third) % 12], piece.chart.minor)
    return Score(
        make_notes(onset, duration, pitch, voice=voice),
        steps_per_quarter,
        (TimeSignature(0, 4, 4),),
        key_signatures=(key,),
        voices=VOICES,
    )


def piece_row(number: int, steps_per_quarter: int, seed: int = SEED) -> dict[str, Any]:
    """Return the row of a piece; its title has the form, the choruses and the chart in its key."""
    piece = compose(number, seed)
    chart = piece.chart
    choruses = "1 chorus" if piece.n_choruses == 1 else f"{piece.n_choruses} choruses"
    facts = PieceFacts(
        f"swing_{number:03d}",
        "swing",
        chart.family,
        title=f"{chart.form}, {choruses}: {chart.text(piece.tonic)}",
        source=f"made by rules, seed {seed}",
        licence="CC0-1.0",
    )
    return row_of(swing_score(piece, steps_per_quarter), facts, ticks_per_quarter=steps_per_quarter)


def build_configs(numbers: Sequence[int] = range(N_PIECES)) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return config -> split -> rows; pieces of one chart stand in one split, the same in both configs."""
    configs = {}
    for config, steps in CONFIGS.items():
        rows = [piece_row(number, steps) for number in numbers]
        splits = split_families({row["name"]: row["family"] for row in rows})
        configs[config] = {
            split: [row for row in rows if splits[row["name"]] == split] for split in ("train", "validation", "test")
        }
    return configs
