"""Pages for everybody who takes part: feedback, ledger, training, withdrawal, recordings."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Depends, Response, Security
from fastapi.responses import FileResponse, JSONResponse

from music_evals.caimap.domain import ledger
from music_evals.caimap.domain.assurance import MAX_SPREAD
from music_evals.caimap.domain.machine import RIGHTS, ForbiddenError
from music_evals.caimap.services import accounts, managing, people, training, views
from music_evals.caimap.web import waveforms
from music_evals.caimap.web.guards import number_of
from music_evals.caimap.web.visitors import CurrentVisitor, Visitor, admit, limit_guesses, redirect

__all__ = ["CONFIRMED", "ROUTERS", "show_ledger", "show_training", "show_withdrawal", "withdraw_person"]

router: Final = APIRouter(dependencies=[Security(admit, scopes=["ask"])])
ROUTERS: Final = (router,)

CONFIRMED: Final = [Depends(limit_guesses, scope="function")]
"""Dependencies of a page that takes the password of who is signed in."""


@router.get("/")
def show_home(visitor: CurrentVisitor) -> Response:
    role = visitor.visit.person.role if visitor.visit else ""
    response = redirect({"inspector": "/inspect", "administrator": "/manage"}.get(role, "/work"))
    visitor.keep_language(response)
    return response


@router.post("/sign-out")
def sign_out(visitor: CurrentVisitor) -> Response:
    accounts.sign_out_all(visitor.service, visitor.who)
    return visitor.signed_out()


@router.get("/feedback")
def show_feedback(visitor: CurrentVisitor) -> Response:
    return visitor.page("feedback.html", messages=views.messages(visitor.service, visitor.who), fields={})


@router.post("/feedback")
def post_message(visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_feedback, visitor))
    form = visitor.form
    number = number_of(form["thread"], "thread") if form.get("thread") else None
    content, place = form.get("content", ""), form.get("place", "")
    managing.post_message(visitor.service, visitor.who, content, thread=number, place=place)
    return visitor.page("said.html") if "here" in form else redirect("/feedback")


@router.get("/ledger")
def show_ledger(visitor: CurrentVisitor) -> Response:
    """Render the entries of the ledger that a person may see."""
    entries, currency = managing.ledger_of(visitor.service, visitor.who), people.currency(visitor.service)
    values = {"entries": entries, "owed": ledger.balances(entries), "currency": currency}
    return visitor.page("ledger.html", **values, kinds=ledger.ENTRY_KINDS, fields={})


@router.get("/ledger.csv")
def download_ledger(visitor: CurrentVisitor) -> Response:
    text = ledger.ledger_csv(managing.ledger_of(visitor.service, visitor.who))
    return Response(text, media_type="text/csv", headers={"Content-Disposition": 'attachment; filename="ledger.csv"'})


# recordings


def _recording(number: int, visitor: Visitor) -> Path:
    """Return the recording of a task's song."""
    audio: Path = visitor.request.app.state.audio
    name = views.task_view(visitor.service, visitor.who, number).song.audio
    path = (audio / name).resolve()
    if not name or not path.is_relative_to(audio.resolve()) or not path.is_file():
        raise ForbiddenError("this song has no recording", kind="no_recording")
    return path


@router.get("/task/{number:id}/audio")
def send_recording(number: int, visitor: CurrentVisitor) -> Response:
    return FileResponse(_recording(number, visitor))


@router.get("/task/{number:id}/waveform")
def send_peaks(number: int, visitor: CurrentVisitor) -> Response:
    audio: Path = visitor.request.app.state.audio
    return JSONResponse({"peaks": waveforms.kept_peaks(_recording(number, visitor), audio.with_name("waveforms"))})


# training


def show_training(visitor: Visitor, of: int = 0) -> Response:
    """Render the training; `of` is the item whose discussion was refused."""
    practice = training.practice(visitor.service, visitor.who)
    values: dict[str, Any] = {"practice": practice, "most": MAX_SPREAD, "fields": {}, "sent": [], "of": of}
    if visitor.visit and visitor.visit.person.role in RIGHTS["judge"]:
        judged = practice.judged
        missed = {item for item, _ in judged.missing} if judged else set()
        values["models"] = training.models(visitor.service, visitor.who)
        values["open_items"] = [item for item in judged.discussed if item not in missed] if judged else []
        values["threads"] = training.discussions(visitor.service, visitor.who)
    return visitor.page("training.html", **values, lessons=training.lessons(visitor.service, visitor.who))


@router.get("/training")
def show_own_training(visitor: CurrentVisitor) -> Response:
    return show_training(visitor)


@router.get("/training/lesson/{number:id}")
def show_lesson(number: int, visitor: CurrentVisitor) -> Response:
    """Lay a structure beside that by which it is judged."""
    rows = training.lesson(visitor.service, visitor.who, number)
    (lesson,) = (lesson for lesson in training.lessons(visitor.service, visitor.who) if lesson.task == number)
    view = views.task_view(visitor.service, visitor.who, number)
    return visitor.page("lesson.html", view=view, lesson=lesson, rows=rows)


# withdrawal


def show_withdrawal(visitor: Visitor, person: int | None = None) -> Response:
    """Render the form by which somebody withdraws, or an administrator withdraws a person."""
    by_name = accounts.is_confirmed_by_name(visitor.service, visitor.who)
    return visitor.page("withdraw.html", fields={}, by_name=by_name, person=person or 0)


def withdraw_person(visitor: Visitor, person: int | None = None) -> Response:
    """Withdraw oneself or, as an administrator, somebody who asked for it; whoever does it confirms it."""
    visitor.rerenders(functools.partial(show_withdrawal, visitor, person))
    accounts.confirm(visitor.service, visitor.who, visitor.form.get("password", ""))
    leaving = visitor.who if person is None else person
    managing.withdraw(visitor.service, visitor.who, leaving)
    return visitor.signed_out() if leaving == visitor.who else redirect("/manage/people")


@router.get("/withdraw")
def show_own_withdrawal(visitor: CurrentVisitor) -> Response:
    return show_withdrawal(visitor)


@router.post("/withdraw", dependencies=CONFIRMED)
def withdraw(visitor: CurrentVisitor) -> Response:
    return withdraw_person(visitor)
