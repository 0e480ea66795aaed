"""One door for every kind of score file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from music_evals.annotations import Score
from music_evals.errors import UnknownNameError
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits
from music_evals.symbolic.midi import from_pretty_midi, read_midi, save_midi, to_pretty_midi, write_midi
from music_evals.symbolic.notation import from_music21, read_abc, read_musicxml

__all__ = [
    "DEFAULT_LIMITS",
    "READERS",
    "Limits",
    "from_music21",
    "from_pretty_midi",
    "read_abc",
    "read_midi",
    "read_musicxml",
    "read_score",
    "save_midi",
    "to_pretty_midi",
    "write_midi",
]

READERS: dict[str, Callable[..., Score]] = {
    ".mid": read_midi,
    ".midi": read_midi,
    ".musicxml": read_musicxml,
    ".xml": read_musicxml,
    ".mxl": read_musicxml,
    ".abc": read_abc,
}
"""Reader for each suffix, in lower case."""


def read_score(path: str | os.PathLike[str] | bytes, *, limits: Limits = DEFAULT_LIMITS) -> Score:
    """Read a score file, by its suffix, or the bytes of a MIDI file.

    Parameters
    ----------
    path
        A file that ends in .mid, .midi, .musicxml, .xml, .mxl or .abc, in any case; or the bytes of a MIDI file.
    limits
        Bounds on bytes, length and notes.

    Raises
    ------
    UnknownNameError
        Another suffix.
    NoDataError, UnreadableFileError, FileTooLargeError, MissingBackendError
        As the readers `read_midi`, `read_musicxml` and `read_abc`.

    """
    if isinstance(path, bytes):
        return read_midi(path, limits=limits)
    suffix = Path(path).suffix.lower()
    if suffix not in READERS:
        raise UnknownNameError("kind of score file", suffix or str(path), READERS)
    return READERS[suffix](path, limits=limits)
