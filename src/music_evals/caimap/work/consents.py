"""Who has agreed to what: the people of a song, and the accounts that stand for those who annotated elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from sqlalchemy import String, cast, select

from music_evals.caimap.storage.tables import AuditRow, PersonRow, TaskRow
from music_evals.caimap.work.service import StudyService
from music_evals.errors import InvalidInputError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["STAND_INS", "consent_of", "stand_in", "stand_ins"]

STAND_INS: Final = {"professional": "annotated elsewhere (professional)", "amateur": "annotated elsewhere (amateur)"}
"""Role -> account in whose name songs are taken over that were annotated elsewhere; numbered if the name is taken."""


def consent_of(session: Session, people: Mapping[str, Iterable[int]]) -> dict[str, str]:
    """Return the consent to every song.

    Parameters
    ----------
    session
        Of the study.
    people
        Song -> numbers of those who worked on it.

    Returns
    -------
    dict
        Song -> the version of the text under which they accepted their invitations; all of them with commas where these
        differ.

    Raises
    ------
    InvalidInputError
        Somebody has consented to nothing; they are named.

    """
    rows = {row.id: row for row in session.scalars(select(PersonRow))}
    bare = {who: song for song, numbers in people.items() for who in numbers if not rows[who].consent}
    if bare:
        names = ", ".join(f"{rows[who].name} (person {who}, as in {song})" for who, song in sorted(bare.items()))
        raise InvalidInputError(
            f"what people made leaves the study with their consent alone, and none is known of {names}; withdraw them, "
            "so that others do this work again"
        )
    return {song: ", ".join(sorted({rows[who].consent for who in numbers})) for song, numbers in people.items()}


def stand_in(service: StudyService, session: Session, role: str) -> int:
    """Return the account that stands for those who annotated elsewhere; it is made if missing."""
    known = stand_ins(session)
    if role in known:
        return known[role]
    # a name says nothing: somebody may have taken it
    names = set(session.scalars(select(PersonRow.name)))
    ours = STAND_INS[role]
    free = next(name for name in (ours, *(f"{ours} {n}" for n in range(2, len(names) + 3))) if name not in names)
    row = PersonRow(name=free, role=role, excluded=True, created=service.clock())
    session.add(row)
    session.flush()
    return row.id


def stand_ins(session: Session) -> dict[str, int]:
    """Return the accounts that stand for people elsewhere, by role: those whose tasks were taken over."""
    taken = select(AuditRow.object).where(AuditRow.kind == "task", AuditRow.action == "take_over")
    joined = select(PersonRow.role, PersonRow.id).join(TaskRow, TaskRow.person == PersonRow.id)
    return dict(session.execute(joined.where(cast(TaskRow.id, String).in_(taken)).distinct()).all())
