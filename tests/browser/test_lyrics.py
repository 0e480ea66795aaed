"""The page on lyrics in a browser: example, score, marks, editor, languages, narrow and dark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]


COVERED = """() => [...document.querySelectorAll('input[role=combobox]')].filter(box => {
  const right = box.getBoundingClientRect().right - parseFloat(getComputedStyle(box).paddingRight);
  const arrow = box.parentElement.querySelector('.icon-wrap').getBoundingClientRect();
  return box.offsetParent && right > arrow.left + 1;
}).map(box => box.ariaLabel)"""
"""Lists whose text lies under their arrow."""


def score(page: Any) -> None:
    page.click("#score")
    page.wait_for_selector("#score_view .ly-level")


def chosen(page: Any, elem_id: str, text: str) -> None:
    page.click(f"#{elem_id} input")
    page.get_by_role("option", name=text).click()


def test_the_example_is_scored_and_marked(open_space: Any, screenshot: Any) -> None:
    page = open_space("lyrics")
    assert "✓" in page.inner_text("#pattern_text")
    score(page)
    assert "of 110" in page.inner_text("#score_view .ly-total")
    assert page.locator("#score_view [role=img]").count() == 6
    widths = page.eval_on_selector_all("#score_view .ly-frame", "frames => frames.map(frame => frame.offsetWidth)")
    assert max(widths) == widths[1]  # the section level, 32.5 points
    screenshot(page, "lyrics_score")
    page.get_by_role("tab", name="Lines and rhymes").click()
    page.wait_for_selector("#lines_view [data-mark=missed]")
    assert page.locator("#lines_view [data-mark=kept]").count() == 3
    border = "mark => getComputedStyle(mark).borderTopStyle"
    assert page.eval_on_selector("#lines_view [data-mark=kept] .ly-mark", border) == "solid"
    assert page.eval_on_selector("#lines_view [data-mark=missed] .ly-mark", border) == "dashed"
    screenshot(page, "lyrics_lines")
    page.get_by_role("tab", name="Where points were lost").click()
    assert "section 3 (ending1) is missing" in page.inner_text("#lost_view")
    page.get_by_role("tab", name="What the normaliser changed").click()
    assert "simplified characters" in page.inner_text("#changes_view")


def test_the_switch_turns_the_page_chinese_with_its_score(open_space: Any, screenshot: Any) -> None:
    page = open_space("lyrics")
    score(page)
    page.get_by_label("中文").check()
    page.wait_for_selector("#score:has-text('评分')")
    page.wait_for_selector("#score_view:has-text('总分')")
    assert page.get_by_role("tab", name="失分之处").is_visible()
    assert "歌词：段落标题" in page.inner_text("#lyrics")
    assert "模式正确" in page.inner_text("#pattern_text")
    screenshot(page, "lyrics_chinese")
    page.fill("#lyrics textarea", "床前明月光")
    page.click("#score")
    page.wait_for_selector("[data-testid=toast-text]")
    assert "没有段落标题" in page.inner_text("[data-testid=toast-text]")


def test_the_editor_tells_line_and_column_while_one_types(open_space: Any) -> None:
    page = open_space("lyrics")
    page.fill("#pattern textarea", "(verse1)\ncccR\nccRc")
    page.wait_for_selector("#pattern_text :text('Line 3, column 3')")
    page.fill("#pattern textarea", "(verse1)\ncccR")
    page.wait_for_selector("#pattern_text :text('Sections: 1, lines: 1')")
    page.click("#tools button")
    page.click("#add_section")
    page.wait_for_selector("#pattern_remark :text('(verse2)')")
    assert page.input_value("#pattern textarea").endswith("(verse2)\nccccccc\nccccccR\nccccccc\nccccccR")
    page.click("#derive")
    page.wait_for_selector("#pattern_remark :text('rhymes marked')")
    assert page.input_value("#pattern textarea").startswith("(verse)\nccccR\nccccR\nccccc\nccccR\n(chorus)")


def test_texts_are_shown_as_text_and_results_can_be_taken_away(open_space: Any) -> None:
    page = open_space("lyrics")
    page.fill("#lyrics textarea", "(verse)\n<img src=x onerror=alert(1+1)>床前明月光\n疑是地上霜${1+1}{{1+1}}")
    page.locator("#normalise input").uncheck()
    score(page)
    page.get_by_role("tab", name="Lines and rhymes").click()
    page.wait_for_selector("#lines_view .ly-line")
    assert "<img src=x onerror=alert(1+1)>床前明月光" in page.inner_text("#lines_view")
    assert "${1+1}{{1+1}}" in page.inner_text("#lines_view")
    assert page.locator("#lines_view img").count() == 0
    with page.expect_download() as download:
        page.click("#download_json")
    values = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert values["scores"]["lyric_structure"] > 0
    with page.expect_download() as download:
        page.click("#download_csv")
    assert Path(download.value.path()).read_text(encoding="utf-8").startswith("section,expected_label")
    page.click("#receipt > button")
    page.wait_for_selector("#receipt .me-receipt")
    assert "normalise" in page.inner_text("#receipt")


def test_results_go_when_what_was_scored_is_changed(open_space: Any) -> None:
    page = open_space("lyrics")
    assert "the points of each level will stand here" in page.inner_text("#view_score")
    files = page.locator("#download_json, #download_csv")
    assert [files.nth(at).is_disabled() for at in range(2)] == [True, True]
    for change in (
        lambda: page.fill("#lyrics textarea", "(verse)\n床前明月光\n疑是地上霜"),
        lambda: page.locator("#normalise input").uncheck(),
        lambda: page.click("#use_example"),
    ):
        score(page)
        page.wait_for_selector("#download_csv:not([disabled])")
        change()
        page.wait_for_selector("#view_score .me-empty")
        page.wait_for_selector("#download_csv[disabled]")
        assert page.locator("#score_view").count() == 0
    page.locator("#normalise input").check()
    score(page)  # at once: the change before does not take it back
    page.wait_for_timeout(1000)
    assert page.locator("#score_view").count() == 1
    page.get_by_label("中文").check()
    page.wait_for_selector("#score_view:has-text('总分')")
    held: list[Any] = []
    # no answer of the server is waited for
    page.route("**/gradio_api/**", lambda route: held.append(route))  # noqa: PLW0108  (playwright marks what it is given)
    page.fill("#pattern textarea", "(verse1)\nccccR")
    page.wait_for_selector("#view_score .me-empty:has-text('各层得分')")
    for route in held:
        route.continue_()
    page.unroute("**/gradio_api/**")
    page.get_by_label("English").check()  # what is gone stays gone
    page.wait_for_selector("#view_score .me-empty:has-text('the points of each level')")
    for button in ("#add_section", "#derive"):  # what a button puts in is another text too
        score(page)
        if button == "#add_section":
            page.click("#tools button")
        page.click(button)
        page.wait_for_selector("#view_score .me-empty")


def test_by_keyboard_on_a_narrow_dark_page(open_space: Any, screenshot: Any) -> None:
    page = open_space("lyrics", viewport=(390, 844), dark=True)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "me-skip"
    page.focus("#score")
    page.keyboard.press("Enter")
    page.wait_for_selector("#score_view .ly-level")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("input[role=combobox]:visible").count() >= 3
    assert page.evaluate(COVERED) == []
    screenshot(page, "lyrics_narrow_dark")
