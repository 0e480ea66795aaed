"""How far the people of a study agree: annotators with each other, inspectors with each other, and everybody over time.

Every coefficient is 1 where all agree and, but for shares and F-measures, 0 where they agree as often as chance has it.
Its interval is by leaving out songs (or items) in up to `FOLDS` groups, and says where it would lie with other songs
and the same people.

What professionals and amateurs say differently of one song is no disagreement; the task ``discrepancy`` judges it.

References
----------
Wang et al., "MuChin", IJCAI 2024 (inspectors score until they agree); `stats.reliability` for the coefficients,
`metrics.structure` for boundaries and labels (mir_eval).

"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS, Segments
from music_evals.caimap.domain import structure
from music_evals.caimap.domain.assurance import FORMS, PASS_MARK
from music_evals.caimap.domain.grades import week_of
from music_evals.caimap.domain.values import Description, ScoreSheet, Structure
from music_evals.datasets.caimd.schema import effect_tags
from music_evals.deprecation import module_getattr
from music_evals.metrics.structure import boundary_f_measure, segment_ari
from music_evals.protocols import TextEncoder
from music_evals.stats.correlations import jackknife_interval
from music_evals.stats.intervals import mean_interval
from music_evals.stats.reliability import cohen_kappa, krippendorff_alpha, krippendorff_alpha_of_sets

__all__ = [
    "FOLDS",
    "MEASURES",
    "MIN_WEEKS",
    "Coefficient",
    "Drift",
    "Measurement",
    "PersonWeek",
    "drift_of",
    "scoring_agreement",
    "structure_agreement",
    "tag_agreement",
    "verification_agreement",
    "weeks_of",
]

__getattr__ = module_getattr(__name__, {"Judged": "Measurement"})

FOLDS: Final = 50
"""Most groups of songs that are left out in turn."""

MIN_WEEKS: Final = 4
"""Weeks with values that a slope needs."""

MEASURES: Final = ("structure_accuracy", "description_points", "given_points")
"""What is followed over weeks: what annotators reached, from 0 to 1 and from 0 to 100, and what inspectors gave."""

Item = TypeVar("Item")


class Coefficient(NamedTuple):
    """One figure of agreement with its 95 % interval; NaN where it is not defined."""

    measure: str  # its name, as ``"section_kappa"``
    group: str  # of whom: a group of annotators, or a round of inspectors; empty for all
    row: str  # dimension or row of a form; empty for the whole
    value: float
    low: float
    high: float
    n: int  # songs, or items, that it is of: those without a value, as a song without sections, are left out


class Measurement(NamedTuple):
    """A value that somebody reached or gave at some time."""

    person: int  # number of who reached or gave it
    role: str  # of that person
    measure: str  # one of `MEASURES`
    moment: dt.datetime  # with its time zone
    value: float  # in the unit of the measure


class PersonWeek(NamedTuple):
    """What somebody reached or gave in a week."""

    person: int
    role: str
    measure: str
    monday: dt.date
    n: int  # how many values
    mean: float  # their mean
    others: float  # mean of the values of others of the role in the same week; NaN without any


class Drift(NamedTuple):
    """How somebody moves from week to week.

    `slope` is the median slope of the means, a week, with its 95 % interval (Theil and Sen), NaN with fewer than
    `MIN_WEEKS`; `to_others` is the same of what the mean lies above that of the others, NaN with fewer than `MIN_WEEKS`
    with others.
    """

    person: int
    role: str
    measure: str
    weeks: int  # with values
    slope: float
    low: float
    high: float
    to_others: float


# structure


def structure_agreement(pairs: Sequence[tuple[Structure, Structure]]) -> list[Coefficient]:
    """Compare the two passes of each song, one pair a song.

    ``congruent`` is the share of songs whose passes are equal, ``equal_lines`` that of lines that are (`agreement`). Of
    the lines that both have, one line counting as a second: ``boundary_f_measure`` and ``segment_ari``, and Cohen's
    kappa of the kinds of section and of the marks of rhyme, over the lines of all songs.
    """
    shared = [
        [(row.first, row.second) for row in structure.differences(*pair) if row.first and row.second] for pair in pairs
    ]
    shared = [[(first, second) for first, second in rows if first[1] and second[1]] for rows in shared]
    estimates: dict[str, Estimate] = {
        "congruent": _mean([float(structure.congruent(*pair)) for pair in pairs]),
        "equal_lines": _mean([structure.agreement(*pair) for pair in pairs]),
        "boundary_f_measure": _mean([_boundaries(*_segments(rows)) for rows in shared]),
        "segment_ari": _mean([segment_ari(*_segments(rows)) if rows else math.nan for rows in shared], least=-1.0),
        "section_kappa": _kappa([[(_kind(a[0]), _kind(b[0])) for a, b in rows] for rows in shared]),
        "rhyme_kappa": _kappa([[(a[2].endswith("R"), b[2].endswith("R")) for a, b in rows] for rows in shared]),
    }
    return [Coefficient(measure, "professional", "", *values) for measure, values in estimates.items()]


Line = tuple[str, str, str, str]


def _kind(label: str) -> str:
    return label.rstrip("0123456789")


def _segments(rows: Sequence[tuple[Line, Line]]) -> tuple[Segments, Segments]:
    """Return the sections of both sides, a line a second: they begin where the label changes, and are named by kind."""
    return _sections([row[0][0] for row in rows]), _sections([row[1][0] for row in rows])


def _sections(labels: Sequence[str]) -> Segments:
    runs = [(label, len(list(run))) for label, run in itertools.groupby(labels)]
    ends = np.cumsum([length for _, length in runs], dtype=np.float64)
    starts = np.concatenate([[0.0], ends[:-1]])
    return Segments(np.stack([starts, ends], axis=1), tuple(_kind(label) for label, _ in runs))


def _boundaries(first: Segments, second: Segments) -> float:
    """Return the F-measure of boundaries; NaN where neither side has one, which is nobody's mistake."""
    return math.nan if max(len(first.labels), len(second.labels)) < 2 else boundary_f_measure(first, second)


def _kappa(songs: Sequence[Sequence[tuple[object, object]]]) -> Estimate:
    # numbers for names, so that leaving songs out sorts numbers
    codes: dict[object, int] = {}
    coded = [
        np.array([[codes.setdefault(name, len(codes)) for name in pair] for pair in song], dtype=np.int64)
        for song in songs
        if song
    ]
    return _without_each(coded, lambda subset: cohen_kappa(*np.concatenate(subset).T) if subset else math.nan)


# descriptions


def tag_agreement(songs: Sequence[Sequence[Description]], encoder: TextEncoder | None = None) -> list[Coefficient]:
    """Compare what several people of one group tagged; songs with one description play no part.

    Of each dimension with tags ``tag_alpha``: Krippendorff's alpha of the sets of tags (MASI). With an encoder
    ``tag_similarity``, the mean of `tag_semantic_similarity` over pairs of people of a song, and
    ``tag_similarity_unrelated``, the same over pairs of different songs: what tags score that say nothing of the song.
    """
    songs = [song for song in songs if len(song) > 1]
    if not songs:
        return []
    group = songs[0][0].group
    coefficients = []
    for name in DIMENSIONS[group]:
        units = [[tags for description in song if (tags := _tags(description, name))] for song in songs]
        units = [unit for unit in units if len(unit) > 1]
        if not units:
            continue
        alpha = _without_each([[frozenset(tags) for tags in unit] for unit in units], krippendorff_alpha_of_sets)
        coefficients.append(Coefficient("tag_alpha", group, name, *alpha))
        if encoder is not None:
            related, unrelated = _similarities(units, encoder)
            coefficients.append(Coefficient("tag_similarity", group, name, *_mean(related, least=-1.0)))
            values = (unrelated, math.nan, math.nan)
            coefficients.append(Coefficient("tag_similarity_unrelated", group, name, *values, len(units)))
    return coefficients


def _tags(description: Description, dimension: str) -> Sequence[str]:
    if dimension != AUDIO_EFFECTS:
        return description.dimensions[dimension].tags
    effects = description.effects
    return effect_tags(effects.quality, live=effects.live, lo_fi=effects.lo_fi)


def _similarities(units: Sequence[Sequence[Sequence[str]]], encoder: TextEncoder) -> tuple[list[float], float]:
    """Return the mean similarity over pairs within each song, and over all pairs of different songs."""
    names = sorted({tag for unit in units for tags in unit for tag in tags})
    vectors = dict(zip(names, np.asarray(encoder.encode(names), dtype=np.float64), strict=True))
    # the mean over pairs of unit vectors is the inner product of the two means
    means = [np.array([np.mean([vectors[tag] for tag in tags], axis=0) for tags in unit]) for unit in units]
    within = [_pairs_total(rows) for rows in means]
    counts = [len(rows) * (len(rows) - 1) / 2 for rows in means]
    everything = np.concatenate(means)
    apart = len(everything) * (len(everything) - 1) / 2 - sum(counts)
    unrelated = (_pairs_total(everything) - sum(within)) / apart if apart else math.nan
    return [total / count for total, count in zip(within, counts, strict=True)], float(unrelated)


def _pairs_total(rows: npt.NDArray[np.float64]) -> float:
    """Return the sum of the inner products of all pairs of different rows."""
    whole = rows.sum(axis=0)
    return float((whole @ whole - np.sum(rows**2)) / 2)


# inspectors


def scoring_agreement(sheets: Sequence[ScoreSheet], group: str, number: int) -> list[Coefficient]:
    """Compare what inspectors gave descriptions of a group in a round of training, by its number.

    ``points_alpha`` is Krippendorff's alpha (interval) of the totals and of the points of each row of the form, over
    the items that two inspectors have scored.
    """
    items: dict[int, dict[int, ScoreSheet]] = defaultdict(dict)
    for sheet in sheets:
        items[sheet.task][sheet.inspector] = sheet
    scored = [item for _, item in sorted(items.items()) if len(item) > 1]
    if not scored:
        return []
    inspectors = sorted({who for item in scored for who in item})
    name = f"{group}, {number}"
    coefficients = []
    for row in ("", *dict.fromkeys(row for row, _ in FORMS[group])):
        table = [[_points(item[who], row) if who in item else math.nan for who in inspectors] for item in scored]
        values = _without_each(table, krippendorff_alpha)
        coefficients.append(Coefficient("points_alpha", name, row, *values))
    return coefficients


def _points(sheet: ScoreSheet, row: str) -> float:
    return math.fsum(points for (name, _), points in sheet.points.items() if name == row) if row else sheet.total


def verification_agreement(pairs: Sequence[tuple[float, float]]) -> list[Coefficient]:
    """Compare the totals of inspectors with those of the second verification, from 0 to 100.

    ``points_added`` is the mean of second less first, in points, ``pass_kappa`` Cohen's kappa of passing and failing.
    """
    if not pairs:
        return []
    added = _mean([second - first for first, second in pairs], least=-100.0, most=100.0)
    passed = [[(first >= PASS_MARK, second >= PASS_MARK)] for first, second in pairs]
    estimates = {"points_added": added, "pass_kappa": _kappa(passed)}
    return [Coefficient(measure, "inspector", "", *values) for measure, values in estimates.items()]


# weeks


def weeks_of(measurements: Iterable[Measurement]) -> list[PersonWeek]:
    """Return the mean of each person in each week, beside that of the others, in the order of role, measure, person."""
    values: dict[tuple[str, str, dt.date], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for measurement in measurements:
        values[measurement.role, measurement.measure, week_of(measurement.moment)][measurement.person].append(
            measurement.value
        )
    weeks = []
    for (role, measure, monday), people in values.items():
        for person, own in people.items():
            rest = [value for other, theirs in people.items() if other != person for value in theirs]
            others = math.fsum(rest) / len(rest) if rest else math.nan
            mean = math.fsum(own) / len(own)
            weeks.append(PersonWeek(person, role, measure, monday, len(own), mean, others))
    return sorted(weeks, key=lambda row: (row.role, row.measure, row.person, row.monday))


def drift_of(weeks: Iterable[PersonWeek]) -> list[Drift]:
    """Return how each person moves over the weeks, in the order of `weeks_of`."""
    rows: Mapping[tuple[int, str, str], list[PersonWeek]] = defaultdict(list)
    for week in weeks:
        rows[week.person, week.role, week.measure].append(week)
    drifts = []
    for who, own in rows.items():
        slope, low, high = _slope([(week.monday, week.mean) for week in own])
        to_others = _slope([(week.monday, week.mean - week.others) for week in own if not math.isnan(week.others)])
        drifts.append(Drift(*who, len(own), slope, low, high, to_others[0]))
    return drifts


def _slope(points: Sequence[tuple[dt.date, float]]) -> tuple[float, float, float]:
    if len(points) < MIN_WEEKS:
        return math.nan, math.nan, math.nan
    from scipy.stats import theilslopes

    at = [(monday - points[0][0]).days / 7 for monday, _ in points]
    fit = theilslopes([value for _, value in points], at, alpha=0.95)
    return float(fit.slope), float(fit.low_slope), float(fit.high_slope)


# intervals


class Estimate(NamedTuple):
    """A figure with its interval, and of how many songs, sheets or people it is."""

    value: float
    low: float
    high: float
    n: int


def _mean(values: Sequence[float], *, least: float = 0.0, most: float = 1.0) -> Estimate:
    interval = mean_interval(values, None, span=(least, most))
    return Estimate(interval.estimate, interval.low, interval.high, interval.n_defined)


def _without_each(items: Sequence[Item], statistic: Callable[[list[Item]], float]) -> Estimate:
    """Return a statistic with its interval by leaving out items, each alone or in `FOLDS` groups."""
    value = statistic(list(items))
    if len(items) < 3:
        return Estimate(value, math.nan, math.nan, len(items))
    folds = range(min(len(items), FOLDS))
    without = [statistic([item for place, item in enumerate(items) if place % FOLDS != fold]) for fold in folds]
    low, high = jackknife_interval(value, without)
    return Estimate(value, low, min(high, 1.0), len(items))
