"""A whole study in a browser, on Chinese pages: from the invitations to songs that have entered the data set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import numpy as np
import pytest
import soundfile

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap.domain.values import Song
from music_evals.caimap.services import managing
from music_evals.caimap.services.accounts import first_administrator
from music_evals.caimap.services.study import Settings, StudyService
from music_evals.caimap.storage.store import Store, sqlite_url
from music_evals.cli import main

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PASSWORD = "a long password"  # noqa: S105  (of nobody)
LINES = ("春眠不觉晓", "处处闻啼鸟")


class Study(NamedTuple):
    base: str
    service: StudyService
    admin: int


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve_caimap: Any) -> Iterator[Study]:
    """One song of 8 s; the two passes need no day between them, and every description is scored."""
    monkeypatch.setenv("MUSIC_EVALS_CAIMAP_PASSWORD", PASSWORD)
    assert main(["caimap", "init", str(tmp_path)]) == 0
    seconds = np.arange(8 * 8000) / 8000
    soundfile.write(tmp_path / "audio" / "s1.flac", 0.2 * np.sin(2 * np.pi * 220 * seconds), 8000)
    service = StudyService(Store(sqlite_url(tmp_path / "study.db")))
    service.configure(Settings(seed=1, share=1.0, pass_gap_hours=0.0))
    admin = first_administrator(service)
    song = Song("s1", LINES, 8.0, audio="s1.flac", rhymes=(True, True), theme="春天", licence="CC0")
    managing.add_songs(service, admin, [song])
    yield Study(serve_caimap(tmp_path), service, admin)
    service.store.close()


class Person:
    """Somebody with a browser of their own; what makes pages hard to use is looked for in `test_caimap_access`."""

    def __init__(self, chromium: Any, base: str) -> None:
        self.base, self.page = base, chromium.new_context(locale="zh-CN").new_page()
        self.wrong: list[str] = []
        self.page.on("request", lambda asked: self._asked(asked.url))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))

    def _asked(self, url: str) -> None:
        if not url.startswith((self.base, "data:")):
            self.wrong.append(url)

    def open(self, path: str) -> Any:
        self.page.goto(f"{self.base}{path}")
        return self.seen()

    def seen(self) -> Any:
        self.page.wait_for_load_state()
        assert self.page.get_attribute("html", "lang") == "zh-CN"
        assert self.page.locator("main h1").count() == 1
        return self.page

    def press(self, selector: str) -> Any:
        with self.page.expect_navigation():
            self.page.click(selector)
        return self.seen()

    def sign_in(self, name: str) -> None:
        """Sign in by keyboard alone: the fields and the button follow one another."""
        self.open("/sign-in").focus("[name=name]")
        self.page.keyboard.type(name)
        self.page.keyboard.press("Tab")
        self.page.keyboard.type(PASSWORD)
        self.page.keyboard.press("Tab")
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(lambda url: not url.endswith("/sign-in"))
        self.seen()


def invited(chromium: Any, manager: Person, role: str, name: str) -> Person:
    manager.open("/manage").select_option("[name=role]", role)
    link = manager.press("form[action='/manage/invite'] button").inner_text("main [role=status] code")
    person = Person(chromium, manager.base)
    page = person.open(link)
    page.fill("[name=name]", name)
    page.fill("[name=password]", PASSWORD)
    page.check("[name=consents]")
    page.click("main button")
    page.wait_for_url("**/sign-in")
    person.sign_in(name)
    return person


def write_structure(person: Person, label: str) -> None:
    person.open("/work")
    page = person.press("form[action='/work/next'] button")
    page.select_option("[name=label_0]", label)
    page.fill("[name=theme]", "春天的早晨")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/work")


def describe(person: Person, group: str) -> None:
    person.open("/work")
    page = person.press("form[action='/work/next'] button")
    page.keyboard.press("Control+Space")
    page.wait_for_selector(".rate:not([disabled])", timeout=60_000)
    page.fill("[name=overall_text]", "这是一首安静而明亮的歌，适合在清晨慢慢地听。" * 3)
    for number, name in enumerate(DIMENSIONS[group]):
        own = "" if name == "instrumentation" else str(number)  # the same tags everywhere are asked back
        if name != AUDIO_EFFECTS:
            page.fill(f"#tags_{name}", f"温暖{own}、明亮{own}、安静{own}")
    page.check("[name=clear][value=yes]")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/work")


def test_a_study_from_invitation_to_load_dataset(chromium: Any, study: Study, tmp_path: Path) -> None:
    manager = Person(chromium, study.base)
    manager.sign_in("admin")
    first = invited(chromium, manager, "professional", "甲")
    second = invited(chromium, manager, "professional", "乙")
    amateur = invited(chromium, manager, "amateur", "丙")
    inspector = invited(chromium, manager, "inspector", "丁")

    write_structure(first, "verse1")
    write_structure(second, "chorus1")
    inspector.open("/inspect")
    page = inspector.press("a[href='/inspect/song/s1']")
    assert page.locator(".differs").count() == 4  # the label of both lines, on both sides
    page.click("main form button.first")
    page.wait_for_url("**/inspect")

    describe(second, "professional")
    describe(amateur, "amateur")
    for _ in range(2):
        inspector.open("/inspect")
        page = inspector.press("a[href^='/inspect/task/']")
        for field in page.locator("input[type=number]").all():
            field.fill(field.get_attribute("max"))
        page.click("main form button")
        page.wait_for_url("**/inspect")

    manager.open("/manage")
    manager.press("button[value=finish]")
    for path in ("/manage/analytics", "/manage/verify", "/training", "/ledger", "/feedback"):
        manager.open(path)
    (song,) = managing.finished_songs(study.service)
    assert (song.structure.sections[0].label, song.structure.sections[0].lines) == ("verse1", LINES)
    assert song.amateur.dimensions["instrumentation"].tags == ("温暖", "明亮", "安静")
    assert main(["caimap", "export", str(tmp_path), "--out", str(tmp_path / "data")]) == 0
    rows = datasets.load_dataset("parquet", data_files=str(tmp_path / "data/data/songs/*.parquet"), split="train")
    assert rows["id"] == ["s1"]
    assert rows[0]["amateur"]["dimensions"]["instrumentation"]["tags"] == ["温暖", "明亮", "安静"]
    assert [person.wrong for person in (manager, first, second, amateur, inspector)] == [[]] * 5
