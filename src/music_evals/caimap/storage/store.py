"""Opening a study: connections, transactions, migrations.

SQLite keeps a write-ahead log that is on the disk before a transaction is over, checks foreign keys, and lets one
writer in at a time; in PostgreSQL whoever acts locks the song, and whoever reads sees one state throughout. Versions of
rows show who came too late (`StaleError`).
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from sqlalchemy import Engine, create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, OperationalError
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from music_evals.errors import InvalidInputError, MusicEvalsError, OutputError, UnreadableFileError

__all__ = ["READS", "StaleError", "Store", "check_schema", "migrate", "retried", "sqlite_file", "sqlite_url"]

P = ParamSpec("P")
R = TypeVar("R")

READS: Final = "reads"
"""In the facts of a session that only reads."""

_WAIT_SEC = 30.0
_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_TRIES: Final = 12
_CROSSED: Final = ("40001", "40P01")  # PostgreSQL: two transactions in no order, or waiting for each other


class StaleError(MusicEvalsError, RuntimeError):
    """Conflict: another user changed the record since the page was loaded; nothing of this request was saved."""


def retried(act: Callable[P, R]) -> Callable[P, R]:
    """Return an act of one transaction that is tried `_TRIES` times, each afresh, while it crosses those of others."""

    @functools.wraps(act)
    def again(*given: P.args, **named: P.kwargs) -> R:
        for number in range(1, _TRIES):
            try:
                return act(*given, **named)
            except StaleError as error:
                if error.kind != "quicker":  # a page that is out of date stays so
                    raise
                time.sleep(random.uniform(0, 0.02 * number))  # those who crossed do not meet again
        return act(*given, **named)

    return again


def sqlite_url(path: str | os.PathLike[str]) -> str:
    """Return the URL of a SQLite file."""
    return f"sqlite:///{Path(path).resolve()}"


class Store:
    """A study's database, by ``"sqlite:///study.db"`` or ``"postgresql+psycopg://..."``.

    Raises `InvalidInputError` for another kind of URL.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = _engine(url)
        self._writer = self.engine.execution_options(writes=True)
        # SQLite reads one state anyway
        is_postgresql = self.engine.dialect.name == "postgresql"
        self._reader = (
            self.engine.execution_options(isolation_level="REPEATABLE READ") if is_postgresql else self.engine
        )

    @contextlib.contextmanager
    def reading(self) -> Iterator[Session]:
        """Read, in one state of the study; rows are not locked, whoever asks for them."""
        with Session(self._reader, expire_on_commit=False, info={READS: True}) as session:
            yield session

    @contextlib.contextmanager
    def writing(self) -> Iterator[Session]:
        """Write all or nothing; once this is left without an error, it is on the disk.

        Raises `StaleError`: another transaction changed the same rows.
        """
        with Session(self._writer, expire_on_commit=False) as session:
            try:
                yield session
                session.commit()
            except (StaleDataError, IntegrityError, OperationalError) as error:
                session.rollback()
                if isinstance(error, OperationalError) and getattr(error.orig, "sqlstate", "") not in _CROSSED:
                    raise
                raise StaleError(
                    "conflict: this record was changed by another user; reload the page", kind="quicker"
                ) from error

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise InvalidInputError(f"no URL of a database: {url!r}; give sqlite:///FILE or postgresql://...") from error
    kind = parsed.get_backend_name()
    if kind == "postgresql":
        return create_engine(parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True, pool_size=20)
    if kind != "sqlite":
        raise InvalidInputError(f"a study is kept in SQLite or PostgreSQL, not in {kind}")
    for end in ("", "-wal", "-shm"):  # SQLite gives the latter two the rights of the first
        with contextlib.suppress(OSError):  # a missing folder is reported on connection
            flags = os.O_RDWR if end else os.O_RDWR | os.O_CREAT
            os.close(os.open(f"{parsed.database}{end}", flags, 0o600))
            Path(f"{parsed.database}{end}").chmod(0o600)
    engine = create_engine(parsed, connect_args={"timeout": _WAIT_SEC, "check_same_thread": False}, pool_size=20)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # we begin transactions ourselves
    # recursive triggers: without them a row that is replaced is deleted past the triggers of the audit log and ledger
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "recursive_triggers=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Any) -> None:
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def migrate(url: str, revision: str = "head") -> None:
    """Bring the tables of a study to a revision.

    ``"head"`` is the newest; ``"-1"`` takes the last step back; ``"base"`` removes all tables and what they hold.
    Raises `UnreadableFileError` where a newer version made the tables.
    """
    engine = _engine(url)
    try:
        with engine.execution_options(writes=True).connect() as connection:
            if inspect(connection).has_table("alembic_version"):
                current = connection.scalar(text("SELECT version_num FROM alembic_version"))
                if check_schema(current, str(engine.url)) and revision == "head":
                    return
            from alembic import command
            from alembic.config import Config

            config = Config()
            config.set_main_option("script_location", str(_MIGRATIONS))
            config.attributes["connection"] = connection
            (command.downgrade if revision == "base" or revision.startswith("-") else command.upgrade)(config, revision)
            connection.commit()
    except DatabaseError as error:
        raise OutputError(f"the database cannot be opened ({error.orig})") from error
    finally:
        engine.dispose()


def check_schema(revision: str | None, where: str) -> bool:
    """Tell whether tables are of the newest revision; None where there are no tables.

    Raises `UnreadableFileError`: a newer version made them.
    """
    known = sorted(path.stem.partition("_")[0] for path in _MIGRATIONS.glob("versions/0*.py"))
    if revision and revision not in known:
        raise UnreadableFileError(
            f"{where}: written by a newer version of music_evals (schema {revision}; this one knows up to {known[-1]}) "
            "and left as it is; install the version that wrote it"
        )
    return revision == known[-1]


def sqlite_file(url: str) -> Path:
    """Return the file of a study that is kept in SQLite.

    Raises `InvalidInputError`: it is kept elsewhere.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        raise InvalidInputError(f"expected the URL of a SQLite file, got that of {parsed.get_backend_name()}")
    return Path(parsed.database)
