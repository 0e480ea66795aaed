"""The metadata frame: what a folder of MIDI files holds, one row a file.

Columns follow the frame of the thesis (Araneda, 2023), which it uses to clean its datasets; `symbolic.filters` does the
cleaning. Two columns are added: `n_overlaps`, because sharing an onset is not the only way to be polyphonic, and
`error`, because a file that cannot be read is a row as well.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np

from music_evals.annotations import Score
from music_evals.csv_files import csv_text
from music_evals.errors import MusicEvalsError, NoDataError, UnknownNameError
from music_evals.files import write_atomically
from music_evals.symbolic.files import read_many
from music_evals.symbolic.measures import count_musib_measures, meter_map

__all__ = [
    "COUNTINGS",
    "FileFacts",
    "count_measures",
    "file_facts",
    "frame_to_columns",
    "frame_to_csv",
    "midi_files",
    "midi_frame",
    "write_frame_csv",
]

Counting = Literal["notated", "onset", "published"]
COUNTINGS: tuple[Counting, ...] = ("notated", "onset", "published")
"""How measures are counted; see `count_measures`."""

OVERLAP_QUARTERS = 1 / 6  # one step of MUSIB's grid; what is shorter vanishes in symbolic.contexts.quantize_voice
SUFFIXES = frozenset({".mid", ".midi"})


@dataclasses.dataclass(frozen=True)
class FileFacts:
    """What one MIDI file holds. Tuples have one value for each instrument: a track, channel and program with notes.

    Attributes
    ----------
    filename
        Path inside the folder, with slashes.
    n_instruments, instrument_names
        Instruments with notes.
    n_notes
        Notes of each instrument.
    is_monophony
        No two notes of the instrument start together: the thesis' rule, which sees no overlaps.
    max_poly
        The most notes of the instrument that start together.
    polys_percent
        Per cent of the instrument's onsets at which more than one note starts, 0..100.
    n_overlaps
        Notes of the instrument that start together with another, or while another has a sixth of a quarter or more to
        go. 0 says that `symbolic.contexts.tokens_from_score` takes the voice on MUSIB's grid.
    tempo_changes
        (seconds, quarters a minute) of each tempo that differs from the one before.
    tsc_length, first_tsc, tsc
        Time signatures: how many, the first ("" if there is none), and all, as "4/4". One that says nothing new is not
        counted; one that is written again to move the bar lines is.
    duration
        End of the last note, seconds; NaN for a file that cannot be read.
    n_measures
        By the rule that was asked for; see `count_measures`.
    is_empty
        There are no notes.
    hash
        MD5 of the file, in hexadecimal; "" if the system refuses it.
    is_4_4
        There are time signatures and all are 4/4.
    error
        Kind and message of the error if the file cannot be read; then every other column but `filename` and `hash` is
        that of an empty file, and `is_empty` is False, for nobody knows.
    """

    filename: str
    n_instruments: int = 0
    instrument_names: tuple[str, ...] = ()
    n_notes: tuple[int, ...] = ()
    is_monophony: tuple[bool, ...] = ()
    max_poly: tuple[int, ...] = ()
    polys_percent: tuple[float, ...] = ()
    n_overlaps: tuple[int, ...] = ()
    tempo_changes: tuple[tuple[float, float], ...] = ()
    tsc_length: int = 0
    first_tsc: str = ""
    tsc: tuple[str, ...] = ()
    duration: float = float("nan")
    n_measures: int = 0
    is_empty: bool = False
    hash: str = ""
    is_4_4: bool = False
    error: str = ""


def midi_files(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the .mid and .midi files of a folder and its sub-folders, sorted; raise `NoDataError` where none is."""
    root = Path(folder)
    paths = sorted(path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not paths:
        problem = "holds no .mid or .midi file" if root.is_dir() else "no such folder"
        raise NoDataError(f"{root}: {problem}; give a folder of MIDI files")
    return paths


def midi_frame(
    folder: str | os.PathLike[str],
    *,
    counting: Counting = "notated",
    timeout_sec: float = 60.0,
    progress: Callable[[int, int], object] | None = None,
) -> list[FileFacts]:
    """List what a folder of MIDI files holds.

    Files are read in a process of its own (`music_evals.processes`), so a broken one costs its own row alone.

    Parameters
    ----------
    folder
        Searched with its sub-folders for .mid and .midi files; without any it is a `NoDataError`.
    counting
        Rule for `n_measures`; see `count_measures`.
    timeout_sec
        Seconds that one file may take.
    progress
        Called after each file with the number of files done and of all files.

    Returns
    -------
    list of FileFacts
        One row a file, sorted by path. `error` is set where a file could not be read.
    """
    if counting not in COUNTINGS:
        raise UnknownNameError("way of counting measures", counting, COUNTINGS)
    root, paths = Path(folder), midi_files(folder)
    frame = []
    for path, result in read_many(paths, timeout_sec=timeout_sec):
        name = path.relative_to(root).as_posix()
        if isinstance(result, MusicEvalsError):
            facts = FileFacts(name, error=f"{type(result).__name__}: {result}")
        else:
            facts = file_facts(name, result, counting=counting)
        with contextlib.suppress(OSError), path.open("rb") as file:  # the row says why the file could not be read
            digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
            facts = dataclasses.replace(facts, hash=digest)
        frame.append(facts)
        if progress is not None:
            progress(len(frame), len(paths))
    return frame


def file_facts(filename: str, score: Score, *, counting: Counting = "notated") -> FileFacts:
    """Return the row of one score; `hash` is left empty."""
    sounding = [index for index in range(len(score.voices)) if (score.notes["voice"] == index).any()]
    voices = [score.voice(index) for index in sounding]
    together = [np.unique(notes["onset_tick"], return_counts=True)[1] for notes in voices]
    n_overlaps = []
    for notes in voices:
        onsets = notes["onset_tick"]
        until = np.maximum.accumulate(onsets + notes["duration_tick"])[:-1]
        clash = (until - onsets[1:] >= OVERLAP_QUARTERS * score.ticks_per_quarter) | (np.diff(onsets) == 0)
        n_overlaps.append(int(clash.sum()))
    signatures = tuple(f"{change.numerator}/{change.denominator}" for change in score.time_signatures)
    tempo_times = score.seconds([tempo.tick for tempo in score.tempos]).tolist()
    return FileFacts(
        filename,
        n_instruments=len(voices),
        instrument_names=tuple(score.voices[index] for index in sounding),
        n_notes=tuple(len(notes) for notes in voices),
        is_monophony=tuple(bool((counts == 1).all()) for counts in together),
        max_poly=tuple(int(counts.max(initial=0)) for counts in together),
        polys_percent=tuple(100 * int((counts > 1).sum()) / counts.size for counts in together),
        n_overlaps=tuple(n_overlaps),
        tempo_changes=tuple(zip(tempo_times, (tempo.bpm for tempo in score.tempos), strict=True)),
        tsc_length=len(signatures),
        first_tsc=signatures[0] if signatures else "",
        tsc=signatures,
        duration=float(score.seconds(score.end_tick)),
        n_measures=count_measures(score, counting),
        is_empty=not len(score.notes),
        is_4_4=set(signatures) == {"4/4"},
    )


def count_measures(score: Score, counting: Counting = "notated") -> int:
    """Count the measures of a score.

    Parameters
    ----------
    score
        Any score.
    counting
        - ``"notated"``: bars of the meter map up to the end of the last note, a pickup counted as one.
        - ``"onset"``: measures of four quarters from tick 0 in which an onset of the first instrument lies.
        - ``"published"``: the same on a grid of sixteenths that stops short of the last onset; see
          `symbolic.measures.count_musib_measures`. This rule gives the published counts of MUSIB's JSB Chorales.
    """
    if counting == "notated":
        return meter_map(score).n_measures
    if not len(score.notes):
        return 0
    voices = score.notes["voice"]
    onsets = score.notes["onset_tick"][voices == voices.min()]
    if counting == "published":
        return count_musib_measures(onsets, score.ticks_per_quarter)
    return len(np.unique(onsets // (4 * score.ticks_per_quarter)))


def frame_to_columns(frame: Sequence[FileFacts]) -> dict[str, list[Any]]:
    """Return the frame as a list for each column: what `pandas.DataFrame` and `datasets.Dataset.from_dict` take."""
    return {field.name: [getattr(row, field.name) for row in frame] for field in dataclasses.fields(FileFacts)}


def frame_to_csv(frame: Iterable[FileFacts], path: str | os.PathLike[str]) -> Path:
    """Write the frame as a CSV file, whole or not at all, and return its path. Tuples are written as JSON lists."""
    text = io.StringIO(newline="")
    write_frame_csv(frame, text)
    return write_atomically(path, text.getvalue().encode())


def write_frame_csv(frame: Iterable[FileFacts], stream: TextIO) -> None:
    """Write the frame as CSV to an open text stream. Tuples are written as JSON lists, lines end in a line feed."""
    names = [field.name for field in dataclasses.fields(FileFacts)]
    rows = ([getattr(row, name) for name in names] for row in frame)
    cells = (
        [json.dumps(value, ensure_ascii=False) if isinstance(value, tuple) else value for value in row] for row in rows
    )
    stream.write(csv_text(names, cells))
