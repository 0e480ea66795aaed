"""Keys of scales and cadences, and of sounds that have none."""

from __future__ import annotations

import numpy as np
import pytest

from music_evals.annotations import Key
from music_evals.audio.backends import UndefinedFeature
from music_evals.audio.chroma import accompaniment_chroma
from music_evals.audio.filters import unit_columns
from music_evals.audio.io import Audio
from music_evals.audio.key import (
    AARDEN_ESSEN,
    MIN_CORRELATION,
    MIN_CORRELATION_IF_CLEAR,
    estimate_key,
    key_correlations,
)

from .sounds import RATE, audio, tone

MAJOR, MINOR = [0, 2, 4, 5, 7, 9, 11], [0, 2, 3, 5, 7, 8, 10]


def cadence(tonic: float, mode: str) -> np.ndarray:
    """I IV V I, with the major dominant that both modes use."""
    third = 4 if mode == "major" else 3
    triads = [(0, third, 7), (5, 5 + third, 12), (7, 11, 14), (0, third, 7)]
    return np.concatenate([sum(tone(tonic + step, 0.8) for step in triad) for triad in triads])


@pytest.mark.parametrize("mode", ["major", "minor"])
@pytest.mark.parametrize("tonic", range(12))
def test_a_cadence_has_its_key(tonic: int, mode: str) -> None:
    assert estimate_key(audio(cadence(54 + tonic, mode))) == Key((54 + tonic) % 12, mode)


@pytest.mark.parametrize("cents", [-40, -30, 30, 40])
def test_tuning_does_not_move_the_key(cents: float) -> None:
    assert estimate_key(audio(cadence(62 + cents / 100, "minor"))) == Key(2, "minor")


def test_the_level_changes_nothing() -> None:
    wave = cadence(57, "major")
    assert estimate_key(audio(wave)) == estimate_key(audio(wave, gain=0.1))


def test_two_seconds_are_enough() -> None:
    wave = cadence(60, "major")
    assert estimate_key(audio(wave[: 2 * RATE])).tonic in {0, 5}  # C, or F: only I, IV and half of V have sounded


@pytest.mark.parametrize("places", [(0,), (-1,), (0, 12800, 30000, 44100, -1)])
def test_rests_play_no_part(places: tuple[int, ...]) -> None:
    wave = cadence(57, "minor")
    for place in sorted((place % len(wave) for place in places), reverse=True):
        wave = np.insert(wave, place, np.zeros(12 * RATE))
    assert estimate_key(audio(wave)) == Key(9, "minor")


def test_silence_has_no_key() -> None:
    with pytest.raises(UndefinedFeature, match="no key"):
        estimate_key(Audio(np.zeros(4 * RATE, np.float32)))


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_no_key(seed: int) -> None:
    with pytest.raises(UndefinedFeature, match="no key"):
        estimate_key(audio(np.random.default_rng(seed).standard_normal(10 * RATE)))


def test_all_twelve_notes_alike_have_no_key() -> None:
    wave = np.concatenate([tone(60 + step, 0.4) for step in range(12)] * 2)
    with pytest.raises(UndefinedFeature, match="no key"):
        estimate_key(audio(wave))


def struck(rng: np.random.Generator, seconds: float, low_hz: float, high_hz: float) -> np.ndarray:
    """Noise of one band that dies away within a quarter of a second: a drum."""
    n = round(seconds * RATE)
    spectrum = np.fft.rfft(rng.standard_normal(n))
    frequencies = np.fft.rfftfreq(n, 1 / RATE)
    spectrum[(frequencies < low_hz) | (frequencies > high_hz)] = 0
    return np.fft.irfft(spectrum, n) * np.exp(-12 * np.arange(n) / RATE)


@pytest.mark.parametrize("seed", range(5))
def test_percussion_alone_has_no_key(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bands = [(60, 160), (150, 4000), (5000, 10000)]
    beats = [sum(struck(rng, 0.25, *band) * (rng.random() < 0.5) for band in bands) for _ in range(40)]
    with pytest.raises(UndefinedFeature, match="no key"):
        estimate_key(audio(np.concatenate(beats)))


@pytest.mark.parametrize("seconds", [2, 5, 30])
@pytest.mark.parametrize("exponent", [-1.0, -0.5, 0.5])
def test_coloured_noise_has_no_key(seconds: int, exponent: float, rng: np.random.Generator) -> None:
    spectrum = np.fft.rfft(rng.standard_normal(seconds * RATE))
    colour = np.maximum(np.arange(len(spectrum)), 1.0) ** exponent
    with pytest.raises(UndefinedFeature, match="no key"):
        estimate_key(audio(np.fft.irfft(spectrum * colour)))


def test_a_constant_has_no_key() -> None:
    with pytest.raises(UndefinedFeature, match="no key"):
        estimate_key(Audio(np.full(5 * RATE, 0.5, np.float32)))


def test_one_pitch_alone_has_no_key() -> None:
    with pytest.raises(UndefinedFeature, match="one pitch"):
        estimate_key(audio(np.tile(tone(60, 0.5), 8)))


def test_a_chromatic_tune_has_a_key() -> None:
    # clear pitches, with which the best profile correlates by less than drums would need
    tune = [60, 59, 60, 63, 64, 66, 67, 68, 69, 66, 67, 63, 64, 61, 62, 59, 60, 71, 72, 66, 67, 63, 64, 59, 60]
    sound = audio(np.concatenate([tone(pitch, 0.4) for pitch in tune]))
    table = key_correlations(unit_columns(accompaniment_chroma(sound)).mean(axis=1, dtype=np.float64))
    assert MIN_CORRELATION_IF_CLEAR < table.max() < MIN_CORRELATION
    mode, tonic = np.unravel_index(table.argmax(), table.shape)
    assert estimate_key(sound) == Key(int(tonic), ("major", "minor")[mode])


def test_music_with_soft_noise_keeps_its_key(rng: np.random.Generator) -> None:
    wave = cadence(57, "minor")
    noisy = wave + 0.3 * wave.std() * rng.standard_normal(len(wave))
    assert estimate_key(audio(noisy)) == estimate_key(audio(wave))


def test_the_confidence_is_the_lead_over_the_next_best_key() -> None:
    wave = cadence(62, "major")
    weights = unit_columns(accompaniment_chroma(audio(wave))).mean(axis=1, dtype=np.float64)
    first, second = np.sort(key_correlations(weights), axis=None)[:-3:-1]
    assert estimate_key(audio(wave)).confidence == pytest.approx(first - second)
    # halves of two keys are surer of neither
    torn = np.concatenate([wave, cadence(69, "major")])
    assert estimate_key(audio(torn)).confidence < estimate_key(audio(wave)).confidence


def test_correlations_are_those_of_numpy(rng: np.random.Generator) -> None:
    weights = rng.random(12)
    table = key_correlations(weights)
    for row, mode in enumerate(("major", "minor")):
        for tonic in range(12):
            profile = [AARDEN_ESSEN[mode][(step - tonic) % 12] for step in range(12)]
            assert table[row, tonic] == pytest.approx(np.corrcoef(weights, profile)[0, 1])


def test_a_profile_correlates_best_with_itself() -> None:
    for row, mode in enumerate(("major", "minor")):
        for tonic in range(12):
            table = key_correlations(np.roll(AARDEN_ESSEN[mode], tonic))
            assert np.unravel_index(table.argmax(), table.shape) == (row, tonic)
            assert table.max() == pytest.approx(1)


def test_flat_weights_correlate_with_nothing() -> None:
    np.testing.assert_array_equal(key_correlations(np.full(12, 3.7)), np.zeros((2, 12)))
    np.testing.assert_array_equal(key_correlations(np.zeros(12)), np.zeros((2, 12)))


def test_the_profiles_are_those_of_music21() -> None:
    discrete = pytest.importorskip("music21.analysis.discrete", reason="music21 is an optional extra")
    oracle = discrete.AardenEssen()
    for mode in ("major", "minor"):
        assert list(AARDEN_ESSEN[mode]) == pytest.approx(oracle.getWeights(mode))


def test_scales_weighted_by_degree_have_their_key() -> None:
    # tonic and dominant twice, as melodies have them
    for scale, mode in ((MAJOR, "major"), (MINOR, "minor")):
        weights = np.zeros(12)
        weights[scale] = 1
        weights[[0, 7]] += 1
        table = key_correlations(weights)
        assert np.unravel_index(table.argmax(), table.shape) == (("major", "minor").index(mode), 0)
