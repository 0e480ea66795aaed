"""A study to try: pieces whose accompaniment was given mistakes, many of them by one "model" and few by the other."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from music_evals.annotations import Score
from music_evals.errors import InvalidInputError
from music_evals.files import write_atomically
from music_evals.pipelines.study_tables import table_text
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.notes import sort_notes

__all__ = ["MISTAKES", "with_mistakes", "write_demo_samples"]

MISTAKES = {"proposed": 0.05, "baseline": 0.3}
"""Role -> share of the notes that get a mistake. Neither is a model: what such a study finds is what was put in."""


def with_mistakes(score: Score, share: float, *, keep: str, rng: np.random.Generator) -> Score:
    """Give notes a wrong pitch, a semitone or two away, or another length, half or twice its own.

    Parameters
    ----------
    score
        Two voices or more.
    share
        Of the notes of other voices than `keep` that get a mistake, 0 to 1; rounded up.
    keep
        Name of the voice that stays.
    rng
        Draws which, and how.

    Returns
    -------
    Score
        With as many notes.

    Raises
    ------
    InvalidInputError
        No such voice, or a share out of its range.

    """
    if keep not in score.voices:
        raise InvalidInputError(f"no voice is called {keep!r}; there are {', '.join(score.voices)}")
    if not 0 <= share <= 1:
        raise InvalidInputError(f"share must be 0 to 1, got {share}")
    notes = score.notes.copy()
    free = np.flatnonzero(notes["voice"] != score.voices.index(keep))
    chosen = rng.choice(free, size=int(np.ceil(share * len(free))), replace=False)
    wrong, long = np.array_split(chosen, 2)
    by = rng.choice([-2, -1, 1, 2], size=len(wrong))
    notes["pitch"][wrong] = np.clip(notes["pitch"][wrong].astype(np.int64) + by, 0, 127)
    twice = rng.random(len(long)) < 0.5
    lengths = notes["duration_tick"][long].astype(np.int64)
    notes["duration_tick"][long] = np.where(twice, 2 * lengths, np.maximum(lengths // 2, 1))
    return dataclasses.replace(score, notes=sort_notes(notes))


def write_demo_samples(
    folder: str | os.PathLike[str], pieces: Mapping[str, Score], *, keep: str = "melody", seed: int = 0
) -> Path:
    """Write the samples of a study to try, and return their table, as `study.build_editing_study` reads it.

    Parameters
    ----------
    folder
        Of the table and its MIDI files.
    pieces
        Name -> score.
    keep
        Voice without mistakes.
    seed
        Draws the mistakes.

    """
    place = Path(folder)
    rows: list[dict[str, str]] = []
    for number, (piece, score) in enumerate(pieces.items()):
        for role, share in MISTAKES.items():
            rng = np.random.default_rng([seed, number, len(rows)])
            mistaken = with_mistakes(score, share, keep=keep, rng=rng)
            name = f"{piece}-{role}.mid"
            write_atomically(place / name, write_midi(mistaken), parents=True)
            rows.append(
                {"sample_id": f"{piece}-{role}", "piece_id": piece, "style": "mistakes",
                 "model": f"{round(100 * share)} % wrong", "role": role, "midi": name}
            )  # fmt: skip
    return write_atomically(place / "samples.csv", table_text(rows).encode())
