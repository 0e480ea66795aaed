import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import HOLD, MASK, MUSIB_LAYOUT, REST, ContextLayout
from music_evals.errors import ContextLengthError, InvalidTokensError, PolyphonyError
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.noteseq import check_contexts, decode, encode, mask_middle


@st.composite
def melodies(draw):
    """One voice: gaps and durations laid end to end."""
    rows = draw(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 9), st.integers(0, 127)), max_size=30))
    onsets, tick = [], 0
    for gap, duration, _ in rows:
        onsets.append(tick + gap)
        tick += gap + duration
    return make_notes(onsets, [row[1] for row in rows], [row[2] for row in rows]), tick


def test_one_bar_by_hand():
    # quarter C4, eighth D4, eighth rest, half-bar of silence but for a last step E4
    notes = make_notes([0, 6, 23], [6, 3, 1], [60, 62, 64])
    expected = [60, *[HOLD] * 5, 62, HOLD, HOLD, *[REST] * 14, 64]
    assert encode(notes, 24).tolist() == expected


@given(melodies())
def test_notes_come_back(melody):
    notes, end = melody
    assert np.array_equal(decode(encode(notes, end)), notes)


@given(st.lists(st.integers(0, 129), max_size=60))
def test_tokens_come_back_but_for_holds_that_hold_nothing(values):
    tokens = np.array(values, dtype=np.uint8)
    expected = tokens.copy()
    for step in range(len(tokens)):  # a hold after a rest, or at the start, belongs to no note
        if tokens[step] == HOLD and (step == 0 or expected[step - 1] == REST):
            expected[step] = REST
    assert np.array_equal(encode(decode(tokens), len(tokens)), expected)


@given(melodies(), st.integers(0, 100))
def test_encoding_is_cut_at_the_end_and_padded_with_rests(melody, n_steps):
    notes, end = melody
    whole = encode(notes, end + 100)
    assert np.array_equal(encode(notes, n_steps), whole[:n_steps])
    assert (whole[end:] == REST).all()


def test_what_is_lost_is_velocity_and_voice():
    notes = make_notes([0], [2], [60], velocity=99, voice=3)
    assert decode(encode(notes, 2)).tolist() == [(0, 2, 60, 64, 0)]


def test_polyphony_raises():
    with pytest.raises(PolyphonyError, match="64"):
        encode(make_notes([0, 2], [4, 4], [60, 64]), 8)


@pytest.mark.parametrize("tokens", [[[60, 128]], [130], [-1], [1.5], [256]])
def test_what_is_no_sequence_of_tokens_raises(tokens):
    with pytest.raises(InvalidTokensError):
        decode(tokens)


def test_no_tokens_are_no_notes():
    assert len(decode([])) == 0


def test_contexts_are_checked():
    assert check_contexts(np.full((2, 384), REST)).dtype == np.uint8
    for shape in ((384,), (2, 383), (0, 96)):
        with pytest.raises(ContextLengthError, match="384"):
            check_contexts(np.full(shape, REST, dtype=np.uint8))


def test_the_middle_is_masked_in_a_copy(rng):
    contexts = rng.integers(0, 130, (3, 384)).astype(np.uint8)
    before = contexts.copy()
    masked = mask_middle(contexts)
    assert np.array_equal(contexts, before)
    assert (masked[:, 144:240] == MASK).all()
    assert np.array_equal(np.delete(masked, np.s_[144:240], axis=1), np.delete(before, np.s_[144:240], axis=1))


def test_layout_of_musib():
    assert (MUSIB_LAYOUT.n_steps, MUSIB_LAYOUT.middle, MUSIB_LAYOUT.middle_steps) == (384, slice(144, 240), 96)
    assert ContextLayout(1, 2, 1, 16).middle == slice(16, 48)
