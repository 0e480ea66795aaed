"""Outlines of recordings: loudest samples, and what is kept of them."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from music_evals.audio.io import load_audio
from music_evals.caimap.web import waveforms
from music_evals.caimap.web.waveforms import FULL, kept_peaks, peaks_of
from music_evals.errors import NoDataError, UnreadableFileError


def test_peaks_by_hand() -> None:
    # |samples| of four parts: 0.1, 0.8, 0.4, 0.2; the loudest becomes 1: 0.125, 1, 0.5, 0.25 of 255
    sound = np.repeat([0.1, -0.8, 0.4, -0.2], 500)
    assert peaks_of(load_audio(sound, rate=22050), 4) == [32, 255, 128, 64]


def test_one_loud_sample_shows() -> None:
    sound = np.zeros(100_000, dtype=np.float32)
    sound[66_666] = -1.0
    peaks = peaks_of(load_audio(sound, rate=22050), 1000)
    assert [at for at, peak in enumerate(peaks) if peak] == [666]


def test_silence_is_not_blown_up() -> None:
    assert set(peaks_of(load_audio(np.full(5000, 1e-5), rate=22050))) == {0}


@given(n=st.integers(2, 3000), parts=st.integers(1, 1200))
def test_every_sample_lies_in_one_part(n: int, parts: int) -> None:
    sound = np.linspace(0.1, 1.0, n, dtype=np.float32)
    peaks = peaks_of(load_audio(sound, rate=22050), parts)
    assert len(peaks) == min(n, parts)
    assert peaks == sorted(peaks)
    assert peaks[-1] == FULL


def test_what_was_worked_out_is_kept_by_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sound = np.random.default_rng(1).uniform(-1, 1, 20_000)
    first, again = tmp_path / "first.flac", tmp_path / "again.flac"
    soundfile.write(first, sound, 22050)
    again.write_bytes(first.read_bytes())
    kept = tmp_path / "waveforms"
    peaks = kept_peaks(first, kept)
    assert peaks == peaks_of(load_audio(first))
    with monkeypatch.context() as patch:
        patch.setattr(waveforms, "load_audio", lambda _: pytest.fail("decoded a second time"))
        assert kept_peaks(first, kept) == kept_peaks(again, kept) == peaks
    soundfile.write(first, sound[:10_000], 22050)  # another recording under the same name
    assert kept_peaks(first, kept) == peaks_of(load_audio(first)) != peaks
    for entry in kept.rglob("*.entry"):
        entry.write_bytes(entry.read_bytes()[:-5])
    with caplog.at_level(logging.WARNING):
        assert kept_peaks(again, kept) == peaks  # damage is found, and worked out again
    assert "damaged" in caplog.text


def test_what_is_no_recording_has_no_outline(tmp_path: Path) -> None:
    (tmp_path / "text.flac").write_text("no sound")
    with pytest.raises(UnreadableFileError):
        kept_peaks(tmp_path / "text.flac", tmp_path / "waveforms")
    with pytest.raises(NoDataError):
        kept_peaks(tmp_path / "none.flac", tmp_path / "waveforms")
    assert not list((tmp_path / "waveforms").rglob("*.entry"))
