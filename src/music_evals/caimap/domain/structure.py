"""Rules of type A: when a song may be skipped, what a structure must hold, and whether two annotations agree.

Two annotations are congruent where they are equal after spaces at the ends of lines and of the theme are taken off:
labels, lines, patterns and corrected readings. Then they are merged into one; else an inspector decides between them.

Source: Wang et al., "MuChin", IJCAI 2024. The paper says "identical"; what is compared is our reading: the theme is
free text, so that two people never write the same, and it does not decide.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from music_evals.caimap.domain.values import Section, Song, Structure
from music_evals.errors import InvalidAnnotationError, importing

SCREENING_REASONS: Final = ("poor_audio", "pornography_or_violence", "not_only_chinese", "other")
"""Why a song may be skipped; ``"other"`` needs a note."""

MAX_LINE: Final = 120
"""Characters of a line; the longest of the released data have less than half."""

MAX_LINES: Final = 400
"""Lines of a song; the released songs have at most 134."""

MAX_THEME: Final = 400
"""Characters of a theme."""


class Difference(NamedTuple):
    """A place of two structures, for the inspector's page: a line, or a section that has none."""

    first: tuple[str, str, str, str] | None
    second: tuple[str, str, str, str] | None
    fields: tuple[str, ...]
    begins: tuple[bool, bool] = (False, False)  # whether a section begins here, on each side


def check_screening(reason: str, note: str = "") -> None:
    """Refuse a screening without a reason."""
    if reason not in SCREENING_REASONS:
        raise InvalidAnnotationError(
            f"a song is skipped for one of {', '.join(SCREENING_REASONS)}, got {reason!r}",
            kind="screening_reason",
            reasons=SCREENING_REASONS,
        )
    if reason == "other" and not note.strip():
        raise InvalidAnnotationError("write why the song is skipped", kind="screening_note")


def pre_annotated(song: Song) -> Structure:
    """Return what the editor shows first: all lines in one verse, with the rhymes of the preparation."""
    marks = song.rhymes or (False,) * len(song.lines)
    lines = [(line.strip(), mark) for line, mark in zip(song.lines, marks, strict=True) if line.strip()]
    patterns = tuple(line_pattern(line, mark) for line, mark in lines)
    return Structure((Section("verse1", tuple(line for line, _ in lines), patterns),), song.theme)


def line_pattern(line: str, rhymes: bool) -> str:  # noqa: FBT001  (a mark belongs to its line)
    """Return the pattern of a line: ``c`` a character, a space a pause, ``R`` at the end if it rhymes."""
    pattern = "".join(" " if letter == " " else "c" for letter in line)
    return pattern[:-1] + "R" if rhymes else pattern


def usual_readings(lines: Sequence[str]) -> list[str]:
    """Return how pypinyin reads the last character of each line, as `values.Section` has it; empty without one."""
    with importing("caimap", "how a line is read"):
        from pypinyin import Style, lazy_pinyin
    how: dict[str, Any] = {"style": Style.TONE3, "v_to_u": True, "neutral_tone_with_five": True, "errors": "ignore"}
    return [["", *lazy_pinyin(line, **how)][-1] for line in lines]


@functools.cache
def _syllables() -> frozenset[str]:
    """Return the syllables of pinyin, without their tones."""
    with importing("caimap", "how a line is read"):
        from pypinyin.contrib.tone_convert import to_normal
        from pypinyin.pinyin_dict import pinyin_dict
    return frozenset(to_normal(reading, v_to_u=True) for reading in set(",".join(pinyin_dict.values()).split(",")))


def _check_readings(section: Section) -> None:
    """Refuse a correction that is no syllable."""
    for reading in filter(None, section.readings):
        if reading[-1] not in "12345" or reading[:-1] not in _syllables():
            raise InvalidAnnotationError(
                f"a reading is a syllable of pinyin and its tone from 1 to 5, as hang2, not {reading!r}",
                kind="reading",
                label=section.label,
                found=reading,
            )


def line_times(lines: Sequence[str], song: Song) -> list[float | None]:
    """Return when each line begins in seconds, by the song's `timed_lyrics`; None of one that was cut or put in."""
    timed = song.timed_lyrics
    ours, theirs = (["".join(line.split()) for line in side] for side in (lines, [line.text for line in timed]))
    times: list[float | None] = [None] * len(lines)
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for tag, start, stop, other, other_stop in matcher.get_opcodes():
        if tag == "equal" or stop - start == other_stop - other == 1:  # or one line that was edited
            times[start:stop] = [line.start for line in timed[other:other_stop]]
    return times


def check_structure(structure: Structure) -> None:
    """Refuse a structure that cannot enter the data set."""
    lines = list(flat_lines(structure))
    if len(lines) > MAX_LINES or len(structure.theme) > MAX_THEME:
        raise InvalidAnnotationError(
            f"at most {MAX_LINES} lines, and {MAX_THEME} characters for the theme",
            kind="structure_length",
            lines=MAX_LINES,
            characters=MAX_THEME,
        )
    if not structure.theme.strip():
        raise InvalidAnnotationError("say in a few words what the song is about", kind="no_theme")
    for number, section in enumerate(structure.sections, 1):
        if not section.lines and section.kind not in {"intro", "interlude", "ending"}:
            raise InvalidAnnotationError(
                f"section {number} ({section.label}) has no line",
                kind="empty_section",
                number=number,
                label=section.label,
            )
        _check_readings(section)
    for label, line, pattern in lines:
        if len(line) > MAX_LINE:
            raise InvalidAnnotationError(
                f"a line of {label} has {len(line)} characters, at most {MAX_LINE} are taken",
                kind="long_line",
                label=label,
                found=len(line),
                most=MAX_LINE,
            )
        if not all("\u4e00" <= letter <= "\u9fff" or letter == " " for letter in line):
            raise InvalidAnnotationError(
                f"lines hold Chinese characters and spaces only, got {line!r} in {label}",
                kind="not_chinese",
                label=label,
                line=line,
            )
        if pattern not in {line_pattern(line, rhymes=False), line_pattern(line, rhymes=True)}:
            raise InvalidAnnotationError(
                f"the pattern {pattern!r} is not that of {line!r}", kind="pattern", line=line, found=pattern
            )


def flat_lines(structure: Structure) -> Iterator[tuple[str, str, str]]:
    """Yield (label, line, pattern) of every line, without spaces at its end."""
    return (place[:3] for place, _ in _places(structure) if place[1])


def congruent(first: Structure, second: Structure) -> bool:
    """Tell whether two annotations of a song agree in labels, lines, patterns and corrected readings."""
    return _places(first) == _places(second)


def merge(first: Structure, second: Structure) -> Structure:
    """Merge two congruent annotations: the form of both, and the longer theme."""
    if not congruent(first, second):
        raise InvalidAnnotationError("the two annotations differ; an inspector settles them")
    theme = max(first.theme.strip(), second.theme.strip(), key=len)
    return Structure(tuple(map(_stripped, first.sections)), theme)


def _stripped(part: Section) -> Section:
    lines = tuple(line.rstrip() for line in part.lines)
    rhyme = tuple(pattern[: len(line)] for line, pattern in zip(lines, part.rhyme, strict=True))
    return Section(part.label, lines, rhyme, part.readings)


def differences(first: Structure, second: Structure) -> list[Difference]:
    """Lay two annotations side by side, line by line."""
    ours, theirs = _places(first), _places(second)
    matcher = difflib.SequenceMatcher(
        None, [_words(place) for place in ours], [_words(place) for place in theirs], autojunk=False
    )
    rows = []
    for _, start, stop, other_start, other_stop in matcher.get_opcodes():
        for offset in range(max(stop - start, other_stop - other_start)):
            left = ours[start + offset] if start + offset < stop else None
            right = theirs[other_start + offset] if other_start + offset < other_stop else None
            rows.append(_difference(left, right))
    return rows


_Place = tuple[tuple[str, str, str, str], bool]
"""(label, line, pattern, reading), and whether a section begins with it."""


def _places(structure: Structure) -> list[_Place]:
    """Return what is compared, one after the other; a section without lines is a place, as it is part of the form."""
    places: list[_Place] = []
    for part in map(_stripped, structure.sections):
        lines = list(zip(part.lines, part.rhyme, part.readings, strict=True)) or [("", "", "")]
        places += [((part.label, *line), number == 0) for number, line in enumerate(lines)]
    return places


def _words(place: _Place) -> str:
    """Return what a place is aligned by: its line, or the label of a section without lines."""
    (label, line, *_), _ = place
    return line or label


_FIELDS: Final = ("label", "line", "rhyme", "reading")


def _difference(left: _Place | None, right: _Place | None) -> Difference:
    begins = left is not None and left[1], right is not None and right[1]
    if left is None or right is None:
        return Difference(left[0] if left else None, right[0] if right else None, _FIELDS, begins)
    differing = [ours != theirs for ours, theirs in zip(left[0], right[0], strict=True)]
    differing[0] = differing[0] or begins[0] != begins[1]
    fields = tuple(name for name, differs in zip(_FIELDS, differing, strict=True) if differs)
    return Difference(left[0], right[0], fields, begins)


def agreement(annotation: Structure, accepted: Structure) -> float:
    """Return the share of lines that an annotation has as the accepted one has them, from 0 to 1, higher is better.

    Lines of both are aligned as in `differences`, and a section without lines counts as one; a line counts if label,
    words, pattern and reading agree, and if its section begins in both or neither. So it is 1 for congruent annotations
    alone. The weekly accuracy of type A (table 4 of the paper, which does not say what is counted) is the mean of this
    over an annotator's tasks.
    """
    rows = differences(annotation, accepted)
    return sum(not row.fields for row in rows) / len(rows)
