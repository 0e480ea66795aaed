"""Piano rolls: made from scores and turned back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import LOWEST_PITCH, Score, TimeSignature
from music_evals.errors import InvalidInputError, InvalidNotesError, NoDataError, UnknownNameError
from music_evals.symbolic.encodings.piano_rolls import arrange, arrangement_score, piano_roll, roll_notes
from music_evals.symbolic.notes import make_notes

MELODY_AND_BASS = Score(make_notes([0, 8, 0], [8, 8, 16], [72, 72, 48], voice=[0, 0, 1]), 8, voices=("melody", "bass"))


def column(pitch: int) -> int:
    return pitch - LOWEST_PITCH


def test_a_repeated_note_falls_silent_one_step_before() -> None:
    roll = piano_roll(MELODY_AND_BASS)
    assert np.flatnonzero(~roll.cells[:16, column(72)]).tolist() == [7]
    assert np.flatnonzero(roll.onsets[:, column(72)]).tolist() == [0, 8]
    assert np.flatnonzero(roll.offsets[:, column(72)]).tolist() == [7, 16]
    assert piano_roll(MELODY_AND_BASS, gaps=False).cells[:16, column(72)].all()


def test_the_last_bar_is_whole() -> None:
    assert len(piano_roll(MELODY_AND_BASS)) == 32


def test_phases_know_the_pickup() -> None:
    notes = make_notes([0, 8, 40], [8, 32, 32], [60, 62, 64])
    roll = piano_roll(Score(notes, 8, (TimeSignature(0, 1, 4), TimeSignature(8, 4, 4))))
    assert roll.bar_phase[[0, 8, 16]].tolist() == [0.75, 0.0, 0.25]
    assert roll.beat_phase[[0, 4, 8]].tolist() == [0.0, 0.5, 0.0]


def test_three_four() -> None:
    roll = piano_roll(Score(make_notes([0], [48], [60]), 8, (TimeSignature(0, 3, 4),)))
    assert roll.bar_phase[[0, 8, 24]].tolist() == pytest.approx([0.0, 1 / 3, 0.0])


def test_unisons_stay_apart_in_an_arrangement() -> None:
    score = Score(make_notes([0, 4], [8, 8], [60, 60], voice=[0, 1]), 8, voices=("melody", "alto"))
    arrangement = arrange(score, "melody")
    assert arrangement.merged.cells[:12, column(60)].all()
    assert arrangement.merged.offsets[:, column(60)].tolist().index(True) == 12
    back = arrangement_score(arrangement)
    assert [(note["onset_tick"], note["duration_tick"], note["voice"]) for note in back.notes] == [(0, 8, 0), (4, 8, 1)]


@given(notes=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12), st.integers(21, 104)), min_size=1, max_size=20))
def test_notes_that_do_not_overlap_come_back(notes: list[tuple[int, int, int]]) -> None:
    # one note a pitch at a time: what starts while its pitch sounds is left out
    kept: list[tuple[int, int, int]] = []
    for onset, duration, pitch in sorted(notes):
        if all(other != pitch or start + length <= onset for start, length, other in kept):
            kept.append((onset, duration, pitch))
    columns = [list(values) for values in zip(*kept, strict=True)]
    score = Score(make_notes(*columns), 8)
    found = roll_notes(piano_roll(score, gaps=False), velocity=64)
    assert np.array_equal(found, score.notes)


@pytest.mark.parametrize("pitch", [20, 105])
def test_pitches_outside(pitch: int) -> None:
    with pytest.raises(InvalidNotesError, match=f"pitch {pitch}.*A0..G#7"):
        piano_roll(Score(make_notes([0], [8], [pitch]), 8))


def test_no_notes() -> None:
    with pytest.raises(NoDataError):
        piano_roll(Score(make_notes([], [], []), 8))
    empty_melody = Score(make_notes([0], [8], [60], voice=1), 8, voices=("melody", "bass"))
    with pytest.raises(NoDataError, match="melody"):
        arrange(empty_melody, "melody")


def test_no_such_voice() -> None:
    with pytest.raises(UnknownNameError, match="bass"):
        arrange(MELODY_AND_BASS, "flute")
    with pytest.raises(UnknownNameError):
        arrange(MELODY_AND_BASS, 2)


def test_an_onset_must_sound() -> None:
    roll = piano_roll(MELODY_AND_BASS)
    with pytest.raises(InvalidInputError, match="does not sound"):
        roll.with_notes(roll.cells & False, roll.onsets, roll.offsets)
