import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import HOLD, REST, ContextLayout, Score
from music_evals.datasets.tunes import content_key, cut_windows, middle_keys, training_keys, voice_tokens
from music_evals.errors import PolyphonyError
from music_evals.symbolic.notes import make_notes

# One measure of past, two of middle, one of future, four steps each: small enough to write out.
TOY = ContextLayout(past_measures=1, middle_measures=2, future_measures=1, steps_per_measure=4)


def score(onsets, durations, pitches, ticks_per_quarter=6):
    return Score(make_notes(onsets, durations, pitches), ticks_per_quarter)


def test_of_two_notes_that_round_to_one_step_the_later_is_kept():
    # 32nd notes of bwv248.64-s, 8 ticks a quarter: ticks 94 and 95 are steps 70.5 and 71.25, both 71.
    tokens = voice_tokens(score([88, 94, 95, 96], [6, 1, 1, 8], [73, 74, 76, 73], 8), 0, 4)
    assert tokens[66:].tolist() == [73, *[HOLD] * 4, 76, 73, *[HOLD] * 5, *[REST] * 18]


def test_two_notes_at_once_in_the_source_are_refused():
    with pytest.raises(PolyphonyError):
        voice_tokens(score([0, 3], [6, 6], [60, 62]), 0, 1)


def test_a_silent_voice_is_rests():
    assert (voice_tokens(score([], [], []), 0, 2) == REST).all()


def test_tokens_are_cut_at_the_pickup_and_a_note_held_over_it_leads_with_holds():
    # One quarter of pickup; the first note lasts two quarters, the second one quarter, then rests to the end.
    tokens = voice_tokens(score([0, 12], [12, 6], [60, 62]), 0, 1, pickup_quarters=1.0)
    assert tokens.tolist() == [HOLD] * 6 + [62] + [HOLD] * 5 + [REST] * 12


def test_a_note_over_the_bar_line_is_one_onset_and_holds():
    tokens = voice_tokens(score([18], [12], [60]), 0, 2)
    assert tokens.tolist() == [REST] * 18 + [60] + [HOLD] * 11 + [REST] * 18


def test_notes_after_the_last_counted_measure_are_left_out():
    assert voice_tokens(score([0, 24], [24, 24], [60, 62]), 0, 1).tolist() == [60] + [HOLD] * 23


def test_windows_step_by_one_measure_and_share_their_overlap():
    tokens = np.arange(5 * 4, dtype=np.uint8)
    assert cut_windows(tokens, TOY).tolist() == [list(range(16)), list(range(4, 20))]


@pytest.mark.parametrize(("n_measures", "n_windows"), [(0, 0), (15, 0), (16, 1), (65, 50)])
def test_a_song_has_n_minus_15_windows(n_measures, n_windows):
    assert cut_windows(np.full(n_measures * 24, REST, dtype=np.uint8)).shape == (n_windows, 384)


def test_content_is_the_same_in_every_transposition():
    tune = np.array([60, HOLD, 64, REST, 67, HOLD, HOLD, 60], dtype=np.uint8)
    moved = np.array([65, HOLD, 69, REST, 72, HOLD, HOLD, 65], dtype=np.uint8)
    assert content_key(tune) == content_key(moved)


@pytest.mark.parametrize(
    "other",
    [
        [60, HOLD, 65, REST],  # another interval
        [60, HOLD, 64, HOLD],  # a longer note
        [60, REST, 64, REST],  # a shorter note
        [HOLD, 60, 64, REST],  # a later onset
        [60, 64, HOLD, REST],  # the same notes in another rhythm
        [HOLD, HOLD, HOLD, HOLD],
        [REST, REST, REST, REST],
    ],
)
def test_content_tells_passages_apart(other):
    tune = np.array([60, HOLD, 64, REST], dtype=np.uint8)
    assert content_key(tune) != content_key(np.array(other, dtype=np.uint8))


def test_passages_without_an_onset_are_told_apart_by_holds_and_rests():
    assert content_key(np.array([HOLD, REST], np.uint8)) != content_key(np.array([REST, REST], np.uint8))


@given(st.lists(st.integers(0, 129), min_size=1, max_size=12), st.integers(-127, 127))
def test_content_ignores_exactly_the_transposition(tokens, semitones):
    tune = np.array(tokens)
    moved = np.where(tune < HOLD, tune + semitones, tune)
    if moved[tune < HOLD].size and (moved.min() < 0 or moved[tune < HOLD].max() > 127):
        return
    assert content_key(tune.astype(np.uint8)) == content_key(moved.astype(np.uint8))
    onsets = np.flatnonzero(tune < HOLD)
    if len(onsets) > 1:  # one note moved alone is another content
        changed = tune.copy()
        changed[onsets[-1]] = (changed[onsets[-1]] + 1) % 128
        assert content_key(tune.astype(np.uint8)) != content_key(changed.astype(np.uint8))


def test_a_middle_is_found_anywhere_in_a_training_window_at_a_bar_line():
    rest = [REST] * 4
    motif = [60, HOLD, 62, HOLD, 64, 65, 67, REST]
    higher = [67, HOLD, 69, HOLD, 71, 72, 74, REST]
    train = np.array([*rest, *rest, *motif], dtype=np.uint8)
    shifted = np.array([REST, *motif, *rest, *rest[:3]], dtype=np.uint8)
    window = np.array([[*rest, *higher, *rest]], dtype=np.uint8)
    (key,) = middle_keys(window, TOY)
    assert key in training_keys([train], TOY)
    assert key not in training_keys([shifted], TOY)  # the same notes, a quarter of a measure late


def test_every_bar_aligned_passage_of_a_training_window_counts():
    window = np.array([60, 1, 2, 3, 64, 1, 2, 3, 67, 1, 2, 3, 71, 1, 2, 3], dtype=np.uint8)
    assert len(training_keys([window], TOY)) == 3
