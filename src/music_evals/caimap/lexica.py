"""Lexica: the terms that a dimension offers while somebody types, most used first.

A study without a lexicon of its own offers the terms of CaiMD's demo songs, which are ours.
"""

from __future__ import annotations

import functools
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

from music_evals.annotations import DIMENSIONS
from music_evals.errors import UnknownNameError

__all__ = ["demo_lexicon", "search"]


@functools.cache
def demo_lexicon(group: str, dimension: str) -> tuple[str, ...]:
    """Return the terms of a dimension in the demo songs, most used first.

    Raises
    ------
    UnknownNameError
        No such group or dimension.

    """
    if dimension not in DIMENSIONS.get(group, {}):
        raise UnknownNameError("dimension", dimension, DIMENSIONS.get(group, {}))
    counts = Counter(tag for row in _rows() for tag in row[group]["dimensions"][dimension]["tags"])
    return tuple(tag for tag, _ in counts.most_common())


@functools.cache
def _rows() -> list[dict[str, Any]]:
    from music_evals.datasets.caimd.demo import demo_rows

    return demo_rows(marks=lambda lines: [False] * len(lines))


def search(terms: Sequence[str], query: str, most: int = 8) -> list[str]:
    """Return the terms that fit what was typed: those that begin with it, then those that hold it.

    Width and case of letters do not count.

    Examples
    --------
    >>> search(("温暖的男声", "男声", "钢琴"), "男声")
    ['男声', '温暖的男声']

    """
    wanted = _folded(query)
    fits = [term for term in terms if wanted in _folded(term)]
    return sorted(fits, key=lambda term: not _folded(term).startswith(wanted))[:most]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().strip()
