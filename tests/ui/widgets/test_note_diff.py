"""Note diffs: what was kept, missed and added, in agreement with the score that counts the same notes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.errors import InvalidTokensError, PairCountError
from music_evals.metrics.inpainting import note_f1, rhythm_accuracy
from music_evals.ui.widgets.note_diff import NoteChange, beats_text, diff_notes, pitch_name, place_text

TOKENS = st.lists(st.sampled_from([60, 62, 64, 128, 129]), min_size=24, max_size=24)


def test_each_note_of_both_sides_is_told_once() -> None:
    true = [60, 128, 62, 128, 64, 129, 65, 128]
    given_ = [60, 129, 63, 128, 64, 129, 129, 67]
    assert diff_notes(true, given_).changes == (
        NoteChange("kept", 0, 1, 60, 2),
        NoteChange("missed", 2, 2, 62),
        NoteChange("extra", 2, 2, 63),
        NoteChange("kept", 4, 1, 64, 1),
        NoteChange("missed", 6, 2, 65),
        NoteChange("extra", 7, 1, 67),
    )


def test_what_was_told_can_be_read_as_words() -> None:
    true = [60, *[128] * 5, 62, *[128] * 5, 64, *[128] * 11]
    found = [60, *[128] * 5, 65, *[128] * 5, 64, *[128] * 5, 67, *[128] * 5]
    diff = diff_notes(true, found)
    assert diff.summary() == "2 kept (1 of them with the true length), 1 missed, 2 extra."
    assert diff.sentences(7) == [
        "measure 7, beat 1: kept C4, 1 beat",
        "measure 7, beat 2: missed D4, 1 beat; extra F4, 1 beat, 3 semitones higher",
        "measure 7, beat 3: kept E4, but 1 beat and not 2 beats",
        "measure 7, beat 4: extra G4, 1 beat",
    ]


def test_silence_against_silence_is_said() -> None:
    assert diff_notes([129] * 4, [129] * 4).summary() == "Neither the true middle nor the candidate has a note."
    assert diff_notes([129] * 4, [60, 128, 128, 128]).summary() == "0 kept, 0 missed, 1 extra."


@given(TOKENS, TOKENS)
def test_counts_are_those_of_note_f1(true: list[int], found: list[int]) -> None:
    diff = diff_notes(true, found)
    kept, missed, extra = (diff.count(kind) for kind in ("kept", "missed", "extra"))
    whole = 2 * kept + missed + extra
    assert note_f1(true, found) == pytest.approx(2 * kept / whole if whole else 1.0)


@given(TOKENS)
def test_a_copy_is_kept_whole(true: list[int]) -> None:
    diff = diff_notes(true, true)
    assert {change.kind for change in diff.changes} <= {"kept"}
    assert diff.same_length == len(diff.changes) == np.sum(np.array(true) < 128)
    if diff.changes:
        assert rhythm_accuracy(true, true) == 1.0


def test_bad_input_is_named() -> None:
    with pytest.raises(PairCountError, match="4 and 3 steps"):
        diff_notes([60, 128, 128, 128], [60, 128, 128])
    with pytest.raises(InvalidTokensError, match="one sequence"):
        diff_notes([[60]], [[60]])


def test_places_lengths_and_pitches_are_told_as_musicians_do() -> None:
    assert place_text(0, 1) == "measure 1, beat 1"
    assert place_text(24 * 3 + 10, 7) == "measure 10, beat 2 2/3"
    assert beats_text(24) == "4 beats"
    assert beats_text(1) == "1/6 beat"
    assert [pitch_name(pitch) for pitch in (0, 61, 127)] == ["C-1", "C#4", "G9"]
