"""What comes back to people from training: structures judged, and items of inspectors discussed.

A structure of the training set is judged against the one that an inspector accepted for the song, or until there is
one against those of the others. Nothing of it is graded or paid.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import select

from music_evals.caimap import structure
from music_evals.caimap.roles import RIGHTS
from music_evals.caimap.storage.tables import MessageRow, PersonRow, SongRow, TaskRow
from music_evals.caimap.training import DISCUSSIONS, MAX_SPREAD
from music_evals.caimap.values import Song, Structure
from music_evals.caimap.work.practising import practice
from music_evals.caimap.work.service import StudyService, song_of
from music_evals.errors import InvalidAnnotationError, InvalidInputError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = [
    "Lesson",
    "Model",
    "Remark",
    "discuss",
    "discussion",
    "discussions",
    "lesson",
    "lessons",
    "models",
    "set_model",
]

_MAX_REMARK: Final = 2000


class Model(NamedTuple):
    """A song of the training set.

    Attributes
    ----------
    song, version
        What a form names.
    accepted
        Structure by which passes are judged; None where no inspector has accepted one.
    passes
        How many structures were handed in.

    """

    song: Song
    version: int
    accepted: Structure | None
    passes: int


class Lesson(NamedTuple):
    """A structure that was handed in as training.

    Attributes
    ----------
    task, song, person
        Which, and whose.
    against
        ``"accepted"`` structure of the set, the ``"others"`` who practised, or empty where there is nothing yet.
    agreement
        From 0 to 1 (`structure.agreement`), with the others the mean; NaN without anything.

    """

    task: int
    song: str
    person: int
    against: str
    agreement: float


class Remark(NamedTuple):
    """A message of the discussion of an item, of a round of scoring."""

    author: int
    role: str
    round: int
    content: str
    moment: dt.datetime


def models(service: StudyService, who: int) -> list[Model]:
    """List the songs of the training set.

    Raises
    ------
    ForbiddenError
        The person is neither an inspector nor an administrator.

    """
    with service.reading(who, "judge") as (session, _):
        passes = [row.song for row in _passes(session)]
        rows = session.scalars(select(SongRow).where(SongRow.training.is_(True)).order_by(SongRow.id))
        return [Model(song_of(row), row.version, _accepted(row), passes.count(row.id)) for row in rows]


def set_model(service: StudyService, who: int, song: str, version: int, accepted: Structure) -> None:
    """Accept a structure for a song of the training set, in place of the one before.

    Raises
    ------
    ForbiddenError
        The person is no inspector.
    StaleError
        Another inspector has changed the record since the page was loaded.
    InvalidAnnotationError
        The structure breaks a rule, or the song is not of the training set.

    """
    structure.check_structure(accepted)
    with service.writing(who, "inspect", locked=True) as (session, person):
        row = service.song(session, song, version)
        if not row.training:
            raise InvalidAnnotationError("this song is not of the training set", kind="song_not_training")
        row.accepted = {"structure": accepted.to_dict(), "people": [who]}
        service.note(session, person, "training", song, "model")


def lessons(service: StudyService, who: int) -> list[Lesson]:
    """List one's own structures of the training, or for inspectors and administrators those of everybody.

    Raises
    ------
    ForbiddenError
        There is no such person.

    """
    with service.reading(who, "ask") as (session, person):
        passes = _passes(session)
        listed = []
        for row in passes:
            if row.person == who or person.role in RIGHTS["judge"]:
                against, others = _references(session, row, passes)
                own = Structure.from_dict(row.result or {})
                agreements = [structure.agreement(own, other) for other in others]
                mean = math.fsum(agreements) / len(agreements) if agreements else math.nan
                listed.append(Lesson(row.id, row.song, row.person, against, mean))
        return listed


def lesson(service: StudyService, who: int, number: int) -> list[structure.Difference]:
    """Lay a structure of the training beside the accepted one, or without one beside the first of the others.

    Raises
    ------
    ForbiddenError
        The task is not theirs to see.
    InvalidAnnotationError
        It is no structure that was handed in as training, or there is nothing to lay beside it yet.

    """
    with service.reading(who, "ask") as (session, person):
        row = service.own_task(session, person, number)
        passes = _passes(session)
        others = _references(session, row, passes)[1] if row.id in {task.id for task in passes} else []
        if not others:
            raise InvalidAnnotationError("there is nothing yet by which this structure is judged", kind="no_reference")
        return structure.differences(Structure.from_dict(row.result or {}), others[0])


def discuss(service: StudyService, who: int, item: int, content: str) -> None:
    """Say something about an item on which inspectors are too far apart in this round.

    Parameters
    ----------
    service, who
        The study, and an inspector or an administrator.
    item
        Number of the description.
    content
        At most 2,000 characters.

    Raises
    ------
    ForbiddenError
        The person is neither.
    InvalidInputError
        Nothing was written or too much, or the item is not to be discussed: not everybody has scored it, or all are
        within `training.MAX_SPREAD` points.

    """
    if not content.strip() or len(content) > _MAX_REMARK:
        raise InvalidInputError(
            f"write something, of at most {_MAX_REMARK:,} characters", kind="message", most=_MAX_REMARK
        )
    training = practice(service, who)
    with service.writing(who, "judge") as (session, _):
        judged = training.judged
        if judged is None or item not in judged.discussed or item in {missed for missed, _ in judged.missing}:
            raise InvalidInputError(
                f"an item is discussed once all have scored it and are over {MAX_SPREAD:g} points apart",
                kind="not_discussed",
                most=f"{MAX_SPREAD:g}",
            )
        place = f"{DISCUSSIONS}{training.number}/{item}"
        session.add(MessageRow(thread=who, author=who, content=content.strip(), place=place, moment=service.clock()))


def discussion(service: StudyService, who: int, item: int) -> list[Remark]:
    """List what was said about an item in all rounds, in order.

    Raises
    ------
    ForbiddenError
        The person is neither an inspector nor an administrator.

    """
    return discussions(service, who).get(item, [])


def discussions(service: StudyService, who: int) -> dict[int, list[Remark]]:
    """Return item -> what was said about it in all rounds, in order; without items of which nothing was said.

    Raises
    ------
    ForbiddenError
        The person is neither an inspector nor an administrator.

    """
    with service.reading(who, "judge") as (session, _):
        chosen = select(MessageRow, PersonRow.role).join(PersonRow, PersonRow.id == MessageRow.author)
        chosen = chosen.where(MessageRow.place.startswith(DISCUSSIONS)).order_by(MessageRow.id)
        remarks: dict[int, list[Remark]] = {}
        for row, role in session.execute(chosen):
            _, number, item = row.place.split("/")
            remarks.setdefault(int(item), []).append(Remark(row.author, role, int(number), row.content, row.moment))
        return remarks


def _passes(session: Session) -> list[TaskRow]:
    chosen = select(TaskRow).where(
        TaskRow.training.is_(True), TaskRow.kind == "structure", TaskRow.state == "submitted"
    )
    return list(session.scalars(chosen.order_by(TaskRow.id)))


def _accepted(row: SongRow) -> Structure | None:
    return None if row.accepted is None else Structure.from_dict(row.accepted["structure"])


def _references(session: Session, row: TaskRow, passes: list[TaskRow]) -> tuple[str, list[Structure]]:
    """Return by what a pass is judged."""
    accepted = _accepted(session.get_one(SongRow, row.song))
    if accepted is not None:
        return "accepted", [accepted]
    others = [Structure.from_dict(task.result or {}) for task in passes if task.song == row.song and task.id != row.id]
    return "others" if others else "", others
