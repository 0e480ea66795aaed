"""A page of the house in headless Chromium: served from a process of its own, watched for requests and errors."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "results" / "screenshots"
REQUIRED = os.environ.get("MUSIC_EVALS_REQUIRE", "").split(",")
START_SEC = 120.0  # Gradio takes ten seconds to import on a busy machine
TIMEOUT_MS = 60_000

SERVE = """
import importlib.util, sys
from music_evals.ui.frame import launch
spec = importlib.util.spec_from_file_location("space_app", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["space_app"] = module
spec.loader.exec_module(module)
page = module.build_demo()
launch(page, server_name="127.0.0.1", server_port=int(sys.argv[2]), quiet=True)
"""


def chromium_or_reason() -> tuple[str | None, str]:
    """Return the browser's path, or why there is none."""
    if importlib.util.find_spec("playwright") is None:
        return None, "playwright is absent; install it with: pip install playwright"
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    return path, "" if path else "Chromium is absent; install it with: apt-get install chromium"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The system's Chromium. It ends with the module: its event loop would be in the way of other tests."""
    path, reason = chromium_or_reason()
    if path is None:
        if "browser" in REQUIRED:
            pytest.fail(f"MUSIC_EVALS_REQUIRE names browser: {reason}")
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required"],
        )
        yield browser
        browser.close()


@dataclasses.dataclass
class Served:
    """A page that is being served."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Serve pages, each once a module: name of a folder below `spaces/`, or `metrics/<name>`."""
    running: dict[str, Served] = {}

    def serve(name: str) -> Served:
        if name not in running:
            running[name] = start(name, tmp_path_factory.mktemp("server") / "log.txt")
        return running[name]

    yield serve
    end(*running.values())


def start(name: str, log: Path) -> Served:
    app = ROOT / (name if "/" in name else f"spaces/{name}") / "app.py"
    command = [sys.executable, "-P", "-c", SERVE, str(app)]
    environment = os.environ | {"GRADIO_ANALYTICS_ENABLED": "False"}
    return serving(command, log, "/gradio_api/info", cwd=app.parent, env=environment)


def serving(command: list[str], log: Path, path: str = "/", **options: Any) -> Served:
    """Start a server whose command ends with its port, and wait for a page of it."""
    latest = time.monotonic() + START_SEC
    told = "in use"
    # another process may take the port before the server does
    while re.search("in use|empty port", told) and time.monotonic() < latest:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with log.open("wb") as output:
            process = subprocess.Popen([*command, str(port)], stdout=output, stderr=output, **options)
        url = f"http://127.0.0.1:{port}"
        while process.poll() is None and time.monotonic() < latest:
            try:
                httpx2.get(f"{url}{path}", timeout=5, trust_env=False, follow_redirects=True).raise_for_status()
            except httpx2.HTTPError:
                time.sleep(0.2)
            else:
                return Served(url, process, log)
        process.kill()
        process.wait()
        told = log.read_text(errors="replace")[-4000:]
    pytest.fail(f"{' '.join(command)} did not start:\n{told}")


def end(*running: Served) -> None:
    """End servers; on a busy machine that takes its time too."""
    for served in running:
        served.process.terminate()
    for served in running:
        served.process.wait(timeout=START_SEC)


@pytest.fixture(scope="module")
def serve_caimap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Serve studies of the annotation platform: `serve_caimap(folder, "--demo")` gives the address of its pages."""
    running: list[Served] = []

    def serve(folder: Path, *options: str, **environment: str) -> str:
        verb = [sys.executable, "-m", "music_evals", "caimap", "serve", str(folder), *options, "--port"]
        log = tmp_path_factory.mktemp("server") / "log.txt"
        running.append(serving(verb, log, "/sign-in", env=os.environ | environment))
        return running[-1].url

    yield serve
    end(*running)


@dataclasses.dataclass
class Watch:
    """What a page did that it must not do."""

    errors: list[str] = dataclasses.field(default_factory=list)
    outward: list[str] = dataclasses.field(default_factory=list)

    def over(self, page: Any) -> None:
        page.on("console", self._logged)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._note(request.url))

    def _logged(self, message: Any) -> None:
        # Seen once on a busy machine: two 422 while a run was cancelled. We take it that Gradio's client asked
        # its server to cancel a run whose id it did not have yet; any other error still fails.
        url = message.location.get("url", "")
        refused = "status of 422" in message.text and url.endswith("/cancel")
        if message.type == "error" and not refused:
            self.errors.append(f"{message.text} {url}")

    def _note(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"data", "blob", "about"} and parts.hostname not in {"127.0.0.1", "localhost"}:
            self.outward.append(url)


@pytest.fixture
def open_space(chromium: Any, servers: Any) -> Iterator[Any]:
    """Open a Space: `open_space("preservation", viewport=(390, 844), dark=True)` gives a page of playwright.

    At the end of the test no page may have asked for anything outside this machine, nor logged an error.
    """
    watched: list[tuple[Watch, Any]] = []

    def open_page(name: str, *, viewport: tuple[int, int] = (1280, 900), dark: bool = False) -> Any:
        served = servers(name)
        context = chromium.new_context(
            viewport={"width": viewport[0], "height": viewport[1]},
            color_scheme="dark" if dark else "light",
            accept_downloads=True,
        )
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        watch = Watch()
        watch.over(page)
        watched.append((watch, context))
        page.goto(f"{served.url}/?__theme={'dark' if dark else 'light'}")
        page.wait_for_selector("#tool", state="attached")
        return page

    yield open_page
    for _, context in watched:
        context.close()
    for watch, _ in watched:
        assert not watch.outward, "the page asked for something outside this machine"
        assert not watch.errors, "the page logged errors"


@pytest.fixture
def screenshot() -> Any:
    """Store a picture of a page: `screenshot(page, "preservation_dark")`; CI keeps the folder."""

    def take(page: Any, name: str, *, full_page: bool = True) -> Path:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        page.screenshot(path=str(path), full_page=full_page)
        return path

    return take
