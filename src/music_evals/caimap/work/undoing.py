"""How work is undone: tasks that nobody goes on with, and places that open again."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select

from music_evals.caimap.storage.tables import AuditRow, EventRow, TaskRow
from music_evals.caimap.work.desk import Desk

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["OPEN", "cancel_open", "last_act", "release_idle"]

OPEN: Final = ("assigned", "working")
"""States of a task that somebody has and has not handed in."""


def cancel_open(desk: Desk, session: Session, who: int) -> None:
    """Cancel what somebody has begun, or skipped without a decision yet: others get the places."""
    chosen = select(TaskRow).where(TaskRow.person == who, TaskRow.state.in_((*OPEN, "screened")))
    for task in list(session.scalars(chosen.order_by(TaskRow.song, TaskRow.id))):
        desk.move(session, task, "cancel")


def last_act(session: Session, row: TaskRow) -> dt.datetime:
    """Return when something was last done on a task: it was given out, opened, saved, or listened to."""
    noted = select(func.max(AuditRow.moment)).where(AuditRow.kind == "task", AuditRow.object == str(row.id))
    moments = [row.assigned, session.scalar(noted)]
    if row.opened is not None:
        heard = session.scalar(select(func.max(EventRow.received_sec)).where(EventRow.task == row.id)) or 0.0
        moments.append(row.opened + dt.timedelta(seconds=heard))
    return max(moment for moment in moments if moment is not None)


def release_idle(desk: Desk, session: Session) -> None:
    """Cancel tasks on which nothing was done for the days that the study sets; training holds no place."""
    since = desk.clock() - dt.timedelta(days=desk.settings(session).release_days)
    chosen = select(TaskRow).where(TaskRow.state.in_(OPEN), TaskRow.training.is_(False), TaskRow.assigned < since)
    for row in list(session.scalars(chosen.order_by(TaskRow.song, TaskRow.id))):
        if last_act(session, row) >= since:
            continue
        desk.song(session, row.song)  # whoever acts on the task now has the song locked
        session.refresh(row)
        if row.state in OPEN and last_act(session, row) < since:
            desk.move(session, row, "cancel")
