"""Chords of sounds whose chords are known."""

from __future__ import annotations

import mir_eval
import numpy as np
import pytest

from music_evals.audio.chords import CHORD_LABELS, recognise_chords
from music_evals.audio.io import Audio

from .sounds import RATE, audio, tone


def triad(label: str, seconds: float, *, cents: float = 0.0) -> np.ndarray:
    root, pitches, _ = mir_eval.chord.encode(label)
    return sum(tone(48 + root + step + cents / 100, seconds) for step in np.flatnonzero(pitches))


@pytest.mark.parametrize("label", CHORD_LABELS)
def test_a_triad_is_one_chord_from_0_to_the_end(label: str) -> None:
    chords = recognise_chords(audio(triad(label, 3)))
    assert chords.labels == (label,)
    np.testing.assert_allclose(chords.intervals_sec, [[0, 3]], atol=1e-9)


@pytest.mark.parametrize("cents", [-40, -30, 30, 40])
def test_tuning_does_not_change_the_chord(cents: float) -> None:
    assert recognise_chords(audio(triad("F#:min", 3, cents=cents))).labels == ("F#:min",)


def test_a_progression_is_followed() -> None:
    labels = ["C:maj", "A:min", "F:maj", "G:maj"]
    chords = recognise_chords(audio(np.concatenate([triad(label, 2) for label in labels])))
    assert list(chords.labels) == labels
    np.testing.assert_allclose(chords.intervals_sec[:, 0], [0, 2, 4, 6], atol=0.1)
    assert chords.intervals_sec[-1, 1] == 8


def test_silence_is_no_chord() -> None:
    wave = np.concatenate([triad("D:maj", 2), np.zeros(2 * RATE), triad("D:maj", 2)])
    chords = recognise_chords(audio(wave))
    assert chords.labels == ("D:maj", "N", "D:maj")
    np.testing.assert_allclose(chords.intervals_sec[:, 0], [0, 2, 4], atol=0.1)


def test_a_silent_recording_is_one_interval_without_a_chord() -> None:
    chords = recognise_chords(Audio(np.zeros(3 * RATE, np.float32)))
    assert chords.labels == ("N",)
    np.testing.assert_allclose(chords.intervals_sec, [[0, 3]])


@pytest.mark.parametrize("samples", [2 * RATE, 2 * RATE + 1, 100_000, 131_072])
def test_chords_fill_the_recording_whatever_its_length(samples: int, rng: np.random.Generator) -> None:
    chords = recognise_chords(audio(rng.standard_normal(samples)))
    assert chords.intervals_sec[0, 0] == 0
    assert chords.intervals_sec[-1, 1] == samples / RATE
    assert set(chords.labels) <= set(CHORD_LABELS)
    assert all(one != other for one, other in zip(chords.labels, chords.labels[1:], strict=False))


def test_drums_do_not_hide_the_chords(rng: np.random.Generator) -> None:
    wave = np.concatenate([triad(label, 2) for label in ("E:min", "C:maj")])
    hits = np.zeros_like(wave)
    for start in range(0, len(wave) - 1000, RATE // 4):
        hits[start : start + 1000] = rng.standard_normal(1000) * np.linspace(1, 0, 1000)
    assert recognise_chords(audio(wave + 2 * hits)).labels == ("E:min", "C:maj")


def test_the_level_changes_nothing() -> None:
    wave = np.concatenate([triad(label, 1) for label in ("E:min", "C:maj", "A:min")])
    loud, soft = (recognise_chords(audio(wave, gain)) for gain in (1.0, 0.125))  # exact in binary
    assert loud.labels == soft.labels
    np.testing.assert_array_equal(loud.intervals_sec, soft.intervals_sec)


def test_labels_are_read_by_mir_eval() -> None:
    for index, label in enumerate(CHORD_LABELS):
        root, pitches, _ = mir_eval.chord.encode(label)
        assert root == index % 12
        assert np.flatnonzero(pitches).tolist() == ([0, 4, 7] if index < 12 else [0, 3, 7])
