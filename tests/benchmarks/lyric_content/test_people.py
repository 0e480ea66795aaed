"""The range of people: constants are what was measured, on one half, and hold on the other."""

from __future__ import annotations

import csv

import pytest

from benchmarks.lyric_content import people
from music_evals.benchmark.tasks.songs.songs import load_songs
from music_evals.metrics.lyric_content import DIVERSITY_OF_PEOPLE, REPETITION_OF_PEOPLE, WORDS_OF_PEOPLE

NONSENSE = (
    "random characters that rhyme", "random characters of the song", "characters permuted within lines",
    "one character in all places",
)  # fmt: skip


@pytest.fixture(scope="module")
def stored() -> dict[tuple[str, str], dict[str, str]]:
    with (people.HERE / "people.csv").open(encoding="utf-8", newline="") as file:
        return {(row["what"], row["half"]): row for row in csv.DictReader(file)}


def test_the_constants_are_the_range_that_was_measured(stored) -> None:
    for what, span in (
        ("true lyrics", WORDS_OF_PEOPLE),
        ("lyric_diversity of true lyrics", DIVERSITY_OF_PEOPLE),
        ("line repetition of true lyrics", REPETITION_OF_PEOPLE),
    ):
        row = stored[what, "range"]
        assert (float(row["low"]), float(row["high"])) == pytest.approx(span, abs=5e-4)


def test_nonsense_is_told_from_songs_that_had_no_part_in_the_range(stored) -> None:
    assert all(float(stored[name, half]["auc"]) >= 0.99 for name in NONSENSE for half in ("range", "test"))
    assert float(stored["true lyrics", "test"]["outside"]) < 0.05


def test_demo_songs_lie_in_the_range_and_nonsense_does_not(tmp_path) -> None:
    from benchmarks.lyric_writers.degenerate import demo_file

    songs = load_songs(str(demo_file(tmp_path / "demo.jsonl")))
    halves = people.halves(songs)
    assert sorted(song.id for half in halves.values() for song in half) == sorted(song.id for song in songs)
    singers = [{name for song in half for name in song.artist} for half in halves.values()]
    assert not singers[0] & singers[1]
    found = {(row.what, row.half): row for row in people.measure(songs, 0)}
    for half in halves:
        assert all(found[name, half].auc >= 0.99 for name in NONSENSE)
        assert 0.4 <= found["shuffled true words", half].auc <= 0.6  # which the score cannot see
