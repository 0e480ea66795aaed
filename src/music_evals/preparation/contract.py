"""What a step of preparation is: what it reads, what it makes, and what is known of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

FILES = ("audio", "lyrics")
"""Kinds of files that a song may have."""


@dataclasses.dataclass(frozen=True)
class Song:
    """Files of one song."""

    song: str  # its id: the name of the files without ending, with their folder
    audio: str | None = None  # a path
    lyrics: str | None = None

    @property
    def files(self) -> dict[str, str]:
        """Kind -> path of the files that are there."""
        paths = {kind: getattr(self, kind) for kind in FILES}
        return {kind: path for kind, path in paths.items() if path is not None}


@dataclasses.dataclass(frozen=True)
class Inputs:
    """All that a step reads of one song; nothing else may change its answer."""

    song: str
    files: Mapping[str, str]
    """Kind -> path, out of `FILES`: all that the step `needs`, and what it `uses` where it is there."""
    answers: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    """Earlier step -> its answer: all that the step comes `after`, and what it `uses` where it is there."""
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # those that the step names
    out: str = "."  # folder of the run: files that earlier steps made lie there

    def made(self, step: str, key: str) -> Path | None:
        """Return the path of a file that an earlier step made, None where that was not done."""
        answer = self.answers.get(step)
        return None if answer is None else Path(self.out) / answer[key]


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of the data set that a step fills."""

    name: str
    kind: Any  # type of its values: a name as ``"float64"``, a list of one kind, or a dictionary of kinds
    descriptions: Mapping[str, str]  # name -> description for the card: of the column, or of parts of it
    key: str = ""  # of the answer, whose value it holds; empty holds the whole answer

    def value(self, answer: Mapping[str, Any] | None) -> Any:
        """Return the value of a song: an empty list, or nothing, where there is no answer."""
        if answer is None:
            return [] if isinstance(self.kind, list) else None
        return answer[self.key] if self.key else dict(answer)


@dataclasses.dataclass(frozen=True)
class Described:
    """What is known of any step."""

    name: str
    source: str  # what makes the answer; this and the next two for the card
    licence: str
    sure: str
    _: dataclasses.KW_ONLY
    after: tuple[str, ...] = ()  # earlier steps without whose answer a song has none; asked for with the step
    columns: tuple[Column, ...] = ()  # what the data set gets of the answer
    options: tuple[str, ...] = ()  # fields of `task.Settings` that it reads
    about: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    """Its options -> what they stand for, as JSON values: versions, commits, hashes. It is called once a run, in the
    process of the user, and raises where the step cannot be done at all: no such model, or a package is missing."""
    left_out: Callable[[Mapping[str, Any]], str] = lambda _: ""  # options -> why, unless it is asked for by name


@dataclasses.dataclass(frozen=True)
class Step(Described):
    """A step of preparation, song by song; see `steps` for how one is added."""

    _: dataclasses.KW_ONLY
    does: Callable[[Inputs], dict[str, Any]]
    """`Inputs` -> the answer, as plain values; of the keys of `files`, bytes. It runs in any process, and raises a
    named error where it has no answer."""
    needs: tuple[str, ...] = ()  # kinds of files without which a song has no answer, out of `FILES`
    uses: tuple[str, ...] = ()  # files and earlier steps that are read where they are there, in the same run
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Key of the answer whose value is bytes -> where they are written in the folder of the run, as
    ``"lead_sheets/{song}.mid"``; the answer then holds the path."""
    version: int = 1  # goes up when its answers change, so that those of before are made again


@dataclasses.dataclass(frozen=True)
class Corpus:
    """All that a step over all songs reads."""

    answers: Mapping[str, Mapping[str, Mapping[str, Any]]]  # song -> earlier step -> its answer, where all are there
    options: Mapping[str, Any]
    out: Path


@dataclasses.dataclass(frozen=True)
class CorpusStep(Described):
    """A step over all songs at once, repeated at the end of each run, in one process, from other steps' answers."""

    _: dataclasses.KW_ONLY
    does: Callable[[Corpus], tuple[dict[str, dict[str, Any]], dict[str, Any]]]  # song -> answer; JSON values on all
