"""Signing in by a provider at another site, in a browser: which cookies it sends, and which redirects it follows."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from tests.browser.conftest import end, serving
from tests.browser.test_caimap_access import found
from tests.caimap.local_provider import CLIENT, SECRET, LocalProvider, running

from music_evals.caimap.services import accounts
from music_evals.caimap.services.study import StudyService
from music_evals.caimap.storage.store import Store, sqlite_url
from music_evals.cli import main

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PASSWORD = "a long password"  # noqa: S105  (of nobody)


@pytest.fixture
def provider() -> Iterator[LocalProvider]:
    # the study is at 127.0.0.1: for a browser another site than localhost, where a port makes no difference
    with running(LocalProvider("localhost")) as served:
        served.asks = True
        yield served


@pytest.fixture
def address(provider: LocalProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("MUSIC_EVALS_CAIMAP_PASSWORD", PASSWORD)
    assert main(["caimap", "init", str(tmp_path / "study")]) == 0
    verb = [sys.executable, "-m", "music_evals", "caimap", "serve", str(tmp_path / "study"), "--port"]
    given = {"OAUTH_CLIENT_ID": CLIENT, "OAUTH_CLIENT_SECRET": SECRET, "OPENID_PROVIDER_URL": provider.url}
    server = serving(verb, tmp_path / "server.txt", "/sign-in", env=os.environ | given)
    yield server.url
    end(server)


def sent(requests: list[Any], path: str) -> dict[str, str]:
    """The cookies of the last request for a path."""
    found = [each for each in requests if re.sub(r"^http://[^/]*|\?.*", "", each.url) == path]
    pairs = (each.split("=", 1) for each in found[-1].all_headers().get("cookie", "").split("; ") if each)
    return dict(pairs)


def test_people_sign_in_at_another_site(chromium: Any, address: str, provider: LocalProvider, tmp_path: Path) -> None:
    store = Store(sqlite_url(tmp_path / "study" / "study.db"))
    service = StudyService(store)
    token = accounts.invite(service, accounts.first_administrator(service), "amateur")
    context = chromium.new_context()
    context.add_init_script(AXE_SCRIPT)
    page = context.new_page()
    wrong: list[str] = []
    requests: list[Any] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda asked: requests.append(asked))  # noqa: PLW0108  (playwright marks what it is given)

    # by an invitation, from a form, whose answer no redirect may be
    page.goto(f"{address}/invitation/{token}")
    assert found(page) == []
    form = page.locator("form[action$='/hugging-face']")
    form.locator("[name=name]").fill("林")
    form.locator("[name=consents]").check()
    form.locator("button").click()
    page.click("text=Agree")
    page.wait_for_url(f"{address}/work")
    assert "林" in page.locator("header").inner_text()
    assert "caimap_sign_in" in sent(requests, "/sign-in/hugging-face/callback")
    [session] = [each for each in context.cookies() if each["name"] == "caimap_session"]
    assert (session["sameSite"], session["httpOnly"]) == ("Strict", True)
    assert not [each for each in context.cookies() if each["name"] == "caimap_sign_in"]

    # again, by the link of the page
    page.click("form[action='/sign-out'] button")
    page.click("a[href='/sign-in/hugging-face']")
    page.click("text=Agree")
    page.wait_for_url(f"{address}/work")

    # the administrator, who has a password, links another account
    page.click("form[action='/sign-out'] button")
    page.fill("[name=name]", "admin")
    page.fill("[name=password]", PASSWORD)
    page.click("main button")
    page.wait_for_url(f"{address}/manage")
    provider.subject = "another"
    page.goto(f"{address}/account")
    assert found(page) == []
    page.click("form[action='/account/link'] button")
    page.click("text=Agree")
    page.wait_for_selector("form[action='/account/unlink']")
    assert found(page) == []
    back, then = sent(requests, "/sign-in/hugging-face/callback"), sent(requests, "/account")
    assert "caimap_session" not in back, "the way back did not begin at another site, so nothing was shown here"
    assert "caimap_session" in then
    page.click("form[action='/sign-out'] button")
    page.click("a[href='/sign-in/hugging-face']")
    page.click("text=Agree")
    page.wait_for_url(f"{address}/manage")
    assert wrong == []
    context.close()
    store.close()
