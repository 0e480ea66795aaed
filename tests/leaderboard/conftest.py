"""Runs of two tasks whose results go to boards."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from music_evals.benchmark.tasks.inpainting.task import INPAINTING
from music_evals.benchmark.tasks.inpainting.task import Settings as InpaintingSettings
from music_evals.benchmark.tasks.songs.lyrics import LYRICS
from music_evals.benchmark.tasks.songs.lyrics import Settings as LyricSettings
from music_evals.benchmark.tasks.songs.songs import load_songs


@pytest.fixture(scope="session")
def lyrics_run_of_all(songs_of_all: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lyrics_run")
    songs = load_songs(str(songs_of_all))
    options: list[str] = []
    for name, share in (("words", 1.0), ("half", 0.5)):
        path = folder / f"{name}.jsonl"
        rows = [{"id": song.id, "text": cut(song.words_text(), share)} for song in songs]
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        options.append(f"{name}={path}")
    out = folder / "out"
    LYRICS.run(
        LyricSettings(out, str(songs_of_all), predictions=options, rhyme="char", n_resamples=50, report=False, seed=1)
    )
    return out


@pytest.fixture
def lyrics_run(lyrics_run_of_all: Path, tmp_path: Path) -> Path:
    """Two systems of lyrics, one with the words of the songs and one with half of them; a copy of the test's own."""
    return Path(shutil.copytree(lyrics_run_of_all, tmp_path / "lyrics_run"))


def cut(text: str, share: float) -> str:
    lines = text.splitlines()
    return "\n".join(lines[: max(2, round(len(lines) * share))])


@pytest.fixture(scope="session")
def inpainting_run_of_all(tiny_dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("inpainting_run") / "out"
    settings = {"dataset": str(tiny_dataset), "config": "musib", "n_seeds": 2, "n_resamples": 50}
    INPAINTING.run(InpaintingSettings(out, **settings, baselines="silence,copy_past,markov", report=False))
    return out


@pytest.fixture
def inpainting_run(inpainting_run_of_all: Path, tmp_path: Path) -> Path:
    """Three baselines on the small data set; a copy of the test's own."""
    return Path(shutil.copytree(inpainting_run_of_all, tmp_path / "out"))
