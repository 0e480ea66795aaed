"""The Space of editing in a browser: pick, edit, hear, read, keep; refusals; a narrow page."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NAME = "editing"


def choose(page: Any, elem_id: str, option: str) -> None:
    page.click(f"#{elem_id} input")
    page.get_by_role("option", name=option, exact=True).click()


def test_a_recording_is_edited_heard_judged_and_kept(open_space: Any, screenshot: Any, tmp_path: Path) -> None:
    page = open_space(NAME)
    page.click("text=A tune, rendered here")
    page.wait_for_selector("#upload >> text=original")
    choose(page, "system", "noise_vocoder")
    page.wait_for_selector("#about >> text=highest_hz")
    page.click("#edit")
    page.wait_for_selector("#status >> text=edited by noise_vocoder in", timeout=120_000)
    assert page.locator("#scores .score").count() == 16  # the eleven, and five auxiliary metrics
    assert page.locator("#player .timeline").count() >= 1
    screenshot(page, "editing")
    with page.expect_download() as waiting:
        page.click("#archive")
    kept = tmp_path / "kept.zip"
    waiting.value.save_as(kept)
    assert sorted(zipfile.ZipFile(kept).namelist()) == ["edit.flac", "provenance.json"]
    page.fill("#parameters textarea, #parameters input", "semitones=3")  # as if it was pasted
    page.wait_for_selector("#status >> text=edited by", state="detached")  # no result beside inputs that it is not of


def test_a_wrong_parameter_says_what_to_do_on_a_narrow_dark_page(open_space: Any, screenshot: Any) -> None:
    page = open_space(NAME, viewport=(390, 844), dark=True)
    page.click("#edit")
    page.wait_for_selector("text=upload a file first")
    page.click("text=A tune, rendered here")
    page.wait_for_selector("#upload >> text=original")
    page.fill("#parameters textarea, #parameters input", "semitones=99")
    page.click("#edit")
    page.wait_for_selector("text=must lie in -24..24")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    screenshot(page, "editing_narrow_dark")
