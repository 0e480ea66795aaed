"""Pages about people: accounts, new passwords, released tasks, withdrawal and grades."""

from __future__ import annotations

from typing import Final

from music_evals.caimap.web.app import Answer, Asked, Page
from music_evals.caimap.web.keeping import kept
from music_evals.caimap.work import accounts, managing, people, watching, weeks

__all__ = ["PEOPLE_PAGES"]


def _people(asked: Asked) -> Answer:
    open_tasks: dict[int, list[watching.OpenTask]] = {}
    for one in watching.open_tasks(asked.desk, asked.who):
        open_tasks.setdefault(one.task.person, []).append(one)
    shown = {"people": people.people(asked.desk, asked.who), "open_tasks": open_tasks}
    return Answer("people.html", {**shown, "reset_address": "", "of": 0})


def _reset(asked: Asked) -> Answer:
    """Make the link by which somebody sets a new password, and show it once."""
    token = accounts.reset_link(asked.desk, asked.who, asked.path["person"])
    page = _people(asked)
    shown = {"reset_address": f"/new-password/{token}", "of": asked.path["person"]}
    return page._replace(values={**(page.values or {}), **shown})


def _sign_out(asked: Asked) -> None:
    accounts.end_sessions(asked.desk, asked.who, asked.path["person"])


def _release(asked: Asked) -> None:
    managing.release(asked.desk, asked.who, asked.path["number"])


def _withdrawal(asked: Asked) -> Answer:
    by_name = accounts.is_confirmed_by_name(asked.desk, asked.who)
    return Answer("withdraw.html", {"fields": {}, "by_name": by_name, "person": asked.path.get("person", 0)})


def _withdraw(asked: Asked) -> Answer:
    """Withdraw oneself or, as an administrator, somebody who asked for it; whoever does it confirms it."""
    accounts.confirm(asked.desk, asked.who, asked.form.get("password", ""))
    person = asked.path.get("person", asked.who)
    managing.withdraw(asked.desk, asked.who, person)
    if person == asked.who:
        return Answer(go_to="/sign-in", session="")
    return Answer(go_to="/manage/people")


def _grades(asked: Asked) -> Answer:
    shown = {"grades": weeks.graded(asked.desk, asked.who), "currency": people.currency(asked.desk)}
    return Answer("grades.html", shown)


def _new_password(asked: Asked) -> Answer:
    return Answer("new_password.html", {"token": asked.path["token"], "fields": {}})


def _set_password(asked: Asked) -> Answer:
    accounts.set_password(asked.desk, asked.path["token"], asked.form.get("password", ""))
    return Answer(go_to="/sign-in")


PEOPLE_PAGES: Final = (
    Page("GET", "/withdraw", "ask", _withdrawal),
    Page("POST", "/withdraw", "ask", kept(_withdrawal, _withdraw), guessable=True),
    Page("GET", "/new-password/{token}", "public", _new_password),
    Page("POST", "/new-password/{token}", "public", kept(_new_password, _set_password), guessable=True),
    Page("GET", "/manage/people", "manage", _people),
    Page("POST", "/manage/person/{person:int}/reset", "manage", kept(_people, _reset)),
    Page("POST", "/manage/person/{person:int}/sign-out", "manage", kept(_people, _sign_out, then="/manage/people")),
    Page("GET", "/manage/person/{person:int}/withdraw", "manage", _withdrawal),
    Page("POST", "/manage/person/{person:int}/withdraw", "manage", kept(_withdrawal, _withdraw), guessable=True),
    Page("POST", "/manage/task/{number:int}/release", "manage", kept(_people, _release, then="/manage/people")),
    Page("GET", "/manage/grades", "manage", _grades),
)
"""Of `pages.PAGES`."""
