"""The web application of a study: its routers, what is answered when a rule is broken, and the server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from starlette.convertors import IntegerConvertor, register_url_convertor  # codespell:ignore convertors
from starlette.exceptions import HTTPException

from music_evals.caimap.domain.machine import ForbiddenError, ForbiddenStepError
from music_evals.caimap.services.accounts import SignInError
from music_evals.caimap.services.study import StudyService
from music_evals.caimap.storage.store import StaleError
from music_evals.caimap.web.forms import parts, sent_texts, texts_of_part, written
from music_evals.caimap.web.guards import MAX_DIGITS, Attempts, Hardened, proxies_of
from music_evals.caimap.web.provider import Provider, ProviderError
from music_evals.caimap.web.rendering import STATIC
from music_evals.caimap.web.visitors import SignedOutError, TooManyError, Visitor, redirect
from music_evals.caimap.web.words import language_of, refusal, translator
from music_evals.errors import InvalidInputError, MusicEvalsError, UnknownNameError, importing

__all__ = ["build_app", "serve"]


class _Id(IntegerConvertor):
    """Whole numbers that every database can keep."""

    regex = f"[0-9]{{1,{MAX_DIGITS}}}"


register_url_convertor("id", _Id())  # before the routes are imported


class _Application(FastAPI):
    def build_middleware_stack(self) -> Any:
        return Hardened(super().build_middleware_stack())  # outermost: also around what answers a failure of ours


def build_app(service: StudyService, audio: str | Path, *, provider: Provider | None = None) -> FastAPI:
    """Build the application of a study, whose tables are made, and of the folder of its recordings.

    By a provider people may sign in too; without one its pages do not exist.
    """
    from music_evals.caimap.web.routes import account, annotate, hugging_face, inspect, manage, public

    app = _Application(openapi_url=None, docs_url=None, redoc_url=None)
    app.state.service, app.state.audio, app.state.provider = service, Path(audio), provider
    app.state.attempts = Attempts()
    for refused in (Exception, 404, 405):  # the latter of the router; what else it refuses says why
        app.add_exception_handler(refused, _plain)
    app.add_exception_handler(MusicEvalsError, _refuse)
    modules = (public, account, annotate, inspect, manage, *(() if provider is None else (hugging_face,)))
    app.state.readable = []
    for router in (router for module in modules for router in module.ROUTERS):
        for route in router.routes:
            if "GET" in route.methods:
                route.methods.add("HEAD")
                # no page of a sign-in with a provider, which is not read but passed
                app.state.readable += [route.path_regex] if not route.path.startswith("/sign-in/") else []
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=STATIC))
    return app


def serve(
    service: StudyService,
    audio: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 7860,
    provider: Provider | None = None,
    proxies: Sequence[str] = (),
) -> None:
    """Serve a study (`build_app`) until the process is stopped.

    Other machines reach the host ``0.0.0.0``, behind a proxy that speaks TLS. `proxies` are the addresses and networks
    of the proxies in front (`guards.proxies_of`): what these say of the address and the scheme of a request is taken,
    and of nobody else. Raises `MissingBackendError` without the extra ``caimap``, and `InvalidInputError` where a proxy
    is no address, or everybody.
    """
    with importing("caimap", "the annotation platform"):
        import uvicorn
    trusted = proxies_of(proxies)
    # no access log: it would hold addresses; pages speak every 5 s, for which connections stay open
    uvicorn.run(
        build_app(service, audio, provider=provider), host=host, port=port, access_log=False, log_level="warning",
        server_header=False, timeout_keep_alive=30, proxy_headers=bool(trusted), forwarded_allow_ips=trusted,
    )  # fmt: skip


# what is answered when something is refused

_STATUS: Final[tuple[tuple[type[MusicEvalsError], int], ...]] = (
    (TooManyError, 429),
    (ProviderError, 502),
    (SignedOutError, 401),
    (SignInError, 401),
    (ForbiddenError, 403),
    (UnknownNameError, 404),
    (StaleError, 409),
    (ForbiddenStepError, 409),
)


def _status_of(error: Exception) -> int:
    """Return the status of an error of ours; 400 where it says that something was filled in wrongly."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 400)


async def _plain(request: Request, error: Exception) -> Response:
    """Answer requests for unknown pages, and unexpected errors, which are in the log."""
    status, name = (error.status_code, "no_page") if isinstance(error, HTTPException) else (500, "failed")
    return PlainTextResponse(translator(language_of(request))(name), status)


def _refuse(request: Request, error: Any) -> Response:
    """Render the form of an action again (`Visitor.rerenders`), or a page with the reason and what was sent."""
    visitor: Visitor = request.state.visitor
    if visitor.show is not None and isinstance(
        error, InvalidInputError | StaleError | ForbiddenStepError | SignInError
    ):
        try:
            return _show_again(visitor, visitor.show(), error)
        except MusicEvalsError as of_page:  # the page is refused too
            error = of_page
    message, status = refusal(error, visitor.language), _status_of(error)
    if visitor.json is not None:
        return JSONResponse({"error": message}, 401 if visitor.visit is None else status)
    texts = sent_texts(visitor.sent, visitor.language)
    if isinstance(error, SignedOutError) and not texts:
        response = redirect("/sign-in")
        visitor.keep_language(response)
        return response
    may_again = texts and "version" in visitor.sent and error.kind in {"signed_out", "old_form"}
    again = dict(visitor.sent) if may_again else {}
    return visitor.page("error.html", status, message=message, sent=texts, again=again)


def _show_again(visitor: Visitor, page: Any, error: MusicEvalsError) -> Response:
    """Render a page with the fields of the form, or both drafts if another one was saved meanwhile."""
    typed, language, values, version = written(visitor.sent), visitor.language, page.context, visitor.version_of(page)
    if version != visitor.version and not isinstance(error, StaleError):
        error = StaleError("this has changed since the page was loaded", kind="task_changed")
    status = _status_of(error)
    values |= {"message": refusal(error, language), "sent": sent_texts(visitor.sent, language)}
    is_behind = isinstance(error, StaleError) or "merges" in visitor.sent
    if "choice" in values and visitor.fields == "fields" and typed and is_behind:
        differing = [
            (key, [*sent_texts({key: key}, language), (key, "")][0][0], texts_of_part(ours), texts_of_part(theirs))
            for key, ours, theirs in parts(values["fields"], typed)
            if ours != theirs
        ]
        if differing:
            both = {"typed": typed, "version": version, "parts": differing}
            return visitor.page("merge.html", status, **{**values, **both})
    fields = {visitor.fields: dict(visitor.sent)} if typed else {}
    return visitor.page(page.template.name, status, **{**values, **fields})
