"""Which listeners of a MUSHRA test are left out afterwards, by the post-screening of ITU-R BS.1534-3.

A listener is left out who rates the hidden reference below 90 in more than 15 per cent of the items, or the mid-range
anchor above 90 in more than 15 per cent of them. Both numbers may be chosen; the reason is always given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from music_evals.errors import InvalidInputError, NoDataError, PairCountError
from music_evals.studies.pairs import REFERENCE

__all__ = ["ANCHOR", "MushraRating", "Screened", "screen_mushra"]

ANCHOR = "anchor"
"""System of the mid-range anchor."""


class MushraRating(NamedTuple):
    """One slider of one listener.

    Attributes
    ----------
    listener, item, system
        Who rated what; the hidden reference and the anchor are systems too.
    score
        From 0 to 100.

    """

    listener: str
    item: str
    system: str
    score: float


class Screened(NamedTuple):
    """What the rules say of one listener.

    Attributes
    ----------
    listener
        Who.
    low_references, high_anchors
        Share of the items, 0 to 1, of which the hidden reference was rated too low, and the anchor too high.
    is_kept
        Neither share is above the limit.

    """

    listener: str
    low_references: float
    high_anchors: float
    is_kept: bool


def screen_mushra(
    ratings: Iterable[MushraRating], *, score_limit: float = 90.0, share_limit: float = 0.15
) -> tuple[Screened, ...]:
    """Apply the rules of post-screening to every listener.

    Parameters
    ----------
    ratings
        All of the test, in any order.
    score_limit
        Below it a reference counts as too low, and above it an anchor as too high; 0 to 100.
    share_limit
        A listener is left out above this share of the items.

    Returns
    -------
    tuple of Screened
        By name of the listener.

    Raises
    ------
    NoDataError
        There are no ratings.
    InvalidInputError
        A score outside of 0..100 (the message names the row), or an item that a listener heard without the hidden
        reference or the anchor.
    PairCountError
        A listener rated a system on an item twice.

    """
    heard: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for number, (listener, item, system, score) in enumerate(ratings, start=1):
        if not 0 <= score <= 100:
            raise InvalidInputError(f"row {number}: a score must be from 0 to 100, got {score!r}")
        if system in heard[listener][item]:
            raise PairCountError(f"row {number}: listener {listener!r} rated {system!r} on {item!r} twice; keep one")
        heard[listener][item][system] = score
    if not heard:
        raise NoDataError("no ratings to screen")
    return tuple(_screened(listener, heard[listener], score_limit, share_limit) for listener in sorted(heard))


def _screened(listener: str, items: dict[str, dict[str, float]], score_limit: float, share_limit: float) -> Screened:
    for item, scores in items.items():
        for system in (REFERENCE, ANCHOR):
            if system not in scores:
                raise InvalidInputError(f"listener {listener!r} has no rating of the {system} on item {item!r}")
    low = sum(scores[REFERENCE] < score_limit for scores in items.values()) / len(items)
    high = sum(scores[ANCHOR] > score_limit for scores in items.values()) / len(items)
    return Screened(listener, low, high, low <= share_limit and high <= share_limit)
