"""How a study is kept: what cannot be changed, migrations with data, and backups that come back whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData, create_engine, inspect, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from tests.caimap_bench import StudyBench, description, one_verse

from music_evals.caimap.domain import ledger
from music_evals.caimap.exchange.exporting import read_key
from music_evals.caimap.services import annotating, managing
from music_evals.caimap.services.study import Settings
from music_evals.caimap.storage.backups import MANIFEST, backup, restore
from music_evals.caimap.storage.store import Store, migrate, sqlite_url
from music_evals.caimap.storage.tables import APPEND_ONLY, AuditRow, LedgerRow, SongRow, TaskRow
from music_evals.cli import main
from music_evals.errors import (
    BackendError,
    InvalidInputError,
    MissingBackendError,
    NoDataError,
    OutputError,
    UnreadableFileError,
)


def work(bench: StudyBench) -> None:
    """Leave rows in most tables: a finished song, a withdrawal, a message, a payment."""
    bench.songs("s1")
    for who in (bench.PRO, bench.OTHER_PRO):
        task = bench.take(who)
        annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), one_verse("春眠不觉晓"))
        bench.clock.wait(days=2)
    for who, group in ((bench.THIRD_PRO, "professional"), (bench.FAN, "amateur")):
        task = bench.take(who)
        bench.listen(who, task.id)
        annotating.submit(bench.service, who, task.id, bench.version(TaskRow, task.id), description(group))
    managing.review_song(bench.service, bench.ADMIN, "s1", bench.version(SongRow, "s1"))
    managing.post_message(bench.service, bench.FAN, "谢谢")
    managing.add_ledger_entry(bench.service, bench.ADMIN, ledger.Entry(bench.PRO, "payment", -500, "by bank"))


def write_down(bench: StudyBench) -> None:
    """Leave rows in the audit log and the ledger."""
    bench.songs("s1")
    managing.add_ledger_entry(bench.service, bench.ADMIN, ledger.Entry(bench.PRO, "payment", -500, "by bank"))


@pytest.fixture
def empty_postgres(postgres: str) -> Iterator[str]:
    """The URL of a database with nothing in it."""
    engine = create_engine(make_url(postgres).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE DATABASE other"))
    yield make_url(postgres).set(database="other").render_as_string(hide_password=False)
    with engine.connect() as connection:
        connection.execute(text("DROP DATABASE other WITH (FORCE)"))
    engine.dispose()


@pytest.fixture
def postgres_bench(postgres: str) -> Iterator[StudyBench]:
    made = StudyBench(postgres, Settings(share=0.0, congruent_share=0.0))
    yield made
    made.store.close()
    migrate(postgres, "base")


# --- what cannot be changed

CHANGES = (
    "DELETE FROM {table}",
    "UPDATE {table} SET person = 1",
    "INSERT OR REPLACE INTO {table} ({columns}) SELECT {columns} FROM {table}",
    "REPLACE INTO {table} ({columns}) SELECT {columns} FROM {table}",
    "UPDATE OR REPLACE {table} SET id = 1",
    "INSERT INTO {table} ({columns}) SELECT {columns} FROM {table} WHERE true ON CONFLICT (id) DO UPDATE SET id = 1",
)


def filled(change: str, table: str, connection: Any) -> str:
    columns = ", ".join(f'"{column["name"]}"' for column in inspect(connection).get_columns(table))
    return change.format(table=table, columns=columns)


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_audit_log_and_ledger_are_never_changed(bench: StudyBench, table: str) -> None:
    write_down(bench)
    for change in CHANGES:
        with bench.store.engine.begin() as connection, pytest.raises(DBAPIError, match="never changed"):
            connection.execute(text(filled(change, table, connection)))


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_nor_by_another_program_than_ours(bench: StudyBench, table: str) -> None:
    write_down(bench)
    with bench.store.engine.connect() as connection:
        statements = [filled(change, table, connection) for change in CHANGES]
    other = sqlite3.connect(make_url(bench.url).database)  # without the settings of our connections
    everything = f"SELECT * FROM {table}"  # noqa: S608  (a table of ours)
    before = other.execute(everything).fetchall()
    for statement in statements:
        with pytest.raises(sqlite3.DatabaseError, match="never changed"):
            other.execute(statement)
        other.rollback()
        assert other.execute(everything).fetchall() == before
    other.close()


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_nor_in_postgresql(postgres_bench: StudyBench, table: str) -> None:
    write_down(postgres_bench)
    as_replica = "SET LOCAL session_replication_role = replica; "
    changes = [change for change in CHANGES if "REPLACE" not in change] + ["TRUNCATE {table}"]
    for change in (*changes, *(as_replica + change for change in changes[:2])):
        with postgres_bench.store.engine.begin() as connection:
            *before, statement = filled(change, table, connection).split("; ")
            for part in before:
                connection.execute(text(part))
            with pytest.raises(DBAPIError, match="never changed"):
                connection.execute(text(statement))


# --- migrations


def rows(url: str, like: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the rows of all tables, or of the tables and columns of another answer of this function."""
    store, metadata = Store(url), MetaData()
    metadata.reflect(store.engine)
    found = {}
    with store.engine.connect() as connection:
        for name, table in metadata.tables.items():
            if name == "alembic_version" or (like is not None and name not in like):
                continue
            names = [column.name for column in table.columns] if like is None else like[name][0]
            chosen = connection.execute(select(*(table.c[column] for column in names)))
            found[name] = (names, sorted(map(repr, chosen)))
    store.close()
    return found


def guards(url: str) -> set[str]:
    """Name the triggers of the audit log and the ledger, with whether PostgreSQL always runs them."""
    store = Store(url)
    query = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    if url.startswith("postgresql"):
        query = "SELECT tgname || ' ' || CAST(tgenabled AS text) FROM pg_trigger WHERE NOT tgisinternal"
    with store.engine.connect() as connection:
        named = set(connection.execute(text(query)).scalars())
    store.close()
    return named


GUARDS = {
    "sqlite": {f"{table}_no_{action}" for table in APPEND_ONLY for action in ("update", "delete", "replace")},
    "postgresql": {f"{table}_kept A" for table in APPEND_ONLY},
}


def revisions() -> int:
    folder = Path(__file__).parents[2] / "src" / "music_evals" / "caimap" / "storage" / "migrations" / "versions"
    return len(list(folder.glob("[0-9]*.py")))


def assert_migrations_keep_the_data(bench: StudyBench, kind: str) -> None:
    work(bench)
    url = bench.url
    bench.store.close()
    newest = rows(url)
    assert sum(bool(found) for _, found in newest.values()) >= 8
    assert guards(url) == GUARDS[kind]
    assert revisions() >= 3
    for _ in range(revisions() - 1):
        migrate(url, "-1")
    oldest = rows(url)
    assert {"person", "song", "task", "event", "audit", "ledger", "setting"} <= set(oldest)
    assert rows(url) == rows(url, oldest)
    migrate(url)
    again = rows(url, oldest)
    assert again == oldest  # nothing was lost on either way
    assert set(rows(url)) == set(newest)
    assert guards(url) == GUARDS[kind]
    # the study goes on where it stood
    bench.store = bench.service.store = Store(url)
    assert len(managing.finished_songs(bench.service)) == 1
    bench.songs("s2")
    bench.store.close()


@pytest.mark.slow
def test_migrations_down_and_up_keep_the_data(bench: StudyBench) -> None:
    assert_migrations_keep_the_data(bench, "sqlite")


@pytest.mark.slow
def test_migrations_down_and_up_keep_the_data_in_postgresql(postgres_bench: StudyBench) -> None:
    assert_migrations_keep_the_data(postgres_bench, "postgresql")


def test_who_reads_sees_one_state_in_postgresql(postgres_bench: StudyBench) -> None:
    bench = postgres_bench
    bench.songs("s1")
    with bench.store.reading() as session:
        assert list(session.scalars(select(SongRow.state))) == ["structuring"]
        with bench.store.writing() as other:
            bench.service.song(other, "s1").state = "excluded"
        assert list(session.scalars(select(SongRow.state).execution_options(populate_existing=True))) == ["structuring"]
        assert bench.service.song(session, "s1").state == "structuring"  # and asks for no lock
    with bench.store.reading() as session:
        assert list(session.scalars(select(SongRow.state))) == ["excluded"]


def test_the_tables_of_postgresql_equal_the_models(postgres_bench: StudyBench) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from music_evals.caimap.storage.tables import Base

    with postgres_bench.store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


# --- backups


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """The folder of a study with work, recordings and a key."""
    folder = tmp_path / "study"
    (folder / "audio" / "disc 1").mkdir(parents=True)
    (folder / "audio" / "s1.flac").write_bytes(b"fLaC one")
    (folder / "audio" / "disc 1" / "s2.flac").write_bytes(b"fLaC two")
    (folder / "export.key").write_text("ab" * 32, encoding="ascii")
    return folder


@pytest.fixture
def kept(study: Path) -> Iterator[StudyBench]:
    made = StudyBench(sqlite_url(study / "study.db"), Settings(share=0.0, congruent_share=0.0))
    write_down(made)
    yield made
    made.store.close()


FILES = ("study.db", "audio/s1.flac", "audio/disc 1/s2.flac", "export.key")


def songs_of(url: str) -> list[str]:
    store = Store(url)
    with store.reading() as session:
        found = list(session.scalars(select(SongRow.id).order_by(SongRow.id)))
    store.close()
    return found


def test_a_backup_is_the_whole_study_and_comes_back_whole(kept: StudyBench, study: Path, tmp_path: Path) -> None:
    (study / "notes.txt").write_text("mine", encoding="utf-8")
    made = backup(study, kept.url, tmp_path / "copy")
    assert (made.files, made.left_out) == (4, ("notes.txt",))
    kept.songs("s2")  # the study goes on
    named = json.loads((tmp_path / "copy" / MANIFEST).read_text(encoding="utf-8"))["files"]
    assert set(named) == set(FILES)
    again = tmp_path / "again"
    restore(tmp_path / "copy", again, sqlite_url(again / "study.db"))
    for name in FILES[1:]:
        assert (again / name).read_bytes() == (study / name).read_bytes()
    assert songs_of(sqlite_url(again / "study.db")) == ["s1"]
    store = Store(sqlite_url(again / "study.db"))
    with store.reading() as session:
        assert session.scalars(select(LedgerRow)).first() is not None
        assert session.scalars(select(AuditRow)).first() is not None
    store.close()


def test_a_recording_that_is_being_imported_is_left_out_of_a_copy(
    kept: StudyBench, study: Path, tmp_path: Path
) -> None:
    part = study / "audio" / ".new.flac.0123.part"
    part.write_bytes(b"half of it")
    backup(study, kept.url, tmp_path / "copy")
    assert part.name not in {path.name for path in (tmp_path / "copy" / "audio").iterdir()}


def test_a_backup_is_readable_for_its_owner_alone(kept: StudyBench, study: Path, tmp_path: Path) -> None:
    backup(study, kept.url, tmp_path / "copy")
    assert (tmp_path / "copy").stat().st_mode & 0o077 == 0


def test_what_a_crashed_study_left_in_its_log_is_not_read_into_a_copy(study: Path, tmp_path: Path) -> None:
    bench = StudyBench(sqlite_url(study / "study.db"), Settings())
    bench.songs("s1")
    backup(study, bench.url, tmp_path / "copy")
    bench.songs("s2", "s3", "s4")
    crashed = tmp_path / "crashed"  # as a server that was killed leaves it: the last songs are in the log alone
    shutil.copytree(study, crashed)
    bench.store.close()
    assert (crashed / "study.db-wal").stat().st_size
    (crashed / "study.db").rename(tmp_path / "away.db")
    with pytest.raises(OutputError, match=r"study\.db-wal"):
        restore(tmp_path / "copy", crashed, sqlite_url(crashed / "study.db"))
    for path in list(crashed.iterdir()):
        shutil.move(path, tmp_path / f"away {path.name}")
    restore(tmp_path / "copy", crashed, sqlite_url(crashed / "study.db"))
    assert songs_of(sqlite_url(crashed / "study.db")) == ["s1"]


@pytest.mark.parametrize("damage", ["changed", "missing", "longer"])
def test_a_damaged_copy_is_refused_and_leaves_nothing(
    kept: StudyBench, study: Path, tmp_path: Path, damage: str
) -> None:
    backup(study, kept.url, tmp_path / "copy")
    for name in FILES:
        path = tmp_path / "copy" / name
        content = path.read_bytes()
        if damage == "missing":
            path.unlink()
        else:
            path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]) if damage == "changed" else content + b" ")
        with pytest.raises(UnreadableFileError, match=path.name):
            restore(tmp_path / "copy", tmp_path / "again", sqlite_url(tmp_path / "again" / "study.db"))
        assert not (tmp_path / "again").exists()
        assert {found.name for found in tmp_path.iterdir()} == {"study", "copy"}
        path.write_bytes(content)


def test_what_is_no_backup_is_refused(kept: StudyBench, study: Path, tmp_path: Path) -> None:
    backup(study, kept.url, tmp_path / "copy")
    url, again = sqlite_url(tmp_path / "again" / "study.db"), tmp_path / "again"
    with pytest.raises(UnreadableFileError, match="no backup"):
        restore(tmp_path / "nothing", again, url)
    (tmp_path / "copy" / "stranger").write_bytes(b"x")
    with pytest.raises(UnreadableFileError, match="stranger"):
        restore(tmp_path / "copy", again, url)
    (tmp_path / "copy" / "stranger").unlink()
    manifest = tmp_path / "copy" / MANIFEST
    for wrong in (b"{", b"[]", b"{}", b'{"form": 2, "database": "sqlite", "files": {}}'):
        manifest.write_bytes(wrong)
        with pytest.raises(UnreadableFileError):
            restore(tmp_path / "copy", again, url)
    manifest.write_text('{"form": 1, "database": "postgresql", "files": {}}', encoding="utf-8")
    with pytest.raises(InvalidInputError, match="postgresql"):
        restore(tmp_path / "copy", again, url)


def test_a_backup_replaces_nothing(kept: StudyBench, study: Path, tmp_path: Path) -> None:
    backup(study, kept.url, tmp_path / "copy")
    with pytest.raises(OutputError, match=r"export\.key"):
        backup(study, kept.url, tmp_path / "copy")
    with pytest.raises(OutputError, match="in the study itself"):
        backup(study, kept.url, study / "copy")
    with pytest.raises(NoDataError):
        backup(tmp_path / "none", sqlite_url(tmp_path / "none" / "study.db"), tmp_path / "other")
    with pytest.raises(OutputError, match=r"study\.db"):
        restore(tmp_path / "copy", study, kept.url)
    with pytest.raises(InvalidInputError, match="not elsewhere"):
        restore(tmp_path / "copy", tmp_path / "new", sqlite_url(tmp_path / "elsewhere.db"))
    with pytest.raises(InvalidInputError, match="mysql"):
        backup(study, "mysql://somewhere/study", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_backup_that_fails_leaves_nothing(kept: StudyBench, study: Path, tmp_path: Path) -> None:
    (study / "audio" / "gone.flac").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError):
        backup(study, kept.url, tmp_path / "copy")
    assert {found.name for found in tmp_path.iterdir()} == {"study"}


@pytest.mark.slow
def test_a_study_in_postgresql_is_copied_and_comes_back(
    postgres_bench: StudyBench, study: Path, tmp_path: Path, empty_postgres: str
) -> None:
    if shutil.which("pg_dump") is None:
        pytest.skip("pg_dump is not installed (Debian: postgresql-client)")
    work(postgres_bench)
    made = backup(study, postgres_bench.url, tmp_path / "copy")
    assert made.files == 4
    with pytest.raises(OutputError, match="the table"):
        restore(tmp_path / "copy", tmp_path / "again", postgres_bench.url)
    restore(tmp_path / "copy", tmp_path / "again", empty_postgres)
    assert rows(empty_postgres) == rows(postgres_bench.url)
    assert guards(empty_postgres) == GUARDS["postgresql"]
    assert {found.name for found in (tmp_path / "again").iterdir()} == {"audio", "export.key"}
    with pytest.raises(InvalidInputError, match="postgresql"):
        restore(tmp_path / "copy", tmp_path / "third", sqlite_url(tmp_path / "third" / "study.db"))


def test_without_the_programs_of_postgresql_the_backup_says_so(
    postgres_bench: StudyBench, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingBackendError, match="postgresql-client"):
        backup(study, postgres_bench.url, tmp_path / "copy")
    program = tmp_path / "pg_dump"
    program.write_text("#!/bin/sh\necho no space >&2\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    with pytest.raises(BackendError, match="ended with 3: no space"):
        backup(study, postgres_bench.url, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def modes(folder: Path) -> dict[str, str]:
    """Return the rights of a folder and of all below, in octal."""
    places = [folder, *sorted(folder.rglob("*"))]
    return {place.relative_to(folder).as_posix(): f"{place.stat().st_mode & 0o777:o}" for place in places}


@pytest.fixture(params=[0, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_what_a_study_holds_is_its_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir(mode=0o755)
    assert main(["caimap", "init", str(tmp_path / "study")]) == 0
    url = sqlite_url(tmp_path / "study" / "study.db")
    read_key(tmp_path / "study" / "export.key")
    store = Store(url)
    with store.writing() as session:  # the log of SQLite is there while somebody writes
        session.execute(text("UPDATE alembic_version SET version_num = version_num"))
        closed = dict.fromkeys(("export.key", "study.db", "study.db-shm", "study.db-wal"), "600")
        assert modes(tmp_path / "study") == {".": "700", "audio": "700", **closed}
    store.close()
    (tmp_path / "study" / "audio" / "a.flac").write_bytes(b"fLaC")
    backup(tmp_path / "study", url, tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "again", sqlite_url(tmp_path / "again" / "study.db"))
    for folder in ("copy", "again"):
        for name, mode in modes(tmp_path / folder).items():
            assert mode == ("700" if name in {".", "audio"} else "600"), (folder, name)


def test_a_database_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "study.db")
    migrate(url)
    (tmp_path / "study.db").chmod(0o644)
    Store(url).close()
    assert modes(tmp_path)["study.db"] == "600"


def test_first_exports_at_once_end_with_one_key(tmp_path: Path) -> None:
    for attempt in range(10):
        path, start = tmp_path / f"{attempt}.key", threading.Barrier(8)

        def read(path: Path = path, start: threading.Barrier = start) -> bytes:
            start.wait()
            return read_key(path)

        with ThreadPoolExecutor(8) as pool:
            keys = {future.result() for future in [pool.submit(read) for _ in range(8)]}
        assert keys == {bytes.fromhex(path.read_text(encoding="ascii"))}
        assert modes(tmp_path)[path.name] == "600"
    assert len(list(tmp_path.iterdir())) == 10
