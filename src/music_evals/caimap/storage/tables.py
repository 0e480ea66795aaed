"""The tables of a study, as SQLAlchemy models.

The storage of the studies with people (`studies.storage`, one file a submission) is not enough here: a song passes
through the hands of many, two of them at once, and what each may do depends on what the others did. That needs
transactions; a submission of a study needs none.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from sqlalchemy import JSON, CheckConstraint, DateTime, ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

from music_evals.caimap.domain.machine import FIRST_SONG_STATE, FIRST_TASK_STATE, LIVE_TASK_STATES

APPEND_ONLY: Final = ("audit", "ledger")
"""Tables whose rows triggers keep from being changed or deleted."""

_LIVE: Final = f"state IN ({', '.join(repr(state) for state in sorted(LIVE_TASK_STATES))}) AND NOT training"


class Moment(TypeDecorator[dt.datetime]):
    """A moment in UTC; SQLite has no time zones."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: dt.datetime | None, dialect: Any) -> dt.datetime | None:  # noqa: ARG002
        """Write UTC without a zone."""
        return None if value is None else value.astimezone(dt.UTC).replace(tzinfo=None)

    def process_result_value(self, value: dt.datetime | None, dialect: Any) -> dt.datetime | None:  # noqa: ARG002
        """Read UTC."""
        return None if value is None else value.replace(tzinfo=dt.UTC)


class Base(DeclarativeBase):
    """Root of all tables."""

    type_annotation_map = {dict[str, Any]: JSON, list[Any]: JSON, dt.datetime: Moment}  # noqa: RUF012


class SettingRow(Base):
    """One setting of the study."""

    __tablename__ = "setting"
    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    value: Mapped[dict[str, Any]]


class PersonRow(Base):
    """Somebody with an account."""

    __tablename__ = "person"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(80), unique=True)
    role: Mapped[str] = mapped_column(String(20))
    password_hash: Mapped[str] = mapped_column(String(200), default="")
    language: Mapped[str] = mapped_column(String(2), default="")  # empty: as the browser asks
    consent: Mapped[str] = mapped_column(String(40), default="")
    excluded: Mapped[bool] = mapped_column(default=False)
    withdrawn: Mapped[bool] = mapped_column(default=False)
    failures: Mapped[int] = mapped_column(default=0)  # it and the next: of versions that locked accounts
    locked_until: Mapped[dt.datetime | None]
    created: Mapped[dt.datetime]


class InviteRow(Base):
    """An invitation, by the hash of its token."""

    __tablename__ = "invite"
    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    role: Mapped[str] = mapped_column(String(20))
    expires: Mapped[dt.datetime]
    used_by: Mapped[int | None] = mapped_column(ForeignKey("person.id"))


class SessionRow(Base):
    """Somebody who is signed in, by the hash of their token."""

    __tablename__ = "session"
    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    person: Mapped[int] = mapped_column(ForeignKey("person.id"), index=True)
    csrf: Mapped[str] = mapped_column(String(64))
    expires: Mapped[dt.datetime]


class IdentityRow(Base):
    """An account of a provider by which somebody signs in; its subject never changes, names do."""

    __tablename__ = "identity"
    provider: Mapped[str] = mapped_column(String(200), primary_key=True)
    subject: Mapped[str] = mapped_column(String(255), primary_key=True)
    person: Mapped[int] = mapped_column(ForeignKey("person.id"))
    __table_args__ = (UniqueConstraint("person", "provider", name="identity_once"),)


class AttemptRow(Base):
    """A sign-in by a provider that has begun, by the hash of the secret that its browser keeps; it is used once."""

    __tablename__ = "attempt"
    secret_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    purpose: Mapped[str] = mapped_column(String(10))
    session: Mapped[str] = mapped_column(String(64), default="")
    invite: Mapped[str] = mapped_column(String(64), default="")
    name: Mapped[str] = mapped_column(String(80), default="")
    consent: Mapped[str] = mapped_column(String(40), default="")
    expires: Mapped[dt.datetime]


class SongRow(Base):
    """A song, its state, and the structure that was accepted."""

    __tablename__ = "song"
    id: Mapped[str] = mapped_column(String(120), primary_key=True)
    content: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(String(20), default=FIRST_SONG_STATE, index=True)
    accepted: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    training: Mapped[bool] = mapped_column(default=False)
    version: Mapped[int] = mapped_column()
    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012  (SQLAlchemy's form)


class TaskRow(Base):
    """A task, its draft and what was submitted."""

    __tablename__ = "task"
    id: Mapped[int] = mapped_column(primary_key=True)
    song: Mapped[str] = mapped_column(ForeignKey("song.id"), index=True)
    kind: Mapped[str] = mapped_column(String(20))
    number: Mapped[int]
    person: Mapped[int] = mapped_column(ForeignKey("person.id"), index=True)
    state: Mapped[str] = mapped_column(String(20), default=FIRST_TASK_STATE)
    assigned: Mapped[dt.datetime]
    opened: Mapped[dt.datetime | None]
    submitted: Mapped[dt.datetime | None]
    training: Mapped[bool] = mapped_column(default=False)
    attempt: Mapped[int] = mapped_column(default=1)
    draft: Mapped[dict[str, Any]] = mapped_column(default=dict)
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    agreement: Mapped[float | None]
    note: Mapped[str] = mapped_column(String(1000), default="")
    version: Mapped[int] = mapped_column()
    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012  (SQLAlchemy's form)
    __table_args__ = (
        UniqueConstraint("song", "kind", "person", name="task_once"),
        # whoever asks at the same moment, a place is given once
        Index(
            "task_place", "song", "kind", "number", unique=True, sqlite_where=text(_LIVE), postgresql_where=text(_LIVE)
        ),
    )


class EventRow(Base):
    """A playback event of a task."""

    __tablename__ = "event"
    id: Mapped[int] = mapped_column(primary_key=True)
    task: Mapped[int] = mapped_column(ForeignKey("task.id"), index=True)
    attempt: Mapped[int]
    kind: Mapped[str] = mapped_column(String(10))
    position_sec: Mapped[float]
    received_sec: Mapped[float]
    value: Mapped[float]


class SheetRow(Base):
    """The points of an inspector; a task is scored once by each, for each purpose."""

    __tablename__ = "sheet"
    id: Mapped[int] = mapped_column(primary_key=True)
    task: Mapped[int] = mapped_column(ForeignKey("task.id"), index=True)
    inspector: Mapped[int] = mapped_column(ForeignKey("person.id"))
    purpose: Mapped[str] = mapped_column(String(12), default="assurance")
    points: Mapped[list[Any]]
    total: Mapped[float]
    remark: Mapped[str] = mapped_column(String(1000), default="")
    moment: Mapped[dt.datetime]
    __table_args__ = (UniqueConstraint("task", "inspector", "purpose", name="sheet_once"),)


class WarningRow(Base):
    """A sign of superficial work."""

    __tablename__ = "warning"
    id: Mapped[int] = mapped_column(primary_key=True)
    person: Mapped[int] = mapped_column(ForeignKey("person.id"), index=True)
    task: Mapped[int] = mapped_column(ForeignKey("task.id"))
    kind: Mapped[str] = mapped_column(String(20))
    moment: Mapped[dt.datetime]


class WeekRow(Base):
    """A week of a person that was closed."""

    __tablename__ = "week"
    person: Mapped[int] = mapped_column(ForeignKey("person.id"), primary_key=True)
    monday: Mapped[str] = mapped_column(String(10), primary_key=True)
    grade_a: Mapped[str] = mapped_column(String(3))
    grade_b: Mapped[str] = mapped_column(String(3))
    excluded: Mapped[bool]


class LedgerRow(Base):
    """One entry of the ledger; never changed."""

    __tablename__ = "ledger"
    id: Mapped[int] = mapped_column(primary_key=True)
    person: Mapped[int] = mapped_column(ForeignKey("person.id"), index=True)
    kind: Mapped[str] = mapped_column(String(12))
    cents: Mapped[int]
    reason: Mapped[str] = mapped_column(String(200))
    task: Mapped[int | None] = mapped_column(ForeignKey("task.id"))
    moment: Mapped[dt.datetime]
    __table_args__ = (CheckConstraint("reason <> ''", name="ledger_reason"),)


class MessageRow(Base):
    """One message of a feedback thread, which is that of a person."""

    __tablename__ = "message"
    id: Mapped[int] = mapped_column(primary_key=True)
    thread: Mapped[int] = mapped_column(ForeignKey("person.id"), index=True)
    author: Mapped[int] = mapped_column(ForeignKey("person.id"))
    content: Mapped[str] = mapped_column(String(2000))
    place: Mapped[str] = mapped_column(String(100), default="")
    moment: Mapped[dt.datetime]


class AuditRow(Base):
    """What was done, by whom; never changed."""

    __tablename__ = "audit"
    id: Mapped[int] = mapped_column(primary_key=True)
    moment: Mapped[dt.datetime]
    person: Mapped[int | None]
    role: Mapped[str] = mapped_column(String(20))
    kind: Mapped[str] = mapped_column(String(10))
    object: Mapped[str] = mapped_column(String(120))
    action: Mapped[str] = mapped_column(String(30))
    before: Mapped[str] = mapped_column(String(20), default="")
    after: Mapped[str] = mapped_column(String(20), default="")
    detail: Mapped[dict[str, Any]] = mapped_column(default=dict)
