"""Do people agree with each other, and does a score agree with people? For ratings that cross items and listeners.

Ratings come from listeners who each rated some stimuli; a stimulus is the output of a system for an item.

Reliability
    `reliability.krippendorff_alpha` (1 perfect, 0 what chance gives, below 0 systematic disagreement), which takes any
    number of listeners and missing ratings; and `leave_one_out`, the mean rank correlation of a listener with the mean
    of the others, which is about what a metric could reach at best.
Agreement of a score with people
    ``stimuli``: Spearman's rank correlation with the mean rating, over stimuli. ``systems``: the same over the means of
    systems. ``preferences``: of all pairs of stimuli of one item that one listener rated differently, the share that
    the score puts in the same order, ties of the score counted half; 0.5 is chance. The last compares ratings of one
    listener on one item alone, so that neither harsh listeners nor hard items play a part.
Intervals
    Other items and other listeners would both have given other numbers. The pigeonhole bootstrap draws clusters of
    items and, by themselves, listeners, with replacement; a rating weighs as often as its item was drawn times as often
    as its listener was. It is conservative: its variance is on average that of the truth or a little more (Owen 2007).
    Systems are those at hand and are not drawn. For preferences and systems the ends are percentiles. Fewer different
    listeners make noisier means, so that correlations over stimuli are lower in draws than in the data: there the draws
    give the standard error alone, of Fisher's z, and the ends are those of Student's t about the estimate, with one
    degree of freedom less than there are clusters of items, or listeners where they are fewer.
p-values
    Two-sided. Over stimuli of the same t; for preferences twice the smaller share of the draws that lies on either side
    of one half, (1 + k) / (1 + n) at least. `multiplicity.holm` corrects them for the number of scores.

References
----------
A. B. Owen: "The pigeonhole bootstrap", Ann. Appl. Stat. 1(2), 2007.

"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, PairCountError
from music_evals.stats.clusters import Floats, check_count, check_groups, generator
from music_evals.stats.intervals import check_confidence, student

__all__ = ["LEAST_SYSTEMS", "Agreement", "Estimate", "RatingTable", "agreement", "leave_one_out"]

LEAST_SYSTEMS = 3
"""Two systems have a rank correlation of 1 or -1 whatever they do."""

_NEARLY = 1e-12
"""What is smaller is rounding, relative to 1."""

_ONE_SIGMA = (0.158655, 0.841345)
"""Shares of a normal distribution below -1 and 1."""


class Estimate(NamedTuple):
    """One kind of agreement.

    Attributes
    ----------
    estimate
        -1..1 for correlations, 0..1 for preferences; higher agrees more. NaN where it is not defined.
    low, high
        Ends of the interval; NaN with fewer than two clusters of items or two listeners.
    p_value
        Against no agreement; NaN where there is no interval, and for systems, which are too few to be tested.
    n
        Stimuli, systems or preferences.
    """

    estimate: float
    low: float
    high: float
    p_value: float
    n: int


class Agreement(NamedTuple):
    """How a score agrees with people, in three ways; see the module."""

    stimuli: Estimate
    systems: Estimate
    preferences: Estimate


class RatingTable:
    """Ratings, one a row, with what they are of.

    Parameters
    ----------
    ratings
        Shape (n,), higher is better, finite.
    stimuli
        Number of the stimulus of each rating, shape (n,), 0..n_stimuli-1.
    listeners
        Who gave it, shape (n,), whole numbers or strings.
    items, systems
        Of each stimulus, shape (n_stimuli,), whole numbers or strings.
    clusters
        Of each stimulus, shape (n_stimuli,); None where every item is a cluster of its own. Items of one song may be
        one cluster.

    Raises
    ------
    InvalidInputError
        A rating that is not finite, or a stimulus that does not exist.
    PairCountError
        Arrays of different lengths, or a listener who rated a stimulus twice.
    """

    def __init__(
        self,
        ratings: npt.ArrayLike,
        stimuli: npt.ArrayLike,
        listeners: npt.ArrayLike,
        *,
        items: npt.ArrayLike,
        systems: npt.ArrayLike,
        clusters: npt.ArrayLike | None = None,
    ) -> None:
        self.ratings = np.asarray(ratings, dtype=np.float64)
        self.stimuli = np.asarray(stimuli, dtype=np.int64)
        n_stimuli = len(np.asarray(items))
        self.listeners, self.n_listeners = check_groups(listeners, len(self.ratings))
        self.items, _ = check_groups(items, n_stimuli)
        self.systems, self.n_systems = check_groups(systems, n_stimuli)
        self.clusters, self.n_clusters = check_groups(items if clusters is None else clusters, n_stimuli)
        if self.ratings.ndim != 1 or self.stimuli.shape != self.ratings.shape:
            raise PairCountError(
                f"ratings and stimuli must be as many, got shapes {self.ratings.shape} and {self.stimuli.shape}"
            )
        if not np.isfinite(self.ratings).all():
            raise InvalidInputError("ratings must be finite; leave out what was not rated")
        if len(self.stimuli) and not 0 <= self.stimuli.min() <= self.stimuli.max() < n_stimuli:
            raise InvalidInputError(f"stimuli must lie in 0..{n_stimuli - 1}, one of `items` and `systems` each")
        keys = self.stimuli * max(self.n_listeners, 1) + self.listeners
        if len(np.unique(keys)) < len(keys):
            raise PairCountError("a listener rated a stimulus twice; keep one rating, or their mean")

    @property
    def matrix(self) -> Floats:
        """Ratings by stimulus and listener, shape (n_stimuli, n_listeners); NaN if missing."""
        ratings = np.full((len(self.items), self.n_listeners), np.nan)
        ratings[self.stimuli, self.listeners] = self.ratings
        return ratings


def leave_one_out(ratings: npt.ArrayLike) -> float:
    """Return the mean over listeners of the rank correlation of each with the mean of the others.

    Parameters
    ----------
    ratings
        Shape (n_stimuli, n_listeners); NaN where a listener did not rate.

    Returns
    -------
    float
        -1..1. NaN where no listener shares three stimuli, rated differently, with others.
    """
    table = np.asarray(ratings, dtype=np.float64)
    defined = ~np.isnan(table)
    sums, counts = np.where(defined, table, 0).sum(axis=1), defined.sum(axis=1)
    correlations = []
    for own, there in zip(table.T, defined.T, strict=True):
        shared = there & (counts > 1)
        if np.count_nonzero(shared) > 2:
            # the mean of the others: the total less their own rating, over one rating fewer
            others = (sums[shared] - own[shared]) / (counts[shared] - 1)
            correlations.append(_spearman(own[shared], others, np.ones(len(others))))
    known = [correlation for correlation in correlations if not np.isnan(correlation)]
    return float(np.mean(known)) if known else float("nan")


def agreement(
    table: RatingTable, scores: npt.ArrayLike, *, confidence: float = 0.95, n_resamples: int = 1000, seed: int = 0
) -> list[Agreement]:
    """Return how each of several scores agrees with people; see the module.

    Parameters
    ----------
    table
        The ratings.
    scores
        Of each stimulus, shape (n_stimuli, n_scores), turned so that higher is better; NaN is undefined: the stimulus
        plays no part for that score.
    confidence
        Nominal coverage of the intervals.
    n_resamples, seed
        Of the bootstrap. All scores are evaluated by the same draws.

    Returns
    -------
    list of Agreement
        One a score. The order of ratings and the names of listeners and items play no part but for what is drawn.

    Raises
    ------
    InvalidInputError
        Scores of another shape, or an option out of range.
    """
    check_confidence(confidence)
    check_count(n_resamples, "n_resamples")
    columns = np.asarray(scores, dtype=np.float64)
    if columns.ndim != 2 or len(columns) != len(table.items):
        raise InvalidInputError(f"scores must have shape ({len(table.items)}, n_scores), got {columns.shape}")
    if np.isinf(columns).any():
        raise InvalidInputError("scores must be finite or NaN, got an infinite one; a mean of it says nothing")
    draws = _Draws.of(table, n_resamples, generator(seed))
    return [_agreement(table, column, draws, confidence) for column in columns.T]


class _Draws(NamedTuple):
    """What the bootstrap drew; the first row is the data themselves."""

    items: Floats  # weight of each cluster of items, shape (draws, n_clusters)
    listeners: Floats  # shape (draws, n_listeners)
    weights: Floats  # of each stimulus, shape (draws, n_stimuli); 0 if none of its listeners was drawn
    means: Floats  # rating of each stimulus, shape (draws, n_stimuli); 0 where its weight is

    @classmethod
    def of(cls, table: RatingTable, n_resamples: int, rng: np.random.Generator) -> _Draws:
        items, listeners = (np.ones((n_resamples + 1, n)) for n in (table.n_clusters, table.n_listeners))
        # drawing n of n with replacement gives multinomial counts; row 0 stays at 1
        for counts in (items, listeners):
            n = counts.shape[1]
            if n:
                counts[1:] = rng.multinomial(n, np.full(n, 1 / n), n_resamples)
        weights, means = np.zeros((2, len(items), len(table.items)))
        # means over the listeners drawn; a stimulus weighs as often as its cluster of items was drawn
        for row, listening in enumerate(listeners):
            times = listening[table.listeners]
            totals, sums = (
                np.bincount(table.stimuli, per_rating, minlength=len(table.items))
                for per_rating in (times, times * table.ratings)
            )
            np.divide(sums, totals, out=means[row], where=totals > 0)
            weights[row] = np.where(totals > 0, items[row][table.clusters], 0)
        return cls(items, listeners, weights, means)


def _agreement(table: RatingTable, score: Floats, draws: _Draws, confidence: float) -> Agreement:
    defined = ~np.isnan(score)
    known = np.where(defined, score, 0.0)
    may_vary = table.n_clusters > 1 and table.n_listeners > 1
    rows = slice(None) if may_vary else slice(0, 1)
    resampled = _Draws(*(part[rows] for part in draws))._replace(weights=draws.weights[rows] * defined)
    rated = draws.weights[0] * defined > 0
    n_systems = len(np.unique(table.systems[rated]))

    # over stimuli the draws give the standard error of Fisher's z alone
    stimuli = np.array([_spearman(known, *draw) for draw in zip(resampled.means, resampled.weights, strict=True)])
    least = min(table.n_clusters, table.n_listeners)
    first = _by_fisher(stimuli, least - 1, int(np.count_nonzero(rated)), confidence)

    of_systems = np.eye(table.n_systems)[table.systems]  # shape (n_stimuli, n_systems)
    totals, scored, rating_sums = (
        (resampled.weights * factor) @ of_systems for factor in (np.ones(len(known)), known[None], resampled.means)
    )
    systems = np.array([_of_systems(*draw) for draw in zip(totals, scored, rating_sums, strict=True)])
    second = _by_percentiles(systems, 0.0, n_systems, confidence)._replace(p_value=float("nan"))

    # a cell of cluster and listener weighs how often the one was drawn times how often the other was
    pairs = _Preferences.of(table, score)
    won, held = (
        np.einsum("ri,ij,rj->r", resampled.items, cells, resampled.listeners, optimize=True) for cells in pairs[:2]
    )
    shares = np.divide(won, held, out=np.full(len(held), np.nan), where=held > 0.5)
    return Agreement(first, second, _by_percentiles(shares, 0.5, pairs.n, confidence))


def _by_percentiles(draws: Floats, nothing: float, n: int, confidence: float) -> Estimate:
    """Return the value of the first draw, with the percentiles of the others."""
    estimate, known = float(draws[0]), draws[1:][~np.isnan(draws[1:])]
    if np.isnan(estimate) or not len(known):
        return Estimate(estimate, float("nan"), float("nan"), float("nan"), n)
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    # two-sided: twice (1 + k) / (1 + n), with k the draws on the rarer side
    smaller = int(min(np.count_nonzero(known <= nothing), np.count_nonzero(known >= nothing)))
    return Estimate(estimate, float(low), float(high), min(1.0, 2 * (1 + smaller) / (1 + len(known))), n)


def _by_fisher(draws: Floats, df: int, n: int, confidence: float) -> Estimate:
    """Return the value of the first draw, with an interval of Student's t on the scale of Fisher's z."""
    from scipy.special import stdtr

    z = np.arctanh(np.clip(draws, -1 + _NEARLY, 1 - _NEARLY))
    # half the width of the middle 68 %: a draw of few different stimuli may have a correlation of 1, far out
    known = z[1:][~np.isnan(z[1:])]
    error = float(np.diff(np.quantile(known, _ONE_SIGMA))[0] / 2) if len(known) else 0.0
    if np.isnan(z[0]) or not error > 0:
        return Estimate(float(draws[0]), float("nan"), float("nan"), float("nan"), n)
    reach = float(student(df, confidence)) * error
    p_value = 2 * float(stdtr(df, -abs(z[0]) / error))
    return Estimate(float(draws[0]), float(np.tanh(z[0] - reach)), float(np.tanh(z[0] + reach)), p_value, n)


def _of_systems(totals: Floats, scores: Floats, ratings: Floats) -> float:
    """Return the rank correlation of the means of systems, from weights and weighted sums, shape (n_systems,)."""
    there = totals > 0
    if np.count_nonzero(there) < LEAST_SYSTEMS:
        return float("nan")
    # means that differ by rounding alone are ties
    first, second = (np.round(column[there] / totals[there], 12) for column in (scores, ratings))
    return _spearman(first, second, np.ones(len(first)))


def _spearman(first: Floats, second: Floats, weights: Floats) -> float:
    """Return the rank correlation of weighted values; those of weight 0 play no part. NaN where a side is constant."""
    total = weights.sum()
    if not total > 0:
        return float("nan")
    x, y = (_ranks(values, weights) for values in (first, second))
    x, y = (ranks - weights @ ranks / total for ranks in (x, y))
    # ranks reach up to `total`, so that a sum of squares is of the order of its third power
    size = np.sqrt((weights @ x**2) * (weights @ y**2))
    return float(np.clip((weights * x) @ y / size, -1, 1)) if size > _NEARLY * total**3 else float("nan")


def _ranks(values: Floats, weights: Floats) -> Floats:
    """Return mid-ranks of values that each stand there as often as they weigh."""
    _, codes = np.unique(values, return_inverse=True)
    totals = np.bincount(codes, weights)
    # mid-rank of equal values: all weight below them, and half of their own
    ranks: Floats = (np.cumsum(totals) - totals / 2)[codes]
    return ranks


class _Preferences(NamedTuple):
    """Preferences by cluster of items and listener, shape (n_clusters, n_listeners) each."""

    won: Floats
    """How many the score shares."""
    held: Floats
    n: int

    @classmethod
    def of(cls, table: RatingTable, score: Floats) -> _Preferences:
        won, held = np.zeros((2, table.n_clusters, table.n_listeners))
        keys = table.items[table.stimuli] * max(table.n_listeners, 1) + table.listeners
        order = np.argsort(keys, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
            known = rows[~np.isnan(score[table.stimuli[rows]])]
            ratings, values = table.ratings[known], score[table.stimuli[known]]
            # all pairs of stimuli of one item that one listener rated
            upper = np.triu_indices(len(known), 1)
            liked, put = (np.sign(column[upper[0]] - column[upper[1]]) for column in (ratings, values))
            chosen = liked != 0
            if chosen.any():
                place = table.clusters[table.stimuli[known[0]]], table.listeners[known[0]]
                # 1 in the same order, 0 in the other, 1/2 where the score ties
                won[place] += ((1 + liked * put) / 2)[chosen].sum()
                held[place] += np.count_nonzero(chosen)
        return cls(won, held, int(held.sum()))
