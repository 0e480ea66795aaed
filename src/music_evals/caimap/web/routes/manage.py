"""Pages for administrators: songs, weeks, payments, people, what the study shows of its quality."""

from __future__ import annotations

import datetime as dt
import functools
from typing import Any, Final

from fastapi import APIRouter, Response, Security

from music_evals.annotations import DIMENSIONS
from music_evals.caimap.domain import ledger, machine, structure
from music_evals.caimap.domain.values import ROLES
from music_evals.caimap.exchange.reporting import agreement_values
from music_evals.caimap.services import accounts, inspecting, managing, oversight, people, training, views
from music_evals.caimap.web.forms import editor_values, structure_fields, structure_of
from music_evals.caimap.web.guards import number_of
from music_evals.caimap.web.routes.account import (
    CONFIRMED,
    show_ledger,
    show_training,
    show_withdrawal,
    withdraw_person,
)
from music_evals.caimap.web.routes.annotate import show_handed_in
from music_evals.caimap.web.routes.inspect import sheet_from_form, show_score_form
from music_evals.caimap.web.visitors import CurrentVisitor, Visitor, admit, redirect
from music_evals.errors import InvalidInputError

__all__ = ["ROUTERS"]

router: Final = APIRouter(dependencies=[Security(admit, scopes=["manage"])])
ROUTERS: Final = (router,)


# songs and weeks


def _numbers(visitor: Visitor) -> dict[str, Any]:
    progress = managing.progress(visitor.service, visitor.who)
    return {"progress": progress, "states": machine.states(machine.SONG), "currency": people.currency(visitor.service)}


def _show_management(visitor: Visitor, invitation: str = "") -> Response:
    ready = views.decisions(visitor.service, visitor.who)
    values = {"ready": ready, "roles": ROLES, "invitation": invitation, "fields": {}}
    return visitor.page("manage.html", **values, **_numbers(visitor))


@router.get("/manage")
def show_management(visitor: CurrentVisitor) -> Response:
    return _show_management(visitor)


@router.get("/manage/progress")
def show_progress(visitor: CurrentVisitor) -> Response:
    return visitor.page("progress.html", **_numbers(visitor))


@router.post("/manage/invite")
def invite(visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(_show_management, visitor))
    token = accounts.invite(visitor.service, visitor.who, visitor.form.get("role", ""))
    return _show_management(visitor, f"/invitation/{token}")


@router.post("/manage/screening/{song}")
def decide_screening(song: str, visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(_show_management, visitor))
    keep = visitor.form.get("decision") == "keep"
    managing.decide_screening(visitor.service, visitor.who, song, visitor.version, keep=keep)
    return redirect("/manage")


@router.post("/manage/song/{song}")
def review_song(song: str, visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(_show_management, visitor))
    decision = visitor.form.get("decision")
    returned = [group for group in DIMENSIONS if decision == f"return_{group}"]
    if not returned and decision != "finish":
        raise InvalidInputError("a song is let in, or one of its descriptions is returned", kind="kind_of_task")
    managing.review_song(visitor.service, visitor.who, song, visitor.version, returned=returned)
    return redirect("/manage")


@router.post("/manage/week")
def close_week(visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(_show_management, visitor))
    try:
        monday = dt.date.fromisoformat(visitor.form.get("monday", ""))
    except ValueError as error:
        raise InvalidInputError("a date is year-month-day", kind="date") from error
    managing.close_week(visitor.service, visitor.who, monday)
    return redirect("/manage")


@router.post("/ledger")
def add_ledger_entry(visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_ledger, visitor))
    form = visitor.form
    person, cents = (number_of(form.get(name, ""), name) for name in ("person", "cents"))
    entry = ledger.Entry(person, form.get("kind", ""), cents, form.get("reason", ""))
    managing.add_ledger_entry(visitor.service, visitor.who, entry)
    return redirect("/ledger")


@router.post("/training/songs")
def choose_songs(visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_training, visitor))
    training.choose_songs(visitor.service, visitor.who, number_of(visitor.form.get("songs", ""), "songs"))
    return redirect("/training")


@router.post("/training/round")
def begin_round(visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_training, visitor))
    training.new_round(visitor.service, visitor.who)
    return redirect("/training")


# people


def _show_people(visitor: Visitor, reset_address: str = "", of: int = 0) -> Response:
    open_tasks: dict[int, list[oversight.OpenTask]] = {}
    for open_task in oversight.open_tasks(visitor.service, visitor.who):
        open_tasks.setdefault(open_task.task.person, []).append(open_task)
    values = {"people": people.people(visitor.service, visitor.who), "open_tasks": open_tasks}
    return visitor.page("people.html", **values, reset_address=reset_address, of=of)


@router.get("/manage/people")
def show_people(visitor: CurrentVisitor) -> Response:
    return _show_people(visitor)


@router.post("/manage/person/{person:id}/reset")
def reset_password(person: int, visitor: CurrentVisitor) -> Response:
    """Make the link by which somebody sets a new password, and show it once."""
    visitor.rerenders(functools.partial(_show_people, visitor))
    token = accounts.reset_link(visitor.service, visitor.who, person)
    return _show_people(visitor, f"/new-password/{token}", person)


@router.post("/manage/person/{person:id}/sign-out")
def end_sessions(person: int, visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(_show_people, visitor))
    accounts.end_sessions(visitor.service, visitor.who, person)
    return redirect("/manage/people")


@router.post("/manage/task/{number:id}/release")
def release(number: int, visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(_show_people, visitor))
    managing.release(visitor.service, visitor.who, number)
    return redirect("/manage/people")


@router.get("/manage/person/{person:id}/withdraw")
def show_withdrawal_of(person: int, visitor: CurrentVisitor) -> Response:
    return show_withdrawal(visitor, person)


@router.post("/manage/person/{person:id}/withdraw", dependencies=CONFIRMED)
def withdraw(person: int, visitor: CurrentVisitor) -> Response:
    return withdraw_person(visitor, person)


@router.get("/manage/grades")
def show_grades(visitor: CurrentVisitor) -> Response:
    grades, currency = people.graded(visitor.service, visitor.who), people.currency(visitor.service)
    return visitor.page("grades.html", grades=grades, currency=currency)


# quality


@router.get("/manage/analytics")
def show_habits(visitor: CurrentVisitor) -> Response:
    return visitor.page("analytics.html", habits=oversight.habits(visitor.service, visitor.who))


@router.get("/manage/person/{person:id}")
def show_submissions(person: int, visitor: CurrentVisitor) -> Response:
    return visitor.page("person.html", tasks=oversight.submissions(visitor.service, visitor.who, person))


@router.get("/manage/task/{number:id}")
def show_submission(number: int, visitor: CurrentVisitor) -> Response:
    return show_handed_in(visitor, views.task_view(visitor.service, visitor.who, number))


@router.get("/manage/agreement")
def show_agreement(visitor: CurrentVisitor) -> Response:
    agreement = oversight.study_agreement(visitor.service, visitor.who)
    return visitor.page("agreement.html", **agreement_values(agreement, visitor.language))


@router.get("/manage/verify")
def show_verifications(visitor: CurrentVisitor) -> Response:
    sampled = oversight.verifications(visitor.service, visitor.who)
    return visitor.page("verify.html", sampled=sampled, settled=inspecting.settlements(visitor.service, visitor.who))


router.get("/manage/verify/{number:id}")(show_score_form)


@router.post("/manage/verify/{number:id}")
def verify(number: int, visitor: CurrentVisitor) -> Response:
    oversight.verify(visitor.service, sheet_from_form(number, visitor))
    return redirect("/manage/verify")


@router.get("/manage/settled/{song}")
def show_settled(song: str, visitor: CurrentVisitor) -> Response:
    """Render the passes and a form; what the inspector accepted is not shown, and after it was verified no form."""
    view = inspecting.unsettled(visitor.service, visitor.who, song)
    (verified,) = (row for row in inspecting.settlements(visitor.service, visitor.who) if row.song == song)
    rows = structure.differences(*view.passes) if len(view.passes) == 2 else []
    base = view.passes[0] if view.passes else structure.pre_annotated(view.song)
    values = {"view": view, "rows": rows, "verified": verified, "sent": []}
    return visitor.page("settled.html", **values, **editor_values(structure_fields(base)))


@router.post("/manage/settled/{song}")
def verify_settled(song: str, visitor: CurrentVisitor) -> Response:
    """Keep the verification, and show at once how far the two agree."""
    visitor.rerenders(functools.partial(show_settled, song, visitor))
    rows = inspecting.verify_settlement(visitor.service, visitor.who, song, structure_of(visitor.form))
    return visitor.page("settled_both.html", song=song, rows=rows)


@router.post("/manage/settled/{song}/rows")
def reformat_settled(song: str, visitor: CurrentVisitor) -> Response:
    return visitor.reformat_rows(functools.partial(show_settled, song, visitor))
