"""Sixteen-measure windows of one voice, and which of their middles a training set already holds."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from music_evals.annotations import HOLD, MUSIB_LAYOUT, ContextLayout, Score, Tokens
from music_evals.symbolic.contexts import tokens_from_score


def voice_tokens(
    score: Score, voice: int, n_measures: int, *, pickup_quarters: float = 0.0, layout: ContextLayout = MUSIB_LAYOUT
) -> Tokens:
    """Return `n_measures` measures of 4/4 of one voice as NoteSeq tokens, shape (n_measures * steps_per_measure,)."""
    # What lies before `pickup_quarters` is cut off: a note held over the cut appears as leading holds. After the last
    # note come rests. See `symbolic.contexts.tokens_from_score`.
    steps_per_quarter = layout.steps_per_measure // 4
    skipped = round(pickup_quarters * steps_per_quarter)
    n_steps = skipped + n_measures * layout.steps_per_measure
    return tokens_from_score(score, n_steps, voice=voice, steps_per_quarter=steps_per_quarter)[skipped:]


def cut_windows(tokens: Tokens, layout: ContextLayout = MUSIB_LAYOUT) -> Tokens:
    """Return all windows, one measure apart, of a voice from a bar line on: (n_windows, layout.n_steps), read-only."""
    if len(tokens) < layout.n_steps:
        return np.empty((0, layout.n_steps), dtype=np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(tokens, layout.n_steps)
    return windows[:: layout.steps_per_measure]


def content_key(tokens: Tokens) -> bytes:
    """Return the interval and rhythm content of a passage, equal for passages that are transpositions of each other."""
    # Every onset is written as its distance from the first onset in semitones, every hold and rest is kept. A passage
    # without an onset is its holds and rests.
    values = tokens.astype(np.int16)
    onsets = tokens < HOLD
    if onsets.any():
        # 512 keeps the intervals, -127..127 around it, apart from the tokens 128 and 129.
        values[onsets] += 512 - values[onsets][0]
    return values.tobytes()


def middle_keys(windows: Tokens, layout: ContextLayout = MUSIB_LAYOUT) -> list[bytes]:
    """Return `content_key` of the middle of each window, shape (n, layout.n_steps) in."""
    return [content_key(window[layout.middle]) for window in windows]


def training_keys(voices: Iterable[Tokens], layout: ContextLayout = MUSIB_LAYOUT) -> set[bytes]:
    """Return the content of every bar-aligned passage, as long as a middle, anywhere in windows or whole voices."""
    return {
        content_key(voice[start : start + layout.middle_steps])
        for voice in voices
        for start in range(0, len(voice) - layout.middle_steps + 1, layout.steps_per_measure)
    }
