"""One door for every kind of score file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, overload

from music_evals.annotations import Score
from music_evals.errors import MusicEvalsError, UnknownNameError
from music_evals.processes import ReaderProcess
from music_evals.symbolic.limits import DEFAULT_LIMITS, Limits
from music_evals.symbolic.midi import from_pretty_midi, read_midi, save_midi, to_pretty_midi, write_midi
from music_evals.symbolic.notation import from_music21, read_abc, read_musicxml

__all__ = [
    "DEFAULT_LIMITS", "READERS", "Limits", "from_music21", "from_pretty_midi", "read_abc", "read_many", "read_midi",
    "read_musicxml", "read_score", "save_midi", "to_pretty_midi", "write_midi",
]  # fmt: skip

T = TypeVar("T")

READERS: dict[str, Callable[..., Score]] = {
    ".mid": read_midi,
    ".midi": read_midi,
    ".rmi": read_midi,
    ".musicxml": read_musicxml,
    ".xml": read_musicxml,
    ".mxl": read_musicxml,
    ".abc": read_abc,
}
"""Reader for each suffix, in lower case."""


def read_score(path: str | os.PathLike[str] | bytes, *, limits: Limits = DEFAULT_LIMITS) -> Score:
    """Read a score file, by its suffix, or the bytes of a MIDI file.

    Suffixes are .mid, .midi, .rmi, .musicxml, .xml, .mxl and .abc, in any case; another is an `UnknownNameError`.
    Other errors are those of the readers `read_midi`, `read_musicxml` and `read_abc`.
    """
    if isinstance(path, bytes):
        return read_midi(path, limits=limits)
    suffix = Path(path).suffix.lower()
    if suffix not in READERS:
        raise UnknownNameError("kind of score file", suffix or str(path), READERS)
    return READERS[suffix](path, limits=limits)


@overload
def read_many(
    paths: Iterable[str | os.PathLike[str]], *, timeout_sec: float = ...
) -> Iterator[tuple[Path, Score | MusicEvalsError]]: ...


@overload
def read_many(
    paths: Iterable[str | os.PathLike[str]], *, reader: Callable[[str], T], timeout_sec: float = ...
) -> Iterator[tuple[Path, T | MusicEvalsError]]: ...


def read_many(
    paths: Iterable[str | os.PathLike[str]], *, reader: Callable[[str], Any] = read_midi, timeout_sec: float = 60.0
) -> Iterator[tuple[Path, Any]]:
    """Read files one by one in a process of its own, and never lose the batch.

    Parameters
    ----------
    paths
        The files.
    reader
        A function of a path: `read_midi`, `read_score`, or your own. It must be importable, a function
        at the top of a module and not in ``__main__``, and what it returns must be picklable.
    timeout_sec
        Seconds that one file may take.

    Yields
    ------
    path, result
        In the order of `paths`. The result is what the reader returned (a score), or the named error that it raised,
        or `ParserCrashError` where the reader died (by a signal, by an exception that is not ours, out of memory) or
        did not finish.

    A reader that the worker cannot import, or a `timeout_sec` that is not positive, is an `InvalidInputError`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.mid")
    ...     _ = path.write_bytes(b"no MIDI")
    ...     [(_, result)] = read_many([path])
    >>> type(result).__name__
    'UnreadableFileError'
    """
    apart = ReaderProcess(reader, timeout_sec=timeout_sec)
    try:
        for path in map(Path, paths):
            yield path, apart.read(path)
    finally:
        apart.close()
