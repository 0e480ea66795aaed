"""What inspectors do: settle structures that differ, and score descriptions. A sample of both is verified again.

An administrator settles a structure anew without seeing what the inspector accepted, which stays in the data; how far
the two agree is written down.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import select

from music_evals.caimap.domain import assurance, grades, ledger, structure
from music_evals.caimap.domain.assurance import MAX_SPREAD
from music_evals.caimap.domain.values import Person, ScoreSheet, Song, Structure
from music_evals.caimap.services.annotating import HANDED_IN, accept_structure, advance, pass_tasks, pay_task, warn
from music_evals.caimap.services.study import StudyService, song_of
from music_evals.caimap.storage.store import StaleError
from music_evals.caimap.storage.tables import AuditRow, SheetRow, SongRow, TaskRow
from music_evals.errors import InvalidAnnotationError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def waiting(service: StudyService, who: int) -> tuple[list[str], list[int]]:
    """List what waits for inspectors."""
    with service.reading(who, "inspect") as (session, _):
        songs = session.scalars(select(SongRow.id).where(SongRow.state == "inspecting").order_by(SongRow.id))
        tasks = session.scalars(select(TaskRow.id).where(TaskRow.state == "sampled").order_by(TaskRow.id))
        return list(songs), list(tasks)


def settle(service: StudyService, who: int, song: str, version: int, accepted: Structure) -> None:
    """Settle a song that waits for it: with one of its structures, an edited one, or a third."""
    structure.check_structure(accepted)
    with service.writing(who, "inspect", locked=True) as (session, person):
        row = service.song(session, song, version)
        service.move(session, row, "settle", person)
        passes = pass_tasks(session, song, HANDED_IN)
        people = [task.person for task in passes]
        accept_structure(service, session, row, passes, accepted=accepted, people=[*people, who])
        structures = [Structure.from_dict(task.result or {}) for task in passes]
        if len(structures) == 2 and grades.agree_on_wrong(structures[0], structures[1], accepted):
            for task in passes:
                warn(service, session, task, "wrong_together")
        advance(service, session, row)
        _pay_inspection(service, session, person, f"structure of {song}")


def score(service: StudyService, sheet: ScoreSheet, version: int) -> str:
    """Score a description of the sample, and return the state of its task."""
    with service.writing(sheet.inspector, "inspect") as (session, person):
        row = service.own_task(session, person, sheet.task, version)
        if row.kind not in assurance.FORMS or row.result is None:
            raise InvalidAnnotationError("only descriptions are scored", kind="only_descriptions")
        good = assurance.passes(sheet)
        add_sheet(service, session, sheet, row.kind)
        service.move(session, row, "pass" if good else "fail", person, total=sheet.total)
        song = service.song(session, row.song)
        if good:
            pay_task(service, session, row)
            advance(service, session, song)
        elif song.state == "assuring":
            service.move(session, song, "reject")
        _pay_inspection(service, session, person, f"{row.kind} of {row.song}", row.id)
        return row.state


def add_sheet(
    service: StudyService, session: Session, sheet: ScoreSheet, group: str, purpose: str = "assurance"
) -> None:
    """Keep the points that somebody gave a description of a group."""
    assurance.check_sheet(sheet, group)
    points = [[*key, value] for key, value in sheet.points.items()]
    values = {"points": points, "total": sheet.total, "remark": sheet.remark[:1000], "moment": service.clock()}
    session.add(SheetRow(task=sheet.task, inspector=sheet.inspector, purpose=purpose, **values))


def _pay_inspection(
    service: StudyService, session: Session, person: Person, reason: str, task: int | None = None
) -> None:
    cents = ledger.earned("inspection", service.settings(session).rates)
    service.pay(session, ledger.Entry(person.id, "work", cents, f"inspection: {reason}", task))


_KIND: Final = "settlement"
"""Of the entries of the log that hold what was verified."""


class Settled(NamedTuple):
    """A structure that an inspector settled and that is sampled for a second verification."""

    song: str
    inspector: int
    agreement: float | None
    apart: bool  # they are more than `training.MAX_SPREAD` per cent apart


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
    """List the sample of each inspector's settlements, as large a share as that of descriptions."""
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
    """Return a song of the sample with its passes, to be settled again."""
    with service.reading(who, "manage") as (session, _):
        row = _of_sample(service, session, song).song
        tasks = pass_tasks(session, song, HANDED_IN)
        passes = [Structure.from_dict(task.result or {}) for task in tasks]
        return Unsettled(song_of(row), tuple(passes), tuple(task.id for task in tasks))


def verify_settlement(service: StudyService, who: int, song: str, given: Structure) -> list[structure.Difference]:
    """Settle a song of the sample again, once; what the inspector accepted stays."""
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
