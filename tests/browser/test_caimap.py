"""The annotation platform in a browser: listening is measured, terms are suggested, a song is settled."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.caimap_bench import reports

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PASSWORD = "a long password"  # noqa: S105  (of the demo)


@pytest.fixture(scope="module")
def address(serve_caimap: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("study")
    base: str = serve_caimap(folder, "--demo", MUSIC_EVALS_CAIMAP_PASSWORD=PASSWORD)
    return base


# width of the part of the waveform that was played, in per cent
PLAYED = "(wave) => Number.parseFloat(wave.querySelector('.played').style.width)"


def sign_in(chromium: Any, base: str, name: str, wrong: list[str], **wishes: Any) -> Any:
    page = chromium.new_context(**{"locale": "zh-CN", **wishes}).new_page()
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda asked: None if asked.url.startswith((base, "data:")) else wrong.append(asked.url))
    page.goto(f"{base}/sign-in")
    page.fill("[name=name]", name)
    page.fill("[name=password]", PASSWORD)
    with page.expect_navigation():
        page.click("main button")
    return page


def next_task(page: Any) -> None:
    page.click("form[action='/work/next'] button")
    page.wait_for_url("**/task/*")


def reporting(kind: str) -> Callable[[Any], bool]:
    """Tell the requests by which a page reports a kind of event."""
    return lambda asked: asked.url.endswith("/events") and f'"{kind}"' in asked.post_data


def saving(text: str) -> Callable[[Any], bool]:
    """Tell the answers to drafts that hold a text."""
    return lambda answer: answer.url.endswith("/draft") and text in answer.request.post_data


def test_people_work_at_the_demo_study(chromium: Any, address: str, screenshot: Any) -> None:

    wrong: list[str] = []
    amateur = sign_in(chromium, address, "amateur2", wrong)
    next_task(amateur)
    assert amateur.locator("#tags_instrumentation").get_attribute("readonly") is not None
    amateur.click(".play")
    # the song, of about 20 s, is shorter than the 30 s that are heard first
    amateur.wait_for_selector("#tags_instrumentation:not([readonly])", timeout=90_000)
    amateur.locator("#tags_instrumentation").press_sequentially("钢")
    with amateur.expect_response(saving("钢琴"), timeout=30_000):
        amateur.click("#terms_instrumentation button")
    assert amateur.input_value("#tags_instrumentation") == "钢琴、"
    amateur.wait_for_selector(".rate:not([disabled])", timeout=90_000)
    amateur.reload()
    assert amateur.input_value("#tags_instrumentation") == "钢琴、"

    inspector = sign_in(chromium, address, "inspector1", wrong)
    inspector.click("a[href^='/inspect/song/']")
    inspector.locator(".differs").first.wait_for()  # a click does not wait for the page that it leads to
    screenshot(inspector, "caimap", full_page=False)
    inspector.click("main form button.first")
    inspector.wait_for_url(f"{address}/inspect")

    manager = sign_in(chromium, address, "admin", wrong)
    with manager.expect_response("**/manage/progress", timeout=30_000) as answer:
        pass
    assert answer.value.status == 200
    assert wrong == []


def test_the_waveform_obeys_the_rules_of_listening(chromium: Any, address: str) -> None:
    wrong: list[str] = []
    page = sign_in(chromium, address, "amateur1", wrong)
    next_task(page)
    wave = page.locator(".wave")
    page.wait_for_selector(".wave .played")
    seen = reports(page)

    def click(share: float) -> None:
        box = wave.bounding_box()
        page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)

    duration = float(page.get_attribute(".player", "data-duration"))
    click(0.8)  # before anything was heard
    assert page.evaluate("() => document.querySelector('audio').currentTime") == 0
    with page.expect_request(reporting("ended"), timeout=90_000):
        page.click(".play")
        page.wait_for_function("() => document.querySelector('audio').currentTime > 2")
        click(0.9)
        assert page.evaluate("() => document.querySelector('audio').currentTime") < 0.85 * duration
    page.wait_for_selector(".rate:not([disabled])", timeout=90_000)
    kinds = [kind for kind, _, _ in seen]
    assert kinds.count("play") == kinds.count("ended") == 1
    assert "seek" not in kinds
    with page.expect_request(reporting("seek")):  # reports go out one by one, each after the answer to the one before
        click(0.25)
    page.wait_for_function(f"() => Math.abs(document.querySelector('.position').value - {duration / 4}) < 0.2")
    page.wait_for_function(f"() => Math.abs(({PLAYED})(document.querySelector('.wave')) - 25) < 1")
    page.focus(".position")
    with page.expect_request(reporting("seek")):
        page.keyboard.press("Home")
    page.wait_for_function(f"() => ({PLAYED})(document.querySelector('.wave')) < 1")
    first, second = [(at, to) for kind, at, to in seen if kind == "seek"]
    assert first == (pytest.approx(duration, abs=0.2), pytest.approx(duration / 4, abs=0.2))
    assert second == (pytest.approx(duration / 4, abs=0.2), 0)
    assert wrong == []


def test_a_player_without_motion_and_one_without_a_waveform(chromium: Any, address: str) -> None:
    wrong: list[str] = []
    still = sign_in(chromium, address, "professional2", wrong, reduced_motion="reduce")
    next_task(still)
    still.wait_for_selector(".wave .played")
    seen = reports(still)
    still.click(".play")
    still.wait_for_function("() => document.querySelector('audio').currentTime > 2.3")
    duration = float(still.get_attribute(".player", "data-duration"))
    seconds = still.locator(".wave").evaluate(PLAYED) / 100 * duration
    assert seconds == pytest.approx(round(seconds), abs=0.01)  # from second to second
    assert {kind for kind, _, _ in seen} <= {"play", "beat"}
    assert wrong == []

    plain = sign_in(chromium, address, "professional2", [])
    plain.route("**/waveform", lambda route: route.fulfill(status=400))
    next_task(plain)
    plain.wait_for_selector(".wave[hidden]", state="attached")
    plain.click(".play")
    plain.wait_for_function("() => document.querySelector('audio').currentTime > 0.5")


def test_no_refusal_and_no_new_sign_in_loses_a_draft(chromium: Any, address: str) -> None:
    from playwright.sync_api import expect

    wrong: list[str] = []
    page = sign_in(chromium, address, "professional2", wrong)
    next_task(page)
    page.wait_for_selector("[name=line_0]")
    task = page.url
    # handed in at once, and refused: what was written is kept without another key
    page.fill("[name=theme]", "春天的早晨")
    page.select_option("[name=label_0]", "")  # no section begins
    page.click("form.annotation button.first")
    expect(page.locator("main > .message")).to_be_visible(timeout=30_000)
    expect(page.locator(".saved")).to_have_text("草稿已保存", timeout=30_000)
    # the session ends, and in another tab a new one begins: this page goes on
    other = page.context.new_page()
    other.goto(f"{address}/work")
    other.click("form[action='/sign-out'] button")
    other.wait_for_url(f"{address}/sign-in")
    other.fill("[name=name]", "professional2")
    other.fill("[name=password]", PASSWORD)
    other.click("main button")
    other.wait_for_selector("form[action='/sign-out']")
    page.fill("[name=theme]", "春天的傍晚")
    assert page.inner_text(".saved") == ""  # of what is on the page now
    for _ in range(20):
        other.goto(task)
        if other.input_value("[name=theme]") == "春天的傍晚":
            break
        other.wait_for_timeout(1000)
    assert other.input_value("[name=theme]") == "春天的傍晚"
    # a skip that is refused leaves the lines where they are
    n_lines = other.locator("[name^=line_]").count()
    other.select_option("[name=reason]", "other")
    other.click("form[action$='/skip'] button")
    expect(other.locator("main > .message")).to_be_visible(timeout=30_000)
    assert n_lines > 0
    expect(other.locator("[name^=line_]")).to_have_count(n_lines)
    assert other.input_value("[name=reason]") == "other"


def test_what_is_typed_before_the_script_runs_is_kept(chromium: Any, address: str) -> None:
    page = sign_in(chromium, address, "professional2", [])
    next_task(page)
    waiting: list[Any] = []
    page.route("**/static/caimap.js", lambda route: waiting.append(route))  # noqa: PLW0108  (playwright marks it)
    page.reload(wait_until="commit")
    page.fill("[name=theme]", "春天的夜晚")
    with page.expect_response(saving("春天的夜晚"), timeout=30_000):
        waiting[0].continue_()


def test_who_listens_on_a_slow_line_breaks_no_rule(chromium: Any, address: str) -> None:
    page = sign_in(chromium, address, "amateur1", [])
    next_task(page)
    page.click("[formaction$='/restart']")  # it may have been heard before
    page.click("[name=sure]")
    page.wait_for_selector(".rate[disabled]")

    def hold(route: Any) -> None:
        if reporting("play")(route.request):
            time.sleep(6)  # longer than a player may be ahead of the server's clock
        route.continue_()

    page.route("**/events", hold)
    page.click(".play")
    page.wait_for_selector(".rate:not([disabled])", timeout=90_000)
    assert page.inner_text(".saved") == page.get_attribute(".player", "data-may-seek")


@pytest.mark.parametrize("place", ["task", "feedback"])
def test_two_quick_clicks_send_feedback_once(chromium: Any, address: str, place: str) -> None:
    """Where somebody works, and on the page of all messages."""
    from playwright.sync_api import expect

    page = sign_in(chromium, address, "professional2", [])
    if place == "task":
        next_task(page)
        page.click(".here summary")
    else:
        page.goto(f"{address}/feedback")
    text = f"clicked twice on {place}"
    form = page.locator("form[action='/feedback']")
    form.locator("[name=content]").fill(text)
    sent: list[str] = []
    page.on("request", lambda asked: sent.append(asked.url) if asked.method == "POST" else None)
    line = page.context.new_cdp_session(page)
    line.send("Network.enable")  # a slow line: the second click comes before the answer to the first
    slow = {"offline": False, "latency": 1000, "downloadThroughput": -1, "uploadThroughput": -1}
    line.send("Network.emulateNetworkConditions", slow)
    button = form.locator("button")
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    for _ in range(2):
        page.mouse.click(box["x"] + 5, box["y"] + 5)
        page.wait_for_timeout(100)
    if place == "task":
        expect(form).to_have_count(0, timeout=30_000)
        page.goto(f"{address}/feedback")
    expect(page.locator(".said li", has_text=text)).to_have_count(1, timeout=30_000)
    assert sent == [f"{address}/feedback"]
