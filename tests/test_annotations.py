import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import NOTE_DTYPE, ContextLayout, KeySignature, Score, Tempo, TimeSignature, check_tokens
from music_evals.errors import InvalidInputError, InvalidNotesError, InvalidTokensError
from music_evals.symbolic.notes import make_notes


def notes(*rows):
    return np.array(list(rows), dtype=NOTE_DTYPE)


GOOD = (0, 1, 60, 64, 0)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (notes((-1, 1, 60, 64, 0)), "onset_tick must not be negative"),
        (notes((0, 0, 60, 64, 0)), "duration_tick must be at least 1"),
        (notes((0, 1, 128, 64, 0)), "pitch must lie in 0..127"),
        (notes((0, 1, 60, 0, 0)), "velocity must lie in 1..127"),
        (notes((0, 1, 60, 128, 0)), "velocity must lie in 1..127"),
        (notes((0, 1, 60, 64, 1)), "voice must lie in 0..0; note 0"),
        (notes((0, 1, 60, 64, -1)), "voice"),
        (notes((5, 1, 60, 64, 0), GOOD), "make_notes"),
        (notes(GOOD).reshape(1, 1), "1-D array"),
        (np.zeros(2), "NOTE_DTYPE"),
    ],
)
def test_a_score_checks_its_notes(array, message):
    with pytest.raises(InvalidNotesError, match=message):
        Score(array, 480)


def test_seconds_by_hand():
    score = Score(notes(), 480, tempos=(Tempo(480, 60.0), Tempo(960, 30.0)))
    # 120 until the first tempo: half a second; a second for the next quarter; two for the one after
    assert score.seconds([0, 480, 720, 960, 1440]).tolist() == [0.0, 0.5, 1.0, 1.5, 3.5]
    assert float(score.seconds(1440)) == 3.5
    assert score.seconds([[0, 480], [960, 1440]]).tolist() == [[0.0, 0.5], [1.5, 3.5]]
    twice = Score(notes(), 480, tempos=(Tempo(0, 30.0), Tempo(0, 60.0)))
    assert twice.seconds([480]).tolist() == [1.0]  # the last of several tempi at one tick


def test_a_score_checks_its_grid_and_changes():
    with pytest.raises(InvalidInputError, match="ticks_per_quarter"):
        Score(notes(GOOD), 0)
    with pytest.raises(InvalidInputError, match="tempos"):
        Score(notes(GOOD), 480, tempos=(Tempo(5, 60.0), Tempo(0, 60.0)))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (TimeSignature, (-1, 4, 4)),
        (TimeSignature, (0, 0, 4)),
        (TimeSignature, (0, 4, 3)),
        (TimeSignature, (0, 4, 0)),
        (Tempo, (0, 0.0)),
        (Tempo, (0, float("inf"))),
        (Tempo, (0, float("nan"))),
        (Tempo, (-1, 60.0)),
        (KeySignature, (0, 8)),
        (KeySignature, (-1, 0)),
        (ContextLayout, (-1, 4, 6)),
        (ContextLayout, (6, 0, 6)),
        (ContextLayout, (6, 4, 6, 0)),
    ],
)
def test_impossible_values_raise(kind, values):
    with pytest.raises(InvalidInputError):
        kind(*values)


def test_a_bar_in_quarters():
    assert [TimeSignature(0, *meter).quarters for meter in ((4, 4), (2, 2), (6, 8), (3, 16))] == [4, 4, 3, 0.75]


def test_a_layout_without_a_future():
    layout = ContextLayout(2, 1, 0, 4)
    assert (layout.n_measures, layout.n_steps, layout.past, layout.middle, layout.future) == (
        3, 12, slice(0, 8), slice(8, 12), slice(12, 12),
    )  # fmt: skip


@given(
    st.lists(
        st.tuples(st.integers(0, 99), st.integers(1, 99), st.integers(0, 127), st.integers(1, 127), st.integers(0, 1))
    ),
    st.builds(TimeSignature, st.just(0), st.integers(1, 12), st.sampled_from([2, 4, 8])),
    st.builds(Tempo, st.just(3), st.floats(10, 400)),
    st.builds(KeySignature, st.just(0), st.integers(-7, 7), st.booleans()),
)
def test_to_dict_and_back(rows, meter, tempo, key):
    columns = list(zip(*rows, strict=True)) or [[]] * 5
    score = Score(make_notes(*columns), 24, (meter,), (tempo,), (key,), ("a", "b"))
    again = Score.from_dict(score.to_dict())
    assert np.array_equal(again.notes, score.notes)
    assert again.to_dict() == score.to_dict()
    assert score.end_tick == max((row[0] + row[1] for row in rows), default=0)
    assert sum(len(score.voice(index)) for index in (0, 1)) == len(rows)


def test_tokens_are_checked_once():
    checked = check_tokens([0, 127, 128, 129])
    assert checked.dtype == np.uint8
    assert check_tokens(checked) is checked
    for wrong in ([130], [-1], [0.0], ["a"], [True, False]):
        with pytest.raises(InvalidTokensError):
            check_tokens(wrong)
