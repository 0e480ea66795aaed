"""Accounts: invitations, passwords, sessions. Who guesses is made to wait by the pages (`web.guards`).

Passwords are kept as argon2 hashes, tokens of invitations and sessions as SHA-256: who reads the database can sign in
as nobody. Signing in makes a new session each time, so that one that somebody planted is worth nothing.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import String, cast, delete, select, update

from music_evals.caimap.domain.machine import ForbiddenError
from music_evals.caimap.domain.values import ROLES
from music_evals.caimap.services.study import StudyService, person_of
from music_evals.caimap.storage.tables import AuditRow, InviteRow, PersonRow, SessionRow, SettingRow, TaskRow
from music_evals.deprecation import module_getattr
from music_evals.errors import InvalidInputError, importing

if TYPE_CHECKING:
    from argon2 import PasswordHasher
    from sqlalchemy.orm import Session

    from music_evals.caimap.domain.values import Person

__getattr__ = module_getattr(__name__, {"found": "create_first_admin", "speak": "set_language"})

MIN_PASSWORD: Final = 10
"""Characters of a password."""

MAX_PASSWORD: Final = 200

SESSION: Final = dt.timedelta(hours=12)
"""Until somebody signs in again."""

INVITATION: Final = dt.timedelta(days=14)

RESET: Final = dt.timedelta(days=2)
"""Until the link for a new password is worth nothing."""

_RESET: Final = "reset:"
"""Begins the name of the setting that keeps such a link, by the hash of its token."""


class SignInError(ForbiddenError):
    """No such account, or a wrong password; the error does not say which."""


class Visit(NamedTuple):
    """A person who is signed in."""

    person: Person
    name: str  # of the account
    language: str  # ``"zh"`` or ``"en"``; empty where none was chosen
    csrf: str  # token that every form carries


def _hasher() -> PasswordHasher:
    with importing("caimap", "accounts"):
        from argon2 import PasswordHasher
    return PasswordHasher()


def hash_of(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def create_first_admin(service: StudyService, name: str, password: str) -> int:
    """Create the first account of a study, its administrator, and return their number."""
    with service.store.writing() as session:
        if session.scalars(select(PersonRow.id)).first() is not None:
            raise InvalidInputError("the study has its administrator already; others come by invitation")
        row = _account(service, name, password, "administrator")
        session.add(row)
        session.flush()
        service.note(session, None, "person", str(row.id), "found")
        return row.id


def checked_name(name: str) -> str:
    """Return a name without spaces around it."""
    name = name.strip()
    if not 1 <= len(name) <= 80 or not name.isprintable():
        raise InvalidInputError("a name has 1 to 80 characters", kind="account_name")
    return name


def _account(service: StudyService, name: str, password: str, role: str) -> PersonRow:
    name = checked_name(name)
    _check_password(password)
    return PersonRow(name=name, role=role, password_hash=_hasher().hash(password), consent="", created=service.clock())


def has_people(service: StudyService) -> bool:
    """Tell whether a study has any account."""
    with service.store.reading() as session:
        return session.scalars(select(PersonRow.id)).first() is not None


def first_administrator(service: StudyService) -> int:
    """Return the number of the first administrator, in whose name the command line acts."""
    with service.store.reading() as session:
        chosen = select(PersonRow.id).where(PersonRow.role == "administrator", PersonRow.withdrawn.is_(False))
        who = session.scalars(chosen.order_by(PersonRow.id)).first()
        if who is None:
            raise InvalidInputError("the study has no administrator")
        return who


def invite(service: StudyService, who: int, role: str) -> str:
    """Make an invitation, and return its token, which is kept nowhere."""
    if role not in ROLES:
        raise InvalidInputError(
            f"a role must be one of {', '.join(ROLES)}, got {role!r}", kind="role_unknown", roles=ROLES
        )
    token = secrets.token_urlsafe(24)
    with service.writing(who, "manage") as (session, person):
        session.add(InviteRow(token_hash=hash_of(token), role=role, expires=service.clock() + INVITATION))
        service.note(session, person, "person", "", "invite", detail={"role": role})
    return token


def accept(service: StudyService, token: str, name: str, password: str, *, consents: bool) -> int:
    """Make an account by an invitation, once, and return its number."""
    if not consents:
        raise InvalidInputError("nobody takes part without consent", kind="no_consent")
    row = _account(service, name, password, "amateur")
    with service.store.writing() as session:
        row.consent = service.settings(session).consent
        return join(service, session, row, hash_of(token))


def join(service: StudyService, session: Session, row: PersonRow, invitation_hash: str, **detail: str) -> int:
    """Add a person by their invitation, in the role that it names, and return their number."""
    invitation = check_invitation(service, session.get(InviteRow, invitation_hash, with_for_update=True))
    check_free(session, row.name)
    row.role = invitation.role
    session.add(row)
    session.flush()
    invitation.used_by = row.id
    service.note(session, person_of(row), "person", str(row.id), "accept", detail={"consent": row.consent, **detail})
    return row.id


def check_invitation(service: StudyService, invitation: InviteRow | None) -> InviteRow:
    """Return an invitation that is still valid."""
    if invitation is None or invitation.used_by is not None or invitation.expires < service.clock():
        raise InvalidInputError("this invitation is not valid any more; ask for another", kind="invitation_used")
    return invitation


def check_free(session: Session, name: str) -> None:
    """Refuse a name that somebody has."""
    if session.scalars(select(PersonRow.id).where(PersonRow.name == name)).first() is not None:
        raise InvalidInputError("this name is taken; choose another", kind="name_taken")


def sign_in(service: StudyService, name: str, password: str) -> str:
    """Sign somebody in, and return the token of a new session."""
    with service.store.reading() as session:
        row = session.scalars(select(PersonRow).where(PersonRow.name == name.strip())).first()
    password_hash = "" if row is None or row.withdrawn else row.password_hash
    # where there is no account, a hash is made all the same: the time tells nothing
    right = _fits(password_hash, password) if password_hash else not _hasher().hash("")
    if row is None or not right:
        raise SignInError("name and password do not fit", kind="sign_in")
    return open_session(service, row.id)


def open_session(service: StudyService, who: int) -> str:
    """Open a session for somebody who is known by other means than a password, and return its token."""
    with service.store.writing() as session:
        return new_session(service, session, who)


def new_session(service: StudyService, session: Session, who: int) -> str:
    """Add a session within a transaction, and return its token."""
    token = secrets.token_urlsafe(32)
    session.execute(delete(SessionRow).where(SessionRow.expires < service.clock()))
    session.add(
        SessionRow(
            token_hash=hash_of(token), person=who, csrf=secrets.token_urlsafe(24), expires=service.clock() + SESSION
        )
    )
    return token


def visit(service: StudyService, token: str) -> Visit | None:
    """Return who has this session; None for nobody."""
    with service.store.reading() as session:
        row = session.get(SessionRow, hash_of(token)) if token else None
        # one that is too long was begun by a clock that was ahead
        if row is None or not service.clock() <= row.expires <= service.clock() + SESSION:
            return None
        person = session.get(PersonRow, row.person)
        if person is None or person.withdrawn:
            return None
        return Visit(person_of(person), person.name, person.language, row.csrf)


def sign_out_all(service: StudyService, who: int) -> None:
    """End all sessions of a person."""
    with service.store.writing() as session:
        session.execute(delete(SessionRow).where(SessionRow.person == who))


def set_language(service: StudyService, who: int, language: str) -> None:
    """Set the language in which a person reads the pages, ``"zh"`` or ``"en"``."""
    with service.writing(who, "ask") as (session, _):
        session.execute(update(PersonRow).where(PersonRow.id == who).values(language=language))


def is_confirmed_by_name(service: StudyService, who: int) -> bool:
    """Tell whether somebody has no password, so that they confirm an act by the name of their account."""
    with service.store.reading() as session:
        return not session.get_one(PersonRow, who).password_hash


def confirm(service: StudyService, who: int, password: str) -> None:
    """Refuse an act that cannot be undone unless its person gives their password again."""
    with service.store.reading() as session:
        row = session.get_one(PersonRow, who)
    if not (_fits(row.password_hash, password) if row.password_hash else password.strip() == row.name):
        raise SignInError("the password does not fit", kind="confirm")


def _fits(password_hash: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _hasher().verify(password_hash, password[:MAX_PASSWORD])
    except (VerificationError, InvalidHashError):
        return False


def reset_link(service: StudyService, who: int, person: int) -> str:
    """Let somebody set a new password, once: return the token for it, which is kept nowhere; older ones end."""
    token = secrets.token_urlsafe(24)
    with service.writing(who, "manage") as (session, acting):
        row = session.get(PersonRow, person)
        if row is None or row.withdrawn or person in stand_ins(session).values():
            raise InvalidInputError(f"person {person} has no account to sign in to", kind="no_account", found=person)
        for link in reset_links(session, person):
            session.delete(link)
        value = {"person": person, "expires": (service.clock() + RESET).isoformat()}
        session.add(SettingRow(name=f"{_RESET}{hash_of(token)[:34]}", value=value))
        service.note(session, acting, "person", str(person), "reset")
    return token


def set_password(service: StudyService, token: str, password: str) -> None:
    """Set the password of an account by a link, once; all its sessions end."""
    _check_password(password)
    hashed = _hasher().hash(password)
    with service.store.writing() as session:
        link = session.get(SettingRow, f"{_RESET}{hash_of(token)[:34]}", with_for_update=True)
        row = None if link is None else session.get(PersonRow, link.value["person"], with_for_update=True)
        if (
            link is None
            or row is None
            or row.withdrawn
            or service.clock() > dt.datetime.fromisoformat(link.value["expires"])
        ):
            raise InvalidInputError("this link is not valid any more; ask for another", kind="link_used")
        row.password_hash = hashed
        session.delete(link)
        session.execute(delete(SessionRow).where(SessionRow.person == row.id))
        service.note(session, person_of(row), "person", str(row.id), "new_password")


def end_sessions(service: StudyService, who: int, person: int) -> None:
    """End all sessions of somebody, as an administrator."""
    with service.writing(who, "manage") as (session, acting):
        if session.get(PersonRow, person) is None:
            raise InvalidInputError(f"there is no person {person}", kind="no_person", found=person)
        session.execute(delete(SessionRow).where(SessionRow.person == person))
        service.note(session, acting, "person", str(person), "end_sessions")


def reset_links(session: Session, person: int) -> list[SettingRow]:
    """Return the links by which somebody may set a new password."""
    rows = session.scalars(select(SettingRow).where(SettingRow.name.startswith(_RESET)))
    return [row for row in rows if row.value["person"] == person]


def _check_password(password: str) -> None:
    if not MIN_PASSWORD <= len(password) <= MAX_PASSWORD:
        raise InvalidInputError(
            f"a password has {MIN_PASSWORD} to {MAX_PASSWORD} characters",
            kind="password_length",
            least=MIN_PASSWORD,
            most=MAX_PASSWORD,
        )


STAND_INS: Final = {"professional": "annotated elsewhere (professional)", "amateur": "annotated elsewhere (amateur)"}
"""Role -> account in whose name songs are taken over that were annotated elsewhere; numbered if the name is taken."""


def consent_of(session: Session, people: Mapping[str, Iterable[int]]) -> dict[str, str]:
    """Return the consent to every song."""
    rows = {row.id: row for row in session.scalars(select(PersonRow))}
    bare = {who: song for song, numbers in people.items() for who in numbers if not rows[who].consent}
    if bare:
        names = ", ".join(f"{rows[who].name} (person {who}, as in {song})" for who, song in sorted(bare.items()))
        raise InvalidInputError(
            f"what people made leaves the study with their consent alone, and none is known of {names}; withdraw them, "
            "so that others do this work again"
        )
    return {song: ", ".join(sorted({rows[who].consent for who in numbers})) for song, numbers in people.items()}


def stand_in(service: StudyService, session: Session, role: str) -> int:
    """Return the account that stands for those who annotated elsewhere; it is made if missing."""
    known = stand_ins(session)
    if role in known:
        return known[role]
    # a name says nothing: somebody may have taken it
    names = set(session.scalars(select(PersonRow.name)))
    ours = STAND_INS[role]
    free = next(name for name in (ours, *(f"{ours} {n}" for n in range(2, len(names) + 3))) if name not in names)
    row = PersonRow(name=free, role=role, excluded=True, created=service.clock())
    session.add(row)
    session.flush()
    return row.id


def stand_ins(session: Session) -> dict[str, int]:
    """Return the accounts that stand for people elsewhere, by role: those whose tasks were taken over."""
    taken = select(AuditRow.object).where(AuditRow.kind == "task", AuditRow.action == "take_over")
    joined = select(PersonRow.role, PersonRow.id).join(TaskRow, TaskRow.person == PersonRow.id)
    return dict(session.execute(joined.where(cast(TaskRow.id, String).in_(taken)).distinct()).all())
