"""Pages about people: accounts, new passwords, released tasks, withdrawal and grades."""

from __future__ import annotations

from typing import Final

from music_evals.caimap.web.app import Page, Request, Response
from music_evals.caimap.web.rerendering import rerender_on_error
from music_evals.caimap.work import accounts, managing, people, watching, weeks

__all__ = ["PEOPLE_PAGES"]


def _people(request: Request) -> Response:
    open_tasks: dict[int, list[watching.OpenTask]] = {}
    for open_task in watching.open_tasks(request.service, request.who):
        open_tasks.setdefault(open_task.task.person, []).append(open_task)
    values = {"people": people.people(request.service, request.who), "open_tasks": open_tasks}
    return Response("people.html", {**values, "reset_address": "", "of": 0})


def _reset(request: Request) -> Response:
    """Make the link by which somebody sets a new password, and show it once."""
    token = accounts.reset_link(request.service, request.who, request.path["person"])
    page = _people(request)
    values = {"reset_address": f"/new-password/{token}", "of": request.path["person"]}
    return page._replace(values={**(page.values or {}), **values})


def _sign_out(request: Request) -> None:
    accounts.end_sessions(request.service, request.who, request.path["person"])


def _release(request: Request) -> None:
    managing.release(request.service, request.who, request.path["number"])


def _withdrawal(request: Request) -> Response:
    by_name = accounts.is_confirmed_by_name(request.service, request.who)
    return Response("withdraw.html", {"fields": {}, "by_name": by_name, "person": request.path.get("person", 0)})


def _withdraw(request: Request) -> Response:
    """Withdraw oneself or, as an administrator, somebody who asked for it; whoever does it confirms it."""
    accounts.confirm(request.service, request.who, request.form.get("password", ""))
    person = request.path.get("person", request.who)
    managing.withdraw(request.service, request.who, person)
    if person == request.who:
        return Response(go_to="/sign-in", session="")
    return Response(go_to="/manage/people")


def _grades(request: Request) -> Response:
    values = {"grades": weeks.graded(request.service, request.who), "currency": people.currency(request.service)}
    return Response("grades.html", values)


def _new_password(request: Request) -> Response:
    return Response("new_password.html", {"token": request.path["token"], "fields": {}})


def _set_password(request: Request) -> Response:
    accounts.set_password(request.service, request.path["token"], request.form.get("password", ""))
    return Response(go_to="/sign-in")


PEOPLE_PAGES: Final = (
    Page("GET", "/withdraw", "ask", _withdrawal),
    Page("POST", "/withdraw", "ask", rerender_on_error(_withdrawal, _withdraw), guessable=True),
    Page("GET", "/new-password/{token}", "public", _new_password),
    Page("POST", "/new-password/{token}", "public", rerender_on_error(_new_password, _set_password), guessable=True),
    Page("GET", "/manage/people", "manage", _people),
    Page("POST", "/manage/person/{person:int}/reset", "manage", rerender_on_error(_people, _reset)),
    Page(
        "POST",
        "/manage/person/{person:int}/sign-out",
        "manage",
        rerender_on_error(_people, _sign_out, then="/manage/people"),
    ),
    Page("GET", "/manage/person/{person:int}/withdraw", "manage", _withdrawal),
    Page(
        "POST",
        "/manage/person/{person:int}/withdraw",
        "manage",
        rerender_on_error(_withdrawal, _withdraw),
        guessable=True,
    ),
    Page(
        "POST",
        "/manage/task/{number:int}/release",
        "manage",
        rerender_on_error(_people, _release, then="/manage/people"),
    ),
    Page("GET", "/manage/grades", "manage", _grades),
)
"""Of `pages.PAGES`."""
