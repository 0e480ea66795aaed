"""The corrected lyric score along chains of damage to real words: the demo songs, and MuChin's where they are."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.lyric_structure import damage, variants
from music_evals.metrics.lyric_structure import VARIANTS
from music_evals.pipelines.lyrics import lyric_structure

REAL_SONGS = Path(__file__).resolve().parents[4] / "shared/data/muchin/dev.jsonl"
DEMO = variants.demo_songs()


def total(pattern: str, words: str) -> float:
    return lyric_structure(pattern, words, variant="corrected", rhyme="char", strict=False).total


def changes(song: variants.Song, rng: random.Random) -> list[tuple[str, float]]:
    """Damage to a song step by step: what it was, and what it did to the score."""
    text, before, found = song.words, total(song.pattern, song.words), []
    for name, damaged in damage.chain(damage.read(song.words), 10, rng):
        if (after := damage.written(damaged)) != text:
            text, now = after, total(song.pattern, after)
            found.append((name, now - before))
            before = now
    return found


@pytest.mark.slow
@settings(deadline=None)
@given(st.sampled_from(DEMO), st.randoms(use_true_random=False))
def test_no_step_along_a_chain_raises_the_score_of_a_demo_song(song, rng):
    assert all(change <= 1e-9 for _, change in changes(song, rng))


@pytest.mark.slow
def test_at_least_95_of_100_steps_lower_the_score():
    found = [change for seed in range(40) for change in changes(DEMO[seed % len(DEMO)], random.Random(seed))]
    assert len(found) > 300
    assert {name for name, _ in found} == set(damage.LOSSES)
    assert sum(change < -1e-9 for _, change in found) >= 0.95 * len(found)


@pytest.mark.skipif(not REAL_SONGS.exists(), reason=f"needs the songs of MuChin, {REAL_SONGS}")
def test_no_step_along_a_chain_raises_the_score_of_a_real_song():
    songs = variants.read_songs(REAL_SONGS)[::12]
    found = [change for place, song in enumerate(songs) for _, change in changes(song, random.Random(place))]
    assert max(found) <= 1e-9
    assert sum(change < -1e-9 for change in found) >= 0.95 * len(found)


@pytest.mark.parametrize("name", sorted({**damage.LOSSES, **damage.LIKE_MODELS}))
def test_every_damage_changes_words_and_asks_for_nothing_new(name):
    step = {**damage.LOSSES, **damage.LIKE_MODELS}[name]
    for place, song in enumerate(DEMO[:6]):
        damaged = step(damage.read(song.words), random.Random(place))
        assert damage.written(damaged) != song.words
        assert total(song.pattern, damage.written(damaged)) < total(song.pattern, song.words)


def test_reading_and_writing_are_inverse():
    assert all(damage.written(damage.read(song.words)) == song.words for song in DEMO)


def test_tables_show_all_variants():
    rows = [*variants.measure(DEMO[:4], 0), *variants.measure_chains(DEMO[:4], 3, 0)]
    table = variants.song_table(rows, "four songs")
    assert all(f"`{variant}`" in table for variant in VARIANTS)
    echo = next(line for line in table.splitlines() if "echo" in line)
    assert echo.split("|")[3].strip() == "0.00"
    assert len(variants.step_table(rows, 3).splitlines()) >= 3
