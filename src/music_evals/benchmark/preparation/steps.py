"""The steps of preparation: what each does with a song, by which source and licence, and how sure its answer is.

A step is a `contract.Step` in `STEPS`, and is added in a few lines::

    Step(
        "phonemes",
        source="...", licence="...", sure="...",
        does=find_phonemes,         # a function: Inputs -> answer
        needs=("audio", "lyrics"),  # files without which a song has no answer
        after=("alignment",),       # steps whose answers it needs; they are done before it, and asked for with it
        uses=("stems",),            # files and steps that are read where they are there
        columns=(Column("phonemes", [{"start_sec": "float64", "text": "string"}], {"phonemes": "..."}, "phonemes"),),
    )

The function gets `contract.Inputs`: ``inputs.files["audio"]`` is a path, ``inputs.answers["alignment"]["lines"]`` what
an earlier step answered, ``inputs.made("stems", "vocals")`` the path of a file that one made, or None, and
``inputs.options`` the settings that the step names in `options`. It returns plain values, and raises a named error
where a song has no answer: that song's step has failed, and the others go on. What it returns under a key of `files` is
bytes, and becomes a file.

Whatever it reads is hashed: bytes of files, answers of steps, the step's version, and what `about` says of its options
and tools. A run that is resumed does again what has changed, and nothing else.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from music_evals.annotations import LyricSection
from music_evals.annotations.lyrics import sections_of_text
from music_evals.audio.extraction import extract
from music_evals.audio.io import load_audio
from music_evals.benchmark.preparation.contract import Column, Inputs, Song, Step
from music_evals.benchmark.preparation.lead_sheet import FEATURES, make_lead_sheet
from music_evals.errors import InvalidLyricsError, NoDataError
from music_evals.lyrics.normalise import normalise_lyrics
from music_evals.lyrics.rhyme import rhyme_marks

__all__ = ["STEPS", "Column", "Inputs", "Song", "Step", "StepWork", "in_waves", "with_earlier"]

_STAMP = re.compile(r"\[(\d+):(\d{1,2}(?:[.:]\d{1,3})?)\]")
_CHINESE = re.compile("[\u4e00-\u9fff]")
_LEAST_CHINESE: Final = 0.5  # of the letters of a song whose rhymes can be read


@dataclasses.dataclass(frozen=True)
class StepWork:
    """Do one step for one song; it can be pickled."""

    def __call__(self, payload: tuple[str, Inputs]) -> dict[str, Any]:
        """Return the answer for the name of a step and what it reads."""
        name, inputs = payload
        step = STEPS[name]
        for kind in step.needs:
            if kind not in inputs.files:
                raise NoDataError(f"song {inputs.song} has no {kind}, which the step {name} needs")
        for earlier in step.after:
            if earlier not in inputs.answers:
                raise NoDataError(f"song {inputs.song} has no {earlier}, which the step {name} needs: that step failed")
        return step.does(inputs)


def with_earlier(names: Sequence[str]) -> list[str]:
    """Return these steps and those that they come after, in the order of `STEPS`."""
    found: dict[str, None] = {}
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found[name] = None
            left += STEPS[name].after
    return [name for name in STEPS if name in found]


def in_waves(names: Sequence[str]) -> list[list[str]]:
    """Return these steps in groups: all that those of one group read was made by groups before it."""
    waves: list[list[str]] = []
    place: dict[str, int] = {}
    for name in names:  # in the order of `STEPS`: what a step reads stands before it
        earlier = [place[other] for other in (*STEPS[name].after, *STEPS[name].uses) if other in place]
        place[name] = max(earlier, default=-1) + 1
        waves += [[]] if place[name] == len(waves) else []
        waves[place[name]].append(name)
    return waves


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidLyricsError(f"{path} is not UTF-8; save the lyrics as UTF-8") from error


def _aligned(inputs: Inputs) -> dict[str, Any]:
    """Return the lines with the time stamps of an LRC file, in the order in which they are sung."""
    path = inputs.files["lyrics"]
    timed = []
    for line in _read(path).splitlines():
        stamps, text = _STAMP.findall(line), _STAMP.sub("", line).strip()
        timed += [(60 * int(minutes) + float(seconds.replace(":", ".")), text) for minutes, seconds in stamps if text]
    if not timed:
        raise InvalidLyricsError(f"{path} has no line with a time stamp, as [00:12.30]; the step alignment needs them")
    return {"lines": [{"start_sec": start, "text": text} for start, text in sorted(timed, key=lambda line: line[0])]}


def _rhymed(inputs: Inputs) -> dict[str, Any]:
    """Return the lines of each section with a mark for those that rhyme."""
    path = inputs.files["lyrics"]
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


def _lead_sheet(inputs: Inputs) -> dict[str, Any]:
    """Return a lead sheet of the recording: two files, and how well it fits the grid."""
    return dataclasses.asdict(make_lead_sheet(extract(load_audio(inputs.files["audio"]), FEATURES), inputs.song))


STEPS: Final[dict[str, Step]] = {
    step.name: step
    for step in (
        Step(
            "alignment",
            source="time stamps of the LRC file",
            licence="that of the lyrics",
            sure="as the file says; not compared with the recording",
            does=_aligned,
            needs=("lyrics",),
            columns=(
                Column(
                    "lines",
                    [{"start_sec": "float64", "text": "string"}],
                    {"lines": "lines with the time at which they begin, in seconds"},
                    "lines",
                ),
            ),
        ),
        Step(
            "rhymes",
            source="music_evals.lyrics.rhyme, method char",
            licence="MIT; the tables of pypinyin-dict: CC-CEDICT, CC BY-SA",
            sure="a program's marks, for people to check; a song without section headers is taken as one section",
            does=_rhymed,
            needs=("lyrics",),
            columns=(
                Column(
                    "sections",
                    [{"section": "string", "lines": ["string"], "rhymes": ["bool"]}],
                    {"sections": "lines of each section, and for each whether it rhymes with another one of it"},
                    "sections",
                ),
            ),
        ),
        Step(
            "lead_sheet",
            source="the default backends of music_evals.audio for beats, chords and melody",
            licence="of each backend, in the records",
            sure="a draft: eighths at the finest, four beats a measure from the first beat on; off_grid says how "
            "well the notes fitted",
            does=_lead_sheet,
            needs=("audio",),
            files={"midi": "lead_sheets/{song}.mid", "musicxml": "lead_sheets/{song}.musicxml"},
            columns=(
                Column(
                    "lead_sheet",
                    {"midi": "string", "musicxml": "string", "bpm": "float64"}
                    | {"n_notes": "int64", "n_dropped": "int64", "off_grid": "float64"},
                    {
                        "lead_sheet.midi`, `lead_sheet.musicxml": "paths of the two files in this folder",
                        "lead_sheet.bpm": "beats a minute",
                        "lead_sheet.n_notes`, `lead_sheet.n_dropped": "notes written, and left out because another "
                        "one fell on their place",
                        "lead_sheet.off_grid": "mean distance of onsets from the grid in beats, 0 to 0.25",
                    },
                ),
            ),
        ),
    )
}
"""Name -> step; what a step reads of other steps stands before it."""
