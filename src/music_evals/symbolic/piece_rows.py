"""Scores of whole pieces as rows of a data set, and back; notes on a grid, each with its voice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from music_evals.annotations import KeySignature, Score, TimeSignature
from music_evals.errors import InvalidInputError, NoDataError
from music_evals.symbolic.measures import meter_map
from music_evals.symbolic.notes import make_notes, quantize

__all__ = ["NOTE_COLUMNS", "piece_columns", "score_of_row"]

NOTE_COLUMNS = {"onset": "onset_tick", "duration": "duration_tick", "pitch": "pitch", "voice": "voice"}
"""Field of a note in a row -> its name in `annotations.NOTE_DTYPE`."""


def piece_columns(score: Score, ticks_per_quarter: int) -> dict[str, Any]:
    """Return the columns that hold a score, which is put on the grid.

    They are `ticks_per_quarter`, `notes` (a list of mappings with onset, duration, pitch and voice), `voices`,
    `time_signatures` (onset, numerator, denominator; the same one again where a bar line comes early, as after a
    pickup), `measure_starts` (the first tick of each bar and, last, the end of the last), `key_fifths` (sharps, or
    flats below 0) and `mode` (``"major"``, ``"minor"``, or ``""`` for a score without key signatures). Tempi, programs
    and velocities are left out. A score without notes is a `NoDataError`.
    """
    if not len(score.notes):
        raise NoDataError("the score has no notes; leave the piece out")
    grid = quantize(score, ticks_per_quarter)
    columns = [grid.notes[name].tolist() for name in NOTE_COLUMNS.values()]
    key = score.key_signatures[0] if score.key_signatures else None
    return {
        "ticks_per_quarter": ticks_per_quarter,
        "notes": [dict(zip(NOTE_COLUMNS, note, strict=True)) for note in zip(*columns, strict=True)],
        "voices": list(score.voices),
        "time_signatures": [
            {"onset": change.tick, "numerator": change.numerator, "denominator": change.denominator}
            for change in grid.time_signatures
        ],
        "measure_starts": meter_map(grid).starts.tolist(),
        "key_fifths": key.fifths if key else 0,
        "mode": "" if key is None else "minor" if key.minor else "major",
    }


def score_of_row(row: Mapping[str, Any]) -> Score:
    """Return the score that a row holds; the inverse of `piece_columns`.

    A column that is missing is an `InvalidInputError`, a row without notes a `NoDataError`.
    """
    missing = [name for name in ("ticks_per_quarter", "notes", "voices", "time_signatures", "mode") if name not in row]
    if missing:
        raise InvalidInputError(
            f"the row lacks the columns {', '.join(missing)}: it is of no data set of whole pieces, such as the "
            "config style of jsb_chorales"
        )
    notes = [tuple(note[name] for name in NOTE_COLUMNS) for note in row["notes"]]
    if not notes:
        raise NoDataError(f"row {row.get('name', '')!r} has no notes; leave it out")
    onset, duration, pitch, voice = zip(*notes, strict=True)
    return Score(
        make_notes(onset, duration, pitch, voice=voice),
        row["ticks_per_quarter"],
        tuple(
            TimeSignature(signature["onset"], signature["numerator"], signature["denominator"])
            for signature in row["time_signatures"]
        ),
        key_signatures=(KeySignature(0, row["key_fifths"], row["mode"] == "minor"),) if row["mode"] else (),
        voices=tuple(row["voices"]),
    )
