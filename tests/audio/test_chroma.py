"""Chroma of sounds whose pitch classes are known."""

from __future__ import annotations

import numpy as np
import pytest

from music_evals.audio.chroma import compute_chroma, compute_chroma_official
from music_evals.audio.io import Audio

from .sounds import RATE, audio, tone


def chord(pitches: list[float], seconds: float, *, cents: float = 0.0) -> np.ndarray:
    return sum(tone(pitch + cents / 100, seconds, n_harmonics=6) for pitch in pitches)


TRIAD = [60, 64, 67]  # C E G


@pytest.mark.parametrize("cents", [-40, -30, 0, 30, 40])
def test_the_notes_of_a_triad_stand_out_however_it_is_tuned(cents: float) -> None:
    frames = compute_chroma(audio(chord(TRIAD, 3, cents=cents))).frames
    strongest = np.argsort(frames[:, 20:-20].mean(axis=1))[-3:]
    assert set(strongest.tolist()) == {0, 4, 7}
    # a detuned tone does not smear into its neighbours
    np.testing.assert_allclose(frames[:, 20:-20].mean(axis=1)[[1, 3, 5, 8]], 0, atol=0.15)


def test_shape_range_and_hop() -> None:
    chroma = compute_chroma(audio(chord(TRIAD, 3)))
    assert chroma.frames.shape == (12, 3 * RATE // 512 + 1)
    assert chroma.hop_sec == pytest.approx(512 / RATE)
    assert chroma.frames.min() >= 0
    np.testing.assert_allclose(chroma.frames.max(axis=0), 1, rtol=1e-6)


def test_silence_within_the_recording_is_all_zero() -> None:
    wave = np.concatenate([chord(TRIAD, 2), np.zeros(2 * RATE), chord(TRIAD, 2)])
    frames = compute_chroma(audio(wave)).frames
    middle = slice(round(2.5 * RATE / 512), round(3.5 * RATE / 512))
    assert not frames[:, middle].any()
    assert frames[:, :80].any(axis=0).all()


def test_a_silent_recording_is_all_zero() -> None:
    assert not compute_chroma(Audio(np.zeros(3 * RATE, np.float32))).frames.any()


@pytest.mark.parametrize("semitones", [1, 5, 7])
def test_transposition_turns_the_pitch_classes(semitones: int) -> None:
    plain = compute_chroma(audio(chord(TRIAD, 3))).frames[:, 20:-20].mean(axis=1)
    moved = compute_chroma(audio(chord([pitch + semitones for pitch in TRIAD], 3))).frames[:, 20:-20].mean(axis=1)
    np.testing.assert_allclose(moved, np.roll(plain, semitones), atol=0.05)


def test_faster_playback_turns_the_pitch_classes() -> None:
    import soxr

    wave = chord(TRIAD, 4)
    # played 2 ** (3 / 12) times as fast: three semitones up
    faster = soxr.resample(wave, RATE, RATE / 2 ** (3 / 12))
    plain = compute_chroma(audio(wave)).frames[:, 20:-20].mean(axis=1)
    moved = compute_chroma(audio(faster)).frames[:, 20:-20].mean(axis=1)
    assert set(np.argsort(moved)[-3:].tolist()) == {3, 7, 10}
    np.testing.assert_allclose(moved, np.roll(plain, 3), atol=0.05)


def test_the_level_changes_nothing() -> None:
    wave = chord(TRIAD, 3)
    loud, soft = (compute_chroma(audio(wave, gain=gain)).frames for gain in (1.0, 0.125))  # exact in binary
    np.testing.assert_array_equal(loud, soft)


def test_official_is_what_librosa_says() -> None:
    import librosa

    sound = audio(chord(TRIAD, 3))
    expected = librosa.feature.chroma_cqt(y=sound.samples, sr=RATE, hop_length=512)
    chroma = compute_chroma_official(sound)
    np.testing.assert_allclose(chroma.frames, expected, atol=1e-6)
    assert chroma.hop_sec == pytest.approx(512 / RATE)


def test_ours_agrees_with_librosa_on_a_clean_chord() -> None:
    sound = audio(chord(TRIAD, 3))
    ours, theirs = (f(sound).frames[:, 20:-20].mean(axis=1) for f in (compute_chroma, compute_chroma_official))
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98
