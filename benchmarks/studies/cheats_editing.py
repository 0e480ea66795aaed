"""Cheats in an editing test: who is refused, who is marked, and which honest editors are marked too.

    python -m benchmarks.studies.cheats_editing              # about two minutes
    python -m benchmarks.studies.cheats_editing --write      # and into the README
    python -m benchmarks.studies.cheats_editing --studies 2  # a trial

Each study is a real one: the samples of `editing-test demo`, twelve plans of six samples, joined and answered through
the stores of the server, and collected by `collect_edits`. Nine honest editors do all of their samples: quick experts,
slow ones, and some who are interrupted (a call in between, the page closed and opened again, a line that sends an hour
later). Beside them one editor a cheat. The times of honest hands are assumptions of ours.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.musib.tables import fill

from music_evals.benchmark.formats import markdown_rows
from music_evals.datasets.style_transfer_pieces.build import PIECES, piece_score
from music_evals.errors import TamperedLogError
from music_evals.files import write_atomically
from music_evals.studies.editing.answers import collect_edits
from music_evals.studies.editing.logs import IDLE_MS, count_log
from music_evals.studies.editing.study import EditingSettings, build_editing_study, write_demo_samples
from music_evals.studies.folders import Introduction, StudyFolder
from music_evals.studies.storage import SlotBook, SubmissionStore

README = Path(__file__).with_name("README.md")
N_HONEST = 9
QUESTIONS = ("EQ1", "EQ2", "EQ3")
Event = list[Any]


class Page:
    """What the page of an editing test writes, for hands that are simulated."""

    def __init__(self, sample: dict[str, Any], rng: np.random.Generator) -> None:
        self.sample, self.rng = sample, rng
        self.notes = {number: list(note) for number, note in enumerate(sample["notes"])}
        self.log: list[Event] = [[0, "load"]]
        self.at = self.acted = 0.0
        self.done: list[list[Event]] = []

    def wait(self, ms: float, spread: float = 0.0) -> None:
        """Let time pass, log-normal about a median."""
        self.at += ms * math.exp(self.rng.normal(0, spread))

    def add(self, what: str, *data: Any) -> None:
        """Write an event, and before it that nothing was done for long."""
        at = round(self.at)
        if what not in {"hide", "show", "absent", "submit"}:
            if at - self.acted > IDLE_MS:
                self.log.append([at, "idle", round(at - self.acted)])
            self.acted = at
        self.log.append([at, what, *data])

    def play(self, ms: float) -> None:
        """Hear a part."""
        self.add("key", "transport")
        self.add("play", 0)
        self.wait(ms, 0.3)
        self.add("key", "transport")
        self.add("stop", 100)

    def pick(self) -> int | None:
        """Return a note that may be changed."""
        free = [id_ for id_, note in self.notes.items() if note[4] not in self.sample["locked"]]
        return int(self.rng.choice(free)) if free else None

    def change(self, operation: str, id_: int, after: list[int] | None, cause: Event | None) -> None:
        """Change a note, unless another one is there."""
        before = self.notes[id_]
        if after == before or (after and any(_meet(after, note) for key, note in self.notes.items() if key != id_)):
            return
        if cause:
            self.add(*cause)
        changes = [[id_, before, after]]
        self.add("edit", operation, changes)
        self.done.append(changes)
        self._apply(changes)

    def undo(self) -> None:
        """Take the last change back."""
        back = [[id_, after, before] for id_, before, after in reversed(self.done.pop())]
        self.add("key", "modifier")
        self.wait(60, 0.2)
        self.add("key", "edit")
        self.add("undo", back)
        self._apply(back)

    def _apply(self, changes: list[Event]) -> None:
        for id_, _, after in changes:
            if after is None:
                del self.notes[id_]
            else:
                self.notes[id_] = after

    def fix(self, gap: float, *, by_keys: bool = True) -> None:
        """Choose a note and mend it."""
        id_ = self.pick()
        if id_ is None:
            return
        self.add("click", "other", "mouse")
        self.add("select", 1)
        onset, duration, pitch, velocity, voice = self.notes[id_]
        kind = self.rng.choice(["pitch", "pitch", "length", "remove"])
        if kind == "remove":
            self.wait(gap, 0.4)
            self.change("remove", id_, None, ["key", "edit"])
        elif kind == "length":
            self.wait(3 * gap, 0.4)
            self.change(
                "resize", id_, [onset, max(1, duration // 2), pitch, velocity, voice], ["click", "edit", "mouse"]
            )
        else:
            for step in range(1, int(self.rng.integers(2, 4))):
                self.wait(gap, 0.4)
                cause = ["key", "edit"] if by_keys else ["click", "edit", "mouse"]
                moved = [onset, duration, pitch + step, velocity, voice]
                if id_ in self.notes:
                    self.change("move", id_, moved, cause)

    def end(self, *, is_pressed: bool = True) -> list[Event]:
        """End the sample, and return the log."""
        if is_pressed:
            self.add("click", "other", "mouse")
        self.add("submit")
        return self.log


def _meet(one: Sequence[int], other: Sequence[int]) -> bool:
    return one[2] == other[2] and one[4] == other[4] and one[0] < other[0] + other[1] and other[0] < one[0] + one[1]


# Hands: each does one sample, and returns how many seconds passed at the server.


def quick(page: Page) -> float:
    """Look, hear some bars, mend a few notes by keys, and be done: an expert."""
    page.wait(2500, 0.3)
    page.play(6000)
    for _ in range(page.rng.poisson(5)):
        page.wait(900, 0.8)
        page.fix(160)
        if page.done and page.rng.random() < 0.1:
            page.wait(700, 0.4)
            page.undo()
        if page.rng.random() < 0.4:
            page.wait(300, 0.4)
            page.play(2500)
    page.wait(800, 0.4)
    return page.at / 1000


def quickest(page: Page) -> float:
    """Read without hearing, mend two notes in a burst, and be done in seconds: the fastest who is honest."""
    page.wait(1400, 0.15)
    for _ in range(2 + page.rng.poisson(1)):
        page.fix(110)
        page.wait(650, 0.3)
    page.wait(900, 0.15)
    return page.at / 1000


def slow(page: Page) -> float:
    """Think long, hear often, use the mouse alone."""
    page.wait(15_000, 0.5)
    page.play(40_000)
    for _ in range(page.rng.poisson(14)):
        page.wait(9000, 0.9)
        page.fix(900, by_keys=False)
        if page.rng.random() < 0.5:
            page.wait(1500, 0.5)
            page.play(15_000)
    page.wait(3000, 0.5)
    return page.at / 1000


def interrupted(page: Page) -> float:
    """Work at a common pace; a call, or the page closed, in between."""
    passed = 0.0
    page.wait(6000, 0.4)
    page.play(20_000)
    for _ in range(3 + page.rng.poisson(9)):
        page.wait(3000, 0.8)
        page.fix(350)
        if page.rng.random() < 0.06:
            away = 60_000 * page.rng.lognormal(1.5, 0.8)
            if page.rng.random() < 0.5:
                page.wait(1000)
                page.add("hide")
                page.wait(away)
                page.add("show")
            else:
                page.at += min(away, IDLE_MS)
                page.add("absent", round(away))
                page.acted = page.at
                passed += max(0.0, away - IDLE_MS)
            page.wait(2000, 0.5)
        if page.rng.random() < 0.4:
            page.wait(500, 0.5)
            page.play(10_000)
    page.wait(2000, 0.5)
    return (page.at + passed) / 1000


def at_once(page: Page) -> float:
    """Change nothing, submit at once."""
    page.wait(900, 0.3)
    return page.at / 1000


def silent(page: Page) -> float:
    """Change nothing, hear nothing, wait some time."""
    page.wait(45_000, 0.4)
    return page.at / 1000


def random_edits(page: Page) -> float:
    """Change notes at random, with the times of hands; our experts do no other thing."""
    return quick(page)


def posted(page: Page) -> float:
    """Claim the work of minutes, posted within a second."""
    slow(page)
    return 1.0


def left_open(page: Page) -> float:
    """Leave the page open, then make one change."""
    page.wait(1_200_000, 0.2)
    page.fix(300)
    page.wait(1000, 0.2)
    return page.at / 1000


def regular(jitter: float) -> Callable[[Page], float]:
    """Return a script that presses every second, give or take."""

    def work(page: Page) -> float:
        for _ in range(25):
            page.at += 1000 * page.rng.uniform(1 - jitter, 1 + jitter)
            id_ = page.pick()
            page.add("key", "navigation")
            page.add("select", 1)
            page.at += 1000 * page.rng.uniform(1 - jitter, 1 + jitter)
            if id_ is not None:
                note = page.notes[id_]
                page.change("move", id_, [note[0], note[1], note[2] + 1, *note[3:]], ["key", "edit"])
        page.at += 1000 * page.rng.uniform(1 - jitter, 1 + jitter)
        return page.at / 1000

    return work


def frantic(page: Page) -> float:
    """Press a key every few milliseconds, after a look."""
    page.wait(4000, 0.1)
    for _ in range(60):
        page.at += page.rng.uniform(5, 30)
        id_ = page.pick()
        if id_ is not None:
            note = page.notes[id_]
            page.change("move", id_, [note[0], note[1], note[2] + 1, *note[3:]], ["key", "edit"])
    page.wait(1000, 0.1)
    return page.at / 1000


def undone(page: Page) -> float:
    """Change notes, and take all of it back."""
    seconds = quick(page)
    for _ in range(2):
        page.wait(900, 0.5)
        page.fix(200)
    while page.done:
        page.wait(300, 0.3)
        page.undo()
    return seconds + 10


def raised(page: Page) -> None:
    """Raise a note by a semitone without a key or a click."""
    id_ = page.pick()
    if id_ is not None:
        note = page.notes[id_]
        page.change("move", id_, [note[0], note[1], note[2] + 1, *note[3:]], None)


def without_hands(page: Page) -> float:
    """Change notes without a key or a click, at the times of hands."""
    for _ in range(10):
        page.wait(4000, 0.7)
        raised(page)
    return page.at / 1000


def one_key(page: Page) -> float:
    """Press one key, and change many notes as if it were held."""
    page.wait(3000, 0.2)
    page.add("key", "edit")
    for _ in range(40):
        page.wait(400, 0.5)
        raised(page)
    return page.at / 1000


def three_ms(page: Page) -> float:
    """Forge a session of three milliseconds: load, a change, submit."""
    page.at = 1
    id_ = page.pick()
    note = page.notes[id_ or 0]
    page.change("move", id_ or 0, [note[0], note[1], note[2] + 1, *note[3:]], None)
    page.at = 3
    return 0.003


def three_ms_pressed(page: Page) -> float:
    """Do the same, with a key and a click."""
    page.at = 1
    page.add("key", "edit")
    return three_ms(page)


class Habit(NamedTuple):
    """A way to take part."""

    work: Callable[[Page], float]
    is_pressed: bool = True
    answer: int | None = None
    """To all questions; None judges."""
    copies: str = ""
    """How the logs of the first honest editor are sent: ``exact``, ``stretched``, or ``shaken`` in their times."""
    is_late: bool = False
    """Without a connection all of it arrives an hour later."""


HONEST = {"quick expert": Habit(quick), "slow": Habit(slow), "interrupted": Habit(interrupted)}
FASTEST = {"the fastest": Habit(quickest), "interrupted, sent an hour later": Habit(interrupted, is_late=True)}
CHEATS = {
    "3 ms: load, a change, submit": Habit(three_ms, is_pressed=False),
    "3 ms, with a forged key and click": Habit(three_ms_pressed),
    "changes without key or click": Habit(without_hands),
    "one key, forty changes of other notes": Habit(one_key),
    "no change, submitted at once": Habit(at_once),
    "no change, nothing heard, a minute waited": Habit(silent),
    "another editor's log": Habit(quick, copies="exact"),
    "another editor's log, stretched": Habit(quick, copies="stretched"),
    "another editor's log, shaken and cut": Habit(quick, copies="shaken"),
    "script, every second give or take 1 %": Habit(regular(0.01)),
    "script, every second give or take 20 %": Habit(regular(0.2)),
    "script, every second give or take 90 %": Habit(regular(0.9)),
    "script, every few ms": Habit(frantic),
    "minutes claimed, seconds at the server": Habit(posted),
    "left open, then one change": Habit(left_open),
    "all taken back": Habit(undone),
    "all answers alike": Habit(quick, answer=4),
    "random changes at the times of hands": Habit(random_edits),
}


def answer(habit: Habit, rng: np.random.Generator) -> dict[str, int]:
    """Return what is answered of a sample."""
    thought = rng.normal(3.3, 0.9)
    judged = {name: int(np.clip(round(thought + rng.normal(0, 0.5)), 1, 5)) for name in QUESTIONS}
    return judged if habit.answer is None else dict.fromkeys(QUESTIONS, habit.answer)


def copied(log: list[Event], how: str, rng: np.random.Generator) -> list[Event]:
    """Return a log of somebody else with other times."""
    if how == "exact":
        return log
    if how == "stretched":
        return [[round(1.1 * at), what, *data] for at, what, *data in log if what != "idle"]
    gaps = np.diff([event[0] for event in log], prepend=0) * rng.uniform(0.8, 1.2, len(log))
    times = np.cumsum(gaps).round().astype(int).tolist()
    events = [[at, *rest] for at, (_, *rest) in zip(times, log, strict=True) if rest[0] != "idle"]
    extra = [[events[-2][0], "key", "navigation"]]  # one key more, so that no sequence is the same
    return events[:-2] + extra + events[-2:]


def attend(study: StudyFolder, habit: Habit, rng: np.random.Generator, at: float, first: dict[str, Any]) -> str:
    """Join, do all samples of the plan and send them through the stores; return the token."""
    token, slot = SlotBook(study.submissions, len(study.plans), clock=lambda: at).join()
    end = at + 3600 * 8 if habit.is_late else 0
    for order, code in enumerate(study.plans[slot]["samples"]):
        page = Page(study.settings["samples"][code], rng)
        at += habit.work(page) + 30
        log = page.end(is_pressed=habit.is_pressed)
        notes = page.notes
        if habit.copies and code in first:
            log, notes = copied(first[code][0], habit.copies, rng), first[code][1]
            at += log[-1][0] / 1000
        content = {
            "code": code, "events": log, "counts": count_log(log)._asdict(),
            "notes": [[id_, *note] for id_, note in sorted(notes.items())], "answers": answer(habit, rng),
        }  # fmt: skip
        now = end + order if habit.is_late else at
        head = {"format": 1, "study": study.study, "kind": "editing", "slot": slot, "sent": order}
        store = SubmissionStore(study.submissions, clock=functools.partial(float, now))
        store.submit(token, {**head, "part": f"sample-{order + 1}", "content": content})
        if not habit.copies:
            first.setdefault(code, (log, notes))
    return token


def hold(study: StudyFolder, seed: int) -> tuple[dict[str, str], dict[str, str], dict[str, list[str]]]:
    """Hold one study; return who is who, who was refused, and the marks of each edit of the others."""
    rng = np.random.default_rng(seed)
    shutil.rmtree(study.submissions, ignore_errors=True)
    first: dict[str, Any] = {}
    kinds = itertools.islice(itertools.cycle(HONEST.items()), N_HONEST)
    people = [*kinds, *FASTEST.items(), *CHEATS.items()]
    who = {}
    for number, (name, habit) in enumerate(people):
        begun = 1e9 + 60 * number + 86_400 * (name in CHEATS)  # who copies comes later
        who[attend(study, habit, rng, begun, first)] = name
    refused: dict[str, str] = {}
    while True:
        try:
            edits = collect_edits(study, leave_out=list(refused)).tables["edits"]
            break
        except TamperedLogError as error:
            found = re.search(r"[0-9a-f]{32}", str(error))
            if found is None:
                raise
            refused[found[0]] = str(error)
    marks = defaultdict(list)
    for row in edits:
        marks[row["editor_id"]].append(row["marks"])
    return who, refused, dict(marks)


def table(n_studies: int) -> str:
    """Return the table of all habits."""
    editors, refused, marked, edits, hit = (Counter[str]() for _ in range(5))
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as folder:
        study = build_editing_study(
            Path(folder, "study"), write_demo_samples(folder, {name: piece_score(name) for name in PIECES}),
            study="s", introduction=Introduction(title="T", consent=("Yes.",), instructions=("Go.",)),
            page={"index.html": b'<script type="application/json" id="study"></script>'},
            settings=EditingSettings(n_editors=12, seed=3),
        )  # fmt: skip
        for seed in range(n_studies):
            who, out, marks = hold(study, seed)
            for token, name in who.items():
                editors[name] += 1
                refused[name] += token in out
                marked[name] += any(marks.get(token, []))
                edits[name] += len(marks.get(token, []))
                hit[name] += sum(map(bool, marks.get(token, [])))
                reasons[name].update(itertools.chain(*(set(one.split()) for one in marks.get(token, []))))
            print(seed, flush=True)
    head = ["editor", "n", "refused", "marked", "not seen", "edits marked", "reasons, of the edits"]
    lines = [head, ["---"] * len(head)]
    for name in [*HONEST, *FASTEST, *CHEATS]:
        n, n_edits = editors[name], edits[name]
        told = ", ".join(f"`{reason}` {count / n_edits:.2f}" for reason, count in reasons[name].most_common(3))
        seen = (refused[name] + marked[name]) / n
        lines.append([
            f"honest: {name}" if name in HONEST | FASTEST else name, str(n), f"{refused[name] / n:.2f}",
            f"{marked[name] / n:.2f}", f"{1 - seen:.2f}", f"{hit[name] / n_edits:.3f}" if n_edits else "", told,
        ])  # fmt: skip
    honest = [*HONEST, *FASTEST]
    share = sum(hit[name] for name in honest) / sum(edits[name] for name in honest)
    return markdown_rows(lines) + f"\n\nOf all edits of honest editors {100 * share:.1f} % are marked."


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table; with ``--write`` put it into the README."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="put the table into the README")
    options = parser.parse_args(argv)
    text = table(options.studies)
    print(text)
    if options.write:
        write_atomically(README, fill(README.read_text(encoding="utf-8"), {"editing": text}).encode())


if __name__ == "__main__":
    main()
