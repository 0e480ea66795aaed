"""Song texts in sections: a header line ``(verse1)``, then one lyric phrase a line.

The same form holds words and patterns. In a pattern ``c`` is a character, ``R`` the last character of a line that
rhymes within its section, a space a pause: ``ccccc ccccR``. `sections_text` and `sections_of_text` write and read that
form; `Pattern` is a whole song in it, as scores compare them. Labels that are empty or hold brackets, lines
that hold line breaks (`InvalidLyricsError`), and labels, lines and words of a pattern that differ in number
(`InvalidPatternError`) are refused.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from music_evals.errors import InvalidLyricsError, InvalidPatternError

_HEADER: Final = re.compile(r"\(([\w-]+)\)")  # what the authors' scorer takes for one


@dataclasses.dataclass(frozen=True)
class LyricSection:
    """A section of a song text.

    Parameters
    ----------
    label
        Without brackets, as ``"verse1"`` or ``"pre-chorus"``.
    lines
        Phrases, or their patterns.
    """

    label: str
    lines: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(self.lines))
        if not self.label or set(self.label) & set("()\n\r"):
            raise InvalidLyricsError(
                f"a section label must be a word without brackets, as 'verse1', got {self.label!r}"
            )
        for line in self.lines:
            if "\n" in line or "\r" in line:
                raise InvalidLyricsError(
                    f"a line of section {self.label!r} holds a line break: {line!r}; give one phrase an entry"
                )

    @property
    def kind(self) -> str:
        """The label without its number: ``"verse"`` of ``"verse1"``."""
        return self.label.rstrip("0123456789") or self.label


@dataclasses.dataclass(frozen=True)
class Pattern:
    """A song text whose characters are replaced by ``c`` and ``R``; all else stays as it is.

    Parameters
    ----------
    text
        The whole, with headers and what stands before the first; empty where there is no header.
    labels
        One a section, without brackets.
    lines
        Pattern of each line of each section: ``c`` a character, ``R`` the last one of a rhyming line, a space a pause;
        anything else is foreign.
    words
        The lines as they were, for explanations; empty where they are not known.
    """

    text: str
    labels: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    words: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        for name in ("lines", "words"):
            object.__setattr__(self, name, tuple(map(tuple, getattr(self, name))))
        if len(self.labels) != len(self.lines) or (self.words and [*map(len, self.words)] != [*map(len, self.lines)]):
            reported = f"{len(self.labels)} labels, {[*map(len, self.lines)]} lines and {[*map(len, self.words)]} words"
            raise InvalidPatternError(
                f"a pattern needs lines for each label, and words for each line or none at all, got {reported}"
            )
        if not all(self.labels):
            raise InvalidPatternError(
                f"section {self.labels.index('') + 1} of a pattern has an empty label; name it, as 'verse1'"
            )


def sections_of_rows(rows: Iterable[Mapping[str, Any]], field: str = "lines") -> tuple[LyricSection, ...]:
    """Return the sections of a `structure` column of CaiMD: its ``lines``, or with ``field="rhyme"`` its pattern."""
    return tuple(LyricSection(row["label"], tuple(row[field])) for row in rows)


def sections_text(sections: Sequence[LyricSection], *, numbered: bool = True) -> str:
    """Write sections as text, without a newline at the end; without numbers as ``(verse)`` for ``(verse1)``.

    Examples
    --------
    >>> print(sections_text([LyricSection("verse1", ("ccccc", "ccccR"))], numbered=False))
    (verse)
    ccccc
    ccccR
    """
    return "\n".join(line for part in sections for line in (f"({part.label if numbered else part.kind})", *part.lines))


def sections_of_text(text: str) -> tuple[LyricSection, ...]:
    r"""Read what `sections_text` writes: each header on a line of its own, then its lines, blank ones too.

    Headers are those that the lyric score knows: letters, digits, ``_`` and ``-`` in round brackets, spaces around
    them; ``(verse 1)`` is a line. Lines end with a newline. A line before the first header, or one with a carriage
    return, raises `InvalidLyricsError`.

    Examples
    --------
    >>> sections_of_text("(verse1)\nccccc\nccccR")
    (LyricSection(label='verse1', lines=('ccccc', 'ccccR')),)
    """
    blocks: list[tuple[str, list[str]]] = []
    for line in text.split("\n") if text else ():
        header = _HEADER.fullmatch(line.strip())
        if header:
            blocks.append((header[1], []))
        elif blocks:
            blocks[-1][1].append(line)
        else:
            raise InvalidLyricsError(f"expected a section header such as (verse1) first, got {line!r:.40}")
    return tuple(LyricSection(label, tuple(lines)) for label, lines in blocks)
