"""The web application: who may reach which page, and what every answer has in common.

`pages.PAGES` names each page with the right that it needs; nothing is reached that does not stand there. A request that
changes something carries the token of its session in the form, and comes from a page of ours.
"""

from __future__ import annotations

import hmac
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from music_evals.caimap.machine import ForbiddenStepError
from music_evals.caimap.roles import RIGHTS, ForbiddenError
from music_evals.caimap.storage.store import StaleError
from music_evals.caimap.web.answering import COOKIE, attempt_cookie, is_secure, respond
from music_evals.caimap.web.forms import sent_texts
from music_evals.caimap.web.guards import MAX_DIGITS, Attempts, check_texts, is_text, proxies_of
from music_evals.caimap.web.hardening import Hardened
from music_evals.caimap.web.provider import Provider, ProviderError
from music_evals.caimap.web.rendering import STATIC
from music_evals.caimap.web.wording import refusal
from music_evals.caimap.web.words import language_of, translator
from music_evals.caimap.work import accounts
from music_evals.caimap.work.desk import Desk
from music_evals.errors import InvalidInputError, MusicEvalsError, UnknownNameError, importing

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["Answer", "Asked", "Page", "build_app", "serve"]


class Asked(NamedTuple):
    """A request, as a page takes it.

    Attributes
    ----------
    desk
        The study.
    visit
        Who asks; None on public pages.
    path, query, form
        What the request names.
    json
        Body of a request of a script.
    language
        ``"zh"`` or ``"en"``.
    audio
        Folder of the recordings.
    address
        Path of the page.
    session, attempt
        Tokens that the browser holds: of a session, and of a sign-in with a provider.
    provider
        By which people may sign in; None without.

    """

    desk: Desk
    visit: accounts.Visit | None
    path: Mapping[str, Any]
    query: Mapping[str, str]
    form: Mapping[str, str]
    json: Any
    language: str
    audio: Path
    address: str = "/"
    session: str = ""
    attempt: str = ""
    provider: Provider | None = None

    @property
    def who(self) -> int:
        """Number of the person who asks; 0 for nobody."""
        return self.visit.person.id if self.visit else 0

    @property
    def version(self) -> int:
        """Version of what the page showed; -1, which nothing has, where it is not named."""
        text = self.form.get("version", "")
        return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else -1


class Answer(NamedTuple):
    """What a page answers: a template with values, another page to go to, plain values, or a file.

    Attributes
    ----------
    template
        Name in `templates`.
    values
        For the template, or without one as JSON.
    go_to
        Address of another page.
    file
        What is sent.
    download
        Name of a file and its text, to be kept.
    session
        Token of a new session, or ``""`` to end it; None leaves it.
    status
        Of the answer.
    language
        That the browser keeps from now on; empty leaves it.
    attempt
        Secret of a sign-in with a provider that begins, or ``""`` where it is over; None leaves it.
    waveform
        The page draws a waveform. The style of wavesurfer.js stands in its script; the policy of this one answer lets
        it in by a nonce, which the template gets.

    """

    template: str = ""
    values: Mapping[str, Any] | None = None
    go_to: str = ""
    file: Path | None = None
    download: tuple[str, str] | None = None
    session: str | None = None
    status: int = 200
    language: str = ""
    attempt: str | None = None
    waveform: bool = False


class Page(NamedTuple):
    """A page.

    Attributes
    ----------
    method, path
        As a router takes them.
    right
        Of `roles.RIGHTS`; ``"public"`` for everybody.
    act
        What it does; in a thread of its own, unless it is a coroutine.
    limited
        Whether even reading it counts as an attempt.
    guessable
        Whether it takes a secret, a password or the token of a link, that somebody might try to guess.

    """

    method: str
    path: str
    right: str
    act: Callable[[Asked], Answer | Awaitable[Answer]]
    limited: bool = False
    guessable: bool = False

    @property
    def is_async(self) -> bool:
        """Whether it is a coroutine, which holds up no thread while it waits for others."""
        return inspect.iscoroutinefunction(self.act)


def build_app(desk: Desk, audio: str | Path, *, provider: Provider | None = None) -> FastAPI:
    """Build the application of a study.

    Parameters
    ----------
    desk
        The study, its tables made.
    audio
        Folder of its recordings.
    provider
        By which people may sign in too; without one its pages do not exist.

    Returns
    -------
    fastapi.FastAPI
        For any ASGI server.

    Raises
    ------
    MissingBackendError
        The extra ``caimap`` is not installed.

    """
    with importing("caimap", "the annotation platform"):
        from fastapi import FastAPI
        from starlette.staticfiles import StaticFiles

    from music_evals.caimap.web.hugging_face import PROVIDER_PAGES
    from music_evals.caimap.web.pages import PAGES

    class Application(FastAPI):
        def build_middleware_stack(self) -> Any:
            return Hardened(super().build_middleware_stack())  # outermost: also around what answers a failure of ours

    app = Application(openapi_url=None, docs_url=None, redoc_url=None)
    for refused in (Exception, 404, 405):  # the latter of the router; what else it refuses says why
        app.add_exception_handler(refused, _plain)
    attempts = Attempts()
    _register_numbers()
    for page in PAGES if provider is None else (*PAGES, *PROVIDER_PAGES):
        path = page.path.replace(":int}", f":{_NUMBER}}}")
        app.add_route(path, _endpoint(page, desk, Path(audio), attempts, provider), methods=[page.method])
    app.mount("/static", StaticFiles(directory=STATIC))
    return app


_NUMBER: Final = "number"


def _register_numbers() -> None:
    """Let addresses hold numbers that databases keep; others are no address of a page."""
    from starlette.convertors import IntegerConvertor, register_url_convertor  # codespell:ignore convertors

    class Number(IntegerConvertor):
        regex = f"[0-9]{{1,{MAX_DIGITS}}}"

    register_url_convertor(_NUMBER, Number())


async def _plain(request: Request, error: Exception) -> Response:
    """Answer where what was asked is of no page, and where something failed that nobody foresaw; the log has it."""
    from starlette.exceptions import HTTPException
    from starlette.responses import PlainTextResponse

    status, name = (error.status_code, "no_page") if isinstance(error, HTTPException) else (500, "failed")
    return PlainTextResponse(translator(language_of(request))(name), status)


def serve(
    desk: Desk,
    audio: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 7860,
    provider: Provider | None = None,
    proxies: Sequence[str] = (),
) -> None:
    """Serve a study until the process is told to stop.

    Parameters
    ----------
    desk, audio, provider
        As of `build_app`.
    host, port
        Where to listen; other machines reach ``0.0.0.0``, behind a proxy that speaks TLS.
    proxies
        Addresses and networks of the proxies in front, as of `guards.proxies_of`: what these say of the address and
        the scheme of a request is taken, and of nobody else.

    Raises
    ------
    MissingBackendError
        The extra ``caimap`` is not installed.
    InvalidInputError
        A proxy is no address, or everybody.

    """
    with importing("caimap", "the annotation platform"):
        import uvicorn
    trusted = proxies_of(proxies)
    # no access log: it would hold addresses; pages speak every 5 s, for which connections stay open
    uvicorn.run(
        build_app(desk, audio, provider=provider), host=host, port=port, access_log=False, log_level="warning",
        server_header=False, timeout_keep_alive=30, proxy_headers=bool(trusted), forwarded_allow_ips=trusted,
    )  # fmt: skip


def _endpoint(
    page: Page, desk: Desk, audio: Path, attempts: Attempts, provider: Provider | None
) -> Callable[[Request], Any]:
    from starlette.concurrency import run_in_threadpool

    async def endpoint(request: Request) -> Response:
        token = request.cookies.get(COOKIE, "")
        visit = await run_in_threadpool(accounts.visit, desk, token)
        language = language_of(request, visit.language if visit else "")
        form, json, broken = await _body(request)
        attempt = request.cookies.get(attempt_cookie(secure=is_secure(request, provider)), "")
        asked = Asked(
            desk, visit, request.path_params, dict(request.query_params), form, json, language, audio,
            request.url.path, token, attempt, provider,
        )  # fmt: skip
        try:
            guess = _attempt(page, request, asked)
            _check(page, request, asked, attempts, broken=broken)
            act: Any = page.act
            answer: Answer = await (act(asked) if page.is_async else run_in_threadpool(act, asked))
            if answer.status < 400 and (page.guessable or answer.session):
                attempts.forgive(*guess, is_owner=bool(answer.session) or page.right != "public")
        except MusicEvalsError as error:
            answer = _refusal(error, asked, as_json=json is not None)
        return respond(answer, request, asked)

    return endpoint


async def _body(request: Request) -> tuple[dict[str, str], Any, bool]:
    """Return the form and the JSON of a request, and whether they are none; too long ones do not come this far."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    if request.method != "POST":
        return {}, None, False
    if kind == "application/json":
        try:
            return {}, json.loads(await request.body()), False
        except (ValueError, RecursionError):
            return {}, {}, True
    try:
        async with request.form(max_files=0, max_fields=3000) as given:
            form = {name: value for name, value in given.items() if isinstance(value, str)}  # and no files
    except UnicodeError:  # in the encoding that it says it is in
        return {}, None, True
    texts = {name: value for name, value in form.items() if is_text(name) and is_text(value)}  # what can be shown again
    return texts, None, len(texts) < len(form)


def _attempt(page: Page, request: Request, asked: Asked) -> tuple[str, str]:
    """Return the address that a request comes from, and the account that it names or that confirms what it does."""
    named = asked.form.get("name", "").strip() if page.right == "public" or asked.visit is None else asked.visit.name
    return request.client.host if request.client else "", named


def _check(page: Page, request: Request, asked: Asked, attempts: Attempts, *, broken: bool) -> None:
    """Refuse what another site sent, who may not do this or has to wait first, and what cannot be read."""
    if request.method == "POST":
        origin = request.headers.get("origin")
        if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"} or (
            origin is not None and origin.partition("://")[2] != request.headers.get("host")
        ):
            raise ForbiddenError("this was sent by another site", kind="other_site")
    if page.right != "public":
        _check_visit(page, request, asked)
    if page.guessable or page.limited:
        left = attempts.begin(*_attempt(page, request, asked), limited=page.limited)
        if left:
            raise _TooManyError(f"too many attempts; wait {left} s", kind="too_many", wait=left)
    if broken:
        raise InvalidInputError(
            "expected a form or JSON; this cannot be read, or holds characters that are none", kind="unreadable_request"
        )
    check_texts(dict(asked.path), dict(asked.query), asked.json)


def _check_visit(page: Page, request: Request, asked: Asked) -> None:
    """Refuse who is not signed in, whose role has not the right, and forms without the token of the session."""
    if asked.visit is None:
        raise _SignedOutError("sign in first", kind="signed_out")
    if asked.visit.person.role not in RIGHTS[page.right]:
        raise ForbiddenError("this page is for another role", kind="other_role")
    if request.method == "POST":
        given = asked.form.get("csrf") or request.headers.get("x-csrf", "")
        if not hmac.compare_digest(given.encode(), asked.visit.csrf.encode()):
            raise ForbiddenError("this form is out of date; load the page again", kind="old_form")


class _SignedOutError(ForbiddenError):
    """Nobody is signed in."""


class _TooManyError(ForbiddenError):
    """Too many attempts."""


_STATUS: Final[tuple[tuple[type[MusicEvalsError], int], ...]] = (
    (_TooManyError, 429),
    (ProviderError, 502),
    (accounts.SignInError, 401),
    (ForbiddenError, 403),
    (UnknownNameError, 404),
    (StaleError, 409),
    (ForbiddenStepError, 409),
)


def status_of(error: MusicEvalsError) -> int:
    """Return the status of an error of ours; 400 where it says that something was filled in wrongly."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 400)


def _refusal(error: MusicEvalsError, asked: Asked, *, as_json: bool) -> Answer:
    """Say why, and show what was written, so that it can be copied."""
    message = refusal(error, asked.language)
    status = 401 if asked.visit is None and isinstance(error, _SignedOutError) else status_of(error)
    if as_json:
        return Answer(values={"error": message}, status=401 if asked.visit is None else status)
    sent = sent_texts(asked.form, asked.language)
    if isinstance(error, _SignedOutError) and not sent:
        return Answer(go_to="/sign-in")
    again = dict(asked.form) if "version" in asked.form and error.kind in {"signed_out", "old_form"} else {}
    return Answer("error.html", {"message": message, "sent": sent, "again": again if sent else {}}, status=status)
