"""MusicXML and ABC files, and music21 streams, to `Score`.

music21 parses. Ties are merged, repeats are played out unless asked otherwise, and instruments sound at their real
pitch. Bars keep their notated lines: wherever a bar does not start one signature's length after the one before (a
pickup, an irregular bar) its signature is written again, so that `symbolic.measures.meter_map` finds the same bars.

Left out are grace notes (they have no length), chord symbols, unpitched percussion, dynamics and articulation.
"""

from __future__ import annotations

import io
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np

from music_evals.annotations import KeySignature, Score, Tempo, TimeSignature
from music_evals.errors import InvalidInputError, UnreadableFileError, importing
from music_evals.symbolic._abc_voices import whole_voices
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits, check_n_bytes, check_n_notes, check_score, read_bytes
from music_evals.symbolic.measures import drop_repeated_signatures
from music_evals.symbolic.midi import drop_repeated
from music_evals.symbolic.notes import make_notes

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

TICKS_PER_QUARTER = 10080  # music21's own grid: 2^5 * 3^2 * 5 * 7, so that common tuplets fall on ticks

MAX_ARCHIVE_ENTRIES = 1000  # a compressed score holds one document, some images and a table of contents
CONTAINER = "META-INF/container.xml"

# What music21 raises on files that it cannot read: its parsers check little, so a damaged value shows up wherever it is
# first used.
PARSER_ERRORS = (
    ArithmeticError,
    AttributeError,
    ET.ParseError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
# What zipfile raises on archives that it cannot read.
ARCHIVE_ERRORS = (
    EOFError,
    NotImplementedError,
    RuntimeError,  # encrypted
    ValueError,  # places outside the file
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
)


def read_musicxml(
    path: str | os.PathLike[str] | bytes,
    *,
    expand_repeats: bool = True,
    merge_ties: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Score:
    """Read a MusicXML file, plain or compressed (.mxl). Needs the extra `symbolic`.

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
        On music21's grid of 10080 ticks a quarter, one voice a part.

    Raises
    ------
    NoDataError
        There is no such file.
    UnreadableFileError
        Not a MusicXML file, or damaged; names the file and the reason.
    FileTooLargeError
        Over a bound.
    MissingBackendError
        music21 is not installed.

    """
    if isinstance(path, bytes):
        name, content = "MusicXML bytes", path
        check_n_bytes(len(content), limits, name)
    else:
        name, content = os.fspath(path), read_bytes(Path(path), limits)
    document = musicxml_document(content, limits, name)
    return _convert(lambda: _parse_musicxml(document), name, limits, expand_repeats, merge_ties)


def musicxml_document(content: bytes, limits: Limits, name: str) -> bytes:
    """Return the score document of a MusicXML file: its bytes as they are, or unpacked where it is compressed."""
    return _unpack(content, limits, name) if content.startswith(b"PK") else content


def read_abc(
    path: str | os.PathLike[str],
    *,
    tune: int | None = None,
    expand_repeats: bool = True,
    merge_ties: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Score:
    """Read one tune of an ABC file. Needs the extra `symbolic`.

    Parameters
    ----------
    path
        The file, in UTF-8 or Latin-1.
    tune
        The number of its ``X:`` field. None takes the only tune.
    expand_repeats, merge_ties, limits
        As `read_musicxml`.

    Returns
    -------
    Score
        On music21's grid of 10080 ticks a quarter.

    Raises
    ------
    InvalidInputError
        The file holds several tunes and none was chosen, or not the chosen one; see `abc_tunes`.
    NoDataError, UnreadableFileError, FileTooLargeError, MissingBackendError
        As `read_musicxml`.

    """
    name = os.fspath(path)
    text = _decode(read_bytes(Path(path), limits))
    numbers = _tune_numbers(text)
    if tune is None and len(numbers) > 1:
        raise InvalidInputError(
            f"{name}: holds {len(numbers)} tunes ({numbers[0]}..{numbers[-1]}); choose one with tune="
        )
    if tune is not None and tune not in numbers:
        raise InvalidInputError(
            f"{name}: holds no tune {tune}; it holds {', '.join(map(str, numbers[:10])) or 'none with a number'}"
        )
    _check_abc(text, name)
    return _convert(lambda: _parse_abc(text, tune), name, limits, expand_repeats, merge_ties)


def abc_tunes(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> tuple[int, ...]:
    """Return the numbers of the tunes in an ABC file, in file order."""
    return _tune_numbers(_decode(read_bytes(Path(path), limits)))


def from_abc(
    text: str,
    *,
    name: str = "ABC text",
    expand_repeats: bool = True,
    merge_ties: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Score:
    """Read the text of one ABC tune, such as one of `split_abc`; needs the extra `symbolic`.

    Parameters
    ----------
    text
        One tune, its header included.
    name
        What messages call it.
    expand_repeats, merge_ties, limits
        As `read_musicxml`.

    Raises
    ------
    UnreadableFileError, FileTooLargeError, MissingBackendError
        As `read_musicxml`.

    """
    check_n_bytes(len(text.encode()), limits, name)
    _check_abc(text, name)
    return _convert(lambda: _parse_abc(text, None), name, limits, expand_repeats, merge_ties)


def split_abc(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> tuple[str, ...]:
    """Return the text of each tune of an ABC file, from its ``X:`` field on; one without such a field is one tune.

    Two tunes may have one number, as where a book holds two transcriptions of a page.
    """
    text = _decode(read_bytes(Path(path), limits))
    tunes = re.split(r"^(?=X:)", text, flags=re.MULTILINE)[1:]
    return tuple(tunes) or (text,)


def abc_fields(text: str, letter: str) -> tuple[str, ...]:
    r"""Return the values of a field in the text of a tune, of its header and of its body, in order.

    Examples
    --------
    >>> abc_fields("X:1\nT:The Ranting Highlandman.\nT: The White Cockade\nM:C|\nK:G\nAG|", "T")
    ('The Ranting Highlandman.', 'The White Cockade')

    """
    found = re.finditer(rf"^{letter}:([^%\n]*)|\[{letter}:([^\]\n]*)\]", text, re.MULTILINE)
    return tuple((match[1] if match[2] is None else match[2]).strip() for match in found)


def from_music21(
    stream: Stream,
    *,
    expand_repeats: bool = True,
    merge_ties: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Score:
    """Take the notes of a music21 stream.

    Parameters
    ----------
    stream
        A score or a part; it is not changed.
    expand_repeats, merge_ties, limits
        As `read_musicxml`.

    Raises
    ------
    UnreadableFileError
        Repeats that lead nowhere, or impossible values.
    FileTooLargeError
        Over a bound.

    """
    return _convert(lambda: stream, "music21 stream", limits, expand_repeats, merge_ties)


def _convert(
    parse: Callable[[], Any],
    name: str,
    limits: Limits,
    expand_repeats: bool,  # noqa: FBT001  # private: passed on from keywords
    merge_ties: bool,  # noqa: FBT001
) -> Score:
    with importing("symbolic", "reading MusicXML and ABC"):
        from music21.exceptions21 import Music21Exception
        from music21.repeat import ExpanderException
    try:
        with warnings.catch_warnings():
            # music21 warns where it is about to raise; the error says it all
            warnings.filterwarnings("ignore", message="The following exception took place")
            stream = parse()
        if expand_repeats and stream.recurse().getElementsByClass("Measure"):
            stream = stream.expandRepeats()
        score = _to_score(stream.toSoundingPitch(), merge_ties=merge_ties, limits=limits, name=name)
    except ExpanderException as error:
        raise UnreadableFileError(
            f"{name}: its repeats cannot be played out ({error}); read the written order with expand_repeats=False"
        ) from error
    except UnreadableFileError:
        raise
    except (Music21Exception, *PARSER_ERRORS) as error:
        raise UnreadableFileError(f"{name}: cannot be read as a score ({type(error).__name__}: {error})") from error
    return check_score(score, limits, name)


def _parse_musicxml(content: bytes) -> Any:
    from music21.musicxml.xmlToM21 import MusicXMLImporter

    root = _parse_xml(content)
    if root.tag != "score-partwise":
        raise ValueError(f"expected a score-partwise document, got <{root.tag}>")
    importer = MusicXMLImporter()
    importer.xmlRootToScore(root, importer.stream)
    return importer.stream


def _parse_xml(content: bytes) -> ET.Element:
    """Parse XML that declares no entities: none are needed, and nested ones can fill the memory."""
    if b"<!ENTITY" in content.replace(b"\0", b""):  # without the zero bytes UTF-16 reads as ASCII
        raise ValueError("the document declares XML entities")
    return ET.fromstring(content)  # noqa: S314  # entities are refused above


def _check_abc(text: str, name: str) -> None:
    if not re.search(r"^K:", text, re.MULTILINE):
        raise UnreadableFileError(f"{name}: not an ABC file (no K: field, which ends the header of every tune)")


def _parse_abc(text: str, tune: int | None) -> Any:
    from music21.abcFormat import ABCFile
    from music21.abcFormat.translate import abcToStreamScore

    whole, names = whole_voices(text if tune is None else ABCFile.extractReferenceNumber(text, tune))
    stream = abcToStreamScore(ABCFile().readstr(whole))
    for part, name in zip(stream.parts, names, strict=False):  # strict: of one voice there may be none
        part.partName = name
    return stream


def _tune_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"^X:\s*(\d+)", text, re.MULTILINE))


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _unpack(content: bytes, limits: Limits, name: str) -> bytes:
    """Return the score document of a compressed MusicXML file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_archive(archive, limits, name)
            return _unpack_entry(archive, _rootfile(archive, limits, name), limits, name)
    except UnreadableFileError:
        raise
    except KeyError as error:
        raise UnreadableFileError(f"{name}: not a compressed MusicXML file ({error.args[0]})") from error
    except (*ARCHIVE_ERRORS, ET.ParseError) as error:
        raise UnreadableFileError(f"{name}: damaged archive ({error})") from error


def _rootfile(archive: zipfile.ZipFile, limits: Limits, name: str) -> str:
    """Return the path of the score document in a compressed MusicXML file."""
    for node in _parse_xml(_unpack_entry(archive, CONTAINER, limits, name)).iter():
        path = node.get("full-path")
        if node.tag.endswith("rootfile") and path is not None:
            return path
    raise UnreadableFileError(f"{name}: not a compressed MusicXML file (its {CONTAINER} names no score)")


def _check_archive(archive: zipfile.ZipFile, limits: Limits, name: str) -> None:
    entries = archive.infolist()
    if len(entries) > MAX_ARCHIVE_ENTRIES:
        raise UnreadableFileError(
            f"{name}: an archive of {len(entries)} entries, more than {MAX_ARCHIVE_ENTRIES}; not a score"
        )
    for entry in entries:
        if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:  # the two of the MusicXML standard
            raise UnreadableFileError(
                f"{name}: the archive packs {entry.filename!r} by method {entry.compress_type}; expected deflate"
            )
        path = PurePosixPath(entry.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise UnreadableFileError(
                f"{name}: the archive holds the path {entry.filename!r}, which leaves it; not a score"
            )
    check_n_bytes(sum(entry.file_size for entry in entries), limits, f"{name} (unpacked)")


def _unpack_entry(archive: zipfile.ZipFile, entry: str, limits: Limits, name: str) -> bytes:
    with archive.open(entry) as file:
        content = file.read(limits.max_bytes + 1)  # the size in the table of contents may be a lie
    check_n_bytes(len(content), limits, f"{name} (unpacked)")
    return content


def _to_score(stream: Any, *, merge_ties: bool, limits: Limits, name: str) -> Score:
    parts = list(stream.parts) if hasattr(stream, "parts") and stream.parts else [stream]
    rows = [row for voice, part in enumerate(parts) for row in _note_rows(part, voice, merge_ties=merge_ties)]
    check_n_notes(len(rows), limits, name)
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    flat = parts[0].flatten()
    keys = [
        KeySignature(_tick(key.offset), key.sharps, getattr(key, "mode", None) == "minor")
        for key in flat.getElementsByClass("KeySignature")
        if key.sharps is not None  # a custom key signature has none
    ]
    tempos = [
        Tempo(_tick(mark.offset), float(bpm))
        for mark in stream.flatten().getElementsByClass("MetronomeMark")
        if (mark.number is not None and not mark.numberImplicit) or mark.numberSounding is not None
        if (bpm := mark.getQuarterBPM()) is not None
    ]
    return Score(
        make_notes(*columns),
        TICKS_PER_QUARTER,
        drop_repeated_signatures(list(_signatures(parts[0])), TICKS_PER_QUARTER),
        drop_repeated(tempos),
        drop_repeated(keys),
        tuple(_name(part) for part in parts),
    )


def _note_rows(part: Any, voice: int, *, merge_ties: bool) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield onset, duration, pitch, velocity and voice of every sounding note of a part."""
    notes = (part.stripTies() if merge_ties else part).flatten().notes
    for element in notes:
        if "Harmony" in element.classes or not element.quarterLength:
            continue
        onset = _tick(element.offset)
        duration = max(_tick(element.offset + element.quarterLength) - onset, 1)
        velocity = element.volume.velocity or 64
        for pitch in element.pitches:
            yield onset, duration, round(pitch.ps), velocity, voice


def _signatures(part: Any) -> Iterator[TimeSignature]:
    """Yield the signature of every bar, at the bar's start."""
    # A bar that only completes the one before (the two halves around a repeat sign) is none of its own.
    measures = list(part.getElementsByClass("Measure"))
    if not measures:
        for meter in part.flatten().getElementsByClass("TimeSignature"):
            yield TimeSignature(_tick(meter.offset), meter.numerator, meter.denominator)
        return
    meter = None
    start = 0
    ends = [measure.offset for measure in measures[1:]] + [part.highestTime]
    for index, (measure, end) in enumerate(zip(measures, ends, strict=True)):
        written = measure.timeSignature or meter
        same = meter is not None and written.ratioString == meter.ratioString
        meter = written
        if meter is None:
            continue
        # what follows the first bar completes nothing: that one is a pickup
        if same and index > 1 and measure.offset > start and end == start + meter.barDuration.quarterLength:
            continue
        start = measure.offset
        yield TimeSignature(_tick(start), meter.numerator, meter.denominator)


def _name(part: Any) -> str:
    # music21 numbers what has no id by its place in memory
    return str(getattr(part, "partName", None) or (part.id if isinstance(part.id, str) else ""))


def _tick(quarters: Any) -> int:
    tick: int = round(quarters * TICKS_PER_QUARTER)
    return tick
