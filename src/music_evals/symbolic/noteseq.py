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
    """Encode one voice, onsets and durations in steps, as NoteSeq tokens: shape (n_steps,), uint8, values 0..129.

    Notes that start later are left out, longer ones are cut; two at once are a `PolyphonyError`.
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

    Tokens have shape (n_steps,), others are an `InvalidTokensError`. Notes have onsets and durations in steps, velocity
    64 and voice 0.
    """
    checked = check_tokens(tokens)
    if checked.ndim != 1:
        raise InvalidTokensError(
            f"expected tokens of shape (n_steps,), got {checked.shape}; decode one sequence at a time"
        )
    # a note ends at the next token that is no hold
    onsets = np.flatnonzero(checked < HOLD)
    stops = np.flatnonzero(checked != HOLD)
    stops = np.append(stops, len(checked))
    ends = stops[np.searchsorted(stops, onsets, side="right")]
    return make_notes(onsets, ends - onsets, checked[onsets])


def check_contexts(tokens: npt.ArrayLike, layout: ContextLayout = MUSIB_LAYOUT) -> Tokens:
    """Return whole contexts as uint8 of shape (n, n_steps).

    Values outside the vocabulary are an `InvalidTokensError`, another shape is a `ContextLengthError`.
    """
    array = check_tokens(tokens)
    if array.ndim != 2 or array.shape[1] != layout.n_steps:
        raise ContextLengthError(
            f"expected contexts of shape (n, {layout.n_steps}): {layout.past_measures} + {layout.middle_measures} + "
            f"{layout.future_measures} measures of {layout.steps_per_measure} steps; got {array.shape}"
        )
    return array


def mask_middle(contexts: Tokens, layout: ContextLayout = MUSIB_LAYOUT) -> Tokens:
    """Return a copy of whole contexts, shape (n, `layout.n_steps`), with `MASK` in every step of the middle."""
    masked = contexts.copy()
    masked[:, layout.middle] = MASK
    return masked
