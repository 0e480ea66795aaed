"""The page on which a description is scored, by whom and for what ever: its values, and the sheet of its form."""

from __future__ import annotations

from music_evals.annotations import DIMENSIONS
from music_evals.caimap import assurance
from music_evals.caimap.values import ScoreSheet
from music_evals.caimap.web.app import Answer, Asked
from music_evals.caimap.web.forms import sheet_of
from music_evals.caimap.work import views
from music_evals.errors import InvalidInputError

__all__ = ["asked_sheet", "score_page"]


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
