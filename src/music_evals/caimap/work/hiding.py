"""What the author of a description does not see yet: whether it was sampled, accepted, scored or paid.

Who saw which one of a block was sampled could rest until the next block. So a description is shown as handed in until
its block is complete (`assurance.is_sampled`), a week that holds it is closed, or nothing was handed in for the days in
which a task is released, so that no money is withheld for ever. The ledger is written at once; pages hide.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import TYPE_CHECKING

from sqlalchemy import func, or_, select

from music_evals.caimap import assurance
from music_evals.caimap.grades import week_of
from music_evals.caimap.storage.tables import LedgerRow, TaskRow, WeekRow
from music_evals.caimap.work.service import StudyService

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import Session

__all__ = ["hidden_tasks", "is_read", "shown_entries"]


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
