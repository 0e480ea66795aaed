"""What administrators see of people's work: how they listened, what they handed in, and inspectors verified again."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from typing import Final, NamedTuple

import numpy as np
from sqlalchemy import func, select

from music_evals.caimap import assurance
from music_evals.caimap.storage.tables import EventRow, PersonRow, SheetRow, TaskRow, WarningRow
from music_evals.caimap.training import MAX_SPREAD
from music_evals.caimap.values import ScoreSheet, Task
from music_evals.caimap.work.inspecting import add_sheet
from music_evals.caimap.work.service import StudyService, task_of
from music_evals.caimap.work.undoing import OPEN, last_acts
from music_evals.errors import InvalidAnnotationError, InvalidInputError

__all__ = ["Habits", "OpenTask", "Verified", "habits", "open_tasks", "submissions", "verifications", "verify"]

_COUNTED: Final = ("pause", "seek", "hidden", "blocked")


class Habits(NamedTuple):
    """How an annotator works.

    Attributes
    ----------
    person, role, excluded
        Who.
    tasks
        How many were handed in.
    page_min
        Median time from opening a task to handing it in, in minutes; NaN without a task.
    clicks
        Pauses, seeks, hidden pages and blocked pastes a task, in this order; NaN without a task.
    warnings
        Kind -> how many.

    """

    person: int
    role: str
    excluded: bool
    tasks: int
    page_min: float
    clicks: tuple[float, float, float, float]
    warnings: dict[str, int]


class OpenTask(NamedTuple):
    """A task that somebody has and has not handed in.

    Attributes
    ----------
    task
        As a value.
    last
        When something was last done on it, in UTC.
    released
        When its place goes to others by itself, unless something is done before.

    """

    task: Task
    last: dt.datetime
    released: dt.datetime


class Verified(NamedTuple):
    """A scored description that is sampled for a second verification.

    Attributes
    ----------
    task, inspector, total
        What was scored, by whom, with how many points.
    second
        Points of the administrator; None before.
    apart
        The two are more than `MAX_SPREAD` points apart.

    """

    task: int
    inspector: int
    total: float
    second: float | None
    apart: bool


def habits(service: StudyService, who: int) -> list[Habits]:
    """Return how each annotator works.

    Raises
    ------
    ForbiddenError
        The person is no administrator.

    """
    with service.reading(who, "manage") as (session, _):
        handed_in = TaskRow.submitted.is_not(None), TaskRow.training.is_(False)
        tasks: Counter[int] = Counter()
        pages: dict[int, list[float]] = defaultdict(list)
        times = select(TaskRow.person, TaskRow.opened, TaskRow.submitted).where(*handed_in)
        for person, opened, submitted in session.execute(times):
            tasks[person] += 1
            if opened is not None and submitted is not None:
                pages[person].append((submitted - opened).total_seconds() / 60)
        events = select(TaskRow.person, EventRow.kind, func.count()).join(TaskRow, TaskRow.id == EventRow.task)
        grouped = session.execute(events.where(*handed_in).group_by(TaskRow.person, EventRow.kind))
        counts = Counter({(person, kind): count for person, kind, count in grouped})
        warned: dict[int, Counter[str]] = defaultdict(Counter)
        for person, kind in session.execute(select(WarningRow.person, WarningRow.kind)):
            warned[person][kind] += 1
        rows = session.scalars(select(PersonRow).where(PersonRow.role.in_(("professional", "amateur"))))
        return [
            Habits(
                row.id, row.role, row.excluded, tasks[row.id],
                float(np.median(pages[row.id])) if pages[row.id] else float("nan"),
                tuple(counts[row.id, kind] / tasks[row.id] if tasks[row.id] else float("nan") for kind in _COUNTED),  # type: ignore[arg-type]
                dict(warned[row.id]),
            )
            for row in rows
        ]  # fmt: skip


def open_tasks(service: StudyService, who: int) -> list[OpenTask]:
    """List what is given out and not handed in, idle longest first; `managing.release` takes one back.

    Raises
    ------
    ForbiddenError
        Who asks is no administrator.

    """
    with service.reading(who, "manage") as (session, _):
        span = dt.timedelta(days=service.settings(session).release_days)
        chosen = select(TaskRow).where(TaskRow.state.in_(OPEN), TaskRow.training.is_(False)).order_by(TaskRow.id)
        rows = list(session.scalars(chosen))
        last = last_acts(session, rows)
        return [
            OpenTask(task_of(row), last[row.id], last[row.id] + span)
            for row in sorted(rows, key=lambda row: last[row.id])
        ]


def submissions(service: StudyService, who: int, person: int) -> list[Task]:
    """List the tasks of anybody, newest first.

    Raises
    ------
    ForbiddenError
        Who asks is no administrator.
    InvalidInputError
        There is no such person.

    """
    with service.reading(who, "manage") as (session, _):
        if session.get(PersonRow, person) is None:
            raise InvalidInputError(f"there is no person {person}", kind="no_person", found=person)
        rows = session.scalars(select(TaskRow).where(TaskRow.person == person).order_by(TaskRow.id.desc()))
        return [task_of(row) for row in rows]


def verifications(service: StudyService, who: int) -> list[Verified]:
    """List the sample of each inspector's scores, as large a share as that of descriptions, with what was verified.

    Raises
    ------
    ForbiddenError
        The person is no administrator.

    """
    with service.reading(who, "manage") as (session, _):
        settings = service.settings(session)
        seconds = {row.task: row.total for row in session.scalars(select(SheetRow).where(SheetRow.purpose == "second"))}
        firsts = session.scalars(select(SheetRow).where(SheetRow.purpose == "assurance").order_by(SheetRow.id))
        with_result = set(session.scalars(select(TaskRow.id).where(TaskRow.result.is_not(None))))  # not of who withdrew
        places: Counter[int] = Counter()
        verified = []
        for row in firsts:
            place, second = places[row.inspector], seconds.get(row.task)
            places[row.inspector] += 1
            is_sampled = assurance.is_sampled(row.inspector, "sheet", place, seed=settings.seed, share=settings.share)
            if is_sampled and row.task in with_result:
                apart = second is not None and _apart(row.total, second)
                verified.append(Verified(row.task, row.inspector, row.total, second, apart))
        return verified


def _apart(first: float, second: float) -> bool:
    return abs(first - second) > MAX_SPREAD


def verify(service: StudyService, sheet: ScoreSheet) -> None:
    """Score a description again, as an administrator; the first score and its task stay as they are.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    StaleError
        They have verified it.
    InvalidAnnotationError
        Nobody has scored it, or the points are not those of the form.

    """
    with service.writing(sheet.inspector, "manage") as (session, person):
        row = service.own_task(session, person, sheet.task)
        scored = select(SheetRow.id).where(SheetRow.task == row.id, SheetRow.purpose == "assurance")
        if row.result is None or session.scalars(scored).first() is None:
            raise InvalidAnnotationError("nobody has scored this description yet", kind="not_scored")
        add_sheet(service, session, sheet, row.kind, "second")
        service.note(session, person, "task", str(row.id), "verify", detail={"total": sheet.total})
