"""Pages for annotators: their work, and the tasks that they are given."""

from __future__ import annotations

import functools
import re
from typing import Any, Final

from fastapi import APIRouter, Response, Security
from fastapi.responses import JSONResponse

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap.domain import lexica, listening, structure
from music_evals.caimap.domain.description import MAX_TAGS, fewest_tags
from music_evals.caimap.domain.grades import MAX_WARNINGS
from music_evals.caimap.domain.values import Description, Structure, Task
from music_evals.caimap.services import annotating, managing, people, training, views
from music_evals.caimap.web.forms import (
    description_of,
    editor_values,
    row_fields,
    rows_of,
    split_rows,
    structure_fields,
    structure_of,
    written,
)
from music_evals.caimap.web.visitors import CurrentVisitor, Visitor, admit, redirect
from music_evals.caimap.web.words import refusal
from music_evals.errors import InvalidInputError

__all__ = ["ROUTERS", "show_handed_in"]

router: Final = APIRouter(dependencies=[Security(admit, scopes=["annotate"])])
ROUTERS: Final = (router,)


@router.get("/work")
def show_work(visitor: CurrentVisitor) -> Response:
    service, who = visitor.service, visitor.who
    return visitor.page(
        "work.html",
        tasks=views.tasks_of(service, who),
        waits="none" not in visitor.request.query_params,
        standing=people.standing(service, who),
        most=MAX_WARNINGS,
        grades=people.graded(service, who),
        warnings=people.cautions(service, who),
        so_far=people.so_far(service, who),
        rests=views.rests(service, who),
    )


def _open(visitor: Visitor, task: Task | None, otherwise: str) -> Response:
    """Begin a task and redirect to its page, or elsewhere if there is no task."""
    if task is None:
        return redirect(otherwise)
    annotating.open_task(visitor.service, visitor.who, task.id)
    return redirect(f"/task/{task.id}")


@router.post("/work/next")
def take_next(visitor: CurrentVisitor) -> Response:
    return _open(visitor, annotating.take_next(visitor.service, visitor.who), "/work?none=1")


@router.post("/training/next")
def practise(visitor: CurrentVisitor) -> Response:
    return _open(visitor, training.take_training(visitor.service, visitor.who), "/training")


@router.get("/lexicon/{group}/{dimension}")
def suggest_terms(group: str, dimension: str, visitor: CurrentVisitor) -> Response:
    terms = managing.terms_of(visitor.service, group, dimension)
    query = next((value for name, value in visitor.request.query_params.items() if name.startswith("tags_")), "")
    last = re.split("[、,，]", query)[-1]
    return visitor.page("terms.html", terms=lexica.search(terms, last), dimension=dimension)


@router.get("/task/{number:id}")
def show_task(number: int, visitor: CurrentVisitor) -> Response:
    view = views.task_view(visitor.service, visitor.who, number)
    if view.task.state not in {"assigned", "working"}:
        return show_handed_in(visitor, view)
    listening_so_far = annotating.task_listening(visitor.service, visitor.who, number)
    shared: dict[str, Any] = {
        "view": view,
        "skip": {},
        "reasons": structure.SCREENING_REASONS,
        "rests": views.rests(visitor.service, visitor.who),
        "listening": listening_so_far,
        "writes": listening_so_far.may_write(view.song.duration_sec),
        "choice": f"/task/{view.task.id}/save",
    }
    if view.task.kind == "structure":
        has_rows = "line_0" in view.draft
        draft = row_fields(split_rows(rows_of(view.draft)), view.draft.get("theme", "")) if has_rows else {}
        return visitor.page("structure.html", **shared, **editor_values(draft or view.fields(structure_fields)))
    group = view.task.kind
    dimensions = {name: row for name, row in DIMENSIONS[group].items() if name != AUDIO_EFFECTS}
    limits = {name: (fewest_tags(group, name), MAX_TAGS) for name in dimensions}
    values = {"fields": view.draft, "dimensions": dimensions, "limits": limits, "group": group}
    return visitor.page("description.html", **shared, **values)


def show_handed_in(visitor: Visitor, view: views.TaskView) -> Response:
    """Render what was handed in, to be read alone."""
    return visitor.page("handed_in.html", view=view, dimensions=DIMENSIONS.get(view.task.kind, {}), fields={})


@router.post("/task/{number:id}/save")
def save(number: int, visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_task, number, visitor))
    annotating.save(visitor.service, visitor.who, number, visitor.version, written(visitor.form))
    return redirect(f"/task/{number}")


@router.post("/task/{number:id}/draft")
def save_draft(number: int, visitor: CurrentVisitor) -> Response:
    """Keep the draft that the script of the page sends by itself."""
    views.task_view(visitor.service, visitor.who, number)  # whose it is, before what was sent
    body = visitor.json if isinstance(visitor.json, dict) else {}
    fields, version = body.get("fields"), body.get("version")
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise InvalidInputError("expected the fields of a draft, as texts", kind="draft_fields")
    if type(version) is not int:
        raise InvalidInputError("expected the version of the task that the page shows", kind="draft_fields")
    draft = {str(name): value for name, value in fields.items() if name not in {"csrf", "version"}}
    return JSONResponse({"version": annotating.save(visitor.service, visitor.who, number, version, draft)})


@router.post("/task/{number:id}/submit")
def submit(number: int, visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_task, number, visitor))
    kind = views.task_view(visitor.service, visitor.who, number).task.kind
    annotation: Structure | Description
    annotation = structure_of(visitor.form) if kind == "structure" else description_of(visitor.form, kind)
    annotating.submit(visitor.service, visitor.who, number, visitor.version, annotation)
    return redirect("/work")


@router.post("/task/{number:id}/skip")
def skip(number: int, visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_task, number, visitor), fields="skip")
    reason, note = visitor.form.get("reason", ""), visitor.form.get("note", "")
    annotating.screen(visitor.service, visitor.who, number, visitor.version, reason=reason, note=note)
    return redirect("/work")


@router.post("/task/{number:id}/restart")
def restart(number: int, visitor: CurrentVisitor) -> Response:
    """Ask first, with the draft saved; then begin to listen anew."""
    visitor.rerenders(functools.partial(show_task, number, visitor))
    service, who, version = visitor.service, visitor.who, visitor.version
    if "sure" in visitor.form:
        annotating.restart_listening(service, who, number, version)
        return redirect(f"/task/{number}")
    draft, view = written(visitor.form), views.task_view(service, who, number)
    may_write = annotating.task_listening(service, who, number).may_write(view.song.duration_sec)
    if may_write and any(draft.values()) and draft != view.draft:
        version = annotating.save(service, who, number, version, draft)
    return visitor.page("restart.html", view=view, version=version)


@router.post("/task/{number:id}/events")
def record_events(number: int, visitor: CurrentVisitor) -> Response:
    reports = visitor.json.get("events", []) if isinstance(visitor.json, dict) else []
    if not isinstance(reports, list) or not all(isinstance(report, dict) for report in reports):
        raise InvalidInputError("expected a list of events", kind="event")
    listening_so_far = annotating.record(visitor.service, visitor.who, number, reports)
    duration_sec = views.task_view(visitor.service, visitor.who, number).song.duration_sec
    broken = listening.broken_rules(listening_so_far)
    message = "" if broken is None else refusal(broken, visitor.language)
    may_write = listening_so_far.may_write(duration_sec)
    return JSONResponse({**listening_so_far._asdict(), "writes": may_write, "told": message})
