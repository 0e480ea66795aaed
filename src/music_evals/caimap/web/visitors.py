"""Who sends a request, as dependencies of the routes: their session and rights, what they sent, and how they guess.

Every router names the right that its pages need by ``Security(admit, scopes=[right])``. A request that changes
something carries the token of its session in the form, and comes from a page of ours.
"""

from __future__ import annotations

import dataclasses
import hmac
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, Any, Final

from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.security import SecurityScopes
from fastapi.templating import Jinja2Templates

from music_evals.caimap.domain.machine import RIGHTS, ForbiddenError
from music_evals.caimap.services import accounts, identities
from music_evals.caimap.services.study import StudyService
from music_evals.caimap.storage.store import StaleError
from music_evals.caimap.web.forms import editor_values, merged, tidied, written
from music_evals.caimap.web.guards import MAX_DIGITS, check_texts, is_text
from music_evals.caimap.web.provider import Provider
from music_evals.caimap.web.rendering import environment, words_of
from music_evals.caimap.web.words import LANGUAGE_COOKIE, language_of
from music_evals.errors import InvalidInputError

COOKIE: Final = "caimap_session"
"""Holds the token of a session; no script reads it, no other site sends it."""

ATTEMPT_COOKIE: Final = "caimap_sign_in"
"""Holds the secret of a sign-in with a provider; it comes along when the provider sends the browser back."""

_YEAR_SEC: Final = 31_536_000


class SignedOutError(ForbiddenError):
    """Nobody is signed in."""


class TooManyError(ForbiddenError):
    """Too many attempts."""


@dataclasses.dataclass
class Visitor:
    """Who sends a request: `visit` is None without a session; `sent` is the form as it came, `json` a script's body."""

    request: Request
    visit: accounts.Visit | None
    language: str
    sent: Mapping[str, str] = dataclasses.field(default_factory=dict)
    form: Mapping[str, str] = dataclasses.field(default_factory=dict)
    json: Any = None
    show: Callable[[], Any] | None = None
    fields: str = "fields"
    is_owner: bool = False

    @property
    def service(self) -> StudyService:
        """The study."""
        return self.request.app.state.service  # type: ignore[no-any-return]

    @property
    def provider(self) -> Provider | None:
        """The OpenID Connect provider by which people may sign in; None if the study has none."""
        return self.request.app.state.provider  # type: ignore[no-any-return]

    @property
    def who(self) -> int:
        """Number of the person; 0 if nobody is signed in."""
        return self.visit.person.id if self.visit else 0

    @property
    def version(self) -> int:
        """Version of what the page showed; -1, which nothing has, if the form names no version."""
        text = self.form.get("version", "")
        return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else -1

    @property
    def address(self) -> str:
        """Path of the page."""
        return self.request.url.path

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the study over TLS, perhaps by a proxy that does not say so."""
        by_proxy = self.provider is not None and self.provider.address.startswith("https://")
        return by_proxy or self.request.url.scheme == "https"

    def page(self, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
        """Render a template; the response has its values as ``context``."""
        response: HTMLResponse = _TEMPLATES.TemplateResponse(self.request, template, {"message": "", **values}, status)
        self.keep_language(response)
        return response

    def rerenders(self, show: Callable[[], Any], *, fields: str = "fields") -> None:
        """Let a refused action show a page again, with the message and what was written."""
        self.show, self.fields = show, fields
        if "merges" in self.form:
            saved = show().context.get("fields", {})
            self.form = {**merged(saved, written(self.form), self.form), "version": str(self.version)}

    def reformat_rows(self, show: Callable[[], Any]) -> HTMLResponse:
        """Save nothing, and render the page of a structure again with its rows tidied."""
        self.rerenders(show)
        page = show()
        if self.version_of(page) != self.version:
            raise StaleError("this has changed since the page was loaded", kind="task_changed")
        return self.page(page.template.name, **{**page.context, **editor_values(tidied(self.form))})

    def version_of(self, page: Any) -> int:
        """Return the version of what a page shows now; that of the form if the page has none."""
        return int(getattr(page.context.get("view"), "version", self.version))

    # cookies

    def _set_cookie(self, response: Response, name: str, value: str, age_sec: int | None, samesite: Any) -> None:
        response.set_cookie(name, value, age_sec, httponly=True, samesite=samesite, secure=self.is_secure)

    def begin_session(self, response: Response, token: str) -> None:
        """Give the browser the token of a new session; who has it has shown whose account it is."""
        self._set_cookie(response, COOKIE, token, None, "strict")
        self.is_owner = True

    def signed_out(self) -> Response:
        """Send a browser whose session has ended to the page where it may sign in."""
        response = redirect("/sign-in")
        response.delete_cookie(COOKIE)
        return response

    def keep_language(self, response: Response, language: str = "") -> None:
        """Keep a language, or the one that the address names, in the browser."""
        language = language or (self.language if self.request.query_params.get("language") == self.language else "")
        if language:  # lax: whoever follows a link from elsewhere reads the language of before
            self._set_cookie(response, LANGUAGE_COOKIE, language, _YEAR_SEC, "lax")

    @property
    def _attempt_cookie(self) -> str:
        return f"__Host-{ATTEMPT_COOKIE}" if self.is_secure else ATTEMPT_COOKIE  # by the prefix only we can set it

    @property
    def attempt(self) -> str:
        """Secret of a sign-in with a provider that began in this browser."""
        return self.request.cookies.get(self._attempt_cookie, "")

    def begin_attempt(self, response: Response, secret: str) -> None:
        """Let the browser keep the secret of a sign-in with a provider."""
        # lax: the provider sends the browser back from another site
        span_sec = int(identities.ATTEMPT.total_seconds())
        self._set_cookie(response, self._attempt_cookie, secret, span_sec, "lax")

    def end_attempt(self, response: Response) -> None:
        """Let the browser forget it."""
        response.delete_cookie(self._attempt_cookie, secure=self.is_secure, httponly=True, samesite="lax")

    # guesses

    def begin_guess(self, account: str, *, limited: bool = False) -> None:
        """Count an attempt at an account from this address, or refuse it."""
        left = self.request.app.state.attempts.begin(
            self.request.client.host if self.request.client else "", account, limited=limited
        )
        if left:
            raise TooManyError(f"too many attempts; wait {left} s", kind="too_many", wait=left)

    def end_guess(self, account: str) -> None:
        """Take an attempt back that did not fail."""
        self.request.app.state.attempts.forgive(
            self.request.client.host if self.request.client else "", account, is_owner=self.is_owner
        )


def _shared(request: Request) -> dict[str, Any]:
    """Return what all templates take."""
    visitor: Visitor = request.state.visitor
    shared = {"visit": visitor.visit, "address": visitor.address, "has_provider": visitor.provider is not None}
    return {**shared, **words_of(visitor.language)}


_TEMPLATES: Final = Jinja2Templates(env=environment(), context_processors=[_shared])


def redirect(path: str) -> RedirectResponse:
    """Send a browser on to another page."""
    return RedirectResponse(path, 303)


async def _visitor(request: Request) -> Visitor:
    """Look the session up and read the body; long bodies were refused before."""
    service = request.app.state.service
    visit = await run_in_threadpool(accounts.visit, service, request.cookies.get(COOKIE, ""))
    visitor = Visitor(request, visit, language_of(request, visit.language if visit else ""))
    request.state.visitor = visitor
    request.state.readable = True
    if request.method == "POST" and request.headers.get("content-type", "").partition(";")[0] == "application/json":
        try:
            visitor.json = json.loads(await request.body())
        except (ValueError, RecursionError):
            visitor.json, request.state.readable = {}, False
    elif request.method == "POST":
        form: dict[str, str] = {}
        try:
            async with request.form(max_files=0, max_fields=3000) as fields:
                form = {name: value for name, value in fields.items() if isinstance(value, str)}  # and no files
        except UnicodeError:  # in the encoding that it says it is in
            request.state.readable = False
        # what can be shown again
        visitor.sent = visitor.form = {name: value for name, value in form.items() if is_text(name) and is_text(value)}
        request.state.readable &= len(visitor.sent) == len(form)
    return visitor


CurrentVisitor = Annotated[Visitor, Depends(_visitor)]


async def admit(rights: SecurityScopes, visitor: CurrentVisitor) -> None:
    """Refuse requests of other sites, of people without the right of the router, and what cannot be read."""
    request, visit = visitor.request, visitor.visit
    is_post = request.method == "POST"
    if is_post:
        origin = request.headers.get("origin")
        if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"} or (
            origin is not None and origin.partition("://")[2] != request.headers.get("host")
        ):
            raise ForbiddenError("this was sent by another site", kind="other_site")
    [right] = rights.scopes  # a router that names none lets nobody in
    if right != "public":
        if visit is None:
            raise SignedOutError("sign in first", kind="signed_out")
        if visit.person.role not in RIGHTS[right]:
            raise ForbiddenError("this page is for another role", kind="other_role")
        token = visitor.form.get("csrf") or request.headers.get("x-csrf", "")
        if is_post and not hmac.compare_digest(token.encode(), visit.csrf.encode()):
            raise ForbiddenError("this form is out of date; load the page again", kind="old_form")
    if not request.state.readable:
        raise InvalidInputError(
            "expected a form or JSON; this cannot be read, or its text contains NUL or a lone surrogate",
            kind="unreadable_request",
        )
    check_texts(dict(request.path_params), dict(request.query_params), visitor.json)


async def limit_guesses_of_strangers(visitor: CurrentVisitor) -> AsyncIterator[None]:
    """Delay those who guess a password or the token of a link, by the account that the form names."""
    account = visitor.form.get("name", "").strip()
    visitor.begin_guess(account)
    yield
    visitor.end_guess(account)


async def limit_guesses(visitor: CurrentVisitor) -> AsyncIterator[None]:
    """Delay those who guess the password of the account that is signed in."""
    account = visitor.visit.name if visitor.visit else ""
    visitor.begin_guess(account)
    yield
    visitor.is_owner = True
    visitor.end_guess(account)


async def limit_sign_ins(visitor: CurrentVisitor) -> None:
    """Limit how many sign-ins with a provider begin at an address."""
    visitor.begin_guess("", limited=True)
