"""Training mode: everybody practises on the same songs, and inspectors score alike before they judge.

Source: Wang et al., "MuChin", IJCAI 2024: about 20 songs of both types for each annotator; inspectors all score one
set, items whose scores spread over 10 points are discussed, and that is repeated until they are consistent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidInputError

__all__ = ["DISCUSSIONS", "MAX_SPREAD", "TRAINING_SONGS", "Round", "evaluate_round"]

__getattr__ = module_getattr(__name__, {"judge_round": "evaluate_round"})

MAX_SPREAD: Final = 10.0
"""Points between the highest and the lowest score of one item, beyond which it is discussed."""

DISCUSSIONS: Final = "training/"
"""Where messages of discussions stand, with the round and the item; messages of feedback name a page."""

TRAINING_SONGS: Final = 20
"""Songs of the training set."""


class Round(NamedTuple):
    """What a round of scoring shows.

    Attributes
    ----------
    spreads
        Item -> highest less lowest score.
    discussed
        Items whose spread is over `MAX_SPREAD`, widest first.
    missing
        (item, inspector) that are not scored yet.
    consistent
        Everybody scored everything and nothing is to be discussed.

    """

    spreads: dict[int, float]
    discussed: tuple[int, ...]
    missing: tuple[tuple[int, int], ...]
    consistent: bool


def evaluate_round(scores: Mapping[int, Mapping[int, float]], inspectors: frozenset[int]) -> Round:
    """Evaluate a round of scoring.

    Parameters
    ----------
    scores
        Item -> inspector -> total.
    inspectors
        All who take part; at least two.

    Raises
    ------
    InvalidInputError
        Fewer than two inspectors, or no item.

    """
    if len(inspectors) < 2 or not scores:
        raise InvalidInputError("a round needs two inspectors and one item at least", kind="round_small")
    missing = tuple((item, who) for item, totals in scores.items() for who in sorted(inspectors - set(totals)))
    spreads = {item: max(totals.values()) - min(totals.values()) if totals else 0.0 for item, totals in scores.items()}
    wide = sorted((item for item, spread in spreads.items() if spread > MAX_SPREAD), key=lambda item: -spreads[item])
    return Round(spreads, tuple(wide), missing, not wide and not missing)
