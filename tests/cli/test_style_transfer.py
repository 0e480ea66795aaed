"""The verb ``style-transfer`` over tiny random weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import torch

from music_evals.annotations import Score, TimeSignature
from music_evals.cli import main
from music_evals.models.bmst import BMST, BMSTConfig
from music_evals.models.gibbs import GibbsState, Sweep
from music_evals.pipelines.style_transfer.rearrangement import prepare
from music_evals.symbolic.midi import read_midi, save_midi
from music_evals.symbolic.notes import make_notes

TINY = BMSTConfig(style="bach", window=8, embedding=8, n_layers=1, n_heads=2, inner=8, context=3, pitch_width=4)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("weights") / "models/bmst/bach"
    with torch.random.fork_rng():
        torch.manual_seed(3)
        BMST(TINY).save_pretrained(place)
    return place.parents[2]


@pytest.fixture
def here(tmp_path: Path, weights: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with models and songs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("music_evals.repositories._home", lambda: None)
    (tmp_path / "models").symlink_to(weights / "models")
    save_midi(song("Melody", "Bass"), tmp_path / "song.mid")
    save_midi(song("Right", "Left"), tmp_path / "hands.mid")
    return tmp_path


def song(*voices: str) -> Score:
    notes = make_notes(
        [0, 480, 960, 1440, 0, 960], [480] * 4 + [960] * 2, [72, 74, 76, 72, 48, 43], 70, [0] * 4 + [1] * 2
    )
    return Score(notes, 480, (TimeSignature(0, 4, 4),), voices=voices)


def run(*words: str) -> int:
    return main(["style-transfer", *words, "--out", "out"])


def contents(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


SONG = ("song.mid", "--style", "bach", "--sweeps", "3")


@pytest.mark.usefixtures("here")
def test_a_song_is_rewritten(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*SONG, "--samples", "2", "--json") == 0
    (about,) = json.loads(capsys.readouterr().out)["done"]
    found = contents("out/song")
    assert set(found) == {"original.mid", "sample_1.mid", "sample_2.mid", "samples.svg", "transfer.json"}
    before, first, second = (read_midi(found[name]) for name in ("original.mid", "sample_1.mid", "sample_2.mid"))
    assert before.voices == first.voices == ("melody", "accompaniment")
    assert before.notes["pitch"].tolist() == song("a", "b").notes["pitch"].tolist()
    assert first.voice(0).tolist() == second.voice(0).tolist() == before.voice(0).tolist()
    assert first.voice(1).tolist() != second.voice(1).tolist()
    network = BMST.from_pretrained("models/bmst/bach")
    arrangement = prepare(song("Melody", "Bass")).arrangement
    assert (about["sweeps"], about["melody"], about["model"]["name"]) == (3, "Melody", "bmst:bach")
    *_, last = network.sweeps(arrangement, seed=_drawn(1), n_sweeps=3)
    expected = network.arranged(last.cells, arrangement).accompaniment.onsets.sum()
    assert len(second.voice(1)) == expected  # seed 1 is that of the second sample
    picture = ET.fromstring(found["samples.svg"].decode())  # noqa: S314  # our own
    rolls = [one for one in picture if one.get("class") == "roll"]
    drawn = [sum(rect.get("class") == "accompaniment" for rect in roll) for roll in rolls]
    assert drawn == [2, len(first.voice(1)), len(second.voice(1))]


def _drawn(seed: int) -> int:
    import numpy as np

    return int(np.random.default_rng(seed).integers(2**63))


@pytest.mark.slow
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("keep", [(), ("--keep-sweeps",)])
def test_a_killed_run_goes_on(
    keep: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["style-transfer", *SONG, *keep, "--out", "whole"]) == 0
    begun: list[int] = []
    original = BMST.sweeps

    def stopped(self: BMST, *given: Any, start: GibbsState | None = None, **options: Any) -> Iterator[Sweep]:
        for sweep in original(self, *given, start=start, **options):
            begun.append(sweep.index)
            if sweep.index == 2 and begun.count(2) == 1:
                raise KeyboardInterrupt
            yield sweep

    monkeypatch.setattr(BMST, "sweeps", stopped)
    assert run(*SONG, *keep) == 130
    assert "same command again" in capsys.readouterr().err
    states = [path.name for path in Path("out/song").iterdir()]
    assert len(states) == (2 if keep else 1)
    assert all(name.endswith(".npz") for name in states)
    assert run(*SONG, *keep) == 0
    assert begun == [0, 1, 2, 2]  # the first two are not made again
    assert contents("out/song") == contents("whole/song")
    assert len(contents("out/song")) == (6 if keep else 4)


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_what_is_there_is_not_made_again_nor_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*SONG) == 0
    before = contents("out/song")
    with monkeypatch.context() as patch:
        patch.setattr(BMST, "sweeps", None)
        assert run(*SONG) == 0
    assert "is there already" in capsys.readouterr().err
    assert contents("out/song") == before
    assert run(*SONG, "--seed", "5") == 0  # other settings: what is listed is replaced
    assert contents("out/song")["sample_1.mid"] != before["sample_1.mid"]
    Path("out/song/sample_1.mid").write_bytes(b"mine")
    assert run(*SONG) == 1
    assert "sample_1.mid was changed since it was written" in capsys.readouterr().err
    assert Path("out/song/sample_1.mid").read_bytes() == b"mine"
    Path("other/song").mkdir(parents=True)
    Path("other/song/thesis.tex").touch()
    assert main(["style-transfer", *SONG, "--out", "other"]) == 1
    assert "holds thesis.tex" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_failures_are_listed_and_the_others_written(capsys: pytest.CaptureFixture[str]) -> None:
    Path("noise.mid").write_bytes(b"noise")
    save_midi(Score(make_notes([0], [480], [110]), 480), "high.mid")
    files = ("hands.mid", "noise.mid", "high.mid", "gone.mid", "song.mid")
    assert run(*files, "--style", "bach", "--sweeps", "1", "--json") == 1
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert [one["file"] for one in answer["done"]] == ["song.mid"]
    reasons = {one["file"]: one["error"] for one in answer["failed"]}
    assert list(reasons) == list(files[:-1])
    assert "--melody" in reasons["hands.mid"]
    assert "1 'Right', 2 'Left'" in reasons["hands.mid"]
    assert "transpose it" in reasons["high.mid"]
    assert "4 failed" in err
    assert [path.name for path in Path("out").iterdir()] == ["song"]
    assert run("hands.mid", "--melody", "Right", "--style", "bach", "--sweeps", "1") == 0


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("song.mid", "--style", "swing"), "weights below models/bmst"),
        (("song.mid", "--style", "bach", "--samples", "0"), "--samples must be 1 or more"),
        (("song.mid", "sub/song.mid", "--style", "bach"), "give them different names"),
        (("song.mid", "--model", "models/nothing"), "model"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words) == 2
    assert said in capsys.readouterr().err
    assert not Path("out").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_a_model_is_named_by_its_folder() -> None:
    assert run("song.mid", "--model", "models/bmst/bach", "--sweeps", "1") == 0
    assert json.loads(Path("out/song/transfer.json").read_text())["model"]["source"] == "models/bmst/bach"
