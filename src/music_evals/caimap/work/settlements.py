"""Structures that inspectors settled, verified again: an administrator settles a sample anew, without seeing theirs.

What the inspector accepted stays in the data; how far the two agree is written down.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import select

from music_evals.caimap import assurance, structure
from music_evals.caimap.storage.store import StaleError
from music_evals.caimap.storage.tables import AuditRow, SongRow
from music_evals.caimap.training import MAX_SPREAD
from music_evals.caimap.values import Song, Structure
from music_evals.caimap.work.annotating import HANDED_IN, pass_tasks
from music_evals.caimap.work.service import StudyService, song_of
from music_evals.errors import InvalidAnnotationError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["Settled", "Unsettled", "settlements", "unsettled", "verify_settlement"]

_KIND: Final = "settlement"
"""Of the entries of the log that hold what was verified."""


class Settled(NamedTuple):
    """A structure that an inspector settled and that is sampled for a second verification.

    Attributes
    ----------
    song, inspector
        What was settled, by whom.
    agreement
        Of the inspector's structure with that of the administrator, from 0 to 1 (`structure.agreement`); None before.
    apart
        They are more than `training.MAX_SPREAD` per cent apart.

    """

    song: str
    inspector: int
    agreement: float | None
    apart: bool


class Unsettled(NamedTuple):
    """What an administrator settles again: a song, its passes and their tasks, without what the inspector accepted."""

    song: Song
    passes: tuple[Structure, ...]
    tasks: tuple[int, ...]


class _Standing(NamedTuple):
    """A settlement whose structure is still the accepted one: its entry in the log, its song, and of whom it is."""

    entry: int
    song: SongRow
    inspector: int
    place: int


def _standing(session: Session) -> list[_Standing]:
    """Return the settlements that still stand, each with how many its inspector had made before it."""
    places: Counter[int] = Counter()
    last: dict[str, tuple[int, int, int]] = {}
    chosen = select(AuditRow.id, AuditRow.object, AuditRow.person).where(
        AuditRow.kind == "song", AuditRow.action == "settle"
    )
    for entry, name, inspector in session.execute(chosen.order_by(AuditRow.id)):
        if inspector is not None:  # nobody settles but a person
            last[name] = entry, inspector, places[inspector]
            places[inspector] += 1
    standing = []
    for row in session.scalars(select(SongRow).where(SongRow.accepted.is_not(None)).order_by(SongRow.id)):
        if row.id in last and row.accepted is not None:
            entry, inspector, place = last[row.id]
            if row.accepted["people"][-1] == inspector:  # and not merged from other passes since
                standing.append(_Standing(entry, row, inspector, place))
    return standing


def _sampled(service: StudyService, session: Session) -> list[_Standing]:
    settings = service.settings(session)
    return [
        settlement
        for settlement in _standing(session)
        if assurance.is_sampled(
            settlement.inspector, "settle", settlement.place, seed=settings.seed, share=settings.share
        )
    ]


def _verified(session: Session) -> dict[int, float]:
    """Return entry of a settlement -> agreement."""
    rows = session.scalars(select(AuditRow).where(AuditRow.kind == _KIND, AuditRow.action == "verify"))
    return {int(row.detail["settled"]): float(row.detail["agreement"]) for row in rows}


def settlements(service: StudyService, who: int) -> list[Settled]:
    """List the sample of each inspector's settlements, as large a share as that of descriptions.

    Raises
    ------
    ForbiddenError
        The person is no administrator.

    """
    with service.reading(who, "manage") as (session, _):
        verified = _verified(session)
        rows = []
        for settlement in _sampled(service, session):
            agreement = verified.get(settlement.entry)
            apart = agreement is not None and 100 * (1 - agreement) > MAX_SPREAD
            rows.append(Settled(settlement.song.id, settlement.inspector, agreement, apart))
        return rows


def _of_sample(service: StudyService, session: Session, song: str) -> _Standing:
    match = next((settlement for settlement in _sampled(service, session) if settlement.song.id == song), None)
    if match is None:
        raise InvalidAnnotationError("this song is not in the sample of settled structures", kind="not_sampled")
    return match


def unsettled(service: StudyService, who: int, song: str) -> Unsettled:
    """Return a song of the sample with its passes, to be settled again.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    InvalidAnnotationError
        The song is not in the sample.

    """
    with service.reading(who, "manage") as (session, _):
        row = _of_sample(service, session, song).song
        tasks = pass_tasks(session, song, HANDED_IN)
        passes = [Structure.from_dict(task.result or {}) for task in tasks]
        return Unsettled(song_of(row), tuple(passes), tuple(task.id for task in tasks))


def verify_settlement(service: StudyService, who: int, song: str, given: Structure) -> list[structure.Difference]:
    """Settle a song of the sample again, once; what the inspector accepted stays.

    Returns
    -------
    list of Difference
        Between what the inspector accepted and what was given, in this order.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    StaleError
        It was verified before.
    InvalidAnnotationError
        The structure breaks a rule, or the song is not in the sample.

    """
    structure.check_structure(given)
    with service.writing(who, "manage") as (session, person):
        service.song(session, song)
        settlement = _of_sample(service, session, song)
        if settlement.entry in _verified(session):
            raise StaleError(
                "this structure was verified already; the first verification stays", kind="verified_already"
            )
        accepted = Structure.from_dict((settlement.song.accepted or {})["structure"])
        detail = {"settled": settlement.entry, "agreement": structure.agreement(accepted, given)}
        service.note(session, person, _KIND, song, "verify", detail=detail)
        return structure.differences(accepted, given)
