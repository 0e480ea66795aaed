"""The web application: who may reach which page, and what all responses have in common.

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
from music_evals.caimap.work.service import StudyService
from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidInputError, MusicEvalsError, UnknownNameError, importing

if TYPE_CHECKING:
    import starlette.requests
    import starlette.responses
    from fastapi import FastAPI

__all__ = ["Page", "Request", "Response", "build_app", "serve"]

__getattr__ = module_getattr(__name__, {"Answer": "Response", "Asked": "Request"})


class Request(NamedTuple):
    """A request, as pages take it (`Page.act`).

    Attributes
    ----------
    service
        The study.
    visit
        Session of the person; None on public pages without one.
    path, query, form
        Parameters of the route, of the query string and of the form.
    json
        Body of a request that a script sends.
    language
        ``"zh"`` or ``"en"``.
    audio
        Folder of the recordings.
    address
        Path of the page.
    session, attempt
        Tokens that the browser holds: of a session, and of a sign-in with a provider.
    provider
        OpenID Connect provider by which people may sign in; None if the study has none.

    """

    service: StudyService
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
        """Number of the person who sent the request; 0 if nobody is signed in."""
        return self.visit.person.id if self.visit else 0

    @property
    def version(self) -> int:
        """Version of what the page showed; -1, which nothing has, if the form names no version."""
        text = self.form.get("version", "")
        return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else -1


class Response(NamedTuple):
    """The response of a page: a template with values, a redirect to another page, JSON values, or a file.

    Attributes
    ----------
    template
        Name in `templates`.
    values
        For the template, or without one as JSON.
    go_to
        Address of another page.
    file
        Sent as it is.
    download
        Name and text of a file to be saved by the browser.
    session
        Token of a new session, or ``""`` to end it; None leaves it.
    status
        HTTP status.
    language
        Set in the language cookie; empty leaves it.
    attempt
        Secret of a sign-in with a provider that begins, or ``""`` when it has ended; None leaves it.
    waveform
        The page draws a waveform. The style of wavesurfer.js stands in its script; the policy of this response alone
        admits it by a nonce, which the template gets.

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
    act: Callable[[Request], Response | Awaitable[Response]]
    limited: bool = False
    guessable: bool = False

    @property
    def is_async(self) -> bool:
        """Whether it is a coroutine, which holds up no thread while it waits for others."""
        return inspect.iscoroutinefunction(self.act)


def build_app(service: StudyService, audio: str | Path, *, provider: Provider | None = None) -> FastAPI:
    """Build the application of a study.

    Parameters
    ----------
    service
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
        app.add_route(path, _endpoint(page, service, Path(audio), attempts, provider), methods=[page.method])
    app.mount("/static", StaticFiles(directory=STATIC))
    return app


_NUMBER: Final = "number"


def _register_numbers() -> None:
    """Register a URL converter for the whole numbers that databases can store."""
    from starlette.convertors import IntegerConvertor, register_url_convertor  # codespell:ignore convertors

    class Number(IntegerConvertor):
        regex = f"[0-9]{{1,{MAX_DIGITS}}}"

    register_url_convertor(_NUMBER, Number())


async def _plain(http_request: starlette.requests.Request, error: Exception) -> starlette.responses.Response:
    """Answer requests for unknown pages, and unexpected errors, which are in the log."""
    from starlette.exceptions import HTTPException
    from starlette.responses import PlainTextResponse

    status, name = (error.status_code, "no_page") if isinstance(error, HTTPException) else (500, "failed")
    return PlainTextResponse(translator(language_of(http_request))(name), status)


def serve(
    service: StudyService,
    audio: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 7860,
    provider: Provider | None = None,
    proxies: Sequence[str] = (),
) -> None:
    """Serve a study until the process is stopped.

    Parameters
    ----------
    service, audio, provider
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
        build_app(service, audio, provider=provider), host=host, port=port, access_log=False, log_level="warning",
        server_header=False, timeout_keep_alive=30, proxy_headers=bool(trusted), forwarded_allow_ips=trusted,
    )  # fmt: skip


def _endpoint(
    page: Page, service: StudyService, audio: Path, attempts: Attempts, provider: Provider | None
) -> Callable[[starlette.requests.Request], Any]:
    from starlette.concurrency import run_in_threadpool

    async def endpoint(http_request: starlette.requests.Request) -> starlette.responses.Response:
        token = http_request.cookies.get(COOKIE, "")
        visit = await run_in_threadpool(accounts.visit, service, token)
        language = language_of(http_request, visit.language if visit else "")
        form, json, broken = await _body(http_request)
        attempt = http_request.cookies.get(attempt_cookie(secure=is_secure(http_request, provider)), "")
        request = Request(
            service, visit, http_request.path_params, dict(http_request.query_params), form, json, language, audio,
            http_request.url.path, token, attempt, provider,
        )  # fmt: skip
        try:
            guess = _attempt(page, http_request, request)
            _check(page, http_request, request, attempts, broken=broken)
            act: Any = page.act
            response: Response = await (act(request) if page.is_async else run_in_threadpool(act, request))
            if response.status < 400 and (page.guessable or response.session):
                attempts.forgive(*guess, is_owner=bool(response.session) or page.right != "public")
        except MusicEvalsError as error:
            response = _refusal(error, request, as_json=json is not None)
        return respond(response, http_request, request)

    return endpoint


async def _body(http_request: starlette.requests.Request) -> tuple[dict[str, str], Any, bool]:
    """Return form and JSON of a request, and whether its body is invalid; long bodies were refused before."""
    kind = http_request.headers.get("content-type", "").partition(";")[0]
    if http_request.method != "POST":
        return {}, None, False
    if kind == "application/json":
        try:
            return {}, json.loads(await http_request.body()), False
        except (ValueError, RecursionError):
            return {}, {}, True
    try:
        async with http_request.form(max_files=0, max_fields=3000) as fields:
            form = {name: value for name, value in fields.items() if isinstance(value, str)}  # and no files
    except UnicodeError:  # in the encoding that it says it is in
        return {}, None, True
    texts = {name: value for name, value in form.items() if is_text(name) and is_text(value)}  # what can be shown again
    return texts, None, len(texts) < len(form)


def _attempt(page: Page, http_request: starlette.requests.Request, request: Request) -> tuple[str, str]:
    """Return the client address, and the account that the form names or that is signed in."""
    account = (
        request.form.get("name", "").strip() if page.right == "public" or request.visit is None else request.visit.name
    )
    return http_request.client.host if http_request.client else "", account


def _check(
    page: Page, http_request: starlette.requests.Request, request: Request, attempts: Attempts, *, broken: bool
) -> None:
    """Refuse requests of other sites, of people without the right or with too many attempts, and unreadable ones."""
    if http_request.method == "POST":
        origin = http_request.headers.get("origin")
        if http_request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"} or (
            origin is not None and origin.partition("://")[2] != http_request.headers.get("host")
        ):
            raise ForbiddenError("this was sent by another site", kind="other_site")
    if page.right != "public":
        _check_visit(page, http_request, request)
    if page.guessable or page.limited:
        left = attempts.begin(*_attempt(page, http_request, request), limited=page.limited)
        if left:
            raise _TooManyError(f"too many attempts; wait {left} s", kind="too_many", wait=left)
    if broken:
        raise InvalidInputError(
            "expected a form or JSON; this cannot be read, or its text contains NUL or a lone surrogate",
            kind="unreadable_request",
        )
    check_texts(dict(request.path), dict(request.query), request.json)


def _check_visit(page: Page, http_request: starlette.requests.Request, request: Request) -> None:
    """Refuse people who are not signed in or whose role lacks the right, and forms without the session's CSRF token."""
    if request.visit is None:
        raise _SignedOutError("sign in first", kind="signed_out")
    if request.visit.person.role not in RIGHTS[page.right]:
        raise ForbiddenError("this page is for another role", kind="other_role")
    if http_request.method == "POST":
        token = request.form.get("csrf") or http_request.headers.get("x-csrf", "")
        if not hmac.compare_digest(token.encode(), request.visit.csrf.encode()):
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


def _refusal(error: MusicEvalsError, request: Request, *, as_json: bool) -> Response:
    """Return a response with the reason and with what the user wrote, so that it can be copied."""
    message = refusal(error, request.language)
    status = 401 if request.visit is None and isinstance(error, _SignedOutError) else status_of(error)
    if as_json:
        return Response(values={"error": message}, status=401 if request.visit is None else status)
    texts = sent_texts(request.form, request.language)
    if isinstance(error, _SignedOutError) and not texts:
        return Response(go_to="/sign-in")
    again = dict(request.form) if "version" in request.form and error.kind in {"signed_out", "old_form"} else {}
    return Response("error.html", {"message": message, "sent": texts, "again": again if texts else {}}, status=status)
