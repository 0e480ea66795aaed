"""The editor's value and the drawn rolls, without a browser."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import HOLD, MUSIB_LAYOUT, REST
from music_evals.errors import InvalidNotesError, PolyphonyError
from music_evals.pipelines.gaps.diff import diff_notes
from music_evals.symbolic import noteseq
from music_evals.symbolic.midi import read_midi
from music_evals.symbolic.noteseq import decode
from music_evals.ui.widgets.roll_editor import Melody, read_melody, write_melody
from music_evals.ui.widgets.roll_view import (
    RollNote,
    context_notes,
    diff_roll,
    figure_html,
    legend_html,
    locks_html,
    midi_bytes,
    pitch_range,
    roll_svg,
)


def context() -> np.ndarray:
    tokens = np.full(384, REST, dtype=np.uint8)
    tokens[:6] = [60, *[HOLD] * 5]
    tokens[144:156] = [62, *[HOLD] * 5, 64, *[HOLD] * 5]
    tokens[240:246] = [65, *[HOLD] * 5]
    return tokens


@given(st.lists(st.sampled_from([55, 60, 67, HOLD, REST]), min_size=384, max_size=384), st.integers(1, 500))
def test_what_is_written_for_the_editor_reads_back(tokens: list[int], first: int) -> None:
    """All but the holds after a rest, which belong to no note."""
    read = read_melody(write_melody(Melody(np.array(tokens, dtype=np.uint8), first)))
    assert read.first_measure == first
    assert np.array_equal(decode(read.tokens), decode(tokens))
    lead = next((step for step, token in enumerate(tokens) if token != HOLD), 384)
    assert (read.tokens[:lead] == HOLD).all()


def test_notes_may_come_in_any_order() -> None:
    melody = read_melody('{"notes": [[6, 6, 62], [0, 6, 60]], "first_measure": 3}')
    assert melody.tokens[[0, 5, 6, 11, 12]].tolist() == [60, HOLD, 62, HOLD, REST]
    assert melody.notes == [[0, 6, 60], [6, 6, 62]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        "[" * 5000,
        "{}",
        '{"notes": 1}',
        '{"notes": [[0, 6]]}',
        '{"notes": [[0, 6, 60.5]]}',
        '{"notes": [[true, 6, 60]]}',
        '{"notes": [[0, 0, 60]]}',
        '{"notes": [[-1, 6, 60]]}',
        '{"notes": [[380, 6, 60]]}',
        '{"notes": [[0, 6, 128]]}',
        '{"notes": [], "first_measure": 0}',
        '{"notes": [], "first_measure": "<b>"}',
        '{"notes": [], "held": 385}',
        '{"notes": []}' + " " * 20_000,
    ],
)
def test_text_that_is_no_melody_is_refused(text: str) -> None:
    with pytest.raises(InvalidNotesError, match=r"expected|such as|held"):
        read_melody(text)


def test_two_notes_at_once_are_refused() -> None:
    with pytest.raises(PolyphonyError):
        read_melody(json.dumps({"notes": [[0, 6, 60], [3, 6, 64]]}))


def test_notes_of_the_middle_are_told_apart() -> None:
    tokens = context()
    assert [note.kind for note in context_notes(tokens, tokens[MUSIB_LAYOUT.middle])] == [
        "outside", "filled", "filled", "outside",
    ]  # fmt: skip
    middle = np.full(96, REST, dtype=np.uint8)
    middle[:12] = [62, *[HOLD] * 5, 67, *[HOLD] * 5]
    drawn = diff_roll(tokens, middle, diff_notes(tokens[MUSIB_LAYOUT.middle], middle))
    assert [(note.onset, note.pitch, note.kind) for note in drawn] == [
        (0, 60, "outside"),
        (144, 62, "kept"),
        (150, 64, "missed"),
        (150, 67, "extra"),
        (240, 65, "outside"),
    ]


def test_a_note_that_sounds_on_into_the_future_is_drawn_as_it_sounds() -> None:
    tokens = context()
    tokens[240:246] = HOLD
    middle = np.full(96, HOLD, dtype=np.uint8)
    middle[0] = 62
    [_, note] = diff_roll(tokens, middle, diff_notes(middle, middle))
    assert note == RollNote(144, 102, 62, "kept")


def test_every_kind_of_note_has_a_class_and_a_name_of_its_own() -> None:
    notes = [RollNote(6 * index, 6, 60 + index, kind) for index, kind in enumerate(("kept", "missed", "extra"))]
    svg = roll_svg(notes, label='a "roll"', first_measure=9)
    assert 'aria-label="a &#34;roll&#34;"' in svg
    assert re.findall(r'class="note (\w+)"', svg) == ["kept", "extra", "missed"]  # outlines lie on top
    assert [svg.count(f"<title>{name}</title>") for name in ("C4, kept", "C#4, missed", "D4, extra")] == [1, 1, 1]
    assert re.findall(r">(\d+)</text>", svg) == [str(number) for number in range(9, 25)]
    assert legend_html(["kept"]).count("<span>") == 1


def test_a_gap_may_lie_elsewhere_and_its_notes_can_be_locked() -> None:
    gap = slice(0, 12)
    middle = np.array([*[HOLD] * 2, 61, *[HOLD] * 9], dtype=np.uint8)
    tokens = context()
    tokens[12:20] = HOLD  # the last note of the gap sounds out of it
    drawn = context_notes(tokens, middle, gap=gap)
    assert [(note.onset, note.kind) for note in drawn] == [
        (2, "filled"),
        (144, "outside"),
        (150, "outside"),
        (240, "outside"),
    ]
    svg = roll_svg(drawn, label="x", gap=gap, lockable=True)
    assert '<rect class="span" x="0" ' in svg
    assert re.findall(r'data-keep="([\d,]+)"', svg) == ["2,10,61"]  # it ends with the gap
    assert "data-keep" not in roll_svg(drawn, label="x", gap=gap)
    assert '<input type="checkbox" data-keep="2,10,61"> C#4 at measure 5, beat 1 1/3' in locks_html(drawn, gap, 5)
    assert 'data-from="0" data-to="36"' in figure_html("x", svg, tokens=tokens, file_name="x", gap=gap)


def test_pitches_have_air_and_stay_on_the_keyboard() -> None:
    assert pitch_range([]) == (54, 66)
    assert pitch_range([RollNote(0, 1, 0, "kept"), RollNote(0, 1, 127, "kept")]) == (0, 127)


def test_a_figure_escapes_what_it_is_told_and_holds_its_midi() -> None:
    figure = figure_html("<i>x</i>", "<svg/>", tokens=context(), file_name="../a'<b>", note="<u>")
    assert "<i>" not in figure
    assert "<u>" not in figure
    assert 'download="___a__b_.mid"' in figure
    assert 'data-notes="[[0, 6, 60], [144, 6, 62], [150, 6, 64], [240, 6, 65]]"' in figure


def test_the_midi_file_holds_the_notes(tmp_path: object) -> None:
    score = read_midi(midi_bytes(context(), "melody"))
    step = score.ticks_per_quarter // 6
    assert (score.notes["onset_tick"] // step).tolist() == [0, 144, 150, 240]
    assert score.notes["pitch"].tolist() == [60, 62, 64, 65]
    assert [round(tempo.bpm, 3) for tempo in score.tempos] == [96.0]
    assert noteseq.decode(context())["duration_tick"].tolist() == (score.notes["duration_tick"] // step).tolist()
