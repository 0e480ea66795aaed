"""Backups: the database, the recordings and the key of the exports, as one folder with the hash of each file.

A backup is written whole or not at all, while the study is served; it is checked against its manifest before anything
of it is brought back, and comes back into a folder (and, with PostgreSQL, a database) that is empty: nothing of an
older study can mix with it, neither its rows nor what SQLite had not yet moved out of its log.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy import inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DatabaseError

from music_evals.caimap.storage.store import Store, check_schema, sqlite_file
from music_evals.errors import (
    BackendError,
    InvalidInputError,
    MissingBackendError,
    NoDataError,
    OccupiedError,
    OutputError,
    UnreadableFileError,
)
from music_evals.files import folder_written_whole, parse_json, private_folder

__all__ = ["MANIFEST", "Backup", "backup", "restore"]

MANIFEST: Final = "manifest.json"
"""File of a backup that names the others, with the SHA-256 and the size of each."""

_FORM: Final = 1
_AUDIO: Final = "audio"
_KEY: Final = "export.key"
_DATABASES: Final = {"sqlite": "study.db", "postgresql": "study.dump"}


class Backup(NamedTuple):
    """What a backup holds."""

    folder: Path  # where it is
    files: int  # how many, without the manifest
    n_bytes: int  # of all of them
    left_out: tuple[str, ...]  # names in the study's folder that a study does not need, and that were not copied


def backup(study: str | os.PathLike[str], url: str, target: str | os.PathLike[str]) -> Backup:
    """Copy a study into a new or empty folder, while it is served.

    Its database is copied first, then its recordings and the key of its exports: recordings come into a study before
    the rows that name them and are never changed, so that the copy has all that its database names.

    Raises `NoDataError` without such a study; `OutputError` where the folder holds something already, lies in the
    study, or cannot be written; `UnreadableFileError` where a newer version than this one wrote the study;
    `MissingBackendError` or `BackendError` where the study is kept in PostgreSQL, and ``pg_dump`` is not installed or
    fails.
    """
    source, folder, kind = Path(study), Path(target), _kind(url)
    _check_empty(folder, "a backup")
    if folder.resolve().is_relative_to(source.resolve()):
        raise OccupiedError(f"{folder} lies in the study itself; choose a folder outside of {source}")
    with folder_written_whole(folder) as part:
        private_folder(part)  # it holds the key, and what people wrote
        _dump(url, part / _DATABASES[kind])
        for name in _study_files(source):
            _copy_file(source / name, part / name)
        files = {name: _facts(part / name) for name in _files_below(part)}
        manifest = {"form": _FORM, "database": kind, "files": files}
        (part / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1), encoding="utf-8")
        _sync(part / MANIFEST)
        _close_to_others(part)
    return Backup(folder, len(files), sum(facts["bytes"] for facts in files.values()), _left_out(source))


def restore(copy: str | os.PathLike[str], study: str | os.PathLike[str], url: str) -> Backup:
    """Restore a copy that `backup` made into an empty place: all of it or nothing.

    The folder is new or empty; the database is of the kind that was copied, and empty where it is PostgreSQL's.

    Raises `OutputError` where something is there already; `UnreadableFileError` where the copy is no backup, is not as
    it was written, or is that of a study of a newer version; `InvalidInputError` where it is that of the other kind of
    database; `MissingBackendError` or `BackendError` where ``pg_restore`` is not installed or fails.
    """
    source, target, kind = Path(copy), Path(study), _kind(url)
    files = _checked(source, kind)
    _check_empty(target, "a study", url)
    with folder_written_whole(target) as part:
        private_folder(part)
        for name in files:
            if name not in _DATABASES.values() or kind == "sqlite":
                _copy_file(source / name, part / name)
        if kind == "postgresql":  # the last thing: it is all or nothing too
            how = ("--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges")
            _run("pg_restore", *how, str(source / _DATABASES[kind]), url=url)
        _close_to_others(part)
    return Backup(target, len(files), sum(facts["bytes"] for facts in files.values()), ())


# what must not be there, and what must


def _kind(url: str) -> str:
    kind = make_url(url).get_backend_name()
    if kind not in _DATABASES:
        raise InvalidInputError(f"a study is kept in SQLite or PostgreSQL, not in {kind}")
    return kind


def _check_empty(folder: Path, label: str, url: str = "") -> None:
    there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else [folder.name] * folder.exists()
    if url and _kind(url) == "postgresql":
        there += [f"the table {name}" for name in _tables(url)]
    elif url and sqlite_file(url).resolve() != (folder / _DATABASES["sqlite"]).resolve():
        raise InvalidInputError(f"a study in SQLite comes back as {folder / _DATABASES['sqlite']}, not elsewhere")
    if there:
        raise OccupiedError(
            f"{folder}: {label} is written where nothing is, and there is {', '.join(there[:5])}"
            f"{' and more' * (len(there) > 5)}; choose another place, or move all of it away"
        )


def _tables(url: str) -> list[str]:
    """Name the tables of a study, which a version made that is not newer than this one."""
    store = Store(url)
    try:
        with store.engine.connect() as connection:
            names = sorted(inspect(connection).get_table_names())
            if "alembic_version" in names:
                check_schema(connection.scalar(text("SELECT version_num FROM alembic_version")), str(store.engine.url))
            return names
    except DatabaseError as error:
        raise OutputError(f"the database cannot be opened ({error.orig})") from error
    finally:
        store.close()


def _checked(source: Path, kind: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the files of a backup, each as its manifest has it."""
    try:
        manifest = parse_json((source / MANIFEST).read_bytes(), MANIFEST)
        form, database, files = manifest["form"], manifest["database"], dict(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableFileError(f"{source}: no backup of a study, or one that was not finished ({error})") from error
    if form != _FORM:
        raise UnreadableFileError(f"{source}: a backup of form {form!r}; this version reads {_FORM}")
    if database != kind:
        raise InvalidInputError(f"{source} is the backup of a study in {database}; it cannot come back into {kind}")
    there = set(_files_below(source)) - {MANIFEST}
    if wrong := sorted(there ^ {*files, _DATABASES[kind]}):
        raise UnreadableFileError(f"{source}: files are missing or too many: {', '.join(wrong[:5])}")
    changed = [name for name in files if _facts(source / name) != files[name]]
    if changed:
        raise UnreadableFileError(f"{source}: damaged; not as they were written: {', '.join(changed[:5])}")
    (_check_sqlite if kind == "sqlite" else _check_dump)(source / _DATABASES[kind])
    return files


def _check_sqlite(copy: Path) -> None:
    try:
        with contextlib.closing(sqlite3.connect(f"{copy.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            state = connection.execute("PRAGMA integrity_check").fetchone()[0]
            revision = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise UnreadableFileError(f"{copy}: no study ({error})") from error
    if state != "ok":
        raise UnreadableFileError(f"{copy}: damaged ({state})")
    check_schema(revision and revision[0], str(copy))


def _check_dump(copy: Path) -> None:
    dump = _run("pg_restore", "--data-only", "--table=alembic_version", "--file=-", str(copy))
    if match := re.search(r"^COPY \S*alembic_version .*\n(.+)$", dump, re.MULTILINE):
        check_schema(match[1], str(copy))


# files


def _study_files(source: Path) -> Iterator[str]:
    """Name the files of a study beside its database."""
    if (source / _AUDIO).is_dir():
        # an import may be writing: its files have other names until they are whole
        yield from (f"{_AUDIO}/{name}" for name in _files_below(source / _AUDIO) if not name.endswith(".part"))
    if (source / _KEY).is_file():
        yield _KEY


def _left_out(source: Path) -> tuple[str, ...]:
    known = {_AUDIO, _KEY, *(_DATABASES["sqlite"] + end for end in ("", "-wal", "-shm"))}
    return tuple(sorted(path.name for path in source.iterdir() if path.name not in known)) if source.is_dir() else ()


def _files_below(folder: Path) -> list[str]:
    paths = [Path(above, name) for above, _, names in os.walk(folder, followlinks=True) for name in names]
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def _close_to_others(folder: Path) -> None:
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o700 if place.is_dir() else 0o600)


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    _sync(target)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _facts(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": file.tell()}


# databases


def _dump(url: str, target: Path) -> None:
    source = Path() if _kind(url) == "postgresql" else sqlite_file(url)
    if not source.exists() or not _tables(url):
        raise NoDataError(f"{make_url(url)}: there is no study; make one with caimap init")
    if _kind(url) == "postgresql":
        _run("pg_dump", "-Fc", "--no-owner", "--no-privileges", f"--file={target}", url=url)
        _sync(target)
        return
    with contextlib.closing(sqlite3.connect(source)) as ours, contextlib.closing(sqlite3.connect(target)) as theirs:
        ours.backup(theirs)
        theirs.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
    _sync(target)


def _run(program: str, *arguments: str, url: str = "") -> str:
    """Run a program of PostgreSQL, perhaps on a database whose password stands in no list; return what it says."""
    executable = shutil.which(program)
    if executable is None:
        raise MissingBackendError(
            program, "", "the backup of a study in PostgreSQL", install="apt-get install postgresql-client"
        )
    environment, command = dict(os.environ), [executable, "--no-password"]
    if url:
        parsed = make_url(url)
        address = parsed.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
        environment |= {"PGPASSWORD": str(parsed.password)} if parsed.password else {}
        command.append(f"--dbname={address}")
    process = subprocess.run([*command, *arguments], env=environment, capture_output=True, check=False)  # noqa: S603  (no shell)
    if process.returncode:
        message = process.stderr.decode(errors="replace").strip()
        raise BackendError(f"{program} ended with {process.returncode}: {message}")
    return process.stdout.decode(errors="replace")
