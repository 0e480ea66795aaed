"""Items, clusters and histograms: the arithmetic that intervals and permutation tests share.

Everything random is drawn row by row from one generator, in blocks that bound the memory; the block size does not
change what is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.errors import InvalidInputError, PairCountError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

Divergence = Callable[[Floats, Floats], Floats]
"""Two arrays of masses, shape (rows, n_bins), to one value a row, shape (rows,)."""

BLOCK_ENTRIES = 1 << 20
"""Numbers drawn at once: 8 MB, so that a block stays near the processor."""


class BinPairs(NamedTuple):
    """Two bins for each item, and the cluster of the item; bin `n_bins` holds the discarded values."""

    first: Integers  # bins, shape (n,), 0..n_bins
    second: Integers
    codes: Integers  # cluster of each item, shape (n,), 0..n_clusters-1
    n_clusters: int  # how many there are of each
    n_bins: int

    @property
    def histograms(self) -> tuple[Floats, Floats]:
        """Items per bin, shape (1, n_bins + 1) each."""
        first, second = (np.bincount(bins, minlength=self.n_bins + 1) for bins in (self.first, self.second))
        return first.astype(np.float64)[None], second.astype(np.float64)[None]


def check_groups(groups: npt.ArrayLike | None, n_items: int) -> tuple[Integers, int]:
    """Return clusters numbered in the order of their sorted labels, so that item order plays no part."""
    if groups is None:
        return np.arange(n_items), n_items
    labels = np.asarray(groups)
    if labels.shape != (n_items,):
        raise PairCountError(f"groups must hold one label per item, shape ({n_items},), got {labels.shape}")
    if labels.dtype.kind in "biu":
        names, codes = np.unique(labels, return_inverse=True)
        return codes.astype(np.int64, copy=False), len(names)
    # A dictionary numbers many repeated strings some ten times faster than sorting them all does.
    items: list[Any] = labels.tolist()
    distinct = set(items)
    if not all(isinstance(name, str) for name in distinct):
        raise InvalidInputError(
            f"groups must be whole numbers or strings, got {labels.dtype}; give each source a name or a number"
        )
    index = {name: code for code, name in enumerate(sorted(distinct))}
    return np.fromiter((index[name] for name in items), np.int64, n_items), len(index)


def check_bins(bins: npt.ArrayLike, n_bins: int, name: str) -> Integers:
    """Return the bin of each item, shape (n,), with -1 (discarded) moved to an extra bin `n_bins`."""
    array = np.asarray(bins)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidInputError(f"{name} must be whole numbers of shape (n,), got {array.dtype} of shape {array.shape}")
    if array.size and (array.min() < -1 or array.max() >= n_bins):
        raise InvalidInputError(
            f"{name} must lie in -1..{n_bins - 1} (-1 = discarded), got {array.min()}..{array.max()}"
        )
    moved: Integers = np.where(array < 0, n_bins, array).astype(np.int64)
    return moved


def check_count(value: int, name: str, *, least: int = 1) -> None:
    """Hold a number of resamples or bins, or a seed, to a whole number from `least` on."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidInputError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise InvalidInputError(f"{name} must be at least {least}, got {value}")


def generator(seed: int) -> np.random.Generator:
    """Return the generator that everything random of one call is drawn from."""
    check_count(seed, "seed", least=0)
    return np.random.default_rng(seed)


def blocks(total: int, width: int) -> Iterator[int]:
    """Cut `total` rows of `width` numbers into blocks of bounded size; yields the rows of each."""
    rows = max(1, BLOCK_ENTRIES // max(width, 1))
    for start in range(0, total, rows):
        yield min(rows, total - start)


def random_bits(rng: np.random.Generator, rows: int, columns: int) -> npt.NDArray[np.uint8]:
    """Draw fair bits, shape (rows, columns)."""
    return np.unpackbits(random_bytes(rng, rows, columns), axis=1, count=columns)


def random_bytes(rng: np.random.Generator, rows: int, columns: int) -> npt.NDArray[np.uint8]:
    """Draw what `random_bits` draws, eight columns a byte; the bits after the last column are to be ignored."""
    words = rng.integers(0, np.iinfo(np.uint64).max, size=(rows, -(-columns // 64)), dtype=np.uint64, endpoint=True)
    return words.view(np.uint8)[:, : -(-columns // 8)]


def bin_counts(bins: Integers, units: Integers, values: npt.ArrayLike, shape: tuple[int, int]) -> Any:
    """Return the sparse matrix (bins, units) that turns weights of units into a histogram; equal places add up."""
    from scipy import sparse

    return sparse.csr_array((np.broadcast_to(np.asarray(values, dtype=np.float64), bins.shape), (bins, units)), shape)


def evaluate(divergence: Divergence, reference: Floats, estimate: Floats, n_items: npt.ArrayLike) -> Floats:
    """Apply `divergence` to counts (rows, n_bins + 1) over `n_items`, without the bin of discarded values."""
    total = np.reshape(np.asarray(n_items, dtype=np.float64), (-1, 1))
    values = np.asarray(divergence(reference[:, :-1] / total, estimate[:, :-1] / total), dtype=np.float64)
    if values.shape != (len(reference),):
        raise InvalidInputError(
            f"divergence must give one value a row, shape ({len(reference)},), got {values.shape}: reduce the last axis"
        )
    return values


def swap_items(pairs: BinPairs, n_permutations: int, rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
    """Swap the two bins of each item with probability 1/2; yield both histograms, shape (rows, n_bins + 1)."""
    # Items with the same two bins are alike, and how many of c such items are swapped is binomial(c, 1/2). So the cost
    # goes with the number of different pairs of bins, not with the number of items, and the law is the same.
    low, high = np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)
    differ = low != high
    size = pairs.n_bins + 1
    # one number for each unordered pair of bins
    kinds, counts = np.unique(low[differ] * size + high[differ], return_counts=True)
    sorted_pairs = pairs._replace(first=low, second=high)
    moves = swap_moves(kinds // size, kinds % size, np.arange(len(kinds)), (size, len(kinds)))
    for rows in blocks(n_permutations, max(len(kinds), size)):
        yield move(sorted_pairs, moves, rng.binomial(counts, 0.5, size=(rows, len(kinds))))


def swap_units(pairs: BinPairs, n_permutations: int, rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
    """Do as `swap_items`, but swap all items of a cluster together."""
    size = pairs.n_bins + 1
    moves = swap_moves(pairs.first, pairs.second, pairs.codes, (size, pairs.n_clusters))
    for rows in blocks(n_permutations, max(pairs.n_clusters, size)):
        yield move(pairs, moves, random_bits(rng, rows, pairs.n_clusters))


def swap_moves(first: Integers, second: Integers, units: Integers, shape: tuple[int, int]) -> Any:
    """Return the sparse matrix (bins, units): what swapping a unit adds to the first histogram."""
    return bin_counts(second, units, 1, shape) - bin_counts(first, units, 1, shape)


def move(pairs: BinPairs, moves: Any, swaps: npt.NDArray[Any]) -> tuple[Floats, Floats]:
    """Return both histograms, shape (rows, n_bins + 1), after swaps, shape (rows, units): how much of each unit."""
    first, second = pairs.histograms
    moved = (moves @ np.ascontiguousarray(swaps.T, dtype=np.float64)).T
    # what the first side gains the second loses
    return first + moved, second - moved
