"""Assurance: the samples that inspectors see, and the forms of tables 6 and 7 by which they score descriptions.

Source: Wang et al., "MuChin", IJCAI 2024, tables 6 and 7. The paper says that failing results are rejected, not where
failing begins; `PASS_MARK` is the beginning of its grade III.

In the training everybody practises on the same songs, about 20 of both types for each annotator; inspectors all score
one set, items whose scores spread over 10 points are discussed, and that is repeated until they are consistent.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final, NamedTuple

from music_evals.caimap.domain.values import ScoreSheet
from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidAnnotationError, InvalidInputError

SHARE: Final = 0.2
"""Of an annotator's descriptions that an inspector scores."""

PASS_MARK: Final = 60.0
"""Total from which a description passes."""

PARTS: Final = MappingProxyType(
    {
        "labels": ("number of labels", "标签数量"),
        "relevance": ("relevance of labels", "标签相关性"),
        "innovation": ("innovation", "创新性"),
        "description": ("relevance of the description", "描述相关性"),
        "thoroughness": ("thoroughness", "描述完整性"),
        "words": ("word count and innovation", "字数与创新"),
        "detail": ("level of detail", "细致程度"),
    }
)
"""What points are given for -> its name in English and Chinese."""

Form = Mapping[tuple[str, str], int]
"""(row, part) -> most points. A row is a dimension, or ``"overall_text"``."""

_LRI: Final = {"labels": 4, "relevance": 4, "innovation": 5}
_LRDT: Final = {"labels": 5, "relevance": 3, "description": 2, "thoroughness": 2}
_RI: Final = {"relevance": 3, "innovation": 3}
_TEXT: Final = {"description": 3, "words": 5}


def _form(rows: Mapping[str, Mapping[str, int]]) -> Form:
    return MappingProxyType({(row, part): most for row, parts in rows.items() for part, most in parts.items()})


FORMS: Final[Mapping[str, Form]] = MappingProxyType(
    {
        "professional": _form(  # table 6
            {
                "expressive_impact_singer_accompaniment": _LRI,
                "emotional_impact_lyrics_melody": _LRI,
                "overall_text": _TEXT,
                "musical_genres": {"detail": 8},
                "tempo_rhythm": {"relevance": 5},
                "instrumentation": _LRDT,
                "song_purpose": _RI,
                "culture_region": _RI,
                "target_audience": _RI,
                "vocal_components": _LRDT,
                "audio_effects": {"relevance": 5},
                "lyric_themes": _RI,
            }
        ),
        "amateur": _form(  # table 7
            {
                "perception_of_uniqueness": {"relevance": 4, "innovation": 4},
                "perception_of_tempo": {"relevance": 3, "innovation": 2},
                "expressive_impact_singer": _LRI,
                "emotional_impact_lyrics": _LRI,
                "overall_text": _TEXT,
                "instrumentation": _LRDT,
                "song_purpose": _RI,
                "culture_region": _RI,
                "target_audience": _RI,
                "vocal_components": _LRDT,
                "audio_effects": {"relevance": 5},
                "lyric_themes": _RI,
            }
        ),
    }
)
"""Group -> its form; the points of each add up to 100."""


def is_sampled(person: int, kind: str, place: int, *, seed: int, share: float = SHARE) -> bool:
    """Tell whether a result of somebody is in the sample.

    What a person hands in of a kind is cut into blocks, in its order, and as many of each block are drawn as the share
    asks for: one of every five for a fifth. So of everybody the same share is looked at, also of who does little. Which
    ones follows from the seed alone, so that it can be repeated; without the seed it cannot be worked out, as long as
    it is a secret number of the study's own (``music-evals caimap init`` draws one). Who saw that the one of a block
    was drawn would know that the rest of it is not: so pages hide it until then, and `is_scored` draws beside it.
    """
    n_sampled, length = block_of(share)
    block, at = divmod(place, length)
    ranks = [hashlib.sha256(f"{seed}/{person}/{kind}/{block}/{other}".encode()).digest() for other in range(length)]
    return ranks[at] in sorted(ranks)[:n_sampled]


def is_drawn(key: str, *, seed: int, share: float) -> bool:
    """Tell whether what a key names is drawn with a chance of `share`, which the seed of the study keeps secret."""
    return int.from_bytes(hmac.digest(str(seed).encode(), key.encode(), "sha256"), "big") < share * 2**256


def is_scored(person: int, kind: str, place: int, *, seed: int, share: float = SHARE, is_read: bool = False) -> bool:
    """Tell whether a description is in the sample of its block (`is_sampled`), or drawn by itself beside it."""
    beside = share if is_read else share / 4
    return is_sampled(person, kind, place, seed=seed, share=share) or is_drawn(
        f"{person}/{kind}/{place}", seed=seed, share=beside
    )


def block_of(share: float) -> tuple[int, int]:
    """Return how many are drawn of a block, and its length."""
    if not 0 <= share <= 1:
        raise InvalidInputError(f"the share must lie between 0 and 1, got {share}")
    part = Fraction(share).limit_denominator(100)
    if share and not part:
        raise InvalidInputError(f"a share of {share} is less than one of 100; give 0.01, or 0 for none")
    return part.numerator, part.denominator


def check_sheet(sheet: ScoreSheet, group: str) -> None:
    """Refuse points that the form does not have."""
    form = FORMS[group]
    wrong = set(form) ^ set(sheet.points)
    if wrong:
        parts = ", ".join(f"{row}: {part}" for row, part in sorted(wrong))
        raise InvalidAnnotationError(
            f"points are needed for each part of the form; missing or unknown: {parts}", kind="points_missing"
        )
    for (row, part), most in form.items():
        points = sheet.points[row, part]
        if not (math.isfinite(points) and 0 <= points <= most):
            raise InvalidAnnotationError(
                f"{row}, {part}: from 0 to {most} points, got {points}",
                kind="points_range",
                row=row,
                part=part,
                most=most,
                found=points,
            )


def passes(sheet: ScoreSheet, *, mark: float = PASS_MARK) -> bool:
    """Tell whether the total reaches the mark."""
    return sheet.total >= mark


__getattr__ = module_getattr(__name__, {"judge_round": "evaluate_round"})

MAX_SPREAD: Final = 10.0
"""Points between the highest and the lowest score of one item, beyond which it is discussed."""

DISCUSSIONS: Final = "training/"
"""Where messages of discussions stand, with the round and the item; messages of feedback name a page."""

TRAINING_SONGS: Final = 20
"""Songs of the training set."""


class Round(NamedTuple):
    """What a round of scoring shows."""

    spreads: dict[int, float]  # item -> highest less lowest score
    discussed: tuple[int, ...]  # items whose spread is over `MAX_SPREAD`, widest first
    missing: tuple[tuple[int, int], ...]  # (item, inspector) that are not scored yet
    consistent: bool  # everybody scored everything and nothing is to be discussed


def evaluate_round(scores: Mapping[int, Mapping[int, float]], inspectors: frozenset[int]) -> Round:
    """Evaluate a round of scoring."""
    if len(inspectors) < 2 or not scores:
        raise InvalidInputError("a round needs two inspectors and one item at least", kind="round_small")
    missing = tuple((item, who) for item, totals in scores.items() for who in sorted(inspectors - set(totals)))
    spreads = {item: max(totals.values()) - min(totals.values()) if totals else 0.0 for item, totals in scores.items()}
    wide = sorted((item for item, spread in spreads.items() if spread > MAX_SPREAD), key=lambda item: -spreads[item])
    return Round(spreads, tuple(wide), missing, not wide and not missing)
