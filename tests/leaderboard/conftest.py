"""Runs of two tasks whose results go to boards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from music_evals.benchmark.inpainting.task import Settings as InpaintingSettings
from music_evals.benchmark.inpainting.task import run_inpainting
from music_evals.benchmark.songs.lyrics import Settings as LyricSettings
from music_evals.benchmark.songs.lyrics import run_lyrics
from music_evals.benchmark.songs.songs import load_songs


@pytest.fixture
def lyrics_run(songs_file: Path, tmp_path: Path) -> Path:
    """Two systems of lyrics, one with the words of the songs and one with half of them."""
    songs = load_songs(str(songs_file))
    options: list[str] = []
    for name, share in (("words", 1.0), ("half", 0.5)):
        path = tmp_path / f"{name}.jsonl"
        rows = [{"id": song.id, "text": cut(song.words_text(), share)} for song in songs]
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        options.append(f"{name}={path}")
    out = tmp_path / "lyrics_run"
    run_lyrics(
        LyricSettings(out, str(songs_file), predictions=options, rhyme="char", n_resamples=50, report=False, seed=1)
    )
    return out


def cut(text: str, share: float) -> str:
    lines = text.splitlines()
    return "\n".join(lines[: max(2, round(len(lines) * share))])


@pytest.fixture
def inpainting_run(settings: dict[str, Any]) -> Path:
    run_inpainting(InpaintingSettings(**settings, baselines="silence,copy_past,markov", report=False))
    return Path(settings["out"])
