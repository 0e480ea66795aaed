"""How nearly a passage is a copy of another one, up to transposition, graded from 0 to 1.

A passage of four measures is seen through its *quarter skeleton*: what sounds at the start of each of its 16 quarters.
That is a pitch, a rest, or a note held from before the passage, whose pitch the passage does not tell. Two passages are
as near as the share of quarters that agree after the best transposition of one of them: both with pitches that differ
by the transposition, or both with a rest, or both with such a held note. What happens between the quarters, and whether
a note starts or goes on there, is not looked at: ornaments, dotted rhythms and other harmonisations of a hymn tune
leave most of the skeleton as it is. From 14 of 16 quarters on a passage is called a near copy.

- `near_train` compares the middle of a window with every passage of a set of training windows that starts at one of
  their bar lines. A middle whose content occurs in training (`tunes.content_key`) has the value 1.
- `repeats_in_context` compares it with the passages of its own window that start at a bar line and lie wholly in the
  past or wholly in the future: six of them in MUSIB's layout. It says how far the context itself holds the answer.

Any middle takes the best of thousands of passages, so that no value is low: read it against its distribution.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, MUSIB_LAYOUT, REST, ContextLayout, Tokens
from music_evals.errors import InvalidInputError
from music_evals.protocols import NEAR_COPY

__all__ = [
    "NEAR", "Passages", "most_equal", "near_train", "quarter_skeletons", "repeats_in_context", "training_passages",
]  # fmt: skip

NEAR = NEAR_COPY
"""From this share of equal quarters on, a passage is called a near copy: 14 of 16."""

_AT_ONCE = 16_384
"""Passages that are counted together: their bits, for all transpositions, fit into the cache."""

Words = npt.NDArray[np.uint64]


def quarter_skeletons(passages: Tokens, layout: ContextLayout = MUSIB_LAYOUT) -> Tokens:
    """Return what sounds at the start of each quarter, shape (n, quarters), of NoteSeq tokens (n, steps), 0..129.

    0..127 is the sounding pitch, 129 a rest, 128 a note held from before the passage. A hold after a rest belongs to no
    note and prolongs the rest. A quarter is a fourth of the measure of `layout`.
    """
    # the last token that is no hold says what sounds; before the first of them the hold itself stays
    last = np.maximum.accumulate(np.where(passages != HOLD, np.arange(passages.shape[1]), 0), axis=1)
    sounding: Tokens = np.take_along_axis(passages, last, axis=1)
    return sounding[:, :: layout.steps_per_measure // 4]


class Passages:
    """Quarter skeletons (n, quarters) that others are compared with, as bits: one of 64 passages in each word.

    Transpositions of one another count as one.
    """

    def __init__(self, skeletons: Tokens) -> None:
        passages = np.unique(_from_first_pitch(skeletons), axis=0)
        self._n = len(passages)
        self.n_quarters = skeletons.shape[1]
        self._tables = [_Bits(passages[start : start + _AT_ONCE]) for start in range(0, self._n, _AT_ONCE)]

    def __len__(self) -> int:
        return self._n

    def nearest(self, skeletons: Tokens) -> npt.NDArray[np.float64]:
        """Return the share of equal quarters of each skeleton with its nearest passage, (n,); 0 without passages."""
        if skeletons.shape[1] != self.n_quarters:
            raise InvalidInputError(f"expected skeletons of {self.n_quarters} quarters, got {skeletons.shape[1]}")
        # what is compared often is compared once
        distinct, place = np.unique(_from_first_pitch(skeletons), axis=0, return_inverse=True)
        best = np.zeros(len(distinct), dtype=np.int64)
        for table in self._tables:
            best = np.maximum(best, [table.most_equal(skeleton) for skeleton in distinct])
        shares: npt.NDArray[np.float64] = best[place.reshape(-1)] / self.n_quarters
        return shares


class _Bits:
    """Some passages as bits: for each quarter and each value one bit a passage, whether it has the value there."""

    def __init__(self, passages: npt.NDArray[np.int16]) -> None:
        self._lowest = int(passages[passages < _OTHERS].min(initial=0))
        self._highest = int(passages[passages < _OTHERS].max(initial=0))
        values = [*range(self._lowest, self._highest + 1), *_KINDS]
        equal = passages.T[:, None, :] == np.array(values, dtype=np.int16)[:, None]
        padded = np.zeros((*equal.shape[:2], -(-equal.shape[2] // 64) * 64), dtype=bool)
        padded[..., : equal.shape[2]] = equal
        # the last row answers for values that no passage has
        words = np.packbits(padded, axis=2, bitorder="little").view(np.uint64)
        self._words: Words = np.concatenate([words, np.zeros_like(words[:, :1])], axis=1)

    def most_equal(self, skeleton: npt.NDArray[np.int16]) -> int:
        """Return the largest number of quarters in which any passage, in any transposition, equals the skeleton."""
        pitched = skeleton < _OTHERS
        nowhere = self._words.shape[1] - 1
        lowest, highest = skeleton[pitched].min(initial=0), skeleton[pitched].max(initial=0)
        shifts = np.arange(self._lowest - highest, self._highest - lowest + 1)
        counter: list[Words] = []  # the number of equal quarters of each passage, as binary digits, the lowest first
        for quarter, value in enumerate(skeleton.tolist()):
            if pitched[quarter]:
                wanted = value + shifts - self._lowest
                rows = np.where((wanted >= 0) & (wanted <= self._highest - self._lowest), wanted, nowhere)
            else:
                rows = np.full(len(shifts), nowhere - len(_KINDS) + _KINDS.index(value))
            # add one bit to all numbers at once: digit by digit, as long as the count so far has digits
            carry = self._words[quarter, rows]
            for digit in range(quarter.bit_length()):
                counter[digit], carry = counter[digit] ^ carry, counter[digit] & carry
            if len(counter) < (quarter + 1).bit_length():
                counter.append(carry)
        # the largest of these numbers: digit by digit, the highest first, among those that are still as large
        largest, among = 0, np.full_like(counter[0], ~np.uint64(0))
        for digit in reversed(range(len(counter))):
            left = among & counter[digit]
            if left.any():
                largest, among = largest + (1 << digit), left
        return largest


_OTHERS = 512
"""Values of a relative skeleton from here on are not pitches: a rest, or a held note."""
_KINDS = (_OTHERS + HOLD, _OTHERS + REST)


def _from_first_pitch(skeletons: Tokens) -> npt.NDArray[np.int16]:
    """Return skeletons as semitones from their first pitch, -127..127, and `_KINDS`: equal for transpositions."""
    values = skeletons.astype(np.int16)
    pitched = skeletons < HOLD
    first = np.take_along_axis(values, pitched.argmax(axis=1)[:, None], axis=1)
    return np.where(pitched, values - first, values + _OTHERS).astype(np.int16)


def training_passages(windows: Iterable[Tokens], layout: ContextLayout = MUSIB_LAYOUT) -> Passages:
    """Return every passage as long as a middle that starts at a bar line of training windows (m, layout.n_steps)."""
    starts = range(0, layout.n_steps - layout.middle_steps + 1, layout.steps_per_measure)
    passages = [_passages(some, starts, layout).reshape(-1, layout.middle_measures * 4) for some in windows]
    return Passages(np.concatenate([*passages, np.empty((0, layout.middle_measures * 4), dtype=np.uint8)]))


def near_train(windows: Tokens, train: Passages, layout: ContextLayout = MUSIB_LAYOUT) -> npt.NDArray[np.float64]:
    """Return how near the middle of each window (n, layout.n_steps) is to the nearest of `train`, shape (n,), 0..1."""
    return train.nearest(quarter_skeletons(windows[:, layout.middle], layout))


def repeats_in_context(windows: Tokens, layout: ContextLayout = MUSIB_LAYOUT) -> npt.NDArray[np.float64]:
    """Return how near the middle of each window is to the nearest passage of its own past or future, shape (n,).

    In 0..1; see the top of this module. Windows are (n, layout.n_steps).
    """
    past, future = (
        range(part.start, part.stop - layout.middle_steps + 1, layout.steps_per_measure)
        for part in (layout.past, layout.future)
    )
    middles = quarter_skeletons(windows[:, layout.middle], layout)
    equal = most_equal(middles[:, None], _passages(windows, [*past, *future], layout))
    shares: npt.NDArray[np.float64] = equal.max(axis=1, initial=0) / middles.shape[1]
    return shares


def _passages(windows: Tokens, starts: Iterable[int], layout: ContextLayout) -> Tokens:
    """Return the skeletons of the passages that start at these steps, shape (n, passages, quarters)."""
    steps = layout.middle_steps
    return np.stack([quarter_skeletons(windows[:, start : start + steps], layout) for start in starts], axis=1)


def most_equal(first: Tokens, second: Tokens) -> npt.NDArray[np.int64]:
    """Return in how many quarters skeletons (..., quarters) are equal after the best transposition."""
    first, second = np.broadcast_arrays(first, second)
    pitched = (first < HOLD) & (second < HOLD)
    others = ((first == second) & ~pitched).sum(axis=-1)
    distance = second.astype(np.int16) - first
    best: npt.NDArray[np.int64] = np.zeros(others.shape, dtype=np.int64)
    # the best transposition makes some quarter equal: each of them is tried
    for quarter in range(first.shape[-1]):
        same = (distance == distance[..., quarter, None]) & pitched & pitched[..., quarter, None]
        best = np.maximum(best, same.sum(axis=-1))
    most: npt.NDArray[np.int64] = best + others
    return most
