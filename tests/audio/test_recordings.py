from pathlib import Path

import pytest

from music_evals.audio.io import AUDIO_SUFFIXES, recordings
from music_evals.benchmark.tasks.preservation import pairs
from music_evals.errors import NoDataError, PairCountError


def fill(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def test_recordings_are_found_by_the_ids_of_songs(tmp_path):
    names = ("s1.WAV", "deep/er/s2.opus", "s3.txt", ".s4.wav", "other.wav", "deep/other.wav", "a.b.flac")
    found = recordings(fill(tmp_path, *names), ["s1", "s2", "s3", "s4", "a.b"])
    relative = {song: path.relative_to(tmp_path).as_posix() for song, path in found.items()}
    assert relative == {"s1": "s1.WAV", "s2": "deep/er/s2.opus", "a.b": "a.b.flac"}
    assert recordings(tmp_path, ["s3"], {".txt"}).keys() == {"s3"}
    assert recordings(tmp_path, []) == {}


def test_names_in_two_unicode_forms_are_one(tmp_path):
    composed, separate = "caf\u00e9", "cafe\u0301"
    fill(tmp_path, f"{separate}.wav")
    assert recordings(tmp_path, [composed]) == {composed: tmp_path / f"{separate}.wav"}
    assert recordings(tmp_path, [separate]).keys() == {separate}
    fill(tmp_path, f"{composed}.wav")
    with pytest.raises(PairCountError):
        recordings(tmp_path, [composed])


def test_two_recordings_of_a_song_and_no_folder(tmp_path):
    fill(tmp_path, "s1.wav", "deep/s1.mp3")
    with pytest.raises(PairCountError, match="'s1'"):
        recordings(tmp_path, ["s1"])
    with pytest.raises(NoDataError):
        recordings(tmp_path / "none", ["s1"])


def test_one_list_of_endings():
    assert pairs.AUDIO_SUFFIXES is AUDIO_SUFFIXES
    assert len(AUDIO_SUFFIXES) == 19
