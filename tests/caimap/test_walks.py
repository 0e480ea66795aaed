"""Whatever people do, leave or have taken from them, no song waits for nobody, and nobody's work is paid twice."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from sqlalchemy import select
from tests.caimap_bench import StudyBench, description, one_verse

from music_evals.caimap import assurance, grades
from music_evals.caimap.machine import FIRST_SONG_STATE, FIRST_TASK_STATE, SONG, TASK
from music_evals.caimap.storage.store import sqlite_url
from music_evals.caimap.storage.tables import AuditRow, LedgerRow, PersonRow, SongRow, TaskRow
from music_evals.caimap.values import FinishedSong, ScoreSheet, Song
from music_evals.caimap.work import (
    accounts,
    annotating,
    inspecting,
    lessons,
    managing,
    practising,
    settlements,
    watching,
)
from music_evals.caimap.work.desk import Settings
from music_evals.errors import MusicEvalsError

HANDED_IN = {"submitted", "sampled", "accepted"}


class Walk:
    """Random acts on what is there, by people who come and go."""

    def __init__(self, bench: StudyBench, seed: int) -> None:
        self.bench, self.desk = bench, bench.desk
        self.rng = np.random.default_rng(seed)
        self.number = 0

    def people(self, *roles: str) -> list[int]:
        with self.bench.store.reading() as session:
            chosen = select(PersonRow.id).where(PersonRow.role.in_(roles), ~PersonRow.withdrawn, ~PersonRow.excluded)
            return list(session.scalars(chosen.order_by(PersonRow.id)))

    def one(self, found: list):
        return found[int(self.rng.integers(len(found)))] if found else None

    def rows(self, table, *wanted) -> list:
        with self.bench.store.reading() as session:
            return list(session.scalars(select(table).where(*wanted).order_by(table.id)))

    def structure(self):
        return one_verse("春眠不觉晓", label=str(self.rng.choice(["verse1", "verse1", "chorus1"])))

    def annotate(self) -> None:
        who = self.one(self.people("professional", "amateur"))
        training = self.rng.random() < 0.1
        task = (practising.take_training if training else annotating.take_next)(self.desk, who)
        if task is None:
            return
        annotating.open_task(self.desk, who, task.id)
        version = self.bench.version(TaskRow, task.id)
        if task.kind == "structure":
            version = annotating.save(self.desk, who, task.id, version, {"theme": "春"})
        if self.rng.random() < 0.15:
            return  # left open
        if task.kind == "structure" and not training and self.rng.random() < 0.1:
            annotating.screen(self.desk, who, task.id, version, reason="poor_audio")
            return
        if task.kind != "structure":
            self.bench.listen(who, task.id)
            if self.rng.random() < 0.1:
                annotating.restart_listening(self.desk, who, task.id, version)
                return
        given = self.structure() if task.kind == "structure" else description(task.kind)
        annotating.submit(self.desk, who, task.id, version, given)

    def settle(self) -> None:
        song, who = self.one(self.rows(SongRow, SongRow.state == "inspecting")), self.one(self.people("inspector"))
        if song and who:
            inspecting.settle(self.desk, who, song.id, song.version, self.structure())

    def sheet(self, who: int, row: TaskRow) -> ScoreSheet:
        share = float(self.rng.choice([0.3, 0.9, 1.0]))
        return ScoreSheet(row.id, who, {key: most * share for key, most in assurance.FORMS[row.kind].items()}, "好")

    def score(self) -> None:
        row, who = self.one(self.rows(TaskRow, TaskRow.state == "sampled")), self.one(self.people("inspector"))
        if row and who:
            inspecting.score(self.desk, self.sheet(who, row), row.version)

    def practise(self) -> None:
        who = self.one(self.people("inspector"))
        item = self.one(self.rows(TaskRow, TaskRow.training, TaskRow.state == "submitted", TaskRow.kind != "structure"))
        if item and who:
            practising.score_item(self.desk, self.sheet(who, item))
            lessons.lessons(self.desk, who)
            practising.new_round(self.desk, self.bench.ADMIN)

    def decide(self) -> None:
        screened, ready = (self.one(self.rows(SongRow, SongRow.state == state)) for state in ("screened", "checking"))
        if screened:
            keep = bool(self.rng.random() < 0.8)
            managing.decide_screening(self.desk, self.bench.ADMIN, screened.id, screened.version, keep=keep)
        if ready:
            returned = ["amateur", "professional"][: int(self.rng.choice([0, 0, 1, 2]))]
            managing.decide(self.desk, self.bench.ADMIN, ready.id, ready.version, returned=returned)

    def verify(self) -> None:
        for one in watching.verifications(self.desk, self.bench.ADMIN):
            if one.second is None:
                watching.verify(self.desk, self.sheet(self.bench.ADMIN, self.rows(TaskRow, TaskRow.id == one.task)[0]))
        for one in settlements.settlements(self.desk, self.bench.ADMIN):
            if one.agreement is None:
                settlements.verify_settlement(self.desk, self.bench.ADMIN, one.song, self.structure())

    def close(self) -> None:
        last = grades.week_of(self.bench.clock.now) - dt.timedelta(days=7)
        managing.close_week(self.desk, self.bench.ADMIN, last)

    def release(self) -> None:
        open_now = self.one(watching.open_tasks(self.desk, self.bench.ADMIN))
        if open_now:
            managing.release(self.desk, self.bench.ADMIN, open_now.task.id)

    def leave(self) -> None:
        who = self.one(self.people("professional", "amateur", "inspector"))
        managing.withdraw(self.desk, self.bench.ADMIN, who)

    def come(self) -> None:
        self.number += 1
        for role in ("professional", "amateur", "inspector"):
            if len(self.people(role)) < 3:
                token = accounts.invite(self.desk, self.bench.ADMIN, role)
                accounts.accept(self.desk, token, f"{role} {self.number}", "a long password", consents=True)

    def wait(self) -> None:
        self.bench.clock.wait(days=float(self.rng.choice([0.2, 1, 3])))

    def step(self) -> None:
        acts: dict[Callable[[], None], float] = {
            self.annotate: 12, self.settle: 3, self.score: 3, self.practise: 1, self.decide: 3, self.verify: 0.5,
            self.close: 0.7, self.release: 0.4, self.leave: 0.5, self.come: 2, self.wait: 3,
        }  # fmt: skip
        weights = np.array(list(acts.values()))
        with contextlib.suppress(MusicEvalsError):  # what is refused is refused by name; anything else fails the test
            list(acts)[int(self.rng.choice(len(acts), p=weights / weights.sum()))]()


def check_tasks(session) -> dict[str, dict[str, list[str]]]:
    """Look for traces of who left and for pay without work; return song -> kind -> states of what was handed in."""
    people = {row.id: row for row in session.scalars(select(PersonRow))}
    paid: Counter[int] = Counter()
    for entry in session.scalars(select(LedgerRow).where(LedgerRow.task.is_not(None))):
        if entry.person == session.get(TaskRow, entry.task).person:
            paid[entry.task] += entry.cents
    done: dict[str, dict[str, list[str]]] = {}
    for task in session.scalars(select(TaskRow)):
        person = people[task.person]
        if person.withdrawn:  # and keeps what they earned
            assert (task.state in HANDED_IN, task.result, task.draft) == (False, None, {})
            continue
        if not task.training and task.state in HANDED_IN:
            done.setdefault(task.song, {}).setdefault(task.kind, []).append(task.state)
        assert (paid[task.id] > 0) == (task.state == "accepted" and task.song != elsewhere().song.id)
    return done


def check_song(song: SongRow, passes: list[str], both: list[list[str]]) -> None:
    """Look for a song that waits for nobody."""
    assert (song.accepted is not None) == (song.state in {"describing", "assuring", "checking", "finished"})
    assert max(map(len, both)) <= 1
    assert len(passes) <= 2
    if song.state == "structuring" and not song.training:
        assert len(passes) < 2, "two passes and nobody compares them"
    elif song.state == "describing":
        assert not all(both), "both descriptions are there and the song does not go on"
    elif song.state in {"assuring", "checking", "finished"}:
        assert all(both)
        assert (song.state == "assuring") == any("sampled" in states for states in both)


def check_study(bench: StudyBench) -> None:
    with bench.store.reading() as session:
        done = check_tasks(session)
        gone = set(session.scalars(select(PersonRow.id).where(PersonRow.withdrawn)))
        for song in session.scalars(select(SongRow)):
            kinds = done.get(song.id, {})
            both = [kinds.get(group, []) for group in ("professional", "amateur")]
            check_song(song, kinds.get("structure", []), both)
            assert not gone & set((song.accepted or {}).get("people", ()))


def steps_taken(bench: StudyBench) -> set[tuple[str, str]]:
    """Follow everything through the log: each step stands in the tables and begins where the last one ended."""
    states: dict[tuple[str, str], str] = {}
    taken = set()
    with bench.store.reading() as session:
        roles = dict(session.execute(select(PersonRow.id, PersonRow.role)).all())
        steps = select(AuditRow).where(AuditRow.kind.in_(("song", "task")), AuditRow.after != "")
        for row in session.scalars(steps.where(AuditRow.action != "assign").order_by(AuditRow.id)):
            machine, first = (SONG, FIRST_SONG_STATE) if row.kind == "song" else (TASK, FIRST_TASK_STATE)
            assert row.role == ("system" if row.person is None else roles[row.person])
            assert states.get((row.kind, row.object), first) == row.before
            assert (machine[row.before, row.action].target, row.role in machine[row.before, row.action].roles) == (
                row.after, True
            )  # fmt: skip
            states[row.kind, row.object] = row.after
            taken.add((row.kind, row.action))
        for table, kind in ((SongRow, "song"), (TaskRow, "task")):
            assert all(
                states.get((kind, str(row.id)), row.state) == row.state for row in session.scalars(select(table))
            )
    return taken


def elsewhere() -> FinishedSong:
    song = Song("taken", ("春眠不觉晓",), 0.0)
    return FinishedSong(
        song, one_verse("春眠不觉晓"), description("professional"), description("amateur"), (), 0, 0, "as published"
    )


@pytest.mark.slow
def test_no_walk_leaves_the_tables_or_lets_a_song_wait_for_nobody(tmp_path) -> None:
    taken = set()
    for seed in range(4):
        bench = StudyBench(sqlite_url(tmp_path / f"{seed}.db"), Settings(seed=seed, share=0.5))
        bench.songs(*(f"s{number}" for number in range(6)))
        managing.add_finished(bench.desk, bench.ADMIN, [elsewhere()])
        practising.choose_songs(bench.desk, bench.ADMIN, 1)
        walk = Walk(bench, seed)
        for number in range(220):
            walk.step()
            if number % 10 == 0:
                check_study(bench)
        check_study(bench)
        taken |= steps_taken(bench)
        bench.store.close()
    # every step of the tables was taken by somebody
    assert taken == {("song", action) for _, action in SONG} | {("task", action) for _, action in TASK}
