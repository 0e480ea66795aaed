"""The verb ``style-transfer``: what it writes, how it goes on, and what it refuses."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from music_evals.annotations import Score, Tempo, TimeSignature
from music_evals.cli import main
from music_evals.models.bmst import BMST, BMSTConfig
from music_evals.models.gibbs import GibbsState
from music_evals.symbolic.midi import read_midi, save_midi
from music_evals.symbolic.notes import make_notes

TINY = BMSTConfig(window=6, embedding=4, n_layers=1, n_heads=2, inner=8, context=3, pitch_width=4, filters=5)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with two styles, as the shipped ones are: one in it, one in a folder of its own."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for style, place in (("bach", folder), ("swing", folder / "swing")):
            BMST(dataclasses.replace(TINY, style=style)).save_pretrained(place)
    return folder


@pytest.fixture
def piece(tmp_path: Path) -> Path:
    notes = make_notes([0, 480, 960, 0], [480, 480, 480, 1440], [72, 74, 76, 48], voice=[0, 0, 0, 1])
    score = Score(notes, 480, (TimeSignature(0, 3, 4),), (Tempo(0, 96.0),), voices=("Melody", "Piano"))
    return save_midi(score, tmp_path / "song.mid")


def transfer(*arguments: object) -> int:
    return main(["style-transfer", *map(str, arguments), "--device", "cpu"])


def test_what_is_written(piece: Path, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    options = (piece, "--model", models, "--style", "swing", "--sweeps", 2, "--samples", 2, "--out", out)
    assert transfer(*options, "--json") == 0
    done = json.loads(capsys.readouterr().out)[0]
    names = {"song_original.mid", "song_swing_1.mid", "song_swing_2.mid", "song_swing.svg", "song_swing.json"}
    assert {path.name for path in out.iterdir()} == names
    assert set(done["files"]) == names - {"song_swing.json"}
    assert (done["style"], done["melody"], done["seeds"]) == ("swing", "Melody", [0, 1])
    assert done["sampling"]["sweeps"] == 2
    for name in ("song_swing_1.mid", "song_swing_2.mid"):
        made = read_midi(out / name)
        assert made.voices == ("melody", "accompaniment")
        assert made.voice(0)["pitch"].tolist() == [72, 74, 76]
        assert [tempo.bpm for tempo in made.tempos] == pytest.approx([96])
    assert (out / "song_swing_1.mid").read_bytes() != (out / "song_swing_2.mid").read_bytes()
    picture = (out / "song_swing.svg").read_text()
    assert picture.count('<rect class="melody"') == 3 * 3
    # what is done is not done again
    before = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    assert transfer(*options) == 0
    assert {path.name: path.stat().st_mtime_ns for path in out.iterdir()} == before
    assert "song in the style swing: song_original.mid" in capsys.readouterr().out


def test_two_styles_at_once(piece: Path, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert transfer(piece, "--model", models, "--style", "swing", "--style", "bach", "--sweeps", 1, "--out", out) == 0
    assert {"song_bach_1.mid", "song_swing_1.mid"} <= {path.name for path in out.iterdir()}


def test_a_run_that_was_stopped_goes_on(
    piece: Path, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = (piece, "--model", models, "--style", "bach", "--sweeps", 4)
    assert transfer(*common, "--out", tmp_path / "whole") == 0
    saved = GibbsState.save

    def save_and_stop(state: GibbsState, path: Path) -> None:
        saved(state, path)
        if state.sweeps_done == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(GibbsState, "save", save_and_stop)
    out = tmp_path / "out"
    assert transfer(*common, "--out", out) == 130
    (state,) = out.glob(".*.npz")
    monkeypatch.setattr(GibbsState, "save", saved)
    done: list[int] = []

    def save_and_count(state: GibbsState, path: Path) -> None:
        done.append(state.sweeps_done)
        saved(state, path)

    monkeypatch.setattr(GibbsState, "save", save_and_count)
    assert transfer(*common, "--out", out) == 0
    assert done == [3, 4]
    assert not state.exists()
    assert (out / "song_bach_1.mid").read_bytes() == (tmp_path / "whole" / "song_bach_1.mid").read_bytes()


def test_sweeps_are_kept_on_request(piece: Path, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert transfer(piece, "--model", models, "--style", "bach", "--sweeps", 3, "--keep-sweeps", "--out", out) == 0
    assert len(list(out.glob("song_bach_1_sweep_0?.mid"))) == 3
    last, whole = (read_midi(out / name) for name in ("song_bach_1_sweep_03.mid", "song_bach_1.mid"))
    np.testing.assert_array_equal(last.notes, whole.notes)


def test_other_settings_overwrite_nothing(
    piece: Path, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = (piece, "--model", models, "--style", "bach", "--sweeps", 1, "--out", tmp_path / "out")
    assert transfer(*common) == 0
    assert transfer(*common, "--seed", 5) == 1
    assert "with other settings; name another folder" in capsys.readouterr().err


def test_pieces_that_fail_are_listed_and_the_others_written(
    piece: Path, models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waltz = Score(make_notes([0], [480], [60]), 480, (TimeSignature(0, 6, 8),), voices=("Melody",))
    other = save_midi(waltz, tmp_path / "jig.mid")
    broken = tmp_path / "broken.mid"
    broken.write_bytes(b"MThd")
    out = tmp_path / "out"
    options = ("--model", models, "--style", "bach", "--sweeps", 1, "--out", out)
    assert transfer(broken, other, tmp_path / "none.mid", piece, piece, *options) == 1
    said = capsys.readouterr().err
    assert "4 failed" in said
    assert "in 6/8 at tick 0" in said
    assert "--any-meter" in said
    assert "another piece is called song too" in said
    assert "none.mid is missing" in said
    assert (out / "song_bach_1.mid").exists()
    assert transfer(other, *options, "--any-meter") == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--style", "polka"], "unknown style 'polka'"),
        ([], "knows the styles bach, swing: name one with --style"),
        (["--style", "bach", "--samples", "0"], "--samples must be 1 or more"),
        (["--style", "bach", "--sweeps", "0"], "sweeps must be at least 1"),
        (["--style", "bach", "--temperature", "0"], "temperature must be above 0"),
    ],
)
def test_wrong_usage(
    options: list[str], message: str, piece: Path, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = piece.parent / "out"
    assert transfer(piece, "--model", models, *options, "--out", out) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_a_model_without_weights(piece: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "config.json").write_text("{}")
    assert transfer(piece, "--model", empty, "--style", "bach", "--out", tmp_path / "out") == 2
    assert "has no weights; train it: music-evals train" in capsys.readouterr().err
