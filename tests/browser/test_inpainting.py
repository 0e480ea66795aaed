"""The inpainting Space in a browser: draw, upload, fill, listen, read, by mouse, keyboard and finger."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from music_evals.annotations import Score
from music_evals.symbolic.midi import write_midi
from music_evals.symbolic.notes import make_notes

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NAME = "inpainting"
ROOT = Path(__file__).resolve().parents[2]
PX, ROW, TOP, HIGH = 3, 11, 18, 79  # of the empty roll on a screen with a mouse
NOTES = "#editor .note"


def point(page: Any, step: int, pitch: int) -> dict[str, float]:
    """Where a step and a pitch lie on the screen."""
    box = page.locator("#editor .grid").bounding_box()
    return {"x": box["x"] + (step + 0.5) * PX, "y": box["y"] + TOP + (HIGH - pitch + 0.5) * ROW}


def count(page: Any, selector: str, number: int) -> None:
    page.wait_for_function(
        "([selector, n]) => document.querySelectorAll(selector).length === n", arg=[selector, number]
    )


def choose(page: Any, elem_id: str, option: str) -> None:
    page.click(f"#{elem_id} input")
    page.get_by_role("option", name=option, exact=True).click()


def fill(page: Any, done: str) -> None:
    page.click("#fill")
    page.wait_for_selector(f"#status >> text={done}", timeout=120_000)


def empty(page: Any) -> None:
    page.wait_for_selector(NOTES)
    page.get_by_role("button", name="Empty all").click()
    count(page, NOTES, 0)


def test_the_model_fills_the_example(open_space: Any, screenshot: Any) -> None:
    page = open_space(NAME)
    page.wait_for_selector(NOTES)
    assert page.locator("#editor .note.inside").count() == 16
    choose(page, "system", "anticipation_rnn")
    config = json.loads((ROOT / "models" / "anticipation_rnn" / "config.json").read_text(encoding="utf-8"))
    shown = "value => document.querySelector('#temperature input[type=number]')?.value === value"
    page.wait_for_function(shown, arg=str(config["temperature"]))
    fill(page, "3 of 3 candidates by anticipation_rnn.")
    assert page.locator("#candidates figure").count() == 4  # the truth and three candidates
    table = page.inner_text("#candidates table")
    for name in ("note_f1", "position_score", "pitch_accuracy", "rhythm_accuracy"):
        assert name in table
    assert re.search(r"0 to 1, higher is better\s+\d\.\d{3}", table)
    assert re.search(r"\d+ kept .* missed, \d+ extra\.", page.inner_text("#candidates .diff >> nth=0"))
    page.click("#candidates summary >> nth=0")
    assert "measure 7, beat 1" in page.inner_text("#candidates details >> nth=0")
    screenshot(page, "inpainting")
    page.click("#receipt_part button")
    receipt = page.inner_text("#receipt")
    assert "anticipation_rnn" in receipt
    assert "hash of weights" in receipt
    page.click("#code button >> nth=0")
    assert "load_model" in page.inner_text("#code_python")
    assert "music-evals inpainting --pairs" in page.inner_text("#code_shell")


def test_results_are_downloaded_as_json_csv_and_midi(open_space: Any, tmp_path: Path) -> None:
    page = open_space(NAME)
    page.wait_for_selector(NOTES)
    choose(page, "system", "copy_past")
    page.wait_for_selector("#temperature", state="hidden")
    fill(page, "1 of 1 candidates by copy_past.")
    found = {}
    for kind in ("json", "csv", "midi"):
        with page.expect_download() as started:
            page.click(f"#download_{kind}")
        found[kind] = tmp_path / kind
        started.value.save_as(found[kind])
    results = json.loads(found["json"].read_text(encoding="utf-8"))
    assert len(results["candidates"][0]["middle"]) == 96
    assert results["receipt"]["system"] == "copy_past"
    assert found["csv"].read_text(encoding="utf-8").splitlines()[1].startswith("1,copy_past,0,")
    assert len(zipfile.ZipFile(found["midi"]).namelist()) == 2
    with page.expect_download() as started:
        page.get_by_role("link", name="MIDI file: Candidate 1").click()
    assert started.value.suggested_filename == "copy_past_0_1.mid"
    assert Path(started.value.path()).read_bytes()[:4] == b"MThd"


def test_a_melody_is_drawn_with_the_mouse(open_space: Any) -> None:
    page = open_space(NAME)
    empty(page)
    page.mouse.click(**point(page, 2, 60))
    count(page, NOTES, 1)
    first = point(page, 12, 64)
    page.mouse.move(**first)
    page.mouse.down()
    page.mouse.move(**point(page, 22, 64), steps=5)
    page.mouse.up()
    count(page, NOTES, 2)
    widths = page.eval_on_selector_all(NOTES, "notes => notes.map(note => +note.getAttribute('width'))")
    assert widths == [6 * PX - 1, 12 * PX - 1]
    page.mouse.move(**point(page, 13, 64))  # a drag on a note changes its length
    page.mouse.down()
    page.mouse.move(**point(page, 16, 64), steps=5)
    page.mouse.up()
    page.wait_for_function(f"document.querySelectorAll('{NOTES}')[1].getAttribute('width') == '{6 * PX - 1}'")
    page.mouse.click(**point(page, 3, 60))  # and a click removes it
    count(page, NOTES, 1)
    page.get_by_role("button", name="Undo").click()
    count(page, NOTES, 2)
    choose(page, "system", "last_pitch_beats")
    fill(page, "1 of 1 candidates by last_pitch_beats.")
    assert "16 extra" in page.inner_text("#candidates .diff")
    assert "silence is taken for the true middle" in page.inner_text("#candidates")


def test_a_melody_is_drawn_with_the_keyboard(open_space: Any) -> None:
    page = open_space(NAME)
    empty(page)
    page.focus("#editor .grid")
    page.keyboard.press("Enter")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
    count(page, NOTES, 3)
    assert "Added. measure 1, beat 3, A4: a note of 6 steps. 3 notes in all." in page.inner_text("#editor .where")
    page.keyboard.press("Shift+ArrowRight")
    assert "a note of 12 steps" in page.inner_text("#editor .where")
    page.keyboard.press("PageDown")
    assert "measure 2, beat 3, A4: empty" in page.inner_text("#editor .where")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Space")
    count(page, NOTES, 4)
    page.keyboard.press("Delete")
    count(page, NOTES, 3)
    page.keyboard.press("u")
    count(page, NOTES, 4)
    # in one go: on a busy machine four notes are over before a second question reaches the page
    told = page.evaluate(
        """[1, 2].map(() => {
            const key = new KeyboardEvent("keydown", { key: "p", bubbles: true });
            document.querySelector("#editor .grid").dispatchEvent(key);
            return document.querySelector("#editor [data-do=play]").textContent;
        })"""
    )
    assert told == ["Stop", "Play"]
    page.keyboard.press("Tab")  # the roll does not hold who wants to leave it
    assert page.evaluate("!document.activeElement.matches('#editor .grid')")


def test_candidates_are_played_one_at_a_time(open_space: Any) -> None:
    page = open_space(NAME)
    page.wait_for_selector(NOTES)
    choose(page, "system", "copy_past")
    fill(page, "1 of 1 candidates by copy_past.")
    buttons = page.locator("#candidates figcaption button")
    buttons.nth(0).click()
    page.wait_for_function(
        "document.querySelector('#candidates .playhead').transform.baseVal.consolidate().matrix.e > 310"
    )
    assert buttons.nth(0).inner_text() == "Stop"
    buttons.nth(3).click()  # another one stops the first
    assert [buttons.nth(number).inner_text() for number in range(4)] == [
        "Play the gap",
        "Play all",
        "Play the gap",
        "Stop",
    ]
    buttons.nth(3).click()
    assert buttons.nth(3).inner_text() == "Play all"


def test_a_file_is_uploaded_and_its_window_moved(open_space: Any, tmp_path: Path) -> None:
    path = tmp_path / "<img src=x onerror=alert(1)>.mid"
    rows = [(1920 * m, 960, pitch + m % 12, voice) for m in range(20) for voice, pitch in enumerate((60, 48))]
    onsets, durations, pitches, voices = (list(column) for column in zip(*rows, strict=True))
    path.write_bytes(
        write_midi(Score(make_notes(onsets, durations, pitches, voice=voices), 480, voices=("<b>a</b>", "b")))
    )
    page = open_space(NAME)
    page.wait_for_selector(NOTES)
    page.click("#upload_part button >> nth=0")
    page.set_input_files("#upload input[type=file]", str(path))
    page.wait_for_selector("#upload_note >> text=20 measures, 2 voices.")
    assert page.locator("#upload_note img").count() == 0
    count(page, NOTES, 16)
    choose(page, "voice", "2: b (20 notes)")
    page.wait_for_selector("#editor .note title >> text=C3", state="attached")
    page.focus("#start input[type=range]")
    page.keyboard.press("End")
    page.wait_for_selector("#editor .paper text >> text=20", state="attached")
    assert page.locator(NOTES).count() == 16
    (tmp_path / "broken.mid").write_bytes(b"MThd<script>")
    page.click("#upload button[aria-label*=emove], #upload button[aria-label*=lear]")
    page.set_input_files("#upload input[type=file]", str(tmp_path / "broken.mid"))
    page.wait_for_selector(".toast-body >> text=broken.mid")
    assert "/" not in page.inner_text(".toast-body")  # no folder of the machine


def test_a_run_is_cancelled(open_space: Any) -> None:
    page = open_space(NAME)
    page.wait_for_selector(NOTES)
    choose(page, "system", "anticipation_rnn")
    page.wait_for_selector("#temperature", state="visible")
    page.fill("#n_candidates input[type=number]", "8")
    page.click("#fill")
    page.wait_for_selector("#status >> text=of 8 candidates")
    page.click("#cancel")
    page.wait_for_selector("#status >> text=Cancelled.")
    page.wait_for_timeout(3000)
    assert re.fullmatch(r"[0-7] of 8 candidates by anticipation_rnn\. Cancelled\.", page.inner_text("#status").strip())
    before = page.inner_html("#editor .notes")
    page.click("#example_1")
    page.wait_for_function("before => document.querySelector('#editor .notes').innerHTML !== before", arg=before)
    page.fill("#n_candidates input[type=number]", "1")
    fill(page, "1 of 1 candidates by anticipation_rnn.")


def test_candidates_go_when_the_melody_or_a_setting_changes(open_space: Any) -> None:
    page = open_space(NAME)
    page.wait_for_selector(NOTES)
    assert page.is_disabled("#download_midi")
    choose(page, "system", "copy_past")
    for change in ("button", "setting"):
        fill(page, "1 of 1 candidates by copy_past.")
        page.wait_for_selector("#download_midi:not([disabled])")
        if change == "button":
            page.get_by_role("button", name="Empty the gap").click()
        else:
            page.fill("#seed input", "5")
        count(page, "#candidates figure", 0)
        page.wait_for_selector("#download_midi[disabled]")
        assert page.inner_text("#status").strip() == "Nothing is filled yet."


def test_a_melody_of_nothing_is_refused_in_words(open_space: Any) -> None:
    page = open_space(NAME)
    empty(page)
    page.click("#fill")
    page.wait_for_selector(".toast-body >> text=there are no notes before and after the gap")


def test_a_rhythm_is_drawn_and_the_model_finds_the_pitches(open_space: Any, screenshot: Any) -> None:
    page = open_space(NAME)
    page.wait_for_selector(NOTES)
    choose(page, "system", "vli")  # which follows none, and says so
    page.wait_for_selector("#sketch >> text=vli follows no sketch; sketchnet does.")
    assert page.is_disabled("#sketch input >> nth=1")
    choose(page, "system", "sketchnet")
    page.wait_for_selector("#sketch input:enabled")
    page.get_by_role("button", name="Empty the gap").click()
    count(page, "#editor .note.inside", 0)
    page.focus("#editor .grid")
    for _ in range(6):
        page.keyboard.press("PageDown")
    page.select_option("#editor .unit", label="half")
    for _ in range(2):  # two halves in measure 7, in any row; the other measures are left to the model
        page.focus("#editor .grid")
        page.keyboard.press("Enter")
        page.keyboard.press("ArrowRight")
    count(page, "#editor .note.inside", 2)
    page.get_by_label("a rhythm: the model finds the pitches").check()
    count(page, "#editor .sketch .onset", 2)
    assert "The notes in the gap are a rhythm" in page.inner_text("#editor .task")
    page.uncheck("#judge input")
    fill(page, "3 of 3 candidates by sketchnet.")
    assert page.inner_text("#candidates").count("2 of 2 drawn onsets are there, and 0 others") == 3
    screenshot(page, "inpainting_rhythm")
    page.get_by_label("a contour").check()
    count(page, "#editor .sketch polyline", 1)
    count(page, "#candidates figure", 0)
    fill(page, "3 of 3 candidates by sketchnet.")
    assert page.inner_text("#candidates").count("2 of 2 drawn pitches are there, and 0 others") == 3
    page.get_by_role("button", name="Empty the gap").click()
    page.click("#fill")
    page.wait_for_selector(".toast-body >> text=draw the contour there")


@pytest.fixture(scope="module")
def any_gap(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A copy of the Space beside an infill transformer with random weights: what it can do, not how well."""
    from music_evals.models.infill_transformer import InfillTransformer, InfillTransformerConfig

    root = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "spaces" / NAME, root / "spaces" / NAME)
    shutil.copytree(ROOT / "models" / "sketchnet", root / "models" / "sketchnet")
    model = InfillTransformer(InfillTransformerConfig(size="tiny", temperature=0.9))
    model.save_pretrained(root / "models" / "infill_transformer")
    return str(root / "spaces" / NAME)


def slide(page: Any, elem_id: str, value: int) -> None:
    page.fill(f"#{elem_id} input[type=number]", str(value))
    page.press(f"#{elem_id} input[type=number]", "Tab")


def test_another_span_is_filled_by_a_model_of_any_gap(open_space: Any, any_gap: str) -> None:
    page = open_space(any_gap)
    page.wait_for_selector(NOTES)
    assert page.input_value("#system input") == "infill_transformer"  # its weights are there: it is the default
    page.wait_for_selector("#decoding >> text=best draws nothing")
    page.get_by_label("drawn step by step: sample").check()
    page.wait_for_selector("#temperature", state="visible")
    assert page.input_value("#temperature input[type=number]") == "0.9"
    slide(page, "gap_measures", 2)
    page.wait_for_function(f"document.querySelector('#editor .gap').getAttribute('width') == '{48 * PX}'")
    slide(page, "gap_first", 3)
    page.wait_for_function(f"document.querySelector('#editor .gap').getAttribute('x') == '{48 * PX}'")
    assert page.get_attribute("#editor .gap", "width") == f"{48 * PX}"
    assert page.locator("#editor .note.inside").count() == 7
    fill(page, "3 of 3 candidates by infill_transformer.")
    assert "gap 3 to 4" in page.get_attribute("#candidates svg.roll >> nth=1", "aria-label")
    choose(page, "system", "sketchnet")  # which fills the middle, and says so
    page.wait_for_selector("#gap_first >> text=sketchnet fills measures 7 to 10 of the sixteen, no more and no fewer")
    assert page.is_disabled("#gap_measures input[type=number]")
    count(page, "#editor .note.inside", 16)
    assert page.input_value("#gap_first input[type=number]") == "7"


def test_the_gap_is_where_it_was_moved_last_whatever_is_answered_last(open_space: Any, any_gap: str) -> None:
    page = open_space(any_gap)
    page.wait_for_selector("#decoding >> text=best draws nothing")
    held: list[Any] = []

    def hold_the_first(route: Any) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/gradio_api/run/**", hold_the_first)
    slide(page, "gap_measures", 2)
    slide(page, "gap_first", 3)
    page.wait_for_timeout(2000)
    held[0].continue_()
    page.wait_for_function(f"document.querySelector('#editor .gap').getAttribute('x') == '{48 * PX}'")
    page.wait_for_timeout(1000)
    assert page.get_attribute("#editor .gap", "x") == f"{48 * PX}"
    assert page.get_attribute("#editor .gap", "width") == f"{48 * PX}"


def test_notes_of_gap_and_candidate_are_locked_and_stay(open_space: Any, any_gap: str, screenshot: Any) -> None:
    page = open_space(any_gap)
    page.wait_for_selector(NOTES)
    page.get_by_label("drawn step by step: sample").check()
    page.wait_for_selector("#temperature", state="visible")
    # by keyboard: the first note of the gap is a C4
    page.focus("#editor .grid")
    for _ in range(6):
        page.keyboard.press("PageDown")
    for _ in range(7):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("k")
    count(page, "#kept li", 1)
    assert "Kept. measure 7, beat 1, C4: a note of 6 steps, kept." in page.inner_text("#editor .where")
    count(page, "#editor .kept rect", 1)
    fill(page, "3 of 3 candidates by infill_transformer.")
    assert "1 note stays as you locked it." in page.inner_text("#candidates")
    count(page, "#candidates rect.locked[data-keep='144,6,60']", 3)
    # a note of a candidate, by its box; then another one by a click on its picture
    page.click("#candidates .locks summary >> nth=1")
    box = page.locator("#candidates figure >> nth=2").locator("input[data-keep]:not(:checked)").last
    lock = box.get_attribute("data-keep")
    box.check()
    count(page, "#kept li", 2)
    assert page.locator("#candidates figure").count() == 4  # they are still there to choose from
    page.fill("#seed input", "5")
    fill(page, "3 of 3 candidates by infill_transformer.")
    count(page, f"#candidates rect.locked[data-keep='{lock}']", 3)
    screenshot(page, "inpainting_locks")
    page.locator(f"#candidates rect[data-keep='{lock}']").first.click()
    count(page, "#kept li", 1)
    page.click("#kept li button")
    count(page, "#kept li", 0)
    page.get_by_role("button", name="Keep by click").click()
    page.locator("#editor .scroll").evaluate("node => { node.scrollLeft = 144 * 3 - 40; }")
    page.mouse.click(**point(page, 151, 60))
    count(page, "#kept li", 1)
    assert page.locator("#editor .note.inside").count() == 16  # it is not removed
    page.click("#example_1")  # of another melody nothing is kept
    count(page, "#kept li", 0)
    choose(page, "system", "sketchnet")
    page.wait_for_selector("#kept >> text=sketchnet writes the whole gap anew and cannot keep notes in it")
    assert page.is_disabled("#editor [data-do=keep]")
    page.focus("#editor .grid")
    page.keyboard.press("k")
    assert "cannot keep notes" in page.inner_text("#editor .where")


def test_a_phone_shows_it_in_the_dark_and_takes_taps(open_space: Any, screenshot: Any) -> None:
    page = open_space(NAME, viewport=(390, 844), dark=True)
    page.wait_for_selector(NOTES)
    page.click("#example_chorale")
    page.wait_for_function(f"document.querySelectorAll('{NOTES}').length != 62")
    choose(page, "system", "copy_past")
    fill(page, "1 of 1 candidates by copy_past.")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    text, arrow = (
        page.locator(f"#system .{part}").bounding_box()
        for part in ("secondary-wrap input", "secondary-wrap .icon-wrap")
    )
    padding = page.eval_on_selector(
        "#system .secondary-wrap input", "node => parseFloat(getComputedStyle(node).paddingRight)"
    )
    assert text["x"] + text["width"] - padding <= arrow["x"]  # what is chosen is not under the arrow
    empty(page)
    box = page.locator("#editor .grid").bounding_box()
    at = {"clientX": box["x"] + 20, "clientY": box["y"] + 60, "pointerType": "touch", "button": 0, "isPrimary": True}
    for _ in range(2):
        page.dispatch_event("#editor .grid", "pointerdown", at)
        page.dispatch_event("#editor .grid", "pointerup", at)
        if page.locator(NOTES).count() == 0:
            break
    count(page, NOTES, 0)  # a tap adds, the next one removes
    page.dispatch_event("#editor .grid", "pointerdown", at)
    page.dispatch_event("#editor .grid", "pointerup", at | {"clientY": box["y"] + 160})
    count(page, NOTES, 0)  # a swipe draws nothing
    page.get_by_role("button", name="Undo").click()
    count(page, NOTES, 1)
    screenshot(page, "inpainting_phone")
