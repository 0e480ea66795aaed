"""What pages show: rows as values, each for who may see it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from sqlalchemy import select

from music_evals.caimap.domain import listening
from music_evals.caimap.domain.assurance import DISCUSSIONS
from music_evals.caimap.domain.machine import ForbiddenError
from music_evals.caimap.domain.structure import pre_annotated
from music_evals.caimap.domain.values import Description, Song, Structure, Task
from music_evals.caimap.services.annotating import HANDED_IN, pass_tasks
from music_evals.caimap.services.study import StudyService, song_of, task_of
from music_evals.caimap.services.tasks import OPEN, hidden_tasks
from music_evals.caimap.storage.tables import AuditRow, MessageRow, PersonRow, SheetRow, SongRow, TaskRow


class TaskView(NamedTuple):
    """A task and its song."""

    task: Task
    song: Song
    version: int  # that a form of the page names; 0 for the author of what is handed in
    draft: dict[str, str]  # fields that were saved; empty where nothing was
    result: Structure | Description | None  # what was handed in; None before
    remarks: list[tuple[float, str]]  # of inspectors, with their totals

    def fields(self, of_structure: Callable[[Structure], dict[str, str]]) -> dict[str, str]:
        """Return what the editor shows where there is no draft."""
        if self.task.kind != "structure":
            return {}
        return of_structure(self.result if isinstance(self.result, Structure) else pre_annotated(self.song))


class SongView(NamedTuple):
    """A song that waits for an inspector, its two annotations, their tasks, and what another one accepted."""

    song: Song
    version: int
    state: str
    passes: tuple[Structure, Structure]
    tasks: tuple[int, int]
    accepted: Structure | None


class Decisions(NamedTuple):
    """Songs that wait for the administrator: (id, version, why or who)."""

    screened: list[tuple[str, int, str]]
    checking: list[tuple[str, int, str]]


class Message(NamedTuple):
    """A message of a feedback thread, and the page from which it was sent."""

    thread: int
    author: int
    role: str
    content: str
    place: str


def _result(row: TaskRow) -> Structure | Description | None:
    if row.result is None:
        return None
    return Structure.from_dict(row.result) if row.kind == "structure" else Description.from_dict(row.result)


def author_state(number: int, state: str, hidden: Collection[int]) -> str:
    """Return the state of a task as its author sees it: what is sampled or hidden was handed in, and waits."""
    return "submitted" if state == "sampled" or number in hidden else state


def _own(row: TaskRow, hidden: Collection[int]) -> Task:
    return dataclasses.replace(task_of(row), state=author_state(row.id, row.state, hidden))


def task_view(service: StudyService, who: int, number: int) -> TaskView:
    """Return a task with its song; its state for an author as `author_state` has it."""
    with service.reading(who, "ask") as (session, person):
        row = service.own_task(session, person, number)
        # scores that decided; a second verification is between inspectors and administrators
        sheets = select(SheetRow).where(SheetRow.task == number, SheetRow.purpose == "assurance")
        hidden = hidden_tasks(service, session, who) if row.person == who else ()
        visible = () if row.id in hidden else session.scalars(sheets.order_by(SheetRow.id))
        remarks = [(sheet.total, sheet.remark) for sheet in visible]
        song = song_of(service.song(session, row.song))
        task = _own(row, hidden) if row.person == who else task_of(row)
        version = 0 if row.person == who and row.state not in OPEN else row.version  # scores move it on
        return TaskView(task, song, version, dict(row.draft), _result(row), remarks)


def rests(service: StudyService, who: int) -> bool:
    """Tell whether a break is suggested: somebody has worked for long without one."""
    with service.reading(who, "ask") as (session, _):
        since = service.clock() - 4 * listening.LONGEST_STRETCH
        done = select(AuditRow.moment).where(AuditRow.person == who, AuditRow.moment >= since).order_by(AuditRow.moment)
        # tell whether somebody has worked for long without a rest
        now = service.clock()
        began = now
        for act in reversed(list(session.scalars(done))):
            if began - act >= listening.REST:
                break
            began = act
        return now - began >= listening.LONGEST_STRETCH


def tasks_of(service: StudyService, who: int) -> list[Task]:
    """List the tasks of a person, newest first, with the states that an author sees."""
    with service.reading(who, "ask") as (session, _):
        rows = session.scalars(select(TaskRow).where(TaskRow.person == who).order_by(TaskRow.id.desc()))
        hidden = hidden_tasks(service, session, who)
        return [_own(row, hidden) for row in rows]


def song_view(service: StudyService, who: int, song: str) -> SongView:
    """Return the two annotations of a song."""
    with service.reading(who, "inspect") as (session, _):
        row = service.song(session, song)
        passes = pass_tasks(session, song, HANDED_IN)
        if len(passes) != 2:
            raise ForbiddenError("this song has no two annotations to be compared", kind="no_two")
        first, second = (Structure.from_dict(task.result or {}) for task in passes)
        accepted = Structure.from_dict(row.accepted["structure"]) if row.accepted else None
        tasks = passes[0].id, passes[1].id
        return SongView(song_of(row), row.version, row.state, (first, second), tasks, accepted)


def decisions(service: StudyService, who: int) -> Decisions:
    """Return what waits for the administrator."""
    with service.reading(who, "manage") as (session, _):

        def songs(state: str) -> list[SongRow]:
            return list(session.scalars(select(SongRow).where(SongRow.state == state).order_by(SongRow.id).limit(50)))

        reasons = {task.song: task.note for task in session.scalars(select(TaskRow).where(TaskRow.state == "screened"))}
        screened = [(row.id, row.version, reasons.get(row.id, "")) for row in songs("screened")]
        return Decisions(screened, [(row.id, row.version, "") for row in songs("checking")])


def messages(service: StudyService, who: int) -> list[Message]:
    """List the messages of a person's thread, or for an administrator of all threads."""
    with service.reading(who, "ask") as (session, person):
        chosen = select(MessageRow, PersonRow.role).join(PersonRow, PersonRow.id == MessageRow.author)
        chosen = chosen.where(~MessageRow.place.startswith(DISCUSSIONS))  # see `training.discussions`
        if person.role != "administrator":
            chosen = chosen.where(MessageRow.thread == who)
        message_rows: list[Any] = list(session.execute(chosen.order_by(MessageRow.thread, MessageRow.id)))
        return [Message(row.thread, row.author, role, row.content, row.place) for row, role in message_rows]
