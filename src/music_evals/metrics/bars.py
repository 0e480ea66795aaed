"""What a bar holds: onsets as bits, pitch classes as packed counts, and the comparison of all bars of two passages."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, MUSIB_LAYOUT, Tokens
from music_evals.metrics.arrays import FloatArray

_STEPS = MUSIB_LAYOUT.steps_per_measure
_BYTES = _STEPS // 8
# Five bits a pitch class hold the at most 24 onsets of a bar, and twelve classes fit into one word.
_CLASS_BITS = 5
_CLASS_MASK = np.uint64((1 << _CLASS_BITS) - 1)
_CLASS_WEIGHT = np.zeros(256, dtype=np.uint64)
_CLASS_WEIGHT[:HOLD] = np.uint64(1) << (_CLASS_BITS * (np.arange(HOLD) % 12)).astype(np.uint64)

# c log2 c as whole numbers: sums of them do not depend on the order of the pitch classes, so transposed bars have
# equal entropies to the last bit. 2^45 is the largest scale that keeps every sum exact in a float64.
_SCALE = 2.0**45
_COUNTS = np.arange(1 << _CLASS_BITS)
_C_LOG_C = np.rint(_COUNTS * np.log2(np.maximum(_COUNTS, 1)) * _SCALE).astype(np.int64)
# The same for three classes at once, by their 15 packed bits.
_TRIPLE_C_LOG_C = (_C_LOG_C[:, None, None] + _C_LOG_C[:, None] + _C_LOG_C).ravel()
_TRIPLE_BITS = 3 * _CLASS_BITS
_TRIPLE_MASK = np.uint64((1 << _TRIPLE_BITS) - 1)


class BarContent(NamedTuple):
    """The bars of n passages; each of shape (bars, n)."""

    onsets: npt.NDArray[np.uint32]  # uint32, bit k is set where step k has an onset
    n_notes: npt.NDArray[np.int64]  # number of onsets
    pitch_classes: npt.NDArray[np.uint64]  # uint64, twelve counts of onsets of five bits each, C lowest

    def bars(self, rows: slice) -> BarContent:
        """Return some of the bars."""
        return BarContent(self.onsets[rows], self.n_notes[rows], self.pitch_classes[rows])

    def without(self, rows: slice) -> BarContent:
        """Return all but some of the bars, in order."""
        others = np.delete(np.arange(len(self.n_notes)), rows)
        return BarContent(self.onsets[others], self.n_notes[others], self.pitch_classes[others])


def bar_content(tokens: Tokens) -> BarContent:
    """Read the bars of passages of shape (n, steps), steps a multiple of 24."""
    tokens = np.ascontiguousarray(tokens)
    n, n_bars = len(tokens), tokens.shape[1] // _STEPS
    mask = tokens < HOLD
    packed = np.packbits(mask, axis=1, bitorder="little").reshape(n, n_bars, _BYTES)
    # the three bytes of a bar become the low ones of a word of 32 bits, so that bit k is step k
    wide = np.zeros((n, n_bars, 4), dtype=np.uint8)
    for byte in range(_BYTES):
        wide[..., byte] = packed[..., byte]
    onsets = wide.view("<u4")[..., 0]
    n_notes = np.bitwise_count(onsets).astype(np.int64)
    # Sum the weights of each bar's notes as a difference of running sums, which may wrap around.
    pitches = tokens.ravel()[np.flatnonzero(mask)]
    running = np.zeros(len(pitches) + 1, dtype=np.uint64)
    np.cumsum(_CLASS_WEIGHT.take(pitches), out=running[1:])
    ends = np.cumsum(n_notes).reshape(n, n_bars)
    pitch_classes = running[ends] - running[ends - n_notes]
    return BarContent(*(np.ascontiguousarray(part.T) for part in (onsets, n_notes, pitch_classes)))


def entropy_bits(content: BarContent) -> FloatArray:
    """Return the entropy of each bar's pitch-class histogram in bits, shape (bars, n); 0 for a bar without onset."""
    total = np.zeros(content.n_notes.shape, dtype=np.int64)
    for shift in range(0, 12 * _CLASS_BITS, _TRIPLE_BITS):
        total += _TRIPLE_C_LOG_C[((content.pitch_classes >> np.uint64(shift)) & _TRIPLE_MASK).astype(np.int64)]
    # H = log2 n - sum(c log2 c) / n, over one denominator
    entropy: FloatArray = (_C_LOG_C[content.n_notes] - total) / (np.maximum(content.n_notes, 1) * _SCALE)
    return entropy


def mean_entropy_difference(middle: BarContent, context: BarContent) -> FloatArray:
    """Return the mean over all pairs of bars of the distance of their entropies, in bits, shape (n,)."""
    ours, theirs = entropy_bits(middle), entropy_bits(context)
    total = np.zeros(ours.shape[1])
    for entropy in ours:
        # row by row: a sum over an axis may be taken in another order for other shapes
        for difference in np.abs(theirs - entropy):
            total += difference
    return total / (len(ours) * len(theirs))


def mean_groove(middle: BarContent, context: BarContent) -> FloatArray:
    """Return 1 - the mean share of differing steps over all pairs of bars, shape (n,)."""
    differing = np.zeros(middle.onsets.shape[1], dtype=np.int64)
    for bar in middle.onsets:
        differing += np.bitwise_count(context.onsets ^ bar).sum(axis=0, dtype=np.uint16)
    n_steps = len(middle.onsets) * len(context.onsets) * _STEPS
    groove: FloatArray = (n_steps - differing) / n_steps
    return groove


# The authors' arithmetic, operation by operation: what follows is meant to be equal to their numbers to the last bit.


def entropy_official(content: BarContent) -> FloatArray:
    """Return the entropy of each bar in nats, summed from C to B, shape (bars, n)."""
    # p ln p for each number of notes in a bar and each count of a pitch class
    share = _COUNTS / np.maximum(_COUNTS[:, None], 1)  # (notes, count)
    terms = np.where(share > 0, share * np.log(np.where(share > 0, share, 1)), 0).ravel()
    row = content.n_notes << _CLASS_BITS
    total = np.zeros(content.n_notes.shape)
    for shift in range(0, 12 * _CLASS_BITS, _CLASS_BITS):
        total += terms[row + ((content.pitch_classes >> np.uint64(shift)) & _CLASS_MASK).astype(np.int64)]
    return -total


def official_entropy_difference(middle: BarContent, past: BarContent, future: BarContent) -> FloatArray:
    """Return the mean over the pairs of bars that both have an onset; 0 if there are none."""
    ours = entropy_official(middle)
    theirs = [entropy_official(content) for content in (past, future)]
    return _official_mean(
        middle, (past, future), lambda bar, side: np.abs(ours[bar] - theirs[side]), np.dtype(np.float64)
    )


def official_groove(middle: BarContent, past: BarContent, future: BarContent) -> FloatArray:
    """Return the same for the groove, in their single precision."""
    steps = np.arange(_STEPS + 1, dtype=np.float32)
    similarity = np.float32(1) - np.float32(1 / _STEPS) * steps
    sides = (past, future)
    return _official_mean(
        middle,
        sides,
        lambda bar, side: similarity[np.bitwise_count(middle.onsets[bar] ^ sides[side].onsets)],
        np.dtype(np.float32),
    )


def _official_mean(
    middle: BarContent,
    sides: tuple[BarContent, BarContent],
    compare: Callable[[int, int], npt.NDArray[np.floating]],
    dtype: np.dtype[np.floating],
) -> FloatArray:
    total = np.zeros(middle.n_notes.shape[1], dtype=dtype)
    # pair by pair of bars; where one has no onset the pair adds 0 and is not counted
    for side, content in enumerate(sides):
        for bar, n_notes in enumerate(middle.n_notes):
            both = (n_notes > 0) & (content.n_notes > 0)
            for value in np.where(both, compare(bar, side), dtype.type(0)):
                total += value
    n_bars = sum((content.n_notes > 0).sum(axis=0) for content in sides)
    n_pairs = np.maximum((middle.n_notes > 0).sum(axis=0) * n_bars, 1)
    mean: FloatArray = (total / n_pairs.astype(dtype)).astype(np.float64)
    return mean
