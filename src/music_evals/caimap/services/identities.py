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

from music_evals.caimap.domain.machine import ForbiddenError
from music_evals.caimap.services import accounts
from music_evals.caimap.services.study import StudyService
from music_evals.caimap.storage.tables import AttemptRow, IdentityRow, InviteRow, PersonRow, SessionRow
from music_evals.errors import InvalidInputError

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

ATTEMPT: Final = dt.timedelta(minutes=10)
"""From the beginning of a sign-in to its end."""


class Attempt(NamedTuple):
    """What a sign-in that has begun is for."""

    purpose: str  # ``"sign_in"``, ``"join"`` or ``"link"``
    session: str = ""  # of the person who links: what is kept of its token
    invite: str = ""  # of the person who joins: what is kept of the invitation's token
    name: str = ""
    consent: str = ""


class Ways(NamedTuple):
    """By what somebody signs in."""

    password: bool  # they have one
    linked: bool  # an account of the provider is linked


def begin_sign_in(service: StudyService) -> str:
    """Begin a sign-in, and return the secret for the browser, which is kept nowhere."""
    with service.store.writing() as session:
        return _begin(service, session, Attempt("sign_in"))


def begin_joining(service: StudyService, token: str, name: str, *, consents: bool) -> str:
    """Begin to accept an invitation, and return the secret for the browser."""
    if not consents:
        raise InvalidInputError("nobody takes part without consent", kind="no_consent")
    name = accounts.checked_name(name)
    with service.store.writing() as session:
        # looked at again when they come back; said here, before anybody is sent to the provider
        accounts.check_invitation(service, session.get(InviteRow, accounts.hash_of(token)))
        accounts.check_free(session, name)
        consent = service.settings(session).consent
        return _begin(service, session, Attempt("join", invite=accounts.hash_of(token), name=name, consent=consent))


def begin_linking(service: StudyService, who: int, token: str) -> str:
    """Begin to link an identity to the account of a session, and return the browser's secret."""
    with service.writing(who, "ask") as (session, _):
        return _begin(service, session, Attempt("link", session=accounts.hash_of(token)))


def _begin(service: StudyService, session: Session, attempt: Attempt) -> str:
    secret = secrets.token_urlsafe(32)
    session.execute(delete(AttemptRow).where(AttemptRow.expires < service.clock()))
    row = AttemptRow(secret_hash=accounts.hash_of(secret), expires=service.clock() + ATTEMPT, **attempt._asdict())
    session.add(row)
    return secret


def take(service: StudyService, secret: str) -> Attempt:
    """Take a sign-in that has begun, so that nobody takes it again."""
    with service.store.writing() as session:
        row = session.get(AttemptRow, accounts.hash_of(secret), with_for_update=True)
        if row is not None:
            session.delete(row)
    if row is None or row.expires < service.clock():
        raise InvalidInputError("this sign-in was used already, or is too old; begin again", kind="sign_in_used")
    return Attempt(*(getattr(row, name) for name in Attempt._fields))


def finish(service: StudyService, attempt: Attempt, provider: str, subject: str) -> str:
    """Complete a sign-in, and return the token of a new session; empty if an identity was linked."""
    with service.store.writing() as session:
        known = session.get(IdentityRow, (provider, subject))
        if attempt.purpose == "link":
            _link(service, session, attempt, IdentityRow(provider=provider, subject=subject), known)
            return ""
        if attempt.purpose == "join":
            if known is not None:
                raise InvalidInputError(
                    "this account takes part in the study already; sign in with it", kind="identity_joined"
                )
            row = PersonRow(name=attempt.name, consent=attempt.consent, created=service.clock())
            who = accounts.join(service, session, row, attempt.invite, provider=provider)
            session.add(IdentityRow(provider=provider, subject=subject, person=who))
            session.flush()
        elif known is None:
            raise ForbiddenError(
                "nobody takes part with this account; ask the administrator for an invitation", kind="identity_unknown"
            )
        else:
            who = known.person
            if session.get_one(PersonRow, who).withdrawn:
                raise ForbiddenError("whoever takes part with this account has withdrawn", kind="identity_withdrawn")
        return accounts.new_session(service, session, who)


def _link(
    service: StudyService, session: Session, attempt: Attempt, identity: IdentityRow, known: IdentityRow | None
) -> None:
    visit = session.get(SessionRow, attempt.session)
    if visit is None or visit.expires < service.clock():
        raise ForbiddenError("you have signed out since; sign in and link the account again", kind="signed_out_since")
    person = service.person(session, visit.person, "ask")
    if known is not None and known.person == person.id:
        return
    if known is not None:
        raise InvalidInputError(
            "this account belongs to somebody else of the study; nothing was linked", kind="identity_of_other"
        )
    if _identity_of(session, person.id, identity.provider) is not None:
        raise InvalidInputError("another account is linked already; unlink it first", kind="linked_already")
    identity.person = person.id
    session.add(identity)
    service.note(session, person, "person", str(person.id), "link", detail={"provider": identity.provider})


def _identity_of(session: Session, who: int, provider: str) -> IdentityRow | None:
    chosen = select(IdentityRow).where(IdentityRow.person == who, IdentityRow.provider == provider)
    return session.scalars(chosen).first()


def ways(service: StudyService, who: int, provider: str) -> Ways:
    """Return by what somebody signs in."""
    with service.reading(who, "ask") as (session, _):
        row = session.get_one(PersonRow, who)
        return Ways(bool(row.password_hash), _identity_of(session, who, provider) is not None)


def unlink(service: StudyService, who: int, provider: str) -> None:
    """Take a link away, and end all sessions of the person, who signs in with their password again."""
    with service.writing(who, "ask") as (session, person):
        identity = _identity_of(session, who, provider)
        if identity is None:
            raise InvalidInputError("no account is linked", kind="not_linked")
        if not session.get_one(PersonRow, who, with_for_update=True).password_hash:
            raise InvalidInputError(
                "this account has no password; without the link nobody could sign in to it", kind="only_link"
            )
        session.delete(identity)
        session.execute(delete(SessionRow).where(SessionRow.person == who))
        service.note(session, person, "person", str(who), "unlink", detail={"provider": provider})
