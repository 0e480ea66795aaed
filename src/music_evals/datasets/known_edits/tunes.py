"""The eight folk tunes of `known_edits`: read from `tunes.yaml` and arranged."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Iterator
from typing import Any

from music_evals.annotations import Key
from music_evals.datasets.known_edits.arranging import Plan, Texture, arrange
from music_evals.datasets.known_edits.harmony import NAMES
from music_evals.datasets.known_edits.pieces import TPQ, Note, Piece, Span, beat_of

__all__ = ["arrange_tune", "tunes"]

_STEPS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
_BENDS = {"#": 1, "b": -1}
_VELOCITY = 90


@functools.cache
def tunes() -> dict[str, dict[str, Any]]:
    """Return what `tunes.yaml` says, by id."""
    import yaml

    text = (importlib.resources.files("music_evals.datasets.known_edits") / "tunes.yaml").read_text(encoding="utf-8")
    read: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return read


def arrange_tune(name: str) -> Piece:
    """Return one of the tunes with its accompaniment; the same at every call."""
    tune = tunes()[name]
    numerator, denominator = tune["meter"]
    bar = 4 * TPQ * numerator // denominator
    melody, pickup = _melody(tune["melody"], bar)
    texts = [text.split() for text in tune["chords"].split("|")]
    starts = [pickup + index * bar for index in range(len(texts))]
    chords = list(_chords(texts, starts, bar))
    if pickup:
        chords.insert(0, Span(0, pickup, chords[0].label))
    return arrange(
        name,
        melody,
        chords,
        _sections(tune["sections"], pickup, bar),
        Plan(tune["programs"], {label: Texture(**texture) for label, texture in tune["textures"].items()}),
        bars=[0, *starts] if pickup else starts,
        meter=(numerator, denominator),
        mspq=round(6e7 / tune["bpm"] * TPQ / beat_of((numerator, denominator))),
        key=Key(NAMES.index(tune["tonic"]), tune["mode"]),
    )


def _pitch(name: str) -> int:
    return 12 * (int(name[-1]) + 1) + _STEPS[name[0]] + sum(_BENDS[sign] for sign in name[1:-1])


def _melody(text: str, bar: int) -> tuple[list[Note], int]:
    """Return the notes and the ticks of the pickup."""
    notes: list[Note] = []
    pickup = onset = 0
    for index, words in enumerate(text.split("|")):
        at = onset
        for word in words.split():
            name, eighths = word.split(":")
            duration = round(float(eighths) * TPQ / 2)
            if name != "r":
                notes.append(Note(onset, duration, _pitch(name), _VELOCITY))
            onset += duration
        if index == 0 and onset < bar:
            pickup = onset
        elif onset < at + bar:
            onset = at + bar  # the last bar lacks what the pickup has
    return notes, pickup


def _chords(texts: list[list[str]], starts: list[int], bar: int) -> Iterator[Span]:
    for labels, start in zip(texts, starts, strict=True):
        width = bar // len(labels)
        for place, label in enumerate(labels):
            yield Span(start + place * width, start + (place + 1) * width, label)


def _sections(rows: list[tuple[str, int]], pickup: int, bar: int) -> list[Span]:
    spans: list[Span] = []
    at = 0
    for label, n_bars in rows:
        end = (at or pickup) + n_bars * bar
        spans.append(Span(at, end, label))
        at = end
    return spans
