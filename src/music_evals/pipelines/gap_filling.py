"""Fill the gap in a melody with a model that is handed in, and compare what it wrote with the true middle."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, MUSIB_LAYOUT, Tokens
from music_evals.errors import InvalidInputError, NoDataError, PairCountError
from music_evals.pipelines.inpainting import item_scores
from music_evals.symbolic import noteseq

if TYPE_CHECKING:
    from music_evals.protocols import Inpainter

__all__ = ["CHANGES", "SCORES", "Candidate", "NoteChange", "NoteDiff", "diff_notes", "fill_gap"]

SCORES: Final = ("note_f1", "position_score", "pitch_accuracy", "rhythm_accuracy")
"""Scores of one candidate, the one to rank with first."""

CHANGES: Final = ("kept", "missed", "extra")
"""What may become of a note, in the order in which it is said."""


class NoteChange(NamedTuple):
    """One note of the true middle or of the candidate."""

    kind: str
    """One of `CHANGES`."""
    onset: int
    """Steps from the start of the middle."""
    duration: int
    """In steps; of a kept note, the length that the candidate gives it."""
    pitch: int
    """MIDI number, 0..127."""
    true_duration: int | None = None
    """Of a kept note: the length of the true one, in steps."""


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

    Parameters
    ----------
    reference, estimate
        NoteSeq tokens, shape (steps,) each, values 0..129.

    Raises
    ------
    InvalidTokensError
        Not one sequence of tokens each.
    PairCountError
        They differ in length.

    Examples
    --------
    >>> [change.kind for change in diff_notes([60, 128, 62, 128], [60, 129, 64, 128]).changes]
    ['kept', 'missed', 'extra']

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


@dataclasses.dataclass(frozen=True, eq=False)
class Candidate:
    """One filled middle.

    Parameters
    ----------
    number
        From 1.
    middle
        NoteSeq tokens, shape (96,), values 0..129.
    scores
        Score -> value, NaN where undefined; empty where the true middle is not known.
    diff
        Its notes against the true ones; None where these are not known.

    """

    number: int
    middle: Tokens
    scores: Mapping[str, float] = dataclasses.field(default_factory=dict)
    diff: NoteDiff | None = None

    @property
    def row(self) -> dict[str, Any]:
        """Everything as one flat row of plain values."""
        counts = {} if self.diff is None else {kind: self.diff.count(kind) for kind in CHANGES}
        return {"candidate": self.number, **self.scores, **counts, "middle": " ".join(map(str, self.middle.tolist()))}


def fill_gap(
    context: Tokens, inpainter: Inpainter, *, seed: int = 0, n_candidates: int = 1, judge: bool = True
) -> Iterator[Candidate]:
    """Fill the middle of one context several times; each candidate is yielded as soon as it is there.

    Parameters
    ----------
    context
        NoteSeq tokens of sixteen measures, shape (384,). The inpainter never sees the middle.
    inpainter
        What fills it. A deterministic one gives one candidate, however many are asked for.
    seed
        Candidate i draws from ``numpy.random.default_rng([seed, i])``: asking for more does not change the first ones.
    n_candidates
        How many, at least 1.
    judge
        Whether the middle of the context is the true one, to compare the candidates with.

    Yields
    ------
    Candidate

    Raises
    ------
    NoDataError
        Past and future have no note.
    InvalidInputError
        A system that must see the true middle, a negative seed, or fewer than 1 candidate.

    """
    outside = np.concatenate([context[MUSIB_LAYOUT.past], context[MUSIB_LAYOUT.future]])
    if not (outside < HOLD).any():
        raise NoDataError("there are no notes before and after the gap")
    if inpainter.sees_reference:
        raise InvalidInputError("a system that sees the true middle fills no gap")
    if seed < 0 or n_candidates < 1:
        raise InvalidInputError(f"expected a seed of 0 or more and 1 candidate or more, got {seed} and {n_candidates}")
    masked = noteseq.mask_middle(context[None])
    for number in range(1, 2 if inpainter.deterministic else n_candidates + 1):
        middle = inpainter.inpaint(masked, rng=np.random.default_rng([seed, number]))[0]
        yield _judged(number, context, middle) if judge else Candidate(number, middle)


def _judged(number: int, context: Tokens, middle: Tokens) -> Candidate:
    values = item_scores(context[None], middle[None])
    scores = {name: float(values[name][0]) for name in SCORES}
    return Candidate(number, middle, scores, diff_notes(context[MUSIB_LAYOUT.middle], middle))
