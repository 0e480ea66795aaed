"""Song texts in sections: a header line ``(verse1)``, then one lyric phrase a line.

The same form holds words and patterns. In a pattern ``c`` is a character, ``R`` the last character of a line that
rhymes within its section, a space a pause: ``ccccc ccccR``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from music_evals.errors import InvalidLyricsError

__all__ = ["LyricSection", "sections_of_rows", "sections_text"]


@dataclasses.dataclass(frozen=True)
class LyricSection:
    """A section of a song text.

    Parameters
    ----------
    label
        Without brackets, as ``"verse1"`` or ``"pre-chorus"``.
    lines
        Phrases, or their patterns.

    Raises
    ------
    InvalidLyricsError
        An empty label, one that holds brackets or line breaks, or a line with a line break.

    """

    label: str
    lines: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(self.lines))
        if not self.label or set(self.label) & set("()\n\r"):
            msg = f"a section label must be a word without brackets, as 'verse1', got {self.label!r}"
            raise InvalidLyricsError(msg)
        for line in self.lines:
            if "\n" in line or "\r" in line:
                msg = f"a line of section {self.label!r} holds a line break: {line!r}; give one phrase an entry"
                raise InvalidLyricsError(msg)

    @property
    def kind(self) -> str:
        """The label without its number: ``"verse"`` of ``"verse1"``."""
        return self.label.rstrip("0123456789") or self.label


def sections_of_rows(rows: Iterable[Mapping[str, Any]], field: str = "lines") -> tuple[LyricSection, ...]:
    """Return the sections of a `structure` column of CaiMD: its ``lines``, or with ``field="rhyme"`` its pattern."""
    return tuple(LyricSection(row["label"], tuple(row[field])) for row in rows)


def sections_text(sections: Sequence[LyricSection], *, numbered: bool = True) -> str:
    """Write sections as text, without a newline at the end.

    Parameters
    ----------
    sections
        In their order.
    numbered
        Write ``(verse1)``; False writes ``(verse)``.

    Examples
    --------
    >>> print(sections_text([LyricSection("verse1", ("ccccc", "ccccR"))], numbered=False))
    (verse)
    ccccc
    ccccR

    """
    return "\n".join(line for part in sections for line in (f"({part.label if numbered else part.kind})", *part.lines))
