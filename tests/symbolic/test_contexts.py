import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import HOLD, REST, ContextLayout, Score, TimeSignature
from music_evals.errors import ContextLengthError, InvalidInputError, PolyphonyError, UnknownNameError
from music_evals.symbolic.contexts import (
    context_starts,
    cut_context,
    pick_voice,
    quantize_voice,
    tokens_from_score,
    window_starts,
)
from music_evals.symbolic.notes import check_monophonic, make_notes

TWO_VOICES = Score(
    make_notes([0, 0, 480], [480, 960, 480], [72, 48, 74], voice=[0, 1, 0]), 480, voices=("Tune", "Bass")
)


def test_a_voice_is_chosen_by_index_or_name():
    assert pick_voice(TWO_VOICES, 1)["pitch"].tolist() == [48]
    assert pick_voice(TWO_VOICES, "Tune")["pitch"].tolist() == [72, 74]
    assert pick_voice(TWO_VOICES, "2")["pitch"].tolist() == [48]
    with pytest.raises(PolyphonyError, match="'Tune'"):
        pick_voice(TWO_VOICES)
    twice = dataclasses.replace(TWO_VOICES, voices=("Tune", "Tune"))
    with pytest.raises(InvalidInputError, match="'Tune'"):
        pick_voice(twice, "Tune")
    assert pick_voice(dataclasses.replace(TWO_VOICES, voices=("2", "1")), "2")["pitch"].tolist() == [72, 74]  # a name
    for unknown in (2, -1, "Tun", "0", "3"):
        with pytest.raises(UnknownNameError, match="voice"):
            pick_voice(TWO_VOICES, unknown)


def test_the_only_voice_with_notes_needs_no_choice():
    score = Score(make_notes([0], [480], [60], voice=1), 480, voices=("silent", "Tune"))
    assert tokens_from_score(score).tolist() == [60, *[HOLD] * 5]
    assert tokens_from_score(Score(make_notes([], [], []), 480), 3).tolist() == [REST] * 3


def test_length_is_cut_and_padded():
    assert tokens_from_score(TWO_VOICES, 7, voice=0).tolist() == [72, *[HOLD] * 5, 74]
    assert tokens_from_score(TWO_VOICES, 14, voice=0).tolist() == [72, *[HOLD] * 5, 74, *[HOLD] * 5, REST, REST]


class TestOverlaps:
    """480 ticks a quarter, 6 steps: a step is 80 ticks."""

    def tokens(self, *notes):
        return tokens_from_score(Score(make_notes(*zip(*notes, strict=True)), 480)).tolist()

    def test_made_by_rounding_are_cut(self):
        # 0..10 is no step long and keeps one, which the note at 10 takes over
        assert self.tokens((0, 10, 60), (10, 150, 62)) == [62, HOLD]

    def test_shorter_than_a_step_are_cut(self):
        # 60 ends 79 ticks after 62 has started, at step 4: it is cut there
        assert self.tokens((0, 399, 60), (320, 160, 62)) == [60, HOLD, HOLD, HOLD, 62, HOLD]

    def test_of_a_step_raise(self):
        with pytest.raises(PolyphonyError, match="62"):
            self.tokens((0, 400, 60), (320, 160, 62))

    def test_of_notes_that_start_together_raise(self):
        with pytest.raises(PolyphonyError):
            self.tokens((0, 10, 60), (0, 10, 64))

    def test_in_the_last_step_of_a_note_are_cut(self):
        # 62 and 65 start on step 6 while 60 has less than a step to go; 65 sounds on
        assert self.tokens((0, 500, 60), (450, 10, 62), (460, 200, 65)) == [60, *[HOLD] * 5, 65, HOLD]

    def test_under_a_long_note_raise(self):
        # 62 has ended when 65 starts, but 60 has not
        with pytest.raises(PolyphonyError, match="65"):
            self.tokens((0, 500, 60), (421, 1, 62), (420, 200, 65))
        with pytest.raises(PolyphonyError, match="62"):
            self.tokens((0, 1000, 60), (100, 10, 62), (200, 10, 65))


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 400), st.integers(0, 127)), max_size=30),
    st.sampled_from([96, 480, 1024, 10080]),
    st.integers(1, 24),
)
def test_one_note_after_another_always_fits_the_grid(rows, tpq, steps):
    onsets, tick = [], 0
    for gap, duration, _ in rows:
        onsets.append(tick + gap)
        tick += gap + duration
    notes = make_notes(onsets, [row[1] for row in rows], [row[2] for row in rows])
    moved = quantize_voice(notes, tpq, steps)
    check_monophonic(moved)
    assert (moved["duration_tick"] >= 1).all()
    assert len(np.unique(moved["onset_tick"])) == len(moved)
    # every onset of the source is an onset on the grid: nothing but double onsets goes
    expected = np.unique((2 * notes["onset_tick"] * steps + tpq) // (2 * tpq))
    assert np.array_equal(moved["onset_tick"], expected)


def test_windows_of_musib():
    assert list(window_starts(16)) == [0]
    assert list(window_starts(15)) == []
    assert [len(window_starts(n)) for n in (17, 65)] == [2, 50]
    assert list(window_starts(40, stride=16)) == [0, 16]
    # four voices of 171 pieces with 3,326 measures in all: the windows are 3,044, not the published 2,360
    assert 4 * (3326 - 171 * 15) == 3044
    with pytest.raises(InvalidInputError):
        window_starts(20, stride=0)


def scale(n_quarters, *signatures, tpq=4):
    notes = make_notes(np.arange(n_quarters) * tpq, np.full(n_quarters, tpq), np.arange(n_quarters) % 128)
    return Score(notes, tpq, tuple(TimeSignature(*signature) for signature in signatures))


def test_contexts_of_a_piece_in_four_four():
    score = scale(4 * 18)
    whole = tokens_from_score(score)
    assert list(context_starts(score)) == [0, 1, 2] == list(context_starts(score, measures="notated"))
    for start in range(3):
        for measures in ("fixed", "notated"):
            context = cut_context(score, start, measures=measures)
            assert np.array_equal(context, whole[24 * start : 24 * start + 384])


def test_a_note_over_the_start_shows_as_holds_and_the_end_is_padded():
    score = Score(make_notes([0], [16 * 4 + 20], [60]), 4)
    context = cut_context(score, 1)
    assert (context[: 6 * 80 // 4 - 24 + 6].tolist()) == [HOLD] * 102
    assert set(context[102:].tolist()) == {REST}


def test_a_pickup_moves_notated_bars_but_not_fixed_ones():
    score = scale(1 + 4 * 17, (0, 1, 4), (4, 4, 4))
    assert list(context_starts(score, measures="notated")) == [1, 2]
    assert cut_context(score, 1, measures="notated")[0] == 1  # the second quarter of the scale
    assert cut_context(score, 0)[0] == 0
    assert list(context_starts(score)) == [0, 1, 2]
    with pytest.raises(ContextLengthError):
        cut_context(score, 0, measures="notated")


def test_other_meters_are_read_as_four_four_or_refused():
    waltz = scale(3 * 24, (0, 3, 4))
    assert list(context_starts(waltz)) == [0, 1, 2]  # 72 quarters are 18 measures of four
    assert list(context_starts(waltz, measures="notated")) == []
    with pytest.raises(ContextLengthError):
        cut_context(waltz, 0, measures="notated")
    cut_time = scale(4 * 16, (0, 2, 2))
    assert list(context_starts(cut_time, measures="notated")) == [0]
    changing = scale(4 * 20 + 3, (0, 4, 4), (16 * 16, 3, 4), (16 * 16 + 12, 4, 4))
    assert list(context_starts(changing, measures="notated")) == [0]


def test_starts_that_are_not_there():
    score = scale(4 * 16)
    for start in (-1, 16):
        with pytest.raises(ContextLengthError):
            cut_context(score, start)
    for start in (-1, 1, 16):
        with pytest.raises(ContextLengthError):
            cut_context(score, start, measures="notated")
    with pytest.raises(UnknownNameError, match="fixed"):
        cut_context(score, 0, measures="fix")


def test_other_layouts():
    layout = ContextLayout(1, 1, 1, steps_per_measure=16)
    context = cut_context(scale(16), 1, layout=layout)
    assert context.shape == (48,)
    assert context[:8].tolist() == [4, HOLD, HOLD, HOLD, 5, HOLD, HOLD, HOLD]
    with pytest.raises(InvalidInputError, match="multiple of 4"):
        cut_context(scale(16), 0, layout=ContextLayout(steps_per_measure=18))


def test_times_are_rounded_from_the_notated_bar_line():
    # a pickup of a sixteenth is 1.5 steps; after it, sixteenths start at steps 0, 1.5, 3, ... of the context
    notes = make_notes(np.arange(257), np.ones(257, dtype=int), np.arange(257) % 128)
    score = Score(notes, 4, (TimeSignature(0, 1, 16), TimeSignature(1, 4, 4)))
    context = cut_context(score, 1, measures="notated")
    assert context[:6].tolist() == [1, HOLD, 2, 3, HOLD, 4]
    assert len(context) == 384
    assert tokens_from_score(score, start_tick=1).tolist() == context.tolist()
