from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks.extractor_training.arranging import arrange
from benchmarks.extractor_training.composing import compose, harmonise
from benchmarks.extractor_training.mixtures import make_mixture
from benchmarks.extractor_training.tunes import TICKS, Tune

from benchmarks.extractor_training import mixtures, tunes
from music_evals.annotations import DRUMS
from music_evals.datasets.programs import BENCHMARK_PROGRAMS, FAMILIES, TRAIN_PROGRAMS, programs_of
from music_evals.errors import InvalidInputError

RATE = 22050
SCALE = Tune("scale", 6, 8, (tuple((i * 240, 240, 60 + i) for i in range(12)),))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache that holds one chorale of ours and one tune, so that no corpus is read."""
    chorale = Tune(
        "ours", 4, 4, tuple(tuple((i * TICKS, TICKS, p + i % 3) for i in range(16)) for p in (72, 67, 60, 48))
    )
    (tmp_path / "training_tunes.json").write_text(json.dumps([[vars(chorale)], [vars(SCALE)]]))
    return tmp_path


def test_the_two_lists_of_programs_share_none_and_hold_every_family() -> None:
    assert not set(TRAIN_PROGRAMS) & set(BENCHMARK_PROGRAMS)
    for family in FAMILIES:
        assert len(programs_of(family, TRAIN_PROGRAMS)) >= 3
        assert len(programs_of(family, BENCHMARK_PROGRAMS)) >= 3


def test_a_mixture_is_decided_by_its_number_and_seed(cache: Path) -> None:
    def make(index: int, seed: int) -> mixtures.Mixture:
        return make_mixture(index, seconds=6, renderer="additive", seed=seed, cache=cache)

    one = make(3, 0)
    again = make(3, 0)
    assert np.array_equal(one.samples, again.samples)
    assert np.array_equal(one.melody.intervals_sec, again.melody.intervals_sec)
    assert np.array_equal(one.beats.times_sec, again.beats.times_sec)
    for other in (make(4, 0), make(3, 1)):
        assert not np.array_equal(one.samples, other.samples)


@pytest.mark.parametrize("index", range(12))
def test_what_is_known_of_a_mixture_fits_together(index: int, cache: Path) -> None:
    mixture = make_mixture(index, seconds=10, renderer="additive", cache=cache)
    assert mixture.samples.shape == (10 * RATE,)
    assert mixture.samples.dtype == np.float32
    assert 0 < np.abs(mixture.samples).max() <= 1
    assert mixture.melody.intervals_sec.max(initial=0) <= 10
    assert ((mixture.melody.pitches >= 48) & (mixture.melody.pitches <= 96)).all()
    assert mixture.beats.times_sec[-1] < 10
    assert np.isin(mixture.downbeats_sec, mixture.beats.times_sec).all()
    assert 60 / np.median(np.diff(mixture.beats.times_sec)) == pytest.approx(mixture.beats.bpm, rel=0.15)


def test_a_melody_alone_sounds_where_its_notes_are(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixtures, "arrange", lambda tune, rng: arrange(tune, rng)[:1])
    monkeypatch.setattr(mixtures, "colour", lambda samples, _rate, _rng: samples)
    for index in range(6):
        mixture = make_mixture(index, seconds=8, renderer="additive", cache=cache)
        for (start, end), pitch in zip(mixture.melody.intervals_sec, mixture.melody.pitches, strict=True):
            tone = mixture.samples[round(start * RATE) : round(end * RATE)]
            if end - start < 0.25:
                continue
            hz = 440 * 2 ** ((pitch - 69) / 12)
            spectrum = np.abs(np.fft.rfft(tone * np.hanning(len(tone)), 2**17))
            peaks = np.flatnonzero(spectrum > 0.5 * spectrum.max()) * RATE / 2**17
            nearest = np.abs(peaks / hz - np.maximum(np.round(peaks / hz), 1))
            assert nearest.min() < 0.04  # its loudest partials are multiples of its frequency


def test_beats_of_six_eight_are_dotted_quarters() -> None:
    assert (SCALE.bar_ticks, SCALE.beat_ticks) == (3 * TICKS, 3 * TICKS // 2)
    assert Tune("", 2, 2, ()).beat_ticks == 2 * TICKS
    assert Tune("", 3, 4, ()).beat_ticks == TICKS


def test_a_tune_gets_chords_of_its_key() -> None:
    arpeggios = [67, 71, 74, 72, 76, 79, 74, 78, 81, 74, 71, 67]  # G, C, D, G
    tune = harmonise(Tune("", 3, 4, (tuple((i * TICKS, TICKS, pitch) for i, pitch in enumerate(arpeggios)),)))
    assert [set(pitches) for _, _, pitches in tune.chords] == [{7, 11, 2}, {0, 4, 7}, {2, 6, 9}, {7, 11, 2}]
    assert tune.chords[1] == (3 * TICKS, 3 * TICKS, (0, 4, 7))  # the root first


def test_composed_tunes_are_melodies_with_chords_all_through() -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        tune = compose(rng)
        onset, duration, _ = np.array(tune.voices[0]).T
        assert (onset[1:] >= (onset + duration)[:-1]).all()
        starts = [start for start, _, _ in tune.chords]
        ends = [start + length for start, length, _ in tune.chords]
        assert starts == [0, *ends[:-1]]
        assert ends[-1] >= tune.end_tick


@pytest.mark.slow
def test_about_half_have_drums_and_some_are_a_melody_alone() -> None:
    rng = np.random.default_rng(6)
    bands = [arrange(compose(rng), rng) for _ in range(200)]
    assert 0.4 < np.mean([any(part.program == DRUMS for part in parts) for parts in bands]) < 0.65
    assert 0.1 < np.mean([len(parts) == 1 for parts in bands]) < 0.25
    allowed = {*TRAIN_PROGRAMS, DRUMS}
    assert all(part.program in allowed for parts in bands for part in parts)


def test_pieces_of_the_benchmark_are_left_out() -> None:
    assert {"bwv269", "bwv153.1", "bwv347", "bwv40.8"} <= tunes._benchmark_chorales()
    for title in ("GREENSLEEVES", "Green Sleeves", "Auld Lang Syne", "Oh! Susanna", "Londonderry Air", "Amazing Grace"):
        assert tunes.EXCLUDED_TITLES.search(f"X:1\nT:{title}\n")
    assert not tunes.EXCLUDED_TITLES.search("X:1\nT:Acacia -- Reel\n")


def test_an_abc_tune_with_a_pickup_begins_before_its_second_bar() -> None:
    pytest.importorskip("music21")
    text = "X:1\nT:Ours\nM:2/4\nL:1/8\nK:C\nG|" + "c2 e2|g2 e2|d{e}d d2|c3 G|" * 4
    tune = tunes._folk_tune(text, "ours")
    assert tune is not None
    assert (tune.numerator, tune.denominator) == (2, 4)
    first, second = tune.voices[0][:2]
    assert first == (3 * TICKS // 2, TICKS // 2, 67)
    assert second == (tune.bar_ticks, TICKS, 72)


def test_an_unknown_renderer_is_named() -> None:
    with pytest.raises(InvalidInputError, match=re.escape("additive, fluidsynth, mixed")):
        make_mixture(0, renderer="timidity")


def test_an_unknown_lead_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="unknown kind of lead 'hummed'"):
        make_mixture(0, lead="hummed")


@pytest.mark.parametrize("index", range(6))
def test_a_performed_lead_sounds_where_its_notes_are(index: int, cache: Path) -> None:
    mixture = make_mixture(index, seconds=8, renderer="additive", lead="performed", cache=cache, is_raw=True)
    assert mixture.f0 is not None
    assert len(mixture.samples) == 8 * RATE
    assert len(mixture.f0.times_sec) == -(-8 * RATE // 512)
    inside = np.zeros(len(mixture.f0.times_sec), dtype=bool)
    for start, end in mixture.melody.intervals_sec:
        inside |= (mixture.f0.times_sec > start - 0.1) & (mixture.f0.times_sec < end + 0.1)
    assert mixture.f0.voiced.any() == bool(len(mixture.melody.pitches))
    assert inside[mixture.f0.voiced].all()
    assert mixture.f0.voiced.sum() >= 0.5 * inside.sum()
