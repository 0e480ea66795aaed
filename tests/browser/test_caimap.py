"""The annotation platform in a browser: listening is measured, terms are suggested, a song is settled."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PASSWORD = "a long password"  # noqa: S105  (of the demo)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    verb = ["caimap", "serve", str(tmp_path / "study"), "--demo", "--port", str(port)]
    environment = {**os.environ, "MUSIC_EVALS_CAIMAP_PASSWORD": PASSWORD}
    with subprocess.Popen(
        [sys.executable, "-m", "music_evals", *verb], env=environment, stderr=subprocess.DEVNULL
    ) as server:
        base = f"http://127.0.0.1:{port}"
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{base}/sign-in").close()  # noqa: S310  (http, ours)
                break
            except urllib.error.URLError:
                time.sleep(0.5)
        yield base
        server.terminate()


def sign_in(chromium: Any, base: str, name: str, wrong: list[str]) -> Any:
    page = chromium.new_context().new_page()
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda asked: None if asked.url.startswith((base, "data:")) else wrong.append(asked.url))
    page.goto(f"{base}/sign-in")
    page.fill("[name=name]", name)
    page.fill("[name=password]", PASSWORD)
    page.click("main button")
    page.wait_for_load_state()
    return page


def test_people_work_at_the_demo_study(chromium: Any, address: str, screenshot: Any) -> None:
    from playwright.sync_api import expect

    wrong: list[str] = []
    amateur = sign_in(chromium, address, "amateur2", wrong)
    amateur.click("form[action='/work/next'] button")
    amateur.wait_for_load_state()
    assert "/task/" in amateur.url
    assert amateur.locator("#tags_instrumentation").get_attribute("readonly") is not None
    amateur.click(".play")
    # the song, of about 20 s, is shorter than the 30 s that are heard first
    amateur.wait_for_selector("#tags_instrumentation:not([readonly])", timeout=90_000)
    amateur.locator("#tags_instrumentation").press_sequentially("钢")
    amateur.click("#terms_instrumentation button")
    assert amateur.input_value("#tags_instrumentation") == "钢琴、"
    amateur.wait_for_selector(".rate:not([disabled])", timeout=90_000)
    expect(amateur.locator(".saved")).to_have_text("草稿已保存", timeout=30_000)
    amateur.reload()
    assert amateur.input_value("#tags_instrumentation") == "钢琴、"

    inspector = sign_in(chromium, address, "inspector1", wrong)
    inspector.click("a[href^='/inspect/song/']")
    assert inspector.locator(".differs").count() > 0
    screenshot(inspector, "caimap", full_page=False)
    inspector.click("main form button")
    inspector.wait_for_url(f"{address}/inspect")

    manager = sign_in(chromium, address, "admin", wrong)
    with manager.expect_response("**/manage/progress", timeout=30_000) as answer:
        pass
    assert answer.value.status == 200
    assert wrong == []
