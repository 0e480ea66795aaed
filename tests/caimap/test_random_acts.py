"""Random acts of all roles: no path leads around the tables of states, and what a study promises holds all the while.

Whatever people do, leave or have taken from them, no song waits for nobody, and nobody's work is paid twice.

A walk picks an act, an object that it fits (mostly), and who does it (mostly somebody who may). What is forbidden is
refused by name; anything else that goes wrong fails. Walks follow from their seeds alone.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from sqlalchemy import event, select
from sqlalchemy.orm import Session
from tests.caimap_bench import StudyBench, description, one_verse

from music_evals.caimap.domain import assurance, ledger
from music_evals.caimap.domain.grades import week_of
from music_evals.caimap.domain.machine import FIRST_SONG_STATE, FIRST_TASK_STATE, LIVE_TASK_STATES, SONG, SYSTEM, TASK
from music_evals.caimap.domain.values import FinishedSong, ScoreSheet, Song, Structure
from music_evals.caimap.services import accounts, annotating, inspecting, managing, oversight, training
from music_evals.caimap.services.accounts import STAND_INS
from music_evals.caimap.services.study import Settings
from music_evals.caimap.storage.store import sqlite_url
from music_evals.caimap.storage.tables import AuditRow, LedgerRow, PersonRow, SheetRow, SongRow, TaskRow
from music_evals.errors import MusicEvalsError

FEWEST, MOST, N_ACTS, EVERY = 4, 24, 450, 15
FIRST = (0, 5, 8, 11)
"""Seeds of walks that hold every act and step together; where they do no longer, others are walked, too."""

ANNOTATORS = ("professional", "amateur")

WANTED = {("song", *step) for step in SONG} | {("task", *step) for step in TASK}

# a song with a sampled description goes back to the structure and is left out there: `test_work` has it
NEVER_TAKEN = frozenset({("task", "sampled", "accept")})
"""(kind, state, action) of steps that walks need not take, each with the reason."""


class Walk:
    """A study, and somebody who acts in it at random."""

    def __init__(self, path: Path, seed: int) -> None:
        self.bench = StudyBench(sqlite_url(path), Settings(seed=seed, share=0.5))
        event.listen(self.bench.store.engine, "connect", _hasten)
        self.bench.store.close()  # connections are made anew
        self.service, self.clock = self.bench.service, self.bench.clock
        self.rng = np.random.default_rng(seed)
        self.names = 0
        self.done: Counter[str] = Counter()
        self.bench.songs("s1")

    # what is chosen

    def likely(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def one(self, given: Any) -> Any:
        """Return one of some things, or None."""
        found = list(given)
        return found[int(self.rng.integers(len(found)))] if found else None

    def people(self, *roles: str) -> int:
        """Return somebody of these roles who is still there; now and then anybody."""
        with self.service.store.reading() as session:
            rows = list(session.scalars(select(PersonRow).order_by(PersonRow.id)))
        fit = [row.id for row in rows if row.role in roles and not row.withdrawn and not row.excluded]
        return int(self.one(fit) if fit and self.likely(0.9) else self.one(row.id for row in rows))

    def task(self, *states: str, **wanted: Any) -> TaskRow | None:
        """Return a task that fits; now and then any."""
        with self.service.store.reading() as session:
            rows = list(session.scalars(select(TaskRow).order_by(TaskRow.id)))
        fit = [
            row for row in rows
            if row.state in states and all(getattr(row, name) == value for name, value in wanted.items())
        ]  # fmt: skip
        found: TaskRow | None = self.one(fit) if fit and self.likely(0.95) else self.one(rows)
        return found

    def song(self, *states: str) -> SongRow:
        """Return a song that fits; now and then any."""
        with self.service.store.reading() as session:
            rows = list(session.scalars(select(SongRow).order_by(SongRow.id)))
        fit = [row for row in rows if row.state in states]
        found: SongRow = self.one(fit) if fit and self.likely(0.95) else self.one(rows)
        return found

    def version(self, row: TaskRow | SongRow) -> int:
        return row.version if self.likely(0.97) else row.version - 1

    def owner(self, row: TaskRow) -> int:
        return row.person if self.likely(0.95) else self.people(*ANNOTATORS)

    def structure(self) -> Structure:
        return one_verse("春眠不觉晓", label=self.one(("verse1", "verse1", "chorus1")))

    def sheet(self, row: TaskRow, who: int) -> ScoreSheet:
        share = self.one((0.3, 1.0, 1.0))
        form = assurance.FORMS.get(row.kind, {})
        return ScoreSheet(row.id, who, {key: most * share for key, most in form.items()}, "so")

    # what is done

    def take(self) -> None:
        annotating.take_next(self.service, self.people(*ANNOTATORS))

    def practise(self) -> None:
        training.take_training(self.service, self.people(*ANNOTATORS))

    def open(self) -> None:
        if row := self.task("assigned"):
            annotating.open_task(self.service, self.owner(row), row.id)

    def save(self) -> None:
        if row := self.task("working"):
            annotating.save(self.service, self.owner(row), row.id, self.version(row), {"theme": "春天"})

    def restart(self) -> None:
        if row := self.task("working"):
            annotating.restart_listening(self.service, self.owner(row), row.id, self.version(row))

    def screen(self) -> None:
        if row := self.task("working", kind="structure", training=False):
            annotating.screen(self.service, self.owner(row), row.id, self.version(row), reason="poor_audio")

    def submit(self) -> None:
        if row := self.task("working"):
            who = self.owner(row)
            version = self.version(row)
            # what nobody listened to is warned of, and no structure of that kind is accepted at once
            if self.likely(0.95):
                self.bench.listen(who, row.id)
            result = self.structure() if row.kind == "structure" else description(row.kind)
            annotating.submit(self.service, who, row.id, version, result)

    def settle(self) -> None:
        row = self.song("inspecting")
        who = self.people("inspector")
        inspecting.settle(self.service, who, row.id, self.version(row), self.structure())

    def score(self) -> None:
        if row := self.task("sampled"):
            inspecting.score(self.service, self.sheet(row, self.people("inspector")), self.version(row))

    def score_item(self) -> None:
        judged = training.practice(self.service, self.people("administrator")).judged
        if (missing := self.one(judged.missing if judged else ())) and self.likely(0.9):
            number, who = missing
        elif row := self.task("submitted", training=True):
            number, who = row.id, self.people("inspector")
        else:
            return
        with self.service.store.reading() as session:
            training.score_item(self.service, self.sheet(session.get_one(TaskRow, number), who))

    def verify(self) -> None:
        with self.service.store.reading() as session:
            scored = list(session.scalars(select(SheetRow.task).where(SheetRow.purpose == "assurance")))
            row = session.get(TaskRow, self.one(scored)) if scored else None
        if row := row or self.task("accepted"):
            oversight.verify(self.service, self.sheet(row, self.people("administrator")))

    def settle_again(self) -> None:
        who = self.people("administrator")
        waiting = [found.song for found in inspecting.settlements(self.service, who) if found.agreement is None]
        song = self.one(waiting) if waiting and self.likely(0.9) else self.song("describing").id
        seen = inspecting.unsettled(self.service, who, song)
        assert len(seen.passes) == 2
        inspecting.verify_settlement(self.service, who, song, self.structure())

    def learn(self) -> None:
        who = self.people(*ANNOTATORS, "inspector")
        if found := self.one(training.lessons(self.service, who)):
            assert found.against in {"accepted", "others"} if found.agreement >= 0 else not found.against
            training.lesson(self.service, who, found.task)

    def set_model(self) -> None:
        who = self.people("inspector")
        if found := self.one(training.models(self.service, who)):
            training.set_model(self.service, who, found.song.id, found.version, self.structure())

    def discuss(self) -> None:
        who = self.people("inspector")
        judged = training.practice(self.service, who).judged
        if item := self.one(judged.discussed if judged else ()):
            training.discuss(self.service, who, item, "为什么")
            assert training.discussion(self.service, who, item)[-1].author == who

    def new_round(self) -> None:
        training.new_round(self.service, self.people("administrator"))

    def choose_songs(self) -> None:
        training.choose_songs(self.service, self.people("administrator"), 1)

    def decide_screening(self) -> None:
        row = self.song("screened")
        who = self.people("administrator")
        managing.decide_screening(self.service, who, row.id, self.version(row), keep=self.likely(0.7))

    def decide(self) -> None:
        row = self.song("checking")
        returned = self.one(([], [], ["amateur"], ["professional"]))
        managing.review_song(self.service, self.people("administrator"), row.id, self.version(row), returned=returned)

    def close_week(self) -> None:
        last = week_of(self.clock.now - dt.timedelta(days=7))
        managing.close_week(self.service, self.people("administrator"), last)

    def withdraw(self) -> None:
        who = self.people(*ANNOTATORS, *ANNOTATORS, "inspector")
        managing.withdraw(self.service, who if self.likely(0.7) else self.people("administrator"), who)

    def leave(self) -> None:
        """Let somebody withdraw who has a hand in a song; what is rare, of songs and tasks, is not rare here."""
        cases = defaultdict(list)
        with self.service.store.reading() as session:
            joined = select(TaskRow, SongRow).join(SongRow, SongRow.id == TaskRow.song).order_by(TaskRow.id)
            for task, song in session.execute(joined):
                if task.state in LIVE_TASK_STATES and not song.training:
                    cases[song.state, task.kind == "structure", task.state].append(task.person)
                    cases[song.state, False, "settled"] += (song.accepted or {}).get("people", ())[2:]
        if who := self.one(cases[self.one(sorted(case for case in cases if cases[case])) or ("", False, "")]):
            managing.withdraw(self.service, who, who)

    def invite(self) -> None:
        role = self.one(("professional", "professional", "amateur", "inspector", "administrator"))
        token = accounts.invite(self.service, self.people("administrator"), role)
        self.names += 1
        accounts.accept(self.service, token, f"guest {self.names}", "a long password", consents=self.likely(0.9))

    def add_songs(self) -> None:
        self.names += 1
        song = Song(f"new {self.names}", ("春眠不觉晓", "处处闻啼鸟"), 40.0, rhymes=(True, True))
        managing.add_songs(self.service, self.people("administrator"), [song])

    def add_finished(self) -> None:
        self.names += 1
        song = Song(f"taken {self.names}", ("春眠不觉晓",), 0.0, licence="CC0-1.0")
        said = [description(group) for group in ("professional", "amateur")]
        finished = FinishedSong(song, one_verse("春眠不觉晓"), *said, (), 0, 0, "as published")
        managing.add_finished(self.service, self.people("administrator"), [finished])

    def pay(self) -> None:
        managing.add_ledger_entry(
            self.service, self.people("administrator"), ledger.Entry(self.people(*ANNOTATORS), "payment", -1, "x")
        )

    def say(self) -> None:
        managing.post_message(self.service, self.people(*ANNOTATORS, "inspector"), "你好")

    def release(self) -> None:
        if row := self.task("assigned", "working"):
            managing.release(self.service, self.people("administrator"), row.id)

    def wait(self) -> None:
        self.clock.wait(days=1)

    ACTS: ClassVar = {  # how often each is tried
        "take": 7, "open": 10, "submit": 14, "save": 0.3, "restart": 0.3, "screen": 1.2, "settle": 8, "score": 5,
        "decide_screening": 3, "decide": 6, "close_week": 0.3, "withdraw": 0.2, "leave": 2, "invite": 4,
        "add_songs": 1, "add_finished": 0.3, "choose_songs": 0.3, "practise": 0.5, "score_item": 4, "new_round": 2,
        "verify": 0.3, "pay": 0.2, "say": 0.2, "wait": 5, "release": 0.3, "settle_again": 0.7, "learn": 0.4,
        "set_model": 0.3, "discuss": 1,
    }  # fmt: skip
    NEEDS: ClassVar = {
        "open": "assigned", "submit": "working", "save": "working", "restart": "working", "screen": "working",
        "settle": "inspecting", "score": "sampled", "decide_screening": "screened", "decide": "checking",
        "leave": "finished assuring checking inspecting describing",
    }  # fmt: skip
    """Act -> states, of a song or a task, one of which it is about; mostly it is tried where there is one."""

    def weights(self) -> np.ndarray:
        with self.service.store.reading() as session:
            there = {state for table in (TaskRow, SongRow) for state in session.scalars(select(table.state).distinct())}
        fits = [not (needs := self.NEEDS.get(name, "")) or bool(there & set(needs.split())) for name in self.ACTS]
        tried = np.array(list(self.ACTS.values())) * np.where(fits, 1.0, 0.03)
        return np.asarray(tried / tried.sum())

    def act(self) -> None:
        name = list(self.ACTS)[int(self.rng.choice(len(self.ACTS), p=self.weights()))]
        with contextlib.suppress(MusicEvalsError):  # refused by name
            getattr(self, name)()
            self.done[name] += 1

    def go(self, n_acts: int) -> Walked:
        """Act, look at the study all the while, and let others do what is left."""
        for number in range(n_acts):
            self.act()
            if number % EVERY == 0:
                check_study(self.bench)
        work_off(self.bench)
        return Walked(self.bench, self.done)


def _hasten(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA synchronous=OFF").close()  # nobody pulls the plug here


class Walked(NamedTuple):
    """A study after its walk, and how often each act was done."""

    bench: StudyBench
    done: Counter[str]


# --- what holds at any moment

HANDED_IN = {"submitted", "sampled", "accepted"}


def check_pay(session: Session) -> None:
    """Look for pay without work, work without pay, and what was paid twice."""
    rates, people = ledger.Rates(), {row.id: row for row in session.scalars(select(PersonRow))}
    tasks = {row.id: row for row in session.scalars(select(TaskRow))}
    net: dict[int, int] = defaultdict(int)
    inspected: Counter[int] = Counter()
    for entry in session.scalars(select(LedgerRow)):
        if entry.task is not None and tasks[entry.task].person == entry.person:
            net[entry.task] += entry.cents
        elif entry.kind == "work":
            inspected[entry.person] += 1
            assert entry.cents == ledger.earned("inspection", rates)
    for number, row in tasks.items():
        earned = ledger.earned(row.kind, rates)
        if people[row.person].withdrawn:  # and keeps what they earned
            assert net[number] in {0, earned}, (number, row.kind)
        else:
            is_paid = row.state == "accepted" and people[row.person].name not in STAND_INS.values()
            assert net[number] == (earned if is_paid else 0), (number, row.kind, row.state)
    sheets = session.scalars(select(SheetRow.inspector).where(SheetRow.purpose == "assurance"))
    settled = session.scalars(select(AuditRow.person).where(AuditRow.kind == "song", AuditRow.action == "settle"))
    assert inspected == Counter(sheets) + Counter(settled)


def check_who_left(session: Session, tasks: list[TaskRow]) -> None:
    """Look for traces of who left."""
    gone = set(session.scalars(select(PersonRow.id).where(PersonRow.withdrawn)))
    for task in tasks:
        if task.person in gone:
            assert task.state not in LIVE_TASK_STATES
            assert (task.result, task.draft, task.note) == (None, {}, "")
    for song in session.scalars(select(SongRow).where(SongRow.accepted.is_not(None))):
        assert not gone & set(song.accepted["people"]), song.id


def check_song(song: SongRow, tasks: list[TaskRow]) -> None:
    """Look for a song that waits for nobody."""
    passes, *both = [
        [task.state for task in tasks if task.kind == kind and task.state in HANDED_IN]
        for kind in ("structure", *ANNOTATORS)
    ]
    assert (song.accepted is not None) == (song.state in {"describing", "assuring", "checking", "finished"})
    assert max(map(len, both)) <= 1
    assert len(passes) <= 2
    assert song.state == "screened" or all(task.state != "screened" for task in tasks)
    if song.state == "excluded":
        ended = {"accepted", "rejected", "discarded", "cancelled"}
        assert {task.state for task in tasks} <= ended, "work on a song that is out"
    elif song.state == "structuring":
        assert len(passes) < 2, "two passes and nobody compares them"
    elif song.state == "inspecting":
        assert len(passes) == 2, "an inspector has nothing to compare"
    elif song.state == "describing":
        assert not all(both), "both descriptions are there and the song does not go on"
    elif song.state in {"assuring", "checking", "finished"}:
        assert all(both)
        assert (song.state == "assuring") == any("sampled" in states for states in both)


def check_study(bench: StudyBench) -> None:
    with bench.store.reading() as session:
        tasks = list(session.scalars(select(TaskRow).order_by(TaskRow.id)))
        check_pay(session)
        check_who_left(session, tasks)
        for song in session.scalars(select(SongRow).where(~SongRow.training)):
            check_song(song, [task for task in tasks if task.song == song.id])


def work_off(bench: StudyBench) -> None:
    """Let people who have just come do all that is left, until every song is finished or excluded."""
    service = bench.service
    bench.clock.wait(days=30)  # what nobody goes on with is given to others
    with bench.store.reading() as session:
        managers = select(PersonRow.id).where(PersonRow.role == "administrator", ~PersonRow.withdrawn)
        admin = session.scalars(managers).first()
    came = []
    for role in ("inspector", *4 * ["professional"], *2 * ["amateur"]):
        token = accounts.invite(service, admin, role)
        came.append(accounts.accept(service, token, f"last {len(came)}", "a long password", consents=True))
    for _ in range(12):
        for who in came[1:]:
            annotate_all(bench, who)
        bench.clock.wait(days=2)
        judge_all(bench, came[0], admin)
        check_study(bench)
        with bench.store.reading() as session:
            left = session.execute(select(SongRow.id, SongRow.state).where(~SongRow.training)).all()
        if {state for _, state in left} <= {"finished", "excluded"}:
            return
    raise AssertionError(f"some of these wait for nobody: {left}")


def annotate_all(bench: StudyBench, who: int) -> None:
    while task := annotating.take_next(bench.service, who):
        annotating.open_task(bench.service, who, task.id)
        given = one_verse("春眠不觉晓") if task.kind == "structure" else description(task.kind)
        if task.kind != "structure":
            bench.listen(who, task.id)
        annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), given)


def judge_all(bench: StudyBench, inspector: int, admin: int) -> None:
    with bench.store.reading() as session:
        songs = list(session.scalars(select(SongRow).where(~SongRow.training)))
        sampled = list(session.scalars(select(TaskRow).where(TaskRow.state == "sampled")))
    for row in sampled:
        full = {key: float(most) for key, most in assurance.FORMS[row.kind].items()}
        inspecting.score(bench.service, ScoreSheet(row.id, inspector, full), row.version)
    for song in songs:
        if song.state == "inspecting":
            inspecting.settle(bench.service, inspector, song.id, song.version, one_verse("春眠不觉晓"))
        elif song.state == "screened":
            managing.decide_screening(bench.service, admin, song.id, song.version, keep=True)
        elif song.state == "checking":
            managing.review_song(bench.service, admin, song.id, song.version)


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Walked]]:
    import argon2

    folder, made = tmp_path_factory.mktemp("walks"), []
    cheap = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("music_evals.caimap.services.accounts._hasher", lambda: cheap)
        # until all was done, so that what one walk happens to hold plays no part
        for seed in (*FIRST, *(seed for seed in range(MOST) if seed not in FIRST)):
            made.append(Walk(folder / f"{seed}.db", seed).go(N_ACTS))
            acts = sum((walked.done for walked in made), Counter())
            all_done = acts.keys() >= Walk.ACTS.keys() and set().union(*map(steps_of, made)) >= WANTED - NEVER_TAKEN
            if len(made) >= FEWEST and all_done:
                break
    yield made
    for walked in made:
        walked.bench.store.close()


def rows_of(walked: Walked, table: Any) -> list[Any]:
    with walked.bench.store.reading() as session:
        return list(session.scalars(select(table).order_by(*table.__table__.primary_key.columns)))


def steps_of(walked: Walked) -> set[tuple[str, str, str]]:
    """Return the steps of a walk, each checked against the tables."""
    roles = {row.id: row.role for row in rows_of(walked, PersonRow)}
    states: dict[tuple[str, str], str] = {}
    taken = set()
    for row in rows_of(walked, AuditRow):
        assert row.role == (SYSTEM if row.person is None else roles[row.person])
        if row.kind not in {"song", "task"} or not row.before:
            assert row.after in {"", FIRST_TASK_STATE}
            continue
        machine, first = (SONG, FIRST_SONG_STATE) if row.kind == "song" else (TASK, FIRST_TASK_STATE)
        # each step starts where the last one of the same object ended: nothing was changed behind the log
        assert states.get((row.kind, row.object), first) == row.before
        found = machine[row.before, row.action]
        assert found.target == row.after
        assert row.role in found.roles
        states[row.kind, row.object] = row.after
        taken.add((row.kind, row.before, row.action))
    for table, kind, first in ((SongRow, "song", FIRST_SONG_STATE), (TaskRow, "task", FIRST_TASK_STATE)):
        for row in rows_of(walked, table):
            assert states.get((kind, str(row.id)), first) == row.state
    return taken


@pytest.mark.slow
@pytest.mark.requirement(number=3)
def test_random_acts_of_all_roles_take_no_path_outside_the_tables_and_each_in_them(walks: list[Walked]) -> None:
    taken = set().union(*(steps_of(walked) for walked in walks))
    assert WANTED - taken <= NEVER_TAKEN


@pytest.mark.slow
def test_every_act_was_done(walks: list[Walked]) -> None:
    done = sum((walked.done for walked in walks), Counter())
    assert set(done) == set(Walk.ACTS)


@pytest.mark.slow
def test_walks_follow_from_their_seeds(walks: list[Walked], tmp_path: Path) -> None:
    again = Walk(tmp_path / "again.db", FIRST[0])
    for _ in range(N_ACTS // 2):
        again.act()
    steps = [[(row.kind, row.object, row.action, row.person, row.moment) for row in rows_of(walked, AuditRow)]
             for walked in (Walked(again.bench, again.done), walks[0])]  # fmt: skip
    again.bench.store.close()
    assert len(steps[0]) > N_ACTS // 4
    assert steps[0] == steps[1][: len(steps[0])]
    assert again.done <= walks[0].done


@pytest.mark.slow
def test_who_withdrew_does_nothing_more_and_is_in_no_finished_song(walks: list[Walked]) -> None:
    finished = 0
    for walked in walks:
        gone: dict[int, int] = {}
        for row in rows_of(walked, AuditRow):
            assert row.person not in gone or row.action == "withdraw", f"{row.person} had withdrawn"
            if row.kind == "person" and row.action == "withdraw":
                gone[int(row.object)] = row.id
        for done in managing.finished_songs(walked.bench.service):
            finished += 1
            people = {*done.structure_people, done.professional_person, done.amateur_person}
            assert not people & set(gone), (done.song.id, people & set(gone))
    assert finished > FEWEST


@pytest.mark.slow
def test_each_place_is_held_once_and_by_another_person(walks: list[Walked]) -> None:
    for walked in walks:
        live = [row for row in rows_of(walked, TaskRow) if not row.training
                and row.state in LIVE_TASK_STATES]  # fmt: skip
        places = Counter((row.song, row.kind, row.number) for row in live)
        assert set(places.values()) <= {1}
        once = Counter((row.song, row.kind, row.person) for row in rows_of(walked, TaskRow))
        assert set(once.values()) <= {1}


@pytest.mark.slow
def test_the_walks_held_what_was_looked_at(walks: list[Walked]) -> None:
    """All the while nobody's work was paid twice and no song waited for nobody; here, that there was such work."""
    paid = taken_back = 0
    for walked in walks:
        entries = rows_of(walked, LedgerRow)
        paid += sum(entry.kind == "work" for entry in entries)
        taken_back += sum(entry.kind == "correction" and entry.task is not None for entry in entries)
    assert paid > 10 * FEWEST
    assert taken_back > FEWEST


def test_a_short_walk(tmp_path: Path) -> None:
    found = Walk(tmp_path / "short.db", 1).go(120)
    assert steps_of(found)
    assert managing.finished_songs(found.bench.service)
    found.bench.store.close()


OFTEN_LEFT = {"leave": 6, "close_week": 2}
LEFT_OUT: dict[str, dict[str, float]] = {
    "annotating.advance": {}, "annotating.pay_task": {}, "annotating.release_idle": {}, "inspecting.advance": {},
    "inspecting.pay_task": {}, "inspecting._pay_inspection": {}, "managing._redo_settled": OFTEN_LEFT,
    "managing.cancel_open": {}, "managing.compare_passes": OFTEN_LEFT, "managing.discard": {}, "managing.erase": {},
    "managing.take_back": {"decide": 12, "settle": 14, "leave": 0.3, "withdraw": 0},
    "tasks.take_back": {"close_week": 3, "score": 10, "leave": 0.3, "withdraw": 0},
}  # fmt: skip
"""Parts of acts without which a song would wait for nobody, or somebody would be paid wrongly or not leave.

Each with the acts that are tried more or less often there, so that the walks that show it are short.
"""


@pytest.mark.slow
@pytest.mark.parametrize("part", LEFT_OUT)
def test_an_act_without_one_of_its_parts_is_noticed(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"music_evals.caimap.services.{part}", lambda *_, **__: None)
    monkeypatch.setattr(Walk, "ACTS", {**Walk.ACTS, **LEFT_OUT[part]})
    with pytest.raises(AssertionError):
        go_all(tmp_path)


def go_all(folder: Path) -> None:
    for seed in range(MOST):
        Walk(folder / f"{seed}.db", seed).go(N_ACTS)
