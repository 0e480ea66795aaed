"""The songs of ``benchmarks/lyric_alignment``: what is sung is where the truth says, and damage is as stated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from benchmarks.lyric_alignment.run import FIRST, Case, first_alignment, judge
from benchmarks.lyric_alignment.songs import WORDS, Song, f0_truth, make_song, mixed
from benchmarks.lyric_alignment.voices import RATE, VOICES

from benchmarks.lyric_alignment import songs
from music_evals.preparation.evidence import measure_levels


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Songs of two lines."""
    monkeypatch.setattr(songs, "N_LINES", 2)


@pytest.fixture(scope="module")
def song() -> Song:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(songs, "N_LINES", 2)
        return make_song("test", 1)


def test_the_halves_share_no_voice_and_no_word() -> None:
    assert not set(WORDS["development"]) & set(WORDS["test"])
    assert not {voice.name for voice in VOICES["development"]} & {voice.name for voice in VOICES["test"]}


def test_the_voice_sounds_where_the_truth_has_a_vowel_and_rests_where_it_rests(song: Song) -> None:
    f0, levels = f0_truth(song), measure_levels(song.samples, RATE)
    for one, two in itertools.pairwise(song.characters):
        assert one.start_sec < one.end_sec <= two.start_sec + 1e-9
        assert (one.notes[0][0], one.notes[-1][1]) == (one.start_sec, one.end_sec)
        for start, end, pitch in one.notes:
            middle = (max(start, one.start_sec + one.consonant_sec) + end) / 2
            frame = int(np.abs(f0.times_sec - middle).argmin())
            assert 12 * np.log2(f0.frequencies_hz[frame] / 440) + 69 == pytest.approx(pitch, abs=1.5)  # with vibrato
        if two.before:
            vowel, rest = ((one.start_sec + one.end_sec) / 2, one.end_sec + 0.6 * (two.start_sec - one.end_sec))
            loud, quiet = (levels.decibels[np.abs(levels.times_sec - at).argmin()] for at in (vowel, rest))
            assert loud > quiet + 6


def test_a_song_is_the_same_at_every_call_and_is_heard_in_its_mixture(song: Song) -> None:
    again = make_song("test", 1)
    np.testing.assert_array_equal(song.samples, again.samples)
    backing = mixed(song) - song.samples
    assert np.std(backing) > 0.1 * np.std(song.samples)


@pytest.mark.parametrize("kind", FIRST)
def test_damage_keeps_the_order_and_the_exact_one_is_none(kind: str, song: Song) -> None:
    case = Case(song, "voice, true f0", f0_truth(song), measure_levels(song.samples, RATE))
    first = first_alignment(case, kind, np.random.default_rng(1))
    assert [one.text for one in first] == [one.text for one in song.characters]
    assert all(one.start_sec < two.start_sec for one, two in itertools.pairwise(first))
    errors = [row.onset_sec for row in judge(case, kind, "before", first)]
    assert (np.abs(errors).max() < 0.001) == (kind == "exact")
