"""The page on descriptions in a browser: a song, a comparison, the matrix, languages, narrow and dark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def compare(page: Any, tab: str = "Compare two descriptions") -> None:
    page.get_by_role("tab", name=tab).click()
    page.click("#compare")
    page.wait_for_selector("#scores_view table")


def test_a_song_has_tags_of_both_groups(open_space: Any, screenshot: Any) -> None:
    page = open_space("description")
    page.wait_for_selector("#song_view .tg-row")
    assert "末班车过海桥" in page.inner_text("#song_view")
    page.click("#song input")
    page.get_by_role("option", name="迎着浪").click()
    page.wait_for_selector("#song_view h3:has-text('迎着浪')")
    assert page.locator("#song_view [data-dimension=instrumentation] .tg-side").count() == 2
    screenshot(page, "description_song")


def test_two_descriptions_are_compared_with_their_matrix(open_space: Any, screenshot: Any) -> None:
    page = open_space("description")
    assert "char-ngrams" in page.inner_text("#encoder_text")
    compare(page)
    assert "Average of the scored dimensions" in page.inner_text("#average")
    page.wait_for_selector("#matrix_view table")
    page.click("#dimension input")
    page.get_by_role("option", name="Song purpose").click()
    page.wait_for_selector("#matrix_view caption:has-text('Song purpose')")
    assert page.locator("#matrix_view td.tg-cell").count() > 3
    screenshot(page, "description_compare")
    with page.expect_download() as download:
        page.click("#download_json")
    values = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert values["encoder"]["name"] == page.input_value("#encoder input")
    page.click("#code > button")
    assert "score_description" in page.inner_text("#code_python")


def test_the_switch_turns_the_page_chinese_with_its_scores(open_space: Any, screenshot: Any) -> None:
    page = open_space("description")
    compare(page)
    page.get_by_label("中文").check()
    page.wait_for_selector("#compare:has-text('比较')")
    page.wait_for_selector("#average:has-text('平均值')")
    page.wait_for_selector("#matrix_view:has-text('最佳匹配')")
    screenshot(page, "description_chinese")
    page.get_by_role("tab", name="录音打标签").click()
    assert "MUSIC_EVALS_TAGGER" in page.inner_text("#probe_text")
    page.get_by_role("tab", name="歌曲标签").click()
    assert "配器与音效" in page.inner_text("#song_view")


def test_results_go_when_what_was_compared_is_changed(open_space: Any) -> None:
    page = open_space("description")
    page.get_by_role("tab", name="Compare two descriptions").click()
    assert page.is_disabled("#download_json")
    assert page.is_disabled("#download_csv")
    for change in (
        lambda: page.fill("#set_b textarea", "song_purpose: 睡前"),
        lambda: page.press("#set_b textarea", "Backspace"),
        lambda: page.click("#use_example"),
        lambda: page.get_by_label("amateur", exact=True).check(),
    ):
        page.click("#compare")
        page.wait_for_selector("#scores_view table")
        page.wait_for_selector("#download_json:not([disabled])")
        change()
        page.wait_for_selector("#scores_view", state="detached")
        page.wait_for_selector("#matrix .me-empty:has-text('Compare two descriptions first')")
        page.wait_for_selector("#download_json[disabled]")
        assert not page.input_value("#dimension input")


def test_mistakes_are_told_with_their_line(open_space: Any) -> None:
    page = open_space("description")
    page.get_by_role("tab", name="Compare two descriptions").click()
    page.fill("#set_a textarea", "song_purpose: 甲\nmood<img src=x>: 乙")
    page.click("#compare")
    page.wait_for_selector("[data-testid=toast-text]")
    assert "line 2: mood<img src=x> is no dimension" in page.inner_text("[data-testid=toast-text]")
    assert page.locator("[data-testid=toast-text] img").count() == 0


def test_by_keyboard_on_a_narrow_dark_page(open_space: Any, screenshot: Any) -> None:
    page = open_space("description", viewport=(390, 844), dark=True)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "me-skip"
    page.wait_for_selector("#song_view .tg-row")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    heights = "lists => lists.map(chips => new Set([...chips.children].map(chip => chip.offsetHeight)).size)"
    assert set(page.eval_on_selector_all("#song_view .tg-chips", heights)) == {1}
    screenshot(page, "description_narrow_dark")
