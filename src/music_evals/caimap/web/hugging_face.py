"""The pages by which people sign in with Hugging Face; they exist where the study has a client there.

The cookie of a session is strict: no browser sends it on a way that began at another site, not even after redirects to
pages of ours. So whoever comes back is shown a page of ours that goes on by itself, and the next request begins here. A
form is not answered by a redirect to the provider either: browsers hold such redirects to ``form-action``.
"""

from __future__ import annotations

import asyncio
import hmac
from typing import TYPE_CHECKING, Final

from music_evals.caimap.roles import ForbiddenError
from music_evals.caimap.web.app import Page, Request, Response
from music_evals.caimap.web.provider import CALLBACK, Provider, ProviderError, keys_of
from music_evals.caimap.web.rerendering import rerender_on_error
from music_evals.caimap.web.wording import refusal
from music_evals.caimap.work import accounts, identities
from music_evals.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PROVIDER_PAGES"]

_MAX_CODE: Final = 2048
_ERRORS: Final = (
    "invalid_request", "unauthorized_client", "unsupported_response_type", "invalid_scope", "server_error",
    "temporarily_unavailable", "interaction_required", "login_required", "account_selection_required",
    "consent_required",
)  # fmt: skip
"""RFC 6749, section 4.1.2.1, and OpenID Connect Core 1.0, section 3.1.2.6; others are not repeated on our pages."""


def _provider(request: Request) -> Provider:
    if request.provider is None:
        raise UnknownNameError("page", request.address, ())
    return request.provider


async def _begin(request: Request) -> Response:
    secret = await asyncio.to_thread(identities.begin_sign_in, request.service)
    url = await _provider(request).authorization_url(keys_of(secret))
    return Response(go_to=url, attempt=secret)


async def _join(request: Request) -> Response:
    token, name = request.path["token"], request.form.get("name", "")
    try:
        secret = await asyncio.to_thread(
            identities.begin_joining, request.service, token, name, consents="consents" in request.form
        )
    except InvalidInputError as error:
        values = {"fields": dict(request.form), "token": token, "message": refusal(error, request.language)}
        return Response("invitation.html", values, status=400)
    return await _onward(request, secret)


async def _link(request: Request) -> Response:
    secret = await asyncio.to_thread(identities.begin_linking, request.service, request.who, request.session)
    return await _onward(request, secret)


async def _onward(request: Request, secret: str) -> Response:
    url = await _provider(request).authorization_url(keys_of(secret))
    return Response("onward.html", {"onward": url}, attempt=secret)


async def _callback(request: Request) -> Response:
    provider = _provider(request)
    keys = keys_of(request.attempt)
    # before anything is used up: a page of somebody else cannot end the sign-in that has begun here
    if not request.attempt or not hmac.compare_digest(request.query.get("state", "").encode(), keys.state.encode()):
        raise InvalidInputError(
            f"this sign-in did not begin in this browser, at {provider.address}, or is too old; begin again there",
            kind="other_browser",
            address=provider.address,
        )
    attempt = await asyncio.to_thread(identities.take, request.service, request.attempt)
    subject = await provider.subject(_code(request.query, provider), keys)
    token = await asyncio.to_thread(identities.finish, request.service, attempt, provider.url, subject)
    if attempt.purpose == "link":
        return Response("onward.html", {"onward": "/account"}, attempt="")
    visit = await asyncio.to_thread(accounts.visit, request.service, token)
    language = visit.language if visit else ""
    if visit and attempt.purpose == "join":
        language = request.language
        await asyncio.to_thread(accounts.set_language, request.service, visit.person.id, language)
    return Response("onward.html", {"onward": "/"}, session=token or None, attempt="", language=language)


def _code(query: Mapping[str, str], provider: Provider) -> str:
    """Return the code that a browser brought back."""
    if query.get("iss", provider.url) != provider.url:  # RFC 9207
        raise ProviderError("the answer comes from another provider (iss)", kind="provider_other")
    if query.get("error") == "access_denied":
        raise ForbiddenError(
            "you did not agree that Hugging Face tells who you are; nobody was signed in", kind="provider_denied"
        )
    if "error" in query:
        error = query["error"] if query["error"] in _ERRORS else "unknown_error"
        raise ProviderError(
            f"the provider refused ({error}); nobody was signed in", kind="provider_refused", problems=(error,)
        )
    code = query.get("code", "")
    if not 1 <= len(code) <= _MAX_CODE or not code.isascii() or not code.isprintable():
        raise ProviderError("the provider sent no code; begin again", kind="provider_no_code")
    return code


def _account(request: Request) -> Response:
    return Response("account.html", {"ways": identities.ways(request.service, request.who, _provider(request).url)})


def _unlink(request: Request) -> Response:
    identities.unlink(request.service, request.who, _provider(request).url)
    return Response(go_to="/sign-in", session="")


PROVIDER_PAGES: Final = (
    Page("GET", "/sign-in/hugging-face", "public", _begin, limited=True),
    Page("GET", CALLBACK, "public", _callback),
    Page("POST", "/invitation/{token}/hugging-face", "public", _join, guessable=True),
    Page("GET", "/account", "ask", _account),
    Page("POST", "/account/link", "ask", _link),
    Page("POST", "/account/unlink", "ask", rerender_on_error(_account, _unlink)),
)
"""The pages of a study with a provider."""
