"""The intervals that the one of the library is compared with.

All take sums and numbers of items of clusters, shape (clusters, samples), and return the ends, shape (samples,) each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import scipy.stats
from benchmarks.interval_coverage.worlds import World

from music_evals.stats.intervals import Range, interval_of_totals, weights_of_clusters

Floats = npt.NDArray[np.float64]
Ends = tuple[Floats, Floats]

N_RESAMPLES = 499
BLOCK = 50
"""Samples that share one draw of resamples, as scores of one run do."""
TAIL = 0.025
NORMAL = float(scipy.stats.norm.ppf(1 - TAIL))


def chosen(
    sums: Floats,
    counts: Floats,
    confidence: float = 1 - 2 * TAIL,
    *,
    span: Range = (-np.inf, np.inf),
    unseen: Range | None = None,
) -> Ends:
    """Return the interval of the library."""
    low, high, _ = interval_of_totals(sums, counts, confidence, unseen=unseen)
    return np.maximum(low, span[0]), np.minimum(high, span[1])


def _parts(sums: Floats, counts: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the mean, the share of each cluster and its residual."""
    total = counts.sum(axis=0)
    mean = sums.sum(axis=0) / total
    return mean, counts / total, (sums - mean * counts) / total


def _around(mean: Floats, variance: Floats, df: npt.ArrayLike) -> Ends:
    reach = scipy.stats.t.ppf(1 - TAIL, df) * np.sqrt(variance)
    return mean - reach, mean + reach


def cr1(sums: Floats, counts: Floats) -> Ends:
    """Return the sandwich with the factor c / (c - 1), and c - 1 degrees of freedom."""
    mean, _, residuals = _parts(sums, counts)
    n = len(sums)
    return _around(mean, n / (n - 1) * (residuals**2).sum(axis=0), n - 1)


def cr2(sums: Floats, counts: Floats) -> Ends:
    """Return the sandwich of Bell and McCaffrey with Satterthwaite's degrees of freedom, items independent."""
    # The working model has independent items of one variance. With X a column of ones, (I - H_gg)^(-1/2) leaves the
    # direction of ones and multiplies it by (1 - w)^(-1/2); the traces of the quadratic form then add up as below.
    mean, weights, residuals = _parts(sums, counts)
    leverage = weights**2 / (1 - weights)
    pairs = leverage.sum(axis=0) ** 2 - (leverage**2).sum(axis=0)
    df = 1 / ((weights**2).sum(axis=0) + pairs)
    return _around(mean, (residuals**2 / (1 - weights)).sum(axis=0), df)


def _of_means(sums: Floats, counts: Floats) -> tuple[Floats, Floats, Floats]:
    """Return mean, variance and degrees of freedom of the library's interval, before the skewness is taken away."""
    mean, weights, residuals = _parts(sums, counts)
    factors = 1 / (1 - 2 * weights + (weights**2).sum(axis=0))
    return mean, (factors * residuals**2).sum(axis=0), weights_of_clusters(counts)[-1]


def unskewed_not(sums: Floats, counts: Floats) -> Ends:
    """Return the library's interval without its correction of skewness."""
    return _around(*_of_means(sums, counts))


def logit(sums: Floats, counts: Floats) -> Ends:
    """Return the same on the scale of the logit, by the delta method; for scores from 0 to 1."""
    mean, variance, df = _of_means(sums, counts)
    low, high = _around(np.log(mean / (1 - mean)), variance / (mean * (1 - mean)) ** 2, df)
    return 1 / (1 + np.exp(-low)), 1 / (1 + np.exp(-high))


def _drawn(sums: Floats, rng: np.random.Generator) -> Iterator[tuple[slice, Floats]]:
    """Yield samples, and how often each cluster is drawn in each resample, shape (resamples, clusters)."""
    n = len(sums)
    for start in range(0, sums.shape[1], BLOCK):
        drawn = rng.multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES).astype(np.float64)
        yield slice(start, start + BLOCK), drawn


def percentile(sums: Floats, counts: Floats, rng: np.random.Generator) -> Ends:
    """Return the middle of the resampled means."""
    ends = []
    for part, drawn in _drawn(sums, rng):
        means = (drawn @ sums[:, part]) / (drawn @ counts[:, part])
        ends.append(np.quantile(means, [TAIL, 1 - TAIL], axis=0))
    low, high = np.concatenate(ends, axis=1)
    return low, high


def bca(sums: Floats, counts: Floats, rng: np.random.Generator) -> Ends:
    """Return the percentile interval, corrected for bias and acceleration (Efron 1987)."""
    ends = []
    for part, drawn in _drawn(sums, rng):
        s, m = sums[:, part], counts[:, part]
        mean = s.sum(axis=0) / m.sum(axis=0)
        means = np.sort((drawn @ s) / (drawn @ m), axis=0)
        below = np.clip((means < mean).mean(axis=0), 1 / (N_RESAMPLES + 1), N_RESAMPLES / (N_RESAMPLES + 1))
        bias = scipy.stats.norm.ppf(below)
        left_out = (s.sum(axis=0) - s) / (m.sum(axis=0) - m)
        gaps = left_out.mean(axis=0) - left_out
        acceleration = (gaps**3).sum(axis=0) / (6 * (gaps**2).sum(axis=0) ** 1.5)
        places = []
        for z in (-NORMAL, NORMAL):
            level = scipy.stats.norm.cdf(bias + (bias + z) / (1 - acceleration * (bias + z)))
            places.append(np.clip(np.round(level * (N_RESAMPLES - 1)).astype(int), 0, N_RESAMPLES - 1))
        ends.append([means[place, np.arange(means.shape[1])] for place in places])
    low, high = np.concatenate(ends, axis=1)
    return low, high


def studentised(sums: Floats, counts: Floats, rng: np.random.Generator) -> Ends:
    """Return the bootstrap-t: quantiles of (resampled mean - mean) over its own standard error."""
    ends = []
    for part, drawn in _drawn(sums, rng):
        s, m = sums[:, part], counts[:, part]
        mean, _, residuals = _parts(s, m)
        n_items = drawn @ m
        means = (drawn @ s) / n_items
        squares = drawn @ s**2 - 2 * means * (drawn @ (s * m)) + means**2 * (drawn @ m**2)
        with np.errstate(divide="ignore", invalid="ignore"):  # a resample of one cluster alone has no error
            t = (means - mean) / (np.sqrt(np.maximum(squares, 0)) / n_items)
        quantiles = np.nanquantile(np.where(np.isfinite(t), t, np.nan), [1 - TAIL, TAIL], axis=0)
        ends.append(mean - quantiles * np.sqrt((residuals**2).sum(axis=0)))
    low, high = np.concatenate(ends, axis=1)
    return low, high


def learned_miller_thomas(sums: Floats, counts: Floats, rng: np.random.Generator, unseen: Range) -> Ends:
    """Return the interval of Learned-Miller and Thomas (2019) for independent values in a range, each a cluster's mean.

    It is thought to hold for every law; each end takes half of the risk.
    """
    means, n = np.sort(sums / counts, axis=0), len(sums)
    levels = np.sort(rng.random((N_RESAMPLES, n)), axis=1)
    ends = []
    for values, bound in ((means, unseen[1]), (-means[::-1], -unseen[0])):
        gaps = np.diff(np.concatenate([values, np.full((1, values.shape[1]), bound)]), axis=0)
        ends.append(bound - np.quantile(levels @ gaps, TAIL, axis=0))
    return -ends[1], ends[0]


def betting(sums: Floats, counts: Floats, unseen: Range) -> Ends:
    """Return the interval of Waudby-Smith and Ramdas (2024), by hedged capital, for values in a range.

    It holds for every law. Clusters' means are taken as they come; their bets are the predictable plug-in of the paper.
    """
    low, width = unseen[0], unseen[1] - unseen[0]
    values = np.clip((sums / counts - low) / width, 0, 1)
    n, alpha = len(values), 2 * TAIL
    times = np.arange(1, n + 1)[:, None]
    running = (0.5 + np.cumsum(values, axis=0)) / (times + 1)
    variance = (0.25 + np.cumsum((values - running) ** 2, axis=0)) / (times + 1)
    before = np.concatenate([np.full((1, values.shape[1]), 0.25), variance[:-1]])
    bets = np.sqrt(2 * np.log(2 / alpha) / (n * before))
    grid = np.linspace(0, 1, 201)
    held = np.zeros((len(grid), values.shape[1]), dtype=bool)
    for place, mean in enumerate(np.clip(grid, 1e-6, 1 - 1e-6)):
        up = np.log1p(np.minimum(bets, 0.5 / mean) * (values - mean)).sum(axis=0)
        down = np.log1p(-np.minimum(bets, 0.5 / (1 - mean)) * (values - mean)).sum(axis=0)
        held[place] = np.maximum(up, down) < np.log(2 / alpha)
    step = grid[1]
    first, last = held.argmax(axis=0), len(grid) - 1 - held[::-1].argmax(axis=0)
    return low + width * np.maximum(grid[first] - step, 0), low + width * np.minimum(grid[last] + step, 1)


def estimators(rng: np.random.Generator, world: World) -> dict[str, Callable[..., Ends]]:
    """Return what is compared in a world, by name."""
    if world.unseen is not None:
        return _of_rare_errors(rng, world)
    drawn = {
        "percentile": functools.partial(percentile, rng=rng),
        "BCa": functools.partial(bca, rng=rng),
        "studentised": functools.partial(studentised, rng=rng),
    }
    exact = {"CR1, t(c-1)": cr1, "CR2, Satterthwaite": cr2, "not unskewed": unskewed_not}
    of_bounded = {"logit": logit, "with unseen": functools.partial(chosen, span=(0.0, 1.0), unseen=(0.0, 1.0))}
    return drawn | exact | (of_bounded if world.bounded else {}) | {"chosen": chosen}


def _of_rare_errors(rng: np.random.Generator, world: World) -> dict[str, Callable[..., Ends]]:
    assert world.unseen is not None
    found: dict[str, Callable[..., Ends]] = {"spread alone": functools.partial(chosen, span=world.span)}
    if world.sizes == "equal":  # what holds for every law knows no sizes
        found["Learned-Miller, Thomas"] = functools.partial(learned_miller_thomas, rng=rng, unseen=world.unseen)
        found["betting"] = functools.partial(betting, unseen=world.unseen)
    return found | {"chosen": functools.partial(chosen, span=world.span, unseen=world.unseen)}
