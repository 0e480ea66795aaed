"""Reports of benchmarks: they fit a phone, play their notes and ask nobody for anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.benchmark.inpainting.test_numbers import records
from tests.benchmark.test_tables import TASK
from tests.benchmark.test_tables import records as toys

from music_evals.benchmark.inpainting.report import render_report
from music_evals.benchmark.inpainting.results import INPAINTING
from music_evals.benchmark.report import score_page
from music_evals.benchmark.results import build_results, collect

LONG = "a name that somebody gave to a system without a thought for phones/" * 2


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    rows = records(1, 9, split="test")
    for row in rows:
        if row["kind"] == "prediction":
            row["middle"] = [60, *[128] * 11] * 8
    judged = collect(rows, INPAINTING)
    validation = collect(records(2, 6, split="validation", names=("copy_past", "markov", "reference")), INPAINTING)
    pages = {"inpainting": render_report(build_results(judged, INPAINTING, validation, n_resamples=50), judged)}
    found = collect(toys({(system, f"{n}"): float(n) for system in ("a", LONG) for n in range(12)}), TASK)
    pages["toys"] = score_page(build_results(found, TASK, n_resamples=50), found, {"path": LONG.replace(" ", "_") * 3})
    paths = {name: folder / f"{name}.html" for name in pages}
    for name, text in pages.items():
        paths[name].write_text(text, encoding="utf-8")
    return paths


@pytest.fixture
def open_report(chromium: Any, reports: dict[str, Path]) -> Any:
    """Open a report from its file; requests to anywhere else and errors are noted."""
    opened = []

    def open_page(name: str, width: int) -> Any:
        page = chromium.new_page(viewport={"width": width, "height": 844})
        page.requests, page.errors = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto(reports[name].as_uri())
        opened.append(page)
        return page

    yield open_page
    for page in opened:
        assert page.errors == []
        assert page.requests == [page.url]
        page.close()


@pytest.mark.parametrize("name", ["inpainting", "toys"])
def test_a_report_fits_a_phone(open_report: Any, screenshot: Any, name: str) -> None:
    page = open_report(name, 390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("[...document.querySelectorAll('.scroll')].some(box => box.scrollWidth > box.clientWidth)")
    screenshot(page, f"report_{name}_phone")


def test_names_in_the_receipt_stay_whole_on_a_phone(open_report: Any) -> None:
    page = open_report("inpainting", 390)
    lines = page.evaluate(
        """[...document.querySelectorAll("table.plain:has(thead) td:not(:last-child)")].map(cell => {
            const text = document.createRange();
            text.selectNodeContents(cell);
            return [cell.textContent, new Set([...text.getClientRects()].map(box => box.top)).size];
        })"""
    )
    assert {"copy_past", "baseline"} <= dict(lines).keys()
    assert {name: n for name, n in lines if n > 1} == {}


def test_notes_can_be_heard(open_report: Any) -> None:
    page = open_report("inpainting", 1280)
    # In one go: on a busy machine some notes are over before a second question reaches the page.
    told = page.evaluate(
        """[0, 1, 1].map(place => {
            const buttons = [...document.querySelectorAll("button[data-notes]")].slice(0, 2);
            buttons[place].click();
            return buttons.map(button => button.textContent);
        })"""
    )
    assert told == [["Stop", "Play"], ["Play", "Stop"], ["Play", "Play"]]
