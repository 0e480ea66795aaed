"""Counts of notes, positions and durations that two monophonic sequences share, by arithmetic on packed bits.

A sequence of s steps becomes three bit strings (onsets, stops, rests) in ceil(s / 64) words of 64 bits, step 0 in the
lowest bit. One operation then works on 64 steps of an item, and numpy's loop runs over the items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, REST, Tokens
from music_evals.metrics.arrays import IntArray

Words = npt.NDArray[np.uint64]

_UINT64_ONE = np.uint64(1)
_TOP = np.uint64(63)


class NoteCounts(NamedTuple):
    """What the note metrics are made of; each of shape (n,)."""

    reference: IntArray  # onsets of each side
    estimate: IntArray
    shared: IntArray  # positions (steps) where both sides have an onset
    same_pitch: IntArray  # shared positions with equal pitch, and with equal duration
    same_duration: IntArray


def count_notes(reference: Tokens, estimate: Tokens) -> NoteCounts:
    """Compare two sets of sequences note by note."""
    # A note starts at a token < 128 and lasts to the next onset, the first rest or the end of the sequence. Holds at
    # the start and after a rest belong to no note.
    onsets = reference < HOLD
    reference_onsets, estimate_onsets = _pack(onsets), _pack(estimate < HOLD)
    shared = reference_onsets & estimate_onsets
    n_shared = _popcount(shared)
    # Of the notes begun together those are left out that end at different steps. Stops are the steps that stop a note;
    # the next stop of either side decides: if it stops both, the durations are equal. It is reached by a carry: a one,
    # added just after the start, runs through the steps where both sides hold and comes to rest on the first that stops
    # one of them. No two carries meet, since every start is itself a stop.
    stops = _pack(reference != HOLD), _pack(estimate != HOLD)
    any_stop = stops[0] | stops[1]
    after = shared << _UINT64_ONE
    after[1:] |= shared[:-1] >> _TOP
    moved = _add(~any_stop, after)
    return NoteCounts(
        _popcount(reference_onsets),
        _popcount(estimate_onsets),
        n_shared,
        _popcount(_pack((reference == estimate) & onsets)),
        n_shared - _popcount(moved & any_stop & (stops[0] ^ stops[1])),
    )


def count_rests(tokens: Tokens) -> IntArray:
    """Return the number of steps that rest, shape (n,), for tokens of shape (n, steps)."""
    return _popcount(_pack(tokens == REST))


def _add(first: Words, second: Words) -> Words:
    """Add numbers of several words; the carry out of the last word is lost."""
    total = first + second
    # a sum of unsigned words that overflowed is smaller than what it was made of
    carry = total < first
    for word in range(1, len(total)):
        total[word] += carry[word - 1]
        # a carry into a word of ones overflows it too
        carry[word] |= carry[word - 1] & (total[word] == 0)
    return total


def _pack(mask: npt.NDArray[np.bool_]) -> Words:
    """Pack (n, steps) into (words, n)."""
    packed = np.packbits(mask, axis=1, bitorder="little")
    n, n_bytes = packed.shape
    padded = np.zeros((n, -(-n_bytes // 8) * 8), dtype=np.uint8)
    padded[:, :n_bytes] = packed
    return np.ascontiguousarray(padded.view("<u8").T).astype(np.uint64, copy=False)


def _popcount(words: Words) -> IntArray:
    count: IntArray = np.bitwise_count(words).sum(axis=0, dtype=np.int64)
    return count
