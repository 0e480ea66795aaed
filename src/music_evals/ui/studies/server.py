"""The server of one study: its page, what participants send, and the organiser's page behind a secret.

Participants have a random token and no cookie, so that no other site can send in their name; what they send is JSON
with a header that no form has. Once a submission is acknowledged it is on the disk. No address and no browser's name is
kept.
"""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from music_evals.errors import FileTooLargeError, HubError, InvalidInputError, MusicEvalsError, OutputError, importing
from music_evals.studies.answers import check_part
from music_evals.studies.folders import StudyFolder
from music_evals.studies.storage import SlotBook, SubmissionStore, is_token
from music_evals.ui.studies.organiser import Organiser, read_body

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["HEADERS", "build_app", "serve"]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self' https://huggingface.co"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
"""Of every answer."""

_SUBMITTED = b'data-submit="file"', b'data-submit="server"'
"""How the page learns that there is a server."""
_TYPES = {".js": "text/javascript", ".css": "text/css", ".flac": "audio/flac"}


def build_app(study: StudyFolder, *, secret: str, store: SubmissionStore | None = None) -> Starlette:
    """Build the server of a study; without a store, submissions are kept in the study's folder.

    Raises `InvalidInputError` where the secret of the organiser's page, at ``/organiser``, is shorter than 16
    characters, which could be guessed, and `MissingBackendError` where Starlette is not installed.
    """
    with importing("studies", "the server of a study"):
        from starlette.applications import Starlette
        from starlette.routing import Route

    if len(secret) < 16:
        raise InvalidInputError(
            "the organiser's secret needs at least 16 characters, such as studies.storage.new_token()"
        )
    store = store if store is not None else SubmissionStore(study.submissions)
    book = SlotBook(store.folder, len(study.plans), mirror=store.mirror, clock=store.clock)
    participants = _Participants(study, store, book)
    organiser = Organiser(study, store, book, secret)
    routes = [
        Route("/api/join", participants.join, methods=["POST"]),
        Route("/api/submit", participants.submit, methods=["POST"]),
        Route("/organiser", organiser.show, methods=["GET"]),
        Route("/organiser/{action}", organiser.act, methods=["POST"]),
        Route("/{path:path}", _Files(study.page).serve, methods=["GET"]),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found, MusicEvalsError: _refuse})
    app.add_middleware(_hardened)
    return app


def serve(
    study: StudyFolder, *, secret: str, host: str = "127.0.0.1", port: int = 7860, store: SubmissionStore | None = None
) -> None:
    """Serve a study (`build_app`) until the process is stopped; other machines reach the host ``0.0.0.0``.

    Raises `MissingBackendError` where uvicorn is not installed.
    """
    with importing("studies", "the server of a study"):
        import uvicorn

    # no access log: it would hold addresses
    app = build_app(study, secret=secret, store=store)
    uvicorn.run(app, host=host, port=port, access_log=False, log_level="warning", server_header=False)


class _Participants:
    """What the page of a participant asks of the server."""

    def __init__(self, study: StudyFolder, store: SubmissionStore, book: SlotBook) -> None:
        self.study, self.store, self.book = study, store, book

    async def join(self, request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse

        content = await self._content(request, 1000)
        if content.get("study") != self.study.study:
            raise InvalidInputError("this page is of another study; load it again")
        token, slot = await run_in_threadpool(self.book.join, str(content.get("invitation") or ""))
        sent = await run_in_threadpool(lambda: self.store.read(token, or_none=True))
        stored = sorted({submission.content["part"] for submission in sent})
        return JSONResponse({"token": token, "slot": slot, "sent": len(sent), "stored": stored})

    async def submit(self, request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse

        token = request.headers.get("x-participant", "")
        content = await self._content(request, self.store.max_bytes)
        part = check_part(self.study, content)
        given = await run_in_threadpool(self.book.given)
        if not is_token(token) or given.get(token) != part.slot:
            raise InvalidInputError("this participant was not given this plan; load the page again")
        return JSONResponse({"receipt": await run_in_threadpool(self.store.submit, token, content)})

    @staticmethod
    async def _content(request: Request, most: int) -> Mapping[str, Any]:
        # a form of another site can send neither this type nor this header
        if request.headers.get("content-type") != "application/json" or "x-study-page" not in request.headers:
            raise InvalidInputError("only the page of the study sends here")
        body = await read_body(request, most)
        try:
            content = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"no JSON ({error})") from error
        if not isinstance(content, dict):
            raise InvalidInputError("expected an object of JSON")
        return content


class _Files:
    """The files of the page, which are known when the server starts; nothing else is read."""

    def __init__(self, page: Path) -> None:
        self.files = {path.relative_to(page).as_posix(): path for path in sorted(page.rglob("*")) if path.is_file()}

    async def serve(self, request: Request) -> Response:
        from starlette.responses import FileResponse, Response

        name = request.path_params["path"] or "index.html"
        if name not in self.files:
            return await _not_found(request, None)
        path = self.files[name]
        if name == "index.html":
            return Response(path.read_bytes().replace(*_SUBMITTED, 1), media_type="text/html")
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        return FileResponse(path, media_type=kind)


async def _refuse(_: Request, error: Any) -> Response:
    """Answer what was refused with its status and its words."""
    from starlette.responses import JSONResponse

    # room may be made, and the Hub come back
    status = 503 if isinstance(error, OutputError | HubError) else 413 if isinstance(error, FileTooLargeError) else 400
    return JSONResponse({"error": str(error)}, status)


async def _not_found(_: Request, error: Any) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": "there is nothing here"}, getattr(error, "status_code", 404))


def _hardened(app: Any) -> Any:
    """Add `HEADERS` to every answer."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        from starlette.datastructures import MutableHeaders

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await app(scope, receive, with_headers)

    return answer
