from __future__ import annotations

import functools
import itertools
from pathlib import Path

import mir_eval
import numpy as np
import pytest

from music_evals.annotations import DRUMS, Beats, Score, Tempo
from music_evals.audio import beats as module
from music_evals.audio.beats import (
    FRAME_RATE_HZ,
    activations,
    beat_features,
    decode_beats,
    fit_tempo,
    track_beats_librosa,
    track_beats_official,
    track_beats_tcn,
)
from music_evals.audio.io import Audio
from music_evals.audio.rendering import render_additive
from music_evals.symbolic.notes import make_notes

RATE = 22050
TRACKERS = (track_beats_tcn, track_beats_librosa, track_beats_official)
pytest.importorskip("librosa")


@functools.cache
def rock(bpm: float, n_bars: int = 8) -> Audio:
    """Kick, snare and hi-hat in 4/4, with a bass on the beats; the first beat at 0 s."""
    rows = [(i * 240, 120, 42, 70, 0) for i in range(8 * n_bars)]
    rows += [(i * 480, 120, (36, 38)[i % 2], 100, 0) for i in range(4 * n_bars)]
    rows += [(i * 480, 440, (36, 36, 43, 41)[i // 4 % 4], 90, 1) for i in range(4 * n_bars)]
    notes = make_notes(*zip(*rows, strict=True))
    score = Score(notes, 480, tempos=(Tempo(0, bpm),), voices=("Drums", "Bass"), programs=(DRUMS, 32))
    return Audio(render_additive(score))


def pulse(period_sec: float, n: int, start_sec: float = 0.4) -> np.ndarray:
    """Log-odds with a peak of two frames' width at every beat."""
    n_frames = round((start_sec + n * period_sec) * FRAME_RATE_HZ)
    frames = np.arange(n_frames)
    times = (start_sec + period_sec * np.arange(n)) * FRAME_RATE_HZ
    distance = np.abs(frames[:, None] - times).min(axis=1)
    return np.maximum(4 - 4 * distance, -5).astype(np.float32)


def test_a_tempo_is_the_slope_through_the_beats() -> None:
    # 100 a minute, jittered by +-5 ms: the line is steadier than any interval
    times = 1.3 + 0.6 * np.arange(20) + 0.005 * np.array([1, -1] * 10)
    expected = 60 * np.polyfit(times, np.arange(20), 1)[0]
    assert fit_tempo(times) == pytest.approx(expected, rel=1e-9)
    assert fit_tempo(times) == pytest.approx(100, rel=1e-3)


def test_beats_that_were_missed_do_not_slow_the_tempo() -> None:
    assert fit_tempo(np.delete(0.5 * np.arange(20), [4, 9, 10])) == pytest.approx(120)


@pytest.mark.parametrize("n", range(4))
def test_below_four_beats_there_is_no_tempo(n: int) -> None:
    assert np.isnan(fit_tempo(np.arange(float(n))))


@pytest.mark.parametrize("bpm", [52.0, 77.3, 120.0, 166.6, 200.0])
def test_decoding_finds_a_regular_pulse(bpm: float) -> None:
    found = decode_beats(pulse(60 / bpm, 24))
    expected = 0.4 + 60 / bpm * np.arange(24)
    inner = found[(found > 0.3) & (found < expected[-1] + 0.05)]
    np.testing.assert_allclose(inner, expected, atol=0.012)  # half a frame
    assert fit_tempo(inner) == pytest.approx(bpm, rel=3e-3)


def test_decoding_bridges_beats_that_nothing_tells() -> None:
    odds = pulse(0.5, 24)
    odds[round(4.2 * FRAME_RATE_HZ) : round(6.2 * FRAME_RATE_HZ)] = -3.0
    found = decode_beats(odds)
    inner = found[(found > 0.3) & (found < 11.95)]
    np.testing.assert_allclose(inner, 0.4 + 0.5 * np.arange(24), atol=0.03)


def test_decoding_is_the_best_of_all_sequences() -> None:
    """Against a search through every sequence of beats that the rules allow, on a few frames."""
    rng = np.random.default_rng(2)
    for _ in range(2):
        odds = rng.normal(0, 2, 36).astype(np.float32)
        rate = module.UPSAMPLING * FRAME_RATE_HZ
        n = module.UPSAMPLING * 35 + 1
        fine = np.interp(np.arange(n) / module.UPSAMPLING, np.arange(36), odds)
        gain = np.clip(fine, -module.MOST_LOG_ODDS, module.MOST_LOG_ODDS) + module.BEAT_BONUS
        intervals = range(round(60 * rate / module.FASTEST_BPM), round(60 * rate / module.SLOWEST_BPM) + 1)
        best = _search(gain, intervals)
        score = module._forward(gain, np.array(intervals))
        last = np.where(np.arange(n)[:, None] >= n - np.array(intervals), score, -np.inf)
        assert last.max() == pytest.approx(best)


def _search(gain: np.ndarray, intervals: range) -> float:
    """Score of the best sequence: up to three beats are laid down one by one, the slow way."""
    n, shortest = len(gain), intervals[0]
    assert n < 3 * shortest  # so that there are no more than three beats
    best = -np.inf
    for first, before in itertools.product(range(n), intervals):
        if first >= before:  # a beat would have come before it
            continue
        if first + before >= n:
            best = max(best, gain[first])
        for interval in intervals:
            second = first + interval
            if second >= n or abs(interval - before) > module.REACH:
                continue
            cost = module.CHANGE_COST * abs(np.log(interval / before))
            if second + interval >= n:
                best = max(best, gain[first] + gain[second] - cost)
            for next_interval in intervals:
                third = second + next_interval
                if third >= n or abs(next_interval - interval) > module.REACH or third + next_interval < n:
                    continue
                more = module.CHANGE_COST * abs(np.log(next_interval / interval))
                best = max(best, gain[first] + gain[second] + gain[third] - cost - more)
    return float(best)


@pytest.mark.parametrize("track", TRACKERS)
@pytest.mark.parametrize("bpm", [96.0, 124.0])
def test_a_rock_beat_is_found(track, bpm: float) -> None:  # type: ignore[no-untyped-def]
    audio = rock(bpm)
    found = track(audio)
    truth = 60 / bpm * np.arange(32)
    assert mir_eval.beat.f_measure(truth, found.times_sec) > 0.9
    assert found.bpm == pytest.approx(bpm, rel=0.03)


@pytest.mark.parametrize("bpm", [96.0, 124.0])
@pytest.mark.parametrize("silent_sec", [3, 20])
def test_silence_around_the_music_moves_beats_alone(bpm: float, silent_sec: int) -> None:
    music, silence = rock(bpm, 5).samples, np.zeros(silent_sec * RATE, np.float32)
    alone, among = track_beats_tcn(Audio(music)), track_beats_tcn(Audio(np.concatenate([silence, music, silence])))
    assert among.bpm == pytest.approx(alone.bpm, abs=0.3)
    f_measure = mir_eval.beat.f_measure(silent_sec + alone.times_sec, among.times_sec)
    assert f_measure > 0.9
    assert len(among.pulse) >= len(alone.pulse) - 1


def test_long_rests_do_not_halve_the_tempo() -> None:
    music = rock(124.0, 10).samples
    bars = np.split(music[: 4 * (len(music) // 4)], 4)
    with_rests = np.concatenate([part for bar in bars for part in (bar, np.zeros(5 * RATE, np.float32))])
    assert track_beats_tcn(Audio(with_rests)).bpm == pytest.approx(124, rel=0.04)


@pytest.mark.parametrize(("beats", "bpm"), [(4, 88.0), (3, 126.0)])
def test_beats_without_drums_are_found(beats: int, bpm: float) -> None:
    """Four voices on the beats, with passing eighths, as in a chorale; strings."""
    chords = [(60, 64, 67, 48), (60, 65, 69, 53), (59, 62, 67, 55), (60, 64, 67, 48)] * 3
    rows = []
    for bar, chord in enumerate(chords):
        for voice, pitch in enumerate(chord):
            for beat in range(beats):
                onset, half = (bar * beats + beat) * 480, voice == bar % 4 and beat % 2 == 1
                rows += [(onset, 240, pitch, 80, voice), (onset + 240, 240, pitch + 2, 70, voice)] if half else []
                rows += [] if half else [(onset, 480, pitch + (beat == 1), 80, voice)]
    notes = make_notes(*zip(*rows, strict=True))
    score = Score(notes, 480, tempos=(Tempo(0, bpm),), voices=tuple("SATB"), programs=(48,) * 4)
    found = track_beats_tcn(Audio(render_additive(score)))
    assert mir_eval.beat.f_measure(60 / bpm * np.arange(12 * beats), found.times_sec) > 0.9
    assert found.bpm == pytest.approx(bpm, rel=0.01)


def test_the_fitted_tempo_is_finer_than_librosas_own() -> None:
    audio = rock(120.0, n_bars=12)
    assert abs(track_beats_librosa(audio).bpm - 120) < 0.5
    assert track_beats_official(audio).bpm == pytest.approx(117.45, abs=0.01)  # the nearest of librosa's lags


@pytest.mark.parametrize("track", TRACKERS)
@pytest.mark.parametrize("n", [1, 500, 2048, round(0.3 * RATE), 3 * RATE])
def test_silence_and_very_short_recordings_have_no_beats_in_silence(track, n: int) -> None:  # type: ignore[no-untyped-def]
    empty: Beats = track(Audio(np.zeros(n, dtype=np.float32)))
    assert len(empty.times_sec) == 0
    assert np.isnan(empty.bpm)


@pytest.mark.parametrize("track", TRACKERS)
def test_a_third_of_a_second_is_answered(track) -> None:  # type: ignore[no-untyped-def]
    found = track(Audio(rock(120.0).samples[: round(0.3 * RATE)]))
    assert (found.times_sec < 0.3).all()
    assert np.isnan(found.bpm) or track is track_beats_official  # librosa has a tempo for anything


@pytest.mark.parametrize("track", TRACKERS)
def test_gain_changes_nothing(track) -> None:  # type: ignore[no-untyped-def]
    samples = rock(110.0).samples
    loud, soft = track(Audio(samples)), track(Audio(samples * np.float32(0.03)))
    np.testing.assert_allclose(loud.times_sec, soft.times_sec, atol=1e-3)
    assert loud.bpm == pytest.approx(soft.bpm, rel=1e-4)


def test_no_beats_where_nothing_sounds() -> None:
    samples = rock(120.0, n_bars=6).samples
    quiet = np.zeros(4 * RATE, dtype=np.float32)
    found = track_beats_tcn(Audio(np.concatenate([quiet, samples, quiet])))
    assert found.times_sec[0] > 3.8
    assert found.times_sec[-1] < 4 + len(samples) / RATE


def test_levels_are_those_of_the_bands() -> None:
    time = np.arange(2 * RATE) / RATE
    tone = np.sin(2 * np.pi * 440 * time).astype(np.float32)
    levels = beat_features(Audio(tone))
    assert levels.shape[1] == 84
    assert (levels[20:60].argmax(axis=1) == 69 - 36).all()  # A4, counted from C2
    assert levels.max() == pytest.approx(1)
    assert levels.min() >= 0


def test_activations_are_those_of_the_network_that_was_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from benchmarks.beat_tracker.network import BeatTracker

    from music_evals.audio.beats import _load_weights

    shipped = _load_weights("beat_tracker")
    network = BeatTracker(width=len(shipped["front.0.bias"]))
    network.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in shipped.items()})
    network.eval()
    for n_frames in (3, 40, 700):  # shorter than a kernel, shorter than a dilation, longer than most
        levels = np.random.default_rng(n_frames).random((n_frames, 84), dtype=np.float32)
        with torch.no_grad():
            theirs = network(torch.from_numpy(levels[None]))[0].numpy()
        np.testing.assert_allclose(activations(levels), theirs, atol=2e-4)
