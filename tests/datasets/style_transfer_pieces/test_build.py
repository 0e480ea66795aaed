"""Six pieces for style transfer, read anew from ABC and as they lie in the folder."""

import json
from pathlib import Path

import numpy as np
import pytest

from music_evals.annotations import KeySignature, Score, TimeSignature
from music_evals.datasets.manifest import load_split, rows_sha256
from music_evals.datasets.style_transfer_pieces.build import (
    MELODY,
    PIECES,
    TICKS_PER_QUARTER,
    build_rows,
    piece_score,
    with_triads,
)
from music_evals.pipelines.style_transfer.rearrangement import pick_melody, prepare
from music_evals.symbolic.encodings.piano_rolls import arrange
from music_evals.symbolic.midi import read_midi, write_midi
from music_evals.symbolic.notes import make_notes
from music_evals.symbolic.piece_rows import score_of_row

FOLDER = Path(__file__).resolve().parents[3] / "datasets_scripts" / "style_transfer_pieces"
N_BARS = {"london_bridge": 8, "old_macdonald": 16, "twinkle": 12, "moonlight": 16, "jeanie": 17, "entertainer": 17}


@pytest.fixture(scope="module")
def rows():
    return {row["name"]: row for row in load_split(FOLDER, "style_transfer_pieces", "test").to_list()}


def pitches_at(row, quarter, voice=None):
    """Return what begins at a quarter, counted from 0, in a voice by name or in all."""
    return sorted(
        note["pitch"]
        for note in row["notes"]
        if note["onset"] == quarter * row["ticks_per_quarter"]
        and (voice is None or row["voices"][note["voice"]] == voice)
    )


def test_a_rebuild_gives_the_rows_of_the_manifest(rows):
    pytest.importorskip("music21", reason="reads ABC (extra: symbolic)")
    manifest = json.loads((FOLDER / "manifest.json").read_text())
    (facts,) = manifest["files"].values()
    assert rows_sha256(build_rows()) == facts["rows_sha256"]
    assert list(rows) == list(PIECES)


@pytest.mark.parametrize("name", PIECES)
def test_all_voices_of_a_piece_have_its_bars_and_no_note_leaves_them(rows, name):
    row = rows[name]
    assert len(row["measure_starts"]) - 1 == N_BARS[name]
    ends = [max(n["onset"] + n["duration"] for n in row["notes"] if n["voice"] == v) for v in range(len(row["voices"]))]
    rests = [row["measure_starts"][-1] - end for end in ends]  # after the last note
    assert min(rests) >= 0
    assert max(rests) <= 2 * TICKS_PER_QUARTER
    assert row["melody"] == MELODY == row["voices"][0]


@pytest.mark.parametrize("name", PIECES)
def test_the_melody_is_one_note_at_a_time_and_found_without_being_named(rows, name):
    score = score_of_row(rows[name])
    melody = score.voice(0)
    assert (melody["onset_tick"][1:] >= (melody["onset_tick"] + melody["duration_tick"])[:-1]).all()
    assert pick_melody(score) == 0
    read = read_midi(write_midi(score))  # as a user who is handed the file
    assert prepare(read).melody == MELODY


@pytest.mark.parametrize("name", PIECES)
def test_a_model_is_shown_melody_and_accompaniment(rows, name):
    arrangement = arrange(score_of_row(rows[name]), MELODY)
    assert arrangement.melody.cells.any()
    assert (arrangement.merged.cells & ~arrangement.melody.cells).any()
    steps = rows[name]["measure_starts"][-1] * 8 // TICKS_PER_QUARTER
    assert len(arrangement.merged.cells) == steps


def test_well_known_places(rows):
    """Chords and notes that everyone who knows the scores can check, in MIDI."""
    moonlight = rows["moonlight"]
    assert pitches_at(moonlight, 0) == [37, 49, 56]  # C# in octaves under G#
    assert pitches_at(moonlight, 8) == [33, 45, 57]  # bar 3: A
    assert pitches_at(moonlight, 10) == [30, 42, 57]  # over F#, A below D and F#
    assert pitches_at(moonlight, 10 + 1 / 3) == [62]  # of D major: the Neapolitan
    assert pitches_at(moonlight, 19, "melody") == [68]  # dotted G#, the first note of the melody
    assert pitches_at(moonlight, 19.75, "melody") == [68]
    assert pitches_at(moonlight, 32) == [40, 52, 56, 64]  # bar 9: E major
    assert pitches_at(moonlight, 36) == [40, 52, 55]  # bar 10: E minor
    entertainer = rows["entertainer"]
    assert [pitches_at(entertainer, quarter / 4, "melody") for quarter in range(4)] == [[62], [63], [64], [72]]
    assert pitches_at(entertainer, 0.5, "left hand") == [48]
    assert pitches_at(entertainer, 4.5) == [48 - 5, 72 + 4, 72 + 7, 84 + 4]  # E over G: bar 3 of the strain
    jeanie = rows["jeanie"]
    assert [pitches_at(jeanie, quarter, "melody") for quarter in (0, 2, 5, 6)] == [[74], [72], [69], [70]]
    tune = score_of_row(rows["twinkle"]).voice(0)["pitch"]
    assert tune.tolist()[:14] == [60, 60, 67, 67, 69, 69, 67, 65, 65, 64, 64, 62, 62, 60]


def test_triads_lie_under_every_beat_of_a_childrens_song(rows):
    for name in ("london_bridge", "old_macdonald", "twinkle"):
        row = rows[name]
        beats = row["measure_starts"][-1] // TICKS_PER_QUARTER
        chords = [pitches_at(row, beat, "chords") for beat in range(beats)]
        shapes = {tuple(np.subtract(chord, chord[0]).tolist()) for chord in chords}
        assert shapes <= {(0, 4, 7), (0, 3, 7)}
        tonic = {"old_macdonald": 7}.get(name, 0)
        assert chords[0][0] % 12 == chords[-1][0] % 12 == tonic
        assert all(48 <= chord[0] <= 59 for chord in chords)


def test_triads_follow_the_beat_of_the_meter():
    melody = make_notes([0, 4], [4, 4], [69, 69])
    meter, key = (TimeSignature(0, 2, 2),), (KeySignature(0, 0, minor=True),)
    score = with_triads(Score(melody, 4, meter, key_signatures=key, voices=("melody",)))
    chords = score.voice(1)
    assert sorted(set(chords["duration_tick"].tolist())) == [8]  # a half note
    assert sorted(chords["pitch"].tolist()) == [57, 60, 64]


def test_songs_without_their_chords_are_the_melody_alone():
    pytest.importorskip("music21", reason="reads ABC (extra: symbolic)")
    assert piece_score("twinkle").voices == ("melody", "chords")
    assert piece_score("moonlight").voices == ("melody", "middle", "bass")
