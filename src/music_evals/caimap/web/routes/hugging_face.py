"""The pages by which people sign in with Hugging Face; they exist where the study has a client there.

The cookie of a session is strict: no browser sends it on a way that began at another site, not even after redirects to
pages of ours. So whoever comes back is shown a page of ours that goes on by itself, and the next request begins here. A
form is not answered by a redirect to the provider either: browsers hold such redirects to ``form-action``.
"""

from __future__ import annotations

import functools
import hmac
from typing import Final

from fastapi import APIRouter, Depends, Response, Security
from fastapi.concurrency import run_in_threadpool

from music_evals.caimap.domain.machine import ForbiddenError
from music_evals.caimap.services import accounts, identities
from music_evals.caimap.web.provider import CALLBACK, Provider, ProviderError, keys_of
from music_evals.caimap.web.routes.public import GUESSABLE, show_invitation
from music_evals.caimap.web.visitors import COOKIE, CurrentVisitor, Visitor, admit, limit_sign_ins, redirect
from music_evals.errors import InvalidInputError

__all__ = ["ROUTERS"]

router: Final = APIRouter(dependencies=[Security(admit, scopes=["public"])])
members: Final = APIRouter(dependencies=[Security(admit, scopes=["ask"])])
ROUTERS: Final = (router, members)

_MAX_CODE: Final = 2048
_ERRORS: Final = (
    "invalid_request", "unauthorized_client", "unsupported_response_type", "invalid_scope", "server_error",
    "temporarily_unavailable", "interaction_required", "login_required", "account_selection_required",
    "consent_required",
)  # fmt: skip
"""RFC 6749, section 4.1.2.1, and OpenID Connect Core 1.0, section 3.1.2.6; others are not repeated on our pages."""


def _provider(visitor: Visitor) -> Provider:
    assert visitor.provider is not None
    return visitor.provider


@router.get("/sign-in/hugging-face", dependencies=[Depends(limit_sign_ins)])
async def begin(visitor: CurrentVisitor) -> Response:
    secret = await run_in_threadpool(identities.begin_sign_in, visitor.service)
    response = redirect(await _provider(visitor).authorization_url(keys_of(secret)))
    visitor.keep_language(response)
    visitor.begin_attempt(response, secret)
    return response


async def _onward(visitor: Visitor, secret: str) -> Response:
    url = await _provider(visitor).authorization_url(keys_of(secret))
    response: Response = visitor.page("onward.html", onward=url)
    visitor.begin_attempt(response, secret)
    return response


@router.post("/invitation/{token}/hugging-face", dependencies=GUESSABLE)
async def join(token: str, visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_invitation, token, visitor))
    name, consents = visitor.form.get("name", ""), "consents" in visitor.form
    secret = await run_in_threadpool(identities.begin_joining, visitor.service, token, name, consents=consents)
    return await _onward(visitor, secret)


@router.get(CALLBACK)
async def come_back(visitor: CurrentVisitor) -> Response:
    provider, service = _provider(visitor), visitor.service
    keys, state = keys_of(visitor.attempt), visitor.request.query_params.get("state", "")
    # before anything is used up: a page of somebody else cannot end the sign-in that has begun here
    if not visitor.attempt or not hmac.compare_digest(state.encode(), keys.state.encode()):
        raise InvalidInputError(
            f"this sign-in did not begin in this browser, at {provider.address}, or is too old; begin again there",
            kind="other_browser",
            address=provider.address,
        )
    attempt = await run_in_threadpool(identities.take, service, visitor.attempt)
    subject = await provider.subject(_code(visitor, provider), keys)
    token = await run_in_threadpool(identities.finish, service, attempt, provider.url, subject)
    visit = None if attempt.purpose == "link" else await run_in_threadpool(accounts.visit, service, token)
    if visit and attempt.purpose == "join":
        await run_in_threadpool(accounts.set_language, service, visit.person.id, visitor.language)
        visit = visit._replace(language=visitor.language)
    response: Response = visitor.page("onward.html", onward="/account" if attempt.purpose == "link" else "/")
    visitor.end_attempt(response)
    if visit:
        visitor.begin_session(response, token)
        visitor.keep_language(response, visit.language)
        visitor.end_guess("")
    return response


def _code(visitor: Visitor, provider: Provider) -> str:
    """Return the code that a browser brought back."""
    query = visitor.request.query_params
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


@members.get("/account")
def show_account(visitor: CurrentVisitor) -> Response:
    ways = identities.ways(visitor.service, visitor.who, _provider(visitor).url)
    return visitor.page("account.html", ways=ways)


@members.post("/account/link")
async def link(visitor: CurrentVisitor) -> Response:
    token = visitor.request.cookies.get(COOKIE, "")
    secret = await run_in_threadpool(identities.begin_linking, visitor.service, visitor.who, token)
    return await _onward(visitor, secret)


@members.post("/account/unlink")
def unlink(visitor: CurrentVisitor) -> Response:
    visitor.rerenders(functools.partial(show_account, visitor))
    identities.unlink(visitor.service, visitor.who, _provider(visitor).url)
    return visitor.signed_out()
