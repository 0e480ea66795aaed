"""Accounts of a provider, such as Hugging Face, by which people sign in.

An identity is the provider and its subject, never a name, which others may have later; it belongs to one person at
most. Somebody links it to their account, or joins with it by an invitation. A sign-in that has begun is kept by the
hash of a secret that its browser holds: it ends in that browser, once, within ten minutes.
"""

from __future__ import annotations

import datetime as dt
import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import delete, select

from music_evals.caimap.roles import ForbiddenError
from music_evals.caimap.storage.tables import AttemptRow, IdentityRow, InviteRow, PersonRow, SessionRow
from music_evals.caimap.work import accounts
from music_evals.caimap.work.desk import Desk
from music_evals.errors import InvalidInputError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = [
    "ATTEMPT",
    "Attempt",
    "Ways",
    "begin_joining",
    "begin_linking",
    "begin_sign_in",
    "finish",
    "take",
    "unlink",
    "ways",
]

ATTEMPT: Final = dt.timedelta(minutes=10)
"""From the beginning of a sign-in to its end."""


class Attempt(NamedTuple):
    """What a sign-in that has begun is for.

    Attributes
    ----------
    purpose
        ``"sign_in"``, ``"join"`` or ``"link"``.
    session
        Of the person who links: what is kept of its token.
    invite
        Of the person who joins: what is kept of the invitation's token.
    name, consent
        Of the person who joins; the version of the text that they consented to.

    """

    purpose: str
    session: str = ""
    invite: str = ""
    name: str = ""
    consent: str = ""


class Ways(NamedTuple):
    """By what somebody signs in.

    Attributes
    ----------
    password
        They have one.
    linked
        An account of the provider is linked.

    """

    password: bool
    linked: bool


def begin_sign_in(desk: Desk) -> str:
    """Begin a sign-in, and return the secret for the browser, which is kept nowhere."""
    with desk.store.writing() as session:
        return _begin(desk, session, Attempt("sign_in"))


def begin_joining(desk: Desk, token: str, name: str, *, consents: bool) -> str:
    """Begin to accept an invitation, and return the secret for the browser.

    Raises
    ------
    InvalidInputError
        No such invitation, one that was used or is too old, no consent, or a name that is taken.

    """
    if not consents:
        raise InvalidInputError("nobody takes part without consent", kind="no_consent")
    name = accounts.checked_name(name)
    with desk.store.writing() as session:
        # looked at again when they come back; said here, before anybody is sent to the provider
        accounts.check_invitation(desk, session.get(InviteRow, accounts.hash_of(token)))
        accounts.check_free(session, name)
        consent = desk.settings(session).consent
        return _begin(desk, session, Attempt("join", invite=accounts.hash_of(token), name=name, consent=consent))


def begin_linking(desk: Desk, who: int, token: str) -> str:
    """Begin to link an identity to somebody's account, for the session of this token, and return the browser's secret.

    Raises
    ------
    ForbiddenError
        Nobody of that number takes part.

    """
    with desk.writing(who, "ask") as (session, _):
        return _begin(desk, session, Attempt("link", session=accounts.hash_of(token)))


def _begin(desk: Desk, session: Session, attempt: Attempt) -> str:
    secret = secrets.token_urlsafe(32)
    session.execute(delete(AttemptRow).where(AttemptRow.expires < desk.clock()))
    row = AttemptRow(secret_hash=accounts.hash_of(secret), expires=desk.clock() + ATTEMPT, **attempt._asdict())
    session.add(row)
    return secret


def take(desk: Desk, secret: str) -> Attempt:
    """Take a sign-in that has begun, so that nobody takes it again.

    Raises
    ------
    InvalidInputError
        There is none of this secret, or it is too old.

    """
    with desk.store.writing() as session:
        row = session.get(AttemptRow, accounts.hash_of(secret), with_for_update=True)
        if row is not None:
            session.delete(row)
    if row is None or row.expires < desk.clock():
        raise InvalidInputError("this sign-in was used already, or is too old; begin again", kind="sign_in_used")
    return Attempt(*(getattr(row, name) for name in Attempt._fields))


def finish(desk: Desk, attempt: Attempt, provider: str, subject: str) -> str:
    """Do what a sign-in was begun for, and return the token of a new session; of none where an identity was linked.

    Parameters
    ----------
    desk
        The study.
    attempt
        What `take` gave.
    provider, subject
        The identity that the provider vouches for.

    Raises
    ------
    ForbiddenError
        The identity is of nobody who takes part, or who links has signed out.
    InvalidInputError
        The identity belongs to somebody already, or the invitation or the name were taken meanwhile.
    StaleError
        The same identity came twice at one moment.

    """
    with desk.store.writing() as session:
        known = session.get(IdentityRow, (provider, subject))
        if attempt.purpose == "link":
            _link(desk, session, attempt, IdentityRow(provider=provider, subject=subject), known)
            return ""
        if attempt.purpose == "join":
            if known is not None:
                raise InvalidInputError(
                    "this account takes part in the study already; sign in with it", kind="identity_joined"
                )
            row = PersonRow(name=attempt.name, consent=attempt.consent, created=desk.clock())
            who = accounts.join(desk, session, row, attempt.invite, provider=provider)
            session.add(IdentityRow(provider=provider, subject=subject, person=who))
            session.flush()
        else:
            who = _known(session, known)
        return accounts.new_session(desk, session, who)


def _known(session: Session, known: IdentityRow | None) -> int:
    if known is None:
        raise ForbiddenError(
            "nobody takes part with this account; ask the administrator for an invitation", kind="identity_unknown"
        )
    row = session.get_one(PersonRow, known.person)
    if row.withdrawn:
        raise ForbiddenError("whoever takes part with this account has withdrawn", kind="identity_withdrawn")
    return row.id


def _link(desk: Desk, session: Session, attempt: Attempt, made: IdentityRow, known: IdentityRow | None) -> None:
    visit = session.get(SessionRow, attempt.session)
    if visit is None or visit.expires < desk.clock():
        raise ForbiddenError("you have signed out since; sign in and link the account again", kind="signed_out_since")
    person = desk.person(session, visit.person, "ask")
    if known is not None and known.person == person.id:
        return
    if known is not None:
        raise InvalidInputError(
            "this account belongs to somebody else of the study; nothing was linked", kind="identity_of_other"
        )
    if _identity_of(session, person.id, made.provider) is not None:
        raise InvalidInputError("another account is linked already; unlink it first", kind="linked_already")
    made.person = person.id
    session.add(made)
    desk.note(session, person, "person", str(person.id), "link", detail={"provider": made.provider})


def _identity_of(session: Session, who: int, provider: str) -> IdentityRow | None:
    chosen = select(IdentityRow).where(IdentityRow.person == who, IdentityRow.provider == provider)
    return session.scalars(chosen).first()


def ways(desk: Desk, who: int, provider: str) -> Ways:
    """Return by what somebody signs in.

    Raises
    ------
    ForbiddenError
        Nobody of that number takes part.

    """
    with desk.reading(who, "ask") as (session, _):
        row = session.get_one(PersonRow, who)
        return Ways(bool(row.password_hash), _identity_of(session, who, provider) is not None)


def unlink(desk: Desk, who: int, provider: str) -> None:
    """Take a link away, and end all sessions of the person, who signs in with their password again.

    Raises
    ------
    ForbiddenError
        Nobody of that number takes part.
    InvalidInputError
        Nothing is linked, or the account has no password.

    """
    with desk.writing(who, "ask") as (session, person):
        identity = _identity_of(session, who, provider)
        if identity is None:
            raise InvalidInputError("no account is linked", kind="not_linked")
        if not session.get_one(PersonRow, who, with_for_update=True).password_hash:
            raise InvalidInputError(
                "this account has no password; without the link nobody could sign in to it", kind="only_link"
            )
        session.delete(identity)
        session.execute(delete(SessionRow).where(SessionRow.person == who))
        desk.note(session, person, "person", str(who), "unlink", detail={"provider": provider})
