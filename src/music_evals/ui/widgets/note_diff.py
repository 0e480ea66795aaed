"""What a candidate did to the true notes, in words: kept, missed, extra."""

from __future__ import annotations

import collections
from fractions import Fraction

from music_evals.annotations import MUSIB_LAYOUT
from music_evals.pipelines.gaps.diff import CHANGES, NoteChange, NoteDiff

__all__ = ["beats_text", "pitch_name", "place_text", "sentences", "summary"]

_NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
_BEAT = MUSIB_LAYOUT.steps_per_measure // 4


def summary(diff: NoteDiff) -> str:
    """Return the counts in words.

    Examples
    --------
    >>> from music_evals.pipelines.gaps.diff import diff_notes
    >>> summary(diff_notes([60, 128, 62, 128], [60, 129, 64, 128]))
    '1 kept (0 of them with the true length), 1 missed, 1 extra.'

    """
    n_kept, missed, extra = (diff.count(kind) for kind in CHANGES)
    if not diff.changes:
        return "Neither the true middle nor the candidate has a note."
    length = f" ({diff.same_length} of them with the true length)" if n_kept else ""
    return f"{n_kept} kept{length}, {missed} missed, {extra} extra."


def sentences(diff: NoteDiff, first_measure: int) -> list[str]:
    """Return one sentence a change, in the order of time; `first_measure` is the number of the middle's first one."""
    at: dict[int, list[NoteChange]] = collections.defaultdict(list)
    for change in diff.changes:
        at[change.onset].append(change)
    return [_sentence(changes, place_text(onset, first_measure)) for onset, changes in sorted(at.items())]


def pitch_name(pitch: int) -> str:
    """Return the name of a pitch, 60 being C4; black keys are named as sharps.

    Examples
    --------
    >>> pitch_name(60), pitch_name(70)
    ('C4', 'A#4')

    """
    return f"{_NAMES[pitch % 12]}{pitch // 12 - 1}"


def place_text(step: int, first_measure: int) -> str:
    """Return where a step lies, counted from the start of the measure called `first_measure`.

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
