"""One musical item of any kind that is offered, as NoteSeq tokens.

Kinds: a path of a file, MIDI bytes, notes, tokens, or a dict of past, middle and future. Time is symbolic, whatever the
tempi say: a measure is four quarter notes from the start of the item, and one whose time signatures differ from that is
refused, unless its user says otherwise (``measures="fixed"``). A kind is known by its type and never guessed from text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from music_evals.annotations import MUSIB_LAYOUT, NOTE_DTYPE, REST, Score, Tokens
from music_evals.errors import ContextLengthError, InvalidTokensError, UnsupportedTypeError
from music_evals.symbolic import files, midi, noteseq
from music_evals.symbolic.contexts import (
    STEPS_PER_QUARTER,
    Measures,
    check_four_quarters,
    check_measures,
    tokens_from_score,
)
from music_evals.symbolic.notes import make_notes

OFFERED = (
    "a path of a MIDI, MusicXML or ABC file; MIDI bytes; notes (a Score, a NOTE_DTYPE array in steps, a pretty_midi or "
    "symusic object, rows of onset_step, duration_step and pitch); NoteSeq tokens (whole numbers 0..129 in a list, "
    "tuple or array); or a dict of past, middle and future, each one of these"
)
"""What an item may be, in words, for messages."""
_PARTS = {"past": MUSIB_LAYOUT.past, "middle": MUSIB_LAYOUT.middle, "future": MUSIB_LAYOUT.future}
_NOTE_ROW = frozenset({"onset_step", "duration_step", "pitch"})


def read_tokens(
    item: Any, *, whole: bool, voice: int | str | None = None, highest: bool = False, measures: Measures = "notated"
) -> Tokens:
    """Return the NoteSeq tokens of one item of any kind that is offered."""
    check_measures(measures)
    lengths = (MUSIB_LAYOUT.n_steps,) if whole else (MUSIB_LAYOUT.middle_steps, MUSIB_LAYOUT.n_steps)
    if isinstance(item, Mapping):
        if set(item) != set(_PARTS):
            raise UnsupportedTypeError(
                f"a context in parts has the keys past, middle and future; got {', '.join(map(str, item)) or 'none'}"
            )
        parts = [
            _one_kind(item[name], (part.stop - part.start,), voice, highest=highest, measures=measures)
            for name, part in _PARTS.items()
        ]
        return np.concatenate(parts)
    return _one_kind(item, lengths, voice, highest=highest, measures=measures)


def _one_kind(
    item: Any, lengths: tuple[int, ...], voice: int | str | None, *, highest: bool, measures: Measures
) -> Tokens:
    if (isinstance(item, np.ndarray) and item.dtype != NOTE_DTYPE) or holds_only(item, int | np.integer):
        if isinstance(item, np.ndarray) and item.dtype == np.int8:
            raise InvalidTokensError("int8 cannot hold the tokens 128 (hold) and 129 (rest); make the array uint8")
        tokens = noteseq.check_tokens(item)
        if tokens.ndim != 1 or len(tokens) not in lengths:
            wanted = " or ".join(f"{n} steps ({n // MUSIB_LAYOUT.steps_per_measure} measures)" for n in lengths)
            raise ContextLengthError(f"expected tokens of {wanted}, got shape {tokens.shape}")
        return tokens
    score = _read_score(item)
    if measures == "notated":
        check_four_quarters(score)
    return _fill(tokens_from_score(score, voice=voice, highest=highest), lengths)


def _read_score(item: Any) -> Score:
    """Return the notes of a file, of bytes, of an object of another package, or of rows."""
    if isinstance(item, Score):
        return item
    if isinstance(item, np.ndarray):
        return Score(item, STEPS_PER_QUARTER, voices=("",) * (int(item["voice"].max(initial=0)) + 1))
    if isinstance(item, str | os.PathLike):
        return files.read_score(item)
    if isinstance(item, bytes | bytearray | memoryview):
        return midi.read_midi(bytes(item))
    # identified by the name of their package: neither package is imported for a user who has none of its objects
    package, name = type(item).__module__.split(".")[0], type(item).__name__
    if package == "pretty_midi" and name == "PrettyMIDI":
        return midi.from_pretty_midi(item)
    if package == "symusic" and name.startswith("Score"):
        return midi.read_midi(item.to("tick").dumps_midi())
    if holds_only(item, Mapping) and all(set(row) >= _NOTE_ROW for row in item):
        columns = ([row[key] for row in item] for key in ("onset_step", "duration_step", "pitch"))
        return Score(make_notes(*columns), STEPS_PER_QUARTER)
    raise UnsupportedTypeError(f"got {describe(item)}; offered are {OFFERED}")


def holds_only(item: Any, kinds: Any) -> bool:
    """Tell whether the item is a list or tuple, not empty, of these types; True and False are no numbers here."""
    if not isinstance(item, list | tuple) or not item:
        return False
    return all(issubclass(kind, kinds) and not issubclass(kind, bool) for kind in {type(value) for value in item})


def describe(item: Any) -> str:
    """Name a type for a message: ``list of float``, ``Tensor``."""
    name = type(item).__name__
    if isinstance(item, list | tuple):
        inner = sorted({type(value).__name__ for value in item})
        name += f" of {' and '.join(inner)}" if inner else " without items"
    hint = " (one item stood where a batch of items is needed?)" if isinstance(item, int | float) else ""
    return f"{name}{hint}"


def _fill(tokens: Tokens, lengths: tuple[int, ...]) -> Tokens:
    """Pad notes with rest to the length that they were made for; where they end tells which."""
    # a context that ends before its future begins is more likely a file of something else
    ranges = [(MUSIB_LAYOUT.middle.stop + 1 if n == MUSIB_LAYOUT.n_steps else 0, n) for n in lengths]
    for shortest, length in ranges:
        if shortest <= len(tokens) <= length:
            return np.pad(tokens, (0, length - len(tokens)), constant_values=REST)
    wanted = " or ".join(f"within steps {shortest}..{length}" for shortest, length in ranges)
    raise ContextLengthError(
        f"expected notes that end {wanted}, got an end at step {len(tokens)}; cut the notes to size, or give NoteSeq "
        "tokens where a context ends in rests"
    )
