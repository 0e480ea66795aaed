"""Assurance of descriptions: a seeded sample of each annotator's results, scored by the forms of tables 6 and 7.

Source: Wang et al., "MuChin", IJCAI 2024, tables 6 and 7. The paper says that failing results are rejected, not where
failing begins; `PASS_MARK` is the beginning of its grade III.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from music_evals.caimap.values import ScoreSheet
from music_evals.errors import InvalidAnnotationError, InvalidInputError

__all__ = ["FORMS", "PARTS", "PASS_MARK", "SHARE", "Form", "check_sheet", "is_sampled", "passes"]

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


def is_sampled(task: int, *, seed: int, share: float = SHARE) -> bool:
    """Tell whether a description is scored.

    The choice follows from the seed and the task alone, so that it can be repeated, and neither the order of
    submissions nor what was sampled before can be used to foresee it by who does not know the seed.

    Parameters
    ----------
    task
        Its number.
    seed
        Of the study.
    share
        Expected share that is scored, from 0 to 1.

    Raises
    ------
    InvalidInputError
        The share lies outside.

    """
    if not 0 <= share <= 1:
        raise InvalidInputError(f"the share must lie between 0 and 1, got {share}")
    drawn = int.from_bytes(hashlib.sha256(f"{seed}/{task}".encode()).digest()[:8], "big")
    return drawn < share * 2**64


def check_sheet(sheet: ScoreSheet, group: str) -> None:
    """Refuse points that the form does not have.

    Parameters
    ----------
    sheet
        As an inspector filled it in.
    group
        ``"professional"`` for table 6, ``"amateur"`` for table 7.

    Raises
    ------
    InvalidAnnotationError
        A row is missing or unknown, or its points lie outside of 0 and the most that the form gives.

    """
    form = FORMS[group]
    wrong = set(form) ^ set(sheet.points)
    if wrong:
        named = ", ".join(f"{row}: {part}" for row, part in sorted(wrong))
        raise InvalidAnnotationError(
            f"points are needed for each part of the form; missing or unknown: {named}", kind="points_missing"
        )
    for (row, part), most in form.items():
        given = sheet.points[row, part]
        if not (math.isfinite(given) and 0 <= given <= most):
            raise InvalidAnnotationError(
                f"{row}, {part}: from 0 to {most} points, got {given}",
                kind="points_range",
                row=row,
                part=part,
                most=most,
                found=given,
            )


def passes(sheet: ScoreSheet, *, mark: float = PASS_MARK) -> bool:
    """Tell whether the total reaches the mark."""
    return sheet.total >= mark
