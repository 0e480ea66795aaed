from __future__ import annotations

import io

import numpy as np
import pytest

from music_evals.annotations import Score
from music_evals.locations import suffix_of
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.notes import make_notes


def encoded(kind: str) -> bytes:
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, np.sin(np.arange(8000) / 5), 8000, format=kind)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG", "MP3", "AIFF"])
def test_a_recording_without_a_name(kind: str) -> None:
    assert suffix_of(encoded(kind)) == f".{kind.lower()}"
    assert suffix_of(encoded(kind), "") == f".{kind.lower()}"


def test_a_score_without_a_name() -> None:
    assert suffix_of(write_midi(Score(make_notes([0], [480], [60]), 480))) == ".mid"


@pytest.mark.parametrize(("name", "suffix"), [("a/Song.MIDI", ".midi"), ("song.mp3", ".mp3"), ("song", ".wav")])
def test_a_name_is_believed_where_it_says_something(name: str, suffix: str) -> None:
    assert suffix_of(b"RIFF and samples", name) == suffix


def test_what_nothing_is_known_of_has_no_suffix() -> None:
    assert suffix_of(b"who knows") == suffix_of(b"") == ""
