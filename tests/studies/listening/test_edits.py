"""Runs of edits become one listening test: the same sources and instructions, heard by system."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import soundfile
from tests.editing.house import recording

from music_evals.benchmark.records import read_records
from music_evals.cli import main
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.studies.listening.edits import pairs_of_edits
from music_evals.studies.pairs import pairs_text

RATE = 22050


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems, and one of them twice, on two songs."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "songs").mkdir()
    for number in (1, 2):
        soundfile.write(folder / "songs" / f"song{number}.wav", recording(seconds=1.0 + number)[0], RATE)
    for name, system in (("soft", "equaliser"), ("hard", "equaliser"), ("split", "hpss_remix")):
        assert edit(folder / "songs", system, folder / name) == 0
    return folder


def edit(songs: Path, system: str, out: Path, *others: str) -> int:
    words = ["edit", str(songs), "--system", system, "--out", str(out), "--engine", "serial", *others]
    return main(words)


@pytest.mark.slow
def test_systems_stand_beside_each_other_on_every_item(runs: Path) -> None:
    pairs = pairs_of_edits([runs / "soft", runs / "split"])
    assert [(pair.item_id, pair.system) for pair in pairs] == [
        ("song1", "equaliser"), ("song1", "hpss_remix"), ("song2", "equaliser"), ("song2", "hpss_remix"),
    ]  # fmt: skip
    assert len({pair.reference for pair in pairs}) == 2
    for pair in pairs:
        assert Path(pair.reference).is_file()
        assert Path(pair.estimate).is_file()
        assert pair.group == pair.item_id
    assert "equaliser" in pairs_text(pairs)


def test_two_runs_of_one_system_go_by_their_folders(runs: Path) -> None:
    systems = {pair.system for pair in pairs_of_edits([runs / "soft", runs / "hard", runs / "split"])}
    assert systems == {"soft", "hard", "hpss_remix"}
    with pytest.raises(InvalidInputError, match="two runs would be called soft"):
        pairs_of_edits([runs / "soft", runs / "soft"])


def test_a_test_is_built_by_one_command(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--questions", "harmony,rhythm,structure,melody", "--listeners", "2", "--checks", "0", "--contact", "Ada"]
    words = ["listening-test", "build", str(runs / "soft"), str(runs / "split"), *asked]
    assert main([*words, "--out", str(tmp_path / "study")]) == 0
    assert "over 2 items and 2 systems: equaliser, hpss_remix" in capsys.readouterr().err
    with (tmp_path / "study/key/pairs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["system"] for row in rows} == {"equaliser", "hpss_remix"}
    assert not any(word in row["estimate"] for row in rows for word in ("equaliser", "hpss"))


def test_what_cannot_be_compared_is_refused(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match=r"holds no edit_records"):
        pairs_of_edits([tmp_path])
    (tmp_path / "other").mkdir()
    soundfile.write(tmp_path / "other/song1.wav", np.sin(np.arange(2 * RATE) / 9), RATE)
    assert edit(tmp_path / "other", "equaliser", tmp_path / "first") == 0
    with pytest.raises(InvalidInputError, match="song1 has another source"):
        pairs_of_edits([runs / "soft", tmp_path / "first"])
    assert edit(runs / "songs", "equaliser", tmp_path / "asked", "--target-prompt", "A softer song.") == 0
    with pytest.raises(InvalidInputError, match="song1 has another instruction"):
        pairs_of_edits([runs / "soft", tmp_path / "asked"])
    (tmp_path / "third").mkdir()
    soundfile.write(tmp_path / "third/song9.wav", np.sin(np.arange(2 * RATE) / 9), RATE)
    assert edit(tmp_path / "third", "equaliser", tmp_path / "alone") == 0
    with pytest.raises(NoDataError):
        pairs_of_edits([runs / "soft", tmp_path / "alone"])


def test_an_edit_that_failed_is_heard_of_nobody(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "songs").mkdir()
    for number in (1, 2):
        samples = recording(seconds=1.0 + number)[0] * (number == 1)  # the second is silent
        soundfile.write(tmp_path / "songs" / f"song{number}.wav", samples, RATE)
    assert edit(tmp_path / "songs", "equaliser", tmp_path / "run") == 1
    assert {pair.item_id for pair in pairs_of_edits([tmp_path / "run"])} == {"song1"}
    assert any("error" in row for row in read_records(tmp_path / "run/edit_records"))
