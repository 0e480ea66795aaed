"""NoteSeq: one token a step, the encoding of MUSIB.

Tokens are 0..127 (onset of that pitch), 128 (hold) and 129 (rest): 130 classes. A step is one tick of the notes' grid;
MUSIB counts 24 steps a measure of 4/4, 6 ticks a quarter. What the encoding loses: velocity, voice, and everything
before the onset of a note that is already held at the first step.

Source: MUSIB, section "Data representation"; thesis (Araneda, 2023), 3.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, MASK, MUSIB_LAYOUT, REST, ContextLayout, NoteArray, Tokens, check_tokens
from music_evals.errors import ContextLengthError, InvalidTokensError
from music_evals.symbolic.notes import check_monophonic, make_notes

__all__ = ["check_contexts", "check_tokens", "decode", "encode", "mask_middle"]


def encode(notes: NoteArray, n_steps: int) -> Tokens:
    """Encode one voice as NoteSeq tokens.

    Parameters
    ----------
    notes
        One voice, shape (n,), onsets and durations in steps.
    n_steps
        Length of the result; notes that start later are left out, longer ones are cut.

    Returns
    -------
    Tokens
        Shape (n_steps,), uint8, values 0..129.

    Raises
    ------
    PolyphonyError
        Two notes sound at once.

    """
    check_monophonic(notes)
    tokens = np.full(n_steps, REST, dtype=np.uint8)
    for onset, duration, pitch in zip(notes["onset_tick"], notes["duration_tick"], notes["pitch"], strict=True):
        if onset >= n_steps:
            break
        tokens[onset : onset + duration] = HOLD
        tokens[onset] = pitch
    return tokens


def decode(tokens: npt.ArrayLike) -> NoteArray:
    """Read the notes back out of NoteSeq tokens.

    A note lasts from its onset to the next onset, the first rest or the end. Holds at the start and holds after a rest
    belong to no note and are left out.

    Parameters
    ----------
    tokens
        Shape (n_steps,), values 0..129.

    Returns
    -------
    NoteArray
        Shape (n_notes,), onsets and durations in steps, velocity 64, voice 0.

    Raises
    ------
    InvalidTokensError
        Not one-dimensional, or values outside 0..129.

    """
    checked = check_tokens(tokens)
    if checked.ndim != 1:
        raise InvalidTokensError(
            f"expected tokens of shape (n_steps,), got {checked.shape}; decode one sequence at a time"
        )
    onsets = np.flatnonzero(checked < HOLD)
    stops = np.flatnonzero(checked != HOLD)
    stops = np.append(stops, len(checked))
    ends = stops[np.searchsorted(stops, onsets, side="right")]
    return make_notes(onsets, ends - onsets, checked[onsets])


def check_contexts(tokens: npt.ArrayLike, layout: ContextLayout = MUSIB_LAYOUT) -> Tokens:
    """Return whole contexts as uint8 of shape (n, n_steps), or say what is wrong with them.

    Raises
    ------
    InvalidTokensError
        Values outside the vocabulary.
    ContextLengthError
        Not (n, `layout.n_steps`).

    """
    array = check_tokens(tokens)
    if array.ndim != 2 or array.shape[1] != layout.n_steps:
        raise ContextLengthError(
            f"expected contexts of shape (n, {layout.n_steps}): {layout.past_measures} + {layout.middle_measures} + "
            f"{layout.future_measures} measures of {layout.steps_per_measure} steps; got {array.shape}"
        )
    return array


def mask_middle(contexts: Tokens, layout: ContextLayout = MUSIB_LAYOUT) -> Tokens:
    """Return a copy of whole contexts with `MASK` in every step of the middle: what an honest model may see.

    Parameters
    ----------
    contexts
        Shape (n, `layout.n_steps`).

    """
    masked = contexts.copy()
    masked[:, layout.middle] = MASK
    return masked
