"""How work is undone: tasks that nobody goes on with, work that leaves the data, pay that is taken back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, func, select, update

from music_evals.caimap.ledger import Entry
from music_evals.caimap.machine import SONG
from music_evals.caimap.storage.tables import AuditRow, EventRow, LedgerRow, MessageRow, SessionRow, SheetRow, TaskRow
from music_evals.caimap.work import accounts
from music_evals.caimap.work.desk import Desk

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["OPEN", "cancel_open", "discard", "erase", "last_acts", "release_idle", "take_back"]

OPEN: Final = ("assigned", "working")
"""States of a task that somebody has and has not handed in."""


def cancel_open(desk: Desk, session: Session, who: int) -> None:
    """Cancel what somebody has begun, or skipped without a decision yet: others get the places."""
    chosen = select(TaskRow).where(TaskRow.person == who, TaskRow.state.in_((*OPEN, "screened")))
    for task in list(session.scalars(chosen.order_by(TaskRow.song, TaskRow.id))):
        desk.move(session, task, "cancel")


def last_acts(session: Session, rows: Sequence[TaskRow]) -> dict[int, dt.datetime]:
    """Return task -> when something was last done on it: it was given out, opened, saved, or listened to."""
    names = [str(row.id) for row in rows]
    noted = select(AuditRow.object, func.max(AuditRow.moment)).where(
        AuditRow.kind == "task", AuditRow.object.in_(names)
    )
    moments = {int(name): moment for name, moment in session.execute(noted.group_by(AuditRow.object))}
    played = select(EventRow.task, func.max(EventRow.received_sec)).where(EventRow.task.in_([row.id for row in rows]))
    heard = {task: seconds for task, seconds in session.execute(played.group_by(EventRow.task))}  # noqa: C416
    found = {}
    for row in rows:
        span = dt.timedelta(seconds=heard.get(row.id, 0.0))
        found[row.id] = max(row.assigned, moments.get(row.id, row.assigned), (row.opened or row.assigned) + span)
    return found


def release_idle(desk: Desk, session: Session) -> None:
    """Cancel tasks on which nothing was done for the days that the study sets; training holds no place."""
    since = desk.clock() - dt.timedelta(days=desk.settings(session).release_days)
    chosen = select(TaskRow).where(TaskRow.state.in_(OPEN), TaskRow.training.is_(False), TaskRow.assigned < since)
    rows = list(session.scalars(chosen.order_by(TaskRow.song, TaskRow.id)))
    last = last_acts(session, rows) if rows else {}
    for row in [row for row in rows if last[row.id] < since]:
        desk.song(session, row.song)  # whoever acts on the task now has the song locked
        session.refresh(row)
        if row.state in OPEN and last_acts(session, [row])[row.id] < since:
            desk.move(session, row, "cancel")


def discard(desk: Desk, session: Session, tasks: Iterable[TaskRow], *, paid_back: bool) -> None:
    """Take what was handed in out of the data, with what was paid for it if so asked, and open its places again."""
    for task in sorted(tasks, key=lambda row: (row.song, row.id)):
        desk.move(session, task, "discard")
        if paid_back:
            take_back(desk, session, task, "discarded")
        song = desk.song(session, task.song)
        action = "redo_structure" if task.kind == "structure" else "redo_description"
        if not task.training and (song.state, action) in SONG:
            desk.move(session, song, action)
            if action == "redo_structure":
                song.accepted = None


def take_back(desk: Desk, session: Session, task: TaskRow, why: str) -> None:
    """Take back what somebody was paid for a task, by a correction; nothing where nothing is left of it."""
    of_task = LedgerRow.task == task.id, LedgerRow.person == task.person, LedgerRow.kind.in_(("work", "correction"))
    paid = session.scalar(select(func.coalesce(func.sum(LedgerRow.cents), 0)).where(*of_task)) or 0
    if paid > 0:
        desk.pay(session, Entry(task.person, "correction", -paid, f"{why}: {task.kind} of {task.song}", task.id))


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
