"""Listening tests of each type, heard and answered in headless Chromium under a strict policy, up to the tables."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import functools
import http.server
import io
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.browser.conftest import Watch, end, serving

from music_evals.cli import main
from music_evals.pipelines.study_tables import LISTENING, read_table
from music_evals.studies.folders import Introduction, StudyFolder, read_study_folder
from music_evals.studies.listening.build import build_listening_test, read_listening_key
from music_evals.studies.listening.results import read_listening_results
from music_evals.studies.listening.settings import ListeningSettings
from music_evals.ui.studies.page import study_page
from music_evals.ui.studies.server import HEADERS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SECONDS = 0.8
TOLD = Introduction(title="A test", consent=("You may stop.",), instructions=("Listen.",))


def music_evals(*options: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as told:
        assert main(options) == 0
    return told.getvalue()


@contextlib.contextmanager
def served(study: StudyFolder) -> Iterator[str]:
    """Serve a study as a leader does."""
    command = [sys.executable, "-m", "music_evals", "listening-test", "serve", str(study.folder), "--port"]
    environment = os.environ | {"MUSIC_EVALS_STUDY_SECRET": "a secret of sixteen"}
    server = serving(command, study.folder.with_suffix(".log"), env=environment)
    try:
        yield server.url
    finally:
        end(server)


class Handler(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", HEADERS["Content-Security-Policy"])
        super().end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two items of two systems: short tones."""
    folder, rate = tmp_path_factory.mktemp("sounds"), 22_050
    at = np.arange(round(SECONDS * rate)) / rate
    rows = [["id", "group", "system", "reference", "estimate"]]
    for item in range(2):
        for name, hz in (("r", 300), ("x", 400), ("y", 500)):
            soundfile.write(folder / f"{name}{item}.wav", 0.3 * np.sin(2 * np.pi * (hz + 50 * item) * at), rate)
        rows += [[f"item {item}", f"song {item}", system, f"r{item}.wav", f"{system}{item}.wav"] for system in "xy"]
    with (folder / "pairs.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "pairs.csv"


@dataclasses.dataclass
class Opened:
    """A test on a web site that keeps nothing."""

    study: StudyFolder
    url: str
    enter: Any
    """`enter(slot)` opens a plan and agrees to it; `enter(slot, width=360)` on a phone."""


@pytest.fixture
def enter(chromium: Any) -> Iterator[Any]:
    """Open a page as a new person, up to its first question."""
    contexts: list[tuple[Watch, Any]] = []

    def of(url: str, *, width: int = 1000) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 900}, accept_downloads=True)
        context.set_default_timeout(30_000)
        page = context.new_page()
        watch = Watch()
        watch.over(page)
        contexts.append((watch, context))
        page.goto(url)
        page.locator("#agree").check()
        page.locator("#go").click()
        page.locator("#start").click()
        page.get_by_role("heading", name="Page 1 of").wait_for()
        return page

    yield of
    for _, context in contexts:
        context.close()
    for watch, _ in contexts:
        outward = [url for url in watch.outward if not url.startswith("file:")]
        assert not outward, "the page asked for something outside this machine"
        assert not watch.errors, "the page logged errors"


@pytest.fixture
def open_test(enter: Any, table: Path, tmp_path: Path) -> Iterator[Any]:
    """Build a test and put its page on a web site: `open_test(type="ab")`."""
    servers: list[http.server.ThreadingHTTPServer] = []

    def of(**settings: Any) -> Opened:
        chosen = ListeningSettings(**{"listeners": 3, "checks": 1, "seed": 4, **settings})
        page = study_page("listening", TOLD.title)
        built = build_listening_test(table, tmp_path / "study", chosen, study="mine", introduction=TOLD, page=page)
        handler = functools.partial(Handler, directory=str(built.study.page))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        url = f"http://127.0.0.1:{server.server_port}/index.html"
        return Opened(built.study, url, lambda slot, **options: enter(f"{url}?slot={slot + 1}", **options))

    yield of
    for server in servers:
        server.shutdown()
        server.server_close()


QUALITY = {"reference": 5, "x": 4, "y": 2, "anchor": 1}


def heard(*pages: Any) -> None:
    """Play every sound of some pages, which sound together, until it is enough."""
    for page in pages:
        page.get_by_role("button", name="Repeat").click()
        page.get_by_role("button", name="Play", exact=True).click()
    counts = {page: page.locator(".track").count() for page in pages}
    for number in range(max(counts.values())):
        theirs = [page for page in pages if number < counts[page]]
        for page in theirs:
            page.locator(f'.track[data-track="{number}"]').click()
        for page in theirs:
            page.wait_for_selector(f'.track[data-track="{number}"][data-heard="yes"]', timeout=90_000)
    for page in pages:
        page.get_by_role("button", name="Stop").click()


def value_of(file: str, key: Any) -> int:
    name = file.rpartition("/")[2]
    return key.checks[name] if name in key.checks else QUALITY[key.pairs[name].system]


def answer(page: Any, trial: dict[str, Any], key: Any) -> None:
    """Answer a page as somebody who hears who made it."""
    values = {file: value_of(file, key) for file in trial["stimuli"]}
    if trial["type"] == "mushra":
        for file, value in values.items():
            page.locator(f'[data-file="{file}"]').fill(str(20 * value))
        return
    for question in trial["questions"]:
        best = max(values, key=values.get)
        wanted = best if trial["type"] == "ab" else values[best]
        page.locator(f'[data-question="{question}"] input[value="{wanted}"]').check()


def play_through(page: Any, plan: dict[str, Any], key: Any, *, first: int = 0) -> None:
    all_play_through([page], [plan], key, first=first)


def all_play_through(pages: list[Any], plans: list[dict[str, Any]], key: Any, *, first: int = 0) -> None:
    """Let several listeners go through their plans at the same time."""
    trials_of_pages = list(zip(*(plan["trials"] for plan in plans), strict=True))
    for number, trials in enumerate(trials_of_pages[first:], start=first + 1):
        for page in pages:
            page.get_by_role("heading", name=f"Page {number} of {len(trials_of_pages)}").wait_for()
        heard(*pages)
        for page, trial in zip(pages, trials, strict=True):
            answer(page, trial, key)
            page.locator(".next").click()
    for page in pages:
        page.get_by_role("heading", name="Thank you").wait_for()


def downloaded(page: Any, path: Path) -> Path:
    """What a page without a server gives its participant."""
    with page.expect_download() as waiting:
        page.locator("#download").click()
    waiting.value.save_as(path)
    return path


def check_means(ratings: list[dict[str, Any]], kind: str) -> None:
    means = {
        system: np.mean([float(row["rating"]) for row in ratings if row["system"] == system])
        for system in {row["system"] for row in ratings}
    }
    expected = {"rating": {"x": 4, "y": 2}, "ab": {"x": 1, "y": 0}}
    assert means == expected.get(kind, {name: 20 * value for name, value in QUALITY.items()})


@pytest.mark.parametrize("kind", ["rating", "ab", "mushra"])
def test_three_listeners_of_each_type_from_consent_to_report(
    enter: Any, table: Path, tmp_path: Path, screenshot: Any, kind: str
) -> None:
    """As a leader does it: build, serve, report."""
    asked = {"rating": ["--styles", "bach"], "ab": ["--questions", "preference,melody"], "mushra": []}[kind]
    music_evals("listening-test", "build", str(table), "--type", kind, *asked, "--listeners", "3", "--checks", "1",
                "--contact", "Ada", "--out", str(tmp_path / "study"))  # fmt: skip
    study = read_study_folder(tmp_path / "study")
    key = read_listening_key(study.key)
    with served(study) as url:
        pages = [enter(url) for _ in range(3)]
        all_play_through(pages, study.plans[:3], key)
        screenshot(pages[0], f"listening_{kind}_end")
    music_evals("listening-test", "report", str(study.folder))
    report = study.folder / "report"
    tables = json.loads((report / "tables.json").read_text())
    assert tables["type"] == kind
    assert [row["n_failed"] for row in tables["listeners"]] == [0, 0, 0]
    assert all(row["is_kept"] for row in tables["listeners"])
    with (report / "ratings.csv").open(newline="") as file:
        check_means(list(csv.DictReader(file)), kind)
    if kind == "rating":
        table_of_test = read_table(report / "listening.csv", LISTENING, table_name="listening")
        assert len(table_of_test["sim_bach"]) == 3 * 4


def test_a_page_without_a_server_gives_a_file(open_test: Any, tmp_path: Path) -> None:
    opened = open_test()
    key = read_listening_key(opened.study.key)
    page = opened.enter(2)
    play_through(page, opened.study.plans[2], key)
    results = read_listening_results(opened.study.folder, [downloaded(page, tmp_path / "answers.json")], strict=True)
    assert [one.slot for one in results.answers] == [2]
    check_means(results.tables.ratings, "rating")


def test_nobody_answers_before_listening_and_a_page_that_was_left_goes_on(open_test: Any, tmp_path: Path) -> None:
    opened = open_test()
    key = read_listening_key(opened.study.key)
    plan = opened.study.plans[0]
    page = opened.enter(0)
    field, said = page.locator("fieldset input").first, page.locator("[role=status]")
    assert field.is_disabled()
    page.locator(".next").click()
    assert said.text_content() == "Not heard enough yet: Sound."
    heard(page)
    assert field.is_enabled()
    page.locator(".next").click()
    assert "Not answered yet: Does it sound good?" in said.text_content()
    answer(page, plan["trials"][0], key)
    page.locator(".next").click()
    page.get_by_role("heading", name="Page 2 of").wait_for()
    heard(page)
    answer(page, plan["trials"][1], key)
    page.reload()
    page.locator("#resume").click()
    page.get_by_role("heading", name="Page 2 of").wait_for()
    assert field.is_enabled()  # what was heard and answered is there
    assert page.locator("fieldset input:checked").count() == 1
    page.locator(".next").click()
    play_through(page, plan, key, first=2)
    read_listening_results(opened.study.folder, [downloaded(page, tmp_path / "answers.json")], strict=True)


SLOW_DATABASE = """() => {
  const listen = IDBTransaction.prototype.addEventListener;
  IDBTransaction.prototype.addEventListener = function (name, heard) {
    listen.call(this, name, (event) => setTimeout(() => heard(event), name === "complete" ? 2000 : 0));
  };
}"""


def test_what_was_answered_in_the_last_moment_is_kept(open_test: Any) -> None:
    """Also while a busy machine has not yet written what came before."""
    opened = open_test()
    page = opened.enter(0)
    heard(page)
    page.evaluate(SLOW_DATABASE)
    for value in ("2", "3"):
        page.locator(f"fieldset input[value='{value}']").check()
    page.reload()
    page.locator("#resume").click()
    page.get_by_role("heading", name="Page 1 of").wait_for()
    assert page.locator("fieldset input:checked").get_attribute("value") == "3"
    assert page.locator("fieldset input").first.is_enabled()


def test_a_page_from_a_disk_plays_too(open_test: Any, enter: Any, tmp_path: Path) -> None:
    """There a page may not read the files beside it: elements of sound take turns."""
    opened = open_test(type="ab", checks=0)
    key = read_listening_key(opened.study.key)
    page = enter(f"{(opened.study.page / 'index.html').as_uri()}?slot=1")
    play_through(page, opened.study.plans[0], key)
    results = read_listening_results(opened.study.folder, [downloaded(page, tmp_path / "answers.json")], strict=True)
    check_means(results.tables.ratings, "ab")


FOCUS_IS_SEEN = """() => { const style = getComputedStyle(document.activeElement);
  return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2
    && parseFloat(style.outlineOffset) >= 0; }"""


def tab_to(page: Any, selector: str) -> None:
    """Go on with the key Tab, at least once, until the focus is on an element, and see it there."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            assert page.evaluate(FOCUS_IS_SEEN) or "listening" not in selector, selector
            return
    pytest.fail(f"the key Tab never reaches {selector}")


def heard_by_keys(page: Any, trial: dict[str, Any]) -> None:
    """Play every sound, one after the other, by the keys that the page names."""
    page.keyboard.press("x")
    page.keyboard.press(" ")
    letters = ["o"] if trial["reference"] else []
    letters += list("abcdefgh"[: len(trial["stimuli"])])
    for track, letter in enumerate(letters):
        page.keyboard.press(letter)
        page.wait_for_selector(f'.track[data-track="{track}"][aria-pressed="true"][data-heard="yes"]', timeout=90_000)
    page.keyboard.press(" ")
    page.get_by_role("button", name="Play", exact=True).wait_for()


def answered_by_keys(page: Any, trial: dict[str, Any], key: Any) -> None:
    values = {file: value_of(file, key) for file in trial["stimuli"]}
    if trial["type"] == "mushra":
        for file, value in values.items():
            tab_to(page, f'.listening [data-file="{file}"]')
            away = 20 * value - 50
            for name, count in (("Page", abs(away) // 10), ("Arrow", abs(away) % 10)):
                for _ in range(count):
                    page.keyboard.press(f"{name}{'Up' if away > 0 else 'Down'}")
        return
    for question in trial["questions"]:
        tab_to(page, f'.listening [data-question="{question}"] input')
        place = (
            list(values).index(max(values, key=values.__getitem__))
            if trial["type"] == "ab"
            else values[trial["stimuli"][0]] - 1
        )
        page.keyboard.press(" ")
        for _ in range(place):
            page.keyboard.press("ArrowRight")


@pytest.mark.parametrize("kind", ["rating", "ab", "mushra"])
def test_the_keyboard_alone_is_enough_from_the_invitation_to_the_receipt(
    chromium: Any, table: Path, tmp_path: Path, kind: str
) -> None:
    chosen = ListeningSettings(type=kind, listeners=2, checks=1, seed=4)
    study = build_listening_test(
        table, tmp_path / "study", chosen, study="mine", introduction=TOLD, page=study_page("listening", TOLD.title)
    ).study
    key = read_listening_key(study.key)
    with served(study) as url:
        (link,) = music_evals("listening-test", "invite", str(study.folder), "1", "--url", url).split()
        context = chromium.new_context()
        page = context.new_page()
        page.goto(link)
        tab_to(page, "#agree")
        page.keyboard.press(" ")
        tab_to(page, "#go")
        page.keyboard.press("Enter")
        page.locator("#start").wait_for()
        tab_to(page, "#start")
        page.keyboard.press("Enter")
        for number, trial in enumerate(study.plans[0]["trials"], start=1):
            page.get_by_role("heading", name=f"Page {number} of").wait_for()
            assert not page.get_by_text(":0").count()  # no duration
            heard_by_keys(page, trial)
            answered_by_keys(page, trial, key)
            tab_to(page, ".listening .next")
            page.keyboard.press("Enter")
        page.get_by_text("Everything was stored.").wait_for()
        mine = page.locator("footer code").text_content()
        # in another browser the same link is the same person, who is done
        other = chromium.new_context()
        again = other.new_page()
        again.goto(link)
        again.locator("#agree").check()
        again.locator("#go").click()
        again.locator("#start").click()
        again.get_by_text("Everything was stored.").wait_for()
        assert again.locator("footer code").text_content() == mine
        again.goto(f"{url}/#code={'0' * 32}")
        again.reload()
        again.locator("#agree").check()
        again.locator("#go").click()
        again.get_by_text("this is no invitation to this study").wait_for()
        for one in (context, other):
            one.close()
    results = read_listening_results(study.folder, strict=True)
    assert [one.listener for one in results.answers] == [mine]
    assert results.is_by_invitation
    (listener,) = results.tables.listeners
    assert 0 < listener["seconds"] <= listener["server_sec"] + 0.5
    check_means(results.tables.ratings, kind)


@pytest.mark.parametrize("width", [360, 1000])
def test_targets_are_large_and_the_page_fits(open_test: Any, screenshot: Any, width: int) -> None:
    page = open_test(type="mushra", checks=0).enter(0, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    small = page.evaluate(
        """[...document.querySelectorAll("button, input, summary")].map(one => [one.className || one.type,
            (one.closest("label") || one).getBoundingClientRect()])
            .filter(([, box]) => box.height < 44 || box.width < 44).map(([name]) => name)"""
    )
    assert small == []
    unnamed = page.evaluate(
        """[...document.querySelectorAll("button, input")].filter(one => !one.textContent && !one.labels?.length
            && !one.getAttribute("aria-label")).length"""
    )
    assert unnamed == 0
    screenshot(page, f"listening_mushra_{width}")
    page.wait_for_load_state("networkidle")  # its sounds are there before the web site ends


def test_a_switch_while_it_plays_keeps_the_place(open_test: Any) -> None:
    page = open_test(type="ab", checks=0).enter(0)
    # every source of a page starts at one moment; a switch changes volumes alone
    page.evaluate(
        """() => { window.starts = []; const start = AudioBufferSourceNode.prototype.start;
        AudioBufferSourceNode.prototype.start = function (...when) {
            starts.push(when);
            return start.apply(this, when);
        }; }"""
    )
    page.keyboard.press("x")
    page.keyboard.press(" ")
    page.get_by_role("button", name="Stop").wait_for()
    for letter in "babab":
        page.keyboard.press(letter)
    starts = page.evaluate("starts")
    assert len(starts) == 2
    assert starts[0] == starts[1]
