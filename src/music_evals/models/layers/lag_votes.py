"""The lag vote: what stands in the context some quarters away votes for the middle, without any training.

A lag is a number of whole quarters, back or forth. Where the visible context agrees with itself at a lag, the music
repeats at that distance, and what stands at that lag from a step of the middle is probably what belongs there. The
agreement is looked up near the step: what lies `Votes.kernel_steps` further away counts 1 / e of it.

`lag_marginals` returns the votes as a distribution over tokens for each step, `decode_expected_f1` makes a middle of
any such distribution. Everything is arithmetic on single windows: a window gives the same numbers alone and in a batch.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, MASK, MUSIB_LAYOUT, REST, VOCABULARY_SIZE, Tokens

Floats = npt.NDArray[np.float64]

_MIDDLE = MUSIB_LAYOUT.middle
_QUARTER = MUSIB_LAYOUT.steps_per_measure // 4


@dataclasses.dataclass(frozen=True)
class Votes:
    """How lags vote; the defaults are chosen on validation by ``benchmarks/lag_vote/choose.py``."""

    kernel_steps: float = 72.0  # how fast agreement further from a step loses weight: by exp(-distance / kernel_steps)
    sharpness: float = 8.0  # a lag of agreement a votes with weight exp(sharpness * a)
    shrinkage: float = 0.25  # notes without agreement that each lag is taken to have beside its own
    farthest_quarters: int = 32  # the largest lag, back or forth; beyond 39 none leads into the context


LAG_VOTE = Votes()
"""What the baseline ``lag_vote`` uses."""


def vote_lags(votes: Votes = LAG_VOTE) -> npt.NDArray[np.int64]:
    """Return the lags in steps, shape (lags,): nearest first, back before forth."""
    quarters = np.arange(1, votes.farthest_quarters + 1)
    return np.stack([-quarters, quarters], axis=1).ravel() * _QUARTER


def lag_agreement(contexts: Tokens, votes: Votes = LAG_VOTE) -> Floats:
    """Return how well the visible context agrees with itself at each lag near each step, shape (n, lags, 96), in 0..1.

    The Dice coefficient of the notes (onset and pitch) of the context and of the context moved by the lag, over the
    steps where both are visible; a note counts exp(-distance / kernel_steps), and `shrinkage` notes without a partner
    are added, so that a lag with little to compare agrees little. Contexts are (n, 384); their middle is not read.
    """
    n, n_steps = contexts.shape
    hidden = np.zeros(n_steps, dtype=bool)
    hidden[_MIDDLE] = True
    onsets = (contexts < HOLD) & ~hidden
    # A step s of the past lies t - s from a step t of the middle, which is (end - 1 - s) + (t - end + 1): the weight
    # of each note is a product, and one sum over the past and one over the future serve all steps of the middle.
    to_edge = np.zeros(n_steps)
    to_edge[MUSIB_LAYOUT.past] = np.arange(_MIDDLE.start)[::-1]
    to_edge[MUSIB_LAYOUT.future] = np.arange(n_steps - _MIDDLE.stop)
    weights = np.exp(-to_edge / votes.kernel_steps)
    from_past = np.exp(-np.arange(1, MUSIB_LAYOUT.middle_steps + 1) / votes.kernel_steps)
    fading = ((MUSIB_LAYOUT.past, from_past), (MUSIB_LAYOUT.future, from_past[::-1]))
    lags = vote_lags(votes)
    agreement = np.empty((n, len(lags), MUSIB_LAYOUT.middle_steps))
    for place, lag in enumerate(lags.tolist()):
        here = np.arange(max(0, -lag), min(n_steps, n_steps - lag))
        here = here[~hidden[here] & ~hidden[here + lag]]
        visible_weights = np.zeros(n_steps)
        visible_weights[here] = weights[here]
        moved = np.roll(contexts, -lag, axis=1)
        # Dice: twice the notes in common, over the notes of both
        same = onsets & (contexts == moved)
        either = onsets.astype(np.int8) + (moved < HOLD)
        shared, notes = np.zeros((2, n, MUSIB_LAYOUT.middle_steps))
        for side, fade in fading:
            shared += (same[:, side] * visible_weights[side]).sum(axis=1)[:, None] * fade
            notes += (either[:, side] * visible_weights[side]).sum(axis=1)[:, None] * fade
        agreement[:, place] = 2 * shared / (notes + votes.shrinkage)
    return agreement


def lag_marginals(contexts: Tokens, votes: Votes = LAG_VOTE) -> Floats:
    """Return the share of the votes that each token has at each step of the middle, shape (n, 96, 130); rows sum to 1.

    The token that stands at a lag from a step, where that is visible, gets exp(sharpness * agreement) votes. Contexts
    are (n, 384); their middle is not read.
    """
    # 100 kB a window: a caller with many windows takes some at a time.
    marginals = np.zeros((len(contexts), MUSIB_LAYOUT.middle_steps, VOCABULARY_SIZE))
    weights = np.exp(votes.sharpness * lag_agreement(contexts, votes))
    windows = np.arange(len(contexts))[:, None]
    for place, lag in enumerate(vote_lags(votes).tolist()):
        sources = np.arange(_MIDDLE.start, _MIDDLE.stop) + lag
        # steps whose source lies in the window and not in the middle
        steps = np.flatnonzero(
            (sources >= 0) & (sources < contexts.shape[1]) & ~((sources >= _MIDDLE.start) & (sources < _MIDDLE.stop))
        )
        marginals[windows, steps, contexts[:, sources[steps]]] += weights[:, place, steps]
    marginals /= marginals.sum(axis=2, keepdims=True)
    return marginals


def decode_expected_f1(marginals: Floats, known: Tokens | None = None) -> Tokens:
    """Return the middles, shape (n, steps), that the marginals (n, steps, 130) promise the highest note F1.

    The candidate of a step is its likeliest pitch, with probability p. Of the candidates, likeliest first, those k are
    written for which 2 * sum(p) / (k + expected number of notes) is largest. The other steps rest where a rest is
    likelier than a hold, and then on to the next note. Of equals the lower pitch, the earlier step, the smaller k.

    `known` (n, steps) holds what is not to be decided, and `MASK` at all other steps: it stays, and its notes do not
    count. None: every step is decided.
    """
    n, n_steps, _ = marginals.shape
    if known is None:
        known = np.full((n, n_steps), MASK, dtype=np.uint8)
    free = known == MASK
    pitches = marginals[..., :HOLD].argmax(axis=2)
    likely = np.take_along_axis(marginals, pitches[..., None], axis=2)[..., 0] * free
    order = np.argsort(-likely, axis=1, kind="stable")
    expected = (marginals[..., :HOLD].sum(axis=2) * free).sum(axis=1)
    # the expected F1 of the k likeliest candidates, for all k at once by running sums
    counts = np.arange(1, n_steps + 1)
    gain = 2 * np.cumsum(np.take_along_axis(likely, order, axis=1), axis=1) / (counts + expected[:, None])
    chosen = np.empty((n, n_steps), dtype=bool)
    np.put_along_axis(chosen, order, counts <= gain.argmax(axis=1)[:, None] + 1, axis=1)
    # an expected number of 0 means that no note can be right
    chosen &= likely > 0
    middles = np.where(marginals[..., REST] > marginals[..., HOLD], REST, HOLD).astype(np.uint8)
    middles[chosen] = pitches[chosen]
    # holds after a rest belong to no note: they rest too
    middles = np.where(free, middles, known)
    last = np.maximum.accumulate(np.where(middles != HOLD, np.arange(n_steps), -1), axis=1)
    before = np.take_along_axis(middles, np.maximum(last, 0), axis=1)
    middles = np.where((last >= 0) & (middles == HOLD) & (before == REST), REST, middles).astype(np.uint8)
    return np.where(free, middles, known)
