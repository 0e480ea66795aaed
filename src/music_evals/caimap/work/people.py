"""Who takes part and how they stand: accounts and open tasks for administrators, pay and grades for each of them."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import NamedTuple

from sqlalchemy import func, select

from music_evals.caimap import ledger
from music_evals.caimap.roles import KINDS_OF_ROLE
from music_evals.caimap.storage.tables import LedgerRow, PersonRow, TaskRow, WarningRow, WeekRow
from music_evals.caimap.values import Task
from music_evals.caimap.work.desk import Desk, task_of
from music_evals.errors import InvalidInputError

__all__ = ["Grade", "Somebody", "Standing", "Warned", "currency", "grades_of", "people", "release", "standing"]

_OPEN = ("assigned", "working")


class Somebody(NamedTuple):
    """An account.

    Attributes
    ----------
    number, name, role
        Who.
    consent
        Version of the text that they consented to; empty where an administrator made the study.
    excluded, withdrawn
        Whether they still take part.
    tasks
        That they have begun, or were given.

    """

    number: int
    name: str
    role: str
    consent: str
    excluded: bool
    withdrawn: bool
    tasks: tuple[Task, ...]


class Grade(NamedTuple):
    """A week of a person that was closed, as `grades.Week` has it."""

    person: int
    monday: str
    grade_a: str
    grade_b: str
    excluded: bool


class Warned(NamedTuple):
    """A warning: when, what of, and by which task."""

    moment: dt.datetime
    kind: str
    task: int


class Standing(NamedTuple):
    """How an annotator stands.

    Attributes
    ----------
    counts
        (kind of task, state) -> how many.
    rates
        Kind of task -> cents for an accepted one.
    reward, penalty
        Per cent of a week's earnings that grade I adds and grade III takes.
    currency
        Of the amounts, whose cents they are; empty where the study names none.
    balance
        Cents that are owed.
    grades, warnings
        Newest first.

    """

    counts: dict[tuple[str, str], int]
    rates: dict[str, int]
    reward: int
    penalty: int
    currency: str
    balance: int
    grades: list[Grade]
    warnings: list[Warned]


def people(desk: Desk, who: int) -> list[Somebody]:
    """List all accounts.

    Raises
    ------
    ForbiddenError
        The person is no administrator.

    """
    with desk.store.reading() as session:
        desk.person(session, who, "manage")
        tasks: dict[int, list[Task]] = {}
        for row in session.scalars(select(TaskRow).where(TaskRow.state.in_(_OPEN)).order_by(TaskRow.id)):
            tasks.setdefault(row.person, []).append(task_of(row))
        return [
            Somebody(row.id, row.name, row.role, row.consent, row.excluded, row.withdrawn, tuple(tasks.get(row.id, ())))
            for row in session.scalars(select(PersonRow).order_by(PersonRow.id))
        ]


def release(desk: Desk, who: int, number: int) -> None:
    """Take a task back from whoever has it, so that its place is given to somebody else.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    InvalidInputError
        The task was handed in, or does not exist.

    """
    with desk.store.writing() as session:
        person = desk.person(session, who, "manage")
        found = session.get(TaskRow, number)
        if found is None or desk.own_task(session, person, number).state not in _OPEN:
            raise InvalidInputError(f"task {number} is not open; nothing is released", kind="not_open", number=number)
        desk.move(session, found, "cancel", person)


def grades_of(desk: Desk, who: int) -> list[Grade]:
    """List the grades of all annotators, newest week first.

    Raises
    ------
    ForbiddenError
        The person is no administrator.

    """
    with desk.store.reading() as session:
        desk.person(session, who, "manage")
        return [_grade(row) for row in session.scalars(select(WeekRow).order_by(WeekRow.monday.desc(), WeekRow.person))]


def standing(desk: Desk, who: int) -> Standing:
    """Return how an annotator stands: their tasks, what is paid and owed, their grades and warnings.

    Raises
    ------
    ForbiddenError
        The person does not annotate.

    """
    with desk.store.reading() as session:
        person = desk.person(session, who, "annotate")
        rates = desk.settings(session).rates
        own = select(TaskRow.kind, TaskRow.state).where(TaskRow.person == who, TaskRow.training.is_(False))
        owed = session.scalar(select(func.coalesce(func.sum(LedgerRow.cents), 0)).where(LedgerRow.person == who))
        weeks = session.scalars(select(WeekRow).where(WeekRow.person == who).order_by(WeekRow.monday.desc()))
        warned = session.scalars(select(WarningRow).where(WarningRow.person == who).order_by(WarningRow.id.desc()))
        return Standing(
            dict(Counter((kind, state) for kind, state in session.execute(own))),
            {kind: ledger.earned(kind, rates) for kind in KINDS_OF_ROLE[person.role]},
            rates.reward,
            rates.penalty,
            rates.currency,
            int(owed or 0),
            [_grade(row) for row in weeks],
            [Warned(row.moment, row.kind, row.task) for row in warned],
        )


def currency(desk: Desk) -> str:
    """Return the currency of a study's amounts; empty where it names none."""
    with desk.store.reading() as session:
        return desk.settings(session).rates.currency


def _grade(row: WeekRow) -> Grade:
    return Grade(row.person, row.monday, row.grade_a, row.grade_b, row.excluded)
