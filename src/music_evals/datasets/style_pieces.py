"""Whole pieces as rows for style transfer: one schema for every style, read back as scores.

A row holds the notes of a piece on a grid of a stated fineness (8 steps a quarter, a 32nd note, unless a data set says
otherwise), each with its voice, so that the melody stays apart from what accompanies it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from music_evals.annotations import LOWEST_PITCH, N_ROLL_PITCHES, KeySignature, Score, TimeSignature
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.symbolic.measures import meter_map
from music_evals.symbolic.notes import make_notes, quantize, rescale_tick
from music_evals.symbolic.piano_rolls import STEPS_PER_QUARTER

__all__ = ["PieceFacts", "features", "row_of", "score_of_row"]

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
    melody: str = ""  # name of the voice that has the melody, "" where there is none


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


def row_of(
    score: Score,
    facts: PieceFacts,
    *,
    ticks_per_quarter: int = STEPS_PER_QUARTER,
    measure_quarters: Sequence[float] | None = None,
) -> dict[str, Any]:
    """Make the row of a piece.

    Parameters
    ----------
    score
        Any score; it is put on the grid. Tempi, programs and velocities are left out.
    facts
        What the row says beside the notes.
    ticks_per_quarter
        The grid.
    measure_quarters
        Start of each measure and, last, the end of the last one, in quarter notes, a pickup counted as a measure. By
        default they follow from the score's time signatures.

    Raises
    ------
    NoDataError
        A score without notes.
    InvalidInputError
        A pitch outside of A0 to G#7.
    UnknownNameError
        A melody that is none of the voices.

    """
    if not len(score.notes):
        raise NoDataError(f"{facts.name} has no notes; leave it out")
    lowest, highest = int(score.notes["pitch"].min()), int(score.notes["pitch"].max())
    if lowest < LOWEST_PITCH or highest > _HIGHEST_PITCH:
        raise InvalidInputError(
            f"{facts.name} has pitches from {lowest} to {highest}; the grid holds MIDI {LOWEST_PITCH} to "
            f"{_HIGHEST_PITCH} (A0 to G#7): transpose the piece or leave the notes out"
        )
    if facts.melody and facts.melody not in score.voices:
        raise UnknownNameError(f"voice of {facts.name}", facts.melody, score.voices)
    if measure_quarters is None:
        bars = meter_map(score)
        starts = rescale_tick(bars.starts, bars.ticks_per_quarter, ticks_per_quarter)
    else:
        starts = np.floor(np.asarray(measure_quarters) * ticks_per_quarter + 0.5).astype(np.int64)
    grid = quantize(score, ticks_per_quarter)
    columns = [grid.notes[name].tolist() for name in ("onset_tick", "duration_tick", "pitch", "voice")]
    key = score.key_signatures[0] if score.key_signatures else None
    return {
        **dataclasses.asdict(facts),
        "ticks_per_quarter": ticks_per_quarter,
        "notes": [
            dict(zip(("onset", "duration", "pitch", "voice"), note, strict=True)) for note in zip(*columns, strict=True)
        ],
        "voices": list(score.voices),
        "time_signatures": [
            {"onset": change.tick, "numerator": change.numerator, "denominator": change.denominator}
            for change in grid.time_signatures
        ],
        "measure_starts": starts.tolist(),
        "key_fifths": key.fifths if key else 0,
        "mode": "" if key is None else "minor" if key.minor else "major",
    }


def score_of_row(row: Mapping[str, Any]) -> Score:
    """Return the score that a row holds; where `mode` is "" the source gave no key and the score has none."""
    notes = [(note["onset"], note["duration"], note["pitch"], note["voice"]) for note in row["notes"]]
    if not notes:
        raise NoDataError(f"row {row['name']} has no notes")
    onset, duration, pitch, voice = zip(*notes, strict=True)
    return Score(
        make_notes(onset, duration, pitch, voice=voice),
        row["ticks_per_quarter"],
        tuple(TimeSignature(one["onset"], one["numerator"], one["denominator"]) for one in row["time_signatures"]),
        key_signatures=(KeySignature(0, row["key_fifths"], row["mode"] == "minor"),) if row["mode"] else (),
        voices=tuple(row["voices"]),
    )
