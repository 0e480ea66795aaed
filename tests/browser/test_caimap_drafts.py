"""Two tabs on one task of the annotation platform: the script keeps nothing over a draft that it does not show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PASSWORD = "a long password"  # noqa: S105  (of the demo)
LONGER_THAN_A_TURN_MS = 11_000


@pytest.fixture(scope="module")
def address(serve_caimap: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    base: str = serve_caimap(tmp_path_factory.mktemp("study"), "--demo", MUSIC_EVALS_CAIMAP_PASSWORD=PASSWORD)
    return base


def two_tabs(chromium: Any, address: str, name: str) -> tuple[Any, Any, list[dict[str, str]]]:
    """Return two tabs with the structure that somebody works on, and the drafts that the second sends by itself."""
    first = chromium.new_context(locale="zh-CN").new_page()
    first.goto(f"{address}/sign-in")
    first.fill("[name=name]", name)
    first.fill("[name=password]", PASSWORD)
    with first.expect_navigation():
        first.click("main button")
    first.click("form[action='/work/next'] button")
    first.wait_for_url("**/task/*")
    first.wait_for_selector("[name=line_0]")
    second = first.context.new_page()
    sent: list[dict[str, str]] = []

    def note(asked: Any) -> None:
        if asked.url.endswith("/draft"):
            sent.append(json.loads(asked.post_data)["fields"])

    second.on("request", note)
    second.goto(first.url)
    second.wait_for_selector("[name=line_0]")
    return first, second, sent


def kept_theme(page: Any) -> str:
    other = page.context.new_page()
    other.goto(page.url.removesuffix("/save").removesuffix("/submit"))
    theme: str = other.input_value("[name=theme]")
    other.close()
    return theme


def test_a_refused_draft_waits_for_a_choice(chromium: Any, address: str, screenshot: Any, tmp_path: Path) -> None:
    first, second, sent = two_tabs(chromium, address, "professional2")
    first.fill("[name=theme]", "第一页的主题")
    with first.expect_navigation():
        first.keyboard.press("Control+s")
    first.close()
    second.fill("[name=theme]", "第二页的主题")
    second.fill("[name=line_0]", "春眠不觉晓")
    with second.expect_navigation():
        second.keyboard.press("Control+s")
    second.wait_for_selector("[name=take_theme]")
    n_sent = len(sent)
    second.wait_for_timeout(LONGER_THAN_A_TURN_MS)
    assert len(sent) == n_sent
    assert kept_theme(second) == "第一页的主题"
    for scheme, width in (("light", 1280), ("dark", 390)):
        second.emulate_media(color_scheme=scheme)
        second.set_viewport_size({"width": width, "height": 900})
        assert second.evaluate("() => document.documentElement.scrollWidth") <= width
        screenshot(second, f"caimap_drafts_{scheme}")
    from axe_playwright_python.base import AXE_SCRIPT

    page = second.context.new_page()  # the policy of the page itself lets no script in
    page.set_content(second.content())
    page.evaluate(AXE_SCRIPT)
    assert page.evaluate("async () => (await axe.run()).violations.map(({ id }) => id)") in ([], ["document-title"])
    page.close()
    # by the keyboard alone: the theme of the other page, the line of this one
    second.focus("[name=take_theme][value=kept]")
    second.keyboard.press("Space")
    second.locator("[name^=take_rows][value=page]").first.focus()
    second.keyboard.press("Space")
    with second.expect_navigation():
        second.keyboard.press("Enter")
    assert (second.input_value("[name=theme]"), second.input_value("[name=line_0]")) == ("第一页的主题", "春眠不觉晓")
    assert kept_theme(second) == "第一页的主题"


def test_the_script_that_is_refused_stops_and_leads_to_the_choice(chromium: Any, address: str) -> None:
    first, second, sent = two_tabs(chromium, address, "professional1")
    first.fill("[name=theme]", "第一页")
    with first.expect_navigation():
        first.keyboard.press("Control+s")
    second.fill("[name=theme]", "第二页")
    with second.expect_response(lambda answer: answer.url.endswith("/draft")) as refused:
        pass
    assert refused.value.status == 409
    told = second.get_attribute(".saved", "data-conflict")
    second.wait_for_function("(text) => document.querySelector('.saved').textContent === text", arg=told)
    n_sent = len(sent)
    second.fill("[name=theme]", "第二页，写了更多")
    second.wait_for_timeout(LONGER_THAN_A_TURN_MS)
    assert (len(sent), kept_theme(second)) == (n_sent, "第一页")
    second.select_option("[name=reason]", "poor_audio")
    second.click("form[action$='/skip'] button")  # would leave behind what was written
    assert second.input_value("[name=theme]") == "第二页，写了更多"
    with second.expect_navigation():
        second.keyboard.press("Control+s")
    second.click("[name=take][value=page]")
    second.wait_for_url("**/task/*")
    second.wait_for_selector("[name=line_0]")
    assert kept_theme(second) == "第二页，写了更多"
