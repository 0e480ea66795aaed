"""Weekly grades of annotators, warnings, and who is excluded.

Source: Wang et al., "MuChin", IJCAI 2024, tables 4 and 5: accuracy of type A and mean score of type B, both in per
cent; I from 90, II from 70, III from 60, IV below. Grade IV, or two warnings,
excludes, and the week's data are discarded.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from music_evals.errors import InvalidInputError

__all__ = ["BOUNDS", "MAX_WARNINGS", "Week", "grade_of", "week_of", "weekly"]

BOUNDS: Final = ((90.0, "I"), (70.0, "II"), (60.0, "III"), (0.0, "IV"))
"""Least per cent of each grade, best first."""

MAX_WARNINGS: Final = 2
"""So many warnings in a week exclude."""


class Week(NamedTuple):
    """What a week of one person amounts to.

    Attributes
    ----------
    grade_a, grade_b
        Of structures and of descriptions; empty where none was judged.
    excluded
        The person gets no further tasks, and what they did in the week is discarded.

    """

    grade_a: str
    grade_b: str
    excluded: bool


def week_of(moment: dt.datetime) -> dt.date:
    """Return the Monday of the week of a moment, in UTC.

    Raises
    ------
    InvalidInputError
        The moment has no time zone.

    """
    if moment.tzinfo is None:
        raise InvalidInputError("a moment needs its time zone")
    day = moment.astimezone(dt.UTC).date()
    return day - dt.timedelta(days=day.weekday())


def grade_of(percent: float) -> str:
    """Return the grade of an accuracy or a mean score.

    Parameters
    ----------
    percent
        From 0 to 100.

    Raises
    ------
    InvalidInputError
        It lies outside.

    Examples
    --------
    >>> grade_of(90.0), grade_of(89.99), grade_of(59.9)
    ('I', 'II', 'IV')

    """
    if not 0 <= percent <= 100:
        raise InvalidInputError(f"a grade is of 0 to 100 per cent, got {percent}")
    return next(grade for least, grade in BOUNDS if percent >= least)


def weekly(accuracies: Sequence[float], scores: Sequence[float], warnings: Iterable[str]) -> Week:
    """Grade a week of one person.

    Parameters
    ----------
    accuracies
        Of their structures that were decided, from 0 to 1.
    scores
        Totals of their descriptions that were scored, from 0 to 100.
    warnings
        Those of the week.

    """
    grade_a = grade_of(_mean([100 * accuracy for accuracy in accuracies])) if accuracies else ""
    grade_b = grade_of(_mean(scores)) if scores else ""
    return Week(grade_a, grade_b, "IV" in {grade_a, grade_b} or len(list(warnings)) >= MAX_WARNINGS)


def _mean(percents: Sequence[float]) -> float:
    """Return a mean without the last digits, which rounding makes: nobody misses a bound that they have reached."""
    return round(math.fsum(percents) / len(percents), 9)
