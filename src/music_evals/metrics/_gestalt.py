"""Ratcliff and Obershelp's matching of two sequences ("gestalt"), block for block as Python's `difflib` finds it.

The MuChin score is defined by ``difflib.SequenceMatcher`` and by its habit (``autojunk``) of not starting a match at an
element that makes up more than one hundredth, plus one, of a second sequence of 200 elements or more. In a pattern
these are ``c``, the newline and most letters of the headers. This is the same procedure, written for the few elements
that remain: the first sequence is only visited where one of them stands. Tests hold it to `difflib`.

The reason is time: `difflib` takes 2.3 times as long over the patterns of songs with ``autojunk``, the score's default
(``benchmarks/lyric_structure``). Without ``autojunk`` every element remains, and this is no faster.
"""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

__all__ = ["Block", "gestalt_blocks", "gestalt_ratio"]

_AUTOJUNK_FROM: Final = 200  # elements


class Block(NamedTuple):
    """``a[first : first + size]`` equals ``b[second : second + size]``."""

    first: int
    second: int
    size: int


class _Anchors(NamedTuple):
    """Where matches may start."""

    places: dict[Hashable, list[int]]
    """Element -> its positions in the second sequence, increasing."""
    visits: list[int]
    """Positions in the first sequence of elements that have such places."""


def gestalt_ratio(a: Sequence[Hashable], b: Sequence[Hashable], *, autojunk: bool = True) -> float:
    """Return 2 K / (len(a) + len(b)), K the elements of all matching blocks; 1 for two empty sequences."""
    total = len(a) + len(b)
    return 2.0 * sum(block.size for block in _blocks(a, b, autojunk=autojunk)) / total if total else 1.0


def gestalt_blocks(a: Sequence[Hashable], b: Sequence[Hashable], *, autojunk: bool = True) -> list[Block]:
    """Return the matching blocks in their order; adjacent ones may follow one another."""
    return sorted(_blocks(a, b, autojunk=autojunk))


def _blocks(a: Sequence[Hashable], b: Sequence[Hashable], *, autojunk: bool) -> list[Block]:
    anchors = _anchors(a, b, autojunk=autojunk)
    blocks, waiting = [], [(0, len(a), 0, len(b))]
    while waiting:
        bounds = a_low, a_high, b_low, b_high = waiting.pop()
        block = _grown(a, b, _longest(a, anchors, bounds), bounds)
        first, second, size = block
        if not size:
            continue
        blocks.append(block)
        if a_low < first and b_low < second:
            waiting.append((a_low, first, b_low, second))
        if first + size < a_high and second + size < b_high:
            waiting.append((first + size, a_high, second + size, b_high))
    return blocks


def _anchors(a: Sequence[Hashable], b: Sequence[Hashable], *, autojunk: bool) -> _Anchors:
    n, elements = len(b), set(b)
    if autojunk and n >= _AUTOJUNK_FROM:
        most = n // 100 + 1
        elements = {element for element in elements if b.count(element) <= most}
    places: dict[Hashable, list[int]] = {element: [] for element in elements}
    for at, element in enumerate(b):
        if element in elements:
            places[element].append(at)
    return _Anchors(places, [at for at, element in enumerate(a) if element in elements])


def _longest(a: Sequence[Hashable], anchors: _Anchors, bounds: tuple[int, int, int, int]) -> Block:
    """Return the longest run of anchors that match within the bounds; of equals the first in a, then the first in b."""
    a_low, a_high, b_low, b_high = bounds
    first, second, size = a_low, b_low, 0
    places, visits = anchors
    runs: dict[int, int] = {}  # position in b -> length of the run that ends there, of the visit before
    before = -2
    for index in range(bisect.bisect_left(visits, a_low), len(visits)):
        at = visits[index]
        if at >= a_high:
            break
        longer: dict[int, int] = {}
        for place in places[a[at]]:
            if place < b_low:
                continue
            if place >= b_high:
                break
            run = longer[place] = runs.get(place - 1, 0) + 1 if at == before + 1 else 1
            if run > size:
                first, second, size = at - run + 1, place - run + 1, run
        runs, before = longer, at
    return Block(first, second, size)


def _grown(a: Sequence[Hashable], b: Sequence[Hashable], block: Block, bounds: tuple[int, int, int, int]) -> Block:
    """Return a block with all equal elements before and after it, anchors or not; an empty one grows too."""
    first, second, size = block
    a_low, a_high, b_low, b_high = bounds
    while first > a_low and second > b_low and a[first - 1] == b[second - 1]:
        first, second, size = first - 1, second - 1, size + 1
    most = min(a_high - first, b_high - second)
    while size < most and a[first + size] == b[second + size]:
        size += 1
    return Block(first, second, size)
