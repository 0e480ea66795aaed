"""Pages of the training: practice, structures judged, their models, items scored and discussed."""

from __future__ import annotations

from typing import Any, Final

from music_evals.annotations import DIMENSIONS
from music_evals.caimap import assurance, structure
from music_evals.caimap.roles import RIGHTS
from music_evals.caimap.training import MAX_SPREAD
from music_evals.caimap.values import ScoreSheet, Task
from music_evals.caimap.web.app import Page, Request, Response
from music_evals.caimap.web.forms import editor_values, sheet_of, structure_fields, structure_of
from music_evals.caimap.web.guards import number_of
from music_evals.caimap.web.rerendering import reformat_rows, rerender_on_error
from music_evals.caimap.work import annotating, lessons, practising, views
from music_evals.errors import InvalidInputError

__all__ = ["TRAINING_PAGES", "opened", "score_page", "sheet_from_form"]


def score_page(request: Request) -> Response:
    """Show a description with the form of its points.

    Raises
    ------
    ForbiddenError
        The task is not theirs to see.
    InvalidInputError
        It is not a description that was handed in, or its author has withdrawn.

    """
    view = views.task_view(request.service, request.who, request.path["number"])
    if view.result is None or view.task.kind not in assurance.FORMS:
        raise InvalidInputError("only descriptions that were handed in are scored", kind="only_descriptions")
    values = {
        "action": request.address,
        "form": assurance.FORMS[view.task.kind],
        "parts": assurance.PARTS,
        "mark": f"{assurance.PASS_MARK:g}",
        "dimensions": DIMENSIONS[view.task.kind],
    }
    return Response("score.html", {"view": view, "fields": {}, **values}, waveform=True)


def sheet_from_form(request: Request) -> ScoreSheet:
    """Read the scoring form of a description.

    Raises
    ------
    ForbiddenError
        The task is not theirs to see.
    InvalidInputError
        It is no description, or a field is empty or no number.

    """
    group = views.task_view(request.service, request.who, request.path["number"]).task.kind
    if group not in assurance.FORMS:
        raise InvalidInputError("only descriptions are scored", kind="only_descriptions")
    return sheet_of(request.form, group, request.path["number"], request.who)


def _training(request: Request) -> Response:
    practice = practising.practice(request.service, request.who)
    values: dict[str, Any] = {"practice": practice, "most": MAX_SPREAD, "fields": {}, "sent": []}
    values |= {"lessons": lessons.lessons(request.service, request.who), "of": request.path.get("number", 0)}
    if request.visit and request.visit.person.role in RIGHTS["judge"]:
        values["models"] = lessons.models(request.service, request.who)
        missed = {item for item, _ in practice.judged.missing} if practice.judged else set()
        values["open_items"] = (
            [item for item in practice.judged.discussed if item not in missed] if practice.judged else []
        )
        values["threads"] = lessons.discussions(request.service, request.who)
    return Response("training.html", values)


def opened(request: Request, task: Task | None, otherwise: str) -> Response:
    """Begin a task and redirect to its page, or elsewhere if there is no task."""
    if task is not None:
        annotating.open_task(request.service, request.who, task.id)
    return Response(go_to=otherwise if task is None else f"/task/{task.id}")


def _practise(request: Request) -> Response:
    return opened(request, practising.take_training(request.service, request.who), "/training")


def _choose_songs(request: Request) -> None:
    practising.choose_songs(request.service, request.who, number_of(request.form.get("songs", ""), "songs"))


def _new_round(request: Request) -> None:
    practising.new_round(request.service, request.who)


def _score(request: Request) -> None:
    practising.score_item(request.service, sheet_from_form(request))


def _lesson(request: Request) -> Response:
    """Lay a structure beside that by which it is judged."""
    number = request.path["number"]
    rows = lessons.lesson(request.service, request.who, number)
    (lesson,) = (lesson for lesson in lessons.lessons(request.service, request.who) if lesson.task == number)
    view = views.task_view(request.service, request.who, number)
    return Response("lesson.html", {"view": view, "lesson": lesson, "rows": rows}, waveform=True)


def _model(request: Request) -> Response:
    """Show the form of what passes of a song are judged by: what was accepted, or what an annotator begins with."""
    song = request.path["song"]
    model = next((row for row in lessons.models(request.service, request.who) if row.song.id == song), None)
    if model is None:
        raise InvalidInputError("this song is not of the training", kind="no_training_song")
    passes = [lesson.task for lesson in lessons.lessons(request.service, request.who) if lesson.song == song]
    base = model.accepted or structure.pre_annotated(model.song)
    values = {"view": model, "recorded": passes[0] if passes else 0, "sent": []}
    values["choice"] = request.address.removesuffix("/rows")
    return Response("model.html", values | editor_values(structure_fields(base)), waveform=True)


def _set_model(request: Request) -> None:
    lessons.set_model(request.service, request.who, request.path["song"], request.version, structure_of(request.form))


def _discuss(request: Request) -> None:
    lessons.discuss(request.service, request.who, request.path["number"], request.form.get("content", ""))


TRAINING_PAGES: Final = (
    Page("GET", "/training", "ask", _training),
    Page("POST", "/training/next", "annotate", _practise),
    Page("POST", "/training/songs", "manage", rerender_on_error(_training, _choose_songs, then="/training")),
    Page("POST", "/training/round", "manage", rerender_on_error(_training, _new_round, then="/training")),
    Page("GET", "/training/task/{number:int}", "inspect", score_page),
    Page("POST", "/training/task/{number:int}", "inspect", rerender_on_error(score_page, _score, then="/training")),
    Page("GET", "/training/lesson/{number:int}", "ask", _lesson),
    Page("GET", "/training/song/{song}", "inspect", _model),
    Page("POST", "/training/song/{song}", "inspect", rerender_on_error(_model, _set_model, then="/training")),
    Page("POST", "/training/song/{song}/rows", "inspect", reformat_rows(_model)),
    Page(
        "POST",
        "/training/item/{number:int}/discussion",
        "judge",
        rerender_on_error(_training, _discuss, then="/training"),
    ),
)
"""Of `pages.PAGES`."""
