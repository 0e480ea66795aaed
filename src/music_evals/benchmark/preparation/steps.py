"""The steps of preparation: what each does with a song, by which source and licence, and how sure its answer is."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from music_evals.annotations import LyricSection
from music_evals.annotations.lyrics import sections_of_text
from music_evals.audio.extraction import extract
from music_evals.audio.io import load_audio
from music_evals.benchmark.preparation.lead_sheet import FEATURES, make_lead_sheet
from music_evals.errors import InvalidLyricsError, NoDataError
from music_evals.lyrics.normalise import normalise_lyrics
from music_evals.lyrics.rhyme import rhyme_marks

__all__ = ["STEPS", "Song", "Step", "StepWork"]

_STAMP = re.compile(r"\[(\d+):(\d{1,2}(?:[.:]\d{1,3})?)\]")
_CHINESE = re.compile("[\u4e00-\u9fff]")
_LEAST_CHINESE: Final = 0.5  # of the letters of a song whose rhymes can be read


@dataclasses.dataclass(frozen=True)
class Song:
    """Files of one song.

    Attributes
    ----------
    song
        Its id: the name of the files without ending, with their folder.
    audio, lyrics
        Paths; None where there is no such file.

    """

    song: str
    audio: str | None = None
    lyrics: str | None = None


@dataclasses.dataclass(frozen=True)
class Step:
    """A step of preparation.

    Attributes
    ----------
    name, needs
        What it is called, and which file of a song it reads: ``"audio"`` or ``"lyrics"``.
    source, licence, sure
        What makes the answer, under which licence, and how sure it is.
    does
        Path of the file and id of the song -> the answer, as plain values and bytes.

    """

    name: str
    needs: str
    source: str
    licence: str
    sure: str
    does: Callable[[str, str], dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class StepWork:
    """Do one step for one song; it can be pickled."""

    def __call__(self, payload: tuple[str, Song]) -> dict[str, Any]:
        """Return the answer for the name of a step and a song."""
        name, song = payload
        step = STEPS[name]
        path = getattr(song, step.needs)
        if path is None:
            raise NoDataError(f"song {song.song} has no {step.needs}, which the step {name} needs")
        return step.does(path, song.song)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidLyricsError(f"{path} is not UTF-8; save the lyrics as UTF-8") from error


def _aligned(path: str, _: str) -> dict[str, Any]:
    """Return the lines with the time stamps of an LRC file, in the order in which they are sung."""
    timed = []
    for line in _read(path).splitlines():
        stamps, text = _STAMP.findall(line), _STAMP.sub("", line).strip()
        timed += [(60 * int(minutes) + float(seconds.replace(":", ".")), text) for minutes, seconds in stamps if text]
    if not timed:
        raise InvalidLyricsError(f"{path} has no line with a time stamp, as [00:12.30]; the step alignment needs them")
    return {"lines": [{"start_sec": start, "text": text} for start, text in sorted(timed, key=lambda line: line[0])]}


def _rhymed(path: str, _: str) -> dict[str, Any]:
    """Return the lines of each section with a mark for those that rhyme."""
    text = normalise_lyrics(_read(path)).text
    letters = [char for line in text.splitlines() if not line.startswith("(") for char in line if char.isalpha()]
    share = len(_CHINESE.findall("".join(letters))) / max(len(letters), 1)
    if share < _LEAST_CHINESE:
        raise InvalidLyricsError(
            f"{path} is not Chinese: {share:.0%} of its letters are; rhymes are read in Chinese lyrics only"
        )
    whole = (LyricSection("song", tuple(text.splitlines())),)  # without headers the song is one section
    sections = sections_of_text(text) if text.startswith("(") else whole
    return {
        "sections": [
            {"section": one.label, "lines": list(one.lines), "rhymes": rhyme_marks(one.lines, "char")}
            for one in sections
        ]
    }


def _lead_sheet(path: str, song: str) -> dict[str, Any]:
    """Return a lead sheet of the recording: two files, and how well it fits the grid."""
    return dataclasses.asdict(make_lead_sheet(extract(load_audio(path), FEATURES), song))


STEPS: Final[Mapping[str, Step]] = MappingProxyType(
    {
        step.name: step
        for step in (
            Step(
                "alignment",
                "lyrics",
                "time stamps of the LRC file",
                "that of the lyrics",
                "as the file says; not compared with the recording",
                _aligned,
            ),
            Step(
                "rhymes",
                "lyrics",
                "music_evals.lyrics.rhyme, method char",
                "MIT; the tables of pypinyin-dict: CC-CEDICT, CC BY-SA",
                "a program's marks, for people to check; a song without section headers is taken as one section",
                _rhymed,
            ),
            Step(
                "lead_sheet",
                "audio",
                "the default backends of music_evals.audio for beats, chords and melody",
                "of each backend, in the records",
                "a draft: eighths at the finest, four beats a measure from the first beat on; off_grid says how well "
                "the notes fitted",
                _lead_sheet,
            ),
        )
    }
)
"""Name -> step."""
