"""The fewest edits that make a lyric what was asked for: the corrected variant of the lyric score.

An edit adds, drops or changes one thing that a pattern asks for: a section, a line, a character or pause, or the rhyme
of a line. Sections are paired in order with sections, and within them lines with lines, so that the edits cost least;
what stays without a partner is dropped or added with all that it holds. The alignment is exact, in whole numbers.

Where a lyric only lost or only gained something, there is nothing to choose: no pairing needs fewer edits at a level
than what is missing there, or than what is there too much, and pairing what belongs together needs just as many.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from music_evals.annotations import Pattern
from music_evals.deprecation import warn_renamed

FOREIGN: Final = "x"
"""What stands for a symbol that is neither a Chinese character nor a pause."""

_HALVES: Final = 2  # the maxima of the levels are whole numbers of half points


class Amounts(NamedTuple):
    """Numbers of sections, lines, characters with pauses, and rhymes."""

    sections: int
    lines: int
    characters: int
    rhymes: int


class Edits(NamedTuple):
    """How far a lyric is from its pattern."""

    expected: Amounts  # of the pattern
    needed: Amounts  # edits at each level
    pairs: tuple[tuple[int, int], ...]  # sections: place in the pattern, place in the lyric, from 0
    line_pairs: tuple[tuple[tuple[int, int], ...], ...]  # of each pair of sections, the same of their lines

    @property
    def asked(self) -> Amounts:
        """Old name of `expected`."""
        warn_renamed("Edits.asked", "expected")
        return self.expected


class _Line(NamedTuple):
    """A line that is not blank."""

    place: int
    symbols: str  # ``c``, space, and `FOREIGN`
    rhymes: bool
    sung: bool  # whether it has a Chinese character


class _Section(NamedTuple):
    code: str
    lines: tuple[_Line, ...]

    @property
    def sung(self) -> bool:
        return any(line.sung for line in self.lines)


class _Prices(NamedTuple):
    """What an edit of each kind costs."""

    section: int
    line: int
    character: int
    rhyme: int


def count_edits(
    reference: Pattern, generated: Pattern, codes: Sequence[Sequence[str]], maxima: Sequence[float]
) -> Edits:
    """Return the fewest edits between two patterns."""
    sides = [
        [
            _Section(code, tuple(_read_line(place, line.strip()) for place, line in enumerate(lines) if line.strip()))
            for code, lines in zip(side_codes, side.lines, strict=True)
        ]
        for side_codes, side in zip(codes, (reference, generated), strict=True)
    ]
    expected = _amounts(sides[0])
    if expected.lines and not any(section.sung for section in sides[1]):
        sides[1] = []  # without a Chinese character there is no lyric
    prices = _prices(expected, maxima)
    pair_lines = functools.lru_cache(maxsize=None)(functools.partial(_pair_lines, prices=prices))

    def change(first: _Section, second: _Section) -> int:
        return prices.section * _is_another(first, second) + pair_lines(first.lines, second.lines)[0]

    dropped = [_held(section, prices) for section in sides[0]]
    # what is dropped from a lyric: a rhyme that nobody asked for costs nothing
    added = [_held(section, prices._replace(rhyme=0)) for section in sides[1]]
    _, pairs = _align(sides[0], sides[1], change, dropped, added)
    line_pairs = [pair_lines(sides[0][first].lines, sides[1][second].lines)[1] for first, second in pairs]
    needed = _needed(sides, pairs, line_pairs)
    places = tuple(
        tuple((sides[0][first].lines[a].place, sides[1][second].lines[b].place) for a, b in lines)
        for (first, second), lines in zip(pairs, line_pairs, strict=True)
    )
    return Edits(expected, needed, tuple(pairs), places)


def without_letters(pattern: Pattern) -> Pattern:
    """Return a pattern in which the letters ``c`` and ``R`` of the words themselves are foreign symbols."""
    if not any("c" in word or "R" in word for words in pattern.words for word in words):
        return pattern
    lines = tuple(
        tuple(
            "".join(FOREIGN if sign in "cR" and char == sign else sign for sign, char in zip(line, word, strict=True))
            for line, word in zip(marked, words, strict=True)
        )
        for marked, words in zip(pattern.lines, pattern.words, strict=True)
    )
    return Pattern(_text_of(pattern, lines), pattern.labels, lines, pattern.words)


def _text_of(pattern: Pattern, lines: Sequence[Sequence[str]]) -> str:
    """Return the text of a pattern with other lines of the same lengths."""
    text, at = pattern.text, 0
    parts: list[str] = []
    for label, old, new in zip(pattern.labels, pattern.lines, lines, strict=True):
        start = text.index(f"({label})", at) + len(label) + 2
        parts.append(text[at:start])
        at = start
        for before, after in zip(old, new, strict=True):
            start = text.index(before, at)
            parts += (text[at:start], after)
            at = start + len(before)
    return "".join((*parts, text[at:]))


@functools.lru_cache(maxsize=2**16)
def edit_distance(first: str, second: str) -> int:
    """Return how many symbols have to be added, dropped or changed; a foreign one equals none."""
    # what both have at their start and end costs nothing: the table is of what lies between
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start] != FOREIGN:
        start += 1
    first, second = first[start:], second[start:]
    while first and second and first[-1] == second[-1] != FOREIGN:
        first, second = first[:-1], second[:-1]
    # Levenshtein's table, a row at a time; `before` is the cell to the upper left
    row = list(range(len(second) + 1))
    for a in first:
        before, row[0] = row[0], row[0] + 1
        for j, b in enumerate(second, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b or a == FOREIGN))
    return row[-1]


def _read_line(place: int, line: str) -> _Line:
    sung = "c" in line or "R" in line
    signs = (("c" if sign in "cR" else " " if sign == " " else FOREIGN) if sung else FOREIGN for sign in line)
    return _Line(place, "".join(signs), "R" in line, sung)


def _amounts(sections: Sequence[_Section]) -> Amounts:
    lines = [line for section in sections for line in section.lines]
    return Amounts(
        len(sections), len(lines), sum(len(line.symbols) for line in lines), sum(line.rhymes for line in lines)
    )


def _prices(expected: Amounts, maxima: Sequence[float]) -> _Prices:
    """Return what an edit takes off the score, times the same whole number for all of them."""
    song, *others = (int(_HALVES * most) for most in maxima)
    # a multiple of all that is divided by, so that each price is a whole number
    whole = math.lcm(sum(expected) or 1, *(n or 1 for n in expected))
    # an edit takes off its share of the song level, and that of its own level
    once = song * (whole // (sum(expected) or 1))
    return _Prices(*(once + most * (whole // n) if n else 0 for most, n in zip(others, expected, strict=True)))


def _held(section: _Section, prices: _Prices) -> int:
    """Return what a section costs that has no partner."""
    return prices.section + sum(_held_by_line(line, prices) for line in section.lines)


def _held_by_line(line: _Line, prices: _Prices) -> int:
    return prices.line + len(line.symbols) * prices.character + line.rhymes * prices.rhyme


def _is_another(first: _Section, second: _Section) -> bool:
    """Tell whether a section does not stand for one that was asked for: another code, or lines and nothing sung."""
    return first.code != second.code or (bool(first.lines) and not second.sung)


def _pair_lines(
    first: tuple[_Line, ...], second: tuple[_Line, ...], *, prices: _Prices
) -> tuple[int, list[tuple[int, int]]]:
    def change(expected: _Line, actual: _Line) -> int:
        cost = edit_distance(expected.symbols, actual.symbols) * prices.character + (not actual.sung) * prices.line
        return cost + (expected.rhymes and not actual.rhymes) * prices.rhyme

    dropped = [_held_by_line(line, prices) for line in first]
    added = [_held_by_line(line, prices._replace(rhyme=0)) for line in second]
    return _align(first, second, change, dropped, added)


def _align(
    first: Sequence[_Section] | Sequence[_Line],
    second: Sequence[_Section] | Sequence[_Line],
    change: Callable[..., int],
    dropped: Sequence[int],
    added: Sequence[int],
) -> tuple[int, list[tuple[int, int]]]:
    """Return the least cost of turning one sequence into the other, and what is paired; pairs come first at a tie."""
    n, m = len(first), len(second)
    table = [[0] * (m + 1) for _ in range(n + 1)]
    # the least cost of turning the first i into the first j, row by row
    for j in range(m):
        table[0][j + 1] = table[0][j] + added[j]
    paired = [[0] * m for _ in range(n)]
    for i in range(n):
        above, row = table[i], table[i + 1]
        row[0] = above[0] + dropped[i]
        for j in range(m):
            paired[i][j] = above[j] + change(first[i], second[j])
            row[j + 1] = min(paired[i][j], above[j + 1] + dropped[i], row[j] + added[j])
    # back from the end, along the choices that cost least
    pairs, i, j = [], n, m
    while i and j:
        if table[i][j] == paired[i - 1][j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif table[i][j] == table[i - 1][j] + dropped[i - 1]:
            i -= 1
        else:
            j -= 1
    return table[n][m], pairs[::-1]


def _needed(
    sides: Sequence[Sequence[_Section]],
    pairs: Sequence[tuple[int, int]],
    line_pairs: Sequence[Sequence[tuple[int, int]]],
) -> Amounts:
    """Return the edits of an alignment, level by level."""
    expected, actual = map(_amounts, sides)
    same_sections = same_lines = same_rhymes = 0
    # all characters as if no line had a partner; a pair of lines costs its edit distance in place of its own
    characters = expected.characters + actual.characters
    for (first, second), lines in zip(pairs, line_pairs, strict=True):
        same_sections += not _is_another(sides[0][first], sides[1][second])
        for a, b in lines:
            wanted, got = sides[0][first].lines[a], sides[1][second].lines[b]
            same_lines += got.sung
            same_rhymes += wanted.rhymes and got.rhymes
            characters -= len(wanted.symbols) + len(got.symbols) - edit_distance(wanted.symbols, got.symbols)
    n_lines = sum(map(len, line_pairs))
    # those of both sides without a partner, and the pairs that do not match
    sections = expected.sections + actual.sections - len(pairs) - same_sections
    lines_needed = expected.lines + actual.lines - n_lines - same_lines
    return Amounts(sections, lines_needed, characters, expected.rhymes - same_rhymes)
