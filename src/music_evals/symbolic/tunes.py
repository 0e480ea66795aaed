"""A tune in a file whose measures can be replaced, everything else staying as it is.

`open_tune` reads MIDI, MusicXML and ABC in the written order: repeats are not played out, and a measure is one that is
printed. `Tune.replaced` gives the same file with other notes in some measures of one voice.

Measures have the numbers that a score prints: the first full one is 1, a pickup before it is 0, and the two halves of a
measure around a repeat sign have one number. MusicXML states its own numbers, which are taken as they are. ``#5`` is
the fifth measure of the file, whatever its number.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from music_evals.annotations import TimeSignature
from music_evals.errors import InvalidInputError, UnknownNameError
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits
from music_evals.symbolic.rewriting.tune import Tune, check_edit, measure_numbers, second_halves

__all__ = ["TUNE_SUFFIXES", "Tune", "check_edit", "measure_numbers", "open_tune", "second_halves"]

TUNE_SUFFIXES = (".mid", ".midi", ".rmi", ".musicxml", ".xml", ".mxl", ".abc")
"""Files that `open_tune` reads, in lower case."""


def open_tune(
    path: str | os.PathLike[str], *, tune: int | None = None, meter: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> Tune:
    r"""Read a MIDI, MusicXML or ABC file so that some of its measures can be replaced.

    Parameters
    ----------
    path
        A file that ends in one of `TUNE_SUFFIXES`.
    tune
        The number of the ``X:`` field, where an ABC file holds several tunes.
    meter
        Such as ``3/4``: the meter of a MIDI file that states none. It is refused where the file has one.
    limits
        Bounds on bytes, length and notes. The file is checked by the reader of its format before it is edited.

    Raises
    ------
    UnknownNameError, InvalidInputError
        Another suffix; several tunes and none chosen; an invalid meter, or one that is not needed.
    NoDataError
        There is no such file, or it states no measures; the message says what to do.
    UnreadableFileError, FileTooLargeError
        As the readers of `symbolic.files`; or what the file holds cannot be edited safely.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "scale.abc")
    ...     _ = path.write_text("X:1\nM:4/4\nL:1/4\nK:C\nCDEF|GABc|\n")
    ...     tune = open_tune(path)
    >>> first, n = tune.measures("2")
    >>> tune.numbers, tune.replaced(0, first, n, tune.score.notes[:0]).decode().splitlines()[-1]
    (('1', '2'), 'CDEF|z4|')
    """
    from music_evals.symbolic.rewriting import abc, midi, musicxml

    suffix = Path(path).suffix.lower()
    if suffix not in TUNE_SUFFIXES:
        raise UnknownNameError("kind of score file", suffix or str(path), TUNE_SUFFIXES)
    if tune is not None and suffix != ".abc":
        raise InvalidInputError(
            f"`tune` chooses a tune of an ABC file, and {os.fspath(path)} is no ABC file; leave it out"
        )
    if suffix in {".mid", ".midi", ".rmi"}:
        return midi.open_midi(path, meter=None if meter is None else read_meter(meter), limits=limits)
    if meter is not None:
        raise InvalidInputError(
            f"`meter` is for MIDI files that state none, and {os.fspath(path)} is a score, which states its own; leave "
            "it out"
        )
    if suffix == ".abc":
        return abc.open_abc(path, tune=tune, limits=limits)
    return musicxml.open_musicxml(path, limits=limits)


def read_meter(text: str) -> TimeSignature:
    """Read a meter such as ``3/4``."""
    match = re.fullmatch(r"\s*(\d{1,2})\s*/\s*(\d{1,2})\s*", text)
    if match is None:
        raise InvalidInputError(f"`meter` is given such as 3/4, got {text!r}")
    return TimeSignature(0, int(match[1]), int(match[2]))
