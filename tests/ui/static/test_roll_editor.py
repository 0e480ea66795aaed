"""What the piano roll does to a melody: places, quantising, adding, cutting and emptying."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from music_evals.ui.widgets.roll_editor import read_melody
from music_evals.ui.widgets.roll_view import pitch_name, place_text

STEPS = 384
TWO = {"first_measure": 1, "held": 0, "notes": [[0, 6, 60], [12, 6, 64]]}


def notes(melody: dict[str, Any]) -> list[list[int]]:
    return melody["notes"]


@pytest.mark.parametrize("pitch", [0, 21, 60, 61, 70, 127])
def test_pitches_have_the_names_of_python(call: Any, pitch: int) -> None:
    assert call("pianoRoll")("pitchName", pitch) == pitch_name(pitch)


@pytest.mark.parametrize("step", [0, 1, 2, 3, 4, 5, 6, 23, 24, 33, 383])
def test_places_are_said_as_python_says_them(call: Any, step: int) -> None:
    assert call("pianoRoll")("place", step, 7, 24) == place_text(step, 7)


def test_steps_are_quantised_to_the_length_that_is_chosen(call: Any) -> None:
    editor = call("rollEditor")
    assert [call("pianoRoll")("snapped", step, 6) for step in (0, 5, 6, 17)] == [0, 0, 6, 12]
    # a drag reaches the end of the unit under the pointer, from wherever the note begins
    assert [editor("draggedLength", 6, step, 6) for step in (6, 11, 12, 20)] == [6, 6, 12, 18]
    assert editor("draggedLength", 3, 7, 6) == 9


def test_a_new_note_cuts_what_sounds_and_ends_at_the_next(call: Any) -> None:
    add = call("rollEditor")
    assert notes(add("add", TWO, 3, 67, 24, STEPS)) == [[0, 3, 60], [3, 9, 67], [12, 6, 64]]
    assert notes(add("add", TWO, 12, 67, 6, STEPS)) == [[0, 6, 60], [12, 6, 67]]  # one note begins at a step
    assert notes(add("add", TWO, 380, 67, 24, STEPS))[-1] == [380, 4, 67]  # not beyond the sixteen measures
    held = {"first_measure": 1, "held": 8, "notes": []}
    assert add("add", held, 4, 60, 6, STEPS)["held"] == 4


def test_lengths_stay_between_a_step_and_the_next_note(call: Any) -> None:
    editor = call("rollEditor")
    assert [notes(editor("resize", TWO, 0, length, STEPS))[0][1] for length in (-3, 1, 9, 99)] == [1, 1, 9, 12]
    assert notes(editor("resize", TWO, 12, 999, STEPS))[1] == [12, 372, 64]


def test_notes_are_found_where_they_sound(call: Any) -> None:
    editor = call("rollEditor")
    assert editor("noteAt", TWO, 5, 60) == [0, 6, 60]
    assert editor("noteAt", TWO, 6, 60) is None
    assert editor("noteAt", TWO, 5, 61) is None


def test_a_gap_is_emptied_and_what_sounds_into_it_is_cut(call: Any) -> None:
    editor = call("rollEditor")
    melody = {"first_measure": 1, "held": 2, "notes": [[2, 20, 60], [30, 6, 62], [40, 2, 64]]}
    cleared = editor("clear", melody, 10, 40)
    assert notes(cleared) == [[2, 8, 60], [40, 2, 64]]
    assert cleared["held"] == 2
    assert editor("clear", melody, 0, STEPS) == {"first_measure": 1, "held": 0, "notes": []}


def test_every_note_is_seen(call: Any) -> None:
    editor = call("rollEditor")
    assert editor("fitted", TWO, [55, 79]) == [55, 79]
    assert editor("fitted", {**TWO, "notes": [[0, 6, 0], [6, 6, 127]]}, [55, 79]) == [0, 127]
    assert editor("fitted", {**TWO, "notes": [[0, 6, 50]]}, [55, 79]) == [48, 79]


def test_only_notes_of_the_gap_can_be_locked_and_they_end_with_it(call: Any) -> None:
    editor = call("rollEditor")
    assert editor("lockOf", [144, 6, 60], [144, 240]) == [144, 6, 60]
    assert editor("lockOf", [234, 24, 60], [144, 240]) == [234, 6, 60]
    for note in ([143, 6, 60], [240, 6, 60], None):
        assert editor("lockOf", note, [144, 240]) is None


def test_a_lock_goes_on_and_off_and_none_sound_at_once(call: Any) -> None:
    toggled = call("kept")
    locks = toggled("toggled", [[150, 6, 60]], [144, 6, 62])
    assert locks == [[144, 6, 62], [150, 6, 60]]
    assert toggled("toggled", locks, [144, 6, 62]) == [[150, 6, 60]]
    assert toggled("toggled", locks, [147, 4, 65]) == [[147, 4, 65]]  # both sound while it does
    assert toggled("toggled", locks, [156, 4, 65]) == [*locks, [156, 4, 65]]
    assert call("kept")("read", "144,6,60") == [144, 6, 60]


def test_locks_are_said_in_words(call: Any) -> None:
    words = call("keptNotes")("words", [150, 6, 61], 24)
    assert words == f"{pitch_name(61)}, measure 7 of 16, beat 2, 6 steps"


edits = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "resize", "clear"]), st.integers(0, STEPS - 1), st.integers(1, 30)),
    max_size=25,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(edits)
def test_whatever_is_done_leaves_one_voice_that_the_library_reads(call: Any, done: list[tuple[str, int, int]]) -> None:
    editor = call("rollEditor")
    melody: dict[str, Any] = {"first_measure": 1, "held": 0, "notes": []}
    for name, step, amount in done:
        rest = {
            "add": (step, 40 + amount, amount, STEPS),
            "remove": (step,),
            "resize": (step, amount, STEPS),
            "clear": (min(step, STEPS - amount), min(step, STEPS - amount) + amount),
        }[name]
        melody = editor(name, melody, *rest)
    assert read_melody(json.dumps(melody)).notes == notes(melody)
