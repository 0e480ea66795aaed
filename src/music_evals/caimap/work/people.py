"""Who takes part and how they stand: accounts for administrators; tasks, rates and balance for each annotator."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from sqlalchemy import func, select

from music_evals.caimap import ledger
from music_evals.caimap.roles import KINDS_OF_ROLE, check_right
from music_evals.caimap.storage.tables import LedgerRow, PersonRow, TaskRow
from music_evals.caimap.work.hiding import hidden_tasks, shown_entries
from music_evals.caimap.work.service import StudyService
from music_evals.caimap.work.views import author_state

__all__ = ["Somebody", "Standing", "currency", "people", "standing"]


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

    """

    number: int
    name: str
    role: str
    consent: str
    excluded: bool
    withdrawn: bool


class Standing(NamedTuple):
    """How an annotator stands.

    Attributes
    ----------
    counts
        (kind of task, state) -> how many; what is sampled or hidden counts as handed in (`views.author_state`).
    rates
        Kind of task -> cents for an accepted one.
    reward, penalty
        Per cent of a week's earnings that grade I adds and grade III takes.
    currency
        Of the amounts, whose cents they are; empty where the study names none.
    balance
        Cents that are owed, without what is hidden (`hiding`).

    """

    counts: dict[tuple[str, str], int]
    rates: dict[str, int]
    reward: int
    penalty: int
    currency: str
    balance: int


def people(service: StudyService, who: int) -> list[Somebody]:
    """List all accounts.

    Raises
    ------
    ForbiddenError
        The person is no administrator.

    """
    with service.reading(who, "manage") as (session, _):
        return [
            Somebody(row.id, row.name, row.role, row.consent, row.excluded, row.withdrawn)
            for row in session.scalars(select(PersonRow).order_by(PersonRow.id))
        ]


def standing(service: StudyService, who: int) -> Standing:
    """Return how an annotator stands, also one who is excluded: their tasks, what is paid and owed.

    Raises
    ------
    ForbiddenError
        The person does not annotate.

    """
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
