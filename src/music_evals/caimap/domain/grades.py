"""Weekly grades of annotators, warnings for work that is superficial, and who is excluded.

Source: Wang et al., "MuChin", IJCAI 2024, tables 4 and 5: accuracy of type A and mean score of type B, both in per
cent; I from 90, II from 70, III from 60, IV below. Grade IV, or two warnings,
excludes, and the week's data are discarded.

A task is warned of once at most. Two warnings in a week exclude, so that one of an honest person has to be rare. The
paper warns by page time, interactions with the progress bar, clicks and skips, and names no thresholds. Ours rest on
469 songs of the MuChin release (`benchmarks.caimap.thresholds`): 2 have nine lines of ten under one label; five drawn
at random have at most two sequences of labels in 0.015 % of the draws, and ten at most five in 0.003 %; no two
descriptions of a group share over 80 % of their runs of three characters, all texts of a song together. The overall
texts of professionals alone do: 7 % share 90 % with that of another song, which is what `_SAME_TEXT` is for. 4 % share
90 % of their tags, so that equal tags do not warn.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from music_evals.caimap.domain.description import texts_of
from music_evals.caimap.domain.listening import Listening
from music_evals.caimap.domain.structure import agreement, congruent
from music_evals.caimap.domain.values import Description, Structure
from music_evals.errors import InvalidInputError

BOUNDS: Final = ((90.0, "I"), (70.0, "II"), (60.0, "III"), (0.0, "IV"))
"""Least per cent of each grade, best first."""

MAX_WARNINGS: Final = 2
"""So many warnings in a week exclude."""


class Week(NamedTuple):
    """What a week of one person amounts to."""

    grade_a: str
    grade_b: str
    excluded: bool  # the person gets no further tasks, and what they did in the week is discarded


def week_of(moment: dt.datetime) -> dt.date:
    """Return the Monday of the week of a moment, in UTC."""
    if moment.tzinfo is None:
        raise InvalidInputError("a moment needs its time zone")
    day = moment.astimezone(dt.UTC).date()
    return day - dt.timedelta(days=day.weekday())


def grade_of(percent: float) -> str:
    """Return the grade of an accuracy or a mean score."""
    if not 0 <= percent <= 100:
        raise InvalidInputError(f"a grade is of 0 to 100 per cent, got {percent}")
    return next(grade for least, grade in BOUNDS if percent >= least)


def weekly(accuracies: Sequence[float], scores: Sequence[float], warnings: Iterable[str]) -> Week:
    """Grade a week of one person."""
    grade_a = grade_of(_mean([100 * accuracy for accuracy in accuracies])) if accuracies else ""
    grade_b = grade_of(_mean(scores)) if scores else ""
    return Week(grade_a, grade_b, "IV" in {grade_a, grade_b} or len(list(warnings)) >= MAX_WARNINGS)


def _mean(percents: Sequence[float]) -> float:
    """Return a mean without the last digits, which rounding makes: nobody misses a bound that they have reached."""
    return round(math.fsum(percents) / len(percents), 9)


_LABELLING, _STUDYING = 0.6, 1.2  # durations of the song on the page of a structure and of a description
_MIN_PLAYED = 0.5  # of the song, for a structure
_FEW_CLICKS = 24  # before a song was heard whole; who searches it afterwards studies it
_ONE_LABEL, _FEW_LINES = 0.9, 4  # share of lines under one label, as all are at first; a song of fewer has one
_SAME_SEC, _SAME_SHARE = 0.1, 0.02
_ALIKE: Final = ((5, 2), (10, 5))  # (structures in a row, sequences of labels)
_SAME_TEXT = 0.85

MOST_EARLIER: Final = _ALIKE[-1][0] - 1
"""Earlier structures of somebody that play a part."""

AT_A_TIME: Final = 5
"""Tasks in a row whose times are compared."""


class Visit(NamedTuple):
    """When a task was handed in and first played (0 if never), in seconds since it was opened; length of the song."""

    page_sec: float
    start_sec: float
    duration_sec: float


def structure_warning(
    annotation: Structure, earlier: Sequence[Structure], listening: Listening, visits: Sequence[Visit]
) -> str:
    """Name what looks superficial in a structure, or return an empty string."""
    page_sec, _, duration_sec = visits[-1]
    if page_sec < _LABELLING * duration_sec:
        return "short_visit"
    if listening.heard_sec < _MIN_PLAYED * duration_sec:
        return "unheard"
    labels = [section.label for section in annotation.sections for _ in section.lines]
    if len(labels) >= _FEW_LINES and max(map(labels.count, labels)) >= _ONE_LABEL * len(labels):
        return "unchanged"
    shapes = [tuple(section.label for section in structure.sections) for structure in (*earlier, annotation)]
    if any(len(shapes) >= row and len(set(shapes[-row:])) <= most for row, most in _ALIKE):
        return "all_alike"
    return _timing(visits[-AT_A_TIME:])


def description_warning(
    annotation: Description, others: Iterable[Description], listening: Listening, visits: Sequence[Visit]
) -> str:
    """Name what looks superficial in a description, or return an empty string."""
    page_sec, _, duration_sec = visits[-1]
    if page_sec < _STUDYING * duration_sec:
        return "short_visit"
    if max(listening.pauses, listening.seeks) > _FEW_CLICKS:
        return "restless"
    ours = _runs(annotation)
    if any(2 * len(ours & runs) >= _SAME_TEXT * (len(ours) + len(runs)) > 0 for runs in map(_runs, others)):
        return "copied"
    return _timing(visits[-AT_A_TIME:])


def agree_on_wrong(first: Structure, second: Structure, accepted: Structure) -> bool:
    """Tell whether two passes are the same and grade IV: two who work for themselves hardly make the same mistakes."""
    return congruent(first, second) and 100 * agreement(first, accepted) < BOUNDS[-2][0]


def _runs(description: Description) -> set[str]:
    plain = ["".join(text.split()) for text in texts_of(description)]
    return {text[at : at + 3] for text in plain for at in range(len(text) - 2)}


def _timing(last: Sequence[Visit]) -> str:
    """Find times that no person keeps to: on the page, beyond the song, in durations of it, or to its start."""
    factors_sec = [visit.page_sec / max(visit.duration_sec, 1) * last[0].duration_sec for visit in last]
    left_sec = [visit.page_sec - visit.duration_sec for visit in last]
    times = [visit.page_sec for visit in last], factors_sec, left_sec, [visit.start_sec for visit in last]
    regular = any(max(row) - min(row) <= max(_SAME_SEC, _SAME_SHARE * abs(row[0])) for row in times)
    return "regular_timing" if regular and len(last) >= AT_A_TIME else ""
