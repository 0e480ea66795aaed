"""The Space of style transfer in a browser: pick or upload, rewrite, watch, listen, cancel, keep."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from music_evals.annotations import Score, TimeSignature
from music_evals.symbolic.midi import read_midi, save_midi
from music_evals.symbolic.notes import make_notes

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NAME = "style_transfer"


def choose(page: Any, elem_id: str, option: str) -> None:
    page.click(f"#{elem_id} input")
    page.get_by_role("option", name=option, exact=True).click()


def set_sweeps(page: Any, number: int) -> None:
    field = page.locator("#sweeps input[type=number]")
    field.fill(str(number))
    field.press("Tab")


def voice_value(page: Any, value: str) -> None:
    page.wait_for_function("value => document.querySelector('#melody input')?.value === value", arg=value)


def test_a_piece_is_rewritten_seen_heard_and_kept(open_space: Any, screenshot: Any, tmp_path: Path) -> None:
    page = open_space(NAME)
    choose(page, "piece", "twinkle")
    voice_value(page, "melody")
    assert "2 voices" in page.inner_text("#remark")
    choose(page, "model", "full_sequence:bach")
    set_sweeps(page, 2)
    page.click("#rewrite")
    page.wait_for_selector("#status >> text=Sweep 2 of 2 by full_sequence:bach.", timeout=120_000)
    assert page.locator("#picture .roll").count() == 2  # the original and the sweep
    assert page.locator("#picture .accompaniment").count() > 20
    text = page.inner_text("body")
    assert "Original" in text
    assert "Sweep 2" in text
    screenshot(page, "style_transfer")
    with page.expect_download() as waiting:
        page.click("#download_midi")
    kept = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(kept)
    assert re.fullmatch(r"twinkle_sweep_2.*\.mid", kept.name)
    assert read_midi(kept).voices == ("melody", "accompaniment")


def test_an_upload_whose_melody_has_to_be_chosen_can_be_cancelled(open_space: Any, tmp_path: Path) -> None:
    notes = make_notes([0, 480, 960, 0], [480, 480, 960, 1920], [72, 74, 76, 48], voice=[0, 0, 0, 1])
    save_midi(Score(notes, 480, (TimeSignature(0, 4, 4),), voices=("Right", "Left")), tmp_path / "hands.mid")
    page = open_space(NAME)
    page.set_input_files("#upload input[type=file]", str(tmp_path / "hands.mid"))
    page.wait_for_selector("#remark >> text=Which voice is the melody?")
    choose(page, "melody", "Right")
    set_sweeps(page, 50)
    page.click("#rewrite")
    page.wait_for_selector("#status >> text=s left at")
    page.click("#cancel")
    page.wait_for_selector("#status >> text=Cancelled.")
    assert page.locator("#picture .roll").count() == 2  # the last sweep stays


def test_on_a_narrow_dark_page_an_error_says_what_to_do(open_space: Any, screenshot: Any) -> None:
    page = open_space(NAME, viewport=(390, 844), dark=True)
    page.click("#rewrite")
    page.wait_for_selector("text=upload a file, or pick a piece")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    screenshot(page, "style_transfer_narrow_dark")
