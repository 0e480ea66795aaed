"""What lies between two versions of a piece."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import Score
from music_evals.errors import InvalidInputError
from music_evals.symbolic.note_changes import NoteChanges, note_changes
from music_evals.symbolic.notes import make_notes


def score(*notes: tuple[int, int, int], ticks: int = 8) -> Score:
    onsets, durations, pitches = zip(*notes, strict=True) if notes else ((), (), ())
    return Score(make_notes(onsets, durations, pitches), ticks)


NOTES = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12), st.integers(58, 66)), max_size=12, unique=True).map(
    lambda notes: score(*notes)
)


def test_each_kind_of_change_is_told() -> None:
    before = score((0, 8, 60), (8, 8, 62), (16, 8, 64), (24, 8, 65), (32, 8, 67))
    after = score((0, 8, 60), (10, 8, 62), (16, 4, 64), (24, 8, 66), (48, 8, 72))
    assert note_changes(before, after) == NoteChanges(
        n_original=5, n_edited=5, n_same=1, n_moved=1, n_resized=1, n_repitched=1, n_inserted=1, n_deleted=1,
        cells_inserted=2 + 8 + 8, cells_deleted=2 + 4 + 8 + 8, distance=1.0,
    )  # fmt: skip


def test_a_note_far_away_is_another_one() -> None:
    assert note_changes(score((0, 8, 60)), score((32, 8, 60))).n_moved == 1
    far = note_changes(score((0, 8, 60)), score((33, 8, 60)))
    assert (far.n_moved, far.n_inserted, far.n_deleted) == (0, 1, 1)


def test_of_equal_matches_the_nearest_is_taken_once() -> None:
    changes = note_changes(score((0, 8, 60), (16, 8, 60)), score((2, 8, 60), (17, 8, 60)))
    assert (changes.n_moved, changes.distance) == (2, 1.0)


def test_voices_are_told_apart_and_must_be_the_same() -> None:
    notes = make_notes([0, 0], [8, 8], [60, 60], voice=[0, 1])
    both = Score(notes, 8, voices=("a", "b"))
    only = Score(notes[:1], 8, voices=("a", "b"))
    assert note_changes(both, only).n_deleted == 1
    with pytest.raises(InvalidInputError, match="voices"):
        note_changes(both, score((0, 8, 60)))


def test_nothing_has_no_distance() -> None:
    changes = note_changes(score(), score((0, 8, 60)))
    assert math.isnan(changes.distance)
    assert changes.n_inserted == 1


@given(NOTES)
def test_the_same_is_the_same_on_any_grid(one: Score) -> None:
    finer = one.notes.copy()
    finer["onset_tick"] *= 3
    finer["duration_tick"] *= 3
    changes = note_changes(one, Score(finer, 24))
    assert changes.n_same == len(one.notes)
    assert changes.distance == 0 or not len(one.notes)
    assert changes.cells_inserted == changes.cells_deleted == 0


@given(NOTES, NOTES)
def test_the_way_back_costs_the_same_and_notes_add_up(one: Score, other: Score) -> None:
    there, back = note_changes(one, other), note_changes(other, one)
    assert there[2:6] == back[2:6]  # same, moved, resized and repitched
    assert (there.n_inserted, there.cells_inserted) == (back.n_deleted, back.cells_deleted)
    assert sum(there[2:6]) + there.n_deleted == len(one.notes)
    assert sum(there[2:6]) + there.n_inserted == len(other.notes)


@given(NOTES, NOTES, NOTES)
def test_a_detour_is_never_shorter(one: Score, two: Score, three: Score) -> None:
    def cost(first: Score, second: Score) -> int:
        changes = note_changes(first, second)
        return sum(changes[3:8])

    assert cost(one, three) <= cost(one, two) + cost(two, three)
