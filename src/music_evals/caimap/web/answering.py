"""What a browser gets of an answer: a page, a part of one, a file or plain values; and the cookies that go with it."""

from __future__ import annotations

import html
import secrets
from typing import TYPE_CHECKING, Final

from music_evals.caimap.web.hardening import POLICY, with_nonce
from music_evals.caimap.web.rendering import render
from music_evals.caimap.web.words import LANGUAGE_COOKIE
from music_evals.caimap.work import identities

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from music_evals.caimap.web.app import Answer, Asked
    from music_evals.caimap.web.provider import Provider

__all__ = ["ATTEMPT_COOKIE", "COOKIE", "attempt_cookie", "is_secure", "respond"]

COOKIE: Final = "caimap_session"
"""Holds the token of a session; no script reads it, no other site sends it."""

ATTEMPT_COOKIE: Final = "caimap_sign_in"
"""Holds the secret of a sign-in with a provider; it comes along when the provider sends the browser back."""

_YEAR_SEC: Final = 31_536_000


def respond(answer: Answer, request: Request, asked: Asked) -> Response:
    """Return what the browser gets, with its cookies."""
    from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse

    made: Response
    if request.headers.get("hx-request") == "true" and (answer.go_to or answer.status >= 400):
        made = _part(answer)  # what is asked for a part of a page is no place for a whole one
    elif answer.go_to:
        made = RedirectResponse(answer.go_to, 303)
    elif answer.file is not None:
        made = FileResponse(answer.file)
    elif answer.download is not None:
        name, text = answer.download
        made = PlainTextResponse(
            text, media_type="text/csv", headers={"Content-Disposition": f'attachment; filename="{name}"'}
        )
    elif answer.template:
        nonce = secrets.token_urlsafe(16) if answer.waveform else ""
        shown = {
            "visit": asked.visit, "message": "", "nonce": nonce, "address": asked.address,
            "has_provider": asked.provider is not None,
        }  # fmt: skip
        page = render(answer.template, asked.language, **{**shown, **(answer.values or {})})
        made = HTMLResponse(page, answer.status)
        if nonce:
            made.headers[POLICY] = with_nonce(nonce)
    else:
        made = JSONResponse(dict(answer.values or {}), answer.status)
    _set_cookies(made, answer, asked, secure=is_secure(request, asked.provider))
    return made


def _part(answer: Answer) -> Response:
    """Answer a part of a page that asked: it goes elsewhere whole, or says why it was refused and keeps what it has."""
    from starlette.responses import HTMLResponse

    if answer.go_to:
        return HTMLResponse("", headers={"HX-Redirect": answer.go_to})
    message = html.escape(str((answer.values or {}).get("message", "")))
    shown = f'<p class="message" role="alert">{message}</p>'
    return HTMLResponse(shown, answer.status, headers={"HX-Reswap": "beforeend"})


def _set_cookies(made: Response, answer: Answer, asked: Asked, *, secure: bool) -> None:
    if answer.session:
        made.set_cookie(COOKIE, answer.session, httponly=True, samesite="strict", secure=secure, path="/")
    elif answer.session is not None:
        made.delete_cookie(COOKIE, path="/")
    language = answer.language or (asked.language if asked.query.get("language") == asked.language else "")
    if language:  # lax: whoever follows a link from elsewhere reads the language of before
        made.set_cookie(LANGUAGE_COOKIE, language, _YEAR_SEC, httponly=True, samesite="lax", secure=secure, path="/")
    name = attempt_cookie(secure=secure)
    if answer.attempt:
        # lax: the provider sends the browser back from another site
        span = int(identities.ATTEMPT.total_seconds())
        made.set_cookie(name, answer.attempt, span, httponly=True, samesite="lax", secure=secure, path="/")
    elif answer.attempt is not None:
        made.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")


def is_secure(request: Request, provider: Provider | None) -> bool:
    """Tell whether browsers reach the study over TLS, perhaps by a proxy that does not say so."""
    return request.url.scheme == "https" or (provider is not None and provider.address.startswith("https://"))


def attempt_cookie(*, secure: bool) -> str:
    """Return the name of the cookie; with the prefix no site beside ours can set it."""
    return f"__Host-{ATTEMPT_COOKIE}" if secure else ATTEMPT_COOKIE
