"""Every page of the annotation platform under axe-core: in both languages, wide and light, narrow and dark."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.caimap.routes import PAGES
from tests.caimap_bench import Clock, StudyBench

from music_evals.caimap.domain.consistency import Coefficient, Drift, PersonWeek
from music_evals.caimap.exchange.demo import PEOPLE, make_demo
from music_evals.caimap.exchange.reporting import write_report
from music_evals.caimap.services import accounts, inspecting, oversight, training
from music_evals.caimap.services.oversight import StudyAgreement
from music_evals.caimap.services.study import StudyService, utc_now
from music_evals.caimap.storage.store import Store, sqlite_url

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PASSWORD = "a long password"  # noqa: S105  (of the demo)
NUMBERS = {name: number for number, name in enumerate(PEOPLE, 1)}
LOOKS = (("light", 1280), ("dark", 390))
SEEN: set[str] = set()
"""Paths that were looked at, of all tests of this module."""

DONE: set[str] = set()
"""Tests that looked at all their pages."""

NO_PAGES = {"/", "/ledger.csv", "/manage/progress", "/task/{number:id}/audio", "/task/{number:id}/waveform",
            "/lexicon/{group}/{dimension}"}  # fmt: skip
"""What is no page of its own: parts of pages, which are seen there, and files."""

RUN = """
async () => {
  const wishes = { rules: { "target-size": { enabled: true } }, resultTypes: ["violations"] };
  const { violations } = await axe.run(wishes);
  return violations.flatMap(({ id, impact, nodes }) =>
    nodes.map((node) => `${impact} ${id}: ${node.html}\\n${node.failureSummary}`));
}
"""
BREAK = """
() => {
  const field = document.querySelector("[name=password]");
  field.closest("label").replaceWith(field);
  document.querySelector("h1").style.color = "silver";
}
"""


class Study(NamedTuple):
    base: str
    service: StudyService
    invitation: str
    items: dict[str, int]


@pytest.fixture(scope="module")
def axe() -> str:
    from axe_playwright_python.base import AXE_SCRIPT

    return AXE_SCRIPT


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory, serve_caimap: Any) -> Iterator[Study]:
    """The demo study, and an invitation; its people have left something on every page."""
    folder = tmp_path_factory.mktemp("study")
    url = sqlite_url(folder / "study.db")
    make_demo(folder / "audio", url, PASSWORD)
    service = StudyService(Store(url))
    inspector, admin = NUMBERS["inspector1"], NUMBERS["admin"]
    judged = training.practice(service, inspector).judged
    assert judged is not None
    items = {
        "scored": inspecting.waiting(service, inspector)[1][0],
        "verified": next(one.task for one in oversight.verifications(service, admin) if one.second is not None),
        "trained": judged.discussed[0],
    }
    invitation = f"/invitation/{accounts.invite(service, admin, 'amateur')}"
    yield Study(serve_caimap(folder), service, invitation, items)
    service.store.close()


def found(page: Any) -> list[str]:
    """Return what axe-core finds in a page, once its style sheets are there: without them, links are too small."""
    page.wait_for_load_state("load")
    wrong: list[str] = page.evaluate(RUN)
    return wrong


class Looker:
    """Somebody whose pages are looked at; axe-core comes in from outside, for the policy of the pages keeps it away."""

    def __init__(self, chromium: Any, study: Study, axe: str, language: str) -> None:
        self.study, self.language = study, language
        context = chromium.new_context(locale="zh-CN" if language == "zh" else "en")
        context.add_init_script(axe)
        self.page = context.new_page()

    def sign_in(self, name: str) -> Looker:
        self.open("/sign-in")
        self.page.fill("[name=name]", name)
        self.page.fill("[name=password]", PASSWORD)
        with self.page.expect_navigation():
            self.page.click("main button")
        return self

    def open(self, path: str) -> Any:
        self.page.goto(f"{self.study.base}{path}?language={self.language}")
        return self.page

    def found(self) -> list[str]:
        """Return what axe-core finds in the page that is open, of any level."""
        return found(self.page)

    def look(self, path: str = "") -> None:
        """Look at a page, or at the one that is open, in all looks."""
        if path:
            self.open(path)
        SEEN.add(re.sub(r"\?.*", "", self.page.url.removeprefix(self.study.base)))
        assert self.page.get_attribute("html", "lang") == ("zh-CN" if self.language == "zh" else "en")
        for scheme, width in LOOKS:
            self.page.emulate_media(color_scheme=scheme)
            self.page.set_viewport_size({"width": width, "height": 900})
            # a waveform follows the width a moment later
            self.page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)
            assert self.found() == [], f"{self.page.url}, {scheme}, {width} px"


@pytest.fixture(params=["zh", "en"])
def looker(request: pytest.FixtureRequest, chromium: Any, study: Study, axe: str) -> Iterator[Callable[[str], Looker]]:
    made: list[Looker] = []

    def sign_in(name: str) -> Looker:
        made.append(Looker(chromium, study, axe, request.param))
        return made[-1].sign_in(name) if name else made[-1]

    yield sign_in
    DONE.add(request.node.originalname)
    for each in made:
        each.page.context.close()


def test_strangers(looker: Any, study: Study) -> None:
    stranger = looker("")
    stranger.look("/sign-in")
    stranger.look(study.invitation)
    stranger.look("/new-password/of-nobody")
    refused = looker("nobody")
    assert refused.page.locator("[role=alert]").count() == 1
    refused.look()


def hear(study: Study, who: int, task: int) -> None:
    """Let the time of a whole song pass on the clock of the study; `test_caimap` listens to one in the browser."""
    bench = StudyBench.__new__(StudyBench)
    bench.store, bench.clock = study.service.store, Clock()
    bench.clock.now = utc_now()
    bench.service = StudyService(bench.store, bench.clock)
    bench.listen(who, task)


def test_annotators(looker: Any, study: Study) -> None:
    amateur = looker("amateur2")
    amateur.open("/work").click("form[action='/work/next'] button")
    amateur.page.wait_for_url("**/task/*")
    task = amateur.page.url.removeprefix(amateur.study.base)
    amateur.open(task).wait_for_selector(".wave .played")
    amateur.look()
    if amateur.page.locator(".rate[disabled]").count():  # once heard, it stays open in the other language
        hear(study, NUMBERS["amateur2"], int(task.rpartition("/")[2]))
        amateur.open(task).wait_for_selector(".rate:not([disabled])")
    amateur.page.fill("#tags_instrumentation", "")  # the draft of the other language is there
    amateur.page.locator("#tags_instrumentation").press_sequentially("钢")
    amateur.page.wait_for_selector("#terms_instrumentation button")
    amateur.look()
    for path in ("/work", "/withdraw", "/training", "/feedback", "/ledger", "/manage"):
        amateur.look(path)
    assert amateur.page.locator("[role=alert]").count() == 1  # the page of another role
    professional = looker("professional1")
    professional.open("/work").click("form[action='/work/next'] button")
    professional.page.wait_for_url("**/task/*")
    professional.open(professional.page.url.removeprefix(professional.study.base)).wait_for_selector(".wave .played")
    professional.look()
    professional.look(professional.open("/work").locator("a[href^='/task/']").last.get_attribute("href"))
    assert professional.page.locator("form[action^='/task/']").count() == 0  # it was handed in, and is read alone


def test_inspectors(looker: Any, study: Study) -> None:
    inspector = looker("inspector1")
    inspector.look("/inspect")
    inspector.look(inspector.page.get_attribute("a[href^='/inspect/song/']", "href"))
    assert inspector.page.locator(".differs").count() > 0
    inspector.look(f"/inspect/task/{study.items['scored']}")
    inspector.look("/training")
    assert inspector.page.locator(".differs").count() == 1
    inspector.look(f"/training/task/{study.items['trained']}")


def test_administrators(looker: Any, study: Study) -> None:
    manager = looker("admin")
    person, verified = f"/manage/person/{NUMBERS['amateur1']}", f"/manage/verify/{study.items['verified']}"
    for path in (
        "/manage",
        "/manage/analytics",
        person,
        f"/manage/task/{study.items['verified']}",
        "/manage/people",
        "/ledger",
        "/feedback",
        "/training",
        "/manage/verify",
        verified,
        "/manage/agreement",
        "/manage/grades",
    ):
        manager.look(path)
        assert manager.page.locator(".none").count() == 0, f"{path} has nothing to show"
    manager.look(f"{person}/withdraw")
    manager.open("/manage").click("form[action='/manage/invite'] button")
    manager.page.wait_for_selector("[role=status] code")
    manager.page.wait_for_load_state()
    manager.look()


def test_what_is_judged_again(looker: Any) -> None:
    """Structures of the training, the version that is accepted for one, a discussion, and a structure settled again."""
    annotator, inspector, manager = looker("professional1"), looker("inspector2"), looker("admin")
    for reader, page, links in (
        (annotator, "/training", ("/training/lesson/",)),
        (inspector, "/training", ("/training/song/", "/training/lesson/")),
        (manager, "/manage/verify", ("/manage/settled/",)),
    ):
        reader.look(page)
        found = [reader.page.locator(f"a[href^='{start}']").last.get_attribute("href") for start in links]
        for path in found:
            reader.look(path)
    assert inspector.open("/training").locator("h3[id^=item]").count() > 0
    excluded = looker("amateur3")
    for path in ("/work", "/training"):
        excluded.look(path)
        assert excluded.page.locator("form[action$='/next']").count() == 0
    if manager.page.locator("button.first").count():  # in the other language it was verified
        manager.page.click("button.first")
        manager.page.wait_for_selector("[role=status]")
        manager.page.wait_for_load_state()
        manager.look()


def test_a_report(looker: Any, tmp_path: Path) -> None:
    row = Coefficient("kappa", "professional", "overall_text", 0.5, 0.25, 0.75, 9)
    week = PersonWeek(4, "amateur", "points", dt.date(2026, 3, 2), 3, 80.0, float("nan"))
    drift = Drift(4, "amateur", "points", 5, 0.5, -0.5, 1.5, 0.25)
    reader = looker("")
    write_report(StudyAgreement([row], [row], [row], [week], [drift]), tmp_path, language=reader.language)
    reader.page.goto((tmp_path / "agreement.html").as_uri())
    assert reader.page.locator("table").count() == 5
    reader.look()


def test_faults_are_found(looker: Any) -> None:
    visitor = looker("")
    visitor.open("/sign-in").evaluate(BREAK)
    assert {line.partition(":")[0] for line in visitor.found()} == {"critical label", "serious color-contrast"}


def test_no_page_was_forgotten() -> None:
    of_roles = {"test_strangers", "test_annotators", "test_inspectors", "test_administrators"}
    if not of_roles | {"test_what_is_judged_again"} <= DONE:
        pytest.skip("only some of the tests that look at pages were run")
    asked = {page.path for page in PAGES if page.method == "GET"} - NO_PAGES
    patterns = {path: re.compile(re.sub(r"\{[^}]*\}", "[^/]+", path)) for path in asked}
    assert [path for path, pattern in patterns.items() if not any(map(pattern.fullmatch, SEEN))] == []
