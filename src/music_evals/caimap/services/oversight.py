"""What administrators see of people's work: how they listened, what they handed in, and how far they agree.

Agreement reads nothing of people who withdrew, and nothing that was discarded.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from sqlalchemy import func, select

from music_evals.caimap.domain import assurance, consistency
from music_evals.caimap.domain.assurance import FORMS, MAX_SPREAD
from music_evals.caimap.domain.consistency import Coefficient, Drift, Measurement, PersonWeek
from music_evals.caimap.domain.values import Description, ScoreSheet, Structure, Task
from music_evals.caimap.services.annotating import HANDED_IN
from music_evals.caimap.services.inspecting import add_sheet
from music_evals.caimap.services.study import StudyService, task_of
from music_evals.caimap.services.tasks import OPEN, last_acts
from music_evals.caimap.storage.tables import EventRow, PersonRow, SheetRow, TaskRow, WarningRow
from music_evals.errors import InvalidAnnotationError, InvalidInputError
from music_evals.protocols import TextEncoder

if TYPE_CHECKING:
    from sqlalchemy import Row
    from sqlalchemy.orm import Session

_COUNTED: Final = ("pause", "seek", "hidden", "blocked")


class Habits(NamedTuple):
    """How an annotator works."""

    person: int
    role: str
    excluded: bool
    tasks: int  # how many were handed in
    page_min: float  # median time from opening a task to handing it in, in minutes; NaN without a task
    clicks: tuple[float, float, float, float]
    warnings: dict[str, int]  # kind -> how many


class OpenTask(NamedTuple):
    """A task that somebody has and has not handed in."""

    task: Task
    last: dt.datetime  # when something was last done on it, in UTC
    released: dt.datetime  # when its place goes to others by itself, unless something is done before


class Verified(NamedTuple):
    """A scored description that is sampled for a second verification."""

    task: int
    inspector: int
    total: float
    second: float | None  # points of the administrator; None before
    apart: bool  # the two are more than `MAX_SPREAD` points apart


def habits(service: StudyService, who: int) -> list[Habits]:
    """Return how each annotator works."""
    with service.reading(who, "manage") as (session, _):
        handed_in = TaskRow.submitted.is_not(None), TaskRow.training.is_(False)
        tasks: Counter[int] = Counter()
        pages: dict[int, list[float]] = defaultdict(list)
        times = select(TaskRow.person, TaskRow.opened, TaskRow.submitted).where(*handed_in)
        for person, opened, submitted in session.execute(times):
            tasks[person] += 1
            if opened is not None and submitted is not None:
                pages[person].append((submitted - opened).total_seconds() / 60)
        events = select(TaskRow.person, EventRow.kind, func.count()).join(TaskRow, TaskRow.id == EventRow.task)
        grouped = session.execute(events.where(*handed_in).group_by(TaskRow.person, EventRow.kind))
        counts = Counter({(person, kind): count for person, kind, count in grouped})
        warned: dict[int, Counter[str]] = defaultdict(Counter)
        for person, kind in session.execute(select(WarningRow.person, WarningRow.kind)):
            warned[person][kind] += 1
        rows = session.scalars(select(PersonRow).where(PersonRow.role.in_(("professional", "amateur"))))
        return [
            Habits(
                row.id, row.role, row.excluded, tasks[row.id],
                float(np.median(pages[row.id])) if pages[row.id] else float("nan"),
                tuple(counts[row.id, kind] / tasks[row.id] if tasks[row.id] else float("nan") for kind in _COUNTED),  # type: ignore[arg-type]
                dict(warned[row.id]),
            )
            for row in rows
        ]  # fmt: skip


def open_tasks(service: StudyService, who: int) -> list[OpenTask]:
    """List what is given out and not handed in, idle longest first; `managing.release` takes one back."""
    with service.reading(who, "manage") as (session, _):
        span = dt.timedelta(days=service.settings(session).release_days)
        chosen = select(TaskRow).where(TaskRow.state.in_(OPEN), TaskRow.training.is_(False)).order_by(TaskRow.id)
        rows = list(session.scalars(chosen))
        last = last_acts(session, rows)
        return [
            OpenTask(task_of(row), last[row.id], last[row.id] + span)
            for row in sorted(rows, key=lambda row: last[row.id])
        ]


def submissions(service: StudyService, who: int, person: int) -> list[Task]:
    """List the tasks of anybody, newest first."""
    with service.reading(who, "manage") as (session, _):
        if session.get(PersonRow, person) is None:
            raise InvalidInputError(f"there is no person {person}", kind="no_person", found=person)
        rows = session.scalars(select(TaskRow).where(TaskRow.person == person).order_by(TaskRow.id.desc()))
        return [task_of(row) for row in rows]


def verifications(service: StudyService, who: int) -> list[Verified]:
    """List the sample of each inspector's scores, as large a share as that of descriptions, with what was verified."""
    with service.reading(who, "manage") as (session, _):
        settings = service.settings(session)
        seconds = {row.task: row.total for row in session.scalars(select(SheetRow).where(SheetRow.purpose == "second"))}
        firsts = session.scalars(select(SheetRow).where(SheetRow.purpose == "assurance").order_by(SheetRow.id))
        with_result = set(session.scalars(select(TaskRow.id).where(TaskRow.result.is_not(None))))  # not of who withdrew
        places: Counter[int] = Counter()
        verified = []
        for row in firsts:
            place, second = places[row.inspector], seconds.get(row.task)
            places[row.inspector] += 1
            is_sampled = assurance.is_sampled(row.inspector, "sheet", place, seed=settings.seed, share=settings.share)
            if is_sampled and row.task in with_result:
                apart = second is not None and abs(row.total - second) > MAX_SPREAD
                verified.append(Verified(row.task, row.inspector, row.total, second, apart))
        return verified


def verify(service: StudyService, sheet: ScoreSheet) -> None:
    """Score a description again, as an administrator; the first score and its task stay as they are."""
    with service.writing(sheet.inspector, "manage") as (session, person):
        row = service.own_task(session, person, sheet.task)
        scored = select(SheetRow.id).where(SheetRow.task == row.id, SheetRow.purpose == "assurance")
        if row.result is None or session.scalars(scored).first() is None:
            raise InvalidAnnotationError("nobody has scored this description yet", kind="not_scored")
        add_sheet(service, session, sheet, row.kind, "second")
        service.note(session, person, "task", str(row.id), "verify", detail={"total": sheet.total})


_TRAINING = "training"
Tasks = Mapping[int, "Row[*tuple[Any, ...]]"]
"""Number -> id, person, kind, submitted and agreement of a task."""


class StudyAgreement(NamedTuple):
    """How far the people of a study agree; empty tables where nothing can be compared yet."""

    structure: list[Coefficient]  # of the two passes of each song
    tags: list[Coefficient]  # of those who described the same songs: the training songs
    inspectors: list[Coefficient]  # of the rounds of training, and of the second verification
    weeks: list[PersonWeek]
    drift: list[Drift]


def study_agreement(service: StudyService, who: int, encoder: TextEncoder | None = None) -> StudyAgreement:
    """Return how far the people of a study agree."""
    with service.reading(who, "manage") as (session, _):
        roles = dict(session.execute(select(PersonRow.id, PersonRow.role).where(PersonRow.withdrawn.is_(False))).all())
        passes = _structures(session, set(roles))
        # group -> training song -> what people said of it
        in_training = select(TaskRow).where(
            TaskRow.kind.in_(tuple(FORMS)), TaskRow.training.is_(True), TaskRow.state.in_(HANDED_IN)
        )
        described: dict[str, dict[str, list[Description]]] = {group: defaultdict(list) for group in FORMS}
        for trained in session.scalars(in_training.order_by(TaskRow.song, TaskRow.id)):
            if trained.person in roles:
                described[trained.kind][trained.song].append(Description.from_dict(trained.result or {}))
        sheets = [row for row in session.scalars(select(SheetRow).order_by(SheetRow.id)) if row.inspector in roles]
        columns = (TaskRow.id, TaskRow.person, TaskRow.kind, TaskRow.submitted, TaskRow.agreement)  # and no texts
        chosen = session.execute(select(*columns).where(TaskRow.state != "discarded"))
        tasks = {row.id: row for row in chosen if row.person in roles}
    sheets = [row for row in sheets if row.task in tasks]
    tags = [
        coefficient
        for group in FORMS
        for coefficient in consistency.tag_agreement(list(described[group].values()), encoder)
    ]
    measurements = [
        Measurement(row.person, roles[row.person], "structure_accuracy", row.submitted, row.agreement)
        for row in tasks.values()
        if row.submitted is not None and row.agreement is not None
    ]
    for sheet in sheets:
        task = tasks[sheet.task]
        if sheet.purpose == "assurance" and task.submitted is not None:
            measurements.append(
                Measurement(task.person, roles[task.person], "description_points", task.submitted, sheet.total)
            )
            measurements.append(
                Measurement(sheet.inspector, roles[sheet.inspector], "given_points", sheet.moment, sheet.total)
            )
    weeks = consistency.weeks_of(measurements)
    return StudyAgreement(
        consistency.structure_agreement(passes) if passes else [],
        tags,
        _inspectors(tasks, sheets),
        weeks,
        consistency.drift_of(weeks),
    )


def _structures(session: Session, people: set[int]) -> list[tuple[Structure, Structure]]:
    chosen = select(TaskRow).where(
        TaskRow.kind == "structure", TaskRow.training.is_(False), TaskRow.state.in_(HANDED_IN)
    )
    songs: dict[str, list[Structure]] = defaultdict(list)
    for row in session.scalars(chosen.order_by(TaskRow.song, TaskRow.number)):
        if row.person in people:
            songs[row.song].append(Structure.from_dict(row.result or {}))
    return [(passes[0], passes[1]) for passes in songs.values() if len(passes) == 2]


def _inspectors(tasks: Tasks, sheets: list[SheetRow]) -> list[Coefficient]:
    coefficients: list[Coefficient] = []
    rounds = sorted({int(row.purpose.removeprefix(_TRAINING)) for row in sheets if row.purpose.startswith(_TRAINING)})
    for number in rounds:
        for group in FORMS:
            round_sheets = [
                row for row in sheets if row.purpose == f"{_TRAINING}{number}" and tasks[row.task].kind == group
            ]
            coefficients += consistency.scoring_agreement(
                [
                    ScoreSheet(
                        row.task, row.inspector, {(name, part): points for name, part, points in row.points}, row.remark
                    )
                    for row in round_sheets
                ],
                group,
                number,
            )
    seconds = {row.task: row.total for row in sheets if row.purpose == "second"}
    firsts = [row for row in sheets if row.purpose == "assurance" and row.task in seconds]
    return coefficients + consistency.verification_agreement([(row.total, seconds[row.task]) for row in firsts])
