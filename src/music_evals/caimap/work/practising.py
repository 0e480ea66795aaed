"""Training mode: songs set aside, annotators practise on them, inspectors score the results until they agree.

Nothing of it is paid, graded or exported. What inspectors gave is shown to all of them once everybody has scored an
item; those that spread over `training.MAX_SPREAD` points are discussed, and the administrator begins another round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import select

from music_evals.caimap import assurance
from music_evals.caimap.roles import KINDS_OF_ROLE
from music_evals.caimap.storage.store import retried
from music_evals.caimap.storage.tables import PersonRow, SettingRow, SheetRow, SongRow, TaskRow
from music_evals.caimap.training import TRAINING_SONGS, Round, evaluate_round
from music_evals.caimap.values import ScoreSheet, Task
from music_evals.caimap.work.inspecting import add_sheet
from music_evals.caimap.work.service import StudyService, task_of
from music_evals.errors import InvalidAnnotationError, InvalidInputError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["Practice", "choose_songs", "new_round", "practice", "score_item", "take_training"]

_SETTING: Final = "training"


class Practice(NamedTuple):
    """How far training is.

    Attributes
    ----------
    songs
        How many are set aside.
    number
        Of the round.
    scores
        Item -> inspector -> (points, remark); an item that somebody has not scored holds the asker's own alone.
    judged
        The round; None with fewer than two inspectors or no item.

    """

    songs: int
    number: int
    scores: dict[int, dict[int, tuple[float, str]]]
    judged: Round | None


def choose_songs(service: StudyService, who: int, n: int = TRAINING_SONGS) -> int:
    """Set songs aside on which nobody has worked; they never enter the data. Return how many there are now.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    InvalidInputError
        Not so many songs are left.

    """
    with service.writing(who, "manage") as (session, person):
        begun = select(TaskRow.song)
        free = select(SongRow).where(
            SongRow.state == "structuring", SongRow.training.is_(False), SongRow.id.not_in(begun)
        )
        rows = list(session.scalars(free.order_by(SongRow.id)))
        if not 0 < n <= len(rows):
            raise InvalidInputError(
                f"{len(rows)} songs can still be set aside, got {n}", kind="songs_left", found=len(rows)
            )
        for at in service.rng(session, len(rows)).choice(len(rows), n, replace=False):
            rows[int(at)].training = True
            service.note(session, person, "song", rows[int(at)].id, "train")
        session.flush()
        return len(list(session.scalars(select(SongRow.id).where(SongRow.training.is_(True)))))


@retried
def take_training(service: StudyService, who: int) -> Task | None:
    """Give a person their next training task: one that they have begun, or a new one; None where all are done.

    Raises
    ------
    ForbiddenError
        The person does not annotate.

    """
    with service.writing(who, "annotate", locked=True) as (session, person):
        own = list(session.scalars(select(TaskRow).where(TaskRow.person == who, TaskRow.training.is_(True))))
        begun = next((row for row in own if row.state in {"assigned", "working"}), None)
        if begun is not None:
            return task_of(begun)
        had = {(row.song, row.kind) for row in own}
        songs = session.scalars(select(SongRow.id).where(SongRow.training.is_(True)).order_by(SongRow.id))
        left = [(song, kind) for song in songs for kind in KINDS_OF_ROLE[person.role] if (song, kind) not in had]
        if not left:
            return None
        row = TaskRow(song=left[0][0], kind=left[0][1], number=1, person=who, assigned=service.clock(), training=True)
        session.add(row)
        session.flush()
        service.note(session, None, "task", str(row.id), "assign", after=row.state, detail={"person": who})
        return task_of(row)


def practice(service: StudyService, who: int) -> Practice:
    """Return the round of scoring as this person may see it.

    Raises
    ------
    ForbiddenError
        There is no such person.

    """
    with service.reading(who, "ask") as (session, person):
        songs = len(list(session.scalars(select(SongRow.id).where(SongRow.training.is_(True)))))
        number = _round(session)
        if person.role not in {"inspector", "administrator"}:
            return Practice(songs, number, {}, None)
        inspectors = frozenset(
            session.scalars(select(PersonRow.id).where(PersonRow.role == "inspector", PersonRow.withdrawn.is_(False)))
        )
        scores: dict[int, dict[int, tuple[float, str]]] = {item: {} for item in _items(session)}
        for sheet in session.scalars(select(SheetRow).where(SheetRow.purpose == f"training{number}")):
            if sheet.task in scores and sheet.inspector in inspectors:  # and not of who has withdrawn
                scores[sheet.task][sheet.inspector] = (sheet.total, sheet.remark)
        totals = {item: {inspector: total for inspector, (total, _) in row.items()} for item, row in scores.items()}
        judged = evaluate_round(totals, inspectors) if len(inspectors) > 1 and totals else None
        visible = {
            item: row
            if inspectors <= set(row)
            else {inspector: score for inspector, score in row.items() if inspector == who}
            for item, row in scores.items()
        }
        return Practice(songs, number, visible, judged)


def score_item(service: StudyService, sheet: ScoreSheet) -> None:
    """Score an item of the training set, once a round.

    Raises
    ------
    ForbiddenError
        The person is no inspector.
    StaleError
        They have scored it in this round.
    InvalidAnnotationError
        It is no item of the set, or the points are not those of the form.

    """
    with service.writing(sheet.inspector, "inspect") as (session, person):
        row = service.own_task(session, person, sheet.task)
        if row.id not in _items(session):
            raise InvalidAnnotationError("this description is not of the training set", kind="not_training")
        add_sheet(service, session, sheet, row.kind, f"training{_round(session)}")


def new_round(service: StudyService, who: int) -> int:
    """Begin another round, after what was discussed, and return its number.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    InvalidInputError
        The round is not over: somebody has not scored everything.

    """
    training = practice(service, who)
    with service.writing(who, "manage") as (session, person):
        if training.judged is None or training.judged.missing:
            raise InvalidInputError(
                "this round is not over: every inspector scores every item first", kind="round_open"
            )
        session.merge(SettingRow(name=_SETTING, value={"round": training.number + 1}))
        service.note(session, person, "study", "training", "round", detail={"round": training.number + 1})
        return training.number + 1


def _round(session: Session) -> int:
    row = session.get(SettingRow, _SETTING)
    return 1 if row is None else int(row.value["round"])


def _items(session: Session) -> list[int]:
    """Return the descriptions that were handed in as training."""
    chosen = select(TaskRow.id).where(
        TaskRow.training.is_(True), TaskRow.state == "submitted", TaskRow.kind.in_(tuple(assurance.FORMS))
    )
    return list(session.scalars(chosen.order_by(TaskRow.id)))
