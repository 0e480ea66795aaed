"""HTTP responses of pages: a page, a part of one, a file or JSON values; and their cookies."""

from __future__ import annotations

import html
import secrets
from typing import TYPE_CHECKING, Final

from music_evals.caimap.web.hardening import POLICY, with_nonce
from music_evals.caimap.web.rendering import render
from music_evals.caimap.web.words import LANGUAGE_COOKIE
from music_evals.caimap.work import identities

if TYPE_CHECKING:
    import starlette.requests
    import starlette.responses

    from music_evals.caimap.web.app import Request, Response
    from music_evals.caimap.web.provider import Provider

__all__ = ["ATTEMPT_COOKIE", "COOKIE", "attempt_cookie", "is_secure", "respond"]

COOKIE: Final = "caimap_session"
"""Holds the token of a session; no script reads it, no other site sends it."""

ATTEMPT_COOKIE: Final = "caimap_sign_in"
"""Holds the secret of a sign-in with a provider; it comes along when the provider sends the browser back."""

_YEAR_SEC: Final = 31_536_000


def respond(
    response: Response, http_request: starlette.requests.Request, request: Request
) -> starlette.responses.Response:
    """Return the HTTP response of a page, with its cookies."""
    from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse

    http_response: starlette.responses.Response
    if http_request.headers.get("hx-request") == "true" and (response.go_to or response.status >= 400):
        http_response = _part(response)  # htmx would put a whole page into the part that it requested
    elif response.go_to:
        http_response = RedirectResponse(response.go_to, 303)
    elif response.file is not None:
        http_response = FileResponse(response.file)
    elif response.download is not None:
        name, text = response.download
        http_response = PlainTextResponse(
            text, media_type="text/csv", headers={"Content-Disposition": f'attachment; filename="{name}"'}
        )
    elif response.template:
        nonce = secrets.token_urlsafe(16) if response.waveform else ""
        shared = {
            "visit": request.visit, "message": "", "nonce": nonce, "address": request.address,
            "has_provider": request.provider is not None,
        }  # fmt: skip
        page = render(response.template, request.language, **{**shared, **(response.values or {})})
        http_response = HTMLResponse(page, response.status)
        if nonce:
            http_response.headers[POLICY] = with_nonce(nonce)
    else:
        http_response = JSONResponse(dict(response.values or {}), response.status)
    _set_cookies(http_response, response, request, secure=is_secure(http_request, request.provider))
    return http_response


def _part(response: Response) -> starlette.responses.Response:
    """Return the response to a part of a page (htmx): a redirect of the whole page, or a message below the part."""
    from starlette.responses import HTMLResponse

    if response.go_to:
        return HTMLResponse("", headers={"HX-Redirect": response.go_to})
    message = html.escape(str((response.values or {}).get("message", "")))
    paragraph = f'<p class="message" role="alert">{message}</p>'
    return HTMLResponse(paragraph, response.status, headers={"HX-Reswap": "beforeend"})


def _set_cookies(
    http_response: starlette.responses.Response, response: Response, request: Request, *, secure: bool
) -> None:
    if response.session:
        http_response.set_cookie(COOKIE, response.session, httponly=True, samesite="strict", secure=secure, path="/")
    elif response.session is not None:
        http_response.delete_cookie(COOKIE, path="/")
    language = response.language or (request.language if request.query.get("language") == request.language else "")
    if language:  # lax: whoever follows a link from elsewhere reads the language of before
        http_response.set_cookie(
            LANGUAGE_COOKIE, language, _YEAR_SEC, httponly=True, samesite="lax", secure=secure, path="/"
        )
    name = attempt_cookie(secure=secure)
    if response.attempt:
        # lax: the provider sends the browser back from another site
        span = int(identities.ATTEMPT.total_seconds())
        http_response.set_cookie(name, response.attempt, span, httponly=True, samesite="lax", secure=secure, path="/")
    elif response.attempt is not None:
        http_response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")


def is_secure(http_request: starlette.requests.Request, provider: Provider | None) -> bool:
    """Tell whether browsers reach the study over TLS, perhaps by a proxy that does not say so."""
    return http_request.url.scheme == "https" or (provider is not None and provider.address.startswith("https://"))


def attempt_cookie(*, secure: bool) -> str:
    """Return the name of the cookie; with the prefix no site beside ours can set it."""
    return f"__Host-{ATTEMPT_COOKIE}" if secure else ATTEMPT_COOKIE
