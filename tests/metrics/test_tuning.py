"""Two sides of a pair in one tuning: no step at the quarter tone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from music_evals.annotations import Chords, Chroma, EditTarget, Features, Key
from music_evals.audio.extraction import extract
from music_evals.audio.io import SAMPLE_RATE, load_audio
from music_evals.errors import InvalidAnnotationError, UndefinedMetricWarning, UnknownNameError
from music_evals.metrics import edit_success, harmony
from music_evals.metrics.tuning import moved_label, shared_readings, tuning_cents

tunings = st.floats(-0.5, 0.5)
SCORES = [
    ("circle_of_fifths_distance", 0, 5 / 6),
    ("major_minor_score", 1, 0),
    ("chroma_dtw_similarity", 1, 0),
    ("chroma_dtw_centred", 1, -0.34667),
]
"""Score, what it gives for equal chords, and for chords a semitone apart."""


def moved(readings: tuple[tuple[int, float], ...]) -> float:
    return sum(steps * weight for steps, weight in readings)


@given(tunings, tunings)
def test_readings_are_weights_of_neighbours(reference: float, estimate: float) -> None:
    readings = shared_readings(reference, estimate)
    assert sum(weight for _, weight in readings) == pytest.approx(1)
    assert all(0 < weight <= 1 for _, weight in readings)
    assert readings[0][1] >= 0.5  # the nearest first
    assert abs(moved(readings) - (estimate - reference)) <= 0.25 + 1e-9
    back = shared_readings(estimate, reference)
    assert back == tuple((-steps, pytest.approx(weight)) for steps, weight in readings)


@given(tunings, tunings, st.floats(-0.01, 0.01))
def test_readings_have_no_step(reference: float, estimate: float, change: float) -> None:
    """A tuning that crosses from one semitone to the next has the pitch classes of the next, and is read alike."""
    later = estimate + change
    wrapped = later - round(later)
    read = moved(shared_readings(reference, wrapped)) + round(later)
    assert abs(read - moved(shared_readings(reference, estimate))) <= 2 * abs(change) + 1e-9


@pytest.mark.parametrize(
    ("label", "semitones", "expected"),
    [
        ("C:maj", 1, "C#:maj"),
        ("Bb:min7/b3", 2, "C:min7/b3"),
        ("Fb:dim", -1, "D#:dim"),
        ("G##", 12, "G##"),
        ("N", 5, "N"),
        ("X", 5, "X"),
    ],
)
def test_moved_label(label: str, semitones: int, expected: str) -> None:
    assert moved_label(label, semitones) == expected


def sides(reference: float, estimate: float) -> dict[str, tuple[object, object]]:
    """Return C major, a moment of it, and a chroma of it, read off copies that are tuned as given."""
    frames = np.zeros((12, 40), np.float32)
    frames[[0, 4, 7], :20] = frames[[5, 9, 0], 20:] = 1
    spans = np.array([[0.0, 1.0], [1.0, 2.0]])
    pair = (reference, estimate)
    return {
        "circle_of_fifths_distance": tuple(Key(0, "major", tuning=side) for side in pair),
        "major_minor_score": tuple(Chords(spans, ("C:maj", "F:maj"), side) for side in pair),
        "chroma_dtw_similarity": tuple(Chroma(frames, 0.05, side) for side in pair),
        "chroma_dtw_centred": tuple(Chroma(frames, 0.05, side) for side in pair),
    }


@pytest.mark.parametrize(("name", "same", "semitone"), SCORES)
def test_the_tuning_is_shared_by_corrected_alone(name: str, same: float, semitone: float) -> None:
    score = getattr(harmony, name)
    assert score(*sides(0, 0)[name]) == score(*sides(0, 0.25)[name]) == pytest.approx(same)
    assert score(*sides(0, 0.5)[name]) == pytest.approx((same + semitone) / 2, abs=1e-5)
    assert score(*sides(-0.49, 0.49)[name]) == pytest.approx(
        semitone, abs=1e-5
    )  # the same pitch classes, but for 2 cents
    assert score(*sides(-0.49, 0.49)[name], variant="paper") == pytest.approx(
        score(*sides(0, 0)[name], variant="paper")
    )


def test_a_tuning_beyond_a_quarter_tone_is_refused() -> None:
    for build in (lambda: Key(0, "major", tuning=0.6), lambda: Chords(np.zeros((0, 2)), (), -0.6)):
        with pytest.raises(InvalidAnnotationError):
            build()
    with pytest.raises(InvalidAnnotationError):
        Chroma(np.zeros((12, 1), np.float32), 1.0, math.nan)


@given(tunings, tunings)
def test_tuning_cents(reference: float, estimate: float) -> None:
    frames = np.ones((12, 2), np.float32)
    first, second = (Chroma(frames, 1.0, tuning) for tuning in (reference, estimate))
    cents = tuning_cents(first, second)
    assert -50 <= cents <= 50
    assert tuning_cents(second, first) == -cents
    assert tuning_cents(first, first) == 0
    assert (100 * (estimate - reference) - cents) / 100 == pytest.approx(
        round((100 * (estimate - reference) - cents) / 100)
    )


def test_the_tuning_of_silence_is_undefined() -> None:
    sound, silence = (Chroma(np.full((12, 2), value, np.float32), 1.0) for value in (1, 0))
    for pair in ((sound, silence), (silence, sound)):
        with pytest.warns(UndefinedMetricWarning):
            assert math.isnan(tuning_cents(*pair))
    with pytest.raises(UnknownNameError):
        tuning_cents(sound, sound, variant="officially")


def played(cents: float, *, beats: int = 8) -> Features:
    """Return key, chords and chroma of C, F, G, C as tones with four partials, all of it tuned higher by so much."""
    times = np.arange(SAMPLE_RATE // 2) / SAMPLE_RATE
    chords = [(60, 64, 67), (60, 65, 69), (62, 67, 71), (60, 64, 67)]
    samples = np.concatenate(
        [
            sum(
                np.sin(2 * np.pi * n * 440 * 2 ** ((pitch + cents / 100 - 69) / 12) * times) / n
                for pitch in (36 + chord[0] % 12, *chord)
                for n in (1, 2, 3, 4)
            )
            * np.exp(-2 * times)
            for chord in (chords[beat % 4] for beat in range(beats))
        ]
    )
    return extract(load_audio(samples / 8, rate=SAMPLE_RATE), ["key", "chords", "chroma"])


def harmonies(reference: Features, estimate: Features) -> list[float]:
    """Return key, chords and both alignments of chroma, all of them higher for what is more alike."""
    assert reference.key is not None
    assert estimate.key is not None
    return [
        1 - harmony.circle_of_fifths_distance(reference.key, estimate.key),
        harmony.major_minor_score(reference.chords, estimate.chords),
        harmony.chroma_dtw_similarity(reference.chroma, estimate.chroma),
        harmony.chroma_dtw_centred(reference.chroma, estimate.chroma),
    ]


def test_a_hair_at_the_quarter_tone_is_a_hair() -> None:
    """Of copies 8 cents apart neither is the original, nor a semitone away from it."""
    original, below, above = played(0), played(46), played(54)
    first, second = harmonies(original, below), harmonies(original, above)
    assert np.all(np.abs(np.subtract(first, second)) < 0.25)
    assert np.all(np.subtract(harmonies(original, original), first) > 0.2)
    assert harmonies(below, above) == pytest.approx([1, 1, 1, 1], abs=0.1)
    assert tuning_cents(below.chroma, above.chroma) == pytest.approx(8, abs=4)


@pytest.mark.parametrize(("start", "step"), [(37, 5), *(pytest.param(n, 2, marks=pytest.mark.slow) for n in (0, 20))])
def test_a_sweep_of_a_semitone_falls_without_a_step(start: int, step: int) -> None:
    original = played(start)
    sweep = np.array([harmonies(original, played(start + cents)) for cents in range(0, 101, step)])
    highest_later = np.maximum.accumulate(sweep[::-1], axis=0)[::-1]
    assert np.all(highest_later - sweep <= 0.1)
    assert np.all(np.abs(np.diff(sweep, axis=0)) <= 0.06 * step)
    assert np.all(sweep[0] > 0.99)
    assert np.all(sweep[-1, :3] < 0.2)


@pytest.mark.parametrize(("start", "cents"), [(0, 10), (46, 8), (-46, -8)])
def test_music_that_is_hardly_retuned_is_not_transposed(start: float, cents: float) -> None:
    original, edit = played(start), played(start + cents)
    change = edit_success.transpose_change(original.chroma, edit.chroma, EditTarget("transpose", "+2"))
    assert (change.requested, change.measured) == (2, 0)
    assert original.key is not None
    assert edit.key is not None
    wanted = EditTarget("key", "F# minor")
    assert edit_success.key_change(original.key, edit.key, wanted).measured == pytest.approx(0)
    again = EditTarget("chords", "D:min A:min")
    assert edit_success.chords_change(original.chords, edit.chords, again).measured == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("cents", [200, 150, 246, 254])
def test_a_transposition_is_measured_between_semitones_too(cents: int) -> None:
    original, edit = played(0), played(cents)
    change = edit_success.transpose_change(original.chroma, edit.chroma, EditTarget("transpose", "+2"))
    assert change.measured == pytest.approx(cents / 100, abs=0.25)
