"""The leaderboard in a browser: tables, sorting, filter, what stands behind a score, downloads."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def opened(open_space, **options):
    page = open_space("leaderboard", **options)
    page.wait_for_selector("#table tbody tr")
    return page


def systems(page) -> list[str]:
    return page.eval_on_selector_all(
        "#table tbody tr", "rows => rows.map(row => row.querySelector('th').dataset.value)"
    )


def choose(page, title: str) -> None:
    page.click("#table_choice input")
    page.get_by_role("option", name=title).click()


SMALL_TEXT = """
() => {
  const context = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const luminance = colours => {
    context.fillStyle = "white";
    for (const colour of ["white", ...colours]) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
    const linear = [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).map(byte => byte / 255)
      .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const backgrounds = node => node ? [...backgrounds(node.parentElement), getComputedStyle(node).backgroundColor] : [];
  return [...document.querySelectorAll("#table small, #table tr.unranked td, #table tr.published td")].map(node => {
    const behind = backgrounds(node), style = getComputedStyle(node);
    const [low, high] = [luminance(behind), luminance([...behind, style.color])].sort((a, b) => a - b);
    return {contrast: (high + 0.05) / (low + 0.05), size: parseFloat(style.fontSize)};
  });
}
"""
"""Contrast (WCAG 2.2) and size in pixels of what is printed small or grey."""

BROKEN_WORDS = """
() => [...document.querySelectorAll("#table .name")].flatMap(name => [...name.childNodes])
  .filter(node => node.nodeType === Node.TEXT_NODE && !/\\s/.test(node.data.trim())).filter(node => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return range.getClientRects().length > 1;
  }).map(node => node.data)
"""
"""Parts of names that stand on two lines."""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("title", [None, "Structured lyrics: MuChin, table 1"])
def test_ranks_and_intervals_can_be_read(open_space, dark, title):
    page = opened(open_space, dark=dark)
    if title:
        choose(page, title)
        page.wait_for_selector("#table tr.published")
    found = page.evaluate(SMALL_TEXT)
    assert len(found) > 5
    assert min(row["contrast"] for row in found) >= 4.5
    assert min(row["size"] for row in found) >= 12.5


def test_a_table_can_be_sorted_and_filtered(open_space, screenshot):
    page = opened(open_space)
    before = systems(page)
    assert before[:3] == ["reference", "best_lag", "copy_past"]  # controls, and the best mean rank
    assert before[-1] == "silence"
    assert "ranks 1-" in page.inner_text("#table")
    head = page.locator("#table thead th").nth(5)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    rising = systems(page)
    assert rising[0] == "reference"  # the best come first
    head.locator("button").press("Enter")  # the keyboard does it too
    assert head.get_attribute("aria-sort") == "descending"
    assert systems(page)[0] == "silence"
    assert sorted(rising) == sorted(before)
    page.fill("#search textarea, #search input", "copy")
    page.wait_for_function("document.querySelectorAll('#table tbody tr').length === 2")
    assert set(systems(page)) == {"copy_past", "interpolation_copy"}
    screenshot(page, "leaderboard_filter")


def test_behind_a_score_are_items_that_play(open_space, screenshot):
    page = opened(open_space)
    page.get_by_role("button", name="anticipation_rnn, note F1").click()
    page.wait_for_selector("#rolls svg.roll")
    assert page.locator("#rolls svg.roll").count() == 2
    assert page.locator("#rolls svg.roll .note.true").count() > 0
    assert (
        page.locator("#rolls svg.roll .note.missed, #rolls svg.roll .note.kept").count() > 0
    )  # as on the page of gaps
    assert " missed, " in page.inner_text("#rolls")
    assert "of 17, n 308/308" in page.inner_text("#cell")
    first = page.input_value("#item input")
    page.locator("#rolls button", has_text="Play the gap").first.click()
    page.wait_for_selector("#rolls button:has-text('Stop')")
    page.locator("#rolls button", has_text="Stop").click()
    page.click("#item input")
    page.get_by_role("option").nth(3).click()
    page.wait_for_function("first => document.querySelector('#item input').value !== first", arg=first)
    page.get_by_text("comparisons").click()
    screenshot(page, "leaderboard")


def test_another_table_and_its_timelines(open_space, screenshot):
    page = opened(open_space)
    choose(page, "Structured lyrics: MuChin, table 1")
    page.wait_for_selector("#table tr.published")
    assert "published, not re-run" in page.inner_text("#table")
    assert page.locator("#table button[data-record]").count() == 0
    choose(page, "Music editing: what is preserved: known_edits small test")
    page.wait_for_selector("#table tr.unranked")
    page.get_by_role("button", name="reharmonised, Chroma").click()
    page.wait_for_selector("#words .timeline")
    screenshot(page, "leaderboard_timeline")


def test_downloads_code_and_reload(open_space):
    page = opened(open_space)
    with page.expect_download() as waiting:
        page.click("#download_json")
    told = json.loads(waiting.value.path().read_text())
    assert told["preset"] == "Score inpainting: JSB Chorales"
    page.get_by_text("Copy as code").click()
    page.wait_for_selector("#code_shell >> text=music-evals leaderboard build")
    page.click("#reload")
    page.wait_for_selector("#status >> text=263 records")


def test_a_telephone_in_the_dark(open_space, screenshot):
    page = opened(open_space, viewport=(390, 844), dark=True)
    page.wait_for_selector("#table .hint:visible >> text=10 metrics: scroll the table sideways")
    assert page.evaluate(BROKEN_WORDS) == []
    names = page.locator("#table tbody th").first
    left = names.bounding_box()["x"]
    page.evaluate("document.querySelector('#table .board').scrollLeft = 400")
    assert names.bounding_box()["x"] == left  # names stay in sight
    page.locator("#table button[data-record]").first.click()
    page.wait_for_selector("#rolls svg.roll")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    screenshot(page, "leaderboard_phone_dark")


def test_a_table_that_fits_has_no_hint(open_space):
    page = opened(open_space, viewport=(2000, 900))
    assert page.locator("#table .hint").is_hidden()
    page.set_viewport_size({"width": 600, "height": 900})
    page.wait_for_selector("#table .hint:visible")
