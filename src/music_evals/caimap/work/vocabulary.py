"""The lexica of a study: kept with their source and licence, and read while somebody types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from music_evals.caimap import lexica
from music_evals.caimap.storage.tables import SettingRow
from music_evals.caimap.work.service import StudyService

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

__all__ = ["keep_lexica", "lexica_of", "terms_of"]


def keep_lexica(service: StudyService, who: int, group: str, built: Mapping[str, lexica.Lexicon]) -> None:
    """Keep lexica of dimensions of a group, in place of those they had; all of them or none.

    Raises
    ------
    ForbiddenError
        The person is no administrator.
    UnknownNameError
        A group or a dimension that has no lexicon.

    """
    for dimension in built:
        lexica.check_dimension(group, dimension)
    with service.writing(who, "manage") as (session, person):
        plain = {dimension: lexicon.to_dict() for dimension, lexicon in built.items()}
        session.merge(SettingRow(name=_setting(group), value=_stored_lexica(session, group) | plain))
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
    """Return the terms that a dimension offers: the study's own, or those of the demo songs.

    Raises
    ------
    UnknownNameError
        No such group or dimension.

    """
    with service.store.reading() as session:
        stored = _stored_lexica(session, group).get(dimension)
    return stored["terms"] if stored else lexica.demo_lexicon(group, dimension)


def _setting(group: str) -> str:
    return f"lexica of {group}"


def _stored_lexica(session: Session, group: str) -> dict[str, Any]:
    row = session.get(SettingRow, _setting(group))
    return {} if row is None else dict(row.value)
