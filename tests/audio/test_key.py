"""Keys of scales and cadences, and of sounds that have none."""

from __future__ import annotations

import numpy as np
import pytest

from music_evals.annotations import Key
from music_evals.audio.backends import UndefinedFeature
from music_evals.audio.io import Audio
from music_evals.audio.key import AARDEN_ESSEN, estimate_key, key_correlations

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
