"""Signs of clusters that are flipped: p-values of a total, of one pair of systems or of many over the same items."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from music_evals.stats.clusters import Floats, Integers, generator, random_bytes

EXACT_MEAN_CLUSTERS = 20
"""Up to here all 2^(c-1) sign patterns of sums are listed: half a million numbers, some milliseconds."""

QUICK_MEAN_CLUSTERS = 14
"""The same where there are very many tests."""

MOST_BYTES = 1 << 25
"""Of signs that are drawn at once: those of 10,000 resamples of 20,000 clusters."""

TIE_TOLERANCE = 1e-10
"""Statistics that differ by less, relative to their scale, differ by rounding and are counted as equal."""

_TILE = 128

_AT_ONCE = 13  # clusters whose swaps are listed together: at most 8192 numbers a system

_FEW = 1e-4
"""Pairs whose clusters differ by less, relative to their sums, are swapped as they are: rounding could make ties."""


class SignFlips:
    """Independent fair signs of clusters, drawn once for all tests of as many clusters."""

    def __init__(self, n_resamples: int, seed: int, *, quick: bool = False) -> None:
        self._n_resamples, self._seed, self._quick = n_resamples, seed, quick
        self._exact = QUICK_MEAN_CLUSTERS if quick else EXACT_MEAN_CLUSTERS
        self._cached_block: npt.NDArray[np.uint8] | None = None

    def p_value(self, sums: Floats) -> float:
        """Two-sided p-value of the total of `sums`, shape (clusters,)."""
        # a cluster of sum 0 is the same under both signs: without it more tests are exact
        sums = sums if self._quick else sums[sums != 0]
        total = float(sums.sum())
        least = abs(total) - TIE_TOLERANCE * float(np.abs(sums).sum())
        if len(sums) <= self._exact:
            return float(np.mean(np.abs(_all_totals(sums[None])[0]) >= least))
        extreme = 0
        for block in self._blocks(len(sums)):
            extreme += int(np.count_nonzero(np.abs(_totals(sums, block)) >= least))
        return (1 + extreme) / (1 + self._n_resamples)

    def p_values(self, of_systems: Floats, of_pairs: Floats, pairs: Integers) -> Floats:
        """Two-sided p-values of pairs, from the sums of clusters of systems and of pairs, shape (.., clusters)."""
        n_clusters = of_systems.shape[1]
        is_exact = n_clusters <= self._exact
        sizes = np.abs(of_pairs).sum(axis=1)
        least = np.abs(of_pairs.sum(axis=1)) - TIE_TOLERANCE * sizes
        alone = sizes < _FEW * np.abs(of_systems).sum(axis=1)[pairs].sum(axis=1)
        if not (is_exact or self._quick):  # clusters that do not differ get no sign: the others have other ones
            alone |= (of_pairs == 0).any(axis=1)
        extreme, n = np.zeros(len(pairs), dtype=np.int64), 0
        together = np.flatnonzero(~alone)
        for totals in self._totals_of_systems(of_systems) if len(together) else ():
            n += totals.shape[1]
            room, is_extreme = np.empty(totals.shape[1]), np.empty(totals.shape[1], dtype=bool)
            # flipping is linear: the total of a pair is the difference of those of its two systems
            for pair in together:
                np.subtract(totals[pairs[pair, 0]], totals[pairs[pair, 1]], out=room)
                np.greater_equal(np.abs(room, out=room), least[pair], out=is_extreme)
                extreme[pair] += np.count_nonzero(is_extreme)
        p_values = extreme / max(n, 1) if is_exact else (1 + extreme) / (1 + self._n_resamples)
        for pair in np.flatnonzero(alone):
            p_values[pair] = self.p_value(of_pairs[pair])
        return p_values

    def _totals_of_systems(self, sums: Floats) -> Iterator[Floats]:
        """Yield the totals of systems under swaps, shape (systems, swaps), a part of the swaps at a time."""
        if sums.shape[1] <= self._exact:
            # each choice of signs of the clusters before the last 13, with all signs of these
            for start in _all_totals(sums[:, :-_AT_ONCE]).T if sums.shape[1] > _AT_ONCE else [None]:
                tail = sums[:, -_AT_ONCE:]
                yield _all_totals(tail if start is None else np.column_stack([start, tail]))
            return
        for block in self._blocks(sums.shape[1]):
            for start in range(0, block.shape[1], 1 << _AT_ONCE):
                signs = np.ascontiguousarray(block[:, start : start + (1 << _AT_ONCE)])
                yield np.array([_totals(row, signs) for row in sums])

    def _blocks(self, n_clusters: int) -> Iterator[npt.NDArray[np.uint8]]:
        """Yield signs, eight clusters a byte, shape (bytes, resamples)."""
        # they are drawn 64 at a time: tests of about as many clusters have the same ones
        n_bytes, n_block_bytes = -(-n_clusters // 8), 8 * -(-n_clusters // 64)
        if self._cached_block is not None and len(self._cached_block) == n_block_bytes:
            yield self._cached_block[:n_bytes]
            return
        rng = generator(self._seed)
        most = max(1, MOST_BYTES // n_block_bytes)
        for start in range(0, self._n_resamples, most):
            rows = min(most, self._n_resamples - start)
            signs = random_bytes(rng, rows, 8 * n_block_bytes)
            block = np.empty((n_block_bytes, rows), dtype=np.uint8)
            for first in range(0, rows, _TILE):  # turned in pieces that fit into the cache of a processor
                block[:, first : first + _TILE] = signs[first : first + _TILE].T
            if rows == self._n_resamples:
                self._cached_block = block
            yield block[:n_bytes]


def _all_totals(sums: Floats) -> Floats:
    """Return the totals of each row under all signs, shape (rows, swaps)."""
    # Flipping every sign only flips the total's, so the first sign may stay as it is.
    totals: Floats = sums[:, :1].sum(axis=1, keepdims=True)
    for values in sums[:, 1:].T:
        totals = np.concatenate([totals + values[:, None], totals - values[:, None]], axis=1)
    return totals


def _totals(sums: Floats, block: npt.NDArray[np.uint8]) -> Floats:
    """Return the total of sums, shape (clusters,), under signs, eight clusters a byte, shape (bytes, swaps)."""
    # what each of the 256 values of a byte adds: eight clusters are looked up at once
    padded = np.zeros(8 * len(block))
    padded[: len(sums)] = sums
    unflipped = np.zeros(block.shape[1])  # the sum of the clusters that keep their sign
    for signs, values in zip(block, padded.reshape(-1, 8) @ _BITS_OF_BYTES.T, strict=True):
        unflipped += values[signs]
    # unflipped sums count +1, all others -1
    totals: Floats = 2 * unflipped - sums.sum()
    return totals


_BITS_OF_BYTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64)
