"""Pages for inspectors: structures settled, descriptions scored, and what the training is judged by."""

from __future__ import annotations

import functools
from typing import Any, Final

from fastapi import APIRouter, Response, Security

from music_evals.annotations import DIMENSIONS
from music_evals.caimap.domain import assurance, structure
from music_evals.caimap.domain.values import ScoreSheet
from music_evals.caimap.services import inspecting, training, views
from music_evals.caimap.web.forms import editor_values, structure_fields, structure_of
from music_evals.caimap.web.routes.account import show_training
from music_evals.caimap.web.visitors import CurrentVisitor, Visitor, admit, redirect
from music_evals.errors import InvalidAnnotationError, InvalidInputError

__all__ = ["ROUTERS", "sheet_from_form", "show_score_form"]

router: Final = APIRouter(dependencies=[Security(admit, scopes=["inspect"])])
judges: Final = APIRouter(dependencies=[Security(admit, scopes=["judge"])])
ROUTERS: Final = (router, judges)


@router.get("/inspect")
def show_waiting(visitor: CurrentVisitor) -> Response:
    songs, tasks = inspecting.waiting(visitor.service, visitor.who)
    return visitor.page("inspect.html", songs=songs, tasks=tasks)


@router.get("/inspect/song/{song}")
def show_song(song: str, visitor: CurrentVisitor) -> Response:
    view = views.song_view(visitor.service, visitor.who, song)
    first, second = view.passes
    base = second if visitor.request.query_params.get("base") == "second" else first
    values: dict[str, Any] = {"view": view, "rows": structure.differences(first, second)}
    if view.accepted is not None:  # it stays, and is laid beside what somebody else wrote
        base, values["choice"] = view.accepted, ""
    return visitor.page("settle.html", **values, **editor_values(structure_fields(base)))


@router.post("/inspect/song/{song}")
def settle(song: str, visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_song, song, visitor))
    inspecting.settle(visitor.service, visitor.who, song, visitor.version, structure_of(visitor.form))
    return redirect("/inspect")


@router.post("/inspect/song/{song}/rows")
def reformat_song(song: str, visitor: CurrentVisitor) -> Response:
    return visitor.reformat_rows(functools.partial(show_song, song, visitor))


# points


def show_score_form(number: int, visitor: CurrentVisitor) -> Response:
    """Render a description with the form of its points."""
    view = views.task_view(visitor.service, visitor.who, number)
    if view.result is None or view.task.kind not in assurance.FORMS:
        raise InvalidInputError("only descriptions that were handed in are scored", kind="only_descriptions")
    return visitor.page(
        "score.html",
        view=view,
        fields={},
        action=visitor.address,
        form=assurance.FORMS[view.task.kind],
        parts=assurance.PARTS,
        mark=f"{assurance.PASS_MARK:g}",
        dimensions=DIMENSIONS[view.task.kind],
    )


def sheet_from_form(number: int, visitor: Visitor) -> ScoreSheet:
    """Read the points of a description; refused, its page is rendered again."""
    visitor.rerenders(functools.partial(show_score_form, number, visitor))
    group = views.task_view(visitor.service, visitor.who, number).task.kind
    if group not in assurance.FORMS:
        raise InvalidInputError("only descriptions are scored", kind="only_descriptions")
    # read a scoring form
    points: dict[tuple[str, str], float] = {}
    for row, part in assurance.FORMS[group]:
        try:
            points[row, part] = float(visitor.form.get(f"{row}.{part}", ""))
        except ValueError as error:
            raise InvalidAnnotationError(
                f"{row}, {part}: points are a number", kind="points_number", row=row, part=part
            ) from error
    return ScoreSheet(number, visitor.who, points, visitor.form.get("remark", ""))


router.get("/inspect/task/{number:id}")(show_score_form)
router.get("/training/task/{number:id}")(show_score_form)


@router.post("/inspect/task/{number:id}")
def score(number: int, visitor: CurrentVisitor) -> Response:
    inspecting.score(visitor.service, sheet_from_form(number, visitor), visitor.version)
    return redirect("/inspect")


# training


@router.post("/training/task/{number:id}")
def score_item(number: int, visitor: CurrentVisitor) -> Response:
    training.score_item(visitor.service, sheet_from_form(number, visitor))
    return redirect("/training")


@router.get("/training/song/{song}")
def show_model(song: str, visitor: CurrentVisitor) -> Response:
    """Render the form of what passes of a song are judged by: what was accepted, or what an annotator begins with."""
    model = next((row for row in training.models(visitor.service, visitor.who) if row.song.id == song), None)
    if model is None:
        raise InvalidInputError("this song is not of the training", kind="no_training_song")
    passes = [lesson.task for lesson in training.lessons(visitor.service, visitor.who) if lesson.song == song]
    base = model.accepted or structure.pre_annotated(model.song)
    values = {"view": model, "recorded": passes[0] if passes else 0, "sent": []}
    choice = visitor.address.removesuffix("/rows")
    return visitor.page("model.html", **values, choice=choice, **editor_values(structure_fields(base)))


@router.post("/training/song/{song}")
def set_model(song: str, visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_model, song, visitor))
    training.set_model(visitor.service, visitor.who, song, visitor.version, structure_of(visitor.form))
    return redirect("/training")


@router.post("/training/song/{song}/rows")
def reformat_model(song: str, visitor: CurrentVisitor) -> Response:
    return visitor.reformat_rows(functools.partial(show_model, song, visitor))


@judges.post("/training/item/{number:id}/discussion")
def discuss(number: int, visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_training, visitor, number))
    training.discuss(visitor.service, visitor.who, number, visitor.form.get("content", ""))
    return redirect("/training")
