"""Dynamic time warping along anti-diagonals, in numpy.

All cells of one anti-diagonal depend on the two before only, so each is one vector operation. Costs are made a block of
anti-diagonals at a time and never kept: memory grows with the length of the sequences, not with its square, except for
one byte a cell where the path itself is asked for.

Steps are (1, 1), (0, 1) and (1, 0) without weights, from the first pair of frames to the last.

References
----------
M. Müller: "Fundamentals of music processing", Springer 2015, section 3.2.

"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Frames = npt.NDArray[np.floating[Any]]

# Anti-diagonals whose costs are made at once, and rows of one tile of them: 256 x 7752 costs are 16 MB.
_BLOCK: Final = 256
_TILE: Final = 64

_STEPS: Final = ((1, 1), (0, 1), (1, 0))


def alignment_cost(
    reference: Frames, estimate: Frames, *, metric: str = "sqeuclidean", band: float | None = None
) -> tuple[float, int]:
    """Return the total cost of the cheapest alignment and the number of pairs on it."""
    # Where several alignments cost the same, the shortest counts: the result does not depend on an order of steps, and
    # is the same when the two sequences change places. Cost and length are the parts of one complex number, of which
    # numpy compares the real parts first, and the imaginary ones where those are equal.
    n, m = len(reference), len(estimate)
    outside = _Band(n, m, band) if band is not None else None
    # each pair adds its cost to the real part and 1, the length, to the imaginary one
    step = np.full(n, 1j)
    # of anti-diagonals d, d - 1 and d - 2, row i at i + 1
    now, before, earlier = (np.full(n + 1, np.inf, np.complex128) for _ in range(3))
    for d, (first, costs) in enumerate(_anti_diagonals(reference, estimate, metric)):
        last = first + len(costs)
        here, above = slice(first + 1, last + 1), slice(first, last)
        best = now[here]
        if d == 0:
            best[:] = 0
        else:
            # into (i, j) from (i - 1, j - 1) two anti-diagonals before, from (i, j - 1) and (i - 1, j) one before
            np.minimum(earlier[above], before[here], out=best)
            np.minimum(best, before[above], out=best)
        step.real[: len(costs)] = costs
        best += step[: len(costs)]
        if outside is not None:
            best[outside(d, first, last)] = np.inf
        now, before, earlier = earlier, now, before
    return float(before[n].real), int(before[n].imag)


def warping_path(reference: Frames, estimate: Frames, *, metric: str) -> npt.NDArray[np.int64]:
    """Return the cheapest path as `librosa.sequence.dtw` finds it, from the first pair to the last."""
    # Where several steps into a cell cost the same after adding the cell's own cost, (1, 1) comes before (0, 1) before
    # (1, 0), as there. One byte a cell is kept: 60 MB for two times 3 minutes of 43 frames a second.
    n, m = len(reference), len(estimate)
    steps = np.zeros(n * m, dtype=np.uint8)  # one anti-diagonal after the other
    starts = np.zeros(n + m, dtype=np.int64)
    cost = [np.full(n + 1, np.inf) for _ in range(3)]
    for d, (first, costs) in enumerate(_anti_diagonals(reference, estimate, metric)):
        last = first + len(costs)
        here, above = slice(first + 1, last + 1), slice(first, last)
        starts[d + 1] = starts[d] + len(costs)
        if d == 0:
            cost[0][here] = costs
        else:
            diagonal, right, down = cost[2][above] + costs, cost[1][here] + costs, cost[1][above] + costs
            step = steps[starts[d] : starts[d + 1]]
            # 0 diagonal, 1 right, 2 down; a later one only where it is cheaper
            np.less(right, diagonal, out=step.view(np.bool_))
            best = np.minimum(diagonal, right)
            np.copyto(step, 2, where=down < best)
            np.minimum(best, down, out=cost[0][here])
        cost = [cost[2], cost[0], cost[1]]
    i, j = n - 1, m - 1
    path = [(i, j)]
    while i or j:
        # the place of row i in anti-diagonal i + j, whose first row is max(0, i + j - m + 1)
        back = _STEPS[steps[starts[i + j] + i - max(0, i + j - m + 1)]]
        i, j = i - back[0], j - back[1]
        path.append((i, j))
    return np.array(path[::-1], dtype=np.int64)


def silence_apart(reference: Frames, estimate: Frames) -> tuple[Frames, Frames]:
    """Return frames with two columns more, so that the cosine distance of an all-zero frame to any other is 1."""
    first, second = (~frames.any(axis=1, keepdims=True) for frames in (reference, estimate))
    return np.hstack([reference, first, np.zeros_like(first)]), np.hstack([estimate, np.zeros_like(second), second])


def path_costs(reference: Frames, estimate: Frames, path: npt.NDArray[np.int64], *, metric: str) -> FloatArray:
    """Return the cost of each pair of a path, shape (length,), equal to the last bit to those that led to it."""
    from scipy.spatial.distance import cdist

    costs = np.empty(len(path))
    # a path never goes back, so that a stretch of it lies within a small tile of the costs
    for start in range(0, len(path), _TILE):
        i, j = path[start : start + _TILE].T
        tile = cdist(reference[i[0] : i[-1] + 1], estimate[j[0] : j[-1] + 1], metric)
        costs[start : start + _TILE] = tile[i - i[0], j - j[0]]
    return costs


def _anti_diagonals(reference: Frames, estimate: Frames, metric: str) -> Iterator[tuple[int, FloatArray]]:
    """Yield the first row i of each anti-diagonal i + j = 0, 1, ... and its costs by increasing i."""
    from scipy.spatial.distance import cdist

    n, m = len(reference), len(estimate)
    pad = _BLOCK + _TILE  # so that a tile never ends outside; what it reads there is not used
    padded = np.zeros((m + 2 * pad, estimate.shape[1]), dtype=estimate.dtype)
    padded[pad : pad + m] = estimate
    for start in range(0, n + m - 1, _BLOCK):
        top, bottom = max(0, start - m + 1), min(n, start + _BLOCK)
        block = np.empty((_BLOCK, bottom - top))
        for row in range(top, bottom, _TILE):
            rows = min(_TILE, bottom - row)
            column = start - (row + rows - 1) + pad
            tile = cdist(reference[row : row + rows], padded[column : column + rows + _BLOCK - 1], metric)
            # row r of the tile meets anti-diagonal start + k in column k + rows - 1 - r
            skewed = np.lib.stride_tricks.as_strided(
                tile[:, rows - 1 :], (rows, _BLOCK), (tile.strides[0] - tile.strides[1], tile.strides[1])
            )
            block[:, row - top : row - top + rows] = skewed.T
        for k, costs in enumerate(block[: n + m - 1 - start]):
            d = start + k
            first, last = max(0, d - m + 1), min(n, d + 1)
            yield first, costs[first - top : last - top]


class _Band:
    """Which cells of an anti-diagonal lie too far from the straight line between the corners."""

    def __init__(self, n: int, m: int, share: float) -> None:
        self.rows = np.arange(n) / max(n - 1, 1)
        self.columns = np.arange(m) / max(m - 1, 1)
        # a row further down, the line has moved by 1 / (n - 1): less would leave rows without a way to the next
        self.share = max(share, 1 / max(min(n, m) - 1, 1))

    def __call__(self, d: int, first: int, last: int) -> npt.NDArray[np.bool_]:
        # column j = d - i falls while row i grows
        columns = self.columns[d - last + 1 : d - first + 1][::-1]
        outside: npt.NDArray[np.bool_] = np.abs(self.rows[first:last] - columns) > self.share
        return outside
