"""Melody trackers on tones whose pitch is known by construction."""

import functools
from collections.abc import Callable

import numpy as np
import pytest

from music_evals.annotations import F0Track
from music_evals.audio import f0, optional_f0
from music_evals.audio.io import Audio
from music_evals.errors import InvalidAudioError, MissingBackendError

RATE = 22050
PITCHES = (70, 77, 72, 81)  # half a second each, then two seconds of nothing


def _tune(cents: float = 0.0) -> Audio:
    """Harmonic tones, each fading in and out in 10 ms; faint noise throughout."""
    time_sec = np.arange(RATE // 2) / RATE
    fade = np.minimum(1, np.minimum(time_sec, time_sec[::-1]) / 0.01)
    tones = [
        fade * sum(np.sin(2 * np.pi * h * 440 * 2 ** ((p - 69 + cents / 100) / 12) * time_sec) / h for h in range(1, 9))
        for p in PITCHES
    ]
    samples = np.concatenate([*tones, np.zeros(2 * RATE)]) * 0.3
    return Audio((samples + np.random.default_rng(1).normal(0, 1e-4, len(samples))).astype(np.float32))


def _cents_off(track: F0Track) -> np.ndarray:
    """Distance from the truth in each frame that lies at least 70 ms from a change."""
    place = track.times_sec % 0.5
    inside = (place > 0.07) & (place < 0.43) & (track.times_sec < 2.0)
    index = (track.times_sec[inside] // 0.5).astype(int)
    pitches = 69 + 12 * np.log2(np.abs(track.frequencies_hz[inside]) / 440)
    return 100 * (pitches - np.array(PITCHES)[index])


TRACKERS = [f0.track_melody_net, f0.track_harmonic_sum, f0.track_pyin, f0.track_pyin_official]


@functools.cache
def _track_of_the_tune(track: Callable[[Audio], F0Track]) -> F0Track:
    return track(_tune())


@pytest.mark.parametrize("track", TRACKERS)
def test_a_plain_tune_is_followed(track: Callable[[Audio], F0Track]) -> None:
    found = _track_of_the_tune(track)
    assert np.mean(np.abs(_cents_off(found)) < 50) > 0.95
    sounding = (found.times_sec > 0.1) & (found.times_sec < 1.9)
    assert found.voiced[sounding].mean() > 0.85
    assert found.voiced[found.times_sec > 2.2].mean() < 0.2


@pytest.mark.parametrize(
    ("track", "hop"), [(TRACKERS[0], 512), (TRACKERS[1], 512), (TRACKERS[2], 512), (TRACKERS[3], 256)]
)
def test_the_grid_is_that_of_the_hop(track: Callable[[Audio], F0Track], hop: int) -> None:
    found = _track_of_the_tune(track)
    np.testing.assert_allclose(found.times_sec, np.arange(1 + len(_tune().samples) // hop) * hop / RATE)


def test_the_network_hears_how_far_a_tone_is_out_of_tune() -> None:
    for cents in (-30.0, 30.0):
        assert np.median(_cents_off(f0.track_melody_net(_tune(cents)))) == pytest.approx(cents, abs=8)
    assert np.median(_cents_off(_track_of_the_tune(f0.track_melody_net))) == pytest.approx(0, abs=8)


@pytest.mark.parametrize("track", TRACKERS[:2])
def test_a_tracker_gives_the_same_track_twice(track: Callable[[Audio], F0Track]) -> None:
    first, second = _track_of_the_tune(track), track(_tune())
    np.testing.assert_array_equal(first.frequencies_hz, second.frequencies_hz)


@pytest.mark.parametrize("track", TRACKERS[:2])
def test_noise_makes_a_valid_track(track: Callable[[Audio], F0Track], rng: np.random.Generator) -> None:
    found = track(Audio(rng.normal(0, 0.2, 4 * RATE).astype(np.float32)))
    assert np.isfinite(found.frequencies_hz).all()
    assert len(found.times_sec) == 1 + 4 * RATE // 512


def test_the_official_settings_leave_unvoiced_frames_at_zero() -> None:
    found = _track_of_the_tune(f0.track_pyin_official)
    assert (found.frequencies_hz >= 0).all()
    assert (found.frequencies_hz == 0).any()


def test_basic_pitch_says_how_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(optional_f0.BASIC_PITCH_VARIABLE, "/nowhere/nmp.onnx")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingBackendError, match="--no-deps"):
        optional_f0.track_basic_pitch(_tune())


def test_basic_pitch_refuses_another_rate() -> None:
    with pytest.raises(InvalidAudioError, match="22050"):
        optional_f0.track_basic_pitch(Audio(np.zeros(44100, dtype=np.float32), 44100))


def test_basic_pitch_follows_a_plain_tune() -> None:
    try:
        optional_f0.find_basic_pitch()
    except MissingBackendError as error:
        pytest.skip(str(error))
    found = optional_f0.track_basic_pitch(_tune(), threshold=0.5)  # the tones are rich: their partials are notes to it
    assert np.mean(np.abs(_cents_off(found)) < 50) > 0.9
    assert found.voiced[found.times_sec > 2.2].mean() < 0.2


def test_frames_of_basic_pitch_begin_anew_with_every_window() -> None:
    # a window keeps 142 frames but moves on by 36,164 samples, 141.27 frames
    positions = np.array([0.0, 256.0, 36000.0, 36163.0, 36164.0, 36164.0 + 512])
    assert optional_f0._nearest_frames(positions, 1000).tolist() == [0, 1, 141, 141, 142, 144]
    assert optional_f0._nearest_frames(positions, 100).max() == 99


def test_torchcrepe_says_how_to_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torchcrepe", None)
    with pytest.raises(MissingBackendError, match="pip install torchcrepe"):
        optional_f0.track_torchcrepe(_tune())
