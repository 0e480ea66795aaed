"""Whole pieces as rows for style transfer: one schema for every style, read back as scores.

A row holds the notes of a piece on a grid of a stated fineness (8 steps a quarter, a 32nd note, unless a data set says
otherwise), each with its voice, so that the melody stays apart from what accompanies it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any, Final

from music_evals.annotations import LOWEST_PITCH, N_ROLL_PITCHES, Score
from music_evals.errors import InvalidInputError, MusicEvalsError, UnknownNameError, located
from music_evals.symbolic.encodings.piano_rolls import STEPS_PER_QUARTER
from music_evals.symbolic.piece_rows import piece_columns

__all__ = ["SHARES", "PieceFacts", "features", "row_of", "split_families", "whole_columns"]

SHARES: Final = {"train": 0.8, "validation": 0.1, "test": 0.1}
"""Split -> share of the pieces, as near as whole families allow."""

_HIGHEST_PITCH = LOWEST_PITCH + N_ROLL_PITCHES - 1


@dataclasses.dataclass(frozen=True)
class PieceFacts:
    """What a row says of a piece beside its notes."""

    name: str  # unique in its split
    style: str  # such as ``"bach"``
    family: str  # settings of one tune share it; all of a family lie in one split
    title: str = ""
    source: str = ""  # where the notes come from
    licence: str = ""  # terms of that source
    melody: str = ""  # name of the voice that has the melody, "" if there is no such voice


def features() -> Any:
    """Return the columns as `datasets.Features`."""
    from datasets import Features, List, Value

    text = Value("string")
    note = {"onset": Value("int32"), "duration": Value("int32"), "pitch": Value("uint8"), "voice": Value("int16")}
    signature = {"onset": Value("int32"), "numerator": Value("int16"), "denominator": Value("int16")}
    return Features(
        {
            **{field.name: text for field in dataclasses.fields(PieceFacts)},
            "ticks_per_quarter": Value("int16"),
            "notes": List(note),
            "voices": List(text),
            "time_signatures": List(signature),
            "measure_starts": List(Value("int32")),
            "key_fifths": Value("int8"),
            "mode": text,
        }
    )


def whole_columns(score: Score, ticks_per_quarter: int) -> dict[str, Any]:
    """Return `symbolic.piece_rows.piece_columns` of a score that the grid of piano rolls holds: A0 to G#7."""
    columns = piece_columns(score, ticks_per_quarter)
    lowest, highest = int(score.notes["pitch"].min()), int(score.notes["pitch"].max())
    if lowest < LOWEST_PITCH or highest > _HIGHEST_PITCH:
        raise InvalidInputError(
            f"the pitches go from {lowest} to {highest}; the grid holds MIDI {LOWEST_PITCH} to {_HIGHEST_PITCH} (A0 to "
            "G#7): transpose the piece or leave the notes out"
        )
    return columns


def row_of(score: Score, facts: PieceFacts, *, ticks_per_quarter: int = STEPS_PER_QUARTER) -> dict[str, Any]:
    """Make the row of a piece; `symbolic.piece_rows.score_of_row` gives its score back.

    Raises
    ------
    NoDataError
        A score without notes.
    InvalidInputError
        A pitch outside of A0 to G#7.
    UnknownNameError
        A melody that is not the name of a voice.
    """
    try:
        columns = whole_columns(score, ticks_per_quarter)
    except MusicEvalsError as error:
        raise located(error, facts.name) from error
    if facts.melody and facts.melody not in score.voices:
        raise UnknownNameError(f"voice of {facts.name}", facts.melody, score.voices)
    return {**dataclasses.asdict(facts), **columns}


def split_families(families: Mapping[str, str]) -> dict[str, str]:
    """Return a split for each piece, 80/10/10 as near as whole families allow.

    Families come in the order of the SHA-256 of their names, so that the split depends on nothing but the names; each
    goes where most pieces are missing.
    """
    members: dict[str, list[str]] = {}
    for name, family in sorted(families.items()):
        members.setdefault(family, []).append(name)
    missing = {split: share * len(families) for split, share in SHARES.items()}
    splits = {}
    for family in sorted(members, key=lambda name: hashlib.sha256(name.encode()).hexdigest()):
        split = max(missing, key=lambda name: missing[name])
        missing[split] -= len(members[family])
        splits.update(dict.fromkeys(members[family], split))
    return splits
