"""Factorised pitch and rhythm of one measure, the input of SketchNet.

What the encoding loses: nothing. `decode` gives the tokens back.

Source: Chen et al., "Music SketchNet: Controllable Music Generation via Factorized Representations of Pitch and
Rhythm", ISMIR 2020, section 3.1; MUSIB, section "Data representation".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, REST, Tokens, check_tokens
from music_evals.errors import InvalidTokensError

PAD = 128  # fills the pitches of a measure with fewer onsets than steps
FIX_EMPTY_PITCH = 60  # MUSIB's FixEmpty writes a C4
ONSET, HELD, SILENT = 0, 1, 2  # order of the rhythm classes


class Factorized(NamedTuple):
    """Measures as pitches and rhythm.

    Attributes
    ----------
    px
        Onset pitches of each measure, left-packed and padded with 128: shape (n_measures, steps), uint8.
    rx
        Rhythm of each step: 1 onset, 2 hold, 3 rest; shape (n_measures, steps), uint8.
    len_x
        Number of onsets in each measure, shape (n_measures,), int64.
    nrx
        `rx` as one-hot vectors in the order onset, hold, rest: shape (n_measures, steps, 3), float32.
    gd
        The tokens themselves, shape (n_measures, steps), uint8.
    """

    px: Tokens
    rx: npt.NDArray[np.uint8]
    len_x: npt.NDArray[np.int64]
    nrx: npt.NDArray[np.float32]
    gd: Tokens


def encode(tokens: npt.ArrayLike, *, steps_per_measure: int = 24) -> Factorized:
    """Cut NoteSeq tokens into measures and factorise each."""
    gd = _measures(tokens, steps_per_measure)
    onsets = gd < HOLD
    rx = np.where(onsets, ONSET, np.where(gd == HOLD, HELD, SILENT)).astype(np.uint8)
    # a stable sort of "is no onset" packs the onsets to the left in their order
    packed = np.take_along_axis(gd, np.argsort(~onsets, axis=1, kind="stable"), axis=1)
    len_x = onsets.sum(axis=1)
    px = np.where(np.arange(steps_per_measure) < len_x[:, None], packed, PAD).astype(np.uint8)
    return Factorized(px, rx + np.uint8(1), len_x, np.eye(3, dtype=np.float32)[rx], gd)


def decode(px: npt.ArrayLike, rx: npt.ArrayLike) -> Tokens:
    """Put pitches and rhythm together again."""
    pitches, rhythm = np.asarray(px), np.asarray(rx)
    if pitches.ndim != 2 or pitches.shape != rhythm.shape:
        raise InvalidTokensError(
            f"px and rx must share one shape (n_measures, steps), got {pitches.shape} and {rhythm.shape}"
        )
    if rhythm.size and (rhythm.min() < 1 or rhythm.max() > 3):
        raise InvalidTokensError(f"rx must be 1 onset, 2 hold or 3 rest, got {rhythm.min()}..{rhythm.max()}")
    onsets = rhythm == ONSET + 1
    is_pitch = np.arange(pitches.shape[1]) < onsets.sum(axis=1)[:, None]
    if not np.array_equal(is_pitch, (pitches >= 0) & (pitches < PAD)):
        measure = int(np.argmax((is_pitch != ((pitches >= 0) & (pitches < PAD))).any(axis=1)))
        raise InvalidTokensError(
            f"measure {measure}: {onsets[measure].sum()} onsets in rx, but px is {pitches[measure].tolist()}"
        )
    tokens = np.where(rhythm == HELD + 1, HOLD, REST).astype(np.uint8)
    tokens[onsets] = pitches[is_pitch]  # both masks run measure by measure, left to right
    return tokens.reshape(-1)


def fix_empty(tokens: npt.ArrayLike, *, steps_per_measure: int = 24) -> Tokens:
    """Give every measure without an onset a C4 on its first step, as MUSIB does for SketchNet and InpaintNet.

    This is for the input of those models alone. A measure of rests becomes a note of one step, a measure inside a long
    note is struck again: never score against a reference that went through it.
    """
    measures = _measures(tokens, steps_per_measure).copy()
    measures[~(measures < HOLD).any(axis=1), 0] = FIX_EMPTY_PITCH
    return measures.reshape(-1)


def _measures(tokens: npt.ArrayLike, steps_per_measure: int) -> Tokens:
    checked = check_tokens(tokens)
    if checked.ndim != 1 or steps_per_measure < 1 or len(checked) % steps_per_measure:
        raise InvalidTokensError(
            f"expected one sequence of whole measures of {steps_per_measure} steps, got shape {checked.shape}"
        )
    return checked.reshape(-1, steps_per_measure)
