from __future__ import annotations

import dataclasses
import math

import mir_eval
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from music_evals.annotations import Beats, Score
from music_evals.audio.extraction import extract
from music_evals.audio.io import SAMPLE_RATE, load_audio
from music_evals.audio.rendering import render_additive
from music_evals.errors import UndefinedMetricWarning, UnknownNameError
from music_evals.metrics import rhythm
from music_evals.pipelines.score_features import score_features
from music_evals.symbolic.notes import make_notes

NONE = Beats(np.zeros(0))
NAN = float("nan")
# 20 beats at 120 a minute, from 1 s on
STEADY = Beats(1 + 0.5 * np.arange(20), 120.0)


def moved(beats: Beats, seconds: float) -> Beats:
    return Beats(beats.times_sec + seconds, beats.bpm)


@pytest.mark.parametrize(
    ("reference", "estimate", "delta", "log2", "octave"),
    [
        (120.0, 120.0, 0.0, 0.0, 0.0),
        (120.0, 60.0, 60.0, 0.0, -1.0),
        (60.0, 240.0, 180.0, 0.0, 2.0),
        (100.0, 110.0, 10.0, math.log2(1.1), 0.0),
        (100.0, 90.0, 10.0, math.log2(0.9), 0.0),
        # 100 to 150: log2 = 0.585, nearest whole number 1
        (100.0, 150.0, 50.0, math.log2(1.5) - 1, 1.0),
        (150.0, 100.0, 50.0, 1 - math.log2(1.5), -1.0),
    ],
)
def test_tempo_by_hand(reference: float, estimate: float, delta: float, log2: float, octave: float) -> None:
    pair = Beats(np.zeros(0), reference), Beats(np.zeros(0), estimate)
    assert rhythm.delta_bpm(*pair) == delta
    assert rhythm.tempo_log2(*pair) == pytest.approx(log2, abs=1e-12)
    assert rhythm.tempo_octave(*pair) == octave


@pytest.mark.parametrize("metric", [rhythm.delta_bpm, rhythm.tempo_log2, rhythm.tempo_octave])
@pytest.mark.parametrize(("tempi", "side"), [((NAN, 120.0), "reference"), ((120.0, NAN), "estimate")])
def test_no_tempo_is_undefined(metric, tempi: tuple[float, float], side: str) -> None:
    with pytest.warns(UndefinedMetricWarning, match=f"{metric.__name__} is undefined: the {side} has no tempo"):
        assert math.isnan(metric(*(Beats(np.zeros(0), bpm) for bpm in tempi)))


def test_f_measure_by_hand() -> None:
    reference = Beats(np.array([1.0, 2.0, 3.0, 4.0]))
    # 1.07 hits (the limit counts), 2.08 misses, 3.0 hits once though two are near: 2 * 2 / (4 + 5)
    estimate = Beats(np.array([1.07, 2.08, 2.99, 3.0, 5.0]))
    assert rhythm.beat_f_measure(reference, estimate) == pytest.approx(4 / 9)
    assert rhythm.beat_f_measure(reference, estimate, tolerance_sec=0.1) == pytest.approx(6 / 9)


def test_beats_outside_of_the_span_do_not_count() -> None:
    late = Beats(STEADY.times_sec[8:])  # from 5 s on
    assert rhythm.beat_f_measure(STEADY, late) == pytest.approx(2 * 12 / 32)
    assert rhythm.beat_f_measure(STEADY, late, min_beat_time_sec=5.0) == 1
    longer = Beats(1 + 0.5 * np.arange(30))
    assert rhythm.beat_f_measure(STEADY, longer) == pytest.approx(2 * 20 / 50)
    assert rhythm.beat_f_measure(STEADY, longer, end_sec=11.0) == 1  # its last beat is at 10.5 s
    assert rhythm.information_gain(STEADY, longer, end_sec=11.0) == 1


def test_the_official_variant_drops_the_first_5_s() -> None:
    damaged = Beats(np.concatenate([[0.3, 1.7, 3.3], STEADY.times_sec[8:]]))
    assert rhythm.beat_f_measure(STEADY, damaged, variant="official") == 1
    assert rhythm.beat_f_measure(STEADY, damaged, variant="official", min_beat_time_sec=0.0) < 1
    short = Beats(np.array([1.0, 2.0, 3.0, 4.0]))
    assert rhythm.beat_f_measure(short, short, variant="official") == 0
    assert rhythm.beat_f_measure(short, short) == rhythm.beat_f_measure(short, short, variant="paper") == 1


def test_information_gain_by_hand() -> None:
    # Every beat of the estimate is 0.1 s late, a fifth of a beat: one bin. The other way round the first beat of the
    # reference comes before all of the estimate's, and mir_eval gives it a bin near 0: 19 of 20 in one bin, 1 in
    # another, H = -(.95 log2 .95 + .05 log2 .05) = 0.2864 bits of log2(41) = 5.3576.
    assert rhythm.information_gain(STEADY, moved(STEADY, 0.1)) == pytest.approx(1 - 0.286397 / 5.357552, abs=1e-6)
    # half as many beats: each is right, and between them the others lie half a beat off: 10 of 20 in each bin, 1 bit
    half = Beats(STEADY.times_sec[::2])
    assert rhythm.information_gain(STEADY, half) == pytest.approx(1 - 1 / 5.357552, abs=0.01)


def test_sides_without_beats() -> None:
    assert rhythm.beat_f_measure(STEADY, NONE) == rhythm.beat_f_measure(NONE, STEADY) == 0
    assert rhythm.information_gain(STEADY, NONE) == rhythm.information_gain(NONE, STEADY) == 0
    one = Beats(np.array([1.0]))
    assert rhythm.information_gain(STEADY, one) == rhythm.information_gain(one, STEADY) == 0
    with pytest.warns(UndefinedMetricWarning, match="neither side has a beat"):
        assert math.isnan(rhythm.beat_f_measure(NONE, NONE))
    with pytest.warns(UndefinedMetricWarning, match="neither side has two beats"):
        assert math.isnan(rhythm.information_gain(one, one))
    assert rhythm.beat_f_measure(NONE, NONE, variant="official") == 0
    assert rhythm.information_gain(one, one, variant="official") == 0


@pytest.mark.parametrize("offset", [-0.3, -0.1, 0.03, 0.2, 0.25])
def test_an_offset_is_found_and_taken_away(offset: float) -> None:
    estimate = moved(STEADY, offset)
    assert rhythm.beat_offset_sec(STEADY, estimate) == pytest.approx(offset, abs=1e-12)
    assert rhythm.beat_f_measure(STEADY, estimate, align="offset") == 1
    if abs(offset) > rhythm.TOLERANCE_SEC:
        assert rhythm.beat_f_measure(STEADY, estimate) == 0
        assert rhythm.information_gain(STEADY, estimate, align="offset") == 1


def test_an_offset_of_more_than_a_beat_is_one_of_less() -> None:
    # 0.6 s late is 0.1 s late a beat later
    assert rhythm.beat_offset_sec(STEADY, moved(STEADY, 0.6)) == pytest.approx(0.1)


def test_of_equally_good_offsets_the_smaller_counts() -> None:
    # 19 beats between the 20: 0.2 s after one is 0.3 s before the next
    between = Beats(STEADY.times_sec[:-1] + 0.2)
    assert rhythm.beat_offset_sec(STEADY, between) == pytest.approx(0.2)


def test_an_offset_that_hits_no_more_is_left_alone() -> None:
    near = moved(STEADY, 0.03)
    assert rhythm.information_gain(STEADY, near, align="offset") == rhythm.information_gain(STEADY, near) < 1


def test_no_offset() -> None:
    for pair in [(Beats(np.array([1.0])), STEADY), (STEADY, NONE), (STEADY, Beats(np.array([60.0])))]:
        with pytest.warns(UndefinedMetricWarning, match="beat_offset_sec is undefined"):
            assert math.isnan(rhythm.beat_offset_sec(*pair))
        assert rhythm.beat_f_measure(*pair, align="offset") == rhythm.beat_f_measure(*pair)


def test_unknown_options() -> None:
    with pytest.raises(UnknownNameError, match="'ofset'"):
        rhythm.beat_f_measure(STEADY, STEADY, align="ofset")
    with pytest.raises(UnknownNameError):
        rhythm.beat_f_measure(STEADY, STEADY, variant="original")


@given(st.lists(st.floats(0.2, 1.0), min_size=2, max_size=25), st.lists(st.floats(0.2, 1.0), min_size=1, max_size=25))
@example([0.2, 0.51, 0.2, 0.2], [0.51])
def test_no_offset_on_a_grid_hits_more(first: list[float], second: list[float]) -> None:
    # beats further apart than the window and far from 0 s: hits can be counted by trying
    reference, estimate = Beats(10 + np.cumsum(first)), Beats(10 + np.cumsum(second))

    def hits(seconds: float) -> int:
        return len(mir_eval.util.match_events(reference.times_sec, estimate.times_sec - seconds, 0.07 + 1e-9))

    # up to there all hits are of differences within one beat, also where a difference of just one beat is rounded
    furthest = float(np.median(np.diff(reference.times_sec))) - rhythm.TOLERANCE_SEC - 1e-6
    best = max(hits(seconds) for seconds in np.linspace(-furthest, furthest, 101))
    if best:
        assert hits(rhythm.beat_offset_sec(reference, estimate)) >= best
    aligned = rhythm.beat_f_measure(reference, estimate, align="offset")
    assert aligned >= rhythm.beat_f_measure(reference, estimate)


@pytest.mark.parametrize("n", [2, 6, 30, 60])
def test_the_information_gain_of_beats_at_random(n: int, rng: np.random.Generator) -> None:
    """The mean over draws of n errors in the bins."""
    counts = np.stack([np.bincount(rng.integers(rhythm.BINS, size=n), minlength=rhythm.BINS) for _ in range(2000)])
    shares = counts / n
    entropy = -(shares * np.log2(np.where(counts, shares, 1))).sum(axis=1).mean()
    expected = 1 - entropy / np.log2(rhythm.BINS)
    assert rhythm.information_gain_of_chance(n) == pytest.approx(expected, abs=0.01)
    assert math.isnan(rhythm.information_gain_of_chance(1))


RATE = 86.0


def grooving(off_beat: float, *, beat_sec: float = 0.5, strength: float = 1.0, n_beats: int = 16) -> Beats:
    """Return steady beats with onsets on each of them and at a place between, each two frames wide."""
    times = beat_sec * np.arange(n_beats)
    frames = np.zeros(int(n_beats * beat_sec * RATE) + 2)
    for place, weight in ((0.0, 1.0), (off_beat, strength)):
        at = (times + place * beat_sec) * RATE
        np.add.at(frames, at.astype(int), weight * (1 - at % 1))
        np.add.at(frames, at.astype(int) + 1, weight * (at % 1))
    return Beats(times, 60 / beat_sec, onsets=frames, onset_rate_hz=RATE)


@pytest.mark.parametrize(
    ("straight", "swung", "octaves"),
    [(1 / 2, 2 / 3, 1.0), (2 / 3, 1 / 2, 1.0), (1 / 2, 3 / 5, 0.585), (3 / 5, 3 / 4, 1.0)],
)
def test_swing_in_octaves(straight: float, swung: float, octaves: float) -> None:
    assert rhythm.swing_ratio(grooving(straight), grooving(swung)) == pytest.approx(octaves, abs=0.1)


@given(st.floats(0.4, 0.7), st.floats(0.4, 0.7), st.floats(0.2, 1.0), st.floats(0.35, 0.8), st.floats(1e-3, 1e3))
def test_laws_of_swing(first: float, second: float, strength: float, beat_sec: float, gain: float) -> None:
    reference, estimate = grooving(first), grooving(second, strength=strength, beat_sec=beat_sec)
    score = rhythm.swing_ratio(reference, estimate)
    assert 0 <= score <= 1.5
    assert rhythm.swing_ratio(reference, reference) == rhythm.swing_ratio(estimate, estimate) == 0
    louder = dataclasses.replace(estimate, onsets=gain * estimate.onsets)
    assert rhythm.swing_ratio(reference, louder) == pytest.approx(score)
    assert rhythm.swing_ratio(estimate, reference) == pytest.approx(score, abs=0.2)
    # at another tempo, and with softer off-beats, the same place is the same swing
    assert rhythm.swing_ratio(reference, grooving(first, strength=strength, beat_sec=beat_sec)) <= 0.15


def test_beats_with_nothing_between_them_do_not_swing(rng: np.random.Generator) -> None:
    empty = grooving(0.5, strength=0.0)
    assert rhythm.swing_ratio(empty, empty) == rhythm.swing_ratio(empty, grooving(2 / 3)) == 0
    noise = dataclasses.replace(empty, onsets=rng.random(len(empty.onsets)))
    assert rhythm.swing_ratio(empty, noise) < 0.5


def test_swing_needs_beats_and_onsets() -> None:
    few = grooving(0.5, n_beats=8)
    for pair in ((STEADY, grooving(0.5)), (grooving(0.5), STEADY), (few, grooving(0.5)), (grooving(0.5), NONE)):
        with pytest.warns(UndefinedMetricWarning):
            assert math.isnan(rhythm.swing_ratio(*pair))
    with pytest.raises(UnknownNameError):
        rhythm.swing_ratio(few, few, variant="official2")


def test_swing_is_heard_in_scores_and_in_sound() -> None:
    """Sixteen bars' worth of eighths, a low drum on the beat and a high one off it: gain leaves the swing alone."""

    def played(off_beat: int) -> Score:
        onsets = [480 * beat + tick for beat in range(16) for tick in (0, off_beat)]
        return Score(make_notes(onsets, [100] * 32, [40, 76] * 16, 90), 480)

    straight, swung = played(240), played(320)
    written = [score_features(score, ["beats"]).beats for score in (straight, swung)]
    assert rhythm.swing_ratio(*written) == pytest.approx(1, abs=0.1)
    sounds = [render_additive(score, sample_rate=SAMPLE_RATE) for score in (straight, swung)]
    heard = [
        extract(load_audio(samples, rate=SAMPLE_RATE), ["beats"]).beats
        for samples in (*sounds, 0.1 * sounds[0] + 1e-3 * np.random.default_rng(1).standard_normal(len(sounds[0])))
    ]
    assert rhythm.swing_ratio(heard[0], heard[1]) == pytest.approx(1, abs=0.25)
    assert rhythm.swing_ratio(heard[0], heard[2]) < 0.1
