"""What administrators do: songs in, screening, spot checks, weeks closed, payments, progress, withdrawal, lexica."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import func, select

from music_evals.annotations import DIMENSIONS
from music_evals.caimap.domain import grades, ledger, lexica
from music_evals.caimap.domain.assurance import DISCUSSIONS
from music_evals.caimap.domain.machine import SONG, ForbiddenStepError
from music_evals.caimap.domain.values import Description, FinishedSong, Song, Structure
from music_evals.caimap.services.accounts import STAND_INS, consent_of, stand_in, stand_ins
from music_evals.caimap.services.annotating import HANDED_IN, compare_passes, pass_tasks, pay_task
from music_evals.caimap.services.people import earned_in, records
from music_evals.caimap.services.study import StudyService, song_of, song_row
from music_evals.caimap.services.tasks import OPEN, cancel_open, discard, erase, hidden_tasks, shown_entries, take_back
from music_evals.caimap.storage.tables import LedgerRow, MessageRow, PersonRow, SettingRow, SongRow, TaskRow, WeekRow
from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidInputError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__getattr__ = module_getattr(__name__, {"decide": "review_song", "enter": "add_ledger_entry", "say": "post_message"})


class Progress(NamedTuple):
    """How far a study is."""

    songs: dict[str, int]  # state -> number of songs
    tasks: dict[tuple[str, str], int]  # (role of the annotator, state) -> number of tasks
    owed_cents: int  # to everybody together


def check_new(service: StudyService, who: int, songs: Iterable[Song]) -> None:
    """Refuse songs that `add_songs` would refuse as the study stands, before their recordings are copied."""
    with service.reading(who, "manage") as (session, _):
        known = set(session.scalars(select(SongRow.id)))
        for count, song in enumerate(songs, 1):
            _check_id(known, song, count)


def add_songs(service: StudyService, who: int, songs: Iterable[Song]) -> int:
    """Take songs into the study and open them; all of them or none."""
    with service.writing(who, "manage") as (session, person):
        known = set(session.scalars(select(SongRow.id)))
        count = 0
        for count, song in enumerate(songs, 1):
            service.move(session, _new_song(session, known, song, count), "open", person)
        return count


def add_finished(service: StudyService, who: int, songs: Iterable[FinishedSong]) -> int:
    """Take songs into the study that were annotated elsewhere; all of them or none."""
    with service.writing(who, "manage") as (session, person):
        known = set(session.scalars(select(SongRow.id)))
        others = {role: stand_in(service, session, role) for role in STAND_INS}
        count = 0
        for count, finished in enumerate(songs, 1):
            row = _new_song(session, known, finished.song, count)
            structure = finished.structure.to_dict()
            row.accepted = {"structure": structure, "people": [others["professional"]], "consent": finished.consent}
            service.move(session, row, "take_over", person)
            for role, description in (("professional", finished.professional), ("amateur", finished.amateur)):
                task = TaskRow(song=row.id, kind=role, number=1, person=others[role], assigned=service.clock())
                task.result = description.to_dict()
                session.add(task)
                session.flush()
                service.move(session, task, "take_over", person)
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


def decide_screening(service: StudyService, who: int, song: str, version: int, *, keep: bool) -> None:
    """Decide on a song that an annotator skipped: leave it out, or give it back to them."""
    with service.writing(who, "manage") as (session, person):
        row = service.song(session, song, version)
        service.move(session, row, "keep" if keep else "exclude", person)
        if keep:
            for task in pass_tasks(session, song, ("screened",)):
                service.move(session, task, "resume")
        else:
            # end all tasks of a song that is left out: what was handed in is accepted and paid, the rest is cancelled
            handed_in = ("submitted", "sampled")
            chosen = select(TaskRow).where(
                TaskRow.song == song, TaskRow.training.is_(False), TaskRow.state.in_((*OPEN, "screened", *handed_in))
            )
            for left in list(session.scalars(chosen.order_by(TaskRow.id))):
                is_done = left.state in handed_in
                service.move(session, left, "accept" if is_done else "cancel")
                if is_done:
                    pay_task(service, session, left)


def review_song(service: StudyService, who: int, song: str, version: int, *, returned: Sequence[str] = ()) -> None:
    """Spot-check a song: let it into the data set, or return descriptions to be made again."""
    if set(returned) - set(DIMENSIONS):
        raise InvalidInputError(
            f"descriptions are those of {' and '.join(DIMENSIONS)}, got {', '.join(returned)}", kind="kind_of_task"
        )
    with service.writing(who, "manage") as (session, person):
        row = service.song(session, song, version)
        service.move(session, row, "return" if returned else "finish", person, returned=list(returned))
        for kind in returned:
            for task in pass_tasks(session, song, ("accepted",), kind):
                service.move(session, task, "reopen", person)
                take_back(service, session, task, "returned")


def close_week(service: StudyService, who: int, monday: dt.date) -> dict[int, grades.Week]:
    """Grade everybody for a week: rewards, penalties, exclusions, and the data of an excluded week discarded."""
    if monday.weekday() or monday > (service.clock() - dt.timedelta(days=7)).date():
        raise InvalidInputError(f"a week begins on a Monday and is closed when it is over, got {monday}", kind="week")
    with service.writing(who, "manage") as (session, person):
        closed = set(session.scalars(select(WeekRow.person).where(WeekRow.monday == monday.isoformat())))
        weeks: dict[int, grades.Week] = {}
        of_week = records(session, monday)
        annotators = select(PersonRow).where(PersonRow.role.in_(("professional", "amateur")), ~PersonRow.withdrawn)
        for row in list(session.scalars(annotators.order_by(PersonRow.id).with_for_update(key_share=True))):
            record = of_week.get(row.id)
            if row.id in closed or record is None or not (record.accuracies or record.scores or record.warnings):
                continue
            weeks[row.id] = week = grades.weekly(record.accuracies, record.scores, record.warnings)
            session.add(WeekRow(person=row.id, monday=monday.isoformat(), **week._asdict()))
            service.note(session, person, "person", str(row.id), "grade", detail=dict(week._asdict(), week=str(monday)))
            entry = ledger.week_entry(
                row.id, [week.grade_a, week.grade_b], earned_in(session, row.id, monday),
                service.settings(session).rates, monday.isoformat(),
            )  # fmt: skip
            if week.excluded:
                row.excluded = True
                cancel_open(service, session, row.id)
                handed_in = select(TaskRow).where(TaskRow.id.in_(record.tasks), TaskRow.state.in_(HANDED_IN))
                discard(service, session, list(session.scalars(handed_in)), paid_back=True)
            elif entry is not None and entry.cents:
                service.pay(session, entry)
        return weeks


def withdraw(service: StudyService, who: int, person: int) -> None:
    """Deactivate an account, delete its texts, keep its earnings.

    Annotations are discarded and erased; others get their tasks. Songs whose structure an inspector settled wait for
    another inspector. Points that an inspector gave stay, since grades and pay of others depend on them; their remarks
    are deleted, as are drafts, playback events and messages. What stays: the name and number of the account, ledger,
    warnings and grades, and the audit log.
    """
    with service.writing(who, "ask") as (session, acting):
        if who != person:
            service.person(session, who, "manage")
        row = _leaving(session, person)
        if row is None:
            raise InvalidInputError(f"there is no person {person}", kind="no_person", found=person)
        if person in stand_ins(session).values():
            raise InvalidInputError(
                f"{row.name} is nobody of this study, and cannot withdraw", kind="stand_in", name=row.name
            )
        row.withdrawn, row.password_hash = True, ""
        service.note(session, acting, "person", str(person), "withdraw")
        cancel_open(service, session, person)
        handed_in = select(TaskRow).where(TaskRow.person == person, TaskRow.state.in_(HANDED_IN))
        discard(service, session, list(session.scalars(handed_in)), paid_back=False)
        _redo_settled(service, session, person)
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
    locked = {
        person_row.id: person_row for person_row in session.scalars(chosen.execution_options(populate_existing=True))
    }
    if row.role == "administrator" and len(locked) == 1:
        raise InvalidInputError(
            "the last administrator cannot withdraw; invite another one first", kind="last_administrator"
        )
    return locked[person]


def _redo_settled(service: StudyService, session: Session, person: int) -> None:
    """Take accepted structures that somebody had a hand in out of the songs, and compare the passes again."""
    rows = session.scalars(select(SongRow).where(SongRow.accepted.is_not(None)).order_by(SongRow.id))
    for name in [row.id for row in list(rows) if person in (row.accepted or {}).get("people", ())]:
        song = service.song(session, name)
        song.accepted = None
        if not song.training and (song.state, "redo_structure") in SONG:
            service.move(session, song, "redo_structure")
            compare_passes(service, session, song)


def release(service: StudyService, who: int, number: int) -> None:
    """Take a task back from somebody who has not handed it in, so that its place is given to another person."""
    with service.writing(who, "manage") as (session, person):
        row = service.own_task(session, person, number)
        if row.state == "screened":
            raise ForbiddenStepError(
                "decide on the skipped song: keep it or leave it out",
                state=row.state,
                action="cancel",
                role=person.role,
            )
        service.move(session, row, "cancel", person)


def add_ledger_entry(service: StudyService, who: int, entry: ledger.Entry) -> None:
    """Add an entry to the ledger by hand."""
    with service.writing(who, "manage") as (session, person):
        if session.get(PersonRow, entry.person) is None:
            raise InvalidInputError(f"there is no person {entry.person}", kind="no_person", found=entry.person)
        service.pay(session, entry)
        service.note(session, person, "ledger", str(entry.person), entry.kind, detail={"cents": entry.cents})


def ledger_of(service: StudyService, who: int) -> list[ledger.Entry]:
    """List the entries of a person but hidden ones (`tasks.hidden_tasks`), or for an administrator all of them."""
    with service.reading(who, "ask") as (session, person):
        chosen = select(LedgerRow).order_by(LedgerRow.id)
        if person.role != "administrator":
            chosen = chosen.where(LedgerRow.person == who, shown_entries(hidden_tasks(service, session, who)))
        rows = session.scalars(chosen)
        return [ledger.Entry(row.person, row.kind, row.cents, row.reason, row.task, row.moment) for row in rows]


def progress(service: StudyService, who: int) -> Progress:
    """Return how far the study is; training is no part of it."""
    with service.reading(who, "manage") as (session, _):
        songs = Counter[str](session.scalars(select(SongRow.state).where(SongRow.training.is_(False))))
        joined = select(PersonRow.role, TaskRow.state).join(PersonRow, PersonRow.id == TaskRow.person)
        joined = joined.where(TaskRow.training.is_(False))
        tasks = Counter((role, state) for role, state in session.execute(joined))
        owed = session.scalar(select(func.coalesce(func.sum(LedgerRow.cents), 0)))
        return Progress(dict(songs), dict(tasks), int(owed or 0))


def post_message(service: StudyService, who: int, content: str, *, thread: int | None = None, place: str = "") -> None:
    """Post a message to a feedback thread: one's own, or as an administrator any."""
    if not content.strip() or len(content) > 2000:
        raise InvalidInputError("write something, of at most 2,000 characters", kind="message", most=2000)
    if place.startswith(DISCUSSIONS):
        raise InvalidInputError(
            f"feedback is about a page, got {place!r}; what inspectors discuss has its own threads", kind="other_thread"
        )
    with service.writing(who, "ask") as (session, _):
        thread = who if thread is None else thread
        if thread != who:
            service.person(session, who, "manage")
            if session.get(PersonRow, thread) is None:
                raise InvalidInputError(f"there is no thread {thread}", kind="no_person", found=thread)
        session.add(
            MessageRow(thread=thread, author=who, content=content.strip(), place=place[:100], moment=service.clock())
        )


def finished_songs(service: StudyService) -> list[FinishedSong]:
    """Return the songs that have entered the data set, for the export, with what those who worked on them agreed to."""
    with service.store.reading() as session:
        rows = session.scalars(select(SongRow).where(SongRow.state == "finished").order_by(SongRow.id))
        finished = [_finished(session, row) for row in list(rows)]
        people = {
            item.song.id: (*item.structure_people, item.professional_person, item.amateur_person)
            for item in finished
            if not item.consent  # what was taken over came with its own
        }
        consents = consent_of(session, people)
    return [dataclasses.replace(item, consent=item.consent or consents[item.song.id]) for item in finished]


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


def keep_lexica(service: StudyService, who: int, group: str, built: Mapping[str, lexica.Lexicon]) -> None:
    """Keep lexica of dimensions of a group, in place of those they had; all of them or none."""
    for dimension in built:
        lexica.check_dimension(group, dimension)
    with service.writing(who, "manage") as (session, person):
        plain = {dimension: lexicon.to_dict() for dimension, lexicon in built.items()}
        session.merge(SettingRow(name=f"lexica of {group}", value=_stored_lexica(session, group) | plain))
        for dimension, lexicon in built.items():
            detail = {"terms": len(lexicon.terms), "source": lexicon.source, "licence": lexicon.licence}
            service.note(session, person, "lexicon", f"{group}/{dimension}", "build", detail=detail)


def lexica_of(service: StudyService, group: str) -> dict[str, lexica.Lexicon]:
    """Return the lexica that a study has of its own: dimension -> lexicon."""
    with service.store.reading() as session:
        stored = _stored_lexica(session, group)
    return {
        name: lexica.Lexicon(tuple(lexicon["terms"]), lexicon["source"], lexicon["licence"])
        for name, lexicon in stored.items()
    }


def terms_of(service: StudyService, group: str, dimension: str) -> Sequence[str]:
    """Return the terms that a dimension offers: the study's own, or those of the demo songs."""
    with service.store.reading() as session:
        stored = _stored_lexica(session, group).get(dimension)
    return stored["terms"] if stored else lexica.demo_lexicon(group, dimension)


def _stored_lexica(session: Session, group: str) -> dict[str, Any]:
    row = session.get(SettingRow, f"lexica of {group}")
    return {} if row is None else dict(row.value)
