"""Key presses, clicks and seconds for one structure, one description and one sheet: by mouse as before, and by keys.

    python -m benchmarks.caimap.keys            # two minutes; needs Chromium and playwright
    python -m benchmarks.caimap.keys --write    # and into the README

Each way works through a study of its own that holds the same demo song, in Chromium. Both hand in what is written here
beforehand; where structure, description or points differ between the two ways, or from that, the run fails.

Seconds are those of the keystroke-level model (Card, Moran and Newell, "The keystroke-level model for user performance
time with interactive systems", CACM 23(7), 1980): K for a key or a button of the mouse, P for pointing, H for a hand
that goes from the keyboard to the mouse or back. M, which the model adds for thinking, is left out: what is decided is
the same. A Chinese character is one key here, though an input method takes several: both ways write the same. Added is
the time that the pages took, measured; the song, which is heard whole before it is described, is not in it.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.caimap.served import Served
from benchmarks.musib.tables import fill
from sqlalchemy import select

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap.domain import assurance
from music_evals.caimap.domain.values import SECTION_KINDS, Section, Song, Structure
from music_evals.caimap.exchange import demo
from music_evals.caimap.exchange.demo import structure_of_row
from music_evals.caimap.services import accounts, annotating, inspecting, managing
from music_evals.caimap.services.study import Settings, StudyService
from music_evals.caimap.storage.store import Store, migrate, sqlite_url
from music_evals.caimap.storage.tables import SheetRow, SongRow, TaskRow
from music_evals.errors import MissingBackendError, MusicEvalsError
from music_evals.files import write_atomically

K_SEC, P_SEC, H_SEC = 0.20, 1.10, 0.40
"""Of the paper: K of an average skilled typist (55 words a minute), P of a mouse on average, H."""

WAYS = ("mouse", "keys")
WORKS = ("structure", "description", "sheet")
WRONG_MARKS = (1, 6)
"""Lines whose prepared mark of rhyme is wrong, and is corrected."""

COLUMNS = ("work", "way", "key presses", "clicks", "hand moves", "model, s", "pages, s (measured)", "together, s")
README = Path(__file__).with_name("README.md")
PASSWORD = "a long password"  # noqa: S105  (of nobody)
TIMEOUT_MS = 120_000.0


@dataclasses.dataclass
class Effort:
    """What a work took.

    Attributes
    ----------
    keys, clicks, moves
        Key presses (each key of a combination is one), clicks, and hands that moved between keyboard and mouse.
    pages_sec
        Until the page had done what was asked of it.

    """

    keys: int = 0
    clicks: int = 0
    moves: int = 0
    pages_sec: float = 0.0

    @property
    def model_sec(self) -> float:
        """Seconds by the model."""
        return (self.keys + self.clicks) * K_SEC + self.clicks * P_SEC + self.moves * H_SEC


class Hands:
    """Somebody at a page who works by mouse or by keys; acts are counted, from both hands at the keyboard on."""

    def __init__(self, page: Any, way: str) -> None:
        self.page, self.effort, self.at_mouse = page, Effort(), False
        self.by_mouse = way == "mouse"

    def _do(self, act: Callable[[], Any], *, mouse: bool) -> None:
        self.effort.moves += mouse != self.at_mouse
        self.at_mouse = mouse
        begun = time.perf_counter()
        act()
        self.effort.pages_sec += time.perf_counter() - begun

    def press(self, keys: str) -> None:
        """Press a key, or a combination."""
        self.effort.keys += len(keys.split("+"))
        self._do(lambda: self.page.keyboard.press(keys), mouse=False)

    def write(self, text: str) -> None:
        """Write a text where the cursor is."""
        self.effort.keys += len(text)
        self._do(lambda: self.page.keyboard.insert_text(text), mouse=False)

    def click(self, selector: str) -> None:
        """Point at something and click."""
        self.effort.clicks += 1
        self._do(lambda: self.page.click(selector), mouse=True)

    def choose(self, selector: str, value: str) -> None:
        """Open a box and click what is wanted; the list that opens is the system's, so that it is set instead."""
        self.effort.clicks += 2
        self._do(lambda: self.page.select_option(selector, value), mouse=True)

    def do(self, selector: str, keys: str) -> None:
        """Click something, or press its key."""
        if self.by_mouse:
            self.click(selector)
        else:
            self.press(keys)

    def reach(self, name: str) -> None:
        """Bring the cursor into a field: by a click, or by the Tab key."""
        if self.by_mouse:
            self.click(f"[name='{name}']")
            return
        for _ in range(60):
            if self.page.evaluate("() => document.activeElement.name") == name:
                return
            self.press("Tab")
        raise MusicEvalsError(f"the Tab key does not lead to {name}")

    def until(self, address: str) -> None:
        """Wait for a page."""
        begun = time.perf_counter()
        self.page.wait_for_url(address)
        self.effort.pages_sec += time.perf_counter() - begun


class Goal(NamedTuple):
    """What both ways hand in: a structure, the tags and the text of a description, and points by field."""

    structure: Structure
    text: str
    tags: dict[str, str]
    points: dict[str, str]


def goal_of(row: Any) -> Goal:
    """Return what is handed in for a demo song: its own annotations, with an intro without words."""
    truth = structure_of_row(row)
    sections = (Section("intro1", (), ()), *truth.sections)
    said = row["amateur"]
    tags = {
        name: "、".join(said["dimensions"][name]["tags"]) for name in DIMENSIONS["amateur"] if name != AUDIO_EFFECTS
    }
    points = {f"{key[0]}.{key[1]}": str(most) for key, most in assurance.FORMS["amateur"].items()}
    return Goal(Structure(sections, truth.theme[:60]), said["overall_text"], tags, points)


class Study:
    """A study of one song, its pages, and who works in it."""

    def __init__(self, folder: Path, row: Any) -> None:
        (folder / "audio").mkdir(parents=True)
        url = sqlite_url(folder / "study.db")
        migrate(url)
        self.service = StudyService(Store(url))
        self.service.configure(Settings(seed=1, share=1.0, pass_gap_hours=0.0))
        self.people = {"admin": accounts.create_first_admin(self.service, "admin", PASSWORD)}
        for name, role in (("first", "professional"), ("second", "professional"), ("amateur", "amateur"),
                           ("inspector", "inspector")):  # fmt: skip
            token = accounts.invite(self.service, self.people["admin"], role)
            self.people[name] = accounts.accept(self.service, token, name, PASSWORD, consents=True)
        (song,) = demo.demo_songs(folder / "audio", [row])
        marks = tuple(mark != (at in WRONG_MARKS) for at, mark in enumerate(song.rhymes))
        managing.add_songs(self.service, self.people["admin"], [dataclasses.replace(song, rhymes=marks)])
        self.song: Song = song
        self.server = Served(folder, url)
        self.server.start()

    @property
    def base(self) -> str:
        """Address of the pages."""
        return f"http://127.0.0.1:{self.server.port}"

    def page_of(self, browser: Any, name: str) -> Any:
        """Return a page of somebody who is signed in."""
        context = browser.new_context(locale="zh-CN", viewport={"width": 1280, "height": 900})
        context.set_default_timeout(TIMEOUT_MS)
        token = accounts.open_session(self.service, self.people[name])
        context.add_cookies([{"name": "caimap_session", "value": token, "url": self.base}])
        return context.new_page()

    def pass_on(self, structure: Structure) -> None:
        """Hand in the second pass, and accept both, so that the song is described next."""
        who = self.people["second"]
        task = annotating.take_next(self.service, who)
        if task is None:
            raise MusicEvalsError("there is no second pass")
        annotating.open_task(self.service, who, task.id)
        annotating.submit(self.service, who, task.id, self._version(TaskRow, task.id), structure)
        if inspecting.waiting(self.service, self.people["inspector"])[0]:  # congruent ones may be looked at too
            version = self._version(SongRow, self.song.id)
            inspecting.settle(self.service, self.people["inspector"], self.song.id, version, structure)

    def _version(self, table: Any, key: Any) -> int:
        with self.service.store.reading() as session:
            version: int = session.get_one(table, key).version
            return version

    def results(self) -> tuple[Structure, Any, Any]:
        """Return what was handed in: structure, description and points."""
        with self.service.store.reading() as session:
            rows = {row.person: row for row in session.scalars(select(TaskRow).order_by(TaskRow.id))}
            structure = Structure.from_dict(rows[self.people["first"]].result or {})
            (sheet,) = session.scalars(select(SheetRow)).all()
            return structure, rows[self.people["amateur"]].result, sheet.points

    def close(self) -> None:
        """End the server."""
        self.server.kill()
        self.service.store.close()


def rows_of(structure: Structure) -> list[tuple[str, bool]]:
    """Return the rows of the editor: the label that begins there, or none, and whether the line rhymes."""
    rows = []
    for section in structure.sections:
        patterns = section.rhyme or ("",)
        rows += [("" if at else section.label, pattern.endswith("R")) for at, pattern in enumerate(patterns)]
    return rows


def make_structure(hands: Hands, goal: Goal) -> None:
    """Make the structure of the song on its page: a row above for the intro, then row by row, then the theme."""
    page, rows = hands.page, rows_of(goal.structure)
    hands.do("[name=insert_0]", "Alt+ArrowDown")  # or into the first line
    hands.do("[formaction$='/save']", "Shift+Enter")
    page.wait_for_function(f"() => document.querySelectorAll('[name^=line_]').length === {len(rows)}")
    for at, (label, rhymes) in enumerate(rows):
        if at and not hands.by_mouse:
            hands.press("ArrowDown")
        set_label(hands, at, label)
        if page.is_checked(f"[name=rhyme_{at}]") != rhymes:
            hands.do(f"[name=rhyme_{at}]", "9")
    hands.reach("theme")
    hands.write(goal.structure.theme)
    hands.do("form.annotation button.first", "Control+Enter")
    hands.until("**/work")


def set_label(hands: Hands, at: int, label: str) -> None:
    """Label a row, unless it has that label."""
    box = f"[name=label_{at}]"
    digit = str(SECTION_KINDS.index(label.rstrip("0123456789")) + 1) if label else "0"
    for _ in range(9):  # a digit goes through the numbers of its kind
        if hands.page.input_value(box) == label:
            return
        if hands.by_mouse:
            hands.choose(box, label)
        else:
            hands.press(digit)
    raise MusicEvalsError(f"row {at + 1} does not get the label {label}")


def make_description(hands: Hands, goal: Goal) -> None:
    """Hear the song, and describe it."""
    hands.do(".play", "Control+Space")
    hands.page.wait_for_selector(".rate:not([disabled])")  # the song was heard
    for name, text in {"overall_text": goal.text, **{f"tags_{name}": tags for name, tags in goal.tags.items()}}.items():
        hands.reach(name)
        hands.write(text)
    hands.reach("clear")
    if not hands.by_mouse:
        hands.press("Space")
    hands.do("form.annotation button.first", "Control+Enter")
    hands.until("**/work")


def make_sheet(hands: Hands, goal: Goal) -> None:
    """Give points to the description."""
    for name, points in goal.points.items():
        hands.reach(name)
        hands.write(points)
    hands.do("form:has([type=number]) button.first", "Enter")
    hands.until("**/inspect")


def work(browser: Any, study: Study, goal: Goal, way: str) -> dict[str, Effort]:
    """Do all three works in one way, and return what each took."""
    efforts = {}
    for kind, name, make in zip(
        WORKS, ("first", "amateur", "inspector"), (make_structure, make_description, make_sheet), strict=True
    ):
        page = study.page_of(browser, name)
        if kind == "sheet":
            task = inspecting.waiting(study.service, study.people["inspector"])[1][0]
            page.goto(f"{study.base}/inspect/task/{task}")
        else:
            page.goto(f"{study.base}/work")
            page.click("form[action='/work/next'] button")
            page.wait_for_url("**/task/*")
        page.wait_for_load_state("load")
        hands = Hands(page, way)
        make(hands, goal)
        efforts[kind] = hands.effort
        page.context.close()
        if kind == "structure":
            study.pass_on(goal.structure)
    return efforts


def check(found: dict[str, Any], goal: Goal) -> None:
    """Refuse ways that did not hand in the same.

    Raises
    ------
    MusicEvalsError
        They differ from one another, or from what was to be handed in.

    """
    first, second = found.values()
    for name, one, other in zip(WORKS, first, second, strict=True):
        if one != other:
            raise MusicEvalsError(f"the two ways handed in different work ({name}): {one} and {other}")
    if first[0] != goal.structure:
        raise MusicEvalsError(f"the structure is not the one that was to be made: {first[0]}")


def table(efforts: dict[str, dict[str, Effort]]) -> str:
    """Return the table of all works and ways."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for kind in WORKS:
        for way in WAYS:
            one = efforts[way][kind]
            seconds = (one.model_sec, one.pages_sec, one.model_sec + one.pages_sec)
            cells = [kind, way, *map(str, (one.keys, one.clicks, one.moves)), *(f"{each:.1f}" for each in seconds)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def chromium() -> str:
    """Return where Chromium is.

    Raises
    ------
    MissingBackendError
        It is not installed.

    """
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise MissingBackendError("chromium", "", "this", install="apt-get install chromium")
    return path


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table; with ``--write`` put it into the README."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into the README")
    options = parser.parse_args(argv)
    from playwright.sync_api import sync_playwright

    row = demo.demo_rows()[0]
    goal, efforts, found = goal_of(row), {}, {}
    with tempfile.TemporaryDirectory(dir="/tmp") as name, sync_playwright() as driver:
        sound = "--autoplay-policy=no-user-gesture-required"
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox", sound])
        for way in WAYS:
            study = Study(Path(name) / way, row)
            try:
                efforts[way] = work(browser, study, goal, way)
                found[way] = study.results()
            finally:
                study.close()
        browser.close()
    check(found, goal)
    text = table(efforts)
    print(text)
    if options.write:
        write_atomically(README, fill(README.read_text(encoding="utf-8"), {"keys": text}).encode())


if __name__ == "__main__":
    main()
