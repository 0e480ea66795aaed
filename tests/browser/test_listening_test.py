"""Listening tests of each type, heard and answered in headless Chromium under a strict policy, up to the tables."""

from __future__ import annotations

import csv
import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from tests.browser.conftest import Watch

from music_evals.studies._folder import Introduction
from music_evals.studies.listening import ListeningSettings, named_questions, style_questions
from music_evals.studies.listening_answers import check_answers, listening_tables
from music_evals.studies.listening_build import BuiltTest, build_listening_test, read_listening_key
from music_evals.ui.assets import script, style

pytestmark = pytest.mark.browser

SECONDS = 0.8
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; media-src 'self'"
TOLD = Introduction(title="A test", consent=("You may stop.",), instructions=("Listen.",))

# what the page of studies does for its kinds, and no more
HARNESS = """
const make = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (typeof value === "boolean") made.toggleAttribute(key, value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};
const root = document.querySelector("main");
addEventListener("DOMContentLoaded", async () => {
  const study = await (await fetch("study.json")).json();
  const slot = Number(new URLSearchParams(location.search).get("slot"));
  musicEvals.studyKinds.listening.start({
    root, study, plan: study.plans[slot], make,
    saved: JSON.parse(localStorage.getItem(`work ${slot}`)),
    save: (value) => localStorage.setItem(`work ${slot}`, JSON.stringify(value)),
    send: async (name, content) => { window.sent = { name, content }; },
    finish: async () => root.replaceChildren("Thank you"),
    say: (text) => { document.querySelector("[role=status]").textContent = text; },
    show: (...children) => {
      root.replaceChildren(...children);
      const head = root.querySelector("h2");
      head.tabIndex = -1;
      head.focus();
    },
    button: (text, onclick, attributes = {}) => make("button", { type: "button", onclick, ...attributes }, text),
  });
});
"""
INDEX = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Listening test</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="page.css">
<script src="kind.js" defer></script><script src="harness.js" defer></script></head>
<body><main></main><p role="status"></p></body></html>"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
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


@pytest.fixture
def open_test(chromium: Any, table: Path, tmp_path: Path) -> Iterator[Any]:
    """Build a test and open it: `open_test(type="ab")` gives what was built and `page(slot)`, which opens a plan."""
    servers: list[http.server.ThreadingHTTPServer] = []
    contexts: list[tuple[Watch, Any]] = []

    def of(**settings: Any) -> tuple[BuiltTest, Any]:
        chosen = ListeningSettings(**{"listeners": 3, "checks": 1, "seed": 4, **settings})
        files = {
            "index.html": INDEX,
            "harness.js": HARNESS,
            "kind.js": script("ab_player", "listening_test"),
            "page.css": style("listening_test"),
        }
        page = {name: text.encode() for name, text in files.items()}
        built = build_listening_test(table, tmp_path / "study", chosen, study="mine", introduction=TOLD, page=page)
        folder = built.study.folder / "page"
        (folder / "study.json").write_bytes((built.study.folder / "study.json").read_bytes())
        handler = functools.partial(Handler, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)

        def open_page(slot: int, *, width: int = 1000) -> Any:
            context = chromium.new_context(viewport={"width": width, "height": 900})
            context.set_default_timeout(20_000)
            page = context.new_page()
            watch = Watch()
            watch.over(page)
            contexts.append((watch, context))
            page.goto(f"http://127.0.0.1:{server.server_port}/index.html?slot={slot}")
            return page

        return built, open_page

    yield of
    for _, context in contexts:
        context.close()
    for server in servers:
        server.shutdown()
        server.server_close()
    for watch, _ in contexts:
        assert not watch.outward, "the page asked for something outside this machine"
        assert not watch.errors, "the page logged errors"


QUALITY = {"reference": 5, "x": 4, "y": 2, "anchor": 1}


def heard(page: Any) -> None:
    """Play every sound of a page until it is enough."""
    page.get_by_role("button", name="Repeat").click()
    page.get_by_role("button", name="Play", exact=True).click()
    for number in range(page.locator(".track").count()):
        page.locator(f'.track[data-track="{number}"]').click()
        page.wait_for_selector(f'.track[data-track="{number}"][data-heard="yes"]')
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


def play_through(page: Any, plan: dict[str, Any], key: Any, *, first: int = 0) -> dict[str, Any]:
    for number, trial in enumerate(plan["trials"][first:], start=first + 1):
        page.get_by_role("heading", name=f"Page {number} of {len(plan['trials'])}").wait_for()
        heard(page)
        answer(page, trial, key)
        page.locator(".next").click()
    page.get_by_text("Thank you").wait_for()
    sent = page.evaluate("window.sent")
    assert sent["name"] == "answers"
    content: dict[str, Any] = sent["content"]
    return content


@pytest.mark.parametrize("kind", ["rating", "ab", "mushra"])
def test_three_listeners_of_each_type(open_test: Any, screenshot: Any, kind: str) -> None:
    questions = {
        "rating": named_questions("rating", ["LQ1"]) + style_questions(["bach"]),
        "ab": named_questions("ab", ["preference", "melody"]),
        "mushra": named_questions("mushra"),
    }[kind]
    built, open_page = open_test(type=kind, questions=questions)
    key = read_listening_key(built.study.key)
    answered = []
    for slot, plan in enumerate(built.study.plans):
        page = open_page(slot)
        content = play_through(page, plan, key)
        answered.append(check_answers(content, listener=f"p{slot}", plans=built.study.plans, key=key))
    tables = listening_tables(answered, key)
    assert all(row["is_right"] for row in tables.checks)
    assert len(tables.checks) == 3
    means = {
        system: np.mean([row["rating"] for row in tables.ratings if row["system"] == system])
        for system in {row["system"] for row in tables.ratings}
    }
    expected = {"rating": {"x": 4, "y": 2}, "ab": {"x": 1, "y": 0}}
    assert means == expected.get(kind, {name: 20 * value for name, value in QUALITY.items()})
    if kind == "rating":
        assert len(tables.listening) == 3 * 4


def test_nobody_answers_before_listening_and_a_page_that_was_left_goes_on(open_test: Any) -> None:
    built, open_page = open_test()
    key = read_listening_key(built.study.key)
    plan = built.study.plans[0]
    page = open_page(0)
    field = page.locator("fieldset input").first
    assert field.is_disabled()
    page.locator(".next").click()
    assert page.locator("[role=status]").text_content() == "Not heard enough yet: Sound."
    heard(page)
    assert field.is_enabled()
    page.locator(".next").click()
    assert "Not answered yet: Does it sound good?" in page.locator("[role=status]").text_content()
    answer(page, plan["trials"][0], key)
    page.locator(".next").click()
    page.get_by_role("heading", name="Page 2 of").wait_for()
    heard(page)
    answer(page, plan["trials"][1], key)
    page.reload()
    page.get_by_role("heading", name="Page 2 of").wait_for()
    assert field.is_enabled()  # what was heard and answered is there
    assert page.locator("fieldset input:checked").count() == 1
    page.locator(".next").click()
    content = play_through(page, plan, key, first=2)
    check_answers(content, listener="p", plans=built.study.plans, key=key)


def test_the_keyboard_is_enough(open_test: Any) -> None:
    built, open_page = open_test(type="ab", checks=0)
    key = read_listening_key(built.study.key)
    plan = built.study.plans[1]
    page = open_page(1)
    for number, trial in enumerate(plan["trials"], start=1):
        page.get_by_role("heading", name=f"Page {number} of").wait_for()
        page.keyboard.press("x")  # repeat
        page.keyboard.press(" ")
        for letter, track in (("b", 1), ("a", 0)):
            page.keyboard.press(letter)
            page.wait_for_selector(f'.track[data-track="{track}"][aria-pressed="true"][data-heard="yes"]')
        page.keyboard.press(" ")
        page.get_by_role("button", name="Play", exact=True).wait_for()
        page.keyboard.press("Tab")
        while not page.evaluate("document.activeElement.matches('input[type=radio]')"):
            page.keyboard.press("Tab")
        best = max(trial["stimuli"], key=lambda file: value_of(file, key))
        page.keyboard.press(" " if best == trial["stimuli"][0] else "ArrowDown")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.matches('.next')")
        page.keyboard.press("Enter")
    page.get_by_text("Thank you").wait_for()
    content = page.evaluate("window.sent.content")
    found = listening_tables([check_answers(content, listener="p", plans=built.study.plans, key=key)], key)
    assert {row["chosen"] for row in found.choices} == {"x"}


@pytest.mark.parametrize("width", [360, 1000])
def test_targets_are_large_and_the_page_fits(open_test: Any, screenshot: Any, width: int) -> None:
    _, open_page = open_test(type="mushra", checks=0)
    page = open_page(0, width=width)
    page.get_by_role("heading", name="Page 1 of").wait_for()
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


def test_a_switch_while_it_plays_keeps_the_place(open_test: Any) -> None:
    _, open_page = open_test(type="ab", checks=0)
    page = open_page(0)
    page.get_by_role("heading", name="Page 1 of").wait_for()
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
