"""A web server of files for tests: folders as pages of links, ETags, and what may be wrong with a server."""

from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import quote, unquote

__all__ = ["WebServer"]


class WebServer:
    """Files by their paths, served until the end of the ``with`` block."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.versions = "ETag"  # the header that tells a version: ETag, Last-Modified, or nothing
        self.statuses: dict[str, int] = {}  # path -> the status that it is answered with
        self.moved: dict[str, str] = {}  # path -> the address that it is sent on to
        self.asked: list[str] = []  # method and path of every request
        handler = type("Handler", (_Handler,), {"web": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    web: WebServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer in one packet

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0]).lstrip("/")
        self.web.asked.append(f"{self.command} {path}")
        inside = [name.removeprefix(path) for name in self.web.files if name.startswith(path)]
        if path in self.web.statuses:
            self._answer(self.web.statuses[path], b"")
        elif path in self.web.moved:
            self._answer(302, b"", {"Location": self.web.moved[path]})
        elif path in self.web.files:
            self._answer(200, self.web.files[path], self._version(self.web.files[path]))
        elif inside and not path.endswith("/") and path:
            self._answer(301, b"", {"Location": f"/{quote(path)}/"})
        elif inside:
            links = sorted({quote(name.partition("/")[0]) + ("/" if "/" in name else "") for name in inside})
            page = "".join(f'<a href="{link}">{link}</a>\n' for link in ["?C=N;O=D", "../", *links])
            self._answer(200, page.encode(), {"Content-Type": "text/html"})
        else:
            self._answer(404, b"")

    do_HEAD = do_GET  # noqa: N815 (a name of http.server)

    def _version(self, content: bytes) -> dict[str, str]:
        digest = hashlib.sha256(content).hexdigest()[:8]
        if self.web.versions == "Last-Modified":
            when = f"Sun, 22 Nov 2026 {int(digest[:2], 16) % 24:02}:00:{int(digest[2:4], 16) % 60:02} GMT"
            return {"Last-Modified": when}
        return {"ETag": f'"{digest}"'} if self.web.versions else {}

    def _answer(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
