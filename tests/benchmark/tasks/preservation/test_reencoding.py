"""The copy of the same-music control is what the tables say that it is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from music_evals.annotations import Score
from music_evals.audio.io import AudioPolicy, load_audio
from music_evals.benchmark.tasks.preservation.worker import RATE, REENCODED_AUDIO, reencode
from music_evals.symbolic.midi import read_midi, write_midi
from music_evals.symbolic.notes import make_notes

AT_RATE = AudioPolicy(sample_rate=RATE, peak_normalise=False)  # nothing but what the copy does itself
SECONDS = 8


def tone(hz: float, rate: int, level: float = 0.8) -> npt.NDArray[np.float64]:
    return level * np.sin(2 * np.pi * hz * np.arange(SECONDS * rate) / rate)


def power(samples: npt.NDArray[np.float32]) -> float:
    return float(np.mean(samples.astype(np.float64) ** 2))


def test_it_is_softer_and_noisy_by_what_the_tables_say() -> None:
    audio = load_audio(tone(440, RATE), rate=RATE, policy=AT_RATE)
    copy = reencode(audio).samples.astype(np.float64)
    kept = np.dot(copy, audio.samples) / np.dot(audio.samples, audio.samples)
    noise = copy - kept * audio.samples
    assert 20 * np.log10(kept) == pytest.approx(-6, abs=0.05)
    assert 10 * np.log10(power(kept * audio.samples) / power(noise)) == pytest.approx(30, abs=0.5)
    for told in ("6 dB", "16-bit", "16 kHz", "pink noise 30 dB"):
        assert told in REENCODED_AUDIO


def test_the_noise_is_pink() -> None:
    audio = load_audio(tone(440, RATE), rate=RATE, policy=AT_RATE)
    copy = reencode(audio).samples.astype(np.float64)
    spectrum = np.abs(np.fft.rfft(copy)) ** 2
    hz = np.fft.rfftfreq(len(copy), 1 / RATE)
    octaves = [10 * np.log10(spectrum[(hz >= low) & (hz < 2 * low)].sum()) for low in (600, 1200, 2400)]
    assert max(octaves) - min(octaves) < 1  # white noise gains 3 dB an octave


def test_nothing_above_eight_khz_is_left() -> None:
    policy = AudioPolicy(sample_rate=44100, peak_normalise=False)
    low, high = (load_audio(tone(hz, 44100), rate=44100, policy=policy) for hz in (1000, 12_000))
    assert power(reencode(high).samples) < 1e-4 * power(reencode(low).samples)


@pytest.mark.parametrize("rate", [22050, 44100])
def test_it_has_the_rate_and_the_length_of_the_original(rate: int) -> None:
    audio = load_audio(tone(440, rate)[: -rate // 7], rate=rate, policy=AudioPolicy(sample_rate=rate))
    copy = reencode(audio)
    assert copy.sample_rate == rate
    assert abs(len(copy.samples) - len(audio.samples)) <= 2
    assert np.abs(copy.samples).max() == pytest.approx(1)  # under the policy of the original
    assert copy.content_hash != audio.content_hash


def test_samples_are_whole_numbers_of_16_bits_and_clipped() -> None:
    loud = load_audio(tone(440, RATE, level=9.0), rate=RATE, policy=AT_RATE)
    copy = reencode(loud).samples * 2**15
    assert np.array_equal(copy, np.round(copy))
    assert (copy.max(), copy.min()) == (2**15 - 1, -(2**15))  # and none has gone round to the other side
    assert np.all(copy[loud.samples > 4] == copy.max())


def test_it_depends_on_the_content_alone() -> None:
    one, other = (load_audio(tone(hz, RATE), rate=RATE, policy=AT_RATE) for hz in (440, 441))
    again = load_audio(tone(440, RATE), rate=RATE, policy=AT_RATE)
    assert np.array_equal(reencode(one).samples, reencode(again).samples)
    shared = np.corrcoef(
        reencode(one).samples - 10**-0.3 * one.samples, reencode(other).samples - 10**-0.3 * other.samples
    )
    assert abs(shared[0, 1]) < 0.1


def test_silence_stays_silent() -> None:
    copy = reencode(load_audio(np.zeros(RATE), rate=RATE))
    assert copy.silent
    assert not copy.samples.any()


def test_a_score_comes_back_with_its_notes() -> None:
    score = Score(make_notes([0, 480], [480, 480], [60, 64]), 480)
    assert np.array_equal(read_midi(write_midi(score)).notes, score.notes)
