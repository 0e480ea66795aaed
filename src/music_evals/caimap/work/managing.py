"""What administrators do: songs in, screening decided, spot checks, weeks closed, payments, progress, withdrawal."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from music_evals.annotations import DIMENSIONS
from music_evals.caimap import grades, ledger
from music_evals.caimap.machine import SONG, ForbiddenStepError
from music_evals.caimap.storage.tables import (
    LedgerRow,
    MessageRow,
    PersonRow,
    SongRow,
    TaskRow,
    WeekRow,
)
from music_evals.caimap.training import DISCUSSIONS
from music_evals.caimap.values import Description, FinishedSong, Song, Structure
from music_evals.caimap.work.annotating import HANDED_IN, compare_passes, pass_tasks, pay_task
from music_evals.caimap.work.consents import STAND_INS, consent_of, stand_in, stand_ins
from music_evals.caimap.work.desk import Desk, song_of, song_row
from music_evals.caimap.work.hiding import hidden_tasks, shown_entries
from music_evals.caimap.work.undoing import OPEN, cancel_open, discard, erase, take_back
from music_evals.caimap.work.weeks import earned_in, records
from music_evals.errors import InvalidInputError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = [
    "Progress",
    "add_finished",
    "add_songs",
    "check_new",
    "close_week",
    "decide",
    "decide_screening",
    "enter",
    "finished_songs",
    "ledger_of",
    "progress",
    "release",
    "say",
    "withdraw",
]


class Progress(NamedTuple):
    """How far a study is.

    Attributes
    ----------
    songs
        State -> number of songs.
    tasks
        (role of the annotator, state) -> number of tasks.
    owed_cents
        To everybody together.

    """

    songs: dict[str, int]
    tasks: dict[tuple[str, str], int]
    owed_cents: int


def check_new(desk: Desk, who: int, songs: Iterable[Song]) -> None:
    """Refuse songs that `add_songs` would refuse as the study stands, before their recordings are copied.

    Raises
    ------
    ForbiddenError, InvalidInputError
        As `add_songs`.

    """
    with desk.reading(who, "manage") as (session, _):
        known = set(session.scalars(select(SongRow.id)))
        for count, song in enumerate(songs, 1):
            _check_id(known, song, count)


def add_songs(desk: Desk, who: int, songs: Iterable[Song]) -> int:
    """Take songs into the study and open them; all of them or none.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    InvalidInputError
        A song of that id is there already, or comes twice.

    """
    with desk.writing(who, "manage") as (session, person):
        known = set(session.scalars(select(SongRow.id)))
        count = 0
        for count, song in enumerate(songs, 1):
            desk.move(session, _new_song(session, known, song, count), "open", person)
        return count


def add_finished(desk: Desk, who: int, songs: Iterable[FinishedSong]) -> int:
    """Take songs into the study that were annotated elsewhere; all of them or none.

    They are finished at once, in the name of two accounts that nobody can sign in to (`consents.STAND_INS`). Nothing of
    them is paid, graded or verified.

    Parameters
    ----------
    desk, who
        The study and the administrator.
    songs
        Whose people play no part.

    Returns
    -------
    int
        How many.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    InvalidInputError
        A song of that id is there already, or comes twice.

    """
    with desk.writing(who, "manage") as (session, person):
        known = set(session.scalars(select(SongRow.id)))
        others = {role: stand_in(desk, session, role) for role in STAND_INS}
        count = 0
        for count, finished in enumerate(songs, 1):
            row = _new_song(session, known, finished.song, count)
            structure = finished.structure.to_dict()
            row.accepted = {"structure": structure, "people": [others["professional"]], "consent": finished.consent}
            desk.move(session, row, "take_over", person)
            for role, said in (("professional", finished.professional), ("amateur", finished.amateur)):
                task = TaskRow(song=row.id, kind=role, number=1, person=others[role], assigned=desk.clock())
                task.result = said.to_dict()
                session.add(task)
                session.flush()
                desk.move(session, task, "take_over", person)
        return count


def _check_id(known: set[str], song: Song, count: int) -> None:
    if song.id in known:
        raise InvalidInputError(f"song {count}, {song.id!r}: there is one of that id; nothing was imported")
    known.add(song.id)


def _new_song(session: Session, known: set[str], song: Song, count: int) -> SongRow:
    _check_id(known, song, count)
    row = song_row(song)
    session.add(row)
    session.flush()
    return row


def decide_screening(desk: Desk, who: int, song: str, version: int, *, keep: bool) -> None:
    """Decide on a song that an annotator skipped: leave it out, or give it back to them.

    Whoever has handed in work on a song that is left out is paid for it; open tasks on it are cancelled.

    Raises
    ------
    ForbiddenError, ForbiddenStepError, StaleError
        No administrator, not screened, or decided by another one.

    """
    with desk.writing(who, "manage") as (session, person):
        row = desk.song(session, song, version)
        desk.move(session, row, "keep" if keep else "exclude", person)
        if keep:
            for task in pass_tasks(session, song, ("screened",)):
                desk.move(session, task, "resume")
        else:
            _let_go(desk, session, song)


def _let_go(desk: Desk, session: Session, song: str) -> None:
    """End all tasks of a song that is left out: what was handed in is accepted and paid, the rest is cancelled."""
    handed_in = ("submitted", "sampled")
    chosen = select(TaskRow).where(
        TaskRow.song == song, TaskRow.training.is_(False), TaskRow.state.in_((*OPEN, "screened", *handed_in))
    )
    for task in list(session.scalars(chosen.order_by(TaskRow.id))):
        is_done = task.state in handed_in
        desk.move(session, task, "accept" if is_done else "cancel")
        if is_done:
            pay_task(desk, session, task)


def decide(desk: Desk, who: int, song: str, version: int, *, returned: Sequence[str] = ()) -> None:
    """Spot-check a song: let it into the data set, or return descriptions to be made again.

    What a returned description was paid is taken back, as one that an inspector rejects is not paid.

    Parameters
    ----------
    desk, who, song, version
        As of `decide_screening`.
    returned
        Groups whose description is not good enough; none lets the song in.

    Raises
    ------
    ForbiddenError, ForbiddenStepError, StaleError
        No administrator, not ready, or decided by another one.
    InvalidInputError
        No such group.

    """
    if set(returned) - set(DIMENSIONS):
        raise InvalidInputError(
            f"descriptions are those of {' and '.join(DIMENSIONS)}, got {', '.join(returned)}", kind="kind_of_task"
        )
    with desk.writing(who, "manage") as (session, person):
        row = desk.song(session, song, version)
        desk.move(session, row, "return" if returned else "finish", person, returned=list(returned))
        for kind in returned:
            for task in pass_tasks(session, song, ("accepted",), kind):
                desk.move(session, task, "reopen", person)
                take_back(desk, session, task, "returned")


def close_week(desk: Desk, who: int, monday: dt.date) -> dict[int, grades.Week]:
    """Grade everybody for a week: rewards, penalties, exclusions, and the data of an excluded week discarded.

    What was decided in the week is graded, whenever it was handed in (`weeks.records`).

    Parameters
    ----------
    desk, who
        The study and its administrator.
    monday
        Of a week that is over.

    Returns
    -------
    dict
        Person -> week, of those who were judged or warned in it and whose week was not closed before.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    InvalidInputError
        No Monday, or the week is not over.

    """
    if monday.weekday() or monday > (desk.clock() - dt.timedelta(days=7)).date():
        raise InvalidInputError(f"a week begins on a Monday and is closed when it is over, got {monday}", kind="week")
    with desk.writing(who, "manage") as (session, person):
        closed = set(session.scalars(select(WeekRow.person).where(WeekRow.monday == monday.isoformat())))
        judged: dict[int, grades.Week] = {}
        of_week = records(session, monday)
        annotators = select(PersonRow).where(PersonRow.role.in_(("professional", "amateur")), ~PersonRow.withdrawn)
        for row in list(session.scalars(annotators.order_by(PersonRow.id).with_for_update(key_share=True))):
            record = of_week.get(row.id)
            if row.id in closed or record is None or not (record.accuracies or record.scores or record.warnings):
                continue
            judged[row.id] = found = grades.weekly(record.accuracies, record.scores, record.warnings)
            session.add(WeekRow(person=row.id, monday=monday.isoformat(), **found._asdict()))
            desk.note(session, person, "person", str(row.id), "grade", detail=dict(found._asdict(), week=str(monday)))
            entry = ledger.week_entry(
                row.id, [found.grade_a, found.grade_b], earned_in(session, row.id, monday),
                desk.settings(session).rates, monday.isoformat(),
            )  # fmt: skip
            if found.excluded:
                row.excluded = True
                cancel_open(desk, session, row.id)
                handed_in = select(TaskRow).where(TaskRow.id.in_(record.tasks), TaskRow.state.in_(HANDED_IN))
                discard(desk, session, list(session.scalars(handed_in)), paid_back=True)
            elif entry is not None and entry.cents:
                desk.pay(session, entry)
        return judged


def withdraw(desk: Desk, who: int, person: int) -> None:
    """Withdraw somebody: they can do nothing more, their texts leave the study, what they earned is theirs.

    What an annotator handed in is discarded and erased, its places open again. Songs whose structure an inspector
    settled wait for another inspector. Points that an inspector gave stay, since grades and pay of others rest on them;
    their remarks go. Drafts, playback events and messages are deleted. What stays: the account's name and number,
    ledger, warnings and grades, and the log of who did what when.

    Raises
    ------
    ForbiddenError
        `who` is neither the person nor an administrator.
    InvalidInputError
        There is no such person, it stands for people who annotated elsewhere, or it is the last administrator.

    """
    with desk.writing(who, "ask") as (session, acting):
        if who != person:
            desk.person(session, who, "manage")
        row = _leaving(session, person)
        if row is None:
            raise InvalidInputError(f"there is no person {person}", kind="no_person", found=person)
        if person in stand_ins(session).values():
            raise InvalidInputError(
                f"{row.name} is nobody of this study, and cannot withdraw", kind="stand_in", name=row.name
            )
        row.withdrawn, row.password_hash = True, ""
        desk.note(session, acting, "person", str(person), "withdraw")
        cancel_open(desk, session, person)
        handed_in = select(TaskRow).where(TaskRow.person == person, TaskRow.state.in_(HANDED_IN))
        discard(desk, session, list(session.scalars(handed_in)), paid_back=False)
        _redo_settled(desk, session, person)
        erase(session, person)


def _leaving(session: Session, person: int) -> PersonRow | None:
    """Return who withdraws, locked: with all administrators where it is one, since one of them has to stay."""
    row = session.get(PersonRow, person)
    if row is None:
        return None
    among = PersonRow.id == person
    if row.role == "administrator":
        among |= (PersonRow.role == "administrator") & PersonRow.withdrawn.is_(False)
    chosen = select(PersonRow).where(among).order_by(PersonRow.id).with_for_update(key_share=True)
    locked = {found.id: found for found in session.scalars(chosen.execution_options(populate_existing=True))}
    if row.role == "administrator" and len(locked) == 1:
        raise InvalidInputError(
            "the last administrator cannot withdraw; invite another one first", kind="last_administrator"
        )
    return locked[person]


def _redo_settled(desk: Desk, session: Session, person: int) -> None:
    """Take accepted structures that somebody had a hand in out of the songs, and compare the passes again."""
    rows = session.scalars(select(SongRow).where(SongRow.accepted.is_not(None)).order_by(SongRow.id))
    for name in [row.id for row in list(rows) if person in (row.accepted or {}).get("people", ())]:
        song = desk.song(session, name)
        song.accepted = None
        if not song.training and (song.state, "redo_structure") in SONG:
            desk.move(session, song, "redo_structure")
            compare_passes(desk, session, song)


def release(desk: Desk, who: int, number: int) -> None:
    """Take a task back from somebody who has not handed it in, so that its place is given to another person.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    ForbiddenStepError
        The task was handed in, is cancelled, or waits as a skipped song for a decision.

    """
    with desk.writing(who, "manage") as (session, person):
        row = desk.own_task(session, person, number)
        if row.state == "screened":
            raise ForbiddenStepError(
                "decide on the skipped song: keep it or leave it out",
                state=row.state,
                action="cancel",
                role=person.role,
            )
        desk.move(session, row, "cancel", person)


def enter(desk: Desk, who: int, entry: ledger.Entry) -> None:
    """Add an entry to the ledger by hand.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    InvalidInputError
        The entry breaks a rule of the ledger, or its person does not exist.

    """
    with desk.writing(who, "manage") as (session, person):
        if session.get(PersonRow, entry.person) is None:
            raise InvalidInputError(f"there is no person {entry.person}", kind="no_person", found=entry.person)
        desk.pay(session, entry)
        desk.note(session, person, "ledger", str(entry.person), entry.kind, detail={"cents": entry.cents})


def ledger_of(desk: Desk, who: int) -> list[ledger.Entry]:
    """List the entries of a person but those that are hidden (`hiding`), or for an administrator all of them.

    Raises
    ------
    ForbiddenError
        Nobody of that number may ask.

    """
    with desk.reading(who, "ask") as (session, person):
        chosen = select(LedgerRow).order_by(LedgerRow.id)
        if person.role != "administrator":
            chosen = chosen.where(LedgerRow.person == who, shown_entries(hidden_tasks(desk, session, who)))
        rows = session.scalars(chosen)
        return [ledger.Entry(row.person, row.kind, row.cents, row.reason, row.task, row.moment) for row in rows]


def progress(desk: Desk, who: int) -> Progress:
    """Return how far the study is; training is no part of it.

    Raises
    ------
    ForbiddenError
        The person is no administrator.

    """
    with desk.reading(who, "manage") as (session, _):
        songs = Counter[str](session.scalars(select(SongRow.state).where(SongRow.training.is_(False))))
        joined = select(PersonRow.role, TaskRow.state).join(PersonRow, PersonRow.id == TaskRow.person)
        joined = joined.where(TaskRow.training.is_(False))
        tasks = Counter((role, state) for role, state in session.execute(joined))
        owed = session.scalar(select(func.coalesce(func.sum(LedgerRow.cents), 0)))
        return Progress(dict(songs), dict(tasks), int(owed or 0))


def say(desk: Desk, who: int, content: str, *, thread: int | None = None, place: str = "") -> None:
    """Write into a feedback thread: one's own, or as an administrator any.

    Raises
    ------
    ForbiddenError
        The thread is another's.
    InvalidInputError
        Nothing was written, more than 2,000 characters, or the place is that of a discussion.

    """
    if not content.strip() or len(content) > 2000:
        raise InvalidInputError("write something, of at most 2,000 characters", kind="message", most=2000)
    if place.startswith(DISCUSSIONS):
        raise InvalidInputError(
            f"feedback is about a page, got {place!r}; what inspectors discuss has its own threads", kind="other_thread"
        )
    with desk.writing(who, "ask") as (session, _):
        thread = who if thread is None else thread
        if thread != who:
            desk.person(session, who, "manage")
            if session.get(PersonRow, thread) is None:
                raise InvalidInputError(f"there is no thread {thread}", kind="no_person", found=thread)
        session.add(
            MessageRow(thread=thread, author=who, content=content.strip(), place=place[:100], moment=desk.clock())
        )


def finished_songs(desk: Desk) -> list[FinishedSong]:
    """Return the songs that have entered the data set, for the export, with what those who worked on them agreed to.

    Raises
    ------
    InvalidInputError
        Somebody who worked on one of them has consented to nothing; they are named.

    """
    with desk.store.reading() as session:
        rows = session.scalars(select(SongRow).where(SongRow.state == "finished").order_by(SongRow.id))
        finished = [_finished(session, row) for row in list(rows)]
        people = {
            one.song.id: (*one.structure_people, one.professional_person, one.amateur_person)
            for one in finished
            if not one.consent  # what was taken over came with its own
        }
        consents = consent_of(session, people)
    return [dataclasses.replace(one, consent=one.consent or consents[one.song.id]) for one in finished]


def _finished(session: Session, row: SongRow) -> FinishedSong:
    professional, amateur = (
        pass_tasks(session, row.id, ("accepted",), kind)[0] for kind in ("professional", "amateur")
    )
    accepted = row.accepted or {}
    return FinishedSong(
        song=song_of(row),
        structure=Structure.from_dict(accepted["structure"]),
        professional=Description.from_dict(professional.result or {}),
        amateur=Description.from_dict(amateur.result or {}),
        structure_people=tuple(accepted["people"]),
        professional_person=professional.person,
        amateur_person=amateur.person,
        consent=accepted.get("consent", ""),
    )
