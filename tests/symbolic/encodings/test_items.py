"""One musical item of any kind, as tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from music_evals.annotations import HOLD, REST, Score, TimeSignature
from music_evals.errors import ContextLengthError, InvalidNotesError, UnknownNameError, UnsupportedTypeError
from music_evals.symbolic import noteseq
from music_evals.symbolic.encodings.items import read_tokens
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.notes import make_notes

tokens = arrays(np.uint8, st.sampled_from([96, 384]), elements=st.integers(0, 129))


@given(tokens)
def test_tokens_arrive_as_they_are(item: np.ndarray) -> None:
    for same in (item, item.tolist(), tuple(item.tolist()), item.astype(np.int64)):
        read = read_tokens(same, whole=len(item) == 384)
        assert read.dtype == np.uint8
        assert read.tolist() == item.tolist()


@given(tokens)
def test_notes_arrive_as_their_tokens(item: np.ndarray) -> None:
    """Notes and MIDI say what the tokens of the same notes say; holds that belong to no note become rests."""
    whole = len(item) == 384
    notes = noteseq.decode(item)
    padded = noteseq.encode(notes, 384 if whole else 96)
    rows = [
        {
            "onset_step": int(note["onset_tick"]),
            "duration_step": int(note["duration_tick"]),
            "pitch": int(note["pitch"]),
        }
        for note in notes
    ]
    score = Score(notes, 6)
    end = int((notes["onset_tick"] + notes["duration_tick"]).max(initial=0))
    for same in (notes, score, write_midi(score)) + ((rows,) if rows else ()):
        if whole and end <= 240:  # a file of notes says nothing of the rests of a silent future
            with pytest.raises(ContextLengthError):
                read_tokens(same, whole=True)
        else:
            assert read_tokens(same, whole=whole).tolist() == padded.tolist()


@given(tokens.filter(lambda item: len(item) == 384))
def test_parts_make_the_whole(item: np.ndarray) -> None:
    parts = {"past": item[:144], "middle": item[144:240].tolist(), "future": tuple(item[240:].tolist())}
    assert read_tokens(parts, whole=True).tolist() == item.tolist()


@pytest.mark.parametrize(("end", "length"), [(1, 96), (96, 96), (241, 384), (384, 384)])
def test_the_end_of_the_notes_decides_the_layout(end: int, length: int) -> None:
    assert len(read_tokens(make_notes([0], [end], [60]), whole=False)) == length


@pytest.mark.parametrize("end", [97, 240, 385])
def test_notes_that_end_where_neither_a_middle_nor_a_context_does(end: int) -> None:
    with pytest.raises(
        ContextLengthError, match=rf"within steps 0..96 or within steps 241..384, got an end at step {end}"
    ):
        read_tokens(make_notes([0], [end], [60]), whole=False)


@pytest.mark.parametrize("end", [0, 96, 240, 385])
def test_a_reference_reaches_into_the_future(end: int) -> None:
    notes = make_notes([0], [end], [60]) if end else make_notes([], [], [])
    with pytest.raises(ContextLengthError, match=rf"within steps 241..384, got an end at step {end}"):
        read_tokens(notes, whole=True)


def test_no_note_is_a_rest() -> None:
    assert read_tokens(make_notes([], [], []), whole=False).tolist() == [REST] * 96


def test_notes_beyond_the_end() -> None:
    with pytest.raises(ContextLengthError):
        read_tokens({"past": [REST] * 144, "middle": make_notes([0], [97], [60]), "future": [REST] * 144}, whole=True)


def test_grids_are_brought_to_steps() -> None:
    """A quarter of 480 ticks is six steps."""
    read = read_tokens(Score(make_notes([480], [480], [60]), 480), whole=False)
    assert read[:13].tolist() == [REST] * 6 + [60] + [HOLD] * 5 + [REST]


def test_notes_are_checked() -> None:
    unsorted = make_notes([0, 6], [6, 6], [60, 62])[::-1]
    with pytest.raises(InvalidNotesError, match="sorted"):
        read_tokens(unsorted, whole=False)
    with pytest.raises(InvalidNotesError, match="pitch"):
        read_tokens([{"onset_step": 0, "duration_step": 6, "pitch": 128}], whole=False)


@pytest.mark.parametrize(
    ("signatures", "found"),
    [
        ([(0, 3, 4)], "measure 1 is in 3/4 and lasts 3 quarters"),
        ([(0, 4, 4), (480 * 32, 6, 8)], "measure 9 is in 6/8 and lasts 3 quarters"),
        ([(0, 1, 4), (480, 4, 4)], "the first is a pickup of 1 quarters; cut it off"),
        ([(480, 4, 4)], "the first is a pickup of 1 quarters; cut it off"),
        ([(0, 1, 4), (480, 4, 4), (480 * 33, 3, 4)], "measure 1 is in 1/4 and lasts 1 quarters"),
    ],
)
def test_other_meters_are_refused_by_name(signatures: list[tuple[int, int, int]], found: str) -> None:
    meters = tuple(TimeSignature(*signature) for signature in signatures)
    score = Score(make_notes(np.arange(64) * 480, 480, [60] * 64), 480, meters)
    for same in (score, write_midi(score)):
        with pytest.raises(ContextLengthError, match=rf"four quarters are needed, .*{found}.*`measures='fixed'`"):
            read_tokens(same, whole=True)
    assert read_tokens(score, whole=True, measures="fixed").tolist() == [60, *[HOLD] * 5] * 64


@pytest.mark.parametrize("signatures", [[], [(0, 4, 4)], [(0, 2, 2)], [(0, 4, 4), (480 * 64, 3, 4)]])
def test_measures_of_four_quarters_are_taken(signatures: list[tuple[int, int, int]]) -> None:
    """A meter that begins after the last note is that of no measure."""
    meters = tuple(TimeSignature(*signature) for signature in signatures)
    score = Score(make_notes(np.arange(64) * 480, 480, [60] * 64), 480, meters)
    assert read_tokens(score, whole=True).tolist() == read_tokens(score, whole=True, measures="fixed").tolist()


def test_a_way_to_lay_measures_that_does_not_exist() -> None:
    with pytest.raises(UnknownNameError, match="'free'"):
        read_tokens([REST] * 96, whole=False, measures="free")  # type: ignore[arg-type]


def test_files_are_told_by_their_suffix() -> None:
    with pytest.raises(UnknownNameError):
        read_tokens("song.wav", whole=False)


def test_abc_and_musicxml(tmp_path) -> None:
    pytest.importorskip("music21")
    abc = tmp_path / "tune.abc"
    abc.write_text("X:1\nT:Tune\nM:4/4\nL:1/4\nK:C\nC D E F | G4 |\n", encoding="utf-8")
    read = read_tokens(abc, whole=False)
    assert read[:49].tolist() == [
        *(token for pitch in (60, 62, 64, 65) for token in [pitch, *[HOLD] * 5]), 67, *[HOLD] * 23, REST,
    ]  # fmt: skip


@pytest.mark.parametrize("item", [object(), 1.5, "", b"", [], [[60]], np.array(["60"]), range(96), {}, None])
def test_nothing_is_guessed(item: object) -> None:
    with pytest.raises((UnsupportedTypeError, ValueError, LookupError)) as caught:
        read_tokens(item, whole=False)
    assert type(caught.value).__module__ == "music_evals.errors"
