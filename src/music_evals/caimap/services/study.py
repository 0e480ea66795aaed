"""The study service: clock, settings, access checks, changes of state with their audit log, rows as values."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sqlalchemy import func, select

from music_evals.caimap.domain import assignment, assurance, ledger
from music_evals.caimap.domain.machine import SONG, SYSTEM, TASK, ForbiddenError, check_right, may_open, step
from music_evals.caimap.domain.values import Person, Song, Task, TimedLine
from music_evals.caimap.storage.store import READS, StaleError, Store
from music_evals.caimap.storage.tables import AuditRow, LedgerRow, PersonRow, SettingRow, SongRow, TaskRow, WeekRow
from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidInputError, UnknownNameError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["Settings", "StudyService", "person_of", "song_of", "song_row", "steady_clock", "task_of", "utc_now"]

__getattr__ = module_getattr(__name__, {"Desk": "StudyService"})


def utc_now() -> dt.datetime:
    """Return the moment, in UTC."""
    return dt.datetime.now(dt.UTC)


def steady_clock(
    system: Callable[[], dt.datetime] = utc_now, steady_sec: Callable[[], float] = time.monotonic
) -> Callable[[], dt.datetime]:
    """Return a clock in UTC that begins with the system's and then counts seconds: no step of that one shows."""
    began, since_sec = system(), steady_sec()
    return lambda: began + dt.timedelta(seconds=steady_sec() - since_sec)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a study sets once.

    The seed is of the sample of descriptions and of the order in which songs are given out; it is kept from annotators:
    who knows it knows the sample. `consent` is the version of the text that people consent to; who accepts an
    invitation keeps the version of that day. Raises `InvalidInputError` where `share` is refused by
    `assurance.block_of`, or `congruent_share` lies outside of 0 to 1.
    """

    seed: int = 0
    share: float = assurance.SHARE  # of descriptions that are scored, from 0 to 1
    pass_gap_hours: float = assignment.PASS_GAP.total_seconds() / 3600  # between the two passes of a structure
    consent: str = "1"  # version of the text that people consent to; not empty
    release_days: float = assignment.IDLE.total_seconds() / 86400  # without work on a task; then others get its place
    rates: ledger.Rates = ledger.Rates()  # noqa: RUF009  (a tuple: what is paid)
    congruent_share: float = assurance.SHARE  # of songs with equal passes that an inspector sees all the same, 0 to 1

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InvalidInputError(f"the seed must be 0 or more, got {self.seed}")
        if not 0 <= self.congruent_share <= 1:
            raise InvalidInputError(f"the share must lie between 0 and 1, got {self.congruent_share}")
        assurance.block_of(self.share)  # refused here, and not when somebody hands the first description in

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**dataclasses.asdict(self), "rates": self.rates._asdict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Settings:
        """Read what `to_dict` writes."""
        return cls(**{**plain, "rates": ledger.Rates(**plain["rates"])})


_SETTINGS: Final = "study"
_MAX_CONSENT: Final = 40


class StudyService:
    """A study that is open for work: its store, its clock, and who may do what; the tables of the store exist.

    The clock gives the moment, in UTC; it is a `steady_clock` if left out. One that stands in a week that was closed is
    behind: the time goes on from the end of that week, so that what is decided now is graded.
    """

    def __init__(self, store: Store, clock: Callable[[], dt.datetime] | None = None) -> None:
        self.store = store
        base_clock = clock or steady_clock()
        with store.reading() as session:
            closed = session.scalar(select(func.max(WeekRow.monday)))
        over = dt.datetime.fromisoformat(f"{closed or '1970-01-01'}T00:00Z") + dt.timedelta(days=7)
        behind = max(over - base_clock(), dt.timedelta())
        self.clock: Callable[[], dt.datetime] = (lambda: base_clock() + behind) if behind else base_clock

    def configure(self, settings: Settings) -> None:
        """Write the settings of a study.

        Raises `InvalidInputError`: `consent` is empty or too long.
        """
        if not settings.consent.strip() or len(settings.consent) > _MAX_CONSENT:
            raise InvalidInputError(
                f"`consent` must name a version of the text that people consent to, in 1 to {_MAX_CONSENT} characters, "
                f"got {settings.consent!r:.80}"
            )
        with self.store.writing() as session:
            session.merge(SettingRow(name=_SETTINGS, value=settings.to_dict()))

    def settings(self, session: Session) -> Settings:
        """Return the settings of the study; the defaults where none were written."""
        row = session.get(SettingRow, _SETTINGS)
        return Settings() if row is None else Settings.from_dict(row.value)

    def rng(self, session: Session, *numbers: int) -> np.random.Generator:
        """Return a generator that follows from the seed of the study and the numbers of the occasion."""
        return np.random.default_rng([self.settings(session).seed, *numbers])

    # access

    @contextlib.contextmanager
    def reading(self, who: int, right: str) -> Iterator[tuple[Session, Person]]:
        """Read as somebody who has a right: `Store.reading`, and who acts as `person` returns them."""
        with self.store.reading() as session:
            yield session, self.person(session, who, right)

    @contextlib.contextmanager
    def writing(self, who: int, right: str, *, locked: bool = False) -> Iterator[tuple[Session, Person]]:
        """Write as somebody who has a right: `Store.writing`, and who acts as `person` returns them."""
        with self.store.writing() as session:
            yield session, self.person(session, who, right, locked=locked)

    def person(self, session: Session, number: int, right: str, *, locked: bool = False) -> Person:
        """Return who acts; locked for the transaction where what they do must not cross their own withdrawal.

        Raises `ForbiddenError`: they do not have the right, or there is no such person.
        """
        lock = {"key_share": True} if locked else None  # entries of the ledger may name somebody who is locked
        row = session.get(PersonRow, number, with_for_update=lock, populate_existing=locked)
        if row is None:
            raise ForbiddenError("sign in first", kind="signed_out")
        person = person_of(row)
        check_right(person, right)
        return person

    def own_task(self, session: Session, person: Person, number: int, version: int | None = None) -> TaskRow:
        """Return a task that this person may open, its song locked for the transaction where it writes.

        Raises `ForbiddenError` where it is somebody else's or does not exist, without saying which; `StaleError` where
        it has changed since the page was made, or its author has handed it in.
        """
        row = session.get(TaskRow, number)
        if row is None or not may_open(person, task_of(row)):
            raise ForbiddenError("this task is not yours", kind="task_not_yours")
        self.song(session, row.song)
        session.refresh(row)
        is_over = row.person == person.id and row.state not in {"assigned", "working"}
        if version is not None and (is_over or row.version != version):
            raise StaleError(
                "this task has changed since the page was loaded; what you wrote is still on the page",
                kind="task_changed",
            )
        return row

    @staticmethod
    def song(session: Session, name: str, version: int | None = None) -> SongRow:
        """Return a song, locked for the transaction where it writes.

        Raises `UnknownNameError`: no song has that id; `StaleError`: it has changed since the page was made.
        """
        writes = READS not in session.info
        row = session.get(SongRow, name, with_for_update=writes, populate_existing=writes)
        if row is None:
            raise UnknownNameError("song", name, ())
        if version is not None and row.version != version:
            raise StaleError(
                "conflict: this song was changed by another user; what you wrote is still on the page",
                kind="song_changed",
            )
        return row

    # changes

    def move(
        self, session: Session, row: SongRow | TaskRow, action: str, person: Person | None = None, **detail: Any
    ) -> None:
        """Take a step of the table, as a person or, without one, as the platform, and write it down.

        Raises `ForbiddenStepError`: the table does not have it.
        """
        kind, machine = ("song", SONG) if isinstance(row, SongRow) else ("task", TASK)
        role = SYSTEM if person is None else person.role
        before = row.state
        row.state = step(machine, before, action, role)
        self.note(session, person, kind, str(row.id), action, before=before, after=row.state, detail=detail)
        session.flush()

    def note(
        self,
        session: Session,
        person: Person | None,
        kind: str,
        name: str,
        action: str,
        *,
        before: str = "",
        after: str = "",
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Write down what was done."""
        session.add(
            AuditRow(
                moment=self.clock(),
                person=None if person is None else person.id,
                role=SYSTEM if person is None else person.role,
                kind=kind,
                object=name,
                action=action,
                before=before,
                after=after,
                detail=dict(detail or {}),
            )
        )

    def pay(self, session: Session, entry: ledger.Entry) -> None:
        """Add an entry to the ledger."""
        entry.checked()
        session.add(LedgerRow(**entry._replace(moment=self.clock())._asdict()))


def person_of(row: PersonRow) -> Person:
    """Return a person as a value."""
    return Person(row.id, row.role, row.excluded, row.withdrawn)


def task_of(row: TaskRow) -> Task:
    """Return a task as a value."""
    return Task(**{field.name: getattr(row, field.name) for field in dataclasses.fields(Task)})


def song_of(row: SongRow) -> Song:
    """Return a song as a value."""
    plain = dict(row.content)
    timed: dict[str, Any] = {
        name: tuple(TimedLine(**line) for line in plain.pop(name, ())) for name in ("timed_lyrics", "timed_sections")
    }
    tuples: dict[str, Any] = {name: tuple(plain.pop(name)) for name in ("lines", "artist", "rhymes")}
    return Song(**plain, **tuples, **timed)


def song_row(song: Song, *, training: bool = False) -> SongRow:
    """Return the row of a song that comes in."""
    return SongRow(id=song.id, content=dataclasses.asdict(song), training=training)
