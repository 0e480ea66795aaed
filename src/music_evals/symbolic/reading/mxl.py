"""Compressed MusicXML (.mxl): the score document of an archive, checked before it is unpacked."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import PurePosixPath
from xml.etree import ElementTree as ET

from music_evals.errors import UnreadableFileError
from music_evals.symbolic.limits import Limits, check_n_bytes
from music_evals.symbolic.reading.musicxml import parse_xml

MAX_ARCHIVE_ENTRIES = 1000  # a compressed score holds one document, some images and a table of contents
CONTAINER = "META-INF/container.xml"

ARCHIVE_ERRORS = (
    EOFError,
    NotImplementedError,  # a packing that zipfile does not know
    RuntimeError,  # encrypted
    ValueError,  # places outside the file
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
)
"""What zipfile raises on archives that it cannot read."""


def musicxml_document(content: bytes, limits: Limits, name: str) -> bytes:
    """Return the score document of a MusicXML file: its bytes as they are, or unpacked where it is compressed."""
    if not content.startswith(b"PK"):
        return content
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_archive(archive, limits, name)
            nodes = parse_xml(_unpack_entry(archive, CONTAINER, limits, name)).iter()
            paths = (node.get("full-path") for node in nodes if node.tag.endswith("rootfile"))
            rootfile = next((path for path in paths if path is not None), None)
            if rootfile is not None:
                return _unpack_entry(archive, rootfile, limits, name)
    except UnreadableFileError:
        raise
    except KeyError as error:
        raise UnreadableFileError(f"{name}: not a compressed MusicXML file ({error.args[0]})") from error
    except (*ARCHIVE_ERRORS, ET.ParseError) as error:
        raise UnreadableFileError(f"{name}: damaged archive ({error})") from error
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
