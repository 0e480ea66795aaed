"""The pictures of MuChin's figures count what is in the songs, and name nothing that few songs have."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks.muchin_figures import run
from music_evals.benchmark.tasks.songs.songs import COLUMNS, Song, read_songs


@pytest.fixture(scope="module")
def demo() -> tuple[Song, ...]:
    return tuple(read_songs(str(run.DEMO), "demo", columns=COLUMNS).songs)


def test_a_structure_has_a_letter_a_section(demo: tuple[Song, ...]) -> None:
    for song in demo:
        letters = run.structure_letters(song)
        assert len(letters) == len(song.pattern)
        assert letters.count("c") == sum(section.kind == "chorus" for section in song.pattern)


def test_tags_are_counted_once_a_song(demo: tuple[Song, ...]) -> None:
    twice = Song("x", "x", tags={"professional": {"musical_genres": ("流行", " 流行 ", "Rock")}})
    assert run.tag_counts([twice, twice], "professional", "musical_genres") == {"流行": 2, "rock": 2}
    assert run.tag_counts(demo, "amateur", "song_purpose").total() > len(demo)


@pytest.mark.slow
def test_it_writes_counts_that_many_songs_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "DEV", tmp_path / "none")
    run.main(["--songs", str(run.DEMO), "--config", "demo", "--out", str(tmp_path)])
    with (tmp_path / "counts.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["data"] for row in rows} == {"caimd"}
    assert all(int(row["songs"]) >= run.LEAST for row in rows if row["what"] != "common")
    common = {row["name"]: int(row["songs"]) for row in rows if row["what"] == "common"}
    assert len(common) == len(run.FACING)
    assert common["Audio effects"] == 24
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".svg"}


def test_the_claims_of_the_paper_are_held_against_its_numbers(tmp_path: Path) -> None:
    points = run.draw_sizes(tmp_path / "sizes.svg")
    sizes = {point["system"]: point["parameters"] for point in points}
    assert (sizes["GPT-4"], sizes["Jukebox 5B"], sizes["EnCodec 56M"]) == (1800, 5000, 56)
    text = run.claims(points)
    assert "50.06" in text
    assert "+0.0054" in text
