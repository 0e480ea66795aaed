"""The editing test in a browser: two editors repair four samples, from consent to the report."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import Served, end, serving

from music_evals.annotations import Score, Tempo
from music_evals.errors import TamperedLogError
from music_evals.studies.editing.answers import collect_edits
from music_evals.studies.editing.logs import check_log, count_log, replay_log
from music_evals.studies.folders import StudyFolder, read_study_folder
from music_evals.symbolic.midi import read_midi, save_midi
from music_evals.symbolic.notes import make_notes

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SECRET = "a secret of sixteen"  # noqa: S105


def music_evals(*options: str) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "music_evals", *options], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    rows = []
    for piece in ("ode", "reel"):
        for role, model in (("proposed", "ours"), ("baseline", "theirs")):
            onsets = [480 * beat for beat in range(16)]
            melody = [72 + (5 * beat) % 12 for beat in range(16)]
            bass = [48 + (7 * beat + (model == "ours")) % 12 for beat in range(16)]
            notes = make_notes(onsets * 2, [480] * 32, melody + bass, 80, [0] * 16 + [1] * 16)
            save_midi(
                Score(notes, 480, tempos=(Tempo(0, 240.0),), voices=("Melody", "Piano")),
                tmp_path / f"{piece}-{model}.mid",
            )
            rows.append(
                {"sample_id": f"{piece}-{model}", "piece_id": piece, "style": "bach", "model": model, "role": role,
                 "midi": f"{piece}-{model}.mid"}
            )  # fmt: skip
    with (tmp_path / "samples.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return tmp_path / "samples.csv"


@pytest.fixture
def build(samples: Path, tmp_path: Path) -> Callable[..., StudyFolder]:
    def make(*options: str) -> StudyFolder:
        music_evals("editing-test", "build", str(samples), "--contact", "Ada", "--editors", "2", "--seed", "11",
                    "--out", str(tmp_path / "study"), *options)  # fmt: skip
        return read_study_folder(tmp_path / "study")

    return make


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[StudyFolder], str]]:
    running: list[Served] = []

    def start(study: StudyFolder) -> str:
        command = [sys.executable, "-m", "music_evals", "editing-test", "serve", str(study.folder), "--port"]
        environment = os.environ | {"MUSIC_EVALS_STUDY_SECRET": SECRET}
        running.append(serving(command, tmp_path / "server.txt", env=environment))
        return running[-1].url

    yield start
    end(*running)


@pytest.fixture
def editor(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Open the page of a study as a new person, who keeps nothing of others."""
    contexts = []
    problems: list[str] = []

    def enter(url: str, **options: Any) -> Any:
        context = chromium.new_context(viewport={"width": 1280, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        origin = "file:" if url.startswith("file:") else "/".join(url.split("/")[:3])

        def requested(request: Any) -> None:
            if not request.url.startswith((origin, "blob:", "data:")):
                problems.append(request.url)

        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("request", requested)
        page.goto(url)
        return page

    yield enter
    for context in contexts:
        context.close()
    assert problems == []


def agree(page: Any) -> None:
    page.check("#agree")
    page.click("#go")
    page.click("#start")


def open_piece(page: Any) -> None:
    page.click("#open")
    page.wait_for_selector(".roll .note")


def rate(page: Any, grade: int) -> None:
    for name in ("EQ1", "EQ2", "EQ3"):
        page.check(f"#{name} input[value='{grade}']")
    page.click("#answered")


def drag(page: Any, note: Any, right: int, up: int = 0) -> None:
    box = note.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + right / 2, y - up / 2)
    page.mouse.move(x + right, y - up)
    page.mouse.up()


def answer_about(page: Any) -> None:
    for name in ("tool_familiarity", "editing_years"):
        page.check(f"#{name} label:nth-of-type(2) input")
    page.click("#answered")
    page.wait_for_selector("text=Thank you")


def pitches_of(page: Any) -> list[str]:
    return page.eval_on_selector_all(".roll .note.voice1", "notes => notes.map(note => note.getAttribute('y'))")


def repair(page: Any) -> None:
    """Use every tool once."""
    drag(page, page.locator(".note.voice1").nth(1), 0, 22)
    assert "Moved" in page.inner_text(".said")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("m")  # nothing to merge
    page.keyboard.press("Control+d")
    page.keyboard.press("Delete")
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+y")
    page.click("#tool-split")
    page.locator(".note.voice1").nth(2).click()
    page.click("#tool-draw")
    page.locator(".roll .grid").click(position={"x": 200, "y": 18 + 11 * 20 + 5})
    page.click("#tool-erase")
    page.locator(".note.locked").first.click()  # a melody cannot be erased
    page.click("#tool-select")
    page.keyboard.press("Space")
    page.wait_for_timeout(200)
    page.keyboard.press("Space")


def come_back(page: Any) -> None:
    page.wait_for_timeout(500)
    page.reload()
    page.click("#resume")
    page.wait_for_selector(".roll .note")


def test_two_editors_repair_four_samples_from_consent_to_report(
    build: Any, serve: Any, editor: Any, screenshot: Any
) -> None:
    study = build()
    url = serve(study)
    for person in range(2):
        page = editor(url)
        assert page.is_disabled("#go")  # before one agrees
        assert "Ada" in page.inner_text("main")
        agree(page)
        open_piece(page)
        page.click("#done")  # the piece to try
        for place in range(2):
            open_piece(page)
            before = pitches_of(page)
            repair(page)
            after = pitches_of(page)
            assert sorted(after) != sorted(before)
            if person == place == 0:
                screenshot(page, "editing_test")
                come_back(page)
                assert sorted(pitches_of(page)) == sorted(after)
            page.click("#done")
            rate(page, 5 - person)
        answer_about(page)
    page = editor(f"{url}/organiser")
    page.fill("#secret", SECRET)
    page.click("#enter")
    assert page.inner_text("tbody").count("about, sample-1, sample-2") == 2
    music_evals("editing-test", "collect", str(study.folder))
    report = music_evals("editing-test", "report", str(study.folder / "collected"))
    assert "## Ratios of effort" in report
    edits = collect_edits(study).tables["edits"]
    assert [row["EQ1"] for row in edits].count(5) == 2
    assert {row["n_undone"] for row in edits} == {1}
    for row in edits:
        assert row["n_inserted"] >= 1
        assert row["key_presses"] >= 8
        assert 0 < row["edit_key_presses"] < row["key_presses"]
        assert 0 < row["edit_clicks"] < row["mouse_clicks"]
        assert row["playback_s"] > 0
    assert len(list((study.folder / "collected" / "midi").iterdir())) == 4


def test_a_page_without_a_server_gives_a_file_with_the_same_notes_and_counts(
    build: Any, editor: Any, tmp_path: Path
) -> None:
    study = build("--may-add", "no")
    page = editor((study.page / "index.html").as_uri() + "?slot=2")
    agree(page)
    open_piece(page)
    page.click("#done")
    for _ in range(2):
        open_piece(page)
        page.click("#tool-draw")
        page.locator(".roll .grid").click(position={"x": 200, "y": 18 + 11 * 20 + 5})
        assert "cannot be added" in page.inner_text(".said")
        page.click("#tool-select")
        page.keyboard.press("Control+a")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("q")
        page.click("#done")
        rate(page, 3)
    answer_about(page)
    with page.expect_download() as waiting:
        page.click("#download")
    kept = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(kept)
    sent = json.loads(kept.read_text())
    part = sent["parts"]["sample-1"]
    sample = study.settings["samples"][part["code"]]
    log = check_log(part["events"])
    notes = replay_log(sample["notes"], log, locked=sample["locked"])
    assert part["notes"] == [[id_, *note] for id_, note in sorted(notes.items())]
    assert part["counts"] == count_log(log)._asdict()
    collected = collect_edits(study, [kept])
    assert len(collected.midi) == 2
    for name, content in collected.midi.items():
        before = read_midi(study.key / "midi" / f"{code_of(study, name)}.mid").notes
        after = read_midi(content).notes
        is_bass = before["voice"] == 1
        assert (after["pitch"][is_bass] == before["pitch"][is_bass] + 1).all()
        assert (after["pitch"][~is_bass] == before["pitch"][~is_bass]).all()


def code_of(study: StudyFolder, name: str) -> str:
    with (study.key / "samples.csv").open(newline="") as file:
        return next(row["code"] for row in csv.DictReader(file) if name.startswith(row["sample_id"]))


MIDI = """
const keyboard = {};
navigator.requestMIDIAccess = async () => ({ inputs: new Map([["one", keyboard]]) });
globalThis.playMidi = (...data) => keyboard.onmidimessage({ data });
null;
"""


def hold_and_drag(page: Any) -> None:
    """Drag, hold keys and buttons, and press keys while the pointer drags."""
    note = page.locator(".note.voice1").nth(1)
    drag(page, note, 0, 22)
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "Shift+ArrowRight", "Control+z", "Control+z", "Control+y"):
        page.keyboard.down(key.rpartition("+")[0] or "Shift")
        for _ in range(3):  # held, and repeated by the system
            page.keyboard.down(key.rpartition("+")[2])
        page.keyboard.up(key.rpartition("+")[2])
        page.keyboard.up(key.rpartition("+")[0] or "Shift")
    box = note.bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 5, box["y"] + 30)
    page.keyboard.press("Control+z")  # while the pointer drags
    page.mouse.move(box["x"] + 5, box["y"] + 60)
    page.mouse.up()
    page.focus("#octave_up")
    for _ in range(3):
        page.keyboard.down("Enter")  # a button that is held
    page.keyboard.up("Enter")
    page.keyboard.press("Control+a")
    page.keyboard.press("ArrowUp")
    page.focus(".roll .grid")
    for key in ("Escape", "n", "n", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    page.select_option("#unit", label="1/4")
    page.focus(".roll .grid")
    page.keyboard.press("q")


def test_what_hands_do_on_a_page_is_a_log_that_passes(build: Any, serve: Any, editor: Any) -> None:
    study = build()
    page = editor(serve(study))
    page.evaluate(MIDI)
    agree(page)
    open_piece(page)
    page.click("#done")
    open_piece(page)
    hold_and_drag(page)
    page.click("#reset")
    # what a screen reader presses comes as a click alone
    page.evaluate("addEventListener('pointerdown', (event) => event.stopImmediatePropagation(), true)")
    page.keyboard.press("n")
    page.click("#remove")
    page.click("#undo")
    page.click("#midi")
    page.keyboard.press("Escape")
    count = page.locator(".note.voice1").count()
    page.evaluate("playMidi(0x90, 71, 90)")
    page.evaluate("playMidi(0x80, 71, 0)")  # the key is let go
    page.evaluate("playMidi(0x90, 71, 0)")
    assert page.locator(".note.voice1").count() == count + 1
    page.evaluate("playMidi(0x90, 59, 90)")  # it is selected, and gets another pitch
    page.click("#done")
    rate(page, 4)
    open_piece(page)
    come_back(page)
    page.click("#done")
    rate(page, 3)
    assert not page.is_checked("#may_publish")
    page.check("#may_publish")
    answer_about(page)
    collected = collect_edits(study)
    edits = collected.tables["edits"]
    assert [row["n_midi"] for row in edits] == [2, 0]
    assert edits[0]["n_undone"] >= 5
    assert edits[0]["n_inserted"] == 1
    doing = [event[2] for event in collected.logs[0] if event[1] == "edit"]
    assert {"move", "resize", "transpose", "quantise", "reset", "remove", "add"} <= set(doing)
    assert {kind for event in collected.logs[0] for kind in event[1:2]} >= {"undo", "redo", "midi"}
    assert "faster_than_time" not in edits[0]["marks"]
    assert next(iter(collected.participants.values()))["may_publish"] is True


def test_a_script_that_presses_buttons_is_refused(build: Any, serve: Any, editor: Any) -> None:
    study = build()
    page = editor(serve(study))
    agree(page)
    for press in ("#open", "#done", "#open"):
        page.click(press)
    page.wait_for_selector(".roll .note")
    page.keyboard.press("n")
    page.keyboard.press("ArrowUp")
    page.evaluate("document.querySelector('#remove').click()")
    page.click("#done")
    rate(page, 4)
    open_piece(page)
    with pytest.raises(TamperedLogError, match="edit: no key"):
        collect_edits(study)


def test_the_time_limit_ends_an_edit_and_closing_the_page_does_not_stop_the_clock(
    build: Any, serve: Any, editor: Any
) -> None:
    limit = 12
    study = build("--limit", str(limit))
    page = editor(serve(study))
    agree(page)
    open_piece(page)
    page.click("#done")
    began = time.monotonic()
    open_piece(page)
    page.wait_for_timeout(1000)
    page.reload()
    page.click("#resume")
    page.wait_for_selector("text=The time is over")
    measured = time.monotonic() - began
    rate(page, 2)
    open_piece(page)
    page.click("#done")
    rate(page, 2)
    answer_about(page)
    first, second = collect_edits(study).tables["edits"]
    assert (first["hit_limit"], second["hit_limit"]) == (True, False)
    assert limit <= first["time_s"] <= measured + 1


def test_a_narrow_dark_page_is_used_by_touch(build: Any, serve: Any, editor: Any, screenshot: Any) -> None:
    page = editor(serve(build()), has_touch=True, color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 844})
    agree(page)
    page.click("#open")
    page.wait_for_selector(".roll .note")
    note = page.locator(".note.voice1").first
    note.tap()
    assert "Selected" in page.inner_text(".said")
    page.tap("#remove")
    assert "Deleted" in page.inner_text(".said")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    screenshot(page, "editing_test_narrow_dark")


def test_everything_is_reached_by_keyboard(build: Any, serve: Any, editor: Any) -> None:
    from playwright.sync_api import expect

    page = editor(serve(build()))
    page.focus("#agree")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#start")
    page.focus("#start")
    page.keyboard.press("Enter")
    page.wait_for_selector("#open")
    page.focus("#open")
    page.keyboard.press("Enter")
    page.wait_for_selector(".roll .note")
    page.focus(".roll .grid")
    count = page.locator(".note.voice1").count()
    for key, said in (
        ("n", "Selected"),
        ("ArrowUp", "Moved"),
        ("Delete", "Deleted"),
        ("u", ""),
        ("Control+z", "Undone"),
    ):
        page.keyboard.press(key)
        expect(page.locator(".said")).to_contain_text(said)
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    assert "measure 1" in page.inner_text(".said")
    page.keyboard.press("Enter")
    assert page.locator(".note.voice1").count() == count + 1
