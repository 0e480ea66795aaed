"""Tasks that nobody goes on with, data that leave, pay taken back; and what authors of descriptions do not see yet.

Who saw which one of a block was sampled could rest until the next block. So a description is shown as handed in until
its block is complete (`assurance.is_sampled`), a week that holds it is closed, or nothing was handed in for the days in
which a task is released, so that no money is withheld for ever. The ledger is written at once; pages hide.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, func, or_, select, update

from music_evals.caimap.domain import assurance
from music_evals.caimap.domain.grades import week_of
from music_evals.caimap.domain.ledger import Entry
from music_evals.caimap.domain.listening import MAX_GAP
from music_evals.caimap.domain.machine import SONG
from music_evals.caimap.services import accounts
from music_evals.caimap.services.study import StudyService
from music_evals.caimap.storage.tables import (
    AuditRow,
    EventRow,
    LedgerRow,
    MessageRow,
    SessionRow,
    SheetRow,
    TaskRow,
    WeekRow,
)

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import Session

_BEHIND: Final = "clock"

OPEN: Final = ("assigned", "working")
"""States of a task that somebody has and has not handed in."""


def cancel_open(service: StudyService, session: Session, who: int) -> None:
    """Cancel what somebody has begun, or skipped without a decision yet: others get the places."""
    chosen = select(TaskRow).where(TaskRow.person == who, TaskRow.state.in_((*OPEN, "screened")))
    for task in list(session.scalars(chosen.order_by(TaskRow.song, TaskRow.id))):
        service.move(session, task, "cancel")


def last_acts(session: Session, rows: Sequence[TaskRow]) -> dict[int, dt.datetime]:
    """Return task -> when something was last done on it: it was given out, opened, saved, or listened to."""
    names = [str(row.id) for row in rows]
    noted = select(AuditRow.object, func.max(AuditRow.moment)).where(
        AuditRow.kind == "task", AuditRow.object.in_(names)
    )
    moments = {int(name): moment for name, moment in session.execute(noted.group_by(AuditRow.object))}
    played = select(EventRow.task, func.max(EventRow.received_sec)).where(EventRow.task.in_([row.id for row in rows]))
    played_sec = {task: seconds for task, seconds in session.execute(played.group_by(EventRow.task))}  # noqa: C416
    latest = {}
    for row in rows:
        span = dt.timedelta(seconds=played_sec.get(row.id, 0.0))
        latest[row.id] = max(row.assigned, moments.get(row.id, row.assigned), (row.opened or row.assigned) + span)
    return latest


def task_sec(service: StudyService, session: Session, row: TaskRow, position_sec: float | None = None) -> float:
    """Return for how many seconds a task has been open; its song is locked for the transaction.

    They never go back: where the clock stands before the last act on the task, as after a restart with a wrong one, its
    time goes on from that act, and the log says so. A player that reports that it has moved on since (`position_sec`)
    took its time for that, of `MAX_GAP` at most.
    """
    opened, now = row.opened or row.assigned, service.clock()
    last_event = session.scalars(
        select(EventRow).where(EventRow.task == row.id).order_by(EventRow.id.desc()).limit(1)
    ).first()
    latest = opened + dt.timedelta(seconds=last_event.received_sec if last_event else 0.0)
    if latest > now or position_sec is None:
        noted = select(AuditRow.moment).where(AuditRow.kind == "task", AuditRow.object == str(row.id))
        latest = max(latest, session.scalar(noted.order_by(AuditRow.id.desc()).limit(1)) or latest)
    if latest > now:
        moved = position_sec - last_event.position_sec if last_event and position_sec is not None else 0.0
        opened = now - (latest - opened) - dt.timedelta(seconds=min(max(moved, 0.0), MAX_GAP))
        # not by the row, whose version the page of somebody at work names
        session.connection().execute(update(TaskRow).where(TaskRow.id == row.id).values(opened=opened))
        session.refresh(row, ["opened"])
        detail = {"behind_sec": (latest - now).total_seconds()}
        service.note(session, None, "task", str(row.id), _BEHIND, detail=detail)
    return (now - opened).total_seconds()


def is_behind(session: Session, row: TaskRow) -> bool:
    """Tell whether the clock was behind while a task was open (`task_sec`), so that its duration is unknown."""
    noted = select(AuditRow.id).where(AuditRow.kind == "task", AuditRow.object == str(row.id))
    return session.scalars(noted.where(AuditRow.action == _BEHIND)).first() is not None


def release_idle(service: StudyService, session: Session) -> None:
    """Cancel tasks on which nothing was done for the days that the study sets; training holds no place."""
    since = service.clock() - dt.timedelta(days=service.settings(session).release_days)
    chosen = select(TaskRow).where(TaskRow.state.in_(OPEN), TaskRow.training.is_(False), TaskRow.assigned < since)
    rows = list(session.scalars(chosen.order_by(TaskRow.song, TaskRow.id)))
    last = last_acts(session, rows) if rows else {}
    for row in [row for row in rows if last[row.id] < since]:
        service.song(session, row.song)  # whoever acts on the task now has the song locked
        session.refresh(row)
        if row.state in OPEN and last_acts(session, [row])[row.id] < since:
            service.move(session, row, "cancel")


def discard(service: StudyService, session: Session, tasks: Iterable[TaskRow], *, paid_back: bool) -> None:
    """Take what was handed in out of the data, with what was paid for it if so asked, and open its places again."""
    for task in sorted(tasks, key=lambda row: (row.song, row.id)):
        service.move(session, task, "discard")
        if paid_back:
            take_back(service, session, task, "discarded")
        song = service.song(session, task.song)
        action = "redo_structure" if task.kind == "structure" else "redo_description"
        if not task.training and (song.state, action) in SONG:
            service.move(session, song, action)
            if action == "redo_structure":
                song.accepted = None


def take_back(service: StudyService, session: Session, task: TaskRow, why: str) -> None:
    """Take back what somebody was paid for a task, by a correction; nothing where nothing is left of it."""
    of_task = LedgerRow.task == task.id, LedgerRow.person == task.person, LedgerRow.kind.in_(("work", "correction"))
    paid = session.scalar(select(func.coalesce(func.sum(LedgerRow.cents), 0)).where(*of_task)) or 0
    if paid > 0:
        service.pay(session, Entry(task.person, "correction", -paid, f"{why}: {task.kind} of {task.song}", task.id))


def erase(session: Session, who: int) -> None:
    """Delete what somebody wrote and how they listened, and end their sessions; points, ledger and log stay."""
    tasks = list(session.scalars(select(TaskRow).where(TaskRow.person == who)))
    for row in tasks:
        row.result, row.draft, row.note = None, {}, ""
    session.execute(delete(EventRow).where(EventRow.task.in_(select(TaskRow.id).where(TaskRow.person == who))))
    session.execute(update(SheetRow).where(SheetRow.inspector == who).values(remark=""))
    session.execute(delete(MessageRow).where(MessageRow.author == who))
    session.execute(delete(SessionRow).where(SessionRow.person == who))
    for link in accounts.reset_links(session, who):
        session.delete(link)


def hidden_tasks(service: StudyService, session: Session, who: int) -> frozenset[int]:
    """Return the numbers of somebody's descriptions of which they do not see yet what became."""
    numbers, opened, length = _handed_in(service, session, who)
    return frozenset(numbers[max(opened, len(numbers) // length * length) :])


def is_read(service: StudyService, session: Session, who: int, place: int) -> bool:
    """Tell whether somebody has seen what became of others in the block of their description at a place."""
    _, opened, length = _handed_in(service, session, who)
    return opened > place // length * length


def shown_entries(hidden: Collection[int]) -> ColumnElement[bool]:
    """Return the condition of entries of the ledger that are of no hidden task."""
    return or_(LedgerRow.task.is_(None), LedgerRow.task.not_in(hidden))


def _handed_in(service: StudyService, session: Session, who: int) -> tuple[list[int], int, int]:
    """Return somebody's descriptions, how many a closed week or a rest has shown, and a block's length."""
    settings = service.settings(session)
    own = TaskRow.person == who, TaskRow.training.is_(False), TaskRow.submitted.is_not(None)
    chosen = select(TaskRow.id, TaskRow.submitted).where(*own, TaskRow.kind != "structure")  # of one group each
    rows = session.execute(chosen.order_by(TaskRow.submitted, TaskRow.id)).all()
    closed = session.scalar(select(func.max(WeekRow.monday)).where(WeekRow.person == who)) or ""
    moments = [moment for _, moment in rows if moment is not None]
    rest = dt.timedelta(days=settings.release_days)
    opened = 0
    for place, (moment, later) in enumerate(zip(moments, [*moments[1:], service.clock()], strict=False), 1):
        if later - moment >= rest or week_of(moment).isoformat() <= closed:
            opened = place
    return [number for number, _ in rows], opened, assurance.block_of(settings.share)[1]
