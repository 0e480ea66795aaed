"""The web application: who may reach which page, and what every answer has in common.

`pages.PAGES` names each page with the right that it needs; nothing is reached that does not stand there. A request that
changes something carries the token of its session in the form, and comes from a page of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from music_evals.caimap.machine import ForbiddenStepError
from music_evals.caimap.roles import RIGHTS, ForbiddenError
from music_evals.caimap.storage.store import StaleError
from music_evals.caimap.web.forms import plain_form
from music_evals.caimap.web.guards import MAX_DIGITS, Attempts, RateLimit, check_texts, is_text, proxies_of
from music_evals.caimap.web.rendering import STATIC, render
from music_evals.caimap.work import accounts
from music_evals.caimap.work.desk import Desk
from music_evals.errors import InvalidInputError, MusicEvalsError, UnknownNameError, importing

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["COOKIE", "HEADERS", "Answer", "Asked", "Page", "RateLimit", "build_app", "serve"]

COOKIE: Final = "caimap_session"
"""Holds the token of a session; no script reads it, no other site sends it."""

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
"""Of every answer."""

MAX_BODY: Final = 1_000_000
"""Bytes of a request."""


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

    """

    template: str = ""
    values: Mapping[str, Any] | None = None
    go_to: str = ""
    file: Path | None = None
    download: tuple[str, str] | None = None
    session: str | None = None
    status: int = 200


class Page(NamedTuple):
    """A page.

    Attributes
    ----------
    method, path
        As a router takes them.
    right
        Of `roles.RIGHTS`; ``"public"`` for everybody.
    act
        What it does.

    """

    method: str
    path: str
    right: str
    act: Callable[[Asked], Answer]


def build_app(desk: Desk, audio: str | Path) -> FastAPI:
    """Build the application of a study.

    Parameters
    ----------
    desk
        The study, its tables made.
    audio
        Folder of its recordings.

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

    from music_evals.caimap.web.pages import PAGES

    class Application(FastAPI):
        def build_middleware_stack(self) -> Any:
            return _Hardened(super().build_middleware_stack())  # outermost: also around what answers a failure of ours

    app = Application(openapi_url=None, docs_url=None, redoc_url=None)
    app.add_exception_handler(Exception, _failed)
    attempts = Attempts()
    _register_numbers()
    for page in PAGES:
        path = page.path.replace(":int}", f":{_NUMBER}}}")
        app.add_route(path, _endpoint(page, desk, Path(audio), attempts), methods=[page.method])
    app.mount("/static", StaticFiles(directory=STATIC))
    return app


_NUMBER: Final = "number"


def _register_numbers() -> None:
    """Let addresses hold numbers that databases keep; others are no address of a page."""
    from starlette.convertors import IntegerConvertor, register_url_convertor  # codespell:ignore convertors

    class Number(IntegerConvertor):
        regex = f"[0-9]{{1,{MAX_DIGITS}}}"

    register_url_convertor(_NUMBER, Number())


async def _failed(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """Answer where something failed that nobody foresaw; the log has it."""
    from starlette.responses import PlainTextResponse

    return PlainTextResponse("出错了，请重新载入页面。 Something went wrong; load the page again.", 500)


def serve(
    desk: Desk, audio: str | Path, *, host: str = "127.0.0.1", port: int = 7860, proxies: Sequence[str] = ()
) -> None:
    """Serve a study until the process is told to stop.

    Parameters
    ----------
    desk, audio
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
        build_app(desk, audio), host=host, port=port, access_log=False, log_level="warning", server_header=False,
        timeout_keep_alive=30, proxy_headers=bool(trusted), forwarded_allow_ips=trusted,
    )  # fmt: skip


def _endpoint(page: Page, desk: Desk, audio: Path, attempts: Attempts) -> Callable[[Request], Any]:
    from starlette.concurrency import run_in_threadpool

    async def endpoint(request: Request) -> Response:
        token = request.cookies.get(COOKIE, "")
        visit = await run_in_threadpool(accounts.visit, desk, token)
        language = request.query_params.get("language") or (visit.language if visit else "zh")
        language = language if language in {"zh", "en"} else "zh"
        form, json, broken = await _body(request)
        asked = Asked(
            desk, visit, request.path_params, dict(request.query_params), form, json, language, audio, request.url.path
        )
        try:
            _check(page, request, asked, attempts, broken=broken)
            answer = await run_in_threadpool(page.act, asked)
            if page.right == "public" and request.method == "POST":
                attempts.count(*_attempt(request, asked), failed=answer.status >= 400)
        except MusicEvalsError as error:
            answer = _refusal(error, visit, as_json=json is not None)
        return _response(answer, request, asked)

    return endpoint


async def _body(request: Request) -> tuple[dict[str, str], Any, bool]:
    """Return the form and the JSON of a request, and whether they are none; too long ones do not come this far."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    if request.method != "POST":
        return {}, None, False
    if kind == "application/json":
        import json

        try:
            return {}, json.loads(await request.body()), False
        except (ValueError, RecursionError):
            return {}, {}, True
    try:
        async with request.form(max_files=0, max_fields=3000) as given:
            form = plain_form(given)
    except UnicodeError:  # in the encoding that it says it is in
        return {}, None, True
    texts = {name: value for name, value in form.items() if is_text(name) and is_text(value)}  # what can be shown again
    return texts, None, len(texts) < len(form)


def _attempt(request: Request, asked: Asked) -> tuple[str, str]:
    """Return the address that a request comes from and the account that it names, for the limit of attempts."""
    return request.client.host if request.client else "", asked.form.get("name", "")


def _check(page: Page, request: Request, asked: Asked, attempts: Attempts, *, broken: bool) -> None:
    """Refuse who is not signed in, whose role has not the right, what another site sent, and what cannot be read."""
    if request.method == "POST":
        origin = request.headers.get("origin")
        if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"} or (
            origin is not None and origin.partition("://")[2] != request.headers.get("host")
        ):
            raise ForbiddenError("this was sent by another site")
    if page.right == "public":
        if request.method == "POST" and not attempts.allows(*_attempt(request, asked)):
            raise _TooManyError("too many attempts; wait some minutes")
        _check_readable(asked, broken=broken)
        return
    if asked.visit is None:
        raise _SignedOutError("sign in first")
    if asked.visit.person.role not in RIGHTS[page.right]:
        raise ForbiddenError("this page is for another role")
    if request.method == "POST":
        import hmac

        given = asked.form.get("csrf") or request.headers.get("x-csrf", "")
        if not hmac.compare_digest(given.encode(), asked.visit.csrf.encode()):
            raise ForbiddenError("this form is out of date; load the page again")
    _check_readable(asked, broken=broken)


def _check_readable(asked: Asked, *, broken: bool) -> None:
    if broken:
        raise InvalidInputError("expected a form or JSON; this cannot be read, or holds characters that are none")
    check_texts(dict(asked.path), dict(asked.query), asked.json)


class _SignedOutError(ForbiddenError):
    """Nobody is signed in."""


class _TooManyError(ForbiddenError):
    """Too many attempts."""


_STATUS: Final[tuple[tuple[type[MusicEvalsError], int], ...]] = (
    (_TooManyError, 429),
    (accounts.SignInError, 401),
    (ForbiddenError, 403),
    (UnknownNameError, 404),
    (StaleError, 409),
    (ForbiddenStepError, 409),
)


def status_of(error: MusicEvalsError) -> int:
    """Return the status of an error of ours; 400 where it says that something was filled in wrongly."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 400)


def _refusal(error: MusicEvalsError, visit: accounts.Visit | None, *, as_json: bool) -> Answer:
    if as_json:
        return Answer(values={"error": str(error)}, status=401 if visit is None else status_of(error))
    if isinstance(error, _SignedOutError):
        return Answer(go_to="/sign-in")
    return Answer("error.html", {"message": str(error)}, status=status_of(error))


def _response(answer: Answer, request: Request, asked: Asked) -> Response:
    from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse

    made: Response
    if answer.go_to:
        made = RedirectResponse(answer.go_to, 303)
    elif answer.file is not None:
        made = FileResponse(answer.file)
    elif answer.download is not None:
        name, text = answer.download
        made = PlainTextResponse(
            text, media_type="text/csv", headers={"Content-Disposition": f'attachment; filename="{name}"'}
        )
    elif answer.template:
        values = {"visit": asked.visit, "message": "", **(answer.values or {})}
        page = render(answer.template, asked.language, **values)
        made = HTMLResponse(page, answer.status)
    else:
        made = JSONResponse(dict(answer.values or {}), answer.status)
    if answer.session is not None:
        secure = request.url.scheme == "https"
        if answer.session:
            made.set_cookie(COOKIE, answer.session, httponly=True, samesite="strict", secure=secure, path="/")
        else:
            made.delete_cookie(COOKIE, path="/")
    return made


class _Hardened:
    """Adds `HEADERS` to every answer, and refuses bodies over `MAX_BODY` before they are read."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        length = headers.get(b"content-length", b"0" if scope["method"] in {"GET", "HEAD"} else b"")

        async def hardened(message: Any) -> None:
            if message["type"] == "http.response.start":
                added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        if not length.isdigit() or len(length) > MAX_DIGITS or int(length) > MAX_BODY:
            from starlette.responses import PlainTextResponse

            await PlainTextResponse("too long", 413)(scope, receive, hardened)
            return
        await self.app(scope, receive, hardened)
