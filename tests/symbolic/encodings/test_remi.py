import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import Score, Tempo, TimeSignature
from music_evals.errors import ContextLengthError, InvalidNotesError, InvalidTokensError
from music_evals.symbolic.encodings.remi import SIZES, decode, encode, pad, relative_bars
from music_evals.symbolic.notes import make_notes


@st.composite
def id_rows(draw):
    """Ids as `encode` writes them: sorted, one tempo an onset."""
    onsets = draw(st.lists(st.integers(0, 255), max_size=12, unique=True).map(sorted))
    rows = []
    for onset in onsets:
        tempo = draw(st.integers(0, 45))
        pitches = draw(st.lists(st.integers(0, 85), min_size=1, max_size=3, unique=True).map(sorted))
        rows += [
            [tempo, onset // 16, onset % 16, pitch, draw(st.integers(0, 63)), draw(st.integers(0, 31))]
            for pitch in pitches
        ]
    return np.array(rows, dtype=np.int64).reshape(-1, 6)


def test_sizes_of_the_paper():
    assert SIZES == (49, 19, 19, 89, 67, 35)


def test_by_hand_on_music21s_grid():
    # 10080 ticks a quarter: 480 must not be taken for granted. Second bar, third sixteenth, a dotted eighth
    score = Score(
        make_notes([4 * 10080 + 5040], [7560], [60], velocity=100), 10080, tempos=(Tempo(0, 91.99999999),)
    )  # fmt: skip
    # tempo 92 = 28 + 4 * 16; bar 1; position 2; pitch 60 - 22; 0.75 quarters = 6/32, id 5; velocity 100 // 4
    assert encode(score).tolist() == [[16, 1, 2, 38, 5, 25]]


@given(id_rows())
def test_ids_come_back(ids):
    assert np.array_equal(encode(decode(ids)), ids)


@given(id_rows(), st.integers(0, 5))
def test_padding_comes_off(ids, extra):
    padded = pad(ids, len(ids) + extra)
    assert padded.shape == (len(ids) + extra, 6)
    assert (padded[len(ids) :] == np.array(SIZES) - 1).all()
    assert np.array_equal(encode(decode(padded)), ids)


@given(
    st.lists(
        st.tuples(st.integers(0, 255), st.integers(1, 64), st.integers(22, 107), st.integers(1, 127)),
        max_size=20,
        unique_by=lambda row: (row[0], row[2]),
    )
)
def test_notes_on_the_grid_come_back_but_for_what_is_lost(rows):
    columns = list(zip(*rows, strict=True)) or [[], [], [], []]
    notes = make_notes([2 * onset for onset in columns[0]], *columns[1:])
    again = decode(encode(Score(notes, 8))).notes
    for field in ("onset_tick", "duration_tick", "pitch"):
        assert np.array_equal(again[field], notes[field])
    lost = notes["velocity"].astype(int) - again["velocity"]
    assert ((lost >= 0) & (lost < 4)).all()


def test_what_is_lost():
    score = Score(
        # an onset finer than a sixteenth, a length finer than a 1/32, a length of three bars, two voices
        make_notes([13, 480], [70, 3 * 1920], [60, 62], velocity=[3, 127], voice=[0, 1]),
        480,
        (TimeSignature(0, 3, 4),),
        (Tempo(0, 12.0), Tempo(480, 300.0)),
        voices=("a", "b"),
    )
    again = decode(encode(score))
    assert again.notes.tolist() == [(0, 1, 60, 1, 0), (8, 64, 62, 124, 0)]  # 64/32: two bars
    assert again.tempos == (Tempo(0, 28.0), Tempo(8, 208.0))
    assert (again.time_signatures, again.voices, again.ticks_per_quarter) == ((), ("",), 8)


def test_lengths_go_to_the_nearest_bin_wherever_a_note_starts():
    # MUSIB's grid has 6 steps a quarter, a bin is an eighth of one: no length lies halfway between two bins
    bins = np.arange(1, 65) / 8
    for onset in range(24):
        for length in range(1, 48):
            ids = encode(Score(make_notes([onset], [length], [60]), 6))
            assert ids[0, 4] == np.argmin(abs(bins - length / 6))


def test_notes_that_come_to_start_together_share_a_tempo():
    # 100 and 130 ticks are both nearest to the first sixteenth, to which the change at 120 belongs as well
    notes = make_notes([0, 100, 130], [10, 10, 10], [60, 62, 64])
    for change in (105, 120, 130):
        again = decode(encode(Score(notes, 480, tempos=(Tempo(0, 60.0), Tempo(change, 120.0)))))
        assert again.tempos == (Tempo(0, 60.0), Tempo(2, 120.0))


@given(
    st.lists(st.integers(0, 7600), min_size=1, max_size=12, unique=True),
    st.lists(st.integers(0, 7600), max_size=4, unique=True).map(sorted),
    st.sampled_from([96, 480, 10_080]),
)
def test_what_was_encoded_can_be_decoded(onsets, changes, tpq):
    onsets = np.array(onsets) * tpq // 480
    tempos = tuple(Tempo(tick * tpq // 480, 60.0 + 8 * index) for index, tick in enumerate(changes))
    ids = encode(Score(make_notes(onsets, np.full(len(onsets), tpq), np.full(len(onsets), 60)), tpq, tempos=tempos))
    assert np.array_equal(encode(decode(ids)), ids)


def test_an_onset_may_round_into_the_next_bar_but_not_out_of_the_last():
    last_tick = 16 * 1920 - 1
    assert encode(Score(make_notes([1919], [10], [60]), 480))[0, 1:3].tolist() == [1, 0]
    with pytest.raises(InvalidNotesError, match="16"):
        encode(Score(make_notes([last_tick], [10], [60]), 480))


@pytest.mark.parametrize("pitch", [21, 108])
def test_pitches_that_the_scheme_has_not_raise(pitch):
    with pytest.raises(InvalidNotesError, match="22"):
        encode(Score(make_notes([0], [1], [pitch]), 480))


def test_bars_without_onsets_keep_their_place():
    ids = encode(Score(make_notes([0, 3 * 16, 3 * 16 + 4], [1, 1, 1], [60, 60, 60]), 4))
    assert ids[:, 1].tolist() == [0, 3, 3]
    assert relative_bars(ids).tolist() == [0, 1, 0] == relative_bars(pad(ids)).tolist()
    assert relative_bars([]).tolist() == []


NOTE = [23, 0, 0, 38, 0, 16]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([NOTE[:5]], "shape"),
        ([[0.5] * 6], "whole numbers"),
        ([[46, *NOTE[1:]]], "row 0: tempo id 46"),
        ([NOTE, [*NOTE[:3], 86, *NOTE[4:]]], "row 1: pitch id 86"),
        ([[-1, *NOTE[1:]]], "tempo id -1"),
        ([[size - 1 for size in SIZES], NOTE], "row 0"),
        ([NOTE, [24, *NOTE[1:3], 40, 0, 16]], "two tempi at one onset, tick 0"),
    ],
)
def test_what_are_no_ids_raises(ids, message):
    with pytest.raises(InvalidTokensError, match=message):
        decode(ids)


def test_too_many_notes_are_not_cut():
    with pytest.raises(ContextLengthError, match="513"):
        pad(np.zeros((513, 6), dtype=np.int64))
