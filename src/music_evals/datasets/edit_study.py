"""Pieces of our own for a study of editing systems: the same music as recordings and as scores, each with its edits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

from music_evals.datasets.edit_sources import STAND_IN_PIECES, attach, render_pieces, write_sources
from music_evals.datasets.known_edits import build as known_edits
from music_evals.datasets.musiccaps_edits import build as musiccaps_edits
from music_evals.errors import InvalidInputError
from music_evals.files import write_atomically
from music_evals.symbolic.midi import write_midi

__all__ = ["REFINEMENTS", "TARGETS", "StudySources", "write_study_sources"]

TARGETS: Final = "transpose=+2; tempo=1.15x"
"""What each instruction for a recording asks besides, so that it can be measured whether it was done."""

REFINEMENTS: Final = (((0, 4), 0), ((4, 8), 5), ((0, 8), 8))
"""Bars and how much of them is kept, of 10: three a score, as many as a recording has instructions."""


class StudySources(NamedTuple):
    """Tables that ``music-evals edit`` reads."""

    recordings: Path
    scores: Path


def write_study_sources(
    folder: str | Path, *, n_pieces: int = len(STAND_IN_PIECES), renderer: str = "additive"
) -> StudySources:
    """Write the first pieces of `edit_sources.STAND_IN_PIECES` as recordings and as MIDI files, and a table of each.

    Recordings have the instructions of ``musiccaps_edits``, config ``stand_in``, three a piece, each with `TARGETS`;
    scores have `REFINEMENTS`. Both are grouped by piece. The renderer is ``"additive"`` or ``"fluidsynth"``.

    A number of pieces that there is not raises `InvalidInputError`, as `edit_sources.render_pieces` the rest.
    """
    if not 1 <= n_pieces <= len(STAND_IN_PIECES):
        raise InvalidInputError(f"there are 1 to {len(STAND_IN_PIECES)} pieces, got {n_pieces}")
    target = Path(folder)
    pieces = STAND_IN_PIECES[:n_pieces]
    rows = [row for row in musiccaps_edits.build_config("stand_in") if row["excerpt"] in pieces]
    for row in rows:
        row["instruction"] += " Move it up by 2 semitones, and play it 1.15 times as fast."
        row["targets"] = TARGETS
    root = render_pieces(target / "recordings", pieces=pieces, renderer=renderer)
    attached = attach(rows, root, places=lambda name: (name,), dataset="the rendered pieces", where="")
    recordings = write_sources(attached, target / "recordings.jsonl")
    scores: list[dict[str, Any]] = []
    for piece in pieces:
        midi = write_midi(known_edits.compose_piece(piece).score())
        path = write_atomically(target / "scores" / f"{piece}.mid", midi, parents=True)
        scores += [
            {
                "id": f"{piece}_bars_{first}_{end}_keep_{confidence}",
                "source": str(path.resolve()),
                "group": piece,
                "instruction": f"Refine bars {first + 1} to {end} at confidence {confidence} of 10.",
                "task": "refine",
                "bars": f"{first}:{end}",
                "confidence": confidence,
            }
            for (first, end), confidence in REFINEMENTS
        ]
    text = "".join(f"{json.dumps(row)}\n" for row in scores)
    return StudySources(recordings, write_atomically(target / "scores.jsonl", text.encode(), parents=True))
