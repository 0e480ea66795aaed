"""The skyline: the highest note wherever notes start."""

from __future__ import annotations

from music_evals.annotations import DRUMS, Score
from music_evals.symbolic.melody import skyline, skyline_score
from music_evals.symbolic.notes import check_monophonic, make_notes


def test_the_highest_note_sounds_until_the_next_of_the_line() -> None:
    notes = make_notes([0, 0, 2, 4], [8, 8, 2, 4], [60, 72, 84, 48])
    line = skyline(notes)
    assert line[["onset_tick", "duration_tick", "pitch"]].tolist() == [(0, 2, 72), (2, 2, 84), (4, 4, 48)]
    check_monophonic(line)


def test_what_starts_below_a_sounding_note_of_the_line_is_left_out() -> None:
    line = skyline(make_notes([0, 2, 4, 8], [8, 2, 8, 4], [72, 60, 48, 50]))
    assert line["pitch"].tolist() == [72, 50]


def test_one_line_is_kept_as_it_is() -> None:
    notes = make_notes([0, 4, 9], [4, 5, 1], [60, 62, 59], voice=1)
    line = skyline(notes)
    assert line["onset_tick"].tolist() == [0, 4, 9]
    assert line["duration_tick"].tolist() == [4, 5, 1]
    assert len(skyline(notes[:0])) == 0


def test_drums_have_no_pitch() -> None:
    notes = make_notes([0, 0], [4, 4], [60, 81], voice=[0, 1])
    score = skyline_score(Score(notes, 4, voices=("lead", "kit"), programs=(0, DRUMS)))
    assert score.notes["pitch"].tolist() == [60]
    assert score.voices == ("skyline",)
