"""How a filled middle differs from the true one, note by note: what was kept, missed or added."""

from __future__ import annotations

import dataclasses
from typing import Final, NamedTuple

import numpy.typing as npt

from music_evals.errors import PairCountError
from music_evals.symbolic import noteseq

CHANGES: Final = ("kept", "missed", "extra")
"""What may become of a note, in the order in which it is said."""


class NoteChange(NamedTuple):
    """One note of the true middle or of the candidate."""

    kind: str  # one of `CHANGES`
    onset: int  # steps from the start of the middle
    duration: int  # in steps; of a kept note, the length that the candidate gives it
    pitch: int  # MIDI number, 0..127
    true_duration: int | None = None  # of a kept note: the length of the true one, in steps


@dataclasses.dataclass(frozen=True)
class NoteDiff:
    """All notes of both sides, each once, sorted by onset; at one step missed notes come before extra ones."""

    changes: tuple[NoteChange, ...]

    def count(self, kind: str) -> int:
        """Return how many notes are of a kind."""
        return sum(change.kind == kind for change in self.changes)

    @property
    def same_length(self) -> int:
        """How many kept notes also have the true length."""
        return sum(change.duration == change.true_duration for change in self.changes)


def diff_notes(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> NoteDiff:
    """Compare a filled middle with the true one, note by note.

    A note is kept where both sides have an onset of one pitch at one step: the notes that
    `metrics.inpainting.note_f1` counts, so that 2 kept / (2 kept + missed + extra) is that score.
    """
    sides = [noteseq.check_tokens(tokens) for tokens in (reference, estimate)]
    if len(sides[0]) != len(sides[1]):
        raise PairCountError(f"expected two middles of one length, got {len(sides[0])} and {len(sides[1])} steps")
    true, given = (
        {(int(note["onset_tick"]), int(note["pitch"])): int(note["duration_tick"]) for note in noteseq.decode(tokens)}
        for tokens in sides
    )
    changes = [
        NoteChange("kept", onset, given[onset, pitch], pitch, length)
        if (onset, pitch) in given
        else NoteChange("missed", onset, length, pitch)
        for (onset, pitch), length in true.items()
    ]
    changes += [NoteChange("extra", *(key[0], length, key[1])) for key, length in given.items() if key not in true]
    return NoteDiff(tuple(sorted(changes, key=lambda change: (change.onset, CHANGES.index(change.kind)))))
