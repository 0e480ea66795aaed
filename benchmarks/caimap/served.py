"""A study on this machine, served from a process of its own, in SQLite or in a PostgreSQL of our own.

The study has annotators who are signed in already: signing in hashes passwords with argon2, slowly and on purpose, and
the platform takes 20 attempts an address in five minutes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from music_evals.caimap.domain.values import Song
from music_evals.caimap.services import accounts, managing
from music_evals.caimap.services.study import Settings, StudyService, utc_now
from music_evals.caimap.storage.store import Store, migrate, sqlite_url
from music_evals.caimap.storage.tables import PersonRow
from music_evals.errors import MissingBackendError, MusicEvalsError

__all__ = ["DURATION_SEC", "Account", "Served", "database", "make_study", "postgres"]

DURATION_SEC = 12.0
"""Of each song: a description takes this long at least."""

_START_SEC = 60.0


class Account(NamedTuple):
    """Somebody who is signed in: number, token of the session, token of its forms."""

    person: int
    token: str
    csrf: str


def make_study(url: str, people: int, songs: int) -> list[Account]:
    """Make a study of songs and annotators, three professionals to one amateur, and return who may work in it."""
    migrate(url)
    store = Store(url)
    service = StudyService(store)
    service.configure(Settings(seed=1, pass_gap_hours=0.0))
    with store.writing() as session:
        admin = PersonRow(name="admin", role="administrator", created=utc_now())
        rows = [
            PersonRow(name=f"person{n}", role="amateur" if n % 4 == 3 else "professional", created=utc_now())
            for n in range(people)
        ]
        session.add_all([admin, *rows])
        session.flush()
        chief, numbers = admin.id, [row.id for row in rows]
    lines = ("春眠不觉晓", "处处闻啼鸟")
    managing.add_songs(service, chief, [Song(f"s{n:05}", lines, DURATION_SEC, cluster=n % 10) for n in range(songs)])
    made = []
    for number in numbers:
        token = accounts.open_session(service, number)
        visit = accounts.visit(service, token)
        assert visit is not None
        made.append(Account(number, token, visit.csrf))
    store.close()
    return made


class Served:
    """The process that serves a study; it may be killed and started again.

    Parameters
    ----------
    folder
        Of the study.
    url
        Of its database.

    """

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port: int = taken.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        verb = ["caimap", "serve", str(self.folder), "--port", str(self.port)]
        verb += [] if self.url.startswith("sqlite") else ["--database", self.url]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "music_evals", *verb], stderr=log, stdout=log)
        begun = time.monotonic()
        while time.monotonic() < begun + _START_SEC:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.kill()
        raise MusicEvalsError(f"the server did not start; see {self.folder / 'server.log'}")

    def kill(self) -> None:
        """Kill the server, so that it can finish nothing (SIGKILL)."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """Start an empty PostgreSQL server on a socket in a folder, with its defaults for what is on the disk when.

    Raises
    ------
    MissingBackendError
        PostgreSQL or psycopg is not installed.

    """
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    binaries = found[-1] if found else Path(shutil.which("initdb") or "").parent
    try:
        import psycopg  # noqa: F401  (what SQLAlchemy will import)
    except ImportError as error:
        raise MissingBackendError("psycopg", "caimap", "a study in PostgreSQL") from error
    if not (binaries / "initdb").is_file():
        raise MissingBackendError("postgresql", "", "this", install="apt-get install postgresql")
    folder.mkdir()
    prefix: list[str] = []
    if os.geteuid() == 0:  # its programs refuse to run as root
        prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        shutil.chown(folder, "postgres", "postgres")
        folder.parent.chmod(0o755)
    initdb = [str(binaries / "initdb"), "-D", f"{folder}/data", "-U", "study", "-A", "trust", "-E", "UTF8"]
    subprocess.run([*prefix, *initdb], check=True, capture_output=True, cwd=folder)
    server = [*prefix, str(binaries / "pg_ctl"), "-D", f"{folder}/data", "-l", f"{folder}/log", "-w"]
    options = f"-k {folder} -c listen_addresses="
    subprocess.run([*server, "-o", options, "start"], check=True, capture_output=True, cwd=folder)
    try:
        yield f"postgresql://study@/postgres?host={folder}"
    finally:
        subprocess.run([*server, "-m", "immediate", "stop"], check=True, capture_output=True, cwd=folder)


@contextlib.contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """Give the URL of an empty database, ``"sqlite"`` or ``"postgresql"``."""
    if kind == "sqlite":
        yield sqlite_url(folder / "study.db")
        return
    with postgres(folder / "pg") as url:
        yield url
