import numpy as np
import pretty_midi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import Score, Tempo, TimeSignature
from music_evals.errors import InvalidInputError
from music_evals.symbolic.encodings.time_grid import grid_times, nearest_step, quantize_performance
from music_evals.symbolic.midi import to_pretty_midi
from music_evals.symbolic.notes import make_notes, quantize


def performance(*notes, **options):
    midi = pretty_midi.PrettyMIDI(**options)
    midi.instruments = [pretty_midi.Instrument(0, name="Tune")]
    midi.instruments[0].notes = [pretty_midi.Note(64, pitch, start, end) for start, end, pitch in notes]
    return midi


def test_one_tempo_by_hand():
    # 60 a minute, 6 steps a quarter: a step is a sixth of a second
    assert grid_times([0], [60], 0.5) == pytest.approx([0, 1 / 6, 2 / 6, 3 / 6])
    # the grid is closed: an end between two steps has one at or after it
    assert grid_times([0], [60], 0.51) == pytest.approx([0, 1 / 6, 2 / 6, 3 / 6, 4 / 6])
    assert grid_times([0], [60], 0.0).tolist() == [0.0]


def test_several_tempi_by_hand():
    # 60 until 1.1 s, then 120, 2 steps a quarter: 2.2 steps have passed at 1.1 s, step 3 comes 0.8 steps of 0.25 s on
    assert grid_times([0, 1.1], [60, 120], 1.6, steps_per_quarter=2) == pytest.approx([0, 0.5, 1.0, 1.3, 1.55, 1.8])
    # a third tempo that lasts to the end is not lost
    times = grid_times([0, 1, 2], [60, 120, 30], 6, steps_per_quarter=1)
    assert times == pytest.approx([0, 1, 1.5, 2, 4, 6])


def test_tempi_are_not_cut_to_whole_numbers():
    # the end of quarter 100 at 91.99999: cutting to 91 would be 0.7 s late
    assert grid_times([0], [91.99999], 65.3, steps_per_quarter=1)[100] == pytest.approx(100 * 60 / 91.99999)


def test_nearest_step_by_hand():
    grid = np.array([0.0, 1.0, 2.0, 2.5])
    # midway goes up; after the last step there is no other
    assert nearest_step([0.0, 0.49, 0.5, 1.6, 2.24, 2.25, 9.0], grid).tolist() == [0, 0, 1, 2, 2, 3, 3]
    assert nearest_step([0.0, 3.0], np.array([0.0])).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("times", "bpm"),
    [([], []), ([0.5], [60]), ([0, 0], [60, 90]), ([0, 1], [60]), ([0], [0]), ([0], [np.inf]), ([0], [np.nan])],
)
def test_impossible_tempi_raise(times, bpm):
    with pytest.raises(InvalidInputError):
        grid_times(times, bpm, 1.0)


@pytest.mark.parametrize("options", [{"end_sec": -1.0}, {"end_sec": np.nan}, {"end_sec": 1, "steps_per_quarter": 0}])
def test_impossible_grids_raise(options):
    with pytest.raises(InvalidInputError):
        grid_times([0], [60], **options)


def test_the_last_note_keeps_its_last_step():
    score = quantize_performance(performance((0, 1, 60), (1, 2, 62), initial_tempo=60))
    assert [tuple(note)[:3] for note in score.notes.tolist()] == [(0, 6, 60), (6, 6, 62)]
    assert (score.ticks_per_quarter, score.voices) == (6, ("Tune",))


def test_a_performance_that_is_not_on_the_grid():
    # steps of 1/6 s; onsets late by 0.05 s, a grace note shorter than half a step keeps one
    score = quantize_performance(performance((0.05, 0.98, 60), (1.05, 1.08, 62), initial_tempo=60))
    assert [tuple(note)[:3] for note in score.notes.tolist()] == [(0, 6, 60), (6, 1, 62)]


def test_a_ritardando_stays_in_step():
    # quarters at 120, 90, 60, 30: one tempo a quarter; four notes of a quarter each
    tempos = tuple(Tempo(480 * index, bpm) for index, bpm in enumerate([120.0, 90.0, 60.0, 30.0]))
    notes = make_notes(np.arange(4) * 480, np.full(4, 480), [60, 62, 64, 65])
    score = Score(notes, 480, (TimeSignature(0, 3, 4),), tempos, voices=("Tune",))
    moved = quantize_performance(to_pretty_midi(score))
    assert np.array_equal(moved.notes, quantize(score, 6).notes)
    assert moved.time_signatures == (TimeSignature(0, 3, 4),)
    assert [tempo.tick for tempo in moved.tempos] == [0, 6, 12, 18]


notes_on_ticks = st.lists(
    st.tuples(st.integers(0, 20_000), st.integers(1, 3000), st.integers(0, 127)),
    min_size=1,
    max_size=20,
    unique_by=lambda row: row[0],
)


def score_of(rows, tpq, tempos):
    return Score(make_notes(*zip(*rows, strict=True)), tpq, tempos=tempos, voices=("",))


@given(notes_on_ticks, st.floats(20, 300), st.sampled_from([96, 480, 960]), st.sampled_from([1, 4, 6, 24]))
def test_at_one_tempo_it_is_the_quantisation_of_ticks(rows, bpm, tpq, steps):
    score = score_of(rows, tpq, (Tempo(0, bpm),))
    seconds = [
        score.seconds(tick)
        for tick in (score.notes["onset_tick"], score.notes["onset_tick"] + score.notes["duration_tick"])
    ]
    midi = performance(*zip(*seconds, score.notes["pitch"].tolist(), strict=True), initial_tempo=bpm)
    assert np.array_equal(quantize_performance(midi, steps_per_quarter=steps).notes, quantize(score, steps).notes)


@given(
    notes_on_ticks,
    st.lists(st.tuples(st.integers(1, 20), st.floats(20, 300)), max_size=5, unique_by=lambda row: row[0]),
)
def test_tempi_that_change_on_steps_move_no_note(rows, changes):
    # between two steps of one tempo nearest in time is nearest in ticks: so changes on steps change nothing
    tempos = (Tempo(0, 100.0), *(Tempo(480 * quarter, bpm) for quarter, bpm in sorted(changes)))
    score = score_of(rows, 480, tempos)
    onsets, ends = (
        score.seconds(tick)
        for tick in (score.notes["onset_tick"], score.notes["onset_tick"] + score.notes["duration_tick"])
    )
    starts = score.seconds([tempo.tick for tempo in tempos])
    grid = grid_times(starts, [tempo.bpm for tempo in tempos], float(ends.max()))
    moved = quantize(score, 6).notes
    expected = {(int(onset), pitch) for onset, _, pitch, _, _ in moved.tolist()}
    assert set(zip(nearest_step(onsets, grid).tolist(), score.notes["pitch"].tolist(), strict=True)) == expected
    assert (np.diff(grid) > 0).all()
    assert grid[-1] >= ends.max() - 1e-6
