"""Two pages of metrics in a browser: one of notes, one of text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def value_of(page: Any, score: str) -> str:
    page.wait_for_selector(f"#result [data-score={score}]")
    return str(page.inner_text(f"#result [data-score={score}] .score-head b"))


def test_the_example_of_notes_by_one_click(open_space: Any, screenshot: Any) -> None:
    page = open_space("metrics/note_f1")
    page.click("#run_example")
    assert value_of(page, "note_f1") == "0.818"
    assert page.input_value("#prediction_tokens textarea").startswith("60 128*11")
    label = page.get_attribute("#result [role=img]", "aria-label")
    assert label == "Note F1: 0.818; 0 to 1; higher is better; the true middle 1"
    page.get_by_role("button", name="Receipt").click()
    assert "corrected" in page.inner_text("#receipt")
    screenshot(page, "metric_note_f1")


def test_typed_notes_by_keyboard_alone(open_space: Any) -> None:
    page = open_space("metrics/note_f1")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "me-skip"
    page.keyboard.press("Enter")
    page.fill("#reference_tokens textarea", "60 128*23\n" * 16)
    page.fill("#prediction_tokens textarea", "60 128*23\n" * 4)
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "judge_tokens":
            break
    page.keyboard.press("Enter")
    assert value_of(page, "note_f1") == "1.000"
    page.press("#prediction_tokens textarea", "Backspace")
    page.wait_for_selector("#result [data-score]", state="detached")  # it was of another text


def test_what_is_wrong_is_told_in_words(open_space: Any) -> None:
    page = open_space("metrics/note_f1")
    page.fill("#reference_tokens textarea", "<img src=x onerror=alert(1)>")
    page.click("#judge_tokens")
    page.wait_for_selector("[data-testid=toast-text]")
    said = page.inner_text("[data-testid=toast-text]")
    assert "expected tokens such as 60 128*23" in said
    assert page.locator("[data-testid=toast-text] img").count() == 0


def test_two_files_and_what_can_be_taken_away(open_space: Any, tmp_path: Path) -> None:
    from music_evals.ui.metric_page.inputs import example_pair

    original, edited = example_pair(tmp_path)
    page = open_space("metrics/delta_bpm")
    page.set_input_files("#reference input[type=file]", original)
    page.set_input_files("#prediction input[type=file]", edited)
    page.wait_for_selector("#reference .file-preview")
    page.wait_for_selector("#prediction .file-preview")
    page.click("#judge_edit")
    assert value_of(page, "delta_bpm") == "12.000"
    with page.expect_download() as download:
        page.click("#download_json")
    held = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert held["scores"]["delta_bpm"] == pytest.approx(12, abs=1e-3)
    assert set(held["receipt"]["inputs, SHA-256"]) == {"reference original.mid", "prediction edited.mid"}


@pytest.mark.parametrize(("viewport", "dark"), [((390, 844), True), ((1280, 900), True), ((390, 844), False)])
def test_lyrics_on_a_phone_and_in_the_dark(
    open_space: Any, screenshot: Any, viewport: tuple[int, int], dark: bool
) -> None:
    page = open_space("metrics/lyric_structure", viewport=viewport, dark=dark)
    page.click("#run_example")
    assert value_of(page, "lyric_section") == "32.500"
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport[0]
    assert "dark" in page.evaluate("document.body.className") if dark else True
    screenshot(page, f"metric_lyric_structure_{viewport[0]}_{'dark' if dark else 'light'}")
