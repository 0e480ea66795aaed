"""How many neighbours sampling hides at first: what is measured of the transfers, and the page that is made of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.musib.tables import read_csv
from benchmarks.style_fidelity.run import Piece

from benchmarks.style_fidelity import hidden
from music_evals.annotations import Arrangement, KeySignature, PianoRoll, Score, TimeSignature
from music_evals.models.bmst import BMST, BMSTConfig
from music_evals.symbolic.encodings.piano_rolls import arrange
from music_evals.symbolic.notes import make_notes

PITCHES = [60, 62, 64, 65, 67, 65, 64, 62]


def chorale() -> Score:
    onsets, bass = np.arange(8) * 24, [48, 50, 52, 53, 55, 53, 52, 50]
    notes = make_notes([*onsets, *onsets], [24] * 16, [*PITCHES, *bass], voice=[0] * 8 + [1] * 8)
    return Score(notes, 24, (TimeSignature(0, 4, 4),), key_signatures=(KeySignature(0, 0),), voices=("soprano", "bass"))


def test_songs_are_sopranos_over_triads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden, "read", lambda *_: [Piece(chorale(), str(n), "soprano") for n in range(5)])
    [first, _] = hidden.songs(2)
    assert first.voices == ("soprano", "chords")
    assert first.voice(0)["pitch"].tolist() == PITCHES
    assert len(first.voice(1)) == 3 * 8
    monkeypatch.setattr(hidden, "QUARTERS", 4)
    assert hidden.soprano(chorale()).notes["pitch"].tolist() == PITCHES[:4]


@pytest.mark.parametrize(("interval", "expected"), [(0, 1), (4, 1), (5, 0), (6, -1), (7, 1), (9, 1), (11, -1), (16, 1)])
def test_consonance_is_that_of_the_interval(interval: int, expected: float) -> None:
    notes = make_notes([0, 0], [24, 24], [60 + interval, 60], voice=[0, 1])
    score = Score(notes, 24, (TimeSignature(0, 4, 4),), voices=("melody", "below"))
    assert hidden.consonance(arrange(score, "melody")) == expected


def test_without_a_step_where_both_sound_there_is_no_consonance() -> None:
    score = Score(make_notes([0], [24], [60]), 24, (TimeSignature(0, 4, 4),), voices=("melody",))
    assert np.isnan(hidden.consonance(arrange(score, "melody")))


def test_what_is_kept_and_how_dense_it_is() -> None:
    given = arrange(chorale(), "soprano")
    silent = np.zeros_like(given.accompaniment.cells)
    empty = PianoRoll(silent, silent, silent, given.melody.beat_phase, given.melody.bar_phase)
    assert hidden.kept(given, given) == hidden.density(given, given) == 1
    assert hidden.kept(given, Arrangement(given.melody, empty)) == 0
    assert hidden.density(given, Arrangement(given.melody, empty)) == 0


@pytest.mark.slow
def test_rows_of_a_model_replace_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = BMSTConfig(style="bach", window=8, embedding=8, n_layers=1, n_heads=2, inner=8, context=3, pitch_width=4)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BMST(config).save_pretrained(tmp_path / "model")
    monkeypatch.setattr(hidden, "read", lambda *_: [Piece(chorale(), str(n), "soprano") for n in range(2)])
    (tmp_path / "README.md").write_text("<!-- hidden:start -->\n<!-- hidden:end -->\n")
    run = ["--model", str(tmp_path / "model"), "--pieces", "1", "--write", "--out", str(tmp_path)]
    hidden.main([*run, "--hidden", "0", "2"])
    assert [row["hidden"] for row in read_csv(tmp_path / "hidden.csv")] == ["0", "2"]
    hidden.main([*run, "--hidden", "1"])
    [row] = read_csv(tmp_path / "hidden.csv")
    assert (row["model"], row["hidden"]) == ("bmst:bach", "1")
    assert "| bmst:bach | 1 | 1 |" in (tmp_path / "README.md").read_text()
