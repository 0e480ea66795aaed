"""What became of notes, in words."""

from __future__ import annotations

from music_evals.pipelines.gaps.diff import diff_notes
from music_evals.ui.widgets.roll_view import beats_text, pitch_name, place_text, sentences, summary


def test_what_was_told_can_be_read_as_words() -> None:
    true = [60, *[128] * 5, 62, *[128] * 5, 64, *[128] * 11]
    found = [60, *[128] * 5, 65, *[128] * 5, 64, *[128] * 5, 67, *[128] * 5]
    diff = diff_notes(true, found)
    assert summary(diff) == "2 kept (1 of them with the true length), 1 missed, 2 extra."
    assert sentences(diff, 7) == [
        "measure 7, beat 1: kept C4, 1 beat",
        "measure 7, beat 2: missed D4, 1 beat; extra F4, 1 beat, 3 semitones higher",
        "measure 7, beat 3: kept E4, but 1 beat and not 2 beats",
        "measure 7, beat 4: extra G4, 1 beat",
    ]


def test_silence_against_silence_is_said() -> None:
    assert summary(diff_notes([129] * 4, [129] * 4)) == "Neither the true middle nor the candidate has a note."
    assert summary(diff_notes([129] * 4, [60, 128, 128, 128])) == "0 kept, 0 missed, 1 extra."


def test_places_lengths_and_pitches_are_told_as_musicians_do() -> None:
    assert place_text(0, 1) == "measure 1, beat 1"
    assert place_text(24 * 3 + 10, 7) == "measure 10, beat 2 2/3"
    assert beats_text(24) == "4 beats"
    assert beats_text(1) == "1/6 beat"
    assert [pitch_name(pitch) for pitch in (0, 61, 127)] == ["C-1", "C#4", "G9"]
