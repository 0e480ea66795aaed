"""What a study holds for statistics of agreement: passes, descriptions of the training, scores, and weeks.

Nothing of people who withdrew, and nothing that was discarded, is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import select

from music_evals.caimap import consistency
from music_evals.caimap.assurance import FORMS
from music_evals.caimap.consistency import Coefficient, Drift, Measurement, PersonWeek
from music_evals.caimap.storage.tables import PersonRow, SheetRow, TaskRow
from music_evals.caimap.values import Description, ScoreSheet, Structure
from music_evals.caimap.work.annotating import HANDED_IN
from music_evals.caimap.work.service import StudyService
from music_evals.protocols import TextEncoder

if TYPE_CHECKING:
    from sqlalchemy import Row
    from sqlalchemy.orm import Session

__all__ = ["StudyAgreement", "study_agreement"]

_TRAINING = "training"
Tasks = Mapping[int, "Row[*tuple[Any, ...]]"]
"""Number -> id, person, kind, submitted and agreement of a task."""


class StudyAgreement(NamedTuple):
    """How far the people of a study agree; empty tables where nothing can be compared yet.

    Attributes
    ----------
    structure
        Of the two passes of each song.
    tags
        Of those who described the same songs: the training songs.
    inspectors
        Of the rounds of training, and of the second verification.
    weeks, drift
        Of everybody over time.

    """

    structure: list[Coefficient]
    tags: list[Coefficient]
    inspectors: list[Coefficient]
    weeks: list[PersonWeek]
    drift: list[Drift]


def study_agreement(service: StudyService, who: int, encoder: TextEncoder | None = None) -> StudyAgreement:
    """Return how far the people of a study agree.

    Parameters
    ----------
    service, who
        The study and the administrator.
    encoder
        Also compares tags by meaning.

    Raises
    ------
    ForbiddenError
        The person is no administrator.

    """
    with service.reading(who, "manage") as (session, _):
        roles = dict(session.execute(select(PersonRow.id, PersonRow.role).where(PersonRow.withdrawn.is_(False))).all())
        passes = _structures(session, set(roles))
        described = _training_descriptions(session, set(roles))
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
    weeks = consistency.weeks_of(_measurements(tasks, sheets, roles))
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


def _training_descriptions(session: Session, people: set[int]) -> dict[str, dict[str, list[Description]]]:
    """Return group -> training song -> what people said of it."""
    chosen = select(TaskRow).where(
        TaskRow.kind.in_(tuple(FORMS)), TaskRow.training.is_(True), TaskRow.state.in_(HANDED_IN)
    )
    descriptions: dict[str, dict[str, list[Description]]] = {group: defaultdict(list) for group in FORMS}
    for row in session.scalars(chosen.order_by(TaskRow.song, TaskRow.id)):
        if row.person in people:
            descriptions[row.kind][row.song].append(Description.from_dict(row.result or {}))
    return descriptions


def _inspectors(tasks: Tasks, sheets: list[SheetRow]) -> list[Coefficient]:
    coefficients: list[Coefficient] = []
    rounds = sorted({int(row.purpose.removeprefix(_TRAINING)) for row in sheets if row.purpose.startswith(_TRAINING)})
    for number in rounds:
        for group in FORMS:
            round_sheets = [
                row for row in sheets if row.purpose == f"{_TRAINING}{number}" and tasks[row.task].kind == group
            ]
            coefficients += consistency.scoring_agreement([_sheet_of(row) for row in round_sheets], group, number)
    seconds = {row.task: row.total for row in sheets if row.purpose == "second"}
    firsts = [row for row in sheets if row.purpose == "assurance" and row.task in seconds]
    return coefficients + consistency.verification_agreement([(row.total, seconds[row.task]) for row in firsts])


def _sheet_of(row: SheetRow) -> ScoreSheet:
    return ScoreSheet(row.task, row.inspector, {(name, part): points for name, part, points in row.points}, row.remark)


def _measurements(tasks: Tasks, sheets: list[SheetRow], roles: dict[int, str]) -> list[Measurement]:
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
    return measurements
