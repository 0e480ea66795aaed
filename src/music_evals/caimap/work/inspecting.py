"""What inspectors do: settle structures that differ, score descriptions of the sample, score the training set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from music_evals.caimap import assurance, ledger, structure, superficial
from music_evals.caimap.storage.tables import SheetRow, SongRow, TaskRow
from music_evals.caimap.values import Person, ScoreSheet, Structure
from music_evals.caimap.work.annotating import HANDED_IN, accept_structure, advance, pass_tasks, pay_task, warn
from music_evals.caimap.work.desk import Desk
from music_evals.errors import InvalidAnnotationError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["add_sheet", "score", "settle", "waiting"]


def waiting(desk: Desk, who: int) -> tuple[list[str], list[int]]:
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
    with desk.reading(who, "inspect") as (session, _):
        songs = session.scalars(select(SongRow.id).where(SongRow.state == "inspecting").order_by(SongRow.id))
        tasks = session.scalars(select(TaskRow.id).where(TaskRow.state == "sampled").order_by(TaskRow.id))
        return list(songs), list(tasks)


def settle(desk: Desk, who: int, song: str, version: int, accepted: Structure) -> None:
    """Settle a song that waits for it: with one of its structures, an edited one, or a third.

    Both annotators are warned who handed in the same, where that is far from what is accepted.

    Parameters
    ----------
    desk, who
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
        Another inspector was quicker.
    InvalidAnnotationError
        The structure breaks a rule.

    """
    structure.check_structure(accepted)
    with desk.writing(who, "inspect", locked=True) as (session, person):
        row = desk.song(session, song, version)
        desk.move(session, row, "settle", person)
        passes = pass_tasks(session, song, HANDED_IN)
        people = [found.person for found in passes]
        accept_structure(desk, session, row, passes, accepted=accepted, people=[*people, who])
        given = [Structure.from_dict(found.result or {}) for found in passes]
        if len(given) == 2 and superficial.agree_on_wrong(given[0], given[1], accepted):
            for found in passes:
                warn(desk, session, found, "wrong_together")
        advance(desk, session, row)
        _pay_inspection(desk, session, person, f"structure of {song}")


def score(desk: Desk, sheet: ScoreSheet, version: int) -> str:
    """Score a description of the sample, and return the state of its task.

    Parameters
    ----------
    desk
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
        Another inspector was quicker.
    InvalidAnnotationError
        The points are not those of the form.

    """
    with desk.writing(sheet.inspector, "inspect") as (session, person):
        row = desk.own_task(session, person, sheet.task, version)
        if row.kind not in assurance.FORMS or row.result is None:
            raise InvalidAnnotationError("only descriptions are scored", kind="only_descriptions")
        good = assurance.passes(sheet)
        add_sheet(desk, session, sheet, row.kind)
        desk.move(session, row, "pass" if good else "fail", person, total=sheet.total)
        song = desk.song(session, row.song)
        if good:
            pay_task(desk, session, row)
            advance(desk, session, song)
        elif song.state == "assuring":
            desk.move(session, song, "reject")
        _pay_inspection(desk, session, person, f"{row.kind} of {row.song}", row.id)
        return row.state


def add_sheet(desk: Desk, session: Session, sheet: ScoreSheet, group: str, purpose: str = "assurance") -> None:
    """Keep the points that somebody gave a description of a group.

    Raises
    ------
    InvalidAnnotationError
        The points are not those of the form.

    """
    assurance.check_sheet(sheet, group)
    points = [[*key, given] for key, given in sheet.points.items()]
    kept = {"points": points, "total": sheet.total, "remark": sheet.remark[:1000], "moment": desk.clock()}
    session.add(SheetRow(task=sheet.task, inspector=sheet.inspector, purpose=purpose, **kept))


def _pay_inspection(desk: Desk, session: Session, person: Person, reason: str, task: int | None = None) -> None:
    cents = ledger.earned("inspection", desk.settings(session).rates)
    desk.pay(session, ledger.Entry(person.id, "work", cents, f"inspection: {reason}", task))
