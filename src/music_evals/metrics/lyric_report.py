"""Where a structured lyric lost its points: section by section and line by line, as values and as text."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from music_evals.annotations import Pattern
from music_evals.deprecation import warn_renamed
from music_evals.metrics.lyric_edits import FOREIGN, edit_distance

if TYPE_CHECKING:
    from music_evals.metrics.lyric_structure import LyricStructure

_MATCHED: Final = "matched"
_MISSING: Final = "missing"
_EXTRA: Final = "extra"

Places = tuple[int | None, int | None]
"""Of a line among the expected and among the actual ones."""


class Level(NamedTuple):
    """One of the levels that points are given for."""

    name: str  # ``"song"``, ``"section"``, ``"phrase"``, ``"word"``, ``"rhyme"`` or ``"reward"``
    points: float  # what was reached, and what can be
    maximum: float
    ratio: float  # of this level alone, 0..1; of the reward its factor. Points also carry the ratios of earlier levels
    reason: str  # in words


class LineReport(NamedTuple):
    """A line and what was expected of it."""

    status: str  # ``"matched"``: compared. ``"missing"``: expected and not there. ``"extra"``: there and not expected
    expected: str | None  # patterns, stripped; None if missing
    actual: str | None
    words: str | None  # the line as written; None where it is not known
    expected_count: int  # characters that the word level counts
    found_count: int
    foreign_count: int  # characters of the line other than ``c``, ``R`` and space: Latin, punctuation
    ratio: float  # of this line at the word level, 0..1; NaN where it was not compared
    rhyme_expected: bool  # whether the pattern asks for a rhyme, and whether the line has one
    rhyme_found: bool
    extra_rhyme_costs: bool = True  # whether a rhyme that was not expected does

    @property
    def found(self) -> str | None:
        """Old name of `actual`."""
        warn_renamed("LineReport.found", "actual")
        return self.actual

    @property
    def rhyme_lost(self) -> bool:
        """Whether the rhyme, or that there is one, costs something at the rhyme level."""
        return self.rhyme_expected != self.rhyme_found and (self.rhyme_expected or self.extra_rhyme_costs)

    @property
    def lossless(self) -> bool:
        """Whether the line costs nothing at the phrase, word and rhyme level."""
        return self.status == _MATCHED and self.ratio == 1.0 and not self.rhyme_lost


class SectionReport(NamedTuple):
    """A section and its counterpart."""

    status: str  # ``"matched"``, ``"missing"`` (expected and not there) or ``"extra"`` (there and not expected)
    expected_label: str | None  # without brackets; None where there is no such section
    found_label: str | None
    expected_index: int | None  # its place among the sections of its text, from 0; None where there is no such section
    found_index: int | None
    lines: tuple[LineReport, ...]  # in their order: compared ones first, then missing or extra ones


def line_counts(expected: str, actual: str, variant: str) -> tuple[int, int, int]:
    """Return what the word level compares of two stripped lines: common, expected and found count."""
    # Official: the common count is at most the line's ``c``, ``R`` and spaces, while foreign characters lengthen it.
    # Paper: only ``c`` and ``R`` count.
    characters = actual.count("c") + actual.count("R")
    if variant == "paper":
        wanted = expected.count("c") + expected.count("R")
        return min(wanted, characters), wanted, characters
    wanted = len(expected)
    return min(wanted, characters + actual.count(" ")), wanted, len(actual)


def report_sections(
    reference: Pattern,
    generated: Pattern,
    pairs: Sequence[tuple[int, int]],
    variant: str,
    line_pairs: Sequence[Sequence[tuple[int, int]]] | None = None,
) -> tuple[SectionReport, ...]:
    """Return the sections of both texts in reading order, matched ones once; lines are paired by place by default."""
    reports: list[SectionReport] = []
    at_reference = at_generated = 0
    for number, (first, second) in enumerate([*pairs, (len(reference.labels), len(generated.labels))]):
        reports += [_alone(reference, index, _MISSING, variant) for index in range(at_reference, first)]
        reports += [_alone(generated, index, _EXTRA, variant) for index in range(at_generated, second)]
        if first < len(reference.labels):
            sides = reference.lines[first], generated.lines[second]
            places: Iterable[Places]
            if line_pairs is None:  # by their places
                places = itertools.zip_longest(range(len(sides[0])), range(len(sides[1])))
            else:
                places = _in_reading_order(*sides, line_pairs[number])
            words = _words(generated, second)
            lines = tuple(
                _line(
                    None if a is None else sides[0][a].strip(),
                    None if b is None else sides[1][b].strip(),
                    None if b is None else words[b],
                    variant,
                )
                for a, b in places
            )
            labels = reference.labels[first], generated.labels[second]
            reports.append(SectionReport(_MATCHED, *labels, first, second, lines))
        at_reference, at_generated = first + 1, second + 1
    return tuple(reports)


def reported_sections(reports: Sequence[SectionReport]) -> Iterator[str]:
    """Yield a line of text for each section and line that lost points; all sections in reading order."""
    expected = actual = 0  # place among the sections of its text, from 1
    for report in reports:
        expected += report.status != _EXTRA
        actual += report.status != _MISSING
        if report.status == _MISSING:
            yield f"section {expected} ({report.expected_label}) is missing"
        elif report.status == _EXTRA:
            yield f"section ({report.found_label}), number {actual} of the lyrics, is not expected"
        else:
            # with another initial than was asked for only the fewest edits match a section
            labels = report.found_label or "", report.expected_label or ""
            named = f", headed ({labels[0]})" if labels[0][0].upper() != labels[1][0].upper() else ""
            if not named and all(line.lossless for line in report.lines):
                continue
            n_lines = [sum(getattr(line, side) is not None for line in report.lines) for side in ("expected", "actual")]
            yield f"section {expected} ({labels[1]}){named}: {n_lines[0]} lines expected, {n_lines[1]} found"
            for number, line in enumerate(report.lines, start=1):
                if not line.lossless:
                    shown = f" {line.words.strip()!r}" if line.words else ""
                    yield f"  line {number}{shown}: {'; '.join(_faults(line))}"


def _in_reading_order(
    expected: Sequence[str], actual: Sequence[str], pairs: Sequence[tuple[int, int]]
) -> Iterator[Places]:
    """Yield the places of paired lines, and between them of those without a partner; blank lines have none."""
    a = b = 0
    for first, second in [*pairs, (len(expected), len(actual))]:
        yield from ((index, None) for index in range(a, first) if expected[index].strip())
        yield from ((None, index) for index in range(b, second) if actual[index].strip())
        if first < len(expected):
            yield first, second
        a, b = first + 1, second + 1


def _alone(pattern: Pattern, index: int, status: str, variant: str) -> SectionReport:
    label, words = pattern.labels[index], _words(pattern, index)
    if status == _MISSING:
        missing = tuple(_line(line.strip(), None, None, variant) for line in pattern.lines[index])
        return SectionReport(status, label, None, index, None, missing)
    extra = tuple(
        _line(None, line.strip(), word, variant) for line, word in zip(pattern.lines[index], words, strict=True)
    )
    return SectionReport(status, None, label, None, index, extra)


def _words(pattern: Pattern, index: int) -> Sequence[str | None]:
    return pattern.words[index] if pattern.words else [None] * len(pattern.lines[index])


def _line(expected: str | None, actual: str | None, words: str | None, variant: str) -> LineReport:
    common, wanted, got = line_counts(expected or "", actual or "", variant)
    compared = expected is not None and actual is not None
    status = _MATCHED if compared else _MISSING if actual is None else _EXTRA
    # two blank lines: nothing is asked for, nothing is lost
    ratio = math.nan if not compared else 2.0 * common / (wanted + got) if wanted + got else 1.0
    if expected is not None and actual is not None and variant == "corrected":
        edits = edit_distance(expected.replace("R", "c"), re.sub("[^c ]", FOREIGN, actual.replace("R", "c")))
        ratio = max(0.0, 1.0 - edits / len(expected)) if expected else float(not actual)
    foreign = len(actual or "") - sum((actual or "").count(each) for each in "cR ")
    count = len(actual or "") - foreign if variant != "paper" else got
    rhymes = "R" in (expected or ""), "R" in (actual or "")
    return LineReport(
        status,
        expected,
        actual,
        words,
        wanted,
        count,
        foreign,
        ratio,
        *rhymes,
        extra_rhyme_costs=variant != "corrected",
    )


def _faults(line: LineReport) -> Iterator[str]:
    if line.status == _MISSING:
        yield f"missing, {line.expected_count} characters expected"
        return
    if line.status == _EXTRA:
        yield "not expected"
        return
    if line.ratio != 1.0:
        foreign = f" and {line.foreign_count} foreign ones" if line.foreign_count else ""
        yield f"{line.expected_count} characters expected, {line.found_count}{foreign} found, ratio {line.ratio:.3f}"
    if line.rhyme_lost:
        yield "a rhyme is expected" if line.rhyme_expected else "rhymes where no rhyme is expected"


def level_reasons(score: LyricStructure) -> tuple[str, ...]:
    """Return a reason for each level and for the reward."""
    if score.variant == "corrected":
        needed, wanted = score.edits.needed, score.edits.expected
        return (
            f"{sum(needed)} edits of all kinds; {sum(wanted)} things asked for",
            f"{needed.sections} sections to add, drop or rename; {wanted.sections} asked for",
            f"{needed.lines} lines to add or drop; {wanted.lines} asked for",
            f"{needed.characters} characters and pauses to add, drop or change; {wanted.characters} asked for",
            f"{needed.rhymes} rhymes missing; {wanted.rhymes} asked for",
            "no reward under this variant",
        )
    expected, actual = (" ".join(codes) or "none" for codes in (score.expected_codes, score.found_codes))
    rhymes = f"{score.expected_rhymes} rhyming lines expected among the compared ones, {score.found_rhymes} found"
    return (
        "of the whole pattern is matched in order",
        f"sections {expected}" if expected == actual else f"sections {expected} expected, {actual} found",
        f"{score.compared_lines} lines compared, {round(score.matched_lines)} in the matched sections of both sides",
        "product of the ratios of all compared lines" if score.variant == "official" else "of the characters match",
        rhymes,
        f"{score.rhyme_share:.3f} of the compared lines rhyme{_reward_reason(score)}",
    )


def _reward_reason(score: LyricStructure) -> str:
    if score.reward_factor == 1.0:
        return ", which is within 0.6 to 0.8"
    if score.reward_factor == 0.7:
        return ", as many as expected; 0.6 to 0.8 would earn all"
    if score.variant == "official" and score.rhyme_share == 1.0:
        return ", which earns nothing in the official code; 0.6 to 0.8 would earn all"
    return "; 0.6 to 0.8 would earn all"
