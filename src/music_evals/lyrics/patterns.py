"""Song texts and their patterns: where sections begin, what the grammar of a pattern is, and the pattern of a text.

A header is a word in round brackets, ``(verse1)``. In a pattern ``c`` is a character, ``R`` the last character of a
line that rhymes within its section, a space a pause. The grammar of a pattern, as in the released data of MuChin::

    pattern = section { newline section } [ newline ]
    section = "(" label ")" { newline line }
    line    = { "c" | " " } ( "c" | "R" | " " )        not of spaces alone

with labels of letters, digits, ``_`` and ``-``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from music_evals.annotations import LyricSection, Pattern
from music_evals.errors import InvalidPatternError, UnsupportedTypeError
from music_evals.lyrics.rhyme import RhymeMethod, class_counts, last_character, rhyme_function

__all__ = [
    "LEAST_CHINESE",
    "SplitText",
    "TextSection",
    "check_pattern",
    "chinese_share",
    "mark_lyrics",
    "read_pattern",
    "split_sections",
]

LEAST_CHINESE: Final = 0.5
"""Share of the letters that are Chinese in lyrics that count as Chinese; ours."""

# the authors' expression: `\w` holds every script's letters, so that a bracketed word inside a line is a header too
_HEADER: Final = re.compile(r"\(([\w-]+)\)\n?")
_CHINESE: Final = re.compile(r"[\u4e00-\u9fff]+")
_WRONG: Final = re.compile(r"R(?=[cR ])|[^cR \n]")
_BLANK: Final = re.compile(r"(?:^|(?<=\n)) *(?:\n|\Z)")


class TextSection(NamedTuple):
    """A section as it stands in a text."""

    label: str
    header: str
    """With its brackets, and with its newline where it has one."""
    body: str
    """All up to the next header."""
    start: int
    """Where the header begins in the text."""


class SplitText(NamedTuple):
    """A text cut at its headers."""

    preamble: str
    """What stands before the first header; empty where there is no header."""
    sections: tuple[TextSection, ...]


def chinese_share(text: str) -> float:
    r"""Return how many of the letters of a text are Chinese, from 0 to 1; 0 where it has no letter.

    Lines that begin with a round bracket are headers and do not count.

    Examples
    --------
    >>> chinese_share("(verse1)\n春眠 ok")
    0.5
    """
    letters = "".join(char for line in text.split("\n") if not line.startswith("(") for char in line if char.isalpha())
    return len("".join(_CHINESE.findall(letters))) / len(letters) if letters else 0.0


def split_sections(text: str) -> SplitText:
    """Cut a text at its headers, wherever they stand.

    Any ``(word)`` is a header, even inside a line; brackets of another kind, or around several words, are not.
    """
    headers = list(_HEADER.finditer(text))
    if not headers:
        return SplitText("", ())
    ends = [each.start() for each in headers[1:]] + [len(text)]
    sections = tuple(
        TextSection(each[1], each[0], text[each.end() : end], each.start())
        for each, end in zip(headers, ends, strict=True)
    )
    return SplitText(text[: headers[0].start()], sections)


def mark_lyrics(text: str, rhyme: RhymeMethod = "official") -> Pattern:
    r"""Return the pattern of lyrics, as MuChin's scorer derives it.

    Each Chinese character (U+4E00 to U+9FFF) becomes ``c``. The last one of a line becomes ``R`` if another line of the
    same section has its rhyme class. Sections that are sung again are handled one by one. What stands before the
    first header is kept, and is in no section; a text without a header has an empty pattern.

    The text has one phrase a line; `rhyme` is a method that `music_evals.lyrics.rhyme.rhyme_function` takes.

    Examples
    --------
    >>> print(mark_lyrics("(verse)\n床前明月光\n疑是地上霜\n举头望明月\n低头思故乡", "char").text)
    (verse)
    ccccR
    ccccR
    ccccc
    ccccR
    """
    find = rhyme_function(rhyme)
    split = split_sections(text)
    known: dict[str, Hashable] = {}  # a song repeats its lines
    parts, labels, lines, words = [split.preamble], [], [], []
    for section in split.sections:
        written = section.body.splitlines()
        parts += (section.header, _marked_body(section.body, written, find, known))
        labels.append(section.label)
        lines.append(tuple(parts[-1].splitlines()))
        words.append(tuple(written))
    return Pattern("".join(parts), tuple(labels), tuple(lines), tuple(words))


def read_pattern(text: str) -> tuple[LyricSection, ...]:
    r"""Read a pattern, strictly: what is not in the grammar of this module's head is an error.

    There is at least one section, which may be without lines. `InvalidPatternError` tells line and column, both counted
    from 1, what was expected and what came. What is no text is an `UnsupportedTypeError`.

    Examples
    --------
    >>> read_pattern("(verse1)\nccccR\nccc ccR")
    (LyricSection(label='verse1', lines=('ccccR', 'ccc ccR')),)
    """
    split = check_pattern(text)
    for section in split.sections:
        end = section.start + len(section.header)
        if section.start and text[section.start - 1] != "\n":
            raise _error(text, section.start, f"the header ({section.label}) must stand on a line of its own")
        if section.body and not section.header.endswith("\n"):
            raise _error(text, end, f"expected the end of the line after ({section.label}), got {section.body[0]!r}")
        blank = _BLANK.search(section.body)
        if blank and blank.start() < len(section.body):
            raise _error(text, end + blank.start(), "expected a line of 'c' and 'R', got a blank one; leave it out")
    return tuple(LyricSection(section.label, tuple(section.body.splitlines())) for section in split.sections)


def check_pattern(text: str) -> SplitText:
    """Check what a scorer needs of a pattern, and cut it: as `read_pattern`, but for layout.

    Headers may stand inside a line, as in the example of the authors' read-me, and lines may be blank.
    """
    if not isinstance(text, str):
        raise UnsupportedTypeError(f"a pattern must be a text with headers such as (verse1), got {type(text).__name__}")
    split = split_sections(text)
    if split.preamble or not split.sections:
        first = split.preamble or text
        shown = repr(f"{first[:20]}..." if len(first) > 20 else first) if first else "an empty text"
        raise _error(text, 0, f"expected a header in round brackets, as (verse1), got {shown}")
    for section in split.sections:
        if wrong := _WRONG.search(section.body):
            complaint = {
                "R": "'R' is the last character of a rhyming line; nothing may follow it",
                "\r": "expected lines that end with '\\n', got '\\r'; replace Windows line ends",
            }.get(
                wrong[0],
                f"expected 'c' for a character, 'R' for the last one of a rhyming line, or a space, got {wrong[0]!r}",
            )
            raise _error(text, section.start + len(section.header) + wrong.start(), complaint)
    return split


def _marked_body(body: str, written: list[str], find: Callable[[str], Hashable], known: dict[str, Hashable]) -> str:
    """Return the pattern of a section's body, of the same length and with the same line ends."""
    marked = _CHINESE.sub(lambda match: "c" * len(match[0]), body)
    classes = []
    for line in written:
        if line not in known:
            known[line] = find(line)
        classes.append(known[line])
    counts = class_counts(classes)
    if not counts or max(counts.values()) < 2:
        return marked
    lines = marked.splitlines(keepends=True)
    for at, each in enumerate(classes):
        last = last_character(written[at]) if counts.get(each, 0) > 1 else -1
        if last >= 0:
            lines[at] = f"{lines[at][:last]}R{lines[at][last + 1 :]}"
    return "".join(lines)


def _error(text: str, place: int, complaint: str) -> InvalidPatternError:
    line, column = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
    return InvalidPatternError(f"pattern, line {line}, column {column}: {complaint}")
