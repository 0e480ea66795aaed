"""Files of visitors: refused by size and header, decoded apart, and gone afterwards."""

from __future__ import annotations

import pickle
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

from music_evals.annotations import Score
from music_evals.audio.io import AUDIO_SUFFIXES, AudioPolicy, load_audio
from music_evals.errors import (
    FileTooLargeError,
    InvalidAudioError,
    NoDataError,
    ParserCrashError,
    UnknownNameError,
    UnreadableFileError,
)
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.notes import make_notes
from music_evals.ui import uploads


def tone(path: Path, seconds: float = 0.5, rate: int = 44100, channels: int = 2) -> Path:
    time = np.arange(int(seconds * rate)) / rate
    sides = [np.sin(2 * np.pi * 440 * (side + 1) * time) / (2 + side) for side in range(channels)]
    soundfile.write(path, np.stack(sides, axis=1), rate)
    return path


def midi(path: Path, n_notes: int = 1) -> Path:
    onsets = [480 * note for note in range(n_notes)]
    path.write_bytes(write_midi(Score(make_notes(onsets, [480] * n_notes, [60] * n_notes), 480)))
    return path


def test_an_upload_is_judged_before_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = midi(tmp_path / "a.MID")
    monkeypatch.setattr(Path, "open", None)
    assert uploads.check_upload(path, suffixes=[".mid"], max_bytes=1000) == path
    with pytest.raises(NoDataError):
        uploads.check_upload(None, suffixes=[".mid"], max_bytes=1000)
    with pytest.raises(NoDataError, match=r"^b\.mid: the upload is gone"):
        uploads.check_upload(tmp_path / "b.mid", suffixes=[".mid"], max_bytes=1000)
    with pytest.raises(NoDataError):
        uploads.check_upload(tmp_path, suffixes=[".mid", ""], max_bytes=1000)
    with pytest.raises(UnknownNameError, match=r"kind of file '\.MID'; known: \.abc"):
        uploads.check_upload(path, suffixes=[".abc"], max_bytes=1000)
    with pytest.raises(FileTooLargeError, match=r"^a\.MID: more than 3 bytes"):
        uploads.check_upload(path, suffixes=[".mid"], max_bytes=3)


def test_a_score_is_read(tmp_path: Path) -> None:
    assert uploads.load_score(midi(tmp_path / "a.mid")).notes["pitch"].tolist() == [60]


@pytest.mark.parametrize(("name", "content"), [
    ("a.mid", b"no MIDI"),
    ("b.mxl", b"PK\x03\x04 no archive"),
    ("c.musicxml", b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'),
    ("d.abc", b"\x00\xff\x00"),
])  # fmt: skip
def test_a_score_that_is_none_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnreadableFileError):
        uploads.load_score(tmp_path / name)


@pytest.mark.slow
def test_an_archive_that_unfolds_to_more_than_it_may_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.mxl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "META-INF/container.xml", '<container><rootfiles><rootfile full-path="a.xml"/></rootfiles></container>'
        )
        archive.writestr("a.xml", b" " * (300 * 2**20))
    assert path.stat().st_size < uploads.MAX_UPLOAD_BYTES
    with pytest.raises(UnreadableFileError):
        uploads.load_score(path)


@pytest.mark.slow
def test_a_parser_that_dies_or_hangs_takes_no_page_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = midi(tmp_path / "a.mid", 20_000)
    monkeypatch.setattr(uploads, "TIMEOUT_SEC", 1e-6)
    with pytest.raises(ParserCrashError, match=r"^a\.mid: the parser did not finish"):
        uploads.load_score(path)
    recording = tone(tmp_path / "a.wav")
    monkeypatch.setattr(uploads, "RECORDING_TIMEOUT_SEC", 1e-6)
    with pytest.raises(ParserCrashError, match=r"^a\.wav: the parser did not finish"):
        uploads.load_recording(recording)


def test_pages_take_every_kind_that_their_cards_name() -> None:
    named = {".wav", ".flac", ".ogg", ".mp3", ".aiff", ".m4a", ".aac", ".webm", ".mka"}
    assert named <= set(uploads.RECORDING_TYPES) <= AUDIO_SUFFIXES


@pytest.mark.slow
def test_what_decodes_an_upload_has_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert uploads.MEMORY_BYTES == 2 * 2**30
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux counts all private memory as data")
    monkeypatch.setattr(uploads, "MEMORY_BYTES", 2**20)
    soundfile.write(tmp_path / "a.wav", np.zeros(22050 * 60), 22050)
    with pytest.raises(ParserCrashError, match=r"^a\.wav: the parser died"):
        uploads.load_recording(tmp_path / "a.wav")
    with (
        pytest.raises(ParserCrashError, match=r"^a\.wav: the parser died"),
        uploads.trusted_sources(tmp_path / "a.wav"),
    ):
        pass


def test_a_recording_is_what_the_library_makes_of_it(tmp_path: Path) -> None:
    path = tone(tmp_path / "a.flac")
    audio, expected = uploads.load_recording(path), load_audio(path)
    assert np.array_equal(audio.samples, expected.samples)
    assert (audio.sample_rate, audio.policy) == (expected.sample_rate, expected.policy)
    assert np.array_equal(audio.at_rate(44100).samples, expected.at_rate(44100).samples)
    low = uploads.load_recording(path, policy=AudioPolicy(sample_rate=8000))
    assert low.sample_rate == 8000
    assert np.array_equal(pickle.loads(pickle.dumps(audio)).samples, audio.samples)  # noqa: S301


def test_a_recording_is_never_decoded_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tone(tmp_path / "a.wav")
    monkeypatch.setattr(soundfile, "SoundFile", None)
    audio = uploads.load_recording(path)
    assert audio.at_rate(8000).sample_rate == 8000
    with uploads.trusted_sources(path) as [source]:
        assert source.suffix == ".wav"


def test_a_recording_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tone(tmp_path / "a.wav", seconds=2, rate=8000)
    with pytest.raises(FileTooLargeError, match="more than 1 s"):
        uploads.load_recording(path, max_seconds=1)
    monkeypatch.setattr(uploads, "MAX_RECORDING_BYTES", 100)
    with pytest.raises(FileTooLargeError, match=r"^a\.wav: more than 100 bytes"):
        uploads.load_recording(path)


def test_silence_that_is_packed_small_costs_nothing(tmp_path: Path) -> None:
    """Twenty-six minutes of silence in a small FLAC file."""
    path = tmp_path / "silence.flac"
    block = np.zeros(2**20, np.int16)
    with soundfile.SoundFile(path, "w", 8000, 1) as file:
        for _ in range(12):
            file.write(block)
    assert path.stat().st_size < 2**20
    with pytest.raises(FileTooLargeError, match="more than 360 s"), uploads.trusted_sources(path):
        pass


@pytest.mark.parametrize("content", [b"RIFF\x00\x00\x00\x00WAVE", b"fLaC" + bytes(100), b"ID3" + b"\xff" * 1000, b""])
def test_a_recording_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    with pytest.raises((UnreadableFileError, InvalidAudioError)):
        uploads.load_recording(path)


def test_trusted_sources_sound_like_the_uploads_and_go(tmp_path: Path) -> None:
    first, second = tone(tmp_path / "a.flac"), tone(tmp_path / "b.wav", rate=48000, channels=1)
    with uploads.trusted_sources(first, second) as [a, b]:
        assert {a.name, b.name} == {"a.wav", "b.wav"}
        for source, upload in ((a, first), (b, second)):
            assert np.array_equal(load_audio(source).samples, load_audio(upload).samples)
            assert soundfile.info(source).samplerate == soundfile.info(upload).samplerate
    assert not a.exists()
    assert not a.parent.parent.exists()


def test_trusted_scores_are_values(tmp_path: Path) -> None:
    with uploads.trusted_sources(midi(tmp_path / "a.mid")) as [score]:
        assert isinstance(score, Score)


def test_a_refused_upload_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    good = tone(tmp_path / "good.wav")
    with pytest.raises(UnreadableFileError), uploads.trusted_sources(good, tmp_path / "bad.wav"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.wav", "good.wav"]


def test_samples_are_bounded_whatever_the_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound of the child is its own module's: it is told by the longest file at the highest rate."""
    path = tmp_path / "a.flac"
    with soundfile.SoundFile(path, "w", 384_000, 1, subtype="PCM_16") as file:
        for _ in range(100):
            file.write(np.zeros(384_000, np.int16))
    with pytest.raises(FileTooLargeError, match="more than 90 s"), uploads.trusted_sources(path):
        pass
