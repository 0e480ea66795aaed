"""Who takes part and how they stand: tasks, balance, grades and warnings of each annotator, week by week.

Work counts in the week in which it was decided: the second pass of a structure comes a day after the first or later,
and an inspector scores when there is time. What is decided after a week was closed is graded in its own.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import String, cast, func, select

from music_evals.caimap.domain import grades, ledger
from music_evals.caimap.domain.machine import KINDS_OF_ROLE, check_right
from music_evals.caimap.services.study import StudyService
from music_evals.caimap.services.tasks import hidden_tasks, shown_entries
from music_evals.caimap.services.views import author_state
from music_evals.caimap.storage.tables import AuditRow, LedgerRow, PersonRow, SheetRow, TaskRow, WarningRow, WeekRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


class Somebody(NamedTuple):
    """An account."""

    number: int
    name: str
    role: str
    consent: str  # version of the text that they consented to; empty where an administrator made the study
    excluded: bool
    withdrawn: bool


class Standing(NamedTuple):
    """How an annotator stands."""

    counts: dict[tuple[str, str], int]
    rates: dict[str, int]  # kind of task -> cents for an accepted one
    reward: int
    penalty: int
    currency: str  # of the amounts, whose cents they are; empty where the study names none
    balance: int  # cents that are owed, without what is hidden (`tasks.hidden_tasks`)


def people(service: StudyService, who: int) -> list[Somebody]:
    """List all accounts."""
    with service.reading(who, "manage") as (session, _):
        return [
            Somebody(row.id, row.name, row.role, row.consent, row.excluded, row.withdrawn)
            for row in session.scalars(select(PersonRow).order_by(PersonRow.id))
        ]


def standing(service: StudyService, who: int) -> Standing:
    """Return how an annotator stands, also one who is excluded: their tasks, what is paid and owed."""
    with service.reading(who, "ask") as (session, person):
        if person.role not in KINDS_OF_ROLE:
            check_right(person, "annotate")
        rates = service.settings(session).rates
        own = select(TaskRow.id, TaskRow.kind, TaskRow.state).where(TaskRow.person == who, TaskRow.training.is_(False))
        hidden = hidden_tasks(service, session, who)
        paid = LedgerRow.person == who, shown_entries(hidden)
        owed = session.scalar(select(func.coalesce(func.sum(LedgerRow.cents), 0)).where(*paid))
        return Standing(
            dict(Counter((kind, author_state(number, state, hidden)) for number, kind, state in session.execute(own))),
            {kind: ledger.earned(kind, rates) for kind in KINDS_OF_ROLE[person.role]},
            rates.reward,
            rates.penalty,
            rates.currency,
            int(owed or 0),
        )


def currency(service: StudyService) -> str:
    """Return the currency of a study's amounts; empty where it names none."""
    with service.store.reading() as session:
        return service.settings(session).rates.currency


class Record(NamedTuple):
    """What somebody is graded by in a week."""

    accuracies: list[float]  # of structures that were accepted in it, from 0 to 1
    scores: list[float]  # totals that inspectors gave in it, from 0 to 100
    warnings: list[str]  # kinds, of what was handed in in it
    tasks: set[int]  # numbers of what was handed in or decided in it: the data of the week


class GradedWeek(NamedTuple):
    """A week of somebody that was closed."""

    person: int
    role: str
    monday: dt.date
    grade_a: str
    grade_b: str
    excluded: bool  # they were excluded by it, and its data discarded
    warnings: int  # how many were given in it
    earned_cents: int  # by tasks in it, before rewards and penalties


class Caution(NamedTuple):
    """A warning: whose, of which task, its kind, as `domain.grades` names it, and when."""

    person: int
    task: int
    kind: str
    moment: dt.datetime


def week_span(monday: dt.date) -> tuple[dt.datetime, dt.datetime]:
    """Return the beginning and the end of a week, in UTC."""
    start = dt.datetime.combine(monday, dt.time(), dt.UTC)
    return start, start + dt.timedelta(days=7)


def records(session: Session, monday: dt.date, hidden: Collection[int] = ()) -> dict[int, Record]:
    """Return person -> what they are graded by in a week; training, what was discarded and hidden play no part."""
    start, end = week_span(monday)
    by_person: dict[int, Record] = defaultdict(lambda: Record([], [], [], set()))
    counted = TaskRow.training.is_(False), TaskRow.state != "discarded"
    accepted = (
        select(TaskRow.id, TaskRow.person, TaskRow.agreement)
        .join(AuditRow, AuditRow.object == cast(TaskRow.id, String))
        .where(AuditRow.kind == "task", AuditRow.action == "accept", *counted)
        .where(AuditRow.moment >= start, AuditRow.moment < end)
    )
    for number, person, agreement in session.execute(accepted.order_by(TaskRow.id)):
        if agreement is not None:
            by_person[person].accuracies.append(agreement)
            by_person[person].tasks.add(number)
    scored = select(TaskRow.id, TaskRow.person, SheetRow.total).join(TaskRow, TaskRow.id == SheetRow.task)
    scored = scored.where(SheetRow.purpose == "assurance", SheetRow.moment >= start, SheetRow.moment < end, *counted)
    for number, person, total in session.execute(scored.where(TaskRow.id.not_in(hidden)).order_by(SheetRow.id)):
        by_person[person].scores.append(total)
        by_person[person].tasks.add(number)
    handed_in = select(TaskRow.id, TaskRow.person).where(TaskRow.submitted >= start, TaskRow.submitted < end, *counted)
    for number, person in session.execute(handed_in):
        by_person[person].tasks.add(number)
    warned = select(WarningRow.person, WarningRow.kind).where(WarningRow.moment >= start, WarningRow.moment < end)
    for person, kind in session.execute(warned.order_by(WarningRow.id)):
        by_person[person].warnings.append(kind)
    return dict(by_person)


def earned_in(session: Session, who: int, monday: dt.date) -> int:
    """Return the cents that somebody earned by tasks in a week, less what was taken back of tasks; never below 0."""
    start, end = week_span(monday)
    inside = LedgerRow.person == who, LedgerRow.moment >= start, LedgerRow.moment < end
    of_tasks = LedgerRow.kind.in_(("work", "correction")), LedgerRow.task.is_not(None)
    total = session.scalar(select(func.coalesce(func.sum(LedgerRow.cents), 0)).where(*inside, *of_tasks))
    return max(0, int(total or 0))


def graded(service: StudyService, who: int) -> list[GradedWeek]:
    """List one's own closed weeks, or for an administrator those of everybody; newest first."""
    with service.reading(who, "ask") as (session, person):
        chosen = select(WeekRow, PersonRow.role).join(PersonRow, PersonRow.id == WeekRow.person)
        if person.role != "administrator":
            chosen = chosen.where(WeekRow.person == who)
        weeks = []
        for row, role in session.execute(chosen.order_by(WeekRow.monday.desc(), WeekRow.person)):
            monday = dt.date.fromisoformat(row.monday)
            start, end = week_span(monday)
            in_week = WarningRow.person == row.person, WarningRow.moment >= start, WarningRow.moment < end
            warned = session.scalar(select(func.count()).select_from(WarningRow).where(*in_week)) or 0
            earned = earned_in(session, row.person, monday)
            weeks.append(GradedWeek(row.person, role, monday, row.grade_a, row.grade_b, row.excluded, warned, earned))
        return weeks


def so_far(service: StudyService, who: int) -> grades.Week | None:
    """Return what this week amounts to for an annotator until now, without what is hidden (`tasks.hidden_tasks`)."""
    with service.reading(who, "ask") as (session, _):
        record = records(session, grades.week_of(service.clock()), hidden_tasks(service, session, who)).get(who)
        if record is None or not (record.accuracies or record.scores or record.warnings):
            return None
        return grades.weekly(record.accuracies, record.scores, record.warnings)


def cautions(service: StudyService, who: int) -> list[Caution]:
    """List one's own warnings, or for an administrator those of everybody; newest first."""
    with service.reading(who, "ask") as (session, person):
        chosen = select(WarningRow).order_by(WarningRow.id.desc())
        if person.role != "administrator":
            chosen = chosen.where(WarningRow.person == who)
        return [Caution(row.person, row.task, row.kind, row.moment) for row in session.scalars(chosen)]
