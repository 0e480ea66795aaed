from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import KeySignature, Score, Tempo, TimeSignature
from music_evals.errors import InvalidInputError, InvalidNotesError, PolyphonyError
from music_evals.symbolic.notes import check_monophonic, make_notes, quantize, rescale_tick


def test_notes_are_sorted_by_onset_voice_pitch():
    notes = make_notes([4, 0, 0, 0], [1, 1, 1, 1], [60, 70, 50, 40], voice=[0, 1, 0, 1])
    assert notes["pitch"].tolist() == [50, 40, 70, 60]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0], [1], [128]), "pitch must lie in 0..127, got 128"),
        (([0], [0], [60]), "duration_tick"),
        (([-1], [1], [60]), "onset_tick"),
        (([0], [1], [60], 0), "velocity"),
        (([0.5], [1], [60]), "whole numbers"),
        (([0, 1], [1, 1], [60, 61, 62]), "3 values for 2 notes"),
    ],
)
def test_impossible_notes_raise(columns, message):
    with pytest.raises(InvalidNotesError, match=message):
        make_notes(*columns)


@given(st.integers(0, 10**6), st.integers(1, 20000), st.integers(1, 1000))
def test_rescaling_rounds_half_up(tick, from_tpq, to_tpq):
    exact = Fraction(tick * to_tpq, from_tpq)
    assert int(rescale_tick(tick, from_tpq, to_tpq)) == int(exact + Fraction(1, 2))


def test_quantise_by_hand():
    # 480 to 6 a quarter: 80 ticks a step; 40 is midway and goes up, 39 goes down, a short note keeps one step
    score = Score(
        make_notes([0, 39, 40, 200], [10, 1, 121, 80], [60, 61, 62, 63]),
        480,
        (TimeSignature(0, 4, 4), TimeSignature(1920, 3, 4)),
        (Tempo(41, 90.0),),
        (KeySignature(120, 2),),
    )
    moved = quantize(score, 6)
    assert [tuple(note)[:3] for note in moved.notes.tolist()] == [(0, 1, 60), (0, 1, 61), (1, 1, 62), (3, 1, 63)]
    assert [change.tick for change in moved.time_signatures] == [0, 24]
    assert (moved.tempos[0].tick, moved.key_signatures[0].tick) == (1, 2)


def test_quantise_needs_a_grid():
    with pytest.raises(InvalidInputError):
        quantize(Score(make_notes([], [], []), 480), 0)


def test_monophony_is_checked_note_by_note():
    check_monophonic(make_notes([0, 4], [4, 4], [60, 60]))
    with pytest.raises(PolyphonyError):
        check_monophonic(make_notes([0, 3], [4, 4], [60, 60]))


def test_score_to_dict_and_back():
    score = Score(
        make_notes([0, 4], [4, 4], [60, 60], voice=[0, 1]), 12, (TimeSignature(0, 6, 8),), (Tempo(0, 88.5),),
        (KeySignature(0, -3, minor=True),), ("a", "b"),
    )  # fmt: skip
    again = Score.from_dict(score.to_dict())
    assert again.to_dict() == score.to_dict()
    assert np.array_equal(again.notes, score.notes)
