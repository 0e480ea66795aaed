"""Music as tokens of RefinPaint: bars of 4/4 in 32nds, without tracks, velocities or tempi (181 tokens).

A bar is its token, then for each onset its position, then pairs of pitch and duration, from low to high. Our own
encoding, written from the description of the vocabulary; the authors use a changed MidiTok.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import DRUMS, NOTE_DTYPE, Score
from music_evals.symbolic.notes import make_notes, moved_changes

__all__ = [
    "BAR", "BOS", "FIRST_DURATION", "FIRST_PITCH", "FIRST_POSITION", "PAD", "STEPS_PER_BAR", "VOCABULARY", "Encoded",
    "allowed", "decode", "encode", "kinds",
]  # fmt: skip

LICENCE: Final = "CC-BY-NC-SA-4.0"
PUBLISHED_AT: Final = "github.com/ta603/RefinPaint, folder checkpoints"

PAD: Final = 0  # token after the end
BOS: Final = 1  # token before the first bar
BAR: Final = 4  # token at which a bar begins
FIRST_PITCH: Final = 5  # token of the lowest pitch
FIRST_DURATION: Final = 93  # token of the shortest duration
FIRST_POSITION: Final = 149  # token of the first place in a bar
VOCABULARY: Final = 181  # number of tokens

LOWEST, HIGHEST = 21, 108  # MIDI numbers
STEPS_PER_QUARTER: Final = 8
STEPS_PER_BAR: Final = 32  # 32nds
# 1/8 to 2 7/8 quarters by eighths of a quarter, 4 to 11 3/4 by quarters of it, and 12; nothing from 3 to 4
DURATIONS: Final = np.array([*range(1, 24), *range(32, 95, 2), 96])
VELOCITY: Final = 100

Tokens = npt.NDArray[np.int64]


class Encoded(NamedTuple):
    """A score as tokens, and what they do not hold."""

    tokens: Tokens
    bars: Tokens  # where each bar begins in the tokens
    n_notes: int  # of the score
    n_left_out: int  # notes of drum kits, by `official` of all instruments but the first
    n_outside: int  # notes below A0 or above C8, left out


def encode(score: Score, *, official: bool = False) -> Encoded:
    """Return a score as tokens: all voices become one, and of equal pitches at one onset the shortest stays.

    Bars are counted in 4/4. Onsets and ends move to the nearest 32nd (of two, the earlier), a note keeps at least one,
    and its length becomes the nearest that there is a token for (of two, the shorter). ``official`` is as the authors'
    code: of one instrument alone, that of the note that ends first, a drum kit or not, and without bars after that of
    the last onset. Voices of one program are one instrument; to them, those of one channel.
    """
    notes = score.notes
    programs = np.array(score.programs or [0] * len(score.voices))[notes["voice"]]
    outside = (notes["pitch"] < LOWEST) | (notes["pitch"] > HIGHEST)
    if official:
        ends = notes["onset_tick"] + notes["duration_tick"].astype(np.int64)
        ends[~np.isin(programs, programs[~outside])] = np.iinfo(np.int64).max  # all of its notes lie outside
        left_out = programs != (programs[ends.argmin()] if len(notes) else 0)
    else:
        left_out = programs == DRUMS
    outside &= ~left_out
    encodable = notes[~left_out & ~outside]
    # the nearest 32nd note, of two the earlier
    per_quarter = score.ticks_per_quarter
    ticks = (encodable["onset_tick"], encodable["onset_tick"] + encodable["duration_tick"])
    onset, end = (-((per_quarter - 2 * STEPS_PER_QUARTER * tick) // (2 * per_quarter)) for tick in ticks)
    length = np.abs(np.maximum(end - onset, 1)[:, None] - DURATIONS).argmin(axis=1)
    # sorted by onset, pitch, then the shortest first: of equal pitches at one onset it stays
    order = np.lexsort((length, encodable["pitch"], onset))
    columns = np.stack([onset, encodable["pitch"].astype(np.int64), length], axis=1)[order]
    first = np.ones(len(columns), dtype=bool)
    first[1:] = (columns[1:, :2] != columns[:-1, :2]).any(axis=1)
    columns = columns[first]
    n_bars = int(columns[:, 0].max(initial=0)) // STEPS_PER_BAR + 1
    if not official:  # so that a rest, or a long note, at the end can be filled
        n_bars = max(n_bars, math.ceil(score.end_tick / (4 * score.ticks_per_quarter)))
    tokens: list[int] = []
    bars = []
    place = 0
    for bar in range(n_bars):
        bars.append(len(tokens))
        tokens.append(BAR)
        position = -1
        while place < len(columns) and columns[place, 0] < (bar + 1) * STEPS_PER_BAR:
            step, pitch, duration = (int(value) for value in columns[place])
            if step != position:
                tokens.append(FIRST_POSITION + step % STEPS_PER_BAR)
                position = step
            tokens += [FIRST_PITCH + pitch - LOWEST, FIRST_DURATION + duration]
            place += 1
    return Encoded(
        np.array(tokens, dtype=np.int64), np.array(bars), len(notes), int(left_out.sum()), int(outside.sum())
    )


def kinds(tokens: Tokens) -> npt.NDArray[np.int64]:
    """Return what each token is: 0 special, 1 bar, 2 pitch, 3 duration, 4 position."""
    token_kinds: npt.NDArray[np.int64] = np.searchsorted(
        [BAR, FIRST_PITCH, FIRST_DURATION, FIRST_POSITION], tokens, "right"
    )
    return token_kinds


# what can follow a beginning, a bar, a pitch, a duration, a position, as `kinds` numbers them
_FOLLOWS = ({1}, {1, 4}, {3}, {1, 2, 4}, {2})


def allowed(before: int, after: int | None) -> npt.NDArray[np.bool_]:
    """Return which tokens may be drawn, (181,): what follows `before` and precedes `after`, and is no bar.

    Bars are kept where they are, so that none is drawn. Where nothing suits both sides, what follows `before` may be
    drawn; where nothing else than a bar follows it, anything that says a note.
    """
    token_kinds = kinds(np.arange(VOCABULARY))
    (first,) = kinds(np.array([before]))
    follows = _FOLLOWS[first] - {1} or {2, 3, 4}
    if after is not None:
        (last,) = kinds(np.array([after]))
        follows = {kind for kind in follows if last in _FOLLOWS[kind]} or follows
    return np.isin(token_kinds, list(follows))


def decode(tokens: Tokens, like: Score, *, official: bool = False) -> tuple[Score, int]:
    """Return the score of tokens, and how many of them say nothing where they stand and were dropped.

    The notes have one voice, a piano, and velocity 100; tempi, time and key signatures are those of `like`.
    ``official`` is as the authors' code: a note without a position of its own is at that of the note before or at the
    begin of its bar, a position before all bars begins the first, and equal notes stay.
    """
    columns: list[tuple[int, int, int]] = []
    bar, dropped, place = -1, 0, 0
    onset = 0 if official else -1
    token_kinds = kinds(tokens)
    while place < len(tokens):
        token, kind = int(tokens[place]), int(token_kinds[place])
        following = int(token_kinds[place + 1]) if place + 1 < len(tokens) else 0
        if kind == 1:
            bar += 1
            onset = bar * STEPS_PER_BAR if official else -1
        elif kind == 4 and (official or (bar >= 0 and following == 2)):
            bar = max(bar, 0)
            onset = bar * STEPS_PER_BAR + token - FIRST_POSITION
        elif kind == 2 and onset >= 0 and following == 3:
            length = int(DURATIONS[int(tokens[place + 1]) - FIRST_DURATION])
            columns.append((onset, token - FIRST_PITCH + LOWEST, length))
            place += 1
        else:
            dropped += 1
        place += 1
    distinct = sorted(columns if official else set(columns))
    dropped += 2 * (len(columns) - len(distinct))
    finer = math.lcm(like.ticks_per_quarter, STEPS_PER_QUARTER)
    unit, moved = finer // STEPS_PER_QUARTER, finer // like.ticks_per_quarter
    onsets, pitches, lengths = np.array(distinct, dtype=np.int64).reshape(-1, 3).T
    notes = make_notes(onsets * unit, lengths * unit, pitches, VELOCITY) if distinct else np.zeros(0, NOTE_DTYPE)
    score = Score(notes, finer, programs=(0,), **moved_changes(like, lambda tick: tick * moved))
    return score, dropped
