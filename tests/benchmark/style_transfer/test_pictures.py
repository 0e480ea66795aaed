"""Pictures of arrangements."""

import re

import pytest

from music_evals.annotations import Score, TimeSignature
from music_evals.benchmark.style_transfer.pictures import SEMITONE, WIDTH, score_rolls
from music_evals.errors import NoDataError
from music_evals.symbolic.notes import make_notes


def score(*pitches: int) -> Score:
    notes = make_notes([0, 8], [8, 24], pitches, voice=[0, 1])
    return Score(notes, 8, (TimeSignature(0, 4, 4),), voices=("melody", "accompaniment"))


def test_notes_stand_where_they_sound() -> None:
    text = score_rolls("a & b", [("before", score(72, 60)), ("after", score(72, 48))])
    rects = re.findall(r'<rect class="(\w+)" x="([\d.]+)" y="(\d+)" width="([\d.]+)"', text)
    assert [kind for kind, *_ in rects] == ["accompaniment", "melody"] * 2
    melody, under = rects[1], rects[0]
    assert (float(melody[1]), float(under[1])) == (8, 8 + WIDTH / 4)
    assert int(under[2]) - int(melody[2]) == 12 * SEMITONE
    assert float(under[3]) == pytest.approx(WIDTH * 0.75, abs=1)
    assert int(rects[2][2]) - int(rects[3][2]) == 24 * SEMITONE
    assert "a &amp; b" in text
    assert text.count('class="bar"') == 4  # two bar lines a roll


def test_nothing_to_draw() -> None:
    with pytest.raises(NoDataError, match="no notes"):
        score_rolls("nothing", [("empty", Score(make_notes([], [], []), 8))])
