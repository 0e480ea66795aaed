"""Middleware around all responses: security headers, and a limit of the size of request bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from music_evals.caimap.web.guards import MAX_DIGITS
from music_evals.caimap.web.words import language_of, translator

__all__ = ["HEADERS", "MAX_BODY", "POLICY", "Hardened", "with_nonce"]

POLICY: Final = "Content-Security-Policy"
"""Header that says what a page may load and run."""

HEADERS: Final[Mapping[str, str]] = {
    POLICY: (
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
"""Of all responses; `with_nonce` adds to the policy of some."""

MAX_BODY: Final = 1_000_000
"""Bytes of a request."""


def with_nonce(nonce: str) -> str:
    """Return the policy that also admits styles with this nonce."""
    return HEADERS[POLICY].replace("style-src 'self'", f"style-src 'self' 'nonce-{nonce}'")


class Hardened:
    """Adds those of `HEADERS` that a response does not set itself, and refuses bodies over `MAX_BODY` unread."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        length = headers.get(b"content-length", b"0" if scope["method"] in {"GET", "HEAD"} else b"")

        async def hardened(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in added if each[0] not in own)]
            await send(message)

        if not length.isdigit() or len(length) > MAX_DIGITS or int(length) > MAX_BODY:
            from starlette.requests import Request
            from starlette.responses import PlainTextResponse

            text = translator(language_of(Request(scope)))("body_too_long")
            await PlainTextResponse(text, 413)(scope, receive, hardened)
            return
        await self.app(scope, receive, hardened)
