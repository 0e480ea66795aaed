"""What annotators do: take a task, listen, save, skip a song, submit."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import func, or_, select

from music_evals.caimap.domain import assignment, assurance, grades, ledger, structure
from music_evals.caimap.domain.description import check_description
from music_evals.caimap.domain.listening import Listening, check_event, check_listening, listening_of
from music_evals.caimap.domain.values import Description, Person, PlaybackEvent, Structure, Task
from music_evals.caimap.services.study import StudyService, task_of
from music_evals.caimap.services.tasks import OPEN, is_behind, is_read, release_idle, task_sec
from music_evals.caimap.storage.store import retried
from music_evals.caimap.storage.tables import EventRow, SongRow, TaskRow, WarningRow
from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidAnnotationError, InvalidInputError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__getattr__ = module_getattr(__name__, {"heard": "task_listening"})

HANDED_IN: Final = ("submitted", "sampled", "accepted")
"""States of a task whose result counts."""

MAX_EVENTS: Final = 5000
"""Of one attempt: an hour of beats and as many clicks have room."""

MAX_DRAFT: Final = 100_000
"""Characters of a draft."""

_TASK_COLUMNS: Final = tuple(getattr(TaskRow, field.name) for field in dataclasses.fields(Task))


@retried
def take_next(service: StudyService, who: int) -> Task | None:
    """Give a person their next task: one that they have begun, or a new one."""
    with service.writing(who, "annotate", locked=True) as (session, person):
        release_idle(service, session)
        mine = select(TaskRow).where(TaskRow.person == who, TaskRow.state.in_(OPEN), TaskRow.training.is_(False))
        begun = session.scalars(mine.order_by(TaskRow.id)).first()
        if begun is not None:
            return task_of(begun)
        row = _new_task(service, session, person)
        if row is None:
            return None
        session.add(row)
        session.flush()
        service.note(session, None, "task", str(row.id), "assign", after=row.state, detail={"person": who})
        return task_of(row)


def _new_task(service: StudyService, session: Session, person: Person) -> TaskRow | None:
    # columns alone, without lyrics and drafts: everybody who acts waits until a place is given
    cluster = SongRow.content["cluster"].as_integer()
    waiting = SongRow.state.in_(set(assignment.STATE_OF_KIND.values())), SongRow.training.is_(False)
    songs = session.execute(select(SongRow.id, SongRow.state, cluster).where(*waiting).order_by(SongRow.id)).all()
    tasks = select(*_TASK_COLUMNS).join(SongRow, SongRow.id == TaskRow.song).where(*waiting)
    own = select(cluster).join(TaskRow, SongRow.id == TaskRow.song).where(TaskRow.person == person.id)
    had = list(session.scalars(own.where(TaskRow.training.is_(False))))
    n_tasks = session.scalar(select(func.count()).where(TaskRow.person == person.id)) or 0
    available = assignment.offers(
        person,
        {name: state for name, state, _ in songs},
        [Task(*row) for row in session.execute(tasks)],
        now=service.clock(),
        gap=dt.timedelta(hours=service.settings(session).pass_gap_hours),
    )
    clusters = {name: number for name, _, number in songs}
    chosen = assignment.choose(available, clusters, had, rng=service.rng(session, person.id, n_tasks))
    if chosen is None:
        return None
    return TaskRow(song=chosen.song, kind=chosen.kind, number=chosen.number, person=person.id, assigned=service.clock())


@retried
def open_task(service: StudyService, who: int, number: int) -> Task:
    """Begin a task; one that was begun stays as it is."""
    with service.writing(who, "annotate") as (session, person):
        row = service.own_task(session, person, number)
        if row.state == "assigned":
            row.opened = service.clock()
            service.move(session, row, "open", person)
        return task_of(row)


@retried
def record(service: StudyService, who: int, number: int, reports: Sequence[Mapping[str, Any]]) -> Listening:
    """Write down playback events at the server's time, and return what they show so far."""
    with service.writing(who, "annotate") as (session, person):
        row = service.own_task(session, person, number)
        duration = _duration_sec(session, row)
        _record(service, session, row, reports, duration)
        return listening_of(_events(session, row), duration)


def _record(
    service: StudyService, session: Session, row: TaskRow, reports: Sequence[Mapping[str, Any]], duration: float
) -> None:
    if row.state != "working" or row.opened is None:
        raise InvalidAnnotationError("this task is not being worked on", kind="not_working")
    count = session.scalar(
        select(func.count()).select_from(EventRow).where(EventRow.task == row.id, EventRow.attempt == row.attempt)
    )
    if (count or 0) + len(reports) > MAX_EVENTS:
        raise InvalidAnnotationError(
            f"more than {MAX_EVENTS} events for one song; start listening again", kind="many_events", most=MAX_EVENTS
        )
    now: float | None = None
    for report in reports:
        try:
            position = float(report["position_sec"])
            now = task_sec(service, session, row, position) if now is None else now
            event = PlaybackEvent(str(report["kind"]), position, now, float(report.get("value", 0.0)))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidAnnotationError("an event has a kind, a position and perhaps a value", kind="event") from error
        check_event(event, duration)
        session.add(EventRow(task=row.id, attempt=row.attempt, **dataclasses.asdict(event)))
    session.flush()


def _duration_sec(session: Session, row: TaskRow) -> float:
    """Return the length of a task's song."""
    duration: float = session.get_one(SongRow, row.song).content["duration_sec"]
    return duration


def _events(session: Session, row: TaskRow) -> list[PlaybackEvent]:
    chosen = select(EventRow.kind, EventRow.position_sec, EventRow.received_sec, EventRow.value)
    chosen = chosen.where(EventRow.task == row.id, EventRow.attempt == row.attempt).order_by(EventRow.id)
    return [PlaybackEvent(*columns) for columns in session.execute(chosen)]


def task_listening(service: StudyService, who: int, number: int) -> Listening:
    """Return what the events of a task show."""
    with service.reading(who, "ask") as (session, person):
        row = service.own_task(session, person, number)
        return listening_of(_events(session, row), _duration_sec(session, row))


def restart_listening(service: StudyService, who: int, number: int, version: int) -> None:
    """Begin to listen anew: events before this count no longer; what was written stays."""
    with service.writing(who, "annotate") as (session, person):
        row = service.own_task(session, person, number, version)
        service.move(session, row, "save", person, restarted=row.attempt)
        row.attempt += 1


@retried
def save(service: StudyService, who: int, number: int, version: int, draft: Mapping[str, Any]) -> int:
    """Keep what is written so far; descriptions cannot be begun in the first seconds of the song."""
    if len(str(draft)) > MAX_DRAFT:
        raise InvalidInputError(f"a draft has at most {MAX_DRAFT} characters", kind="long_draft", most=MAX_DRAFT)
    with service.writing(who, "annotate") as (session, person):
        row = service.own_task(session, person, number, version)
        events = _events(session, row) if row.kind != "structure" else []
        if row.kind != "structure" and not (row.draft and any(event.kind == "write" for event in events)):
            # of this sitting: an earlier one may have got further
            position = events[-1].position_sec if events else 0.0
            duration = _duration_sec(session, row)
            _record(service, session, row, [{"kind": "write", "position_sec": min(position, duration)}], duration)
            if "early_writing" in listening_of(_events(session, row), duration).problems:
                raise InvalidAnnotationError("listen to the first 30 s of the song before you write", kind="early")
        service.move(session, row, "save", person)
        row.draft = dict(draft)
        session.flush()
        return row.version


def screen(service: StudyService, who: int, number: int, version: int, *, reason: str, note: str = "") -> None:
    """Skip a song with a reason; the administrator decides."""
    structure.check_screening(reason, note)
    with service.writing(who, "annotate") as (session, person):
        row = service.own_task(session, person, number, version)
        if row.kind != "structure" or row.training:
            raise InvalidAnnotationError(
                "songs are screened before they are described, and not in training", kind="not_screened"
            )
        service.move(session, row, "screen", person, reason=reason, note=note)
        service.move(session, service.song(session, row.song), "screen", person, reason=reason, note=note)
        row.note = f"{reason}: {note}"[:1000]


@retried
def submit(service: StudyService, who: int, number: int, version: int, annotation: Structure | Description) -> Task:
    """Hand in an annotation."""
    with service.writing(who, "annotate", locked=True) as (session, person):
        row = service.own_task(session, person, number, version)
        task_sec(service, session, row)  # where the clock went back, the task was opened as long before
        duration = _duration_sec(session, row)
        events = _events(session, row)
        if isinstance(annotation, Structure):
            _check_kind(row, "structure")
            structure.check_structure(annotation)
            listening = listening_of(events, duration)  # of type A listening is measured, not enforced
        else:
            _check_kind(row, annotation.group)
            check_description(annotation)
            listening = check_listening(events, duration)
        row.result, row.draft, row.submitted = annotation.to_dict(), {}, service.clock()
        service.move(session, row, "submit", person)
        if not row.training:
            kind = _superficial(session, row, annotation, listening)
            warn(service, session, row, "" if kind and is_behind(session, row) else kind)
            if row.kind == "structure":
                compare_passes(service, session, service.song(session, row.song))
            else:
                _sample(service, session, row)
        return task_of(row)


def warn(service: StudyService, session: Session, row: TaskRow, kind: str) -> None:
    """Warn the author of a task, once a task; of an empty kind not at all."""
    warned = session.scalars(select(WarningRow.id).where(WarningRow.task == row.id)).first()
    if kind and warned is None:
        session.add(WarningRow(person=row.person, task=row.id, kind=kind, moment=service.clock()))
        session.flush()


def _superficial(session: Session, row: TaskRow, annotation: Structure | Description, listening: Listening) -> str:
    """Name what looks superficial in a task that was just handed in, beside what its author did before."""
    start = select(func.min(EventRow.received_sec)).where(EventRow.task == TaskRow.id, EventRow.kind == "play")
    own = TaskRow.person == row.person, TaskRow.training.is_(False), TaskRow.submitted.is_not(None)
    # this one first, although others seem to come later where the clock was ahead
    newest = (TaskRow.id == row.id).desc(), TaskRow.submitted.desc(), TaskRow.id.desc()
    length = SongRow.content["duration_sec"].as_float()
    times = select(TaskRow.opened, TaskRow.submitted, start.scalar_subquery(), length).join(
        SongRow, SongRow.id == TaskRow.song
    )
    times = times.where(*own, TaskRow.opened.is_not(None)).order_by(*newest).limit(grades.AT_A_TIME)
    visits = [
        grades.Visit((end - begin).total_seconds(), played or 0.0, whole)
        for begin, end, played, whole in reversed(session.execute(times).all())
    ]
    results = select(TaskRow.result).where(TaskRow.id != row.id, TaskRow.result.is_not(None)).order_by(*newest)
    if isinstance(annotation, Structure):
        done = session.scalars(results.where(*own, TaskRow.kind == row.kind).limit(grades.MOST_EARLIER)).all()
        earlier = [Structure.from_dict(plain or {}) for plain in reversed(done)]
        return grades.structure_warning(annotation, earlier, listening, visits)
    same = or_(TaskRow.person == row.person, TaskRow.song == row.song)
    described = results.where(same, TaskRow.kind != "structure", TaskRow.training.is_(False))
    others = [Description.from_dict(plain or {}) for plain in session.scalars(described)]
    return grades.description_warning(annotation, others, listening, visits)


def _check_kind(row: TaskRow, kind: str) -> None:
    if row.kind != kind:
        raise InvalidAnnotationError(f"this task asks for a {row.kind}, got a {kind}", kind="kind_of_task")


def pass_tasks(session: Session, song: str, states: Sequence[str], kind: str = "structure") -> list[TaskRow]:
    """Return the tasks of a song in some states, in the order of their passes."""
    chosen = select(TaskRow).where(
        TaskRow.song == song, TaskRow.kind == kind, TaskRow.state.in_(states), TaskRow.training.is_(False)
    )
    return list(session.scalars(chosen.order_by(TaskRow.number, TaskRow.id)))


def compare_passes(service: StudyService, session: Session, song: SongRow) -> None:
    """Accept and merge two equal passes of a song; an inspector sees others, warned ones, and a share of all."""
    passes = pass_tasks(session, song.id, HANDED_IN)
    if len(passes) < 2 or song.state != "structuring":
        return
    first, second = (Structure.from_dict(row.result or {}) for row in passes)
    numbers = [row.id for row in passes]
    settings = service.settings(session)
    if (
        not structure.congruent(first, second)
        or session.scalars(select(WarningRow.id).where(WarningRow.task.in_(numbers))).first() is not None
        or assurance.is_drawn(f"structure/{song.id}/{numbers}", seed=settings.seed, share=settings.congruent_share)
    ):
        service.move(session, song, "differ")
        return
    people = [row.person for row in passes]
    accept_structure(service, session, song, passes, accepted=structure.merge(first, second), people=people)
    service.move(session, song, "match")
    advance(service, session, song)


def accept_structure(
    service: StudyService,
    session: Session,
    song: SongRow,
    passes: Sequence[TaskRow],
    *,
    accepted: Structure,
    people: Sequence[int],
) -> None:
    """Keep an accepted structure, and judge, accept and pay both passes by it."""
    song.accepted = {"structure": accepted.to_dict(), "people": list(people)}
    for row in passes:
        row.agreement = structure.agreement(Structure.from_dict(row.result or {}), accepted)
        if row.state == "submitted":  # one that was accepted before, and whose partner was discarded, stays so
            service.move(session, row, "accept", agreement=row.agreement)
            pay_task(service, session, row)


def pay_task(service: StudyService, session: Session, row: TaskRow) -> None:
    """Pay an accepted task."""
    cents = ledger.earned(row.kind, service.settings(session).rates)
    service.pay(session, ledger.Entry(row.person, "work", cents, f"{row.kind} of {row.song}", row.id))


def _sample(service: StudyService, session: Session, row: TaskRow) -> None:
    """Send a description to an inspector if it is in the sample of its author, else accept it."""
    settings = service.settings(session)
    before = select(func.count()).where(
        TaskRow.person == row.person, TaskRow.kind == row.kind, TaskRow.training.is_(False),
        TaskRow.submitted.is_not(None), TaskRow.id != row.id,
    )  # fmt: skip
    place = session.scalar(before) or 0
    read = is_read(service, session, row.person, place)
    if assurance.is_scored(row.person, row.kind, place, seed=settings.seed, share=settings.share, is_read=read):
        service.move(session, row, "sample")
    else:
        service.move(session, row, "accept")
        pay_task(service, session, row)
    song = service.song(session, row.song)
    advance(service, session, song)


def advance(service: StudyService, session: Session, song: SongRow) -> None:
    """Let a song go on where both descriptions are handed in, and again where both are accepted."""
    for state, action, reached in (("describing", "described", HANDED_IN), ("assuring", "pass", ("accepted",))):
        both = [pass_tasks(session, song.id, reached, kind) for kind in ("professional", "amateur")]
        if song.state == state and all(both):
            service.move(session, song, action)
