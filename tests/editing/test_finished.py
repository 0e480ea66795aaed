"""Files that another system made: found by their manifest, checked by their hash, brought to the form of the source."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.editing.house import RATE, audio_request, recording, score_request

from music_evals.benchmark.tasks.edits.task import EDITS, Settings
from music_evals.editing.finished import FinishedFiles
from music_evals.errors import (
    InvalidInputError,
    NoDataError,
    PairCountError,
    UnknownNameError,
    UnreadableFileError,
    UnsupportedEditError,
)
from music_evals.protocols import EditingSystem
from music_evals.symbolic.midi import write_midi


def manifest(folder: Path, *rows: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "manifest.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = manifest(tmp_path / "theirs")
    soundfile.write(made / "a.wav", recording(2, seconds=2.0).T * 0.5, RATE // 2)
    digest = hashlib.sha256((made / "a.wav").read_bytes()).hexdigest()
    return manifest(made, {"id": "song", "estimate": "a.wav", "sha256": digest}, {"id": "b", "estimate": "no.wav"})


def test_a_file_is_brought_to_the_form_of_its_source(folder: Path) -> None:
    system = FinishedFiles(folder, name="closed", backbone="diffusion")
    assert isinstance(system, EditingSystem)
    request = audio_request()
    (result,) = system.edit([request])
    assert result.audio is not None
    assert request.audio is not None
    assert (result.audio.shape, result.sample_rate) == (request.audio.shape, RATE)  # one channel, padded or cut
    assert result.log["source_lufs"] == pytest.approx(result.log["edit_lufs"] + result.log["gain_db"], abs=0.1)
    assert (system.info.name, system.info.backbone, system.info.needs) == ("closed", "diffusion", ())


def test_what_is_missing_or_changed_is_named(folder: Path) -> None:
    system = FinishedFiles(folder, name="closed")
    with pytest.raises(NoDataError, match="'other'"):
        system.edit([audio_request(source_id="other")])
    with pytest.raises(NoDataError, match=r"no\.wav"):
        system.edit([audio_request(source_id="b")])
    soundfile.write(folder / "a.wav", np.ones(RATE) * 0.1, RATE)
    with pytest.raises(UnreadableFileError, match="sha256"):
        system.edit([audio_request()])
    with pytest.raises(UnsupportedEditError):
        system.edit([score_request(source_id="song")])


def test_scores_are_those_of_scores(tmp_path: Path) -> None:
    folder = manifest(tmp_path / "theirs", {"id": "score", "estimate": "a.mid"})
    request = score_request()
    assert request.score is not None
    (folder / "a.mid").write_bytes(write_midi(request.score))
    system = FinishedFiles(folder, name="closed")
    (result,) = system.edit([request])
    assert system.info.entrances == ("score",)
    assert result.score is not None
    assert result.score.notes["pitch"].tolist() == request.score.notes["pitch"].tolist()


def test_a_manifest_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoDataError, match=r"manifest\.jsonl"):
        FinishedFiles(tmp_path, name="closed")
    with pytest.raises(NoDataError):
        FinishedFiles(manifest(tmp_path / "a"), name="closed")
    with pytest.raises(InvalidInputError, match="`estimate`"):
        FinishedFiles(manifest(tmp_path / "b", {"id": "x"}), name="closed")
    with pytest.raises(PairCountError, match="'x'"):
        FinishedFiles(manifest(tmp_path / "c", *[{"id": "x", "estimate": "x.wav"}] * 2), name="closed")
    with pytest.raises(UnknownNameError, match="backbone"):
        FinishedFiles(manifest(tmp_path / "d", {"id": "x", "estimate": "x.wav"}), name="closed", backbone="magic")


def test_what_edit_wrote_elsewhere_is_such_a_folder(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "song.wav", recording().T, RATE)
    made = EDITS.run(Settings(tmp_path / "theirs", sources=[str(tmp_path / "song.wav")], system="effects"))
    edited, _ = soundfile.read(tmp_path / "theirs" / "edits" / "song.flac", dtype="float32")
    (result,) = FinishedFiles(made.files["manifest"].parent, name="effects").edit([audio_request()])
    assert result.audio is not None
    assert np.abs(result.audio[0] - edited).max() < 0.01
    (row,) = [json.loads(line) for line in made.files["manifest"].read_text().splitlines()]
    assert row["sha256"] == hashlib.sha256((tmp_path / "theirs" / "edits" / "song.flac").read_bytes()).hexdigest()


def test_the_same_folder_is_the_same_system_and_another_manifest_another(folder: Path) -> None:
    first = FinishedFiles(folder, name="closed").info.parameters
    assert first == FinishedFiles(folder, name="closed").info.parameters
    manifest(folder, {"id": "song", "estimate": "a.wav"})
    assert first != FinishedFiles(folder, name="closed").info.parameters
