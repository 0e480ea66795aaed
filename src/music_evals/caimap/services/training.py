"""Training mode: songs set aside, annotators practise on them, inspectors score the results until they agree.

Nothing of it is paid, graded or exported. What inspectors gave is shown to all of them once everybody has scored an
item; those that spread over `assurance.MAX_SPREAD` points are discussed, and the administrator begins another round.

A structure of the training set is judged against the one that an inspector accepted for the song, or until there is
one against those of the others.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import select

from music_evals.caimap.domain import assurance, structure
from music_evals.caimap.domain.assurance import DISCUSSIONS, MAX_SPREAD, TRAINING_SONGS, Round, evaluate_round
from music_evals.caimap.domain.machine import KINDS_OF_ROLE, RIGHTS
from music_evals.caimap.domain.values import ScoreSheet, Song, Structure, Task
from music_evals.caimap.services.inspecting import add_sheet
from music_evals.caimap.services.study import StudyService, song_of, task_of
from music_evals.caimap.storage.store import retried
from music_evals.caimap.storage.tables import MessageRow, PersonRow, SettingRow, SheetRow, SongRow, TaskRow
from music_evals.errors import InvalidAnnotationError, InvalidInputError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_SETTING: Final = "training"


class Practice(NamedTuple):
    """How far training is."""

    songs: int  # how many are set aside
    number: int  # of the round
    scores: dict[int, dict[int, tuple[float, str]]]
    judged: Round | None  # the round; None with fewer than two inspectors or no item


def choose_songs(service: StudyService, who: int, n: int = TRAINING_SONGS) -> int:
    """Set songs aside on which nobody has worked; they never enter the data. Return how many there are now."""
    with service.writing(who, "manage") as (session, person):
        begun = select(TaskRow.song)
        free = select(SongRow).where(
            SongRow.state == "structuring", SongRow.training.is_(False), SongRow.id.not_in(begun)
        )
        rows = list(session.scalars(free.order_by(SongRow.id)))
        if not 0 < n <= len(rows):
            raise InvalidInputError(
                f"{len(rows)} songs can still be set aside, got {n}", kind="songs_left", found=len(rows)
            )
        for at in service.rng(session, len(rows)).choice(len(rows), n, replace=False):
            rows[int(at)].training = True
            service.note(session, person, "song", rows[int(at)].id, "train")
        session.flush()
        return len(list(session.scalars(select(SongRow.id).where(SongRow.training.is_(True)))))


@retried
def take_training(service: StudyService, who: int) -> Task | None:
    """Give a person their next training task: one that they have begun, or a new one; None where all are done."""
    with service.writing(who, "annotate", locked=True) as (session, person):
        own = list(session.scalars(select(TaskRow).where(TaskRow.person == who, TaskRow.training.is_(True))))
        begun = next((row for row in own if row.state in {"assigned", "working"}), None)
        if begun is not None:
            return task_of(begun)
        had = {(row.song, row.kind) for row in own}
        songs = session.scalars(select(SongRow.id).where(SongRow.training.is_(True)).order_by(SongRow.id))
        left = [(song, kind) for song in songs for kind in KINDS_OF_ROLE[person.role] if (song, kind) not in had]
        if not left:
            return None
        row = TaskRow(song=left[0][0], kind=left[0][1], number=1, person=who, assigned=service.clock(), training=True)
        session.add(row)
        session.flush()
        service.note(session, None, "task", str(row.id), "assign", after=row.state, detail={"person": who})
        return task_of(row)


def practice(service: StudyService, who: int) -> Practice:
    """Return the round of scoring as this person may see it."""
    with service.reading(who, "ask") as (session, person):
        songs = len(list(session.scalars(select(SongRow.id).where(SongRow.training.is_(True)))))
        number = _round(session)
        if person.role not in {"inspector", "administrator"}:
            return Practice(songs, number, {}, None)
        inspectors = frozenset(
            session.scalars(select(PersonRow.id).where(PersonRow.role == "inspector", PersonRow.withdrawn.is_(False)))
        )
        scores: dict[int, dict[int, tuple[float, str]]] = {item: {} for item in _items(session)}
        for sheet in session.scalars(select(SheetRow).where(SheetRow.purpose == f"training{number}")):
            if sheet.task in scores and sheet.inspector in inspectors:  # and not of who has withdrawn
                scores[sheet.task][sheet.inspector] = (sheet.total, sheet.remark)
        totals = {item: {inspector: total for inspector, (total, _) in row.items()} for item, row in scores.items()}
        judged = evaluate_round(totals, inspectors) if len(inspectors) > 1 and totals else None
        visible = {
            item: row
            if inspectors <= set(row)
            else {inspector: score for inspector, score in row.items() if inspector == who}
            for item, row in scores.items()
        }
        return Practice(songs, number, visible, judged)


def score_item(service: StudyService, sheet: ScoreSheet) -> None:
    """Score an item of the training set, once a round."""
    with service.writing(sheet.inspector, "inspect") as (session, person):
        row = service.own_task(session, person, sheet.task)
        if row.id not in _items(session):
            raise InvalidAnnotationError("this description is not of the training set", kind="not_training")
        add_sheet(service, session, sheet, row.kind, f"training{_round(session)}")


def new_round(service: StudyService, who: int) -> int:
    """Begin another round, after what was discussed, and return its number."""
    training = practice(service, who)
    with service.writing(who, "manage") as (session, person):
        if training.judged is None or training.judged.missing:
            raise InvalidInputError(
                "this round is not over: every inspector scores every item first", kind="round_open"
            )
        session.merge(SettingRow(name=_SETTING, value={"round": training.number + 1}))
        service.note(session, person, "study", "training", "round", detail={"round": training.number + 1})
        return training.number + 1


def _round(session: Session) -> int:
    row = session.get(SettingRow, _SETTING)
    return 1 if row is None else int(row.value["round"])


def _items(session: Session) -> list[int]:
    """Return the descriptions that were handed in as training."""
    chosen = select(TaskRow.id).where(
        TaskRow.training.is_(True), TaskRow.state == "submitted", TaskRow.kind.in_(tuple(assurance.FORMS))
    )
    return list(session.scalars(chosen.order_by(TaskRow.id)))


_MAX_REMARK: Final = 2000


class Model(NamedTuple):
    """A song of the training set."""

    song: Song
    version: int
    accepted: Structure | None  # structure by which passes are judged; None where no inspector has accepted one
    passes: int  # how many structures were handed in


class Lesson(NamedTuple):
    """A structure that was handed in as training."""

    task: int
    song: str
    person: int
    against: str
    agreement: float  # from 0 to 1 (`structure.agreement`), with the others the mean; NaN without anything


class Remark(NamedTuple):
    """A message of the discussion of an item, of a round of scoring."""

    author: int
    role: str
    round: int
    content: str
    moment: dt.datetime


def models(service: StudyService, who: int) -> list[Model]:
    """List the songs of the training set."""
    with service.reading(who, "judge") as (session, _):
        passes = [row.song for row in _passes(session)]
        rows = session.scalars(select(SongRow).where(SongRow.training.is_(True)).order_by(SongRow.id))
        return [
            Model(
                song_of(row),
                row.version,
                None if row.accepted is None else Structure.from_dict(row.accepted["structure"]),
                passes.count(row.id),
            )
            for row in rows
        ]


def set_model(service: StudyService, who: int, song: str, version: int, accepted: Structure) -> None:
    """Accept a structure for a song of the training set, in place of the one before."""
    structure.check_structure(accepted)
    with service.writing(who, "inspect", locked=True) as (session, person):
        row = service.song(session, song, version)
        if not row.training:
            raise InvalidAnnotationError("this song is not of the training set", kind="song_not_training")
        row.accepted = {"structure": accepted.to_dict(), "people": [who]}
        service.note(session, person, "training", song, "model")


def lessons(service: StudyService, who: int) -> list[Lesson]:
    """List one's own structures of the training, or for inspectors and administrators those of everybody."""
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
    """Lay a structure of the training beside the accepted one, or without one beside the first of the others."""
    with service.reading(who, "ask") as (session, person):
        row = service.own_task(session, person, number)
        passes = _passes(session)
        others = _references(session, row, passes)[1] if row.id in {task.id for task in passes} else []
        if not others:
            raise InvalidAnnotationError("there is nothing yet by which this structure is judged", kind="no_reference")
        return structure.differences(Structure.from_dict(row.result or {}), others[0])


def discuss(service: StudyService, who: int, item: int, content: str) -> None:
    """Say something about an item on which inspectors are too far apart in this round."""
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
    """List what was said about an item in all rounds, in order."""
    return discussions(service, who).get(item, [])


def discussions(service: StudyService, who: int) -> dict[int, list[Remark]]:
    """Return item -> what was said about it in all rounds, in order; without items of which nothing was said."""
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


def _references(session: Session, row: TaskRow, passes: list[TaskRow]) -> tuple[str, list[Structure]]:
    """Return by what a pass is judged."""
    accepted = session.get_one(SongRow, row.song).accepted
    if accepted is not None:
        return "accepted", [Structure.from_dict(accepted["structure"])]
    others = [Structure.from_dict(task.result or {}) for task in passes if task.song == row.song and task.id != row.id]
    return "others" if others else "", others
