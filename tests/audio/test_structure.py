"""Structure frames: their grid, their scale, and what moves them."""

from __future__ import annotations

import numpy as np
import pytest

from music_evals.audio.io import Audio
from music_evals.audio.structure import FRAME_SEC, ROWS, compute_structure, spectral_rows

from .sounds import RATE, audio, tone


def melody(pitches: list[int], seconds: float = 0.5) -> np.ndarray:
    return np.concatenate([tone(pitch, seconds) for pitch in pitches])


@pytest.mark.parametrize(("seconds", "n_frames"), [(10, 41), (10.2, 41), (10.3, 42), (2, 9)])
def test_a_frame_every_quarter_of_a_second(seconds: float, n_frames: int) -> None:
    structure = compute_structure(audio(tone(60, seconds)))
    assert structure.hop_sec == FRAME_SEC == 0.25
    assert structure.frames.shape == (29, n_frames)


def test_rows_are_standardised_and_chroma_counts_half(rng: np.random.Generator) -> None:
    frames = compute_structure(audio(rng.standard_normal(12 * RATE))).frames.astype(np.float64)
    np.testing.assert_allclose(frames.mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(frames[ROWS["chroma"]].std(axis=1), 0.5, rtol=1e-4)
    np.testing.assert_allclose(frames[ROWS["mfcc"]].std(axis=1), 1, rtol=1e-4)
    np.testing.assert_allclose(frames[ROWS["onsets"]].std(axis=1), 1, rtol=1e-4)


def test_a_note_is_seen_in_its_pitch_class_at_its_time() -> None:
    # C, then A from 5 s on: frame 20 is centred on the change
    frames = compute_structure(audio(melody([60, 69], 5))).frames
    assert (frames[0, 1:19] > 0).all()
    assert (frames[0, 22:40] < 0).all()
    assert (frames[9, 1:19] < 0).all()
    assert (frames[9, 22:40] > 0).all()


def test_an_attack_is_seen_in_the_onsets() -> None:
    wave = np.concatenate([np.zeros(6 * RATE), tone(60, 6)])
    onsets = compute_structure(audio(wave)).frames[ROWS["onsets"]].sum(axis=0)
    assert abs(int(onsets.argmax()) - 24) <= 1


def test_silence_does_not_vary() -> None:
    assert not compute_structure(Audio(np.zeros(12 * RATE, np.float32))).frames.any()


def test_transposition_turns_the_chroma_rows() -> None:
    pitches = [60, 64, 67, 62, 65, 69, 59, 62, 67, 60]
    plain = compute_structure(audio(melody(pitches))).frames[ROWS["chroma"]]
    moved = compute_structure(audio(melody([pitch + 2 for pitch in pitches]))).frames[ROWS["chroma"]]
    assert np.corrcoef(np.roll(plain, 2, axis=0).ravel(), moved.ravel())[0, 1] > 0.95


def test_the_level_changes_next_to_nothing() -> None:
    wave = melody([60, 64, 67, 62, 65, 69, 59, 62, 67, 60])
    loud, soft = (compute_structure(audio(wave, gain)).frames for gain in (1.0, 0.125))
    np.testing.assert_allclose(loud, soft, atol=1e-4)


def test_rows_of_the_spectrum_share_a_grid() -> None:
    chroma, mfcc, onsets = spectral_rows(audio(tone(60, 3)))
    n_frames = 3 * RATE // 512 + 1
    assert (chroma.shape, mfcc.shape, onsets.shape) == ((12, n_frames), (13, n_frames), (4, n_frames))
    assert onsets.min() >= 0


def test_mfcc_are_those_of_librosa() -> None:
    import librosa

    from music_evals.audio.spectra import mel_decibels

    sound = audio(melody([60, 64, 67, 62]))
    expected = librosa.feature.mfcc(S=mel_decibels(sound), n_mfcc=13)
    np.testing.assert_allclose(spectral_rows(sound)[1], expected, atol=1e-3)
