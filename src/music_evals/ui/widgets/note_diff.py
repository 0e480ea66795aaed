"""What a candidate did to the true notes, note by note: kept, missed, extra.

The notes are those that `metrics.inpainting.note_f1` counts: a note is kept where both sides have an onset of one pitch
at one step. So 2 kept / (2 kept + missed + extra) is that score.
"""

from __future__ import annotations

import collections
import dataclasses
from fractions import Fraction
from typing import NamedTuple

import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.errors import PairCountError
from music_evals.symbolic import noteseq

__all__ = ["KINDS", "NoteChange", "NoteDiff", "beats_text", "diff_notes", "pitch_name", "place_text"]

KINDS = ("kept", "missed", "extra")
"""What may become of a note, in the order in which it is told."""

_NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
_BEAT = MUSIB_LAYOUT.steps_per_measure // 4


class NoteChange(NamedTuple):
    """One note of the true middle or of the candidate.

    Attributes
    ----------
    kind
        One of `KINDS`.
    onset, duration
        Steps from the start of the middle, and length in steps; of a kept note, the length that the candidate gives it.
    pitch
        MIDI number, 0..127.
    true_duration
        Of a kept note: the length of the true one, in steps. None for the others.

    """

    kind: str
    onset: int
    duration: int
    pitch: int
    true_duration: int | None = None


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

    def summary(self) -> str:
        """Return the counts in words."""
        kept, missed, extra = (self.count(kind) for kind in KINDS)
        if not self.changes:
            return "Neither the true middle nor the candidate has a note."
        length = f" ({self.same_length} of them with the true length)" if kept else ""
        return f"{kept} kept{length}, {missed} missed, {extra} extra."

    def sentences(self, first_measure: int) -> list[str]:
        """Return one sentence a change, in the order of time.

        Parameters
        ----------
        first_measure
            Number of the first measure of the middle, as a reader counts.

        """
        at: dict[int, list[NoteChange]] = collections.defaultdict(list)
        for change in self.changes:
            at[change.onset].append(change)
        return [_sentence(changes, place_text(onset, first_measure)) for onset, changes in sorted(at.items())]


def diff_notes(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> NoteDiff:
    """Compare a filled middle with the true one.

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
    >>> diff_notes([60, 128, 62, 128], [60, 129, 64, 128]).summary()
    '1 kept (0 of them with the true length), 1 missed, 1 extra.'

    """
    true, given = (noteseq.decode(tokens) for tokens in (reference, estimate))
    lengths = len(noteseq.check_tokens(reference)), len(noteseq.check_tokens(estimate))
    if lengths[0] != lengths[1]:
        msg = f"expected two middles of one length, got {lengths[0]} and {lengths[1]} steps"
        raise PairCountError(msg)
    wanted = {(int(note["onset_tick"]), int(note["pitch"])): int(note["duration_tick"]) for note in true}
    found = {(int(note["onset_tick"]), int(note["pitch"])): int(note["duration_tick"]) for note in given}
    changes = [
        NoteChange("kept", key[0], found[key], key[1], length)
        if key in found
        else NoteChange("missed", key[0], length, key[1])
        for key, length in wanted.items()
    ]
    changes += [NoteChange("extra", key[0], length, key[1]) for key, length in found.items() if key not in wanted]
    return NoteDiff(tuple(sorted(changes, key=lambda change: (change.onset, KINDS.index(change.kind)))))


def pitch_name(pitch: int) -> str:
    """Return the name of a pitch, 60 being C4; black keys are told as sharps.

    Examples
    --------
    >>> pitch_name(60), pitch_name(70)
    ('C4', 'A#4')

    """
    return f"{_NAMES[pitch % 12]}{pitch // 12 - 1}"


def place_text(step: int, first_measure: int) -> str:
    """Return where a step lies, as a reader of music says it.

    Parameters
    ----------
    step
        Steps from the start of the measure called `first_measure`.
    first_measure
        Its number.

    Examples
    --------
    >>> place_text(33, 7)
    'measure 8, beat 2 1/2'

    """
    measure, rest = divmod(step, MUSIB_LAYOUT.steps_per_measure)
    return f"measure {first_measure + measure}, beat {_mixed(Fraction(rest, _BEAT) + 1)}"


def beats_text(steps: int) -> str:
    """Return a length in beats (quarter notes).

    Examples
    --------
    >>> beats_text(6), beats_text(9), beats_text(3)
    ('1 beat', '1 1/2 beats', '1/2 beat')

    """
    beats = Fraction(steps, _BEAT)
    return f"{_mixed(beats)} beat{'s' if beats > 1 else ''}"


def _mixed(value: Fraction) -> str:
    whole, rest = divmod(value, 1)
    return " ".join(str(part) for part in (whole, rest) if part)


def _sentence(changes: list[NoteChange], place: str) -> str:
    """Tell what became of the notes that begin at one step: one a side."""
    first = changes[0]
    note = f"{pitch_name(first.pitch)}, {beats_text(first.duration)}"
    if len(changes) == 2:
        other = changes[1]
        return (
            f"{place}: missed {note}; extra {pitch_name(other.pitch)}, {beats_text(other.duration)}, "
            f"{_interval(other.pitch - first.pitch)}"
        )
    if first.kind == "kept" and first.true_duration is not None and first.true_duration != first.duration:
        lengths = f"{beats_text(first.duration)} and not {beats_text(first.true_duration)}"
        return f"{place}: kept {pitch_name(first.pitch)}, but {lengths}"
    return f"{place}: {first.kind} {note}"


def _interval(semitones: int) -> str:
    unit = "semitone" if abs(semitones) == 1 else "semitones"
    return f"{abs(semitones)} {unit} {'higher' if semitones > 0 else 'lower'}"
