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
    """A line of a song and when it begins.

    Parameters
    ----------
    start
        Seconds from the beginning.
    text
        The line.
    section
        Kind of its section where that is known; empty otherwise.

    """

    start: float
    text: str
    section: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Song:
    """A song as it comes to the platform.

    Parameters
    ----------
    id
        Its name in the study and in the export.
    lines
        Its lyrics before annotation, one phrase an entry.
    duration_sec
        Of the recording; 0 without one, as of a finished song that was imported.
    title, artist, genre, album
        As known; empty where not.
    audio
        Name of the recording in the folder of the study.
    cluster
        Of the embeddings of the preparation; songs of one sound alike. None where that step was left out.
    rhymes
        Whether each line rhymes, by the preparation; empty where that step was left out.
    theme
        Of the lyrics, by the preparation; empty where that step was left out.
    timed_lyrics, timed_sections
        Lines with times, and such lines with their sections, where they are known; CaiMD has different times in both.
    licence
        Of the recording and the lyrics, as the importer states it.
    automatic
        Which of these fields a program wrote before people came, and which program: (field, program) each.

    Raises
    ------
    InvalidAnnotationError
        No id, no line, a recording without length, or as many marks as no lyrics have.

    """

    id: str
    lines: tuple[str, ...]
    duration_sec: float
    title: str = ""
    artist: tuple[str, ...] = ()
    genre: str = ""
    album: str = ""
    audio: str = ""
    cluster: int | None = None
    rhymes: tuple[bool, ...] = ()
    theme: str = ""
    timed_lyrics: tuple[TimedLine, ...] = ()
    timed_sections: tuple[TimedLine, ...] = ()
    licence: str = ""
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
    """Somebody who works in a study.

    Parameters
    ----------
    id
        Number that says nothing of who it is.
    role
        One of `ROLES`.
    excluded
        Gets no further tasks.
    withdrawn
        Has taken back their consent: nothing of theirs is exported.

    """

    id: int
    role: str
    excluded: bool = False
    withdrawn: bool = False

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidAnnotationError(
                f"a role must be one of {', '.join(ROLES)}, got {self.role!r}", kind="role_unknown", roles=ROLES
            )


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """A section of a song with the pattern of each of its lines.

    Parameters
    ----------
    label
        A kind of `SECTION_KINDS` and a number, as ``"verse1"``.
    lines
        Phrases.
    rhyme
        Patterns of the phrases: ``c`` a character, ``R`` the last one of a line that rhymes, a space a pause.
    readings
        Of the last character of each phrase, where an annotator corrected it: pinyin with ü and its tone, 5 for none
        (``"hang2"``, ``"nü3"``, ``"le5"``); empty for a phrase that is read as programs do, as all are if left out.

    """

    label: str
    lines: tuple[str, ...]
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
    """The annotation of a type A task: the sections of a song, corrected and marked, and its theme.

    Parameters
    ----------
    sections
        In their order; at least one with a line.
    theme
        What the lyrics are about.

    """

    sections: tuple[Section, ...]
    theme: str = ""

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
    """What is said of one dimension.

    Parameters
    ----------
    tags
        In the order in which they were chosen; not empty.
    text
        In own words; empty where nothing was written.

    """

    tags: tuple[str, ...]
    text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", tuple(self.tags))
        if not all(tag.strip() for tag in self.tags):
            raise InvalidAnnotationError(f"tags must be words, got {self.tags}", kind="tags_no_words")


@dataclasses.dataclass(frozen=True, slots=True)
class Effects:
    """The closed questions on sound.

    Parameters
    ----------
    clear
        The sound is clear.
    live, lo_fi
        It is a recording of a concert; it is meant to sound old or rough. None, as of `clear`, where that was not
        answered: in songs that were imported finished.
    live_text, lo_fi_text
        Remarks; empty where nothing was written.

    """

    clear: bool | None
    live: bool | None = False
    lo_fi: bool | None = False
    live_text: str = ""
    lo_fi_text: str = ""

    @property
    def quality(self) -> str | None:
        """The first answer, as CaiMD names it: ``"clear"``, ``"unclear"`` or None."""
        return None if self.clear is None else "clear" if self.clear else "unclear"


@dataclasses.dataclass(frozen=True, slots=True)
class Description:
    """The annotation of a type B task: one person's description of a song.

    Parameters
    ----------
    group
        ``"professional"`` or ``"amateur"``.
    overall_text
        The textual description.
    dimensions
        Name of a dimension -> what is said of it: all of `music_evals.annotations.DIMENSIONS` of the group but
        `AUDIO_EFFECTS`.
    effects
        The closed questions.

    """

    group: str
    overall_text: str
    dimensions: Mapping[str, Tagged]
    effects: Effects

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
    """What one person is to do for one song.

    Parameters
    ----------
    id
        Its number.
    song
        Id of the song.
    kind
        One of `ANNOTATION_KINDS`.
    person
        Id of the annotator.
    state
        As `music_evals.caimap.domain.machine.TASK` names it.
    number
        1 or 2 of the two passes of type A; 1 of type B.
    assigned, submitted
        When, in UTC.
    training
        Of the training mode: not exported, not paid as work.

    """

    id: int
    song: str
    kind: str
    person: int
    state: str
    number: int = 1
    assigned: dt.datetime | None = None
    submitted: dt.datetime | None = None
    training: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ANNOTATION_KINDS:
            raise InvalidAnnotationError(f"a task must be one of {', '.join(ANNOTATION_KINDS)}, got {self.kind!r}")


@dataclasses.dataclass(frozen=True, slots=True)
class PlaybackEvent:
    """One thing that the player or the editor of a page reported.

    Parameters
    ----------
    kind
        ``"play"``, ``"pause"``, ``"seek"``, ``"rate"``, ``"beat"`` (the player is still playing), ``"ended"``,
        ``"write"``, ``"paste"``, ``"blocked"`` (a paste that the page kept away), ``"hidden"`` or ``"shown"``.
    position_sec
        Of the player, when it happened.
    received_sec
        When the server received it: its own clock, seconds since the task was opened.
    value
        Where a seek went in seconds, or the rate that was set; 0 otherwise.

    """

    kind: str
    position_sec: float
    received_sec: float
    value: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreSheet:
    """The points that an inspector gave a description, by the form of table 6 or 7.

    Parameters
    ----------
    task
        Number of the task that is scored.
    inspector
        Id of who scored.
    points
        (row, part) of the form -> points.
    remark
        For the annotator.

    """

    task: int
    inspector: int
    points: Mapping[tuple[str, str], float]
    remark: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", MappingProxyType(dict(self.points)))

    @property
    def total(self) -> float:
        """Sum of the points, from 0 to 100."""
        return math.fsum(self.points.values())


@dataclasses.dataclass(frozen=True, slots=True)
class FinishedSong:
    """A song that has passed all phases, as the export takes it.

    Parameters
    ----------
    song
        As imported.
    structure
        The accepted one.
    professional, amateur
        The accepted descriptions.
    structure_people
        Ids of who annotated the accepted structure: both annotators, or the inspector who settled it too.
    professional_person, amateur_person
        Ids of who described it.
    consent
        Version of the text that they have consented to; where they accepted their invitations under different ones, all
        of these with commas.

    """

    song: Song
    structure: Structure
    professional: Description
    amateur: Description
    structure_people: Sequence[int]
    professional_person: int
    amateur_person: int
    consent: str
