"""Which song texts are the same song: covers, other recordings, the same words annotated twice.

A model tuned on one of them and evaluated on the other has seen the answer. Two texts are near copies where they
share at least `SHARED_LINES` long lines, or at least `LEAST_SHARED` that are half of the long lines of the text that
has fewer. A long line has `LONG` characters or more, spaces and punctuation left out; a line counts once however often
it is sung. Refrains of common words (我爱你) are short lines and tie no songs together.

Among the 469 development songs of MuChin this finds 26 of 109,746 pairs, all of one title, and misses one pair of one
title that shares 5 of 16 long lines.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

__all__ = ["LEAST_SHARED", "LONG", "SHARED_LINES", "NearCopies", "long_lines"]

LONG: Final = 6
"""Characters from which on a line counts."""

SHARED_LINES: Final = 8
"""So many long lines in common make two texts near copies, whatever else stands in them."""

LEAST_SHARED: Final = 3
"""Fewer long lines in common are a saying, not a song."""

_HALF: Final = 0.5


def long_lines(lines: Iterable[str]) -> frozenset[str]:
    """Return the distinct long lines of a text, brought to letters and digits of one width and case.

    Examples
    --------
    >>> sorted(long_lines(["春眠 不觉晓啊", "春眠不觉晓啊！", "啦啦啦"]))
    ['春眠不觉晓啊']
    """
    folded = (
        "".join(sign for sign in unicodedata.normalize("NFKC", line) if sign.isalnum()).casefold() for line in lines
    )
    return frozenset(line for line in folded if len(line) >= LONG)


class NearCopies:
    """Texts, each given by its lines, to compare others with."""

    def __init__(self, texts: Iterable[Iterable[str]] = ()) -> None:
        self._sizes: list[int] = []
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for lines in texts:
            self.add(lines)

    def add(self, lines: Iterable[str]) -> None:
        """Add a text."""
        distinct = long_lines(lines)
        for line in distinct:
            self._places[line].append(len(self._sizes))
        self._sizes.append(len(distinct))

    def find(self, lines: Iterable[str]) -> int | None:
        """Return the number of the nearest text that this one is a near copy of, counted from 0; None without any."""
        distinct = long_lines(lines)
        shared = Counter(place for line in distinct for place in self._places.get(line, ()))
        candidates = [
            (count, -place)
            for place, count in shared.items()
            if count >= min(SHARED_LINES, max(LEAST_SHARED, _HALF * min(len(distinct), self._sizes[place])))
        ]
        return -max(candidates)[1] if candidates else None

    def __len__(self) -> int:
        return len(self._sizes)
