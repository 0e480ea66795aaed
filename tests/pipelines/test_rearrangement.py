"""From a score to melody and accompaniment as rolls, and back."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from music_evals.annotations import DRUMS, Arrangement, KeySignature, Score, Tempo, TimeSignature
from music_evals.errors import InvalidInputError, InvalidNotesError, NoDataError, UnknownNameError
from music_evals.pipelines.rearrangement import HIGHEST, prepare, rearranged_score
from music_evals.symbolic.notes import make_notes


def song(voices: tuple[str, ...] = ("Piano", "Vocal 1"), **changes: Any) -> Score:
    """Three quarters of melody, the last repeated, in voice 1 over a held bass in voice 0."""
    notes = make_notes([0, 480, 960, 0], [480, 480, 480, 1440], [72, 74, 74, 48], voice=[1, 1, 1, 0])
    score = Score(
        notes, 480, (TimeSignature(0, 3, 4),), (Tempo(0, 96.0),), (KeySignature(0, 1),), voices=voices, programs=()
    )
    return dataclasses.replace(score, **changes)


@pytest.mark.parametrize("melody", [None, "Vocal 1", "vocal 1", 2, "2"])
def test_the_melody_is_told_by_its_name_or_named(melody: int | str | None) -> None:
    found = prepare(song(), melody=melody)
    assert found.voice == "Vocal 1"
    assert found.score.voices == ("melody", "Piano")
    assert found.score.voice(0)["pitch"].tolist() == [72, 74, 74]
    assert found.arrangement.accompaniment.cells[:24, 48 - 21].all()
    assert found.remarks == ()


def test_a_transfer_keeps_the_melody_note_by_note() -> None:
    found = prepare(song())
    roll = found.arrangement.melody
    cells = np.zeros_like(roll.cells)
    cells[:8, 55 - 21] = True
    onsets = np.zeros_like(cells)
    onsets[0, 55 - 21] = True
    other = Arrangement(roll, roll.with_notes(cells, onsets, np.zeros_like(cells)))
    made = rearranged_score(found, other)
    assert made.voices == ("melody", "accompaniment")
    np.testing.assert_array_equal(made.voice(0), found.score.voice(0))  # with its repeated note, without a gap
    assert made.voice(1)[["onset_tick", "duration_tick", "pitch"]].tolist() == [(0, 8, 55)]
    assert (made.tempos, made.key_signatures) == ((Tempo(0, 96.0),), (KeySignature(0, 1),))
    assert made.time_signatures == (TimeSignature(0, 3, 4),)
    longer = prepare(song(notes=make_notes([0, 1440], [480, 1440], [72, 60], voice=[1, 0]))).arrangement
    with pytest.raises(InvalidInputError, match="it is of another one"):
        rearranged_score(found, longer)


def test_the_highest_notes_on_request() -> None:
    notes = make_notes([0, 0, 480, 480], [480, 480, 480, 480], [72, 48, 50, 71])
    found = prepare(Score(notes, 480), melody=HIGHEST)
    assert found.voice == HIGHEST
    assert found.score.voice(0)["pitch"].tolist() == [72, 71]
    assert found.score.voice(1)["pitch"].tolist() == [48, 50]


def test_a_melody_alone_begins_over_silence() -> None:
    found = prepare(Score(make_notes([0, 480], [480, 480], [72, 74]), 480))
    assert not found.arrangement.accompaniment.cells.any()
    assert "begins as silence" in found.remarks[0]


def test_drums_are_left_out_and_what_is_off_the_grid_is_moved() -> None:
    notes = make_notes([0, 470, 0], [480, 480, 240], [72, 74, 36], voice=[0, 0, 1])
    found = prepare(Score(notes, 480, voices=("Melody", "Kit"), programs=(0, DRUMS)))
    assert found.score.voices == ("melody",)
    assert found.remarks[:2] == (
        "1 notes of drums were left out",
        "1 of 2 notes were moved to the grid of 8 steps a quarter",
    )
    assert found.score.notes["onset_tick"].tolist() == [0, 8]


def test_no_melody_can_be_told() -> None:
    with pytest.raises(InvalidInputError, match=r"among the voices 1 \(Left\), 2 \(Right\): say which one"):
        prepare(song(("Left", "Right")))
    with pytest.raises(InvalidInputError, match="no melody can be told"):
        prepare(song(("Lead", "Vocal")))
    chord = Score(make_notes([0, 0], [480, 480], [60, 64]), 480, voices=("Piano",))
    with pytest.raises(InvalidInputError, match="take the highest notes of all"):
        prepare(chord)
    with pytest.raises(UnknownNameError, match="flute"):
        prepare(song(), melody="flute")
    silent = song(("Piano", "Vocal 1", "Lead"))
    with pytest.raises(NoDataError, match="voice 3 has no notes"):
        prepare(silent, melody=3)


@pytest.mark.parametrize(("numerator", "denominator"), [(6, 8), (5, 4), (3, 2)])
def test_other_meters_are_refused_unless_asked_for(numerator: int, denominator: int) -> None:
    score = song(time_signatures=(TimeSignature(0, numerator, denominator),))
    with pytest.raises(InvalidInputError, match=rf"in {numerator}/{denominator} at tick 0.*`any_meter=True`"):
        prepare(score)
    assert len(prepare(score, any_meter=True).arrangement) >= 24


def test_a_pickup_is_no_other_meter() -> None:
    score = song(time_signatures=(TimeSignature(0, 1, 4), TimeSignature(480, 4, 4)))
    assert prepare(score).arrangement.melody.bar_phase[0] == 0.75


def test_what_lies_outside_of_the_rolls_is_named() -> None:
    low = song(notes=make_notes([0, 0], [480, 480], [72, 12], voice=[1, 0]))
    with pytest.raises(InvalidNotesError, match=r"pitch 12 of voice 'Piano'.*outside of A0..G#7"):
        prepare(low)
    with pytest.raises(NoDataError, match="no notes with a pitch"):
        prepare(song(notes=song().notes[:0]))
