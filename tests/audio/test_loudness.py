"""Loudness against the standard's own numbers, and against pyloudnorm where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

from music_evals.audio.loudness import integrated_loudness, level_gains


def tone(level_db: float, rate: int = 48000, seconds: float = 5.0, hz: float = 997.0) -> np.ndarray:
    return 10 ** (level_db / 20) * np.sin(2 * np.pi * hz * np.arange(int(seconds * rate)) / rate)


@pytest.mark.parametrize("rate", [22050, 44100, 48000])
@pytest.mark.parametrize("level_db", [0.0, -20.0])
def test_a_sine_of_997_hz_reads_three_decibels_below_its_peak(rate, level_db):
    # BS.1770-4: 0 dB FS at 997 Hz on one front channel reads -3.01 LKFS
    assert integrated_loudness(tone(level_db, rate), rate) == pytest.approx(level_db - 3.01, abs=0.05)


def test_quiet_stretches_do_not_count():
    # EBU Tech 3341, case 3, in one channel: 10 s at -36, 60 s at -23, 10 s at -36 dB read as the middle alone
    parts = [tone(-36, seconds=10, hz=1000), tone(-23, seconds=60, hz=1000), tone(-36, seconds=10, hz=1000)]
    assert integrated_loudness(np.concatenate(parts), 48000) == pytest.approx(-23 - 3.01, abs=0.1)


def test_silence_and_clicks_have_no_loudness():
    assert np.isnan(integrated_loudness(np.zeros(48000), 48000))
    assert np.isnan(integrated_loudness(tone(0, seconds=0.3), 48000))


def test_pyloudnorm_agrees():
    pyloudnorm = pytest.importorskip("pyloudnorm")
    noise = np.random.default_rng(0).standard_normal(5 * 44100) * np.repeat([0.02, 0.2, 0.002, 0.1, 0.3], 44100)
    # pyloudnorm's default filter follows the tables of BS.1770 through designs of its own, within 0.1 LU
    expected = pyloudnorm.Meter(44100).integrated_loudness(noise)
    assert integrated_loudness(noise, 44100) == pytest.approx(expected, abs=0.1)


def test_the_louder_one_is_turned_down_and_nothing_is_turned_up():
    first, second = level_gains(-10.0, -16.0)
    assert (first, second) == (pytest.approx(10 ** (-6 / 20)), 1.0)
    assert level_gains(-16.0, -10.0) == (1.0, pytest.approx(10 ** (-6 / 20)))
    assert level_gains(float("nan"), -10.0) == (1.0, 1.0)


def test_gains_make_equal_loudness():
    loud, soft = tone(-3, 22050), tone(-15, 22050)
    gains = level_gains(integrated_loudness(loud, 22050), integrated_loudness(soft, 22050))
    heard = [integrated_loudness(gain * side, 22050) for gain, side in zip(gains, (loud, soft), strict=True)]
    assert heard[0] == pytest.approx(heard[1], abs=0.01)
