"""Lexica: the terms that a dimension offers while somebody types, most used first.

A lexicon is built from the terms of any caption file, and keeps where they come from and under which licence. A
dimension without one offers the terms of CaiMD's demo songs, which are ours.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap.domain.description import MAX_TAG
from music_evals.csv_files import csv_rows
from music_evals.errors import InvalidInputError, NoDataError, UnknownNameError, UnreadableFileError
from music_evals.files import check_no_pointer, decode_text, parse_json

__all__ = ["MAX_TERMS", "Lexicon", "build_lexicon", "check_dimension", "demo_lexicon", "read_terms", "search"]

MAX_TERMS: Final = 2000
"""Terms of a lexicon, by default."""

_SEPARATORS: Final = re.compile(r"[,，、;；|\n]")


@dataclasses.dataclass(frozen=True, slots=True)
class Lexicon:
    """The terms of a dimension and where they come from.

    Raises `NoDataError`: no term; `InvalidInputError`: no source or no licence.
    """

    terms: tuple[str, ...]  # most used first, each once
    source: str  # of the captions: their name, and an address or a commit
    licence: str  # of the captions

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", tuple(self.terms))
        if not self.terms:
            raise NoDataError(f"no term of at most {MAX_TAG} characters was found; name a column that holds terms")
        if not self.source.strip() or not self.licence.strip():
            raise InvalidInputError("a lexicon needs the source of its captions and their licence")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"terms": list(self.terms), "source": self.source, "licence": self.licence}


def check_dimension(group: str, dimension: str) -> None:
    """Refuse a dimension without a lexicon: one that does not exist (`UnknownNameError`), or the questions on sound."""
    if group not in DIMENSIONS:
        raise UnknownNameError("group", group, DIMENSIONS)
    open_ones = [name for name in DIMENSIONS[group] if name != AUDIO_EFFECTS]
    if dimension not in open_ones:
        raise UnknownNameError("dimension", dimension, open_ones)


def build_lexicon(
    captions: Iterable[Sequence[str]], *, source: str, licence: str, least: int = 1, most: int = MAX_TERMS
) -> Lexicon:
    """Build a lexicon from the terms of captions.

    Parameters
    ----------
    captions
        Terms of each caption (`read_terms`). One counts once a caption. Width and case of letters do not tell terms
        apart: the spelling that is used most is kept, of equals the first. Terms longer than a tag may be are left out.
    source, licence
        As of `Lexicon`.
    least
        Captions that a term must stand in.
    most
        Terms that are kept.

    Raises
    ------
    NoDataError, InvalidInputError
        As of `Lexicon`.

    Examples
    --------
    >>> build_lexicon([["Jazz", "piano"], ["jazz"], ["Jazz"]], source="ours", licence="CC0-1.0", least=2).terms
    ('Jazz',)
    """
    spellings: dict[str, Counter[str]] = defaultdict(Counter)
    for terms in captions:
        for folded, term in {_folded(term): " ".join(term.split()) for term in terms}.items():
            if folded and len(term) <= MAX_TAG:
                spellings[folded][term] += 1
    counts = Counter({spelling.most_common(1)[0][0]: spelling.total() for spelling in spellings.values()})
    return Lexicon(tuple(term for term, n in counts.most_common(most) if n >= least), source, licence)


def read_terms(path: str | os.PathLike[str], column: str) -> list[list[str]]:
    """Read the terms of each row of a file of captions, ``.csv``, ``.jsonl`` or ``.parquet``.

    The column holds a list, or a text that is one (as the ``aspect_list`` of MusicCaps) or has commas between its
    terms; none where it is empty. Dots lead into columns of columns: ``"professional.dimensions.musical_genres.tags"``.

    Raises `UnreadableFileError` where the file cannot be read as what its name says, and `InvalidInputError` for
    another kind of file, or a row without the column or with a broken list.
    """
    return [_terms_of(row, column, number) for number, row in enumerate(_caption_rows(Path(path)), 1)]


def _caption_rows(path: Path) -> Sequence[Mapping[str, Any]]:
    kind = path.suffix.lower()
    try:
        content = path.read_bytes()
        check_no_pointer(content, "its text")
        if kind == ".parquet":
            import pyarrow.parquet as pq

            return list(pq.read_table(path).to_pylist())
        text = decode_text(content, "its text")
        if kind == ".csv":
            return csv_rows(text, "its text")
        if kind == ".jsonl":  # `splitlines` would cut texts at characters that end no line of JSON
            lines = enumerate(text.split("\n"), start=1)
            return [parse_json(line, f"line {number}") for number, line in lines if line.strip()]
    except (OSError, ValueError) as error:  # what pyarrow and `parse_json` raise is among them
        raise UnreadableFileError(f"{path}: cannot be read ({error})") from error
    raise InvalidInputError(f"{path}: captions are read from .csv, .jsonl and .parquet")


def _terms_of(row: Any, column: str, number: int) -> list[str]:
    value = row
    for name in column.split("."):
        if not isinstance(value, Mapping) or name not in value:
            there = ", ".join(map(str, row)) if isinstance(row, Mapping) else "none"
            raise InvalidInputError(f"row {number} has no column {column!r}; its columns: {there}")
        value = value[name]
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = ast.literal_eval(value.strip())  # values alone, no code
        except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
            raise InvalidInputError(f"row {number}: {value[:60]!r} is no list of texts") from error
    texts = [part for part in ([value] if isinstance(value, str) else value or ()) if isinstance(part, str)]
    return [term.strip() for text in texts for term in _SEPARATORS.split(text) if term.strip()]


@functools.cache
def demo_lexicon(group: str, dimension: str) -> tuple[str, ...]:
    """Return the terms of a dimension in the demo songs, most used first.

    Raises `UnknownNameError`: no such group or dimension.
    """
    if dimension not in DIMENSIONS.get(group, {}):
        raise UnknownNameError("dimension", dimension, DIMENSIONS.get(group, {}))
    counts = Counter(tag for row in _rows() for tag in row[group]["dimensions"][dimension]["tags"])
    return tuple(tag for tag, _ in counts.most_common())


@functools.cache
def _rows() -> list[dict[str, Any]]:
    from music_evals.datasets.caimd.demo import demo_rows

    return demo_rows(marks=lambda lines: [False] * len(lines))


def search(terms: Sequence[str], query: str, most: int = 8) -> list[str]:
    """Return the terms that fit what was typed: those that begin with it, then those that hold it.

    Width and case of letters do not count.

    Examples
    --------
    >>> search(("温暖的男声", "男声", "钢琴"), "男声")
    ['男声', '温暖的男声']
    """
    wanted = _folded(query)
    fits = [term for term in terms if wanted in _folded(term)]
    return sorted(fits, key=lambda term: not _folded(term).startswith(wanted))[:most]


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
