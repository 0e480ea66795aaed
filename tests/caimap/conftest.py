"""Databases for the tests of the annotation platform."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from tests.caimap_bench import StudyBench

from music_evals.caimap.services.study import Settings
from music_evals.caimap.storage import store
from music_evals.caimap.storage.store import sqlite_url

COMPILED: dict[Any, Any] = {}
"""Statements of all studies of this process, compiled."""

REQUIRED = os.environ.get("MUSIC_EVALS_REQUIRE", "").split(",")


@pytest.fixture(autouse=True, scope="module")
def quick_studies() -> Iterator[None]:
    """Passwords of nobody need no hash that costs 64 MiB, and studies of nobody need not outlive a power cut.

    All studies share what SQLAlchemy compiles of a statement, which it does anew for each database else.
    """
    argon2 = pytest.importorskip("argon2")
    cheap = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    set_up, create_engine = store._set_up_sqlite, store.create_engine

    def without_waiting(connection: Any, record: Any) -> None:
        set_up(connection, record)
        connection.execute("PRAGMA synchronous=OFF").close()

    def with_compiled(*given: Any, **named: Any) -> Engine:
        engine = create_engine(*given, **named)
        engine.update_execution_options(compiled_cache=COMPILED)
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("music_evals.caimap.services.accounts._hasher", lambda: cheap)
        patch.setattr(store, "_set_up_sqlite", without_waiting)
        patch.setattr(store, "create_engine", with_compiled)
        patch.setattr(SQLiteDialect_pysqlite, "__eq__", lambda one, other: type(one) is type(other))
        patch.setattr(SQLiteDialect_pysqlite, "__hash__", lambda dialect: hash(type(dialect)))
        yield


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every attempt come long after the one before, so that nobody is made to wait."""
    moments = itertools.count(1e6, 1000)
    monkeypatch.setattr("music_evals.caimap.web.guards.monotonic", lambda: next(moments))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[StudyBench]:
    made = StudyBench(sqlite_url(tmp_path / "study.db"), Settings(seed=1, share=0.0, congruent_share=0.0))
    yield made
    made.store.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of an empty PostgreSQL server of our own, on a socket in a temporary folder."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    binaries = found[-1] if found else Path(shutil.which("initdb") or "").parent
    if not (binaries / "initdb").is_file():
        absent = "PostgreSQL is not installed (Debian: postgresql)"
        if "postgresql" in REQUIRED:
            pytest.fail(absent)
        pytest.skip(absent)
    pytest.importorskip("psycopg")
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as name:
        folder = Path(name)
        prefix: list[str] = []
        if os.geteuid() == 0:  # its programs refuse to run as root
            prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            shutil.chown(folder, "postgres", "postgres")
        run = [*prefix, str(binaries / "initdb"), "-D", f"{name}/data", "-U", "study", "-A", "trust", "-E", "UTF8"]
        subprocess.run(run, check=True, capture_output=True, cwd=name)
        settings = f"-k {name} -c listen_addresses= -c fsync=off"
        server = [*prefix, str(binaries / "pg_ctl"), "-D", f"{name}/data", "-l", f"{name}/log", "-w"]
        subprocess.run([*server, "-o", settings, "start"], check=True, capture_output=True, cwd=name)
        try:
            yield f"postgresql://study@/postgres?host={name}"
        finally:
            subprocess.run([*server, "-m", "fast", "stop"], check=True, capture_output=True, cwd=name)
