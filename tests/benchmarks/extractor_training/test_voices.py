"""Performed lines: what they say of their pitch is what sounds; and recordings of one performance."""

import dataclasses

import numpy as np
import pytest
from benchmarks.extractor_training.recording import compressed, degrade, through_codec
from benchmarks.extractor_training.voices import CONTROL, Performer, perform, random_performer

RATE = 22050
NOTES = np.array([[0.2, 0.8], [0.8, 1.5], [2.0, 2.9]]), np.array([57.0, 62.0, 64.0])


def plain(**settings: object) -> Performer:
    """Return a player of exact pitches."""
    settings = {"formants": np.array([[800.0]]), "bandwidths": np.array([400.0]), "gains": np.array([1.0]), **settings}
    still = dict.fromkeys((field.name for field in dataclasses.fields(Performer)), 0.0)
    steady = {"sings": False, "decay_sec": np.inf, "even": 1.0, "slope": 1.0, "glide_sec": 0.02, "attack_sec": 0.01}
    return Performer(**{**still, **steady, "release_sec": 0.02, **settings})  # type: ignore[arg-type]


def loudest_hz(samples: np.ndarray) -> float:
    """Return the frequency of the fundamental, as the highest peak below 500 Hz."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), 2**17))
    return float(np.argmax(spectrum[: int(500 / RATE * 2**17)]) * RATE / 2**17)


@pytest.mark.parametrize("seed", range(6))
def test_a_line_has_the_frequency_that_it_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    line = perform(*NOTES, 3 * RATE, random_performer(rng), rng)
    assert line.samples.shape == (3 * RATE,)
    assert line.samples.dtype == np.float32
    assert 0.5 < np.abs(line.samples).max() <= 0.9 + 1e-6
    assert line.frequencies_hz.shape == (-(-3 * RATE // CONTROL),)
    voiced = line.frequencies_hz > 0
    at_sec = np.arange(len(voiced)) * CONTROL / RATE
    assert not voiced[(at_sec > 1.6) & (at_sec < 1.8)].any()  # the rest, but for what a consonant needs before the note
    for (start, end), pitch in zip(*NOTES, strict=True):
        held = voiced & (at_sec > start + 0.15) & (at_sec < end - 0.1)
        off = 12 * np.log2(line.frequencies_hz[held] / 440) + 69 - pitch
        assert held.sum() > 20
        assert np.abs(np.median(off)) < 0.8


def test_a_player_without_habits_plays_the_notes() -> None:
    line = perform(*NOTES, 3 * RATE, plain(), np.random.default_rng(0))
    for (start, end), pitch in zip(*NOTES, strict=True):
        middle = line.samples[round((start + 0.15) * RATE) : round((end - 0.1) * RATE)]
        expected = 440 * 2 ** ((pitch - 69) / 12)
        assert loudest_hz(middle) == pytest.approx(expected, rel=0.01)
        inside = line.frequencies_hz[round((start + 0.15) * RATE / CONTROL) : round((end - 0.1) * RATE / CONTROL)]
        np.testing.assert_allclose(inside, expected, rtol=1e-3)


def test_vibrato_swings_by_its_depth_at_its_rate() -> None:
    player = plain(vibrato_cents=100.0, vibrato_hz=6.0)
    line = perform(np.array([[0.0, 3.0]]), np.array([69.0]), 3 * RATE, player, np.random.default_rng(1))
    cents = 1200 * np.log2(line.frequencies_hz[172:430] / 440)  # from 1 to 2.5 s
    assert 45 < cents.max() < 125  # half to 1.2 times the depth
    assert cents.min() == pytest.approx(-cents.max(), abs=5)
    crossings = np.flatnonzero(np.diff(np.sign(cents)) > 0)
    assert np.diff(crossings).mean() * CONTROL / RATE == pytest.approx(1 / 6, rel=0.15)


def test_consonants_close_the_voice_before_their_note() -> None:
    rng = np.random.default_rng(2)
    with_them = perform(*NOTES, 3 * RATE, plain(sings=True, consonants=1.0), rng)
    without = perform(*NOTES, 3 * RATE, plain(sings=True), np.random.default_rng(2))
    before = slice(round(0.78 * RATE / CONTROL), round(0.795 * RATE / CONTROL))  # of the second note, which is tied
    assert not with_them.frequencies_hz[before].any()
    assert without.frequencies_hz[before].all()


def test_a_consonant_leaves_something_of_a_short_note_before_it() -> None:
    starts = np.arange(20) * 0.09
    intervals = np.stack([starts, starts + 0.09], axis=1)
    player = plain(sings=True, consonants=1.0)
    for seed in range(5):
        line = perform(intervals, 60.0 + np.arange(20) % 5, 2 * RATE, player, np.random.default_rng(seed))
        for start, end in np.round(intervals * RATE / CONTROL).astype(int):
            assert line.frequencies_hz[start:end].any()


def test_a_line_without_notes_is_silent() -> None:
    line = perform(np.zeros((0, 2)), np.zeros(0), 1000, plain(), np.random.default_rng(0))
    assert not line.samples.any()
    assert not line.frequencies_hz.any()


@pytest.fixture(scope="module")
def music() -> np.ndarray:
    line = perform(*NOTES, 3 * RATE, plain(), np.random.default_rng(3))
    return line.samples


@pytest.mark.parametrize("codec", [("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS")])
def test_a_codec_keeps_length_place_and_level(music: np.ndarray, codec: tuple[str, str]) -> None:
    pytest.importorskip("soundfile")
    heard = through_codec(music, RATE, *codec, 0.6)
    assert heard.shape == music.shape
    assert not np.array_equal(heard, music)
    shifts = range(-300, 301, 50)
    likeness = [float(np.corrcoef(np.roll(heard, shift)[400:-400], music[400:-400])[0, 1]) for shift in shifts]
    assert np.argmax(likeness) == 6  # not moved
    assert likeness[6] > 0.95
    assert np.sqrt(np.mean(heard**2)) == pytest.approx(np.sqrt(np.mean(music**2)), rel=0.1)


def test_a_compressor_narrows_what_is_loud_and_leaves_the_rest() -> None:
    time = np.arange(RATE) / RATE
    tone = np.sin(2 * np.pi * 300 * time).astype(np.float32)
    level = np.where(time < 0.6, 0.1, 0.4).astype(np.float32)  # the median is that of the first part
    heard = compressed(tone * level, 4.0, 0.05, RATE)
    ratio = np.abs(heard[15000:20000]).max() / np.abs(heard[2000:10000]).max()
    assert ratio == pytest.approx(4 ** (1 / 4), rel=0.05)  # a factor of 4 becomes its fourth root
    np.testing.assert_allclose(compressed(tone * level, 1.0, 0.05, RATE), tone * level, atol=1e-6)


def test_recordings_differ_and_are_seeded(music: np.ndarray) -> None:
    pytest.importorskip("soundfile")
    one, other = (degrade(music, RATE, np.random.default_rng(seed)) for seed in (1, 2))
    assert one.shape == other.shape == music.shape
    assert not np.array_equal(one, other)
    np.testing.assert_array_equal(one, degrade(music, RATE, np.random.default_rng(1)))
