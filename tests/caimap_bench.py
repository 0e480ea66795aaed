"""A study with its people, a clock that the test moves, and annotations to hand in."""

from __future__ import annotations

import datetime as dt
import functools
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from music_evals.annotations import AUDIO_EFFECTS, DIMENSIONS
from music_evals.caimap.domain import structure
from music_evals.caimap.domain.values import Description, Effects, Section, Song, Structure, Tagged
from music_evals.caimap.services import annotating, managing
from music_evals.caimap.services.study import Settings, StudyService
from music_evals.caimap.services.tasks import task_sec
from music_evals.caimap.storage.store import Store, migrate, sqlite_file, sqlite_url
from music_evals.caimap.storage.tables import EventRow, PersonRow, SongRow, TaskRow

START = dt.datetime(2026, 3, 2, 8, tzinfo=dt.UTC)  # a Monday


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> dt.datetime:
        return self.now

    def wait(self, seconds: float = 0, **span: float) -> None:
        self.now += dt.timedelta(seconds=seconds, **span)


@functools.cache
def empty_study() -> bytes:
    """Return the SQLite file of a study in which nobody is: migrations are run once a process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.db"
        migrate(sqlite_url(path))
        return path.read_bytes()


@functools.lru_cache(8)
def new_study(settings: Settings) -> bytes:
    """Return the SQLite file of a study with its people."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.db"
        path.write_bytes(empty_study())
        invite_all(sqlite_url(path), settings)
        return path.read_bytes()


def invite_all(url: str, settings: Settings) -> None:
    store = Store(url)
    StudyService(store).configure(settings)
    with store.writing() as session:
        for number, role in enumerate(StudyBench.PEOPLE, 1):
            session.add(PersonRow(name=f"{role}{number}", role=role, consent="1", created=START, language="zh"))
            session.flush()
    store.close()


class StudyBench:
    """A study and short names for what people do in it."""

    PEOPLE = (
        "administrator",
        "inspector",
        "inspector",
        "professional",
        "professional",
        "professional",
        "amateur",
        "amateur",
    )
    ADMIN, INSPECTOR, OTHER_INSPECTOR, PRO, OTHER_PRO, THIRD_PRO, FAN, OTHER_FAN = range(1, 9)

    def __init__(self, url: str, settings: Settings) -> None:
        if url.startswith("sqlite:"):
            sqlite_file(url).write_bytes(new_study(settings))
        else:
            migrate(url)
            invite_all(url, settings)
        self.open(url, Clock())

    def open(self, url: str, clock: Clock) -> None:
        """Open a study that is there."""
        self.url, self.clock = url, clock
        self.store = Store(url)
        self.service = StudyService(self.store, clock)

    def copied(self, folder: Path) -> StudyBench:
        """Return a bench on a copy of the folder of this one, whose store is closed."""
        there = sqlite_file(self.url)
        shutil.copytree(there.parent, folder, dirs_exist_ok=True)
        copy, clock = object.__new__(StudyBench), Clock()
        clock.now = self.clock.now
        copy.open(sqlite_url(folder / there.name), clock)
        return copy

    def songs(self, *names: str) -> None:
        songs = [Song(name, ("春眠不觉晓", "处处闻啼鸟"), 40.0, rhymes=(True, True)) for name in names]
        managing.add_songs(self.service, self.ADMIN, songs)

    def take(self, who: int, *, listens: bool = True):
        """Open the next task of somebody; for a structure they hear the song before they do anything else."""
        task = annotating.take_next(self.service, who)
        assert task is not None
        opened = annotating.open_task(self.service, who, task.id)
        if listens and task.kind == "structure":
            self.listen(who, task.id)
        return opened

    def two_passes(self, song: str, *labels: str) -> None:
        """Let two professionals hand in one verse of a song, each under a label."""
        self.songs(song)
        for who, label in zip((self.PRO, self.OTHER_PRO), labels, strict=True):
            task = self.take(who)
            given = one_verse("春眠不觉晓", label=label)
            annotating.submit(self.service, who, task.id, self.version(TaskRow, task.id), given)
            self.clock.wait(days=2)

    def version(self, table, key) -> int:
        with self.store.reading() as session:
            return session.get(table, key).version

    def listen(self, who: int, task: int) -> None:
        """Let somebody begin to play, as their page reports it, and hear the whole song while the clock moves on."""
        annotating.record(self.service, who, task, [{"kind": "play", "position_sec": 0}])
        with self.store.writing() as session:
            row = session.get_one(TaskRow, task)
            length, last = int(session.get_one(SongRow, row.song).content["duration_sec"]), 0
            for at in (*range(15, length, 15), length):  # as seldom as a player that plays may report
                self.clock.wait(at - last)
                kind, last = "ended" if at == length else "beat", at
                heard = {"position_sec": at, "received_sec": task_sec(self.service, session, row, at), "value": 0.0}
                session.add(EventRow(task=task, attempt=row.attempt, kind=kind, **heard))
                session.flush()
        self.clock.wait(60)


def one_verse(*lines: str, label: str = "verse1", theme: str = "春天") -> Structure:
    patterns = tuple(structure.line_pattern(line, rhymes=True) for line in lines)
    return Structure((Section(label, lines, patterns),), theme)


def description(group: str, tags: int = 3) -> Description:
    names = [name for name in DIMENSIONS[group] if name != AUDIO_EFFECTS]
    said = {name: Tagged(tuple(f"词{at or ''}{number}" for number in range(tags))) for at, name in enumerate(names)}
    return Description(group, ("字" if group == "amateur" else "词") * 60, said, Effects(clear=True))


def reports(page: Any) -> list[tuple[str, float, float]]:
    """Return what a page in a browser reports of its player, as it goes on: kind, position and value."""
    found: list[tuple[str, float, float]] = []

    def note(request: Any) -> None:
        if request.url.endswith("/events"):
            events = json.loads(request.post_data)["events"]
            found.extend((one["kind"], one["position_sec"], one["value"]) for one in events)

    page.on("request", note)
    return found
