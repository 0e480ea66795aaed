"""How an edit was moved as a whole, transposed and stretched, and what it would be without that."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from music_evals.annotations import Features, Melody
from music_evals.audio.chords import CHORD_LABELS
from music_evals.benchmark.tasks.preservation.plots import differing_notes

WORTH_MOVING: Final = 0.1  # a move brings back at least this share of the original's notes
LEAST_KEPT: Final = 0.5  # and at least this share of them is there then
LEAST_STRETCH: Final = 0.005  # lengths that differ by less are of one tempo
ROOTS: Final = tuple(label.partition(":")[0] for label in CHORD_LABELS[:12])  # from C up


class Move(NamedTuple):
    """What was done to all of a piece: semitones upwards, and how many times longer it lasts."""

    semitones: int = 0
    stretch: float = 1.0


UNMOVED: Final = Move()


def find_move(original: Features, edit: Features) -> Move:
    """Return the move, of an octave at most, that brings back most of the original's melody; `UNMOVED` without one."""
    # as many times longer as a beat lasts, or as the whole
    ratios = [1.0, edit.duration_sec / max(original.duration_sec, 1e-9)]
    if original.beats is not None and edit.beats is not None:
        ratios.insert(1, original.beats.bpm / edit.beats.bpm)
    if original.melody is None or edit.melody is None or not len(original.melody.pitches):
        return UNMOVED
    n_kept = {
        Move(steps, ratio): kept_notes(original.melody, edit.melody, Move(steps, ratio))
        for ratio in ratios
        if ratio == 1 or abs(ratio - 1) > LEAST_STRETCH  # which NaN is not
        for steps in sorted(range(-12, 13), key=abs)
    }
    best = max(n_kept, key=lambda move: n_kept[move])  # the first of the best: the smallest move
    n = len(original.melody.pitches)
    return best if n_kept[best] - n_kept[UNMOVED] >= WORTH_MOVING * n and n_kept[best] >= LEAST_KEPT * n else UNMOVED


def kept_notes(original: Melody, edit: Melody, move: Move = UNMOVED) -> int:
    """Return how many notes of the original the edit has, where a move puts them."""
    starts, ends = (original.intervals_sec * move.stretch).T
    moved = list(zip(starts, ends, original.pitches + move.semitones, strict=True))
    theirs = [(*span, pitch) for span, pitch in zip(edit.intervals_sec, edit.pitches, strict=True)]
    return len(moved) - sum(differing_notes(moved, theirs))


def unmoved(edit: Features, move: Move) -> Features:
    """Return what an edit would be without a move: the pitches and the times of the original. No frames are kept."""
    steps, stretch = move

    def moved(feature: str, change: Callable[[Any], dict[str, Any]] = lambda _: {}) -> Any:
        value = getattr(edit, feature)
        if value is None:
            return None
        times = {name: getattr(value, name, None) for name in ("times_sec", "intervals_sec")}
        of_time = {name: time / stretch for name, time in times.items() if time is not None}
        return dataclasses.replace(value, **of_time, **change(value))

    return Features(
        edit.duration_sec / stretch,
        beats=moved("beats", lambda beats: {"bpm": beats.bpm * stretch}),
        key=moved("key", lambda key: {"tonic": (key.tonic - steps) % 12}),
        chords=moved("chords", lambda chords: {"labels": tuple(_transposed(label, -steps) for label in chords.labels)}),
        f0=moved("f0", lambda f0: {"frequencies_hz": f0.frequencies_hz * 2 ** (-steps / 12)}),
        melody=moved("melody", lambda melody: {"pitches": melody.pitches - steps}),
        segments=moved("segments"),
        undefined=edit.undefined,
    )


def _transposed(label: str, semitones: int) -> str:
    """Return a chord in Harte's syntax so many semitones higher, spelt as our extractors do; ``N`` stays ``N``."""
    root, *rest = label.partition(":")
    return "".join([ROOTS[(ROOTS.index(root) + semitones) % 12], *rest]) if root in ROOTS else label
