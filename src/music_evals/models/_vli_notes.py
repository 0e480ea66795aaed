"""The notes of VLI: from tokens to ids with relative bars and back, spans of a batch, and where an onset may stand."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from music_evals.annotations import HOLD, MUSIB_LAYOUT, Score, Tokens
from music_evals.errors import InvalidNotesError, RoundedNotesWarning
from music_evals.symbolic import noteseq
from music_evals.symbolic.contexts import STEPS_PER_QUARTER, quantize_voice
from music_evals.symbolic.encodings import remi
from music_evals.symbolic.notes import make_notes

__all__ = [
    "AFTER_NEXT",
    "BARS_ON",
    "BAR_RANGE",
    "BEFORE",
    "BEGIN",
    "COLUMN_SIZES",
    "END",
    "END_POSITION",
    "LAST_BAR",
    "NEXT",
    "NOTE_COLUMNS",
    "PITCHES",
    "SAME",
    "SLOTS",
    "Batch",
    "Here",
    "Span",
    "constant_ids",
    "middle_span",
    "next_onsets",
    "note_ids",
    "onset_alone",
    "onset_log_p",
    "pad",
    "random_span",
    "relative_bars",
    "to_tokens",
    "warn_of_rounding",
    "without_middle",
]

# Ids of a bar are relative in the network: the bar of the note before, the next one, the end, two bars on.
SAME, NEXT, END, AFTER_NEXT = range(4)
BARS_ON = (0, 1, 0, 2)
COLUMN_SIZES = (*remi.SIZES[: remi.BAR], 4, *remi.SIZES[remi.BAR + 1 :])
BEGIN = [size - 3 for size in remi.SIZES]  # BOS of each column: what the query stream does not know
END_POSITION = remi.SIZES[remi.POSITION] - 2
NOTE_COLUMNS = (remi.PITCH, remi.DURATION)  # what a note needs besides its onset
LAST_BAR = MUSIB_LAYOUT.past_measures + MUSIB_LAYOUT.middle_measures - 1
BEFORE = MUSIB_LAYOUT.past_measures - 1  # the bar that the first onset of the middle is counted from
SLOTS = MUSIB_LAYOUT.middle_measures * remi.POSITIONS_PER_BAR  # onsets that the middle has room for
BAR_RANGE = MUSIB_LAYOUT.n_measures  # bars between two notes, at most
PITCHES = (remi.LOWEST_PITCH, remi.LOWEST_PITCH + remi.N_VALUES[remi.PITCH] - 1)
"""Lowest and highest pitch."""


class Span(NamedTuple):
    """One context as notes: what is known, and what is to be written between."""

    known: npt.NDArray[np.int64]  # (n, 6), ids of the network
    known_bars: npt.NDArray[np.int64]  # (n,)
    notes: npt.NDArray[np.int64]  # (m, 6), ids of the network
    bars: npt.NDArray[np.int64]  # (m,)
    before: int  # the bar that the first onset is counted from


class Batch(NamedTuple):
    """Spans side by side, padded at the end."""

    known: Tensor  # (batch, n, 6)
    known_bars: Tensor  # (batch, n)
    is_known: Tensor  # (batch, n), False where padded
    notes: Tensor  # (batch, m, 6)
    bars: Tensor  # (batch, m)
    is_note: Tensor  # (batch, m)
    before: Tensor  # (batch,)


class Here(NamedTuple):
    """How far a middle is written."""

    bars: Tensor  # of the last note, (batch,) or (batch, q)
    positions: Tensor  # of the last note
    left: Tensor | None = None  # notes that are still to be written, where that is known


def note_ids(tokens: Tokens, first_bar: int, row: int | None) -> npt.NDArray[np.int64]:
    """Turn the tokens of one stretch into ids (n, 6), bars counted from the start of the context.

    `row` is the number of the context, for messages; None where there is one alone.
    """
    notes = noteseq.decode(tokens)
    low, high = PITCHES
    outside = (notes["pitch"] < low) | (notes["pitch"] > high)
    if outside.any():
        which = "the music" if row is None else f"context {row}"
        raise InvalidNotesError(
            f"{which} has the pitch {notes['pitch'][outside][0]}, and VLI knows {low}..{high} alone; "
            "transpose the tune by octaves until it fits, or use a model of all pitches, such as anticipation_rnn"
        )
    sixteenths = quantize_voice(notes, STEPS_PER_QUARTER, remi.POSITIONS_PER_BAR // 4)
    sixteenths["onset_tick"] += first_bar * remi.POSITIONS_PER_BAR
    return remi.encode(Score(sixteenths, remi.POSITIONS_PER_BAR // 4))


def middle_span(context: Tokens, row: int | None, *, with_notes: bool, long_jumps: bool) -> Span:
    """Cut a context into past and future, which are known, and the middle, which is read only on demand."""
    past, middle, future = MUSIB_LAYOUT.past, MUSIB_LAYOUT.middle, MUSIB_LAYOUT.future
    before = note_ids(context[past], 0, row)
    after = note_ids(context[future], LAST_BAR + 1, row)
    between = note_ids(context[middle], BEFORE + 1, row) if with_notes else before[:0]
    return _span((before, between, after), BEFORE, long_jumps=long_jumps)


def _span(stretches: tuple[npt.NDArray[np.int64], ...], start: int, *, long_jumps: bool) -> Span:
    """Make the bars of three stretches of notes relative; `start` is the bar that the first onset is counted from."""
    before, between, after = stretches
    first = before[0, remi.BAR] if len(before) else 0
    known = np.concatenate(
        [relative_bars(before, first, long_jumps=long_jumps), relative_bars(after, 0, long_jumps=long_jumps)]
    )
    if len(after):
        known[len(before), remi.BAR] = NEXT  # it is not said how long ago the span's last note was
    bars = np.concatenate([before, after])[:, remi.BAR]
    notes = relative_bars(between, start, long_jumps=long_jumps)
    return Span(known, bars, notes, between[:, remi.BAR], start)


def relative_bars(ids: npt.NDArray[np.int64], first: int, *, long_jumps: bool) -> npt.NDArray[np.int64]:
    """Replace bars by how far on they are from the note before; `first` is the bar before the first note."""
    relative = ids.copy()
    steps = np.diff(ids[:, remi.BAR], prepend=first)
    far = AFTER_NEXT if long_jumps else NEXT
    relative[:, remi.BAR] = np.where(steps >= 2, far, steps.clip(0, 1))
    return relative


def random_span(context: Tokens, row: int | None, *, long_jumps: bool) -> Span:
    """Leave out a stretch of 12.5 to 25 per cent of all notes, as published."""
    ids = note_ids(context, 0, row)
    n = len(ids)
    length = int(torch.randint(max(n // 8, 1), max(n // 4, 1) + 1, ()))
    start = int(torch.randint(max(n - length, 0) + 1, ()))
    bar = int(ids[start - 1, remi.BAR]) if start else int(ids[0, remi.BAR]) - 1 if n else 0
    return _span((ids[:start], ids[start : start + length], ids[start + length :]), bar, long_jumps=long_jumps)


def pad(spans: Sequence[Span], device: torch.device) -> Batch:
    """Lay spans side by side."""
    known, notes = ([getattr(span, name) for span in spans] for name in ("known", "notes"))
    known_bars, bars = ([getattr(span, name) for span in spans] for name in ("known_bars", "bars"))
    before = torch.tensor([span.before for span in spans], dtype=torch.int64)
    columns = [_padded(rows) for rows in (known, known_bars, [np.ones(len(rows), bool) for rows in known])]
    columns += [_padded(rows) for rows in (notes, bars, [np.ones(len(rows), bool) for rows in notes])]
    return Batch(*(column.to(device) for column in (*columns, before)))


def _padded(rows: Sequence[npt.NDArray[np.generic]]) -> Tensor:
    """Lay arrays of different length side by side, with zeros (False) at the end."""
    longest = max((len(row) for row in rows), default=0)
    padded = [np.pad(row, [(0, longest - len(row)), *((0, 0),) * (row.ndim - 1)]) for row in rows]
    return torch.from_numpy(np.stack(padded))


def next_onsets(batch: Batch) -> Tensor:
    """Return bar and position (batch, m + 1, 2) that follow the start and each note; the end follows the last."""
    ends = torch.tensor([END, END_POSITION], device=batch.notes.device)
    onsets = batch.notes[..., [remi.BAR, remi.POSITION]].where(batch.is_note[..., None], ends)
    return torch.cat([onsets, ends.expand(len(onsets), 1, 2)], dim=1)


def onset_log_p(
    bar_logits: Tensor, position_logits: Tensor, here: Here, *, free: bool, long_jumps: bool
) -> tuple[Tensor, Tensor]:
    """Return log-probabilities of the next bar (..., 4) and, for each of these, of the next position (..., 4, 19).

    Only later onsets of the middle have any. Where it is known how many notes are left, they are given room, and
    the end comes when none is left. `free` and `long_jumps` are `VLIConfig.free_onsets` and the setting of that name.
    """
    bars, positions, left = here
    slots = torch.arange(remi.POSITIONS_PER_BAR, device=bars.device)
    onward = torch.tensor(BARS_ON, device=bars.device)
    slot = (bars - BEFORE - 1) * remi.POSITIONS_PER_BAR + positions  # sixteenths from the start of the middle
    there = ((bars - BEFORE - 1)[..., None] + onward)[..., None] * remi.POSITIONS_PER_BAR + slots  # (..., 4, 16)
    room = torch.full_like(slot, SLOTS) if left is None else SLOTS - (left - 1).clamp(min=0)
    open_slots = torch.ones_like(there, dtype=torch.bool)
    if not free:
        open_slots = (there > slot[..., None, None]) & (there < room[..., None, None])
    open_slots[..., END, :] = False
    if not long_jumps:
        open_slots[..., AFTER_NEXT, :] = False
    if left is not None:
        open_slots &= (left > 0)[..., None, None]
    open_bars = open_slots.any(-1)
    open_bars[..., END] = True if left is None else left <= 0
    never = torch.zeros_like(open_slots[..., :1])
    ends = never | (torch.tensor([True, True, False, True], device=bars.device)[:, None] & (free and left is None))
    open_positions = torch.cat([open_slots, never, ends, never], dim=-1)  # BOS, EOS, PAD
    by_bar = bar_logits.double().masked_fill(~open_bars, -torch.inf).log_softmax(-1)
    expanded = position_logits.double()[..., None, :].masked_fill(~open_positions, -torch.inf)
    return by_bar, expanded.log_softmax(-1)


def constant_ids() -> list[int]:
    """Return the ids of a note with a tempo of 120 and a velocity of 64, the only ones here."""
    note = make_notes([0], [1], [remi.LOWEST_PITCH])
    return [int(value) for value in remi.encode(Score(note, remi.TICKS_PER_QUARTER))[0]]


def onset_alone(ids: Tensor) -> Tensor:
    """Return ids (..., 6) of which only bar and position are known: the input of the query stream."""
    known = torch.tensor([column in {remi.BAR, remi.POSITION} for column in range(len(BEGIN))], device=ids.device)
    return ids.where(known, torch.tensor(BEGIN, device=ids.device))


def without_middle(contexts: Tokens) -> Tokens:
    """Leave the middle out: (n, 384) to (n, 288)."""
    return np.delete(contexts, MUSIB_LAYOUT.middle, axis=1)


def warn_of_rounding(tokens: Tokens) -> None:
    """Warn of onsets that are no sixteenths; NoteSeq writes these on the steps 0, 2, 3 and 5 of a quarter."""
    onsets = tokens < HOLD
    off = np.isin(np.arange(tokens.shape[1]) % STEPS_PER_QUARTER, (1, 4))
    n_off = int((onsets & off).sum())
    if n_off:
        warnings.warn(
            f"{n_off} of {int(onsets.sum())} onsets lie off VLI's grid of sixteenths, as those of triplets do, and "
            "were rounded",
            RoundedNotesWarning,
            stacklevel=3,
        )


def to_tokens(ids: npt.NDArray[np.int64]) -> Tokens:
    """Turn the notes of a middle (n, 6) into NoteSeq tokens (96,); of two at one onset the later one stays."""
    ids = ids.copy()
    ids[:, remi.BAR] -= BEFORE + 1
    notes = remi.decode(ids).notes
    notes = notes[np.append(np.diff(notes["onset_tick"]) > 0, True)] if len(notes) else notes
    gaps = np.diff(notes["onset_tick"], append=np.iinfo(np.int64).max)
    notes["duration_tick"] = np.minimum(notes["duration_tick"], gaps)  # a note ends where the next one starts
    return noteseq.encode(quantize_voice(notes, remi.TICKS_PER_QUARTER, STEPS_PER_QUARTER), MUSIB_LAYOUT.middle_steps)
