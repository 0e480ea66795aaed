"""Accounts: invitations, passwords, sessions. Who guesses is made to wait by the pages (`web.guards`).

Passwords are kept as argon2 hashes, tokens of invitations and sessions as SHA-256: who reads the database can sign in
as nobody. Signing in makes a new session each time, so that one that somebody planted is worth nothing.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import delete, select, update

from music_evals.caimap.roles import ForbiddenError
from music_evals.caimap.storage.tables import InviteRow, PersonRow, SessionRow, SettingRow
from music_evals.caimap.values import ROLES
from music_evals.caimap.work.consents import stand_ins
from music_evals.caimap.work.desk import Desk, person_of
from music_evals.errors import InvalidInputError, importing

if TYPE_CHECKING:
    from argon2 import PasswordHasher
    from sqlalchemy.orm import Session

    from music_evals.caimap.values import Person

__all__ = [
    "MIN_PASSWORD",
    "SESSION",
    "SignInError",
    "Visit",
    "accept",
    "check_free",
    "check_invitation",
    "checked_name",
    "confirm",
    "end_sessions",
    "first_administrator",
    "found",
    "has_people",
    "hash_of",
    "invite",
    "is_confirmed_by_name",
    "join",
    "new_session",
    "open_session",
    "reset_link",
    "reset_links",
    "set_password",
    "sign_in",
    "sign_out_all",
    "speak",
    "visit",
]

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
    """No such account, or another password; which of them is not said."""


class Visit(NamedTuple):
    """A person who is signed in.

    Attributes
    ----------
    person
        Who.
    name
        Of the account.
    language
        ``"zh"`` or ``"en"``; empty where none was chosen.
    csrf
        Token that every form carries.

    """

    person: Person
    name: str
    language: str
    csrf: str


def _hasher() -> PasswordHasher:
    with importing("caimap", "accounts"):
        from argon2 import PasswordHasher
    return PasswordHasher()


def hash_of(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def found(desk: Desk, name: str, password: str) -> int:
    """Make the first account of a study, its administrator's, and return their number.

    Raises
    ------
    InvalidInputError
        There is an account already, or the name or the password is not taken.

    """
    with desk.store.writing() as session:
        if session.scalars(select(PersonRow.id)).first() is not None:
            raise InvalidInputError("the study has its administrator already; others come by invitation")
        row = _account(desk, name, password, "administrator")
        session.add(row)
        session.flush()
        desk.note(session, None, "person", str(row.id), "found")
        return row.id


def checked_name(name: str) -> str:
    """Return a name without spaces around it.

    Raises
    ------
    InvalidInputError
        It is too short or too long, or has characters that nobody sees.

    """
    name = name.strip()
    if not 1 <= len(name) <= 80 or not name.isprintable():
        raise InvalidInputError("a name has 1 to 80 characters", kind="account_name")
    return name


def _account(desk: Desk, name: str, password: str, role: str) -> PersonRow:
    name = checked_name(name)
    _check_password(password)
    return PersonRow(name=name, role=role, password_hash=_hasher().hash(password), consent="", created=desk.clock())


def has_people(desk: Desk) -> bool:
    """Tell whether a study has been founded."""
    with desk.store.reading() as session:
        return session.scalars(select(PersonRow.id)).first() is not None


def first_administrator(desk: Desk) -> int:
    """Return the number of the administrator who founded the study, for whom the command line acts.

    Raises
    ------
    InvalidInputError
        There is none.

    """
    with desk.store.reading() as session:
        chosen = select(PersonRow.id).where(PersonRow.role == "administrator", PersonRow.withdrawn.is_(False))
        who = session.scalars(chosen.order_by(PersonRow.id)).first()
        if who is None:
            raise InvalidInputError("the study has no administrator")
        return who


def invite(desk: Desk, who: int, role: str) -> str:
    """Make an invitation, and return its token, which is kept nowhere.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    InvalidInputError
        No such role.

    """
    if role not in ROLES:
        raise InvalidInputError(
            f"a role must be one of {', '.join(ROLES)}, got {role!r}", kind="role_unknown", roles=ROLES
        )
    token = secrets.token_urlsafe(24)
    with desk.writing(who, "manage") as (session, person):
        session.add(InviteRow(token_hash=hash_of(token), role=role, expires=desk.clock() + INVITATION))
        desk.note(session, person, "person", "", "invite", detail={"role": role})
    return token


def accept(desk: Desk, token: str, name: str, password: str, *, consents: bool) -> int:
    """Make an account by an invitation, once, and return its number.

    Raises
    ------
    InvalidInputError
        No such invitation, one that was used or is too old, no consent, or a name that is taken.

    """
    if not consents:
        raise InvalidInputError("nobody takes part without consent", kind="no_consent")
    row = _account(desk, name, password, "amateur")
    with desk.store.writing() as session:
        row.consent = desk.settings(session).consent
        return join(desk, session, row, hash_of(token))


def join(desk: Desk, session: Session, row: PersonRow, invitation_hash: str, **detail: str) -> int:
    """Add a person by their invitation, in the role that it names, and return their number.

    Parameters
    ----------
    desk, session
        The study, and the transaction.
    row
        Of the person, who has consented.
    invitation_hash
        What is kept of the invitation's token.
    **detail
        For the audit log.

    Raises
    ------
    InvalidInputError
        No such invitation, one that was used or is too old, or a name that is taken.

    """
    invitation = check_invitation(desk, session.get(InviteRow, invitation_hash, with_for_update=True))
    check_free(session, row.name)
    row.role = invitation.role
    session.add(row)
    session.flush()
    invitation.used_by = row.id
    desk.note(session, person_of(row), "person", str(row.id), "accept", detail={"consent": row.consent, **detail})
    return row.id


def check_invitation(desk: Desk, invitation: InviteRow | None) -> InviteRow:
    """Return an invitation that is still valid.

    Raises
    ------
    InvalidInputError
        There is none, or it was used or is too old.

    """
    if invitation is None or invitation.used_by is not None or invitation.expires < desk.clock():
        raise InvalidInputError("this invitation is not valid any more; ask for another", kind="invitation_used")
    return invitation


def check_free(session: Session, name: str) -> None:
    """Refuse a name that somebody has.

    Raises
    ------
    InvalidInputError
        It is taken.

    """
    if session.scalars(select(PersonRow.id).where(PersonRow.name == name)).first() is not None:
        raise InvalidInputError("this name is taken; choose another", kind="name_taken")


def sign_in(desk: Desk, name: str, password: str) -> str:
    """Sign somebody in, and return the token of a new session.

    Raises
    ------
    SignInError
        The name or the password; every answer takes about as long.

    """
    with desk.store.reading() as session:
        row = session.scalars(select(PersonRow).where(PersonRow.name == name.strip())).first()
    kept = "" if row is None or row.withdrawn else row.password_hash
    # where there is no account, a hash is made all the same: the time tells nothing
    right = _fits(kept, password) if kept else not _hasher().hash("")
    if row is None or not right:
        raise SignInError("name and password do not fit", kind="sign_in")
    return open_session(desk, row.id)


def open_session(desk: Desk, who: int) -> str:
    """Open a session for somebody who is known by other means than a password, and return its token."""
    with desk.store.writing() as session:
        return new_session(desk, session, who)


def new_session(desk: Desk, session: Session, who: int) -> str:
    """Add a session within a transaction, and return its token."""
    token = secrets.token_urlsafe(32)
    session.execute(delete(SessionRow).where(SessionRow.expires < desk.clock()))
    session.add(
        SessionRow(
            token_hash=hash_of(token), person=who, csrf=secrets.token_urlsafe(24), expires=desk.clock() + SESSION
        )
    )
    return token


def visit(desk: Desk, token: str) -> Visit | None:
    """Return who has this session; None for nobody."""
    with desk.store.reading() as session:
        row = session.get(SessionRow, hash_of(token)) if token else None
        # one that is too long was begun by a clock that was ahead
        if row is None or not desk.clock() <= row.expires <= desk.clock() + SESSION:
            return None
        person = session.get(PersonRow, row.person)
        if person is None or person.withdrawn:
            return None
        return Visit(person_of(person), person.name, person.language, row.csrf)


def sign_out_all(desk: Desk, who: int) -> None:
    """End all sessions of a person."""
    with desk.store.writing() as session:
        session.execute(delete(SessionRow).where(SessionRow.person == who))


def speak(desk: Desk, who: int, language: str) -> None:
    """Keep the language in which somebody reads the pages, ``"zh"`` or ``"en"``."""
    with desk.writing(who, "ask") as (session, _):
        session.execute(update(PersonRow).where(PersonRow.id == who).values(language=language))


def is_confirmed_by_name(desk: Desk, who: int) -> bool:
    """Tell whether somebody has no password, so that they confirm an act by the name of their account."""
    with desk.store.reading() as session:
        return not session.get_one(PersonRow, who).password_hash


def confirm(desk: Desk, who: int, given: str) -> None:
    """Refuse an act that cannot be undone unless its person gives their password again.

    Raises
    ------
    SignInError
        Another password, or, for an account without one, another name.

    """
    with desk.store.reading() as session:
        row = session.get_one(PersonRow, who)
    if not (_fits(row.password_hash, given) if row.password_hash else given.strip() == row.name):
        raise SignInError("the password does not fit", kind="confirm")


def _fits(kept: str, given: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _hasher().verify(kept, given[:MAX_PASSWORD])
    except (VerificationError, InvalidHashError):
        return False


def reset_link(desk: Desk, who: int, person: int) -> str:
    """Let somebody set a new password, once: return the token for it, which is kept nowhere; older ones end.

    Raises
    ------
    ForbiddenError
        `who` is no administrator.
    InvalidInputError
        There is no such person, they have withdrawn, or it is an account that nobody signs in to.

    """
    token = secrets.token_urlsafe(24)
    with desk.writing(who, "manage") as (session, acting):
        row = session.get(PersonRow, person)
        if row is None or row.withdrawn or person in stand_ins(session).values():
            raise InvalidInputError(f"person {person} has no account to sign in to", kind="no_account", found=person)
        for link in reset_links(session, person):
            session.delete(link)
        value = {"person": person, "expires": (desk.clock() + RESET).isoformat()}
        session.add(SettingRow(name=_link_name(token), value=value))
        desk.note(session, acting, "person", str(person), "reset")
    return token


def set_password(desk: Desk, token: str, password: str) -> None:
    """Set the password of an account by a link, once; all its sessions end.

    Raises
    ------
    InvalidInputError
        No such link, one that was used or is too old, or the password is not taken.

    """
    _check_password(password)
    hashed = _hasher().hash(password)
    with desk.store.writing() as session:
        link = session.get(SettingRow, _link_name(token), with_for_update=True)
        row = None if link is None else session.get(PersonRow, link.value["person"], with_for_update=True)
        if (
            link is None
            or row is None
            or row.withdrawn
            or desk.clock() > dt.datetime.fromisoformat(link.value["expires"])
        ):
            raise InvalidInputError("this link is not valid any more; ask for another", kind="link_used")
        row.password_hash = hashed
        session.delete(link)
        session.execute(delete(SessionRow).where(SessionRow.person == row.id))
        desk.note(session, person_of(row), "person", str(row.id), "new_password")


def end_sessions(desk: Desk, who: int, person: int) -> None:
    """End all sessions of somebody, as an administrator.

    Raises
    ------
    ForbiddenError
        `who` is no administrator.
    InvalidInputError
        There is no such person.

    """
    with desk.writing(who, "manage") as (session, acting):
        if session.get(PersonRow, person) is None:
            raise InvalidInputError(f"there is no person {person}", kind="no_person", found=person)
        session.execute(delete(SessionRow).where(SessionRow.person == person))
        desk.note(session, acting, "person", str(person), "end_sessions")


def _link_name(token: str) -> str:
    return f"{_RESET}{hash_of(token)[:34]}"


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
