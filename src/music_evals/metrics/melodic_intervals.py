"""Melodic intervals of filled middles: how a melody moves, which shows monotone output that note metrics reward.

A melodic interval is the step in semitones, with its sign, from one onset to the next within a middle; rests and holds
between them play no part. The steps from the past into the middle and from the middle into the future are left out:
they are of two melodies, and a middle is evaluated without its context here.

`interval_divergence` compares the intervals of two sets, `repeated_note_rate` counts those of size 0. Note F1 pays for
one pitch at every beat; such a line has a repeated note rate of 1, where the voices of Bach's chorales have .13, and an
interval divergence of .50 from them (test split of `jsb_chorales`, baseline `last_pitch_beats`).

References
----------
The histogram of melodic intervals and the fraction of repeated notes are features M-1 and M-9 of jSymbolic (C. McKay,
J. Cumming, I. Fujinaga: "jSymbolic 2.2: extracting features from symbolic music for use in musicological and MIR
research", ISMIR 2018), there without the direction of an interval. Interval histograms of generated and real music are
compared by L.-C. Yang and A. Lerch, "On the evaluation of generative models in music", Neural Computing and
Applications 32, 2020, by Kullback-Leibler divergence.

"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, Tokens, check_tokens
from music_evals.errors import InvalidTokensError
from music_evals.metrics.arrays import FloatArray, IntArray, check_pairs, warn_undefined
from music_evals.metrics.divergence import normalised_jensen_shannon

__all__ = [
    "INTERVAL_BINS",
    "IntervalPairs",
    "interval_bins",
    "interval_divergence",
    "interval_pairs",
    "repeated_note_rate",
    "repeated_rows",
]

# Intervals up to an octave have a bin each; one bin either side holds all larger leaps.
_LARGEST = 13

INTERVAL_BINS: Final = 2 * _LARGEST + 1
"""Bins of the interval histogram: -13 (more than an octave down) to 13 semitones."""


class IntervalPairs(NamedTuple):
    """Melodic intervals of two sets of middles, the k-th of an item's reference beside the k-th of its estimate.

    Attributes
    ----------
    reference, estimate
        Bins 0..`INTERVAL_BINS` - 1, shape (n_pairs,); -1 where one side has fewer intervals than the other.
    items
        Item of each pair, shape (n_pairs,), not decreasing.
    """

    reference: IntArray
    estimate: IntArray
    items: IntArray


def interval_divergence(reference: npt.ArrayLike, estimate: npt.ArrayLike, *, base: str | None = None) -> float:
    """Jensen-Shannon divergence of the melodic intervals of two sets of middles.

    All intervals of a set make one histogram: one bin a semitone up to an octave either way, one for larger leaps up
    and one for larger leaps down. In [0, ln 2] nats or [0, 1] bits, lower is better, symmetric, unchanged by
    transposition. If one side has no interval at all it takes its largest value; if neither has, it is undefined (NaN).

    Parameters
    ----------
    reference, estimate
        NoteSeq tokens, shape (n, steps), values 0..129.
    base
        ``"nats"`` (default) or ``"bits"``.

    Returns
    -------
    float
        One value for the set. An item weighs as many intervals as it has. It is biased upwards for small n; see
        `music_evals.stats.null_divergence`.

    Raises
    ------
    InvalidTokensError, ContextLengthError, PairCountError, UnknownNameError
        Input that is not two equal sets of token sequences, or an unknown base.

    Examples
    --------
    >>> interval_divergence([[60, 62, 64]], [[60, 62, 62]], base="bits")  # up, up against up, none
    0.311...
    """
    pairs = interval_pairs(reference, estimate)
    counts = [np.bincount(bins[bins >= 0], minlength=INTERVAL_BINS) for bins in pairs[:2]]
    value = float(normalised_jensen_shannon(*counts, base=base or "nats"))
    warn_undefined("interval_divergence", np.array([value]), "neither side has two notes in an item")
    return value


def interval_pairs(reference: npt.ArrayLike, estimate: npt.ArrayLike) -> IntervalPairs:
    """Return the melodic intervals of both sides; input and errors as in `interval_divergence`."""
    first, second, _ = check_pairs(reference, estimate)
    sides = np.split(_bins(np.concatenate([first, second])), 2)
    items, places = np.nonzero((sides[0] >= 0) | (sides[1] >= 0))
    true, estimated = (side[items, places].astype(np.int64) for side in sides)
    return IntervalPairs(true, estimated, items)


def interval_bins(middle: npt.ArrayLike) -> npt.NDArray[np.int8]:
    """Return the bins of the melodic intervals of each item, in their order.

    Parameters
    ----------
    middle
        NoteSeq tokens, shape (n, steps), values 0..129.

    Returns
    -------
    NDArray of int8
        Shape (n, most), with as many columns as an item has intervals at most: 0..`INTERVAL_BINS` - 1, 13 for a
        repeated note; -1 behind the last interval of an item.

    Raises
    ------
    InvalidTokensError
        Input that is not token sequences of shape (n, steps).
    """
    return _bins(_check(middle))


def repeated_note_rate(middle: npt.ArrayLike) -> FloatArray:
    """Share of the melodic intervals of each middle that repeat the note before: those of 0 semitones.

    In [0, 1], unchanged by transposition. Neither direction is better: compare it with the rate of the true middle.
    Undefined (NaN) for a middle with fewer than two notes.

    Parameters
    ----------
    middle
        NoteSeq tokens, shape (n, steps), values 0..129.

    Returns
    -------
    FloatArray
        Shape (n,).

    Raises
    ------
    InvalidTokensError
        Input that is not token sequences of shape (n, steps).

    Examples
    --------
    >>> repeated_note_rate([[60, 60, 129, 60, 62]]).item()  # two of three intervals
    0.666...
    """
    rates: FloatArray = repeated_rows(_check(middle))[0]
    warn_undefined("repeated_note_rate", rates, "the middle has fewer than two notes")
    return rates


def repeated_rows(middles: Tokens) -> FloatArray:
    """Return `repeated_note_rate` of checked middles, shape (1, n): the kernel of a pass over many items."""
    bins = _bins(middles)
    n = np.count_nonzero(bins >= 0, axis=1)
    repeated = np.count_nonzero(bins == _LARGEST, axis=1)
    rates: FloatArray = np.divide(repeated, n, out=np.full(len(bins), np.nan), where=n > 0)
    return rates[None]


def _check(middle: npt.ArrayLike) -> Tokens:
    tokens = check_tokens(middle)
    if tokens.ndim != 2:
        raise InvalidTokensError(f"expected middles, of shape (n, steps), got {tokens.shape}")
    return tokens


def _bins(tokens: Tokens) -> npt.NDArray[np.int8]:
    """Return `interval_bins` of checked middles."""
    items, steps = np.nonzero(tokens < HOLD)
    counts = np.bincount(items, minlength=len(tokens))
    # a note ends an interval unless it is the first of its item
    rank = np.arange(len(items)) - np.repeat(np.cumsum(counts) - counts, counts)
    ends = np.flatnonzero(rank)
    pitches = tokens[items, steps].astype(np.int64)
    bins = np.full((len(tokens), max(int(counts.max(initial=0)) - 1, 0)), -1, dtype=np.int8)
    sizes = np.clip(pitches[ends] - pitches[ends - 1], -_LARGEST, _LARGEST)
    bins[items[ends], rank[ends] - 1] = sizes + _LARGEST
    return bins
