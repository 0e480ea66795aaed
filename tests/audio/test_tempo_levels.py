"""Pairs of recordings that are counted at two levels, and at two tempi."""

from __future__ import annotations

import numpy as np
import pytest

from music_evals.annotations import Beats, Score, Tempo
from music_evals.audio.beats import FRAME_RATE_HZ, beats_within, track_beats_tcn
from music_evals.audio.io import Audio
from music_evals.audio.rendering import render_additive
from music_evals.audio.tempo_levels import MIN_AGREEMENT, pulse_agreement, share_level, share_phase
from music_evals.symbolic.notes import make_notes

RATE = 22050


def tune(bpm: float, *, seed: int = 0, program: int = 0) -> Beats:
    """The beats of twelve bars of melody and chords."""
    rng = np.random.default_rng(seed)
    rhythm = [int(rng.choice([240, 480, 480, 720])) for _ in range(60)]
    onsets = np.cumsum([0, *rhythm])
    rows = [
        (int(onset), length - 20, 60 + int(rng.choice([0, 2, 4, 5, 7, 9, 11, 12])), 90, 0)
        for onset, length in zip(onsets[:-1], rhythm, strict=True)
        if onset < 12 * 1920
    ]
    for bar in range(12):
        root = 36 + int(rng.choice([0, 5, 7, 9]))
        rows += [(bar * 1920 + beat * 480, 440, root + 12 * (beat > 0), 80, 1) for beat in range(4)]
    notes = make_notes(*zip(*rows, strict=True))
    score = Score(notes, 480, tempos=(Tempo(0, bpm),), voices=("Tune", "Bass"), programs=(program, 32))
    return track_beats_tcn(Audio(render_additive(score)))


def recounted(beats: Beats, bpm: float) -> Beats:
    return beats_within(beats, bpm / 1.2, bpm * 1.2)


@pytest.fixture(scope="module")
def plain() -> Beats:
    return tune(110)


@pytest.mark.parametrize("octave", [-1, 1])
@pytest.mark.parametrize("factor", [0.8, 1.0, 1.1])
def test_a_flip_is_mended_and_a_change_of_tempo_is_not(plain: Beats, octave: int, factor: float) -> None:
    edit = tune(110 * factor)
    flipped = recounted(edit, 110 * factor * 2**octave)
    assert abs(np.log2(flipped.bpm / plain.bpm)) > 0.5
    first, second = share_level(plain, flipped)
    assert second.bpm / first.bpm == pytest.approx(factor, rel=0.01)


def test_a_real_doubling_stays_one(plain: Beats) -> None:
    twice = tune(220)
    octaves, agreement = pulse_agreement(plain, twice)
    assert octaves[np.argmax(agreement)] == pytest.approx(1, abs=0.03)
    first, second = share_level(plain, recounted(twice, 205))
    assert second.bpm / first.bpm == pytest.approx(2, rel=0.02)


def test_a_doubling_that_was_not_found_is_found_or_stays_hidden(plain: Beats) -> None:
    # both were counted at 110, and even quarters agree with themselves after half the time almost as well
    first, second = share_level(plain, recounted(tune(220), 110))
    assert np.log2(second.bpm / first.bpm) == pytest.approx(round(np.log2(second.bpm / first.bpm)), abs=0.02)


def test_what_agrees_is_left_alone(plain: Beats) -> None:
    faster = tune(121)
    first, second = share_level(plain, faster)
    assert first is plain
    assert second is faster


def test_sounds_that_do_not_agree_are_left_alone(plain: Beats) -> None:
    rng = np.random.default_rng(0)
    noise = track_beats_tcn(Audio((0.1 * rng.standard_normal(20 * RATE)).astype(np.float32)))
    assert pulse_agreement(plain, noise)[1].max() < MIN_AGREEMENT
    assert share_level(plain, noise) == (plain, noise)


def test_the_sides_may_change_places(plain: Beats) -> None:
    flipped = recounted(tune(88), 176)
    first, second = share_level(plain, flipped)
    back, forth = share_level(flipped, plain)
    np.testing.assert_array_equal(first.times_sec, forth.times_sec)
    np.testing.assert_array_equal(second.times_sec, back.times_sec)


def test_without_evidence_nothing_is_changed(plain: Beats) -> None:
    by_hand = Beats(np.arange(40) * 0.25, 240.0)
    assert share_level(plain, by_hand) == (plain, by_hand)
    assert share_level(by_hand, by_hand) == (by_hand, by_hand)


def test_silence_and_short_recordings_are_left_alone(plain: Beats) -> None:
    silent = track_beats_tcn(Audio(np.zeros(10 * RATE, np.float32)))
    short = track_beats_tcn(Audio((0.1 * np.random.default_rng(0).standard_normal(3 * RATE)).astype(np.float32)))
    for other in (silent, short):
        assert share_level(plain, other) == (plain, other)
        assert not len(pulse_agreement(plain, other)[0])


def test_evidence_survives_storage(plain: Beats) -> None:
    again = Beats.from_arrays(plain.to_arrays())
    flipped = recounted(tune(88), 176)
    for one, other in zip(share_level(plain, flipped), share_level(again, flipped), strict=True):
        np.testing.assert_array_equal(one.times_sec, other.times_sec)


def evident(on: float, off: float, *, bpm: float = 100.0, late_sec: float = 0.0) -> Beats:
    """Return the beats of 30 s with evidence of two strengths on each beat and half a beat later."""
    log_odds = np.full(int(30 * FRAME_RATE_HZ), -3.0)
    for place, strength in ((0.0, on), (0.5, off)):
        frames = np.round((np.arange(0, 29, 60 / bpm) + place * 60 / bpm + late_sec) * FRAME_RATE_HZ).astype(int)
        log_odds[frames[frames < len(log_odds)]] = strength
    return beats_within(Beats(np.zeros(0), float("nan"), log_odds, np.array([0.0, 30.0])), bpm / 1.2, bpm * 1.2)


@pytest.mark.parametrize("swapped", [False, True])
def test_beats_half_a_beat_apart_are_counted_together_where_the_evidence_is_equal(*, swapped: bool) -> None:
    pair = (evident(2.0, 1.9), evident(1.9, 2.0))[:: -1 if swapped else 1]
    apart = np.abs(pair[0].times_sec[:40, None] - pair[1].times_sec[None]).min(axis=1)
    assert np.median(apart) == pytest.approx(0.3, abs=0.02)
    first, second = share_phase(*pair)
    assert first.times_sec[:40] == pytest.approx(second.times_sec[:40], abs=0.03)
    assert [new is old for new, old in zip((first, second), pair, strict=True)].count(True) == 1  # one is counted again
    for new, old in zip((first, second), pair, strict=True):
        assert np.array_equal(new.log_odds, old.log_odds)


def test_beats_that_the_music_has_elsewhere_stay_there() -> None:
    for other in (evident(1.0, 2.5), evident(2.5, -1.0, late_sec=0.25), evident(2.5, 1.0, bpm=120), Beats(np.zeros(0))):
        pair = evident(2.5, 1.0), other
        assert share_phase(*pair) == pair
        assert share_phase(*pair[::-1]) == pair[::-1]


def test_beats_that_hit_one_another_stay_as_they_are(plain: Beats) -> None:
    other = tune(110, program=24)
    assert share_phase(plain, plain) == (plain, plain)
    assert share_phase(plain, other) == (plain, other)
