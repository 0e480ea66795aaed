import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import KeySignature, Score, Tempo, TimeSignature
from music_evals.errors import InvalidInputError
from music_evals.symbolic.measures import count_musib_measures, drop_repeated_signatures, meter_map, slice_measures
from music_evals.symbolic.notes import make_notes


def piece(end, *signatures, tpq=4):
    """A score of one long note."""
    return Score(make_notes([0], [end], [60]), tpq, tuple(TimeSignature(*signature) for signature in signatures))


def test_four_four_without_a_signature():
    bars = meter_map(piece(33))
    assert bars.starts.tolist() == [0, 16, 32, 48]
    assert (bars.n_measures, bars.pickup_ticks) == (3, 0)
    assert {(bar.numerator, bar.denominator) for bar in bars.signatures} == {(4, 4)}


def test_meter_change():
    bars = meter_map(piece(56, (0, 4, 4), (32, 3, 4)))
    assert bars.starts.tolist() == [0, 16, 32, 44, 56]
    assert [bar.numerator for bar in bars.signatures] == [4, 4, 3, 3]
    # tick 47: bar 3, three ticks after its line, beat 0.75
    assert (bars.measure_of(47), bars.position_in_measure(47), bars.beat_of(47)) == (3, 3, 0.75)


@pytest.mark.parametrize("signatures", [((0, 1, 4), (4, 4, 4)), ((0, 4, 4), (4, 4, 4))], ids=["short", "again"])
def test_pickup_both_ways_of_writing_it(signatures):
    bars = meter_map(piece(36, *signatures))
    assert bars.starts.tolist() == [0, 4, 20, 36]
    assert bars.pickup_ticks == 4
    # the pickup is the fourth beat of a bar whose first three are not there
    assert bars.beat_of([0, 2, 4, 19]).tolist() == [3.0, 3.5, 0.0, 3.75]
    assert bars.position_in_measure([0, 4]).tolist() == [12, 0]


def test_six_eight_counts_eighths():
    bars = meter_map(piece(24, (0, 6, 8)))
    assert bars.starts.tolist() == [0, 12, 24]
    assert bars.beat_of([2, 14]).tolist() == [1.0, 1.0]


def test_a_signature_inside_a_bar_cuts_it():
    bars = meter_map(piece(40, (0, 4, 4), (16 + 6, 4, 4)))
    assert bars.starts.tolist() == [0, 16, 22, 38, 54]
    assert bars.pickup_ticks == 0


def test_a_change_after_the_last_note_ends_the_last_bar():
    assert meter_map(piece(20, (0, 4, 4), (24, 3, 4))).starts.tolist() == [0, 16, 24]
    assert meter_map(piece(20, (0, 4, 4), (64, 3, 4))).starts.tolist() == [0, 16, 32]


def test_bars_that_are_no_whole_number_of_ticks():
    # 3/16 at 6 ticks a quarter is 4.5 ticks: lines at 0, 4.5, 9, 13.5 rounded half up
    assert meter_map(piece(13, (0, 3, 16), tpq=6)).starts.tolist() == [0, 5, 9, 14]
    with pytest.raises(InvalidInputError, match="finer grid"):
        meter_map(piece(13, (0, 1, 64), tpq=6))


def test_no_notes_no_bars():
    bars = meter_map(Score(make_notes([], [], []), 4))
    assert (bars.n_measures, bars.pickup_ticks, bars.starts.tolist()) == (0, 0, [0])
    assert bars.measure_of([]).tolist() == []
    with pytest.raises(InvalidInputError, match=r"bars 0\.\.0"):
        bars.span(0, 1)


def test_ticks_outside_the_bars_raise():
    bars = meter_map(piece(16))
    for tick in (-1, 16):
        with pytest.raises(InvalidInputError, match=r"ticks must lie in 0\.\.15"):
            bars.measure_of(tick)


meters = st.tuples(st.integers(1, 12), st.sampled_from([1, 2, 4, 8, 16]))


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 300), meters), max_size=5), st.integers(1, 600), st.sampled_from([4, 6, 24, 480])
)
def test_bars_cover_the_piece_without_holes(changes, end, tpq):
    signatures = [TimeSignature(tick, *meter) for tick, meter in sorted(changes)]
    bars = meter_map(Score(make_notes([0], [end], [60]), tpq, tuple(signatures)))
    assert bars.starts[0] == 0
    assert bars.starts[-2] < end <= bars.starts[-1]
    assert (bars.lengths > 0).all()
    assert len(bars.lengths) == bars.n_measures
    for signature in signatures:
        assert signature.tick in bars.starts or signature.tick >= end
    # no bar is longer than its signature, but for the rounding of its two lines
    nominal = [signature.quarters * tpq for signature in bars.signatures]
    assert (bars.lengths <= np.array(nominal) + 1).all()


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([(4, 4), (3, 4)])), max_size=8), st.integers(1, 300))
def test_leaving_out_repeated_signatures_moves_no_bar(changes, end):
    signatures = [TimeSignature(4 * quarter, *meter) for quarter, meter in sorted(changes)]
    kept = drop_repeated_signatures(signatures, 4)
    full, short = (meter_map(Score(make_notes([0], [end], [60]), 4, tuple(s))) for s in (signatures, kept))
    if not signatures or signatures[0].tick == 0:  # else the first one may only say that 4/4 goes on
        assert np.array_equal(full.starts, short.starts)
    assert drop_repeated_signatures(kept, 4) == kept


def test_slicing_bars():
    score = Score(
        make_notes([0, 4, 18, 30], [4, 14, 2, 10], [60, 62, 64, 65], voice=[0, 1, 0, 1]),
        4,
        (TimeSignature(0, 1, 4), TimeSignature(4, 4, 4), TimeSignature(20, 3, 4)),
        (Tempo(0, 60.0), Tempo(24, 90.0)),
        (KeySignature(0, 1), KeySignature(20, 2), KeySignature(32, 3)),
        ("a", "b"),
    )
    part = slice_measures(score, 2, 1)  # 20..32
    # the note at 30 is cut at the bar line; nothing else starts in the bar
    assert part.notes.tolist() == [(10, 2, 65, 64, 1)]
    assert part.time_signatures == (TimeSignature(0, 3, 4),)
    assert part.tempos == (Tempo(0, 60.0), Tempo(4, 90.0))
    assert part.key_signatures == (KeySignature(0, 2),)
    assert part.voices == ("a", "b")
    whole = slice_measures(score, 0, meter_map(score).n_measures)
    assert whole.to_dict() == score.to_dict()
    with pytest.raises(InvalidInputError, match=r"the score has 0\.\.3"):
        slice_measures(score, 3, 2)


# MUSIB's counting rule.


@pytest.mark.parametrize(
    ("onsets", "expected"),
    [
        ([], 0),
        ([0], 1),
        ([0, 480], 1),
        ([0, 1920, 4000], 3),
        ([0, 1920, 3840], 2),  # the last onset, on a bar line, falls back into the bar before
        ([0, 5760, 6000], 2),  # bars in which nothing starts do not count
        ([0, 1861, 5000, 5010], 3),  # rounded up into bar 1; the last two are in bar 2
        ([0, 1860, 5000, 5010], 2),  # 15.5 sixteenths go down, as the first of two grid points equally near
        ([0, 1859, 1900], 1),  # rounded down; the last is 15.8 sixteenths and goes to 15
        ([0, 1900, 1910], 1),  # and so is the one before it: there is no 16 on the grid
        ([79, 5192, 6091, 6715, 7119, 9168, 17252, 17263], 5),
    ],
)
def test_musib_counts_measures_in_which_a_note_starts(onsets, expected):
    assert count_musib_measures(onsets, 480) == expected


def test_musibs_count_does_not_depend_on_order_or_grid():
    onsets = np.array([0, 6, 24, 30, 50, 72, 100])
    assert count_musib_measures(onsets[::-1], 6) == count_musib_measures(onsets * 1680, 10_080) == 5


@given(st.lists(st.integers(0, 30_000), min_size=1, max_size=20), st.integers(1, 21))
def test_musib_counts_on_a_grid_that_stops_before_the_last_onset(onsets, ticks_per_sixteenth):
    grid = np.arange(0, max(*onsets, 1), ticks_per_sixteenth)
    nearest = [int(np.argmin(abs(grid - onset))) for onset in onsets]
    assert count_musib_measures(onsets, 4 * ticks_per_sixteenth) == len({index // 16 for index in nearest})
