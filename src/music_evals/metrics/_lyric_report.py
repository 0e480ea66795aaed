"""Where a structured lyric lost its points: section by section and line by line, as values and as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from music_evals.annotations import Pattern

__all__ = ["Level", "LineReport", "SectionReport", "line_counts", "report_sections", "reported_sections"]

_MATCHED: Final = "matched"
_MISSING: Final = "missing"
_EXTRA: Final = "extra"


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
    expected: str | None  # patterns, stripped; None where there is none
    found: str | None
    words: str | None  # the line as written; None where it is not known
    expected_count: int  # characters that the word level counts
    found_count: int
    foreign_count: int  # characters of the line that are none of ``c``, ``R`` and space: Latin, punctuation
    ratio: float  # of this line at the word level, 0..1; NaN where it was not compared
    rhyme_expected: bool  # whether the pattern asks for a rhyme, and whether the line has one
    rhyme_found: bool

    @property
    def lossless(self) -> bool:
        """Whether the line costs nothing at the phrase, word and rhyme level."""
        return self.status == _MATCHED and self.ratio == 1.0 and self.rhyme_expected == self.rhyme_found


class SectionReport(NamedTuple):
    """A section and its counterpart."""

    status: str  # ``"matched"``, ``"missing"`` (expected and not there) or ``"extra"`` (there and not expected)
    expected_label: str | None  # without brackets; None where there is no such section
    found_label: str | None
    expected_index: int | None  # its place among the sections of its text, from 0; None where there is no such section
    found_index: int | None
    lines: tuple[LineReport, ...]  # in their order: compared ones first, then missing or extra ones


def line_counts(expected: str, found: str, variant: str) -> tuple[int, int, int]:
    """Return what the word level compares of two stripped lines: common, expected and found count."""
    # Official: the common count is at most the line's ``c``, ``R`` and spaces, while foreign characters lengthen it.
    # Paper: only ``c`` and ``R`` count.
    characters = found.count("c") + found.count("R")
    if variant == "paper":
        wanted = expected.count("c") + expected.count("R")
        return min(wanted, characters), wanted, characters
    wanted = len(expected)
    return min(wanted, characters + found.count(" ")), wanted, len(found)


def report_sections(
    reference: Pattern, generated: Pattern, pairs: Sequence[tuple[int, int]], variant: str
) -> tuple[SectionReport, ...]:
    """Return the sections of both texts in reading order, matched ones once."""
    reports: list[SectionReport] = []
    at_reference = at_generated = 0
    for first, second in [*pairs, (len(reference.labels), len(generated.labels))]:
        reports += [_alone(reference, index, _MISSING, variant) for index in range(at_reference, first)]
        reports += [_alone(generated, index, _EXTRA, variant) for index in range(at_generated, second)]
        if first < len(reference.labels):
            lines = tuple(_lines(reference, generated, first, second, variant))
            labels = reference.labels[first], generated.labels[second]
            reports.append(SectionReport(_MATCHED, *labels, first, second, lines))
        at_reference, at_generated = first + 1, second + 1
    return tuple(reports)


def reported_sections(reports: Sequence[SectionReport]) -> Iterator[str]:
    """Yield a line of text for each section and line that lost points; all sections in reading order."""
    expected = found = 0  # place among the sections of its text, from 1
    for report in reports:
        expected += report.status != _EXTRA
        found += report.status != _MISSING
        if report.status == _MISSING:
            yield f"section {expected} ({report.expected_label}) is missing"
        elif report.status == _EXTRA:
            yield f"section ({report.found_label}), number {found} of the lyrics, is not expected"
        elif not all(line.lossless for line in report.lines):
            yield f"section {expected} ({report.expected_label}): {_told_lengths(report.lines)}"
            yield from _told_lines(report.lines)


def _lines(reference: Pattern, generated: Pattern, first: int, second: int, variant: str) -> Iterator[LineReport]:
    expected, found = reference.lines[first], generated.lines[second]
    words = _words(generated, second)
    for index in range(max(len(expected), len(found))):
        yield _line(
            expected[index].strip() if index < len(expected) else None,
            found[index].strip() if index < len(found) else None,
            words[index] if index < len(words) else None,
            variant,
        )


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


def _line(expected: str | None, found: str | None, words: str | None, variant: str) -> LineReport:
    common, wanted, got = line_counts(expected or "", found or "", variant)
    compared = expected is not None and found is not None
    status = _MATCHED if compared else _MISSING if found is None else _EXTRA
    # two blank lines: nothing is asked for, nothing is lost
    ratio = math.nan if not compared else 2.0 * common / (wanted + got) if wanted + got else 1.0
    foreign = len(found or "") - sum((found or "").count(each) for each in "cR ")
    count = len(found or "") - foreign if variant != "paper" else got
    return LineReport(
        status, expected, found, words, wanted, count, foreign, ratio, "R" in (expected or ""), "R" in (found or "")
    )


def _told_lengths(lines: Sequence[LineReport]) -> str:
    expected, found = (sum(getattr(line, side) is not None for line in lines) for side in ("expected", "found"))
    return f"{expected} lines expected, {found} found"


def _told_lines(lines: Sequence[LineReport]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if not line.lossless:
            shown = f" {line.words.strip()!r}" if line.words else ""
            yield f"  line {number}{shown}: {'; '.join(_faults(line))}"


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
    if line.rhyme_expected != line.rhyme_found:
        yield "a rhyme is expected" if line.rhyme_expected else "rhymes where no rhyme is expected"
