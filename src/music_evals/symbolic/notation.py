"""MusicXML and ABC files, and music21 streams, to `Score`.

`symbolic.reading.musicxml` and `symbolic.reading.abc` say how each is read. Ties are merged, repeats are played out
unless asked otherwise, and instruments sound at their real pitch. Bars keep their notated lines: wherever a bar does
not start one signature's length after the one before (a pickup, an irregular bar) its signature is written again, so
that `symbolic.measures.meter_map` finds the same bars.

Left out are grace notes (they have no length), chord symbols, unpitched percussion, dynamics and articulation. A file
whose measures can be replaced is read a second time, by the reader that edits it, and refused where the two differ.
"""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from music_evals.annotations import Score
from music_evals.errors import InvalidInputError, UnreadableFileError, importing
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits, check_n_bytes, read_bytes
from music_evals.symbolic.reading.abc import parse_abc
from music_evals.symbolic.reading.abc_syntax import AbcError, decode_abc, file_head, tune_end, tune_starts
from music_evals.symbolic.reading.musicxml import parse_musicxml
from music_evals.symbolic.reading.mxl import musicxml_document
from music_evals.symbolic.reading.written import TICKS_PER_QUARTER, check_agreement, to_score
from music_evals.symbolic.rewriting.abc_tokens import read_music
from music_evals.symbolic.rewriting.musicxml import editable_notes

if TYPE_CHECKING:
    from music21.stream import Stream

__all__ = [
    "TICKS_PER_QUARTER",
    "abc_fields",
    "abc_tunes",
    "from_abc",
    "from_music21",
    "musicxml_document",
    "read_abc",
    "read_musicxml",
    "split_abc",
]


def read_musicxml(
    path: str | os.PathLike[str] | bytes,
    *,
    expand_repeats: bool = True,
    merge_ties: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Score:
    """Read a MusicXML file, plain or compressed (.mxl); see `symbolic.reading.musicxml`.

    Parameters
    ----------
    path
        The file, or its bytes. An archive is checked before anything is unpacked: entries, sizes and paths.
    expand_repeats
        Play repeats out, as a MIDI export does; else the written order.
    merge_ties
        Make one note of tied notes; else each is a note.
    limits
        Bounds on bytes (unpacked too), length and notes.

    Returns
    -------
    Score
        On a grid of 10080 ticks a quarter, one voice for each staff of each part.

    Raises
    ------
    NoDataError, FileTooLargeError
        There is no such file, or it is over a bound.
    UnreadableFileError
        Not a MusicXML file, damaged, or with repeats that lead nowhere; names the file, the place and the reason.
    """
    if isinstance(path, bytes):
        name, content = "MusicXML bytes", path
        check_n_bytes(len(content), limits, name)
    else:
        name, content = os.fspath(path), read_bytes(Path(path), limits)
    document = musicxml_document(content, limits, name)
    return _read_document(document, name, limits, expand_repeats=expand_repeats, merge_ties=merge_ties)


def _read_document(document: bytes, name: str, limits: Limits, *, expand_repeats: bool, merge_ties: bool) -> Score:
    """Read a document for scoring, and compare it with the reading that `fill` edits."""
    written = parse_musicxml(document, name, limits)
    edited = editable_notes(document, name)
    if edited is not None:
        check_agreement(edited, to_score(written, name, limits, expand_repeats=False, merge_ties=False), name)
    return to_score(written, name, limits, expand_repeats=expand_repeats, merge_ties=merge_ties)


def read_abc(
    path: str | os.PathLike[str],
    *,
    tune: int | None = None,
    expand_repeats: bool = True,
    merge_ties: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Score:
    """Read one tune of an ABC file, by the ABC standard 2.1; see `symbolic.reading.abc`.

    Parameters
    ----------
    path
        The file, in UTF-8 or Latin-1.
    tune
        The number of its ``X:`` field. None takes the only tune.
    expand_repeats, merge_ties, limits
        As `read_musicxml`, which also says what a score is.

    Raises
    ------
    InvalidInputError
        The file holds several tunes and none was chosen, or not the chosen one; see `abc_tunes`.
    NoDataError, UnreadableFileError, FileTooLargeError
        There is no such file, or as `from_abc`.
    """
    name = os.fspath(path)
    text = decode_abc(read_bytes(Path(path), limits))[0]
    starts = tune_starts(text) or [(None, 0)]
    numbers = [number for number, _ in starts if number is not None]
    if tune is None and len(starts) > 1:
        raise InvalidInputError(
            f"{name}: holds {len(starts)} tunes ({numbers[0]}..{numbers[-1]}); choose one with tune="
            if numbers
            else f"{name}: holds {len(starts)} tunes without a number; number their X: fields"
        )
    if tune is not None and tune not in numbers:
        raise InvalidInputError(
            f"{name}: holds no tune {tune}; it holds {', '.join(map(str, numbers[:10])) or 'none with a number'}"
        )
    start = next(place for number, place in starts if tune in {None, number})
    return _from_abc(file_head(text) + text[start:], name, limits, expand_repeats, merge_ties)


def abc_tunes(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> tuple[int, ...]:
    """Return the numbers of the tunes in an ABC file, in file order."""
    starts = tune_starts(decode_abc(read_bytes(Path(path), limits))[0])
    return tuple(number for number, _ in starts if number is not None)


def from_abc(
    text: str,
    *,
    name: str = "ABC text",
    expand_repeats: bool = True,
    merge_ties: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Score:
    """Read the text of one ABC tune, such as one of `split_abc`, by the ABC standard 2.1; see `symbolic.reading.abc`.

    `name` is what messages call it; the other options are those of `read_musicxml`. `UnreadableFileError` for what is
    not ABC, with the line, for a sign that is in no section of the standard, and where `fill` would read other notes.
    """
    check_n_bytes(len(text.encode()), limits, name)
    return _from_abc(text, name, limits, expand_repeats, merge_ties)


def _from_abc(
    text: str,
    name: str,
    limits: Limits,
    expand_repeats: bool,  # noqa: FBT001  # private: passed on from keywords
    merge_ties: bool,  # noqa: FBT001
) -> Score:
    """Read a tune for scoring, and compare it with the reading that `fill` edits."""
    try:
        text = text[: tune_end(text, next((place for _, place in tune_starts(text)), 0))]
    except AbcError as error:
        raise UnreadableFileError(f"{name}: not an ABC file ({error})") from error
    written = parse_abc(text, name, limits)
    try:
        edited = read_music(text, name).written()
    except UnreadableFileError:
        edited = None  # what cannot be edited has one reading
    if edited is not None:
        check_agreement(edited, to_score(written, name, limits, expand_repeats=False, merge_ties=False), name)
    return to_score(written, name, limits, expand_repeats=expand_repeats, merge_ties=merge_ties)


def split_abc(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> tuple[str, ...]:
    """Return the text of each tune of an ABC file, after the lines before the first that hold for all of them.

    A file without an ``X:`` field is one tune. Two tunes may have one number, as where a book holds two transcriptions
    of a page.
    """
    text = decode_abc(read_bytes(Path(path), limits))[0]
    places = [place for _, place in tune_starts(text)] or [0]
    head = file_head(text)
    return tuple(head + text[start:stop] for start, stop in itertools.pairwise([*places, len(text)]))


def abc_fields(text: str, letter: str) -> tuple[str, ...]:
    r"""Return the values of a field in the text of a tune, of its header and of its body, in order.

    Examples
    --------
    >>> abc_fields("X:1\nT:The Ranting Highlandman.\nT: The White Cockade\nM:C|\nK:G\nAG|", "T")
    ('The Ranting Highlandman.', 'The White Cockade')
    """
    matches = re.finditer(rf"^{letter}:([^%\n]*)|\[{letter}:([^\]\n]*)\]", text, re.MULTILINE)
    return tuple((match[1] if match[2] is None else match[2]).strip() for match in matches)


def from_music21(
    stream: Stream, *, expand_repeats: bool = True, merge_ties: bool = True, limits: Limits = DEFAULT_LIMITS
) -> Score:
    """Take the notes of a music21 stream: those that music21 writes into a MusicXML file, as `read_musicxml` reads it.

    Needs the extra `symbolic`. The stream is a score or a part, and is not changed; options are those of
    `read_musicxml`, without a bound on bytes. `UnreadableFileError` for repeats that lead nowhere, impossible values,
    or what music21 cannot write.
    """
    name = "music21 stream"
    with importing("symbolic", "reading music21 streams"):
        from music21.exceptions21 import Music21Exception
        from music21.musicxml.m21ToXml import GeneralObjectExporter
    try:
        document = GeneralObjectExporter(stream).parse()
    except Music21Exception as error:
        raise UnreadableFileError(f"{name}: music21 cannot write it as MusicXML ({error})") from error
    return _read_document(document, name, limits, expand_repeats=expand_repeats, merge_ties=merge_ties)
