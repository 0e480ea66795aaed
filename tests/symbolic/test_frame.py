import csv
import hashlib
import io
import json
import math

import numpy as np
import pytest

from music_evals.annotations import Score, Tempo, TimeSignature
from music_evals.errors import NoDataError, OutputError, UnknownNameError
from music_evals.symbolic.contexts import tokens_from_score
from music_evals.symbolic.frame import (
    FileFacts,
    count_measures,
    file_facts,
    frame_to_columns,
    frame_to_csv,
    midi_frame,
    write_frame_csv,
)
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes


def test_facts_by_hand():
    # voice a: 4 notes, 3 onsets, one with two notes. voice b: two notes, the second 100 of 480 ticks under the first
    score = Score(
        make_notes(
            [0, 480, 480, 1920, 0, 380],
            [480, 480, 480, 480, 480, 100],
            [60, 62, 65, 67, 40, 41],
            voice=[0, 0, 0, 0, 1, 1],
        ),
        480,
        (TimeSignature(0, 4, 4), TimeSignature(1920, 3, 4)),
        (Tempo(0, 60.0), Tempo(960, 120.0)),
        voices=("a", "b"),
    )
    assert file_facts("x/y.mid", score) == FileFacts(
        "x/y.mid",
        n_instruments=2,
        instrument_names=("a", "b"),
        n_notes=(4, 2),
        is_monophony=(False, True),
        max_poly=(2, 1),
        polys_percent=(100 / 3, 0.0),
        n_overlaps=(1, 1),
        tempo_changes=((0.0, 60.0), (2.0, 120.0)),
        tsc_length=2,
        first_tsc="4/4",
        tsc=("4/4", "3/4"),
        duration=2.0 + 1440 / 480 * 0.5,  # two quarters at 60, three at 120
        n_measures=2,
    )


def test_four_four_and_empty():
    four = Score(make_notes([0], [480], [60]), 480, (TimeSignature(0, 4, 4), TimeSignature(480, 4, 4)))
    assert file_facts("a", four).is_4_4
    assert not file_facts("a", Score(make_notes([0], [480], [60]), 480)).is_4_4
    empty = file_facts("a", Score(make_notes([], [], []), 480, voices=()))
    assert (empty.is_empty, empty.n_instruments, empty.duration, empty.n_measures) == (True, 0, 0.0, 0)


def test_a_voice_without_overlaps_goes_onto_the_grid():
    # 79 ticks of overlap vanish on a grid of 80; 80 do not
    for overlap, n in ((79, 0), (80, 1)):
        score = Score(make_notes([0, 480], [480 + overlap, 480], [60, 62]), 480)
        assert file_facts("a", score).n_overlaps == (n,)
        if not n:
            assert len(tokens_from_score(score)) == 12


class TestCountingMeasures:
    def score(self, *quarters, tpq=480):
        onsets = np.array([round(quarter * tpq) for quarter in quarters])
        return Score(make_notes(onsets, np.full(len(onsets), tpq), np.full(len(onsets), 60)), tpq)

    def test_rests_and_pickups(self):
        # onsets in bars 0 and 2 of four quarters; the last note ends in bar 2
        assert [count_measures(self.score(0, 3, 8), rule) for rule in ("notated", "onset")] == [3, 2]
        pickup = Score(
            make_notes([0, 480], [480, 1920], [60, 60]), 480, (TimeSignature(0, 1, 4), TimeSignature(480, 4, 4))
        )
        assert count_measures(pickup) == 2

    def test_the_published_rule_pulls_the_last_onset_back(self):
        # an onset on the line of the last bar falls into the bar before it
        assert count_measures(self.score(0, 4, 8), "onset") == 3
        assert count_measures(self.score(0, 4, 8), "published") == 2
        assert count_measures(self.score(0, 4, 8, 8.25), "published") == 3
        # onsets go to sixteenths before they are counted: 3.9 quarters is bar 1
        assert count_measures(self.score(0, 3.9, 9), "published") == 3
        assert count_measures(self.score(0, 3.9, 9), "onset") == 2
        assert count_measures(self.score(0), "published") == 1

    def test_only_the_first_instrument_counts(self):
        score = Score(make_notes([0, 0], [480, 1920 * 3], [60, 40], voice=[1, 2]), 480, voices=("", "a", "b"))
        assert count_measures(score, "onset") == 1
        assert count_measures(score, "notated") == 3


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "midi"
    (root / "sub").mkdir(parents=True)
    tune = Score(make_notes([0], [480], [60]), 480, (TimeSignature(0, 4, 4),), voices=('Größe, "quoted"',))
    save_midi(tune, root / "b.mid")
    save_midi(tune, root / "sub" / "a.MIDI")
    (root / "a.mid").write_text("no MIDI")
    (root / "notes.txt").write_text("not looked at")
    return root


def test_frame_of_a_folder(folder):
    calls = []
    frame = midi_frame(folder, progress=lambda done, total: calls.append((done, total)))
    assert [row.filename for row in frame] == ["a.mid", "b.mid", "sub/a.MIDI"]
    assert calls == [(1, 3), (2, 3), (3, 3)]
    broken, good, twin = frame
    assert broken.error.startswith("UnreadableFileError: ")
    assert (broken.is_empty, broken.n_notes, math.isnan(broken.duration)) == (False, (), True)
    assert broken.hash == hashlib.md5(b"no MIDI", usedforsecurity=False).hexdigest()
    assert (good.error, good.n_notes, good.is_4_4) == ("", (1,), True)
    assert good.hash == twin.hash
    assert frame_to_columns(frame)["n_instruments"] == [0, 1, 1]


def test_nothing_to_list(tmp_path):
    with pytest.raises(NoDataError):
        midi_frame(tmp_path / "none")
    with pytest.raises(NoDataError):
        midi_frame(tmp_path)
    with pytest.raises(UnknownNameError, match="notated"):
        midi_frame(tmp_path, counting="notate")


def test_csv(folder, tmp_path):
    frame = midi_frame(folder)
    path = frame_to_csv(frame, tmp_path / "frame.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["filename"] for row in rows] == [row.filename for row in frame]
    assert json.loads(rows[1]["instrument_names"]) == ['Größe, "quoted"']
    assert json.loads(rows[1]["is_monophony"]) == [True]
    assert rows[0]["error"] == frame[0].error
    stream = io.StringIO()
    write_frame_csv(frame, stream)
    assert stream.getvalue().encode() == path.read_bytes()
    assert b"\r" not in path.read_bytes()
    with pytest.raises(OutputError):
        frame_to_csv(frame, tmp_path / "none" / "frame.csv")
