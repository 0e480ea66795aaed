"""What inspectors do: settle structures that differ, score descriptions of the sample, score the training set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from music_evals.caimap import assurance, ledger, structure, superficial
from music_evals.caimap.storage.tables import SheetRow, SongRow, TaskRow
from music_evals.caimap.values import Person, ScoreSheet, Structure
from music_evals.caimap.work.annotating import HANDED_IN, accept_structure, advance, pass_tasks, pay_task, warn
from music_evals.caimap.work.service import StudyService
from music_evals.errors import InvalidAnnotationError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["add_sheet", "score", "settle", "waiting"]


def waiting(service: StudyService, who: int) -> tuple[list[str], list[int]]:
    """List what waits for inspectors.

    Returns
    -------
    songs
        Ids of songs whose two structures differ, have a warning or are in the sample.
    tasks
        Numbers of the descriptions of the sample that are not scored.

    Raises
    ------
    ForbiddenError
        The person is no inspector.

    """
    with service.reading(who, "inspect") as (session, _):
        songs = session.scalars(select(SongRow.id).where(SongRow.state == "inspecting").order_by(SongRow.id))
        tasks = session.scalars(select(TaskRow.id).where(TaskRow.state == "sampled").order_by(TaskRow.id))
        return list(songs), list(tasks)


def settle(service: StudyService, who: int, song: str, version: int, accepted: Structure) -> None:
    """Settle a song that waits for it: with one of its structures, an edited one, or a third.

    Both annotators are warned who handed in the same, where that is far from what is accepted.

    Parameters
    ----------
    service, who
        The study and the inspector.
    song
        Its id.
    version
        Of the song, as the page has it.
    accepted
        What enters the data.

    Raises
    ------
    ForbiddenError, ForbiddenStepError
        The person is no inspector, or the song does not wait for one.
    StaleError
        Another inspector has changed the record since the page was loaded.
    InvalidAnnotationError
        The structure breaks a rule.

    """
    structure.check_structure(accepted)
    with service.writing(who, "inspect", locked=True) as (session, person):
        row = service.song(session, song, version)
        service.move(session, row, "settle", person)
        passes = pass_tasks(session, song, HANDED_IN)
        people = [task.person for task in passes]
        accept_structure(service, session, row, passes, accepted=accepted, people=[*people, who])
        structures = [Structure.from_dict(task.result or {}) for task in passes]
        if len(structures) == 2 and superficial.agree_on_wrong(structures[0], structures[1], accepted):
            for task in passes:
                warn(service, session, task, "wrong_together")
        advance(service, session, row)
        _pay_inspection(service, session, person, f"structure of {song}")


def score(service: StudyService, sheet: ScoreSheet, version: int) -> str:
    """Score a description of the sample, and return the state of its task.

    Parameters
    ----------
    service
        The study.
    sheet
        Task, inspector and points.
    version
        Of the task, as the page has it.

    Returns
    -------
    str
        ``"accepted"`` or ``"rejected"``.

    Raises
    ------
    ForbiddenError, ForbiddenStepError
        The person is no inspector, or the task does not wait for one.
    StaleError
        Another inspector has changed the record since the page was loaded.
    InvalidAnnotationError
        The points are not those of the form.

    """
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
    """Keep the points that somebody gave a description of a group.

    Raises
    ------
    InvalidAnnotationError
        The points are not those of the form.

    """
    assurance.check_sheet(sheet, group)
    points = [[*key, value] for key, value in sheet.points.items()]
    values = {"points": points, "total": sheet.total, "remark": sheet.remark[:1000], "moment": service.clock()}
    session.add(SheetRow(task=sheet.task, inspector=sheet.inspector, purpose=purpose, **values))


def _pay_inspection(
    service: StudyService, session: Session, person: Person, reason: str, task: int | None = None
) -> None:
    cents = ledger.earned("inspection", service.settings(session).rates)
    service.pay(session, ledger.Entry(person.id, "work", cents, f"inspection: {reason}", task))
