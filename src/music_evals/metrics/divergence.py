"""Set metrics of score inpainting: how like the true middles the filled ones sit in their contexts.

One number is taken from each item, once with the true middle and once with the estimate; the metric is the
Jensen-Shannon divergence of the two histograms over the set. It compares sets and not items: estimates in the wrong
order keep a silence divergence of 0.

Conventions
-----------
- Contexts are NoteSeq tokens of shape (n, 384), 6 + 4 + 6 measures of 24 steps, with the true middle inside; estimates
  are middles of shape (n, 96). Past and future always come from the context.
- Bars are measures of 24 steps. Pitch classes and grooves are read from onsets; holds do not count.
- The Jensen-Shannon *divergence* is meant, with natural logarithms: at most ln 2 = 0.693. It is not scipy's
  ``jensenshannon``, which is the square root of it.

Features: `silence_rate`, `pitch_class_entropy_difference`, `groove_similarity`. Metrics on them: `silence_divergence`,
`pitch_class_divergence`, `groove_divergence`. The divergence of melodic intervals, of which an item has many, is in
`music_evals.metrics.melodic_intervals`.

Variants
--------
==================  =========================  ======================  ====================================
What                ``corrected``              ``paper``               ``official``
==================  =========================  ======================  ====================================
bars without onset  entropy 0, groove without  as corrected            left out of the mean; 0 if no pair
                    onset                                              of bars is left
entropy             bits / log2 12, 0..1       bits, 0..3.585          nats, 0..2.485
histogram           100 bins on [0, 1], 1 in   the same, larger        99 bins on [0, 0.99], larger values
                    the last                   values in the last      lost, still divided by n
groove arithmetic   exact                      exact                   single precision
==================  =========================  ======================  ====================================

The official evaluation never comes to a divergence for a true middle without onset, unless the estimate has none
either: it stops in the note metrics, with an IndexError. ``official`` gives what its functions of the features give
when they are called by themselves.

References
----------
M. Araneda-Hernandez, F. Bravo-Marquez, D. Parra, R. F. Cádiz: "MUSIB: musical score inpainting benchmark", EURASIP
Journal on Audio, Speech, and Music Processing 2023:19, section "Divergence metrics"; S.-L. Wu, Y.-H. Yang: "The Jazz
Transformer on the front line", ISMIR 2020 (pitch-class entropy, grooving similarity). Official code:
github.com/maranedah/music_inpainting_benchmark, ``src/report/metrics.py`` at 567f4cc.

"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from music_evals.annotations import MUSIB_LAYOUT, Tokens
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError
from music_evals.metrics.arrays import (
    VARIANTS,
    FloatArray,
    IntArray,
    by_chunks,
    check_contexts,
    check_middles,
    check_same_count,
    check_variant,
)
from music_evals.metrics.bars import (
    BarContent,
    bar_content,
    mean_entropy_difference,
    mean_groove,
    official_entropy_difference,
    official_groove,
)
from music_evals.metrics.note_counts import count_rests

__all__ = [
    "FEATURES", "VARIANTS", "feature_rows", "groove_divergence", "groove_similarity", "histogram_bins",
    "jensen_shannon", "masses", "n_bins", "normalised_jensen_shannon", "pitch_class_divergence",
    "pitch_class_entropy_difference", "silence_divergence", "silence_rate",
]  # fmt: skip

FEATURES: Final = ("silence_divergence", "pitch_class_divergence", "groove_divergence")
"""Order of the features in the rows of `feature_rows`."""

_LOGARITHMS: Final = {"nats": 1.0, "bits": float(np.log(2))}
_EDGES = np.arange(101) / 100
# A value may lie on an edge and come out below it: middles of bars with 3, 4, 1 and 1 pitch classes give 1/4.
_ROUNDING = 1e-9
# Bins of the official histogram: it has the edges 0, 0.01, ... 0.99.
_OFFICIAL_BINS = 99

_PAST_BARS = slice(0, MUSIB_LAYOUT.past_measures)
_MIDDLE_BARS = slice(MUSIB_LAYOUT.past_measures, MUSIB_LAYOUT.past_measures + MUSIB_LAYOUT.middle_measures)
_FUTURE_BARS = slice(_MIDDLE_BARS.stop, MUSIB_LAYOUT.n_measures)


def silence_rate(middle: npt.ArrayLike) -> FloatArray:
    """Share of the steps of each middle that rest, in [0, 1]; a hold counts as sound, whatever it holds.

    Parameters
    ----------
    middle
        NoteSeq tokens, shape (n, 96), values 0..129.

    Returns
    -------
    FloatArray
        Shape (n,). "S" of MUSIB.

    Raises
    ------
    InvalidTokensError, ContextLengthError
        Input that is not middles.
    """
    rate: FloatArray = by_chunks(lambda rows: _silence(rows)[None], check_middles(middle))[0]
    return rate


def pitch_class_entropy_difference(
    contexts: npt.ArrayLike, middle: npt.ArrayLike, *, variant: str = "corrected"
) -> FloatArray:
    """Mean distance between the pitch-class entropy of a bar of the middle and of a bar of the context.

    mean over i, j of |H_i - H_j|, with H the entropy of the 12-bin histogram of a bar's onsets. In [0, 1] for
    ``corrected`` (bits / log2 12), [0, 3.585] for ``paper`` (bits), [0, 2.485] for ``official`` (nats). "H" of MUSIB.

    Parameters
    ----------
    contexts
        Whole contexts, shape (n, 384), values 0..129; only past and future are read.
    middle
        True or estimated middles, shape (n, 96).
    variant
        See the top of this module.

    Returns
    -------
    FloatArray
        Shape (n,).

    Raises
    ------
    InvalidTokensError, ContextLengthError, PairCountError, UnknownNameError
        Input that is not one middle a context, or an unknown variant.
    """
    return _feature_of("pitch_class_divergence", contexts, middle, variant)


def groove_similarity(contexts: npt.ArrayLike, middle: npt.ArrayLike, *, variant: str = "corrected") -> FloatArray:
    """Mean similarity of the onset patterns of a bar of the middle and a bar of the context.

    1 - the share of the 24 steps at which one bar has an onset and the other has none, mean over all pairs of bars. In
    [0, 1], 1 for equal rhythms. Parameters and errors are those of `pitch_class_entropy_difference`. "GS" of MUSIB.
    """
    return _feature_of("groove_divergence", contexts, middle, variant)


def silence_divergence(
    contexts: npt.ArrayLike, estimate: npt.ArrayLike, *, variant: str = "corrected", base: str | None = None
) -> float:
    """Jensen-Shannon divergence of the `silence_rate` of true and estimated middles.

    In [0, ln 2] nats or [0, 1] bits, lower is better, symmetric. 0 says that the two sets rest equally often, not that
    they rest at the same places.

    Parameters
    ----------
    contexts
        Whole contexts with the true middles, shape (n, 384), values 0..129.
    estimate
        Middles, shape (n, 96).
    variant
        See the top of this module.
    base
        ``"nats"`` (default) or ``"bits"``.

    Returns
    -------
    float
        One value for the set. It is biased upwards for small n; see `music_evals.stats.null_divergence`.

    Raises
    ------
    InvalidTokensError, ContextLengthError, PairCountError, UnknownNameError
        Input that is not one middle a context, or an unknown variant or base.
    NoDataError
        No items.
    """
    return _divergence("silence_divergence", contexts, estimate, variant, base)


def pitch_class_divergence(
    contexts: npt.ArrayLike, estimate: npt.ArrayLike, *, variant: str = "corrected", base: str | None = None
) -> float:
    """Jensen-Shannon divergence of the `pitch_class_entropy_difference` of true and estimated middles.

    In [0, ln 2] nats or [0, 1] bits, lower is better, symmetric; unchanged when all of an item is transposed.
    Parameters and errors are those of `silence_divergence`.
    """
    return _divergence("pitch_class_divergence", contexts, estimate, variant, base)


def groove_divergence(
    contexts: npt.ArrayLike, estimate: npt.ArrayLike, *, variant: str = "corrected", base: str | None = None
) -> float:
    """Jensen-Shannon divergence of the `groove_similarity` of true and estimated middles.

    In [0, ln 2] nats or [0, 1] bits, lower is better, symmetric; pitches play no part. Parameters and errors are those
    of `silence_divergence`.
    """
    return _divergence("groove_divergence", contexts, estimate, variant, base)


def _feature_of(name: str, contexts: npt.ArrayLike, middle: npt.ArrayLike, variant: str) -> FloatArray:
    check_variant(variant)
    whole, middles = check_contexts(contexts), check_middles(middle)
    check_same_count(whole, middles)
    values: FloatArray = by_chunks(lambda *rows: _one_feature(name, *rows, variant=variant)[None], whole, middles)[0]
    return values


def _one_feature(name: str, whole: Tokens, middles: Tokens, *, variant: str) -> FloatArray:
    if name == "silence_divergence":
        return _silence(middles)
    bars, middle = bar_content(whole), bar_content(middles)
    return (_entropy if name == "pitch_class_divergence" else _groove)(middle, bars, variant)


def feature_rows(contexts: Tokens, estimate: Tokens, *, variant: str = "corrected") -> FloatArray:
    """Return all features of checked tokens: the kernel of a pass over many items.

    Parameters
    ----------
    contexts, estimate
        Shapes (n, 384) and (n, 96), uint8, values 0..129; they are not checked here.

    Returns
    -------
    FloatArray
        Shape (6, n): the features in the order of `FEATURES`, each for the true middle and then for the estimate.
    """
    bars, estimated = bar_content(contexts), bar_content(estimate)
    true = bars.bars(_MIDDLE_BARS)
    return np.stack(
        [
            _silence(contexts[:, MUSIB_LAYOUT.middle]),
            _silence(estimate),
            *(_entropy(middle, bars, variant) for middle in (true, estimated)),
            *(_groove(middle, bars, variant) for middle in (true, estimated)),
        ]
    )


def _silence(middles: Tokens) -> FloatArray:
    rate: FloatArray = count_rests(middles) / middles.shape[1]
    return rate


def _entropy(middle: BarContent, bars: BarContent, variant: str) -> FloatArray:
    if variant == "official":
        return official_entropy_difference(middle, bars.bars(_PAST_BARS), bars.bars(_FUTURE_BARS))
    bits = mean_entropy_difference(middle, bars.without(_MIDDLE_BARS))
    return bits if variant == "paper" else bits / np.log2(12)


def _groove(middle: BarContent, bars: BarContent, variant: str) -> FloatArray:
    if variant == "official":
        return official_groove(middle, bars.bars(_PAST_BARS), bars.bars(_FUTURE_BARS))
    return mean_groove(middle, bars.without(_MIDDLE_BARS))


def _divergence(name: str, contexts: npt.ArrayLike, estimate: npt.ArrayLike, variant: str, base: str | None) -> float:
    check_variant(variant)
    whole, middles = check_contexts(contexts), check_middles(estimate)
    check_same_count(whole, middles)
    if not len(whole):
        raise NoDataError("a divergence needs at least one item, got none")

    def kernel(whole: Tokens, middles: Tokens) -> FloatArray:
        true = whole[:, MUSIB_LAYOUT.middle]
        return np.stack([_one_feature(name, whole, middle, variant=variant) for middle in (true, middles)])

    # one histogram of the true middles, one of the estimates
    sides = [
        masses(histogram_bins(values, variant=variant), n_bins(variant)) for values in by_chunks(kernel, whole, middles)
    ]
    return float(jensen_shannon(*sides, base=base or "nats"))


def n_bins(variant: str) -> int:
    """Return the number of bins of a variant's histogram: 100, ``official`` 99."""
    return _OFFICIAL_BINS if check_variant(variant) == "official" else len(_EDGES) - 1


def histogram_bins(values: npt.ArrayLike, *, variant: str = "corrected") -> IntArray:
    """Return the bin of each value of a feature: bin i is [i/100, (i+1)/100).

    ``corrected`` and ``paper`` close the last of 100 bins at 1 and put larger values into it; a value that rounding
    alone (1e-9) keeps below an edge is put above it. ``official`` has 99 bins, the last closed at 0.99, and discards
    larger values.

    Parameters
    ----------
    values
        Values of a feature, any shape, at least 0.

    Returns
    -------
    IntArray
        The same shape; 0..98 or -1 for ``official``, else 0..99.

    Raises
    ------
    InvalidInputError
        Negative values or NaN.
    """
    array = np.asarray(values, dtype=np.float64)
    if not (array >= 0).all():
        raise InvalidInputError("a feature's values must be numbers of at least 0, got negative ones or NaN")
    last = n_bins(variant)
    if variant == "official":
        # as `numpy.histogram`: the last bin holds its upper edge, and larger values fall out
        bins = np.searchsorted(_EDGES[: last + 1], array, side="right") - 1
        return np.where(array > _EDGES[last], -1, np.minimum(bins, last - 1))
    return np.minimum(np.searchsorted(_EDGES - _ROUNDING, array, side="right") - 1, last - 1)


def masses(bins: IntArray, size: int) -> FloatArray:
    """Return the share of items in each of `size` bins, shape (size,), from `histogram_bins` of shape (n,).

    Discarded items (-1) count in the denominator, so the shares may sum to less than 1. Of no items they are 0.
    """
    shares: FloatArray = np.bincount(bins[bins >= 0], minlength=size) / max(len(bins), 1)
    return shares


def jensen_shannon(p: npt.ArrayLike, q: npt.ArrayLike, *, base: str = "nats") -> FloatArray:
    """Jensen-Shannon divergence of two histograms.

    (KL(p, m) + KL(q, m)) / 2 with m = (p + q) / 2 and 0 log 0 = 0. In [0, ln 2] nats or [0, 1] bits for masses that sum
    to 1, 0 if and only if they are equal, symmetric. The divergence, not its square root.

    Parameters
    ----------
    p, q
        Masses, shape (..., bins), at least 0. They are not normalised: the official histograms may sum to less than 1.
    base
        ``"nats"`` or ``"bits"``.

    Returns
    -------
    FloatArray
        Shape (...).

    Raises
    ------
    UnknownNameError
        Another base.

    Examples
    --------
    >>> jensen_shannon([1, 0], [0, 1], base="bits").item()
    1.0
    """
    if base not in _LOGARITHMS:
        raise UnknownNameError("base", base, _LOGARITHMS)
    first, second = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    # p log(p / m) + q log(q / m), where m = (p + q) / 2 and 0 log 0 = 0
    both = first + second
    terms = np.zeros(np.broadcast_shapes(first.shape, second.shape))
    for side in (first, second):
        ratio = np.divide(2 * side, both, out=np.ones(terms.shape), where=(side > 0) & (both > 0))
        terms += side * np.log(ratio)
    divergence: FloatArray = np.maximum(terms.sum(axis=-1), 0) / 2 / _LOGARITHMS[base]
    return divergence


def normalised_jensen_shannon(p: npt.ArrayLike, q: npt.ArrayLike, *, base: str = "nats") -> FloatArray:
    """`jensen_shannon` of masses that are first divided by their sums.

    A side without any mass shares nothing with one that has some: the divergence takes its largest value. If neither
    side has any it is undefined, NaN.
    """
    # masses that sum to 1, where there are any
    sides = [np.asarray(side, dtype=np.float64) for side in (p, q)]
    sums = [side.sum(axis=-1, keepdims=True) for side in sides]
    first, second = (
        np.divide(side, total, out=np.zeros_like(side), where=total > 0)
        for side, total in zip(sides, sums, strict=True)
    )
    empty = np.stack([total[..., 0] <= 0 for total in sums])
    divergence = jensen_shannon(first, second, base=base)
    largest = np.log(2) / _LOGARITHMS[base]
    result: FloatArray = np.where(empty.all(axis=0), np.nan, np.where(empty.any(axis=0), largest, divergence))
    return result
