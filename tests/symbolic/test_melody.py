"""The highest notes: by hand, and what always holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import DRUMS, Score
from music_evals.errors import UnknownNameError
from music_evals.symbolic.contexts import cut_context, pick_voice, tokens_from_score
from music_evals.symbolic.melody import skyline, skyline_score
from music_evals.symbolic.notes import make_notes

rows = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12), st.integers(40, 80)), max_size=20)


def line(notes: np.ndarray) -> list[tuple[int, int, int]]:
    return [(int(note["onset_tick"]), int(note["duration_tick"]), int(note["pitch"])) for note in notes]


def test_by_hand() -> None:
    """A chord; a lower note under it; a higher one that overtakes; a lower one after all is over."""
    notes = make_notes([0, 0, 2, 4, 8, 20], [6, 6, 3, 8, 2, 4], [60, 64, 50, 70, 65, 40])
    assert line(skyline(notes)) == [(0, 4, 64), (4, 8, 70), (20, 4, 40)]


def test_a_melody_stays_as_it_is() -> None:
    notes = make_notes([0, 4, 8], [4, 3, 4], [60, 72, 48])
    np.testing.assert_array_equal(skyline(notes), notes)
    assert len(skyline(notes[:0])) == 0


def test_played_legato_loses_no_note() -> None:
    """A falling line whose notes sound 10 ticks into the next."""
    notes = make_notes([0, 480, 960], [490, 490, 480], [67, 64, 60])
    assert line(skyline(notes)) == [(0, 490, 67), (960, 480, 60)]
    assert line(skyline(notes, overlap=80)) == [(0, 480, 67), (480, 480, 64), (960, 480, 60)]


@given(rows)
def test_no_two_notes_sound_at_once_and_each_is_the_highest_where_it_starts(given: list[tuple[int, int, int]]) -> None:
    onsets, durations, pitches = zip(*sorted(given), strict=True) if given else ((), (), ())
    notes = make_notes(onsets, durations, pitches)
    found = skyline(notes)
    ends = found["onset_tick"] + found["duration_tick"]
    assert (ends[:-1] <= found["onset_tick"][1:]).all()
    assert (found["duration_tick"] >= 1).all()
    np.testing.assert_array_equal(skyline(found), found)
    for note in found:
        together = notes[notes["onset_tick"] == note["onset_tick"]]
        assert note["pitch"] == together["pitch"].max()
    if len(notes):
        assert found["pitch"].max() == notes["pitch"].max()  # nothing can overtake the highest


def test_scores_become_contexts_by_their_highest_notes() -> None:
    notes = make_notes([0, 0, 480, 480], [480, 480, 480, 480], [60, 48, 62, 72], voice=[0, 1, 0, 1])
    score = Score(notes, 480, voices=("melody", "bass"))
    assert pick_voice(score, highest=True)["pitch"].tolist() == [60, 72]
    assert pick_voice(score, "melody", highest=True)["pitch"].tolist() == [60, 62]
    assert tokens_from_score(score, highest=True).tolist() == [60, *[128] * 5, 72, *[128] * 5]
    assert cut_context(score, 0, highest=True)[[0, 6]].tolist() == [60, 72]
    with pytest.raises(UnknownNameError, match="voice"):
        pick_voice(score, "alto", highest=True)
    kit = Score(notes, 480, voices=("melody", "kit"), programs=(0, DRUMS))
    assert pick_voice(kit, highest=True)["pitch"].tolist() == [60, 62]  # drums are no melody


def test_of_one_pitch_the_longest_stays() -> None:
    assert line(skyline(make_notes([0, 0], [2, 6], [60, 60], voice=[0, 1]))) == [(0, 6, 60)]


def test_drums_have_no_pitch() -> None:
    notes = make_notes([0, 0], [4, 4], [60, 81], voice=[0, 1])
    score = skyline_score(Score(notes, 4, voices=("lead", "kit"), programs=(0, DRUMS)))
    assert score.notes["pitch"].tolist() == [60]
    assert score.voices == ("skyline",)


def test_all_of_the_line_is_of_one_voice() -> None:
    assert skyline(make_notes([0, 4], [4, 4], [60, 72], voice=[1, 2]))["voice"].tolist() == [0, 0]
