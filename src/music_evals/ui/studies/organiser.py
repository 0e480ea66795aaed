"""The organiser's page: how far the study is, all that was sent as one file, and withdrawal, behind a secret.

Who gives the secret gets a cookie that is signed with it, for `SESSION_SEC`, and that no other site can use; forms hold
besides a word that only this page knows.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import secrets
import time
import zipfile
from collections import deque
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from music_evals.errors import FileTooLargeError, MusicEvalsError
from music_evals.studies.answers import participants_of
from music_evals.studies.folders import SUBMISSIONS, StudyFolder
from music_evals.studies.storage import SlotBook, SubmissionStore, is_secret
from music_evals.ui.assets import html

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["SESSION_SEC", "Organiser"]

SESSION_SEC = 8 * 3600
"""How long one need not give the secret again."""
TRIES, TRIES_SEC = 10, 60.0  # so many wrong secrets are answered in so many seconds
_COOKIE = "study_organiser"
_MOST_BYTES = 10_000


async def read_body(request: Request, most: int) -> bytes:
    """Return the body of a request; one of more than `most` bytes is refused, and read no further."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise FileTooLargeError(f"at most {most} bytes are taken")
    return bytes(body)


class Organiser:
    """The organiser's page of one study, which a secret opens."""

    def __init__(self, study: StudyFolder, store: SubmissionStore, book: SlotBook, secret: str) -> None:
        self.study, self.store, self.book, self.secret = study, store, book, secret
        self._wrong: deque[float] = deque(maxlen=TRIES)

    async def show(self, request: Request) -> Response:
        """Show the page, or ask for the secret."""
        return await self._page(request, "")

    async def act(self, request: Request) -> Response:
        """Do what a form of the page asks for."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import RedirectResponse, Response

        try:
            body = await read_body(request, _MOST_BYTES)
        except FileTooLargeError as error:
            return Response(str(error), 413)
        form = {name: values[0] for name, values in parse_qs(body.decode(errors="replace")).items()}
        action = request.path_params["action"]
        if action == "enter":
            return await self._enter(request, form.get("secret", ""))
        session = self._session(request)
        if session is None or not hmac.compare_digest(
            form.get("word", "").encode(), self._mac("word", session).encode()
        ):
            return await self._page(request, "This form is too old; try again.", 403)
        if action == "leave":
            answer: Response = RedirectResponse(_place(request), 303)
            answer.delete_cookie(_COOKIE, path="/")
            return answer
        if action == "export":
            return await self._export(request)
        if action == "withdraw":
            token = form.get("token", "").strip()
            try:
                removed = await run_in_threadpool(self.store.withdraw, token)
                await run_in_threadpool(self.book.forget, token)
            except MusicEvalsError as error:
                return await self._page(request, str(error), 400)
            return await self._page(request, f"{removed} submissions of {token} were removed.")
        return await self._page(request, "There is no such action.", 404)

    async def _enter(self, request: Request, secret: str) -> Response:
        from starlette.responses import RedirectResponse

        if len(self._wrong) == TRIES and time.monotonic() - self._wrong[0] < TRIES_SEC:
            return await self._page(request, "Too many wrong secrets; wait a minute.", 429)
        if not is_secret(secret, self.secret):
            self._wrong.append(time.monotonic())
            return await self._page(request, "That is not the secret.", 403)
        answer = RedirectResponse(_place(request), 303)
        session = f"{int(time.time()) + SESSION_SEC}.{secrets.token_hex(8)}"
        answer.set_cookie(
            _COOKIE, f"{session}.{self._mac('session', session)}", max_age=SESSION_SEC,
            path="/", httponly=True, samesite="strict", secure=request.url.scheme == "https",
        )  # fmt: skip
        return answer

    async def _page(self, request: Request, message: str, status: int = 200) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import HTMLResponse

        session = self._session(request)
        title = self.study.introduction.title
        values: dict[str, Any] = {"title": title, "said": message, "word": None, "place": _place(request)}
        if session is not None:
            values |= await run_in_threadpool(self._progress)
            values["word"] = self._mac("word", session)  # what its forms hold
        return HTMLResponse(str(html("study_organiser.html", **values)), status)

    def _progress(self) -> dict[str, Any]:
        """Return what the page shows: slots, participants and their parts."""
        slots = self.book.given()
        try:
            sent = {participant.token: participant for participant in participants_of(self.study, store=self.store)}
            problem = ""
        except MusicEvalsError as error:
            sent, problem = {}, str(error) if slots else ""
        rows = [
            (slot + 1, token, ", ".join(sorted(sent[token].parts)) if token in sent else "")
            for token, slot in sorted(slots.items(), key=lambda pair: (pair[1], pair[0]))
        ]
        return {"rows": rows, "n_slots": len(self.study.plans), "n_sent": len(sent), "problem": problem}

    async def _export(self, request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import Response

        try:
            content = await run_in_threadpool(self._archive)
        except MusicEvalsError as error:
            return await self._page(request, str(error), 409)
        name = f"{self.study.study}-submissions.zip"
        return Response(
            content, media_type="application/zip", headers={"Content-Disposition": f'attachment; filename="{name}"'}
        )

    def _archive(self) -> bytes:
        """Return the folder of what was sent, with the times of the server, to be unpacked into that of the study."""
        participants_of(self.study, store=self.store)  # says what is damaged
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(self.store.folder.glob("[!.]*")):  # a dot begins what is being written
                archive.write(path, f"{SUBMISSIONS}/{path.name}")
        return file.getvalue()

    def _session(self, request: Request) -> str | None:
        """Return the session of a request, which is whole, ours and not over."""
        cookie = request.cookies.get(_COOKIE, "")
        session = cookie.rpartition(".")[0]
        if not hmac.compare_digest(cookie.encode(), f"{session}.{self._mac('session', session)}".encode()):
            return None
        end = session.partition(".")[0]
        return session if end.isdecimal() and int(end) > time.time() else None

    def _mac(self, purpose: str, text: str) -> str:
        return hmac.new(self.secret.encode(), f"{purpose}:{text}".encode(), hashlib.sha256).hexdigest()


def _place(request: Request) -> str:
    """Return the path of the page, behind a proxy too."""
    return f"{request.scope.get('root_path', '')}/organiser"
