"""Pages of the training: practice, structures judged, their models, items scored and discussed."""

from __future__ import annotations

from typing import Any, Final

from music_evals.annotations import DIMENSIONS
from music_evals.caimap import assurance, structure
from music_evals.caimap.roles import RIGHTS
from music_evals.caimap.training import MAX_SPREAD
from music_evals.caimap.values import ScoreSheet, Task
from music_evals.caimap.web.app import Answer, Asked, Page
from music_evals.caimap.web.forms import editor_values, sheet_of, structure_fields, structure_of
from music_evals.caimap.web.guards import number_of
from music_evals.caimap.web.keeping import arranged, kept
from music_evals.caimap.work import annotating, lessons, practising, views
from music_evals.errors import InvalidInputError

__all__ = ["TRAINING_PAGES", "asked_sheet", "opened", "score_page"]


def score_page(asked: Asked) -> Answer:
    """Show a description with the form of its points.

    Raises
    ------
    ForbiddenError
        The task is not theirs to see.
    InvalidInputError
        It is no description that was handed in, or whoever wrote it has withdrawn.

    """
    seen = views.task_view(asked.desk, asked.who, asked.path["number"])
    if seen.result is None or seen.task.kind not in assurance.FORMS:
        raise InvalidInputError("only descriptions that were handed in are scored", kind="only_descriptions")
    values = {
        "action": asked.address,
        "form": assurance.FORMS[seen.task.kind],
        "parts": assurance.PARTS,
        "mark": f"{assurance.PASS_MARK:g}",
        "dimensions": DIMENSIONS[seen.task.kind],
    }
    return Answer("score.html", {"seen": seen, "fields": {}, **values}, waveform=True)


def asked_sheet(asked: Asked) -> ScoreSheet:
    """Read the scoring form of a description.

    Raises
    ------
    ForbiddenError
        The task is not theirs to see.
    InvalidInputError
        It is no description, or a field is empty or no number.

    """
    group = views.task_view(asked.desk, asked.who, asked.path["number"]).task.kind
    if group not in assurance.FORMS:
        raise InvalidInputError("only descriptions are scored", kind="only_descriptions")
    return sheet_of(asked.form, group, asked.path["number"], asked.who)


def _training(asked: Asked) -> Answer:
    found = practising.practice(asked.desk, asked.who)
    values: dict[str, Any] = {"practice": found, "most": MAX_SPREAD, "fields": {}, "sent": []}
    values |= {"lessons": lessons.lessons(asked.desk, asked.who), "of": asked.path.get("number", 0)}
    if asked.visit and asked.visit.person.role in RIGHTS["judge"]:
        values["models"] = lessons.models(asked.desk, asked.who)
        missed = {item for item, _ in found.judged.missing} if found.judged else set()
        values["open_items"] = [item for item in found.judged.discussed if item not in missed] if found.judged else []
        values["threads"] = lessons.discussions(asked.desk, asked.who)
    return Answer("training.html", values)


def opened(asked: Asked, task: Task | None, otherwise: str) -> Answer:
    """Begin a task and go to its page, or elsewhere where there is none."""
    if task is not None:
        annotating.open_task(asked.desk, asked.who, task.id)
    return Answer(go_to=otherwise if task is None else f"/task/{task.id}")


def _practise(asked: Asked) -> Answer:
    return opened(asked, practising.take_training(asked.desk, asked.who), "/training")


def _choose_songs(asked: Asked) -> None:
    practising.choose_songs(asked.desk, asked.who, number_of(asked.form.get("songs", ""), "songs"))


def _new_round(asked: Asked) -> None:
    practising.new_round(asked.desk, asked.who)


def _score(asked: Asked) -> None:
    practising.score_item(asked.desk, asked_sheet(asked))


def _lesson(asked: Asked) -> Answer:
    """Lay a structure beside that by which it is judged."""
    number = asked.path["number"]
    rows = lessons.lesson(asked.desk, asked.who, number)
    (judged,) = (one for one in lessons.lessons(asked.desk, asked.who) if one.task == number)
    seen = views.task_view(asked.desk, asked.who, number)
    return Answer("lesson.html", {"seen": seen, "judged": judged, "rows": rows}, waveform=True)


def _model(asked: Asked) -> Answer:
    """Show the form of what passes of a song are judged by: what was accepted, or what an annotator begins with."""
    song = asked.path["song"]
    seen = next((one for one in lessons.models(asked.desk, asked.who) if one.song.id == song), None)
    if seen is None:
        raise InvalidInputError("this song is not of the training", kind="no_training_song")
    passes = [one.task for one in lessons.lessons(asked.desk, asked.who) if one.song == song]
    base = seen.accepted or structure.pre_annotated(seen.song)
    values = {"seen": seen, "recorded": passes[0] if passes else 0, "sent": []}
    values["choice"] = asked.address.removesuffix("/rows")
    return Answer("model.html", values | editor_values(structure_fields(base)), waveform=True)


def _set_model(asked: Asked) -> None:
    lessons.set_model(asked.desk, asked.who, asked.path["song"], asked.version, structure_of(asked.form))


def _discuss(asked: Asked) -> None:
    lessons.discuss(asked.desk, asked.who, asked.path["number"], asked.form.get("content", ""))


TRAINING_PAGES: Final = (
    Page("GET", "/training", "ask", _training),
    Page("POST", "/training/next", "annotate", _practise),
    Page("POST", "/training/songs", "manage", kept(_training, _choose_songs, then="/training")),
    Page("POST", "/training/round", "manage", kept(_training, _new_round, then="/training")),
    Page("GET", "/training/task/{number:int}", "inspect", score_page),
    Page("POST", "/training/task/{number:int}", "inspect", kept(score_page, _score, then="/training")),
    Page("GET", "/training/lesson/{number:int}", "ask", _lesson),
    Page("GET", "/training/song/{song}", "inspect", _model),
    Page("POST", "/training/song/{song}", "inspect", kept(_model, _set_model, then="/training")),
    Page("POST", "/training/song/{song}/rows", "inspect", arranged(_model)),
    Page("POST", "/training/item/{number:int}/discussion", "judge", kept(_training, _discuss, then="/training")),
)
"""Of `pages.PAGES`."""
