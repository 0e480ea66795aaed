"""Pages for everybody: signing in, invitations, new passwords, languages."""

from __future__ import annotations

import functools
from typing import Final

from fastapi import APIRouter, Depends, Response, Security

from music_evals.caimap.services import accounts
from music_evals.caimap.web.visitors import CurrentVisitor, admit, limit_guesses_of_strangers, redirect
from music_evals.caimap.web.words import LANGUAGES
from music_evals.errors import InvalidInputError

__all__ = ["GUESSABLE", "ROUTERS", "show_invitation"]

router: Final = APIRouter(dependencies=[Security(admit, scopes=["public"])])
ROUTERS: Final = (router,)

GUESSABLE: Final = [Depends(limit_guesses_of_strangers, scope="function")]
"""Dependencies of a page that takes a secret: a password, or the token of a link."""


@router.get("/sign-in")
def show_sign_in(visitor: CurrentVisitor) -> Response:
    return visitor.page("sign_in.html", fields={})


@router.post("/sign-in", dependencies=GUESSABLE)
def sign_in(visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_sign_in, visitor))
    token = accounts.sign_in(visitor.service, visitor.form.get("name", ""), visitor.form.get("password", ""))
    visit = accounts.visit(visitor.service, token)
    response = redirect("/")
    visitor.begin_session(response, token)
    visitor.keep_language(response, visit.language if visit else "")
    return response


@router.get("/invitation/{token}")
def show_invitation(token: str, visitor: CurrentVisitor) -> Response:
    """Render the form of an invitation."""
    return visitor.page("invitation.html", fields={}, token=token)


@router.post("/invitation/{token}", dependencies=GUESSABLE)
def accept_invitation(token: str, visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_invitation, token, visitor))
    form = visitor.form
    name, password, consents = form.get("name", ""), form.get("password", ""), "consents" in form
    person = accounts.accept(visitor.service, token, name, password, consents=consents)
    accounts.set_language(visitor.service, person, visitor.language)
    return redirect("/sign-in")


@router.get("/new-password/{token}")
def show_new_password(token: str, visitor: CurrentVisitor) -> Response:
    return visitor.page("new_password.html", token=token, fields={})


@router.post("/new-password/{token}", dependencies=GUESSABLE)
def set_password(token: str, visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_new_password, token, visitor))
    accounts.set_password(visitor.service, token, visitor.form.get("password", ""))
    return redirect("/sign-in")


@router.post("/language")
def choose_language(visitor: CurrentVisitor) -> Response:
    """Keep the language of an account, or of a browser, and go back to where its reader was."""
    language, path = visitor.form.get("language", ""), visitor.form.get("to", "")
    if language not in LANGUAGES:
        raise InvalidInputError(f"a language must be one of {', '.join(LANGUAGES)}, got {language!r}", kind="language")
    if visitor.visit is not None:
        accounts.set_language(visitor.service, visitor.who, language)
    readable = visitor.request.app.state.readable
    # where a form was refused, its page is above
    while path and not any(pattern.fullmatch(path) for pattern in readable):
        path = path.rpartition("/")[0]
    response = redirect(path or "/")
    visitor.keep_language(response, language)
    return response
