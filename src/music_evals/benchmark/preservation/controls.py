"""Where a metric begins and ends: originals against themselves, and against originals of other groups.

Both are made of the originals alone, so that they say nothing of any system. Which originals are taken depends on what
they hold and on the seed, not on their order.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Sequence

from music_evals.benchmark.preservation.pairs import CEILING, REENCODED, UNRELATED, Pair

__all__ = ["MOST_PAIRS", "make_controls"]

MOST_PAIRS = 50
"""Pairs of each control: enough for a mean, few enough to cost little."""


def make_controls(pairs: Sequence[Pair], *, seed: int = 0) -> list[Pair]:
    """Return each original against itself, re-encoded; then originals against those of another group."""
    # Where there are more than `MOST_PAIRS` originals, the seed draws them, and who meets whom.
    originals: dict[str, Pair] = {}
    for pair in sorted(pairs, key=lambda pair: (pair.item, pair.system)):
        originals.setdefault(pair.reference.content, pair)
    drawn = sorted(originals.values(), key=lambda pair: _draw(pair.reference.content, seed))[:MOST_PAIRS]
    same = [
        dataclasses.replace(pair, system=CEILING, estimate=pair.reference, treatment=REENCODED)
        for pair in sorted(drawn, key=lambda pair: pair.item)
    ]
    unrelated = [
        dataclasses.replace(first, system=UNRELATED, estimate=second.reference)
        for first, second in _strangers(drawn)
        if first.entrance == second.entrance
    ]
    return [*_distinct(same), *_distinct(unrelated)]


def _strangers(drawn: Sequence[Pair]) -> list[tuple[Pair, Pair]]:
    """Pair originals of different groups."""
    # They stand in a circle, group by group; each meets the one that is as far along as the largest group is long, and
    # so of another group, unless one group holds more than half of them: what then meets its own group is left out.
    order = {group: place for place, group in enumerate(dict.fromkeys(pair.group for pair in drawn))}
    circle = sorted(drawn, key=lambda pair: order[pair.group])
    longest = max((len(list(members)) for _, members in itertools.groupby(circle, lambda pair: pair.group)), default=0)
    met = [(first, circle[(place + longest) % len(circle)]) for place, first in enumerate(circle)]
    return [(first, second) for first, second in met if first.group != second.group]


def _distinct(pairs: Sequence[Pair]) -> list[Pair]:
    """Keep the first pair of each item: two originals may be called alike."""
    return list({pair.item: pair for pair in reversed(pairs)}.values())[::-1]


def _draw(content: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}\0{content}".encode()).hexdigest()
