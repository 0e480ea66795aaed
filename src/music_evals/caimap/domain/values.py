"""What the platform speaks of: songs, people, tasks, annotations and their scores, as frozen values.

Rules, storage, export and statistics pass these to one another; none of them knows a web page or a database row.
Annotations check their own form. What a study asks of them beyond that (limits, listening, congruence) are rules.

Source: Wang et al., "MuChin", IJCAI 2024, appendices on the annotation platform CaiMAP.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.errors import InvalidAnnotationError

__all__ = [
    "ANNOTATION_KINDS",
    "ROLES",
    "SECTION_KINDS",
    "Description",
    "Effects",
    "FinishedSong",
    "Person",
    "PlaybackEvent",
    "ScoreSheet",
    "Section",
    "Song",
    "Structure",
    "Tagged",
    "Task",
    "TimedLine",
]

ROLES: Final = ("amateur", "professional", "inspector", "administrator")
"""What a person may be; each is one of them."""

ANNOTATION_KINDS: Final = ("structure", "professional", "amateur")
"""Tasks of annotators: type A of the paper (two passes a song), and the two descriptions of type B."""

SECTION_KINDS: Final = ("intro", "verse", "pre-chorus", "chorus", "bridge", "interlude", "ending")
"""Kinds of section, as in CaiMD; a label is one of them and a number."""

_LABEL: Final = re.compile(rf"(?:{'|'.join(SECTION_KINDS)})[1-9][0-9]?")
_PATTERN: Final = re.compile(r"[c ]*[cR]?")


@dataclasses.dataclass(frozen=True, slots=True)
class TimedLine:
    """A line of a song and when it begins."""

    start: float  # seconds from the beginning
    text: str  # the line
    section: str = ""  # kind of its section where that is known; empty otherwise


@dataclasses.dataclass(frozen=True, slots=True)
class Song:
    """A song as it comes to the platform; what is not known is empty.

    The cluster is one of the embeddings of the preparation: songs of one sound alike. `timed_lyrics` and
    `timed_sections` are lines with times, and such lines with their sections; CaiMD has different times in both.
    `automatic` says which of these fields a program wrote before people came: (field, program) each.

    Raises `InvalidAnnotationError` without id or line, for a recording without length, or as many marks as no lyrics
    have.
    """

    id: str  # its name in the study and in the export
    lines: tuple[str, ...]  # its lyrics before annotation, one phrase an entry
    duration_sec: float  # of the recording; 0 without one, as of a finished song that was imported
    title: str = ""
    artist: tuple[str, ...] = ()
    genre: str = ""
    album: str = ""
    audio: str = ""  # name of the recording in the folder of the study
    cluster: int | None = None  # None where that step was left out
    rhymes: tuple[bool, ...] = ()  # whether each line rhymes, by the preparation; empty where that step was left out
    theme: str = ""  # of the lyrics, by the preparation; empty where that step was left out
    timed_lyrics: tuple[TimedLine, ...] = ()
    timed_sections: tuple[TimedLine, ...] = ()
    licence: str = ""  # of the recording and the lyrics, as the importer states it
    automatic: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(self.lines))
        object.__setattr__(self, "automatic", tuple((field, program) for field, program in self.automatic))
        if not self.id:
            raise InvalidAnnotationError("a song needs an id")
        if not any(line.strip() for line in self.lines):
            raise InvalidAnnotationError(f"song {self.id!r} has no lyrics; songs without words cannot be annotated")
        if not math.isfinite(self.duration_sec) or self.duration_sec < 0 or (self.audio and not self.duration_sec):
            raise InvalidAnnotationError(
                f"song {self.id!r}: the recording must be longer than 0 s, got {self.duration_sec}"
            )
        if self.rhymes and len(self.rhymes) != len(self.lines):
            raise InvalidAnnotationError(
                f"song {self.id!r} has {len(self.lines)} lines and {len(self.rhymes)} marks of rhyme; give one a line"
            )


@dataclasses.dataclass(frozen=True, slots=True)
class Person:
    """Somebody who works in a study."""

    id: int  # number that says nothing of who it is
    role: str  # one of `ROLES`
    excluded: bool = False  # gets no further tasks
    withdrawn: bool = False  # has taken back their consent: nothing of theirs is exported

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidAnnotationError(
                f"a role must be one of {', '.join(ROLES)}, got {self.role!r}", kind="role_unknown", roles=ROLES
            )


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """A section of a song with the pattern of each line: ``c`` a character, ``R`` the last one of a line that rhymes.

    A space is a pause. `readings` are those of the last character of each phrase, where an annotator corrected it:
    pinyin with ü and its tone, 5 for none (``"hang2"``, ``"nü3"``, ``"le5"``); empty for a phrase that is read as
    programs do, as all are if left out.
    """

    label: str  # a kind of `SECTION_KINDS` and a number, as ``"verse1"``
    lines: tuple[str, ...]  # phrases
    rhyme: tuple[str, ...]
    readings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(self.lines))
        object.__setattr__(self, "rhyme", tuple(self.rhyme))
        object.__setattr__(self, "readings", tuple(self.readings) or ("",) * len(self.lines))
        if not _LABEL.fullmatch(self.label):
            raise InvalidAnnotationError(
                f"a section must be one of {', '.join(SECTION_KINDS)} and a number, got {self.label!r}",
                kind="label_unknown",
                kinds=SECTION_KINDS,
                found=self.label,
            )
        if {len(self.rhyme), len(self.readings)} != {len(self.lines)}:
            raise InvalidAnnotationError(
                f"section {self.label!r} has {len(self.lines)} lines and {len(self.rhyme)} patterns; give one a line, "
                "and a reading a line or none",
                kind="pattern_count",
                label=self.label,
            )
        for line, pattern in zip(self.lines, self.rhyme, strict=True):
            if not line.strip() or "\n" in line or "\r" in line:
                raise InvalidAnnotationError(
                    f"section {self.label!r} holds a line that is no phrase: {line!r}",
                    kind="no_phrase",
                    label=self.label,
                    line=line,
                )
            if not _PATTERN.fullmatch(pattern) or len(pattern) != len(line):
                raise InvalidAnnotationError(
                    f"the pattern of {line!r} must be c, R and spaces, one a character, got {pattern!r}",
                    kind="pattern",
                    line=line,
                    found=pattern,
                )

    @property
    def kind(self) -> str:
        """The label without its number."""
        return self.label.rstrip("0123456789")


@dataclasses.dataclass(frozen=True, slots=True)
class Structure:
    """The annotation of a type A task: the sections of a song, corrected and marked, and its theme."""

    sections: tuple[Section, ...]  # in their order; at least one with a line
    theme: str = ""  # what the lyrics are about

    def __post_init__(self) -> None:
        object.__setattr__(self, "sections", tuple(self.sections))
        if not any(section.lines for section in self.sections):
            raise InvalidAnnotationError("a structure needs at least one section with a line", kind="no_section")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        rows = ("lines", "rhyme", "readings")
        parts = [{"label": part.label} | {name: list(getattr(part, name)) for name in rows} for part in self.sections]
        return {"sections": parts, "theme": self.theme}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Structure:
        """Read what `to_dict` writes."""
        return cls(tuple(Section(**part) for part in plain["sections"]), plain.get("theme", ""))


@dataclasses.dataclass(frozen=True, slots=True)
class Tagged:
    """What is said of one dimension."""

    tags: tuple[str, ...]  # in the order in which they were chosen; not empty
    text: str = ""  # in own words; empty where nothing was written

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", tuple(self.tags))
        if not all(tag.strip() for tag in self.tags):
            raise InvalidAnnotationError(f"tags must be words, got {self.tags}", kind="tags_no_words")


@dataclasses.dataclass(frozen=True, slots=True)
class Effects:
    """The closed questions on sound; None where one was not answered, in songs that were imported finished.

    `live` is a recording of a concert, `lo_fi` one that is meant to sound old or rough.
    """

    clear: bool | None  # the sound is clear
    live: bool | None = False
    lo_fi: bool | None = False
    live_text: str = ""  # remarks; empty where nothing was written
    lo_fi_text: str = ""  # remarks; empty where nothing was written

    @property
    def quality(self) -> str | None:
        """The first answer, as CaiMD names it: ``"clear"``, ``"unclear"`` or None."""
        return None if self.clear is None else "clear" if self.clear else "unclear"


@dataclasses.dataclass(frozen=True, slots=True)
class Description:
    """The annotation of a type B task: one person's description of a song.

    `dimensions` maps the name of each of `music_evals.annotations.DIMENSIONS` of the group but `AUDIO_EFFECTS` to what
    is said of it.
    """

    group: str  # ``"professional"`` or ``"amateur"``
    overall_text: str  # the textual description
    dimensions: Mapping[str, Tagged]
    effects: Effects  # the closed questions

    def __post_init__(self) -> None:
        if self.group not in DIMENSIONS:
            raise InvalidAnnotationError(
                f"a group must be one of {', '.join(DIMENSIONS)}, got {self.group!r}", kind="kind_of_task"
            )
        expected = [name for name in DIMENSIONS[self.group] if name != AUDIO_EFFECTS]
        wrong = set(expected) ^ set(self.dimensions)
        if wrong:
            raise InvalidAnnotationError(
                f"a {self.group} description must speak of its {len(expected)} dimensions, each once; "
                f"missing or unknown: {', '.join(sorted(wrong))}",
                kind="dimensions_missing",
                dimensions=tuple(sorted(wrong)),
            )
        object.__setattr__(self, "dimensions", MappingProxyType({name: self.dimensions[name] for name in expected}))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "group": self.group,
            "overall_text": self.overall_text,
            "dimensions": {
                name: {"tags": list(tagged.tags), "text": tagged.text} for name, tagged in self.dimensions.items()
            },
            "effects": dataclasses.asdict(self.effects),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Description:
        """Read what `to_dict` writes."""
        dimensions = {
            name: Tagged(tuple(tagged["tags"]), tagged["text"]) for name, tagged in plain["dimensions"].items()
        }
        return cls(plain["group"], plain["overall_text"], dimensions, Effects(**plain["effects"]))


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """What one person is to do for one song."""

    id: int  # its number
    song: str  # id of the song
    kind: str  # one of `ANNOTATION_KINDS`
    person: int  # id of the annotator
    state: str  # as `music_evals.caimap.domain.machine.TASK` names it
    number: int = 1  # 1 or 2 of the two passes of type A; 1 of type B
    assigned: dt.datetime | None = None  # when, in UTC
    submitted: dt.datetime | None = None  # when, in UTC
    training: bool = False  # of the training mode: not exported, not paid as work

    def __post_init__(self) -> None:
        if self.kind not in ANNOTATION_KINDS:
            raise InvalidAnnotationError(f"a task must be one of {', '.join(ANNOTATION_KINDS)}, got {self.kind!r}")


@dataclasses.dataclass(frozen=True, slots=True)
class PlaybackEvent:
    """One thing that the player or the editor of a page reported.

    The kind is ``"play"``, ``"pause"``, ``"seek"``, ``"rate"``, ``"beat"`` (the player is still playing), ``"ended"``,
    ``"write"``, ``"paste"``, ``"blocked"`` (a paste that the page kept away), ``"hidden"`` or ``"shown"``.
    """

    kind: str
    position_sec: float  # of the player, when it happened
    received_sec: float  # when the server received it: its own clock, seconds since the task was opened
    value: float = 0.0  # where a seek went in seconds, or the rate that was set; 0 otherwise


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreSheet:
    """The points that an inspector gave a description, by the form of table 6 or 7."""

    task: int  # number of the task that is scored
    inspector: int  # id of who scored
    points: Mapping[tuple[str, str], float]  # (row, part) of the form -> points
    remark: str = ""  # for the annotator

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", MappingProxyType(dict(self.points)))

    @property
    def total(self) -> float:
        """Sum of the points, from 0 to 100."""
        return math.fsum(self.points.values())


@dataclasses.dataclass(frozen=True, slots=True)
class FinishedSong:
    """A song that has passed all phases, as the export takes it.

    `structure_people` are both annotators of the accepted structure, or the inspector who settled it too; `consent` is
    the version of the text that they have consented to; where they accepted different ones, all of these with commas.
    """

    song: Song  # as imported
    structure: Structure  # the accepted one
    professional: Description  # the accepted descriptions
    amateur: Description  # the accepted descriptions
    structure_people: Sequence[int]  # their ids
    professional_person: int  # ids of who described it
    amateur_person: int  # ids of who described it
    consent: str
