"""Melodies of our own for the tests of data sets, as tokens, scores and files; their scripts in this process."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from music_evals.annotations import DRUMS, KeySignature, Score, TimeSignature, Tokens
from music_evals.symbolic.midi import save_midi
from music_evals.symbolic.notes import make_notes


def run_script(script: Path, *words: object) -> None:
    """Run a `build.py` as `python build.py words...` does, but for the start of a process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(script), *map(str, words)])
        runpy.run_path(str(script), run_name="__main__")


SCALE = (0, 2, 4, 5, 7, 9, 11)


def melody(seed: int, n_measures: int = 20) -> list[int]:
    """Return one pitch a quarter of a random walk on a scale."""
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.integers(-2, 3, 4 * n_measures)) % 14
    return [60 + 12 * (step // 7) + SCALE[step % 7] for step in steps.tolist()]


def quarter_tokens(pitches: list[int]) -> Tokens:
    """Return quarters as tokens, 6 steps each."""
    return np.array([token for pitch in pitches for token in (pitch, 128, 128, 128, 128, 128)], dtype=np.uint8)


def score(pitches: list[int], *, meter: tuple[int, int] = (4, 4), rest: int = 0) -> Score:
    """Return quarters as a score of 480 ticks a quarter, after `rest` quarters."""
    onsets = [480 * (rest + place) for place in range(len(pitches))]
    notes = make_notes(onsets, [480] * len(pitches), pitches)
    return Score(notes, 480, (TimeSignature(0, *meter),), (), (KeySignature(0, 1, minor=False),), ("tune",))


def chords(pitches: list[int]) -> Score:
    """Return quarters with a low fifth under each, in one voice."""
    onsets = [480 * place for place in range(len(pitches))] * 2
    return Score(make_notes(onsets, [480] * len(onsets), pitches + [36] * len(pitches)), 480, voices=("piano",))


def write_abc(path: Path, tunes: list[tuple[int, str, list[int]]], *, meter: str = "4/4") -> None:
    """Write (number, title, pitches) as an ABC file of quarters; pitches must be natural, from 60 to 83."""
    names = {0: "C", 2: "D", 4: "E", 5: "F", 7: "G", 9: "A", 11: "B"}
    texts = []
    for number, title, pitches in tunes:
        notes = [names[pitch % 12] if pitch < 72 else names[pitch % 12].lower() for pitch in pitches]
        bars = ["".join(notes[start : start + 4]) for start in range(0, len(notes), 4)]
        texts.append(f"X:{number}\nT:{title}\nM:{meter}\nL:1/4\nK:C\n{'|'.join(bars)}|]\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(texts), encoding="utf-8")


def write_midis(folder: Path, seeds: list[int], *, n_measures: int = 20) -> None:
    """Write one MIDI file a seed."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        save_midi(score(melody(seed, n_measures)), folder / f"tune{seed:02d}.mid")


def band(
    seed: int,
    *,
    names: tuple[str, ...] = ("Lead vocal", "Grand Piano", "Slap Bass", "Kit"),
    programs: tuple[int, ...] = (65, 0, 36, DRUMS),
    meter: tuple[int, int] = (4, 4),
    up: int = 0,
) -> Score:
    """Return eight bars for melody, piano, bass and drums, a quarter each; `up` transposes all but the drums."""
    line = np.array(melody(seed, 8)) + up
    onsets = 480 * np.arange(len(line))
    voices = [line, line - 12, np.full(len(line), 36 + up), np.full(len(line), 38)]
    notes = make_notes(
        np.tile(onsets, 4), [480] * 4 * len(line), np.concatenate(voices), voice=np.repeat(range(4), len(line))
    )
    key = (KeySignature(0, 1, minor=False),)
    return Score(notes, 480, (TimeSignature(0, *meter),), (), key, names, programs)
