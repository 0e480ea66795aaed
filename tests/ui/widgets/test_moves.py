"""How an edit was moved as a whole is found, and undone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from music_evals.annotations import Beats, Chords, F0Track, Features, Key, Melody, Segments
from music_evals.benchmark.tasks.preservation.worker import outline
from music_evals.ui.widgets.findings import findings, move_text
from music_evals.ui.widgets.moves import UNMOVED, Move, find_move, kept_notes, unmoved
from music_evals.ui.widgets.timeline_view import disagreements

TUNE = np.array([60.0, 62.0, 64.0, 65.0, 67.0, 64.0, 62.0, 60.0] * 3)
CHORDS = ("C:maj", "A:min", "F:maj", "G:maj", "N", "C:maj")
ROOTS = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")


def spans(n: int, step: float) -> np.ndarray:
    return np.array(list(itertools.pairwise(step * np.arange(n + 1))))


def piece(semitones: int = 0, stretch: float = 1.0, *, tempo: bool = True) -> Features:
    """A piece of 12 s, transposed and stretched."""
    labels = [
        label if label == "N" else ROOTS[(ROOTS.index(label[0]) + semitones) % 12] + label[1:] for label in CHORDS
    ]
    times = 0.1 * stretch * np.arange(120)
    return Features(
        12.0 * stretch,
        beats=Beats(0.5 * stretch * np.arange(24), 120 / stretch if tempo else float("nan")),
        key=Key(semitones % 12, "major"),
        chords=Chords(spans(6, 2 * stretch), tuple(labels)),
        f0=F0Track(times, np.full(120, 261.6 * 2 ** (semitones / 12))),
        melody=Melody(spans(24, 0.5 * stretch), TUNE + semitones),
        segments=Segments(spans(2, 6 * stretch), ("A", "B")),
    )


@pytest.mark.parametrize("tempo", [True, False])
@pytest.mark.parametrize(("semitones", "stretch"), [(7, 1.0), (-5, 1.25), (0, 0.8), (2, 1.034), (6, 2.0)])
def test_a_move_is_found_and_undone(semitones: int, stretch: float, *, tempo: bool) -> None:
    original, edit = piece(), piece(semitones, stretch, tempo=tempo)
    move = find_move(original, edit)
    assert move.semitones == semitones
    assert move.stretch == pytest.approx(stretch)
    back = unmoved(edit, move)
    assert disagreements(outline(original), outline(edit))
    assert disagreements(outline(original), outline(back)) == []
    assert {finding.kind for finding in findings(original, back)} == {"same"} | ({"undefined"} if not tempo else set())
    assert back.f0 is not None
    assert back.f0.frequencies_hz == pytest.approx(261.6, rel=1e-4)


def test_what_was_not_moved_stays_as_it_is() -> None:
    assert find_move(piece(), piece()) == UNMOVED
    assert find_move(Features(3.0), Features(4.0)) == UNMOVED
    # half of the notes are others: no transposition brings them back
    other = Features(12.0, melody=Melody(spans(24, 0.5), np.where(np.arange(24) % 2, TUNE, TUNE + np.arange(24))))
    assert find_move(Features(12.0, melody=piece().melody), other) == UNMOVED


def test_one_note_more_is_no_move() -> None:
    first = piece()
    assert first.melody is not None
    changed = Melody(first.melody.intervals_sec, np.where(np.arange(24) < 22, TUNE, TUNE + 1))
    assert kept_notes(first.melody, changed) == 22
    assert find_move(first, Features(12.0, melody=changed, chords=first.chords)) == UNMOVED


def test_a_move_is_said() -> None:
    assert move_text(Move(-2, 1.25)) == "melody moved down a whole tone, at the edit's tempo"
    assert move_text(Move(12)) == "melody moved up an octave"
