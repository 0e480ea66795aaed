"""Bounds on what a file may hold, checked before and after it is parsed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from music_evals.annotations import Score
from music_evals.errors import FileTooLargeError, InvalidInputError
from music_evals.files import check_no_pointer, reading

__all__ = ["DEFAULT_LIMITS", "Limits", "check_end", "check_n_bytes", "check_n_notes", "check_score", "read_bytes"]


@dataclasses.dataclass(frozen=True)
class Limits:
    """The largest file that a reader takes: its bytes, also unpacked, its last end in quarters, notes of all voices.

    The longest piano works take about 1 MB of MIDI; 100,000 quarters are 14 hours at 120 a minute. Damaged files claim
    ends that are far beyond it, and every grid is as long as its piece.
    """

    max_bytes: int = 16 * 2**20
    max_quarters: int = 100_000
    max_notes: int = 500_000

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if getattr(self, field.name) < 1:
                raise InvalidInputError(f"{field.name} must be at least 1, got {getattr(self, field.name)}")


DEFAULT_LIMITS = Limits()
"""Limits where none are given."""


def read_bytes(path: Path, limits: Limits) -> bytes:
    """Return the content of a file that is not over the bound on bytes; of one that is, no more is read.

    Raises `NoDataError` where there is no such file, `UnreadableFileError` for a folder or a pointer of Git LFS, or
    where the system refuses it, and `FileTooLargeError`.
    """
    with reading(path), path.open("rb") as file:
        content = file.read(limits.max_bytes + 1)
    check_no_pointer(content, path)
    check_n_bytes(len(content), limits, str(path))
    return content


def check_n_bytes(n_bytes: int, limits: Limits, name: str) -> None:
    """Raise if there are more than `limits.max_bytes`."""
    if n_bytes > limits.max_bytes:
        raise FileTooLargeError(
            f"{name}: more than {limits.max_bytes} bytes (Limits.max_bytes)",
            name=Path(name).name,
            unit="bytes",
            limit=limits.max_bytes,
        )


def check_score(score: Score, limits: Limits, name: str) -> Score:
    """Return the score, or raise `FileTooLargeError` if it is over the bounds on notes or length."""
    check_n_notes(len(score.notes), limits, name)
    check_end(score.end_tick, score.ticks_per_quarter, limits, name)
    return score


def check_n_notes(n_notes: int, limits: Limits, name: str) -> None:
    """Raise if there are more than `limits.max_notes`."""
    if n_notes > limits.max_notes:
        raise FileTooLargeError(
            f"{name}: {n_notes} notes, more than {limits.max_notes} (Limits.max_notes)",
            name=Path(name).name,
            unit="notes",
            limit=limits.max_notes,
            size=n_notes,
        )


def check_end(tick: int, ticks_per_quarter: int, limits: Limits, name: str) -> None:
    """Raise if a tick lies beyond `limits.max_quarters`."""
    if tick > limits.max_quarters * ticks_per_quarter:
        quarters = tick / ticks_per_quarter
        msg = (
            f"{name}: lasts {quarters:.0f} quarter notes, more than {limits.max_quarters} "
            "(Limits.max_quarters); the file is probably damaged"
        )
        name, limit = Path(name).name, limits.max_quarters
        raise FileTooLargeError(msg, name=name, unit="quarter notes", limit=limit, size=round(quarters))
