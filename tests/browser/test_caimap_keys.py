"""The editor of structures by keys, a loop, a line that is played, and the points of a sheet as they are given."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import soundfile
from benchmarks.caimap import keys
from sqlalchemy import select
from tests.caimap_bench import reports

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap.domain.assurance import FORMS, PASS_MARK
from music_evals.caimap.domain.values import Song, Structure, TimedLine
from music_evals.caimap.exchange import demo
from music_evals.caimap.services import accounts, managing
from music_evals.caimap.services.study import Settings, StudyService
from music_evals.caimap.storage.store import Store, migrate, sqlite_url
from music_evals.caimap.storage.tables import TaskRow
from music_evals.errors import MusicEvalsError

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PASSWORD = "a long password"  # noqa: S105  (of nobody)
LINES = ("春眠不觉晓", "处处闻啼鸟", "夜来风雨声", "花落知多少")
SECONDS = 8.0
ROLES = {"professional": "professional", "other": "professional", "amateur": "amateur", "inspector": "inspector"}


class Study(NamedTuple):
    base: str
    service: StudyService
    people: dict[str, int]


@pytest.fixture(scope="module")
def study_of(tmp_path_factory: pytest.TempPathFactory, serve_caimap: Any) -> Iterator[Callable[[str], Study]]:
    """Studies of one song of 8 s, `"timed"` with the times of its lines or `"untimed"`; all descriptions are scored."""
    made: dict[str, Study] = {}

    def make(name: str) -> Study:
        if name in made:
            return made[name]
        folder = tmp_path_factory.mktemp("study")
        (folder / "audio").mkdir()
        url = sqlite_url(folder / "study.db")
        migrate(url)
        service = StudyService(Store(url))
        service.configure(Settings(seed=1, share=1.0, pass_gap_hours=0.0))
        people = {"admin": accounts.create_first_admin(service, "admin", PASSWORD)}
        for who, role in ROLES.items():
            token = accounts.invite(service, people["admin"], role)
            people[who] = accounts.accept(service, token, who, PASSWORD, consents=True)
        wave = 0.2 * np.sin(2 * np.pi * 220 * np.arange(int(SECONDS * 8000)) / 8000)
        soundfile.write(folder / "audio" / "s1.flac", wave, 8000)
        times = tuple(TimedLine(1.5 * number, line) for number, line in enumerate(LINES)) if name == "timed" else ()
        song = Song("s1", LINES, SECONDS, audio="s1.flac", timed_lyrics=times, theme="春天", licence="CC0")
        managing.add_songs(service, people["admin"], [song])
        made[name] = Study(serve_caimap(folder), service, people)
        return made[name]

    yield make
    for study in made.values():
        study.service.store.close()


def signed_in(chromium: Any, study: Study, name: str, **wishes: Any) -> Any:
    page = chromium.new_context(**{"locale": "en", **wishes}).new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{study.base}/sign-in?language=en")
    page.fill("[name=name]", name)
    page.fill("[name=password]", PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("form[action='/sign-out']")
    return page


def next_task(page: Any) -> None:
    page.click("form[action='/work/next'] button")
    page.wait_for_selector("form.annotation")
    page.wait_for_function("() => document.readyState === 'complete'")  # keys are heard from then on


def labels(page: Any) -> list[str]:
    return page.eval_on_selector_all("[name^=label_]", "(all) => all.map((one) => one.value)")


def lines(page: Any) -> list[str]:
    return page.eval_on_selector_all("[name^=line_]", "(all) => all.map((one) => one.value)")


def says(page: Any) -> str:
    return page.text_content(".row-status")


def second(page: Any) -> float:
    return page.evaluate("() => document.querySelector('audio').currentTime")


def result(study: Study, person: str) -> Structure:
    with study.service.store.reading() as session:
        row = session.scalars(select(TaskRow).where(TaskRow.person == study.people[person])).one()
        return Structure.from_dict(row.result)


def test_a_structure_is_made_by_keys_alone(chromium: Any, study_of: Callable[[str], Study]) -> None:
    study = study_of("timed")
    page = signed_in(chromium, study, "professional")
    next_task(page)
    press = page.keyboard.press
    page.focus("[name=line_0]")
    press("Shift+Enter")  # a row above, for an intro without words
    assert lines(page) == ["", *LINES]
    assert page.evaluate("() => document.activeElement.name") == "line_0"
    press("1")
    press("ArrowDown")
    for _ in range(2):  # the first verse; again, and there is no second one to go to
        press("2")
        assert labels(page) == ["intro1", "verse1", "", "", ""]
    assert "verse1" in says(page)
    press("ArrowDown")
    press("9")
    assert page.is_checked("[name=rhyme_2]")
    press("ArrowDown")
    press("4")
    press("ArrowDown")
    press("4")
    assert labels(page)[3:] == ["chorus1", "chorus2"]
    press("4")  # the first chorus again
    assert labels(page)[3:] == ["chorus1", "chorus1"]
    press("0")
    assert labels(page)[3:] == ["chorus1", ""]
    press("Enter")
    press("7")
    assert lines(page) == ["", *LINES, ""]
    assert page.get_attribute("[name=line_5]", "aria-label") == "Line 6"
    assert page.get_attribute("[name=reading_4]", "aria-label") == "Reading of the last character 5"
    page.focus("[name=reading_4]")
    page.keyboard.type("shao4")  # a digit here is a tone
    page.focus("[name=theme]")
    page.keyboard.type("的早晨2")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/work")
    made = result(study, "professional")
    assert [(part.label, part.lines, part.rhyme, part.readings) for part in made.sections] == [
        ("intro1", (), (), ()),
        ("verse1", LINES[:2], ("ccccc", "ccccR"), ("", "")),
        ("chorus1", LINES[2:], ("ccccc", "ccccc"), ("", "shao4")),
        ("ending1", (), (), ()),
    ]
    assert "2" in made.theme


def test_an_input_method_that_composes_is_left_alone(chromium: Any, study_of: Callable[[str], Study]) -> None:
    page = signed_in(chromium, study_of("untimed"), "professional")
    next_task(page)
    page.focus("[name=line_1]")
    for how in ({"isComposing": True}, {"keyCode": 229}):
        for key in ("2", "9", "Enter", "ArrowDown"):
            free = page.evaluate(
                "([key, how]) => document.activeElement.dispatchEvent("
                "new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...how }))",
                [key, how],
            )
            assert free, (key, how)  # nobody kept the browser from it
    assert labels(page) == ["verse1", "", "", ""]
    assert lines(page) == list(LINES)
    assert page.evaluate("() => document.activeElement.name") == "line_1"
    client = page.context.new_cdp_session(page)
    client.send("Input.imeSetComposition", {"text": "chun", "selectionStart": 4, "selectionEnd": 4})
    client.send("Input.insertText", {"text": "春2"})  # what an input method commits is text and no key
    assert lines(page)[1] in {f"{LINES[1]}春2", f"春2{LINES[1]}"}
    assert labels(page) == ["verse1", "", "", ""]
    page.fill("[name=line_1]", LINES[1])
    page.click("[formaction$='/save']")
    page.wait_for_selector("form.has-keys")


def test_a_line_plays_from_its_time(chromium: Any, study_of: Callable[[str], Study]) -> None:
    study = study_of("timed")
    page = signed_in(chromium, study, "other")
    next_task(page)
    events = reports(page)
    assert page.locator(".from:visible").count() == len(LINES)
    page.focus("[name=line_2]")
    page.keyboard.press("8")
    page.wait_for_function("() => !document.querySelector('audio').paused")
    assert 3.0 <= second(page) < 5.0
    page.locator(".from").nth(1).click()
    page.wait_for_function("() => document.querySelector('audio').currentTime < 2.9")
    assert second(page) >= 1.5
    page.wait_for_timeout(500)
    assert [value for kind, _, value in events if kind == "seek"] == [3.0, 1.5]
    page.click("form.annotation button.first")
    page.wait_for_url("**/work")


def test_without_times_a_position_is_noted_and_played(chromium: Any, study_of: Callable[[str], Study]) -> None:
    page = signed_in(chromium, study_of("untimed"), "professional")
    next_task(page)
    assert page.locator(".from:visible").count() == 0
    page.focus("[name=line_1]")
    page.keyboard.press("8")
    assert second(page) == 0
    assert "Alt+N" in says(page)
    page.wait_for_function("() => document.querySelector('audio').readyState > 0")
    page.evaluate("() => { document.querySelector('audio').currentTime = 4.25; }")
    page.keyboard.press("Alt+n")
    assert page.locator(".from:visible").count() == 1
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")  # rows move, the time goes along
    page.click("[formaction$='/save']")
    page.wait_for_selector(".from:visible")
    assert lines(page) == list(LINES)  # an empty row is none
    assert second(page) == 0
    page.locator(".from:visible").click()
    page.wait_for_function("() => document.querySelector('audio').currentTime >= 4.25")


def test_a_stretch_is_looped_and_reports(chromium: Any, study_of: Callable[[str], Study]) -> None:
    page = signed_in(chromium, study_of("untimed"), "professional")
    next_task(page)
    events = reports(page)
    page.wait_for_function("() => document.querySelector('audio').readyState > 0")
    page.evaluate("() => { document.querySelector('audio').currentTime = 2; }")
    page.keyboard.press("Alt+a")
    page.evaluate("() => { document.querySelector('audio').currentTime = 3; }")
    page.keyboard.press("Alt+b")
    box, bar = page.locator(".position").bounding_box(), page.locator(".stretch").bounding_box()
    assert bar["x"] - box["x"] == pytest.approx(2 / SECONDS * box["width"], abs=3)
    assert bar["width"] == pytest.approx(box["width"] / SECONDS, abs=6)
    page.keyboard.press("Control+Space")
    page.wait_for_timeout(4000)
    assert 1.9 <= second(page) <= 3.4
    seeks = [(at, to) for kind, at, to in events if kind == "seek"]
    assert len(seeks) >= 2
    assert all(3.0 <= at < 3.6 and to == 2.0 for at, to in seeks)
    page.keyboard.press("Alt+l")
    assert page.is_hidden(".stretch")
    page.wait_for_function("() => document.querySelector('audio').currentTime > 4", timeout=10_000)
    page.click("form.annotation button.first")
    page.wait_for_url("**/work")


def test_nobody_loops_before_the_song_was_heard(chromium: Any, study_of: Callable[[str], Study]) -> None:
    study = study_of("untimed")
    for name in ("professional", "other"):  # who may have handed it in
        page = signed_in(chromium, study, name)
        page.click("form[action='/work/next'] button")
        page.wait_for_url(re.compile("/task/|none=1"))
        if "/task/" in page.url:
            page.click("form.annotation button.first")
            page.wait_for_url("**/work")
    inspector = signed_in(chromium, study, "inspector")
    for link in inspector.locator("a[href^='/inspect/song/']").all():  # equal ones may be in the sample
        link.click()
        inspector.wait_for_selector("form.has-keys")
        inspector.focus("[name=line_0]")
        inspector.keyboard.press("2")  # keys and times of lines are there for inspectors too
        assert labels(inspector)[0] == "verse1"
        inspector.click("main form button.first")
        inspector.wait_for_url("**/inspect")
    page = signed_in(chromium, study, "amateur")
    next_task(page)
    page.keyboard.press("Control+Space")
    page.wait_for_function("() => document.querySelector('audio').currentTime > 1")
    page.keyboard.press("Alt+a")
    page.keyboard.press("Alt+b")
    assert page.is_hidden(".stretch")
    assert page.locator("[data-loop]:disabled").count() == 3
    page.wait_for_selector(".rate:not([disabled])")
    assert page.locator("[data-loop]:disabled").count() == 0
    page.fill("[name=overall_text]", "这是一首安静而明亮的歌，适合在清晨慢慢地听。" * 3)
    for number, name in enumerate(DIMENSIONS["amateur"]):
        if name != AUDIO_EFFECTS:
            place = "一二三四五六七八九十百千"[number]
            page.fill(f"#tags_{name}", f"温暖{place}、明亮{place}、安静{place}")
    page.check("[name=clear][value=yes]")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/work")


def test_the_points_of_a_sheet_add_up_beside_the_description(chromium: Any, study_of: Callable[[str], Study]) -> None:
    inspector = signed_in(chromium, study_of("untimed"), "inspector")
    inspector.click("a[href^='/inspect/task/']")
    inspector.wait_for_selector(".total")
    fields, most = inspector.locator("[type=number]"), list(FORMS["amateur"].values())
    assert inspector.inner_text(".total").startswith("0 / 100")
    for number, points in enumerate(most):
        fields.nth(number).fill(str(points))
        total = inspector.inner_text(".total")
        assert total.startswith(f"{sum(most[: number + 1])} / 100")
        assert ("passes" in total) == (sum(most[: number + 1]) >= PASS_MARK)
        if number in {0, len(most) - 1}:
            for width in (1280, 390):
                inspector.set_viewport_size({"width": width, "height": 800})
                fields.nth(number).scroll_into_view_if_needed()
                box = inspector.locator(".sight").bounding_box()
                assert -0.2 * box["height"] <= box["y"] < 600, (number, width)  # the description stays in sight
                place = fields.nth(number).bounding_box()
                assert not (box["x"] <= place["x"] < box["x"] + box["width"] and place["y"] < box["y"] + box["height"])
    fields.first.fill("0.5")
    assert inspector.inner_text(".total").startswith(f"{100 - most[0] + 0.5:g} / 100")
    fields.first.fill("99")  # more than there is
    assert inspector.inner_text(".total").startswith(f"{100 - most[0]} / 100")
    for field in fields.all():
        field.fill("0")
    assert "does not pass" in inspector.inner_text(".total")


def test_both_ways_of_the_benchmark_hand_in_the_same(chromium: Any, tmp_path: Path) -> None:
    row = demo.demo_rows()[0]
    goal, found, efforts = keys.goal_of(row), {}, {}
    for way in keys.WAYS:
        study = keys.Study(tmp_path / way, row)
        try:
            efforts[way] = keys.work(chromium, study, goal, way)
            found[way] = study.results()
        finally:
            study.close()
    keys.check(found, goal)
    for kind in keys.WORKS:
        mouse, by_keys = efforts["mouse"][kind], efforts["keys"][kind]
        assert (by_keys.clicks, by_keys.moves) == (0, 0)
        assert mouse.clicks > 10
        assert mouse.model_sec == pytest.approx(0.2 * mouse.keys + 1.3 * mouse.clicks + 0.4 * mouse.moves)
        assert by_keys.model_sec < mouse.model_sec
    structure, *others = found["keys"]
    other = dataclasses.replace(structure, theme=f"{structure.theme}。")
    with pytest.raises(MusicEvalsError):
        keys.check({"mouse": (other, *others), "keys": found["keys"]}, goal)
    with pytest.raises(MusicEvalsError):
        keys.check({"mouse": (other, *others), "keys": (other, *others)}, goal)
