"""A client that calls an application where it stands: no thread and no loop beside it, so that a request costs a third.

Starlette's own client starts a thread with an event loop for each request, and the application one more for each of
its functions; that is for tests of what happens at once, and for those that need its other promises.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import httpx2


async def at_once(function: Callable[..., Any], *given: Any, **_: Any) -> Any:
    """Stand for `anyio.to_thread.run_sync`."""
    return function(*given)


class Direct(httpx2.BaseTransport):
    """Sends requests to an application by calling it."""

    def __init__(self, app: Any) -> None:
        self.inner = httpx2.ASGITransport(app=app)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        async def answer() -> httpx2.Response:
            found = await self.inner.handle_async_request(request)
            return httpx2.Response(found.status_code, headers=found.headers, content=await found.aread())

        with patch("anyio.to_thread.run_sync", at_once):
            return asyncio.run(answer())
