"""Nothing is lost: conflicts are tried again, clocks may be wrong, newer studies are left alone."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, delete, func, select, text
from sqlalchemy.engine import make_url
from tests.caimap_bench import START, Clock, StudyBench, description, one_verse

from music_evals.caimap.domain.values import Description, Tagged
from music_evals.caimap.services import accounts, annotating, inspecting, managing, people
from music_evals.caimap.services.study import Settings, StudyService, steady_clock
from music_evals.caimap.storage.backups import MANIFEST, backup, restore
from music_evals.caimap.storage.store import StaleError, Store, migrate, retried, sqlite_url
from music_evals.caimap.storage.tables import AuditRow, EventRow, PersonRow, SongRow, TaskRow, WarningRow
from music_evals.cli import main
from music_evals.errors import UnreadableFileError

# --- conflicts are tried again


@pytest.fixture(params=["sqlite", "postgresql"])
def any_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StudyBench]:
    url = sqlite_url(tmp_path / "any.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
    made = StudyBench(url, Settings(share=0.0, congruent_share=0.0))
    yield made
    made.store.close()
    migrate(url, "base")


def asked_at_once(bench: StudyBench, people: list[int]) -> tuple[list[Any], list[Exception]]:
    given: list[Any] = []
    errors: list[Exception] = []
    barrier = threading.Barrier(len(people))

    def ask(who: int) -> None:
        barrier.wait()
        try:
            task = annotating.take_next(bench.service, who)
            given.append(task and annotating.open_task(bench.service, who, task.id))
        except Exception as error:  # noqa: BLE001  (whatever it is)
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(who,)) for who in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return given, errors


@pytest.mark.slow
@pytest.mark.parametrize("places", [30, 10])
def test_thirty_who_ask_at_once_are_answered(any_bench: StudyBench, places: int) -> None:
    bench = any_bench
    bench.songs(*(f"s{number}" for number in range(places)))
    with bench.store.writing() as session:
        rows = [PersonRow(name=f"n{number}", role="professional", created=START) for number in range(30)]
        session.add_all(rows)
        session.flush()
        people = [row.id for row in rows]
    given, errors = asked_at_once(bench, people)
    assert errors == []
    tasks = [task for task in given if task is not None]
    assert (len(given), len(tasks)) == (30, places)
    assert len({task.song for task in tasks}) == places


@pytest.mark.slow
def test_what_crosses_in_postgresql_is_tried_again(postgres: str) -> None:
    bench = StudyBench(postgres, Settings(share=0.0, congruent_share=0.0))
    bench.songs("s1", "s2")
    barrier, tries = threading.Barrier(2), []

    @retried
    def lock(first: str, second: str) -> None:
        tries.append(first)
        with bench.store.writing() as session:
            bench.service.song(session, first)
            if len(tries) <= 2:
                barrier.wait(10)  # each waits for the other: PostgreSQL ends one of them
            bench.service.song(session, second)

    other = threading.Thread(target=lock, args=("s2", "s1"))
    try:
        other.start()
        lock("s1", "s2")
        other.join(20)
        assert not other.is_alive()
        assert len(tries) == 3
    finally:
        bench.store.close()
        migrate(postgres, "base")


def test_it_is_not_tried_for_ever() -> None:
    tries = []

    @retried
    def act(kind: str) -> None:
        tries.append(1)
        raise StaleError("again", kind=kind)

    for kind, least in (("quicker", 5), ("task_changed", 1)):
        tries.clear()
        with pytest.raises(StaleError):
            act(kind)
        assert least <= len(tries) <= 50 * least - 49


# --- clocks that are wrong


def test_steps_of_the_system_clock_do_not_show() -> None:
    system, steady = Clock(), [100.0]
    clock = steady_clock(system, lambda: steady[0])
    system.wait(hours=-3)
    steady[0] += 7
    assert clock() == START + dt.timedelta(seconds=7)
    system.wait(days=4000)
    assert clock() == START + dt.timedelta(seconds=7)


def test_a_study_that_is_served_has_such_a_clock(bench: StudyBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("music_evals.caimap.services.study.steady_clock", lambda: bench.clock)
    assert StudyService(bench.store).clock is bench.clock


def restarted(bench: StudyBench, **back: float) -> None:
    """Let the server begin again, with a clock that is behind, or was ahead before."""
    bench.clock.now -= dt.timedelta(**back)
    bench.service = StudyService(bench.store, bench.clock)


def written() -> Description:
    """Return a description of an amateur, its tags other ones in each dimension."""
    given = description("amateur")
    tags = {name: Tagged(tuple(f"{name[:9]}{number}" for number in range(3))) for name in given.dimensions}
    return dataclasses.replace(given, dimensions=tags)


def structured(bench: StudyBench, who: int) -> None:
    """Hand in a structure after listening; an inspector settles it where the platform asks for one."""
    task = bench.take(who)
    assert task.kind == "structure"
    bench.listen(who, task.id)
    given = one_verse("春眠不觉晓", theme=f"春天 {task.song}")
    annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), given)
    if task.song in inspecting.waiting(bench.service, bench.INSPECTOR)[0]:
        version = bench.version(SongRow, task.song)
        inspecting.settle(bench.service, bench.INSPECTOR, task.song, version, given)


def described(bench: StudyBench, *songs: str) -> int:
    """Let songs get as far as their descriptions, and return the number of an amateur's task."""
    bench.songs(*songs)
    for who in (bench.PRO, bench.OTHER_PRO):
        for _ in songs:
            structured(bench, who)
        bench.clock.wait(days=2)
    with bench.store.writing() as session:
        session.execute(delete(WarningRow))
    return bench.take(bench.FAN).id


@pytest.mark.parametrize("back", [{"minutes": 10}, {"days": 1500}])
def test_a_clock_behind_refuses_no_honest_event_and_warns_of_nothing(bench: StudyBench, back: dict[str, float]) -> None:
    number = described(bench, "s1")
    annotating.record(bench.service, bench.FAN, number, [{"kind": "play", "position_sec": 0}])
    for at in (5, 10, 15):
        bench.clock.wait(5)
        annotating.record(bench.service, bench.FAN, number, [{"kind": "beat", "position_sec": at}])
    version = bench.version(TaskRow, number)
    restarted(bench, **back)
    bench.clock.wait(8)  # it was away for as long, and the song played on
    for at in (23, 28, 33, 38):
        found = annotating.record(bench.service, bench.FAN, number, [{"kind": "beat", "position_sec": at}])
        bench.clock.wait(5)
    assert bench.version(TaskRow, number) == version  # what the page names
    found = annotating.record(bench.service, bench.FAN, number, [{"kind": "ended", "position_sec": 40}])
    assert (found.complete, found.problems) == (True, ())
    with bench.store.reading() as session:
        times = list(
            session.scalars(select(EventRow.received_sec).where(EventRow.task == number).order_by(EventRow.id))
        )
        noted = list(session.scalars(select(AuditRow).where(AuditRow.action == "clock")))
    assert times == sorted(times)
    assert times[:5] == [0, 5, 10, 15, 23]
    assert [row.detail["behind_sec"] > 500 for row in noted] == [True]
    bench.clock.wait(30)
    annotating.submit(bench.service, bench.FAN, number, version, written())
    with bench.store.reading() as session:
        row = session.get(TaskRow, number)
        assert (row.submitted - row.opened).total_seconds() == pytest.approx(73)
        assert list(session.scalars(select(WarningRow))) == []


def test_a_clock_that_went_back_after_a_draft_takes_no_time_off(bench: StudyBench) -> None:
    number = described(bench, "s1")
    bench.listen(bench.FAN, number)
    bench.clock.wait(600)
    version = annotating.save(bench.service, bench.FAN, number, bench.version(TaskRow, number), {"overall_text": "字"})
    restarted(bench, hours=2)
    bench.clock.wait(5)
    annotating.submit(bench.service, bench.FAN, number, version, written())
    with bench.store.reading() as session:
        row = session.get(TaskRow, number)
        assert (row.submitted - row.opened).total_seconds() >= 700
        assert list(session.scalars(select(WarningRow))) == []


@pytest.mark.slow
def test_nobody_is_excluded_by_a_clock_that_goes_back_again_and_again(bench: StudyBench) -> None:
    described(bench, *(f"s{number}" for number in range(6)))
    for _ in range(6):
        task = bench.take(bench.FAN)
        bench.listen(bench.FAN, task.id)
        restarted(bench, minutes=3)
        annotating.submit(bench.service, bench.FAN, task.id, bench.version(TaskRow, task.id), written())
    assert people.cautions(bench.service, bench.FAN) == []
    bench.clock.wait(days=7)
    judged = managing.close_week(bench.service, bench.ADMIN, START.date())
    assert not any(week.excluded for week in judged.values())


def test_what_is_decided_behind_a_closed_week_is_graded_in_the_next(bench: StudyBench) -> None:
    bench.songs("s1")
    for who in (bench.PRO, bench.OTHER_PRO):
        structured(bench, who)
        bench.clock.wait(days=2)
    bench.songs("s2")
    bench.clock.now = START + dt.timedelta(days=7, minutes=10)
    assert bench.OTHER_PRO in managing.close_week(bench.service, bench.ADMIN, START.date())
    restarted(bench, hours=12)  # into the week that is closed
    assert bench.service.clock() >= dt.datetime(2026, 3, 9, tzinfo=dt.UTC)
    before = bench.service.clock()
    bench.clock.wait(5)
    assert (bench.service.clock() - before).total_seconds() == 5
    with bench.store.writing() as session:
        session.get(SongRow, "s1").state = "finished"  # structures alone are left
        last = session.scalar(select(func.max(AuditRow.id)))
    for who in (bench.THIRD_PRO, bench.OTHER_PRO):
        structured(bench, who)
        bench.clock.wait(days=1.1)
    bench.clock.wait(days=8)
    judged = managing.close_week(bench.service, bench.ADMIN, dt.date(2026, 3, 9))
    assert judged[bench.THIRD_PRO].grade_a
    with bench.store.reading() as session:
        moments = session.scalars(select(AuditRow.moment).where(AuditRow.id > last))
        assert min(moments) >= dt.datetime(2026, 3, 9, tzinfo=dt.UTC)


def test_a_clock_that_was_ahead_leaves_no_song_and_no_session_behind(bench: StudyBench) -> None:
    bench.songs("s1")
    bench.clock.wait(days=1500)
    task = bench.take(bench.PRO)
    annotating.submit(bench.service, bench.PRO, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓"))
    token = accounts.open_session(bench.service, bench.PRO)
    restarted(bench, days=1498)
    assert bench.take(bench.OTHER_PRO).song == "s1"
    assert accounts.visit(bench.service, token) is None


# --- studies of a newer version


def newer(url: str) -> None:
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg") if "postgresql" in url else url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()


VERBS: list[list[str]] = [
    ["serve", "STUDY"],
    ["serve", "STUDY", "--demo"],
    ["init", "STUDY"],
    ["report", "STUDY", "--out", "OUT"],
    ["export", "STUDY", "--out", "OUT"],
    ["publish", "STUDY", "lab/songs"],
    ["import", "STUDY", "TABLE", "--finished", "--licence", "MIT"],
    ["backup", "STUDY", "OUT"],
]


@pytest.fixture(scope="module")
def newer_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    study = tmp_path_factory.mktemp("newer") / "study"
    assert main(["caimap", "init", str(study)]) == 0
    newer(sqlite_url(study / "study.db"))
    return study


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: " ".join(verb[::2]))
def test_a_newer_study_is_refused_in_one_line(
    newer_study: Path, tmp_path: Path, verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    study, table = newer_study, tmp_path / "songs.jsonl"
    before = (study / "study.db").read_bytes()
    table.write_text(json.dumps({"id": "s1", "lines": ["春眠不觉晓"]}) + "\n", encoding="utf-8")
    capsys.readouterr()
    named = {"STUDY": str(study), "OUT": str(tmp_path / "out"), "TABLE": str(table)}
    if verb[0] == "import":  # what was annotated elsewhere is read first
        verb = ["import", "STUDY", "TABLE", "--audio", "STUDY"]
    assert main(["caimap", *(named.get(part, part) for part in verb)]) == 2
    told = capsys.readouterr().err.strip()
    assert len(told.splitlines()) == 1
    assert "9999" in told
    assert (study / "study.db").read_bytes() == before
    assert not (tmp_path / "out").exists()


def test_a_copy_of_a_newer_study_is_refused_and_leaves_nothing(bench: StudyBench, tmp_path: Path) -> None:
    copy, back = tmp_path / "copy", tmp_path / "back"
    backup(tmp_path, bench.url, tmp_path.parent / f"{tmp_path.name}_copy")
    (tmp_path.parent / f"{tmp_path.name}_copy").rename(copy)
    newer(sqlite_url(copy / "study.db"))
    fit_manifest(copy, "study.db")
    with pytest.raises(UnreadableFileError):
        restore(copy, back, sqlite_url(back / "study.db"))
    assert not back.exists()
    assert main(["caimap", "restore", str(back), str(copy)]) == 2


def fit_manifest(copy: Path, name: str) -> None:
    import hashlib

    manifest = json.loads((copy / MANIFEST).read_text(encoding="utf-8"))
    content = (copy / name).read_bytes()
    manifest["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    (copy / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.slow
def test_in_postgresql_too(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy, back = tmp_path / "copy", tmp_path / "back"
    bench = StudyBench(postgres, Settings())
    try:
        newer(postgres)
        for act in (lambda: backup(tmp_path / "study", postgres, copy), lambda: migrate(postgres)):
            with pytest.raises(UnreadableFileError, match="9999"):
                act()
        assert not copy.exists()
        with monkeypatch.context() as patched:  # as a newer version copies it
            patched.setattr("music_evals.caimap.storage.backups.check_schema", lambda *_: None)
            backup(tmp_path / "study", postgres, copy)
    finally:
        with bench.store.engine.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '0003'"))
        bench.store.close()
        migrate(postgres, "base")
    store = Store(postgres)
    with store.engine.begin() as connection:
        connection.execute(text("DROP TABLE alembic_version"))
    with pytest.raises(UnreadableFileError, match="9999"):
        restore(copy, back, postgres)
    assert not back.exists()
    with store.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")).scalar() == 0
    store.close()


def test_what_is_no_database_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "study"
    study.mkdir()
    (study / "study.db").write_bytes(b"no database at all" * 1000)
    for verb in (["serve", str(study)], ["backup", str(study), str(tmp_path / "out")]):
        assert main(["caimap", *verb]) == 1
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
