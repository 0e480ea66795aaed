"""Which tunes are settings of one: tune families, found by what sounds on the beats, in any key.

A tune comes back in other books, in other keys and with other ornaments. What stays is mostly what sounds on the beats.
So a tune is read as its skeleton, the pitch class that sounds on each beat, and compared by passages of four measures
(16 beats), which is as much as an inpainter fills:

1. Two passages agree where at least `AGREEING_BEATS` of their 16 beats have the same pitch class, after one of them was
   transposed.
2. The overlap of two tunes is the share of the passages of the one with fewer measures that agree with one of the
   other, all in one transposition.
3. Tunes whose overlap reaches `OVERLAP` are settings of one tune, and so are those that are linked through others: a
   family is a connected component.

Not every pair is compared. An index holds the intervals of eight beats in a row, from every bar line, and of eight half
measures in a row; pairs that share `SHARED_KEYS` of its entries are. Where more than `COMMON` tunes share an entry,
each is compared with the next of them alone, so that the work grows as their number does: settings of one tune, however
many, are linked through others, and tunes that have no more than a phrase in common stay apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from music_evals.annotations import HOLD, MUSIB_LAYOUT, Tokens

__all__ = [
    "AGREEING_BEATS",
    "INCIPIT_INTERVALS",
    "OVERLAP",
    "find_families",
    "incipit_families",
    "link",
    "overlap",
    "pair_overlaps",
    "skeleton",
]

AGREEING_BEATS = 12
OVERLAP = 0.3
SHARED_KEYS = 1
COMMON = 100
BEATS, PASSAGE_MEASURES = 4, 4

INCIPIT_INTERVALS = 20
"""Intervals that whole pieces of one family begin with."""

Skeleton = npt.NDArray[np.int8]


def skeleton(tokens: Tokens) -> Skeleton:
    """Return the pitch class on each beat, shape (n_measures, 4); over a rest the last one goes on, -1 before any."""
    beat = MUSIB_LAYOUT.steps_per_measure // BEATS
    onsets = np.where(tokens < HOLD, np.arange(len(tokens)), -1)
    last = np.maximum.accumulate(onsets)[::beat]
    classes = np.where(last >= 0, tokens[last] % 12, -1)
    return classes.astype(np.int8).reshape(-1, BEATS)


def passages(bones: Skeleton) -> Skeleton:
    """Return the different passages of four measures of a skeleton, shape (n, 16)."""
    n = len(bones) - PASSAGE_MEASURES + 1
    if n < 1:
        return np.empty((0, PASSAGE_MEASURES * BEATS), dtype=np.int8)
    view = np.lib.stride_tricks.sliding_window_view(bones.ravel(), PASSAGE_MEASURES * BEATS)[::BEATS]
    return np.unique(view, axis=0)


def overlap(first: Skeleton, second: Skeleton, shifts: Iterable[int] = range(12)) -> float:
    """Return the share of passages of the tune that has fewer which agree with one of the other, 0..1.

    Parameters
    ----------
    first, second
        Passages, from `passages`.
    shifts
        Semitones by which `first` is transposed; the best counts.

    """
    if not len(first) or not len(second):
        return 0.0
    best = 0.0
    for shift in shifts:
        moved = np.where(first < 0, -2, (first + shift) % 12)  # what has no pitch agrees with nothing
        agreeing = (moved[:, None, :] == second[None, :, :]).sum(axis=2) >= AGREEING_BEATS
        axis = 1 if len(first) <= len(second) else 0
        best = max(best, float(agreeing.any(axis=axis).mean()))
    return best


def find_families(
    voices: Sequence[Tokens], *, threshold: float = OVERLAP, progress: Callable[[int, int], object] | None = None
) -> list[int]:
    """Return for each tune the index of the first tune of its family.

    Parameters
    ----------
    voices
        Tokens of each tune from a bar line on, in whole measures of 24 steps.
    threshold
        Least overlap of two settings of one tune.
    progress
        Called with the number of pairs compared and of all pairs.

    """
    return link(len(voices), pair_overlaps(voices, progress=progress), threshold)


def pair_overlaps(
    voices: Sequence[Tokens], *, progress: Callable[[int, int], object] | None = None
) -> dict[tuple[int, int], float]:
    """Return the overlap of every pair that the index finds."""
    bones = [skeleton(voice) for voice in voices]
    different = [passages(bone) for bone in bones]
    pairs = sorted(_candidates(bones).items())
    overlaps = {}
    for number, ((one, other), shifts) in enumerate(pairs):
        overlaps[one, other] = overlap(different[one], different[other], shifts)
        if progress is not None:
            progress(number + 1, len(pairs))
    return overlaps


def incipit_families(lines: Mapping[str, npt.NDArray[np.integer[Any]]]) -> dict[str, str]:
    """Return for each piece the first name, in the order of names, of those whose line begins with its intervals.

    Parameters
    ----------
    lines
        Name of a piece -> the MIDI pitches of its melody or upper voice in time, shape (n,). Two pieces are of one
        family if the first `INCIPIT_INTERVALS` intervals are the same, in any key and rhythm; of a shorter line all
        its intervals count.

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
    first = list(range(n))
    for (one, other), found in overlaps.items():
        if found >= threshold:
            roots = _root(first, one), _root(first, other)
            first[max(roots)] = min(roots)
    return [_root(first, index) for index in range(n)]


def _root(first: list[int], index: int) -> int:
    while first[index] != index:
        first[index] = first[first[index]]
        index = first[index]
    return index


def _candidates(bones: Sequence[Skeleton]) -> dict[tuple[int, int], list[int]]:
    """Return the pairs that share enough entries of the index, with the transpositions in which they share them."""
    index: dict[bytes, dict[int, int]] = defaultdict(dict)
    for tune, bone in enumerate(bones):
        for key, pitch in _keys(bone):
            index[key].setdefault(tune, pitch)
    n = len(bones)
    codes = []  # one number for a pair and a transposition
    for tunes in index.values():
        if len(tunes) > 1:
            names, pitches = np.array(sorted(tunes.items()), dtype=np.int64).T
            if len(names) <= COMMON:
                one, other = np.triu_indices(len(names), k=1)
            else:
                one, other = np.arange(len(names) - 1), np.arange(1, len(names))
            codes.append((names[one] * n + names[other]) * 12 + (pitches[other] - pitches[one]) % 12)
    found, counts = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *codes]), return_counts=True)
    pairs: dict[tuple[int, int], list[int]] = defaultdict(list)
    for code in found[counts >= SHARED_KEYS].tolist():
        pair, shift = divmod(code, 12)
        pairs[divmod(pair, n)].append(shift)
    return pairs


def _keys(bone: Skeleton) -> Iterator[tuple[bytes, int]]:
    """Yield entries of the index, each with the pitch class that it starts from."""
    halves = bone[:, ::2].ravel()
    for kind, row, step in ((b"b", bone.ravel(), BEATS), (b"h", halves, 2)):
        for start in range(0, len(row) - 7, step):
            eight = row[start : start + 8]
            if (eight >= 0).all() and len(set(eight.tolist())) > 2:
                yield kind + ((eight[1:] - eight[:-1]) % 12).tobytes(), int(eight[0])
