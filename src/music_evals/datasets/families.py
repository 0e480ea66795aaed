"""Which tunes are settings of one: tune families, found by what sounds on the beats, in any key.

A tune comes back in other books, in other keys and with other ornaments. What stays is mostly what sounds on the beats.
So a tune is read as its skeleton, the pitch class that sounds on each beat, and compared by passages of four measures
(16 beats), which is as much as an inpainter fills:

1. Two passages agree where at least `AGREEING_BEATS` of their 16 beats have the same pitch class, after one of them was
   transposed.
2. The overlap of two tunes is a share of the passages of the shorter tune: of those that agree with a passage of the
   longer one, all in one transposition. Where measures are counted from the first sound, a pickup moves them: so the
   measures of both tunes are moved, by each pair of `ANY_OFFSET`, and the best counts. Between pages whose bar lines
   are known, `BAR_LINES` is enough.
3. Tunes whose overlap reaches `OVERLAP` are settings of one tune, or `OVERLAP_ANYWHERE` where measures were moved,
   since chance has more to choose from then. So are those that are linked through others: a family is a connected
   component.

Not every pair is compared. An index holds the intervals of eight beats in a row, from every bar line, and of every
other beat, eight in a row; pairs that share `SHARED_KEYS` of its entries are, in the transposition and with the offsets
in which they share them. Where more than `COMMON` tunes share an entry, each is compared with the next of them alone,
so that the work grows as their number does: settings of one tune, however many, are linked through others, and tunes
that have no more than a phrase in common stay apart.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, MUSIB_LAYOUT, Tokens

__all__ = [
    "AGREEING_BEATS", "ANY_OFFSET", "BAR_LINES", "INCIPIT_INTERVALS", "OVERLAP", "OVERLAP_ANYWHERE", "find_families",
    "incipit_families", "link", "overlap", "pair_overlaps", "skeleton",
]  # fmt: skip

AGREEING_BEATS = 12
OVERLAP = 0.3
OVERLAP_ANYWHERE = 0.4
SHARED_KEYS = 1
COMMON = 100
BEATS, PASSAGE_MEASURES = 4, 4

BAR_LINES = ((0, 0),)
"""Offsets of two tunes in eighths, if every tune begins at a bar line of its page: none."""
ANY_OFFSET = tuple(itertools.product(range(2), range(2 * BEATS)))
"""Offsets if tunes may begin anywhere: the first by nothing or half a beat, the second by every eighth of a measure."""

_ROW = 8  # pitch classes of an entry of the index
_DIGITS = 12 ** np.arange(_ROW - 1, dtype=np.int64)
_N_KEYS = 12 ** (_ROW - 1)

INCIPIT_INTERVALS = 20
"""Intervals that whole pieces of one family begin with."""

Skeleton = npt.NDArray[np.int8]


def skeleton(tokens: Tokens, offset: int = 0) -> Skeleton:
    """Return the pitch class on each beat, shape (n_measures, 4); over a rest the last one goes on, -1 before any.

    With an offset, measures begin as many eighths later; the last, which is then not whole, is left out.
    """
    beat = MUSIB_LAYOUT.steps_per_measure // BEATS
    onsets = np.where(tokens < HOLD, np.arange(len(tokens)), -1)
    last = np.maximum.accumulate(onsets)[offset * beat // 2 :: beat]
    last = last[: len(last) // BEATS * BEATS]
    classes = np.where(last >= 0, tokens[last] % 12, -1)
    return classes.astype(np.int8).reshape(-1, BEATS)


def passages(tune_skeleton: Skeleton) -> Skeleton:
    """Return the different passages of four measures of a skeleton, shape (n, 16)."""
    n = len(tune_skeleton) - PASSAGE_MEASURES + 1
    if n < 1:
        return np.empty((0, PASSAGE_MEASURES * BEATS), dtype=np.int8)
    view = np.lib.stride_tricks.sliding_window_view(tune_skeleton.ravel(), PASSAGE_MEASURES * BEATS)[::BEATS]
    return np.unique(view, axis=0)


def overlap(first: Skeleton, second: Skeleton, shifts: Iterable[int] = range(12)) -> float:
    """Return the share of the shorter tune's `passages` that agree with a passage of the longer tune, 0..1.

    `first` is transposed by each of `shifts` semitones; the best counts.
    """
    if not len(first) or not len(second):
        return 0.0
    best = 0.0
    for shift in shifts:
        transposed = np.where(first < 0, -2, (first + shift) % 12)  # what has no pitch agrees with nothing
        agreeing = (transposed[:, None, :] == second[None, :, :]).sum(axis=2) >= AGREEING_BEATS
        axis = 1 if len(first) <= len(second) else 0
        best = max(best, float(agreeing.any(axis=axis).mean()))
    return best


def find_families(
    voices: Sequence[Tokens],
    *,
    offsets: Sequence[tuple[int, int]] = ANY_OFFSET,
    progress: Callable[[int, int], object] | None = None,
) -> list[int]:
    """Return for each tune the index of the first tune of its family; tokens are in whole measures of 24 steps.

    `offsets` are `ANY_OFFSET`, or `BAR_LINES` where every tune begins at a bar line of its page; `progress` is called
    with the number of pairs compared and of all pairs.
    """
    threshold = OVERLAP if tuple(offsets) == BAR_LINES else OVERLAP_ANYWHERE
    return link(len(voices), pair_overlaps(voices, offsets=offsets, progress=progress), threshold)


def pair_overlaps(
    voices: Sequence[Tokens],
    *,
    offsets: Sequence[tuple[int, int]] = ANY_OFFSET,
    progress: Callable[[int, int], object] | None = None,
) -> dict[tuple[int, int], float]:
    """Return the overlap, 0 to 1, of every pair that the index finds: (i, j) with i < j -> overlap.

    Parameters are those of `find_families`.
    """
    skeletons = {offset: [skeleton(voice, offset) for voice in voices] for pair in offsets for offset in pair}

    @functools.cache
    def distinct_passages(tune: int, offset: int) -> Skeleton:
        return passages(skeletons[offset][tune])

    candidates = _candidates(skeletons, offsets)
    overlaps: dict[tuple[int, int], float] = defaultdict(float)
    for number, ((first, second, offset_pair), shifts) in enumerate(candidates.items()):
        share = overlap(distinct_passages(first, offset_pair[0]), distinct_passages(second, offset_pair[1]), shifts)
        pair = min(first, second), max(first, second)
        overlaps[pair] = max(overlaps[pair], share)
        if progress is not None:
            progress(number + 1, len(candidates))
    return dict(overlaps)


def incipit_families(lines: Mapping[str, npt.NDArray[np.integer[Any]]]) -> dict[str, str]:
    """Return for each piece the first name, in the order of names, of those whose line begins with its intervals.

    A line is the MIDI pitches of melody or upper voice in time, shape (n,). Two pieces are of one family if the first
    `INCIPIT_INTERVALS` intervals are the same, in any key and rhythm; of a shorter line all its intervals count.
    """
    first: dict[bytes, int] = {}
    names = sorted(lines)
    roots = []
    for index, name in enumerate(names):
        key = np.diff(lines[name][: INCIPIT_INTERVALS + 1].astype(np.int64)).tobytes()
        roots.append(first.setdefault(key, index))
    return {name: names[root] for name, root in zip(names, roots, strict=True)}


def link(n: int, overlaps: Mapping[tuple[int, int], float], threshold: float) -> list[int]:
    """Return for each of `n` tunes the first of those that it is linked with by pairs from a threshold on."""
    from scipy.cluster.hierarchy import DisjointSet

    families = DisjointSet(range(n))
    for pair, share in overlaps.items():
        if share >= threshold:
            families.merge(*pair)
    first: dict[int, int] = {}
    return [first.setdefault(families[index], index) for index in range(n)]


def _candidates(
    skeletons: Mapping[int, Sequence[Skeleton]], offsets: Sequence[tuple[int, int]]
) -> dict[tuple[int, int, tuple[int, int]], list[int]]:
    """Return the pairs that share enough entries of the index, with the transpositions in which they share them.

    A pair is two tunes, and the offset of each in eighths.
    """
    halves = (0,) if tuple(offsets) == BAR_LINES else (0, 1)
    every = {offset: _entries(rows, halves) for offset, rows in skeletons.items()}
    pairs: dict[tuple[int, int, tuple[int, int]], list[int]] = defaultdict(list)
    for offset_pair in offsets:
        index, others = every[offset_pair[0]], every[offset_pair[1]]
        n = len(skeletons[offset_pair[0]])
        begin, end = index.group(others.keys)
        first, last = others.group(others.keys)
        crowded = np.maximum(end - begin, last - first) > COMMON
        # of the same skeletons each pair once; where it is crowded, the next tune alone, and the first after the last
        following = np.searchsorted(index.keys * n + index.tunes, others.keys * n + others.tunes, side="right")
        begin = np.where((crowded & (following < end)) | (offset_pair[0] == offset_pair[1]), following, begin)
        counts = np.where(crowded, np.minimum(end - begin, 1), end - begin)
        # every entry of the others, beside each of the index from `begin` on
        there = np.repeat(np.arange(len(counts)), counts)
        here = np.arange(len(there)) + np.repeat(begin - np.cumsum(counts) + counts, counts)
        tunes, pitches = (index.tunes[here], others.tunes[there]), (index.pitches[here], others.pitches[there])
        if offset_pair[0] == offset_pair[1]:  # the first of the data set first
            tunes, pitches = tunes[::-1], pitches[::-1]
        codes = ((tunes[0] * n + tunes[1]) * 12 + (pitches[1] - pitches[0]) % 12)[tunes[0] != tunes[1]]
        distinct, shared = np.unique(codes, return_counts=True)
        for code in distinct[shared >= SHARED_KEYS].tolist():
            pair, shift = divmod(code, 12)
            pairs[(*divmod(pair, n), offset_pair)].append(shift)
    return pairs


class _Entries(NamedTuple):
    """What an index holds: rows of eight pitch classes, as their intervals, each once a tune; by key, then tune."""

    keys: npt.NDArray[np.int64]
    tunes: npt.NDArray[np.int64]
    pitches: npt.NDArray[np.int64]  # that a row begins with

    def group(self, keys: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return where the entries of each key begin and end."""
        return np.searchsorted(self.keys, keys), np.searchsorted(self.keys, keys, side="right")


def _entries(skeletons: Sequence[Skeleton], halves: Sequence[int]) -> _Entries:
    """Return what stands in an index of skeletons; of every other beat from the first, the second, or both."""
    keys, tunes, pitches = [], [], []
    for tune, tune_skeleton in enumerate(skeletons):
        rows = [(tune_skeleton.ravel(), BEATS), *((tune_skeleton[:, half::2].ravel(), BEATS // 2) for half in halves)]
        for kind, (row, step) in enumerate(rows):
            if len(row) < _ROW:
                continue
            eights = np.lib.stride_tricks.sliding_window_view(row, _ROW)[::step].astype(np.int64)
            different = 1 + (np.diff(np.sort(eights, axis=1), axis=1) > 0).sum(axis=1)
            eights = eights[(eights >= 0).all(axis=1) & (different > 2)]
            keys.append(kind * _N_KEYS + np.diff(eights, axis=1) % 12 @ _DIGITS)
            tunes.append(np.full(len(eights), tune))
            pitches.append(eights[:, 0])
    if not keys:
        return _Entries(*np.empty((3, 0), dtype=np.int64))
    every = np.concatenate(keys), np.concatenate(tunes), np.concatenate(pitches)
    _, first = np.unique(every[0] * len(skeletons) + every[1], return_index=True)
    return _Entries(*(column[first] for column in every))
